//! Linux: the clock ids, and what the kernel says about the CPU's counter.

#[path = "posix.rs"]
mod posix;
pub(crate) use posix::{MONOTONIC, RawId, read, readable};

pub(crate) const MONOTONIC_RAW: RawId = libc::CLOCK_MONOTONIC_RAW;

pub(crate) const CLOCKS: &[(&str, RawId)] = &[
    ("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC),
    ("CLOCK_MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
    ("CLOCK_MONOTONIC_COARSE", libc::CLOCK_MONOTONIC_COARSE),
    ("CLOCK_REALTIME", libc::CLOCK_REALTIME),
    ("CLOCK_REALTIME_COARSE", libc::CLOCK_REALTIME_COARSE),
    ("CLOCK_BOOTTIME", libc::CLOCK_BOOTTIME),
    ("CLOCK_TAI", libc::CLOCK_TAI),
    ("CLOCK_PROCESS_CPUTIME_ID", libc::CLOCK_PROCESS_CPUTIME_ID),
    ("CLOCK_THREAD_CPUTIME_ID", libc::CLOCK_THREAD_CPUTIME_ID),
];

/// Bound of the rate error of the plain monotonic clock: the kernel lets NTP slew it by at most 500 ppm
/// (MAXFREQ in include/linux/timex.h).
pub(crate) const MONOTONIC_SLEW_PPM: f64 = 500.0;

/// What the kernel keeps time with; absent where /sys is not mounted.
#[allow(dead_code, reason = "asked on the architectures whose kernel may reject the counter")]
pub(crate) fn kernel_clocksource() -> Option<String> {
    let name =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether this thread may read the counter, or would be sent SIGSEGV; absent where the kernel does not say
/// (aarch64 before 6.12, sandboxes), in which case it cannot have been switched off this way.
#[allow(dead_code, reason = "asked on the architectures that have a counter")]
pub(crate) fn counter_allowed() -> Option<bool> {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given.
    let answer = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    (answer == 0).then_some(mode == libc::PR_TSC_ENABLE)
}

/// Whether the kernel says that the self-synchronised counter of `FEAT_ECV` may be read.
#[cfg(target_arch = "aarch64")]
pub(crate) fn self_synchronised_counter() -> bool {
    /// `HWCAP2_ECV` of arch/arm64/include/uapi/asm/hwcap.h.
    const HWCAP2_ECV: libc::c_ulong = 1 << 19;
    // SAFETY: getauxval reads the process's own auxiliary vector and returns 0 for unknown keys.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_ECV != 0 }
}
