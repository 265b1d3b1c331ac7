//! System calls that every Unix has.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::calls::{Calls, Rlimit, Rlimits, Space, Uname};
use crate::cpuid::Registers;

pub(super) fn calls() -> Calls {
    let uname = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Calls {
        registers: Registers::of_this_cpu(),
        uname: Some(Uname {
            system: text(uname.sysname()),
            release: text(uname.release()),
            version: text(uname.version()),
            arch: text(uname.machine()),
            host: text(uname.nodename()),
        }),
        rlimits: Some(rlimits()),
        uid: Some(rustix::process::geteuid().as_raw()),
        page_bytes: u64::try_from(rustix::param::page_size()).ok(),
        container: container_named_by_environment(),
        space,
        resolve,
        ..Calls::none()
    }
}

fn rlimits() -> Rlimits {
    let limit = |resource| {
        let limit = getrlimit(resource);
        Rlimit { soft: limit.current, hard: limit.maximum }
    };
    Rlimits {
        address_space_bytes: limit(Resource::As),
        data_bytes: limit(Resource::Data),
        file_bytes: limit(Resource::Fsize),
        locked_bytes: limit(Resource::Memlock),
        open_files: limit(Resource::Nofile),
    }
}

/// `container` is systemd's convention; Kubernetes sets its service's address in every pod.
fn container_named_by_environment() -> Option<String> {
    std::env::var("container")
        .ok()
        .filter(|kind| !kind.is_empty())
        .or_else(|| std::env::var_os("KUBERNETES_SERVICE_HOST").map(|_| "kubernetes".to_owned()))
}

fn space(path: &Path) -> Option<Space> {
    let answer = rustix::fs::statvfs(path).ok()?;
    Some(Space {
        total_bytes: answer.f_blocks.checked_mul(answer.f_frsize)?,
        available_bytes: answer.f_bavail.checked_mul(answer.f_frsize)?,
    })
}

fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or(absolute)
}
