//! What was accessed must be proved, and what was not must be found.

use latlab_harness::Erased;
use latlab_probes_testing as testing;

use super::*;

fn points() -> Vec<Place> {
    let of = |operation| OFFSETS.map(|offset| Place::new(operation, offset));
    [of(Access::Load), of(Access::Store)].concat()
}

fn session() -> Accessing {
    Accessing::open(5).expect("40 KiB are there")
}

/// Whether these blocks prove their work.
fn is_proved(session: &mut Accessing, point: &Place, blocks: &[&Accesses]) -> bool {
    let mut evidence = Evidence::default();
    for block in blocks {
        evidence.add(block);
    }
    session.proof(point, &evidence).checks[0].ok
}

#[test]
fn accesses_in_runs_of_any_length_are_those_that_were_due() {
    let mut session = session();
    for point in points() {
        let mut accesses = session.begin(&point).expect("a known point");
        for ops in [1, 3, 8, 13, 255, 1_000, 5] {
            accesses.run(ops);
        }
        assert_eq!(accesses.made, 1_285);
        assert!(is_proved(&mut session, &point, &[&accesses]), "{point:?}");
    }
}

#[test]
fn an_access_that_was_not_made_fails_the_proof() {
    let mut session = session();
    for point in points() {
        let mut accesses = session.begin(&point).expect("a known point");
        accesses.run(1_000);
        accesses.made += 1;
        assert!(!is_proved(&mut session, &point, &[&accesses]), "{point:?}");
    }
}

#[test]
fn a_block_without_accesses_proves_nothing() {
    let mut session = session();
    for point in points() {
        assert!(!is_proved(&mut session, &point, &[]), "{point:?}");
        let accesses = session.begin(&point).expect("a known point");
        assert!(!is_proved(&mut session, &point, &[&accesses]), "{point:?}");
    }
}

#[test]
fn a_byte_that_changed_fails_the_proof() {
    let mut session = session();
    for point in points() {
        let mut accesses = session.begin(&point).expect("a known point");
        accesses.run(1_000);
        let last = accesses.place(3).wrapping_add(7);
        // SAFETY: the last byte of a place.
        unsafe { last.write(last.read() ^ 1) };
        assert!(!is_proved(&mut session, &point, &[&accesses]), "{point:?}");
    }
}

#[test]
fn only_the_places_that_are_meant_to_cross_do() {
    let mut session = session();
    for offset in OFFSETS {
        let accesses = session.begin(&Place::new(Access::Load, offset)).expect("a known point");
        for nth in 0..accesses.places() {
            let (first, last) = (accesses.place(nth).addr() as u64, accesses.place(nth).addr() as u64 + 7);
            assert_eq!(
                first / LINE_BYTES != last / LINE_BYTES,
                [LINE_CROSSING, PAGE_CROSSING].contains(&offset)
            );
            assert!(offset != PAGE_CROSSING || first / PAGE_BYTES != last / PAGE_BYTES);
            assert_eq!(first.is_multiple_of(ACCESS), [ALIGNED, PAGE_END].contains(&offset));
        }
    }
}

#[test]
fn the_quick_profile_has_the_three_that_a_reader_wants() {
    let env = testing::env_of_one_cpu(64 << 20);
    assert_eq!(env.settings.profile, Profile::Quick);
    let plan = Alignment.plan(&env);
    assert_eq!(plan.points.len(), 6);
    assert!(plan.memory_bytes <= 64 << 10);
}

#[test]
fn the_conclusion_has_each_cost_that_was_measured_and_no_other() {
    let result = |offset, p50| PointResult::new(Place::new(Access::Store, offset).to_point(), p50);
    let env = testing::env_of_one_cpu(64 << 20);
    let results = [result(0, 0.25), result(60, 0.5)];
    let findings = testing::conclusion(&Erased(Alignment), &env, &results);
    assert_eq!(findings["store"]["aligned_ns"], 0.25);
    assert_eq!(findings["store"]["line_crossing_ns"], 0.5);
    assert!(findings["store"]["page_crossing_ns"].is_null() && findings["load"]["aligned_ns"].is_null());
    assert!(testing::conclusion(&Erased(Alignment), &env, &[]).is_null());
}
