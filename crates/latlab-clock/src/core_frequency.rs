//! The frequency of the core, which is not that of its time stamp counter (1.49 times as high on one
//! machine).

use crate::arch::DEPENDENT_ADDS;
use crate::{Clock, Source};

/// Frequency of the core that this thread runs on at this moment, GHz: the faster of two windows of some 20
/// us, so that one interrupt does not count. Each is a chain of dependent additions, of one cycle each on
/// every core known here.
///
/// No warm-up: meant for right after a measurement, to turn its nanoseconds into cycles even where the
/// frequency changes from one millisecond to the next. `None` where there is no assembly loop for the
/// architecture, and on simulated clocks, which no loop moves.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedClock;

    #[test]
    fn the_loop_does_every_addition() {
        for rounds in [0, 1, 7, 1000] {
            assert!(DEPENDENT_ADDS.is_none_or(|adds| adds(rounds) == rounds * 128));
        }
    }

    #[test]
    fn no_loop_moves_simulated_time_so_no_frequency_is_claimed() {
        let clock = Clock::simulated(SimulatedClock::ideal());
        assert_eq!(core_frequency_now(&clock), None);
    }
}
