//! What fuzz targets and the test of their corpus call: functions over any bytes, which panic if something is wrong. No
//! part of what this crate promises; tests of users do not need them.

use serde_json::Value;

use crate::log;
use crate::protocol::canonical::json::canonicalise;
use crate::store::apply_to_nothing;

/// The bytes of one frame.
pub fn frame(input: &[u8]) {
    log::fuzz::frame(input);
}

/// The bytes of one record, which is then applied to an empty state, or refused.
pub fn record(input: &[u8]) {
    if let Some(record) = log::fuzz::record(input) {
        apply_to_nothing(&record);
    }
}

/// A recipe for a directory of log segments, which is then recovered, or refused.
pub fn segments(input: &[u8]) {
    log::fuzz::segments(input);
}

/// A request as JSON text. Its canonical form is its own, is JSON, and means the same to another reader.
///
/// # Panics
///
/// If it is not.
pub fn canonical(input: &[u8]) {
    let Ok(form) = canonicalise(input) else { return };
    assert!(canonicalise(&form).as_ref() == Ok(&form), "the canonical form has another one");
    let read = |text| serde_json::from_slice::<Value>(text);
    // Two limits of that reader are not ours: the depth, and numbers beyond binary64.
    if let (Ok(as_sent), Ok(as_kept)) = (read(input), read(&form)) {
        assert!(same(&as_sent, &as_kept), "the canonical form means something else");
    }
}

/// Whether two values are the same to a reader whose numbers are binary64, and whose last bit depends on the spelling.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            (one - other).abs() <= one.abs() * 1e-14
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        (one, other) => one == other,
    }
}
