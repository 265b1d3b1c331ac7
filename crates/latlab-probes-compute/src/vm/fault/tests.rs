use latlab_record::{Kind, Profile};

use super::*;
use latlab_probes_testing as testing;

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
        let points = Fault.points(&env);
        assert_eq!(points.iter().any(|planned| planned.point.pages == Some(Pages::Huge)), huge);
        assert!(Fault.memory_bytes(&env) <= env.memory_bytes);
        let written: u64 = points.iter().map(Planned::round_bytes).sum();
        assert_eq!(written, 2 * sizes(&env).span);
    }
    assert!(matches!(Fault.supports(&testing::env(1 << 20)), Support::No(_)));
}

#[test]
fn the_conclusion_holds_every_kind_in_order_with_its_modes() {
    let env = testing::env(64 << 20);
    let results: Vec<PointResult> = Fault
        .points(&env)
        .into_iter()
        .map(|planned| PointResult {
            findings: Some(json!({ "modes": [{ "p50_ns": 790.0, "share": 1.0 }] })),
            ..PointResult::new(planned.point, 800.0)
        })
        .collect();
    let records = Fault.conclude(&testing::header(&env), &results);
    assert_eq!(records[0].kind, Kind::Derived);
    let findings = records[0].findings.as_ref().expect("findings");
    let kinds = findings["kinds"].as_array().expect("a list");
    let names: Vec<&str> = kinds.iter().filter_map(|kind| kind["operation"].as_str()).collect();
    if sizes(&env).page < AROUND {
        assert_eq!(names, MODE_ORDER);
    }
    assert!(kinds.iter().all(|kind| kind["modes"][0]["p50_ns"] == 790.0));
    assert!(Fault.conclude(&testing::header(&env), &[]).is_empty());
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::path::Path;

    use latlab_harness::{AnySession, measure_once};
    use latlab_record::Check;
    use latlab_storage::Disk;

    use super::super::system::Faulting;
    use super::*;
    use crate::region::Trust;

    /// Points that can be had here: a folder without a disk has no file faults.
    fn points(env: &Env) -> Vec<Planned> {
        let mut points = Fault.points(env);
        if crate::region::Scratch::create(env, 1 << 16)
            .and_then(|scratch| scratch.reads_single_pages())
            .is_err()
        {
            points.retain(|planned| {
                !planned.point.operation.as_deref().is_some_and(|name| name.starts_with("file"))
            });
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
        let proofs = testing::assert_proved(&Fault, &env, &points(&env));
        for proof in proofs {
            let findings = proof.findings.expect("modes");
            assert!(findings["touches"].as_u64().is_some_and(|touches| touches > 0));
        }
    }

    /// The checks after blocks in which the seventh page was touched before its time.
    fn planted(point: &Point) -> Vec<Check> {
        struct Planting;
        impl AnyProbe for Planting {
            fn spec(&self) -> &'static Spec {
                &SPEC
            }
            fn supports(&self, env: &Env) -> Support {
                Fault.supports(env)
            }
            fn points(&self, env: &Env) -> Vec<Planned> {
                Fault.points(env)
            }
            fn memory_bytes(&self, env: &Env) -> u64 {
                Fault.memory_bytes(env)
            }
            fn open<'env>(
                &'env self,
                env: &'env Env,
                _group: &[Planned],
            ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
                let mut session = Faulting::new(env, sizes(env))?;
                session.planted = Some(7);
                Ok(Box::new(session))
            }
        }
        let env = env();
        // Twice: in the first round the instrument may touch pages of its own.
        let point = Planned::new(point.clone());
        measure_once(&Planting, &env, &[point.clone(), point]).pop().expect("two outcomes").1.checks
    }

    #[test]
    fn a_page_that_was_touched_before_fails_the_proof_of_every_kind() {
        let trust = Trust::of_this_system();
        for planned in points(&env()) {
            let operation = Operation::of(&planned.point).expect("one of this probe's");
            // Only the count shows a page of zeros, of a file or of a copy that was touched before.
            let seen = trust.faults
                || trust.residency
                    && matches!(
                        operation,
                        Operation::FirstWrite | Operation::FirstRead | Operation::Recycled
                    );
            if !seen {
                continue;
            }
            let found =
                planted(&planned.point).iter().any(|check| !check.ok && check.name != "huge pages obtained");
            assert!(found, "{}", planned.point.label());
        }
    }
}
