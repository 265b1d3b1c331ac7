//! Streams that are right, and receivers that do wrong.

use latlab_harness::{AnyProbe as _, Erased, Planned, Probe as _, Session as _};
use latlab_net::stream::Fault;
use latlab_probes_testing as testing;

use super::*;
use crate::network::trial;

#[test]
fn every_point_proves_that_its_bytes_arrived() {
    let env = testing::env(64 << 20);
    let points: Vec<Planned> = Erased(Throughput)
        .points(&env)
        .into_iter()
        .filter(|planned| planned.point.streams != Some(16))
        .collect();
    let proofs = testing::assert_proved(&Erased(Throughput), &env, &points);
    for (planned, proof) in points.iter().zip(&proofs) {
        let findings = proof.findings.clone().expect("findings");
        let carried: Carried = serde_json::from_value(findings).expect("as it was said");
        let rates = carried.stream_bytes_per_s.len();
        assert_eq!(Some(rates), planned.point.streams.map(|streams| streams as usize));
        let named = planned.point.transport.as_deref() == Some("unix");
        // The emulator of another CPU's programs hands on nothing of what TCP knows.
        let untold = named || std::env::consts::ARCH != "x86_64";
        assert!(carried.tcp.is_none() == named || untold);
    }
}

#[test]
fn an_address_is_not_to_blame_for_a_process_that_ends() {
    let mut env = testing::env(64 << 20);
    env.child = Some(["/bin/sh", "-c", "exit 3"].map(std::ffi::OsString::from).to_vec());
    let mut session = Session::new(&env, testing::LONG).expect("a session");
    let error = session.select(&Throughput.plan(&env).points[0].point).expect_err("nobody receives");
    assert!(!error.to_string().contains("loopback address"), "{error}");
}

/// Why receivers with a fault give no figure.
fn reason(fault: Fault, patience: Duration) -> String {
    let env = testing::env_of_one_cpu(64 << 20);
    let open = || {
        let mut session = Session::new(&env, patience)?;
        session.load.fault = Some(fault);
        Ok(session)
    };
    trial::reason(&env, open, &Throughput.plan(&env).points[0].point)
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
