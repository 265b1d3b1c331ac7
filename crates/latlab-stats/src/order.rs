use crate::quantile::position;
use crate::refusal::{Refusal, check};
use crate::special::{binomial_cdf, binomial_sf};

/// The least number of independent samples with which `[smallest, largest]` encloses the quantile at this
/// level with half the error on either side: p50 at 95 % needs 6, p99.9 needs 3,688. `u64::MAX` when no
/// number is enough.
pub fn min_samples(q: f64, level: f64) -> u64 {
    if check(q, level).is_err() {
        return u64::MAX;
    }
    // All n samples on the wrong side of the quantile: q^n or (1-q)^n, the larger of which decides.
    let per_side = (1.0 - level) / 2.0;
    let n = (per_side.ln() / q.max(1.0 - q).ln()).ceil();
    crate::count::whole(n).max(2)
}

/// Distribution-free interval of quantile `q` from independent samples sorted ascending: two order statistics
/// whose ranks come from the exact binomial distribution (David and Nagaraja, Order Statistics, section 7.1),
/// both ends included. At most (1 - level)/2 of error on each side, also with ties. It always contains
/// [`crate::quantile`] of the same samples. Errors: [`Refusal::TooFew`] below [`min_samples`];
/// [`Refusal::NotFinite`], [`Refusal::NotSorted`]; a `q` or `level` outside (0, 1).
pub fn order_statistic_interval(sorted: &[f64], q: f64, level: f64) -> Result<(f64, f64), Refusal> {
    check(q, level)?;
    check_sorted(sorted)?;
    let (lower, upper) = ranks(sorted.len() as u64, q, level)?;
    let at = |rank: u64| sorted[usize::try_from(rank - 1).unwrap_or(usize::MAX)];
    Ok((at(lower), at(upper)))
}

fn check_sorted(sorted: &[f64]) -> Result<(), Refusal> {
    if !sorted.iter().all(|x| x.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    if !sorted.is_sorted() {
        return Err(Refusal::NotSorted);
    }
    Ok(())
}

/// One-based ranks of the two order statistics.
fn ranks(n: u64, q: f64, level: f64) -> Result<(u64, u64), Refusal> {
    let need = min_samples(q, level);
    if n < need {
        return Err(Refusal::TooFew { q, have: n, need });
    }
    let per_side = (1.0 - level) / 2.0;
    // Too high a lower end: fewer than `lower` samples are at or below the quantile.
    let lower = last_true(1, n, |rank| binomial_cdf(rank - 1, n, q) <= per_side);
    // Too low an upper end: at least `upper` samples are below the quantile.
    let upper = n + 1 - last_true(1, n, |k| binomial_sf(n + 1 - k, n, q) <= per_side);
    // At low levels the ranks may not enclose the interpolated point estimate; widening keeps the coverage.
    let (below, share) = position(n, q);
    let above = if share > 0.0 { below + 2 } else { below + 1 };
    Ok((lower.min(below + 1), upper.max(above.min(n))))
}

/// The largest value in `from..=to` for which a condition that turns false once is true; `from` is known to
/// be.
fn last_true(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (from, to + 1);
    while no - yes > 1 {
        let mid = yes + (no - yes) / 2;
        if holds(mid) {
            yes = mid;
        } else {
            no = mid;
        }
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::{min_samples, order_statistic_interval, ranks};
    use crate::Refusal;

    #[test]
    fn the_least_sample_counts_are_the_known_ones() {
        assert_eq!(min_samples(0.5, 0.95), 6);
        assert_eq!(min_samples(0.9, 0.95), 36);
        assert_eq!(min_samples(0.1, 0.95), 36);
        assert_eq!(min_samples(0.99, 0.95), 368);
        assert_eq!(min_samples(0.999, 0.95), 3688);
        assert_eq!(min_samples(0.9999, 0.95), 36887);
        assert_eq!(min_samples(0.5, 0.99), 8);
        assert_eq!(min_samples(1.0, 0.95), u64::MAX);
    }

    #[test]
    fn ranks_of_the_median_are_those_of_the_sign_test_tables() {
        for (n, want) in [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (15, (4, 12)), (20, (6, 15))] {
            assert_eq!(ranks(n, 0.5, 0.95), Ok(want), "n = {n}");
        }
        assert_eq!(ranks(25, 0.5, 0.95), Ok((8, 18)));
        assert_eq!(ranks(50, 0.5, 0.95), Ok((18, 33)));
        assert_eq!(ranks(100, 0.5, 0.95), Ok((40, 61)));
        assert_eq!(ranks(20, 0.5, 0.99), Ok((4, 17)));
    }

    #[test]
    fn the_least_count_uses_the_largest_sample_and_one_fewer_is_refused() {
        let x: Vec<f64> = (0..3688).map(f64::from).collect();
        let (_, high) = order_statistic_interval(&x, 0.999, 0.95).unwrap();
        assert!(high >= 3687.0);
        assert_eq!(
            order_statistic_interval(&x[..3687], 0.999, 0.95),
            Err(Refusal::TooFew { q: 0.999, have: 3687, need: 3688 })
        );
    }

    #[test]
    fn unusable_input_is_refused() {
        let x = [3.0, 1.0, 2.0, 4.0, 5.0, 6.0];
        assert_eq!(order_statistic_interval(&x, 0.5, 0.95), Err(Refusal::NotSorted));
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN];
        assert_eq!(order_statistic_interval(&x, 0.5, 0.95), Err(Refusal::NotFinite));
        assert_eq!(order_statistic_interval(&x, 1.5, 0.95), Err(Refusal::BadQuantile { q: 1.5 }));
        assert!(matches!(order_statistic_interval(&x, 0.5, f64::NAN), Err(Refusal::BadLevel { .. })));
    }

    #[test]
    fn a_billion_samples_are_no_trouble() {
        let (lower, upper) = ranks(1_000_000_000, 0.999, 0.95).unwrap();
        // Standard deviation of the rank: sqrt(1e9 * 0.999 * 0.001) = 999.5.
        assert!((999_000_000 - lower).abs_diff(1959) < 3 && (upper - 999_000_000).abs_diff(1960) < 3);
    }

    #[test]
    fn ranks_of_other_quantiles_are_those_of_the_binomial() {
        // scipy.stats.binom: the largest lower and the smallest upper rank with at most half of the error
        // beyond.
        for (n, q, level, want) in [
            (200, 0.9, 0.95, (171, 189)),
            (40, 0.1, 0.95, (1, 9)),
            (1000, 0.99, 0.95, (983, 997)),
            (101, 0.25, 0.9, (18, 34)),
        ] {
            assert_eq!(ranks(n, q, level), Ok(want), "n = {n}, q = {q}");
        }
        // At a level of 1 % the binomial's ranks, (1, 2) and (4, 5), would not enclose the quantile.
        assert_eq!(ranks(5, 0.3, 0.01), Ok((1, 3)));
        assert_eq!(ranks(5, 0.7, 0.01), Ok((3, 5)));
    }
}
