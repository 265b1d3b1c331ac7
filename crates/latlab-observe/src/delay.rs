//! How long this thread was ready and had no CPU, and how long it ran: the kernel's counts, exact to the nanosecond and free of any permission.

use latlab_clock::{OsClockId, os_clocks};

use crate::system;

/// The name of the clock that runs while this thread does.
const THREAD_CLOCK: &str = "CLOCK_THREAD_CPUTIME_ID";

/// The counts, kept open.
#[derive(Debug)]
pub struct RunDelay {
    delay: system::DelayFile,
    running: Option<OsClockId>,
}

impl RunDelay {
    /// Of the calling thread, also when another one reads it; `None` where the kernel does not count.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        let own = Self {
            delay: system::DelayFile::open(None)?,
            running: os_clocks().into_iter().find_map(|(name, id)| (name == THREAD_CLOCK).then_some(id)),
        };
        own.read_ns().map(|_| own)
    }

    /// Of another thread of this process, by the kernel's number of it.
    #[must_use]
    pub fn of_thread(tid: u32) -> Option<Self> {
        let other = Self { delay: system::DelayFile::open(Some(tid))?, running: None };
        other.read_ns().map(|_| other)
    }

    /// Nanoseconds since the thread began: off its CPU though it would have run, or woken and not yet running. One system call, 0.7 us.
    #[must_use]
    pub fn read_ns(&self) -> Option<u64> {
        self.delay.read_ns()
    }

    /// Nanoseconds that the calling thread has run since it began; `None` of another thread. One system call, 0.2 to 0.6 us.
    #[must_use]
    pub fn running_ns(&self) -> Option<u64> {
        self.running.map(OsClockId::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_never_falls() {
        // Under emulation there may be none.
        let Some(delay) = RunDelay::of_this_thread() else {
            return;
        };
        let before = delay.read_ns();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(delay.read_ns() >= before && before.is_some());
        assert!(
            RunDelay::of_thread(std::process::id()).is_some(),
            "the first thread has the process's number"
        );
    }
}
