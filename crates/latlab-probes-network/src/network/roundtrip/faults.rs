//! Round trips that are right, and servers and processes that do wrong.

use latlab_harness::{AnyProbe as _, Erased, Planned, PointFields as _, Session as _};
use latlab_net::echo::{Counts, Reply};
use latlab_probes_testing as testing;

use super::*;
use crate::network::roundtrip::{PLACEMENTS, SMALL};
use crate::network::trial;
use crate::peer::Transport;

/// For what never comes.
const WAITED: Duration = Duration::from_secs(1);

/// A small message by TCP.
fn small(placement: Placement) -> Trip {
    Trip { transport: Transport::Tcp, message_bytes: SMALL, placement }
}

#[test]
fn every_transport_and_placement_proves_its_round_trips_and_their_bytes() {
    let env = testing::env(64 << 20);
    let mut all: Vec<Planned> = Erased(RoundTrip).points(&env);
    let asked = [("tcp", 64), ("udp", 64), ("unix", 64), ("tcp", 64 << 10), ("udp", 16 << 10)];
    all.retain(|planned| {
        let own = (planned.point.transport.as_deref(), planned.point.message_bytes);
        asked.iter().any(|(transport, bytes)| own == (Some(*transport), Some(*bytes)))
    });
    let proofs = testing::assert_proved(&Erased(RoundTrip), &env, &all);
    for (planned, proof) in all.iter().zip(&proofs) {
        let point = Trip::of_point(&planned.point).expect("a point of this probe");
        let findings = proof.findings.clone().expect("findings");
        let sides: Sides = serde_json::from_value(findings).expect("as it was said");
        assert_eq!(sides.address.is_none(), point.transport == Transport::Unix);
        assert_eq!(sides.just_after_work_ns.is_some_and(|ns| ns > 0.0), point.idles());
    }
}

#[test]
fn while_both_sides_come_to_rest_the_watch_is_left_alone() {
    let env = testing::env(64 << 20);
    // With one CPU there is nothing to come to rest.
    if other_cpu(&env).is_none() {
        return;
    }
    let mut session = Session::new(&env, PATIENCE).expect("a session");
    let begun = env.clock.now_ns();
    session.select(&small(Placement::AcrossBlocking)).expect("a connection");
    let seconds = (env.clock.now_ns() - begun) / 1e9;
    // Once to warm up, once to rest, and then each half second.
    assert!(session.echo.armed as f64 <= 2.0 + seconds / 0.5, "{}", session.echo.armed);
}

#[test]
fn an_address_is_not_to_blame_for_a_process_that_ends() {
    let mut env = testing::env(64 << 20);
    env.child = Some(["/bin/sh", "-c", "exit 3"].map(std::ffi::OsString::from).to_vec());
    let mut session = Session::new(&env, testing::LONG).expect("a session");
    let error = session.select(&small(PLACEMENTS[0])).expect_err("nobody answers");
    assert!(!error.to_string().contains("loopback address"), "{error}");
}

#[test]
fn what_a_server_does_wrong_is_named_and_never_waited_for_too_long() {
    let env = testing::env_of_one_cpu(64 << 20);
    for (fault, patience, named) in [
        (Reply::Nothing, WAITED, "no answer came within 1 s"),
        (Reply::Part(10), WAITED, "no answer came within 1 s"),
        (Reply::Twice, testing::LONG, "answer 4 does not match its request"),
        (Reply::Reset, testing::LONG, "reset the connection"),
        (Reply::Close, testing::LONG, "closed the connection"),
    ] {
        let open = || {
            let mut session = Session::new(&env, patience)?;
            session.echo.planted = Some(fault);
            Ok(session)
        };
        let text = trial::reason(&env, open, &small(Placement::SameCpu));
        assert!(text.contains(named), "{fault:?}: {text}");
    }
}

#[test]
fn a_server_s_process_that_stands_still_is_killed_and_one_that_died_is_named() {
    let mut env = testing::env_of_one_cpu(64 << 20);
    for (signal, patience, expected) in
        [(libc::SIGSTOP, 1, "did not answer within 4 s and was killed"), (libc::SIGKILL, 20, "ended")]
    {
        env.patience = patience;
        let mut session = Session::new(&env, WAITED).expect("a session");
        session.echo.server.start(None).expect("a server's process");
        let id = session.echo.server.id().expect("there is one");
        // SAFETY: a child of ours, not waited for.
        unsafe { libc::kill(i32::try_from(id).expect("a process id"), signal) };
        let point = small(Placement::SameCpu);
        let error = session.select(&point).expect_err("it is gone").to_string();
        assert!(error.contains(expected), "{error}");
        // The first point that it fails starts another, which stands no more.
        session.select(&point).expect("another one");
    }
}

/// What a server that counts something else, or sleeps where it polls, makes of a proof.
#[test]
fn messages_that_one_side_did_not_count_and_sides_that_slept_wrongly_fail_the_proof() {
    let failed = |placement, own: u64, theirs: u64, messages: u64| -> Vec<String> {
        let home = u32::try_from(rustix::thread::sched_getcpu()).expect("a CPU");
        let _pinned = Pinned::to(home).expect("the CPU that we run on");
        let evidence = Evidence { right: 100, timed: 100, switches: Sum(Some(own)), ..Evidence::default() };
        let counts = Counts { messages, bytes: messages * 64, switches: Some(theirs), kept_to_its_cpu: true };
        let served = Served::of([(116, counts)].iter());
        let checks = evidence.checks(small(placement), &served, [home, 1]).into_iter();
        checks.filter(|check| !check.ok).map(|check| check.name).collect()
    };
    let (blocking, polling) = (Placement::AcrossBlocking, Placement::AcrossPolling);
    assert!(failed(blocking, 100, 116, 116).is_empty());
    assert!(failed(polling, 2, 1, 116).is_empty());
    assert_eq!(failed(blocking, 100, 116, 115), ["counted on both sides"]);
    assert_eq!(failed(polling, 100, 0, 116), ["neither side slept while it waited"]);
    assert_eq!(failed(blocking, 3, 116, 116), ["both sides slept while they waited"]);
}
