//! The CPUID instruction of this CPU.

use raw_cpuid::CpuId;
use raw_cpuid::native_cpuid::cpuid_count;

use crate::cpuid::Registers;

/// Reads the leaves that [`crate::cpuid`] understands. On CPUs with cores of several kinds they describe the core
/// that happened to answer.
pub(crate) fn registers() -> Option<Registers> {
    // Every x86-64 CPU has CPUID; a vendor string says that leaf 0 is answered.
    CpuId::new().get_vendor_info()?;
    Some(Registers::ask(|leaf, subleaf| {
        let r = cpuid_count(leaf, subleaf);
        [r.eax, r.ebx, r.ecx, r.edx]
    }))
}
