//! Physical memory, page sizes and the kernel's policy for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// Memory and page policy.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Memory that the kernel manages, bytes.
    pub total_bytes: Option<u64>,
    /// What could be allocated now without swapping, bytes (the kernel's own estimate).
    pub available_bytes: Option<u64>,
    /// Swap space, bytes.
    pub swap_total_bytes: Option<u64>,
    /// Swap space in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Smallest page, bytes.
    pub page_bytes: Option<u64>,
    /// Page sizes that `MAP_HUGETLB` may ask for, with their pools.
    pub huge_pools: Vec<HugePool>,
    /// Transparent huge pages.
    pub thp: TransparentHugePages,
    /// `vm.overcommit_memory`: 0 heuristic, 1 always, 2 never.
    pub overcommit: Option<u8>,
    /// Under `overcommit` 2: what may still be committed, bytes.
    pub committable_bytes: Option<u64>,
    /// `vm.swappiness`.
    pub swappiness: Option<u16>,
    /// Whether the kernel moves pages between NUMA nodes while programs run.
    pub numa_balancing: Option<bool>,
    /// Whether the kernel merges equal pages.
    pub same_page_merging: Option<bool>,
}

/// The reserve of one huge page size.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct HugePool {
    /// Page size, bytes.
    pub page_bytes: u64,
    /// Pages reserved.
    pub total: u64,
    /// Of those, pages nobody uses.
    pub free: u64,
    /// Pages that may be added when asked for.
    pub overcommit: u64,
}

/// `/sys/kernel/mm/transparent_hugepage`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct TransparentHugePages {
    /// `always`, `madvise` or `never`.
    pub enabled: Option<String>,
    /// When the kernel compacts memory to get one.
    pub defrag: Option<String>,
    /// The same choice for shared memory.
    pub shmem: Option<String>,
    /// Their size, bytes.
    pub page_bytes: Option<u64>,
    /// Whether this process may have them at all: a parent can forbid it
    /// (`PR_SET_THP_DISABLE`), whatever `enabled` says.
    #[serde(default)]
    pub this_process: Option<bool>,
}

pub(crate) fn read(root: &Root, calls: &Calls, notes: &mut Notes) -> Memory {
    let info = notes.or("memory (/proc/meminfo)", root.text("/proc/meminfo")).unwrap_or_default();
    let mut memory = from_meminfo(&info);
    memory.page_bytes = notes.must("memory.page_bytes", calls.page_bytes, "the page size was not asked for");
    memory.huge_pools = huge_pools(root);
    memory.thp = thp(root, notes);
    memory.overcommit = notes.or("memory.overcommit", root.number("/proc/sys/vm/overcommit_memory"));
    if memory.overcommit != Some(2) {
        memory.committable_bytes = None;
    }
    memory.swappiness = root.number("/proc/sys/vm/swappiness").ok();
    memory.numa_balancing = root.number("/proc/sys/kernel/numa_balancing").ok().map(|mode: u8| mode > 0);
    memory.same_page_merging = root.number("/sys/kernel/mm/ksm/run").ok().map(|mode: u8| mode == 1);
    memory
}

pub(crate) fn from_meminfo(info: &str) -> Memory {
    let bytes = |key| text::kib_field(info, key);
    let left = |all: Option<u64>, less: Option<u64>| Some(all?.saturating_sub(less?));
    Memory {
        total_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        swap_total_bytes: bytes("SwapTotal"),
        swap_used_bytes: left(bytes("SwapTotal"), bytes("SwapFree")),
        committable_bytes: left(bytes("CommitLimit"), bytes("Committed_AS")),
        ..Memory::default()
    }
}

fn huge_pools(root: &Root) -> Vec<HugePool> {
    const FOLDER: &str = "/sys/kernel/mm/hugepages";
    let mut pools: Vec<HugePool> = root
        .names(FOLDER)
        .iter()
        .filter_map(|name| {
            let page_bytes = text::size(name.strip_prefix("hugepages-")?)?;
            let count = |file: &str| root.number(&format!("{FOLDER}/{name}/{file}")).ok();
            Some(HugePool {
                page_bytes,
                total: count("nr_hugepages")?,
                free: count("free_hugepages")?,
                overcommit: count("nr_overcommit_hugepages").unwrap_or(0),
            })
        })
        .collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

fn thp(root: &Root, notes: &mut Notes) -> TransparentHugePages {
    const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
    let choice = |file: &str| root.read_as(&format!("{FOLDER}/{file}"), text::chosen);
    TransparentHugePages {
        enabled: notes.or("memory.thp.enabled", choice("enabled")),
        defrag: choice("defrag").ok(),
        shmem: choice("shmem_enabled").ok(),
        page_bytes: root.number(&format!("{FOLDER}/hpage_pmd_size")).ok(),
        this_process: root
            .text("/proc/self/status")
            .ok()
            .and_then(|status| Some(text::field(&status, "THP_enabled", ':')? == "1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_counts_in_kib() {
        let memory = from_meminfo(
            "MemTotal:       24683660 kB\nMemAvailable:   100 kB\nSwapTotal: 8 kB\nSwapFree: 2 kB\n",
        );
        assert_eq!(memory.total_bytes, Some(24_683_660 * 1024));
        assert_eq!(memory.swap_used_bytes, Some(6 * 1024));
        assert_eq!(memory.committable_bytes, None);
    }
}
