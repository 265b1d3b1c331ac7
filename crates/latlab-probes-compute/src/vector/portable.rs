//! Every architecture: words of 8 bytes, volatile so that no access is dropped or merged.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "buffers begin on a line of 64 bytes, and offsets are whole words"
)]

use super::{Kernels, LINE_BYTES};

const LINE_WORDS: usize = LINE_BYTES / 8;

pub(super) static KERNELS: Kernels = Kernels { isa: "scalar", read, write, write_nt: None, copy, triad };

unsafe fn read(from: *const u8, lines: usize, passes: u64) -> u64 {
    // One a word of the line: they do not wait for each other.
    let mut folded = [0u64; LINE_WORDS];
    for _ in 0..passes {
        folded = [0; LINE_WORDS];
        for line in 0..lines {
            let words = from.wrapping_add(line * LINE_BYTES).cast::<u64>();
            for (word, all) in folded.iter_mut().enumerate() {
                // SAFETY: the caller promises `lines` readable, aligned lines.
                *all ^= unsafe { words.add(word).read_volatile() };
            }
        }
    }
    folded.iter().fold(0, |all, lane| all ^ lane)
}

unsafe fn write(to: *mut u8, lines: usize, passes: u64, word: u64) {
    let words = to.cast::<u64>();
    for _ in 0..passes {
        for place in 0..lines * LINE_WORDS {
            // SAFETY: the caller promises `lines` writable, aligned lines.
            unsafe { words.add(place).write_volatile(word) };
        }
    }
}

unsafe fn copy(to: *mut u8, from: *const u8, lines: usize, passes: u64) {
    let (to, from) = (to.cast::<u64>(), from.cast::<u64>());
    for _ in 0..passes {
        for place in 0..lines * LINE_WORDS {
            // SAFETY: the caller promises `lines` aligned lines on both sides.
            unsafe { to.add(place).write_volatile(from.add(place).read_volatile()) };
        }
    }
}

unsafe fn triad(to: *mut u8, left: *const u8, right: *const u8, lines: usize, passes: u64, factor: f64) {
    let (to, left, right) = (to.cast::<f64>(), left.cast::<f64>(), right.cast::<f64>());
    for _ in 0..passes {
        for place in 0..lines * LINE_WORDS {
            // SAFETY: the caller promises `lines` aligned lines of doubles in each stream.
            unsafe {
                let sum = left.add(place).read_volatile() + factor * right.add(place).read_volatile();
                to.add(place).write_volatile(sum);
            }
        }
    }
}
