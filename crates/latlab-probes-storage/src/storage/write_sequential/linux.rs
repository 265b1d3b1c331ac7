//! The writes, one system call each, and the flushes.

use latlab_harness::{self as harness, Block, Env, ProbeError, Proof, Stamps};
use latlab_probes_shared::Result;
use latlab_storage::{BLOCK_BYTES, Buffer, Direction};
use rustix::fs::fsync;

use super::{Access, Blocks, DIRECT, Details, FSYNC_EACH, FSYNC_END, WriteSequential, stretch};
use crate::disk::{self, Asked, Target, Timed, answered_by_a_device, nth_stretch, stamps, system, whole};

/// What a write of this path asks of the device before it returns.
fn asked_of(path: Access) -> Option<Asked> {
    match path {
        DIRECT => Some(Asked::One(Direction::Write)),
        FSYNC_EACH => Some(Asked::Durable),
        _ => None,
    }
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    /// Blocks that were begun.
    begun: u64,
    disk: disk::Evidence,
    timed: Timed,
}

/// The file that is written.
pub struct Session<'env> {
    env: &'env Env,
    target: Target,
    stamps: Stamps,
    /// One block, filled anew before each write: from memory that was written long before, 1 MiB took 1.4
    /// times as long.
    buffer: Buffer,
    back: Buffer,
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Blocks]) -> Result<Session<'env>> {
    let stamps = stamps(env)?;
    let target = Target::open(env)?;
    // Pages that were left by others would make the first writes unlike the later ones.
    target.test.evict()?;
    let (buffer, back) = (Buffer::new(1, 4096), Buffer::new(BLOCK_BYTES, BLOCK_BYTES));
    Ok(Session { env, target, stamps, buffer, back })
}

impl harness::Session<WriteSequential> for Session<'_> {
    fn select(&mut self, point: &Blocks) -> Result<()> {
        self.target.file_for(point.path, point.block_bytes)?;
        let length = usize::try_from(point.block_bytes).unwrap_or(usize::MAX).max(BLOCK_BYTES);
        if self.buffer.bytes().len() != length {
            self.buffer = Buffer::new(length, 4096);
        }
        self.target.read_ahead(false)
    }

    fn block(&mut self, point: &Blocks, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let Blocks { path, block_bytes, .. } = *point;
        block.set_waits();
        let contents = self
            .target
            .test
            .contents
            .ok_or_else(|| ProbeError::Other("a user's file (--file) is only read".to_owned()))?;
        let stretch_bytes = stretch(self.env.settings.profile, path, block_bytes);
        let (seed, nth) = (self.env.seed(block_bytes), evidence.begun);
        let begin = nth_stretch(self.target.test.bytes, stretch_bytes, seed, nth);
        evidence.begun += 1;
        self.env.disk.budget().spend(stretch_bytes)?;
        block.set_tail_threshold_ns(Timed::tail_ns(false, block_bytes));
        let file = &self.target.file_for(path, block_bytes)?;
        let flush = |what: &str| fsync(file).map_err(system(what));
        let (each, end) = (path == FSYNC_EACH, path == FSYNC_END);
        let length = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        evidence.disk.begin(&self.target, path);
        let mut offset = begin;
        while offset < begin + stretch_bytes {
            // Contents begin at multiples of 4 KiB; smaller blocks are parts of such a one.
            let within = usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or(0);
            contents.fill(offset - within as u64, self.buffer.bytes_mut());
            let bytes = &self.buffer.bytes()[within..within + length];
            let from = self.stamps.begin();
            let written = rustix::io::pwrite(file, bytes, offset);
            let mut to = self.stamps.end();
            whole(written, length, "writing a block")?;
            if each {
                let written = to;
                flush("flushing a block")?;
                to = self.stamps.end();
                block.channel("write", from, written);
                block.channel("fsync", written, to);
            }
            block.span(from, to);
            evidence.timed.add(block.span_ns(from, to), block_bytes);
            offset += block_bytes;
        }
        if end {
            let from = self.stamps.begin();
            flush("flushing the blocks")?;
            let to = self.stamps.end();
            block.channel("fsync", from, to);
            evidence.timed.extra(block.span_ns(from, to));
        }
        evidence.timed.end_block();
        evidence.disk.end(&self.target, Direction::Write, offset - begin);
        // Untimed: nothing of this block is left for the next one to pay, and what is read back comes from
        // the disk.
        if path != DIRECT {
            self.target.test.evict()?;
        }
        let last = (offset - 1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        for at in [begin, last] {
            let read = rustix::io::pread(&*self.target.test.file, self.back.bytes_mut(), at);
            whole(read, BLOCK_BYTES, "reading a block back")?;
            evidence.disk.verify(Some(contents), at, self.back.bytes());
        }
        Ok(())
    }

    fn proof(&mut self, point: &Blocks, evidence: &Evidence) -> Proof<Details> {
        let Evidence { disk, timed, .. } = evidence;
        let mut checks = disk.checks(&self.target, point.path, Direction::Write);
        if point.path == DIRECT {
            checks.extend(timed.median_ns().map(answered_by_a_device));
        }
        let details =
            Details { bandwidth: timed.bandwidth(disk, asked_of(point.path)), fsync_ns: timed.extra_ns() };
        let (work, flags) = (timed.work(disk), self.target.flags());
        Proof { work, flags, ..Proof::of(checks).with(details).by("psync") }
    }
}
