//! The levels as a reader sees them: each with its rate in bytes a core cycle, beside the most that the core
//! can move.

use std::ops::RangeInclusive;

use latlab_machine::{Cpu, Machine};
use latlab_probes_shared::prelude::*;
use strum::VariantArray;

use super::{Bandwidth, Details, Moves, SMALL, THIRD_LIKELY};
use crate::levels::reported;
use crate::vector::Operation;

/// What a core can move in one cycle, bytes, with vectors of one width. `None` is what no document says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Widths {
    load: f64,
    store: Option<f64>,
    /// From the second-level to the first-level cache.
    second: Option<f64>,
    /// From the third-level to the second-level cache, where its clock is the core's.
    third: Option<f64>,
    source: &'static str,
}

struct Known {
    vendor: &'static str,
    /// Empty: every microarchitecture of this vendor that has the instruction set.
    names: &'static [&'static str],
    /// Model numbers of others of these names.
    not_models: std::ops::Range<u32>,
    isa: &'static str,
    widths: Widths,
}

const INTEL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual";
const ZEN: &str = "AMD, Software Optimization Guide for Family 17h and 19h";
const ZEN_5: &str = "AMD, Zen 5 at Hot Chips 2024";
const ARM_TWO_LOADS: &str = "Arm, software optimization guide of the core: two 16-byte loads a cycle";
const ARM_THREE_LOADS: &str =
    "Arm, software optimization guide of the core: three 16-byte loads, two stores a cycle";
const WITH_AVX2: &[&str] = &[
    "Haswell",
    "Broadwell",
    "Skylake",
    "Skylake-SP",
    "Cascade Lake",
    "Kaby Lake",
    "Coffee Lake",
    "Comet Lake",
];

/// A row. `bytes` a cycle: loaded, stored, from the second level, from the third; 0 is what no document says.
const fn known(
    vendor: &'static str,
    names: &'static [&'static str],
    isa: &'static str,
    bytes: [f64; 4],
    source: &'static str,
) -> Known {
    const fn documented(bytes: f64) -> Option<f64> {
        if bytes > 0.0 { Some(bytes) } else { None }
    }
    let [load, store, second, third] = bytes;
    let [store, second, third] = [documented(store), documented(second), documented(third)];
    Known { vendor, names, not_models: 0..0, isa, widths: Widths { load, store, second, third, source } }
}

/// First match counts. Not in it, and so without a share: CPUs whose cores are of several kinds.
const TABLE: &[Known] = &[
    // Two 64-byte loads and one 64-byte store a cycle, and 64 bytes from the second level, in every Intel
    // core with AVX-512 from Skylake-SP to Granite Rapids: the instruction set shows them where a hypervisor
    // hides the name.
    known("GenuineIntel", &[], "avx512", [128.0, 64.0, 64.0, 0.0], INTEL),
    known("GenuineIntel", WITH_AVX2, "avx2", [64.0, 32.0, 64.0, 0.0], INTEL),
    // Its mobile variants have the model numbers from 0x20 on, beside the others, and half the width.
    Known {
        not_models: 0x20..0x40,
        ..known("AuthenticAMD", &["Zen 5"], "avx512", [128.0, 64.0, 64.0, 32.0], ZEN_5)
    },
    // A 512-bit access takes two turns of a port.
    known("AuthenticAMD", &["Zen 4"], "avx512", [64.0, 32.0, 32.0, 32.0], ZEN),
    known("AuthenticAMD", &["Zen 2", "Zen 3", "Zen 4"], "avx2", [64.0, 32.0, 32.0, 32.0], ZEN),
    known("AuthenticAMD", &["Zen", "Zen+"], "avx2", [32.0, 16.0, 32.0, 0.0], ZEN),
    known("Arm", &["Neoverse N1", "Cortex-A76", "Cortex-A77"], "neon", [32.0, 0.0, 0.0, 0.0], ARM_TWO_LOADS),
    known(
        "Arm",
        &["Neoverse V1", "Neoverse N2", "Neoverse V2"],
        "neon",
        [48.0, 32.0, 0.0, 0.0],
        ARM_THREE_LOADS,
    ),
];

/// Who answers a working set, by the sizes that the CPU reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, VariantArray)]
enum Level {
    #[serde(rename = "L1")]
    First,
    #[serde(rename = "L2")]
    Second,
    #[serde(rename = "L3")]
    Third,
    #[serde(rename = "RAM")]
    Ram,
}

/// One level's figures.
#[derive(Serialize, JsonSchema)]
pub(super) struct AtLevel {
    name: Level,
    /// The one that stands for the level.
    working_set_bytes: u64,
    isa: String,
    bytes_per_s: f64,
    bytes_per_cycle: Option<Estimate>,
    /// The most that the core can move at this level, where that is documented.
    best_bytes_per_cycle: Option<f64>,
    /// What was measured over that.
    share: Option<Estimate>,
    /// Which document says it, or why none does.
    source: String,
}

/// Of the only kind of cores that there is.
fn widths(cpu: &Cpu, isa: &str) -> Option<Widths> {
    if cpu.hybrid == Some(true) || cpu.parts.len() > 1 {
        return None;
    }
    let name = match cpu.parts.as_slice() {
        [part] => part.name.as_deref(),
        _ => cpu.microarchitecture.as_deref(),
    };
    let vendor = cpu.vendor.as_deref()?;
    let known = TABLE.iter().find(|known| {
        known.vendor == vendor
            && known.isa == isa
            && (known.names.is_empty() || name.is_some_and(|name| known.names.contains(&name)))
    })?;
    let excluded = cpu.model.is_some_and(|model| known.not_models.contains(&model));
    (!excluded).then_some(known.widths)
}

impl Widths {
    /// Most bytes a cycle, counted as the operation counts them.
    fn best(self, operation: Operation, level: Level) -> Option<f64> {
        match (operation, level) {
            (Operation::Read, Level::First) => Some(self.load),
            // No more than is loaded, however wide the way.
            (Operation::Read, Level::Second) => self.second.map(|second| second.min(self.load)),
            (Operation::Read, Level::Third) => self.third,
            (Operation::Write, Level::First) => self.store,
            // A byte read and a byte written for each copied one.
            (Operation::Copy, Level::First) => self.store.map(|store| 2.0 * store.min(self.load)),
            // Lines also go the other way, and how the two share the way is not documented.
            _ => None,
        }
    }
}

/// The level of a working set by what is reported; RAM only where a third level is reported, or the set is
/// far beyond.
fn level_of(machine: &Machine, bytes: u64) -> Option<Level> {
    let reported = |level| reported(machine, level);
    if bytes <= reported(1)? {
        Some(Level::First)
    } else if bytes <= reported(2)? {
        Some(Level::Second)
    } else {
        reported(3).map(|third| if bytes <= third { Level::Third } else { Level::Ram })
    }
}

/// What a record of one thread says beside its rate.
pub(super) fn details(machine: &Machine, point: &Moves) -> Option<Details> {
    let operation = point.operation;
    if point.threads != 1 || !matches!(operation, Operation::Read | Operation::Write | Operation::Copy) {
        return None;
    }
    let best =
        || widths(&machine.cpu, &point.isa)?.best(operation, level_of(machine, point.working_set_bytes)?);
    Some(Details::Alone { bytes_per_cycle: None, best_bytes_per_cycle: best() })
}

/// Each level's figures: of the measured working set nearest to the level's landmark, among those that lie in
/// it.
pub(super) fn levels(header: &Header, all: &[Figure<Bandwidth>], operation: Operation) -> Vec<AtLevel> {
    let of_level = |level: &Level| {
        let (sizes, mark) = landmark(header, all, operation, *level)?;
        let figure = singles(all, operation)
            .filter(|figure| sizes.contains(&figure.point.working_set_bytes))
            .min_by(|a, b| distance(a, mark).total_cmp(&distance(b, mark)))?;
        Some(at_level(&header.machine, *level, figure))
    };
    Level::VARIANTS.iter().filter_map(of_level).collect()
}

/// Between which working sets lie those of a level, bytes, and the one that is wanted; `None`: the level is
/// not known.
fn landmark(
    header: &Header,
    all: &[Figure<Bandwidth>],
    operation: Operation,
    level: Level,
) -> Option<(RangeInclusive<u64>, u64)> {
    let first = reported(&header.machine, 1)?;
    let second = reported(&header.machine, 2)?;
    let third = reported(&header.machine, 3);
    // By any operation: not all of them fit into as much memory.
    let measured = all.iter().map(|figure| figure.point.working_set_bytes).max()?;
    match level {
        Level::First => Some((1..=first, SMALL[2])),
        Level::Second => Some((first + 1..=second, second / 2)),
        // Of less than twice the second level much is still answered there.
        Level::Third => Some((2 * second..=third?.min(measured / 8), THIRD_LIKELY)),
        Level::Ram => {
            // As far as memory was measured. A guest is told of a third level that it shares with CPUs that
            // it does not see, so being larger than that cannot be asked for; `--gentle` never leaves the
            // caches.
            let largest = singles(all, operation).map(|figure| figure.point.working_set_bytes).max()?;
            let beyond = largest > third.unwrap_or(second) || largest >= LIKELY_RAM;
            (beyond && !header.settings.gentle).then_some((largest..=largest, largest))
        }
    }
}

/// The share of a reported cache that one guest gets is smaller than this on every machine met.
const LIKELY_RAM: u64 = 256 << 20;

/// Figures of one thread on 4 KiB pages.
fn singles(all: &[Figure<Bandwidth>], operation: Operation) -> impl Iterator<Item = &Figure<Bandwidth>> {
    all.iter().filter(move |Figure { point, .. }| {
        point.operation == operation && point.threads == 1 && point.pages != Some(Pages::Huge)
    })
}

/// In octaves.
fn distance(figure: &Figure<Bandwidth>, mark: u64) -> f64 {
    (figure.point.working_set_bytes as f64 / mark as f64).log2().abs()
}

/// More than the best is no share of it: then the document is of another CPU, or the frequency was misjudged.
/// A core's frequency moves by 3 % between two steps of its governor.
const MOST_SHARE: f64 = 1.05;

fn at_level(machine: &Machine, level: Level, figure: &Figure<Bandwidth>) -> AtLevel {
    let Moves { operation, working_set_bytes, isa, .. } = figure.point.clone();
    let bytes_per_cycle = match figure.details {
        Some(Details::Alone { bytes_per_cycle, .. }) => bytes_per_cycle,
        _ => None,
    };
    let known = widths(&machine.cpu, &isa);
    let best = known.and_then(|known| known.best(operation, level));
    let share = bytes_per_cycle.zip(best).map(|(own, best)| own.map(|bytes| bytes / best));
    let (best, share, source) = match (known, best, share) {
        (None, ..) => (None, None, "no vendor document of this CPU's widths is known".to_owned()),
        (_, None, _) => (None, None, "the maximum of this level per core cycle is not documented".to_owned()),
        (Some(known), Some(best), Some(share)) if share.value > MOST_SHARE => {
            (None, None, format!("measured more than the {best} bytes of: {}", known.source))
        }
        (Some(known), ..) => (best, share, known.source.to_owned()),
    };
    AtLevel {
        name: level,
        working_set_bytes,
        isa,
        bytes_per_s: figure.result.p50,
        bytes_per_cycle,
        best_bytes_per_cycle: best,
        share,
        source,
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{PointFields as _, PointResult};
    use serde_json::{Value, json};

    use super::*;
    use latlab_probes_testing as testing;

    /// A CPU with 48 KiB, 2 MiB and 32 MiB.
    fn header(vendor: &str, name: Option<&str>) -> Header {
        let mut header = testing::header(&testing::env(4 << 30));
        header.machine.caches = [(1, 48 << 10), (2, 2 << 20), (3, 32 << 20)]
            .map(|(level, bytes)| testing::cache(level, bytes))
            .into();
        header.machine.cpu = Cpu {
            vendor: Some(vendor.to_owned()),
            microarchitecture: name.map(str::to_owned),
            ..Cpu::default()
        };
        header
    }

    fn moves(operation: Operation, isa: &str, working_set_bytes: u64) -> Moves {
        Moves { operation, working_set_bytes, threads: 1, isa: isa.to_owned(), pages: None }
    }

    fn figure(operation: Operation, isa: &str, size: u64, bytes_per_cycle: Option<f64>) -> Figure<Bandwidth> {
        let p50 = 4e9 * bytes_per_cycle.unwrap_or(1.0);
        let findings = bytes_per_cycle.map(|bytes| json!({ "bytes_per_cycle": { "value": bytes } }));
        let point = moves(operation, isa, size).to_point();
        Figure::of(&PointResult { findings, ..PointResult::new(point, p50) }).expect("of this probe")
    }

    /// As the record has them.
    fn levels(header: &Header, all: &[Figure<Bandwidth>], operation: Operation) -> Vec<Value> {
        super::levels(header, all, operation).iter().map(|level| json!(level)).collect()
    }

    fn reads(isa: &str) -> Vec<Figure<Bandwidth>> {
        let sizes = [
            (8 << 10, 100.0),
            (24 << 10, 120.0),
            (48 << 10, 90.0),
            (1 << 20, 48.0),
            (2 << 20, 30.0),
            (3 << 20, 20.0),
            (8 << 20, 16.0),
            (16 << 20, 12.0),
            (1 << 30, 4.0),
        ];
        sizes.map(|(size, bytes)| figure(Operation::Read, isa, size, Some(bytes))).into()
    }

    #[test]
    fn each_level_is_shown_at_its_landmark_with_its_share_of_what_the_core_can_move() {
        let levels = levels(&header("AuthenticAMD", Some("Zen 5")), &reads("avx512"), Operation::Read);
        let reported: Vec<(&str, u64, Option<f64>)> = levels
            .iter()
            .map(|level| {
                (
                    level["name"].as_str().expect("a name"),
                    level["working_set_bytes"].as_u64().expect("a size"),
                    level["share"]["value"].as_f64(),
                )
            })
            .collect();
        assert_eq!(
            reported,
            [
                ("L1", 24 << 10, Some(120.0 / 128.0)),
                ("L2", 1 << 20, Some(0.75)),
                ("L3", 8 << 20, Some(0.5)),
                ("RAM", 1 << 30, None),
            ]
        );
        assert_eq!(levels[0]["bytes_per_s"], 480e9);
        assert!(levels[0]["source"].as_str().is_some_and(|text| text.contains("Hot Chips")));
    }

    #[test]
    fn an_unknown_cpu_has_rates_and_no_share() {
        for (vendor, name, isa) in [
            ("AuthenticAMD", None, "avx2"),
            ("GenuineIntel", Some("Alder Lake"), "avx2"),
            ("Apple", None, "neon"),
            ("AuthenticAMD", Some("Zen 5"), "sse2"),
        ] {
            let levels = levels(&header(vendor, name), &reads(isa), Operation::Read);
            assert_eq!(levels.len(), 4);
            for level in levels {
                assert!(level["share"].is_null() && level["best_bytes_per_cycle"].is_null());
                assert!(level["bytes_per_cycle"]["value"].is_f64());
                assert!(level["source"].as_str().is_some_and(|text| text.contains("no vendor document")));
            }
        }
    }

    #[test]
    fn an_intel_core_is_known_by_its_widest_vectors_and_cores_of_several_kinds_by_nothing() {
        let mut cpu = header("GenuineIntel", None).machine.cpu;
        assert_eq!(widths(&cpu, "avx512").map(|widths| widths.load), Some(128.0));
        assert_eq!(widths(&cpu, "avx2"), None);
        cpu.hybrid = Some(true);
        assert_eq!(widths(&cpu, "avx512"), None);
        let mut mobile = header("AuthenticAMD", Some("Zen 5")).machine.cpu;
        mobile.model = Some(0x24);
        assert_eq!(widths(&mobile, "avx512"), None);
    }

    #[test]
    fn more_than_the_best_is_no_share() {
        let figures = [figure(Operation::Read, "avx512", 24 << 10, Some(140.0))];
        let levels = levels(&header("GenuineIntel", None), &figures, Operation::Read);
        assert!(levels[0]["share"].is_null() && levels[0]["best_bytes_per_cycle"].is_null());
        assert!(levels[0]["source"].as_str().is_some_and(|text| text.contains("more than")));
    }

    #[test]
    fn writing_and_copying_count_their_own_bytes() {
        let header = header("GenuineIntel", None);
        let figures = [
            figure(Operation::Write, "avx512", 24 << 10, Some(48.0)),
            figure(Operation::Copy, "avx512", 24 << 10, Some(96.0)),
            figure(Operation::Copy, "avx512", 1 << 20, Some(40.0)),
        ];
        let write = levels(&header, &figures, Operation::Write);
        assert_eq!(write[0]["share"]["value"], 0.75);
        let copy = levels(&header, &figures, Operation::Copy);
        assert_eq!(copy[0]["share"]["value"], 0.75);
        assert!(copy[1]["share"].is_null());
        assert_eq!(copy.len(), 2, "no RAM where none was measured");
    }

    #[test]
    fn a_core_whose_frequency_is_unknown_has_its_rate_alone() {
        let figures = [figure(Operation::Read, "avx512", 24 << 10, None)];
        let levels = levels(&header("GenuineIntel", None), &figures, Operation::Read);
        assert!(levels[0]["share"].is_null() && levels[0]["bytes_per_cycle"].is_null());
        assert!(levels[0]["bytes_per_s"].is_f64());
    }

    #[test]
    fn a_record_names_the_best_of_its_own_level() {
        let machine = header("GenuineIntel", None).machine;
        let best = |operation, size, threads| {
            let point = Moves { threads, ..moves(operation, "avx512", size) };
            match details(&machine, &point) {
                Some(Details::Alone { best_bytes_per_cycle, .. }) => Some(best_bytes_per_cycle),
                _ => None,
            }
        };
        assert_eq!(best(Operation::Read, 24 << 10, 1), Some(Some(128.0)));
        assert_eq!(best(Operation::Read, 1 << 20, 1), Some(Some(64.0)));
        assert_eq!(best(Operation::Read, 1 << 30, 1), Some(None));
        assert_eq!(best(Operation::Triad, 24 << 10, 1), None);
        assert_eq!(best(Operation::Read, 24 << 10, 2), None);
    }
}
