use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

fn figure(transport: Transport, streams: u32, placement: Placement, rate: f64) -> Figure<Throughput> {
    let point = Connections { transport, message_bytes: USUAL, streams, placement };
    Figure { point, details: None, result: PointResult::new(point.to_point(), rate) }
}

#[test]
fn several_streams_are_compared_with_one() {
    let figures = [
        figure(Transport::Tcp, 1, Placement::Anywhere, 2e9),
        figure(Transport::Tcp, 4, Placement::Anywhere, 5e9),
        figure(Transport::Tcp, 1, Placement::SameCpu, 1.8e9),
        figure(Transport::Unix, 1, Placement::Anywhere, 3e9),
    ];
    let header = testing::header(&testing::env(64 << 20));
    let findings = Throughput.conclude(&header, &figures).expect("findings");
    assert_eq!(findings.streams[1].streams, 4);
    assert!((findings.streams[1].over_one - 2.5).abs() < 1e-9);
    assert_eq!(findings.same_cpu_bytes_per_s, Some(1.8e9));
    assert_eq!(findings.across_bytes_per_s, None);
    assert!(Throughput.conclude(&header, &figures[1..]).is_none(), "nothing to compare with");
}

#[test]
#[cfg(target_os = "linux")]
fn the_quick_profile_has_one_and_four_streams_first() {
    let points = Throughput.plan(&testing::env(64 << 20)).points;
    let first: Vec<_> =
        points.iter().filter(|planned| planned.priority == 0).map(|planned| planned.point.streams).collect();
    assert_eq!(first, [1, 4]);
    // Six blocks in six visits, or in three where a visit is dear.
    let seconds: f64 = points[..2].iter().map(|planned| 3.0 * planned.setup_s + 6.0 * planned.block_s).sum();
    assert!(seconds < 1.3, "{seconds}");
}
