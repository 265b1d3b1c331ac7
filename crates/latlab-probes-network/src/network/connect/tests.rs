use super::*;
use crate::peer::LOOPBACK;
use latlab_probes_testing as testing;

fn result(path: &str, operation: &str, p50: f64, findings: Option<Value>) -> PointResult {
    PointResult {
        findings,
        ..PointResult::new(
            Point { path: Some(path.to_owned()), operation: Some(operation.to_owned()), ..Point::default() },
            p50,
        )
    }
}

#[test]
fn a_path_is_compared_with_what_was_asked() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    let found = json!({ "least_ns": 20_200_000, "route": { "rtt_ns": 20_000_000 } });
    let results = [
        result(EMULATED, TCP, 20.4e6, Some(found)),
        result(EMULATED, TLS, 21e6, None),
        result(LOOPBACK, RESOLVE, 2e5, None),
        result(LOOPBACK, TCP, 5e4, Some(json!({ "least_ns": 30_000, "route": { "kind": "loopback" } }))),
    ];
    let records = Connect.conclude(&testing::header(&env), &results);
    let rows = &records[0].findings.as_ref().expect("findings")["paths"];
    assert_eq!(rows[0]["least_over_asked"], json!(1.01));
    assert_eq!(rows[0]["secured_ns"], json!(41.4e6));
    assert!(rows[0]["resolve_ns"].is_null() && rows[1]["least_over_asked"].is_null());
    assert!(Connect.conclude(&testing::header(&env), &[]).is_empty());
}

#[test]
fn one_cpu_is_enough_and_is_said() {
    let env = testing::env_of_one_cpu(64 << 20);
    if work::HERE {
        assert!(matches!(Connect.supports(&env), Support::Degraded(_)));
    }
    assert!(Connect.memory_bytes(&env) <= env.memory_bytes);
    assert!(Connect.points(&env).iter().all(|planned| planned.block_s < 0.1));
    let mut env = env;
    env.child = None;
    assert!(matches!(Connect.supports(&env), Support::No(_)));
}

#[test]
#[cfg(target_os = "linux")]
fn every_kind_is_proved_on_one_block() {
    let env = testing::env(64 << 20);
    let points = Connect.points(&env);
    assert_eq!(points.len(), 3);
    testing::assert_proved(&Connect, &env, &points);
}

/// A child with threads can keep no path.
#[test]
#[cfg(target_os = "linux")]
fn a_handshake_that_no_path_delays_is_not_measured_as_if_one_did() {
    let mut env = testing::env_of_threads(64 << 20);
    env.settings.delay_ms = Some(5.0);
    let points = Connect.points(&env);
    let mut session = Connect.open(&env, &points).expect("a session");
    let reason = session.select(&points[0].point).expect_err("a server that waits").to_string();
    assert!(reason.contains("delays no handshake"), "{reason}");
    assert!(reason.contains("namespace"), "{reason}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_connection_that_the_server_never_saw_is_noticed() {
    let env = testing::env(64 << 20);
    let mut pairs = crate::peer::Pairs::new(&env);
    let pair = pairs.on(LOOPBACK).expect("a client and a server");
    pair.connections = 1;
    assert!(!pair.counted().expect("our own").ok);
    pair.connections = 0;
    assert!(pair.counted().expect("our own").ok);
}
