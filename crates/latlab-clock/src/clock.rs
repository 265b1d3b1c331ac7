//! The clock of a run: a source, its rate, and what was measured about it.

use std::time::{Duration, Instant};

use latlab_stats::count::nearest;

use crate::calibration::{self, Rate};
use crate::resolution::{Instrument, busy, measure_instrument};
use crate::{
    ClockFacts, ClockKind, HardwareClock, OsClock, OsClockId, SimulatedClock, TimeSource, Unusable, arch, os,
    platform,
};

/// Baseline of the calibration. Brackets of some 50 ns at both ends make that about 2 ppm.
const BASELINE: Duration = Duration::from_millis(50);
/// Of which the instrument's own measurement may take this much.
const INSTRUMENT_BUDGET: Duration = Duration::from_millis(25);
/// Bracketed readings of which the tightest is kept: a few microseconds.
const ATTEMPTS: u32 = 64;
/// Beyond this error the system's clock is the better one. NTP's largest slew is half of it.
const WORST_RATE_ERROR_PPM: f64 = 1000.0;

/// The time source that a [`crate::Clock`] reads. Match on it once, outside the timed loop.
#[derive(Clone, Debug)]
pub enum Source {
    /// The CPU's own counter. Uninhabited on architectures without one.
    Hardware(HardwareClock),
    /// The operating system's monotonic clock.
    Os(OsClock),
    /// A clock that a test moves by hand.
    Simulated(SimulatedClock),
}

impl Source {
    /// Ticks now, for purposes that are not a timed region (the match costs a branch).
    #[inline]
    pub fn now(&self) -> u64 {
        match self {
            Self::Hardware(source) => source.begin(),
            Self::Os(source) => source.begin(),
            Self::Simulated(source) => source.begin(),
        }
    }
}

/// A time source with a known rate.
///
/// Opened once, on the thread that measures. Source and facts are public so that hot loops can be made
/// generic over the source and records can carry the facts.
#[derive(Clone, Debug)]
pub struct Clock {
    /// What timed regions are bracketed with.
    pub source: Source,
    /// What is known about it.
    pub facts: ClockFacts,
    /// Ticks at which [`now_ns`](Self::now_ns) began.
    origin_ticks: u64,
    ns_per_tick: f64,
}

impl Clock {
    /// Opens the CPU's counter, or the system's clock if the counter cannot be used; the reason stands in
    /// [`ClockFacts::why_not_hardware`]. Never fails; takes about 60 ms.
    pub fn open() -> Self {
        Self::open_hardware().unwrap_or_else(|reason| Self::open_system(Some(&reason)))
    }

    /// Opens the operating system's clock, whether or not a counter could be used. Takes about 30 ms.
    pub fn open_os() -> Self {
        Self::open_system(None)
    }

    /// A clock on simulated time. Its facts are measured like those of a real clock, so they come out as
    /// planted, and [`now_ns`](Self::now_ns) is zero afterwards.
    pub fn simulated(simulated: SimulatedClock) -> Self {
        // Bounded by its number of readings; the deadline is there for real clocks.
        let instrument = measure_instrument(
            &simulated,
            |step| simulated.advance_ns(f64::from(step)),
            Duration::from_hours(1),
        );
        let rate = Rate { ticks_per_ns: SimulatedClock::TICKS_PER_NS, error_ppm: 0.0 };
        let about = About {
            kind: ClockKind::Simulated,
            fences: "none: simulated time advances only on request".into(),
            invariant: None,
            why_not_hardware: None,
        };
        Self::assemble(Source::Simulated(simulated), about, &instrument, rate)
    }

    fn open_hardware() -> Result<Self, Unusable> {
        let counter = arch::open()?;
        let started = Instant::now();
        let pair = || {
            calibration::tightest(ATTEMPTS, || counter.begin(), os::reference())
                .ok_or(Unusable::Backwards(u64::from(ATTEMPTS)))
        };
        let first = pair()?;
        let instrument = measure_instrument(&counter, busy, INSTRUMENT_BUDGET);
        if instrument.backwards > 0 {
            return Err(Unusable::Backwards(instrument.backwards));
        }
        let quantum_ticks = instrument.quantum_ticks.ok_or(Unusable::Stopped)?;
        std::thread::sleep(BASELINE.saturating_sub(started.elapsed()));
        let rate = Rate::between(&first, &pair()?, quantum_ticks)?;
        if rate.error_ppm > WORST_RATE_ERROR_PPM {
            return Err(Unusable::Uncalibrated(rate.error_ppm));
        }
        let about = About {
            kind: arch::KIND,
            fences: arch::fences(counter),
            invariant: arch::invariant(),
            why_not_hardware: None,
        };
        Ok(Self::assemble(Source::Hardware(counter), about, &instrument, rate))
    }

    fn open_system(reason: Option<&Unusable>) -> Self {
        let clock = OsClock::open();
        let instrument = measure_instrument(&clock, busy, INSTRUMENT_BUDGET);
        let (name, error_ppm) = if clock.is_raw() {
            ("the raw monotonic clock", 0.0)
        } else {
            ("the monotonic clock, which NTP may slew", platform::MONOTONIC_SLEW_PPM)
        };
        let about = About {
            kind: ClockKind::Os,
            fences: format!(
                "begin and end: {name}, between two fences for loads; stores are not waited for."
            ),
            invariant: arch::invariant(),
            why_not_hardware: reason.map(ToString::to_string),
        };
        let rate = Rate { ticks_per_ns: 1.0, error_ppm };
        Self::assemble(Source::Os(clock), about, &instrument, rate)
    }

    fn assemble(source: Source, about: About, instrument: &Instrument, rate: Rate) -> Self {
        // A clock that did not advance once while it was watched steps at least that far.
        let quantum_ticks = instrument
            .quantum_ticks
            .unwrap_or_else(|| INSTRUMENT_BUDGET.as_nanos() as f64 * rate.ticks_per_ns);
        let facts = ClockFacts {
            kind: about.kind,
            fences: about.fences,
            ticks_per_ns: rate.ticks_per_ns,
            rate_error_ppm: rate.error_ppm,
            quantum_ns: quantum_ticks / rate.ticks_per_ns,
            overhead_ns: instrument.overhead_ns(rate.ticks_per_ns),
            invariant: about.invariant,
            why_not_hardware: about.why_not_hardware,
            backwards: instrument.backwards,
        };
        let origin_ticks = source.now();
        Self { source, facts, origin_ticks, ns_per_tick: rate.ticks_per_ns.recip() }
    }

    /// Counts from another begin, in nanoseconds of the system's monotonic clock, so that several processes
    /// tell times on one axis. One that lies in the future, or before the source's zero, is the nearest that
    /// can be.
    pub fn begin_at(&mut self, monotonic_ns: u64) {
        let since_ns = os::monotonic_ns().saturating_sub(monotonic_ns);
        self.origin_ticks = self.source.now().saturating_sub(self.ticks(since_ns as f64));
    }

    /// Nanoseconds since the clock was opened, or since [`begin_at`](Self::begin_at).
    pub fn now_ns(&self) -> f64 {
        self.ns(self.source.now().saturating_sub(self.origin_ticks))
    }

    /// Nanoseconds since the clock was opened of a reading of its source; negative before.
    pub fn at_ns(&self, reading: u64) -> f64 {
        let distance = self.ns(reading.abs_diff(self.origin_ticks));
        if reading < self.origin_ticks { -distance } else { distance }
    }

    /// The same moment by this clock's source, ticks, and by another clock, ns: the tightest of some
    /// brackets, as a preempted one would shift everything. `None` when the source only ran backwards.
    pub fn beside(&self, other: OsClockId) -> Option<(u64, u64)> {
        let pair = calibration::tightest(ATTEMPTS, || self.source.now(), other)?;
        Some((pair.ticks, pair.reference_ns))
    }

    /// Nanoseconds of a difference of two readings.
    #[inline]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// The number of ticks nearest to a span of nanoseconds; 0 for negative or unknown spans.
    #[inline]
    pub fn ticks(&self, ns: f64) -> u64 {
        nearest(ns * self.facts.ticks_per_ns)
    }
}

/// The part of the facts that is known before anything is measured.
struct About {
    kind: ClockKind,
    fences: String,
    invariant: Option<bool>,
    why_not_hardware: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_simulated_clock_has_the_facts_that_were_planted() {
        let clock = Clock::simulated(SimulatedClock::new(22.0, 10.0));
        assert_eq!(clock.facts.kind, ClockKind::Simulated);
        assert!((clock.facts.quantum_ns - 10.0).abs() < 1e-9);
        assert!((clock.facts.overhead_ns.mean - 22.0).abs() < 0.1);
        assert_eq!(clock.facts.backwards, 0);
    }

    #[test]
    fn simulated_time_starts_at_zero_and_moves_as_told() {
        let time = SimulatedClock::ideal();
        let clock = Clock::simulated(time.clone());
        assert!(clock.now_ns().abs() < 1e-9);
        time.advance_ns(1234.5);
        assert!((clock.now_ns() - 1234.5).abs() < 1e-6);
    }

    #[test]
    fn a_reading_from_before_the_clock_was_opened_is_negative() {
        let time = SimulatedClock::ideal();
        time.advance_ns(50.0);
        let early = time.begin();
        time.advance_ns(50.0);
        let clock = Clock::simulated(time.clone());
        assert!(clock.at_ns(early) <= -50.0);
        time.advance_ns(7.0);
        assert!((clock.at_ns(time.begin()) - 7.0).abs() < 1e-6);
    }

    fn with_rate(ticks_per_ns: f64) -> Clock {
        let mut clock = Clock::simulated(SimulatedClock::ideal());
        clock.facts.ticks_per_ns = ticks_per_ns;
        clock.ns_per_tick = ticks_per_ns.recip();
        clock
    }

    proptest! {
        #[test]
        fn ticks_survive_the_way_to_nanoseconds_and_back(ticks in 0_u64..1 << 50, rate in 0.001_f64..10.0) {
            let clock = with_rate(rate);
            prop_assert_eq!(clock.ticks(clock.ns(ticks)), ticks);
        }
    }

    #[test]
    fn spans_that_are_no_spans_have_no_ticks() {
        let clock = with_rate(2.6);
        assert_eq!([clock.ticks(-1.0), clock.ticks(f64::NAN)], [0, 0]);
    }

    #[test]
    fn facts_read_back_as_written() {
        let facts = Clock::simulated(SimulatedClock::new(22.0, 10.0)).facts;
        let text = serde_json::to_string(&facts).unwrap();
        assert!(text.contains(r#""kind":"simulated""#), "{text}");
        assert_eq!(serde_json::from_str::<ClockFacts>(&text).unwrap(), facts);
    }
}
