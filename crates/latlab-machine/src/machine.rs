//! The whole description.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boot::Boot;
use crate::cache::{Cache, CacheAgreement};
use crate::cpu::Cpu;
use crate::disks::Disk;
use crate::file_systems::{self, Directory, FileSystem};
use crate::kernel::{ClockSource, Kernel};
use crate::limits::Limits;
use crate::memory::Memory;
use crate::notes::Unknown;
use crate::numa::NumaNode;
use crate::os::Os;
use crate::tlb::Tlb;
use crate::virt::Virtualisation;

/// Everything known about the computer, the kernel, and what this process may use of them.
///
/// Fields marked `private` in the schema name the host, its user or their files; exports for sharing leave
/// them out.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The operating system.
    pub os: Os,
    /// Kernel options given at boot that change timings, and CPU vulnerability mitigations in force.
    pub boot: Boot,
    /// The processor.
    pub cpu: Cpu,
    /// Data, instruction and unified caches, smallest level first; CPUs of different kinds have entries of
    /// their own.
    pub caches: Vec<Cache>,
    /// Whether the two sources of `caches` say the same.
    pub cache_agreement: CacheAgreement,
    /// Translation buffers as CPUID lists them. Informational: in a virtual machine, what translations really
    /// cost depends on the host's page sizes too.
    pub tlbs: Vec<Tlb>,
    /// NUMA nodes; one on most machines, empty when unknown.
    pub numa: Vec<NumaNode>,
    /// Physical memory, page sizes and kernel policy.
    pub memory: Memory,
    /// What this process may use.
    pub limits: Limits,
    /// Virtual machine, WSL, container.
    pub virtualisation: Virtualisation,
    /// The kernel's clock source.
    pub clock_source: ClockSource,
    /// Kernel build settings that change timings.
    pub kernel: Kernel,
    /// Block devices with a size.
    pub disks: Vec<Disk>,
    /// Mounted file systems that can hold data, in mount order.
    pub file_systems: Vec<FileSystem>,
    /// The directory that was asked about.
    pub dir: Directory,
    /// What could not be learnt, and why.
    pub unknown: Vec<Unknown>,
}

impl Machine {
    /// The file system that holds `path`: the visible mount with the longest matching mount point.
    ///
    /// `path` should be absolute and without symbolic links; a relative path has no answer.
    pub fn file_system_of(&self, path: &Path) -> Option<&FileSystem> {
        file_systems::holding(&self.file_systems, path)
    }

    /// Those of these CPUs that handle the interrupts of the disk that is measured; none where it is unknown,
    /// or where all of them do.
    pub fn interrupted_by_the_disk(&self, cpus: &[u32]) -> Vec<u32> {
        let name = self.dir.file_system.as_ref().and_then(|system| system.disk.as_ref());
        let disk = name.and_then(|name| self.disks.iter().find(|disk| disk.name == *name));
        let handle = |cpu: &&u32| disk.is_some_and(|disk| disk.interrupt_cpus.contains(cpu));
        let own: Vec<u32> = cpus.iter().filter(handle).copied().collect();
        if own.len() < cpus.len() { own } else { Vec::new() }
    }
}
