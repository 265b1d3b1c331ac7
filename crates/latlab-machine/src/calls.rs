//! What the kernel is asked directly, apart from files; separate so that a captured tree can stand for a
//! machine.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpuid::Registers;

/// Names that `uname` gives.
#[derive(Clone, Debug, Default)]
pub struct Uname {
    /// `Linux`, `Darwin`.
    pub system: String,
    /// Kernel release.
    pub release: String,
    /// Kernel build line.
    pub version: String,
    /// Instruction set as the kernel names it.
    pub arch: String,
    /// Host name.
    pub host: String,
}

/// Size of a file system.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// All of it, bytes.
    pub total_bytes: u64,
    /// What an ordinary user may still write, bytes.
    pub available_bytes: u64,
}

/// A C library.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Libc {
    /// `glibc`, `musl`.
    pub name: String,
    /// Version, where the library tells it.
    pub version: Option<String>,
}

/// A resource limit; `None` means unlimited.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rlimit {
    /// In force now.
    pub soft: Option<u64>,
    /// As far as the process may raise it.
    pub hard: Option<u64>,
}

/// The resource limits that matter here, in bytes (files: a count).
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rlimits {
    /// `RLIMIT_AS`.
    pub address_space_bytes: Rlimit,
    /// `RLIMIT_DATA`; counts private writable mappings too.
    pub data_bytes: Rlimit,
    /// `RLIMIT_FSIZE`: the largest file; more raises SIGXFSZ.
    pub file_bytes: Rlimit,
    /// `RLIMIT_MEMLOCK`.
    pub locked_bytes: Rlimit,
    /// `RLIMIT_NOFILE`.
    pub open_files: Rlimit,
}

/// Answers of system calls and CPU instructions. `None` where nobody was asked, or nothing was answered.
#[derive(Clone, Debug)]
pub struct Calls {
    /// CPUID, on x86.
    pub registers: Option<Registers>,
    /// `uname`.
    pub uname: Option<Uname>,
    /// CPUs that the calling thread may run on.
    pub affinity: Option<Vec<u32>>,
    /// Resource limits of the process.
    pub rlimits: Option<Rlimits>,
    /// Effective user id.
    pub uid: Option<u32>,
    /// Size of the smallest page.
    pub page_bytes: Option<u64>,
    /// The C library in use.
    pub libc: Option<Libc>,
    /// Value of the environment variable `container` or the name of an orchestrator that sets others.
    pub container: Option<String>,
    /// `statvfs`.
    pub space: fn(&Path) -> Option<Space>,
    /// The mount id of a path (`statx`).
    pub mount_id: fn(&Path) -> Option<u64>,
    /// The path without symbolic links; of the nearest existing ancestor if it does not exist.
    pub resolve: fn(&Path) -> PathBuf,
}

impl Calls {
    /// Only CPUID of this CPU asked, for a dump.
    pub fn of_this_cpu() -> Self {
        Self { registers: Registers::of_this_cpu(), ..Self::none() }
    }

    /// Nothing asked: everything must come from files.
    pub fn none() -> Self {
        Self {
            registers: None,
            uname: None,
            affinity: None,
            rlimits: None,
            uid: None,
            page_bytes: None,
            libc: None,
            container: None,
            space: |_| None,
            mount_id: |_| None,
            resolve: Path::to_path_buf,
        }
    }
}
