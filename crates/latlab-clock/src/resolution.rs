//! What the instrument adds to a reading: the step of the clock and the cost of an empty timed region.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use latlab_stats::count::index;

use crate::{Overhead, TimeSource};

/// Empty regions whose mean is taken together. An interrupt spoils one block of 64, which the median passes
/// over.
const BLOCK: usize = 256;
const BLOCKS: usize = 64;
/// Regions with work of varied length, so that the differences visit many multiples of the step.
const VARIED: u32 = 8192;
/// Different lengths of that work. Short on purpose: where a step is not a whole number of ticks (33.93),
/// only small multiples stay within a tick of the grid.
const LENGTHS: u32 = 64;

/// Step and cost of a time source in its own ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Instrument {
    /// The step in which readings advance, ticks; `None` if it never advanced while it was watched.
    pub quantum_ticks: Option<f64>,
    /// An empty region. The fields of [`Overhead`] hold ticks here.
    pub overhead_ticks: Overhead,
    /// Readings smaller than the one before.
    pub backwards: u64,
}

impl Instrument {
    /// The overhead in nanoseconds.
    pub fn overhead_ns(&self, ticks_per_ns: f64) -> Overhead {
        let ticks = &self.overhead_ticks;
        Overhead {
            mean: ticks.mean / ticks_per_ns,
            p50: ticks.p50 / ticks_per_ns,
            p99: ticks.p99 / ticks_per_ns,
            min: ticks.min / ticks_per_ns,
            samples: ticks.samples,
        }
    }
}

/// Times empty regions and regions of varied work on `source`, for at most about `budget`.
///
/// `work` is called with 0..64 and is to take about that many nanoseconds; [`busy`] does on real clocks.
pub fn measure_instrument<S: TimeSource>(source: &S, work: impl Fn(u32), budget: Duration) -> Instrument {
    let deadline = Instant::now() + budget;
    let mut watch = Watch::default();
    let mut empty = Vec::with_capacity(BLOCK * BLOCKS);
    let mut block_means = Vec::with_capacity(BLOCKS);
    for block in 0..=BLOCKS {
        let mut deltas = [0_u64; BLOCK];
        for delta in &mut deltas {
            let begin = source.begin();
            let end = source.end();
            *delta = watch.region(begin, end);
        }
        // The first block brings code, branch predictors and the vDSO's page into the caches.
        if block > 0 {
            block_means.push(deltas.iter().sum::<u64>() as f64 / BLOCK as f64);
            empty.extend_from_slice(&deltas);
        }
        if !empty.is_empty() && Instant::now() > deadline {
            break;
        }
    }

    let mut deltas = empty.clone();
    for i in 0..VARIED {
        let begin = source.begin();
        // Coprime to LENGTHS, so that neighbours differ and every length comes up equally often.
        work(i.wrapping_mul(37) % LENGTHS);
        let end = source.end();
        deltas.push(watch.region(begin, end));
        if i % 256 == 255 && Instant::now() > deadline {
            break;
        }
    }
    // A clock that steps more rarely than every hundredth region is watched until it has stepped a few times:
    // its steps are seen one by one, and need not share a divisor (a kernel tick is steered).
    let advanced = deltas.iter().filter(|&&delta| delta > 0).count();
    let quantum_ticks = if advanced * 100 < deltas.len() {
        single_step(source, &mut watch, deadline)
    } else {
        quantum_ticks(&deltas)
    };

    empty.sort_unstable();
    block_means.sort_unstable_by(f64::total_cmp);
    Instrument {
        quantum_ticks,
        overhead_ticks: Overhead {
            mean: block_means[block_means.len() / 2],
            p50: rank(&empty, 0.50),
            p99: rank(&empty, 0.99),
            min: empty[0] as f64,
            samples: empty.len() as u64,
        },
        backwards: watch.backwards,
    }
}

/// The median of the steps of a clock that is read without pause. `None` if it does not step before the
/// deadline.
fn single_step<S: TimeSource>(source: &S, watch: &mut Watch, deadline: Instant) -> Option<f64> {
    let mut steps = Vec::with_capacity(8);
    let mut last = source.begin();
    while steps.len() < 8 && Instant::now() < deadline {
        let now = source.end();
        if now != last {
            steps.push(watch.region(last, now));
            last = now;
        }
    }
    steps.sort_unstable();
    (!steps.is_empty()).then(|| rank(&steps, 0.5))
}

/// Dependent work of about `steps` cycles that the compiler keeps.
#[inline]
pub(crate) fn busy(steps: u32) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}

/// Counts readings that run backwards, within a region and from one region to the next.
#[derive(Default)]
struct Watch {
    last: u64,
    backwards: u64,
}

impl Watch {
    #[inline]
    fn region(&mut self, begin: u64, end: u64) -> u64 {
        self.backwards += u64::from(begin < self.last) + u64::from(end < begin);
        self.last = end;
        end.saturating_sub(begin)
    }
}

/// The step of a counter in ticks, from differences of its readings: the largest grid that they lie on.
///
/// Three kinds of counter have to come out right:
/// - plain ones, where it is the greatest common divisor (1, 2, 1000);
/// - coarse ones whose equal readings are told apart by a tick (1 and multiples of 26);
/// - coarse ones of which the step is not a whole number of ticks (33.93: differences of 33, 34, 68, 102),
///   also by conversion to whole nanoseconds (20, 30, 31).
///
/// Hence a grid of 8 ticks or more may be missed by one tick, and one difference in 200 may be off it. The
/// step returned for such a grid is the mean one. `None` if no difference is positive.
pub fn quantum_ticks(deltas: &[u64]) -> Option<f64> {
    let mut counts = BTreeMap::<u64, u64>::new();
    for &delta in deltas.iter().filter(|&&delta| delta > 0) {
        *counts.entry(delta).or_default() += 1;
    }
    if counts.is_empty() {
        return None;
    }
    let mut frequent: Vec<(u64, u64)> = counts.iter().map(|(&delta, &count)| (count, delta)).collect();
    frequent.sort_unstable_by(|a, b| b.cmp(a));
    let frequent: Vec<u64> = frequent.into_iter().take(48).map(|(_, delta)| delta).collect();
    let pairs = || frequent.iter().flat_map(|&a| frequent.iter().map(move |&b| (a, b)));

    let grids: BTreeSet<u64> =
        pairs().flat_map(|(a, b)| [a, a.abs_diff(b)]).filter(|&grid| grid >= LEAST_TOLERANT).collect();
    grids.iter().rev().find_map(|&grid| tolerant_step(&counts, grid)).or_else(|| {
        let divisors: BTreeSet<u64> = pairs().map(|(a, b)| gcd(a, b)).collect();
        let whole = divisors.into_iter().rev().find(|&divisor| divides_nearly_all(&counts, divisor));
        Some(whole.unwrap_or(1) as f64)
    })
}

/// Grids finer than this must be met exactly: a tolerance of one tick would accept nearly everything.
const LEAST_TOLERANT: u64 = 8;
/// Share of differences that may lie off the grid (readings split by an interrupt).
const STRAY: f64 = 0.005;

/// The mean step if the differences lie on `grid` give or take one tick, else `None`.
fn tolerant_step(counts: &BTreeMap<u64, u64>, grid: u64) -> Option<f64> {
    // Beyond 12 steps a grid of fractional ticks has drifted away from its multiples.
    let near: Vec<(u64, u64)> =
        counts.range(..=12 * grid + 1).map(|(&delta, &count)| (delta, count)).collect();
    let total = counts.values().sum::<u64>() as f64;
    let seen = near.iter().map(|&(_, count)| count).sum::<u64>() as f64;
    if seen < 0.3 * total {
        return None;
    }
    let (mut off, mut ticks, mut steps) = (0, 0, 0);
    let mut per_multiple = BTreeMap::<u64, u64>::new();
    for (delta, count) in near {
        let multiple = (delta + grid / 2) / grid;
        if delta.abs_diff(multiple * grid) > 1 {
            off += count;
        } else if multiple > 0 {
            ticks += delta * count;
            steps += multiple * count;
            *per_multiple.entry(multiple).or_default() += count;
        }
    }
    // Fewer than three well-filled multiples could be a coincidence of lengths.
    let well_filled = per_multiple.values().filter(|&&count| count as f64 >= STRAY * seen).count();
    (off as f64 <= STRAY * seen && well_filled >= 3).then(|| ticks as f64 / steps as f64)
}

fn divides_nearly_all(counts: &BTreeMap<u64, u64>, divisor: u64) -> bool {
    let total = counts.values().sum::<u64>() as f64;
    let off: u64 = counts.iter().filter(|(delta, _)| *delta % divisor != 0).map(|(_, &count)| count).sum();
    off as f64 <= STRAY * total
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The value of nearest rank in a sorted, non-empty slice.
fn rank<T: Copy + Into<u64>>(sorted: &[T], quantile: f64) -> f64 {
    let place = index((sorted.len() as f64 * quantile).ceil()).saturating_sub(1);
    sorted[place.min(sorted.len() - 1)].into() as f64
}

#[cfg(test)]
mod tests {
    use latlab_stats::count::whole;

    use super::*;
    use crate::SimulatedClock;
    use proptest::prelude::*;

    /// Differences of a counter that shows `step` x n rounded down, over regions of 2 to 9 steps.
    fn stepped(step: f64) -> Vec<u64> {
        (0_u64..4000)
            .map(|i| {
                let (from, length) = (i * 17, 2 + i % 8);
                whole((from + length) as f64 * step) - whole(from as f64 * step)
            })
            .collect()
    }

    #[test]
    fn the_step_of_any_kind_of_counter_is_found() {
        let told_apart = [stepped(26.0), vec![1; 3000]].concat();
        let also_missed = [&told_apart[..], &[51, 53, 77, 25]].concat();
        let interrupted = [&stepped(26.0)[..], &[104_729, 7_919, 15_485_863]].concat();
        let each = |of: &dyn Fn(usize) -> u64| (0..4000).map(of).collect::<Vec<u64>>();
        let fine = |i: usize| 40 + i as u64 % 61;
        for (deltas, expected, of) in [
            (stepped(26.0), 26.0, "a plain counter"),
            (told_apart, 26.0, "equal readings are told apart by a tick"),
            (also_missed, 26.0, "some multiples are missed by a tick"),
            (stepped(33.93), 33.93, "its mean, where ticks are fractional"),
            (stepped(10.0147), 10.0147, "its mean, where ticks are fractional"),
            (interrupted, 26.0, "interrupts"),
            (each(&fine), 1.0, "a fine counter"),
            (each(&|i| 2 * (20 + i as u64 % 61)), 2.0, "a fine counter"),
            (each(&|i| [0, 0, 1, 1, 1, 2][i % 6]), 1.0, "a slow counter"),
            (each(&|i| [0, 0, 0, 1000, 2000][i % 5]), 1000.0, "microseconds counted in nanoseconds"),
        ] {
            let found = quantum_ticks(&deltas).expect("some differences are positive");
            assert!((found - expected).abs() < expected * 1e-3, "{of}: found {found}, expected {expected}");
        }
    }

    #[test]
    fn a_counter_that_never_advanced_has_no_known_step() {
        assert_eq!(quantum_ticks(&[0, 0, 0]), None);
        assert_eq!(quantum_ticks(&[]), None);
    }

    proptest! {
        #[test]
        fn any_planted_step_is_found(step in 8_u64..5000, extra in prop::collection::vec(0_u64..9, 500..900)) {
            let deltas: Vec<u64> = extra.iter().map(|multiple| (2 + multiple) * step).collect();
            prop_assert_eq!(quantum_ticks(&deltas), Some(step as f64));
        }
    }

    #[test]
    fn a_planted_quantum_and_cost_are_measured_as_planted() {
        let clock = SimulatedClock::new(22.0, 10.0);
        let found =
            measure_instrument(&clock, |step| clock.advance_ns(f64::from(step)), Duration::from_mins(1));
        assert_eq!(found.quantum_ticks, Some(10_000.0));
        let overhead = found.overhead_ns(SimulatedClock::TICKS_PER_NS);
        assert!((overhead.mean - 22.0).abs() < 0.1, "{overhead:?}");
        assert!((overhead.p50 - 20.0).abs() < 1e-9, "{overhead:?}");
        assert!((overhead.p99 - 30.0).abs() < 1e-9, "{overhead:?}");
        assert_eq!(found.backwards, 0);
        assert_eq!(overhead.samples, 64 * 256);
    }

    /// Steps by about 4 ms, steered by a nanosecond now and then; each reading takes 10 us.
    struct KernelTick(std::cell::Cell<u64>);

    impl TimeSource for KernelTick {
        fn begin(&self) -> u64 {
            let reads = self.0.replace(self.0.get() + 1);
            let ticks = reads / 400;
            ticks * 4_000_000 + ticks % 2
        }
    }

    #[test]
    fn a_clock_that_steps_once_a_kernel_tick_has_that_step() {
        let clock = KernelTick(std::cell::Cell::new(0));
        let found = measure_instrument(&clock, |_| (), Duration::from_mins(1));
        assert!((found.quantum_ticks.unwrap() - 4e6).abs() <= 1.0, "{found:?}");
    }

    /// Interrupts an empty region now and then and jumps back once.
    struct Disturbed(SimulatedClock, std::cell::Cell<u64>);

    impl TimeSource for Disturbed {
        fn begin(&self) -> u64 {
            self.0.begin() + 1_000_000
        }

        fn end(&self) -> u64 {
            let reads = self.1.replace(self.1.get() + 1);
            if reads % 1000 == 500 {
                self.0.advance_ns(50_000.0);
            }
            self.0.end() + if reads == 700 { 0 } else { 1_000_000 }
        }
    }

    #[test]
    fn interrupts_do_not_move_the_overhead_and_a_step_back_is_counted() {
        let clock = Disturbed(SimulatedClock::new(22.0, 10.0), std::cell::Cell::new(0));
        let found =
            measure_instrument(&clock, |step| clock.0.advance_ns(f64::from(step)), Duration::from_mins(1));
        assert!((found.overhead_ticks.mean / 1e3 - 22.0).abs() < 0.2, "{found:?}");
        assert_eq!(found.backwards, 1);
    }
}
