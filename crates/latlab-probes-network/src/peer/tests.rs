use latlab_net::PathSpec;
use latlab_record::Settings;

use super::*;
use latlab_probes_testing as testing;

fn settings(delay_ms: Option<f64>, rate_mbit: Option<f64>, distance: Option<&str>) -> Settings {
    Settings { delay_ms, rate_mbit, distance: distance.map(str::to_owned), ..Settings::default() }
}

#[test]
fn a_delay_is_that_of_a_round_trip_and_a_rate_counts_decimal_bits() {
    let spec = path_asked(&settings(Some(20.0), Some(200.0), None)).expect("a path").expect("one");
    assert_eq!((spec.rtt_us, spec.rate_bit_per_s), (20_000, Some(200_000_000)));
    assert_eq!(path_asked(&settings(None, None, None)), Ok(None));
    let far = path_asked(&settings(None, None, Some("london-california"))).expect("a path").expect("one");
    assert_eq!(far.rtt_us, 140_000);
    let reason = path_asked(&settings(None, None, Some("the-moon"))).expect_err("nobody has been there");
    assert!(reason.contains("the-moon"), "{reason}");
}

#[test]
fn what_is_emulated_says_so_and_how() {
    let route = |text: &str| serde_json::from_str::<RouteDetails>(text).expect("a route").label();
    let line = r#"{"kind":"delay-line","least_rtt_ns":20040000,"rate_bit_per_s":200000000,"rtt_ns":20000000,"why_not_better":[]}"#;
    let reported = "emulated: 20 ms round trip, 200 Mbit/s by latlab's delay line between two namespaces \
        (measured: 20.040 ms)";
    assert_eq!(route(line).as_deref(), Some(reported));
    let waits = r#"{"kind":"application","rtt_ns":500000,"valid_for":"little","why_not_better":[]}"#;
    let reported = "emulated: the server waits 0.5 ms before it answers; valid for little";
    assert_eq!(route(waits).as_deref(), Some(reported));
    assert_eq!(route(r#"{"kind":"url"}"#), None);
}

#[test]
fn who_shares_a_cpu_is_known() {
    let mut env = testing::env(64 << 20);
    env.cpus = vec![0, 1, 2, 3];
    env.home_cpu = 2;
    let seats = Seats::of(&env);
    assert_eq!((seats.client, seats.server, seats.path.as_slice()), (2, 3, &[0, 1][..]));
    env.cpus = vec![2];
    let seats = Seats::of(&env);
    assert_eq!((seats.client, seats.server, seats.path.as_slice()), (2, 2, &[2][..]));
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::time::{Duration, Instant};

    use latlab_net::fetch::{Connection, Trust, Url};
    use latlab_net::serve::is_body;

    use super::*;

    /// A child with threads can keep no path: what is left is a server that waits, and it says so.
    #[test]
    fn where_no_path_can_be_had_the_server_waits_and_the_label_says_what_that_is_good_for() {
        let env = testing::env_of_threads(64 << 20);
        let spec = PathSpec { rtt_us: 10_000, rate_bit_per_s: None, queue_bytes: None };
        let route = Route::emulated(&env, &spec);
        assert!(!route.delays_packets());
        let label = route.details.label().expect("it is emulated");
        assert!(label.contains("valid for time to first byte only"), "{label}");
        let details = &route.details;
        assert!(matches!(details, RouteDetails::Application { rtt_ns: 10_000_000, .. }), "{details:?}");
        assert!(details.why_not_better().is_some());

        let mut server = WebServer::start(&env, &route).expect("the loopback can be listened on");
        let text = format!("http://{}/bytes/1000", server.listening.address);
        let url = Url::parse(&text).expect("a URL");
        let trust = Trust::nobody().expect("no certificate is needed");
        let deadline = Instant::now() + testing::LONG;
        let mut connection = Connection::open(&url, &trust, deadline, &mut |_| {}).expect("a connection");
        let begun = Instant::now();
        let answer = connection.get("/bytes/1000", None, deadline, &mut |_| {}, &is_body).expect("an answer");
        assert!(begun.elapsed() >= Duration::from_millis(10));
        assert_eq!(answer.body_bytes, 1000);
        assert_eq!(server.served().expect("it answers").requests, 1);
    }

    #[test]
    fn a_child_that_does_not_answer_is_killed_within_its_time() {
        let mut env = testing::env(64 << 20);
        env.child = Some(["/bin/sh", "-c", "exec sleep 100"].map(std::ffi::OsString::from).to_vec());
        let mut side = Side::start(&env, "network.web").expect("a shell starts");
        let begun = Instant::now();
        let answer = side.ask::<u32, u32>(&1, Duration::from_millis(50));
        let text = answer.expect_err("it sleeps").to_string();
        assert!(text.contains("network.web") && text.contains("killed"), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
