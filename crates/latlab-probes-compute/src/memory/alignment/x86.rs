//! The accesses in assembly: a compiler would hoist the loads out of the rounds and keep one store of each place.

use std::arch::asm;

pub(super) const ENGINE: &str = "x86_64 loads and stores in assembly, eight a turn";

/// Loads of a turn are added to four sums, so that no addition waits for the load before it.
macro_rules! loads {
    ($at:expr, $first:expr, $turns:expr, $d:expr, $step:expr, $mask:expr) => {{
        let (mut a, mut b, mut c, mut d) = (0u64, 0u64, 0u64, 0u64);
        asm!(
            ".p2align 6",
            "2:",
            "add {a}, qword ptr [{at} + {o}]",
            "add {b}, qword ptr [{at} + {o} + {d1}]",
            "add {c}, qword ptr [{at} + {o} + {d2}]",
            "add {d}, qword ptr [{at} + {o} + {d3}]",
            "add {a}, qword ptr [{at} + {o} + {d4}]",
            "add {b}, qword ptr [{at} + {o} + {d5}]",
            "add {c}, qword ptr [{at} + {o} + {d6}]",
            "add {d}, qword ptr [{at} + {o} + {d7}]",
            "add {o}, {step}",
            "and {o}, {mask}",
            "dec {turns}",
            "jnz 2b",
            at = in(reg) $at,
            o = inout(reg) $first => _,
            turns = inout(reg) $turns => _,
            a = inout(reg) a,
            b = inout(reg) b,
            c = inout(reg) c,
            d = inout(reg) d,
            d1 = const $d[1],
            d2 = const $d[2],
            d3 = const $d[3],
            d4 = const $d[4],
            d5 = const $d[5],
            d6 = const $d[6],
            d7 = const $d[7],
            step = const $step,
            mask = const $mask,
            options(nostack, readonly),
        );
        a.wrapping_add(b).wrapping_add(c).wrapping_add(d)
    }};
}

macro_rules! stores {
    ($at:expr, $first:expr, $turns:expr, $value:expr, $d:expr, $step:expr, $mask:expr) => {
        asm!(
            ".p2align 6",
            "2:",
            "mov qword ptr [{at} + {o}], {value}",
            "mov qword ptr [{at} + {o} + {d1}], {value}",
            "mov qword ptr [{at} + {o} + {d2}], {value}",
            "mov qword ptr [{at} + {o} + {d3}], {value}",
            "mov qword ptr [{at} + {o} + {d4}], {value}",
            "mov qword ptr [{at} + {o} + {d5}], {value}",
            "mov qword ptr [{at} + {o} + {d6}], {value}",
            "mov qword ptr [{at} + {o} + {d7}], {value}",
            "add {value}, {more}",
            "add {o}, {step}",
            "and {o}, {mask}",
            "dec {turns}",
            "jnz 2b",
            at = in(reg) $at,
            o = inout(reg) $first => _,
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
            mask = const $mask,
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
    unsafe { loads!(at, 0usize, turns, PAGES, 0, 0) }
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
    unsafe { stores!(at, 0usize, turns, value, PAGES, 0, 0) }
}
