//! `clock_gettime`, which every Unix has.

use std::mem::MaybeUninit;

pub(crate) type RawId = libc::clockid_t;

pub(crate) const MONOTONIC: RawId = libc::CLOCK_MONOTONIC;

/// Nanoseconds; 0 if the clock cannot be read ([`readable`] is asked first).
#[inline(always)]
pub(crate) fn read(id: RawId) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is valid for writing a timespec; an unknown id is reported by the return value, not by a
    // fault.
    unsafe { libc::clock_gettime(id, time.as_mut_ptr()) };
    // SAFETY: zeroed is a valid timespec, and clock_gettime writes only valid ones.
    nanoseconds(unsafe { time.assume_init() })
}

pub(crate) fn readable(id: RawId) -> bool {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: as in `read`.
    unsafe { libc::clock_gettime(id, time.as_mut_ptr()) == 0 }
}

/// Readings before the epoch of a clock do not occur for the clocks listed here.
#[inline(always)]
#[expect(clippy::cast_sign_loss, reason = "see above; tv_nsec is 0..1e9")]
#[allow(clippy::unnecessary_cast, reason = "time_t and c_long have 32 bits on some systems")]
fn nanoseconds(time: libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
