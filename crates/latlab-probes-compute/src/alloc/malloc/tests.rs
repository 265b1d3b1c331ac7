use latlab_harness::{AnyProbe as _, Erased, PointResult};
use latlab_probes_testing as testing;
use serde_json::{Value, json};

use super::*;

fn answering(name: &str) -> Answering {
    Answering { name: name.to_owned(), version: Some("1.2.3".to_owned()), library: format!("lib{name}.so.2") }
}

#[test]
fn an_allocator_that_was_asked_for_and_did_not_answer_fails_the_proof() {
    assert!(answers(Name::Mimalloc, &answering("mimalloc")).ok);
    assert!(!answers(Name::Mimalloc, &answering("glibc")).ok, "the preload did not take");
    assert!(!answers(Name::System, &answering("jemalloc")).ok, "the user's preload is in the way");
    assert!(answers(Name::System, &answering("musl")).ok);
    let nameless = Answering { version: None, ..answering("jemalloc") };
    assert!(!answers(Name::Jemalloc, &nameless).ok, "no version, no figure");
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_whose_preload_does_not_exist_says_who_answers_instead() {
    let env = testing::env_of_one_cpu(64 << 20);
    let missing = Allocator { name: Name::Mimalloc, preload: Some("/nonexistent/libmimalloc.so.2".into()) };
    let mut child = heap::start(&env, Malloc::SPEC.id, &missing).expect("the linker goes on without it");
    let Answer::Description(answering) = child.ask(&Request::Describe).expect("an answer") else {
        panic!("another answer");
    };
    assert!(!answers(Name::Mimalloc, &answering).ok, "{answering:?}");
}

fn result(allocator: Name, size_bytes: u64, state: State, p50: f64) -> PointResult {
    let point = Blocks { allocator, size_bytes, state, placement: Placement::SameThread };
    PointResult {
        findings: Some(json!({
            "library": "libc.so.6",
            "not_installed": ["mimalloc"],
            "mmap_threshold_bytes": 131_072,
            "minor_faults_per_op": if p50 > 1e6 { size_bytes as f64 / 4096.0 } else { 0.01 },
        })),
        ..PointResult::new(point.to_point(), p50)
    }
}

fn concluded(results: &[PointResult]) -> Value {
    let mut header = testing::header(&testing::env(64 << 20));
    header.machine.memory.page_bytes = Some(4096);
    Erased(Malloc).conclude(&header, results)[0].findings.clone().expect("findings")
}

#[test]
fn the_cliff_is_where_reused_blocks_begin_to_be_faulted_in_again() {
    let mut results = Vec::new();
    for (size, reused, fresh) in
        [(16, 10.0, 15.0), (1 << 20, 300.0, 400_000.0), (16 << 20, 20_000.0, 7e6), (64 << 20, 28e6, 29e6)]
    {
        results.push(result(Name::System, size, State::Reused, reused));
        results.push(result(Name::System, size, State::Fresh, fresh));
    }
    results.push(result(Name::Jemalloc, 16, State::Reused, 8.0));
    let findings = concluded(&results);
    let system = &findings["allocators"][0];
    let sizes =
        |value: u64, low: u64| json!({"value": value as f64, "low": low as f64, "high": value as f64});
    assert_eq!(system["trim_cliff"]["size_bytes"], sizes(64 << 20, 16 << 20));
    assert_eq!(system["trim_cliff"]["before_ns"], json!(20_000.0));
    assert_eq!(system["mmap_threshold_bytes"], json!(131_072));
    assert_eq!(system["sizes"][0]["reused_ns"], json!(10.0));
    assert!(findings["allocators"][1]["trim_cliff"].is_null());
    assert_eq!(findings["not_installed"], json!(["mimalloc"]));
}

#[test]
fn memory_that_was_not_new_fails_the_proof_of_the_system_s_allocator() {
    let judged = |faults, is_system| {
        let mut proof = Proof::<Answered>::default();
        let tally = FaultTally { faults, ops: 1_000, uncounted: false };
        judge_freshness(&mut proof, 4096, &tally, is_system);
        (proof.checks.iter().all(|check| check.ok), proof.flags.is_empty())
    };
    let pages = 4096 * 1_000 / heap::page_bytes() as u64;
    assert_eq!(judged(pages, true), (true, true));
    assert_eq!(judged(pages / 2, true), (false, true));
    assert_eq!(judged(pages / 2, false), (true, false));
}

#[test]
fn one_cpu_has_no_second_thread() {
    let plan = Malloc.plan(&testing::env_of_one_cpu(64 << 20));
    assert_eq!(plan.points.is_empty(), !cfg!(target_os = "linux"));
    assert!(plan.points.iter().all(|planned| planned.point.placement == Placement::SameThread));
}

#[test]
#[cfg(target_os = "linux")]
fn every_use_is_proved_in_child_processes() {
    let env = testing::env(4 << 20);
    // Of other allocators where they are installed; none is needed.
    let points: Vec<Planned> = Erased(Malloc)
        .points(&env)
        .into_iter()
        .filter(|planned| [Some(16), Some(64 << 10), Some(1 << 20)].contains(&planned.point.size_bytes))
        .collect();
    let proofs = testing::assert_proved(&Erased(Malloc), &env, &points);
    let findings = proofs[0].findings.as_ref().expect("findings");
    if heap::can_keep() && cfg!(target_arch = "x86_64") {
        assert_eq!(
            findings["mmap_threshold_largest_bytes"].as_u64().map(|bytes| bytes >> 20),
            Some(32),
            "{findings}"
        );
    }
}
