use latlab_harness::{PointFields as _, PointResult, Support};
use latlab_probes_testing as testing;
use serde_json::json;

use super::*;
use crate::planted::on_a_disk;

fn figure(operation: Operation, way: Way, p50: f64, sync_ns: f64, reported: OnLinux) -> Figure<Durable> {
    let point = Write::of(operation, way);
    let details = Details { sync_p50_ns: Some(sync_ns), linux: Some(reported), ..Details::default() };
    Figure { point, details: Some(details), result: PointResult::new(point.to_point(), p50) }
}

fn concluded(figures: &[Figure<Durable>]) -> Option<Findings> {
    Durable.conclude(&testing::header(&testing::env(64 << 20)), figures)
}

#[test]
fn a_sync_is_judged_by_its_time_its_flushes_and_how_busy_the_machine_was() {
    for (fast_ns, flushes, busy, expected) in [
        (50e3, None, None, Verdict::Absorbed),
        (100e3, Some(1.0), Some(0.0), Verdict::Absorbed),
        (200e3, Some(1.0), Some(0.0), Verdict::Undecided),
        (700e3, Some(1.0), Some(0.01), Verdict::Plausible),
        (8e6, None, None, Verdict::Plausible),
        // On a busy machine a slow sync says nothing, and a fast one still does.
        (4e6, Some(1.0), Some(0.6), Verdict::Undecided),
        (100e3, Some(1.0), Some(0.6), Verdict::Absorbed),
        // Without a flush to a cache no durability is shown, however long it takes.
        (700e3, Some(0.0), None, Verdict::NotSent),
        (100e3, Some(0.02), None, Verdict::NotSent),
    ] {
        assert_eq!(verdict(fast_ns, flushes, busy), expected, "{fast_ns} {flushes:?} {busy:?}");
    }
}

#[test]
fn the_verdict_comes_with_its_evidence() {
    let reported = OnLinux {
        write_cache: Some("write back".to_owned()),
        made_of_others: Some(false),
        file_system: Some("file system ext4 with the options rw; with a journal".to_owned()),
        ..OnLinux::default()
    };
    let findings = concluded(&[
        figure(Operation::Overwrite, Way::Fdatasync, 100e3, 96e3, reported),
        figure(Operation::Append, Way::Fdatasync, 200e3, 196e3, OnLinux::default()),
        figure(Operation::Overwrite, Way::DirectFdatasync, 95e3, 48e3, OnLinux::default()),
    ]);
    let findings = json!(findings);
    assert_eq!(findings["verdict"], "absorbed by a protected cache or the host");
    assert_eq!(findings["append_over_overwrite"], 2.0);
    assert_eq!(findings["judged_by"]["sync"], "fdatasync");
    let evidence: Vec<&str> =
        findings["evidence"].as_array().expect("a list").iter().filter_map(|text| text.as_str()).collect();
    assert!(evidence[0].contains("median 96 µs"), "{evidence:?}");
    assert!(evidence[1].contains("median 48 µs"), "{evidence:?}");
    for reported in ["needs flushes (write back)", "ext4 with the options rw; with a journal"] {
        assert!(evidence.iter().any(|text| text.contains(reported)), "{evidence:?}");
    }
    assert!(evidence.iter().any(|text| text.contains("virtual machine")), "{evidence:?}");
    assert!(
        evidence.iter().any(|text| text.contains("counts flushes") || text.contains("counted")),
        "{evidence:?}"
    );
}

#[test]
fn a_sync_without_a_flush_tells_of_a_device_that_has_a_cache_and_is_not_made_of_others() {
    let verdict = |write_cache: &str, made_of_others: bool| {
        let reported = OnLinux {
            flushes_per_operation: Some(0.0),
            write_cache: Some(write_cache.to_owned()),
            made_of_others: Some(made_of_others),
            ..OnLinux::default()
        };
        let figures = [figure(Operation::Overwrite, Way::Fdatasync, 710e3, 700e3, reported)];
        concluded(&figures).expect("an overwrite").verdict
    };
    assert_eq!(verdict("write back", false), Verdict::NotSent);
    assert_eq!(verdict("write back", true), Verdict::Plausible);
    assert_eq!(verdict("write through", false), Verdict::Plausible);
}

#[test]
fn without_an_overwrite_there_is_no_verdict() {
    let figures = [figure(Operation::Append, Way::Fdatasync, 200e3, 196e3, OnLinux::default())];
    assert!(concluded(&figures).is_none());
}

#[test]
fn a_system_that_tells_nothing_besides_leaves_it_out_and_one_that_does_says_null() {
    let details = Details { bytes: 4096, ..Details::default() };
    assert_eq!(json!(details).as_object().map(serde_json::Map::len), Some(4));
    let on_linux = json!(Details { linux: Some(OnLinux::default()), ..details });
    assert_eq!(on_linux.as_object().map(serde_json::Map::len), Some(11));
    assert!(on_linux["cpu_pressure"].is_null());
}

#[test]
fn its_points_fit_one_cpu_and_little_memory_and_say_what_they_write() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points: Vec<_> = offered(Operation::VARIANTS, &Way::VARIANTS[..4])
        .into_iter()
        .map(|write| super::planned(&env, write))
        .collect();
    assert_eq!(points.len(), 12);
    let seconds: f64 = points.iter().filter(|planned| planned.priority == 0).map(Planned::round_s).sum();
    assert!(seconds < 0.6, "{seconds}");
    for planned in &points {
        let operation = planned.point.operation;
        let operations = operations(Profile::Quick, operation);
        assert!(planned.written_bytes >= operations * BLOCK_BYTES);
        let laid_out = operation == Operation::Overwrite;
        assert_eq!(planned.laid_out_bytes, if laid_out { FILE_BYTES } else { 0 });
    }
    let written: u64 = points.iter().map(Planned::round_bytes).sum();
    assert!(written < 64 << 20, "{written}");
}

#[test]
fn each_system_has_the_ways_that_it_knows_and_full_fsync_is_of_macos() {
    let linux =
        offered(Operation::VARIANTS, &[Way::Fsync, Way::Fdatasync, Way::ODsync, Way::DirectFdatasync]);
    assert_eq!(linux.len(), 12);
    assert_eq!(linux[0], Write::of(Operation::Overwrite, Way::Fdatasync));
    let macos = offered(&[Operation::Overwrite, Operation::Append], &[Way::Fsync, Way::FullFsync]);
    assert_eq!(
        macos,
        [
            Write::of(Operation::Overwrite, Way::Fsync),
            Write::of(Operation::Overwrite, Way::FullFsync),
            Write::of(Operation::Append, Way::Fsync),
            Write::of(Operation::Append, Way::FullFsync),
        ]
    );
    assert!(offered(&[], &[]).is_empty());
    for way in Way::VARIANTS {
        let point = Write::of(Operation::Overwrite, *way).to_point();
        assert_eq!(point.sync.as_deref(), Some(way.name()));
    }
}

#[test]
fn where_there_is_a_full_fsync_it_is_judged_and_not_the_fsync_that_flushes_nothing() {
    let figures = [(Way::Fsync, 40e3), (Way::FullFsync, 5e6)]
        .map(|(way, ns)| figure(Operation::Overwrite, way, ns, ns, OnLinux::default()));
    let findings = concluded(&figures).expect("an overwrite");
    assert_eq!(findings.judged_by.sync, Way::FullFsync);
    assert_eq!(findings.verdict, Verdict::Plausible);
}

#[cfg(target_os = "linux")]
mod linux {
    use latlab_harness::{AnyProbe as _, Erased, Proof, Session as _};
    use latlab_storage::Disk;

    use super::*;
    use crate::storage::proved_once;
    use crate::storage::sync::work::{Fault, open};

    /// The proofs of the overwrites, appends and creations with these ways, each after one block on a disk
    /// with a fault.
    fn faulty(env: &Env, ways: &[Way], fault: Fault) -> Vec<Proof<Details>> {
        let writes = offered(Operation::VARIANTS, ways);
        let mut session = open(env, &writes).expect("room");
        session.fault = Some(fault);
        let proof = |write: &Write| proved_once(&mut session, env, write).expect("taken");
        writes.iter().map(proof).collect()
    }

    #[test]
    fn a_budget_too_small_for_the_common_test_file_is_enough_for_its_own() {
        let mut env = testing::env(64 << 20);
        let binary = std::env::current_exe().expect("the test binary has a path");
        env.disk = Disk::new(binary.parent().expect("in a folder"), 8 << 20, 3);
        if crate::disk::room(&env).is_ok_and(|bytes| bytes >= ROOM_BYTES) {
            assert!(matches!(crate::disk::support_writing(&env), Support::No(_)));
            assert_eq!(Durable.plan(&env).support, Support::Yes);
        }
    }

    #[test]
    fn every_point_proves_its_work() {
        let Some(env) = on_a_disk(&Erased(Durable), testing::env_of_one_cpu(64 << 20)) else { return };
        // Direct I/O is not everywhere.
        let direct = env.disk.test_file(8 << 20).is_ok_and(|file| file.direct.is_ok());
        let mut points = Erased(Durable).points(&env);
        points.retain(|planned| direct || planned.point.sync.as_deref() != Some("direct-fdatasync"));
        for proof in testing::assert_proved(&Erased(Durable), &env, &points) {
            let findings = proof.findings.expect("findings");
            assert!(findings["bytes"].as_u64() >= Some(4 * BLOCK_BYTES), "{findings}");
            assert_eq!(proof.engine.as_deref(), Some("psync"));
        }
    }

    #[test]
    fn a_sync_that_does_nothing_fails_the_proof_where_the_kernel_tells_what_waits() {
        let Some(env) = on_a_disk(&Erased(Durable), testing::env(64 << 20)) else { return };
        for proof in faulty(&env, &[Way::Fsync, Way::Fdatasync], Fault::SyncsNothing) {
            let reported = proof.checks.iter().any(|check| check.detail.contains("cachestat"));
            let failed = testing::failed(&proof).contains(&"nothing waits after the sync");
            assert_eq!(failed, reported, "{:?}", proof.checks);
        }
    }

    #[test]
    fn other_bytes_than_were_written_fail_the_proof() {
        let Some(env) = on_a_disk(&Erased(Durable), testing::env(64 << 20)) else { return };
        for proof in faulty(&env, &[Way::Fdatasync], Fault::KeepsOtherBytes) {
            assert!(testing::failed(&proof).contains(&"contents verified"), "{:?}", proof.checks);
        }
    }

    #[test]
    fn what_was_never_measured_is_no_proof() {
        let Some(env) = on_a_disk(&Erased(Durable), testing::env(64 << 20)) else { return };
        let mut session = open(&env, &[]).expect("no file is needed");
        let proof = session.proof(&Write::of(Operation::Append, Way::Fsync), &Found::default());
        assert_eq!(testing::failed(&proof).len(), 4, "{:?}", proof.checks);
    }
}
