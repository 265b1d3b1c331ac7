//! The dependent loads where there is no assembly of ours: volatile, so the compiler keeps each one.

/// Follows `steps` pointers from `start`.
///
/// # Safety
/// `start` must begin a chain in which each address holds the next one, for ever.
#[inline]
pub(super) unsafe fn follow(start: *const u8, steps: u64) -> *const u8 {
    let mut at = start;
    for _ in 0..steps {
        // SAFETY: the caller promises that every address in the chain is readable and holds a pointer.
        at = unsafe { at.cast::<*const u8>().read_volatile() };
    }
    at
}

/// From `start` on, `steps` times: loads the address that is found `stride` bytes further on.
///
/// # Safety
/// Each place that is met must be readable.
#[inline]
pub unsafe fn follow_strided(start: *const u8, stride: u64, steps: u64) -> *const u8 {
    let mut at = start;
    for _ in 0..steps {
        let place = at.wrapping_add(super::to_usize(stride));
        // SAFETY: the caller promises what is read.
        at = unsafe { place.cast::<*const u8>().read_volatile() };
    }
    at
}
