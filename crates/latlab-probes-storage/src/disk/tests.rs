use latlab_harness::Support;
use latlab_probes_testing as testing;

use super::size::SMALLEST_FILE;
use super::*;

#[test]
fn the_test_file_leaves_most_of_what_may_be_written_to_the_probes() {
    let env = testing::env(64 << 20);
    let bytes = file_bytes(&env);
    assert!(bytes <= env.disk.budget().limit_bytes() / 8 * 3, "{bytes}");
    assert_eq!(env.disk.budget().spent_bytes(), 0, "asking lays nothing out");
    match support(&env) {
        Support::No(reason) => assert!(reason.len() > 10, "{reason}"),
        _ => assert!(bytes >= SMALLEST_FILE),
    }
}

#[test]
fn what_answers_faster_than_any_device_is_none() {
    assert!(!answered_by_a_device(700.0).ok);
    assert!(answered_by_a_device(9_000.0).ok);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use latlab_harness::{Queue, Wait};
    use latlab_storage::{Contents, Direction};

    use super::*;
    use crate::planted::target;

    const BLOCK: u64 = 4096;

    /// Drives the queue without a clock: `depth` at a time.
    fn drive(flow: &mut Flow, depth: u32, operations: u64) -> u64 {
        let mut free: Vec<u32> = (0..depth).collect();
        let (mut begun, mut ended) = (0, 0);
        while ended < operations {
            while begun < operations
                && let Some(token) = free.pop()
            {
                flow.submit(token).expect("taken");
                begun += 1;
            }
            let mut done = Vec::new();
            flow.reap(Wait::ForOne, &mut |token| done.push(token)).expect("no error");
            ended += done.len() as u64;
            free.extend(done);
        }
        ended
    }

    #[test]
    fn a_test_file_that_took_too_long_is_smaller_and_its_figures_say_so() {
        let env = testing::env(64 << 20);
        if matches!(support(&env), Support::No(_)) {
            return;
        }
        let wanted = file_bytes(&env);
        lay_out(&env, wanted, Duration::ZERO);
        let bytes = file_bytes(&env);
        assert!(0 < bytes && bytes < wanted, "{bytes}");
        match support(&env) {
            Support::Yes => panic!("nothing was reported"),
            Support::No(text) | Support::Degraded(text) => {
                assert!(text.contains("the disk was too slow") && text.contains("24 MiB"), "{text}");
            }
        }
        let target = Target::open(&env).expect("what there is");
        assert_eq!(target.test.bytes, bytes);
    }

    #[test]
    fn random_places_come_each_once_before_any_comes_again() {
        let mut places = Places::random(BLOCK, 100, 7);
        let mut last = u64::MAX;
        for round in 0..5 {
            let mut seen: Vec<u64> = (0..99).map(|_| places.next()).collect();
            assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
            assert_ne!(seen[0], last, "round {round}");
            last = *seen.last().expect("99");
            assert!(seen.iter().all(|offset| offset.is_multiple_of(BLOCK) && *offset < 100 * BLOCK));
            if round == 0 {
                seen.push(places.next());
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), 100);
            }
        }
        let mut places = Places::in_order(BLOCK, 3, 2);
        assert_eq!([places.next(), places.next(), places.next()], [2 * BLOCK, 0, BLOCK]);
    }

    #[test]
    fn blocks_are_read_and_written_at_any_depth_by_threads_where_io_uring_is_forbidden_and_it_is_said() {
        let Some((env, mut target)) = target() else { return };
        for (forbidden, depth, block_bytes) in
            [(false, 1, BLOCK), (false, 8, BLOCK), (false, 4, 65_536), (true, 4, BLOCK), (true, 3, 1 << 20)]
        {
            target.without_uring = forbidden;
            let places = || Places::random(block_bytes, target.blocks(block_bytes), 3);
            let Ok(mut reading) =
                Flow::open(&target, DIRECT, Direction::Read, [depth; 2], block_bytes, places())
            else {
                continue;
            };
            reading.evidence.begin(&target, DIRECT);
            assert_eq!(drive(&mut reading, depth, 20), 20);
            reading.evidence.end(&target, Direction::Read, 20 * block_bytes);
            assert_eq!(reading.engine() == "psync", depth == 1);
            assert!(failed(&reading.evidence, &target, DIRECT).is_empty(), "at {depth}");
            if forbidden {
                assert_eq!(reading.engine(), "threads");
                assert!(reading.flag.as_ref().is_some_and(|flag| flag.starts_with("degraded: a thread")));
            }
            let mut writing =
                Flow::open(&target, DIRECT, Direction::Write, [depth, depth + 2], block_bytes, places())
                    .expect("an engine");
            let ready = writing.prepare(env.disk.budget(), u64::from(depth) + 2).expect("in the budget");
            assert_eq!(
                ready,
                u64::from(depth) + 2,
                "more are made ready than are under way, so that the depth is kept"
            );
            assert_eq!(drive(&mut writing, depth, ready), ready);
        }
    }

    #[test]
    fn what_is_written_is_paid_for_made_ready_and_is_what_was_there() {
        let Some((env, target)) = target() else { return };
        let places = Places::random(BLOCK, target.blocks(BLOCK), 3);
        let mut flow =
            Flow::open(&target, BUFFERED, Direction::Write, [4, 16], BLOCK, places).expect("an engine");
        let before = env.disk.budget().spent_bytes();
        let ready = flow.prepare(env.disk.budget(), 10).expect("in the budget");
        assert!((1..=10).contains(&ready));
        assert_eq!(env.disk.budget().spent_bytes() - before, ready * BLOCK);
        assert_eq!(drive(&mut flow, if ready < 4 { 1 } else { 4 }, ready), ready);
        assert!(flow.submit(0).is_err(), "nothing more was made ready");
        let places = Places::in_order(1 << 20, target.blocks(1 << 20), 0);
        let mut all =
            Flow::open(&target, BUFFERED, Direction::Read, [1; 2], 1 << 20, places).expect("an engine");
        drive(&mut all, 1, target.blocks(1 << 20));
        assert!(failed(&all.evidence, &target, WARM).is_empty());
    }

    #[test]
    fn a_spent_budget_is_the_reason_of_what_is_not_written() {
        let Some((env, target)) = target() else { return };
        let places = Places::in_order(BLOCK, target.blocks(BLOCK), 0);
        let mut flow =
            Flow::open(&target, BUFFERED, Direction::Write, [1, 4], BLOCK, places).expect("an engine");
        env.disk.budget().spend(env.disk.budget().left_bytes()).expect("all of it");
        let error = flow.prepare(env.disk.budget(), 4).expect_err("nothing is left");
        assert!(error.to_string().contains("--max-bytes"), "{error}");
    }

    #[test]
    fn an_eviction_is_verified() {
        let Some((_env, target)) = target() else { return };
        let residency = target.chill().expect("nobody else has the file");
        let mut evidence = Evidence::default();
        assert!(failed(&evidence, &target, COLD).contains(&"evicted".to_owned()));
        evidence.chilled(residency);
        assert!(!failed(&evidence, &target, COLD).contains(&"evicted".to_owned()));
    }

    fn failed(evidence: &Evidence, target: &Target, path: Access) -> Vec<String> {
        let checks = evidence.checks(target, path, Direction::Read).into_iter();
        checks.filter(|check| !check.ok).map(|check| check.name).collect()
    }

    #[test]
    fn contents_that_are_not_what_was_written_fail_the_proof() {
        let Some((_env, target)) = target() else { return };
        let contents = target.test.contents.expect("ours");
        let filled = |contents: Contents, offset: u64| {
            let mut bytes = vec![0; 3 * 4096];
            contents.fill(offset, &mut bytes);
            bytes
        };
        let (right, other) = (filled(contents, 8192), filled(contents, 12_288));
        let (foreign, zeros) = (filled(Contents::new(99), 8192), vec![0; 3 * 4096]);
        for (bytes, ok) in [(&right, true), (&other, false), (&foreign, false), (&zeros, false)] {
            for length in [3 * 4096, 4096, 512] {
                let mut evidence = Evidence::default();
                evidence.verify(Some(contents), 8192, &bytes[..length]);
                let wrong = failed(&evidence, &target, WARM);
                assert_eq!(wrong.is_empty(), ok, "{length}: {wrong:?}");
            }
        }
        let mut evidence = Evidence::default();
        evidence.verify(Some(contents), 8192 + 512, &right[512..1024]);
        assert!(failed(&evidence, &target, WARM).is_empty());
        let nothing = failed(&Evidence::default(), &target, WARM);
        assert_eq!(nothing, ["contents verified"], "nothing was verified");
    }

    #[test]
    fn a_counter_that_does_not_move_fails_the_proof() {
        let Some((_env, target)) = target() else { return };
        for (counted, fails) in [(Some(0), true), (Some(1 << 20), false), (None, false)] {
            let evidence = Evidence::of_counts(1 << 20, counted);
            let failed = failed(&evidence, &target, DIRECT).contains(&"counted by the kernel".to_owned());
            assert_eq!(failed, fails, "{counted:?}");
        }
    }
}
