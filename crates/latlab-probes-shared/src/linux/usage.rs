//! Counters of a thread: its switches, its time on a CPU.

use std::mem::MaybeUninit;

/// The calling thread's id; a process's first thread has the process's id.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// What the kernel counts of the calling thread, as getrusage(2) tells it. `None` where it refuses.
pub fn usage() -> Option<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage of ours, which the call fills when it returns 0.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all-zero is a valid rusage, and the call only ever writes valid fields.
    (status == 0).then(|| unsafe { usage.assume_init() })
}

/// Switches of the calling thread so far: asked for, and forced on it. `None` where they are not counted.
pub fn switches() -> Option<(u64, u64)> {
    let usage = usage()?;
    Some((u64::try_from(usage.ru_nvcsw).ok()?, u64::try_from(usage.ru_nivcsw).ok()?))
}

/// Something that runs on a CPU, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A thread of this process.
    Thread(i32),
    /// A child process of one thread.
    Process(i32),
}

impl Task {
    /// Its id.
    pub fn id(self) -> i32 {
        let (Self::Thread(id) | Self::Process(id)) = self;
        id
    }

    /// Time that it has spent on a CPU, ns. `None` where the system does not tell.
    pub fn cpu_ns(self) -> Option<u64> {
        // The kernel's encoding of a task in a clock's number (CPUCLOCK_SCHED, and CPUCLOCK_PERTHREAD_MASK
        // for a thread), as pthread_getcpuclockid(3) and clock_getcpuclockid(3) make it.
        const SCHED: i32 = 2;
        const PER_THREAD: i32 = 4;
        let clock = match self {
            Self::Thread(id) => (!id << 3) | SCHED | PER_THREAD,
            Self::Process(id) => (!id << 3) | SCHED,
        };
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec of ours.
        let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
        if status != 0 {
            return None;
        }
        Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_a_cpu_grows_with_work_and_a_task_that_is_gone_has_none() {
        let own = Task::Thread(thread_id());
        let Some(before) = own.cpu_ns() else { return };
        let mut sum = 0u64;
        for step in 0..2_000_000u64 {
            sum = std::hint::black_box(sum + step);
        }
        let after = own.cpu_ns().expect("it could be read before");
        assert!(after > before, "{before} {after}");
        // Ids end at 2^22.
        assert_eq!(Task::Process(1 << 23).cpu_ns(), None);
    }
}
