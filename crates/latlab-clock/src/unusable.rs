//! Why the CPU's counter cannot be the clock.

use thiserror::Error;

/// A reason, printable as it is, why the operating system's clock is used instead of the CPU's counter.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Unusable {
    /// There is no code for a counter of this architecture.
    #[error("no cycle counter is known for this CPU architecture ({0})")]
    Architecture(&'static str),
    /// CPUID does not list an instruction that the bracket needs.
    #[error("the CPU does not offer {0} (CPUID)")]
    Missing(&'static str),
    /// `prctl(PR_SET_TSC)` made reading the counter a fault.
    #[error("this process may not read the counter (prctl PR_SET_TSC): SIGSEGV would kill it")]
    Forbidden,
    /// The kernel does not keep time with the counter although it could see it.
    #[error(
        "the kernel keeps time with {0}, not with the time stamp counter; it may have found that unstable \
         (see `dmesg | grep -i tsc`)"
    )]
    RejectedByKernel(String),
    /// Nobody promises that the counter's rate is constant.
    #[error("neither CPUID nor the kernel guarantees a constant rate of the time stamp counter")]
    NotInvariant,
    /// The counter stands still.
    #[error("the counter did not advance during calibration")]
    Stopped,
    /// A reading was smaller than an earlier one.
    #[error("the counter ran backwards {0} times while it was checked")]
    Backwards(u64),
    /// The two-point calibration is too loose to be used.
    #[error("the counter could not be calibrated better than {0:.0} ppm against the system's clock")]
    Uncalibrated(f64),
}
