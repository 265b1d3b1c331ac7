//! What this computer is, as far as it can be known without changing anything and without privileges.
//!
//! [`describe`] reads it. What could not be read is `None`, and [`Machine::unknown`] says why: nothing here
//! is guessed. Each topic has its file with its types and its parsers, which are pure functions of text; the
//! files named after an operating system only collect that text.

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
mod machine;
mod memory;
mod microarchitecture;
mod mounts;
mod notes;
mod numa;
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

use std::path::Path;

pub use boot::{Boot, BootOption, Mitigation};
pub use cache::{Cache, CacheAgreement, CacheKind, CacheSource};
pub use calls::{Calls, Libc, Rlimit, Rlimits, Space, Uname};
pub use cgroup::{Cgroup, CgroupVersion, DiskLimits};
pub use cim::{WINDOWS_QUERY, describe_windows};
pub use cpu::{CorePart, Cpu, Frequency};
pub use cpuid::Registers;
pub use disks::{Disk, Partition};
pub use file_systems::{Directory, FileSystem};
pub use kernel::{ClockSource, Kernel, Preemption};
pub use lenient::as_far_as_known;
pub use limits::{Limits, MemoryBound, Seccomp};
pub use machine::Machine;
pub use memory::{HugePool, Memory, TransparentHugePages};
pub use notes::Unknown;
pub use numa::NumaNode;
pub use os::Os;
pub use power::PowerSource;
pub use root::Root;
pub use sysctl::{MacText, describe_mac};
pub use tlb::{Tlb, TlbKind};
pub use tree::describe_tree;
pub use virt::{Container, Virtualisation};

/// Describes this computer, and the file system of `dir`. Never fails and changes nothing.
///
/// Takes a few milliseconds on Linux. On Windows and macOS it runs the system's own query program, which
/// takes longer (bounded by 30 s). File systems over a network or in user space are not asked for their size
/// unless `dir` is on one: a dead server would block for ever.
pub fn describe(dir: &Path) -> Machine {
    system::describe(dir)
}
