use super::*;
use latlab_probes_testing as testing;

fn result(transport: &str, streams: u32, placement: &str, rate: f64) -> PointResult {
    PointResult::new(
        Point {
            transport: Some(transport.to_owned()),
            message_bytes: Some(USUAL),
            streams: Some(streams),
            placement: Some(placement.to_owned()),
            ..Point::default()
        },
        rate,
    )
}

#[test]
fn several_streams_are_compared_with_one() {
    let results = [
        result(TCP, 1, ANYWHERE, 2e9),
        result(TCP, 4, ANYWHERE, 5e9),
        result(TCP, 1, SAME, 1.8e9),
        result(UNIX, 1, ANYWHERE, 3e9),
    ];
    let env = testing::env(64 << 20);
    let records = Throughput.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["streams"][1]["streams"], json!(4));
    assert_eq!(findings["streams"][1]["over_one"], json!(2.5));
    assert_eq!(findings["same_cpu_bytes_per_s"], json!(1.8e9));
    assert!(findings["across_bytes_per_s"].is_null());
    assert!(Throughput.conclude(&testing::header(&env), &results[1..]).is_empty(), "nothing to compare with");
}

#[test]
#[cfg(target_os = "linux")]
fn one_cpu_leaves_one_placement_and_says_so() {
    let env = testing::env_of_one_cpu(64 << 20);
    let Support::Degraded(reason) = Throughput.supports(&env) else {
        panic!("something is missing");
    };
    assert!(reason.contains("one CPU"), "{reason}");
    let points = Throughput.points(&env);
    assert!(
        points.iter().all(|planned| planned.point.placement.as_deref() == Some(ANYWHERE)
            && planned.point.streams <= Some(4))
    );
    assert!(Throughput.memory_bytes(&env) <= env.memory_bytes);
}

#[test]
fn the_quick_profile_has_one_and_four_streams_first() {
    let points = Throughput.points(&testing::env(64 << 20));
    let first: Vec<_> =
        points.iter().filter(|planned| planned.priority == 0).map(|planned| planned.point.streams).collect();
    assert_eq!(first, [Some(1), Some(4)]);
    // Six blocks in six visits, or in three where a visit is dear.
    let seconds: f64 = points[..2].iter().map(|planned| 3.0 * planned.setup_s + 6.0 * planned.block_s).sum();
    assert!(seconds < 1.3, "{seconds}");
}

#[test]
fn without_a_child_process_there_is_nobody_to_receive() {
    let mut env = testing::env(64 << 20);
    env.child = None;
    assert!(matches!(Throughput.supports(&env), Support::No(_)));
}
