//! What of a file the page cache holds, and putting it out, without root.
//!
//! Asking to put pages out (`POSIX_FADV_DONTNEED`) is a wish: pages that are dirty stay (69 % of a file just
//! written), pages that somebody has mapped stay (all of them). So the file is flushed first, and afterwards
//! the kernel is asked what is left. A figure is called cold only when that is nothing.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise, fstat, fsync};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::StorageError;

/// What the page cache holds of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Bytes in the page cache, whole pages.
    pub resident_bytes: u64,
    /// The file's size, bytes.
    pub total_bytes: u64,
    /// Bytes that wait to be written or are being written; `None` where only presence is known.
    pub unsettled_bytes: Option<u64>,
    /// Who says so: `cachestat` or `mincore`.
    pub source: &'static str,
}

impl Residency {
    /// Share of the file that is *not* in the page cache, 0 to 1; of an empty file 1.
    pub fn evicted_share(&self) -> f64 {
        if self.total_bytes == 0 {
            return 1.0;
        }
        1.0 - (self.resident_bytes as f64 / self.total_bytes as f64).min(1.0)
    }

    /// Whether a read of the file must leave the page cache, with the evidence either way.
    /// Errors: one sentence with what is left and the likely reason.
    pub fn is_cold(&self) -> Result<String, String> {
        let share = self.evicted_share() * 100.0;
        if self.resident_bytes == 0 {
            return Ok(format!("evicted {share:.1} % ({})", self.source));
        }
        Err(format!(
            "only {share:.1} % could be evicted ({}): another program has the file mapped, or its pages are \
                still being written",
            self.source
        ))
    }
}

/// Flushes the file, asks the kernel to drop its pages, and looks at what is left; again for a while, when
/// that is not nothing. Fails when the file cannot be flushed or asked.
pub fn evict(file: impl AsFd) -> Result<Residency, StorageError> {
    let file = file.as_fd();
    match fsync(file) {
        // A file that was opened for reading on a read-only file system has nothing to flush.
        Ok(()) | Err(Errno::ROFS | Errno::INVAL) => {}
        Err(errno) => {
            return Err(StorageError::asking("flushing a file before its pages are dropped")(errno));
        }
    }
    let begun = Instant::now();
    let mut pause = PAUSE;
    loop {
        fadvise(file, 0, None, Advice::DontNeed).map_err(StorageError::asking("dropping a file's pages"))?;
        let left = residency(file)?;
        if left.resident_bytes == 0 || begun.elapsed() >= READING_AHEAD {
            return Ok(left);
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Pages that the kernel is still reading ahead are locked, and stay; a few MB of them are there within this
/// time.
const READING_AHEAD: Duration = Duration::from_millis(200);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// What of the file the page cache holds now. Reads nothing in.
/// Fails when the kernel offers neither cachestat(2) nor a truthful mincore(2).
pub fn residency(file: impl AsFd) -> Result<Residency, StorageError> {
    let file = file.as_fd();
    let size = fstat(file).map_err(StorageError::asking("looking at a file's size"))?.st_size;
    let size = u64::try_from(size).unwrap_or(0);
    match by_cachestat(file, size) {
        Ok(found) => Ok(found),
        // Older kernels, and filters of system calls that do not know it.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::INVAL) => by_mincore(file, size),
        Err(errno) => Err(StorageError::asking("asking what the page cache holds")(errno)),
    }
}

/// Number of cachestat(2) on every architecture (Linux 6.5), which libc does not carry everywhere.
const SYS_CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn by_cachestat(file: BorrowedFd<'_>, size: u64) -> Result<Residency, Errno> {
    // A length of 0 means to the end of the file.
    let range = Range { offset: 0, length: 0 };
    let mut counts = Counts::default();
    // SAFETY: both structures are laid out as the kernel's and live through the call.
    let status =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0u32) };
    if status != 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS);
        return Err(Errno::from_raw_os_error(errno));
    }
    let page = page_bytes();
    Ok(Residency {
        resident_bytes: counts.cached * page,
        total_bytes: size,
        unsettled_bytes: Some((counts.dirty + counts.writeback) * page),
        source: "cachestat",
    })
}

/// What of the first `bytes` of a file is not in the page cache, in order, whole pages. Reads nothing in.
/// Fails when the kernel cannot be asked (mincore(2)).
pub fn missing(file: impl AsFd, bytes: u64) -> Result<Vec<std::ops::Range<u64>>, StorageError> {
    let page = page_bytes();
    let mut gone: Vec<std::ops::Range<u64>> = Vec::new();
    for (number, present) in present(file.as_fd(), bytes)?.into_iter().enumerate() {
        let begin = number as u64 * page;
        match gone.last_mut() {
            _ if present & 1 == 1 => {}
            Some(last) if last.end == begin => last.end = begin + page,
            _ => gone.push(begin..begin + page),
        }
    }
    Ok(gone)
}

fn by_mincore(file: BorrowedFd<'_>, size: u64) -> Result<Residency, StorageError> {
    let pages = present(file, size)?;
    Ok(Residency {
        resident_bytes: pages.iter().filter(|page| **page & 1 == 1).count() as u64 * page_bytes(),
        total_bytes: size,
        unsettled_bytes: None,
        source: "mincore",
    })
}

/// A byte for each page, odd where it is in the page cache. Since Linux 5.2 this is the truth only for who
/// owns the file or may write it; others are told that all is there.
fn present(file: BorrowedFd<'_>, bytes: u64) -> Result<Vec<u8>, StorageError> {
    let what = "asking what the page cache holds";
    let length = usize::try_from(bytes)
        .map_err(|_| StorageError::Refused(format!("{what}: the file is larger than memory can be")))?;
    if length == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: a fresh mapping at an address of the kernel's choice; it is never read through.
    let base = unsafe { mmap(null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) }
        .map_err(StorageError::asking(what))?;
    let mut pages = vec![0u8; length.div_ceil(usize::try_from(page_bytes()).unwrap_or(4096))];
    // SAFETY: the range is the mapping's, and there is a byte for each of its pages.
    let status = unsafe { libc::mincore(base, length, pages.as_mut_ptr().cast()) };
    let error = std::io::Error::last_os_error();
    // SAFETY: mapped above, with this length; nothing refers to it.
    let _unmapped = unsafe { munmap(base, length) };
    if status != 0 {
        return Err(StorageError::System { what: what.to_owned(), source: error });
    }
    Ok(pages)
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tests::{Own, file};

    const SIZE: usize = 1 << 20;

    /// A MiB that was just written, on the disk of the build folder.
    fn written(name: &str) -> (Own, std::os::fd::OwnedFd) {
        let (own, file) = file(name, SIZE as u64);
        rustix::io::pwrite(&file, &vec![7u8; SIZE], 0).expect("written");
        (own, file)
    }

    /// Such a file that is not in the page cache; `None` where the file system lives in memory and keeps what
    /// it has.
    fn evicted(name: &str) -> Option<(Own, std::os::fd::OwnedFd)> {
        let (own, file) = written(name);
        let found = evict(&file).expect("evicted");
        let cold = found.is_cold();
        assert_eq!(cold.is_ok(), found.resident_bytes == 0);
        assert_eq!(cold.ok()?, format!("evicted 100.0 % ({})", found.source));
        Some((own, file))
    }

    #[test]
    fn a_file_just_written_is_in_the_cache_and_both_witnesses_say_so() {
        let (_own, file) = written("resident");
        let found = residency(&file).expect("asked");
        assert_eq!((found.resident_bytes, found.total_bytes), (SIZE as u64, SIZE as u64), "{found:?}");
        assert!(found.is_cold().is_err());
        let other = by_mincore(file.as_fd(), SIZE as u64).expect("asked");
        assert_eq!(other.resident_bytes, SIZE as u64, "{other:?}");
    }

    #[test]
    fn what_is_missing_of_an_evicted_file_is_known_page_by_page() {
        let (_own, file) = written("missing");
        assert_eq!(missing(&file, SIZE as u64).expect("asked"), []);
        let Some((_own, file)) = evicted("evicted") else { return };
        fadvise(&file, 0, None, Advice::Random).expect("advice is taken");
        let page = page_bytes();
        rustix::io::pread(&file, &mut [0; 1], 2 * page).expect("read");
        let gone = missing(&file, 5 * page).expect("asked");
        assert_eq!(gone, [0..2 * page, 3 * page..5 * page]);
        assert_eq!(missing(&file, 0).expect("asked"), []);
    }

    #[test]
    fn pages_that_are_still_being_read_ahead_are_waited_for() {
        let Some((_own, file)) = evicted("ahead") else { return };
        let left = |_: &u32| {
            fadvise(&file, 0, None, Advice::WillNeed).expect("advice is taken");
            evict(&file).expect("evicted").resident_bytes > 0
        };
        // A disk that others use takes longer at times.
        assert!((0..20).filter(left).count() <= 5);
    }

    #[test]
    fn an_eviction_that_did_nothing_is_caught() {
        let (_own, file) = written("mapped");
        fsync(&file).expect("flushed");
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { mmap(null_mut(), SIZE, ProtFlags::READ, MapFlags::SHARED, &file, 0) }.expect("mapped");
        for page in (0..SIZE).step_by(4096) {
            // SAFETY: inside the mapping; the file is as long.
            unsafe { base.cast::<u8>().add(page).read_volatile() };
        }
        let found = evict(&file).expect("asked");
        // SAFETY: mapped above; nothing refers to it.
        unsafe { munmap(base, SIZE) }.expect("unmapped");
        assert!(found.resident_bytes > 0, "{found:?}");
        let why = found.is_cold().expect_err("a live mapping keeps its pages");
        assert!(why.contains("mapped"), "{why}");
    }
}
