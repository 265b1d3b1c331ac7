//! Streams that are right, and receivers that do wrong.

use std::time::Instant;

use latlab_harness::{Planned, Probe, Support};
use latlab_net::stream::Fault;

use super::*;
use crate::network::throughput::Throughput;
use crate::testing;

#[test]
fn every_point_proves_that_its_bytes_arrived() {
    let env = testing::env(64 << 20);
    let points: Vec<Planned> = Throughput
        .points(&env)
        .into_iter()
        .filter(|planned| planned.point.streams != Some(16))
        .collect();
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

/// The probe with a fault in its receivers, and little patience.
struct Planted(Option<Fault>);

impl Probe for Planted {
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
    fn open<'env>(&'env self, env: &'env Env, _: &[Planned]) -> Result<Box<dyn Session + 'env>, ProbeError> {
        let mut streams = Streams::new(env, Duration::from_millis(300))?;
        streams.load.fault = self.0;
        Ok(Box::new(streams))
    }
}

/// The reason in the one record.
fn reason(fault: Fault) -> String {
    let before = children();
    let begun = Instant::now();
    let env = testing::env_of_one_cpu(64 << 20);
    let records = testing::records(&Planted(Some(fault)), &env, 3.0);
    assert!(begun.elapsed() < Duration::from_secs(10), "every wait is bounded");
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
fn bytes_that_were_spoilt_or_never_came_fail_the_proof() {
    for fault in [Fault::Spoils, Fault::OneMore] {
        let text = reason(fault);
        assert!(text.contains("both ends of every stream say the same"), "{text}");
    }
}

#[test]
fn receivers_that_take_nothing_more_or_close_are_named_so() {
    let text = reason(Fault::Stops(1 << 20));
    // A sender that had ended its message in time waits for what is left of it.
    assert!(
        text.contains("took nothing for 0.3 s") || text.contains("have not arrived after 0.3 s"),
        "{text}"
    );
    let text = reason(Fault::Closes(1 << 20));
    assert!(text.contains("reset the connection"), "{text}");
}
