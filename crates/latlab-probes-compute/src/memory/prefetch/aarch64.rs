//! Prefetch instructions and the strided chase, in assembly.

use std::arch::asm;

/// What asks for a line to be read.
pub(super) const READ: Option<&str> = Some("prfm pldl1keep");

/// What asks for a line to be written.
pub(super) fn write() -> Option<&'static str> {
    Some("prfm pstl1keep")
}

/// Asks for the line of an address, to be read. No address is wrong.
#[inline(always)]
pub(super) fn ask_to_read(at: *const u8) {
    // SAFETY: a hint: it accesses nothing, whatever the address.
    unsafe {
        asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
    }
}

/// Asks for the line of an address, to be written. No address is wrong.
#[inline(always)]
pub(super) fn ask_to_write(at: *const u8) {
    // SAFETY: a hint: it changes nothing, whatever the address.
    unsafe {
        asm!("prfm pstl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
    }
}

/// From `at` on, `steps` times: loads the address that is found `stride` bytes further on.
///
/// # Safety
/// Each place that is met must be readable.
#[inline]
pub(super) unsafe fn follow(at: *const u8, stride: u64, steps: u64) -> *const u8 {
    let mut at = at;
    let (rounds, rest) = (steps / 8, steps % 8);
    if rounds > 0 {
        // SAFETY: the caller promises what is read.
        unsafe {
            asm!(
                ".p2align 4",
                "2:",
                "ldr {at}, [{at}, {stride}]", "ldr {at}, [{at}, {stride}]",
                "ldr {at}, [{at}, {stride}]", "ldr {at}, [{at}, {stride}]",
                "ldr {at}, [{at}, {stride}]", "ldr {at}, [{at}, {stride}]",
                "ldr {at}, [{at}, {stride}]", "ldr {at}, [{at}, {stride}]",
                "subs {rounds}, {rounds}, #1",
                "b.ne 2b",
                at = inout(reg) at,
                stride = in(reg) stride,
                rounds = inout(reg) rounds => _,
                options(nostack, readonly),
            );
        }
    }
    for _ in 0..rest {
        // SAFETY: as above.
        unsafe {
            asm!(
                "ldr {at}, [{at}, {stride}]",
                at = inout(reg) at,
                stride = in(reg) stride,
                options(nostack, readonly, preserves_flags),
            );
        }
    }
    at
}
