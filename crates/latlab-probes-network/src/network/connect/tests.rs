#[cfg(target_os = "linux")]
use latlab_harness::Session as _;
use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

fn figure(path: PathKind, operation: Phase, p50: f64, details: Option<Opened>) -> Figure<Connect> {
    let point = Opening { operation, path };
    Figure { point, details, result: PointResult::new(point.to_point(), p50) }
}

#[test]
fn a_path_is_compared_with_what_was_asked() {
    let far = Opened {
        route: RouteDetails::Emulated {
            kind: "netem".to_owned(),
            rtt_ns: 20_000_000,
            least_rtt_ns: 20_100_000,
            rate_bit_per_s: None,
            why_not_better: Vec::new(),
        },
        least_ns: 20_200_000.into(),
    };
    let route = RouteDetails::Real { kind: "loopback".to_owned() };
    let near = Opened { route: route.clone(), least_ns: 30_000.into() };
    let figures = [
        figure(PathKind::Emulated, Phase::Tcp, 20.4e6, Some(far)),
        figure(PathKind::Emulated, Phase::Tls, 21e6, None),
        figure(PathKind::Loopback, Phase::Resolve, 2e5, None),
        figure(PathKind::Loopback, Phase::Tcp, 5e4, Some(near)),
    ];
    let header = testing::header(&testing::env(64 << 20));
    let paths = Connect.conclude(&header, &figures).expect("findings").paths;
    assert_eq!(paths[0].least_over_asked, Some(1.01));
    assert_eq!(paths[0].secured_ns, Some(41.4e6));
    assert_eq!((paths[0].resolve_ns, paths[1].least_over_asked), (None, None));
    assert_eq!(paths[1].route, Some(route));
    assert!(Connect.conclude(&header, &[]).is_none());
}

#[test]
fn a_route_is_read_as_it_was_written() {
    let routes = [
        r#"{"kind":"delay-line","least_rtt_ns":2,"rate_bit_per_s":null,"rtt_ns":1,"why_not_better":["a"]}"#,
        r#"{"kind":"application","rtt_ns":1,"valid_for":"little","why_not_better":["b"]}"#,
        r#"{"kind":"url"}"#,
    ];
    for text in routes {
        let details: RouteDetails = serde_json::from_str(text).expect("a route");
        assert_eq!(serde_json::to_value(&details).expect("JSON").to_string(), text);
        assert_eq!(details.asked_ns().is_some(), details.why_not_better().is_some());
    }
}

/// A child with threads can keep no path.
#[test]
#[cfg(target_os = "linux")]
fn a_handshake_that_no_path_delays_is_not_measured_as_if_one_did() {
    let mut env = testing::env_of_threads(64 << 20);
    env.settings.delay_ms = Some(5.0);
    let mut session = Connect.open(&env, &[]).expect("a session");
    let reason =
        session.select(&Connect.plan(&env).points[0].point).expect_err("a server that waits").to_string();
    assert!(reason.contains("does not delay handshakes"), "{reason}");
    assert!(reason.contains("namespace"), "{reason}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_connection_that_the_server_never_saw_is_noticed() {
    let env = testing::env(64 << 20);
    let mut pairs = crate::peer::Pairs::new(&env);
    let pair = pairs.on(PathKind::Loopback).expect("a client and a server");
    pair.connections = 1;
    assert!(!pair.counted().expect("our own").ok);
    pair.connections = 0;
    assert!(pair.counted().expect("our own").ok);
}
