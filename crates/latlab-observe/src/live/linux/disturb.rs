//! Known disturbances: what the self-test does to its own threads.

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::thread::{MembarrierCommand, membarrier};

/// Says that this process will ask for barriers. Must come before [`interrupt_the_others`].
pub(crate) fn prepare_interrupts() -> Result<(), String> {
    let prepared = membarrier(MembarrierCommand::RegisterPrivateExpedited);
    prepared.map_err(|error| format!("membarrier(2): {}", io::Error::from(error)))
}

/// Interrupts every other CPU that runs a thread of this process, and returns when all have answered.
pub(crate) fn interrupt_the_others() -> bool {
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
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
        let page_bytes = rustix::param::page_size();
        let bytes = pages * page_bytes;
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new anonymous mapping at no address in particular.
        let mapped = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, kind)? };
        // SAFETY: exactly the new mapping. A refusal leaves huge pages possible: then there are fewer faults,
        // which is counted.
        let _ = unsafe { rustix::mm::madvise(mapped, bytes, Advice::LinuxNoHugepage) };
        let memory = NonNull::new(mapped.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { memory, bytes, page_bytes, touched: 0 })
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
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
