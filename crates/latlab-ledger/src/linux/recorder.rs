//! Perf events that follow a program, its threads and its children.

use std::collections::HashMap;

use latlab_observe::perf::{Attributes, Ring, Spec, page_bytes, reason};

use crate::records::{Record, SAMPLE_TYPE, decode};
use crate::stream::Event;
use crate::system::proc_file::text;

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;
const DUMMY: u64 = 9;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

/// Least time on the CPU between samples: a thousand a second, out of step with whatever comes in whole milliseconds.
pub(crate) const LEAST_PERIOD_NS: u64 = 997_009;
/// One fault of this many is recorded.
pub(crate) const FAULT_PERIOD: u64 = 61;
/// Deeper callers say nothing of what the running function does.
const DEEPEST: u16 = 48;
/// Records of all rings together, and the least and the most of one, bytes.
const ALL_BYTES: usize = 32 << 20;
const LEAST_BYTES: usize = 32 << 10;
const MOST_BYTES: usize = 2 << 20;
/// What an ordinary user may lock for each CPU where the kernel does not say it, KiB: its own default with pages of 4 KiB.
const USUAL_LOCK_KIB: usize = 516;

/// Threads times CPUs that events may be opened for: three descriptors each, of the usual 1024.
const MOST_FOLLOWED: usize = 200;

/// See the module. While it is stopped no event exists: even one that is off costs the program at every switch.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// One for each CPU, owned by an event of the watcher's own that never fires.
    rings: Vec<(u32, Ring)>,
    pub(crate) period_ns: u64,
    pub(crate) events: HashMap<u64, Event>,
    pub(crate) sees_kernel: bool,
}

fn attributes(config: u64, period: u64, flags: u64) -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        config,
        sample_period: period,
        sample_type: SAMPLE_TYPE,
        flags: flags | DISABLED | INHERIT | EXCLUDE_HV | WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID,
        // Nobody waits for the ring: a wake-up would be noise of our own.
        wakeup_watermark: u32::MAX >> 1,
        clockid: libc::CLOCK_MONOTONIC,
        sample_max_stack: DEEPEST,
        ..Attributes::default()
    }
}

/// CPUs that there may be.
fn cpus() -> u32 {
    // SAFETY: asks for a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(cpus).unwrap_or(1).clamp(1, 1024)
}

/// Bytes of records that each CPU's ring has: a power of two of whole pages. `lock_bytes`: what may be locked for each CPU, together with the
/// page that comes before the records; `None`: as much as is wanted.
fn bytes_of_each(cpus: usize, page_bytes: usize, lock_bytes: Option<usize>) -> usize {
    let share = (ALL_BYTES / cpus.max(1)).clamp(LEAST_BYTES, MOST_BYTES);
    let allowed = lock_bytes.map_or(share, |bytes| share.min(bytes.saturating_sub(page_bytes)));
    page_bytes << (allowed / page_bytes).max(1).ilog2()
}

/// What an ordinary user may lock for each CPU.
fn lock_bytes() -> usize {
    let kib = text("/proc/sys/kernel/perf_event_mlock_kb").trim().parse();
    kib.unwrap_or(USUAL_LOCK_KIB).saturating_mul(1024)
}

impl Recorder {
    /// Nothing is open yet: while any process has an event of a task, every switch of every thread takes a little longer.
    pub(crate) fn of(sees_kernel: bool, period_ns: u64) -> Self {
        Self { rings: Vec::new(), period_ns, events: HashMap::new(), sees_kernel }
    }

    /// Makes room for records.
    fn open(sees_kernel: bool) -> Result<Vec<(u32, Ring)>, String> {
        let cpus = cpus();
        let bytes = bytes_of_each(cpus as usize, page_bytes(), (!sees_kernel).then(lock_bytes));
        let own = attributes(DUMMY, 1, EXCLUDE_KERNEL);
        let mut rings = Vec::new();
        for cpu in 0..cpus {
            match Ring::open(&Spec::of_task("ring", own, this_thread(), cpu), bytes) {
                Ok((ring, _)) => rings.push((cpu, ring)),
                // A CPU that is switched off has no events.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(reason(&error)),
            }
        }
        Ok(rings)
    }

    /// Opens all events for these threads and whatever they start. `on_exec`: they go on with the next exec; else at once.
    pub(crate) fn start(&mut self, threads: &[u32], on_exec: bool) -> Result<(), String> {
        if self.rings.is_empty() {
            self.rings = Self::open(self.sees_kernel)?;
        }
        if threads.len() * self.rings.len() > MOST_FOLLOWED {
            return Err(format!(
                "{} threads on {} CPUs are too many to attach to",
                threads.len(),
                self.rings.len()
            ));
        }
        // Records of the events before have been read.
        self.events.clear();
        let hidden = if self.sees_kernel { 0 } else { EXCLUDE_KERNEL };
        let start = if on_exec { ENABLE_ON_EXEC } else { 0 };
        let tree = EXCLUDE_KERNEL | start | MMAP | MMAP2 | COMM | COMM_EXEC | TASK;
        let kinds = [
            (attributes(DUMMY, 1, tree), None),
            (
                attributes(CPU_CLOCK, self.period_ns, hidden | start | CONTEXT_SWITCH),
                Some(Event::Cpu(self.period_ns)),
            ),
            if self.sees_kernel {
                (attributes(CONTEXT_SWITCHES, 1, start | EXCLUDE_CALLCHAIN_USER), Some(Event::Switch))
            } else {
                (attributes(PAGE_FAULTS, FAULT_PERIOD, hidden | start), Some(Event::Fault))
            },
        ];
        for thread in threads {
            let thread = libc::pid_t::try_from(*thread).map_err(|error| error.to_string())?;
            for (cpu, ring) in &mut self.rings {
                for (attributes, event) in kinds {
                    let id = match ring.join(&Spec::of_task("program", attributes, thread, *cpu)) {
                        Ok(id) => id,
                        // It has ended meanwhile.
                        Err(error) if !on_exec && error.raw_os_error() == Some(libc::ESRCH) => continue,
                        Err(error) => {
                            let told = reason(&error);
                            self.stop();
                            return Err(told);
                        }
                    };
                    if let Some(event) = event {
                        self.events.insert(id, event);
                    }
                }
            }
        }
        if !on_exec {
            for (_, ring) in &self.rings {
                ring.enable();
            }
        }
        Ok(())
    }

    /// Closes all events; what they have recorded stays to be read.
    pub(crate) fn stop(&mut self) {
        for (_, ring) in &mut self.rings {
            ring.leave();
        }
    }

    /// Fault records on or off; where the kernel is seen there are none.
    pub(crate) fn switch_faults(&self, on: bool) {
        if !self.sees_kernel {
            for (_, ring) in &self.rings {
                // After the ring's own come three a thread, the faults last.
                for at in (3..ring.events()).step_by(3) {
                    ring.switch(at, on);
                }
            }
        }
    }

    /// All records so far.
    pub(crate) fn drain(&mut self, into: &mut Vec<Record>) {
        for (_, ring) in &mut self.rings {
            ring.drain(|bytes| decode(bytes, into));
        }
    }
}

/// The calling thread.
pub(crate) fn this_thread() -> libc::pid_t {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_whole_pages_within_what_may_be_locked_on_any_machine() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            // The kernel's own default: 512 KiB and a page.
            let usual = (512 << 10) + page;
            for cpus in 1..=512 {
                for lock in [None, Some(usual), Some(64 << 10), Some(0)] {
                    let bytes = bytes_of_each(cpus, page, lock);
                    assert!(bytes.is_multiple_of(page) && (bytes / page).is_power_of_two(), "{cpus} {page}");
                    assert!(cpus * bytes <= ALL_BYTES || bytes <= LEAST_BYTES.max(page), "{cpus} {page}");
                    assert!(bytes <= MOST_BYTES);
                    // One page is the least that the kernel makes.
                    assert!(bytes == page || lock.is_none_or(|lock| bytes + page <= lock), "{cpus} {page}");
                }
                assert_eq!(
                    bytes_of_each(cpus, page, Some(usual)),
                    bytes_of_each(cpus, page, None).min(512 << 10)
                );
            }
        }
        assert_eq!(bytes_of_each(2, 4096, None), MOST_BYTES);
        assert_eq!(bytes_of_each(512, 64 << 10, None), 64 << 10);
    }
}
