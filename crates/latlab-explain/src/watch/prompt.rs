//! Wakes a thread when its time has come, so that what it sees does not depend on what the watched program
//! does.
//!
//! A thread that wakes up beside busy CPUs waits until one of their threads blocks: it then sees the program
//! waiting far more often than it waits (a DNS server under load 45 % of the time in place of 15). Since
//! Linux 6.12 a thread that asks for a shorter slice than others has the CPU at once, and no more of it in
//! all. The usual slack of timers, 50 us, is more than a short program's share.

use std::num::NonZeroU64;

use rustix::thread::{current_timer_slack, set_current_timer_slack};

/// Longer than a scan of a few threads, so that it is not cut in two; shorter than any usual slice (0.7 to 3
/// ms).
const SLICE_NS: u64 = 500_000;
const SLACK_NS: u64 = 1_000;

/// The calling thread is woken in time while this lives. Its priority stays what it was: before the program
/// it would take CPUs from it. What it starts meanwhile inherits this.
pub(super) struct Prompt {
    slack: Option<NonZeroU64>,
    slice: Option<libc::sched_attr>,
}

impl Prompt {
    /// Where the kernel or a sandbox refuses, all stays as it was.
    pub(super) fn begin() -> Self {
        let slack = current_timer_slack().ok().and_then(NonZeroU64::new);
        let _ = set_current_timer_slack(NonZeroU64::new(SLACK_NS));
        // Of other policies this is not the length of a slice.
        let slice = attributes().filter(|now| now.sched_policy == libc::SCHED_OTHER.cast_unsigned());
        if let Some(now) = &slice {
            set(&libc::sched_attr { sched_runtime: SLICE_NS, ..*now });
        }
        Self { slack, slice }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        let _ = set_current_timer_slack(self.slack);
        if let Some(before) = &self.slice {
            set(before);
        }
    }
}

/// How the calling thread is scheduled.
fn attributes() -> Option<libc::sched_attr> {
    let size = u32::try_from(size_of::<libc::sched_attr>()).ok()?;
    // SAFETY: integers, for which zero is a value; the kernel fills as much as is there.
    let (found, attributes) = unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let found = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
        (found, attributes)
    };
    (found == 0).then_some(attributes)
}

fn set(attributes: &libc::sched_attr) {
    // SAFETY: reads a structure that says its size.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice() -> Option<u64> {
        attributes().map(|now| now.sched_runtime)
    }

    #[test]
    fn a_thread_has_its_slack_and_its_slice_back_afterwards_and_its_priority_all_the_time() {
        let before = (current_timer_slack().ok(), slice(), attributes().map(|now| now.sched_nice));
        let prompt = Prompt::begin();
        assert_eq!(current_timer_slack().ok(), Some(SLACK_NS));
        // Kernels before 6.12 have no such slices, and say 0.
        assert!(slice().is_none_or(|ns| ns == SLICE_NS || ns == 0), "{:?}", slice());
        assert_eq!(attributes().map(|now| now.sched_nice), before.2);
        drop(prompt);
        assert_eq!((current_timer_slack().ok(), slice(), attributes().map(|now| now.sched_nice)), before);
    }
}
