//! The dependent loads, in assembly: the compiler can neither remove nor widen them.

/// Follows `steps` pointers from `start`.
///
/// # Safety
/// `start` must begin a chain in which each address holds the next one, for ever.
#[inline]
pub(super) unsafe fn follow(start: *const u8, steps: u64) -> *const u8 {
    let mut at = start;
    let rounds = steps / 16;
    let rest = steps % 16;
    if rounds > 0 {
        // SAFETY: the caller promises that every address in the chain is readable; nothing is written.
        unsafe {
            std::arch::asm!(
                ".p2align 4",
                "2:",
                "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                "dec {rounds}",
                "jnz 2b",
                at = inout(reg) at,
                rounds = inout(reg) rounds => _,
                options(nostack, readonly),
            );
        }
    }
    for _ in 0..rest {
        // SAFETY: as above.
        unsafe { std::arch::asm!("mov {at}, [{at}]", at = inout(reg) at, options(nostack, readonly)) };
    }
    at
}
