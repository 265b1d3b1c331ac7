//! x86-64: AVX-512, AVX2 and SSE2, chosen by what the CPU has.
//!
//! One skeleton of loops in assembly; each instruction set gives its instructions. A turn of a loop is four
//! to sixteen registers, so that the loop's own two instructions are hidden behind the memory instructions.
//!
//! Reading has two loops. Folding every 64-byte load into a checksum costs a third of the first-level rate
//! with one `vpaddq` a load (295 against 440 GB/s where this was tried) and still 15 % with one three-way xor
//! for two loads. So all passes of one call but the last only load, and the last one folds; where a call is
//! one pass, that is beyond the caches, every pass folds, and there it costs nothing.

use std::arch::asm;

use super::{Kernels, LINE_BYTES};

/// Instruction sets of this CPU, widest first. SSE2 is part of x86-64.
pub(super) fn available() -> Vec<&'static Kernels> {
    let mut found = Vec::new();
    if is_x86_feature_detected!("avx512f") {
        found.push(&avx512::KERNELS);
    }
    if is_x86_feature_detected!("avx2") {
        found.push(&avx2::KERNELS);
    }
    found.push(&sse2::KERNELS);
    found
}

/// The registers of one turn of the unrolled loop.
macro_rules! sixteen {
    () => {
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
    };
}

/// Half of them: the triad needs a register for its factor, and folding one for its second load.
macro_rules! eight {
    () => {
        "0,1,2,3,4,5,6,7"
    };
}

/// Turns of the unrolled loop, then single lines, again for each pass;
/// `$back` puts the pointers back to their begin. `$first` is before all passes, `$last` behind them. Every
/// register of the instruction set is declared as overwritten.
macro_rules! passes {
    (
        $lines:expr, $turn_lines:expr, $passes:expr,
        $first:expr, turn: $turn:expr, $ahead:expr, line: $line:expr, $ahead_line:expr, $back:expr, $last:expr,
        $($operands:tt)*
    ) => {
        asm!(
            $first,
            ".p2align 6",
            "2:",
            "mov {left}, {turns}",
            "test {left}, {left}",
            "jz 4f",
            ".p2align 6",
            "3:",
            $turn,
            $ahead,
            "dec {left}",
            "jnz 3b",
            "4:",
            "mov {left}, {rest}",
            "test {left}, {left}",
            "jz 6f",
            "5:",
            $line,
            $ahead_line,
            "dec {left}",
            "jnz 5b",
            "6:",
            $back,
            "dec {passes}",
            "jnz 2b",
            $last,
            turns = in(reg) $lines / $turn_lines,
            rest = in(reg) $lines % $turn_lines,
            passes = inout(reg) $passes => _,
            left = out(reg) _,
            $($operands)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        )
    };
}

/// The same instructions for each register number `\k` of a list.
macro_rules! for_each {
    ($list:expr, $($instruction:expr),+) => {
        concat!(".irp k,", $list, "\n", $($instruction, "\n",)+ ".endr\n")
    };
}

/// `a = b + factor * c` for each register of a list.
macro_rules! triad {
    ($list:expr, $load:literal, $multiply:expr, $add:expr, $store:literal, $register:literal, $width:literal) => {
        for_each!(
            $list,
            concat!($load, " ", $register, "\\k, [{c} + \\k*", $width, "]"),
            $multiply,
            concat!($add, "[{b} + \\k*", $width, "]"),
            concat!($store, " [{a} + \\k*", $width, "], ", $register, "\\k")
        )
    };
}

/// A function that stores one word everywhere, by registers with this instruction.
macro_rules! writer {
    (
        $name:ident, $store:literal, $back:literal,
        $load:literal, $register:literal, $width:literal, $line:literal, $end:literal
    ) => {
        unsafe fn $name(to: *mut u8, lines: usize, passes: u64, word: u64) {
            let words = [word; 8];
            if passes == 0 {
                return;
            }
            // SAFETY: the caller promises `lines` writable lines, aligned to a line.
            unsafe {
                passes!(
                    lines, TURN_LINES, passes,
                    concat!($load, " ", $register, "0, [{words}]"),
                    turn: for_each!(sixteen!(), concat!($store, " [{to} + \\k*", $width, "], ", $register, "0")),
                    concat!("add {to}, 16*", $width),
                    line: for_each!($line, concat!($store, " [{to} + \\k*", $width, "], ", $register, "0")),
                    "add {to}, 64", $back, $end,
                    to = inout(reg) to => _,
                    bytes = in(reg) lines * LINE_BYTES,
                    words = in(reg) words.as_ptr(),
                );
            }
        }
    };
}

/// The kernels of one instruction set. In the instructions `\k` is the number of a register.
macro_rules! kernels {
    (
        $module:ident, $isa:literal,
        width: $width:literal,
        line: $line:literal,
        clear: $clear:literal,
        load_turn: $load_turn:literal, $load_registers:literal,
        fold_turn: $fold_turn:expr, fold_line: $fold_line:expr,
        gather: $gather:literal,
        load: $load:literal, store: $store:literal, stream: $stream:literal,
        unaligned_load: $unaligned_load:literal, unaligned_store: $unaligned_store:literal,
        multiply: $multiply:expr, add: $add:expr,
        register: $register:literal,
        end: $end:literal $(,)?
    ) => {
        mod $module {
            use super::*;

            /// Bytes of one turn with sixteen registers.
            const TURN: usize = 16 * $width;
            const TURN_LINES: usize = TURN / LINE_BYTES;

            pub(super) static KERNELS: Kernels =
                Kernels { isa: $isa, read, write, write_nt: Some(write_nt), copy, triad };

            unsafe fn read(from: *const u8, lines: usize, passes: u64) -> u64 {
                let mut folded = [0u64; 8];
                if passes == 0 {
                    return 0;
                }
                if passes > 1 {
                    // SAFETY: as below.
                    unsafe { load(from, lines, passes - 1) };
                }
                // SAFETY: the caller promises `lines` readable lines; `folded` holds a whole register of any
                // width.
                unsafe {
                    passes!(
                        lines, (TURN_LINES / 2), 1u64,
                        for_each!(eight!(), $clear),
                        turn: $fold_turn, concat!("add {from}, 8*", $width),
                        line: $fold_line, "add {from}, 64", "",
                        concat!(
                            for_each!("1,2,3,4,5,6,7", $gather),
                            $unaligned_store, " [{folded}], ", $register, "0\n",
                            $end,
                        ),
                        from = inout(reg) from => _,
                        folded = in(reg) folded.as_mut_ptr(),
                    );
                }
                folded.iter().fold(0, |all, lane| all ^ lane)
            }

            /// Loads only.
            unsafe fn load(from: *const u8, lines: usize, passes: u64) {
                // SAFETY: the caller promises `lines` readable lines and at least one pass.
                unsafe {
                    passes!(
                        lines, ($load_registers * $width / LINE_BYTES), passes,
                        "",
                        turn: for_each!($load_turn, concat!($load, " ", $register, "\\k, [{from} + \\k*", $width, "]")),
                        concat!("add {from}, ", $load_registers, "*", $width),
                        line: for_each!($line, concat!($load, " ", $register, "\\k, [{from} + \\k*", $width, "]")),
                        "add {from}, 64", "sub {from}, {bytes}", $end,
                        from = inout(reg) from => _,
                        bytes = in(reg) lines * LINE_BYTES,
                    );
                }
            }

            writer!(
                write, $store, "sub {to}, {bytes}",
                $unaligned_load, $register, $width, $line, $end
            );
            // The fence at the end of each pass waits until the write-combining buffers are empty, so that
            // the time of the stores is inside the timed region.
            writer!(
                write_nt, $stream, "sub {to}, {bytes}\nsfence",
                $unaligned_load, $register, $width, $line, $end
            );

            unsafe fn copy(to: *mut u8, from: *const u8, lines: usize, passes: u64) {
                if passes == 0 {
                    return;
                }
                // SAFETY: the caller promises `lines` lines on both sides, aligned, not overlapping.
                unsafe {
                    passes!(
                        lines, TURN_LINES, passes,
                        "",
                        turn: concat!(
                            for_each!(sixteen!(), concat!($load, " ", $register, "\\k, [{from} + \\k*", $width, "]")),
                            for_each!(sixteen!(), concat!($store, " [{to} + \\k*", $width, "], ", $register, "\\k")),
                        ),
                        concat!("add {from}, 16*", $width, "\nadd {to}, 16*", $width),
                        line: concat!(
                            for_each!($line, concat!($load, " ", $register, "\\k, [{from} + \\k*", $width, "]")),
                            for_each!($line, concat!($store, " [{to} + \\k*", $width, "], ", $register, "\\k")),
                        ),
                        "add {from}, 64\nadd {to}, 64", "sub {from}, {bytes}\nsub {to}, {bytes}", $end,
                        from = inout(reg) from => _,
                        to = inout(reg) to => _,
                        bytes = in(reg) lines * LINE_BYTES,
                    );
                }
            }

            unsafe fn triad(
                to: *mut u8, left: *const u8, right: *const u8, lines: usize, passes: u64, factor: f64,
            ) {
                let factors = [factor; 8];
                if passes == 0 {
                    return;
                }
                // SAFETY: the caller promises `lines` lines of doubles in each stream, aligned, the written
                // one apart.
                unsafe {
                    passes!(
                        lines, (TURN_LINES / 2), passes,
                        concat!($unaligned_load, " ", $register, "15, [{factors}]"),
                        turn: triad!(eight!(), $load, $multiply, $add, $store, $register, $width),
                        concat!("add {a}, 8*", $width, "\nadd {b}, 8*", $width, "\nadd {c}, 8*", $width),
                        line: triad!($line, $load, $multiply, $add, $store, $register, $width),
                        "add {a}, 64\nadd {b}, 64\nadd {c}, 64",
                        "sub {a}, {bytes}\nsub {b}, {bytes}\nsub {c}, {bytes}", $end,
                        a = inout(reg) to => _,
                        b = inout(reg) left => _,
                        c = inout(reg) right => _,
                        bytes = in(reg) lines * LINE_BYTES,
                        factors = in(reg) factors.as_ptr(),
                    );
                }
            }
        }
    };
}

kernels! {
    avx512, "avx512",
    width: 64,
    line: "0",
    clear: "vpxorq zmm\\k, zmm\\k, zmm\\k",
    load_turn: "0,1,2,3", 4,
    // 0x96 is the exclusive or of three.
    fold_turn: for_each!(
        "0,2,4,6",
        "vmovapd zmm8, [{from} + \\k*64]",
        "vpternlogq zmm\\k, zmm8, [{from} + \\k*64 + 64], 0x96"
    ),
    fold_line: "vpxorq zmm0, zmm0, [{from}]\n",
    gather: "vpxorq zmm0, zmm0, zmm\\k",
    load: "vmovapd", store: "vmovapd", stream: "vmovntpd",
    unaligned_load: "vmovupd", unaligned_store: "vmovupd",
    multiply: "vmulpd zmm\\k, zmm\\k, zmm15", add: "vaddpd zmm\\k, zmm\\k, ",
    register: "zmm",
    // Dirty upper halves slow down SSE code that follows.
    end: "vzeroupper",
}

kernels! {
    avx2, "avx2",
    width: 32,
    line: "0,1",
    clear: "vpxor ymm\\k, ymm\\k, ymm\\k",
    load_turn: "0,1,2,3,4,5,6,7", 8,
    fold_turn: for_each!(eight!(), "vpxor ymm\\k, ymm\\k, [{from} + \\k*32]"),
    fold_line: for_each!("0,1", "vpxor ymm\\k, ymm\\k, [{from} + \\k*32]"),
    gather: "vpxor ymm0, ymm0, ymm\\k",
    load: "vmovapd", store: "vmovapd", stream: "vmovntpd",
    unaligned_load: "vmovupd", unaligned_store: "vmovupd",
    multiply: "vmulpd ymm\\k, ymm\\k, ymm15", add: "vaddpd ymm\\k, ymm\\k, ",
    register: "ymm",
    end: "vzeroupper",
}

kernels! {
    sse2, "sse2",
    width: 16,
    line: "0,1,2,3",
    clear: "pxor xmm\\k, xmm\\k",
    load_turn: "0,1,2,3,4,5,6,7", 8,
    fold_turn: for_each!(eight!(), "pxor xmm\\k, [{from} + \\k*16]"),
    fold_line: for_each!("0,1,2,3", "pxor xmm\\k, [{from} + \\k*16]"),
    gather: "pxor xmm0, xmm\\k",
    load: "movapd", store: "movapd", stream: "movntpd",
    unaligned_load: "movupd", unaligned_store: "movupd",
    multiply: "mulpd xmm\\k, xmm15", add: "addpd xmm\\k, ",
    register: "xmm",
    end: "",
}
