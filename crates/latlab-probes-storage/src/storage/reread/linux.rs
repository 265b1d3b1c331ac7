//! Linux: one file, opened by its name each time.

use std::ffi::CString;
use std::hint::black_box;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point};
use latlab_storage::{BLOCK_BYTES, Contents, Entry, ProcessCounters};
use serde_json::json;

use super::{KEPT, readings};
use crate::storage::linux::{Scratch, open_to_read, open_to_write, read_all, refused, said, write_all};

/// Single readings slower than this keep their time stamp, ns.
const SLOW_NS: f64 = 20e6;
/// Bytes that may have been fetched meanwhile: a page of this program.
const STRAY_BYTES: u64 = 64 << 10;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Reading::new(env)?))
}

/// A file that was written, and the sum of what it holds.
#[derive(Clone, Debug)]
struct Written {
    name: CString,
    file_bytes: u64,
    sum: u64,
}

/// What is known of a point.
#[derive(Debug)]
struct Notes {
    point: Point,
    readings: u64,
    wrong: u64,
    fetched: Option<u64>,
}

pub(super) struct Reading<'env> {
    env: &'env Env,
    stamps: Stamps,
    scratch: Scratch,
    files: Vec<Written>,
    selected: Option<(Point, Written)>,
    data: Vec<u8>,
    notes: Vec<Notes>,
}

/// The sum of all bytes, eight at a time; the ends that make no eight are added alone.
#[inline(never)]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

impl<'env> Reading<'env> {
    fn new(env: &'env Env) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("simulated time does not pass on a disk".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            scratch: Scratch::new(env)?,
            files: Vec::new(),
            selected: None,
            data: Vec::new(),
            notes: Vec::new(),
        })
    }

    fn file(&mut self, file_bytes: u64) -> Result<Written, ProbeError> {
        if let Some(written) = self.files.iter().find(|own| own.file_bytes == file_bytes) {
            return Ok(written.clone());
        }
        self.scratch.admit(1, file_bytes)?;
        self.env.disk.budget().spend(file_bytes).map_err(|error| said(&error))?;
        let directory = self.scratch.directory()?;
        let name = self.scratch.file(directory, Entry::File(0))?;
        let contents = Contents::new(self.env.seed(0x5E5E_0000 + file_bytes));
        self.data.resize(usize::try_from(file_bytes).unwrap_or(usize::MAX), 0);
        for (number, part) in self.data.chunks_mut(BLOCK_BYTES).enumerate() {
            contents.fill((number * BLOCK_BYTES) as u64, part);
        }
        let file = open_to_write(&name).map_err(|errno| refused("making a file", errno))?;
        write_all(&file, &self.data).map_err(|errno| refused("writing a file", errno))?;
        let written = Written { name, file_bytes, sum: sum(&self.data) };
        self.files.push(written.clone());
        Ok(written)
    }
}

/// Opens, reads and closes; the stamps after each, and how many bytes there were.
fn read(stamps: Stamps, name: &CString, data: &mut [u8]) -> Result<([u64; 4], usize), ProbeError> {
    let failed = |errno| refused("reading a file again", errno);
    let begin = stamps.begin();
    let file = open_to_read(name).map_err(failed)?;
    let opened = stamps.end();
    let length = read_all(&file, data).map_err(failed)?;
    let full = stamps.end();
    drop(file);
    Ok(([begin, opened, full, stamps.end()], length))
}

impl AnySession for Reading<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let written = self.file(point.file_bytes.unwrap_or(0))?;
        self.data.clear();
        self.data.resize(usize::try_from(written.file_bytes).unwrap_or(usize::MAX), 0);
        read(self.stamps, &written.name, &mut self.data)?;
        self.selected = Some((point.clone(), written));
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some((point, written)) = self.selected.clone() else {
            return Err(ProbeError::Other("no file is selected".to_owned()));
        };
        let kept = point.operation.as_deref() == Some(KEPT);
        let count = readings(written.file_bytes);
        block.set_tail_threshold_ns(SLOW_NS);
        let before = ProcessCounters::of_this_thread();
        let mut wrong = 0;
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
            wrong += u64::from(found != written.sum);
            if !kept {
                // What the next reading does not bring must be missing from its sum.
                self.data.iter_mut().step_by(BLOCK_BYTES).for_each(|byte| *byte = !*byte);
            }
        }
        let fetched =
            before.and_then(|before| Some(ProcessCounters::of_this_thread()?.since(before).read_bytes));
        let place = self.notes.iter().position(|own| own.point == point).unwrap_or_else(|| {
            self.notes.push(Notes { point, readings: 0, wrong: 0, fetched: Some(0) });
            self.notes.len() - 1
        });
        let notes = &mut self.notes[place];
        notes.readings += count;
        notes.wrong += wrong;
        notes.fetched = notes.fetched.zip(fetched).map(|(sum, more)| sum.max(more));
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let mut proof = Proof::default();
        let Some(notes) = self.notes.iter().find(|own| own.point == *point) else {
            return proof;
        };
        proof.checks.push(Check {
            name: "contents verified".to_owned(),
            ok: notes.wrong == 0 && notes.readings > 0,
            detail: format!(
                "{} of {} sums are those of what was written",
                notes.readings - notes.wrong,
                notes.readings
            ),
        });
        match notes.fetched {
            Some(fetched) => proof.checks.push(Check {
                name: "read from memory".to_owned(),
                ok: fetched <= STRAY_BYTES,
                detail: format!("the kernel counted at most {fetched} bytes fetched from storage in a block"),
            }),
            None => proof.flags.push(
                "not checked against the kernel's count of bytes fetched: /proc/thread-self/io cannot be read"
                    .to_owned(),
            ),
        }
        proof.work.bytes = notes.readings * point.file_bytes.unwrap_or(0);
        proof.engine = Some("psync".to_owned());
        proof.findings = Some(json!({ "bytes": point.file_bytes }));
        proof
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
