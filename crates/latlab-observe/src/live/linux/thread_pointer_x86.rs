//! x86-64: the thread control block's first word is its own address.

use std::arch::asm;

/// What instructions before an abort handler must be preceded by: `RSEQ_SIG` of the kernel's selftests and
/// glibc.
pub(crate) const SIGNATURE: u32 = 0x5305_3053;

/// The address that `__rseq_offset` is relative to.
#[expect(clippy::unnecessary_wraps, reason = "it is not known on every architecture")]
pub(crate) fn thread_pointer() -> Option<usize> {
    let pointer: usize;
    // SAFETY: the ABI keeps the block's address at its own beginning.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    Some(pointer)
}
