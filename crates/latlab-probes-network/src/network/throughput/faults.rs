//! Streams that are right, and receivers that do wrong.

use std::time::Instant;

use latlab_harness::{AnyProbe, Planned, Support};
use latlab_net::stream::Fault;

use super::*;
use crate::network::throughput::Throughput;
use latlab_probes_testing as testing;

#[test]
fn every_point_proves_that_its_bytes_arrived() {
    let env = testing::env(64 << 20);
    let points: Vec<Planned> =
        Throughput.points(&env).into_iter().filter(|planned| planned.point.streams != Some(16)).collect();
    let proofs = testing::assert_proved(&Throughput, &env, &points);
    for (planned, proof) in points.iter().zip(&proofs) {
        let findings = proof.findings.as_ref().expect("findings");
        let rates = findings["stream_bytes_per_s"].as_array().expect("a list").len();
        assert_eq!(Some(rates), planned.point.streams.map(|streams| streams as usize));
        let named = planned.point.transport.as_deref() == Some(UNIX);
        // The emulator of another CPU's programs hands on nothing of what TCP knows.
        let untold = named || std::env::consts::ARCH != "x86_64";
        assert!(findings["tcp"].is_null() == named || untold, "{findings}");
    }
}

/// The probe with a fault in its receivers, and a patience of its own.
struct Planted(Fault, Duration);

impl AnyProbe for Planted {
    fn spec(&self) -> &'static latlab_harness::Spec {
        Throughput.spec()
    }
    fn supports(&self, env: &Env) -> Support {
        Throughput.supports(env)
    }
    fn points(&self, env: &Env) -> Vec<Planned> {
        Throughput.points(env)[..1].to_vec()
    }
    fn memory_bytes(&self, _: &Env) -> u64 {
        0
    }
    fn open<'env>(
        &'env self,
        env: &'env Env,
        _: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        let mut streams = Streams::new(env, self.1)?;
        streams.load.fault = Some(self.0);
        Ok(Box::new(streams))
    }
}

/// The reason in the one record.
fn reason(fault: Fault, patience: Duration) -> String {
    let before = children();
    let begun = Instant::now();
    let env = testing::env_of_one_cpu(64 << 20);
    let records = testing::records(&Planted(fault, patience), &env);
    assert!(begun.elapsed() < 3 * testing::LONG, "every wait is bounded");
    assert_eq!(children(), before, "no process is left");
    let [record] = &records[..] else {
        panic!("{records:?}");
    };
    assert!(record.summary.is_none());
    record.error.as_ref().expect("a reason").text.clone()
}

/// Of this thread.
fn children() -> usize {
    std::fs::read_to_string("/proc/thread-self/children").map_or(0, |text| text.split_whitespace().count())
}

#[test]
fn an_address_is_not_to_blame_for_a_process_that_ends() {
    let mut env = testing::env(64 << 20);
    env.child = Some(["/bin/sh", "-c", "exit 3"].map(std::ffi::OsString::from).to_vec());
    let mut streams = Streams::new(&env, testing::LONG).expect("a session");
    let error = streams.select(&Throughput.points(&env)[0].point).expect_err("nobody receives");
    assert!(!error.to_string().contains("loopback address"), "{error}");
}

#[test]
fn bytes_that_were_spoilt_or_never_came_fail_the_proof() {
    for fault in [Fault::Spoils, Fault::OneMore] {
        let text = reason(fault, testing::LONG);
        assert!(text.contains("both ends of every stream say the same"), "{text}");
    }
}

#[test]
fn receivers_that_take_nothing_more_or_close_are_named_so() {
    let text = reason(Fault::Stops(1 << 20), Duration::from_millis(300));
    // A sender that had ended its message in time waits for what is left of it.
    let named = ["took nothing for 0.3 s", "have not arrived after 0.3 s"];
    assert!(named.iter().any(|words| text.contains(words)), "{text}");
    let text = reason(Fault::Closes(1 << 20), testing::LONG);
    assert!(text.contains("reset the connection"), "{text}");
}
