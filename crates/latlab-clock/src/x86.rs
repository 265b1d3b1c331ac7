//! x86-64: the time stamp counter.
//!
//! | at | instructions | why |
//! | --- | --- | --- |
//! | begin | `lfence; rdtsc; lfence` | RDTSC is not ordered. The first LFENCE holds it back until everything earlier has completed locally; the second keeps the region's instructions from starting before the counter was read. |
//! | end | `rdtscp; lfence` | RDTSCP itself waits until earlier instructions have executed and earlier loads are globally visible, which is one fence less inside the region; LFENCE keeps later work out of it. |
//!
//! Neither waits for stores, which may still sit in the store buffer (MFENCE before RDTSCP would). That is
//! what a program sees: it does not wait for them either.
//!
//! Intel documents LFENCE as above (SDM vol. 2, LFENCE, RDTSC, RDTSCP). On AMD it is dispatch serialising,
//! which gives the same order, if CPUID
//! `8000_0021h` EAX\[2\] says "always", on families 0Fh and 11h, or if `MSR C001_1029h[1]` is set, which
//! Linux (since 4.15) and hypervisors do as part of their Spectre mitigation. CPUID or SERIALIZE would order
//! more than is needed, cost far more, and in a virtual machine CPUID is an exit.

use std::arch::asm;

use raw_cpuid::{CpuId, CpuIdReader};

use crate::{ClockKind, TimeSource, Unusable, platform};

/// The time stamp counter. Obtained only through [`crate::Clock::open`], which has checked that it can be
/// read.
#[derive(Clone, Copy, Debug)]
pub struct HardwareClock {
    _checked: (),
}

impl TimeSource for HardwareClock {
    #[inline(always)]
    fn begin(&self) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: the clock exists only where reading the counter is permitted. Without `nomem` the block is
        // a compiler barrier for memory.
        unsafe {
            asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
        }
        high << 32 | low
    }

    #[inline(always)]
    fn end(&self) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: as in `begin`; that CPUID lists RDTSCP was checked.
        unsafe {
            asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _, options(nostack, preserves_flags));
        }
        high << 32 | low
    }
}

pub(crate) const KIND: ClockKind = ClockKind::Tsc;

/// Whether CPUID `8000_0007h` EDX\[8\] promises a constant rate in all power and sleep states.
pub(crate) fn invariant() -> Option<bool> {
    CpuId::new().get_advanced_power_mgmt_info().map(|power| power.has_invariant_tsc())
}

pub(crate) fn open() -> Result<HardwareClock, Unusable> {
    let cpu = CpuId::new();
    judge(&Evidence {
        tsc: cpu.get_feature_info().is_some_and(|features| features.has_tsc()),
        rdtscp: cpu
            .get_extended_processor_and_feature_identifiers()
            .is_some_and(|features| features.has_rdtscp()),
        invariant: invariant(),
        allowed: platform::counter_allowed(),
        kernel_clocksource: platform::kernel_clocksource().as_deref(),
    })?;
    Ok(HardwareClock { _checked: () })
}

/// What brackets a region on this CPU.
pub(crate) fn fences(_: HardwareClock) -> String {
    let lfence = lfence_order(&CpuId::new());
    format!(
        "begin: lfence; rdtsc; lfence. end: rdtscp; lfence. RDTSCP waits for the region's loads, LFENCE \
            keeps later \
         work out; stores are not waited for. {lfence}"
    )
}

fn lfence_order<R: CpuIdReader>(cpu: &CpuId<R>) -> &'static str {
    let vendor = cpu.get_vendor_info();
    match vendor.as_ref().map(raw_cpuid::VendorInfo::as_str) {
        Some("GenuineIntel") => "LFENCE serialises execution (Intel SDM).",
        Some("AuthenticAMD" | "HygonGenuine")
            if cpu
                .get_extended_feature_identification_2()
                .is_some_and(|features| features.has_lfence_always_serializing()) =>
        {
            "LFENCE always serialises dispatch on this CPU (CPUID 8000_0021h)."
        }
        Some("AuthenticAMD" | "HygonGenuine") => {
            "LFENCE serialises dispatch here only if the kernel or hypervisor has set MSR C001_1029h[1], as \
                Linux does."
        }
        _ => "LFENCE is taken to serialise execution as on Intel; this vendor's manual was not consulted.",
    }
}

/// Keeps the loads before and after apart.
#[inline(always)]
pub(crate) fn fence_loads() {
    // SAFETY: LFENCE belongs to SSE2, which every x86-64 CPU has.
    unsafe { std::arch::x86_64::_mm_lfence() }
}

/// See [`dependent_adds`].
pub(crate) const DEPENDENT_ADDS: Option<fn(u64) -> u64> = Some(dependent_adds);

/// Executes `rounds` x 128 dependent additions and returns their sum, which is their number.
///
/// Register to register: recent Intel cores fold additions of immediates at rename, at no latency.
fn dependent_adds(rounds: u64) -> u64 {
    let mut sum = 0_u64;
    if rounds > 0 {
        // SAFETY: touches only its operands and the flags.
        unsafe {
            asm!(
                "2:",
                ".rept 128",
                "add {sum}, {one}",
                ".endr",
                "dec {left}",
                "jnz 2b",
                sum = inout(reg) sum,
                one = in(reg) 1_u64,
                left = inout(reg) rounds => _,
                options(nomem, nostack),
            );
        }
    }
    sum
}

/// What is known about the counter before it is first read.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    tsc: bool,
    rdtscp: bool,
    invariant: Option<bool>,
    allowed: Option<bool>,
    kernel_clocksource: Option<&'a str>,
}

/// Kernel clock sources that are the time stamp counter, or a hypervisor's page of scale and offset applied
/// to it.
const READ_FROM_TSC: [&str; 5] = ["tsc", "tsc-early", "kvm-clock", "xen", "hyperv_clocksource_tsc_page"];

fn judge(evidence: &Evidence) -> Result<(), Unusable> {
    if !evidence.tsc {
        return Err(Unusable::Missing("RDTSC"));
    }
    if !evidence.rdtscp {
        return Err(Unusable::Missing("RDTSCP"));
    }
    if evidence.allowed == Some(false) {
        return Err(Unusable::Forbidden);
    }
    // The kernel's watchdog compares the counter with another timer and drops it when it is unstable or
    // differs between CPUs; that is better evidence than CPUID's promise.
    if let Some(name) = evidence.kernel_clocksource.filter(|name| !READ_FROM_TSC.contains(name)) {
        return Err(Unusable::RejectedByKernel(name.to_owned()));
    }
    // Hypervisors often hide the promise. Where the guest's kernel keeps time with the counter all the same,
    // its own clock would share every error, so nothing is gained by refusing.
    let kernel_trusts_it = evidence.kernel_clocksource == Some("tsc");
    if evidence.invariant == Some(true) || kernel_trusts_it { Ok(()) } else { Err(Unusable::NotInvariant) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evidence<'static> {
        Evidence {
            tsc: true,
            rdtscp: true,
            invariant: Some(true),
            allowed: Some(true),
            kernel_clocksource: Some("tsc"),
        }
    }

    #[test]
    fn the_kernels_word_outweighs_the_promise_and_a_counter_that_would_kill_the_process_is_never_read() {
        let kvm = Evidence { kernel_clocksource: Some("kvm-clock"), ..good() };
        let silent = Evidence { kernel_clocksource: None, allowed: None, ..good() };
        let rejected = || Unusable::RejectedByKernel("hpet".into());
        for (evidence, refused, case) in [
            (good(), None, "invariant, and the kernel uses it"),
            (
                Evidence { kernel_clocksource: Some("hpet"), ..good() },
                Some(rejected()),
                "the kernel dropped it",
            ),
            (
                Evidence { invariant: Some(false), ..good() },
                None,
                "the kernel keeps time with it all the same",
            ),
            (kvm, None, "a paravirtual clock"),
            (
                Evidence { invariant: Some(false), ..kvm },
                Some(Unusable::NotInvariant),
                "it needs the promise",
            ),
            (silent, None, "the kernel says nothing"),
            (Evidence { invariant: None, ..silent }, Some(Unusable::NotInvariant), "nor does anybody else"),
            (Evidence { allowed: Some(false), ..good() }, Some(Unusable::Forbidden), "switched off"),
            (Evidence { tsc: false, ..good() }, Some(Unusable::Missing("RDTSC")), "no counter"),
            (Evidence { rdtscp: false, ..good() }, Some(Unusable::Missing("RDTSCP")), "no ordered read"),
        ] {
            assert_eq!(judge(&evidence).err(), refused, "{case}");
        }
        assert!(rejected().to_string().contains("hpet"));
    }
}
