use super::*;
use crate::testing;

fn result(operation: Operation, way: Way, p50: f64, findings: serde_json::Value) -> PointResult {
    PointResult {
        point: point(operation, way),
        p50,
        interval: None,
        cycles: None,
        refined: false,
        disturbed: false,
        findings: Some(findings),
    }
}

fn judged(fast_ns: f64, flushes: Option<f64>, busy: Option<f64>) -> &'static str {
    verdict(Judged {
        fast_ns,
        flushes,
        busy,
    })
}

#[test]
fn a_flush_faster_than_flash_is_absorbed_and_a_slow_one_is_plausible() {
    assert_eq!(judged(50e3, None, None), ABSORBED);
    assert_eq!(judged(100e3, Some(1.0), Some(0.0)), ABSORBED);
    assert_eq!(judged(200e3, Some(1.0), Some(0.0)), UNDECIDED);
    assert_eq!(judged(700e3, Some(1.0), Some(0.01)), PLAUSIBLE);
    assert_eq!(judged(8e6, None, None), PLAUSIBLE);
}

#[test]
fn on_a_busy_machine_a_slow_sync_says_nothing_and_a_fast_one_still_does() {
    assert_eq!(judged(4e6, Some(1.0), Some(0.6)), UNDECIDED);
    assert_eq!(judged(100e3, Some(1.0), Some(0.6)), ABSORBED);
}

#[test]
fn a_sync_that_sends_no_flush_to_a_cache_shows_no_durability_however_long_it_takes() {
    assert_eq!(judged(700e3, Some(0.0), None), NOT_SENT);
    assert_eq!(judged(100e3, Some(0.02), None), NOT_SENT);
}

#[test]
fn the_verdict_comes_with_its_evidence() {
    let env = testing::env(64 << 20);
    let results = [
        result(
            Operation::Overwrite,
            Way::Fdatasync,
            100e3,
            json!({ "sync_p50_ns": 96e3 }),
        ),
        result(
            Operation::Append,
            Way::Fdatasync,
            200e3,
            json!({ "sync_p50_ns": 196e3 }),
        ),
        result(
            Operation::Overwrite,
            Way::DirectFdatasync,
            95e3,
            json!({ "sync_p50_ns": 48e3 }),
        ),
    ];
    let records = Durable.conclude(&env, &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["verdict"], ABSORBED);
    assert_eq!(findings["append_over_overwrite"], 2.0);
    assert_eq!(findings["judged_by"]["sync"], "fdatasync");
    let evidence: Vec<&str> = findings["evidence"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|text| text.as_str())
        .collect();
    assert!(evidence[0].contains("median 96 us"), "{evidence:?}");
    assert!(evidence[1].contains("median 48 us"), "{evidence:?}");
    assert!(
        evidence.iter().any(|text| text.contains("virtual machine")),
        "{evidence:?}"
    );
    assert!(
        evidence
            .iter()
            .any(|text| text.contains("counts flushes") || text.contains("counted")),
        "{evidence:?}"
    );
}

#[test]
fn without_an_overwrite_there_is_no_verdict() {
    let env = testing::env(64 << 20);
    let results = [result(
        Operation::Append,
        Way::Fdatasync,
        200e3,
        json!({ "sync_p50_ns": 196e3 }),
    )];
    assert!(Durable.conclude(&env, &results).is_empty());
}

#[test]
fn its_points_fit_one_cpu_and_little_memory_and_say_what_they_write() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Durable.points(&env);
    assert_eq!(points.len(), 12);
    let seconds: f64 = points
        .iter()
        .filter(|planned| planned.priority == 0)
        .map(|planned| 6.0 * (planned.setup_s + planned.block_s))
        .sum();
    assert!(seconds < 0.6, "{seconds}");
    for planned in &points {
        let (operation, _) = asked(&planned.point).expect("one of ours");
        assert!(
            planned.written_bytes
                >= planned.most_blocks as u64 * operations(Profile::Quick, operation) * BLOCK_BYTES
        );
    }
    let written: u64 = points.iter().map(|planned| planned.written_bytes).sum();
    assert!(written < 64 << 20, "{written}");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use latlab_harness::measure_once;
    use latlab_storage::Disk;

    use super::*;
    use crate::storage::sync::work::Syncing;

    /// Which fault is planted.
    #[derive(Clone, Copy)]
    enum Fault {
        SyncsNothing,
        KeepsOtherBytes,
    }

    /// The probe on a disk with a fault.
    struct Faulty(Fault);

    impl Probe for Faulty {
        fn spec(&self) -> &'static Spec {
            &SPEC
        }
        fn supports(&self, env: &Env) -> Support {
            Durable.supports(env)
        }
        fn points(&self, env: &Env) -> Vec<Planned> {
            Durable.points(env)
        }
        fn memory_bytes(&self, env: &Env) -> u64 {
            Durable.memory_bytes(env)
        }
        fn open<'env>(
            &'env self,
            env: &'env Env,
            group: &[Planned],
        ) -> Result<Box<dyn Session + 'env>, ProbeError> {
            let mut session = Syncing::new(env, group)?;
            match self.0 {
                Fault::SyncsNothing => session.syncs_nothing = true,
                Fault::KeepsOtherBytes => session.keeps_other_bytes = true,
            }
            Ok(Box::new(session))
        }
    }

    #[test]
    fn a_budget_too_small_for_the_common_test_file_is_enough_for_its_own() {
        let mut env = testing::env(64 << 20);
        let binary = std::env::current_exe().expect("the test binary has a path");
        env.disk = Disk::new(binary.parent().expect("in a folder"), 8 << 20, 3);
        if disk::room(&env).is_ok_and(|bytes| bytes >= ROOM_BYTES) {
            assert!(matches!(disk::support_writing(&env), Support::No(_)));
            assert_eq!(Durable.supports(&env), Support::Yes);
        }
    }

    #[test]
    fn every_point_proves_its_work() {
        let env = testing::env_of_one_cpu(64 << 20);
        if !testing::has_disk(&Durable, &env) {
            return;
        }
        // Direct I/O is not everywhere.
        let direct = env.disk.test_file(8 << 20).is_ok_and(|file| file.direct.is_ok());
        let mut points = Durable.points(&env);
        points.retain(|planned| direct || planned.point.sync.as_deref() != Some("direct-fdatasync"));
        for proof in testing::assert_proved(&Durable, &env, &points) {
            let findings = proof.findings.expect("findings");
            assert!(findings["bytes"].as_u64() >= Some(4 * BLOCK_BYTES), "{findings}");
            assert_eq!(proof.engine.as_deref(), Some("psync"));
        }
    }

    #[test]
    fn a_sync_that_does_nothing_fails_the_proof_where_the_kernel_tells_what_waits() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Durable, &env) {
            return;
        }
        let mut points = Durable.points(&env);
        points.retain(|planned| matches!(planned.point.sync.as_deref(), Some("fsync" | "fdatasync")));
        for (_, proof) in measure_once(&Faulty(Fault::SyncsNothing), &env, &points) {
            let told = proof
                .checks
                .iter()
                .any(|check| check.detail.contains("cachestat"));
            assert_eq!(
                testing::failed(&proof).contains(&"nothing waits after the sync"),
                told,
                "{proof:?}"
            );
        }
    }

    #[test]
    fn other_bytes_than_were_written_fail_the_proof() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Durable, &env) {
            return;
        }
        let mut points = Durable.points(&env);
        points.retain(|planned| planned.point.sync.as_deref() == Some("fdatasync"));
        for (_, proof) in measure_once(&Faulty(Fault::KeepsOtherBytes), &env, &points) {
            assert!(
                testing::failed(&proof).contains(&"contents verified"),
                "{proof:?}"
            );
        }
    }

    #[test]
    fn what_was_never_measured_is_no_proof() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Durable, &env) {
            return;
        }
        let mut session = Syncing::new(&env, &[]).expect("no file is needed");
        let proof = session.proof(&point(Operation::Append, Way::Fsync));
        assert_eq!(testing::failed(&proof).len(), 4, "{proof:?}");
    }

    #[test]
    fn memory_is_no_disk_and_a_users_file_is_not_written() {
        let mut env = testing::env(64 << 20);
        env.settings.file = Some("Cargo.toml".to_owned());
        assert!(matches!(Durable.supports(&env), Support::No(_)));
        let mut env = testing::env(64 << 20);
        let shared = Path::new("/dev/shm");
        if shared.is_dir() {
            env.disk = Disk::new(shared, 64 << 20, 3);
            let Support::No(reason) = Durable.supports(&env) else {
                panic!("tmpfs passes for a disk");
            };
            assert!(reason.contains("tmpfs"), "{reason}");
        }
    }

    #[test]
    fn a_spent_budget_is_the_reason_and_no_file_is_left() {
        let mut env = testing::env(64 << 20);
        if !testing::has_disk(&Durable, &env) {
            return;
        }
        let own = std::env::current_exe()
            .expect("a path")
            .with_file_name(format!("sync-budget-{}", std::process::id()));
        std::fs::create_dir(&own).expect("the build folder can be written");
        env.disk = Disk::new(&own, 20 * BLOCK_BYTES, 3);
        let records = {
            let mut kept = testing::Kept::default();
            // The budget ends it, long before the time does.
            let wanted = env.clock.now_ns() + 60e9;
            latlab_harness::run_probe(
                &OnlyCreate,
                &env,
                wanted,
                &mut latlab_harness::NoReference,
                &mut kept,
            );
            kept.records
        };
        let left = std::fs::read_dir(&own).expect("readable").count();
        std::fs::remove_dir_all(&own).expect("ours");
        assert_eq!(left, 0);
        let text = records
            .iter()
            .find_map(|record| record.error.as_ref())
            .map(|absence| absence.text.clone());
        assert!(
            text.as_ref().is_some_and(|text| text.contains("--max-bytes")),
            "{text:?}"
        );
    }

    /// Without the test file's least size, which the budget of that test does not have.
    struct OnlyCreate;

    impl Probe for OnlyCreate {
        fn spec(&self) -> &'static Spec {
            &SPEC
        }
        fn supports(&self, _: &Env) -> Support {
            Support::Yes
        }
        fn points(&self, env: &Env) -> Vec<Planned> {
            let mut points = Durable.points(env);
            points.retain(|planned| planned.point == point(Operation::Create, Way::Fsync));
            points
        }
        fn memory_bytes(&self, _: &Env) -> u64 {
            0
        }
        fn open<'env>(
            &'env self,
            env: &'env Env,
            group: &[Planned],
        ) -> Result<Box<dyn Session + 'env>, ProbeError> {
            Durable.open(env, group)
        }
    }
}
