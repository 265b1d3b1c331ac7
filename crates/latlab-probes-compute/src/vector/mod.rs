//! Streams: every byte of a buffer read, written, copied or combined, at the CPU's full width.
//!
//! ```text
//! Kernels (loops, one set an instruction set) ─┐
//! Field (memory with known Contents) ──────────┴─► Pass (an operation over a part, slice after slice) ──► Tally
//! ```
//! Loops are in assembly: a compiler would drop loads whose value nobody needs, turn the copy into memcpy
//! (which switches to non-temporal stores at some size), and choose half of the CPU's width.

mod contents;
mod field;
mod pass;
mod portable;
mod shape;

#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "elsewhere.rs")]
mod native;

use contents::Contents;
pub(crate) use field::{Field, Streams};
pub(crate) use pass::{Pass, Tally};
pub(crate) use shape::{Operation, Shape};

/// Kernels count in lines; buffers begin on a line.
pub(crate) const LINE_BYTES: usize = 64;

/// Reads `lines` lines, `passes` times. Returns the exclusive or of all 8-byte words of the last pass (0
/// without any).
///
/// Every byte is loaded in every pass, and in the last one also folded into the result: folding all of them
/// slows the first-level cache down where loads are wide.
///
/// Safety: `lines` lines from the address, aligned to a line, must be readable, and the CPU must have the
/// instruction set.
pub(crate) type Read = unsafe fn(*const u8, usize, u64) -> u64;
/// Writes the word to all of `lines` lines, `passes` times. Safety as for [`Read`], writable.
pub(crate) type Write = unsafe fn(*mut u8, usize, u64, u64);
/// Copies `lines` lines to the first address from the second, `passes` times. Safety as for [`Read`], and the
/// two must not overlap.
pub(crate) type Copy = unsafe fn(*mut u8, *const u8, usize, u64);
/// `a[i] = b[i] + factor * c[i]` over doubles: `a`, `b`,
/// `c`, lines, passes, factor. Product and sum are rounded separately on every CPU. Safety as for [`Read`],
/// and `a` must not overlap the others.
pub(crate) type Triad = unsafe fn(*mut u8, *const u8, *const u8, usize, u64, f64);

/// The loops of one instruction set.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// `avx512`, `avx2`, `sse2`, `neon`, `scalar`.
    pub(crate) isa: &'static str,
    pub(crate) read: Read,
    pub(crate) write: Write,
    /// Stores that bypass the caches, complete at the end of each pass; where the instruction set has them.
    pub(crate) write_nt: Option<Write>,
    pub(crate) copy: Copy,
    pub(crate) triad: Triad,
}

/// The instruction sets of this CPU, widest first; the portable loops are last and always there.
pub(crate) fn available() -> Vec<&'static Kernels> {
    let mut found = native::available();
    found.push(&portable::KERNELS);
    found
}

#[cfg(test)]
mod tests;
