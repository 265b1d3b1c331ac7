use latlab_harness::{AnyProbe as _, Erased, PointResult, Support};
use latlab_probes_testing as testing;
use latlab_record::Point;
use serde_json::{Value, json};

use super::*;

#[test]
fn one_cpu_is_refused_with_the_reason() {
    let Support::No(reason) = Loaded.plan(&testing::env_of_one_cpu(1 << 30)).support else {
        panic!("one CPU cannot load and measure");
    };
    assert!(reason.contains("two CPUs"), "{reason}");
}

#[test]
fn cpus_of_other_nodes_do_not_load_this_ones_memory() {
    let mut env = testing::env_of_two_cpus(1 << 30);
    env.cpus = vec![0, 1, 2, 3];
    env.home_cpu = 1;
    env.machine.numa = vec![testing::node(0, &[0, 2]), testing::node(1, &[1, 3])];
    assert_eq!(load_cpus(&env), [3]);
    env.machine.numa = vec![testing::node(0, &[0, 1, 2, 3])];
    assert_eq!(load_cpus(&env), [0, 2, 3]);
    env.machine.limits.usable_cpus = Some(2.5);
    assert_eq!(load_cpus(&env), [0]);
}

#[test]
fn what_is_held_fits_what_may_be_used() {
    for memory_bytes in [32 << 20, 64 << 20, 1 << 30, 64 << 30] {
        for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
            let mut env = testing::env(memory_bytes);
            env.cpus = (0..64).collect();
            env.machine.limits.usable_cpus = None;
            env.machine.numa.clear();
            env.settings.profile = profile;
            assert!(Loaded.plan(&env).memory_bytes <= memory_bytes, "{memory_bytes}");
        }
    }
    let Support::No(reason) = Loaded.plan(&testing::env_of_two_cpus(8 << 20)).support else {
        panic!("8 MiB do not do");
    };
    assert!(reason.contains("8 MiB may be used"), "{reason}");
}

#[test]
fn points_fit_64_mib_and_prove_their_work() {
    let mut env = testing::env_of_two_cpus(64 << 20);
    env.settings.profile = Profile::Standard;
    let points: Vec<Planned> = Erased(Loaded)
        .points(&env)
        .into_iter()
        .filter(|planned| [None, Some(0)].contains(&planned.point.delay_steps))
        .collect();
    assert_eq!(points.len(), 4, "idle and three mixes");
    let proofs = testing::assert_proved(&Erased(Loaded), &env, &points);
    for (planned, proof) in points.iter().zip(proofs) {
        let findings = proof.findings.expect("loads");
        let load = findings["load_bytes_per_s"]["value"].as_f64().expect("a number");
        assert!(load >= 0.0);
        if planned.point.threads == Some(0) {
            assert!(load < 1.0, "nobody loads the idle point");
        }
    }
}

#[test]
fn a_load_that_failed_its_proof_takes_the_figures_away() {
    let env = testing::env_of_two_cpus(64 << 20);
    let points: Vec<Place> = Loaded.plan(&env).points.iter().map(|planned| planned.point).collect();
    let mut session = Loaded.open(&env, &points[..1]).expect("the chain fits");
    let right = |all| Compared { all, wrong: 0 };
    let rates = Rates { whole: true, threads: vec![1.0], chase: 1.0 };
    let load = Shown { checksums: right(100), ..Shown::default() };
    let sound = Evidence { walks: right(6), load, rates: vec![rates; 6] };
    let mut proof_of = |evidence: &Evidence| {
        let proof = session.proof(&points[1], evidence);
        (proof.checks.iter().all(|check| check.ok), proof.findings.is_some())
    };
    assert_eq!(proof_of(&sound), (true, true));
    let faults: [fn(&mut Evidence); 5] = [
        |evidence| evidence.walks.wrong = 1,
        |evidence| evidence.load.idle_threads = 1,
        |evidence| evidence.load.wrong_counts = 1,
        |evidence| evidence.load.checksums.wrong = 1,
        |evidence| evidence.load.checksums.all = 0,
    ];
    for plant in faults {
        let mut planted = sound.clone();
        plant(&mut planted);
        assert_eq!(proof_of(&planted), (false, false));
    }
}

/// A figure as a run folds it.
fn result(threads: u32, percent: Option<u32>, delay: Option<u32>, p50: f64, load: f64) -> PointResult {
    let point = Point {
        working_set_bytes: Some(1 << 28),
        pages: Some(Pages::Base),
        order: Some(Order::PageLocal),
        threads: Some(threads),
        read_percent: percent,
        delay_steps: delay,
        ..Point::default()
    };
    let findings = Some(json!({ "load_bytes_per_s": { "value": load }, "p99_ns": null }));
    PointResult { findings, ..PointResult::new(point, p50) }
}

fn curves(results: &[PointResult]) -> Vec<Value> {
    let findings = testing::conclusion(&Erased(Loaded), &testing::env(1 << 30), results);
    findings["curves"].as_array().expect("a list").clone()
}

#[test]
fn what_follows_is_a_curve_a_mix_in_the_order_of_load() {
    let curves = curves(&[
        result(3, Some(100), Some(0), 300.0, 60e9),
        result(3, Some(100), Some(800), 105.0, 10e9),
        result(0, None, None, 100.0, 0.0),
        result(3, Some(100), Some(200), 115.0, 30e9),
        result(3, Some(50), Some(0), 120.0, 40e9),
    ]);
    assert_eq!(curves.len(), 2);
    let reading = &curves[0];
    assert_eq!((reading["read_percent"].as_u64(), reading["threads"].as_u64()), (Some(100), Some(3)));
    let delays: Vec<u64> = reading["points"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|at| at["delay_steps"].as_u64())
        .collect();
    assert_eq!(delays, [800, 200, 0]);
    assert_eq!(reading["idle_ns"], 100.0);
    assert_eq!(reading["saturated_ns"], 300.0);
    assert!(reading["knee"]["load_bytes_per_s"]["value"].as_f64().expect("a knee") > 30e9);
    assert!(curves[1]["knee"].is_null() && curves[1]["note"].is_string());
    assert_eq!(reading["points"][0]["disturbed"], false);
}

#[test]
fn disturbed_points_are_shown_and_make_no_knee() {
    let found = |disturbed| {
        curves(&[
            result(0, None, None, 100.0, 0.0),
            result(3, Some(100), Some(800), 110.0, 10.0),
            PointResult { disturbed, ..result(3, Some(100), Some(200), 140.0, 20.0) },
            result(3, Some(100), Some(0), 300.0, 30.0),
        ])
    };
    assert!(found(false)[0]["knee"].is_object());
    let busy = &found(true)[0];
    assert!(busy["knee"].is_null() && busy["points"][1]["disturbed"] == true);
    assert!(busy["note"].as_str().expect("a reason").contains("other programs used the CPUs"));
}
