//! The frequency of the core, which is not that of its time stamp counter (1.49 times as high on one machine).

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arch::DEPENDENT_ADDS;
use crate::{Clock, Source, TimeSource};

/// Least length of one window, ns: 40 times the coarsest usual step (a 24 MHz counter), so that the step adds at
/// most a few percent there and 0.05 % where it is 10 ns.
const LEAST_WINDOW_NS: f64 = 20_000.0;
/// Aimed at, so that a core that speeds up by half still fills the least window.
const WINDOW_NS: f64 = 40_000.0;
/// Enough for every quantile here; bounds the memory.
const MOST_WINDOWS: usize = 8192;
const LEAST_WINDOWS: usize = 9;

/// Core frequency in GHz: quantiles of windows of at least 20 us, each one chain of dependent additions (one cycle
/// each on every core known here).
///
/// Interrupts and preemption lengthen windows, so `ghz_min` and, on a busy machine, `ghz_p10` are lower than any
/// frequency the core really ran at. `ghz_p50` is the figure to convert nanoseconds to core cycles with.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct CoreFrequency {
    /// Median window.
    pub ghz_p50: f64,
    /// 10th percentile.
    pub ghz_p10: f64,
    /// 90th percentile.
    pub ghz_p90: f64,
    /// Slowest window.
    pub ghz_min: f64,
    /// Fastest window.
    pub ghz_max: f64,
    /// Number of windows.
    pub windows: u64,
    /// The clock's ticks per nanosecond, for comparison: ticks are not core cycles.
    pub ticks_per_ns: f64,
}

/// Measures the frequency of the core that this thread runs on, for about `budget` (at least nine windows), the first
/// half of which, at most 50 ms, only warms the core up.
///
/// `None` where there is no assembly loop for the architecture, and on simulated clocks, which no loop moves.
#[must_use]
pub fn core_frequency(clock: &Clock, budget: Duration) -> Option<CoreFrequency> {
    let adds = DEPENDENT_ADDS?;
    let ghz = match &clock.source {
        Source::Hardware(source) => windows(clock, source, adds, budget),
        Source::Os(source) => windows(clock, source, adds, budget),
        Source::Simulated(_) => return None,
    };
    Some(summary(ghz, clock.facts.ticks_per_ns))
}

/// Frequency of the core at this moment, GHz: the faster of two windows of some 20 us, so that one interrupt does not count. No warm-up: meant
/// for right after a measurement, to turn its nanoseconds into cycles even where the frequency changes from one
/// millisecond to the next. `None` as for [`core_frequency`].
#[must_use]
pub fn core_frequency_now(clock: &Clock) -> Option<f64> {
    /// 81,920 additions: 20 us at 4 GHz.
    const ROUNDS: u64 = 640;
    let adds = DEPENDENT_ADDS?;
    if let Source::Simulated(_) = clock.source {
        return None;
    }
    let window = || {
        let begin = clock.source.now();
        let done = std::hint::black_box(adds(std::hint::black_box(ROUNDS)));
        done as f64 / clock.ns(clock.source.now().saturating_sub(begin)).max(1.0)
    };
    Some(window().max(window()))
}

/// GHz of each window of `adds`.
fn windows<S: TimeSource>(clock: &Clock, source: &S, adds: fn(u64) -> u64, budget: Duration) -> Vec<f64> {
    let started = Instant::now();
    let warm = (budget / 2).min(Duration::from_millis(50));
    // 8 Ki additions: some 2 us.
    let mut rounds = 64;
    let window = |rounds: u64| {
        let begin = source.begin();
        let done = std::hint::black_box(adds(std::hint::black_box(rounds)));
        let end = source.end();
        (done, clock.ns(end.saturating_sub(begin)))
    };
    while started.elapsed() < warm {
        window(rounds);
    }
    while window(rounds).1 < WINDOW_NS && rounds < 1 << 24 {
        rounds *= 2;
    }
    let mut ghz = Vec::with_capacity(MOST_WINDOWS);
    while ghz.len() < LEAST_WINDOWS || (started.elapsed() < budget && ghz.len() < MOST_WINDOWS) {
        let (done, ns) = window(rounds);
        // An interrupt during the search for `rounds` may have left them too few.
        if ns < LEAST_WINDOW_NS && rounds < 1 << 24 {
            rounds *= 2;
            ghz.clear();
        } else {
            ghz.push(done as f64 / ns);
        }
    }
    ghz
}

fn summary(mut ghz: Vec<f64>, ticks_per_ns: f64) -> CoreFrequency {
    ghz.sort_unstable_by(f64::total_cmp);
    let last = ghz.len() - 1;
    // In tenths of the way from the slowest to the fastest window.
    let at = |tenths: usize| ghz[last * tenths / 10];
    CoreFrequency {
        ghz_p50: at(5),
        ghz_p10: at(1),
        ghz_p90: at(9),
        ghz_min: at(0),
        ghz_max: at(10),
        windows: ghz.len() as u64,
        ticks_per_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedClock;

    #[test]
    fn quantiles_of_windows_are_in_order() {
        let found = summary((1..=101).rev().map(f64::from).collect(), 2.6);
        let quantiles = [found.ghz_min, found.ghz_p10, found.ghz_p50, found.ghz_p90, found.ghz_max];
        assert_eq!(quantiles.map(|ghz| format!("{ghz}")), ["1", "11", "51", "91", "101"]);
        assert_eq!(found.windows, 101);
    }

    #[test]
    fn the_loop_does_every_addition() {
        for rounds in [0, 1, 7, 1000] {
            assert!(DEPENDENT_ADDS.is_none_or(|adds| adds(rounds) == rounds * 128));
        }
    }

    #[test]
    fn no_loop_moves_simulated_time_so_no_frequency_is_claimed() {
        let clock = Clock::simulated(SimulatedClock::ideal());
        assert_eq!(core_frequency(&clock, Duration::from_millis(1)), None);
    }
}
