//! Perf events that follow a program, its threads and its children.

use std::collections::HashMap;

use latlab_observe::perf::{Attributes, Ring, Spec, reason};

use crate::records::{Record, SAMPLE_TYPE, decode};
use crate::stream::Event;

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

/// Time on the CPU between samples: a thousand a second, out of step with whatever comes in whole milliseconds.
pub(crate) const PERIOD_NS: u64 = 997_009;
/// One fault of this many is recorded.
const FAULT_PERIOD: u64 = 61;
/// Deeper callers say nothing of what the running function does.
const DEEPEST: u16 = 48;
/// All rings together, pages of 4 KiB: an ordinary user may lock 129 pages a CPU, root more.
const MOST_PAGES: usize = 8192;

/// Where in each CPU's ring which event is.
const TREE: usize = 0;
const CLOCK: usize = 1;
const DETAIL: usize = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Recorder {
    rings: Vec<Ring>,
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

impl Recorder {
    /// Opens all events for these threads and whatever they start; off, unless they go on with their next exec.
    pub(crate) fn open(threads: &[u32], sees_kernel: bool, on_exec: bool) -> Result<Self, String> {
        let hidden = if sees_kernel { 0 } else { EXCLUDE_KERNEL };
        let start = if on_exec { ENABLE_ON_EXEC } else { 0 };
        let tree = attributes(
            DUMMY,
            1,
            EXCLUDE_KERNEL | start | MMAP | MMAP2 | COMM | COMM_EXEC | TASK,
        );
        let clock = attributes(CPU_CLOCK, PERIOD_NS, hidden | start | CONTEXT_SWITCH);
        let detail = if sees_kernel {
            attributes(CONTEXT_SWITCHES, 1, start | EXCLUDE_CALLCHAIN_USER)
        } else {
            attributes(PAGE_FAULTS, FAULT_PERIOD, hidden | start)
        };
        let cpus = cpus();
        let pages = (MOST_PAGES / cpus as usize / threads.len().max(1)).clamp(8, 512);
        let pages = 1_usize << pages.ilog2();
        let pages = if sees_kernel { pages } else { pages.min(128) };
        let mut recorder = Self {
            rings: Vec::new(),
            events: HashMap::new(),
            sees_kernel,
        };
        let kinds = [
            (&clock, Event::Cpu(PERIOD_NS)),
            (&detail, if sees_kernel { Event::Switch } else { Event::Fault }),
        ];
        for thread in threads {
            let thread = libc::pid_t::try_from(*thread).map_err(|error| error.to_string())?;
            for cpu in 0..cpus {
                let opened = Ring::open(&Spec::of_task("tree", tree, thread, cpu), pages);
                let mut ring = match opened {
                    Ok((ring, _)) => ring,
                    // A CPU that is switched off has no events.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                    Err(error) => return Err(reason(&error)),
                };
                for (attributes, event) in kinds {
                    let id = ring
                        .join(&Spec::of_task("samples", *attributes, thread, cpu))
                        .map_err(|error| reason(&error))?;
                    recorder.events.insert(id, event);
                }
                recorder.rings.push(ring);
            }
        }
        Ok(recorder)
    }

    /// Follows forks, programs and mappings, but samples nothing yet.
    pub(crate) fn follow(&self) {
        self.rings.iter().for_each(|ring| ring.switch(TREE, true));
    }

    /// Samples and switches on or off.
    pub(crate) fn switch(&self, on: bool) {
        for ring in &self.rings {
            ring.switch(CLOCK, on);
            // Faults have a rhythm of their own.
            if self.sees_kernel {
                ring.switch(DETAIL, on);
            }
        }
    }

    /// Fault records on or off; where the kernel is seen there are none.
    pub(crate) fn switch_faults(&self, on: bool) {
        if !self.sees_kernel {
            self.rings.iter().for_each(|ring| ring.switch(DETAIL, on));
        }
    }

    /// All records so far.
    pub(crate) fn drain(&mut self, into: &mut Vec<Record>) {
        for ring in &mut self.rings {
            ring.drain(|bytes| decode(bytes, into));
        }
    }
}
