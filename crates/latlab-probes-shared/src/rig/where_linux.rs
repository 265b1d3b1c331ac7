//! Linux: `sched_getcpu(3)`.

/// Whether threads can be kept on one CPU.
pub const CAN_PIN: bool = true;

/// Whether the calling thread runs on this CPU now; `None` when the kernel does not say.
pub(super) fn is_on(cpu: u32) -> Option<bool> {
    // SAFETY: asks for a number.
    let here = u32::try_from(unsafe { libc::sched_getcpu() }).ok()?;
    Some(here == cpu)
}
