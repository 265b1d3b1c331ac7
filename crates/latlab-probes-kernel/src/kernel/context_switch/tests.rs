//! Partners that do it right, and partners that do not.

use std::time::Instant;

use latlab_harness::{
    AnyProbe as _, Erased, Figure, PointFields as _, PointResult, Probe as _, RemoteBlock, Session as _,
    Support,
};
use latlab_probes_testing as testing;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn one_cpu_has_no_exchange_with_another_one_and_two_prove_it() {
    let one = ContextSwitch.plan(&testing::env_of_one_cpu(64 * MIB));
    assert!(matches!(one.support, Support::Degraded(_)));
    assert!(one.points.iter().all(|planned| planned.point.placement == SameCpu));
    let two = testing::env(64 * MIB);
    let mut across = Erased(ContextSwitch).points(&two);
    across.retain(|planned| planned.point.placement.as_deref() == Some("across-blocking"));
    testing::assert_proved(&Erased(ContextSwitch), &two, &across);
}

/// Enough for a slow emulator on a crowded machine.
const LONG: Duration = Duration::from_secs(30);
/// What is waited for in vain.
const SHORT: Duration = Duration::from_millis(60);

const ALL: [(Means, Between); 6] = [
    (Means::Pipe, Between::Threads),
    (Means::Eventfd, Between::Threads),
    (Means::Futex, Between::Threads),
    (Means::Pipe, Between::Processes),
    (Means::Eventfd, Between::Processes),
    (Means::Futex, Between::Processes),
];

/// One block with a partner that does what a test plants, and a test's patience; whether the proof holds.
fn proved(
    env: &Env,
    answer: fn(&Side),
    patience: Duration,
    (operation, between): (Means, Between),
) -> Result<bool> {
    let point = Exchanged::with_partner(operation, SameCpu, between);
    let (mut session, mut evidence) = (Session::new(env, answer, patience)?, Evidence::default());
    session.select(&point)?;
    RemoteBlock::take(&env.clock, None, |block| session.block(&point, &mut evidence, block))?;
    Ok(session.proof(&point, &evidence).checks.iter().all(|check| check.ok))
}

/// Answers each question by its number, from 1: sends it with each of these added; ends where there is
/// nothing.
fn partner(side: &Side, answers: fn(u32) -> Option<&'static [u32]>) {
    let mut questions = 0;
    while let Some(token) = side.receive() {
        questions += 1;
        let Some(added) = answers(questions).filter(|_| token < STOP) else { return };
        if !added.iter().all(|more| side.send(token + more)) {
            return;
        }
    }
}

fn wrong(side: &Side) {
    partner(side, |_| Some(&[2]));
}

/// Answers the tenth question twice.
fn twice(side: &Side) {
    partner(side, |question| if question == 10 { Some(&[1, 1]) } else { Some(&[1]) });
}

/// Leaves the tenth question without an answer.
fn silent(side: &Side) {
    partner(side, |question| if question == 10 { Some(&[]) } else { Some(&[1]) });
}

/// Dies of the tenth question.
fn mortal(side: &Side) {
    partner(side, |question| if question == 10 { None } else { Some(&[1]) });
}

#[test]
fn an_answer_that_is_not_the_right_one_fails_the_proof() {
    let env = testing::env_of_one_cpu(64 * MIB);
    for point in ALL {
        assert!(proved(&env, answer, LONG, point).expect("answers"), "{point:?}");
        assert!(!proved(&env, wrong, LONG, point).expect("answers"), "{point:?}");
    }
}

#[test]
fn an_answer_that_comes_twice_fails_the_proof() {
    let env = testing::env_of_one_cpu(64 * MIB);
    // In a word that both see, the same answer again is no event.
    for point in ALL.into_iter().filter(|(operation, _)| *operation != Means::Futex) {
        assert!(!proved(&env, twice, LONG, point).expect("answers"), "{point:?}");
    }
}

fn error(env: &Env, answer: fn(&Side), patience: Duration, point: (Means, Between)) -> String {
    proved(env, answer, patience, point).expect_err("there is no figure").to_string()
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
        let (patience, expected) = if point.1 == Between::Processes {
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
    let mut session = Session::new(&env, answer, LONG).expect("a thread to watch");
    let point = Exchanged::with_partner(Means::Eventfd, SameCpu, Between::Processes);
    session.select(&point).expect("a process starts");
    let lane = &session.lanes[0].1;
    let mut trips = lane.trips(Compared::default());
    trips.run(10);
    assert!(trips.answers == Compared { all: 10, wrong: 0 } && !trips.broken);
    let partner = lane.partner.as_ref().expect("not alone");
    let id = partner.task.id();
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0);
    session.watch.begin(&lane.exchange, Some(partner));
    trips.run(10);
    assert!(session.watch.end() && trips.broken);
    assert_eq!(partner.how_it_ended(true), "the other process ended (killed by signal 9)");
    drop(session);
    // SAFETY: asks only whether there is such a process.
    let there = unsafe { libc::kill(id, 0) };
    assert_eq!(there, -1, "it was waited for");
}

#[test]
fn a_pipe_that_holds_something_else_fails_the_proof_of_one_alone() {
    let env = testing::env_of_one_cpu(64 * MIB);
    let mut session = Session::new(&env, answer, LONG).expect("a thread to watch");
    session.select(&Exchanged::ALONE).expect("two pipes");
    let lane = &session.lanes[0].1;
    let mut trips = lane.trips(Compared::default());
    trips.run(10);
    assert!(trips.answers.check("before", "", "").ok);
    assert!(lane.exchange.itself().send(7), "planted");
    trips.run(10);
    let evidence = Evidence { answers: trips.answers, ..Evidence::default() };
    assert!(!session.proof(&Exchanged::ALONE, &evidence).checks[0].ok);
}

#[test]
fn half_of_what_a_round_trip_costs_beyond_its_calls_is_the_switch() {
    let env = testing::env(64 * MIB);
    let figure = |point: Exchanged, p50| {
        Figure::of(&PointResult::new(point.to_point(), p50)).expect("a point of this probe")
    };
    let figures = [
        figure(Exchanged::ALONE, 800.0),
        figure(Exchanged::with_partner(Means::Pipe, SameCpu, Between::Processes), 2_000.0),
        figure(Exchanged::with_partner(Means::Futex, SameCpu, Between::Threads), 1_500.0),
    ];
    let found = ContextSwitch.conclude(&testing::header(&env), &figures).expect("derived");
    assert!((found.switch_ns.value - 750.0).abs() < 1e-9);
    assert!((found.switch_only_ns.expect("calls and trip").value - 600.0).abs() < 1e-9);
    assert_eq!(found.switch_operation, Means::Futex);
    assert!(found.switch_only_threads_ns.is_none());
}
