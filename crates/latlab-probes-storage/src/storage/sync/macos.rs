//! macOS: fsync hands the bytes to the drive and stops there; `F_FULLFSYNC` has the drive flush its cache as
//! well. Nothing here counts what reached the device, so only the bytes are proved.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use latlab_harness::{Env, ProbeError, Proof};
use latlab_record::Work;
use latlab_storage::{Contents, Place};
use rustix::fs::{OFlags, fcntl_fullfsync, fsync};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use crate::disk::system;
use crate::storage::sync::{BLOCK_BYTES, Details, FILE_BYTES, Found, Operation, Way, Write};

/// Files with names would need a folder that somebody sweeps after a crash: creating is not measured.
pub(crate) const OPERATIONS: &[Operation] = &[Operation::Overwrite, Operation::Append];
pub(crate) const WAYS: &[Way] = &[Way::Fsync, Way::FullFsync];
const UNCOUNTED: &str = "neither bytes sent to storage nor flushes are counted on this system";

pub(crate) type Counted = ();

/// Sees nothing.
pub(super) struct Watch;

impl Watch {
    pub(super) fn new(_env: &Env, _place: &Place) -> Self {
        Self
    }

    pub(super) fn begin(&mut self, _env: &Env, (): &mut Counted) {}

    pub(super) fn end(&mut self, _env: &Env, (): &mut Counted, _bytes: u64) {}

    pub(super) fn proof(&self, _env: &Env, _write: Write, found: &Found) -> Proof<Details> {
        let read_back = found.contents_check("read back (it may have come from memory)");
        Proof {
            work: Work { bytes: found.bytes(), ..Work::default() },
            flags: vec![UNCOUNTED.to_owned()],
            ..Proof::of(vec![read_back, found.device_check()]).with(found.details(None)).by("psync")
        }
    }
}

/// A file with its blocks written and flushed.
pub(super) fn laid_out(env: &Env, place: &Place, seed: u64) -> Result<Arc<OwnedFd>, ProbeError> {
    let file = place.file(FILE_BYTES)?;
    env.disk.budget().spend(FILE_BYTES)?;
    let mut block = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(0)];
    for at in (0..FILE_BYTES).step_by(block.len()) {
        Contents::new(seed).fill(at, &mut block);
        let written = pwrite(&file, &block, at).map_err(system("laying out a file"))?;
        whole(written, block.len(), "laying out a file")?;
    }
    flush(Way::FullFsync, &file).map_err(system("flushing a file"))?;
    Ok(Arc::new(file))
}

/// That no byte is missing.
fn whole(bytes: usize, wanted: usize, what: &str) -> Result<(), ProbeError> {
    if bytes == wanted {
        Ok(())
    } else {
        Err(ProbeError::Other(format!("{what}: {bytes} of {wanted} bytes")))
    }
}

pub(super) fn flags_of(_way: Way) -> OFlags {
    OFlags::empty()
}

pub(super) fn opened_for(_way: Way, file: &OwnedFd) -> Result<OwnedFd, ProbeError> {
    file.try_clone().map_err(system("opening a file to write durably"))
}

pub(super) fn flush(way: Way, file: &OwnedFd) -> Result<bool, Errno> {
    match way {
        Way::FullFsync => retry_on_intr(|| fcntl_fullfsync(file))?,
        _ => retry_on_intr(|| fsync(file))?,
    }
    Ok(true)
}

pub(super) fn count_unsettled(_file: BorrowedFd<'_>, (): &mut Counted) -> Result<(), ProbeError> {
    Ok(())
}

pub(super) fn read_back(file: BorrowedFd<'_>, back: &mut [u8], offset: u64) -> Result<(), ProbeError> {
    let read = retry_on_intr(|| pread(file, &mut *back, offset));
    let what = "reading back what was written";
    let wanted = back.len();
    whole(read.map_err(system(what))?, wanted, what)
}
