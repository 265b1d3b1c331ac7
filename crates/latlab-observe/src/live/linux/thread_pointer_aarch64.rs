//! aarch64: the thread pointer has a register.

use std::arch::asm;

/// `RSEQ_SIG` of the kernel's selftests and glibc.
pub(crate) const SIGNATURE: u32 = 0xd428_bc00;

/// The address that `__rseq_offset` is relative to.
#[expect(clippy::unnecessary_wraps, reason = "it is not known on every architecture")]
pub(crate) fn thread_pointer() -> Option<usize> {
    let pointer: usize;
    // SAFETY: reads a register that user space may read.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    Some(pointer)
}
