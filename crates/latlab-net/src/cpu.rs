//! On which CPU the calling thread runs, and how much of it.

use std::mem::MaybeUninit;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::NetError;

pub(crate) fn keep_to(cpus: &[u32]) -> Result<(), NetError> {
    let what = || NetError::system(format!("keeping a thread on CPU {cpus:?}"));
    let only = only(cpus).ok_or_else(|| what()(rustix::io::Errno::INVAL))?;
    sched_setaffinity(None, &only).map_err(|error| what()(error))
}

/// Keeps it on these, from the one on that is its own by this number. Threads that start where their parent
/// is take the system tenths of a second to spread: four streams carried half of what they did later.
pub(crate) fn seat(cpus: &[u32], number: usize) -> Result<(), NetError> {
    if let [_, _, ..] = cpus {
        keep_to(&[cpus[number % cpus.len()]])?;
    }
    keep_to(cpus)
}

/// Whether it can run on these only.
pub(crate) fn is_kept_to(cpus: &[u32]) -> bool {
    let set = sched_getaffinity(None).ok();
    set.is_some() && set == only(cpus)
}

fn only(cpus: &[u32]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let index = *cpu as usize;
        (index < CpuSet::MAX_CPU).then(|| set.set(index))?;
    }
    Some(set)
}

/// Switches so far: those that the thread asked for by going to sleep and, unless only they are wanted, those
/// forced on it.
pub(crate) fn switches(asked_for_only: bool) -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage of ours, which the call fills when it returns 0.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: all-zero is a valid rusage, and the call only ever writes valid fields.
    let usage = unsafe { usage.assume_init() };
    let forced = if asked_for_only { 0 } else { usage.ru_nivcsw };
    u64::try_from(usage.ru_nvcsw + forced).ok()
}

/// Time on a CPU so far, ns.
pub(crate) fn time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
