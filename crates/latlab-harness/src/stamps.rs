//! The run's time source for threads that measure on another thread's behalf.

use latlab_clock::{Clock, HardwareClock, OsClock, Source, TimeSource};

/// Takes time stamps in ticks of the run's clock, on any thread. Counters of different CPUs are in step
/// wherever the clock is used at all: [`Clock::open`] refuses a counter that is not invariant.
#[derive(Clone, Copy, Debug)]
pub struct Stamps(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Hardware(HardwareClock),
    Os(OsClock),
}

impl Stamps {
    /// Of this clock; `None` of a simulated one, whose time does not pass on several threads.
    pub fn of(clock: &Clock) -> Option<Self> {
        match &clock.source {
            Source::Hardware(time) => Some(Self(Kind::Hardware(*time))),
            Source::Os(time) => Some(Self(Kind::Os(*time))),
            Source::Simulated(_) => None,
        }
    }

    /// Before the work: earlier work is complete.
    #[inline]
    pub fn begin(self) -> u64 {
        match self.0 {
            Kind::Hardware(time) => time.begin(),
            Kind::Os(time) => time.begin(),
        }
    }

    /// After the work: its loads have their data, later work has not begun.
    #[inline]
    pub fn end(self) -> u64 {
        match self.0 {
            Kind::Hardware(time) => time.end(),
            Kind::Os(time) => time.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;

    use super::*;

    #[test]
    fn a_stamp_of_another_thread_lies_between_those_around_it() {
        let clock = Clock::open();
        let stamps = Stamps::of(&clock).expect("a real clock");
        let before = stamps.begin();
        let there = std::thread::spawn(move || stamps.begin()).join().expect("no panic");
        let after = stamps.end();
        assert!(before <= there && there <= after, "{before} {there} {after}");
    }

    #[test]
    fn simulated_time_has_no_stamps_for_other_threads() {
        assert!(Stamps::of(&Clock::simulated(SimulatedClock::ideal())).is_none());
    }
}
