use super::*;
use latlab_probes_testing as testing;

fn result(operation: Operation, way: Way, p50: f64, findings: serde_json::Value) -> PointResult {
    PointResult { findings: Some(findings), ..PointResult::new(point(operation, way), p50) }
}

fn judged(fast_ns: f64, flushes: Option<f64>, busy: Option<f64>) -> &'static str {
    verdict(Judged { fast_ns, flushes, busy })
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
            json!({
                "sync_p50_ns": 96e3,
                "write_cache": "write back",
                "made_of_others": false,
                "file_system": "file system ext4 with the options rw; with a journal",
            }),
        ),
        result(Operation::Append, Way::Fdatasync, 200e3, json!({ "sync_p50_ns": 196e3 })),
        result(Operation::Overwrite, Way::DirectFdatasync, 95e3, json!({ "sync_p50_ns": 48e3 })),
    ];
    let records = Durable.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["verdict"], ABSORBED);
    assert_eq!(findings["append_over_overwrite"], 2.0);
    assert_eq!(findings["judged_by"]["sync"], "fdatasync");
    let evidence: Vec<&str> =
        findings["evidence"].as_array().expect("a list").iter().filter_map(|text| text.as_str()).collect();
    assert!(evidence[0].contains("median 96 us"), "{evidence:?}");
    assert!(evidence[1].contains("median 48 us"), "{evidence:?}");
    for told in ["needs flushes (write back)", "ext4 with the options rw; with a journal"] {
        assert!(evidence.iter().any(|text| text.contains(told)), "{evidence:?}");
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
        let findings = json!({
            "sync_p50_ns": 700e3,
            "flushes_per_operation": 0.0,
            "write_cache": write_cache,
            "made_of_others": made_of_others,
        });
        let results = [result(Operation::Overwrite, Way::Fdatasync, 710e3, findings)];
        let records = Durable.conclude(&testing::header(&testing::env(64 << 20)), &results);
        records[0].findings.as_ref().expect("findings")["verdict"].clone()
    };
    assert_eq!(verdict("write back", false), NOT_SENT);
    assert_eq!(verdict("write back", true), PLAUSIBLE);
    assert_eq!(verdict("write through", false), PLAUSIBLE);
}

#[test]
fn without_an_overwrite_there_is_no_verdict() {
    let env = testing::env(64 << 20);
    let results = [result(Operation::Append, Way::Fdatasync, 200e3, json!({ "sync_p50_ns": 196e3 }))];
    assert!(Durable.conclude(&testing::header(&env), &results).is_empty());
}

#[test]
fn its_points_fit_one_cpu_and_little_memory_and_say_what_they_write() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Durable.points(&env);
    assert_eq!(points.len(), 12);
    let seconds: f64 = points.iter().filter(|planned| planned.priority == 0).map(Planned::round_s).sum();
    assert!(seconds < 0.6, "{seconds}");
    for planned in &points {
        let (operation, _) = asked(&planned.point).expect("one of ours");
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
    let linux = offered(&Operation::ALL, &[Way::Fsync, Way::Fdatasync, Way::ODsync, Way::DirectFdatasync]);
    assert_eq!(linux.len(), 12);
    assert_eq!(linux[0], (Operation::Overwrite, Way::Fdatasync));
    let macos = offered(&[Operation::Overwrite, Operation::Append], &[Way::Fsync, Way::FullFsync]);
    assert_eq!(
        macos,
        [
            (Operation::Overwrite, Way::Fsync),
            (Operation::Overwrite, Way::FullFsync),
            (Operation::Append, Way::Fsync),
            (Operation::Append, Way::FullFsync),
        ]
    );
    assert!(offered(&[], &[]).is_empty());
    let full = point(Operation::Overwrite, Way::FullFsync);
    assert_eq!(full.sync.as_deref(), Some("f_fullfsync"));
    assert_eq!(asked(&full).is_some(), cfg!(target_os = "macos"));
}

#[test]
fn where_there_is_a_full_fsync_it_is_judged_and_not_the_fsync_that_flushes_nothing() {
    let env = testing::env(64 << 20);
    let results = [(Way::Fsync, 40e3), (Way::FullFsync, 5e6)]
        .map(|(way, ns)| result(Operation::Overwrite, way, ns, json!({ "sync_p50_ns": ns })));
    let records = Durable.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["judged_by"]["sync"], "f_fullfsync");
    assert_eq!(findings["verdict"], PLAUSIBLE);
}

/// What macOS has, tried where there are the same calls.
#[cfg(all(unix, not(target_os = "macos")))]
#[path = "posix.rs"]
mod posix;

#[cfg(all(unix, not(target_os = "macos")))]
mod with_posix_calls_alone {
    use std::os::fd::BorrowedFd;
    use std::path::PathBuf;

    use latlab_harness::{Proof, RemoteBlock};

    use super::posix::{Syncing, room};
    use super::*;

    fn flush(_: Way, file: BorrowedFd<'_>) -> rustix::io::Result<bool> {
        rustix::fs::fsync(file).map(|()| true)
    }

    /// Beside the test binary.
    fn directory() -> PathBuf {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let folder = format!("sync-posix-{:?}", std::thread::current().id());
        let directory = binary.with_file_name(folder);
        std::fs::create_dir_all(&directory).expect("the build folder can be written");
        directory
    }

    fn measured(planted: bool) -> Vec<Proof> {
        let env = testing::env(64 << 20);
        let directory = directory();
        let mut session = Syncing::new(&env, &directory, flush).expect("room");
        session.keeps_other_bytes = planted;
        let mut proofs = Vec::new();
        for operation in [Operation::Overwrite, Operation::Append] {
            let point = point(operation, Way::Fsync);
            session.select(&point).expect("its file");
            // Only the work matters here: single operations make no windows.
            assert!(RemoteBlock::take(&env.clock, None, |block| session.block(block)).is_err());
            proofs.push(session.proof(&point));
        }
        let names = std::fs::read_dir(&directory).expect("listed").count();
        assert_eq!(names, 0, "no file has a name");
        drop(session);
        std::fs::remove_dir(&directory).expect("empty");
        let fewest = 2 * operations(Profile::Quick, Operation::Append) * BLOCK_BYTES;
        assert!(env.disk.budget().spent_bytes() >= FILE_BYTES + fewest / 4);
        proofs
    }

    #[test]
    fn what_was_made_durable_is_read_back() {
        for proof in measured(false) {
            let wrong: Vec<_> = testing::failed(&proof)
                .into_iter()
                // The build folder may be in memory.
                .filter(|name| *name != "answered by a device")
                .collect();
            assert!(wrong.is_empty(), "{wrong:?}");
            assert!(proof.flags[0].contains("flushes"), "{:?}", proof.flags);
            assert!(proof.findings.expect("findings")["sync_p50_ns"].is_number());
        }
    }

    #[test]
    fn other_bytes_than_were_written_fail_the_proof() {
        for proof in measured(true) {
            assert!(testing::failed(&proof).contains(&"contents verified"));
        }
    }

    #[test]
    fn links_and_files_are_no_place() {
        let directory = directory();
        let link = directory.join("link");
        std::os::unix::fs::symlink(&directory, &link).expect("linked");
        assert!(room(&link).is_err_and(|reason| reason.contains("symbolic link")));
        assert!(room(&directory.join("nothing")).is_err());
        assert!(room(&directory).is_ok_and(|room| room.total_bytes > 0));
        std::fs::remove_dir_all(&directory).expect("ours");
    }
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

    impl AnyProbe for Faulty {
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
        ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
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
        if crate::disk::room(&env).is_ok_and(|bytes| bytes >= ROOM_BYTES) {
            assert!(matches!(crate::disk::support_writing(&env), Support::No(_)));
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
            let told = proof.checks.iter().any(|check| check.detail.contains("cachestat"));
            assert_eq!(testing::failed(&proof).contains(&"nothing waits after the sync"), told, "{proof:?}");
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
            assert!(testing::failed(&proof).contains(&"contents verified"), "{proof:?}");
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
            kept.measure(&OnlyCreate, &env, wanted);
            kept.records
        };
        let left = std::fs::read_dir(&own).expect("readable").count();
        std::fs::remove_dir_all(&own).expect("ours");
        assert_eq!(left, 0);
        let text =
            records.iter().find_map(|record| record.error.as_ref()).map(|absence| absence.text.clone());
        assert!(text.as_ref().is_some_and(|text| text.contains("--max-bytes")), "{text:?}");
    }

    /// Without the test file's least size, which the budget of that test does not have.
    struct OnlyCreate;

    impl AnyProbe for OnlyCreate {
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
        ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
            Durable.open(env, group)
        }
    }
}
