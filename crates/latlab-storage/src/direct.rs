//! Reading and writing past the page cache, and whether that is what happens.
//!
//! A file system may accept `O_DIRECT` and serve from memory all the same (tmpfs, ZFS, FUSE). So the flag is
//! tried by a transfer, the contents are compared, and the transfer is looked for in the page cache and in
//! what the kernel counted.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, statx};
use rustix::io::Errno;

use crate::{Buffer, Contents, ProcessCounters, StorageError, evict, residency};

/// What direct transfers must be multiples of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Of the buffer's address, bytes.
    pub memory_bytes: u64,
    /// Of offset and length, bytes.
    pub offset_bytes: u64,
}

/// Alignments that are tried where the kernel does not tell: a sector, a page, and the largest record of
/// common file systems.
const TRIED: [u64; 3] = [512, 4096, 65_536];
/// Blocks read for the proof, spread over the file.
const PROOF_READS: u64 = 64;

/// Opens the same file again with these flags, also one without a name: its position and the advice on it are
/// the new descriptor's own.
pub fn open_again(file: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the same file again, without the page cache. Errors: [`StorageError::Refused`] when the file system
/// does not take the flag.
pub fn open_direct(file: impl AsFd) -> Result<OwnedFd, StorageError> {
    open_again(file, OFlags::RDWR | OFlags::DIRECT).map_err(|errno| match errno {
        Errno::INVAL | Errno::OPNOTSUPP => {
            StorageError::Refused("this file system has no direct I/O".to_owned())
        }
        other => StorageError::asking("opening a file for direct I/O")(other),
    })
}

/// What direct transfers on this file must be multiples of: as the kernel tells (Linux 6.1), or the least
/// that works, up to 64 KiB. The file must hold as much.
pub(crate) fn alignment(direct: impl AsFd) -> Result<Alignment, StorageError> {
    let direct = direct.as_fd();
    if let Some(reported) = reported(direct) {
        return Ok(reported);
    }
    for bytes in TRIED {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut buffer = Buffer::new(length, length);
        match rustix::io::pread(direct, buffer.bytes_mut(), 0) {
            Ok(read) if read == length => {
                return Ok(Alignment { memory_bytes: bytes, offset_bytes: bytes });
            }
            Ok(_) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(StorageError::asking("trying direct I/O")(errno)),
        }
    }
    Err(StorageError::Refused("direct reads of 512 bytes to 64 KiB were all refused here".to_owned()))
}

fn reported(file: BorrowedFd<'_>) -> Option<Alignment> {
    let facts = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let (memory, offset) = (facts.stx_dio_mem_align, facts.stx_dio_offset_align);
    let known = facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    // Zero means that this file takes no direct I/O: the trial says so, too.
    (known && offset > 0 && memory > 0)
        .then(|| Alignment { memory_bytes: u64::from(memory), offset_bytes: u64::from(offset) })
}

/// What a trial of direct reads showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectEvidence {
    /// Bytes asked for.
    pub asked_bytes: u64,
    /// Bytes that the kernel says it fetched from storage for this process meanwhile; `None` where it does
    /// not tell.
    pub counted_bytes: Option<u64>,
    /// Bytes of the file that lay in the page cache afterwards.
    pub resident_bytes: u64,
}

impl DirectEvidence {
    /// Whether direct reads here pass the page cache by. Errors: one sentence with what speaks against it.
    pub fn is_direct(&self) -> Result<String, String> {
        if self.resident_bytes > 0 {
            return Err(format!(
                "this file system accepted O_DIRECT but put {} bytes into the page cache",
                self.resident_bytes
            ));
        }
        match self.counted_bytes {
            Some(counted) if counted < self.asked_bytes => Err(format!(
                "{} bytes were read \"directly\" and the kernel fetched {counted} from storage: something \
                    in between answered",
                self.asked_bytes
            )),
            Some(counted) => Ok(format!(
                "{} bytes asked for, {counted} fetched (/proc/self/io), none cached",
                self.asked_bytes
            )),
            None => Ok(format!(
                "{} bytes asked for, none cached; this kernel does not count fetches",
                self.asked_bytes
            )),
        }
    }
}

/// Evicts the file, reads some blocks of it directly, compares them, and looks at where they came from.
pub(crate) fn try_direct(
    file: impl AsFd,
    direct: impl AsFd,
    alignment: Alignment,
    contents: Contents,
    file_bytes: u64,
) -> Result<DirectEvidence, StorageError> {
    evict(&file)?;
    let block = alignment.offset_bytes.max(crate::BLOCK_BYTES as u64);
    let length = usize::try_from(block).unwrap_or(usize::MAX);
    let mut buffer =
        Buffer::new(length, usize::try_from(alignment.memory_bytes).unwrap_or(4096).next_power_of_two());
    let blocks = file_bytes / block;
    let reads = blocks.min(PROOF_READS);
    let before = ProcessCounters::now();
    for number in 0..reads {
        let offset = number * blocks / reads * block;
        let read = rustix::io::pread(&direct, &mut *buffer.bytes_mut(), offset)
            .map_err(StorageError::asking("a direct read"))?;
        if read != length {
            return Err(StorageError::Refused(format!("a direct read of {length} bytes brought {read}")));
        }
        contents.verify(offset, buffer.bytes()).map_err(StorageError::Refused)?;
    }
    let counted_bytes = before.and_then(|before| Some(ProcessCounters::now()?.since(before).read_bytes));
    Ok(DirectEvidence {
        asked_bytes: reads * block,
        counted_bytes,
        resident_bytes: residency(&file)?.resident_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tests::Own;
    use crate::{Place, Purpose};

    const SIZE: u64 = 1 << 20;

    #[test]
    fn direct_reads_of_a_real_disk_leave_no_trace_in_the_cache_and_are_counted() {
        let own = Own::new("direct");
        let Ok(place) = Place::open(&own.0, Purpose::Disk) else {
            // The build folder is in memory: there is no disk to ask.
            return;
        };
        let file = place.file(SIZE).expect("a MiB is there");
        let contents = Contents::new(9);
        let mut bytes = vec![0; 1 << 20];
        contents.fill(0, &mut bytes);
        rustix::io::pwrite(&file, &bytes, 0).expect("written");
        let Ok(direct) = open_direct(&file) else { return };
        let alignment = alignment(&direct).expect("an alignment works");
        assert!(alignment.offset_bytes.is_power_of_two(), "{alignment:?}");
        let evidence = try_direct(&file, &direct, alignment, contents, SIZE).expect("read and compared");
        assert_eq!(evidence.asked_bytes, PROOF_READS * alignment.offset_bytes.max(4096));
        // Other tests of this process read meanwhile: the count is at least ours where it is believed.
        let _ = evidence.is_direct();

        let other =
            try_direct(&file, &direct, alignment, Contents::new(8), SIZE).expect_err("other contents");
        assert!(other.to_string().contains("not of this file"), "{other}");
    }

    #[test]
    fn a_path_that_ignores_the_flag_is_caught() {
        let cached = DirectEvidence { asked_bytes: 4096, counted_bytes: Some(4096), resident_bytes: 4096 };
        assert!(cached.is_direct().expect_err("cached").contains("page cache"));
        let unmoved = DirectEvidence { asked_bytes: 4096, counted_bytes: Some(0), resident_bytes: 0 };
        assert!(unmoved.is_direct().expect_err("not fetched").contains("fetched 0"));
        let silent = DirectEvidence { asked_bytes: 4096, counted_bytes: None, resident_bytes: 0 };
        assert!(silent.is_direct().is_ok());
    }
}
