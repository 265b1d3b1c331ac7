//! A log-linear histogram that costs about a nanosecond a sample and constant memory.
//!
//! The buckets are those of an `HdrHistogram` with two significant digits: 128 linear buckets for
//! each power of two, so a bucket is at most 1/128 (0.8 %) of its value wide. Values are
//! picoseconds: integer nanoseconds would turn an L1 access of 1.06 ns into 1.
//! Stored as `HdrHistogram` V2, deflated, base64: about 1.2 KB, readable by every language.

use std::io::Read as _;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use latlab_stats::count::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Linear buckets below the first power of two that is split.
const LINEAR: usize = 256;
/// Buckets for each further power of two.
const HALF: usize = 128;
/// Highest power of two kept apart: 2^50 ps is 19 minutes, longer than any profile.
const HIGHEST_BIT: u32 = 50;
const LONGEST: u64 = (1 << HIGHEST_BIT) - 1;
const BUCKETS: usize = (HIGHEST_BIT as usize - 8) * HALF + LINEAR;
/// A stored histogram larger than this is not one that latlab wrote (ours are about 1 KB).
const LARGEST_ENCODED: usize = 1 << 20;
/// Ours inflate to at most 9 bytes for each of 5,632 buckets.
const LARGEST_INFLATED: u64 = 1 << 20;
/// Ours have two.
const MOST_DIGITS: usize = 3;

/// Why a stored histogram could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The encoding is not one that this version knows.
    #[error("histogram encoding {0:?} is not known; this version reads {ENCODING:?}")]
    Encoding(String),
    /// The text is not a deflated V2 histogram.
    #[error("histogram data is damaged: {0}")]
    Damaged(String),
}

const ENCODING: &str = "hdr-v2-deflate-base64";

/// A histogram as it stands in a run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncodedHistogram {
    /// `hdr-v2-deflate-base64`.
    pub encoding: String,
    /// Unit of the recorded integers: `ps`.
    pub unit: String,
    /// The encoded counts.
    pub data: String,
}

/// Counts of durations in picoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    /// Integers: exact, and an addition is one step where that of floats would be four.
    sum_ps: u128,
    sum_of_squares: u128,
    min_ps: u64,
    max_ps: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; 44 KiB.
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
            sum_ps: 0,
            sum_of_squares: 0,
            min_ps: u64::MAX,
            max_ps: 0,
        }
    }

    /// Counts one duration in picoseconds. Longer than 19 minutes counts as the last bucket.
    #[inline]
    pub fn record(&mut self, ps: u64) {
        let within = ps.min(LONGEST);
        self.counts[bucket_of(within)] += 1;
        self.total += 1;
        self.sum_ps += u128::from(ps);
        self.sum_of_squares += u128::from(within) * u128::from(within);
        self.min_ps = self.min_ps.min(ps);
        self.max_ps = self.max_ps.max(ps);
    }

    /// Adds the counts of a stored one, each by the middle of its bucket: exact but for moments and extremes.
    /// Fails when it cannot be read; nothing is added then.
    pub fn add(&mut self, stored: &EncodedHistogram) -> Result<(), HistogramError> {
        for (low_ns, high_ns, count) in stored.decode()? {
            // To the bucket's lowest and highest: both ends are whole picoseconds.
            let [low, high] = [low_ns, high_ns].map(|ns| nearest(ns * 1e3).min(LONGEST));
            let ps = low + (high.saturating_sub(low).saturating_sub(1)) / 2;
            self.counts[bucket_of(ps)] = self.counts[bucket_of(ps)].saturating_add(count);
            self.total = self.total.saturating_add(count);
            let sum = u128::from(ps) * u128::from(count);
            self.sum_ps = self.sum_ps.saturating_add(sum);
            self.sum_of_squares = self.sum_of_squares.saturating_add(sum.saturating_mul(u128::from(ps)));
            self.min_ps = self.min_ps.min(ps);
            self.max_ps = self.max_ps.max(ps);
        }
        Ok(())
    }

    /// Adds the counts of another histogram: exact, in any order.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total = self.total.saturating_add(other.total);
        self.sum_ps = self.sum_ps.saturating_add(other.sum_ps);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min_ps = self.min_ps.min(other.min_ps);
        self.max_ps = self.max_ps.max(other.max_ps);
    }

    /// Number of durations counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Shortest duration in ns, exact; `None` when empty.
    pub fn min_ns(&self) -> Option<f64> {
        (self.total > 0).then(|| self.min_ps as f64 / 1e3)
    }

    /// Longest duration in ns, exact; `None` when empty.
    pub fn max_ns(&self) -> Option<f64> {
        (self.total > 0).then(|| self.max_ps as f64 / 1e3)
    }

    /// Mean in ns, exact (not from bucket middles); `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum_ps as f64 / self.total as f64 / 1e3)
    }

    /// Sample standard deviation in ns; `None` with fewer than two samples.
    pub fn std_ns(&self) -> Option<f64> {
        if self.total < 2 {
            return None;
        }
        let n = self.total as f64;
        let sum = self.sum_ps as f64;
        let variance = (self.sum_of_squares as f64 - sum * sum / n) / (n - 1.0);
        Some(variance.max(0.0).sqrt() / 1e3)
    }

    /// `(middle of the bucket in ns, count)` of every bucket that holds something, ascending.
    pub fn occupied(&self) -> Vec<(f64, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| {
                let (low, width) = bounds_of(bucket);
                ((low as f64 + (width - 1) as f64 / 2.0) / 1e3, *count)
            })
            .collect()
    }

    /// The form that a run file holds.
    ///
    /// # Panics
    /// Never: the bounds handed to the encoder are those of this type.
    pub fn encode(&self) -> EncodedHistogram {
        let mut exchange = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << HIGHEST_BIT, 2)
            .expect("1 ps to 2^50 ps with two digits is a valid range");
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            exchange.saturating_record_n(bounds_of(bucket).0, *count);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&exchange, &mut bytes).expect("writing to memory does not fail");
        EncodedHistogram::of_bytes(&bytes)
    }
}

impl EncodedHistogram {
    fn of_bytes(bytes: &[u8]) -> Self {
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        Self { encoding: ENCODING.to_owned(), unit: "ps".to_owned(), data }
    }

    /// `(lowest ns, highest ns, count)` of every bucket that holds something, ascending.
    /// Fails when the encoding is unknown or the data is damaged: the file may be anybody's.
    pub fn decode(&self) -> Result<Vec<(f64, f64, u64)>, HistogramError> {
        if self.encoding != ENCODING {
            return Err(HistogramError::Encoding(self.encoding.chars().take(40).collect()));
        }
        if self.data.len() > LARGEST_ENCODED {
            return Err(HistogramError::Damaged(format!("{} bytes is too large", self.data.len())));
        }
        let packed = base64::engine::general_purpose::STANDARD
            .decode(&self.data)
            .map_err(|error| HistogramError::Damaged(error.to_string()))?;
        let plain = inflated(&packed)?;
        let exchange: hdrhistogram::Histogram<u64> =
            Deserializer::new()
                .deserialize(&mut plain.as_slice())
                .map_err(|error| HistogramError::Damaged(format!("{error:?}")))?;
        Ok(exchange
            .iter_recorded()
            .map(|step| {
                let low = exchange.lowest_equivalent(step.value_iterated_to());
                let high = exchange.highest_equivalent(step.value_iterated_to());
                (low as f64 / 1e3, high.saturating_add(1) as f64 / 1e3, step.count_since_last_iteration())
            })
            .collect())
    }
}

/// The V2 histogram inside a deflated one, with its lengths checked: the library takes as much memory as the
/// header says (up to 4 GiB for the counts, 50 MB for five digits) before it looks whether there is any.
fn inflated(packed: &[u8]) -> Result<Vec<u8>, HistogramError> {
    // Cookie, length of the payload, normalising offset, digits, lowest and highest value, ratio.
    const HEADER: usize = 40;
    let damaged = |text: &str| HistogramError::Damaged(text.to_owned());
    let deflated = packed.get(8..).ok_or_else(|| damaged("it ends in its header"))?;
    let mut plain = Vec::new();
    ZlibDecoder::new(deflated)
        .take(LARGEST_INFLATED)
        .read_to_end(&mut plain)
        .map_err(|error| HistogramError::Damaged(error.to_string()))?;
    let number = |at: usize| {
        let bytes = plain.get(at..at + 4)?;
        usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok()
    };
    let (Some(payload), Some(digits)) = (number(4), number(12)) else {
        return Err(damaged("it ends in its header"));
    };
    if payload > plain.len().saturating_sub(HEADER) {
        return Err(damaged("it is shorter than it says, or too large"));
    }
    if digits > MOST_DIGITS {
        return Err(damaged("it has more digits than any that latlab wrote"));
    }
    // The library negates this run of zeros, 2^63 of them, without a check.
    if plain[HEADER..].windows(9).any(|number| number == [0xff; 9]) {
        return Err(damaged("it has a run of zeros without end"));
    }
    Ok(plain)
}

/// The bucket of a duration of at most [`LONGEST`].
#[inline]
fn bucket_of(ps: u64) -> usize {
    let shift = (64 - (ps | (LINEAR as u64 - 1)).leading_zeros()) - 8;
    #[expect(clippy::cast_possible_truncation, reason = "ps >> shift is below 256 by construction")]
    let place = (ps >> shift) as usize;
    shift as usize * HALF + place
}

/// Lowest value of a bucket and its width, ps.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let shift = if bucket < LINEAR { 0 } else { (bucket - HALF) / HALF };
    let place = (bucket - shift * HALF) as u64;
    (place << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_is_at_most_one_128th_of_its_value_wide() {
        for bucket in LINEAR..BUCKETS {
            let (low, width) = bounds_of(bucket);
            assert!(width * 128 <= low, "bucket {bucket}: {low} + {width}");
        }
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (low, width) = bounds_of(bucket);
            assert_eq!(low, next);
            next = low + width;
        }
        assert_eq!(next, 1 << HIGHEST_BIT);
    }

    #[test]
    fn a_duration_beyond_the_range_is_counted_and_its_maximum_kept() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert_eq!(histogram.total(), 1);
        assert_eq!(histogram.occupied().len(), 1);
        assert_eq!(histogram.max_ns(), Some(u64::MAX as f64 / 1e3));
    }

    /// Of 1, 2 and 4 ns, counted in two parts.
    #[test]
    fn minimum_maximum_mean_and_deviation_are_those_of_the_samples_not_of_their_buckets() {
        let (mut histogram, mut other) = (Histogram::new(), Histogram::new());
        histogram.record(1_001);
        assert_eq!(histogram.std_ns(), None);
        for ps in [2_001, 4_001] {
            other.record(ps);
        }
        histogram.merge(&other);
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (Some(1.001), Some(4.001)));
        assert!((histogram.mean_ns().expect("three") - (7.0 / 3.0 + 0.001)).abs() < 1e-12);
        // ((1 - 7/3)^2 + (2 - 7/3)^2 + (4 - 7/3)^2) / 2 = 7/3.
        assert!((histogram.std_ns().expect("three") - (7.0_f64 / 3.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_bucket_is_named_by_its_middle_and_an_access_of_1_06_ns_does_not_become_1() {
        let mut histogram = Histogram::new();
        // Below 512 ps buckets are 1 ps and 2 ps wide; 1,060 ps lies in the one from 1,056 to 1,063.
        for ps in [5, 255, 257, 1_060, 1_060] {
            histogram.record(ps);
        }
        let expected = [(0.005, 1), (0.255, 1), (0.256_5, 1), (1.059_5, 2)];
        assert_eq!(histogram.occupied(), expected);
        let decoded = histogram.encode().decode().expect("our own encoding");
        assert_eq!(decoded[3], (1.056, 1.064, 2));
    }

    #[test]
    fn an_empty_histogram_has_no_statistics_and_survives_encoding() {
        let histogram = Histogram::new();
        assert_eq!(histogram.total(), 0);
        assert_eq!(histogram.mean_ns().or(histogram.std_ns()), None);
        assert_eq!(histogram.min_ns().or(histogram.max_ns()), None);
        assert_eq!(histogram.encode().decode().expect("our own encoding"), vec![]);
    }

    /// The stored form of bytes that pass for a V2 histogram.
    fn packed(plain: &[u8]) -> EncodedHistogram {
        let mut deflated = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0];
        let mut encoder = flate2::write::ZlibEncoder::new(&mut deflated, flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, plain).expect("memory");
        encoder.finish().expect("memory");
        EncodedHistogram::of_bytes(&deflated)
    }

    #[test]
    fn fuzz_of_stored_histograms_gives_buckets_or_a_reason() {
        let inputs: u64 =
            std::env::var("LATLAB_FUZZ").map_or(1_000, |inputs| inputs.parse().expect("a number"));
        let mut histogram = Histogram::new();
        (0..200_u64).for_each(|at| histogram.record(at * at * 1_000));
        let whole = base64::engine::general_purpose::STANDARD
            .decode(histogram.encode().data)
            .expect("our own encoding");
        let valid = inflated(&whole).expect("our own encoding");
        let mut accepted = 0;
        for seed in 0..inputs {
            let mut rng = latlab_stats::rng::Rng::new(seed);
            let mut random = |below| rng.below(below);
            let mut plain = valid.clone();
            for _ in 0..=random(3) {
                // Half of it in the header, which says how much there is.
                let within = if random(2) == 0 { 40 } else { plain.len() };
                let at = random(within);
                match random(5) {
                    0 => plain[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                    1 => plain[at] ^= 1 << random(8),
                    2 => plain.truncate(at.max(1)),
                    3 => plain.extend_from_within(at..),
                    _ => plain[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
                }
                plain.resize(plain.len().max(41), 0);
            }
            let decoded = std::panic::catch_unwind(|| packed(&plain).decode());
            match decoded.unwrap_or_else(|_| panic!("failed with seed {seed}: {plain:?}")) {
                Ok(buckets) => {
                    accepted += 1;
                    assert!(buckets.len() <= LARGEST_ENCODED, "seed {seed}: {} buckets", buckets.len());
                }
                Err(error) => assert!(!error.to_string().is_empty(), "seed {seed}"),
            }
        }
        assert!(accepted > inputs / 20, "{accepted} of {inputs} were histograms");
    }

    #[test]
    fn foreign_data_is_refused_with_its_reason() {
        let foreign =
            EncodedHistogram { encoding: "hdr-v9".to_owned(), unit: "ps".to_owned(), data: String::new() };
        assert!(foreign.decode().unwrap_err().to_string().contains("hdr-v9"));
        let damaged = EncodedHistogram { encoding: ENCODING.to_owned(), data: "AAAA".to_owned(), ..foreign };
        assert!(damaged.decode().unwrap_err().to_string().contains("damaged"));
        let of_length = |bytes: usize| {
            let data = "A".repeat(bytes);
            EncodedHistogram { data, ..damaged.clone() }.decode().unwrap_err().to_string()
        };
        assert!(!of_length(LARGEST_ENCODED).contains("too large"));
        assert!(of_length(LARGEST_ENCODED + 1).contains("1048577 bytes is too large"));
    }

    /// A deflated histogram with a header of one's own choice.
    fn forged(payload: u32, digits: u32, bytes: &[u8]) -> EncodedHistogram {
        let mut plain = 0x1c84_9313u32.to_be_bytes().to_vec();
        for number in [payload, 0, digits] {
            plain.extend(number.to_be_bytes());
        }
        plain.extend(1u64.to_be_bytes());
        plain.extend((1u64 << HIGHEST_BIT).to_be_bytes());
        plain.extend(1f64.to_be_bytes());
        plain.extend(bytes);
        packed(&plain)
    }

    #[test]
    fn a_header_that_promises_gigabytes_is_refused_before_they_are_taken() {
        assert_eq!(forged(1, 2, &[2]).decode().expect("a sound one"), vec![(0.0, 0.001, 1)]);
        let huge = forged(u32::MAX, 2, &[2]).decode().unwrap_err();
        assert!(huge.to_string().contains("shorter than it says"), "{huge}");
        let bomb = forged(64 << 20, 2, &vec![0; 64 << 20]);
        assert!(bomb.data.len() < LARGEST_ENCODED, "deflated it looks harmless");
        let bomb = bomb.decode().unwrap_err();
        assert!(bomb.to_string().contains("too large"), "{bomb}");
        let fine = forged(1, 5, &[2]).decode().unwrap_err();
        assert!(fine.to_string().contains("digits"), "{fine}");
        assert!(forged(1, 3, &[2]).decode().is_ok(), "three digits are read");
        let short = forged(2, 2, &[2]).decode().unwrap_err();
        assert!(short.to_string().contains("shorter than it says"), "{short}");
        let zeros = forged(9, 2, &[0xff; 9]).decode().unwrap_err();
        assert!(zeros.to_string().contains("run of zeros"), "{zeros}");
    }

    #[test]
    fn every_beginning_of_a_histogram_is_damaged_or_sound_but_never_a_panic() {
        let mut histogram = Histogram::new();
        (0..2_000).for_each(|step| histogram.record(step * step));
        let whole = histogram.encode();
        for length in 0..whole.data.len() {
            let cut = EncodedHistogram { data: whole.data[..length].to_owned(), ..whole.clone() };
            let _damaged = cut.decode();
        }
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(ps in 0u64..1 << HIGHEST_BIT) {
            let (low, width) = bounds_of(bucket_of(ps));
            prop_assert!(low <= ps && ps < low + width);
        }

        #[test]
        fn encoding_keeps_every_count_in_its_bucket(values in prop::collection::vec(0u64..1 << 49, 1..200)) {
            let mut histogram = Histogram::new();
            for value in &values {
                histogram.record(*value);
            }
            let decoded = histogram.encode().decode().expect("our own encoding");
            let ours = histogram.occupied();
            prop_assert_eq!(decoded.len(), ours.len());
            for ((low, high, count), (middle, own)) in decoded.iter().zip(ours) {
                prop_assert!(*low <= middle && middle < *high);
                prop_assert_eq!(*count, own);
            }
        }

        #[test]
        fn merging_is_the_same_as_recording_everything(
            a in prop::collection::vec(0u64..1 << 40, 0..50),
            b in prop::collection::vec(0u64..1 << 40, 0..50),
        ) {
            let mut first = Histogram::new();
            let mut second = Histogram::new();
            let mut both = Histogram::new();
            for value in &a { first.record(*value); both.record(*value); }
            for value in &b { second.record(*value); both.record(*value); }
            first.merge(&second);
            prop_assert_eq!(first.occupied(), both.occupied());
            prop_assert_eq!(first.total(), both.total());
            prop_assert_eq!(first.max_ns(), both.max_ns());
        }
    }
}
