//! The reads, one system call each.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use latlab_harness::{Block, Env, ProbeError, Proof, Session, Stamps};
use latlab_record::{Check, Point, Profile};
use latlab_storage::{Buffer, Direction, ProcessCounters};
use serde_json::json;

use super::{COLD, DIRECT, WARM, stretch, warm_bytes};
use crate::disk::{Evidence, Places, Target, Timed, answered_by_a_device, refused, whole};

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn Session + 'env>, ProbeError> {
    Ok(Box::new(Reading::open(env)?))
}

/// How often what is to be warm is read before it is given up.
const ROUNDS: u32 = 3;

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
    /// Blocks of samples whose bytes lay in the page cache, before and after.
    resident: u64,
    blocks: u64,
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
            blocks: 0,
        });
        Ok(self.states.len() - 1)
    }

    /// Puts exactly the first `bytes` into the page cache.
    fn warm_up(&mut self, bytes: u64) -> Result<(), ProbeError> {
        if self.warm == bytes && self.resident_bytes()? >= bytes {
            return Ok(());
        }
        self.warm = 0;
        self.target.chill()?;
        self.target.read_ahead(false)?;
        let mut chunk = Buffer::new(1 << 20, 4096);
        let mut resident = 0;
        // On a busy machine the kernel took a few pages back meanwhile: the next round brings those.
        for _ in 0..ROUNDS {
            let mut at = 0;
            while at < bytes {
                let length = usize::try_from((bytes - at).min(1 << 20)).unwrap_or(1 << 20);
                read_whole(&self.target.test.file, &mut chunk.bytes_mut()[..length], at)?;
                at += length as u64;
            }
            resident = self.resident_bytes()?;
            if resident >= bytes {
                self.warm = bytes;
                return Ok(());
            }
        }
        Err(ProbeError::Proof(format!(
            "{resident} of {bytes} bytes stay in the page cache after {ROUNDS} readings: the kernel takes pages back"
        )))
    }

    fn resident_bytes(&self) -> Result<u64, ProbeError> {
        Ok(latlab_storage::residency(&*self.target.test.file)
            .map_err(refused)?
            .resident_bytes)
    }
}

fn read_whole(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> Result<(), ProbeError> {
    let length = bytes.len();
    whole(rustix::io::pread(file, bytes, offset), length, "reading a block")
}

impl Session for Reading {
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
        block.set_waits();
        let state = &mut self.states[self.selected];
        if state.path == COLD {
            self.warm = 0;
            state.evidence.chilled(self.target.chill()?);
        }
        block.set_tail_threshold_ns(Timed::tail_ns(state.path == WARM, state.block_bytes));
        let contents = self.target.contents();
        let begin = state.stretches.next();
        let fetched = || ProcessCounters::of_this_thread().map(|now| now.read_bytes);
        let before = fetched();
        let bytes = self.buffer.bytes_mut();
        let mut offset = begin;
        state.evidence.begin(&self.target, &state.path);
        while offset < begin + state.stretch_bytes {
            let from = self.stamps.begin();
            let read = rustix::io::pread(&state.file, &mut *bytes, offset);
            let to = self.stamps.end();
            whole(read, bytes.len(), "reading a block")?;
            block.span(from, to);
            state.timed.add(block.span_ns(from, to), state.block_bytes);
            state.evidence.look(contents, offset, bytes);
            offset += state.block_bytes;
        }
        state.timed.end_block();
        state.evidence.end(&self.target, Direction::Read, offset - begin);
        state
            .evidence
            .look_at_all(contents, offset - state.block_bytes, bytes);
        state.blocks += 1;
        if state.path == WARM {
            // What the kernel took back elsewhere in the range is no matter of a stretch for which nothing was fetched.
            let nothing_fetched = before.is_some() && before == fetched();
            let (resident, warm) = (self.resident_bytes()?, self.warm);
            let all = resident >= warm || nothing_fetched;
            self.states[self.selected].resident += u64::from(all && warm > 0);
        }
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
                ok: state.blocks > 0 && state.resident == state.blocks,
                detail: format!(
                    "all of what was read lay in the page cache in {} of {} blocks (cachestat or mincore, or nothing fetched by /proc/thread-self/io)",
                    state.resident, state.blocks
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
            })),
            ..Proof::default()
        }
    }
}
