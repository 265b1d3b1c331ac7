//! aarch64: the virtual counter of the generic timer, which the architecture gives a fixed rate.
//!
//! | at | instructions | why |
//! | --- | --- | --- |
//! | begin | `dsb nshld; isb; mrs cntvct_el0; isb` | DSB waits for earlier loads; the counter may be read ahead of it (a DSB does not hold back reads of system registers), so an ISB stands between; the second ISB keeps the region from starting before the counter was read. |
//! | end | the same | ISB alone does not wait for the data of loads, so the region's last miss would be cut off without the DSB. |
//!
//! `nshld`: this core's loads only. Stores are not waited for: the program does not wait for them either.
//!
//! Where `FEAT_ECV` exists, `CNTVCTSS_EL0` is read instead: a self-synchronised view that cannot be read
//! speculatively, which saves the first ISB. The kernel's hardware capabilities are asked before, since
//! elsewhere the read is undefined. Where EL0 may not read the counter, Linux traps and emulates it: slow,
//! and seen in the measured overhead. Since Linux 6.12 `prctl(PR_SET_TSC)` can make it a SIGSEGV, which is
//! asked for too.
//!
//! Counters of 24 to 25 MHz are common (a quantum of 40 ns); `CNTFRQ_EL0` is what firmware wrote there, not a
//! measurement, so the rate is calibrated like anywhere else.

use std::arch::asm;

use crate::{ClockKind, TimeSource, Unusable, platform};

/// The virtual counter. Obtained only through [`crate::Clock::open`], which has checked that it can be read.
#[derive(Clone, Copy, Debug)]
pub struct HardwareClock {
    self_synchronised: bool,
}

impl HardwareClock {
    #[inline(always)]
    fn read(self) -> u64 {
        let ticks: u64;
        // The branch is the same for the whole process, hence predicted, and lies outside the two fences.
        // Without `nomem` the blocks are compiler barriers for memory.
        if self.self_synchronised {
            // SAFETY: the kernel lists FEAT_ECV; S3_3_C14_C0_6 is CNTVCTSS_EL0, a name that assemblers know
            // late.
            unsafe {
                asm!("dsb nshld", "mrs {}, S3_3_C14_C0_6", "isb", out(reg) ticks, options(nostack, preserves_flags));
            }
        } else {
            // SAFETY: reading CNTVCT_EL0 is permitted or emulated, see `open`.
            unsafe {
                asm!("dsb nshld", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
            }
        }
        ticks
    }
}

impl TimeSource for HardwareClock {
    #[inline(always)]
    fn begin(&self) -> u64 {
        self.read()
    }
}

pub(crate) const KIND: ClockKind = ClockKind::Cntvct;

/// The architecture defines the counter's rate as fixed (Arm ARM, the Generic Timer).
#[expect(clippy::unnecessary_wraps, reason = "one signature for all architectures")]
pub(crate) fn invariant() -> Option<bool> {
    Some(true)
}

/// The kernel's choice of clock source is not asked: unlike x86's counter this one has no watchdog that could
/// reject it.
pub(crate) fn open() -> Result<HardwareClock, Unusable> {
    if platform::counter_allowed() == Some(false) {
        return Err(Unusable::Forbidden);
    }
    Ok(HardwareClock { self_synchronised: platform::self_synchronised_counter() })
}

/// What brackets a region on this CPU.
pub(crate) fn fences(clock: HardwareClock) -> String {
    let read = if clock.self_synchronised {
        "dsb nshld; mrs cntvctss_el0; isb (the counter's self-synchronised view needs no isb before it)"
    } else {
        "dsb nshld; isb; mrs cntvct_el0; isb"
    };
    format!(
        "begin and end: {read}. DSB waits for the region's loads, ISB keeps later work out; stores are not \
            waited for."
    )
}

/// Keeps the loads before and after apart.
#[inline(always)]
pub(crate) fn fence_loads() {
    // SAFETY: barriers have no operands and may be executed at every privilege level.
    unsafe { asm!("dsb nshld", "isb", options(nostack, preserves_flags)) }
}

/// See [`dependent_adds`].
pub(crate) const DEPENDENT_ADDS: Option<fn(u64) -> u64> = Some(dependent_adds);

/// Executes `rounds` x 128 dependent additions and returns their sum, which is their number.
///
/// In-order cores add at most one cycle for the loop's own two instructions: below 1 %.
fn dependent_adds(rounds: u64) -> u64 {
    let mut sum = 0_u64;
    if rounds > 0 {
        // SAFETY: touches only its operands and the flags.
        unsafe {
            asm!(
                "2:",
                ".rept 128",
                "add {sum}, {sum}, {one}",
                ".endr",
                "subs {left}, {left}, #1",
                "b.ne 2b",
                sum = inout(reg) sum,
                one = in(reg) 1_u64,
                left = inout(reg) rounds => _,
                options(nomem, nostack),
            );
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs_forwards(clock: HardwareClock) {
        let mut last = clock.begin();
        for _ in 0..1000 {
            let (begin, end) = (clock.begin(), clock.end());
            assert!(last <= begin && begin <= end);
            last = end;
        }
    }

    #[test]
    fn the_plain_counter_runs_forwards() {
        if open().is_ok() {
            runs_forwards(HardwareClock { self_synchronised: false });
        }
    }

    #[test]
    fn the_counter_that_was_chosen_runs_forwards() {
        if let Ok(clock) = open() {
            runs_forwards(clock);
            assert!(fences(clock).contains("dsb nshld"));
        }
    }
}
