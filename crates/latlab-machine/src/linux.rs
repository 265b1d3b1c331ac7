//! The running Linux system.

#[path = "unix.rs"]
mod unix;

#[cfg(target_env = "gnu")]
#[path = "libc_gnu.rs"]
mod libc_name;
#[cfg(not(target_env = "gnu"))]
#[path = "libc_other.rs"]
mod libc_name;

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::calls::Calls;
use crate::{Machine, Root, describe_tree};

pub(crate) fn describe(dir: &Path) -> Machine {
    let calls = Calls { affinity: affinity(), libc: Some(libc_name::libc()), mount_id, ..unix::calls() };
    describe_tree(&Root::live(), &calls, dir)
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
