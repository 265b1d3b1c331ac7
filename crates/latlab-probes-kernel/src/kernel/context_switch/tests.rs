//! Partners that do it right, and partners that do not.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use latlab_harness::{AnyProbe, Planned, PointResult, Support, measure_once};

use super::super::{ACROSS, ContextSwitch, THREADS};
use super::*;
use latlab_probes_testing as testing;

const MIB: u64 = 1 << 20;

#[test]
fn every_exchange_is_proved_on_one_cpu_and_on_two() {
    let one = testing::env_of_one_cpu(64 * MIB);
    let points = ContextSwitch.points(&one);
    assert!(matches!(ContextSwitch.supports(&one), Support::Degraded(_)));
    assert!(points.iter().all(|planned| planned.point.placement.as_deref() == Some(SAME)));
    testing::assert_proved(&ContextSwitch, &one, &points);
    let two = testing::env(64 * MIB);
    let mut across = ContextSwitch.points(&two);
    across.retain(|planned| planned.point.placement.as_deref() == Some(ACROSS));
    testing::assert_proved(&ContextSwitch, &two, &across);
}

/// Enough for a slow emulator on a crowded machine.
const LONG: Duration = Duration::from_secs(30);
/// What is waited for in vain.
const SHORT: Duration = Duration::from_millis(60);

/// The probe with a partner that does what a test plants, and a test's patience.
struct Planted(fn(&Side), Duration);

impl AnyProbe for Planted {
    fn spec(&self) -> &'static latlab_harness::Spec {
        ContextSwitch.spec()
    }
    fn supports(&self, env: &Env) -> Support {
        ContextSwitch.supports(env)
    }
    fn points(&self, env: &Env) -> Vec<Planned> {
        ContextSwitch.points(env)
    }
    fn memory_bytes(&self, _: &Env) -> u64 {
        0
    }
    fn open<'env>(
        &'env self,
        env: &'env Env,
        _: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        Ok(Box::new(Switching::new(env, self.0, self.1)?))
    }
}

fn planned(operation: &str, between: &str) -> Planned {
    Planned::new(Point {
        operation: Some(operation.to_owned()),
        placement: Some(SAME.to_owned()),
        between: Some(between.to_owned()),
        ..Point::default()
    })
}

const ALL: [(&str, &str); 6] = [
    (PIPE, THREADS),
    (EVENTFD, THREADS),
    (FUTEX, THREADS),
    (PIPE, PROCESSES),
    (EVENTFD, PROCESSES),
    (FUTEX, PROCESSES),
];

/// One block with this partner; whether the proof holds.
fn proved(env: &Env, answer: fn(&Side), patience: Duration, (operation, between): (&str, &str)) -> bool {
    let (_, proof) = &measure_once(&Planted(answer, patience), env, &[planned(operation, between)])[0];
    proof.checks.iter().all(|check| check.ok)
}

fn wrong(side: &Side) {
    while let Some(token) = side.receive() {
        if token >= STOP || !side.send(token + 2) {
            return;
        }
    }
}

/// Answers the tenth question twice.
fn twice(side: &Side) {
    let mut questions = 0;
    while let Some(token) = side.receive() {
        if token >= STOP || !side.send(token + 1) {
            return;
        }
        questions += 1;
        if questions == 10 && !side.send(token + 1) {
            return;
        }
    }
}

/// Leaves the tenth question without an answer.
fn silent(side: &Side) {
    let mut questions = 0;
    while let Some(token) = side.receive() {
        questions += 1;
        if token >= STOP || (questions != 10 && !side.send(token + 1)) {
            return;
        }
    }
}

/// Dies of the tenth question.
fn mortal(side: &Side) {
    let mut questions = 0;
    while let Some(token) = side.receive() {
        questions += 1;
        if token >= STOP || questions == 10 || !side.send(token + 1) {
            return;
        }
    }
}

#[test]
fn an_answer_that_is_not_the_right_one_fails_the_proof() {
    let env = testing::env_of_one_cpu(64 * MIB);
    for point in ALL {
        assert!(proved(&env, answer, LONG, point), "{point:?}");
        assert!(!proved(&env, wrong, LONG, point), "{point:?}");
    }
}

#[test]
fn an_answer_that_comes_twice_fails_the_proof() {
    let env = testing::env_of_one_cpu(64 * MIB);
    // In a word that both see, the same answer again is no event.
    for point in ALL.into_iter().filter(|(operation, _)| *operation != FUTEX) {
        assert!(!proved(&env, twice, LONG, point), "{point:?}");
    }
}

fn error(env: &Env, answer: fn(&Side), patience: Duration, point: (&str, &str)) -> String {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| proved(env, answer, patience, point)));
    let error = outcome.expect_err("there is no figure");
    error.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_question_without_an_answer_ends_the_point_with_a_reason() {
    let env = testing::env_of_one_cpu(64 * MIB);
    let begun = Instant::now();
    for point in ALL {
        let error = error(&env, silent, SHORT, point);
        assert!(error.contains("did not answer in time"), "{point:?}: {error}");
    }
    assert!(begun.elapsed() < LONG, "nothing hangs");
}

#[test]
fn a_partner_that_dies_is_noticed_and_named() {
    let env = testing::env_of_one_cpu(64 * MIB);
    for point in ALL {
        let (patience, expected) = if point.1 == PROCESSES {
            (LONG, "the other process ended (exit status 0)")
        } else {
            (SHORT, "did not answer in time")
        };
        let error = error(&env, mortal, patience, point);
        assert!(error.contains(expected), "{point:?}: {error}");
    }
}

#[test]
fn a_partner_that_is_killed_is_noticed_and_no_process_is_left() {
    let env = testing::env_of_one_cpu(64 * MIB);
    let mut session = Switching::new(&env, answer, LONG).expect("a thread to watch");
    session.select(&planned(EVENTFD, PROCESSES).point).expect("a process starts");
    let trips = &mut session.all[0];
    assert!(trips.run(10) == 10 && !trips.broken);
    let partner = trips.partner.as_ref().expect("not alone");
    let id = partner.task().id();
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0);
    session.watch.begin(&session.all[0].exchange, session.all[0].partner.as_ref());
    session.all[0].run(10);
    assert!(session.watch.end() && session.all[0].broken);
    let how = session.all[0].partner.as_ref().expect("not alone").how_it_ended(true);
    assert_eq!(how, "the other process ended (killed by signal 9)");
    drop(session);
    // SAFETY: asks only whether there is such a process.
    let there = unsafe { libc::kill(id, 0) };
    assert_eq!(there, -1, "it was waited for");
}

#[test]
fn a_pipe_that_holds_something_else_fails_the_proof_of_one_alone() {
    let env = testing::env_of_one_cpu(64 * MIB);
    let mut session = Switching::new(&env, answer, LONG).expect("a thread to watch");
    let point = Point {
        operation: Some(ALONE.to_owned()),
        placement: Some(SAME.to_owned()),
        threads: Some(1),
        ..Point::default()
    };
    session.select(&point).expect("two pipes");
    session.all[0].run(10);
    assert!(session.proof(&point).checks[0].ok);
    assert!(session.all[0].exchange.itself().send(7), "planted");
    session.all[0].run(10);
    assert!(!session.proof(&point).checks[0].ok);
}

#[test]
fn half_of_what_a_round_trip_costs_beyond_its_calls_is_the_switch() {
    let env = testing::env(64 * MIB);
    let result = |planned: Planned, p50| PointResult::new(planned.point, p50);
    let alone = ContextSwitch.points(&env).remove(0);
    assert_eq!(alone.point.operation.as_deref(), Some(ALONE));
    let results = [
        result(alone, 800.0),
        result(planned(PIPE, PROCESSES), 2_000.0),
        result(planned(FUTEX, THREADS), 1_500.0),
    ];
    let records = ContextSwitch.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("derived");
    let near = |name: &str, value: f64| {
        let found = findings[name]["value"].as_f64().expect("a number");
        assert!((found - value).abs() < 1e-9, "{name}: {found}");
    };
    near("switch_ns", 750.0);
    near("switch_only_ns", 600.0);
    assert_eq!(findings["switch_operation"], FUTEX);
    assert!(findings["switch_only_threads_ns"].is_null());
}
