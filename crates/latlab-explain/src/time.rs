//! Nanoseconds as they are counted and written.

/// Whole nanoseconds of a sum that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
pub(crate) fn whole_ns(ns: f64) -> u64 {
    ns.clamp(0.0, 1e18) as u64
}

/// Seconds, to the microsecond: more digits are only longer.
pub(crate) fn micros(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e6
}

/// Seconds, to the nanosecond: more digits are only longer.
pub(crate) fn nanos(seconds: f64) -> f64 {
    (1e9 * seconds).round() / 1e9
}
