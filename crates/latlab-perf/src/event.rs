//! What is counted, of whom, and what is recorded of it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use linux_perf_event_reader::{AttrFlags, SampleFormat};
use perf_event_open_sys::bindings::{
    __BindgenBitfieldUnit, PERF_ATTR_SIZE_VER5, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_PAGE_FAULTS, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE,
    PERF_TYPE_TRACEPOINT, perf_event_attr,
};

use crate::Detail;
use crate::user::mask;

/// What every record says: who, when, where and of which event.
const IDENTITY: SampleFormat =
    SampleFormat::TID.union(SampleFormat::TIME).union(SampleFormat::CPU).union(SampleFormat::IDENTIFIER);
/// What every event has: it starts switched off, and all its records have the identity, by the clock that is
/// asked for.
const ALWAYS: AttrFlags = AttrFlags::DISABLED
    .union(AttrFlags::WATERMARK)
    .union(AttrFlags::SAMPLE_ID_ALL)
    .union(AttrFlags::USE_CLOCKID);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Nothing: for records that are not made by counting, such as those of switches and mappings.
    Dummy,
    /// Nanoseconds on a CPU.
    CpuClock,
    /// Page faults.
    PageFaults,
    /// Switches.
    ContextSwitches,
    /// The tracepoint of this number; see [`Tracefs::id`](crate::Tracefs::id).
    Tracepoint(u64),
    /// Each time that the instruction at this offset of a program's file is executed: the kernel puts a
    /// breakpoint there while the event is open, in the memory of the processes whose threads it counts. An
    /// offset at which no instruction begins breaks the program. No thread inherits it, whatever the flags:
    /// the kernel would read the name again, as the thread's, and the program could start no threads any
    /// more.
    Instruction {
        /// See [`instructions`].
        pmu: u32,
        /// The file.
        file: &'a CStr,
        /// In the file, bytes.
        offset: u64,
    },
}

/// The number by which this kernel knows events of instructions (uprobes); `None`: it has none.
pub fn instructions() -> Option<u32> {
    std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok()?.trim().parse().ok()
}

/// What to open.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What is counted.
    pub kind: Kind<'a>,
    /// One of so many is recorded.
    pub period: u64,
    /// Besides those that every event has.
    pub flags: AttrFlags,
    /// What samples say besides their identity.
    pub detail: Detail,
    /// Which clock records are stamped with: `CLOCK_MONOTONIC` or `CLOCK_MONOTONIC_RAW`.
    pub clock: libc::clockid_t,
    /// Longest call chain; 0 for the kernel's own limit.
    pub deepest: u16,
}

/// Of whom it is counted.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// The calling thread, wherever it runs.
    ThisThread,
    /// A thread, wherever it runs; threads that it starts cannot inherit the event.
    Alone {
        /// Its id.
        tid: u32,
    },
    /// A thread while it is on this CPU.
    Thread {
        /// Its id.
        tid: u32,
        /// The CPU.
        cpu: u32,
    },
    /// Every thread on this CPU.
    Everybody {
        /// The CPU.
        cpu: u32,
    },
}

/// Events of these tracepoints for the calling thread, which never fire; those that could be opened. While
/// one is open the tracepoint stays in use: when its last event is closed, the kernel waits for two grace
/// periods, some 35 to 80 ms, in which no CPU can be in it.
pub fn held(tracepoints: &[u64]) -> Vec<OwnedFd> {
    let event = |id: &u64| Event::of(Kind::Tracepoint(*id), AttrFlags::empty());
    tracepoints.iter().filter_map(|id| event(id).open(Whose::ThisThread).ok()).collect()
}

impl<'a> Event<'a> {
    /// One that records each time and nothing beside, by the monotonic clock.
    pub fn of(kind: Kind<'a>, flags: AttrFlags) -> Self {
        Self { kind, period: 1, flags, detail: Detail::None, clock: libc::CLOCK_MONOTONIC, deepest: 0 }
    }

    fn attributes(self) -> perf_event_attr {
        let (type_, config) = match self.kind {
            Kind::Dummy => (PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_DUMMY)),
            Kind::CpuClock => (PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CPU_CLOCK)),
            Kind::PageFaults => (PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_PAGE_FAULTS)),
            Kind::ContextSwitches => (PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CONTEXT_SWITCHES)),
            Kind::Tracepoint(id) => (PERF_TYPE_TRACEPOINT, id),
            Kind::Instruction { pmu, .. } => (pmu, 0),
        };
        let detail = match self.detail {
            Detail::None => SampleFormat::empty(),
            Detail::Raw => SampleFormat::RAW,
            Detail::Chain => SampleFormat::IP | SampleFormat::CALLCHAIN,
            Detail::Stack { .. } => {
                SampleFormat::IP
                    | SampleFormat::CALLCHAIN
                    | SampleFormat::REGS_USER
                    | SampleFormat::STACK_USER
            }
        };
        let flags = match self.kind {
            Kind::Instruction { .. } => self.flags - AttrFlags::INHERIT,
            _ => self.flags,
        };
        let mut attributes = perf_event_attr {
            type_,
            // That of Linux 4.7: what came later is not used.
            size: PERF_ATTR_SIZE_VER5,
            config,
            sample_type: (IDENTITY | detail).bits(),
            clockid: self.clock,
            sample_max_stack: self.deepest,
            _bitfield_1: __BindgenBitfieldUnit::new((ALWAYS | flags).bits().to_ne_bytes()),
            ..perf_event_attr::default()
        };
        attributes.sample_period = self.period;
        if let Kind::Instruction { file, offset, .. } = self.kind {
            attributes.__bindgen_anon_3.uprobe_path = file.as_ptr().addr() as u64;
            attributes.__bindgen_anon_4.probe_offset = offset;
        }
        if let Detail::Stack { bytes } = self.detail {
            attributes.sample_regs_user = mask();
            // The kernel takes whole words only.
            attributes.sample_stack_user = u32::from(bytes / 8 * 8);
        }
        // Nobody waits for the ring: a wake-up would be noise of our own.
        attributes.wakeup_watermark = u32::MAX >> 1;
        attributes
    }

    /// Opens it without a ring of its own, switched off.
    pub fn open(self, whose: Whose) -> io::Result<OwnedFd> {
        // What is too large is no thread's id and no CPU's number.
        let number = |number| libc::c_int::try_from(number).unwrap_or(libc::c_int::MAX);
        let (thread, cpu) = match whose {
            Whose::ThisThread => (0, -1),
            Whose::Alone { tid } => (number(tid), -1),
            Whose::Thread { tid, cpu } => (number(tid), number(cpu)),
            Whose::Everybody { cpu } => (-1, number(cpu)),
        };
        let mut attributes = self.attributes();
        let flags = libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are ours and say how much of them is to be read.
        let fd = unsafe { perf_event_open_sys::perf_event_open(&raw mut attributes, thread, cpu, -1, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Why the kernel refused, and what would lift it.
pub fn reason(error: &io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let paranoid = paranoid.as_deref().map(str::trim);
    match (error.raw_os_error(), paranoid) {
        (Some(libc::ENOSYS), _) => "this kernel or emulator has no perf_event_open".to_owned(),
        (Some(libc::EACCES | libc::EPERM), None) => {
            format!("{error}: perf is switched off here, or a sandbox hides it")
        }
        (Some(libc::EACCES | libc::EPERM), Some(level))
            if level.parse::<i32>().is_ok_and(|level| level > 2) =>
        {
            format!(
                "{error}: kernel.perf_event_paranoid is {level}; at 2 an ordinary user may have these records"
            )
        }
        (Some(libc::EACCES), Some(_)) => format!("{error}: needs root or CAP_PERFMON"),
        (Some(libc::EPERM), Some(level)) => format!(
            "{error} although kernel.perf_event_paranoid is {level}: usually a container's seccomp filter; \
                it would have to allow \
             perf_event_open"
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => {
            format!("{error}: raise the limit on open files (ulimit -n)")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_what_was_asked_for() {
        let event = Event {
            kind: Kind::Tracepoint(77),
            period: 61,
            flags: AttrFlags::INHERIT | AttrFlags::EXCLUDE_KERNEL | AttrFlags::CONTEXT_SWITCH,
            detail: Detail::Raw,
            clock: libc::CLOCK_MONOTONIC_RAW,
            deepest: 48,
        };
        let reported = event.attributes();
        assert_eq!(
            (reported.type_, reported.size, reported.config, reported.sample_period),
            (2, 112, 77, 61)
        );
        assert_eq!((reported.clockid, reported.sample_max_stack), (4, 48));
        assert_eq!((reported.sample_type, reported.wakeup_watermark), (0x1_0486, 0x7fff_ffff));
        // The flags of one crate stand where the other has them.
        let on = [
            reported.disabled(),
            reported.inherit(),
            reported.exclude_kernel(),
            reported.watermark(),
            reported.sample_id_all(),
            reported.use_clockid(),
            reported.context_switch(),
        ];
        assert_eq!(on, [1; 7]);
        assert_eq!(
            [reported.exclude_hv(), reported.mmap(), reported.enable_on_exec(), reported.freq()],
            [0; 4]
        );
    }

    #[test]
    fn a_copy_of_the_stack_is_asked_for_in_whole_words_and_with_registers() {
        let event = Event {
            kind: Kind::CpuClock,
            period: 1_000_000,
            flags: AttrFlags::INHERIT,
            detail: Detail::Stack { bytes: 8195 },
            clock: libc::CLOCK_MONOTONIC,
            deepest: 48,
        };
        let reported = event.attributes();
        assert_eq!((reported.size, reported.sample_type, reported.sample_stack_user), (112, 0x1_30a7, 8192));
        assert_eq!(reported.sample_regs_user, mask());
    }

    #[test]
    fn a_refusal_is_reported_with_what_would_lift_it() {
        let reported = |code| reason(&io::Error::from_raw_os_error(code));
        assert!(reported(libc::ENOSYS).contains("perf_event_open"));
        assert!(reported(libc::EMFILE).contains("ulimit"));
        assert!(!reported(libc::EACCES).is_empty());
    }
}
