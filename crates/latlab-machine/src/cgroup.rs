//! Control groups, versions 1 and 2: what share of the machine this process may have.
//!
//! A limit holds for everything below the group that has it, so the whole path up to the mount is walked
//! (cgroups(7), and the kernel's cgroup-v1 and cgroup-v2 documents).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mounts::Mount;
use crate::root::Root;

/// Limits of this process's control groups: the strictest of each kind over all ancestors that are visible.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Cgroup {
    /// Which version governs the memory and CPU of this process.
    pub version: Option<CgroupVersion>,
    /// CPU time a second of wall time, in CPUs; `None` = no quota.
    pub cpu_quota: Option<f64>,
    /// The period in which the quota is dealt out, microseconds: a process that used it up stands still for
    /// the rest.
    pub cpu_period_us: Option<u64>,
    /// Hard memory limit, bytes; `None` = none.
    pub memory_limit_bytes: Option<u64>,
    /// Memory above which the kernel throttles and reclaims (version 2, `memory.high`), bytes; `None` = none.
    pub memory_high_bytes: Option<u64>,
    /// What is left under the strictest limit, file cache that can be dropped counted as free, bytes; `None`
    /// = no limit.
    pub memory_left_bytes: Option<u64>,
    /// What it lets this process do with the disk of the measured directory; `None` = no limit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskLimits>,
}

/// Limits of one disk, a second; `None` = none of this kind.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskLimits {
    /// Bytes read.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written.
    pub write_bytes_per_s: Option<u64>,
    /// Requests that read.
    pub read_requests_per_s: Option<u64>,
    /// Requests that write.
    pub write_requests_per_s: Option<u64>,
}

/// Version of the control group interface.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupVersion {
    /// Version 1: a hierarchy for each controller.
    V1,
    /// Version 2: one hierarchy.
    V2,
    /// Some controllers in each.
    Mixed,
}

/// Version 1 writes `PAGE_COUNTER_MAX` pages for "no limit": 2^63 less a page. No machine has half of that.
const NO_LIMIT: u64 = 1 << 62;

pub(crate) fn read(root: &Root, own_groups: &str, mounts: &[Mount]) -> Cgroup {
    let cpu = Hierarchy::of("cpu", own_groups, mounts);
    let memory = Hierarchy::of("memory", own_groups, mounts);
    let mut limits = Cgroup { version: version(cpu.as_ref(), memory.as_ref()), ..Cgroup::default() };
    for group in cpu.iter().flat_map(|h| h.groups(root)) {
        let quota = if group.v2 { cpu_max(root, &group) } else { cfs(root, &group) };
        if let Some((cpus, period)) = quota
            && limits.cpu_quota.is_none_or(|least| cpus < least)
        {
            limits.cpu_quota = Some(cpus);
            limits.cpu_period_us = Some(period);
        }
    }
    for group in memory.iter().flat_map(|h| h.groups(root)) {
        let (hard, high, used, cache) = if group.v2 {
            ("memory.max", Some("memory.high"), "memory.current", "inactive_file")
        } else {
            ("memory.limit_in_bytes", None, "memory.usage_in_bytes", "total_inactive_file")
        };
        let number = |file| group.number(root, file).filter(|bytes| *bytes < NO_LIMIT);
        let (hard, high) = (number(hard), high.and_then(number));
        limits.memory_limit_bytes = least(limits.memory_limit_bytes, hard);
        limits.memory_high_bytes = least(limits.memory_high_bytes, high);
        if let Some(limit) = least(hard, high) {
            let cache = group.text(root, "memory.stat").and_then(|stat| {
                stat.lines()
                    .find_map(|line| line.strip_prefix(cache)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
            });
            let used = number(used).unwrap_or(0).saturating_sub(cache.unwrap_or(0));
            limits.memory_left_bytes = least(limits.memory_left_bytes, Some(limit.saturating_sub(used)));
        }
    }
    limits
}

/// The strictest limits of a disk and of those that it is made of, by `major:minor`.
pub(crate) fn disk_limits(
    root: &Root,
    own_groups: &str,
    mounts: &[Mount],
    devices: &[&str],
) -> Option<DiskLimits> {
    let hierarchy = Hierarchy::of("blkio", own_groups, mounts)?;
    let mut limits = DiskLimits::default();
    for group in hierarchy.groups(root) {
        for (file, key, limit) in [
            ("read_bps", "rbps", &mut limits.read_bytes_per_s),
            ("write_bps", "wbps", &mut limits.write_bytes_per_s),
            ("read_iops", "riops", &mut limits.read_requests_per_s),
            ("write_iops", "wiops", &mut limits.write_requests_per_s),
        ] {
            let text = if group.v2 {
                group.text(root, "io.max")
            } else {
                group.text(root, &format!("blkio.throttle.{file}_device"))
            };
            let text = text.unwrap_or_default();
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            for (_, set) in lines.filter(|(device, _)| devices.contains(device)) {
                // `7:0 1048576`, or `7:0 rbps=1048576 wbps=max riops=max wiops=max`.
                let own = if group.v2 {
                    set.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
                } else {
                    Some(set.trim())
                };
                *limit = least(*limit, own.and_then(|own| own.parse().ok()));
            }
        }
    }
    (limits != DiskLimits::default()).then_some(limits)
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn version(cpu: Option<&Hierarchy>, memory: Option<&Hierarchy>) -> Option<CgroupVersion> {
    match (cpu.map(|h| h.v2), memory.map(|h| h.v2)) {
        (None, None) => None,
        (Some(true) | None, Some(true)) | (Some(true), None) => Some(CgroupVersion::V2),
        (Some(false) | None, Some(false)) | (Some(false), None) => Some(CgroupVersion::V1),
        _ => Some(CgroupVersion::Mixed),
    }
}

/// Where a controller's files for this process are.
struct Hierarchy {
    v2: bool,
    mount_point: String,
    /// Path of the process's group below the mount point, without leading slash.
    path: String,
}

struct Group {
    v2: bool,
    folder: String,
}

impl Hierarchy {
    /// The version 1 mount of `controller` if there is one, else version 2's.
    fn of(controller: &str, own_groups: &str, mounts: &[Mount]) -> Option<Self> {
        let v1 = mounts.iter().rfind(|mount| {
            mount.kind == "cgroup" && mount.super_options.iter().any(|option| option == controller)
        });
        let (mount, v2) = match v1 {
            Some(mount) => (mount, false),
            None => (mounts.iter().rfind(|mount| mount.kind == "cgroup2")?, true),
        };
        let own = own_groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let wanted =
                if v2 { number == "0" } else { controllers.split(',').any(|name| name == controller) };
            wanted.then_some(path)
        })?;
        // In a container without a namespace of its own, the path is the host's and the mount shows a part of
        // it.
        let below = if mount.root == "/" {
            own
        } else {
            own.strip_prefix(mount.root.as_str())
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
                .unwrap_or("")
        };
        // "/../.." is a group outside of what this namespace shows: only the mount point itself can be read.
        let path = if below.split('/').any(|part| part == "..") { "" } else { below.trim_matches('/') };
        Some(Self { v2, mount_point: mount.point.trim_end_matches('/').to_owned(), path: path.to_owned() })
    }

    /// The process's group and its ancestors, as far as they are there.
    fn groups(&self, root: &Root) -> Vec<Group> {
        let mut paths = vec![self.path.as_str()];
        while let Some(last) = paths.last().filter(|path| !path.is_empty()) {
            paths.push(last.rsplit_once('/').map_or("", |(parent, _)| parent));
        }
        paths
            .into_iter()
            .map(|path| Group { v2: self.v2, folder: format!("{}/{path}", self.mount_point) })
            .filter(|group| root.exists(&group.folder))
            .collect()
    }
}

impl Group {
    fn text(&self, root: &Root, file: &str) -> Option<String> {
        root.text(&format!("{}/{file}", self.folder)).ok()
    }

    fn number(&self, root: &Root, file: &str) -> Option<u64> {
        self.text(root, file)?.trim().parse().ok()
    }
}

/// `cpu.max`: `50000 100000`, or `max 100000`.
fn cpu_max(root: &Root, group: &Group) -> Option<(f64, u64)> {
    let text = group.text(root, "cpu.max")?;
    let (quota, period) = text.trim().split_once(' ')?;
    share(quota.parse().ok()?, period.trim().parse().ok()?)
}

fn cfs(root: &Root, group: &Group) -> Option<(f64, u64)> {
    // -1 = no quota, which is no u64.
    share(group.number(root, "cpu.cfs_quota_us")?, group.number(root, "cpu.cfs_period_us")?)
}

fn share(quota_us: u64, period_us: u64) -> Option<(f64, u64)> {
    (period_us > 0).then(|| (quota_us as f64 / period_us as f64, period_us))
}
