//! Unix systems other than Linux: `clock_gettime`, and no word from the kernel about the CPU's counter.

#[path = "posix.rs"]
mod posix;
pub(crate) use posix::{MONOTONIC, RawId, read, readable, stated_resolution_ns};

/// Only macOS has a clock that is never steered.
#[cfg(target_os = "macos")]
pub(crate) const MONOTONIC_RAW: RawId = libc::CLOCK_MONOTONIC_RAW;
#[cfg(not(target_os = "macos"))]
pub(crate) const MONOTONIC_RAW: RawId = libc::CLOCK_MONOTONIC;

pub(crate) const CLOCKS: &[(&str, RawId)] = &[
    ("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC),
    #[cfg(target_os = "macos")]
    ("CLOCK_MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
    #[cfg(target_os = "macos")]
    ("CLOCK_UPTIME_RAW", libc::CLOCK_UPTIME_RAW),
    ("CLOCK_REALTIME", libc::CLOCK_REALTIME),
    ("CLOCK_PROCESS_CPUTIME_ID", libc::CLOCK_PROCESS_CPUTIME_ID),
    ("CLOCK_THREAD_CPUTIME_ID", libc::CLOCK_THREAD_CPUTIME_ID),
];

/// As on Linux: the limit that NTP implementations share.
pub(crate) const MONOTONIC_SLEW_PPM: f64 = 500.0;

#[allow(dead_code, reason = "asked on the architectures whose kernel may reject the counter")]
pub(crate) fn kernel_clocksource() -> Option<String> {
    None
}

#[allow(dead_code, reason = "asked on the architectures that have a counter")]
pub(crate) fn counter_allowed() -> Option<bool> {
    None
}

/// Not asked for here: reading the register where it does not exist would be SIGILL.
#[cfg(target_arch = "aarch64")]
pub(crate) fn self_synchronised_counter() -> bool {
    false
}
