//! What the kernel counts for one thread: switches, faults, time that it was ready or ran. Free of any
//! permission.

use latlab_clock::OsClockId;
use latlab_record::Observed;

use crate::live::{DelayFile, ThreadCounters};

/// Reads the counters of one thread; the files stay open between readings.
#[derive(Debug)]
pub struct Observer {
    counters: ThreadCounters,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading(Observed);

impl Observer {
    /// Observes the calling thread, which must stay on CPU `cpu` for the steal figure to mean anything.
    pub fn of_this_thread(cpu: Option<u32>) -> Self {
        Self { counters: ThreadCounters::open(cpu) }
    }

    /// The counters now.
    pub fn read(&self) -> Reading {
        Reading(self.counters.read())
    }
}

impl Reading {
    /// What happened between `earlier` and this reading.
    pub fn since(&self, earlier: &Self) -> Observed {
        self.0.combined(&earlier.0, u64::saturating_sub)
    }
}

/// Sum of two observations; a counter that either lacks is unknown.
pub fn sum(a: &Observed, b: &Observed) -> Observed {
    a.combined(b, u64::saturating_add)
}

/// The clock that runs while the calling thread does.
pub(crate) fn thread_clock() -> Option<OsClockId> {
    latlab_clock::os_clock("CLOCK_THREAD_CPUTIME_ID")
}

/// How long a thread was ready and had no CPU, and how long it ran: the kernel's counts, exact to the
/// nanosecond, kept open.
#[derive(Debug)]
pub struct RunDelay {
    delay: DelayFile,
    running: Option<OsClockId>,
}

impl RunDelay {
    /// Of the calling thread, also when another one reads it; `None` where the kernel does not count.
    pub fn of_this_thread() -> Option<Self> {
        let own = Self { delay: DelayFile::open(None)?, running: thread_clock() };
        own.read_ns().map(|_| own)
    }

    /// Of another thread of this process, by the kernel's number of it.
    pub fn of_thread(tid: u32) -> Option<Self> {
        let other = Self { delay: DelayFile::open(Some(tid))?, running: None };
        other.read_ns().map(|_| other)
    }

    /// Nanoseconds since the thread began: off its CPU though it would have run, or woken and not yet
    /// running. One system call, 0.7 us.
    pub fn read_ns(&self) -> Option<u64> {
        self.delay.read_ns()
    }

    /// Nanoseconds that the calling thread has run since it began; `None` of another thread. One system call,
    /// 0.2 to 0.6 us.
    pub fn running_ns(&self) -> Option<u64> {
        self.running.map(OsClockId::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_could_not_be_read_stays_unknown() {
        let known = Observed { minor_faults: Some(3), ..Observed::default() };
        let total = sum(&known, &known);
        assert_eq!(total.minor_faults, Some(6));
        assert_eq!(total.steal_ns, None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touching_fresh_pages_is_seen_as_minor_faults() {
        let observer = Observer::of_this_thread(None);
        let before = observer.read();
        // Beyond what any allocator keeps of what another test gave back: the C library maps blocks of 32 MiB
        // and more by themselves.
        let pages = 640usize;
        let mut fresh = vec![0u8; (pages + 1) * 65_536];
        for page in 0..pages {
            fresh[page * 65_536] = 1;
        }
        std::hint::black_box(&fresh);
        let seen = observer.read().since(&before);
        assert!(seen.minor_faults.expect("getrusage works on Linux") >= 1);
    }

    #[test]
    fn the_count_of_delays_never_falls() {
        // Under emulation there may be none.
        let Some(delay) = RunDelay::of_this_thread() else { return };
        let before = delay.read_ns();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(delay.read_ns() >= before && before.is_some());
        assert!(
            RunDelay::of_thread(std::process::id()).is_some(),
            "the first thread has the process's number"
        );
    }
}
