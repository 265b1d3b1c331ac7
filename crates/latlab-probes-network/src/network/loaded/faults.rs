//! Trips beside streams that are right, and streams that do wrong.

use latlab_harness::{AnyProbe as _, Erased, Probe as _, Support};
use latlab_net::stream::Fault;
use latlab_probes_testing as testing;

use super::*;
use crate::network::trial;

/// For what never comes, and long enough for a round trip beside a load.
const WAITED: Duration = Duration::from_secs(1);

/// Whether there are two CPUs to be on.
fn env() -> Option<Env> {
    let env = testing::env(64 << 20);
    matches!(Loaded.plan(&env).support, Support::Yes).then_some(env)
}

#[test]
fn every_point_on_the_loopback_proves_its_trips_and_its_load() {
    let Some(env) = env() else { return };
    let points = Erased(Loaded).points(&env);
    let proofs = testing::assert_proved(&Erased(Loaded), &env, &points);
    for (planned, proof) in points.iter().zip(&proofs) {
        let findings = proof.findings.clone().expect("findings");
        let details: Details = serde_json::from_value(findings).expect("as it was said");
        assert!(details.round_trips_per_minute > Some(0.0));
        assert!(proof.flags.is_empty(), "nothing is emulated");
        if planned.point.streams == Some(0) {
            assert!(details.load_bytes_per_s <= 0.0, "{}", details.load_bytes_per_s);
        }
    }
}

#[test]
fn the_load_is_what_arrived_over_all_the_time_in_which_it_was_counted() {
    let evidence =
        Evidence { right: 10, trips_ns: 1e6, load_bytes: 2_000_000, load_ns: 2e6, ..Evidence::default() };
    // The client was off its CPU for half of the time, between two trips.
    assert!((evidence.load_bytes_per_s() / 1e9 - 1.0).abs() < 1e-9);
}

#[test]
fn a_load_that_is_none_fails_the_proof_or_the_point() {
    let Some(env) = env() else { return };
    let points = Loaded.plan(&env).points;
    let planned = points.iter().find(|planned| planned.point.streams == 1).expect("one stream");
    for (fault, patience, expected) in [
        (Fault::Spoils, testing::LONG, &["both ends of every stream say the same"][..]),
        (Fault::Stops(1 << 20), WAITED, &["read nothing for 1 s", "have not arrived after 1 s"]),
    ] {
        let open = || {
            let pace = Pace::of(env.settings.profile, None);
            let mut session = Session::new(&env, Route::loopback(), pace, patience)?;
            session.load.fault = Some(fault);
            Ok(session)
        };
        let text = trial::reason(&env, open, &planned.point);
        assert!(expected.iter().any(|words| text.contains(words)), "{text}");
    }
}

/// This process has threads and may not be allowed a path: then there is a reason, and no figure.
#[test]
fn a_point_without_its_path_has_a_reason() {
    let Some(mut env) = env() else { return };
    env.settings.delay_ms = Some(1.0);
    // A child that is told to keep a path and answers nothing of the kind.
    env.child = Some(["/bin/sh", "-c", "exit 0"].map(std::ffi::OsString::from).to_vec());
    let point = Loaded.plan(&env).points[0].point;
    let error = Loaded.open(&env, &[point]).err().expect("there is no path");
    assert!(error.to_string().contains("delays packets"), "{error}");
}
