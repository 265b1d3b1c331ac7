//! Streams that are right, and receivers that do wrong.

use latlab_harness::{AnyProbe as _, Erased, Planned, Probe as _};
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
        let unreported = named || std::env::consts::ARCH != "x86_64";
        assert!(carried.tcp.is_none() == named || unreported);
    }
}

#[test]
fn what_receivers_do_wrong_is_named_or_fails_the_proof() {
    let env = testing::env_of_one_cpu(64 << 20);
    let differs = &["both ends of every stream say the same"][..];
    // A sender that had ended its message in time waits for what is left of it.
    let stuck = &["read nothing for 0.3 s", "have not arrived after 0.3 s"][..];
    for (fault, patience, named) in [
        (Fault::Spoils, testing::LONG, differs),
        (Fault::OneMore, testing::LONG, differs),
        (Fault::Stops(1 << 20), Duration::from_millis(300), stuck),
        (Fault::Closes(1 << 20), testing::LONG, &["reset the connection"]),
    ] {
        let open = || {
            let mut session = Session::new(&env, patience)?;
            session.load.fault = Some(fault);
            Ok(session)
        };
        let text = trial::reason(&env, open, &Throughput.plan(&env).points[0].point);
        assert!(named.iter().any(|words| text.contains(words)), "{fault:?}: {text}");
    }
}
