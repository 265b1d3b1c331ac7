//! What this process may really use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::{Calls, Rlimits};
use crate::cgroup::{self, Cgroup};
use crate::memory::Memory;
use crate::mounts::Mount;
use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// Limits and rights of this process, at the time of reading.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPUs that the calling thread may run on; empty when unknown.
    pub allowed_cpus: Vec<u32>,
    /// CPUs' worth of time that it may use: the number of `allowed_cpus`, or the quota if that is less.
    pub usable_cpus: Option<f64>,
    /// Control group limits; `None` when unknown.
    pub cgroup: Option<Cgroup>,
    /// Resource limits; `None` when unknown.
    pub rlimits: Option<Rlimits>,
    /// Memory that this process may still take, bytes: the least of what the kernel calls available, of what
    /// the control groups leave, of address space and data limits less what is used, and of what may be
    /// committed.
    pub usable_memory_bytes: Option<u64>,
    /// Which of those is the least.
    pub usable_memory_bound: Option<MemoryBound>,
    /// Effective user id.
    pub uid: Option<u32>,
    /// Whether this is the superuser of its user namespace.
    pub root: Option<bool>,
    /// Effective capabilities among those that measuring can use; `None` when unknown.
    pub capabilities: Option<Vec<String>>,
    /// `kernel.perf_event_paranoid`: 2 and above keep kernel events from ordinary users.
    pub perf_event_paranoid: Option<i32>,
    /// System call filter.
    pub seccomp: Option<Seccomp>,
    /// Whether programs that this process starts can gain rights.
    pub no_new_privileges: Option<bool>,
}

/// What bounds the usable memory.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryBound {
    /// The machine's free memory.
    Available,
    /// A control group.
    Cgroup,
    /// `RLIMIT_AS`.
    AddressSpace,
    /// `RLIMIT_DATA`.
    Data,
    /// Strict overcommit.
    Commit,
}

/// Mode of the system call filter.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// None.
    Off,
    /// Read, write and exit only.
    Strict,
    /// A program decides, as in containers.
    Filter,
}

/// Capabilities that measuring can use, with their bits (capabilities(7)).
const CAPABILITIES: &[(u32, &str)] = &[
    (2, "CAP_DAC_READ_SEARCH"),
    (12, "CAP_NET_ADMIN"),
    (13, "CAP_NET_RAW"),
    (14, "CAP_IPC_LOCK"),
    (17, "CAP_SYS_RAWIO"),
    (19, "CAP_SYS_PTRACE"),
    (21, "CAP_SYS_ADMIN"),
    (23, "CAP_SYS_NICE"),
    (24, "CAP_SYS_RESOURCE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];

pub(crate) fn read(
    root: &Root,
    calls: &Calls,
    mounts: &[Mount],
    memory: &Memory,
    notes: &mut Notes,
) -> Limits {
    let status = notes.or("limits (/proc/self/status)", root.text("/proc/self/status")).unwrap_or_default();
    let value = |key| text::field(&status, key, ':');
    let allowed = calls.affinity.clone().or_else(|| value("Cpus_allowed_list").and_then(text::cpu_list));
    let groups = notes.or("limits.cgroup", root.text("/proc/self/cgroup"));
    let uid = calls.uid.or_else(|| value("Uid")?.split_whitespace().nth(1)?.parse().ok());
    let mut limits = Limits {
        allowed_cpus: notes
            .must("limits.allowed_cpus", allowed, "the affinity is unknown")
            .unwrap_or_default(),
        cgroup: groups.map(|groups| cgroup::read(root, &groups, mounts)),
        rlimits: notes.must("limits.rlimits", calls.rlimits, "the resource limits were not asked for"),
        uid: notes.must("limits.uid", uid, "the user id is unknown"),
        root: uid.map(|uid| uid == 0),
        capabilities: value("CapEff").and_then(capabilities),
        perf_event_paranoid: notes
            .or("limits.perf_event_paranoid", root.number("/proc/sys/kernel/perf_event_paranoid")),
        seccomp: value("Seccomp").and_then(|mode| match mode {
            "0" => Some(Seccomp::Off),
            "1" => Some(Seccomp::Strict),
            "2" => Some(Seccomp::Filter),
            _ => None,
        }),
        no_new_privileges: value("NoNewPrivs").map(|flag| flag == "1"),
        ..Limits::default()
    };
    if limits.cgroup.as_ref().is_some_and(|cgroup| cgroup.version.is_none()) {
        notes.say(
            "limits.cgroup",
            "no cgroup file system with the CPU and memory controllers is mounted here",
        );
    }
    for (what, missing) in
        [("limits.capabilities", limits.capabilities.is_none()), ("limits.seccomp", limits.seccomp.is_none())]
    {
        if missing && !status.is_empty() {
            notes.say(what, "/proc/self/status does not report it");
        }
    }
    let used = |key| text::kib_field(&status, key);
    set_usable(&mut limits, memory, used("VmSize"), used("VmData"));
    limits
}

/// What the control groups let this process do with the measured disk, which is these devices.
pub(crate) fn set_disk(limits: &mut Limits, root: &Root, mounts: &[Mount], devices: &[&str]) {
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    if let Some(cgroup) = &mut limits.cgroup {
        cgroup.disk = cgroup::disk_limits(root, &groups, mounts, devices);
    }
}

/// Works out how much CPU and memory are left. `mapped` and `data` are what the process uses of the two
/// resource limits, bytes.
pub(crate) fn set_usable(limits: &mut Limits, memory: &Memory, mapped: Option<u64>, data: Option<u64>) {
    let allowed = (!limits.allowed_cpus.is_empty()).then_some(limits.allowed_cpus.len() as f64);
    let cgroup = limits.cgroup.as_ref();
    limits.usable_cpus = match (allowed, cgroup.and_then(|cgroup| cgroup.cpu_quota)) {
        (Some(allowed), Some(quota)) => Some(allowed.min(quota)),
        (allowed, quota) => allowed.or(quota),
    };
    // What is used is at least nothing: an unknown use leaves the limit itself as the bound.
    let left =
        |limit: Option<u64>, used: Option<u64>| limit.map(|limit| limit.saturating_sub(used.unwrap_or(0)));
    let rlimits = limits.rlimits.unwrap_or_default();
    let least = [
        (MemoryBound::Available, memory.available_bytes.or(memory.total_bytes)),
        (MemoryBound::Cgroup, cgroup.and_then(|cgroup| cgroup.memory_left_bytes)),
        (MemoryBound::AddressSpace, left(rlimits.address_space_bytes.soft, mapped)),
        (MemoryBound::Data, left(rlimits.data_bytes.soft, data)),
        (MemoryBound::Commit, memory.committable_bytes),
    ]
    .into_iter()
    .filter_map(|(bound, bytes)| Some((bytes?, bound)))
    .min_by_key(|(bytes, _)| *bytes);
    limits.usable_memory_bytes = least.map(|(bytes, _)| bytes);
    limits.usable_memory_bound = least.map(|(_, bound)| bound);
}

fn capabilities(hexadecimal: &str) -> Option<Vec<String>> {
    let bits = u64::from_str_radix(hexadecimal, 16).ok()?;
    Some(
        CAPABILITIES
            .iter()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, name)| (*name).to_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Rlimit;

    #[test]
    fn the_least_of_all_bounds_is_usable() {
        let memory = Memory { available_bytes: Some(8 << 30), ..Memory::default() };
        let address_space_bytes = Rlimit { soft: Some(1 << 30), hard: None };
        let rlimits = Rlimits { address_space_bytes, ..Rlimits::default() };
        let mut limits = Limits { rlimits: Some(rlimits), ..Limits::default() };
        set_usable(&mut limits, &memory, Some(24 << 20), None);
        assert_eq!(limits.usable_memory_bytes, Some(1000 << 20));
        assert_eq!(limits.usable_memory_bound, Some(MemoryBound::AddressSpace));
    }

    #[test]
    fn capabilities_are_bits() {
        assert_eq!(
            capabilities("0000004000800000"),
            Some(vec!["CAP_SYS_NICE".to_owned(), "CAP_PERFMON".to_owned()])
        );
        assert_eq!(capabilities("0000000000000000"), Some(vec![]));
        assert_eq!(capabilities("x"), None);
    }
}
