//! The reads, one system call each.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_probes_shared::Result;
use latlab_storage::{Buffer, Direction, ProcessCounters, missing};

use super::{Bandwidth, Blocks, COLD, DIRECT, ReadSequential, WARM, stretch, warm_bytes};
use crate::disk::{self, Asked, Target, Timed, answered_by_a_device, check, nth_stretch, stamps, whole};

/// In what blocks what is to be warm is read: what one call asks for beyond what was read ahead comes as
/// single pages, so not in large ones.
const WARMED_BY: usize = 1 << 16;
/// How often what is to be warm is read before it is given up.
const ROUNDS: u32 = 3;
/// How often a warm stretch is read that the kernel takes pages of: of stretches of 128 MiB one in five was
/// met by that on a machine whose memory is watched.
const TRIES: u32 = 8;

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    /// Blocks that were begun.
    begun: u64,
    disk: disk::Evidence,
    timed: Timed,
    /// Blocks of samples whose bytes lay in the page cache.
    resident: u64,
    /// Stretches that do not count: pages of theirs had to be fetched.
    again: u64,
}

/// The file that is read.
pub struct Session<'env> {
    env: &'env Env,
    target: Target,
    stamps: Stamps,
    buffer: Buffer,
    /// Bytes at the file's begin that are in the page cache, and nothing else of it.
    warm: u64,
    /// As if the kernel took all pages back before so many readings.
    #[cfg(test)]
    pub(super) taken_back: u32,
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Blocks]) -> Result<Session<'env>> {
    Ok(Session {
        env,
        stamps: stamps(env)?,
        target: Target::open(env)?,
        buffer: Buffer::new(1, 4096),
        warm: 0,
        #[cfg(test)]
        taken_back: 0,
    })
}

impl Session<'_> {
    /// Bytes of one block of samples, and of the part of the file in which they lie.
    fn stretch_of(&self, point: &Blocks) -> (u64, u64) {
        let (profile, all) = (self.env.settings.profile, self.target.test.bytes);
        let within = if point.path == WARM { warm_bytes(profile, all, point.block_bytes) } else { all };
        (stretch(profile, all, point.path, point.block_bytes), within)
    }

    /// Puts the first `bytes` into the page cache, as a reader from front to back leaves them there: read
    /// ahead, in large folios. (Brought in as single pages they are three to four times slower to read:
    /// docs/method/disk.md.)
    fn warm_up(&mut self, bytes: u64) -> Result<()> {
        let file = Arc::clone(&self.target.test.file);
        let missing = || missing(&*file, bytes);
        if self.warm == bytes && missing()?.is_empty() {
            return Ok(());
        }
        if self.warm != bytes {
            self.warm = 0;
            self.target.chill()?;
            self.target.read_ahead(true)?;
        }
        let mut chunk = Buffer::new(WARMED_BY, 4096);
        // The kernel may have taken pages back, now or in the next round: those alone are read.
        for _ in 0..ROUNDS {
            for gone in missing()? {
                read_through(&file, &mut chunk, gone.start..gone.end.min(bytes))?;
            }
            // Whoever reads the first page of what was read ahead starts the next reading: once, so now.
            read_through(&file, &mut chunk, 0..bytes)?;
            if missing()?.is_empty() {
                self.warm = bytes;
                return Ok(());
            }
        }
        let gone: u64 = missing()?.iter().map(|gone| gone.end - gone.start).sum();
        Err(ProbeError::Proof(format!(
            "{} of {bytes} bytes stay in the page cache after {ROUNDS} readings: the kernel reclaims pages",
            bytes.saturating_sub(gone)
        )))
    }

    /// Reads a stretch, block after block: when each began and ended.
    fn stretch(&mut self, point: &Blocks, evidence: &mut Evidence, begin: u64) -> Result<Vec<(u64, u64)>> {
        let contents = self.target.test.contents;
        let file = self.target.file_for(point.path, point.block_bytes)?;
        let end = begin + self.stretch_of(point).0;
        let bytes = self.buffer.bytes_mut();
        let mut offset = begin;
        let mut stamps = Vec::with_capacity(usize::try_from((end - begin) / point.block_bytes).unwrap_or(0));
        evidence.disk.begin(&self.target, point.path);
        while offset < end {
            let from = self.stamps.begin();
            let read = rustix::io::pread(&file, &mut *bytes, offset);
            let to = self.stamps.end();
            whole(read, bytes.len(), "reading a block")?;
            stamps.push((from, to));
            evidence.disk.verify(contents, offset, bytes);
            offset += point.block_bytes;
        }
        evidence.disk.end(&self.target, Direction::Read, offset - begin);
        evidence.disk.verify_all(contents, offset - point.block_bytes, bytes);
        Ok(stamps)
    }

    /// A stretch that the page cache answered. The kernel may take pages back meanwhile: what met such pages
    /// does not count and is read again.
    fn warm_stretch(
        &mut self,
        point: &Blocks,
        evidence: &mut Evidence,
        begin: u64,
    ) -> Result<Vec<(u64, u64)>> {
        for _ in 0..TRIES {
            let before = ProcessCounters::of_this_thread();
            #[cfg(test)]
            self.take_back();
            let stamps = self.stretch(point, evidence, begin)?;
            let answered = match ProcessCounters::fetched_since(before) {
                Some(fetched) => fetched == 0,
                None => missing(&*self.target.test.file, self.warm)?.is_empty(),
            };
            if answered {
                evidence.resident += 1;
                return Ok(stamps);
            }
            evidence.again += 1;
            let bytes = self.warm;
            self.warm_up(bytes)?;
        }
        Err(ProbeError::Proof(format!(
            "the kernel reclaims pages: each of {TRIES} readings of the same stretch had to fetch some from \
                storage (/proc/thread-self/io)"
        )))
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &OwnedFd {
        &self.target.test.file
    }

    #[cfg(test)]
    fn take_back(&mut self) {
        if self.taken_back > 0 {
            self.taken_back -= 1;
            self.target.test.evict().expect("evicted");
        }
    }
}

/// Reads a part of the file from front to back.
fn read_through(file: &OwnedFd, chunk: &mut Buffer, part: Range<u64>) -> Result<()> {
    let mut at = part.start;
    while at < part.end {
        let bytes = chunk.bytes_mut();
        let length = usize::try_from(part.end - at).map_or(bytes.len(), |left| left.min(bytes.len()));
        let read = rustix::io::pread(file, &mut bytes[..length], at);
        whole(read, length, "reading a block")?;
        at += length as u64;
    }
    Ok(())
}

impl harness::Session<ReadSequential> for Session<'_> {
    fn select(&mut self, point: &Blocks) -> Result<()> {
        self.target.file_for(point.path, point.block_bytes)?;
        let length = usize::try_from(point.block_bytes).unwrap_or(usize::MAX);
        if self.buffer.bytes().len() != length {
            self.buffer = Buffer::new(length, 4096);
        }
        match point.path {
            WARM => self.warm_up(self.stretch_of(point).1),
            COLD => self.target.read_ahead(true),
            _ => Ok(()),
        }
    }

    fn block(&mut self, point: &Blocks, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let Blocks { path, block_bytes, .. } = *point;
        block.set_tail_threshold_ns(Timed::tail_ns(path == WARM, block_bytes));
        let (stretch_bytes, within) = self.stretch_of(point);
        let seed = self.env.seed(0xD15C) ^ block_bytes;
        let begin = nth_stretch(within, stretch_bytes, seed, evidence.begun);
        evidence.begun += 1;
        let stamps = if path == WARM {
            self.warm_stretch(point, evidence, begin)?
        } else {
            block.set_waits();
            if path == COLD {
                self.warm = 0;
                evidence.disk.chilled(self.target.chill()?);
            }
            self.stretch(point, evidence, begin)?
        };
        // While reading ahead grows the stream is not yet what it will be.
        let (start, counted) = stamps.split_at(if path == COLD { stamps.len() / 2 } else { 0 });
        let started_ns = start.iter().map(|&(from, to)| block.span_ns(from, to)).sum();
        for &(from, to) in counted {
            block.span(from, to);
            evidence.timed.add(block.span_ns(from, to), block_bytes);
        }
        if path == COLD {
            evidence.timed.started(started_ns);
        }
        evidence.timed.end_block();
        Ok(())
    }

    fn proof(&mut self, point: &Blocks, evidence: &Evidence) -> Proof<Bandwidth> {
        let Evidence { disk, timed, resident, again, .. } = evidence;
        let mut checks = disk.checks(&self.target, point.path, Direction::Read);
        if point.path == WARM {
            let detail = format!(
                "everything read was in the page cache in {resident} blocks (nothing fetched by \
                    /proc/thread-self/io, or cachestat or mincore); {again} readings for which the \
                     kernel had reclaimed pages do not count"
            );
            checks.push(check("resident", *resident > 0, detail));
        }
        if point.path == DIRECT {
            checks.extend(timed.median_ns().map(answered_by_a_device));
        }
        let asked = (point.path == DIRECT).then_some(Asked::One(Direction::Read));
        let (work, flags) = (timed.work(disk), self.target.flags());
        Proof { work, flags, ..Proof::of(checks).with(timed.bandwidth(disk, asked)).by("psync") }
    }
}
