//! Linux: one file, opened by its name each time.

use std::ffi::CString;
use std::hint::black_box;

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_probes_shared::Compared;
use latlab_record::Work;
use latlab_storage::{BLOCK_BYTES, Contents, Entry, ProcessCounters};

use super::{Bytes, Handled, Reread, Way, readings};
use crate::disk::{check, stamps};
use crate::storage::linux::{
    STRAY_BYTES, Scratch, UNWATCHED, open_to_read, open_to_write, read_all, refused, write_all,
};

/// Single readings slower than this keep their time stamp, ns.
const SLOW_NS: f64 = 20e6;

pub(super) fn open<'env>(env: &'env Env, _group: &[Bytes]) -> Result<Session<'env>, ProbeError> {
    Ok(Session {
        env,
        stamps: stamps(env)?,
        scratch: Scratch::new(env)?,
        files: Vec::new(),
        data: Vec::new(),
    })
}

/// A file that was written, and the sum of what it holds.
#[derive(Clone, Debug)]
struct Written {
    name: CString,
    file_bytes: u64,
    sum: u64,
}

/// What the blocks of a point have shown.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Of what was read.
    sums: Compared,
    /// Bytes that the kernel counted in one block at most.
    fetched: u64,
    /// Whether it did not count in some block.
    unwatched: bool,
}

/// Files to be read again.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    scratch: Scratch,
    files: Vec<Written>,
    data: Vec<u8>,
}

/// The sum of all bytes, eight at a time; the ends that make no eight are added alone.
#[inline(never)]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

impl Session<'_> {
    fn file(&mut self, file_bytes: u64) -> Result<Written, ProbeError> {
        if let Some(written) = self.files.iter().find(|own| own.file_bytes == file_bytes) {
            return Ok(written.clone());
        }
        self.scratch.admit(1, file_bytes)?;
        self.env.disk.budget().spend(file_bytes)?;
        let directory = self.scratch.directory()?;
        let name = self.scratch.file(directory, Entry::File(0))?;
        let contents = Contents::new(self.env.seed(0x5E5E_0000 + file_bytes));
        self.data.resize(usize::try_from(file_bytes).unwrap_or(usize::MAX), 0);
        contents.fill(0, &mut self.data);
        let file = open_to_write(&name).map_err(refused("making a file"))?;
        write_all(&file, &self.data).map_err(refused("writing a file"))?;
        let written = Written { name, file_bytes, sum: sum(&self.data) };
        self.files.push(written.clone());
        Ok(written)
    }
}

/// Opens, reads and closes; the stamps after each, and how many bytes there were.
fn read(stamps: Stamps, name: &CString, data: &mut [u8]) -> Result<([u64; 4], usize), ProbeError> {
    let what = "reading a file again";
    let begin = stamps.begin();
    let file = open_to_read(name).map_err(refused(what))?;
    let opened = stamps.end();
    let length = read_all(&file, data).map_err(refused(what))?;
    let full = stamps.end();
    drop(file);
    Ok(([begin, opened, full, stamps.end()], length))
}

impl harness::Session<Reread> for Session<'_> {
    fn select(&mut self, point: &Bytes) -> Result<(), ProbeError> {
        let written = self.file(point.file_bytes)?;
        self.data.clear();
        self.data.resize(usize::try_from(written.file_bytes).unwrap_or(usize::MAX), 0);
        read(self.stamps, &written.name, &mut self.data)?;
        Ok(())
    }

    fn block(&mut self, point: &Bytes, evidence: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        let written = self.file(point.file_bytes)?;
        let kept = point.operation == Way::Kept;
        let count = readings(written.file_bytes);
        block.set_tail_threshold_ns(SLOW_NS);
        let before = ProcessCounters::of_this_thread();
        for _ in 0..count {
            let found = if kept {
                let begin = self.stamps.begin();
                let found = sum(black_box(&self.data));
                let end = self.stamps.end();
                block.channel("sum", begin, end);
                block.span(begin, end);
                found
            } else {
                let ([begin, opened, full, closed], length) =
                    read(self.stamps, &written.name, &mut self.data)?;
                let found = sum(black_box(&self.data[..length]));
                let end = self.stamps.end();
                block.channel("open", begin, opened);
                block.channel("read", opened, full);
                block.channel("close", full, closed);
                block.channel("sum", closed, end);
                block.span(begin, end);
                found
            };
            evidence.sums.one(found == written.sum);
            if !kept {
                // What the next reading does not bring must be missing from its sum.
                self.data.iter_mut().step_by(BLOCK_BYTES).for_each(|byte| *byte = !*byte);
            }
        }
        let fetched = ProcessCounters::fetched_since(before);
        evidence.fetched = evidence.fetched.max(fetched.unwrap_or(0));
        evidence.unwatched |= fetched.is_none();
        Ok(())
    }

    fn proof(&mut self, point: &Bytes, evidence: &Evidence) -> Proof<Handled> {
        let Evidence { sums, fetched, unwatched } = *evidence;
        let mut checks = vec![sums.check("contents verified", "", "sums are those of what was written")];
        let mut flags = Vec::new();
        if unwatched {
            flags.push(UNWATCHED.to_owned());
        } else {
            let detail =
                format!("the kernel counted at most {fetched} bytes fetched from storage in a block");
            checks.push(check("read from memory", fetched <= STRAY_BYTES, detail));
        }
        let work = Work { bytes: sums.all * point.file_bytes, ..Work::default() };
        let handled = Handled { bytes: point.file_bytes };
        Proof { work, flags, ..Proof::of(checks).with(handled).by("psync") }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
