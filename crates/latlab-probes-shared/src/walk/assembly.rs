//! The dependent loads, in assembly: the compiler can neither remove nor widen them.

use std::arch::asm;

/// One instruction for each CPU: a load from an address, one from beyond it, and the end of a round.
#[cfg(target_arch = "x86_64")]
macro_rules! instruction {
    (load) => {
        "mov {at}, [{at}]"
    };
    (load_beyond) => {
        "mov {at}, [{at} + {stride}]"
    };
    (next_round) => {
        "dec {rounds}\njnz 2b"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! instruction {
    (load) => {
        "ldr {at}, [{at}]"
    };
    (load_beyond) => {
        "ldr {at}, [{at}, {stride}]"
    };
    (next_round) => {
        "subs {rounds}, {rounds}, #1\nb.ne 2b"
    };
}

/// Makes this load `steps` times, so many to a round. `operands` are those beside the address; `rest` is what
/// else holds of a load alone.
macro_rules! loads {
    ($at:ident, $steps:ident by $unrolled:literal, $load:expr, operands: [$($operand:tt)*], rest: [$($option:ident)?]) => {
        let rounds = $steps / $unrolled;
        let rest = $steps % $unrolled;
        if rounds > 0 {
            asm!(
                ".p2align 4",
                "2:",
                concat!(".rept ", $unrolled),
                $load,
                ".endr",
                instruction!(next_round),
                at = inout(reg) $at,
                $($operand)*
                rounds = inout(reg) rounds => _,
                options(nostack, readonly),
            );
        }
        for _ in 0..rest {
            asm!($load, at = inout(reg) $at, $($operand)* options(nostack, readonly $(, $option)?));
        }
    };
}

/// Follows `steps` pointers from `start`.
///
/// # Safety
/// `start` must begin a chain in which each address holds the next one, for ever.
#[inline]
pub(super) unsafe fn follow(start: *const u8, steps: u64) -> *const u8 {
    let mut at = start;
    // SAFETY: the caller promises that every address in the chain is readable; nothing is written.
    unsafe {
        loads!(at, steps by 16, instruction!(load), operands: [], rest: []);
    }
    at
}

/// From `start` on, `steps` times: loads the address that is found `stride` bytes further on.
///
/// # Safety
/// Each place that is met must be readable.
#[inline]
pub unsafe fn follow_strided(start: *const u8, stride: u64, steps: u64) -> *const u8 {
    let mut at = start;
    // SAFETY: the caller promises what is read.
    unsafe {
        loads!(
            at, steps by 8, instruction!(load_beyond), operands: [stride = in(reg) stride,], rest: [preserves_flags]
        );
    }
    at
}
