//! The ring's memory: an anonymous file that has a path while this process lives, and nothing to remove after
//! it.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::reader::SLOTS_AT;
use crate::writer::Ring;

/// 64 MiB.
const MOST_SLOTS: u32 = 1 << 20;

/// A ring that this process has made, mapped until this is dropped.
pub struct Shared {
    file: OwnedFd,
    base: NonNull<u8>,
    length: usize,
    pub(crate) slots: u32,
}

// SAFETY: whoever reaches the mapping does so by atomics.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A ring of so many marks, 64 bytes each; rounded up to a power of two.
    /// Errors: the system gives no anonymous file whose length can be fixed, or no memory for it.
    pub fn new(slots: u32) -> io::Result<Self> {
        let slots = slots.clamp(2, MOST_SLOTS).next_power_of_two();
        let length = SLOTS_AT + slots as usize * 64;
        let file = memfd_create("latlab-stages", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, length as u64)?;
        // Others may write into it but not shorten it: this process would get SIGBUS at the next mark. Where
        // that is refused, nothing is mapped.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping of a file that long; unmapped once, in drop.
        let base = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        // SAFETY: nobody else has the mapping yet; both places lie in its header.
        unsafe {
            base.add(8).cast::<u32>().write(slots);
            base.add(12).cast::<u32>().write(256);
            base.cast::<[u8; 8]>().write(*b"LATSTG01");
        }
        Ok(Self { file, base, length, slots })
    }

    /// What `LATLAB_STAGES` must say for processes of the same user while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Its memory, as its reader takes it.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped as long as this lives, at a page's begin; whoever writes it does so by atomics.
        unsafe { std::slice::from_raw_parts(self.base.cast::<AtomicU64>().as_ptr(), self.length / 8) }
    }

    /// A writer into it; `None` would be a header that somebody has overwritten.
    ///
    /// # Safety
    /// The writer is not used after this was dropped.
    pub unsafe fn writer(&self) -> Option<Ring> {
        // SAFETY: mapped as long as this lives, and longer the caller does not use it.
        unsafe { Ring::over(self.base.as_ptr(), self.length) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and not unmapped since.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
