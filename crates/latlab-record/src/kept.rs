//! How much of a number, and of a tail, a record keeps.

use crate::TailSample;

/// Nothing is known better than 1 in 10,000.
const DIGITS: i32 = 5;
/// Slow samples that a record keeps; beyond that the slowest are kept and the rest is counted.
const TAIL_KEPT: usize = 4_000;

/// To five significant digits; what is not finite stays as it is.
#[must_use]
pub fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of a finite f64 is within ±324"
    )]
    let exponent = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(exponent.abs());
    let rounded = if exponent >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    };
    // The least and the largest numbers that there are have no such scale.
    if rounded.is_finite() && (rounded > 0.0) == (value > 0.0) {
        rounded
    } else {
        value
    }
}

/// The slow samples of a record in order of time, and how many were left out, those that were before included.
#[must_use]
pub fn keep_slowest(mut tail: Vec<TailSample>, dropped: u64) -> (Vec<TailSample>, u64) {
    let beyond = tail.len().saturating_sub(TAIL_KEPT);
    if beyond > 0 {
        tail.sort_by(|a, b| b.value.total_cmp(&a.value));
        tail.truncate(TAIL_KEPT);
    }
    tail.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    (tail, dropped.saturating_add(beyond as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_five_digits_at_every_size() {
        for (value, rounded) in [
            (1.060_449, 1.0604),
            (-1.060_449, -1.0604),
            (0.000_123_456_78, 0.000_123_46),
            (467_812_345_678.0, 467_810_000_000.0),
            (0.0, 0.0),
            (f64::MIN_POSITIVE, f64::MIN_POSITIVE),
            (f64::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(significant(value).to_bits(), f64::to_bits(rounded), "{value}");
        }
    }

    #[test]
    fn the_slowest_are_kept_in_order_of_time_and_the_rest_is_counted() {
        let all: Vec<TailSample> = (0..TAIL_KEPT + 3)
            .map(|nth| TailSample {
                at_ns: -(nth as f64),
                value: nth as f64,
                cause: None,
            })
            .collect();
        let (kept, dropped) = keep_slowest(all, 4);
        assert_eq!((kept.len(), dropped), (TAIL_KEPT, 7));
        assert!(kept.is_sorted_by(|a, b| a.at_ns < b.at_ns));
        assert!(kept.iter().all(|sample| sample.value >= 3.0));
        let (few, none) = keep_slowest(kept[..2].to_vec(), 0);
        assert_eq!((few.len(), none), (2, 0));
    }
}
