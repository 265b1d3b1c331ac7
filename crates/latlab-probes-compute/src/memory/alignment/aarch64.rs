//! The accesses in assembly: a compiler would hoist the loads out of the rounds and keep one store of each place.

use std::arch::asm;

pub(super) const ENGINE: &str = "aarch64 loads and stores in assembly, eight a turn";

macro_rules! loads {
    ($at:expr, $first:expr, $turns:expr, $d:expr, $step:expr, $mask:expr) => {{
        let (mut a, mut b) = (0u64, 0u64);
        asm!(
            ".p2align 6",
            "2:",
            "add {p}, {at}, {o}",
            "ldr {t0}, [{p}]",
            "ldr {t1}, [{p}, #{d1}]",
            "ldr {t2}, [{p}, #{d2}]",
            "ldr {t3}, [{p}, #{d3}]",
            "ldr {t4}, [{p}, #{d4}]",
            "ldr {t5}, [{p}, #{d5}]",
            "ldr {t6}, [{p}, #{d6}]",
            "ldr {t7}, [{p}, #{d7}]",
            "add {o}, {o}, #{step}",
            "and {o}, {o}, {mask}",
            "add {a}, {a}, {t0}",
            "add {b}, {b}, {t1}",
            "add {a}, {a}, {t2}",
            "add {b}, {b}, {t3}",
            "add {a}, {a}, {t4}",
            "add {b}, {b}, {t5}",
            "add {a}, {a}, {t6}",
            "add {b}, {b}, {t7}",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            at = in(reg) $at,
            p = out(reg) _,
            o = inout(reg) $first => _,
            mask = in(reg) $mask,
            turns = inout(reg) $turns => _,
            a = inout(reg) a,
            b = inout(reg) b,
            t0 = out(reg) _,
            t1 = out(reg) _,
            t2 = out(reg) _,
            t3 = out(reg) _,
            t4 = out(reg) _,
            t5 = out(reg) _,
            t6 = out(reg) _,
            t7 = out(reg) _,
            d1 = const $d[1],
            d2 = const $d[2],
            d3 = const $d[3],
            d4 = const $d[4],
            d5 = const $d[5],
            d6 = const $d[6],
            d7 = const $d[7],
            step = const $step,
            options(nostack, readonly),
        );
        a.wrapping_add(b)
    }};
}

macro_rules! stores {
    ($at:expr, $first:expr, $turns:expr, $value:expr, $d:expr, $step:expr, $mask:expr) => {
        asm!(
            ".p2align 6",
            "2:",
            "add {p}, {at}, {o}",
            "str {value}, [{p}]",
            "str {value}, [{p}, #{d1}]",
            "str {value}, [{p}, #{d2}]",
            "str {value}, [{p}, #{d3}]",
            "str {value}, [{p}, #{d4}]",
            "str {value}, [{p}, #{d5}]",
            "str {value}, [{p}, #{d6}]",
            "str {value}, [{p}, #{d7}]",
            "add {value}, {value}, {more}",
            "add {o}, {o}, #{step}",
            "and {o}, {o}, {mask}",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            at = in(reg) $at,
            p = out(reg) _,
            o = inout(reg) $first => _,
            mask = in(reg) $mask,
            turns = inout(reg) $turns => _,
            value = inout(reg) $value => _,
            more = in(reg) super::STEP,
            d1 = const $d[1],
            d2 = const $d[2],
            d3 = const $d[3],
            d4 = const $d[4],
            d5 = const $d[5],
            d6 = const $d[6],
            d7 = const $d[7],
            step = const $step,
            options(nostack),
        )
    };
}

const LINES: [usize; 8] = [0, 64, 128, 192, 256, 320, 384, 448];
const PAGES: [usize; 8] = [0, 4096, 8192, 12288, 0, 4096, 8192, 12288];
const ROUND: usize = (16 << 10) - 1;

/// Loads 8 bytes of each of eight lines a turn, going round in 16 KiB from `at + first` on. The sum.
///
/// # Safety
/// 16 KiB and 8 bytes from `at` on must be readable; `first` is a multiple of 512 below 16 KiB; `turns` is not 0.
pub(super) unsafe fn load_lines(at: *const u8, first: usize, turns: u64) -> u64 {
    // SAFETY: the caller promises what is read; offsets are masked.
    unsafe { loads!(at, first, turns, LINES, 512, ROUND) }
}

/// Loads 8 bytes at `at` in each of four pages, twice a turn. The sum.
///
/// # Safety
/// Three pages and 8 bytes from `at` on must be readable; `turns` is not 0.
pub(super) unsafe fn load_pages(at: *const u8, turns: u64) -> u64 {
    // SAFETY: the caller promises what is read.
    unsafe { loads!(at, 0usize, turns, PAGES, 0, 0usize) }
}

/// Stores as [`load_lines`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_lines`], writable.
pub(super) unsafe fn store_lines(at: *mut u8, first: usize, turns: u64, value: u64) {
    // SAFETY: the caller promises what is written; offsets are masked.
    unsafe { stores!(at, first, turns, value, LINES, 512, ROUND) }
}

/// Stores as [`load_pages`] loads: `value`, then [`STEP`](super::STEP) more each turn.
///
/// # Safety
/// As for [`load_pages`], writable.
pub(super) unsafe fn store_pages(at: *mut u8, turns: u64, value: u64) {
    // SAFETY: the caller promises what is written.
    unsafe { stores!(at, 0usize, turns, value, PAGES, 0, 0usize) }
}
