//! What this computer is, as far as it can be known without changing anything and without privileges.
//!
//! [`describe`] reads it; [`one_line`] prints it. What could not be read is `None`, and [`Machine::unknown`]
//! says why: nothing here is guessed. Each topic has its file with its types and its parsers, which are pure
//! functions of text; the files named after an operating system only collect that text.

mod boot;
mod cache;
mod calls;
mod cgroup;
mod cim;
mod cpu;
mod cpuid;
mod disks;
mod file_systems;
mod interrupts;
mod kernel;
mod lenient;
mod limits;
mod memory;
mod microarchitecture;
mod mounts;
mod notes;
mod numa;
mod one_line;
mod os;
mod power;
#[cfg(any(target_os = "macos", windows))]
mod program;
mod root;
mod sysctl;
mod text;
mod tlb;
mod tree;
mod virt;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[path = "other.rs"]
mod system;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[path = "x86.rs"]
mod native;
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
#[path = "not_x86.rs"]
mod native;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use boot::{Boot, BootOption, Mitigation};
pub use cache::{Cache, CacheAgreement, CacheKind, CacheSource};
pub use calls::{Calls, Space, Uname};
pub use cgroup::{Cgroup, CgroupVersion};
pub use cim::{WINDOWS_QUERY, describe_windows};
pub use cpu::{CorePart, Cpu, Frequency};
pub use cpuid::Registers;
pub use disks::{Disk, Partition};
pub use file_systems::{Directory, FileSystem};
pub use kernel::{ClockSource, Kernel, Preemption};
pub use lenient::as_far_as_known;
pub use limits::{Limits, MemoryBound, Rlimit, Rlimits, Seccomp};
pub use memory::{HugePool, Memory, TransparentHugePages};
pub use notes::Unknown;
pub use numa::NumaNode;
pub use one_line::one_line;
pub use os::{Libc, Os};
pub use power::PowerSource;
pub use root::Root;
pub use sysctl::{MacText, describe_mac};
pub use tlb::{Tlb, TlbKind};
pub use tree::describe_tree;
pub use virt::{Container, Virtualisation};

/// Everything known about the computer, the kernel, and what this process may use of them.
///
/// Fields marked `private` in the schema name the host, its user or their files; exports for sharing leave them out.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The operating system.
    pub os: Os,
    /// Kernel options given at boot that change timings, and CPU vulnerability mitigations in force.
    pub boot: Boot,
    /// The processor.
    pub cpu: Cpu,
    /// Data, instruction and unified caches, smallest level first; CPUs of different kinds have entries of their own.
    pub caches: Vec<Cache>,
    /// Whether the two sources of `caches` say the same.
    pub cache_agreement: CacheAgreement,
    /// Translation buffers as CPUID lists them. Informational: in a virtual machine, what translations really cost
    /// depends on the host's page sizes too.
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
    #[must_use]
    pub fn file_system_of(&self, path: &Path) -> Option<&FileSystem> {
        file_systems::holding(&self.file_systems, path)
    }
}

/// Describes this computer, and the file system of `dir`. Never fails and changes nothing.
///
/// Takes a few milliseconds on Linux. On Windows and macOS it runs the system's own query program, which takes
/// longer (bounded by 30 s). File systems over a network or in user space are not asked for their size unless `dir` is
/// on one: a dead server would block for ever.
#[must_use]
pub fn describe(dir: &Path) -> Machine {
    system::describe(dir)
}
