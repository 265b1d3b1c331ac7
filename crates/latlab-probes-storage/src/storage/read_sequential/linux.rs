//! The reads, one system call each.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point, Profile};
use latlab_storage::{Buffer, Direction, ProcessCounters, missing};
use serde_json::json;

use super::{COLD, DIRECT, WARM, stretch, warm_bytes};
use crate::disk::{Asked, Evidence, Places, Target, Timed, answered_by_a_device, refused, whole};

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Reading::open(env)?))
}

/// In what blocks what is to be warm is read: what one call asks for beyond what was read ahead comes as single pages, so not in large ones.
const WARMED_BY: usize = 1 << 16;
/// How often what is to be warm is read before it is given up.
const ROUNDS: u32 = 3;
/// How often a warm stretch is read that the kernel takes pages of: of stretches of 128 MiB one in five was met by that on a machine whose memory is watched.
const TRIES: u32 = 8;

/// What is known of one point.
struct State {
    point: Point,
    path: String,
    block_bytes: u64,
    file: Arc<OwnedFd>,
    /// Where each block of samples begins.
    stretches: Places,
    stretch_bytes: u64,
    evidence: Evidence,
    timed: Timed,
    /// Blocks of samples whose bytes lay in the page cache.
    resident: u64,
    /// Stretches that do not count: pages of theirs had to be fetched.
    again: u64,
}

pub(super) struct Reading {
    target: Target,
    stamps: Stamps,
    profile: Profile,
    seed: u64,
    states: Vec<State>,
    selected: usize,
    buffer: Buffer,
    /// Bytes at the file's begin that are in the page cache, and nothing else of it.
    warm: u64,
    /// As if the kernel took all pages back before so many readings.
    #[cfg(test)]
    pub(super) taken_back: u32,
}

impl Reading {
    pub(super) fn open(env: &Env) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("simulated time does not pass on a disk".to_owned()))?;
        Ok(Self {
            target: Target::open(env)?,
            stamps,
            profile: env.settings.profile,
            seed: env.seed(0xD15C),
            states: Vec::new(),
            selected: 0,
            buffer: Buffer::new(1, 4096),
            warm: 0,
            #[cfg(test)]
            taken_back: 0,
        })
    }

    fn state(&mut self, point: &Point) -> Result<usize, ProbeError> {
        if let Some(place) = self.states.iter().position(|state| state.point == *point) {
            return Ok(place);
        }
        let (path, block_bytes, file) = self.target.file_of(point)?;
        let stretch_bytes = stretch(self.profile, self.target.test.bytes, &path, block_bytes);
        let within = if path == WARM {
            warm_bytes(self.profile, self.target.test.bytes, block_bytes)
        } else {
            self.target.test.bytes
        };
        let stretches = (within / stretch_bytes).max(1);
        self.states.push(State {
            point: point.clone(),
            stretches: Places::in_order(stretch_bytes, stretches, self.seed ^ block_bytes),
            path,
            block_bytes,
            file,
            stretch_bytes,
            evidence: Evidence::default(),
            timed: Timed::default(),
            resident: 0,
            again: 0,
        });
        Ok(self.states.len() - 1)
    }

    /// Puts the first `bytes` into the page cache, as a reader from front to back leaves them there: read ahead, in large folios. (Brought in
    /// as single pages they are three to four times slower to read: METHODOLOGY.md, "Warm reads".)
    fn warm_up(&mut self, bytes: u64) -> Result<(), ProbeError> {
        let file = Arc::clone(&self.target.test.file);
        let missing = || missing(&*file, bytes).map_err(refused);
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
            "{} of {bytes} bytes stay in the page cache after {ROUNDS} readings: the kernel takes pages back",
            bytes.saturating_sub(gone)
        )))
    }

    /// Reads a stretch, block after block; `each` gets the stamps of one.
    fn stretch(&mut self, begin: u64, each: &mut dyn FnMut(&mut Timed, u64, u64)) -> Result<(), ProbeError> {
        let contents = self.target.contents();
        let state = &mut self.states[self.selected];
        let bytes = self.buffer.bytes_mut();
        let mut offset = begin;
        state.evidence.begin(&self.target, &state.path);
        while offset < begin + state.stretch_bytes {
            let from = self.stamps.begin();
            let read = rustix::io::pread(&state.file, &mut *bytes, offset);
            let to = self.stamps.end();
            whole(read, bytes.len(), "reading a block")?;
            each(&mut state.timed, from, to);
            state.evidence.look(contents, offset, bytes);
            offset += state.block_bytes;
        }
        state.evidence.end(&self.target, Direction::Read, offset - begin);
        state.evidence.look_at_all(contents, offset - state.block_bytes, bytes);
        Ok(())
    }

    /// A stretch that the page cache answered. The kernel may take pages back meanwhile: what met such pages does not count and is read again.
    fn warm_block(&mut self, block: &mut Block, begin: u64) -> Result<(), ProbeError> {
        let fetched = || ProcessCounters::of_this_thread().map(|now| now.read_bytes);
        let block_bytes = self.states[self.selected].block_bytes;
        let mut stamps = Vec::new();
        for _ in 0..TRIES {
            stamps.clear();
            let before = fetched();
            #[cfg(test)]
            self.take_back();
            self.stretch(begin, &mut |_, from, to| stamps.push((from, to)))?;
            let answered = match before.zip(fetched()) {
                Some((then, now)) => now == then,
                None => missing(&*self.target.test.file, self.warm).map_err(refused)?.is_empty(),
            };
            let state = &mut self.states[self.selected];
            if answered {
                for &(from, to) in &stamps {
                    block.span(from, to);
                    state.timed.add(block.span_ns(from, to), block_bytes);
                }
                state.timed.end_block();
                state.resident += 1;
                return Ok(());
            }
            state.again += 1;
            let bytes = self.warm;
            self.warm_up(bytes)?;
        }
        Err(ProbeError::Proof(format!(
            "the kernel takes pages back: each of {TRIES} readings of the same stretch had to fetch some from storage (/proc/thread-self/io)"
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
fn read_through(file: &OwnedFd, chunk: &mut Buffer, part: Range<u64>) -> Result<(), ProbeError> {
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

impl AnySession for Reading {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = self.state(point)?;
        let state = &self.states[self.selected];
        let (path, block_bytes) = (state.path.clone(), state.block_bytes);
        let length = usize::try_from(block_bytes).unwrap_or(usize::MAX);
        if self.buffer.bytes().len() != length {
            self.buffer = Buffer::new(length, 4096);
        }
        match path.as_str() {
            WARM => self.warm_up(warm_bytes(self.profile, self.target.test.bytes, block_bytes)),
            COLD => self.target.read_ahead(true),
            _ => Ok(()),
        }
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let state = &mut self.states[self.selected];
        let (path, block_bytes) = (state.path.clone(), state.block_bytes);
        block.set_tail_threshold_ns(Timed::tail_ns(path == WARM, block_bytes));
        let begin = state.stretches.next();
        if path == WARM {
            return self.warm_block(block, begin);
        }
        block.set_waits();
        if path == COLD {
            self.warm = 0;
            let chilled = self.target.chill()?;
            self.states[self.selected].evidence.chilled(chilled);
        }
        self.stretch(begin, &mut |timed, from, to| {
            block.span(from, to);
            timed.add(block.span_ns(from, to), block_bytes);
        })?;
        self.states[self.selected].timed.end_block();
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(state) = self.states.iter().find(|state| state.point == *point) else {
            return Proof::default();
        };
        let mut checks = state.evidence.checks(&self.target, &state.path, Direction::Read);
        if state.path == WARM {
            checks.push(Check {
                name: "resident".to_owned(),
                ok: state.resident > 0,
                detail: format!(
                    "all of what was read lay in the page cache in {} blocks (nothing fetched by /proc/thread-self/io, or cachestat or mincore); {} readings for which the kernel \
                     had taken pages back do not count",
                    state.resident, state.again
                ),
            });
        }
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
                "device_time": (state.path == DIRECT)
                    .then(|| state.timed.device_time(&state.evidence, Asked::One(Direction::Read))),
            })),
            ..Proof::default()
        }
    }
}
