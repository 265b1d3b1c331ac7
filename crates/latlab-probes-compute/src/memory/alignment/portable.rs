//! The accesses where there is no assembly of ours: through a pointer that the compiler may not look behind.

use std::hint::black_box;

pub(super) const ENGINE: &str = "unaligned reads and writes of the compiler";

const ROUND: usize = (16 << 10) - 1;

/// Loads 8 bytes of each of eight lines a turn, going round in 16 KiB from `at + first` on. The sum.
///
/// # Safety
/// 16 KiB and 8 bytes from `at` on must be readable; `first` is a multiple of 512 below 16 KiB; `turns` is
/// not 0.
pub(super) unsafe fn load_lines(at: *const u8, first: usize, turns: u64) -> u64 {
    let (mut sum, mut offset) = (0u64, first);
    for _ in 0..turns * super::TURN {
        let place = black_box(at.wrapping_add(offset)).cast::<u64>();
        // SAFETY: the caller promises what is read; offsets are masked.
        sum = sum.wrapping_add(unsafe { place.read_unaligned() });
        offset = (offset + 64) & ROUND;
    }
    sum
}

/// Loads 8 bytes at `at` in each of four pages, twice a turn. The sum.
///
/// # Safety
/// Three pages and 8 bytes from `at` on must be readable; `turns` is not 0.
pub(super) unsafe fn load_pages(at: *const u8, turns: u64) -> u64 {
    let mut sum = 0u64;
    for _ in 0..turns {
        for nth in 0..8 {
            let place = black_box(at.wrapping_add(nth % 4 * 4096)).cast::<u64>();
            // SAFETY: the caller promises what is read.
            sum = sum.wrapping_add(unsafe { place.read_unaligned() });
        }
    }
    sum
}

/// Stores as [`load_lines`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_lines`], writable.
pub(super) unsafe fn store_lines(at: *mut u8, first: usize, turns: u64, value: u64) {
    let (mut value, mut offset) = (value, first);
    for _ in 0..turns {
        for _ in 0..super::TURN {
            let place = black_box(at.wrapping_add(offset)).cast::<u64>();
            // SAFETY: the caller promises what is written; offsets are masked.
            unsafe { place.write_unaligned(value) };
            offset = (offset + 64) & ROUND;
        }
        value = value.wrapping_add(super::STEP);
    }
}

/// Stores as [`load_pages`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_pages`], writable.
pub(super) unsafe fn store_pages(at: *mut u8, turns: u64, value: u64) {
    let mut value = value;
    for _ in 0..turns {
        for nth in 0..8 {
            let place = black_box(at.wrapping_add(nth % 4 * 4096)).cast::<u64>();
            // SAFETY: the caller promises what is written.
            unsafe { place.write_unaligned(value) };
        }
        value = value.wrapping_add(super::STEP);
    }
}
