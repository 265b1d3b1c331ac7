//! Unix systems other than Linux: `clock_gettime`, and no word from the kernel about the CPU's counter.

#[path = "posix.rs"]
mod posix;
#[path = "silent.rs"]
mod silent;
pub(crate) use posix::{MONOTONIC, RawId, read, readable};
pub(crate) use silent::*;

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
