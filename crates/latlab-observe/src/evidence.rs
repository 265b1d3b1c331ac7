//! What one thread can know about itself while something is timed on it.
//!
//! For whoever times: open on the thread that will be timed,
//! [`start`](Evidence::start), time (asking [`flag`](Evidence::flag) after a slow operation costs a load),
//! and [`drain`](Evidence::drain) between blocks. The kernel writes its records into memory that is shared
//! with it; nothing here calls it inside a timed region.

use latlab_clock::Clock;

use crate::cause::Event;
use crate::gaps::{Flag, Interruption};
use crate::level::{Level, Rung, Wanted, highest};
use crate::live::{InterruptFlag, RseqFlag, Sources};

/// The records, the flag and the ladder of one thread. Neither sent nor shared: all of it is about the thread
/// that opened it. The kernel takes up to a second to forget its tracepoints; nobody waits for that but a
/// thread that does nothing else.
#[derive(Debug)]
pub struct Evidence {
    sources: Sources,
    flag: ThreadFlag,
    rungs: Vec<Rung>,
}

/// The thread's flags, as far as there are any; a flag that does not exist is never lowered.
#[derive(Debug)]
pub struct ThreadFlag {
    rseq: Option<RseqFlag>,
    interrupts: Option<InterruptFlag>,
}

impl ThreadFlag {
    /// Where nobody asked for one: never lowered.
    pub fn none() -> Self {
        Self { rseq: None, interrupts: None }
    }
}

impl Flag for ThreadFlag {
    #[inline]
    fn interruption(&mut self) -> Interruption {
        Interruption {
            preempted: self.rseq.as_mut().is_some_and(RseqFlag::was_preempted),
            interrupted: self.interrupts.as_mut().is_some_and(InterruptFlag::was_interrupted),
        }
    }
}

impl Evidence {
    /// Opens all evidence up to `highest` that this process may have. `cpu` is where the thread is pinned:
    /// without it there are no tracepoints, which are a CPU's. Takes up to some tens of milliseconds for
    /// root, else one; never fails: what is missing has its reason in [`rungs`](Self::rungs).
    pub fn of_this_thread(clock: &Clock, cpu: Option<u32>, highest: Level) -> Self {
        Self::open(clock, cpu, Wanted::up_to(highest))
    }

    /// As [`of_this_thread`](Self::of_this_thread), with a choice of what is worth its price.
    pub fn open(clock: &Clock, cpu: Option<u32>, wanted: Wanted) -> Self {
        let highest = wanted.highest;
        let mut rungs = vec![Rung::there(Level::TimeStamps)];
        let interrupts = if highest < Level::InterruptFlag {
            Err("not asked for".to_owned())
        } else if wanted.sleeps || !wanted.faults {
            Err("the timed operation enters the kernel itself".to_owned())
        } else {
            InterruptFlag::open()
        };
        rungs.push(rung(Level::InterruptFlag, interrupts.as_ref().err()));
        let rseq = if highest < Level::Rseq { Err("not asked for".to_owned()) } else { RseqFlag::open() };
        rungs.push(rung(Level::Rseq, rseq.as_ref().err()));
        let sources = Sources::open(clock, cpu, wanted);
        rungs.extend_from_slice(sources.rungs());
        Self { sources, flag: ThreadFlag { rseq: rseq.ok(), interrupts: interrupts.ok() }, rungs }
    }

    /// All rungs, least first.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The highest rung that is there.
    pub fn level(&self) -> Level {
        highest(&self.rungs)
    }

    /// Whether every switch of the thread is recorded with its times; see
    /// [`crate::Context::switches_are_recorded`].
    pub fn records_switches(&self) -> bool {
        self.sources.sees_switches
    }

    /// Whether every page fault of the thread is recorded.
    pub fn records_faults(&self) -> bool {
        self.sources.sees_faults
    }

    /// Whether all requests of the thread that devices had done by the last drain are known, as
    /// [`Cause::Device`](crate::Cause::Device).
    pub fn knows_requests(&self) -> bool {
        self.sources.sees_requests
    }

    /// Whether a preemption without a record would be noticed.
    pub fn has_flag(&self) -> bool {
        self.flag.rseq.is_some()
    }

    /// Whether a gap without [`Interruption::interrupted`] had no interrupt of this kernel.
    pub fn flags_interrupts(&self) -> bool {
        self.flag.interrupts.is_some()
    }

    /// Ends what [`start`](Self::start) began.
    pub fn stop(&mut self) {
        self.sources.stop();
    }

    /// From now on the kernel writes records; what it wrote before is thrown away.
    pub fn start(&mut self, clock: &Clock) {
        self.sources.start(clock);
    }

    /// Whether requests to devices are recorded from now on, which is not so at the start: they make an
    /// operation of 100 us some 2 to 4 % longer.
    pub fn record_requests(&mut self, on: bool) {
        self.sources.record_requests(on);
    }

    /// For the timed loop.
    pub fn flag(&mut self) -> &mut ThreadFlag {
        &mut self.flag
    }

    /// What happened since the last drain, by the time of `clock`, and how many records were lost because
    /// there was no room for them. Some tens of microseconds; an ordinary user's records of 5,000 switches or
    /// faults fit between two drains.
    pub fn drain(&mut self, clock: &Clock) -> (Vec<Event>, u64) {
        self.sources.drain(clock)
    }
}

/// Of one flag: there, or missing for this reason.
fn rung(level: Level, missing: Option<&String>) -> Rung {
    missing.map_or_else(|| Rung::there(level), |reason| Rung::missing(level, reason.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::{Cause, Proof};

    #[test]
    fn every_rung_is_there_or_says_why_not() {
        let clock = Clock::open();
        let evidence = Evidence::of_this_thread(&clock, None, Level::Tracepoints);
        let levels: Vec<Level> = evidence.rungs().iter().map(|rung| rung.level).collect();
        assert_eq!(levels, Level::ALL);
        for rung in evidence.rungs() {
            assert!(rung.available || rung.reason.is_some(), "{rung:?}");
        }
        assert!(evidence.level() < Level::Tracepoints, "those are of a CPU");
    }

    #[test]
    fn no_more_is_opened_than_was_asked_for() {
        let clock = Clock::open();
        for &highest in Level::ALL {
            assert!(Evidence::of_this_thread(&clock, Some(0), highest).level() <= highest);
        }
    }

    #[test]
    fn a_sleep_is_recorded_as_a_switch_and_touches_as_faults_where_there_are_records() {
        let clock = Clock::open();
        let mut evidence = Evidence::of_this_thread(&clock, None, Level::PerfRecords);
        evidence.start(&clock);
        let before = clock.now_ns();
        std::thread::sleep(std::time::Duration::from_millis(3));
        let after = clock.now_ns();
        // Beyond what any allocator keeps of what another test gave back.
        let mut fresh = vec![0_u8; 40 << 20];
        for page in fresh.chunks_mut(65_536) {
            page[0] = 1;
        }
        std::hint::black_box(&fresh);
        let (events, _) = evidence.drain(&clock);
        if evidence.records_switches() {
            // A busy machine takes the CPU away at other times too.
            let slept = events.iter().any(|event| {
                event.proof == Proof::SwitchRecord
                    && event.at_ns > before - 1_000.0
                    && event.end_ns.is_some_and(|end| end - event.at_ns > 1e6 && end < after + 1_000.0)
            });
            assert!(slept, "the sleep is a switch: {events:?}");
        }
        if evidence.records_faults() {
            assert!(events.iter().any(|event| event.cause == Cause::PageFault));
        }
        let (again, _) = evidence.drain(&clock);
        assert!(again.iter().all(|event| event.at_ns > after), "what was drained is gone");
    }
}
