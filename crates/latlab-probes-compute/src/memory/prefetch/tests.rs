//! Walks and writing must be proved, and what was skipped must be found.

use latlab_harness::{AnyProbe as _, Batch, Erased, Support};
use latlab_probes_testing as testing;
use serde_json::json;

use latlab_probes_shared::walk::to_usize;

use super::*;

const SMALL: u64 = 1 << 20;

/// Lines of a small arena, each with its own address.
fn lines() -> Arena {
    let arena = Arena::new(SMALL, Pages::Base, &[]).expect("1 MiB is there");
    // SAFETY: the arena has the bytes.
    unsafe { chase::lay(arena.base(), SMALL) };
    arena
}

fn courses() -> Vec<Course> {
    let lines = SMALL / LINE_BYTES;
    let mut courses = vec![Course::Random(Cycle::random(lines, 9))];
    courses.extend(STRIDES.map(|stride| Course::strided(lines, stride, 9)));
    courses
}

fn chase(arena: &Arena, course: Course) -> Chase {
    // SAFETY: every line of the arena holds its own address; the test keeps the arena.
    unsafe { Chase::new(arena.base(), course) }
}

#[test]
fn every_order_visits_every_line_once() {
    for course in courses() {
        let mut offsets: Vec<u64> = (0..SMALL / LINE_BYTES).map(|step| course.offset(step)).collect();
        offsets.sort_unstable();
        let all = (0..SMALL).step_by(64);
        assert!(offsets.into_iter().eq(all), "{course:?}");
    }
}

#[test]
fn a_stride_is_kept_within_a_lap() {
    let course = Course::strided(SMALL / LINE_BYTES, 4096, 9);
    for step in (0..SMALL / LINE_BYTES).filter(|step| !(step + 1).is_multiple_of(256)) {
        if step + 1 < SMALL / LINE_BYTES {
            assert_eq!(course.offset(step + 1), course.offset(step) + 4096);
        }
    }
}

#[test]
fn walks_of_any_length_end_where_they_should() {
    let arena = lines();
    for course in courses() {
        let mut chase = chase(&arena, course);
        for ops in [1, 7, 8, 9, 255, 256, 257, 20_000] {
            chase.run(ops);
            assert!(chase.verify(), "{course:?}");
        }
        chase.warm();
        assert!(chase.verify(), "{course:?}");
    }
}

#[test]
fn a_line_that_leads_elsewhere_fails_the_proof() {
    let arena = lines();
    for course in courses() {
        let mut chase = chase(&arena, course);
        // The line of step 5 leads on from the one before it, so the rest of the walk stays within the arena
        // and ends a line early.
        let line = arena.base().wrapping_add(to_usize(course.offset(5)));
        let stranger = line.wrapping_sub(if course.offset(5) > 0 { 64 } else { 0 });
        // SAFETY: a line of the arena.
        unsafe { line.cast::<*const u8>().write(stranger.wrapping_add(8)) };
        chase.run(5);
        assert!(!chase.verify(), "{course:?}");
        // SAFETY: as above.
        unsafe { line.cast::<*const u8>().write(line) };
    }
}

#[test]
fn what_was_not_done_is_no_proof() {
    for task in [RANDOM, Task::ListWalk { distance: 0 }, Task::Fill { distance: 0 }] {
        assert!(Evidence::default().checks(task).iter().all(|check| !check.ok), "{task:?}");
    }
}

fn list(arena: &Arena, nodes: u64) -> list::List {
    // SAFETY: the arena has a line for each node, and the test keeps it.
    unsafe { list::List::build(arena.base(), Cycle::random(nodes, 4)) }
}

fn all_distances() -> Vec<u32> {
    [0].into_iter().chain(list::distances()).collect()
}

fn walks_are_proved(list: &mut list::List, distance: u32, lengths: &[u64]) -> Vec<bool> {
    let mut evidence = Evidence::default();
    let mut walk = list::Walk::new(list, distance);
    for ops in lengths {
        walk.run(*ops);
    }
    walk.end(&mut evidence);
    evidence.checks(Task::ListWalk { distance }).iter().map(|check| check.ok).collect()
}

#[test]
fn list_walks_of_any_distance_and_length_are_proved() {
    let arena = lines();
    let mut list = list(&arena, 1_000);
    for distance in all_distances() {
        for lengths in [&[1][..], &[999, 1], &[1, 2_500, 17]] {
            assert_eq!(walks_are_proved(&mut list, distance, lengths), [true; 3]);
        }
    }
    assert!(!walks_are_proved(&mut list, 0, &[])[0], "nothing was walked");
}

/// What a walk over a list with a fault proves: its sum, its end, its jump pointers.
fn with_fault(distance: u32, fault: impl FnOnce(&Arena, &mut list::List)) -> Vec<bool> {
    let arena = lines();
    let mut list = list(&arena, 1_000);
    fault(&arena, &mut list);
    walks_are_proved(&mut list, distance, &[100])
}

#[test]
fn a_node_that_is_skipped_or_not_of_the_list_fails_the_proof() {
    for distance in all_distances() {
        let skipped = with_fault(distance, |_, list| list::tests::skip_a_node(list, 3));
        assert_eq!(skipped[..2], [false, false]);
        let strange = with_fault(distance, |arena, list| {
            list::tests::lead_to(list, 3, arena.base().wrapping_add(1_000 * 64).cast());
        });
        assert!(!strange[0], "{strange:?}");
    }
}

#[test]
fn a_jump_pointer_that_leads_elsewhere_fails_the_proof() {
    for distance in list::distances().filter(|distance| *distance > 1) {
        let turned = with_fault(distance, |_, list| list::tests::turn_a_jump_back(list, 3, distance));
        assert_eq!(turned, [true, true, false]);
    }
}

fn array(arena: &Arena) -> fill::Array {
    // SAFETY: the arena has the lines, and the test keeps it.
    unsafe { fill::Array::new(arena.base(), SMALL / LINE_BYTES) }
}

#[test]
fn filling_of_any_distance_and_length_is_proved() {
    let arena = lines();
    let mut array = array(&arena);
    for distance in fill::DISTANCES.into_iter().chain([0]) {
        let mut lines = Compared::default();
        for ops in [1, 100, 20_000, 50_000] {
            let mut writing = fill::Fill::new(&mut array, distance);
            writing.run(ops);
            writing.run(3);
            writing.end(&mut lines);
        }
        assert!(lines.all > 0 && lines.wrong == 0, "{lines:?}");
    }
}

#[test]
fn a_line_that_was_not_written_or_changed_fails_the_proof() {
    let arena = lines();
    let mut array = array(&arena);
    for distance in [0, 8] {
        for fault in [fill::tests::leave_out_a_line, fill::tests::spoil_a_word] {
            let mut lines = Compared::default();
            let mut writing = fill::Fill::new(&mut array, distance);
            writing.run(10);
            fault(&mut writing);
            writing.run(10);
            writing.end(&mut lines);
            assert!(lines.wrong > 0, "{lines:?}");
        }
    }
}

#[test]
fn every_kind_of_work_is_proved() {
    let mut env = testing::env_of_one_cpu(12 << 20);
    env.settings.profile = Profile::Standard;
    let points = Erased(Prefetch).points(&env);
    let operations = ["chase", "list-walk", "fill"].map(|operation| {
        points.iter().filter(|planned| planned.point.operation.as_deref() == Some(operation)).count()
    });
    assert!(operations[0] > 8 && operations[1] > 0 && operations[2] > 0, "{operations:?}");
    let proofs = testing::assert_proved(&Erased(Prefetch), &env, &points);
    for (planned, proof) in points.iter().zip(proofs) {
        let engine = proof.engine.expect("what did the work");
        let asks = planned.point.distance > Some(0);
        assert_eq!(asks, engine.starts_with("pr"), "{}: {engine}", planned.point.label());
    }
}

#[test]
fn working_sets_that_caches_may_hold_are_said() {
    assert!(matches!(Prefetch.plan(&testing::env(64 << 20)).support, Support::Degraded(_)));
}

#[test]
fn what_is_concluded_follows_from_the_points() {
    let result = |task, working_set_bytes, p50| PointResult {
        findings: Some(json!({ "pages": "huge" })),
        ..PointResult::new(Place { task, working_set_bytes }.to_point(), p50)
    };
    let env = testing::env_of_one_cpu(64 << 20);
    let sizes = Sizes::of(&env);
    let results = [
        result(strided(4096), sizes.chase, 90.0),
        result(RANDOM, sizes.chase, 100.0),
        result(strided(64), sizes.chase, 10.0),
        result(Task::ListWalk { distance: 0 }, sizes.chase, 120.0),
        result(Task::ListWalk { distance: 8 }, sizes.chase, 20.0),
        result(Task::ListWalk { distance: 16 }, sizes.chase, 24.0),
        result(Task::Fill { distance: 0 }, sizes.fill, 5.0),
    ];
    let findings = testing::conclusion(&Erased(Prefetch), &env, &results);
    let hardware = &findings["hardware"];
    assert_eq!(hardware["random_ns"], 100.0);
    assert_eq!(hardware["pages"], "huge");
    assert_eq!(hardware["strides"][0]["stride_bytes"], 64);
    assert_eq!(hardware["strides"][0]["hidden_share"]["value"], 0.9);
    assert_eq!(hardware["strides"][1]["ns"], 90.0);
    assert!(findings["hardware_third_level"].is_null());
    assert_eq!(findings["list_walk"]["best_distance"], 8);
    assert_eq!(findings["list_walk"]["gain"]["value"], 6.0);
    assert_eq!(findings["fill"]["without_ns"], 5.0);
    assert!(findings["fill"]["gain"].is_null());
    assert!(testing::conclusion(&Erased(Prefetch), &env, &[]).is_null());
}
