//! Which CPU a thread runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

fn only(cpu: u32) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    let index = cpu as usize;
    (index < CpuSet::MAX_CPU).then(|| set.set(index))?;
    Some(set)
}

/// Keeps the calling thread on one CPU; false when the system refused.
pub fn pin_to(cpu: u32) -> bool {
    only(cpu).is_some_and(|set| sched_setaffinity(None, &set).is_ok())
}

/// Whether the calling thread can run on this CPU only.
pub fn is_pinned_to(cpu: u32) -> bool {
    let set = sched_getaffinity(None).ok();
    set.is_some() && set == only(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_was_pinned_is_known_to_stay() {
        std::thread::spawn(|| {
            assert!(!is_pinned_to(u32::MAX));
            let here = u32::try_from(rustix::thread::sched_getcpu()).expect("the number of a CPU");
            assert!(pin_to(here) && is_pinned_to(here));
            assert!(!is_pinned_to(here + 1));
            assert!(!pin_to(u32::MAX) && is_pinned_to(here), "a refusal changes nothing");
        })
        .join()
        .expect("the checks hold");
    }
}
