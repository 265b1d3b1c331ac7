//! The stream, one system call after the other.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps, pin_this_thread};
use latlab_probes_shared::{Joined, other_cpu};
use latlab_storage::{BLOCK_BYTES, Buffer, Contents, Direction};
use serde_json::Number;

use super::series::{SLICE_S, Series};
use super::verdict::{Regime, judge};
use super::{BLOCK, Details, Level, Steady, Stream, Way, stretch_s, written};
use crate::disk::{self, DIRECT, Places, Target, Timed, answered_by_a_device, stamps, whole};

/// Buffers that are filled ahead: as many ms as another thread may need to get its CPU back.
const AHEAD: usize = 8;

/// Computes what is written next, on another CPU where there is one: between two writes it would leave the
/// disk idle for a third of the time, and caches and credits recover in such pauses.
pub(super) enum Filler {
    Here {
        contents: Contents,
        places: Places,
        buffer: Buffer,
    },
    Beside {
        full: Receiver<(u64, Buffer)>,
        empty: SyncSender<Buffer>,
        current: Option<Buffer>,
        _thread: Joined,
    },
}

impl Filler {
    pub(super) fn new(env: &Env, contents: Contents, places: Places) -> Self {
        let buffer = || Buffer::new(usize::try_from(BLOCK).unwrap_or(usize::MAX), BLOCK_BYTES);
        let Some(cpu) = other_cpu(env) else { return Self::Here { contents, places, buffer: buffer() } };
        let (full_to, full) = sync_channel(AHEAD);
        let (empty, empty_from) = sync_channel::<Buffer>(AHEAD);
        for _ in 0..AHEAD {
            // There is room for all of them.
            let _ = empty.try_send(buffer());
        }
        let mut own = places.clone();
        let work = move || {
            pin_this_thread(cpu);
            while let Ok(mut buffer) = empty_from.recv() {
                let offset = own.next();
                contents.fill(offset, buffer.bytes_mut());
                if full_to.send((offset, buffer)).is_err() {
                    return;
                }
            }
        };
        match std::thread::Builder::new().name("contents".to_owned()).spawn(work) {
            Ok(thread) => Self::Beside { full, empty, current: None, _thread: thread.into() },
            Err(_) => Self::Here { contents, places, buffer: buffer() },
        }
    }

    /// Where the next block belongs, and its bytes.
    pub(super) fn next(&mut self) -> Result<(u64, &mut [u8]), ProbeError> {
        match self {
            Self::Here { contents, places, buffer } => {
                let offset = places.next();
                contents.fill(offset, buffer.bytes_mut());
                Ok((offset, buffer.bytes_mut()))
            }
            Self::Beside { full, empty, current, .. } => {
                if let Some(buffer) = current.take() {
                    // A thread that is gone shows below.
                    let _ = empty.try_send(buffer);
                }
                let gone =
                    |_| ProbeError::Other("the thread that computes what is written is gone".to_owned());
                let (offset, buffer) = full.recv().map_err(gone)?;
                Ok((offset, current.insert(buffer).bytes_mut()))
            }
        }
    }
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    series: Series,
    disk: disk::Evidence,
    timed: Timed,
    /// First and last stamp.
    wall: Option<(u64, u64)>,
    wall_ns: f64,
}

/// The file that is read and written.
pub struct Session<'env> {
    env: &'env Env,
    target: Target,
    file: Arc<OwnedFd>,
    stamps: Stamps,
    reading_places: Places,
    buffer: Buffer,
    back: Buffer,
    pub(super) filler: Option<Filler>,
    /// The longest block of samples.
    stretch_ns: f64,
    /// Bytes that may be written, and in one block of samples.
    allowed: Option<(u64, u64)>,
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Stream]) -> Result<Session<'env>, ProbeError> {
    let stamps = stamps(env)?;
    // Before the file is there: its size may depend on what is left.
    let allowed = written(env);
    let target = Target::open(env)?;
    let (file, alignment) = target.file(DIRECT)?;
    let blocks = target.blocks(BLOCK);
    if blocks == 0 || !BLOCK.is_multiple_of(alignment) {
        return Err(ProbeError::Other("the file has no block of 1 MiB to transfer directly".to_owned()));
    }
    // What others left in the page cache has no part in direct transfers, but would have to be put out by the
    // first of them.
    if target.test.contents.is_some() {
        target.test.evict()?;
    }
    Ok(Session {
        env,
        file,
        stamps,
        reading_places: Places::in_order(BLOCK, blocks, 0),
        buffer: Buffer::new(usize::try_from(BLOCK).unwrap_or(usize::MAX), 4096),
        back: Buffer::new(BLOCK_BYTES, BLOCK_BYTES),
        filler: None,
        stretch_ns: stretch_s(&env.settings) * 1e9,
        allowed,
        target,
    })
}

impl Session<'_> {
    fn read(&mut self, seen: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        let contents = self.target.test.contents;
        let bytes = self.buffer.bytes_mut();
        seen.disk.begin(&self.target, DIRECT);
        let (mut moved, mut offset) = (0, 0);
        let first = self.stamps.begin();
        let mut last = first;
        while block.span_ns(first, last) < self.stretch_ns {
            offset = self.reading_places.next();
            let from = self.stamps.begin();
            let read = rustix::io::pread(&*self.file, &mut *bytes, offset);
            last = self.stamps.end();
            whole(read, bytes.len(), "reading a block")?;
            seen.transferred(block, from, last);
            seen.disk.verify(contents, offset, bytes);
            moved += BLOCK;
        }
        seen.disk.end(&self.target, Direction::Read, moved);
        seen.disk.verify_all(contents, offset, bytes);
        Ok(())
    }

    fn write(&mut self, seen: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        let (Some(contents), Some((_, stretch))) = (self.target.test.contents, self.allowed) else {
            return Err(ProbeError::Other("a user's file (--file) is only read".to_owned()));
        };
        let places = Places::in_order(BLOCK, self.target.blocks(BLOCK), 0);
        let filler = match &mut self.filler {
            Some(filler) => filler,
            none => none.insert(Filler::new(self.env, contents, places)),
        };
        seen.disk.begin(&self.target, DIRECT);
        let mut written = Vec::with_capacity(2);
        let mut moved = 0;
        let first = self.stamps.begin();
        let mut last = first;
        while moved < stretch && block.span_ns(first, last) < self.stretch_ns {
            self.env.disk.budget().spend(BLOCK)?;
            let (offset, bytes) = filler.next()?;
            let from = self.stamps.begin();
            let done = rustix::io::pwrite(&*self.file, bytes, offset);
            last = self.stamps.end();
            whole(done, bytes.len(), "writing a block")?;
            seen.transferred(block, from, last);
            written.truncate(1);
            written.push(offset);
            moved += BLOCK;
        }
        seen.disk.end(&self.target, Direction::Write, moved);
        // Untimed: the first and the last block are what they should be, as the disk has them.
        for begin in written {
            let at = begin + BLOCK - BLOCK_BYTES as u64;
            let read = rustix::io::pread(&*self.file, self.back.bytes_mut(), at);
            whole(read, BLOCK_BYTES, "reading a block back")?;
            seen.disk.verify(Some(contents), at, self.back.bytes());
        }
        Ok(())
    }
}

impl Evidence {
    fn transferred(&mut self, block: &mut Block, from: u64, to: u64) {
        let ns = block.span_ns(from, to);
        block.span(from, to);
        self.timed.add(ns, BLOCK);
        self.series.add(ns, BLOCK);
        let begun = self.wall.map_or(from, |(begun, _)| begun);
        self.wall = Some((begun, to));
        self.wall_ns = block.span_ns(begun, to);
    }

    fn details(&self, operation: Way, file_bytes: u64, allowed: Option<u64>) -> Details {
        // A slow stretch leaves a little of its bytes, and there is none after the last.
        let bytes_ended_it =
            operation == Way::Write && allowed.is_some_and(|allowed| self.timed.bytes >= allowed / 10 * 9);
        let verdict = judge(&self.series.slices, operation, file_bytes, bytes_ended_it);
        let level = |own: &Regime| Level {
            from_bytes: Number::from_f64(own.from_bytes.round()),
            from_s: own.from_s,
            seconds: own.seconds,
            bytes_per_s: rounded(own.bytes_per_s),
        };
        Details {
            bytes_per_s: rounded(self.timed.bytes_per_s()),
            bytes: self.timed.bytes,
            busy_share: rounded(self.timed.total_ns / self.wall_ns.max(1.0)),
            slice_s: SLICE_S,
            slices: self.series.slices.iter().copied().map(rounded).collect(),
            seconds: self.series.seconds().into_iter().map(rounded).collect(),
            regimes: verdict.regimes.iter().map(level).collect(),
            trend: verdict.trend,
            sustained: verdict.sustained,
            why: verdict.why,
            steps: verdict.steps,
        }
    }
}

/// Four digits: neighbouring slices differ by more.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

impl harness::Session<Steady> for Session<'_> {
    fn select(&mut self, point: &Stream) -> Result<(), ProbeError> {
        if point.operation == Way::Read {
            // Its thread and its memory are of no more use.
            self.filler = None;
        }
        Ok(())
    }

    fn block(&mut self, point: &Stream, seen: &mut Evidence, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        block.set_tail_threshold_ns(Timed::tail_ns(false, BLOCK));
        match point.operation {
            Way::Read => self.read(seen, block),
            Way::Write => self.write(seen, block),
        }
    }

    fn proof(&mut self, point: &Stream, seen: &Evidence) -> Proof<Details> {
        let mut checks = seen.disk.checks(&self.target, DIRECT, point.operation.direction());
        checks.extend(seen.timed.median_ns().map(answered_by_a_device));
        let allowed = self.allowed.map(|(bytes, _)| bytes);
        let details = seen.details(point.operation, self.target.test.bytes, allowed);
        let (work, flags) = (seen.timed.work(&seen.disk), self.target.flags());
        Proof { work, flags, ..Proof::of(checks).with(details).by("psync") }
    }
}
