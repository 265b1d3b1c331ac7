//! The core's frequency before a block that never waits for memory.
//!
//! A core that waits for memory is clocked down, and takes a while to come back: after 6 ms of a chase
//! through RAM one machine ran at 3.6 GHz for 2 to 4 ms before it returned to 4.1. A first-level latency
//! measured in between is 14 % too long for a program that works in its caches. So the core is kept busy
//! until it has come back, or does not.

use latlab_clock::{Clock, core_frequency_now};

/// Come back: within the steps of 100 MHz that governors use.
const RETURNED: f64 = 0.975;
/// Longest wait: half as much again as the longest return seen, ns.
const PATIENCE_NS: f64 = 6e6;

/// Remembers the frequency that the core returns to.
#[derive(Debug, Default)]
pub(crate) struct Ramp {
    usual_ghz: Option<f64>,
}

impl Ramp {
    /// Keeps the core busy until it is as fast as it was before, at most 6 ms. Nothing where frequencies are
    /// unknown.
    pub(crate) fn settle(&mut self, clock: &Clock) {
        self.settle_by(|| clock.now_ns(), || core_frequency_now(clock));
    }

    fn settle_by(&mut self, mut now_ns: impl FnMut() -> f64, mut ghz: impl FnMut() -> Option<f64>) {
        let begun = now_ns();
        let mut fastest = 0.0f64;
        while let Some(now) = ghz() {
            fastest = fastest.max(now);
            if self.usual_ghz.is_some_and(|usual| now >= RETURNED * usual) || now_ns() - begun >= PATIENCE_NS
            {
                // After the whole wait this is what the core does now: heat or busy neighbours keep it there.
                self.usual_ghz = Some(fastest);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Settles a core that is slow for `slow_ns` of simulated time, each clock read taking 40 us; returns how
    /// long that took.
    fn settling(ramp: &mut Ramp, slow_ns: f64) -> f64 {
        let time = Cell::new(0.0);
        ramp.settle_by(
            || time.get(),
            || {
                time.set(time.get() + 40_000.0);
                Some(if time.get() < slow_ns { 3.59 } else { 4.09 })
            },
        );
        time.get()
    }

    #[test]
    fn a_core_that_was_clocked_down_is_waited_for_and_not_longer() {
        let mut ramp = Ramp::default();
        settling(&mut ramp, 3e6);
        let took = settling(&mut ramp, 3e6);
        assert!((3e6..3.1e6).contains(&took), "{took}");
        assert!(settling(&mut ramp, 0.0) < 50_000.0, "a fast core is not waited for");
    }

    #[test]
    fn a_core_that_does_not_come_back_is_taken_as_it_is_from_then_on() {
        let mut ramp = Ramp::default();
        settling(&mut ramp, 0.0);
        assert!(settling(&mut ramp, f64::INFINITY) >= PATIENCE_NS);
        assert!(settling(&mut ramp, f64::INFINITY) < 50_000.0);
    }

    #[test]
    fn where_frequencies_are_unknown_nobody_waits() {
        let mut ramp = Ramp::default();
        ramp.settle_by(|| 0.0, || None);
        assert_eq!(ramp.usual_ghz, None);
    }
}
