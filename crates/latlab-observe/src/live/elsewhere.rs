//! Systems without such evidence yet: time stamps and periodic interference are all there is, and every
//! counter is unknown.

use latlab_clock::Clock;
use latlab_record::Observed;

use crate::cause::Event;
use crate::level::{Level, Rung, Wanted};

const REASON: &str = "latlab reads these records on Linux only";

/// No thread can be kept on a CPU.
pub fn pin_to(_cpu: u32) -> bool {
    false
}

/// See [`pin_to`].
pub fn is_pinned_to(_cpu: u32) -> bool {
    false
}

#[derive(Debug)]
pub(crate) struct ThreadCounters;

impl ThreadCounters {
    pub(crate) fn open(_cpu: Option<u32>) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as where there are such counters")]
    pub(crate) fn read(&self) -> Observed {
        Observed::default()
    }
}

#[derive(Debug)]
pub(crate) struct DelayFile;

impl DelayFile {
    pub(crate) fn open(_thread: Option<u32>) -> Option<Self> {
        None
    }

    #[expect(clippy::unused_self, reason = "as where there is such a file")]
    pub(crate) fn read_ns(&self) -> Option<u64> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct RseqFlag;

impl RseqFlag {
    pub(crate) fn open() -> Result<Self, String> {
        Err("rseq(2) is Linux's".to_owned())
    }

    #[expect(clippy::unused_self, reason = "as where there is such a flag")]
    pub(crate) fn was_preempted(&mut self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct InterruptFlag;

impl InterruptFlag {
    pub(crate) fn open() -> Result<Self, String> {
        Err(REASON.to_owned())
    }

    #[expect(clippy::unused_self, reason = "as where there is such a flag")]
    pub(crate) fn was_interrupted(&mut self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct Sources {
    rungs: [Rung; 2],
    pub(crate) sees_switches: bool,
    pub(crate) sees_faults: bool,
    pub(crate) sees_requests: bool,
}

impl Sources {
    pub(crate) fn open(_clock: &Clock, _cpu: Option<u32>, _wanted: Wanted) -> Self {
        Self {
            rungs: [Level::PerfRecords, Level::Tracepoints].map(|level| Rung::missing(level, REASON)),
            sees_switches: false,
            sees_faults: false,
            sees_requests: false,
        }
    }

    pub(crate) fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    pub(crate) fn start(&mut self, _clock: &Clock) {}

    pub(crate) fn stop(&mut self) {}

    pub(crate) fn record_requests(&mut self, _on: bool) {}

    pub(crate) fn drain(&mut self, _clock: &Clock) -> (Vec<Event>, u64) {
        (Vec::new(), 0)
    }
}

/// Disturbances need the system's help.
pub(crate) mod disturb {
    use std::io;

    pub(crate) fn prepare_interrupts() -> Result<(), String> {
        Err("interrupting other CPUs needs Linux".to_owned())
    }

    pub(crate) fn interrupt_the_others() -> bool {
        false
    }

    #[derive(Debug)]
    pub(crate) struct FreshPages;

    impl FreshPages {
        pub(crate) fn new(_pages: usize) -> io::Result<Self> {
            Err(io::Error::other("mapping fresh pages needs Linux"))
        }

        pub(crate) fn touch(&mut self) -> bool {
            false
        }
    }
}
