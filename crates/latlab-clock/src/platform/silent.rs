//! Kernels that say nothing about the CPU's counter.

#[allow(dead_code, reason = "asked on the architectures whose kernel may reject the counter")]
pub(crate) fn kernel_clocksource() -> Option<String> {
    None
}

#[allow(dead_code, reason = "asked on the architectures that have a counter")]
pub(crate) fn counter_allowed() -> Option<bool> {
    None
}

/// Not asked for here: reading the register where it does not exist would be an illegal instruction.
#[cfg(target_arch = "aarch64")]
pub(crate) fn self_synchronised_counter() -> bool {
    false
}
