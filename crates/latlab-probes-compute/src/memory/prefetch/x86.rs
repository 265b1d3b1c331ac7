//! Prefetch instructions and the strided chase, in assembly.

use std::arch::asm;

use raw_cpuid::CpuId;

/// What asks for a line to be read.
pub(super) const READ: Option<&str> = Some("prefetcht0");

/// What asks for a line to be written, where this CPU has it (elsewhere it does nothing).
pub(super) fn write() -> Option<&'static str> {
    let features = CpuId::new().get_extended_processor_and_feature_identifiers();
    features.is_some_and(|known| known.has_prefetchw()).then_some("prefetchw")
}

/// Asks for the line of an address, to be read. No address is wrong.
#[inline(always)]
pub(super) fn ask_to_read(at: *const u8) {
    // SAFETY: a hint: it accesses nothing, whatever the address.
    unsafe {
        asm!("prefetcht0 byte ptr [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
    }
}

/// Asks for the line of an address, to be written. No address is wrong. The compiler's own hint becomes one for reading where it
/// compiles for CPUs without this instruction.
#[inline(always)]
pub(super) fn ask_to_write(at: *const u8) {
    // SAFETY: a hint: it changes nothing, whatever the address.
    unsafe {
        asm!("prefetchw byte ptr [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
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
                "mov {at}, [{at} + {stride}]", "mov {at}, [{at} + {stride}]",
                "mov {at}, [{at} + {stride}]", "mov {at}, [{at} + {stride}]",
                "mov {at}, [{at} + {stride}]", "mov {at}, [{at} + {stride}]",
                "mov {at}, [{at} + {stride}]", "mov {at}, [{at} + {stride}]",
                "dec {rounds}",
                "jnz 2b",
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
                "mov {at}, [{at} + {stride}]",
                at = inout(reg) at,
                stride = in(reg) stride,
                options(nostack, readonly, preserves_flags),
            );
        }
    }
    at
}
