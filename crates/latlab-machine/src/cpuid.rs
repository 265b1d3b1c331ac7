//! CPUID answers as data, and what they mean. Pure: a dump from another machine is read as this one's.
//!
//! Sources: Intel SDM volume 2A (CPUID), AMD APM volume 3 appendix E, and the hypervisors' interface documents for
//! leaf `4000_0000h`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

use crate::cache::{Cache, CacheKind, CacheSource};
use crate::text;

/// CPUID answers: `[eax, ebx, ecx, edx]` by leaf and subleaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers(BTreeMap<(u32, u32), [u32; 4]>);

const HYPERVISOR: u32 = 0x4000_0000;
const EXTENDED: u32 = 0x8000_0000;

impl Registers {
    /// Asks for every leaf that is understood here. Leaf numbers above the CPU's maximum are not asked: Intel
    /// answers those with the data of another leaf.
    pub fn ask(cpuid: impl Fn(u32, u32) -> [u32; 4]) -> Self {
        // Subleaves in use by any CPU known; both structures end with a null entry.
        const SUBLEAVES: u32 = 16;
        let mut answers = BTreeMap::new();
        let mut take =
            |leaf, subleaf| *answers.entry((leaf, subleaf)).or_insert_with(|| cpuid(leaf, subleaf));
        let [basic, ..] = take(0, 0);
        for leaf in [1, 2, 6, 7, 0xd, 0x14, 0x15, 0x16, 0x1a].into_iter().filter(|leaf| *leaf <= basic) {
            take(leaf, 0);
        }
        if basic >= 7 {
            take(7, 1);
        }
        for leaf in [4, 0x18].into_iter().filter(|leaf| *leaf <= basic) {
            (0..SUBLEAVES).for_each(|subleaf| _ = take(leaf, subleaf));
        }
        let [.., ecx, _] = take(1, 0);
        if ecx & (1 << 31) != 0 {
            // A second interface may stand 100h higher (KVM showing Hyper-V's first).
            for leaf in [HYPERVISOR, HYPERVISOR + 3, HYPERVISOR + 0x100] {
                take(leaf, 0);
            }
        }
        let [extended, ..] = take(EXTENDED, 0);
        if extended > EXTENDED {
            for leaf in
                (EXTENDED + 1..=EXTENDED + 8).chain([EXTENDED + 0x19]).filter(|leaf| *leaf <= extended)
            {
                take(leaf, 0);
            }
            if extended >= EXTENDED + 0x1d {
                (0..SUBLEAVES).for_each(|subleaf| _ = take(EXTENDED + 0x1d, subleaf));
            }
        }
        Self(answers)
    }

    /// Reads a dump: one answer a line, `leaf subleaf eax ebx ecx edx` in hexadecimal; other lines are skipped.
    #[must_use]
    pub fn parse(dump: &str) -> Self {
        let answer = |line: &str| {
            let mut numbers = line.split_whitespace().map(|word| u32::from_str_radix(word, 16).ok());
            let mut next = || numbers.next().flatten();
            Some(((next()?, next()?), [next()?, next()?, next()?, next()?]))
        };
        Self(dump.lines().filter_map(answer).collect())
    }

    /// The dump that [`Registers::parse`] reads.
    #[must_use]
    pub fn dump(&self) -> String {
        self.0.iter().filter(|(_, answer)| **answer != [0; 4]).fold(
            String::new(),
            |mut dump, ((leaf, subleaf), r)| {
                writeln!(
                    dump,
                    "{leaf:08x} {subleaf:02x} {:08x} {:08x} {:08x} {:08x}",
                    r[0], r[1], r[2], r[3]
                )
                .expect("a String takes everything");
                dump
            },
        )
    }

    fn get(&self, leaf: u32, subleaf: u32) -> [u32; 4] {
        self.0.get(&(leaf, subleaf)).copied().unwrap_or_default()
    }

    fn bit(&self, leaf: u32, subleaf: u32, register: Register, bit: u32) -> bool {
        self.get(leaf, subleaf)[register as usize] & (1 << bit) != 0
    }

    pub(crate) fn meaning(&self) -> CpuId<&Self> {
        CpuId::with_cpuid_reader(self)
    }

    /// The highest subleaf of leaf 18h.
    pub(crate) fn structures_of_leaf_18h(&self) -> u32 {
        self.get(0x18, 0)[0]
    }

    /// Whether cores of several kinds share this package (leaf 7, EDX bit 15).
    pub(crate) fn is_hybrid(&self) -> bool {
        self.bit(7, 0, Register::Edx, 15)
    }

    /// Whether a hypervisor says it is there (leaf 1, ECX bit 31, which no real CPU sets).
    pub(crate) fn under_hypervisor(&self) -> bool {
        self.bit(1, 0, Register::Ecx, 31)
    }

    /// The hypervisors' twelve-letter signatures, the outer interface first.
    pub(crate) fn hypervisor_signatures(&self) -> Vec<String> {
        if !self.under_hypervisor() {
            return Vec::new();
        }
        let signature = |leaf| {
            let [_, ebx, ecx, edx] = self.get(leaf, 0);
            let bytes: Vec<u8> = [ebx, ecx, edx].iter().flat_map(|register| register.to_le_bytes()).collect();
            let letters = bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_graphic() || *byte == b' ');
            letters.then(|| text::said(&String::from_utf8_lossy(&bytes))).flatten()
        };
        [HYPERVISOR, HYPERVISOR + 0x100].into_iter().filter_map(signature).collect()
    }

    /// Whether this is the system that created the other virtual machines under Hyper-V, such as Windows itself with
    /// memory integrity on (leaf `4000_0003h`, EBX bit 0, `CreatePartitions`).
    pub(crate) fn is_hyperv_root(&self) -> bool {
        self.hypervisor_signatures().first().is_some_and(|s| s == "Microsoft Hv")
            && self.bit(HYPERVISOR + 3, 0, Register::Ebx, 0)
    }

    /// Features among those that this tool or its readers ask for, named as Linux names them. Vector extensions that
    /// the system has not enabled (no OSXSAVE) are left out.
    pub(crate) fn features(&self) -> Vec<String> {
        let vectors = self.bit(1, 0, Register::Ecx, 27);
        FEATURES
            .iter()
            .filter(|f| self.bit(f.leaf, f.subleaf, f.register, f.bit) && (vectors || !f.needs_osxsave))
            .map(|f| f.name.to_owned())
            .collect()
    }

    /// The caches of the answering core: leaf `8000_001Dh` where the CPU has topology extensions (AMD, Hygon), else 4.
    pub(crate) fn caches(&self) -> Vec<Cache> {
        let leaf = if self.bit(EXTENDED + 1, 0, Register::Ecx, 22) { EXTENDED + 0x1d } else { 4 };
        self.0.range((leaf, 0)..=(leaf, u32::MAX)).map_while(|(_, answer)| cache(*answer)).collect()
    }
}

/// One subleaf of leaf 4 or `8000_001Dh`; `None` at the list's end.
fn cache([eax, ebx, ecx, _]: [u32; 4]) -> Option<Cache> {
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

impl CpuIdReader for &Registers {
    fn cpuid2(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.get(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

#[derive(Clone, Copy)]
enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

struct Feature {
    name: &'static str,
    leaf: u32,
    subleaf: u32,
    register: Register,
    bit: u32,
    needs_osxsave: bool,
}

const fn feature(name: &'static str, leaf: u32, subleaf: u32, register: Register, bit: u32) -> Feature {
    Feature { name, leaf, subleaf, register, bit, needs_osxsave: false }
}

const fn vector(name: &'static str, leaf: u32, subleaf: u32, register: Register, bit: u32) -> Feature {
    Feature { needs_osxsave: true, ..feature(name, leaf, subleaf, register, bit) }
}

/// In the order of [`crate::cpu::X86_FEATURES`].
const FEATURES: &[Feature] = &[
    feature("sse4_2", 1, 0, Register::Ecx, 20),
    vector("avx", 1, 0, Register::Ecx, 28),
    vector("avx2", 7, 0, Register::Ebx, 5),
    vector("avx512f", 7, 0, Register::Ebx, 16),
    vector("avx512bw", 7, 0, Register::Ebx, 30),
    vector("avx512vl", 7, 0, Register::Ebx, 31),
    vector("avx512_fp16", 7, 0, Register::Edx, 23),
    vector("avx512_vp2intersect", 7, 0, Register::Edx, 8),
    vector("avx_vnni", 7, 1, Register::Eax, 4),
    vector("amx_tile", 7, 0, Register::Edx, 24),
    feature("rdtscp", EXTENDED + 1, 0, Register::Edx, 27),
    feature("rdpid", 7, 0, Register::Ecx, 22),
    feature("nonstop_tsc", EXTENDED + 7, 0, Register::Edx, 8),
    feature("serialize", 7, 0, Register::Edx, 14),
    feature("clflushopt", 7, 0, Register::Ebx, 23),
    feature("clwb", 7, 0, Register::Ebx, 24),
    feature("cldemote", 7, 0, Register::Ecx, 25),
    feature("movdiri", 7, 0, Register::Ecx, 27),
    feature("movdir64b", 7, 0, Register::Ecx, 28),
    feature("erms", 7, 0, Register::Ebx, 9),
    feature("fsrm", 7, 0, Register::Edx, 4),
    feature("pdpe1gb", EXTENDED + 1, 0, Register::Edx, 26),
    feature("pcid", 1, 0, Register::Ecx, 17),
    feature("waitpkg", 7, 0, Register::Ecx, 5),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_reads_back_as_itself() {
        let registers =
            Registers::parse("1 0 00a60f12 00040800 fed83203 178bfbff\n# not an answer\n4 1 0 1 2 3\n");
        assert_eq!(Registers::parse(&registers.dump()), registers);
        assert_eq!(registers.get(4, 1), [0, 1, 2, 3]);
    }

    #[test]
    fn cache_geometry_is_ways_times_partitions_times_line_times_sets() {
        // 48 KiB, 12 ways, 64-byte lines, 64 sets: the L1d of Ice Lake and Zen 5.
        let l1 = cache([0x121, 11 << 22 | 63, 63, 0]).expect("a cache");
        assert_eq!((l1.level, l1.kind, l1.size_bytes, l1.ways), (1, CacheKind::Data, 48 << 10, Some(12)));
    }

    #[test]
    fn the_list_of_caches_ends_at_the_null_entry() {
        let dump = "4 0 121 02c0003f 3f 0\n4 1 0 0 0 0\n4 2 143 03c0003f 3ff 0\n";
        assert_eq!(Registers::parse(dump).caches().len(), 1);
    }

    #[test]
    fn a_damaged_geometry_is_no_cache() {
        assert_eq!(cache([0x121, u32::MAX, u32::MAX, 0]), None);
    }

    #[test]
    fn vector_extensions_need_the_system_to_save_their_registers() {
        let avx2 = "0 0 7 0 0 0\n7 0 0 20 0 0\n";
        assert!(Registers::parse(avx2).features().is_empty());
        assert_eq!(Registers::parse(&format!("{avx2}1 0 0 0 08000000 0\n")).features(), ["avx2"]);
    }

    #[test]
    fn a_signature_counts_only_when_a_hypervisor_says_it_is_there() {
        // "KVMKVMKVM\0\0\0"
        let kvm = "40000000 0 40000001 4b4d564b 564b4d56 0000004d\n";
        assert!(Registers::parse(kvm).hypervisor_signatures().is_empty());
        let guest = Registers::parse(&format!("1 0 0 0 80000000 0\n{kvm}"));
        assert_eq!(guest.hypervisor_signatures(), ["KVMKVMKVM"]);
    }

    #[test]
    fn leaves_above_the_maximum_are_not_asked() {
        let asked = Registers::ask(|leaf, _| {
            assert!(matches!(leaf, 0 | 1 | 0x8000_0000), "leaf {leaf:x} was asked");
            if leaf == 0 { [1, 0, 0, 0] } else { [0; 4] }
        });
        assert_eq!(asked.get(0, 0)[0], 1);
    }
}
