//! The Python arm: the lesson's loops, run by the interpreter that latlab runs in.
//!
//! A program takes one number and returns one. Its data and what it stamped go through two files in memory,
//! outside its time.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use latlab_clock::Clock;
use latlab_harness::{Batch, Interpreter, ProbeError};
use rustix::fs::{MemfdFlags, memfd_create};

use super::native::{Pass, Phase, READ, WRITE, WRITE_SYNC};
use crate::storage::linux::refused;

const WRITER: &str = include_str!("../programs/write.py");
const READER: &str = include_str!("../programs/read.py");
/// Of each file, kept by the program that reads (`LAST_BYTES` there).
pub(super) const LAST_BYTES: usize = 16;

/// Which program, on how many files of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Whether each file that is written is flushed before it is closed; `None` reads.
    pub(super) write: Option<bool>,
    pub(super) files: u64,
    pub(super) file_bytes: u64,
}

impl Job {
    fn phases(self) -> &'static [Phase] {
        match self.write {
            Some(true) => WRITE_SYNC,
            Some(false) => WRITE,
            None => READ,
        }
    }
}

/// The interpreter and its programs so far.
pub(super) struct Python<'env> {
    interpreter: &'env dyn Interpreter,
    source: File,
    result: File,
    programs: Vec<(Job, Box<dyn Batch>)>,
}

impl<'env> Python<'env> {
    pub(super) fn new(interpreter: &'env dyn Interpreter) -> Result<Self, ProbeError> {
        let memory = |name: &str| {
            memfd_create(name, MemfdFlags::CLOEXEC)
                .map(File::from)
                .map_err(refused("making a file in memory for the Python program"))
        };
        Ok(Self {
            interpreter,
            source: memory("latlab-source")?,
            result: memory("latlab-result")?,
            programs: Vec::new(),
        })
    }

    pub(super) fn name(&self) -> String {
        self.interpreter.name()
    }

    /// What the writing program will write.
    pub(super) fn give(&self, data: &[u8]) -> Result<(), ProbeError> {
        let what = "handing data to the Python program";
        self.source.set_len(0).and_then(|()| self.source.write_all_at(data, 0)).map_err(refused(what))
    }

    /// Compiles the program for this job on directories in `folder`, unless that was done; whether it was
    /// done now.
    pub(super) fn prepare(&mut self, job: Job, folder: &Path) -> Result<bool, ProbeError> {
        if self.programs.iter().any(|(own, _)| *own == job) {
            return Ok(false);
        }
        let text = self.text(job, folder)?;
        let program = self.interpreter.compile(&text).map_err(ProbeError::Other)?;
        self.programs.push((job, program));
        Ok(true)
    }

    /// One pass over the files of directory `number`, prepared before; with the last bytes of each file that
    /// was read.
    ///
    /// `begin` is a reading of the clock, where the pass is put: Python's clock has another origin.
    pub(super) fn pass(
        &mut self,
        job: Job,
        number: u64,
        clock: &Clock,
        begin: u64,
    ) -> Result<(Pass, Vec<u8>), ProbeError> {
        let place = self.programs.iter().position(|(own, _)| *own == job);
        let place =
            place.ok_or_else(|| ProbeError::Other("the Python program was not prepared".to_owned()))?;
        self.result.set_len(0).map_err(refused("clearing what a program left"))?;
        let bytes = self.programs[place].1.run(number);
        let result = self.result()?;
        let expected = job.files * job.file_bytes;
        if bytes != expected {
            let why = String::from_utf8_lossy(&result);
            return Err(ProbeError::Other(if bytes == 0 && !why.is_empty() {
                format!("the Python program failed: {why}")
            } else {
                format!("the Python program moved {bytes} of {expected} bytes")
            }));
        }
        parse(&result, job, clock, begin)
            .ok_or_else(|| ProbeError::Proof("the Python program wrote unexpected time stamps".to_owned()))
    }

    fn result(&self) -> Result<Vec<u8>, ProbeError> {
        let what = "reading what a program left";
        let size = self.result.metadata().map_err(refused(what))?.len();
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        self.result.read_exact_at(&mut bytes, 0).map_err(refused(what))?;
        Ok(bytes)
    }

    fn text(&self, job: Job, folder: &Path) -> Result<String, ProbeError> {
        let folder = folder.to_str().ok_or_else(|| {
            ProbeError::Other(
                "the scratch folder's path is not UTF-8, which the Python program needs".to_owned(),
            )
        })?;
        // By the process's number, not as "self": a test's interpreter is another process.
        let in_memory = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        // What JSON makes of a text is a text in Python too.
        let [folder, source, result] = [folder.to_owned(), in_memory(&self.source), in_memory(&self.result)]
            .map(serde_json::Value::String);
        let Job { write, files, file_bytes } = job;
        let own = match write {
            Some(sync) => {
                format!("{WRITER}SOURCE = {source}\nSYNC = {}\n", if sync { "True" } else { "False" })
            }
            None => READER.to_owned(),
        };
        Ok(format!("{own}FOLDER = {folder}\nRESULT = {result}\nFILES = {files}\nFILE_BYTES = {file_bytes}\n"))
    }
}

/// Wall time, then the stamps of each file, as 64-bit integers of this machine, ns; then the last bytes of
/// each file that was read.
fn parse(result: &[u8], job: Job, clock: &Clock, begin: u64) -> Option<(Pass, Vec<u8>)> {
    let files = usize::try_from(job.files).ok()?;
    let stamps = if job.write.is_some() { 5 } else { 4 };
    let ends = if job.write.is_some() { 0 } else { LAST_BYTES };
    let (numbers, last) = result.split_at_checked(8 * (1 + files * stamps))?;
    if last.len() != files * ends {
        return None;
    }
    let numbers: Vec<u64> = numbers
        .chunks_exact(8)
        .map(|bytes| bytes.try_into().ok().map(u64::from_ne_bytes))
        .collect::<Option<_>>()?;
    let (wall_ns, all) = numbers.split_first()?;
    let first = *all.first()?;
    let mut steps = vec![[0; 5]; files];
    for (step, own) in steps.iter_mut().zip(all.chunks_exact(stamps)) {
        for (place, ns) in step.iter_mut().zip(own) {
            *place = begin + clock.ticks(ns.checked_sub(first)? as f64);
        }
    }
    let pass = Pass { phases: job.phases(), steps, wall_ns: *wall_ns as f64 };
    Some((pass, last.to_vec()))
}
