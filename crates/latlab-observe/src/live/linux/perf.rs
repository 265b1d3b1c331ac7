//! `perf_event_open(2)`: events and the ring that their records are written to.
//!
//! Public for the ledger, which follows whole programs with them; what the fields mean is said in the manual page.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::records::{Role, SAMPLE_TYPE, SAMPLE_TYPE_RAW};
use crate::{Cause, Proof};

/// `struct perf_event_attr` up to its fifth version (Linux 4.7).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names are the manual page's")]
pub struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup_watermark: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved: u16,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const SW_PAGE_FAULTS: u64 = 2;
const SW_DUMMY: u64 = 9;

const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
// `_IO('$', n)` and `_IOR('$', 7, u64 *)` of linux/perf_event.h.
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_ID: libc::c_ulong = 0x8008_2407;

// Places in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// No ring is larger, bytes.
const LARGEST: usize = 1 << 30;

/// A page of this system's memory, bytes: 4, 16 or 64 KiB.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// What a ring for so many bytes of records takes, bytes: the kernel wants a power of two of whole pages.
#[must_use]
pub fn ring_bytes(wanted: usize, page_bytes: usize) -> usize {
    page_bytes * wanted.clamp(1, LARGEST).div_ceil(page_bytes).next_power_of_two()
}

/// What to open.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(crate) name: String,
    attributes: Attributes,
    /// 0: this thread; -1: every thread; else that one.
    thread: libc::pid_t,
    /// -1: on every CPU.
    cpu: libc::c_int,
}

fn attributes(kind: u32, config: u64, sample_type: u64, flags: u64) -> Attributes {
    Attributes {
        kind,
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        config,
        sample_period: 1,
        sample_type,
        flags: flags | DISABLED | WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID,
        // Nobody waits for the ring: a wake-up would be noise of our own.
        wakeup_watermark: u32::MAX >> 1,
        clockid: libc::CLOCK_MONOTONIC_RAW,
        ..Attributes::default()
    }
}

/// The records that an ordinary user may have of the own thread. Switches come as records of an event that counts nothing: counting
/// `PERF_COUNT_SW_CONTEXT_SWITCHES` itself gives zero without permission to look into the kernel, as that is where they happen.
pub(crate) fn of_thread() -> [(Spec, Role); 2] {
    let user = EXCLUDE_KERNEL | EXCLUDE_HV;
    [
        (
            Spec {
                name: "switches".to_owned(),
                attributes: attributes(TYPE_SOFTWARE, SW_DUMMY, SAMPLE_TYPE, user | CONTEXT_SWITCH),
                thread: 0,
                cpu: -1,
            },
            Role::Switches,
        ),
        (
            Spec {
                name: "page faults".to_owned(),
                attributes: attributes(TYPE_SOFTWARE, SW_PAGE_FAULTS, SAMPLE_TYPE, user),
                thread: 0,
                cpu: -1,
            },
            Role::Moment(Cause::PageFault, Proof::FaultRecord),
        ),
    ]
}

impl Spec {
    /// An event of another thread while it is on this CPU.
    #[must_use]
    pub fn of_task(name: &str, attributes: Attributes, thread: libc::pid_t, cpu: u32) -> Self {
        let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
        Self {
            name: name.to_owned(),
            attributes: Attributes { size, ..attributes },
            thread,
            cpu: libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX),
        }
    }

    pub(crate) fn tracepoint(name: String, id: u64, cpu: u32, raw: bool) -> Self {
        let sample_type = if raw { SAMPLE_TYPE_RAW } else { SAMPLE_TYPE };
        Self {
            name,
            attributes: attributes(TYPE_TRACEPOINT, id, sample_type, 0),
            thread: -1,
            cpu: libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX),
        }
    }

    fn open(&self) -> io::Result<OwnedFd> {
        // SAFETY: the attributes are ours and say their own size; the call only reads them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const self.attributes,
                self.thread,
                self.cpu,
                -1,
                CLOSE_ON_EXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

fn id_of(fd: &OwnedFd) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: the request writes one u64 to the address given.
    let status = unsafe { libc::ioctl(fd.as_raw_fd(), IOC_ID as _, &raw mut id) };
    if status == 0 { Ok(id) } else { Err(io::Error::last_os_error()) }
}

/// Events and the memory that the kernel writes their records to.
#[derive(Debug)]
pub struct Ring {
    events: Vec<OwnedFd>,
    page: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    /// Records that wrap around the end are put together here.
    copy: Vec<u8>,
}

impl Ring {
    /// A ring for so many bytes of records, in whole pages, with its first event, and that event's id. Takes less when less may be locked.
    ///
    /// # Errors
    /// The kernel refuses the event, or memory for its records; [`reason`] says what would lift it.
    pub fn open(spec: &Spec, bytes: usize) -> io::Result<(Self, u64)> {
        let event = spec.open()?;
        let id = id_of(&event)?;
        let page_bytes = page_bytes();
        let mut data_bytes = ring_bytes(bytes, page_bytes);
        let page = loop {
            // SAFETY: a new mapping of a descriptor of ours, at no address in particular.
            let mapped = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    page_bytes + data_bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    event.as_raw_fd(),
                    0,
                )
            };
            if mapped != libc::MAP_FAILED {
                break NonNull::new(mapped.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at zero"))?;
            }
            let error = io::Error::last_os_error();
            if data_bytes <= page_bytes {
                return Err(error);
            }
            data_bytes /= 2;
        };
        let ring =
            Self { events: vec![event], page, page_bytes, data_bytes, copy: Vec::with_capacity(data_bytes) };
        Ok((ring, id))
    }

    /// One more event that writes into the same ring; its id.
    ///
    /// # Errors
    /// The kernel refuses the event.
    pub fn join(&mut self, spec: &Spec) -> io::Result<u64> {
        let event = spec.open()?;
        let ring = self.events[0].as_raw_fd();
        // SAFETY: both descriptors are ours; the request takes an integer.
        if unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT as _, ring) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let id = id_of(&event)?;
        self.events.push(event);
        Ok(id)
    }

    /// How many events write here, the first one too.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Closes all events but the first; what they have written stays.
    pub fn leave(&mut self) {
        self.events.truncate(1);
    }

    /// Switches all events on.
    pub fn enable(&self) {
        for event in &self.events {
            // SAFETY: a descriptor of ours; the request takes no argument. It cannot fail on an event that was opened.
            unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE as _, 0) };
        }
    }

    /// Switches one event on or off, in the threads that inherited it too. `at` counts from the first event, 0.
    pub fn switch(&self, at: usize, on: bool) {
        if let Some(event) = self.events.get(at) {
            let request = if on { IOC_ENABLE } else { IOC_DISABLE };
            // SAFETY: a descriptor of ours; the request takes no argument. It cannot fail on an event that was opened.
            unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
        }
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both counters lie in the first page of the mapping, aligned, and live as long as it; the kernel changes them as
        // atomics too.
        unsafe { self.page.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Hands all whole records to `take` and makes room. No system call.
    pub fn drain(&mut self, take: impl FnOnce(&[u8])) {
        // Pairs with the kernel's release: what the head says is written.
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(self.data_bytes);
        let from = usize::try_from(tail % self.data_bytes as u64).unwrap_or(0);
        let first = length.min(self.data_bytes - from);
        self.copy.clear();
        // SAFETY: the data pages follow the first page and are `data_bytes` long; both parts lie within them, and the kernel does not
        // write there before the tail has moved.
        unsafe {
            let data = self.page.add(self.page_bytes).as_ptr();
            self.copy.extend_from_slice(std::slice::from_raw_parts(data.add(from), first));
            self.copy.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        // The kernel may write over what was read.
        self.counter(DATA_TAIL).store(head, Ordering::Release);
        take(&self.copy);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

/// The clock that records are stamped with.
pub(crate) fn kernel_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills a timespec of ours.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) } != 0 {
        return None;
    }
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// Why the kernel refused, and what would lift it.
#[must_use]
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
            "{error} although kernel.perf_event_paranoid is {level}: usually a container's seccomp filter; it would have to allow \
             perf_event_open"
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => {
            format!("{error}: raise the limit on open files (ulimit -n)")
        }
        _ => error.to_string(),
    }
}

/// Whether tracing files of this kernel could be read at all; only used to name a reason.
pub(crate) fn is_readable(path: &std::path::Path) -> bool {
    File::open(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_the_kernels_fifth_version() {
        assert_eq!(size_of::<Attributes>(), 112);
    }

    #[test]
    fn a_ring_is_a_power_of_two_of_whole_pages_of_any_size() {
        for page in [4096, 16 << 10, 64 << 10] {
            for wanted in (0..200).map(|at| at * 997).chain([1 << 20, (1 << 20) + 1, usize::MAX]) {
                let bytes = ring_bytes(wanted, page);
                assert!(bytes.is_multiple_of(page) && (bytes / page).is_power_of_two(), "{bytes} of {page}");
                assert!(
                    bytes >= wanted.min(LARGEST) && bytes < 2 * wanted.clamp(page, LARGEST + 1),
                    "{bytes} for {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_refusal_is_told_with_what_would_lift_it() {
        let told = |code| reason(&io::Error::from_raw_os_error(code));
        assert!(told(libc::ENOSYS).contains("perf_event_open"));
        assert!(told(libc::EMFILE).contains("ulimit"));
        assert!(!told(libc::EACCES).is_empty());
    }
}
