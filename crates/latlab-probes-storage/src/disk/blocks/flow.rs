//! Transfers that are under way at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use latlab_harness::{ProbeError, Queue, Wait};
use latlab_storage::{BLOCK_BYTES, Budget, Contents, Direction, Engine, EngineKind, StorageError, Transfer};

use super::evidence::Evidence;
use super::places::Places;
use super::target::Target;
use crate::disk::words::Access;

/// A device that has not answered for so long will not.
const SILENT: Duration = Duration::from_secs(30);

/// Opens the engine for a depth: one system call after the other at depth 1, else
/// `io_uring`, else threads, with a flag that says so. `slots` buffers, at least the depth.
fn choose_engine(
    target: &Target,
    path: Access,
    depth: u32,
    slots: u32,
    block_bytes: u64,
) -> Result<(Engine, Option<String>), ProbeError> {
    let (file, alignment) = target.file(path)?;
    let block = usize::try_from(block_bytes)
        .map_err(|_| ProbeError::Other("a block larger than memory can be".to_owned()))?;
    let aligned = usize::try_from(alignment).unwrap_or(BLOCK_BYTES).next_power_of_two();
    let open = |kind| Engine::open(kind, &file, slots, block, aligned);
    if depth <= 1 {
        return Ok((open(EngineKind::Psync)?, None));
    }
    let uring = || {
        #[cfg(test)]
        if target.without_uring {
            return Err(StorageError::Refused("a test forbids io_uring".to_owned()));
        }
        open(EngineKind::Uring)
    };
    match uring() {
        Ok(engine) => Ok((engine, None)),
        Err(StorageError::Refused(reason)) => Ok((
            open(EngineKind::Threads { count: depth, cpus: &target.cpus })?,
            Some(format!("degraded: a thread for each transfer under way, because {reason}")),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Blocks of the target, in some order, as work for [`latlab_harness::Block::in_flight`].
///
/// Reads are looked at when they have ended. What is written is made ready before: [`Self::prepare`], then as
/// many operations as it says.
pub(crate) struct Flow {
    engine: Engine,
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
    /// What was seen since the last block of samples.
    pub(crate) evidence: Evidence,
    /// A loss that every record of this flow must name.
    pub(crate) flag: Option<String>,
}

impl Flow {
    /// Reads, or writes the file's own contents, in the order of `places`. `slots`: blocks between two calls
    /// of [`Self::prepare`], at least the depth.
    pub(crate) fn open(
        target: &Target,
        path: Access,
        direction: Direction,
        [depth, slots]: [u32; 2],
        block_bytes: u64,
        places: Places,
    ) -> Result<Self, ProbeError> {
        if direction == Direction::Write && !block_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return Err(ProbeError::Other("blocks that are written are multiples of 4 KiB".to_owned()));
        }
        let slots = slots.max(depth).max(1);
        let (engine, flag) = choose_engine(target, path, depth, slots, block_bytes)?;
        let all = 0..slots;
        let (ready, spent) = match direction {
            Direction::Read => (all.collect(), Vec::new()),
            Direction::Write => (VecDeque::new(), all.collect()),
        };
        Ok(Self {
            engine,
            places,
            direction,
            contents: target.test.contents,
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

    /// Gives engine and buffers back, and the order of blocks to who goes on with it.
    pub(crate) fn end(self) -> Places {
        self.places
    }

    /// Takes a block of samples, of which this evidence gets what is seen, with what was seen since the block
    /// before.
    pub(crate) fn seen_by<T>(&mut self, evidence: &mut Evidence, take: impl FnOnce(&mut Self) -> T) -> T {
        evidence.join(std::mem::take(&mut self.evidence));
        std::mem::swap(&mut self.evidence, evidence);
        let taken = take(self);
        std::mem::swap(&mut self.evidence, evidence);
        taken
    }

    /// `psync`, `io_uring`, `threads`.
    pub(crate) fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// Untimed, before a block of samples that writes: takes the bytes of up to `operations` from the budget,
    /// fills buffers for them, and says for how many.
    pub(crate) fn prepare(&mut self, budget: &Budget, operations: u64) -> Result<u64, ProbeError> {
        let Some(contents) = self.contents else {
            return Err(ProbeError::Other("a user's file is only read".to_owned()));
        };
        let wanted = usize::try_from(operations).unwrap_or(usize::MAX);
        // What is ready already was paid for.
        let missing = wanted.min(self.offsets.len()).saturating_sub(self.ready.len()).min(self.spent.len());
        budget.spend(missing as u64 * self.block_bytes)?;
        for slot in self.spent.drain(..missing) {
            let offset = self.places.next();
            contents.fill(offset, self.engine.buffer(slot).bytes_mut());
            self.offsets[slot as usize] = offset;
            self.ready.push_back(slot);
        }
        Ok(self.ready.len().min(wanted) as u64)
    }

    fn reap_once(&mut self, patience: Duration, done: &mut dyn FnMut(u32)) -> Result<usize, ProbeError> {
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
                    self.evidence.verify(self.contents, offset, self.engine.buffer(slot).bytes());
                    self.ready.push_back(slot);
                }
                Direction::Write => self.spent.push(slot),
            }
        }
        reaped?;
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
        self.engine.submit(Transfer {
            token: slot,
            offset: self.offsets[slot as usize],
            direction: self.direction,
        })?;
        self.under_way += 1;
        Ok(())
    }

    fn reap(&mut self, wait: Wait, done: &mut dyn FnMut(u32)) -> Result<(), ProbeError> {
        match wait {
            Wait::No => return self.reap_once(Duration::ZERO, done).map(drop),
            Wait::AtMostNs(ns) => {
                return self.reap_once(Duration::from_secs_f64(ns.max(0.0) / 1e9), done).map(drop);
            }
            Wait::ForOne => {}
        }
        // A signal may end a wait early; a device that is gone must not hang the run.
        let begun = Instant::now();
        while self.under_way > 0 && self.reap_once(SILENT, done)? == 0 {
            if begun.elapsed() >= SILENT {
                let silent = format!("the disk has not answered for {} s", SILENT.as_secs());
                return Err(ProbeError::Other(silent));
            }
        }
        Ok(())
    }
}
