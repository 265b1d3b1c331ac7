//! The native arm: the system calls that the work needs, and no others.

use std::ffi::CString;
use std::time::Instant;

use latlab_harness::{ProbeError, Stamps};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use crate::storage::linux::{open_to_read, open_to_write, read_all, refused, write_all};

/// A step of each file: its name, and the time stamps that it lies between.
pub(super) type Phase = (&'static str, usize, usize);

/// Most time stamps of one file.
const STAMPS: usize = 5;
/// Between the end of writing and the begin of closing lies the flush, or nothing.
pub(super) const WRITE: &[Phase] = &[("create", 0, 1), ("write", 1, 2), ("close", 3, 4)];
pub(super) const WRITE_SYNC: &[Phase] =
    &[("create", 0, 1), ("write", 1, 2), ("fsync", 2, 3), ("close", 3, 4)];
pub(super) const READ: &[Phase] = &[("open", 0, 1), ("read", 1, 2), ("close", 2, 3)];
pub(super) const STAT: &[Phase] = &[("stat", 0, 1)];
pub(super) const RENAME: &[Phase] = &[("rename", 0, 1)];
pub(super) const UNLINK: &[Phase] = &[("unlink", 0, 1)];

/// One pass over files: when each step of each file was, and how long all took by another clock.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) phases: &'static [Phase],
    /// Time stamps of each file, in ticks of the run's clock.
    pub(super) steps: Vec<[u64; STAMPS]>,
    pub(super) wall_ns: f64,
}

impl Pass {
    pub(super) fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        let last = last_of(self.phases);
        self.steps.iter().map(move |step| (step[0], step[last]))
    }

    /// Ticks in each phase, of all files together.
    pub(super) fn sums(&self) -> Vec<(&'static str, u64)> {
        let of = |(name, from, to): &Phase| {
            let sum = self.steps.iter().map(|step| step[*to].saturating_sub(step[*from]));
            (*name, sum.sum())
        };
        self.phases.iter().map(of).collect()
    }
}

fn last_of(phases: &[Phase]) -> usize {
    phases.iter().map(|phase| phase.2).max().unwrap_or(0)
}

/// Does `one` to each file, which stamps the ends of its steps; the first step begins where the file before
/// ended.
fn pass<'a>(
    stamps: Stamps,
    what: &str,
    phases: &'static [Phase],
    names: impl ExactSizeIterator<Item = &'a CString>,
    mut one: impl FnMut(usize, &CString, &mut [u64; STAMPS]) -> Result<(), Errno>,
) -> Result<Pass, ProbeError> {
    let files = names.len();
    // Written once, so that no page fault lies between two files.
    let mut steps = vec![[1; STAMPS]; files];
    let last = last_of(phases);
    let clock = Instant::now();
    let mut begin = stamps.begin();
    for (index, (name, step)) in names.zip(&mut steps).enumerate() {
        step[0] = begin;
        one(index, name, step)
            .map_err(|errno| refused(&format!("{what} file {} of {files}", index + 1))(errno))?;
        // What lies between two files is a few instructions, which would be a twentieth of the shortest
        // operation.
        begin = step[last];
    }
    let wall_ns = clock.elapsed().as_secs_f64() * 1e9;
    Ok(Pass { phases, steps, wall_ns })
}

/// Creates, writes, flushes if asked, and closes each file with its part of `data`.
pub(super) fn write(stamps: Stamps, names: &[CString], data: &[u8], sync: bool) -> Result<Pass, ProbeError> {
    let size = data.len() / names.len().max(1);
    let phases = if sync { WRITE_SYNC } else { WRITE };
    pass(stamps, "writing", phases, names.iter(), |index, name, step| {
        let file = open_to_write(name)?;
        step[1] = stamps.end();
        write_all(&file, &data[index * size..][..size])?;
        step[2] = stamps.end();
        step[3] = step[2];
        if sync {
            rustix::fs::fsync(&file)?;
            step[3] = stamps.end();
        }
        drop(file);
        step[4] = stamps.end();
        Ok(())
    })
}

/// Opens, reads and closes each file into its part of `data`. A file that is shorter leaves its part as it
/// was.
pub(super) fn read(stamps: Stamps, names: &[CString], data: &mut [u8]) -> Result<Pass, ProbeError> {
    let size = data.len() / names.len().max(1);
    pass(stamps, "reading", READ, names.iter(), |index, name, step| {
        let file = open_to_read(name)?;
        step[1] = stamps.end();
        read_all(&file, &mut data[index * size..][..size])?;
        step[2] = stamps.end();
        drop(file);
        step[3] = stamps.end();
        Ok(())
    })
}

/// Looks at each file; the sum of their sizes.
pub(super) fn stat(stamps: Stamps, names: &[CString]) -> Result<(Pass, u64), ProbeError> {
    let mut sum = 0;
    let done = pass(stamps, "looking at", STAT, names.iter(), |_, name, step| {
        let stat = rustix::fs::statat(CWD, name, AtFlags::SYMLINK_NOFOLLOW)?;
        step[1] = stamps.end();
        sum += u64::try_from(stat.st_size).unwrap_or(0);
        Ok(())
    })?;
    Ok((done, sum))
}

pub(super) fn rename(stamps: Stamps, from: &[CString], to: &[CString]) -> Result<Pass, ProbeError> {
    pass(stamps, "renaming", RENAME, from.iter(), |index, name, step| {
        rustix::fs::renameat(CWD, name, CWD, &to[index])?;
        step[1] = stamps.end();
        Ok(())
    })
}

pub(super) fn unlink(stamps: Stamps, names: &[CString]) -> Result<Pass, ProbeError> {
    pass(stamps, "removing", UNLINK, names.iter(), |_, name, step| {
        rustix::fs::unlinkat(CWD, name, AtFlags::empty())?;
        step[1] = stamps.end();
        Ok(())
    })
}
