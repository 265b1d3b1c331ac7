//! CPUID answers as data, and what they mean. Pure: a dump from another machine is read as this one's.
//!
//! Sources: Intel SDM volume 2A (CPUID), AMD APM volume 3 appendix E, and the hypervisors' interface
//! documents for leaf `4000_0000h`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

use crate::text;

/// CPUID answers: `[eax, ebx, ecx, edx]` by leaf and subleaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers(BTreeMap<(u32, u32), [u32; 4]>);

const HYPERVISOR: u32 = 0x4000_0000;
const EXTENDED: u32 = 0x8000_0000;

impl Registers {
    /// Of this CPU; of a CPU with cores of several kinds, the core that happened to answer. `None` on
    /// architectures without CPUID.
    pub(crate) fn of_this_cpu() -> Option<Self> {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            // Every x86-64 CPU has CPUID; a vendor string says that leaf 0 is answered.
            CpuId::new().get_vendor_info()?;
            Some(Self::ask(|leaf, subleaf| {
                let r = raw_cpuid::native_cpuid::cpuid_count(leaf, subleaf);
                [r.eax, r.ebx, r.ecx, r.edx]
            }))
        }
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        None
    }

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

    /// Reads a dump: one answer a line, `leaf subleaf eax ebx ecx edx` in hexadecimal; other lines are
    /// skipped.
    pub fn parse(dump: &str) -> Self {
        let answer = |line: &str| {
            let mut numbers = line.split_whitespace().map(|word| u32::from_str_radix(word, 16).ok());
            let mut next = || numbers.next().flatten();
            Some(((next()?, next()?), [next()?, next()?, next()?, next()?]))
        };
        Self(dump.lines().filter_map(answer).collect())
    }

    /// The dump that [`Registers::parse`] reads.
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

    fn bit(&self, (leaf, subleaf, register, bit): Place) -> bool {
        self.get(leaf, subleaf)[register] & (1 << bit) != 0
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
        self.bit((7, 0, EDX, 15))
    }

    /// Whether a hypervisor says it is there (leaf 1, ECX bit 31, which no real CPU sets).
    pub(crate) fn under_hypervisor(&self) -> bool {
        self.bit((1, 0, ECX, 31))
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

    /// Whether this is the system that created the other virtual machines under Hyper-V, such as Windows
    /// itself with memory integrity on (leaf `4000_0003h`, EBX bit 0, `CreatePartitions`).
    pub(crate) fn is_hyperv_root(&self) -> bool {
        self.hypervisor_signatures().first().is_some_and(|s| s == "Microsoft Hv")
            && self.bit((HYPERVISOR + 3, 0, EBX, 0))
    }

    /// Features among those that this tool or its readers ask for, named as Linux names them. Vector
    /// extensions that the system has not enabled (no OSXSAVE) are left out.
    pub(crate) fn features(&self) -> Vec<String> {
        let enabled = self.bit((1, 0, ECX, 27));
        let vector = |name: &str| name.starts_with("avx") || name.starts_with("amx");
        FEATURES
            .iter()
            .filter(|(name, place)| place.is_some_and(|at| self.bit(at)) && (enabled || !vector(name)))
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }

    /// The subleaves that describe caches, in their order.
    pub(crate) fn cache_geometry(&self) -> impl Iterator<Item = [u32; 4]> {
        let leaf = if self.bit((EXTENDED + 1, 0, ECX, 22)) { EXTENDED + 0x1d } else { 4 };
        self.0.range((leaf, 0)..=(leaf, u32::MAX)).map(|(_, answer)| *answer)
    }
}

impl CpuIdReader for &Registers {
    fn cpuid2(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.get(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

const EAX: usize = 0;
const EBX: usize = 1;
const ECX: usize = 2;
const EDX: usize = 3;

/// Leaf, subleaf, register and bit.
type Place = (u32, u32, usize, u32);

/// Features that matter to measuring (vector widths, time stamps, cache control, page sizes), named as Linux
/// names them, and where CPUID tells of them: of some only the kernel does.
const FEATURES: &[(&str, Option<Place>)] = &[
    ("sse4_2", Some((1, 0, ECX, 20))),
    ("avx", Some((1, 0, ECX, 28))),
    ("avx2", Some((7, 0, EBX, 5))),
    ("avx512f", Some((7, 0, EBX, 16))),
    ("avx512bw", Some((7, 0, EBX, 30))),
    ("avx512vl", Some((7, 0, EBX, 31))),
    ("avx512_fp16", Some((7, 0, EDX, 23))),
    ("avx512_vp2intersect", Some((7, 0, EDX, 8))),
    ("avx_vnni", Some((7, 1, EAX, 4))),
    ("amx_tile", Some((7, 0, EDX, 24))),
    ("rdtscp", Some((EXTENDED + 1, 0, EDX, 27))),
    ("rdpid", Some((7, 0, ECX, 22))),
    ("constant_tsc", None),
    ("nonstop_tsc", Some((EXTENDED + 7, 0, EDX, 8))),
    ("tsc_known_freq", None),
    ("serialize", Some((7, 0, EDX, 14))),
    ("clflushopt", Some((7, 0, EBX, 23))),
    ("clwb", Some((7, 0, EBX, 24))),
    ("cldemote", Some((7, 0, ECX, 25))),
    ("movdiri", Some((7, 0, ECX, 27))),
    ("movdir64b", Some((7, 0, ECX, 28))),
    ("erms", Some((7, 0, EBX, 9))),
    ("fsrm", Some((7, 0, EDX, 4))),
    ("pdpe1gb", Some((EXTENDED + 1, 0, EDX, 26))),
    ("pcid", Some((1, 0, ECX, 17))),
    ("waitpkg", Some((7, 0, ECX, 5))),
];

/// The names of all x86 features that are looked for.
pub(crate) fn feature_names() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().map(|(name, _)| *name)
}

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
