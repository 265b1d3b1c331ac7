//! The preemption flag: a restartable sequence that is never run.
//!
//! A thread that has stored the address of a sequence in its rseq area finds it cleared after the kernel took
//! the CPU away, moved it or delivered a signal, because its instruction pointer was not inside the sequence
//! (`rseq(2)`, `clear_rseq_cs` of kernel/rseq.c). Raising and reading the flag is a store and a load: no
//! system call, no permission, 0-1 ns.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering};

use super::thread_pointer::{SIGNATURE, thread_pointer};

/// `struct rseq` as first published: 32 bytes, aligned to 32.
#[repr(C, align(32))]
#[derive(Default)]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    rseq_cs: AtomicU64,
    flags: u32,
    node_id: u32,
    mm_cid: u32,
    end: u32,
}

/// Place of `rseq_cs` in the area.
const SEQUENCE_AT: usize = 8;
/// `RSEQ_FLAG_UNREGISTER`.
const UNREGISTER: c_int = 1;
/// Least bytes of an area that glibc has registered, for it to hold `rseq_cs`.
const LEAST_BYTES: c_uint = 20;

/// `struct rseq_cs`.
#[repr(C, align(32))]
#[derive(Debug)]
struct Sequence {
    version: u32,
    flags: u32,
    start_ip: u64,
    post_commit_offset: u64,
    abort_ip: u64,
}

/// Stands in for code that is never executed: a sequence of one word, the signature that the kernel looks for
/// before the abort handler, and the handler.
static NEVER_RUN: [u32; 3] = [0, SIGNATURE, 0];

/// The flag of the thread that raised it.
#[derive(Debug)]
pub(crate) struct RseqFlag {
    sequence: Box<Sequence>,
    slot: *const AtomicU64,
    /// Registered by us, as glibc has not. No Box: the kernel writes there, which a unique owner may assume
    /// that nobody else does.
    own: Option<*mut UnsafeCell<Area>>,
}

impl RseqFlag {
    /// The calling thread's flag.
    pub(crate) fn open() -> Result<Self, String> {
        let start = NEVER_RUN.as_ptr();
        let sequence = Box::new(Sequence {
            version: 0,
            flags: 0,
            start_ip: start as u64,
            post_commit_offset: 4,
            abort_ip: start.wrapping_add(2) as u64,
        });
        if let Some(area) = registered_by_libc() {
            return Ok(Self { sequence, slot: (area + SEQUENCE_AT) as *const AtomicU64, own: None });
        }
        let own = Box::into_raw(Box::new(UnsafeCell::new(Area::default())));
        if let Err(error) = register(own, 0) {
            // SAFETY: made above; the kernel has not registered it.
            drop(unsafe { Box::from_raw(own) });
            return Err(match error.raw_os_error() {
                Some(libc::ENOSYS) => {
                    "this kernel (before 4.18), emulator or sandbox has no rseq(2)".to_owned()
                }
                Some(libc::EINVAL | libc::EBUSY) => {
                    "another library has registered this thread's rseq area without saying where".to_owned()
                }
                _ => format!("rseq(2): {error}"),
            });
        }
        Ok(Self { sequence, slot: own.wrapping_byte_add(SEQUENCE_AT).cast(), own: Some(own) })
    }

    fn slot(&self) -> &AtomicU64 {
        // SAFETY: the area is this thread's, and lives as long as the thread (libc's) or this value (ours);
        // the kernel writes to it only while the thread is in the kernel. The pointer keeps this type on its
        // thread.
        unsafe { &*self.slot }
    }

    /// Whether the kernel took it since it was raised last; raises it again.
    #[inline]
    pub(crate) fn was_preempted(&mut self) -> bool {
        let raised = &raw const *self.sequence as u64;
        let slot = self.slot();
        if slot.load(Ordering::Relaxed) == raised {
            return false;
        }
        slot.store(raised, Ordering::Relaxed);
        true
    }
}

impl Drop for RseqFlag {
    fn drop(&mut self) {
        // The kernel must not find a sequence that is gone.
        self.slot().store(0, Ordering::Relaxed);
        // After a failure the kernel goes on writing there: the memory is given up.
        if let Some(area) = self.own.take()
            && register(area, UNREGISTER).is_ok()
        {
            // SAFETY: from Box::into_raw in `open`, freed once, and the kernel does not know it any more.
            drop(unsafe { Box::from_raw(area) });
        }
    }
}

fn register(area: *mut UnsafeCell<Area>, flags: c_int) -> std::io::Result<()> {
    let bytes = c_uint::try_from(size_of::<Area>()).unwrap_or(32);
    // SAFETY: the area stays where it is until it is unregistered, and is only reached through raw pointers
    // and atomics.
    let status = unsafe { libc::syscall(libc::SYS_rseq, area, bytes, flags, SIGNATURE) };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Address of the area that glibc (2.35 and later) has registered for this thread;
/// `None` where it has not, as with the tunable `glibc.pthread.rseq=0`. Looked up by name, because a wheel
/// also runs with an older glibc.
fn registered_by_libc() -> Option<usize> {
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: looks up a symbol by a terminated name.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    };
    let (offset, size) = (symbol(c"__rseq_offset")?, symbol(c"__rseq_size")?);
    // SAFETY: the types that glibc declares for these constants.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<c_uint>()) };
    if size < LEAST_BYTES {
        return None;
    }
    thread_pointer()?.checked_add_signed(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_and_the_sequence_have_the_kernels_layout() {
        assert_eq!((size_of::<Area>(), align_of::<Area>()), (32, 32));
        assert_eq!((size_of::<Sequence>(), align_of::<Sequence>()), (32, 32));
        assert_eq!(std::mem::offset_of!(Area, rseq_cs), SEQUENCE_AT);
    }

    #[test]
    fn a_thread_that_slept_finds_its_flag_lowered() {
        // Under emulation there may be none.
        let Ok(mut flag) = RseqFlag::open() else { return };
        flag.was_preempted();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(flag.was_preempted());
    }

    #[test]
    fn the_flag_is_taken_down_with_its_owner() {
        let Ok(mut flag) = RseqFlag::open() else { return };
        flag.was_preempted();
        let slot = flag.slot;
        let of_libc = flag.own.is_none();
        drop(flag);
        if of_libc {
            // SAFETY: libc's area lives as long as the thread.
            assert_eq!(unsafe { &*slot }.load(Ordering::Relaxed), 0);
        }
        // A second one can be had, also where the registration is our own.
        assert!(RseqFlag::open().is_ok());
    }
}
