//! Counts that one process writes and another reads.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::NetError;
use crate::sockets::inherited;

/// Most streams at once.
pub const MOST_STREAMS: usize = 64;
/// Counters of different streams lie so far apart that their writers do not disturb each other.
const APART: usize = 128;
const BYTES: usize = MOST_STREAMS * APART;

/// Bytes that have arrived, by stream.
#[derive(Debug)]
pub struct Arrivals {
    file: OwnedFd,
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value, and only atomic numbers are reached through it.
unsafe impl Send for Arrivals {}
// SAFETY: as above.
unsafe impl Sync for Arrivals {}

impl Arrivals {
    /// All zero. Fails when the system refuses a page of shared memory.
    pub fn new() -> Result<Self, NetError> {
        let what = || NetError::system("memory that two processes share");
        let file = memfd_create("latlab-arrivals", MemfdFlags::CLOEXEC).map_err(|error| what()(error))?;
        ftruncate(&file, BYTES as u64).map_err(|error| what()(error))?;
        Self::of(file)
    }

    /// Those of this number, that the parent's process has [handed down](crate::sockets::handed_down).
    /// Fails when it is not what the parent handed down.
    pub fn inherited(number: RawFd) -> Result<Self, NetError> {
        Self::of(inherited(number)?)
    }

    fn of(file: OwnedFd) -> Result<Self, NetError> {
        let what = || NetError::system("memory that two processes share");
        let length = rustix::fs::fstat(&file).map_err(|error| what()(error))?.st_size;
        if usize::try_from(length).ok() != Some(BYTES) {
            return Err(what()(rustix::io::Errno::INVAL));
        }
        // SAFETY: a new mapping at a place of the system's choice, of a file as long as it is; nobody
        // shortens it.
        let base = unsafe {
            mmap(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
        }
        .map_err(|error| what()(error))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| what()(rustix::io::Errno::INVAL))?;
        Ok(Self { file, base })
    }

    pub(super) fn of_stream(&self, number: usize) -> &AtomicU64 {
        let number = number.min(MOST_STREAMS - 1);
        // SAFETY: within the mapping, aligned to 128 bytes, alive as long as this value, and reached as an
        // atomic number only.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(number * APART).cast()) }
    }

    /// Of each of the first so many streams.
    pub fn each(&self, streams: usize) -> Vec<u64> {
        (0..streams.min(MOST_STREAMS)).map(|number| self.of_stream(number).load(Ordering::Acquire)).collect()
    }

    /// Of the first so many together.
    #[inline]
    pub fn sum(&self, streams: usize) -> u64 {
        (0..streams.min(MOST_STREAMS)).map(|number| self.of_stream(number).load(Ordering::Acquire)).sum()
    }

    /// Begins anew; nobody may be counting.
    pub fn clear(&self) {
        for number in 0..MOST_STREAMS {
            self.of_stream(number).store(0, Ordering::Release);
        }
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        // SAFETY: our mapping, of this length; nobody has a reference into it that outlives this value.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), BYTES) };
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_one_side_counts_the_other_sees() {
        let ours = Arrivals::new().expect("shared memory");
        let theirs = Arrivals::inherited(ours.as_fd().as_raw_fd()).expect("the same");
        theirs.of_stream(1).store(7, Ordering::Release);
        assert_eq!(ours.each(3), [0, 7, 0]);
        assert_eq!((ours.sum(1), ours.sum(2)), (0, 7));
        ours.clear();
        assert_eq!(theirs.sum(MOST_STREAMS), 0);
    }

    #[test]
    fn a_descriptor_of_something_else_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("everywhere");
        assert!(Arrivals::inherited(file.as_raw_fd()).is_err());
    }
}
