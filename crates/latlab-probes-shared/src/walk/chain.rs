//! A chain of pointers in an arena, walked in the order of a cycle.

use latlab_harness::Batch;
use latlab_record::Check;

use super::{Cycle, LINE_BYTES, PAGE_BYTES, chase, link, to_usize};
use crate::Compared;

/// Distance of nodes in [`Layout::Sparse`].
pub const SPARSE_BYTES: u64 = 4 * LINE_BYTES;

/// Where the nodes of a chain lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One node on each of consecutive lines.
    Lines,
    /// One node on every fourth line: prefetchers of neighbouring lines bring nothing that is wanted.
    Sparse,
    /// One node on each of consecutive pages; the line within the page moves on from page to page, because
    /// the same line of every page would fall into one set of the first-level cache.
    Pages,
}

impl Layout {
    /// Offset of a place, bytes.
    #[inline]
    fn offset(self, place: u64) -> u64 {
        match self {
            Self::Lines => place * LINE_BYTES,
            Self::Sparse => place * SPARSE_BYTES,
            Self::Pages => place * PAGE_BYTES + (place % (PAGE_BYTES / LINE_BYTES)) * LINE_BYTES,
        }
    }

    /// Bytes from the first node to the end of the last one's line.
    pub fn span(self, nodes: u64) -> u64 {
        match self {
            Self::Lines => nodes * LINE_BYTES,
            Self::Sparse => nodes * SPARSE_BYTES,
            Self::Pages => nodes * PAGE_BYTES,
        }
    }
}

/// A chain under way. It refers into an arena that its owner keeps; the arena must outlive it.
#[derive(Debug)]
pub struct Chain {
    cycle: Cycle,
    layout: Layout,
    base: *mut u8,
    at: *const u8,
    /// Step of the cycle that `at` is expected at.
    step: u64,
    /// Walks that ended where the cycle says, or elsewhere.
    walks: Compared,
}

impl Chain {
    /// Writes the chain. The writes follow the order of the cycle and do not wait for each other.
    ///
    /// # Safety
    /// From `base` on, `layout.span(cycle.places())` bytes must be ours, aligned to 8 bytes, and outlive the
    /// chain.
    pub unsafe fn build(base: *mut u8, layout: Layout, cycle: Cycle) -> Self {
        let address = |step: u64| base.wrapping_add(to_usize(layout.offset(cycle.place(step))));
        let first = address(0);
        let mut last = first;
        for step in 1..cycle.places() {
            let next = address(step);
            // SAFETY: the caller promises the span; places are below the cycle's length.
            unsafe { link(last).cast_mut().write(next) };
            last = next;
        }
        // SAFETY: as above.
        unsafe { link(last).cast_mut().write(first) };
        Self { cycle, layout, base, at: first, step: 0, walks: Compared::default() }
    }

    /// Touches the `lines` nodes before the current one in the order of the walk: afterwards the caches hold
    /// what a walk of that length would have left, at a tenth of its cost, because these loads do not wait
    /// for each other.
    pub fn warm(&self, lines: u64) {
        let len = self.cycle.places();
        let lines = lines.min(len);
        let mut step = (self.step + len - lines % len) % len;
        for _ in 0..lines {
            // SAFETY: places are below the cycle's length, so the address lies in the span that `build` was
            // promised.
            unsafe { link(self.address(step)).read_volatile() };
            step += 1;
            if step == len {
                step = 0;
            }
        }
    }

    #[inline]
    fn address(&self, step: u64) -> *const u8 {
        self.base.wrapping_add(to_usize(self.layout.offset(self.cycle.place(step))))
    }

    /// Whether the pointers are a permutation of the nodes, looked at in memory: every node is pointed to
    /// once. That and the construction make it a single cycle; walking 1 GiB to prove that would take five
    /// seconds.
    pub fn permutation_check(&self) -> Check {
        let nodes = self.cycle.places();
        let mut seen = vec![0u64; to_usize(nodes.div_ceil(64))];
        let mut strays = 0u64;
        let stride = self.layout.offset(1);
        for place in 0..nodes {
            let node = self.base.wrapping_add(to_usize(self.layout.offset(place)));
            // SAFETY: the place lies in the span that `build` was promised.
            let next = unsafe { link(node).read() };
            let offset = (next.addr() as u64).wrapping_sub(self.base.addr() as u64);
            let target = if self.layout == Layout::Pages { offset / PAGE_BYTES } else { offset / stride };
            if target < nodes && self.layout.offset(target) == offset {
                seen[to_usize(target / 64)] |= 1 << (target % 64);
            } else {
                strays += 1;
            }
        }
        let reached: u64 = seen.iter().map(|word| u64::from(word.count_ones())).sum();
        Check {
            name: "permutation".to_owned(),
            ok: strays == 0 && reached == nodes,
            detail: format!("{reached} of {nodes} nodes are pointed to, {strays} pointers lead elsewhere"),
        }
    }

    /// Whether every timed walk ended at the node where its length puts it: no step was skipped.
    pub fn walk_check(&self) -> Check {
        self.walks.check("walks end where they should", "", "walks")
    }

    /// Compares the position with the number of steps walked, and says whether they agree; untimed, once a
    /// block.
    pub fn verify_position(&mut self) -> bool {
        let right = self.at == self.address(self.step);
        self.walks.one(right);
        self.at = self.address(self.step);
        right
    }
}

impl Batch for Chain {
    #[inline]
    fn run(&mut self, ops: u64) -> u64 {
        // SAFETY: `build` made every node of the span point to another one of it.
        self.at = unsafe { chase::follow(self.at, ops) };
        // Two additions a window of tens of microseconds.
        self.step = (self.step + ops) % self.cycle.places();
        self.at.addr() as u64
    }
}

#[cfg(test)]
mod tests {
    use latlab_record::Pages;

    use super::super::Arena;
    use super::*;

    fn with_chain(layout: Layout, nodes: u64, test: impl FnOnce(&mut Chain)) {
        let arena = Arena::new(layout.span(nodes), Pages::Base, &[]).expect("a small arena");
        // SAFETY: the arena has the span and outlives the chain.
        let mut chain = unsafe { Chain::build(arena.base(), layout, Cycle::random(nodes, 5)) };
        test(&mut chain);
    }

    #[test]
    fn a_walk_of_its_length_comes_back_and_not_before() {
        for layout in [Layout::Lines, Layout::Sparse, Layout::Pages] {
            with_chain(layout, 1_000, |chain| {
                let start = chain.at;
                for _ in 0..999 {
                    chain.run(1);
                    assert_ne!(chain.at, start);
                }
                chain.run(1);
                assert_eq!(chain.at, start);
                chain.verify_position();
                assert!(chain.walk_check().ok);
            });
        }
    }

    #[test]
    fn walks_of_any_length_end_where_the_cycle_says() {
        with_chain(Layout::Lines, 777, |chain| {
            for ops in [1, 15, 16, 17, 160, 5_000] {
                chain.run(ops);
                chain.verify_position();
            }
            assert_eq!(chain.walk_check().detail, "6 of 6 walks");
        });
    }

    #[test]
    fn a_sound_chain_passes_as_a_permutation() {
        for layout in [Layout::Lines, Layout::Sparse, Layout::Pages] {
            with_chain(layout, 513, |chain| assert!(chain.permutation_check().ok));
        }
    }

    #[test]
    fn a_node_that_is_skipped_is_found() {
        with_chain(Layout::Lines, 100, |chain| {
            // SAFETY: nodes of the chain under test.
            unsafe {
                let first = link(chain.address(0)).cast_mut();
                first.write(chain.address(2));
            }
            let check = chain.permutation_check();
            assert!(!check.ok && check.detail.contains("99 of 100"), "{}", check.detail);
            chain.run(50);
            chain.verify_position();
            assert!(!chain.walk_check().ok);
        });
    }

    #[test]
    fn a_walk_that_was_not_made_is_no_proof() {
        with_chain(Layout::Lines, 10, |chain| assert!(!chain.walk_check().ok));
    }

    #[test]
    fn warming_more_than_everything_touches_everything_once() {
        with_chain(Layout::Lines, 100, |chain| chain.warm(1_000));
    }
}
