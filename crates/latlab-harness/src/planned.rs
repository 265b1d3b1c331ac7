//! A point that a probe would like to measure, and how often.

use latlab_record::{CacheScope, Point, Profile, Rank};
use serde::{Deserialize, Serialize};

/// Blocks of one point in one round at most: the raw window means are kept, and 24 blocks are 1,536 of them.
pub(crate) const MAX_BLOCKS: usize = 24;
/// Blocks that a point gets beyond those of its rank when all of these were disturbed.
const MORE_WHERE_DISTURBED: usize = 1;
/// Blocks at least of what is measured in one round only, with all of its time.
const LEAST_ONCE: usize = 6;

/// A point that a probe would like to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned<P = Point> {
    /// Where: as the probe says it, or as records do.
    pub point: P,
    /// In how many of a run's rounds it is measured.
    pub rank: Rank,
    /// 0 is measured first; within a priority the list's order says which are given up last.
    pub priority: u8,
    /// Estimated seconds to select it, before the first real visit tells.
    pub setup_s: f64,
    /// Estimated seconds that the first selection takes beyond that, for what later ones find: files that are
    /// written or brought into memory.
    pub first_s: f64,
    /// Estimated seconds for one block.
    pub block_s: f64,
    /// Bytes that its session writes to files for it before its first block.
    pub laid_out_bytes: u64,
    /// Bytes that each of its blocks writes to files.
    pub written_bytes: u64,
    /// Blocks of one round at most. For work of which each block uses something up, as bytes that may be
    /// written.
    pub most_blocks: usize,
    /// Blocks of one round at least: for work that is about how things go on, not about one median.
    pub least_blocks: usize,
    /// How far from the core its work reaches.
    pub cache_scope: CacheScope,
    /// Points of one group are measured interleaved in one session; groups follow each other.
    pub group: u16,
}

impl<P> Planned<P> {
    /// A detail of priority 0 in group 0 that is cheap to select and has blocks of a few milliseconds.
    pub fn new(point: P) -> Self {
        Self {
            point,
            rank: Rank::Detail,
            priority: 0,
            setup_s: 1e-3,
            first_s: 0.0,
            block_s: 3e-3,
            laid_out_bytes: 0,
            written_bytes: 0,
            most_blocks: MAX_BLOCKS,
            least_blocks: 0,
            cache_scope: CacheScope::Shared,
            group: 0,
        }
    }

    /// The same of a point that is said in another way.
    pub(crate) fn at<Q>(&self, point: Q) -> Planned<Q> {
        Planned {
            point,
            rank: self.rank,
            priority: self.priority,
            setup_s: self.setup_s,
            first_s: self.first_s,
            block_s: self.block_s,
            laid_out_bytes: self.laid_out_bytes,
            written_bytes: self.written_bytes,
            most_blocks: self.most_blocks,
            least_blocks: self.least_blocks,
            cache_scope: self.cache_scope,
            group: self.group,
        }
    }

    /// Blocks of a round before which it has no record; other points do not get more of theirs until all have
    /// so many.
    pub fn least_blocks(&self) -> usize {
        let own = match self.rank {
            Rank::Headline | Rank::Curve | Rank::Detail => 1,
            Rank::Once => LEAST_ONCE.max(self.least_blocks),
        };
        own.min(self.most_blocks())
    }

    /// Blocks that a round gives it when there is time for all.
    pub fn wanted_blocks(&self) -> usize {
        let own = match self.rank {
            Rank::Headline | Rank::Curve => 2,
            Rank::Detail => 3,
            Rank::Once => MAX_BLOCKS,
        };
        own.max(self.least_blocks).min(self.most_blocks())
    }

    /// Blocks that it gets in one round at most: one more where all that it was to have were disturbed.
    pub fn round_blocks(&self) -> usize {
        (self.wanted_blocks() + MORE_WHERE_DISTURBED).min(self.most_blocks())
    }

    /// Bytes that it writes to files in one round at most.
    pub fn round_bytes(&self) -> u64 {
        self.laid_out_bytes.saturating_add(self.written_bytes.saturating_mul(self.round_blocks() as u64))
    }

    /// Bytes that it writes to files in a whole run at most.
    pub fn run_bytes(&self, profile: Profile) -> u64 {
        self.round_bytes().saturating_mul(u64::from(self.rank.rounds(profile.rounds())))
    }

    /// Blocks beyond which a round gives it none.
    pub fn most_blocks(&self) -> usize {
        self.most_blocks.clamp(1, MAX_BLOCKS)
    }

    /// Estimated seconds that it takes in a round.
    pub fn round_s(&self) -> f64 {
        self.first_s + self.setup_s + self.wanted_blocks() as f64 * self.block_s
    }
}
