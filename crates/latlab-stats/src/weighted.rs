//! Quantiles of histogram buckets: `(value, count)`, ascending by value.
//!
//! Exact for the bucket values; how far a bucket's value is from its samples is the histogram's own
//! resolution, and the caller's to state.

use crate::quantile::{interpolate, position};

/// [`crate::quantile`] of the samples that the buckets stand for; NaN when there are none.
pub fn quantile_counts(buckets: &[(f64, u64)], q: f64) -> f64 {
    let n = total(buckets);
    if n == 0 || q.is_nan() {
        return f64::NAN;
    }
    let (below, share) = position(n, q);
    interpolate(value_at(buckets, below), value_at(buckets, (below + 1).min(n - 1)), share)
}

fn total(buckets: &[(f64, u64)]) -> u64 {
    buckets.iter().fold(0, |n, b| n.saturating_add(b.1))
}

/// The zero-based order statistic.
fn value_at(buckets: &[(f64, u64)], place: u64) -> f64 {
    let mut passed = 0_u64;
    let found = buckets.iter().find(|(_, count)| {
        passed = passed.saturating_add(*count);
        passed > place
    });
    found.map_or(f64::NAN, |b| b.0)
}
