//! The little arithmetic that everything rests on.

/// The median; of an even number of values, the mean of the middle two. 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(&high), 0) => f64::midpoint(sorted[middle - 1], high),
        (Some(&value), _) => value,
    }
}

/// The value below or at which a given number of thousandths of all values are: the nearest rank. The input is sorted.
pub(crate) fn percentile(sorted: &[u64], thousandths: usize) -> u64 {
    let rank = (sorted.len() * thousandths).div_ceil(1000).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// Smallest and largest. Zeros of none.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0);
    let most = values.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0);
    (least, most)
}

/// How many times the peer's operations per second this store's are. 0 if the peer did none.
pub(crate) fn ratio(ours: f64, peer: f64) -> f64 {
    if peer > 0.0 { ours / peer } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[test]
    fn a_median_is_in_the_middle_whatever_the_order() {
        assert!(is(median(&[9.0, 1.0, 2.0]), 2.0));
        assert!(is(median(&[4.0, 1.0, 2.0, 100.0]), 3.0));
        assert!(is(median(&[]), 0.0));
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let sorted: Vec<u64> = (1..=1000).collect();
        assert_eq!([500, 990, 1000].map(|at| percentile(&sorted, at)), [500, 990, 1000]);
        assert_eq!([1, 500, 990].map(|at| percentile(&[7], at)), [7, 7, 7]);
        assert_eq!(percentile(&[1, 2], 500), 1);
        assert_eq!(percentile(&[1, 2], 990), 2);
        assert_eq!(percentile(&[], 500), 0);
    }

    #[test]
    fn a_ratio_above_one_means_that_this_store_is_faster() {
        assert!(is(ratio(300.0, 100.0), 3.0));
        assert!(is(ratio(300.0, 0.0), 0.0));
        assert!(is(extremes(&[2.0, 1.0, 3.0]).0, 1.0) && is(extremes(&[2.0, 1.0, 3.0]).1, 3.0));
    }
}
