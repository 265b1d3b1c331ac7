//! Lines of memory that are asked for ahead of their use: prefetch instructions, in assembly. The compiler's
//! own hint for writing becomes one for reading where it compiles for CPUs without that instruction.

use std::arch::asm;

/// The names of the instructions, and the address as each CPU has it.
#[cfg(target_arch = "x86_64")]
macro_rules! instruction {
    (read) => {
        "prefetcht0"
    };
    (write) => {
        "prefetchw"
    };
    (address) => {
        " [{at}]"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! instruction {
    (read) => {
        "prfm pldl1keep"
    };
    (write) => {
        "prfm pstl1keep"
    };
    (address) => {
        ", [{at}]"
    };
}

/// What asks for a line to be read.
pub(crate) const READ: Option<&str> = Some(instruction!(read));

/// What asks for a line to be written, where this CPU has it: elsewhere it does nothing.
#[cfg(target_arch = "x86_64")]
pub(crate) fn write() -> Option<&'static str> {
    let features = raw_cpuid::CpuId::new().get_extended_processor_and_feature_identifiers();
    features.is_some_and(|known| known.has_prefetchw()).then_some(instruction!(write))
}

/// What asks for a line to be written.
#[cfg(target_arch = "aarch64")]
pub(crate) fn write() -> Option<&'static str> {
    Some(instruction!(write))
}

/// Makes a function that asks for a line. The timed loop must hold no call, whatever the profile.
macro_rules! asks {
    ($(#[$doc:meta])* $name:ident, $instruction:ident) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(at: *const u8) {
            // SAFETY: a hint: it accesses nothing that a program sees, and never faults.
            unsafe {
                asm!(
                    concat!(instruction!($instruction), instruction!(address)),
                    at = in(reg) at,
                    options(nostack, readonly, preserves_flags)
                );
            }
        }
    };
}

asks!(
    /// Asks for the line of an address, to be read. No address is wrong.
    to_read,
    read
);
asks!(
    /// Asks for the line of an address, to be written. No address is wrong.
    to_write,
    write
);
