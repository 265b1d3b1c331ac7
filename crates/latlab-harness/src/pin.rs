//! Which CPU a thread runs on.

use latlab_clock::{Clock, Source, TimeSource};

/// Keeps the calling thread on one CPU; false when the system refused.
#[must_use]
pub(crate) fn pin_to(cpu: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all-zero is a valid (empty) cpu_set_t.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        if cpu as usize >= 8 * size_of::<libc::cpu_set_t>() {
            return false;
        }
        // SAFETY: the index was checked against the size of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        // SAFETY: the set is ours and its size is passed along; 0 is the calling thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpu;
        false
    }
}

/// Whether the calling thread can run on this CPU only.
#[must_use]
pub fn is_pinned_to(cpu: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all-zero is a valid (empty) cpu_set_t.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is ours and its size is passed along; 0 is the calling thread.
        let read = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) } == 0;
        // SAFETY: the index is checked against the size of the set first.
        read && (cpu as usize) < 8 * size_of::<libc::cpu_set_t>()
            && unsafe { libc::CPU_ISSET(cpu as usize, &set) && libc::CPU_COUNT(&set) == 1 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpu;
        false
    }
}

/// Keeps the calling thread on one CPU where the system allows it. Where it does not, figures are noisier and the
/// machine's description says that affinity is unknown.
pub fn pin_this_thread(cpu: u32) {
    let _pinned = pin_to(cpu);
}

/// Puts this process into the idle class of I/O, where the system has one: it then reads and writes only when nobody else wants
/// to. What cannot be had is no error: figures are the same, neighbours notice more.
pub fn give_way_to_others() {
    #[cfg(target_os = "linux")]
    {
        // From linux/ioprio.h, which libc does not carry: the class stands above the 13 bits of the level.
        const WHO_PROCESS: libc::c_int = 1;
        const CLASS_IDLE: libc::c_int = 3 << 13;
        // SAFETY: ioprio_set(2) takes three integers and touches no memory; 0 is the calling thread.
        let _status = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
    }
}

/// The CPU that lost the least time to others while each was listened to for `listen_ns`; the last of equals,
/// because interrupts usually go to the first. Leaves the thread pinned to it.
#[must_use]
pub fn quietest_cpu(clock: &Clock, cpus: &[u32], listen_ns: f64) -> u32 {
    let mut best = (f64::INFINITY, cpus.first().copied().unwrap_or(0));
    for cpu in cpus {
        if !pin_to(*cpu) {
            continue;
        }
        let lost = match &clock.source {
            Source::Hardware(time) => lost_ns(time, clock, listen_ns),
            Source::Os(time) => lost_ns(time, clock, listen_ns),
            Source::Simulated(time) => lost_ns(time, clock, listen_ns),
        };
        if lost <= best.0 {
            best = (lost, *cpu);
        }
    }
    pin_this_thread(best.1);
    best.1
}

/// Time in gaps of over a microsecond between two readings of the clock in a row.
fn lost_ns<T: TimeSource>(time: &T, clock: &Clock, listen_ns: f64) -> f64 {
    let gap = clock.ticks(1_000.0);
    let begin = time.begin();
    let end = begin + clock.ticks(listen_ns);
    let mut gaps = 0;
    let mut last = begin;
    while last < end {
        let now = time.end();
        let step = now.saturating_sub(last);
        if step > gap {
            gaps += step;
        }
        last = now.max(last + 1);
    }
    clock.ns(gaps)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_was_pinned_is_known_to_stay() {
        std::thread::spawn(|| {
            assert!(!is_pinned_to(u32::MAX));
            // SAFETY: asks for a number.
            let here =
                u32::try_from(unsafe { libc::sched_getcpu() }).expect("Linux says where a thread runs");
            assert!(pin_to(here) && is_pinned_to(here));
            assert!(!is_pinned_to(here + 1));
            assert!(!pin_to(u32::MAX) && is_pinned_to(here), "a refusal changes nothing");
        })
        .join()
        .expect("the checks hold");
    }
}
