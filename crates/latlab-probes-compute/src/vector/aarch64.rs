//! aarch64: NEON, which every such CPU has. Pairs of 16-byte registers, 256 bytes a turn.

use std::arch::asm;

use super::{Kernels, LINE_BYTES};

/// Bytes of one turn of the unrolled loop.
const TURN: usize = 256;
const TURN_LINES: usize = TURN / LINE_BYTES;

static KERNELS: Kernels = Kernels { isa: "neon", read, write, write_nt: Some(write_nt), copy, triad };

pub(super) fn available() -> Vec<&'static Kernels> {
    vec![&KERNELS]
}

/// Turns of the unrolled loop, then single lines, again for each pass;
/// `$back` puts the pointers back to their begin. `$first` is before all passes, `$last` behind them. Every
/// register that one of the loops uses is declared as overwritten.
macro_rules! passes {
    (
        $lines:expr, $passes:expr,
        $first:expr, turn: $turn:expr, line: $line:expr, $back:expr, $last:expr,
        $($operands:tt)*
    ) => {
        asm!(
            $first,
            ".p2align 6",
            "2:",
            "mov {left}, {turns}",
            "cbz {left}, 4f",
            ".p2align 6",
            "3:",
            $turn,
            "subs {left}, {left}, #1",
            "b.ne 3b",
            "4:",
            "mov {left}, {rest}",
            "cbz {left}, 6f",
            "5:",
            $line,
            "subs {left}, {left}, #1",
            "b.ne 5b",
            "6:",
            $back,
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            $last,
            turns = in(reg) $lines / TURN_LINES,
            rest = in(reg) $lines % TURN_LINES,
            passes = inout(reg) $passes => _,
            left = out(reg) _,
            $($operands)*
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _,
            out("v23") _, out("v31") _,
            options(nostack),
        )
    };
}

/// The same instructions for each number `\k` of a list.
macro_rules! for_each {
    ($list:literal, $instructions:expr) => {
        concat!(".irp k,", $list, "\n", $instructions, ".endr\n")
    };
}

/// Folds what these instructions load, 128 bytes.
macro_rules! fold {
    ($loads:literal) => {
        concat!(
            $loads,
            "eor v16.16b, v16.16b, v0.16b\neor v17.16b, v17.16b, v1.16b\n",
            "eor v18.16b, v18.16b, v2.16b\neor v19.16b, v19.16b, v3.16b\n",
            "eor v20.16b, v20.16b, v4.16b\neor v21.16b, v21.16b, v5.16b\n",
            "eor v22.16b, v22.16b, v6.16b\neor v23.16b, v23.16b, v7.16b\n",
        )
    };
}

unsafe fn read(from: *const u8, lines: usize, passes: u64) -> u64 {
    let mut folded = [0u64; 2];
    if passes == 0 {
        return 0;
    }
    if passes > 1 {
        // SAFETY: as below.
        unsafe { load(from, lines, passes - 1) };
    }
    // SAFETY: the caller promises `lines` readable lines.
    unsafe {
        passes!(
            lines, 1u64,
            for_each!("16,17,18,19,20,21,22,23", "movi v\\k\\().2d, #0\n"),
            turn: concat!(
                fold!("ldp q0, q1, [{from}]\nldp q2, q3, [{from}, #32]\nldp q4, q5, [{from}, #64]\nldp q6, q7, [{from}, #96]\n"),
                fold!("ldp q0, q1, [{from}, #128]\nldp q2, q3, [{from}, #160]\nldp q4, q5, [{from}, #192]\nldp q6, q7, [{from}, #224]\n"),
                "add {from}, {from}, #256\n",
            ),
            line: concat!(
                "ldp q0, q1, [{from}]\nldp q2, q3, [{from}, #32]\n",
                "eor v16.16b, v16.16b, v0.16b\neor v17.16b, v17.16b, v1.16b\n",
                "eor v18.16b, v18.16b, v2.16b\neor v19.16b, v19.16b, v3.16b\n",
                "add {from}, {from}, #64\n",
            ),
            "",
            concat!(for_each!("17,18,19,20,21,22,23", "eor v16.16b, v16.16b, v\\k\\().16b\n"), "str q16, [{folded}]"),
            from = inout(reg) from => _,
            folded = in(reg) folded.as_mut_ptr(),
        );
    }
    folded[0] ^ folded[1]
}

/// Loads only.
unsafe fn load(from: *const u8, lines: usize, passes: u64) {
    // SAFETY: the caller promises `lines` readable lines and at least one pass.
    unsafe {
        passes!(
            lines, passes,
            "",
            turn: concat!(
                for_each!("0,64,128,192", "ldp q0, q1, [{from}, #\\k]\nldp q2, q3, [{from}, #\\k + 32]\n"),
                "add {from}, {from}, #256\n",
            ),
            line: "ldp q0, q1, [{from}]\nldp q2, q3, [{from}, #32]\nadd {from}, {from}, #64\n",
            "sub {from}, {from}, {bytes}", "",
            from = inout(reg) from => _,
            bytes = in(reg) lines * LINE_BYTES,
        );
    }
}

/// A function that stores one word everywhere, by pairs with this instruction.
macro_rules! writer {
    ($name:ident, $store:literal, $back:literal) => {
        unsafe fn $name(to: *mut u8, lines: usize, passes: u64, word: u64) {
            if passes == 0 {
                return;
            }
            // SAFETY: the caller promises `lines` writable lines.
            unsafe {
                passes!(
                    lines, passes,
                    "dup v0.2d, {word}",
                    turn: concat!(
                        for_each!("0,32,64,96,128,160,192,224", concat!($store, " q0, q0, [{to}, #\\k]\n")),
                        "add {to}, {to}, #256\n",
                    ),
                    line: concat!(
                        for_each!("0,32", concat!($store, " q0, q0, [{to}, #\\k]\n")),
                        "add {to}, {to}, #64\n",
                    ),
                    $back, "",
                    word = in(reg) word,
                    to = inout(reg) to => _,
                    bytes = in(reg) lines * LINE_BYTES,
                );
            }
        }
    };
}

writer!(write, "stp", "sub {to}, {to}, {bytes}");
// `stnp` is a hint that the data are not wanted again soon; the barrier puts the order of the stores at the
// end of a pass, as the fence does on x86.
writer!(write_nt, "stnp", "sub {to}, {to}, {bytes}\ndmb ishst");

unsafe fn copy(to: *mut u8, from: *const u8, lines: usize, passes: u64) {
    if passes == 0 {
        return;
    }
    // SAFETY: the caller promises `lines` lines on both sides, not overlapping.
    unsafe {
        passes!(
            lines, passes,
            "",
            turn: concat!(
                "ldp q0, q1, [{from}]\nldp q2, q3, [{from}, #32]\n",
                "ldp q4, q5, [{from}, #64]\nldp q6, q7, [{from}, #96]\n",
                "ldp q16, q17, [{from}, #128]\nldp q18, q19, [{from}, #160]\n",
                "ldp q20, q21, [{from}, #192]\nldp q22, q23, [{from}, #224]\n",
                "stp q0, q1, [{to}]\nstp q2, q3, [{to}, #32]\n",
                "stp q4, q5, [{to}, #64]\nstp q6, q7, [{to}, #96]\n",
                "stp q16, q17, [{to}, #128]\nstp q18, q19, [{to}, #160]\n",
                "stp q20, q21, [{to}, #192]\nstp q22, q23, [{to}, #224]\n",
                "add {from}, {from}, #256\nadd {to}, {to}, #256\n",
            ),
            line: concat!(
                "ldp q0, q1, [{from}]\nldp q2, q3, [{from}, #32]\n",
                "stp q0, q1, [{to}]\nstp q2, q3, [{to}, #32]\n",
                "add {from}, {from}, #64\nadd {to}, {to}, #64\n",
            ),
            "sub {from}, {from}, {bytes}\nsub {to}, {to}, {bytes}", "",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            bytes = in(reg) lines * LINE_BYTES,
        );
    }
}

/// `a = b + factor * c` for the 32 bytes at each offset of a list.
macro_rules! triads {
    ($list:literal) => {
        for_each!(
            $list,
            concat!(
                "ldp q0, q1, [{c}, #\\k]\nldp q2, q3, [{b}, #\\k]\n",
                "fmul v0.2d, v0.2d, v31.d[0]\nfmul v1.2d, v1.2d, v31.d[0]\n",
                "fadd v0.2d, v0.2d, v2.2d\nfadd v1.2d, v1.2d, v3.2d\nstp q0, q1, [{a}, #\\k]\n",
            )
        )
    };
}

unsafe fn triad(to: *mut u8, left: *const u8, right: *const u8, lines: usize, passes: u64, factor: f64) {
    if passes == 0 {
        return;
    }
    // SAFETY: the caller promises `lines` lines of doubles in each stream, the written one apart.
    unsafe {
        passes!(
            lines, passes,
            "dup v31.2d, {factor}",
            turn: concat!(
                triads!("0,32,64,96,128,160,192,224"),
                "add {a}, {a}, #256\nadd {b}, {b}, #256\nadd {c}, {c}, #256\n",
            ),
            line: concat!(triads!("0,32"), "add {a}, {a}, #64\nadd {b}, {b}, #64\nadd {c}, {c}, #64\n"),
            "sub {a}, {a}, {bytes}\nsub {b}, {b}, {bytes}\nsub {c}, {c}, {bytes}", "",
            factor = in(reg) factor.to_bits(),
            a = inout(reg) to => _,
            b = inout(reg) left => _,
            c = inout(reg) right => _,
            bytes = in(reg) lines * LINE_BYTES,
        );
    }
}
