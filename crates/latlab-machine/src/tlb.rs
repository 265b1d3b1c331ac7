//! Translation buffers, as CPUID lists them.

use raw_cpuid::{Associativity, CacheInfoType, DatType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpuid::Registers;

/// One translation lookaside buffer.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Tlb {
    /// 1 is nearest to the core; `None` when CPUID does not say.
    pub level: Option<u8>,
    /// What it translates.
    pub kind: TlbKind,
    /// Page sizes that its entries may have, bytes. Empty when only `text` is known.
    pub page_bytes: Vec<u64>,
    /// Number of entries; `None` when only `text` is known.
    pub entries: Option<u32>,
    /// Associativity; `None` when unknown or fully associative.
    pub ways: Option<u32>,
    /// The meaning of an Intel leaf 2 descriptor, as its manual words it.
    pub text: Option<String>,
}

/// What a TLB translates.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TlbKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
    /// Loads only.
    Load,
    /// Stores only.
    Store,
    /// A descriptor that tells it in words.
    Described,
}

const KIB_4: u64 = 4 << 10;
const MIB_2: u64 = 2 << 20;
const MIB_4: u64 = 4 << 20;
const GIB_1: u64 = 1 << 30;

/// Intel: leaf 18h, or the descriptors of leaf 2. AMD: leaves `8000_0005h`, `8000_0006h`, `8000_0019h`.
pub(crate) fn from_cpuid(registers: &Registers) -> Vec<Tlb> {
    let mut tlbs = intel(registers);
    if tlbs.is_empty() {
        tlbs = amd(registers);
    }
    if tlbs.is_empty() {
        tlbs = descriptors(registers);
    }
    tlbs
}

fn intel(registers: &Registers) -> Vec<Tlb> {
    // No CPU lists more; a hypervisor that answers nonsense must not cost four thousand million steps.
    const MOST_STRUCTURES: u32 = 64;
    if registers.structures_of_leaf_18h() > MOST_STRUCTURES {
        return Vec::new();
    }
    let Some(structures) = registers.meaning().get_deterministic_address_translation_info() else {
        return Vec::new();
    };
    structures
        .filter_map(|dat| {
            let kind = match dat.cache_type() {
                DatType::DataTLB => TlbKind::Data,
                DatType::InstructionTLB => TlbKind::Instruction,
                DatType::UnifiedTLB => TlbKind::Unified,
                DatType::LoadOnly => TlbKind::Load,
                DatType::StoreOnly => TlbKind::Store,
                _ => return None,
            };
            let page_bytes = [
                (dat.has_4k_entries(), KIB_4),
                (dat.has_2mb_entries(), MIB_2),
                (dat.has_4mb_entries(), MIB_4),
                (dat.has_1gb_entries(), GIB_1),
            ];
            Some(Tlb {
                level: Some(dat.cache_level()),
                kind,
                page_bytes: page_bytes.into_iter().filter_map(|(has, bytes)| has.then_some(bytes)).collect(),
                entries: Some(dat.sets().saturating_mul(dat.ways().into())),
                ways: (!dat.is_fully_associative()).then(|| dat.ways().into()),
                text: None,
            })
        })
        .collect()
}

fn amd(registers: &Registers) -> Vec<Tlb> {
    let meaning = registers.meaning();
    let mut tlbs = Vec::new();
    let mut add = |level, kind, page, entries: u32, associativity: Associativity| {
        let ways = match associativity {
            Associativity::Disabled => return,
            Associativity::DirectMapped => Some(1),
            Associativity::NWay(ways) => Some(ways.into()),
            Associativity::FullyAssociative | Associativity::Unknown => None,
        };
        if entries > 0 {
            tlbs.push(Tlb {
                level: Some(level),
                kind,
                page_bytes: vec![page],
                entries: Some(entries),
                ways,
                text: None,
            });
        }
    };
    let Some(l1) = meaning.get_l1_cache_and_tlb_info() else { return tlbs };
    add(1, TlbKind::Data, KIB_4, l1.dtlb_4k_size().into(), l1.dtlb_4k_associativity());
    add(1, TlbKind::Data, MIB_2, l1.dtlb_2m_4m_size().into(), l1.dtlb_2m_4m_associativity());
    add(1, TlbKind::Instruction, KIB_4, l1.itlb_4k_size().into(), l1.itlb_4k_associativity());
    add(1, TlbKind::Instruction, MIB_2, l1.itlb_2m_4m_size().into(), l1.itlb_2m_4m_associativity());
    if let Some(l2) = meaning.get_l2_l3_cache_and_tlb_info() {
        add(2, TlbKind::Data, KIB_4, l2.dtlb_4k_size().into(), l2.dtlb_4k_associativity());
        add(2, TlbKind::Data, MIB_2, l2.dtlb_2m_4m_size().into(), l2.dtlb_2m_4m_associativity());
        add(2, TlbKind::Instruction, KIB_4, l2.itlb_4k_size().into(), l2.itlb_4k_associativity());
        add(2, TlbKind::Instruction, MIB_2, l2.itlb_2m_4m_size().into(), l2.itlb_2m_4m_associativity());
    }
    tlbs
}

fn descriptors(registers: &Registers) -> Vec<Tlb> {
    let Some(descriptors) = registers.meaning().get_cache_info() else { return Vec::new() };
    descriptors
        .filter(|descriptor| {
            matches!(descriptor.typ, CacheInfoType::TLB | CacheInfoType::DTLB | CacheInfoType::STLB)
        })
        .map(|descriptor| Tlb {
            level: None,
            kind: TlbKind::Described,
            page_bytes: Vec::new(),
            entries: None,
            ways: None,
            text: Some(descriptor.desc().to_owned()),
        })
        .collect()
}
