//! When recording may be on: its cost, by rates and calibrated costs, stays within a share of the program's own CPU time.
//!
//! Records cost per switch and per fault, not per second: a program that only blocks and wakes would take twice as long. So recording earns its time:
//! it begins with a small credit, goes on while what it has cost stays below the share of the time used, and pauses until it could pay for
//! another slice at the rate last seen. While it pauses, threads are looked at.

/// What recording costs a piece, nanoseconds of the program's own time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A thread that leaves a CPU and comes back.
    pub switch_ns: f64,
    /// A sample.
    pub sample_ns: f64,
    /// A page fault while faults are counted.
    pub fault_ns: f64,
}

/// Share of the program's CPU time that recording may cost; of its wall time that is as much or less.
pub const SHARE: f64 = 0.02;
/// What may be spent before anything was earned: enough to see the start of a program, and how often it switches.
const CREDIT_NS: f64 = 500_000.0;
/// A slice shorter than this says little of what the program does.
const SLICE_NS: f64 = 5_000_000.0;

impl Price {
    /// Time on the CPU between samples, nanoseconds, from `least` on: samples take at most half of what recording may cost, as they come
    /// whatever the program does.
    #[must_use]
    pub fn period_ns(&self, least: u64) -> u64 {
        // Slower than this is no sampling any more.
        const MOST_NS: f64 = 10_007_000.0;
        let fair = (self.sample_ns / (SHARE / 2.0)).min(MOST_NS);
        crate::tally::whole_ns(fair).max(least)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Governor {
    price: Price,
    spent_ns: f64,
    /// Cost per nanosecond of recorded time, in the last slice.
    rate: f64,
    slice: (u64, f64),
    on: bool,
}

impl Governor {
    /// Recording is on from the start, at `now` 0.
    #[must_use]
    pub fn with(price: Price) -> Self {
        Self {
            price,
            spent_ns: 0.0,
            rate: 0.0,
            slice: (0, 0.0),
            on: true,
        }
    }

    /// Whether recording is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// What recording has cost, nanoseconds.
    #[must_use]
    pub fn spent_ns(&self) -> f64 {
        self.spent_ns
    }

    /// So much was recorded since the last time.
    pub fn recorded(&mut self, switches: u64, samples: u64, faults: u64) {
        self.spent_ns += switches as f64 * self.price.switch_ns
            + samples as f64 * self.price.sample_ns
            + faults as f64 * self.price.fault_ns;
    }

    /// Whether recording is to be on from now on; `now` is the CPU time that the program has used, nanoseconds.
    pub fn decide(&mut self, now: u64) -> bool {
        let allowed = CREDIT_NS + SHARE * now as f64;
        let past = now.saturating_sub(self.slice.0) as f64;
        if self.on {
            if past > 0.0 {
                self.rate = (self.spent_ns - self.slice.1) / past;
            }
            self.on = self.spent_ns <= allowed;
        } else {
            // The next slice costs what the last did; a program may have changed, so even the dearest gets one when it is earned.
            self.on = self.spent_ns + self.rate * SLICE_NS <= allowed;
            if self.on {
                self.slice = (now, self.spent_ns);
            }
        }
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PRICE: Price = Price {
        switch_ns: 8000.0,
        sample_ns: 4000.0,
        fault_ns: 200.0,
    };

    /// Runs a program that switches this often while recording is on; the time recorded of it, and what that cost, as shares.
    fn governed(switches_per_ms: impl Fn(u64) -> u64, ms: u64) -> (f64, f64) {
        let mut governor = Governor::with(PRICE);
        let mut recorded = 0_u64;
        for at in 1..=ms {
            if governor.is_on() {
                recorded += 1;
                governor.recorded(switches_per_ms(at), 1, 0);
            }
            governor.decide(at * MS);
        }
        (
            recorded as f64 / ms as f64,
            governor.spent_ns() / (ms * MS) as f64,
        )
    }

    #[test]
    fn a_quiet_program_is_recorded_all_the_time() {
        let (recorded, cost) = governed(|_| 1, 1000);
        assert!((recorded - 1.0).abs() < 1e-9 && cost < 0.02, "{recorded} {cost}");
    }

    #[test]
    fn dear_samples_are_taken_less_often() {
        assert_eq!(PRICE.period_ns(997_009), 997_009);
        let dear = Price {
            sample_ns: 40_000.0,
            ..PRICE
        };
        assert_eq!(dear.period_ns(997_009), 4_000_000);
    }

    #[test]
    fn a_ping_pong_is_recorded_in_slices_that_it_can_pay_for() {
        let (recorded, cost) = governed(|_| 36, 2000);
        assert!(cost < 0.025, "{cost}");
        assert!(recorded > 0.02 && recorded < 0.2, "{recorded}");
    }

    #[test]
    fn a_program_that_becomes_quiet_is_recorded_again() {
        let (recorded, _) = governed(|at| if at < 300 { 50 } else { 0 }, 2000);
        assert!(recorded > 0.75, "{recorded}");
    }

    #[test]
    fn a_program_that_becomes_busy_is_no_longer() {
        let (recorded, cost) = governed(|at| if at < 1000 { 0 } else { 60 }, 2000);
        assert!(cost < 0.025, "{cost}");
        assert!(recorded < 0.6, "{recorded}");
    }
}
