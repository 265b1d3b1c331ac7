//! Caches, from CPUID and from sysfs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpuid::Registers;
use crate::notes::Notes;
use crate::root::Root;
use crate::text;

/// One kind of cache; equal caches of several cores are one entry.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Size of one instance, as the CPU or the hypervisor says it. What a program gets may be far less: a
    /// shared cache is shared with CPUs that a guest does not see.
    pub size_bytes: u64,
    /// Bytes in a line.
    pub line_bytes: Option<u32>,
    /// Associativity; `None` when unknown or fully associative.
    pub ways: Option<u32>,
    /// Logical CPUs that share the first instance; empty when unknown.
    pub shared_cpus: Vec<u32>,
    /// All logical CPUs that have such a cache; empty when unknown.
    pub cpus: Vec<u32>,
    /// Number of such caches in the machine.
    pub instances: Option<u32>,
    /// Where this was read.
    pub source: CacheSource,
}

/// What a cache holds.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// Where a cache's figures come from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CacheSource {
    /// The CPUID instruction on one core.
    Cpuid,
    /// Linux: `/sys/devices/system/cpu/cpu*/cache`.
    Sysfs,
    /// sysfs, and CPUID says the same.
    SysfsAndCpuid,
    /// macOS: `sysctl`.
    Sysctl,
}

/// The cross-check of CPUID and sysfs. On x86 the kernel's figures come from CPUID too, so agreement rules
/// out a misreading, not a hypervisor's fiction.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheAgreement {
    /// How many caches both sources list.
    pub compared: u32,
    /// Where they differ, in words; empty if nowhere.
    pub differences: Vec<String>,
}

pub(crate) fn read(
    root: &Root,
    registers: Option<&Registers>,
    notes: &mut Notes,
) -> (Vec<Cache>, CacheAgreement) {
    let listed = from_sysfs(root, notes);
    let said = registers.map(from_cpuid).unwrap_or_default();
    if listed.is_empty() && said.is_empty() {
        notes.say("caches", "neither CPUID nor /sys/devices/system/cpu/cpu*/cache lists any");
    }
    cross_check(listed, said, registers.is_some_and(Registers::is_hybrid))
}

/// The caches of the answering core: leaf `8000_001Dh` where the CPU has topology extensions (AMD, Hygon),
/// else 4.
pub(crate) fn from_cpuid(registers: &Registers) -> Vec<Cache> {
    registers.cache_geometry().map_while(one_of_cpuid).collect()
}

/// One subleaf; `None` at the list's end.
fn one_of_cpuid([eax, ebx, ecx, _]: [u32; 4]) -> Option<Cache> {
    let kind = match eax & 0x1f {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let field = |low: u32, width: u32| (ebx >> low & ((1 << width) - 1)) + 1;
    let (line, partitions, ways, sets) = (field(0, 12), field(12, 10), field(22, 10), u64::from(ecx) + 1);
    Some(Cache {
        level: (eax >> 5 & 7) as u8,
        kind,
        // At most 2^10 * 2^10 * 2^12 * 2^32: a damaged dump may exceed 64 bits by one.
        size_bytes: sets.checked_mul(u64::from(ways) * u64::from(partitions) * u64::from(line))?,
        line_bytes: Some(line),
        ways: (eax >> 9 & 1 == 0).then_some(ways),
        shared_cpus: Vec::new(),
        cpus: Vec::new(),
        instances: None,
        source: CacheSource::Cpuid,
    })
}

/// Joins both lists. CPUID answers for one core only, so on a hybrid CPU a cache of the other kind of core is
/// no difference.
pub(crate) fn cross_check(
    mut listed: Vec<Cache>,
    said: Vec<Cache>,
    hybrid: bool,
) -> (Vec<Cache>, CacheAgreement) {
    let mut agreement = CacheAgreement::default();
    if listed.is_empty() || said.is_empty() {
        let one = if listed.is_empty() { said } else { listed };
        return (one, agreement);
    }
    let place = |cache: &Cache| (cache.level, cache.kind);
    for cache in &said {
        let same_place: Vec<usize> =
            (0..listed.len()).filter(|i| place(&listed[*i]) == place(cache)).collect();
        let agrees = |other: &Cache| {
            let same = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
            other.size_bytes == cache.size_bytes
                && same(other.line_bytes, cache.line_bytes)
                && same(other.ways, cache.ways)
        };
        if same_place.is_empty() {
            agreement
                .differences
                .push(format!("CPUID lists {}, sysfs lists none of that level", in_words(cache)));
            continue;
        }
        agreement.compared += 1;
        if let Some(found) = same_place.iter().copied().find(|i| agrees(&listed[*i])) {
            listed[found].source = CacheSource::SysfsAndCpuid;
        } else {
            let other = in_words(&listed[same_place[0]]);
            agreement.differences.push(format!("CPUID lists {}, sysfs {other}", in_words(cache)));
        }
    }
    if !hybrid {
        for other in listed.iter().filter(|other| !said.iter().any(|cache| place(cache) == place(other))) {
            agreement.differences.push(format!("sysfs lists {}, CPUID none of that level", in_words(other)));
        }
    }
    (listed, agreement)
}

fn in_words(cache: &Cache) -> String {
    let letter = match cache.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    let or_unknown = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    format!(
        "L{}{letter} of {} KiB ({} ways, lines of {} bytes)",
        cache.level,
        cache.size_bytes / 1024,
        or_unknown(cache.ways),
        or_unknown(cache.line_bytes)
    )
}

/// Walks every CPU's caches; an instance is recognised by the CPUs that share it.
fn from_sysfs(root: &Root, notes: &mut Notes) -> Vec<Cache> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let mut instances: BTreeMap<(u8, CacheKind, Vec<u32>), Cache> = BTreeMap::new();
    let mut damaged = None;
    for cpu in root.numbered(CPUS, "cpu") {
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        for index in root.numbered(&folder, "index") {
            match one_of_sysfs(root, &format!("{folder}/index{index}"), cpu) {
                Ok(cache) => {
                    _ = instances.insert((cache.level, cache.kind, cache.shared_cpus.clone()), cache);
                }
                Err(why) => damaged = Some(why),
            }
        }
    }
    if let Some(why) = damaged {
        notes.say("caches", why);
    }
    let mut kinds: Vec<Cache> = Vec::new();
    for cache in instances.into_values() {
        let alike = |other: &&mut Cache| {
            (other.level, other.kind, other.size_bytes, other.line_bytes, other.ways)
                == (cache.level, cache.kind, cache.size_bytes, cache.line_bytes, cache.ways)
                && other.shared_cpus.len() == cache.shared_cpus.len()
        };
        if let Some(kind) = kinds.iter_mut().find(alike) {
            kind.instances = kind.instances.map(|n| n + 1);
            kind.cpus.extend(&cache.shared_cpus);
            kind.cpus.sort_unstable();
        } else {
            kinds.push(cache);
        }
    }
    kinds
}

fn one_of_sysfs(root: &Root, folder: &str, cpu: u32) -> Result<Cache, crate::root::Why> {
    let kind = root.read_as(&format!("{folder}/type"), |word| match word {
        "Data" => Some(CacheKind::Data),
        "Instruction" => Some(CacheKind::Instruction),
        "Unified" => Some(CacheKind::Unified),
        _ => None,
    })?;
    let shared_cpus =
        root.read_as(&format!("{folder}/shared_cpu_list"), text::cpu_list).unwrap_or_else(|_| vec![cpu]);
    // Firmware that does not know a figure writes 0.
    let known = |name: &str| root.number(&format!("{folder}/{name}")).ok().filter(|number: &u32| *number > 0);
    Ok(Cache {
        level: root.number(&format!("{folder}/level"))?,
        kind,
        size_bytes: root
            .read_as(&format!("{folder}/size"), |size| text::size(size).filter(|bytes| *bytes > 0))?,
        line_bytes: known("coherency_line_size"),
        ways: known("ways_of_associativity"),
        cpus: shared_cpus.clone(),
        shared_cpus,
        instances: Some(1),
        source: CacheSource::Sysfs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u8, kib: u64, source: CacheSource) -> Cache {
        Cache {
            level,
            kind: CacheKind::Unified,
            size_bytes: kib << 10,
            line_bytes: Some(64),
            ways: Some(16),
            shared_cpus: vec![0],
            cpus: vec![0],
            instances: Some(1),
            source,
        }
    }

    #[test]
    fn what_both_sources_say_is_marked_and_a_difference_is_reported_with_both_figures() {
        let checked = |listed, said| {
            let (listed, said) = (cache(3, listed, CacheSource::Sysfs), cache(3, said, CacheSource::Cpuid));
            let (caches, agreement) = cross_check(vec![listed], vec![said], false);
            (caches[0].source, agreement.compared, agreement.differences.join(""))
        };
        assert_eq!(checked(1024, 1024), (CacheSource::SysfsAndCpuid, 1, String::new()));
        let (source, _, difference) = checked(32_768, 16_384);
        assert_eq!(source, CacheSource::Sysfs);
        let wanted = "CPUID lists L3 of 16384 KiB (16 ways, lines of 64 bytes), sysfs L3 of 32768 KiB (16 \
            ways, lines of 64 bytes)";
        assert_eq!(difference, wanted);
    }

    #[test]
    fn a_level_that_only_one_source_lists_is_a_difference_but_not_between_core_kinds() {
        let listed = || vec![cache(2, 1024, CacheSource::Sysfs), cache(3, 4096, CacheSource::Sysfs)];
        let said = || vec![cache(2, 1024, CacheSource::Cpuid)];
        assert_eq!(cross_check(listed(), said(), false).1.differences.len(), 1);
        assert!(cross_check(listed(), said(), true).1.differences.is_empty());
    }

    #[test]
    fn one_source_alone_is_taken_and_not_compared() {
        let (caches, agreement) = cross_check(vec![], vec![cache(2, 1024, CacheSource::Cpuid)], false);
        assert_eq!((caches.len(), agreement.compared), (1, 0));
    }

    #[test]
    fn cache_geometry_is_ways_times_partitions_times_line_times_sets() {
        // 48 KiB, 12 ways, 64-byte lines, 64 sets: the L1d of Ice Lake and Zen 5.
        let l1 = one_of_cpuid([0x121, 11 << 22 | 63, 63, 0]).expect("a cache");
        assert_eq!((l1.level, l1.kind, l1.size_bytes, l1.ways), (1, CacheKind::Data, 48 << 10, Some(12)));
    }

    #[test]
    fn the_list_of_caches_ends_at_the_null_entry() {
        let dump = "4 0 121 02c0003f 3f 0\n4 1 0 0 0 0\n4 2 143 03c0003f 3ff 0\n";
        assert_eq!(from_cpuid(&Registers::parse(dump)).len(), 1);
    }

    #[test]
    fn a_damaged_geometry_is_no_cache() {
        assert_eq!(one_of_cpuid([0x121, u32::MAX, u32::MAX, 0]), None);
    }
}
