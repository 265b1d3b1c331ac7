//! The accesses in assembly: a compiler would hoist the loads out of the rounds and keep one store of each
//! place.

#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod instructions;

pub(super) use instructions::ENGINE;
use instructions::{loads, stores};

const ROUND: usize = (16 << 10) - 1;

/// Loads 8 bytes of each of eight lines a turn, going round in 16 KiB from `at + first` on. The sum.
///
/// # Safety
/// 16 KiB and 8 bytes from `at` on must be readable; `first` is a multiple of 512 below 16 KiB; `turns` is
/// not 0.
pub(super) unsafe fn load_lines(at: *const u8, first: usize, turns: u64) -> u64 {
    // SAFETY: the caller promises what is read; offsets are masked.
    unsafe { loads!(at, first, turns, 512, ROUND, 64 128 192 256 320 384 448) }
}

/// Loads 8 bytes at `at` in each of four pages, twice a turn. The sum.
///
/// # Safety
/// Three pages and 8 bytes from `at` on must be readable; `turns` is not 0.
pub(super) unsafe fn load_pages(at: *const u8, turns: u64) -> u64 {
    // SAFETY: the caller promises what is read.
    unsafe { loads!(at, 0usize, turns, 0, 0usize, 4096 8192 12288 0 4096 8192 12288) }
}

/// Stores as [`load_lines`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_lines`], writable.
pub(super) unsafe fn store_lines(at: *mut u8, first: usize, turns: u64, value: u64) {
    // SAFETY: the caller promises what is written; offsets are masked.
    unsafe { stores!(at, first, turns, value, 512, ROUND, 64 128 192 256 320 384 448) }
}

/// Stores as [`load_pages`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_pages`], writable.
pub(super) unsafe fn store_pages(at: *mut u8, turns: u64, value: u64) {
    // SAFETY: the caller promises what is written.
    unsafe { stores!(at, 0usize, turns, value, 0, 0usize, 4096 8192 12288 0 4096 8192 12288) }
}
