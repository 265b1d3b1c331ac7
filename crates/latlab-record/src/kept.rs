//! How much of a number, of batch means and of a tail a record keeps, and how numbers are written.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::{Rank, TailSample};

/// Nothing is known better than 1 in 10,000.
const DIGITS: i32 = 5;
/// Slow samples that a record keeps; beyond that the slowest are kept and the rest is counted.
const TAIL_KEPT: usize = 1_000;
/// Batch means that a line keeps of a point that is no headline, for the shape of its distribution.
const VALUES_KEPT: usize = 16;

/// To five significant digits; what is not finite stays as it is.
pub fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the exponent of a finite f64 is within ±324")]
    let exponent = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(exponent.abs());
    let rounded =
        if exponent >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale };
    // The least and the largest numbers that there are have no such scale.
    if rounded.is_finite() && (rounded > 0.0) == (value > 0.0) { rounded } else { value }
}

/// The slow samples of a record in order of time, and how many were left out, those that were before
/// included.
pub fn keep_slowest(mut tail: Vec<TailSample>, dropped: u64) -> (Vec<TailSample>, u64) {
    let beyond = tail.len().saturating_sub(TAIL_KEPT);
    if beyond > 0 {
        tail.sort_by(|a, b| b.value.total_cmp(&a.value));
        tail.truncate(TAIL_KEPT);
    }
    tail.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    (tail, dropped.saturating_add(beyond as u64))
}

/// The batch means that a line of this rank keeps: all, or some of them, evenly spread over their order in
/// time.
pub fn keep_values(values: Vec<f64>, rank: Rank) -> Vec<f64> {
    let all = values.len();
    if rank == Rank::Headline || all <= VALUES_KEPT {
        return values;
    }
    (0..VALUES_KEPT).map(|nth| values[(2 * nth + 1) * all / (2 * VALUES_KEPT)]).collect()
}

/// JSON in which a number is written as 1.1761e11 where that is shorter than 117610000000.0.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, ShortNumbers))?;
    Ok(text)
}

struct ShortNumbers;

impl Formatter for ShortNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut plain = Vec::new();
        CompactFormatter.write_f64(&mut plain, value)?;
        let short = format!("{value:e}");
        writer.write_all(if short.len() < plain.len() { short.as_bytes() } else { &plain })
    }
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
    fn a_curve_keeps_batch_means_evenly_spread_and_a_headline_all() {
        let all: Vec<f64> = (0..192).map(f64::from).collect();
        let every_twelfth: Vec<f64> = (0..16).map(|nth| f64::from(6 + 12 * nth)).collect();
        assert_eq!(keep_values(all.clone(), Rank::Curve), every_twelfth);
        let few = keep_values(all[..17].to_vec(), Rank::Detail);
        assert!(few.len() == VALUES_KEPT && few.is_sorted_by(|a, b| a < b));
        assert_eq!(keep_values(all[..16].to_vec(), Rank::Once), all[..16]);
        assert_eq!(keep_values(all.clone(), Rank::Headline), all);
    }

    #[test]
    fn numbers_are_written_as_short_as_they_can_be_and_read_the_same() {
        for (value, text) in [
            (117_610_000_000.0, "1.1761e11"),
            (4096.0, "4096.0"),
            (1_000_000.0, "1e6"),
            (67_727_632_790.0, "67727632790.0"),
            (0.5, "0.5"),
            (-2e-9, "-2e-9"),
            (0.0, "0.0"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            let written = to_json(&value).expect("a number");
            assert_eq!(String::from_utf8_lossy(&written), text);
            let read: f64 = serde_json::from_slice(&written).expect("a number");
            assert_eq!(read.to_bits(), f64::to_bits(value));
        }
        assert_eq!(to_json(&f64::NAN).expect("absent"), b"null");
        assert_eq!(to_json(&[Some(7u64), None]).expect("no floats"), b"[7,null]");
    }

    #[test]
    fn the_slowest_are_kept_in_order_of_time_and_the_rest_is_counted() {
        let all: Vec<TailSample> = (0..TAIL_KEPT + 3)
            .map(|nth| TailSample { at_ns: -(nth as f64), value: nth as f64, cause: None })
            .collect();
        let (kept, dropped) = keep_slowest(all, 4);
        assert_eq!((kept.len(), dropped), (TAIL_KEPT, 7));
        assert!(kept.is_sorted_by(|a, b| a.at_ns < b.at_ns));
        assert!(kept.iter().all(|sample| sample.value >= 3.0));
        let (few, none) = keep_slowest(kept[..2].to_vec(), 0);
        assert_eq!((few.len(), none), (2, 0));
    }
}
