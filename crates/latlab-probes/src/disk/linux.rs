//! The test file of this run, the way to its blocks, and the evidence.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use latlab_harness::{Env, ProbeError, Queue, Wait};
use latlab_record::{Check, Point, Work};
use latlab_storage::{
    BLOCK_BYTES, Budget, Contents, CutShort, Direction, Engine, EngineKind, Extents, Patience,
    ProcessCounters, Residency, StorageError, TestFile, Transfer, open_engine, open_existing, open_threads,
};
use rustix::fs::{Advice, fadvise};

use super::{BUFFERED, DIRECT, WARM, file_bytes};
use crate::walk::Cycle;

mod device;

pub(crate) use device::{Device, DeviceCount};

/// A device that has not answered for so long will not.
const SILENT: Duration = Duration::from_secs(30);

/// Bytes that a test file may take; any number where a file of the user's is read.
pub(crate) fn room(env: &Env) -> Result<u64, String> {
    if let Some(path) = &env.settings.file {
        return open_existing(Path::new(path))
            .map(|_| u64::MAX)
            .map_err(|error| error.to_string());
    }
    env.disk
        .place()
        .and_then(|place| place.room())
        .map(|room| room.largest_file())
        .map_err(|error| error.to_string())
}

/// Size of the file that the user wants measured, bytes.
pub(crate) fn users_bytes(env: &Env) -> u64 {
    env.settings
        .file
        .as_ref()
        .and_then(|path| std::fs::symlink_metadata(path).ok())
        .map_or(0, |facts| facts.len())
}

pub(crate) fn laid_out(env: &Env) -> Option<u64> {
    env.disk.laid_out_bytes()
}

/// Lays the test file out, in this time; smaller on a slow disk. A disk that fails says so to each point that asks for the file.
pub(crate) fn lay_out(env: &Env, bytes: u64, within: Duration) {
    let _said_later = env.disk.lay_out(bytes, within);
}

pub(crate) fn cut_short(env: &Env) -> Option<CutShort> {
    env.disk.cut_short()
}

/// A refusal of the storage layer, as the harness says it.
pub(crate) fn refused(error: StorageError) -> ProbeError {
    match error {
        StorageError::System { what, source } => ProbeError::System { what, source },
        other => ProbeError::Other(other.to_string()),
    }
}

/// How long an engine waits where the harness waits.
pub(crate) fn patience(wait: Wait) -> Patience {
    match wait {
        Wait::No => Patience::None,
        Wait::ForOne => Patience::ForOne,
        Wait::AtMostNs(ns) => Patience::AtMost(Duration::from_secs_f64(ns.max(0.0) / 1e9)),
    }
}

/// The file whose blocks are measured.
#[derive(Clone)]
pub(crate) struct Target {
    /// The test file, or the user's.
    pub(crate) test: Arc<TestFile>,
    /// What it lies on.
    pub(crate) device: Device,
    /// Where threads may run that read and write it.
    cpus: Vec<u32>,
    /// As where `io_uring` is forbidden.
    #[cfg(test)]
    pub(crate) without_uring: bool,
}

impl Target {
    /// A file, with the device under it.
    pub(crate) fn of(test: Arc<TestFile>) -> Self {
        Self {
            device: Device::under(&*test.file),
            test,
            cpus: Vec::new(),
            #[cfg(test)]
            without_uring: false,
        }
    }

    /// The shared test file, laid out by who comes first, or the user's (`--file`).
    ///
    /// # Errors
    /// When there is no room, no budget, or the disk fails.
    pub(crate) fn open(env: &Env) -> Result<Self, ProbeError> {
        let test = match &env.settings.file {
            Some(path) => TestFile::existing(Path::new(path)).map(Arc::new),
            None => env.disk.test_file(file_bytes(env)),
        };
        let own = test.map(Self::of).map_err(refused)?;
        Ok(Self {
            cpus: env.cpus.clone(),
            ..own
        })
    }

    /// The descriptor for a path, and what buffers and blocks must be multiples of.
    ///
    /// # Errors
    /// When the file system has no direct I/O, with the reason.
    pub(crate) fn file(&self, path: &str) -> Result<(Arc<OwnedFd>, u64), ProbeError> {
        if path != DIRECT {
            return Ok((Arc::clone(&self.test.file), 1));
        }
        let direct = self
            .test
            .direct
            .as_ref()
            .map_err(|reason| ProbeError::Other(format!("no direct I/O: {reason}")))?;
        let alignment = direct.alignment;
        Ok((
            Arc::clone(&direct.file),
            alignment.memory_bytes.max(alignment.offset_bytes),
        ))
    }

    /// Path and block of a point, and the descriptor for them.
    ///
    /// # Errors
    /// When the point lacks one of them, the file system has no direct I/O, or its direct transfers are no such blocks.
    pub(crate) fn file_of(&self, point: &Point) -> Result<(String, u64, Arc<OwnedFd>), ProbeError> {
        let (Some(path), Some(block_bytes)) = (point.path.clone(), point.block_bytes) else {
            return Err(ProbeError::no_point(point));
        };
        let (file, alignment) = self.file(&path)?;
        if !block_bytes.is_multiple_of(alignment) {
            return Err(ProbeError::Other(format!(
                "direct transfers here are multiples of {alignment} bytes"
            )));
        }
        Ok((path, block_bytes, file))
    }

    /// Puts the whole file out of the page cache and looks. Before each cold block, outside of what is timed.
    ///
    /// # Errors
    /// When anything is left: there is no cold figure then.
    pub(crate) fn chill(&self) -> Result<Residency, ProbeError> {
        let residency = self.test.evict().map_err(refused)?;
        residency.is_cold().map_err(ProbeError::Proof)?;
        Ok(residency)
    }

    /// Whether reads through the page cache are to bring along what lies behind them. The descriptor is shared by all probes: who reads through the
    /// page cache says it before.
    ///
    /// # Errors
    /// When the file system does not take advice.
    pub(crate) fn read_ahead(&self, wanted: bool) -> Result<(), ProbeError> {
        let advice = if wanted { Advice::Normal } else { Advice::Random };
        fadvise(&*self.test.file, 0, None, advice).map_err(|errno| ProbeError::System {
            what: "advising how the file is read".to_owned(),
            source: errno.into(),
        })
    }

    /// How many whole blocks it has.
    pub(crate) fn blocks(&self, block_bytes: u64) -> u64 {
        self.test.bytes / block_bytes.max(1)
    }

    /// What a record of this file must say.
    pub(crate) fn flags(&self) -> Vec<String> {
        if self.test.contents.is_some() {
            return Vec::new();
        }
        vec!["a file of the user's: whether it can be compressed, and whether what was read is what is in it, is not known".to_owned()]
    }

    /// What is in it.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.test.contents
    }
}

/// Which block comes next.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// One after the other, round and round.
    InOrder {
        block_bytes: u64,
        blocks: u64,
        next: u64,
    },
    /// Each once in random order, then each once in another one: none comes twice in a row, and none from a cache that the last round filled
    /// until all others came.
    Random {
        block_bytes: u64,
        cycle: Cycle,
        seed: u64,
        next: u64,
        last: u64,
    },
}

impl Places {
    /// From block `first` on.
    pub(crate) fn in_order(block_bytes: u64, blocks: u64, first: u64) -> Self {
        Self::InOrder {
            block_bytes,
            blocks,
            next: first % blocks.max(1),
        }
    }

    /// In an order that the seed decides.
    pub(crate) fn random(block_bytes: u64, blocks: u64, seed: u64) -> Self {
        Self::Random {
            block_bytes,
            cycle: Cycle::random(blocks, seed),
            seed,
            next: 0,
            last: u64::MAX,
        }
    }

    /// Where the next block begins, bytes.
    pub(crate) fn next(&mut self) -> u64 {
        match self {
            Self::InOrder {
                block_bytes,
                blocks,
                next,
            } => {
                let place = *next;
                *next = (place + 1) % (*blocks).max(1);
                place * *block_bytes
            }
            Self::Random {
                block_bytes,
                cycle,
                seed,
                next,
                last,
            } => {
                if *next == cycle.len() {
                    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *cycle = Cycle::random(cycle.len(), *seed);
                    *next = 0;
                    if cycle.len() > 1 && cycle.place(0) == *last {
                        *next = 1;
                    }
                }
                let place = cycle.place(*next);
                *next += 1;
                *last = place;
                place * *block_bytes
            }
        }
    }
}

/// Whether what is read or written this way has been at the device when its block of samples ends.
fn reaches_the_device(path: &str) -> bool {
    path != WARM && path != BUFFERED
}

/// What speaks for the blocks of one point: gathered while they are taken, told as checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Blocks of the file whose header was looked at, and the first that was wrong.
    verified: u64,
    wrong: Option<String>,
    /// Bytes moved, and those that the kernel counted meanwhile.
    moved: u64,
    counted: Option<u64>,
    watched: u64,
    before: Option<ProcessCounters>,
    /// And those that the device counted.
    device: DeviceCount,
    /// What was found after the evictions.
    chilled: u64,
    source: &'static str,
    /// The block of contents that was computed last, for blocks that hold no header.
    expected: Option<(u64, Vec<u8>)>,
}

impl Evidence {
    /// Looks at the first and the last header of a block that was read; blocks below 4 KiB, of which most hold none, are compared whole. Cheap
    /// (two lines of the cache), and no part of what is timed.
    pub(crate) fn look(&mut self, contents: Option<Contents>, offset: u64, bytes: &[u8]) {
        let Some(contents) = contents else { return };
        let found = if bytes.len() < BLOCK_BYTES {
            self.compare(contents, offset, bytes)
        } else {
            let last = bytes.len() / BLOCK_BYTES * BLOCK_BYTES - BLOCK_BYTES;
            contents
                .verify_headers(offset, &bytes[..BLOCK_BYTES])
                .and_then(|()| contents.verify_headers(offset + last as u64, &bytes[last..]))
        };
        self.verified += 1;
        if let Err(text) = found {
            self.wrong.get_or_insert(text);
        }
    }

    fn compare(&mut self, contents: Contents, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let begin = offset / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        if self.expected.as_ref().is_none_or(|(own, _)| *own != begin) {
            let mut whole = vec![0; BLOCK_BYTES];
            contents.fill(begin, &mut whole);
            self.expected = Some((begin, whole));
        }
        let from = usize::try_from(offset - begin).unwrap_or(0);
        let expected = self
            .expected
            .as_ref()
            .and_then(|(_, whole)| whole.get(from..from + bytes.len()));
        if expected == Some(bytes) {
            return Ok(());
        }
        Err(if bytes.iter().all(|byte| *byte == 0) {
            format!("the bytes at {offset} are all zeros: they were never written, or lost")
        } else {
            format!("the bytes at {offset} are not what was written there")
        })
    }

    /// Looks at every header of a block: for one in a while, outside of what is timed.
    pub(crate) fn look_at_all(&mut self, contents: Option<Contents>, offset: u64, bytes: &[u8]) {
        let Some(contents) = contents else { return };
        if bytes.len() < BLOCK_BYTES {
            return self.look(Some(contents), offset, bytes);
        }
        self.verified += 1;
        if let Err(text) = contents.verify_headers(offset, bytes) {
            self.wrong.get_or_insert(text);
        }
    }

    /// An eviction that left nothing.
    pub(crate) fn chilled(&mut self, residency: Residency) {
        self.chilled += 1;
        self.source = residency.source;
    }

    /// Before a block of samples: what the kernel and the device have counted until now.
    pub(crate) fn begin(&mut self, target: &Target, path: &str) {
        if reaches_the_device(path) {
            self.device.begin(&target.device);
        }
        self.before = ProcessCounters::now();
    }

    /// After a block of samples that moved so many bytes.
    pub(crate) fn end(&mut self, target: &Target, direction: Direction, bytes: u64) {
        self.device.end(&target.device, direction, bytes);
        self.moved += bytes;
        if let (Some(before), Some(now)) = (self.before.take(), ProcessCounters::now()) {
            let since = now.since(before);
            self.count(match direction {
                Direction::Read => since.read_bytes,
                Direction::Write => since.write_bytes,
            });
            self.watched += bytes;
        }
    }

    /// As if so many bytes had been moved, and so many counted.
    #[cfg(test)]
    pub(crate) fn of_counts(moved: u64, counted: Option<u64>) -> Self {
        Self {
            moved,
            watched: moved,
            counted,
            ..Self::default()
        }
    }

    fn count(&mut self, bytes: u64) {
        *self.counted.get_or_insert(0) += bytes;
    }

    /// What was seen of other blocks on the same way.
    pub(crate) fn join(&mut self, other: Self) {
        self.verified += other.verified;
        if let Some(text) = other.wrong {
            self.wrong.get_or_insert(text);
        }
    }

    /// Bytes that the kernel counted.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        self.counted
    }

    /// As checks of a record. `path` decides which: a cold figure needs its evictions, a direct or cold one the kernel's count.
    pub(crate) fn checks(&self, target: &Target, path: &str, direction: Direction) -> Vec<Check> {
        let mut checks = vec![written_extents(&target.test.extents)];
        // What was written is looked at where it was read back.
        if direction == Direction::Read || self.verified > 0 {
            checks.extend(self.contents_check(target.contents().is_some()));
        }
        if path == super::COLD {
            checks.push(self.evicted_check());
        }
        if path == DIRECT {
            checks.push(trial_check(target));
        }
        if path != WARM {
            checks.push(self.counted_check(direction));
        }
        if reaches_the_device(path) {
            checks.push(self.device.check(&target.device));
        }
        checks
    }

    /// `None` for a file of the user's, of which nobody knows what is in it.
    fn contents_check(&self, known: bool) -> Option<Check> {
        known.then(|| Check {
            name: "contents verified".to_owned(),
            ok: self.wrong.is_none() && self.verified > 0,
            detail: match &self.wrong {
                Some(text) => text.clone(),
                None => format!("{} blocks read held what was written there", self.verified),
            },
        })
    }

    fn evicted_check(&self) -> Check {
        Check {
            name: "evicted".to_owned(),
            ok: self.chilled > 0,
            detail: format!("evicted 100.0 % ({}) before {} blocks", self.source, self.chilled),
        }
    }

    fn counted_check(&self, direction: Direction) -> Check {
        let (verb, counted) = match direction {
            Direction::Read => ("read", "fetched from storage"),
            Direction::Write => ("written", "sent towards storage"),
        };
        match self.counted {
            Some(bytes) => Check {
                name: "counted by the kernel".to_owned(),
                ok: bytes >= self.watched && self.moved > 0,
                detail: format!("{} bytes {verb}, {bytes} {counted} (/proc/self/io)", self.watched),
            },
            None => Check {
                name: "counted by the kernel".to_owned(),
                ok: self.moved > 0,
                detail: format!("{} bytes {verb}; this kernel does not count", self.moved),
            },
        }
    }
}

/// No byte of the file is a hole or only reserved.
pub(crate) fn written_extents(extents: &Extents) -> Check {
    let found = extents.all_written();
    Check {
        name: "extents written".to_owned(),
        ok: found.is_ok(),
        detail: match found {
            Err(text) => text,
            Ok(()) => format!(
                "{} bytes in {} pieces, none only reserved{}",
                extents.written_bytes,
                extents.pieces,
                if extents.exact {
                    ""
                } else {
                    " as far as this file system tells"
                }
            ),
        },
    }
}

fn trial_check(target: &Target) -> Check {
    let found = match &target.test.direct {
        Err(reason) => Err(reason.clone()),
        Ok(direct) => match &direct.evidence {
            Some(evidence) => evidence.is_direct(),
            None => Ok("accepted; the user's file is not tried, the kernel's count decides".to_owned()),
        },
    };
    Check {
        name: "direct".to_owned(),
        ok: found.is_ok(),
        detail: found.unwrap_or_else(|text| text),
    }
}

/// An engine, how many buffers it has, and what was lost by choosing it.
struct Chosen {
    engine: Box<dyn Engine>,
    slots: u32,
    flag: Option<String>,
}

/// Opens the engine for a depth: one system call after the other at depth 1, else `io_uring`, else threads, with a flag that says so. `slots`
/// buffers, at least the depth.
///
/// # Errors
/// When none can be had.
fn choose_engine(
    target: &Target,
    file: &Arc<OwnedFd>,
    depth: u32,
    slots: u32,
    block_bytes: u64,
    alignment: u64,
) -> Result<Chosen, ProbeError> {
    let block = usize::try_from(block_bytes)
        .map_err(|_| ProbeError::Other("a block larger than memory can be".to_owned()))?;
    let aligned = usize::try_from(alignment)
        .unwrap_or(BLOCK_BYTES)
        .next_power_of_two();
    let open = |kind, slots| open_engine(kind, file, slots, block, aligned);
    if depth <= 1 {
        let slots = slots.max(1);
        return Ok(Chosen {
            engine: open(EngineKind::Psync, slots).map_err(refused)?,
            slots,
            flag: None,
        });
    }
    let slots = slots.max(depth);
    let uring = || {
        #[cfg(test)]
        if target.without_uring {
            return Err(StorageError::Refused("a test forbids io_uring".to_owned()));
        }
        open(EngineKind::Uring, slots)
    };
    match uring() {
        Ok(engine) => Ok(Chosen {
            engine,
            slots,
            flag: None,
        }),
        Err(StorageError::Refused(reason)) => Ok(Chosen {
            engine: open_threads(file, depth, &target.cpus, slots, block, aligned).map_err(refused)?,
            slots,
            flag: Some(format!(
                "degraded: a thread for each transfer under way, because {reason}"
            )),
        }),
        Err(error) => Err(refused(error)),
    }
}

/// Blocks of the target, in some order, as work for [`latlab_harness::Block::in_flight`].
///
/// Reads are looked at when they have ended. What is written is made ready before: [`Self::prepare`], then as many operations as it says.
pub(crate) struct Flow {
    engine: Box<dyn Engine>,
    places: Places,
    direction: Direction,
    contents: Option<Contents>,
    block_bytes: u64,
    /// Buffers that may be taken, of writes only those with their contents.
    ready: VecDeque<u32>,
    /// Of writes: buffers that wait for [`Self::prepare`].
    spent: Vec<u32>,
    /// For each buffer, where in the file and for whom.
    offsets: Vec<u64>,
    owners: Vec<u32>,
    under_way: usize,
    ended: Vec<u32>,
    /// What was seen.
    pub(crate) evidence: Evidence,
    /// A loss that every record of this flow must name.
    pub(crate) flag: Option<String>,
}

impl Flow {
    /// Reads in the order of `places`.
    ///
    /// # Errors
    /// When there is no direct I/O, or no engine.
    pub(crate) fn reading(
        target: &Target,
        path: &str,
        depth: u32,
        block_bytes: u64,
        places: Places,
    ) -> Result<Self, ProbeError> {
        Self::open(target, path, Direction::Read, [depth, depth], block_bytes, places)
    }

    /// Writes the file's own contents in the order of `places`, `slots` blocks (at least the depth) between two calls of [`Self::prepare`].
    ///
    /// # Errors
    /// As [`Self::reading`], and for a file of the user's.
    pub(crate) fn writing(
        target: &Target,
        path: &str,
        depth: u32,
        slots: u32,
        block_bytes: u64,
        places: Places,
    ) -> Result<Self, ProbeError> {
        if target.contents().is_none() {
            return Err(ProbeError::Other("a file of the user's is only read".to_owned()));
        }
        if !block_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return Err(ProbeError::Other(
                "blocks that are written are multiples of 4 KiB".to_owned(),
            ));
        }
        Self::open(
            target,
            path,
            Direction::Write,
            [depth, slots],
            block_bytes,
            places,
        )
    }

    fn open(
        target: &Target,
        path: &str,
        direction: Direction,
        [depth, slots]: [u32; 2],
        block_bytes: u64,
        places: Places,
    ) -> Result<Self, ProbeError> {
        let (file, alignment) = target.file(path)?;
        let Chosen { engine, slots, flag } =
            choose_engine(target, &file, depth, slots, block_bytes, alignment)?;
        let all = 0..slots;
        let (ready, spent) = match direction {
            Direction::Read => (all.collect(), Vec::new()),
            Direction::Write => (VecDeque::new(), all.collect()),
        };
        Ok(Self {
            engine,
            places,
            direction,
            contents: target.contents(),
            block_bytes,
            ready,
            spent,
            offsets: vec![0; slots as usize],
            owners: vec![0; slots as usize],
            under_way: 0,
            ended: Vec::with_capacity(slots as usize),
            evidence: Evidence::default(),
            flag,
        })
    }

    /// Gives engine and buffers back, and the order of blocks with what was seen to who goes on with them.
    pub(crate) fn end(self) -> (Places, Evidence) {
        (self.places, self.evidence)
    }

    /// `psync`, `io_uring`, `threads`.
    pub(crate) fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// Untimed, before a block of samples that writes: takes the bytes of up to `operations` from the budget, fills buffers for them, and says
    /// for how many.
    ///
    /// # Errors
    /// When the budget is spent, with that reason.
    pub(crate) fn prepare(&mut self, budget: &Budget, operations: u64) -> Result<u64, ProbeError> {
        let Some(contents) = self.contents else {
            return Err(ProbeError::Other("a file of the user's is only read".to_owned()));
        };
        let wanted = usize::try_from(operations).unwrap_or(usize::MAX);
        // What is ready already was paid for.
        let missing = wanted
            .min(self.offsets.len())
            .saturating_sub(self.ready.len())
            .min(self.spent.len());
        budget.spend(missing as u64 * self.block_bytes).map_err(refused)?;
        for slot in self.spent.drain(..missing) {
            let offset = self.places.next();
            contents.fill(offset, self.engine.buffer(slot).bytes_mut());
            self.offsets[slot as usize] = offset;
            self.ready.push_back(slot);
        }
        Ok(self.ready.len().min(wanted) as u64)
    }

    fn reap_once(&mut self, patience: Patience, done: &mut dyn FnMut(u32)) -> Result<usize, ProbeError> {
        let (owners, ended) = (&self.owners, &mut self.ended);
        let reaped = self.engine.reap(patience, &mut |slot| {
            done(owners[slot as usize]);
            ended.push(slot);
        });
        let count = self.ended.len();
        self.under_way = self.under_way.saturating_sub(count);
        for slot in self.ended.drain(..) {
            match self.direction {
                Direction::Read => {
                    let offset = self.offsets[slot as usize];
                    self.evidence
                        .look(self.contents, offset, self.engine.buffer(slot).bytes());
                    self.ready.push_back(slot);
                }
                Direction::Write => self.spent.push(slot),
            }
        }
        reaped.map_err(refused)?;
        Ok(count)
    }
}

impl Queue for Flow {
    fn submit(&mut self, token: u32) -> Result<(), ProbeError> {
        let slot = self.ready.pop_front().ok_or_else(|| {
            ProbeError::Other("more operations than blocks that were made ready".to_owned())
        })?;
        if self.direction == Direction::Read {
            self.offsets[slot as usize] = self.places.next();
        }
        self.owners[slot as usize] = token;
        self.engine
            .submit(Transfer {
                token: slot,
                offset: self.offsets[slot as usize],
                direction: self.direction,
            })
            .map_err(refused)?;
        self.under_way += 1;
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut dyn FnMut(u32)) -> Result<(), ProbeError> {
        if wait != Wait::ForOne {
            return self.reap_once(patience(wait), done).map(|_| ());
        }
        // A signal may end a wait early; a device that is gone must not hang the run.
        let begun = Instant::now();
        while self.under_way > 0 {
            if self.reap_once(Patience::AtMost(SILENT), done)? > 0 {
                return Ok(());
            }
            if begun.elapsed() >= SILENT {
                return Err(ProbeError::Other(format!(
                    "the disk has not answered for {} s",
                    SILENT.as_secs()
                )));
            }
        }
        Ok(())
    }
}

/// Times and bytes of a point whose session times its operations one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed {
    /// ns, as many as a median needs.
    times: Vec<f64>,
    total_ns: f64,
    extra_ns: f64,
    bytes: u64,
    /// Bytes and time up to the end of the last block of samples.
    ended: (u64, f64),
    /// Slowest and fastest block, bytes a second.
    between_blocks: Option<[f64; 2]>,
}

/// Times that are kept for a median.
const TIMES: usize = 4_096;

impl Timed {
    /// One operation.
    pub(crate) fn add(&mut self, ns: f64, bytes: u64) {
        if self.times.len() < TIMES {
            self.times.push(ns);
        }
        self.total_ns += ns;
        self.bytes += bytes;
    }

    /// Time that belongs to all operations, such as a flush at their end.
    pub(crate) fn extra(&mut self, ns: f64) {
        self.extra_ns += ns;
        self.total_ns += ns;
    }

    /// All of [`Self::extra`], ns; `None` when there was none.
    pub(crate) fn extra_ns(&self) -> Option<f64> {
        (self.extra_ns > 0.0).then_some(self.extra_ns)
    }

    /// Ends a block of samples: its own rate is one repeat.
    pub(crate) fn end_block(&mut self) {
        let (bytes, ns) = (self.bytes - self.ended.0, self.total_ns - self.ended.1);
        self.ended = (self.bytes, self.total_ns);
        let rate = bytes as f64 * 1e9 / ns.max(1.0);
        let [slowest, fastest] = self.between_blocks.unwrap_or([rate, rate]);
        self.between_blocks = Some([slowest.min(rate), fastest.max(rate)]);
    }

    /// Rate of the slowest and of the fastest block, bytes a second.
    pub(crate) fn between_blocks(&self) -> Option<[f64; 2]> {
        self.between_blocks
    }

    /// All bytes over all time.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.total_ns.max(1.0)
    }

    /// Median time of an operation, ns.
    pub(crate) fn median_ns(&self) -> Option<f64> {
        let mut sorted = self.times.clone();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then(|| latlab_stats::quantile(&sorted, 0.5))
    }

    /// For the proof.
    pub(crate) fn work(&self, evidence: &Evidence) -> Work {
        Work {
            bytes: self.bytes,
            device_bytes: evidence.device_bytes(),
            ..Work::default()
        }
    }

    /// What counts as slow for an operation of so many bytes, ns: about ten times what it needs, so that the tail is kept and the body is not.
    pub(crate) fn tail_ns(memory: bool, bytes: u64) -> f64 {
        if memory {
            20_000.0 + bytes as f64
        } else {
            1e6 + bytes as f64 * 10.0
        }
    }
}

/// That a call moved the whole block.
pub(crate) fn whole(
    moved: Result<usize, rustix::io::Errno>,
    length: usize,
    what: &str,
) -> Result<(), ProbeError> {
    match moved {
        Ok(moved) if moved == length => Ok(()),
        Ok(moved) => Err(ProbeError::Proof(format!(
            "{what}: {moved} of {length} bytes were moved"
        ))),
        Err(errno) => Err(ProbeError::System {
            what: what.to_owned(),
            source: errno.into(),
        }),
    }
}
