use latlab_harness::Erased;
use latlab_probes_testing as testing;
use latlab_record::Profile;
use serde_json::json;

use super::*;

const MODE_ORDER: [&str; 9] = [
    "first-write",
    "first-write",
    "first-read",
    "write-after-read",
    "copy-on-write",
    "recycled",
    "file-minor",
    "file-minor",
    "file-major",
];

#[test]
fn a_common_slow_mode_is_put_down_to_a_host_only_where_there_may_be_one() {
    let slow = |guest| likely(Operation::FirstWrite, Pages::Base, 1, 3.6, 0.3, guest);
    assert!(slow(Some(true)).contains("host had not backed"));
    assert!(slow(Some(false)).contains("no host is involved"));
    assert!(slow(None).starts_with("not known"));
    let read = likely(Operation::FirstRead, Pages::Base, 1, 3.6, 0.3, Some(true));
    assert_eq!(read, "not known", "the page of zeros needs no memory");
}

#[test]
fn a_rare_mode_is_named_by_how_rare_it_is() {
    let rare = likely(Operation::FirstWrite, Pages::Base, 1, 2.8, 0.016, Some(true));
    assert!(rare.starts_with("one touch in 63:"), "{rare}");
    assert!(rare.contains("list of free pages"), "{rare}");
    let near = likely(Operation::FirstWrite, Pages::Base, 1, 1.5, 0.4, Some(true));
    assert!(near.contains("factor of two"), "{near}");
}

#[test]
fn points_fit_a_small_machine_and_the_files_are_announced() {
    for (env, huge) in [
        (testing::env_of_one_cpu(64 << 20), true),
        (testing::env_of_one_cpu(5 << 20), false),
        (testing::env_of_one_cpu(2 << 20), false),
    ] {
        let points = points(&env, sizes(&env));
        assert_eq!(points.iter().any(|planned| planned.point.pages == Pages::Huge), huge);
        let written: u64 = points.iter().map(Planned::round_bytes).sum();
        assert_eq!(written, 2 * sizes(&env).span);
    }
}

#[test]
fn the_conclusion_holds_every_kind_in_order_with_its_modes() {
    let env = testing::env(64 << 20);
    let mode =
        json!({ "p50_ns": 790.0, "low_ns": 700.0, "high_ns": 900.0, "share": 1.0, "likely": "a free page" });
    let details = json!({ "modes": [mode.clone()], "touches": 2048, "faults_counted": true });
    let results: Vec<PointResult> = points(&env, sizes(&env))
        .into_iter()
        .map(|planned| PointResult {
            findings: Some(details.clone()),
            ..PointResult::new(planned.point.to_point(), 800.0)
        })
        .collect();
    let findings = testing::conclusion(&Erased(Fault), &env, &results);
    let kinds = findings["kinds"].as_array().expect("a list");
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind["operation"].as_str()).collect();
    if sizes(&env).page < AROUND {
        assert_eq!(names, MODE_ORDER);
    }
    assert!(kinds.iter().all(|kind| kind["modes"][0] == mode));
    assert!(testing::conclusion(&Erased(Fault), &env, &[]).is_null());
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::path::Path;

    use latlab_harness::{AnyProbe as _, RemoteBlock, Session as _};
    use latlab_record::Check;
    use latlab_storage::Disk;

    use super::*;
    use crate::region::Trust;

    /// Points that can be had here: a folder without a disk has no file faults.
    fn points(env: &Env) -> Vec<Planned> {
        let mut points = Erased(Fault).points(env);
        if crate::region::Scratch::create(env, 1 << 16)
            .and_then(|scratch| scratch.reads_single_pages())
            .is_err()
        {
            points.retain(|planned| planned.group == 0);
        }
        if !Trust::of_this_system().discard {
            points.retain(|planned| planned.point.operation.as_deref() != Some("recycled"));
        }
        points
    }

    fn env() -> Env {
        let mut env = testing::env_of_one_cpu(8 << 20);
        env.settings.profile = Profile::Quick;
        env.disk = Disk::new(Path::new(env!("CARGO_MANIFEST_DIR")), 64 << 20, 3);
        env
    }

    #[test]
    fn a_block_of_every_kind_proves_that_each_touch_was_a_fault() {
        if !Trust::of_this_system().shows_faults() {
            return;
        }
        let env = env();
        let proofs = testing::assert_proved(&Erased(Fault), &env, &points(&env));
        for proof in proofs {
            let findings = proof.findings.expect("modes");
            assert!(findings["touches"].as_u64().is_some_and(|touches| touches > 0));
        }
    }

    /// The checks after blocks in which the seventh page was touched before its time.
    fn planted(point: &Touch) -> Vec<Check> {
        let env = env();
        let mut session = system::open(&env).expect("pages are there");
        session.planted = Some(7);
        let mut evidence = system::Evidence::default();
        // Twice: in the first round the instrument may touch pages of its own.
        for _ in 0..2 {
            // Touches are spans, of which a remote block has none to tell.
            let _no_windows = RemoteBlock::take(&env.clock, None, |block| {
                session.block(point, &mut evidence, block).expect("pages are there");
                Ok(())
            });
        }
        session.proof(point, &evidence).checks
    }

    #[test]
    fn a_page_that_was_touched_before_fails_the_proof_of_every_kind() {
        let trust = Trust::of_this_system();
        for planned in points(&env()) {
            let point = Touch::of_point(&planned.point).expect("one of this probe's");
            // Only the count shows a page of zeros, of a file or of a copy that was touched before.
            let seen = trust.faults
                || trust.residency
                    && matches!(
                        point.operation,
                        Operation::FirstWrite | Operation::FirstRead | Operation::Recycled
                    );
            if !seen {
                continue;
            }
            let found = planted(&point).iter().any(|check| !check.ok && check.name != "huge pages obtained");
            assert!(found, "{point:?}");
        }
    }
}
