//! The order of blocks.

use latlab_probes_shared::walk::Cycle;

/// Which block comes next.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// One after the other, round and round.
    InOrder { block_bytes: u64, blocks: u64, next: u64 },
    /// Each once in random order, then each once in another one: none comes twice in a row, and none from a
    /// cache that the last round filled until all others came.
    Random { block_bytes: u64, cycle: Cycle, seed: u64, next: u64, last: u64 },
}

impl Places {
    /// From block `first` on.
    pub(crate) fn in_order(block_bytes: u64, blocks: u64, first: u64) -> Self {
        Self::InOrder { block_bytes, blocks, next: first % blocks.max(1) }
    }

    /// In an order that the seed decides.
    pub(crate) fn random(block_bytes: u64, blocks: u64, seed: u64) -> Self {
        Self::Random { block_bytes, cycle: Cycle::random(blocks, seed), seed, next: 0, last: u64::MAX }
    }

    /// Where the next block begins, bytes.
    pub(crate) fn next(&mut self) -> u64 {
        match self {
            Self::InOrder { block_bytes, blocks, next } => {
                let place = *next;
                *next = (place + 1) % (*blocks).max(1);
                place * *block_bytes
            }
            Self::Random { block_bytes, cycle, seed, next, last } => {
                if *next == cycle.places() {
                    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *cycle = Cycle::random(cycle.places(), *seed);
                    *next = 0;
                    if cycle.places() > 1 && cycle.place(0) == *last {
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
