//! A linked list in random order, whose nodes also know the node some nodes ahead.
//!
//! ```text
//! node (one line):  its own address (the chase's) · next · payload · 2 ahead · 4 · 8 · 16 · 32
//! ```
//! A jump pointer is known only when its node has arrived, as in a real list. With the addresses in an array
//! beside the list, a CPU that executes out of order would reach many prefetches beyond a load that waits,
//! and no distance would be the one written down.

use latlab_harness::Batch;
use latlab_stats::rng::mixed;

use super::Evidence;
use crate::ahead;
use latlab_probes_shared::walk::{Cycle, LINE_BYTES, to_usize};

/// Words of a node.
const NEXT: usize = 1;
const PAYLOAD: usize = 2;
/// Nodes ahead, and the word that says where that node is.
const JUMPS: [(u32, usize); 6] = [(1, NEXT), (2, 3), (4, 4), (8, 5), (16, 6), (32, 7)];
const FURTHEST: u64 = 32;
/// Jump pointers checked after each block.
const CHECKED: u64 = 64;

/// The distances that a list has, nodes ahead.
pub(super) fn distances() -> impl Iterator<Item = u32> {
    JUMPS.into_iter().map(|(distance, _)| distance)
}

/// The list, and where the walk has come to: every walk goes on where the last one ended, whatever its
/// distance.
pub(super) struct List {
    base: *mut u8,
    cycle: Cycle,
    step: u64,
}

impl List {
    /// Writes the nodes.
    ///
    /// # Safety
    /// From `base` on, a line for each node of the cycle must be ours, begin on a line, and outlive the list.
    pub(super) unsafe fn build(base: *mut u8, cycle: Cycle) -> Self {
        let list = Self { base, cycle, step: 0 };
        // The nodes from here to the furthest jump: each is computed once.
        let window = to_usize(2 * FURTHEST);
        let mut ahead: Vec<*mut u8> = (0..2 * FURTHEST).map(|step| list.node(step)).collect();
        for step in 0..cycle.places() {
            let at = |steps: u64| ahead[to_usize(step + steps) % window];
            let node = at(0).cast::<u64>();
            let words = JUMPS.map(|(distance, word)| (word, at(u64::from(distance)).addr() as u64));
            // SAFETY: the caller promises the line; these are its words.
            unsafe {
                for (word, address) in words {
                    node.add(word).write(address);
                }
                node.add(PAYLOAD).write(payload(list.offset(step)));
            }
            let entering = list.node(step + 2 * FURTHEST);
            // Random writes wait for each other's lines otherwise.
            ahead::to_write(entering);
            ahead[to_usize(step) % window] = entering;
        }
        list
    }

    fn offset(&self, step: u64) -> u64 {
        self.cycle.place(step % self.cycle.places()) * LINE_BYTES
    }

    fn node(&self, step: u64) -> *mut u8 {
        self.base.wrapping_add(to_usize(self.offset(step)))
    }

    /// The work that `nodes` nodes from a step on give.
    fn expected(&self, step: u64, nodes: u64) -> u64 {
        (step..step + nodes).map(|step| work(payload(self.offset(step)))).fold(0, u64::wrapping_add)
    }

    /// Of the jump pointers behind a walk, those that do not lead where they should.
    fn wrong_jumps(&self, step: u64, distance: u32) -> u64 {
        let Some((_, word)) = JUMPS.into_iter().find(|(known, _)| *known == distance) else { return 0 };
        (step..step + CHECKED)
            .map(|step| {
                // SAFETY: a word of a node.
                let found = unsafe { self.node(step).cast::<u64>().add(word).read_volatile() };
                u64::from(found != self.node(step + u64::from(distance)).addr() as u64)
            })
            .sum()
    }
}

/// What a node holds.
fn payload(offset: u64) -> u64 {
    (offset / LINE_BYTES).wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1
}

/// What is done with it: splitmix64's finaliser, a dozen instructions.
#[inline(always)]
fn work(payload: u64) -> u64 {
    mixed(payload)
}

/// One block's walk.
pub(super) struct Walk<'a> {
    list: &'a mut List,
    distance: u32,
    begin: u64,
    nodes: u64,
    at: *const u64,
    sum: u64,
}

impl<'a> Walk<'a> {
    /// From where the last walk ended.
    pub(super) fn new(list: &'a mut List, distance: u32) -> Self {
        let (begin, at) = (list.step, list.node(list.step).cast_const().cast());
        Self { list, distance, begin, nodes: 0, at, sum: 0 }
    }

    /// Compares what was done with what should have been.
    pub(super) fn end(self, evidence: &mut Evidence) {
        let end = (self.begin + self.nodes) % self.list.cycle.places();
        let wrong_sum = self.nodes == 0 || self.list.expected(self.begin, self.nodes) != self.sum;
        evidence.sums.one(!wrong_sum);
        evidence.ends.one(self.at.cast() == self.list.node(end).cast_const());
        evidence.jumps.one(self.list.wrong_jumps(self.begin, self.distance) == 0);
        self.list.step = end;
    }

    #[inline(always)]
    fn visit<const AHEAD: bool>(&mut self, nodes: u64, word: usize) {
        let (mut at, mut sum) = (self.at, self.sum);
        for _ in 0..nodes {
            // SAFETY: `next` leads from node to node for ever; all words of a node are its own. Volatile: no
            // load is dropped or moved.
            unsafe {
                let next = at.add(NEXT).cast::<*const u64>().read_volatile();
                if AHEAD {
                    ahead::to_read(at.add(word).cast::<*const u8>().read_volatile());
                }
                sum = sum.wrapping_add(work(at.add(PAYLOAD).read_volatile()));
                at = next;
            }
        }
        (self.at, self.sum) = (at, sum);
    }
}

impl Batch for Walk<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        match JUMPS.into_iter().find(|(distance, _)| *distance == self.distance) {
            Some((_, word)) => self.visit::<true>(ops, word),
            None => self.visit::<false>(ops, 0),
        }
        self.nodes += ops;
        self.sum
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes the node of a step lead over its next one.
    pub(in super::super) fn skip_a_node(list: &mut List, step: u64) {
        let behind = list.node(step + 2).addr() as u64;
        // SAFETY: a word of a node.
        unsafe { list.node(step).cast::<u64>().add(NEXT).write(behind) };
    }

    /// Makes the node of a step lead to a copy of its next one, which no walk should meet: same payload, same
    /// way on.
    pub(in super::super) fn lead_to(list: &mut List, step: u64, stranger: *mut u64) {
        // SAFETY: the stranger has a line; the others are nodes.
        unsafe {
            let next = list.node(step + 1).cast::<u64>();
            for word in 0..8 {
                stranger.add(word).write(next.add(word).read());
            }
            stranger.add(PAYLOAD).write(u64::MAX);
            list.node(step).cast::<u64>().add(NEXT).write(stranger.addr() as u64);
        }
    }

    /// Makes a jump pointer lead back.
    pub(in super::super) fn turn_a_jump_back(list: &mut List, step: u64, distance: u32) {
        let back = list.node(step).addr() as u64;
        let word = JUMPS.into_iter().find(|(known, _)| *known == distance).map(|(_, word)| word);
        // SAFETY: a word of a node.
        unsafe {
            list.node(step).cast::<u64>().add(word.expect("a distance of the list")).write(back);
        }
    }
}
