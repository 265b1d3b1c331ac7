//! Trips beside streams that are right, and streams that do wrong.

use std::time::Instant;

use latlab_harness::{AnyProbe, Support};
use latlab_net::stream::Fault;

use super::*;
use crate::network::loaded::Loaded;
use latlab_probes_testing as testing;

/// For what never comes, and long enough for a round trip beside a load.
const WAITED: Duration = Duration::from_secs(1);

/// Whether there are two CPUs to be on.
fn env() -> Option<Env> {
    let env = testing::env(64 << 20);
    matches!(Loaded.supports(&env), Support::Yes).then_some(env)
}

#[test]
fn every_point_on_the_loopback_proves_its_trips_and_its_load() {
    let Some(env) = env() else { return };
    let points = Loaded.points(&env);
    let proofs = testing::assert_proved(&Loaded, &env, &points);
    for (planned, proof) in points.iter().zip(&proofs) {
        let findings = proof.findings.as_ref().expect("findings");
        assert!(findings["round_trips_per_minute"].as_f64() > Some(0.0), "{findings}");
        assert!(proof.flags.is_empty(), "nothing is emulated");
        let loaded = findings["load_bytes_per_s"].as_f64() > Some(0.0);
        if planned.point.streams == Some(0) {
            assert!(!loaded, "{findings}");
        }
    }
}

#[test]
fn the_load_is_what_arrived_over_all_the_time_in_which_it_was_counted() {
    let found = Found {
        point: Point::default(),
        streams: 4,
        right: 10,
        trips_ns: 1e6,
        load_bytes: 2_000_000,
        load_ns: 2e6,
        sent: 10,
        served: Counts::default(),
        ends: Vec::new(),
        address: None,
        failed: None,
    };
    // The client was off its CPU for half of the time, between two trips.
    assert!((found.load_bytes_per_s() / 1e9 - 1.0).abs() < 1e-9);
}

/// The probe with a fault in what takes its load, and a patience of its own.
struct Planted(Fault, Duration);

impl AnyProbe for Planted {
    fn spec(&self) -> &'static latlab_harness::Spec {
        Loaded.spec()
    }
    fn supports(&self, env: &Env) -> Support {
        Loaded.supports(env)
    }
    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut points = Loaded.points(env);
        points.retain(|planned| planned.point.streams == Some(1));
        points
    }
    fn memory_bytes(&self, _: &Env) -> u64 {
        0
    }
    fn open<'env>(
        &'env self,
        env: &'env Env,
        _: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        let pace = Pace::of(env.settings.profile, None);
        let mut trips = Trips::new(env, Route::loopback(), pace, self.1)?;
        trips.load.fault = Some(self.0);
        Ok(Box::new(trips))
    }
}

#[test]
fn a_load_that_is_none_fails_the_proof_or_the_point() {
    let Some(env) = env() else { return };
    for (fault, patience, expected) in [
        (Fault::Spoils, testing::LONG, &["both ends of every stream say the same"][..]),
        (Fault::Stops(1 << 20), WAITED, &["took nothing for 1 s", "have not arrived after 1 s"]),
    ] {
        let begun = Instant::now();
        let records = testing::records(&Planted(fault, patience), &env);
        assert!(begun.elapsed() < 3 * testing::LONG, "every wait is bounded");
        let [record] = &records[..] else {
            panic!("{records:?}");
        };
        assert!(record.summary.is_none());
        let text = &record.error.as_ref().expect("a reason").text;
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
    let points = Loaded.points(&env);
    let error = Loaded.open(&env, &points[..1]).err().expect("there is no path");
    assert!(error.to_string().contains("delays packets"), "{error}");
}
