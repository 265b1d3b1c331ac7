//! On a planted hierarchy: what was planted must come out.

use latlab_clock::{Clock, SimulatedClock};
use latlab_harness::{Erased, SimulatedLevel};
use latlab_machine::Machine;
use latlab_probes_testing::{self as testing, Kept};
use latlab_record::{Kind, Record, Settings};

use super::*;

const PLANTED: [(u64, f64); 4] = [(48 << 10, 1.05), (1 << 20, 3.7), (12 << 20, 13.0), (u64::MAX, 110.0)];

fn planted_env(huge_pages_effective: bool) -> Env {
    let clock = SimulatedClock::ideal();
    let levels = PLANTED
        .iter()
        .map(|(capacity_bytes, latency_ns)| SimulatedLevel {
            capacity_bytes: *capacity_bytes,
            latency_ns: *latency_ns,
        })
        .collect();
    let memory = SimulatedMemory {
        levels,
        translation: vec![(96, 1.7), (4096, 20.0)],
        huge_pages_effective,
        clock: clock.clone(),
    };
    let caches = [(1, 48 << 10), (2, 1 << 20), (3, 32 << 20)]
        .map(|(level, bytes)| testing::cache(level, bytes))
        .into();
    Env {
        machine: Machine { caches, ..Machine::default() },
        clock: Clock::simulated(clock),
        settings: Settings { seed: 1, ..Settings::default() },
        cpus: vec![0],
        home_cpu: 0,
        memory: MemorySource::Simulated(memory),
        ..testing::env(4 << 30)
    }
}

fn measure(env: &Env) -> Vec<Record> {
    measure_at_most(env, None)
}

fn measure_at_most(env: &Env, visits: Option<usize>) -> Vec<Record> {
    let mut kept = Kept { visits, ..Kept::default() };
    kept.measure(&Erased(LoadDependent), env, env.clock.now_ns() + 60e9);
    kept.records
}

/// The figures of a run of so many rounds, with what follows from them.
fn measure_in_rounds(env: &Env, count: u32) -> Vec<Record> {
    let of_round = |round| testing::in_round(measure(env), round, env.home_cpu);
    testing::folded(&Erased(LoadDependent), env, &(0..count).flat_map(of_round).collect::<Vec<_>>())
}

fn findings(records: &[Record]) -> serde_json::Value {
    let derived = records.iter().find(|record| record.kind == Kind::Derived).expect("levels are concluded");
    derived.findings.clone().expect("a derived record has findings")
}

#[test]
fn a_planted_hierarchy_comes_out_as_planted() {
    let findings = findings(&measure_in_rounds(&planted_env(true), 2));
    let levels = findings["levels"].as_array().expect("a list");
    let names: Vec<&str> = levels.iter().map(|level| level["name"].as_str().expect("named")).collect();
    assert_eq!(names, ["L1", "L2", "L3", "RAM"], "{findings:#}");
    for (level, (capacity, latency)) in levels.iter().zip(PLANTED) {
        let found = level["latency_ns"]["value"].as_f64().expect("a figure");
        assert!((found / latency - 1.0).abs() < 0.02, "{latency} came out as {found}");
        if capacity != u64::MAX {
            let lo = level["end_bytes"]["low"].as_f64().expect("a bracket");
            let hi = level["end_bytes"]["high"].as_f64().expect("a bracket");
            assert!(lo <= capacity as f64 && capacity as f64 <= hi, "{capacity} is not in {lo}..{hi}");
            assert!(hi / lo < 1.2, "eight sizes an octave near the knee: {lo}..{hi}");
            assert_eq!(level["validated"], true, "{level:#}");
        }
    }
}

/// Of each record its point, its median and a digest of all of it.
#[test]
fn records_of_a_simulated_machine_are_what_they_always_were() {
    let digest = |text: &str| {
        // FNV-1a.
        text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
    };
    let lines: Vec<String> = measure_in_rounds(&planted_env(true), 2)
        .iter()
        .map(|record| {
            let p50 = record.summary.as_ref().and_then(|summary| summary.p50);
            let whole = digest(&testing::as_line(record));
            format!("{} {p50:?} {whole:016x}", record.point.label())
        })
        .collect();
    testing::assert_golden("crates/latlab-probes-compute/src/memory/load_dependent/golden.txt", &lines);
}

#[test]
fn one_round_alone_confirms_no_boundary() {
    let findings = findings(&measure_in_rounds(&planted_env(true), 1));
    let levels = findings["levels"].as_array().expect("a list");
    assert_eq!(levels.len(), PLANTED.len(), "{findings:#}");
    assert!(levels.iter().all(|level| level["validated"].is_null()));
}

#[test]
fn a_shared_cache_of_which_only_a_part_is_ours_is_remarked_on_with_the_reason() {
    let findings = findings(&measure(&planted_env(true)));
    let note = findings["levels"][2]["note"].as_str().expect("12 of 32 MiB is remarked on");
    assert!(note.contains("less than the 32 MiB reported") && note.contains("shared"), "{note}");
}

#[test]
fn planted_translation_reach_comes_out_and_is_not_taken_for_a_cache() {
    let findings = findings(&measure(&planted_env(true)));
    let steps = findings["tlb"].as_array().expect("a list");
    assert_eq!(steps.len(), 2, "{findings:#}");
    for (step, (reach, _)) in steps.iter().zip([(96.0, 1.7), (4096.0, 20.0)]) {
        let (lo, hi) = (step["pages_lo"].as_f64().expect("pages"), step["pages_hi"].as_f64().expect("pages"));
        assert!(lo <= reach && reach <= hi, "{reach} is not in {lo}..{hi}");
    }
    assert_eq!(findings["effective_page_bytes"], 2 << 20);
}

#[test]
fn huge_pages_that_are_small_in_hardware_are_noticed() {
    assert_eq!(findings(&measure(&planted_env(false)))["effective_page_bytes"], 4096);
}

#[test]
fn with_little_memory_working_sets_end_earlier_and_the_record_says_so() {
    let mut env = planted_env(true);
    env.memory_bytes = 64 << 20;
    let records = measure(&env);
    let largest = records.iter().filter_map(|record| record.point.working_set_bytes).max();
    assert_eq!(largest, Some(32 << 20));
    let measured = records.iter().find(|record| record.kind == Kind::BatchMean).expect("some were measured");
    assert!(measured.flags.iter().any(|flag| flag.contains("degraded") && flag.contains("32 MiB")));
}

#[test]
fn with_no_memory_it_says_what_it_needs() {
    let mut env = planted_env(true);
    env.memory_bytes = 4 << 10;
    let records = measure(&env);
    let error = records[0].error.as_ref().expect("absent");
    assert!(error.text.contains("8 MiB"), "{}", error.text);
}

#[test]
fn real_walks_on_this_machine_prove_their_work() {
    let env =
        Env { memory: MemorySource::Real, clock: Clock::open(), memory_bytes: 32 << 20, ..planted_env(true) };
    let records = measure_at_most(&env, Some(12));
    let walked: Vec<&Record> = records.iter().filter(|record| record.kind == Kind::BatchMean).collect();
    assert_eq!(walked.len(), 12);
    for record in walked {
        assert_eq!(record.error, None);
        for proof in ["permutation", "walks end where they should"] {
            let check = record.checks.iter().find(|check| check.name == proof);
            assert!(check.is_some_and(|check| check.ok), "{proof}: {record:?}");
        }
    }
}

#[test]
fn chains_that_are_kept_never_share_a_word() {
    let arena_bytes = 1 << 30;
    let mut env = planted_env(true);
    env.settings.profile = Profile::Thorough;
    let points = LoadDependent.plan(&env).points.into_iter().map(|planned| planned.point);
    let of_base = points.filter(|point| point.pages == Pages::Base);
    let places: Vec<(u64, Place)> =
        places(of_base, arena_bytes).into_iter().map(|(point, place)| (point.span(), place)).collect();
    assert!(places.len() >= 10, "five sizes from 64 MiB on in two orders: {}", places.len());
    for (index, (span, place)) in places.iter().enumerate() {
        assert!(place.slot < SLOTS - 1 && place.offset + span <= arena_bytes);
        for (other_span, other) in &places[index + 1..] {
            let apart = place.offset + span <= other.offset || other.offset + other_span <= place.offset;
            assert!(place.slot != other.slot || apart, "{place:?} and {other:?}");
        }
    }
}
