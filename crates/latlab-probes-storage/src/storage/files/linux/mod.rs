//! Linux: the session that makes, reads and looks at the files.

mod native;
mod python;

use std::ffi::CString;
use std::time::Duration;

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_probes_shared::Result;
use latlab_record::{Check, Work};
use latlab_storage::{Contents, Direction, Entry, ProcessCounters, evict, extents, residency};
use rustix::fs::{Advice, fadvise};

use self::native::Pass;
use self::python::{Job, LAST_BYTES, Python};
use super::{Arm, Details, Files, ONE, Operation, Phase, Task};
use crate::disk::{Device, DeviceCount, check, quantile, reported, stamps, system};
use crate::storage::linux::{STRAY_BYTES, Scratch, UNWATCHED, exists, open_to_read, read_all, refused};

/// Steps that add up to less of the pass leave something out.
const PHASES_AT_LEAST: f64 = 0.95;
/// Later blocks that lie so far from the earlier ones, up or down, are said to drift.
const DRIFT: f64 = 1.25;
/// Single files whose slowest block took so many times the fastest have no typical time.
const SPREAD: f64 = 2.0;
/// Single files slower than this keep their time stamp, ns: at the usual microsecond all would.
const SLOW_NS: f64 = 1e6;
/// A warm pass is taken again where the kernel had taken pages back, so often at most in all.
const TRIES: u32 = 8;
/// Removing a file of a few KB, until the run's first removal has shown it, and a MB of a larger one, s: from
/// an ext4 file system on a virtual disk, after a run's own writes.
const REMOVED_S: f64 = 120e-6;
const REMOVED_MB_S: f64 = 40e-6;
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Files of one size in one directory.
#[derive(Clone, Copy, Debug)]
struct Set {
    directory: u64,
    files: u64,
    file_bytes: u64,
    contents: Contents,
    /// Files that were removed, from the first on.
    removed: u64,
    /// Files that were flushed, from the first on.
    flushed: u64,
}

/// What is known of a point after its blocks.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Of each block: mean of a file, ns.
    means_ns: Vec<f64>,
    wall_ns: f64,
    /// Of each pass: what its steps add up to, as a share of what another clock gave it.
    shares: Vec<f64>,
    /// Of all blocks, ns.
    phases: Vec<(&'static str, f64)>,
    files: u64,
    bytes: u64,
    /// Of each name the last that held, or the first that did not.
    checks: Vec<Check>,
    remarks: Vec<String>,
}

impl Evidence {
    fn note(&mut self, found: Check) {
        match self.checks.iter_mut().find(|own| own.name == found.name) {
            Some(own) if own.ok => *own = found,
            Some(_) => {}
            None => self.checks.push(found),
        }
    }

    fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|own| own == text) {
            self.remarks.push(text.to_owned());
        }
    }

    fn halves(&self) -> (&[f64], &[f64]) {
        let half = self.means_ns.len() / 2;
        (&self.means_ns[..half], &self.means_ns[self.means_ns.len() - half..])
    }

    /// Middle of the later blocks over the middle of the earlier ones.
    fn drift(&self) -> Option<f64> {
        let (earlier, later) = self.halves();
        Some(quantile(later, 0.5)? / quantile(earlier, 0.5)?)
    }

    /// A drift that is worth a word: blocks that only go up and down are none, so all later ones must lie on
    /// one side of all earlier ones.
    fn drifted(&self, leaves_traces: bool) -> Option<String> {
        let drift = self.drift().filter(|drift| !(1.0 / DRIFT..=DRIFT).contains(drift))?;
        let (earlier, later) = self.halves();
        let apart = |low: &[f64], high: &[f64]| low.iter().all(|one| high.iter().all(|other| one < other));
        if !apart(earlier, later) && !apart(later, earlier) {
            return None;
        }
        let why =
            if leaves_traces && drift > 1.0 { ": files left by earlier blocks may be the cause" } else { "" };
        let [earlier, later] = [earlier, later].map(|half| time(median(half)));
        Some(format!(
            "drift: a file took {later} in the later half of the blocks and {earlier} in the earlier \
                half{why}"
        ))
    }

    /// A few passes that lie far apart have no typical one, and their middle may be nobody's time.
    fn spread(&self, all: u64) -> Option<String> {
        let least = self.means_ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.means_ns.iter().copied().fold(0.0, f64::max);
        let blocks = self.means_ns.len();
        (all == ONE && blocks > 1 && most > SPREAD * least).then(|| {
            let [least, most] = [least, most].map(time);
            format!(
                "{blocks} blocks of a single file took {least} to {most}: see the interval; the middle is \
                    not a typical time"
            )
        })
    }
}

/// `12.3 us`.
fn time(ns: f64) -> String {
    if ns < 1e6 { format!("{:.1} µs", ns / 1e3) } else { format!("{:.1} ms", ns / 1e6) }
}

/// The middle of what is not empty.
fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5).unwrap_or(f64::NAN)
}

/// The files, and who makes and reads them.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    scratch: Scratch,
    device: Device,
    python: Option<Python<'env>>,
    /// What write blocks left.
    written: Vec<Set>,
    /// What reads share, one of each size.
    kept: Vec<Set>,
    /// What is written, or read into.
    data: Vec<u8>,
    /// What should have been read, or one file that was read back.
    expected: Vec<u8>,
    seeds: u64,
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Task]) -> Result<Session<'env>> {
    let stamps = stamps(env)?;
    let scratch = Scratch::new(env)?;
    Ok(Session {
        env,
        stamps,
        device: Device::under(scratch.folder.directory()),
        scratch,
        python: env.interpreter.as_deref().map(Python::new).transpose()?,
        written: Vec::new(),
        kept: Vec::new(),
        data: Vec::new(),
        expected: Vec::new(),
        seeds: 0,
    })
}

impl Session<'_> {
    fn names(&self, set: &Set, entry: fn(u64) -> Entry, files: std::ops::Range<u64>) -> Result<Vec<CString>> {
        files.map(|number| self.scratch.file(set.directory, entry(number))).collect()
    }

    /// A directory for files that are not there yet, their bytes taken from the budget and put into `data`.
    fn prepare(&mut self, files: u64, file_bytes: u64) -> Result<Set> {
        let bytes = files * file_bytes;
        self.scratch.admit(files, file_bytes)?;
        self.env.disk.budget().spend(bytes)?;
        self.seeds += 1;
        let set = Set {
            directory: self.scratch.directory()?,
            files,
            file_bytes,
            contents: Contents::new(self.env.seed(0xF11E_0000 + self.seeds)),
            removed: 0,
            flushed: 0,
        };
        fill(&mut self.data, &set, files);
        Ok(set)
    }

    /// Reads the first `files` files of a set, outside any time, and compares every byte with `data`.
    fn verify(&mut self, set: &Set, files: u64) -> Result<Result<String, String>> {
        let names = self.names(set, Entry::File, 0..files)?;
        let size = usize::try_from(set.file_bytes).unwrap_or(usize::MAX);
        // One byte more than there should be.
        self.expected.resize(size + 1, 0);
        for (index, name) in names.iter().enumerate() {
            let what = "reading a file back";
            let file = open_to_read(name).map_err(refused(what))?;
            let length = read_all(&file, &mut self.expected).map_err(refused(what))?;
            if self.expected[..length] != self.data[index * size..][..size] {
                return Ok(Err(wrong(index, length, size)));
            }
        }
        Ok(Ok(format!("every byte of {files} files was read back and compared")))
    }

    /// Writes new files, outside of what is measured.
    fn made(&mut self, files: u64, file_bytes: u64) -> Result<Set> {
        let set = self.prepare(files, file_bytes)?;
        let names = self.names(&set, Entry::File, 0..files)?;
        native::write(self.stamps, &names, &self.data, false)?;
        Ok(set)
    }

    /// The files that reads of this size share, written when the first asks for them.
    fn keep(&mut self, files: u64, file_bytes: u64) -> Result<Set> {
        let found = self.kept.iter().find(|set| set.file_bytes == file_bytes && set.files >= files);
        if let Some(set) = found {
            return Ok(*set);
        }
        let set = self.made(files, file_bytes)?;
        self.verify(&set, files)?.map_err(ProbeError::Proof)?;
        self.kept.push(set);
        Ok(set)
    }

    fn pass(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        match task.operation {
            Operation::Write => self.write(task, files, seen),
            Operation::ReadWarm | Operation::ReadCold | Operation::ReadMetadataCold => {
                self.read(task, files, seen)
            }
            Operation::Stat => self.stat(task, files, seen),
            Operation::Rename => self.rename(task, files, seen),
            Operation::Unlink => self.unlink(task, files, seen),
        }
    }

    /// Flushes files of a shared set, once: what is dirty cannot be evicted.
    fn flush(&mut self, set: &Set, files: u64) -> Result<()> {
        if set.flushed < files {
            let names = self.names(set, Entry::File, set.flushed..files)?;
            flush_all(&names, "flushing a file before its pages are dropped")?;
            let own = self.kept.iter_mut().filter(|own| own.directory == set.directory);
            own.for_each(|own| own.flushed = files);
        }
        Ok(())
    }

    fn write(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        let (file_bytes, is_flushed) = (task.file_bytes, task.sync.is_some());
        let set = self.prepare(files, file_bytes)?;
        let done = if task.engine == Arm::Python {
            self.scratch.admit(1, files * file_bytes)?;
            let job = Job { write: Some(is_flushed), files, file_bytes };
            let python = self.python.as_mut().ok_or_else(no_interpreter)?;
            python.prepare(job, &self.scratch.path)?;
            python.give(&self.data)?;
            python.pass(job, set.directory, &self.env.clock, self.stamps.begin())?.0
        } else {
            let names = self.names(&set, Entry::File, 0..files)?;
            native::write(self.stamps, &names, &self.data, is_flushed)?
        };
        seen.note(reported("contents verified", self.verify(&set, files)?));
        self.written.push(set);
        Ok(done)
    }

    fn read(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        let (file_bytes, cold) = (task.file_bytes, task.is_cold());
        let set = self.keep(task.files_kept(self.env.settings.profile).max(files), file_bytes)?;
        let names = self.names(&set, Entry::File, 0..files)?;
        fill(&mut self.expected, &set, files);
        self.data.clear();
        self.data.resize(self.expected.len(), 0);
        let job = Job { write: None, files, file_bytes };
        let in_python = task.engine == Arm::Python;
        if in_python {
            let python = self.python.as_mut().ok_or_else(no_interpreter)?;
            if python.prepare(job, &self.scratch.path)? {
                // What the interpreter loads at its first use of anything is no part of reading these files.
                python.pass(job, set.directory, &self.env.clock, 0)?;
            }
        }
        let pass = |own: &mut Self, seen: &mut Evidence| -> Result<(Pass, Option<u64>)> {
            let before = ProcessCounters::of_this_thread();
            let begin = own.stamps.begin();
            let done = if in_python {
                let python = own.python.as_mut().ok_or_else(no_interpreter)?;
                let (done, ends) = python.pass(job, set.directory, &own.env.clock, begin)?;
                seen.note(compare_ends(&ends, &own.expected, file_bytes));
                done
            } else {
                let done = native::read(own.stamps, &names, &mut own.data)?;
                seen.note(compare(&own.data, &own.expected, file_bytes));
                done
            };
            Ok((done, ProcessCounters::fetched_since(before)))
        };
        if cold {
            make_cold(&names, seen)?;
            if task.operation == Operation::ReadMetadataCold {
                let what = "emptying the caches of the machine (--drop-caches), which needs root";
                std::fs::write(DROP_CACHES, "3").map_err(system(what))?;
            }
            let mut device = DeviceCount::default();
            device.begin(&self.device);
            let (done, fetched) = pass(self, seen)?;
            note_fetched(seen, fetched, files * file_bytes, cold);
            device.end(&self.device, Direction::Read, files * file_bytes);
            seen.note(device.check(&self.device));
            return Ok(done);
        }
        let mut tries = 1;
        loop {
            // Read once for the caches; other points evicted some of them.
            native::read(self.stamps, &names, &mut self.data)?;
            self.data.fill(0);
            let (done, fetched) = pass(self, seen)?;
            if tries == TRIES || fetched.is_none_or(|fetched| fetched <= STRAY_BYTES) {
                note_fetched(seen, fetched, files * file_bytes, cold);
                return Ok(done);
            }
            tries += 1;
            seen.remark(
                "some passes were repeated: the kernel had reclaimed pages of these files or of a program",
            );
        }
    }

    fn stat(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        let set = self.keep(files, task.file_bytes)?;
        let names = self.names(&set, Entry::File, 0..files)?;
        let (done, sum) = native::stat(self.stamps, &names)?;
        seen.note(equal("sizes as written", sum, files * task.file_bytes, "bytes in all"));
        Ok(done)
    }

    fn rename(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        let set = self.keep(files, task.file_bytes)?;
        let (from, to) =
            (self.names(&set, Entry::File, 0..files)?, self.names(&set, Entry::Renamed, 0..files)?);
        let done = native::rename(self.stamps, &from, &to)?;
        let moved = from.iter().zip(&to).filter(|(from, to)| !exists(from) && exists(to)).count();
        seen.note(equal("moved", moved as u64, files, "files have their new name only"));
        native::rename(self.stamps, &to, &from)?;
        Ok(done)
    }

    fn unlink(&mut self, task: &Task, files: u64, seen: &mut Evidence) -> Result<Pass> {
        let file_bytes = task.file_bytes;
        let left = |set: &Set| set.files - set.removed;
        let has_some = |set: &Set| set.file_bytes == file_bytes && left(set) >= files;
        if !self.written.iter().any(has_some) {
            // Nothing was written before: the point was asked for alone.
            let set = self.made(files, file_bytes)?;
            self.written.push(set);
        }
        let place = self.written.iter().position(has_some).unwrap_or(self.written.len() - 1);
        let set = self.written[place];
        let names = self.names(&set, Entry::File, set.removed..set.removed + files)?;
        // Removing what has no place on the disk yet is another, cheaper thing.
        flush_all(&names, "flushing a file before it is removed")?;
        let done = native::unlink(self.stamps, &names)?;
        self.scratch.place.removed(files, Duration::from_secs_f64(done.wall_ns / 1e9));
        self.written[place].removed += files;
        let gone = names.iter().filter(|name| !exists(name)).count();
        seen.note(equal("removed", gone as u64, files, "files are gone"));
        Ok(done)
    }
}

fn flush_all(names: &[CString], what: &str) -> Result<()> {
    let flush = |name| open_to_read(name).and_then(rustix::fs::fsync);
    names.iter().try_for_each(flush).map_err(refused(what))
}

/// Puts the files' data out of memory and looks whether it is gone, and whether it is on the disk.
fn make_cold(names: &[CString], seen: &mut Evidence) -> Result<()> {
    let files = names.len();
    let mut source = "";
    for (index, name) in names.iter().enumerate() {
        let file = open_to_read(name).map_err(refused("opening a file to evict it"))?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(refused("dropping a file's pages"))?;
        let mut left = residency(&file)?;
        if left.resident_bytes > 0 {
            // Not flushed yet; afterwards it is, and the next time costs no flush.
            left = evict(&file)?;
        }
        if let Err(why) = left.is_cold() {
            seen.note(check("evicted", false, format!("file {} of {files}: {why}", index + 1)));
        }
        source = left.source;
        let map = extents(&file)?;
        if let Err(why) = map.all_written() {
            seen.note(check("extents written", false, format!("file {} of {files}: {why}", index + 1)));
        }
    }
    let evicted = format!("evicted 100.0 % ({source}) of each of {files} files before each block");
    seen.note(check("evicted", true, evicted));
    seen.note(check("extents written", true, format!("the map of each of {files} files shows every byte")));
    Ok(())
}

fn no_interpreter() -> ProbeError {
    ProbeError::Other("no interpreter".to_owned())
}

/// What the first `files` files hold, one after the other.
fn fill(buffer: &mut Vec<u8>, set: &Set, files: u64) {
    let bytes = usize::try_from(files * set.file_bytes).unwrap_or(usize::MAX);
    buffer.clear();
    buffer.resize(bytes, 0);
    set.contents.fill(0, buffer);
}

fn wrong(index: usize, length: usize, size: usize) -> String {
    if length == size {
        format!("file {} holds other bytes than were written", index + 1)
    } else {
        format!("file {} ends after {length} of {size} bytes or has more", index + 1)
    }
}

/// Whether all files were read as they were written.
fn compare(found: &[u8], expected: &[u8], file_bytes: u64) -> Check {
    let size = usize::try_from(file_bytes).unwrap_or(usize::MAX);
    let pairs = || found.chunks(size).zip(expected.chunks(size));
    let other = pairs().position(|(found, expected)| found != expected);
    let held = || format!("every byte of {} files as written", pairs().count());
    check("contents verified", other.is_none(), other.map_or_else(held, |index| wrong(index, size, size)))
}

/// Whether the last bytes of all files are those that were written; the files themselves were compared when
/// they were laid out.
fn compare_ends(ends: &[u8], expected: &[u8], file_bytes: u64) -> Check {
    let size = usize::try_from(file_bytes).unwrap_or(usize::MAX);
    let last = LAST_BYTES.min(size);
    let files = expected.chunks(size);
    let count = files.len();
    let is_right = |(file, end): &(&[u8], &[u8])| file.ends_with(&end[end.len() - last.min(end.len())..]);
    let right = files.zip(ends.chunks(LAST_BYTES)).filter(is_right).count();
    let ok = ends.len() == count * LAST_BYTES && right == count;
    let held = format!("length and last {last} bytes of {count} files as written");
    let failed = format!("the last bytes of {} of {count} files differ", count - right);
    check("contents verified", ok, if ok { held } else { failed })
}

fn equal(name: &str, found: u64, expected: u64, what: &str) -> Check {
    check(name, found == expected, format!("{found} of {expected} {what}"))
}

/// What the kernel counted as fetched from storage while `bytes` were read.
fn note_fetched(seen: &mut Evidence, fetched: Option<u64>, bytes: u64, cold: bool) {
    let Some(fetched) = fetched else {
        seen.remark(UNWATCHED);
        return;
    };
    let detail = format!("the kernel counted {fetched} bytes fetched from storage for {bytes} read");
    seen.note(if cold {
        // A cache of the file system's own (ZFS), or one that counts nothing: either way the disk was not
        // shown to be read.
        check("read from storage", fetched >= bytes, detail)
    } else {
        check("read from memory", fetched <= STRAY_BYTES, detail)
    });
}

impl harness::Session<Files> for Session<'_> {
    fn select(&mut self, task: &Task) -> Result<()> {
        let profile = self.env.settings.profile;
        if !task.leaves_traces() {
            let set = self.keep(task.files_kept(profile), task.file_bytes)?;
            if task.is_cold() {
                self.flush(&set, task.files_a_block(profile))?;
            }
        }
        Ok(())
    }

    fn block(&mut self, task: &Task, seen: &mut Evidence, block: &mut Block) -> Result<()> {
        let files = task.files_a_block(self.env.settings.profile);
        block.set_waits();
        block.set_tail_threshold_ns(SLOW_NS);
        let mut sum_ns = 0.0;
        let passes = task.passes_a_block();
        for _ in 0..passes {
            let done = self.pass(task, files, seen)?;
            for step in &done.steps {
                for (name, from, to) in done.phases {
                    block.channel(name, step[*from], step[*to]);
                }
            }
            for (begin, end) in done.spans() {
                block.span(begin, end);
                sum_ns += self.env.clock.ns(end.saturating_sub(begin));
            }
            seen.wall_ns += done.wall_ns;
            let sums = done.sums();
            let in_phases: u64 = sums.iter().map(|(_, ticks)| ticks).sum();
            seen.shares.push(self.env.clock.ns(in_phases) / done.wall_ns.max(1.0));
            seen.phases.resize(sums.len(), ("", 0.0));
            for (own, (name, ticks)) in seen.phases.iter_mut().zip(sums) {
                *own = (name, own.1 + self.env.clock.ns(ticks));
            }
        }
        seen.means_ns.push(sum_ns / (files * passes) as f64);
        seen.files += files * passes;
        if !matches!(task.operation, Operation::Stat | Operation::Rename | Operation::Unlink) {
            seen.bytes += files * passes * task.file_bytes;
        }
        Ok(())
    }

    fn closing_s(&self) -> f64 {
        let each_s = self.scratch.place.removal_s().unwrap_or(REMOVED_S);
        let of = |set: &Set| {
            let megabytes = set.file_bytes as f64 / 1e6;
            (set.files - set.removed) as f64 * (each_s + REMOVED_MB_S * megabytes)
        };
        let left: f64 = self.written.iter().chain(&self.kept).map(of).sum();
        // Another block may come before this is asked again.
        left + self.written.iter().map(of).fold(0.0, f64::max)
    }

    fn proof(&mut self, task: &Task, seen: &Evidence) -> Proof<Details> {
        if seen.means_ns.is_empty() {
            return Proof::default();
        }
        // The middle pass: a thread that loses its CPU between two files is no missing step.
        let share = median(&seen.shares);
        let (percent, wall_ms) = (share * 100.0, seen.wall_ns / 1e6);
        let detail = format!("{percent:.1} % of what another clock gave a pass; {wall_ms:.1} ms in all");
        let mut checks = vec![check("phases add up", share >= PHASES_AT_LEAST, detail)];
        checks.extend(seen.checks.iter().cloned());
        let mut flags = seen.remarks.clone();
        let cold = match task.operation {
            Operation::ReadCold => Some("data cold, metadata warm"),
            Operation::ReadMetadataCold => {
                Some("data and metadata cold: the caches of the whole machine were emptied before each block")
            }
            _ => None,
        };
        flags.extend(cold.map(str::to_owned));
        let (all, files_a_block) = (task.files, task.files_a_block(self.env.settings.profile));
        if files_a_block < all {
            flags.push(format!("a block is {files_a_block} of the {all} files"));
        }
        flags.extend(seen.drifted(task.leaves_traces()));
        flags.extend(seen.spread(all));
        let files = seen.files.max(1) as f64;
        let phase = |(name, ns): &(&str, f64)| Phase { name: (*name).to_owned(), mean_ns: ns / files };
        let details = Details {
            phases_share_of_wall: share,
            drift: seen.drift(),
            block_means_ns: seen.means_ns.clone(),
            total_s: median(&seen.means_ns) * all as f64 / 1e9,
            mean_ns: seen.phases.iter().map(|(_, ns)| ns).sum::<f64>() / files,
            phases: seen.phases.iter().map(phase).collect(),
            files_a_block,
        };
        let engine = match task.engine {
            Arm::Python => self.python.as_ref().map(Python::name),
            Arm::Psync => Some("psync".to_owned()),
        };
        let work = Work { bytes: seen.bytes, ..Work::default() };
        Proof { work, engine, flags, ..Proof::of(checks).with(details) }
    }
}

#[cfg(test)]
#[path = "../tests.rs"]
mod tests;
