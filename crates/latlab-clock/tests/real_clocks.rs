//! What must hold of the clocks of any machine. Ordinal only: no test here decides by how long something
//! took.

use std::time::Duration;

use latlab_clock::{Clock, ClockKind, Source, TimeSource, core_frequency_now, measure_instrument, os_clocks};

fn never_runs_back(source: &impl TimeSource) {
    let mut last = source.begin();
    for _ in 0..100_000 {
        let (begin, end) = (source.begin(), source.end());
        assert!(last <= begin && begin <= end, "{last} {begin} {end}");
        last = end;
    }
}

fn holds_for(clock: &Clock) {
    match &clock.source {
        Source::Hardware(source) => never_runs_back(source),
        Source::Os(source) => never_runs_back(source),
        Source::Simulated(_) => unreachable!("a real clock was opened"),
    }
    let before = clock.now_ns();
    std::thread::sleep(Duration::from_millis(20));
    let slept = clock.now_ns() - before;
    assert!((19.99e6..10e9).contains(&slept), "20 ms of sleep read as {slept} ns");

    let facts = &clock.facts;
    assert!(facts.quantum_ns > 0.0 && facts.ticks_per_ns > 0.0, "{facts:?}");
    assert!(facts.rate_error_ppm <= 1000.0, "{facts:?}");
    let overhead = &facts.overhead_ns;
    assert!(overhead.min <= overhead.p50 && overhead.p50 <= overhead.p99, "{overhead:?}");
    assert!(overhead.samples > 0);
    assert_eq!(facts.backwards, 0);
    assert!(!facts.fences.is_empty());
}

#[test]
fn the_opened_clock_runs_forwards_and_sees_a_sleep() {
    let clock = Clock::open();
    holds_for(&clock);
    // Either a counter, or a printable reason against it.
    assert_eq!(clock.facts.kind == ClockKind::Os, clock.facts.why_not_hardware.is_some());
}

#[test]
fn the_system_clock_runs_forwards_and_sees_a_sleep() {
    let clock = Clock::open_os();
    holds_for(&clock);
    assert_eq!(clock.facts.kind, ClockKind::Os);
    assert_eq!(clock.facts.why_not_hardware, None);
}

#[test]
fn the_core_frequency_is_a_positive_figure_or_absent() {
    let clock = Clock::open();
    assert!(core_frequency_now(&clock).is_none_or(|ghz| ghz > 0.0 && ghz.is_finite()));
}

#[test]
fn each_system_clock_can_be_examined_by_itself() {
    for (name, id) in os_clocks() {
        let found = measure_instrument(&id, |_| (), Duration::from_millis(30));
        assert!(found.quantum_ticks.is_none_or(|ticks| ticks >= 1.0), "{name}: {found:?}");
    }
}
