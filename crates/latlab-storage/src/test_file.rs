//! The file that figures of a disk are taken from: written whole, with contents that verify themselves.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate, fdatasync, fstat, fsync, ftruncate};
use rustix::io::Errno;

use crate::direct::{alignment, try_direct};
use crate::{
    Alignment, BLOCK_BYTES, Budget, Buffer, Contents, DirectEvidence, Extents, Place, Residency,
    StorageError, evict, extents, open_again, open_direct, open_existing,
};

/// Bytes written at a time: beyond the half-bandwidth block of every disk met so far.
const CHUNK_BYTES: usize = 4 << 20;
/// Bytes left to the page cache before they are flushed, where there is no way past it: what is under way
/// when time is up must still get to the disk. A gibibyte that was flushed only at its end took five times as
/// long here, because the kernel holds a writer back who is far ahead of the disk.
const FLUSHED_BYTES: u64 = 16 << 20;
/// Where that many take longer, each chunk is flushed.
const FLUSHED_WITHIN: Duration = Duration::from_millis(100);

/// A way past the page cache.
#[derive(Clone, Debug)]
pub struct Direct {
    /// The same file, opened with `O_DIRECT`.
    pub file: Arc<OwnedFd>,
    /// What transfers must be multiples of.
    pub alignment: Alignment,
    /// What a trial showed; `None` for a file whose contents are not ours.
    pub evidence: Option<DirectEvidence>,
}

/// A regular file on the disk that is measured, and what is known of it.
#[derive(Debug)]
pub struct TestFile {
    /// Through the page cache.
    pub file: Arc<OwnedFd>,
    /// Past it, or why not.
    pub direct: Result<Direct, String>,
    /// What is in it; `None` for a file of the user's.
    pub contents: Option<Contents>,
    /// Its size, bytes.
    pub bytes: u64,
    /// Where it lies.
    pub extents: Extents,
}

impl TestFile {
    /// Makes a file without a name and writes every byte of it once, then flushes it and looks whether all is
    /// there. The bytes are taken from the budget first. Fails when there is no room, the disk fails, or the
    /// file system does not keep what was written.
    pub fn lay_out(place: &Place, budget: &Budget, bytes: u64, seed: u64) -> Result<Self, StorageError> {
        Self::lay_out_until(place, budget, bytes, seed, None)
    }

    /// As [`Self::lay_out`], but what is not written at `until` stays out of the file, which is smaller then:
    /// a slow disk does not take the time that others are to measure in. What was not written goes back to
    /// the budget.
    pub(crate) fn lay_out_until(
        place: &Place,
        budget: &Budget,
        bytes: u64,
        seed: u64,
        until: Option<Instant>,
    ) -> Result<Self, StorageError> {
        let bytes = bytes.next_multiple_of(BLOCK_BYTES as u64);
        let file = place.file(bytes)?;
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            // Reserved in one piece, or full now and not half-way; some file systems cannot reserve.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            Err(errno) => return Err(StorageError::asking("reserving room for the test file")(errno)),
        }
        // What cannot be reserved was not written either.
        budget.spend(bytes)?;
        let contents = Contents::new(seed);
        let written = write_until(&file, contents, bytes, until)?;
        if written < bytes {
            ftruncate(&file, written)
                .map_err(StorageError::asking("ending the test file where time was up"))?;
            budget.give_back(bytes - written);
        }
        fsync(&file).map_err(StorageError::asking("flushing the test file"))?;
        Self::of(file, contents, written)
    }

    /// A file that another process laid out with the contents of this seed, as a sample of it shows.
    pub(crate) fn adopt(file: OwnedFd, seed: u64) -> Result<Self, StorageError> {
        let size = fstat(&file).map_err(StorageError::asking("looking at the file's size"))?.st_size;
        let bytes = u64::try_from(size).unwrap_or(0);
        let contents = Contents::new(seed);
        let mut block = vec![0; BLOCK_BYTES];
        for offset in [0, bytes.saturating_sub(BLOCK_BYTES as u64)] {
            let read = rustix::io::pread(&file, &mut *block, offset)
                .map_err(StorageError::asking("reading the test file"))?;
            if read != BLOCK_BYTES {
                return Err(StorageError::Refused("there is no test file yet".to_owned()));
            }
            contents.verify(offset, &block).map_err(StorageError::Refused)?;
        }
        Self::of(file, contents, bytes)
    }

    fn of(file: OwnedFd, contents: Contents, bytes: u64) -> Result<Self, StorageError> {
        let found = extents(&file)?;
        found.all_written().map_err(StorageError::Refused)?;
        let file = Arc::new(file);
        let direct = open_direct(&file)
            .and_then(|direct| {
                let alignment = alignment(&direct)?;
                let evidence = try_direct(&file, &direct, alignment, contents, bytes)?;
                evidence.is_direct().map_err(StorageError::Refused)?;
                Ok(Direct { file: Arc::new(direct), alignment, evidence: Some(evidence) })
            })
            .map_err(|error| error.to_string());
        Ok(Self { file, direct, contents: Some(contents), bytes, extents: found })
    }

    /// A file of the user's, to be read only. Errors: for anything but a regular file that can be read.
    pub fn existing(path: &Path) -> Result<Self, StorageError> {
        let file = Arc::new(open_existing(path)?);
        let size = fstat(&file).map_err(StorageError::asking("looking at the file's size"))?.st_size;
        let direct = open_again(&file, OFlags::RDONLY | OFlags::DIRECT)
            .map_err(StorageError::asking("opening the file for direct I/O"))
            .and_then(|direct| {
                let alignment = alignment(&direct)?;
                Ok(Direct { file: Arc::new(direct), alignment, evidence: None })
            })
            .map_err(|error| error.to_string());
        Ok(Self {
            extents: extents(&file)?,
            file,
            direct,
            contents: None,
            bytes: u64::try_from(size).unwrap_or(0),
        })
    }

    /// Puts it out of the page cache and looks what is left. Fails when it cannot be flushed or asked.
    pub fn evict(&self) -> Result<Residency, StorageError> {
        evict(&self.file)
    }
}

/// Writes from the front until all is there or the next piece would end after `until`; how much was written.
/// Past the page cache where that works: there is no page to be had first (which took longer than the disk on
/// a virtual machine), and nothing is left in memory that others did not ask for.
fn write_until(
    file: &OwnedFd,
    contents: Contents,
    bytes: u64,
    until: Option<Instant>,
) -> Result<u64, StorageError> {
    let mut chunk = Buffer::new(CHUNK_BYTES, BLOCK_BYTES);
    let mut direct = open_direct(file).ok();
    // The first piece tells how fast the disk is.
    let mut piece = CHUNK_BYTES as u64;
    let mut at = 0;
    while at < bytes {
        let begun = Instant::now();
        let end = (at + piece).min(bytes);
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            let part = &mut chunk.bytes_mut()[..length];
            contents.fill(at, part);
            if direct.as_ref().is_some_and(|direct| write_whole(direct, part, at).is_err()) {
                // What the disk itself refuses is refused again; what only this way does not take is no loss.
                direct = None;
            }
            if direct.is_none() {
                write_whole(file, part, at)?;
            }
            at += length as u64;
        }
        if direct.is_none() {
            fdatasync(file).map_err(StorageError::asking("flushing the test file"))?;
        }
        let took = begun.elapsed();
        let next = if took <= FLUSHED_WITHIN { FLUSHED_BYTES } else { CHUNK_BYTES as u64 };
        let next_takes = took.mul_f64(next as f64 / piece as f64);
        if until.is_some_and(|until| Instant::now() + next_takes > until) {
            break;
        }
        piece = next;
    }
    Ok(at)
}

fn write_whole(file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<(), StorageError> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(file, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(StorageError::Refused("the disk accepts no more bytes".to_owned())),
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(StorageError::asking("writing the test file")(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tests::{Own, place};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_test_file_is_written_whole_verifies_itself_and_is_counted() {
        let (own, place) = place("layout");
        let budget = Budget::new(10 * MIB);
        let test = TestFile::lay_out(&place, &budget, 5 * MIB + 1, 77).expect("room");
        assert_eq!(test.bytes, 5 * MIB + 4096);
        assert_eq!(budget.spent_bytes(), test.bytes);
        assert_eq!(test.extents.written_bytes, test.bytes, "{:?}", test.extents);
        let mut bytes = vec![0; usize::try_from(test.bytes).expect("small")];
        rustix::io::pread(&*test.file, &mut bytes, 0).expect("read");
        let contents = test.contents.expect("ours");
        assert_eq!(contents.verify(0, &bytes), Ok(()));
        assert_eq!(std::fs::read_dir(&own.0).expect("readable").count(), 0, "no name is left");
    }

    #[test]
    fn when_time_is_up_the_file_ends_there_and_the_rest_is_still_to_be_spent() {
        let (_own, place) = place("until");
        let budget = Budget::new(64 * MIB);
        let now = Instant::now();
        let test = TestFile::lay_out_until(&place, &budget, 32 * MIB, 77, Some(now)).expect("room");
        assert_eq!(test.bytes, CHUNK_BYTES as u64, "one piece, to see how long it takes");
        assert_eq!(budget.spent_bytes(), test.bytes);
        assert_eq!(test.extents.written_bytes, test.bytes, "{:?}", test.extents);
        assert_eq!(fstat(&*test.file).expect("asked").st_size, 4 << 20);
        let mut bytes = vec![0; CHUNK_BYTES];
        rustix::io::pread(&*test.file, &mut bytes, 0).expect("read");
        assert_eq!(test.contents.expect("ours").verify(0, &bytes), Ok(()));
    }

    #[test]
    fn beyond_the_budget_nothing_is_written() {
        let (_own, place) = place("budget");
        let budget = Budget::new(MIB);
        let error = TestFile::lay_out(&place, &budget, 2 * MIB, 1).expect_err("too much");
        assert!(error.to_string().contains("--max-bytes"), "{error}");
        assert_eq!(budget.spent_bytes(), 0);
    }

    #[test]
    fn a_file_of_the_users_is_only_read() {
        let own = Own::new("users");
        let path = own.0.join("data");
        std::fs::write(&path, vec![5u8; 200_000]).expect("written");
        let test = TestFile::existing(&path).expect("a regular file");
        assert_eq!((test.bytes, test.contents), (200_000, None));
        assert!(rustix::io::pwrite(&*test.file, b"x", 0).is_err(), "opened for reading");
        assert!(TestFile::existing(&own.0).is_err());
    }
}
