//! The counter's rate against the system's raw monotonic clock, by two points, with the bound of its error.

use crate::Unusable;
use crate::os::OsClockId;

/// A counter reading and a reading of the reference clock that belong to the same moment, up to
/// `uncertainty`.
///
/// The counter is read before and after the reference; the moment lies between, so half the distance bounds
/// the error. Whatever delays the three reads (an interrupt, a slow system call) only widens the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Counter, middle of the bracket.
    pub(crate) ticks: u64,
    /// Reference clock.
    pub(crate) reference_ns: u64,
    /// Bound of the distance between the two moments, ticks.
    pub(crate) uncertainty_ticks: f64,
}

impl Pair {
    /// From the counter before and after one reading of the reference. `None` when the counter ran backwards.
    fn bracketed(before: u64, reference_ns: u64, after: u64) -> Option<Self> {
        let width = after.checked_sub(before)?;
        Some(Self { ticks: before + width / 2, reference_ns, uncertainty_ticks: width as f64 / 2.0 })
    }
}

/// The tightest of `attempts` bracketed readings. `None` only if every one ran backwards.
pub(crate) fn tightest(attempts: u32, counter: impl Fn() -> u64, reference: OsClockId) -> Option<Pair> {
    tightest_of((0..attempts).map(|_| {
        let before = counter();
        let reference_ns = reference.read();
        let after = counter();
        (before, reference_ns, after)
    }))
}

fn tightest_of(triples: impl Iterator<Item = (u64, u64, u64)>) -> Option<Pair> {
    triples
        .filter_map(|(before, reference_ns, after)| Pair::bracketed(before, reference_ns, after))
        .min_by(|a, b| a.uncertainty_ticks.total_cmp(&b.uncertainty_ticks))
}

/// A rate and how wrong it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) ticks_per_ns: f64,
    /// Bound of the relative error, parts per million.
    pub(crate) error_ppm: f64,
}

impl Rate {
    /// The rate between two points. `quantum_ticks` widens each bracket, because a reading may be that much
    /// older than its moment; the reference's own step is taken to be the same, since it is nearly always
    /// made from the same counter, and at least the nanosecond that it is rounded to.
    pub(crate) fn between(first: &Pair, last: &Pair, quantum_ticks: f64) -> Result<Self, Unusable> {
        let ticks = last.ticks.checked_sub(first.ticks).ok_or(Unusable::Backwards(1))? as f64;
        let ns = last.reference_ns.saturating_sub(first.reference_ns) as f64;
        if ticks <= 0.0 || ns <= 0.0 {
            return Err(Unusable::Stopped);
        }
        let ticks_per_ns = ticks / ns;
        let step_ticks = quantum_ticks + quantum_ticks.max(ticks_per_ns);
        let error_ticks = first.uncertainty_ticks + last.uncertainty_ticks + step_ticks;
        // Relative to the least that the true distance can be; infinite when the brackets overlap.
        Ok(Self { ticks_per_ns, error_ppm: error_ticks / (ticks - error_ticks).max(0.0) * 1e6 })
    }
}

#[cfg(test)]
mod tests {
    use latlab_stats::count::whole;
    use proptest::prelude::*;

    use super::*;

    /// A counter of a planted rate, read `jitter_before` and `jitter_after` ns around the moment `at_ns`.
    fn planted(
        rate: f64,
        quantum: u64,
        at_ns: u64,
        jitter_before: u64,
        jitter_after: u64,
    ) -> (u64, u64, u64) {
        let counter = |ns: u64| {
            let ticks = whole(ns as f64 * rate);
            ticks - ticks % quantum
        };
        (counter(at_ns - jitter_before), at_ns, counter(at_ns + jitter_after))
    }

    proptest! {
        #[test]
        fn the_planted_rate_lies_within_the_stated_error(
            rate in 0.02_f64..5.0,
            quantum in prop::sample::select(vec![1_u64, 2, 26, 36]),
            jitters in prop::collection::vec((10_u64..5_000, 10_u64..5_000), 20),
            baseline_ms in 1_u64..60_000,
        ) {
            let at = |start: u64| {
                let reads = jitters.iter().zip(0_u64..)
                    .map(move |(&(before, after), i)| planted(rate, quantum, start + i * 20_000, before, after));
                tightest_of(reads).expect("planted counters run forwards")
            };
            let (first, last) = (at(1_000_000), at(1_000_000 + baseline_ms * 1_000_000));
            let found = Rate::between(&first, &last, quantum as f64).unwrap();
            let off_ppm = (found.ticks_per_ns / rate - 1.0).abs() * 1e6;
            prop_assert!(off_ppm <= found.error_ppm, "{off_ppm} ppm off, {} stated", found.error_ppm);
        }

        #[test]
        fn a_longer_baseline_never_states_a_larger_error(short in 1_u64..100, times in 2_u64..100) {
            let pair = |ns: u64| Pair { ticks: 3 * ns, reference_ns: ns, uncertainty_ticks: 40.0 };
            let error = |ns: u64| Rate::between(&pair(0), &pair(ns), 1.0).unwrap().error_ppm;
            prop_assert!(error(short * times * 1_000_000) < error(short * 1_000_000));
        }
    }

    #[test]
    fn the_tightest_bracket_is_kept() {
        let triples = [(0, 50, 1000), (2000, 2010, 2030), (3000, 3500, 4000)];
        let pair = tightest_of(triples.into_iter()).unwrap();
        assert_eq!(pair, Pair { ticks: 2015, reference_ns: 2010, uncertainty_ticks: 15.0 });
    }

    #[test]
    fn a_bracket_that_runs_backwards_is_not_evidence() {
        assert_eq!(tightest_of([(100, 5, 90)].into_iter()), None);
    }

    #[test]
    fn a_counter_that_stands_still_has_no_rate() {
        let at = |reference_ns| Pair { ticks: 7, reference_ns, uncertainty_ticks: 0.0 };
        assert_eq!(Rate::between(&at(0), &at(1_000_000), 1.0), Err(Unusable::Stopped));
    }
}
