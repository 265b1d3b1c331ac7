use super::*;
use latlab_probes_testing as testing;

fn result(path: &str, streams: u32, p50: f64) -> PointResult {
    PointResult {
        findings: Some(json!({ "round_trips_per_minute": 60e9 / p50, "load_bytes_per_s": 6e6 })),
        ..PointResult::new(
            Point { path: Some(path.to_owned()), streams: Some(streams), ..Point::default() },
            p50,
        )
    }
}

#[test]
fn loaded_is_compared_with_idle_on_the_same_path() {
    let results = [result(LOOPBACK, 0, 50e3), result(EMULATED, 4, 120e6), result(EMULATED, 0, 20e6)];
    let env = testing::env(64 << 20);
    let records = Loaded.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["paths"].as_array().map(Vec::len), Some(1), "{findings}");
    let path = &findings["paths"][0];
    assert_eq!(path["path"], json!(EMULATED));
    assert_eq!(path["loaded"][0]["over_idle"], json!(6.0));
    assert_eq!(path["loaded"][0]["added_ns"], json!(100e6));
    assert_eq!(path["idle_round_trips_per_minute"], json!(3000.0));
    assert!(Loaded.conclude(&testing::header(&env), &results[..1]).is_empty());
}

#[test]
fn a_path_that_is_asked_for_comes_first_and_has_a_session_of_its_own() {
    let mut env = testing::env(64 << 20);
    let plain = Loaded.points(&env);
    assert!(plain.iter().all(|planned| planned.point.path.as_deref() == Some(LOOPBACK)));
    assert!(Loaded.memory_bytes(&env) <= env.memory_bytes);
    env.settings.delay_ms = Some(20.0);
    env.settings.rate_mbit = Some(50.0);
    let both = Loaded.points(&env);
    assert_eq!(both.len(), 2 * plain.len());
    assert_eq!(both[0].point.path.as_deref(), Some(EMULATED));
    assert_ne!(both[0].group, both[3].group);
    let slow = both[1].block_s;
    assert!(slow > 0.3 && slow < 3.0, "{slow}");
}

#[test]
#[cfg(target_os = "linux")]
fn one_cpu_says_what_a_round_trip_waits_for() {
    let env = testing::env_of_one_cpu(64 << 20);
    let Support::Degraded(reason) = Loaded.supports(&env) else {
        panic!("both sides share it");
    };
    assert!(reason.contains("one CPU"), "{reason}");
    let points = Loaded.points(&env);
    assert!(points.iter().all(|planned| planned.point.placement.as_deref() == Some(SAME)));
}
