//! Systems on which threads are not kept on a CPU.

/// Whether threads can be kept on one CPU.
pub const CAN_PIN: bool = false;

/// Whether the calling thread runs on this CPU now: not known here.
pub(super) fn is_on(_cpu: u32) -> Option<bool> {
    None
}
