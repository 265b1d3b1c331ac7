use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

fn figure(path: PathKind, streams: u32, p50: f64) -> Figure<Loaded> {
    let (transport, placement) = (Transport::Tcp, Placement::AcrossBlocking);
    let point = Beside { path, transport, message_bytes: MESSAGE, streams, placement };
    let details = Details {
        address: None,
        round_trips_per_minute: Some(60e9 / p50),
        load_bytes_per_s: 6e6,
        route: RouteDetails::Real { kind: path.to_string() },
    };
    Figure { point, details: Some(details), result: PointResult::new(point.to_point(), p50) }
}

#[test]
fn loaded_is_compared_with_idle_on_the_same_path() {
    let figures = [
        figure(PathKind::Loopback, 0, 50e3),
        figure(PathKind::Emulated, 4, 120e6),
        figure(PathKind::Emulated, 0, 20e6),
    ];
    let header = testing::header(&testing::env(64 << 20));
    let findings = Loaded.conclude(&header, &figures).expect("findings");
    let [own] = &findings.paths[..] else { panic!("one path is loaded") };
    assert_eq!(own.path, PathKind::Emulated);
    assert!((own.loaded[0].over_idle - 6.0).abs() < 1e-9);
    assert!((own.loaded[0].added_ns - 100e6).abs() < 1.0);
    assert_eq!(own.idle_round_trips_per_minute, Some(3000.0));
    assert!(Loaded.conclude(&header, &figures[..1]).is_none());
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_asked_for_comes_first_and_has_a_session_of_its_own() {
    let mut env = testing::env(64 << 20);
    let plain = Loaded.plan(&env);
    assert!(plain.points.iter().all(|planned| planned.point.path == PathKind::Loopback));
    assert!(plain.memory_bytes <= env.memory_bytes);
    env.settings.delay_ms = Some(20.0);
    env.settings.rate_mbit = Some(50.0);
    let both = Loaded.plan(&env).points;
    assert_eq!(both.len(), 2 * plain.points.len());
    assert_eq!(both[0].point.path, PathKind::Emulated);
    assert_ne!(both[0].group, both[3].group);
    let slow = both[1].block_s;
    assert!(slow > 0.3 && slow < 3.0, "{slow}");
}
