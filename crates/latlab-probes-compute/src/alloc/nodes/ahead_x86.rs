//! x86-64: PREFETCHW, which CPUs without it take for a no-op.

/// Asks for a line that will be written. An address without a page is passed over.
#[inline]
pub(super) fn for_write(address: *const u8) {
    // SAFETY: a prefetch reads and writes nothing that a program sees, and never faults.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}
