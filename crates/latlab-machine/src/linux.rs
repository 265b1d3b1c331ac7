//! The running Linux system.

#[path = "unix.rs"]
mod unix;

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::calls::{Calls, Libc};
use crate::machine::Machine;
use crate::root::Root;
use crate::tree::describe_tree;

pub(crate) fn describe(dir: &Path) -> Machine {
    let calls = Calls { affinity: affinity(), libc: Some(libc()), mount_id, ..unix::calls() };
    describe_tree(&Root::live(), &calls, dir)
}

/// glibc tells its version at run time; musl does not, by decision, and others are unknown to this tool.
fn libc() -> Libc {
    #[cfg(target_env = "gnu")]
    let (name, version) = {
        // SAFETY: takes nothing and returns a pointer to a constant string of the library
        // (gnu_get_libc_version(3)).
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        ("glibc", Some(version.to_string_lossy().into_owned()))
    };
    #[cfg(not(target_env = "gnu"))]
    let (name, version) = (if cfg!(target_env = "musl") { "musl" } else { "unknown" }, None);
    Libc { name: name.to_owned(), version }
}

/// `None` on machines with more CPUs than the set holds (1024); the file in `/proc` then answers.
fn affinity() -> Option<Vec<u32>> {
    let allowed = sched_getaffinity(None).ok()?;
    Some(
        (0..CpuSet::MAX_CPU)
            .filter(|cpu| allowed.is_set(*cpu))
            .filter_map(|cpu| u32::try_from(cpu).ok())
            .collect(),
    )
}

fn mount_id(path: &Path) -> Option<u64> {
    let answer = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(answer.stx_mask).contains(StatxFlags::MNT_ID).then_some(answer.stx_mnt_id)
}
