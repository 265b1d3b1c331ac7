//! The writes, one system call each, and the flushes.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Point, Profile};
use latlab_storage::{BLOCK_BYTES, Buffer, Direction};
use rustix::fs::fsync;
use serde_json::json;

use super::{DIRECT, FSYNC_EACH, FSYNC_END, stretch};
use crate::disk::{Asked, Evidence, Places, Target, Timed, answered_by_a_device, refused, whole};

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Writing::open(env)?))
}

/// What a write of this path asks of the device before it returns.
fn asked_of(path: &str) -> Option<Asked> {
    match path {
        DIRECT => Some(Asked::One(Direction::Write)),
        FSYNC_EACH => Some(Asked::Durable),
        _ => None,
    }
}

struct State {
    point: Point,
    path: String,
    block_bytes: u64,
    file: Arc<OwnedFd>,
    stretches: Places,
    stretch_bytes: u64,
    evidence: Evidence,
    timed: Timed,
}

pub(super) struct Writing<'env> {
    env: &'env Env,
    target: Target,
    stamps: Stamps,
    profile: Profile,
    states: Vec<State>,
    selected: usize,
    /// One block, filled anew before each write: from memory that was written long before, 1 MiB took 1.4 times as long.
    buffer: Buffer,
    back: Buffer,
}

impl<'env> Writing<'env> {
    pub(super) fn open(env: &'env Env) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("simulated time does not pass on a disk".to_owned()))?;
        let target = Target::open(env)?;
        // Pages that were left by others would make the first writes unlike the later ones.
        target.test.evict().map_err(refused)?;
        Ok(Self {
            env,
            target,
            stamps,
            profile: env.settings.profile,
            states: Vec::new(),
            selected: 0,
            buffer: Buffer::new(1, 4096),
            back: Buffer::new(BLOCK_BYTES, BLOCK_BYTES),
        })
    }

    fn state(&mut self, point: &Point) -> Result<usize, ProbeError> {
        if let Some(place) = self.states.iter().position(|state| state.point == *point) {
            return Ok(place);
        }
        let (path, block_bytes, file) = self.target.file_of(point)?;
        let stretch_bytes = stretch(self.profile, &path, block_bytes);
        let stretches = (self.target.test.bytes / stretch_bytes).max(1);
        self.states.push(State {
            point: point.clone(),
            stretches: Places::in_order(stretch_bytes, stretches, self.env.seed(block_bytes)),
            path,
            block_bytes,
            file,
            stretch_bytes,
            evidence: Evidence::default(),
            timed: Timed::default(),
        });
        Ok(self.states.len() - 1)
    }
}

impl AnySession for Writing<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = self.state(point)?;
        let block_bytes = self.states[self.selected].block_bytes;
        let length = usize::try_from(block_bytes).unwrap_or(usize::MAX).max(BLOCK_BYTES);
        if self.buffer.bytes().len() != length {
            self.buffer = Buffer::new(length, 4096);
        }
        self.target.read_ahead(false)
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        block.set_waits();
        let contents = self
            .target
            .contents()
            .ok_or_else(|| ProbeError::Other("a file of the user's (--file) is only read".to_owned()))?;
        let state = &mut self.states[self.selected];
        let begin = state.stretches.next();
        self.env.disk.budget().spend(state.stretch_bytes).map_err(refused)?;
        block.set_tail_threshold_ns(Timed::tail_ns(false, state.block_bytes));
        let file = &state.file;
        let flush = |what| {
            fsync(file).map_err(|errno| ProbeError::System { what: String::from(what), source: errno.into() })
        };
        let (each, end) = (state.path == FSYNC_EACH, state.path == FSYNC_END);
        let length = usize::try_from(state.block_bytes).unwrap_or(usize::MAX);
        state.evidence.begin(&self.target, &state.path);
        let mut offset = begin;
        while offset < begin + state.stretch_bytes {
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
            state.timed.add(block.span_ns(from, to), state.block_bytes);
            offset += state.block_bytes;
        }
        if end {
            let from = self.stamps.begin();
            flush("flushing the blocks")?;
            let to = self.stamps.end();
            block.channel("fsync", from, to);
            state.timed.extra(block.span_ns(from, to));
        }
        state.timed.end_block();
        state.evidence.end(&self.target, Direction::Write, offset - begin);
        // Untimed: nothing of this block is left for the next one to pay, and what is read back comes from the disk.
        if state.path != DIRECT {
            self.target.test.evict().map_err(refused)?;
        }
        let last = (offset - 1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        for at in [begin, last] {
            let read = rustix::io::pread(&*self.target.test.file, self.back.bytes_mut(), at);
            whole(read, BLOCK_BYTES, "reading a block back")?;
            state.evidence.look(Some(contents), at, self.back.bytes());
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(state) = self.states.iter().find(|state| state.point == *point) else {
            return Proof::default();
        };
        let mut checks = state.evidence.checks(&self.target, &state.path, Direction::Write);
        if state.path == DIRECT {
            checks.extend(state.timed.median_ns().map(answered_by_a_device));
        }
        Proof {
            checks,
            work: state.timed.work(&state.evidence),
            engine: Some("psync".to_owned()),
            flags: self.target.flags(),
            findings: Some(json!({
                "bytes_per_s": state.timed.bytes_per_s(),
                "bytes_per_s_between_blocks": state.timed.between_blocks(),
                "fsync_ns": state.timed.extra_ns(),
                "device_time": asked_of(&state.path).map(|asked| state.timed.device_time(&state.evidence, asked)),
            })),
            ..Proof::default()
        }
    }
}
