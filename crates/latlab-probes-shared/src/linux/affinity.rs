//! Which CPU a thread may run on.

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::{Result, refused};

/// Keeps the calling thread on one CPU; dropping this lets it go where it was allowed before.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// To this CPU. Fails when the system does not let this thread choose: a placement that cannot be kept is
    /// not measured.
    pub fn to(cpu: u32) -> Result<Self> {
        let what = || format!("keeping a thread on CPU {cpu}");
        let before = sched_getaffinity(None).map_err(|error| refused(what(), error))?;
        sched_setaffinity(None, &set_of(&[cpu])).map_err(|error| refused(what(), error))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before can only have become less; then the thread stays where it is.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Lets this thread, and those that it starts, run on these CPUs only.
pub fn run_on(cpus: &[u32]) -> Result<()> {
    sched_setaffinity(None, &set_of(cpus))
        .map_err(|error| refused(format!("running on CPUs {cpus:?}"), error))
}

/// Whether this thread or process, by its id, can run on no other CPU than this one.
pub fn runs_only_on(id: i32, cpu: u32) -> bool {
    let set = Pid::from_raw(id).and_then(|id| sched_getaffinity(Some(id)).ok());
    set == Some(set_of(&[cpu]))
}

/// Those of these CPUs that there can be; where there are none, no thread can be kept on them.
fn set_of(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::thread_id;

    #[test]
    fn a_thread_is_kept_on_its_cpu_and_let_go_again() {
        let before = sched_getaffinity(None).expect("Linux says where a thread may run");
        let cpu = u32::try_from(rustix::thread::sched_getcpu()).expect("a small number");
        let pinned = Pinned::to(cpu).expect("a CPU that we run on");
        assert!(runs_only_on(thread_id(), cpu));
        assert!(!runs_only_on(thread_id(), cpu + 1));
        drop(pinned);
        assert_eq!(sched_getaffinity(None).expect("as before"), before);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused_with_its_number() {
        let error = Pinned::to(u32::MAX).expect_err("no such CPU");
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
