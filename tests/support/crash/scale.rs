//! How much the suites try.

/// The environment variable that scales every suite: percent of the full size. Without it the full size is tried in
/// release builds and this part of it in debug builds, so that the whole test command stays short.
pub(crate) const VARIABLE: &str = "COUNTERFOIL_TEST_PERCENT";

const DEBUG_PERCENT: u64 = 2;

/// Percent of the full size.
pub(crate) fn percent() -> u64 {
    let default = if cfg!(debug_assertions) { DEBUG_PERCENT } else { 100 };
    match std::env::var(VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{VARIABLE}={text}: {error}")),
        Err(_) => default,
    }
}

/// This part of `full`, at least 1.
pub(crate) fn scaled(full: u64) -> u64 {
    (full * percent() / 100).max(1)
}
