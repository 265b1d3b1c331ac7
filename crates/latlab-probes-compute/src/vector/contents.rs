//! What the buffers hold: words that differ from place to place and whose checksums are known without reading
//! them.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "buffers begin on a line of 64 bytes, and offsets are whole words"
)]

use super::LINE_BYTES;

const LINE_WORDS: usize = LINE_BYTES / 8;
/// Lines between two stored checksums: a page.
const STEP: usize = 64;

/// The bits of 1.0: every word is a double in [1, 2) with 24 random bits, so that `b + 3.0 * c` is exact,
/// however it is rounded.
const ONE: u64 = 0x3FF0_0000_0000_0000;
const RANDOM_SHIFT: u32 = 28;

/// Known contents of a number of lines.
#[derive(Debug)]
pub(crate) struct Contents {
    seed: u64,
    /// Exclusive or of all words before line `STEP * n`.
    before: Vec<u64>,
    lines: usize,
}

impl Contents {
    /// Fills `lines` lines from `base` on and remembers their checksums.
    ///
    /// # Safety
    /// The lines must be ours and aligned to 8 bytes.
    pub(crate) unsafe fn fill(base: *mut u8, lines: usize, seed: u64) -> Self {
        let mut before = Vec::with_capacity(lines / STEP + 1);
        let mut sum = 0;
        for line in 0..lines {
            if line % STEP == 0 {
                before.push(sum);
            }
            let words = base.wrapping_add(line * LINE_BYTES).cast::<u64>();
            for word in 0..LINE_WORDS {
                let value = word_at(seed, line * LINE_WORDS + word);
                // SAFETY: the caller promises the lines.
                unsafe { words.add(word).write(value) };
                sum ^= value;
            }
        }
        if before.len() * STEP <= lines {
            before.push(sum);
        }
        Self { seed, before, lines }
    }

    /// Exclusive or of the words of the lines `from..from + lines`.
    pub(crate) fn checksum(&self, from: usize, lines: usize) -> u64 {
        self.before(from + lines) ^ self.before(from)
    }

    pub(crate) fn word(&self, place: usize) -> u64 {
        word_at(self.seed, place)
    }

    fn before(&self, line: usize) -> u64 {
        debug_assert!(line <= self.lines);
        let step = line / STEP;
        (step * STEP * LINE_WORDS..line * LINE_WORDS)
            .fold(self.before[step], |sum, place| sum ^ self.word(place))
    }
}

/// A double in [1, 2) with 24 bits from a mix of the place (the finaliser of Murmur3, 32 bits).
#[inline]
fn word_at(seed: u64, place: usize) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "only 24 of the mixed bits are used")]
    let mut bits = (place as u64 ^ (place as u64 >> 32) ^ seed) as u32;
    bits ^= bits >> 16;
    bits = bits.wrapping_mul(0x85EB_CA6B);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xC2B2_AE35);
    bits ^= bits >> 16;
    ONE | (u64::from(bits >> 8) << RANDOM_SHIFT)
}
