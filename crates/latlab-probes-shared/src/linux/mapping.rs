//! One mapping: mmap(2), madvise(2), mincore(2).

use std::os::fd::AsFd;
use std::ptr::null_mut;

use latlab_harness::ProbeError;
use latlab_record::{Pages, binary_size};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::{HUGE_BYTES, Result, refused};

/// Bytes of a base page.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// A mapping of which no page is touched before its owner does so. Unmapped when dropped.
pub struct Region {
    whole: *mut u8,
    whole_bytes: usize,
    base: *mut u8,
    bytes: usize,
}

fn refused_of(what: &str, bytes: usize, error: rustix::io::Errno) -> ProbeError {
    refused(format!("{what} of {}", binary_size(bytes as u64)), error)
}

impl Region {
    /// Private anonymous memory, in pages of this size as far as the kernel lets itself be told. Fails when
    /// the kernel refuses the mapping, or the advice (built without huge pages) and huge ones were asked for.
    pub fn anonymous(bytes: usize, pages: Pages) -> Result<Self> {
        let whole_bytes = if pages == Pages::Huge { bytes + HUGE_BYTES } else { bytes };
        let region =
            Self::aligned(bytes, pages).map_err(|error| refused_of("a mapping", whole_bytes, error))?;
        match (region.advise_pages(pages), pages) {
            // A kernel without huge pages refuses the advice, and has nothing to be refused.
            (Ok(()), _) | (_, Pages::Base) => Ok(region),
            (Err(error), Pages::Huge) => Err(refused_of("huge pages for a mapping", bytes, error)),
        }
    }

    /// Private anonymous memory with no advice, which begins where a page of this size may.
    pub fn aligned(bytes: usize, pages: Pages) -> rustix::io::Result<Self> {
        if pages == Pages::Base {
            return Self::plain(bytes, false);
        }
        let mut region = Self::plain(bytes.saturating_add(HUGE_BYTES), false)?;
        region.base = region.whole.wrapping_add(region.whole.align_offset(HUGE_BYTES));
        region.bytes = bytes;
        Ok(region)
    }

    /// As a program maps memory, with no advice; populated at once or not at all.
    #[inline]
    pub fn plain(bytes: usize, populate: bool) -> rustix::io::Result<Self> {
        let flags = if populate { MapFlags::PRIVATE | MapFlags::POPULATE } else { MapFlags::PRIVATE };
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches nothing of ours.
        let whole = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(Self { whole: whole.cast(), whole_bytes: bytes, base: whole.cast(), bytes })
    }

    /// The first `bytes` of a file, private and writable: the first write to a page copies it. Fails when the
    /// kernel refuses the mapping.
    pub fn private_file(file: impl AsFd, bytes: usize) -> Result<Self> {
        Self::of_file(file, bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    }

    /// The first `bytes` of a file, to be read. Fails when the kernel refuses the mapping.
    pub fn shared_file(file: impl AsFd, bytes: usize) -> Result<Self> {
        Self::of_file(file, bytes, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of_file(file: impl AsFd, bytes: usize, protection: ProtFlags, flags: MapFlags) -> Result<Self> {
        // SAFETY: as above.
        let whole = unsafe { mmap(null_mut(), bytes, protection, flags, file, 0) }
            .map_err(|error| refused_of("a mapping of a file", bytes, error))?
            .cast::<u8>();
        Ok(Self { whole, whole_bytes: bytes, base: whole, bytes })
    }

    /// The first `pages` pages of a file, to be read, each a mapping of its own with an inaccessible page
    /// after it: a fault can map no neighbours, because there are none. Page `n` is at
    /// `2 * n * page_bytes()`. Fails when the kernel refuses a mapping (65,530 at most in one process).
    pub fn one_by_one(file: impl AsFd, pages: usize) -> Result<Self> {
        let bytes = 2 * pages * page_bytes();
        // SAFETY: address space only.
        let whole = unsafe {
            mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }
        .map_err(|error| refused_of("address space", bytes, error))?
        .cast::<u8>();
        let region = Self { whole, whole_bytes: bytes, base: whole, bytes };
        for page in 0..pages {
            // SAFETY: replaces a page of the address space that was just reserved.
            unsafe {
                mmap(
                    region.base.add(2 * page * page_bytes()).cast(),
                    page_bytes(),
                    ProtFlags::READ,
                    MapFlags::SHARED | MapFlags::FIXED,
                    &file,
                    (page * page_bytes()) as u64,
                )
            }
            .map_err(|error| refused_of("mappings of single pages", bytes / 2, error))?;
        }
        Ok(region)
    }

    /// First byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// The word at an offset within it, a multiple of eight.
    #[inline]
    pub fn word(&self, offset: usize) -> *mut u64 {
        self.base.wrapping_add(offset).cast()
    }

    /// Its size.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Tells the kernel something about the whole of it.
    #[inline]
    pub fn advise(&self, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range is ours, holds bytes only, and its owner knows what the advice does to them.
        unsafe { madvise(self.base.cast(), self.bytes, advice) }
    }

    /// Asks for pages of this size.
    #[inline]
    pub fn advise_pages(&self, pages: Pages) -> rustix::io::Result<()> {
        self.advise(match pages {
            Pages::Base => Advice::LinuxNoHugepage,
            Pages::Huge => Advice::LinuxHugepage,
        })
    }

    /// Makes it read-only.
    #[inline]
    pub fn protect(&self) -> rustix::io::Result<()> {
        // SAFETY: the range is ours, and nobody writes to it any more.
        unsafe { rustix::mm::mprotect(self.base.cast(), self.bytes, rustix::mm::MprotectFlags::READ) }
    }

    /// Gives it back, with the kernel's answer.
    #[inline]
    pub fn unmap(self) -> rustix::io::Result<()> {
        let own = std::mem::ManuallyDrop::new(self);
        // SAFETY: the mapping is ours and nothing refers into it any more.
        unsafe { munmap(own.whole.cast(), own.whole_bytes) }
    }

    /// Writes a word to each page.
    pub fn touch(&self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: inside the mapping, which is writable wherever this is called.
            unsafe { self.word(offset).write_volatile(1) };
        }
    }

    /// Pages that have memory (of a file: that are in the page cache), as mincore(2) says. `None` where it
    /// says nothing.
    pub fn resident(&self) -> Option<usize> {
        resident(self.base, self.bytes)
    }
}

/// Pages of this range that have memory; `None` where the kernel does not say, as for a range that is not
/// mapped.
pub fn resident(base: *mut u8, bytes: usize) -> Option<usize> {
    // SAFETY: mincore takes any address; each of its answers has its byte.
    let states = unsafe {
        let mut states = vec![0u8; bytes.div_ceil(page_bytes())];
        let answer = libc::mincore(base.cast(), bytes, states.as_mut_ptr().cast());
        (answer == 0).then_some(states)
    }?;
    Some(states.iter().filter(|state| **state & 1 == 1).count())
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers into it any more.
        let _unmapped = unsafe { munmap(self.whole.cast(), self.whole_bytes) };
    }
}
