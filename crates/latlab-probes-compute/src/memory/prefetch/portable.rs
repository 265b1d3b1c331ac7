//! No prefetch instruction that is known to be one; the strided chase with volatile loads.

/// What asks for a line to be read.
pub(super) const READ: Option<&str> = None;

/// What asks for a line to be written.
pub(super) fn write() -> Option<&'static str> {
    None
}

/// Nothing.
#[inline(always)]
pub(super) fn ask_to_read(_at: *const u8) {}

/// Nothing.
#[inline(always)]
pub(super) fn ask_to_write(_at: *const u8) {}

/// From `at` on, `steps` times: loads the address that is found `stride` bytes further on.
///
/// # Safety
/// Each place that is met must be readable.
#[inline]
pub(super) unsafe fn follow(at: *const u8, stride: u64, steps: u64) -> *const u8 {
    let mut at = at;
    for _ in 0..steps {
        let place = at.wrapping_add(super::to_usize(stride));
        // SAFETY: the caller promises what is read.
        at = unsafe { place.cast::<*const u8>().read_volatile() };
    }
    at
}
