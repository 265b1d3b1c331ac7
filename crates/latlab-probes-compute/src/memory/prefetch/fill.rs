//! Writing an array from front to back, word by word.

use latlab_harness::Batch;

use latlab_probes_shared::Compared;
use latlab_probes_shared::walk::{LINE_BYTES, to_usize};

use crate::ahead;

/// Distances, lines ahead.
pub(super) const DISTANCES: [u32; 6] = [1, 2, 4, 8, 16, 64];
/// Words in a line.
const WORDS: usize = 8;
/// What one word holds more than the one before: odd, so no two of an array are equal.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The array, and where writing has come to: each block goes on where the last one ended, where lines were
/// left longest ago.
pub(super) struct Array {
    base: *mut u8,
    lines: u64,
    at: u64,
    /// Blocks so far: each writes other words.
    blocks: u64,
}

impl Array {
    /// # Safety
    /// From `base` on, so many lines must be ours, begin on a line, and outlive the array.
    pub(super) unsafe fn new(base: *mut u8, lines: u64) -> Self {
        Self { base, lines, at: 0, blocks: 0 }
    }

    fn line(&self, line: u64) -> *mut u64 {
        self.base.wrapping_add(to_usize(line * LINE_BYTES)).cast()
    }
}

/// What the first word of a line holds.
fn first_word(begin: u64, line: u64) -> u64 {
    begin.wrapping_add((line * WORDS as u64).wrapping_mul(STEP))
}

/// One block's writing.
pub(super) struct Fill<'a> {
    array: &'a mut Array,
    distance: u32,
    /// What the first word of the array would hold.
    begin: u64,
    first: u64,
    written: u64,
}

impl<'a> Fill<'a> {
    pub(super) fn new(array: &'a mut Array, distance: u32) -> Self {
        array.blocks += 1;
        let (begin, first) = (array.blocks << 32, array.at);
        Self { array, distance, begin, first, written: 0 }
    }

    /// Looks at every line that was written.
    pub(super) fn end(self, compared: &mut Compared) {
        let lines = self.written.min(self.array.lines);
        for nth in 0..lines {
            let line = (self.first + nth) % self.array.lines;
            let mut value = first_word(self.begin, line);
            let mut wrong = false;
            for word in 0..WORDS {
                // SAFETY: a line of the array.
                wrong |= unsafe { self.array.line(line).add(word).read() } != value;
                value = value.wrapping_add(STEP);
            }
            compared.one(!wrong);
        }
    }

    #[inline(always)]
    fn write<const AHEAD: bool>(&mut self, lines: u64) {
        let ahead = to_usize(u64::from(self.distance) * LINE_BYTES) / size_of::<u64>();
        let mut line = self.array.line(self.array.at);
        let mut value = first_word(self.begin, self.array.at);
        for _ in 0..lines {
            if AHEAD {
                // At the end of the array this is beyond it, which a prefetch may be.
                ahead::to_write(line.wrapping_add(ahead).cast());
            }
            for word in 0..WORDS {
                // SAFETY: `run` stays within the array. Volatile: no store is dropped, merged or made one
                // that goes around the caches.
                unsafe { line.add(word).write_volatile(value) };
                value = value.wrapping_add(STEP);
            }
            line = line.wrapping_add(WORDS);
        }
    }
}

impl Batch for Fill<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let mut left = ops;
        while left > 0 {
            let lines = left.min(self.array.lines - self.array.at);
            if self.distance > 0 {
                self.write::<true>(lines);
            } else {
                self.write::<false>(lines);
            }
            self.array.at = (self.array.at + lines) % self.array.lines;
            left -= lines;
        }
        self.written += ops;
        self.written
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes the writing leave out a line.
    pub(in super::super) fn leave_out_a_line(fill: &mut Fill) {
        fill.array.at = (fill.array.at + 1) % fill.array.lines;
        fill.written += 1;
    }

    /// Changes a word that was written.
    pub(in super::super) fn spoil_a_word(fill: &mut Fill) {
        // SAFETY: a line of the array.
        unsafe { fill.array.line(fill.first).add(3).write(0) };
    }
}
