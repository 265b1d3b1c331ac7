//! Time stamps: where they come from, what brackets a timed region, how fine they are and what they cost.
//!
//! A [`Clock`] is opened once. It prefers the counter of the CPU ([`HardwareClock`]), says in
//! [`ClockFacts::why_not_hardware`] why it could not have it, and measures its own rate, quantum and
//! overhead, because none of them may be assumed: on some virtual machines every difference of two time stamp
//! counter reads is a multiple of 10 ns, and calibrations without bracketed reads have been off by 73 ppm.
//!
//! Hot loops are generic over [`TimeSource`] and monomorphised: match on [`Source`] outside the loop. Each
//! architecture has one file (`x86.rs`, `aarch64.rs`,
//! `no_counter.rs`), each kind of operating system one in `platform/`.

#![expect(clippy::inline_always, reason = "a call between the stamp and the work would be timed")]

#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "no_counter.rs")]
mod arch;
mod calibration;
mod clock;
mod core_frequency;
mod facts;
mod os;
#[cfg_attr(target_os = "linux", path = "platform/linux.rs")]
#[cfg_attr(all(unix, not(target_os = "linux")), path = "platform/other_unix.rs")]
#[cfg_attr(not(unix), path = "platform/elsewhere.rs")]
mod platform;
mod resolution;
mod simulated;
mod source;
mod unusable;

pub use arch::HardwareClock;
pub use clock::{Clock, Source};
pub use core_frequency::core_frequency_now;
pub use facts::{ClockFacts, ClockKind, Overhead};
pub use os::{OsClock, OsClockId, monotonic_ns, os_clock, os_clocks};
pub use resolution::{Instrument, measure_instrument, quantum_ticks};
pub use simulated::SimulatedClock;
pub use source::TimeSource;
pub use unusable::Unusable;
