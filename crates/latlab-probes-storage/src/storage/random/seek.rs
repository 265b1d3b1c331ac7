//! Reads just behind the last one and far away from it, in turns: whether the distance costs anything.

use latlab_probes_shared::prelude::*;
use latlab_stats::rng::Rng;
use latlab_stats::{Medium, Seeking, seeking};
use latlab_storage::Buffer;

use super::super::{AtDistance, FAR, KIB_4, MIDDLE_BYTES, NEAR_BYTES, Seek, seek_s};
use crate::disk::{DIRECT, Evidence, Target, quantile, whole};

/// A file in which nothing is far away.
const SMALLEST_FILE: u64 = 8 << 20;
/// Rounds of one visit: a spinning disk has time for few.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=64;
/// Times that are kept of each distance.
const KEPT: usize = 4_096;

/// Times of each distance so far.
pub(super) struct Seeks {
    stamps: Stamps,
    rng: Rng,
    buffer: Buffer,
    last: u64,
    /// ns: far away, near by, between.
    times: [Vec<f64>; 3],
}

impl Seeks {
    /// `None` where time is simulated.
    pub(super) fn new(env: &Env) -> Option<Self> {
        let length = usize::try_from(KIB_4).unwrap_or(usize::MAX);
        Some(Self {
            stamps: Stamps::of(&env.clock)?,
            rng: Rng::new(env.seed(0x5EE)),
            buffer: Buffer::new(length, length),
            last: 0,
            times: Default::default(),
        })
    }

    /// A few rounds, about as long as the plan says; each block is verified.
    pub(super) fn take(&mut self, env: &Env, target: &Target, evidence: &mut Evidence) -> Result<()> {
        let bytes = target.blocks(KIB_4) * KIB_4;
        if bytes < SMALLEST_FILE || self.times[0].len() >= KEPT {
            return Ok(());
        }
        let (file, _) = target.file(DIRECT)?;
        let middle = MIDDLE_BYTES.min(bytes / 16 / KIB_4 * KIB_4);
        // Room for what is read behind a far one.
        let reach = bytes - NEAR_BYTES - KIB_4;
        let limit_ns = 1e9 * seek_s(env.settings.profile);
        let begun_ns = env.clock.now_ns();
        for round in 0..*ROUNDS.end() {
            if round >= *ROUNDS.start() && env.clock.now_ns() - begun_ns >= limit_ns {
                break;
            }
            let jump = FAR + (1.0 - 2.0 * FAR) * self.rng.uniform();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the file's bytes"
            )]
            let jump = (jump * reach as f64) as u64;
            let far = (self.last + jump) % reach / KIB_4 * KIB_4;
            let near = far + NEAR_BYTES;
            let between = if near + middle + KIB_4 <= bytes { near + middle } else { near - middle };
            for (times, offset) in self.times.iter_mut().zip([far, near, between]) {
                let bytes = self.buffer.bytes_mut();
                let begin = self.stamps.begin();
                let read = rustix::io::pread(&*file, &mut *bytes, offset);
                let end = self.stamps.end();
                whole(read, bytes.len(), "reading a block")?;
                evidence.verify(target.test.contents, offset, bytes);
                times.push(env.clock.ns(end.saturating_sub(begin)));
                self.last = offset;
            }
        }
        Ok(())
    }

    /// What the distances say, for the record; `None` for too few reads.
    pub(super) fn findings(&self, env: &Env, target: &Target) -> Option<Seek> {
        let [far, near, middle] = &self.times;
        let found = seeking(near, far)?;
        let (medium, reason) = judged(&found, target.test.contents.is_some());
        let flag = target.device.name().and_then(|name| {
            env.machine
                .disks
                .iter()
                .find(|disk| disk.name == name || disk.partitions.iter().any(|part| part.name == name))?
                .rotational_flag
        });
        let of = |distance: &str, times: &[f64]| {
            Some(AtDistance {
                distance: distance.to_owned(),
                p50_ns: quantile(times, 0.5)?,
                p90_ns: quantile(times, 0.9)?,
                reads: times.len(),
            })
        };
        Some(Seek {
            medium: medium.to_owned(),
            reason: reason.to_owned(),
            difference_ns: found.difference_ns,
            interval_ns: found.interval_ns,
            near_ns: found.near_ns,
            far_ns: found.far_ns,
            rotational_flag: flag,
            by_distance: vec![
                of("128 KiB behind", near)?,
                of("4 MiB away", middle)?,
                of("a quarter of the file or more away", far)?,
            ],
        })
    }
}

/// The verdict as a word. Blocks that were never read since the machine began may be fetched from elsewhere,
/// which takes as long as an arm: only for our own file is that known.
pub(super) fn judged(found: &Seeking, ours: bool) -> (&'static str, &'static str) {
    match found.medium {
        Medium::SolidState => ("solid state", found.reason),
        Medium::Spinning if ours => ("spinning", found.reason),
        Medium::Spinning => (
            "undecided",
            "the distance adds milliseconds, but blocks of a user's file may be fetched from elsewhere at \
                their first touch",
        ),
        Medium::Undecided => ("undecided", found.reason),
    }
}
