use super::*;
use latlab_probes_testing as testing;

fn result(transport: &str, placement: &str, bytes: u64, p50: f64) -> PointResult {
    PointResult::new(
        Point {
            transport: Some(transport.to_owned()),
            placement: Some(placement.to_owned()),
            message_bytes: Some(bytes),
            ..Point::default()
        },
        p50,
    )
}

#[test]
fn waking_up_is_what_blocking_takes_more_than_polling() {
    let results = [
        result(TCP, SAME, 64, 15_000.0),
        result(TCP, BLOCKING, 64, 70_000.0),
        result(TCP, POLLING, 64, 10_000.0),
        result(TCP, POLLING, 65_536, 40_000.0),
        result(UNIX, SAME, 64, 6_000.0),
    ];
    let records = RoundTrip.conclude(&testing::header(&testing::env(64 << 20)), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    let tcp = &findings["transports"][0];
    assert_eq!(tcp["wake_up_ns"], json!(60_000.0));
    assert_eq!(tcp["most_over_least"], json!(7.0));
    let unix = &findings["transports"][1];
    assert_eq!(unix["transport"], json!("unix"));
    assert!(unix["wake_up_ns"].is_null() && unix["most_over_least"].is_null(), "{unix}");
    assert!(RoundTrip.conclude(&testing::header(&testing::env(64 << 20)), &results[3..4]).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn one_cpu_leaves_one_placement_and_says_so() {
    let env = testing::env_of_one_cpu(64 << 20);
    let Support::Degraded(reason) = RoundTrip.supports(&env) else {
        panic!("something is missing");
    };
    assert!(reason.contains("one CPU"), "{reason}");
    let points = RoundTrip.points(&env);
    assert!(points.iter().all(|planned| planned.point.placement.as_deref() == Some(SAME)));
    assert!(RoundTrip.memory_bytes(&env) <= env.memory_bytes);
}

#[test]
fn small_messages_come_first_and_none_is_too_long_for_its_transport() {
    let points = RoundTrip.points(&testing::env(64 << 20));
    assert!(
        points.iter().all(|planned| (planned.priority == 0) == (planned.point.message_bytes == Some(SMALL)))
    );
    let longest = |transport: &str| {
        points
            .iter()
            .filter(|planned| planned.point.transport.as_deref() == Some(transport))
            .filter_map(|planned| planned.point.message_bytes)
            .max()
    };
    assert_eq!([TCP, UDP, UNIX].map(longest), [Some(65_536), Some(16_384), Some(65_536)]);
}

#[test]
fn without_a_child_process_there_is_nobody_to_answer() {
    let mut env = testing::env(64 << 20);
    env.child = None;
    assert!(matches!(RoundTrip.supports(&env), Support::No(_)));
}
