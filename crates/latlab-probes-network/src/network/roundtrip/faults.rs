//! Round trips that are right, and servers and processes that do wrong.

use std::time::Instant;

use latlab_harness::{AnyProbe, Planned, Support};
use latlab_record::Record;

use super::*;
use crate::network::roundtrip::{RoundTrip, SMALL};
use latlab_probes_testing as testing;

/// For what never comes.
const WAITED: Duration = Duration::from_secs(1);

fn points(env: &Env, transport: &str, bytes: u64) -> Vec<Planned> {
    let mut points = RoundTrip.points(env);
    points.retain(|planned| {
        planned.point.transport.as_deref() == Some(transport) && planned.point.message_bytes == Some(bytes)
    });
    points
}

#[test]
fn every_transport_and_placement_proves_its_round_trips_and_their_bytes() {
    let env = testing::env(64 << 20);
    let mut all = Vec::new();
    for (transport, bytes) in [(TCP, SMALL), (UDP, SMALL), (UNIX, SMALL), (TCP, 64 << 10), (UDP, 16 << 10)] {
        all.extend(points(&env, transport, bytes));
    }
    let proofs = testing::assert_proved(&RoundTrip, &env, &all);
    for (planned, proof) in all.iter().zip(&proofs) {
        let findings = proof.findings.as_ref().expect("findings");
        let named = findings["address"].as_str();
        assert_eq!(named.is_none(), planned.point.transport.as_deref() == Some(UNIX), "{findings}");
        let idled = planned.point.placement.as_deref() == Some(BLOCKING);
        let just_after = findings["just_after_work_ns"].as_f64();
        assert_eq!(just_after.is_some_and(|ns| ns > 0.0), idled, "{findings}");
    }
}

#[test]
fn while_both_sides_come_to_rest_the_watch_is_left_alone() {
    let env = testing::env(64 << 20);
    let blocking = |planned: &Planned| planned.point.placement.as_deref() == Some(BLOCKING);
    // With one CPU there is nothing to come to rest.
    let Some(planned) = points(&env, TCP, SMALL).into_iter().find(blocking) else {
        return;
    };
    let mut trips = Trips::new(&env, PATIENCE).expect("a session");
    let begun = env.clock.now_ns();
    trips.select(&planned.point).expect("a connection");
    let seconds = (env.clock.now_ns() - begun) / 1e9;
    // Once to warm up, once to rest, and then each half second.
    assert!(trips.echo.armed as f64 <= 2.0 + seconds / 0.5, "{}", trips.echo.armed);
}

#[test]
fn an_address_is_not_to_blame_for_a_process_that_ends() {
    let mut env = testing::env(64 << 20);
    env.child = Some(["/bin/sh", "-c", "exit 3"].map(std::ffi::OsString::from).to_vec());
    let mut trips = Trips::new(&env, testing::LONG).expect("a session");
    let error = trips.select(&points(&env, TCP, SMALL)[0].point).expect_err("nobody answers");
    assert!(!error.to_string().contains("loopback address"), "{error}");
}

/// The probe with a fault in its server, and a patience of its own.
struct Planted {
    patience: Duration,
    fault: Option<Reply>,
    /// Sent to the server's process once it listens.
    signal: Option<i32>,
}

impl AnyProbe for Planted {
    fn spec(&self) -> &'static latlab_harness::Spec {
        RoundTrip.spec()
    }
    fn supports(&self, env: &Env) -> Support {
        RoundTrip.supports(env)
    }
    fn points(&self, env: &Env) -> Vec<Planned> {
        points(env, TCP, SMALL)
    }
    fn memory_bytes(&self, _: &Env) -> u64 {
        0
    }
    fn open<'env>(
        &'env self,
        env: &'env Env,
        _: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        let mut trips = Trips::new(env, self.patience)?;
        trips.echo.planted = self.fault;
        if let Some(signal) = self.signal {
            trips.echo.start_server()?;
            let id = trips.echo.server_id().expect("it has answered");
            // SAFETY: a child of ours, not waited for.
            unsafe { libc::kill(i32::try_from(id).expect("a process id"), signal) };
        }
        Ok(Box::new(trips))
    }
}

fn of_one_cpu() -> Env {
    testing::env_of_one_cpu(64 << 20)
}

/// The reason in the one record of a run on one CPU.
fn reason(planted: &Planted) -> String {
    let before = children();
    let begun = Instant::now();
    let env = of_one_cpu();
    let records = testing::records(planted, &env);
    assert!(begun.elapsed() < 3 * testing::LONG, "every wait is bounded");
    assert_eq!(children(), before, "no process is left");
    let [record] = &records[..] else {
        panic!("{records:?}");
    };
    assert!(record.summary.is_none());
    text_of(record)
}

fn text_of(record: &Record) -> String {
    record.error.as_ref().expect("a reason").text.clone()
}

/// Of this thread.
fn children() -> usize {
    std::fs::read_to_string("/proc/thread-self/children").map_or(0, |text| text.split_whitespace().count())
}

fn of_a_server_that(fault: Reply, patience: Duration) -> String {
    reason(&Planted { patience, fault: Some(fault), signal: None })
}

#[test]
fn a_server_that_never_answers_or_not_all_is_not_waited_for() {
    for fault in [Reply::Nothing, Reply::Part(10)] {
        let text = of_a_server_that(fault, WAITED);
        assert!(text.contains("no answer came within 1 s"), "{text}");
    }
}

#[test]
fn an_answer_before_its_request_is_none() {
    let text = of_a_server_that(Reply::Twice, testing::LONG);
    assert!(text.contains("answer 4 is not that of its request"), "{text}");
}

#[test]
fn a_connection_that_is_reset_or_closed_is_named_so() {
    let text = of_a_server_that(Reply::Reset, testing::LONG);
    assert!(text.contains("reset the connection"), "{text}");
    let text = of_a_server_that(Reply::Close, testing::LONG);
    assert!(text.contains("closed the connection"), "{text}");
}

#[test]
fn a_server_s_process_that_stands_still_is_killed_and_one_that_died_is_named() {
    let mut env = of_one_cpu();
    for (signal, patience, expected) in
        [(libc::SIGSTOP, 1, "did not answer within 4 s and was killed"), (libc::SIGKILL, 20, "ended")]
    {
        env.patience = patience;
        let probe = Planted { patience: WAITED, fault: None, signal: Some(signal) };
        let mut session = probe.open(&env, &[]).expect("a server's process");
        let point = probe.points(&env)[0].point.clone();
        let error = session.select(&point).expect_err("it is gone").to_string();
        assert!(error.contains(expected), "{error}");
        // The first point that it fails starts another, which stands no more.
        session.select(&point).expect("another one");
    }
}

/// What a server that counts something else, or sleeps where it polls, makes of a proof.
#[test]
fn messages_that_one_side_did_not_count_and_sides_that_slept_wrongly_fail_the_proof() {
    let found = |waiting, own: u64, theirs: u64, served: u64| Found {
        point: Point::default(),
        asked: Asked { transport: Transport::Tcp, waiting, bytes: 64, together: false, cpu: 1 },
        right: 100,
        timed: 100,
        sent: 116,
        served: Counts { messages: served, bytes: served * 64, ..Counts::default() },
        strayed: false,
        switches: Some(own),
        server_switches: Some(theirs),
        just_after_work: Vec::new(),
        address: None,
    };
    let failed = |found: Found| -> Vec<String> {
        let home = u32::try_from(rustix::thread::sched_getcpu()).expect("a CPU");
        let _pinned = Pinned::to(home).expect("the CPU that we run on");
        let checks = found.checks(home).into_iter();
        checks.filter(|check| !check.ok).map(|check| check.name).collect()
    };
    assert!(failed(found(Waiting::Blocking, 100, 116, 116)).is_empty());
    assert!(failed(found(Waiting::Polling, 2, 1, 116)).is_empty());
    assert_eq!(failed(found(Waiting::Blocking, 100, 116, 115)), ["counted on both sides"]);
    assert_eq!(failed(found(Waiting::Polling, 100, 0, 116)), ["neither side slept while it waited"]);
    assert_eq!(failed(found(Waiting::Blocking, 3, 116, 116)), ["both sides slept while they waited"]);
}
