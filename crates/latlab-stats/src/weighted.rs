//! The same statistics for histogram buckets: `(value, count)`, ascending by value.
//!
//! Exact for the bucket values; how far a bucket's value is from its samples is the histogram's own resolution, and
//! the caller's to state.

use crate::moments::{Moments, from_counts};
use crate::order::{Interval, IntervalMethod, ranks};
use crate::quantile::{interpolate, position};
use crate::refusal::{Refusal, check};

/// [`crate::quantile`] of the samples that the buckets stand for; NaN when there are none.
#[must_use]
pub fn quantile_counts(buckets: &[(f64, u64)], q: f64) -> f64 {
    let n = total(buckets);
    if n == 0 || q.is_nan() {
        return f64::NAN;
    }
    let (below, share) = position(n, q);
    interpolate(
        value_at(buckets, below),
        value_at(buckets, (below + 1).min(n - 1)),
        share,
    )
}

/// [`crate::order_statistic_interval`] for buckets.
///
/// # Errors
/// As there.
pub fn order_statistic_interval_counts(
    buckets: &[(f64, u64)],
    q: f64,
    level: f64,
) -> Result<Interval, Refusal> {
    check(q, level)?;
    if !buckets.iter().all(|(x, _)| x.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    if !buckets.is_sorted_by_key(|b| b.0) {
        return Err(Refusal::NotSorted);
    }
    let (lower, upper) = ranks(total(buckets), q, level)?;
    let (lo, hi) = (value_at(buckets, lower - 1), value_at(buckets, upper - 1));
    Ok(Interval {
        lo,
        hi,
        level,
        method: IntervalMethod::OrderStatistics,
    })
}

/// [`crate::moments`] for buckets in any order.
#[must_use]
pub fn moments_counts(buckets: &[(f64, u64)]) -> Option<Moments> {
    from_counts(buckets.iter().copied())
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

#[cfg(test)]
mod tests {
    use super::{moments_counts, order_statistic_interval_counts, quantile_counts};
    use crate::rng::Rng;
    use crate::{moments, order_statistic_interval, quantile};

    #[test]
    fn buckets_say_what_their_samples_say() {
        let mut rng = Rng::new(11);
        let buckets: Vec<(f64, u64)> = (0..40)
            .map(|i| (f64::from(i) * 1.5, rng.below(30) as u64))
            .collect();
        let samples: Vec<f64> = buckets
            .iter()
            .flat_map(|&(x, n)| std::iter::repeat_n(x, usize::try_from(n).unwrap()))
            .collect();
        for q in [0.0, 0.01, 0.3, 0.5, 0.77, 0.99, 1.0] {
            assert!(
                (quantile_counts(&buckets, q) - quantile(&samples, q)).abs() < 1e-12,
                "q = {q}"
            );
        }
        for q in [0.1, 0.5, 0.9] {
            assert_eq!(
                order_statistic_interval_counts(&buckets, q, 0.95),
                order_statistic_interval(&samples, q, 0.95)
            );
        }
        let (a, b) = (moments_counts(&buckets).unwrap(), moments(&samples).unwrap());
        assert!(
            (a.mean - b.mean).abs() < 1e-9 && (a.std.unwrap() - b.std.unwrap()).abs() < 1e-9 && a.n == b.n
        );
        assert!(quantile_counts(&[(1.0, 0)], 0.5).is_nan());
    }
}
