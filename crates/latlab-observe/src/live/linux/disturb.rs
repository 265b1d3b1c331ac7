//! Known disturbances: what the self-test does to its own threads.

use std::io;
use std::ptr::{self, NonNull};

/// Keeps the calling thread on one CPU; false when the system refused.
pub(crate) fn pin(cpu: u32) -> bool {
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

// Commands of membarrier(2).
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes integers and touches no memory of ours.
    let status = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Says that this process will ask for barriers. Must come before [`interrupt_the_others`].
pub(crate) fn prepare_interrupts() -> Result<(), String> {
    membarrier(REGISTER_PRIVATE_EXPEDITED).map_err(|error| format!("membarrier(2): {error}"))
}

/// Interrupts every other CPU that runs a thread of this process, and returns when all have answered.
pub(crate) fn interrupt_the_others() -> bool {
    membarrier(PRIVATE_EXPEDITED).is_ok()
}

/// Pages of which each is a minor fault when it is touched first.
#[derive(Debug)]
pub(crate) struct FreshPages {
    memory: NonNull<u8>,
    bytes: usize,
    page_bytes: usize,
    touched: usize,
}

impl FreshPages {
    pub(crate) fn new(pages: usize) -> io::Result<Self> {
        // SAFETY: asks for a number.
        let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let bytes = pages * page_bytes;
        // SAFETY: a new anonymous mapping at no address in particular.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: exactly the new mapping. A refusal leaves huge pages possible: then there are fewer faults, which is counted.
        unsafe { libc::madvise(mapped, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Self {
            memory: NonNull::new(mapped.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at zero"))?,
            bytes,
            page_bytes,
            touched: 0,
        })
    }

    /// Touches the next one; false when there is none left.
    #[inline]
    pub(crate) fn touch(&mut self) -> bool {
        let at = self.touched * self.page_bytes;
        if at >= self.bytes {
            return false;
        }
        // SAFETY: inside the mapping.
        unsafe { self.memory.add(at).write_volatile(1) };
        self.touched += 1;
        true
    }
}

impl Drop for FreshPages {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
