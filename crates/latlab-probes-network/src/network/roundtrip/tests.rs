use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

fn figure(transport: Transport, placement: Placement, message_bytes: usize, p50: f64) -> Figure<RoundTrip> {
    let point = Trip { transport, message_bytes, placement };
    Figure { point, details: None, result: PointResult::new(point.to_point(), p50) }
}

#[test]
fn waking_up_is_what_blocking_takes_more_than_polling() {
    let figures = [
        figure(Transport::Tcp, Placement::SameCpu, 64, 15_000.0),
        figure(Transport::Tcp, Placement::AcrossBlocking, 64, 70_000.0),
        figure(Transport::Tcp, Placement::AcrossPolling, 64, 10_000.0),
        figure(Transport::Tcp, Placement::AcrossPolling, 65_536, 40_000.0),
        figure(Transport::Unix, Placement::SameCpu, 64, 6_000.0),
    ];
    let header = testing::header(&testing::env(64 << 20));
    let transports = RoundTrip.conclude(&header, &figures).expect("findings").transports;
    let [tcp, unix] = &transports[..] else { panic!("two transports") };
    assert_eq!(tcp.wake_up_ns, Some(60_000.0));
    assert_eq!(tcp.most_over_least, Some(7.0));
    assert_eq!(unix.transport, Transport::Unix);
    assert_eq!((unix.wake_up_ns, unix.most_over_least), (None, None));
    assert!(RoundTrip.conclude(&header, &figures[3..4]).is_none());
}

#[test]
fn small_messages_come_first_and_none_is_too_long_for_its_transport() {
    let points = RoundTrip.plan(&testing::env(64 << 20)).points;
    assert!(points.iter().all(|planned| (planned.priority == 0) == (planned.point.message_bytes == SMALL)));
    let longest = |transport| {
        let own = points.iter().map(|planned| planned.point);
        own.filter(|point| point.transport == transport).map(|point| point.message_bytes).max()
    };
    if cfg!(target_os = "linux") {
        let transports = [Transport::Tcp, Transport::Udp, Transport::Unix];
        assert_eq!(transports.map(longest), [Some(65_536), Some(16_384), Some(65_536)]);
    }
}
