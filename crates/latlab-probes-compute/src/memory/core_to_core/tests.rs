use latlab_harness::{AnyProbe as _, Erased, PointFields as _, PointResult, Support};
use latlab_machine::Machine;
use latlab_record::Kind;
use serde_json::json;

use super::exchange::Wait;
use super::*;
use latlab_probes_shared::rig::{CAN_PIN, Place};
use latlab_probes_testing as testing;

/// Both threads may share a CPU: what is tested is who sees what.
fn asked(lines: usize, ops: u64) -> Asked {
    let page = Arc::new(Page::new(PAGE_BYTES).expect("a page"));
    Asked {
        lines: (0..lines).map(|slot| Line { page: Arc::clone(&page), offset: slot * SLOT_BYTES }).collect(),
        warm: 3,
        windows: 2,
        ops,
        heat: 0,
    }
}

fn cpus(env: &Env) -> [u32; 2] {
    [env.cpus[0], env.cpus[env.cpus.len() - 1]]
}

fn checks_with<W: Way>(partner: fn(&mut Place, &Asked) -> Seen) -> Vec<Check> {
    let env = testing::env(1 << 20);
    let mut rig = Rig::new(&env.clock, env.patience).expect("a real clock");
    let asked = asked(2, 40);
    let done = with_partner::<W>(&mut rig, cpus(&env), &asked, partner).expect("both sides live");
    let mut evidence = Evidence::default();
    evidence.add(&asked, &done);
    evidence.checks()
}

#[test]
fn counts_and_sums_of_both_sides_are_those_asked_for() {
    for checks in [
        checks_with::<CompareAndSwap>(answer::<CompareAndSwap>),
        checks_with::<LoadStore>(answer::<LoadStore>),
    ] {
        assert!(checks[0].ok, "{}", checks[0].detail);
        assert!(checks[0].detail.starts_with("166 asked for, 166 seen"), "{}", checks[0].detail);
    }
}

/// Answers numbers in a row whether it was asked or not.
fn hasty<W: Way>(place: &mut Place, asked: &Asked) -> Seen {
    let mut seen = Seen::default();
    if !place.start() {
        return seen;
    }
    for line in &asked.lines {
        for _ in 0..asked.exchanges() / asked.lines.len() as u64 {
            line.force_answers::<W>(1);
            seen.exchanges += 1;
        }
    }
    seen
}

#[test]
fn a_partner_that_answers_without_waiting_for_the_question_fails_the_proof() {
    assert!(!checks_with::<CompareAndSwap>(hasty::<CompareAndSwap>)[0].ok);
    assert!(!checks_with::<LoadStore>(hasty::<LoadStore>)[0].ok);
}

/// Passes over the tenth exchange: answers with the number after it, goes on as it should, and claims to have
/// seen all of them.
fn skips<W: Way>(place: &mut Place, asked: &Asked) -> Seen {
    let mut seen = Seen::default();
    if !place.start() {
        return seen;
    }
    let each = asked.exchanges() / asked.lines.len() as u64;
    let mut wait = Wait::new(place);
    for (index, line) in asked.lines.iter().enumerate() {
        for n in 1..=each {
            if index == 0 && n == 10 {
                // At once: in two steps the asking side could see each of them in its turn.
                line.force_answers::<W>(2);
            } else if !(index == 0 && n == 11) && W::answer(line.words(), n, &mut wait).is_none() {
                // The asking side has noticed.
                return seen;
            }
            seen.exchanges += 1;
        }
    }
    seen
}

#[test]
fn a_partner_that_passes_an_exchange_over_fails_the_proof() {
    assert!(!checks_with::<CompareAndSwap>(skips::<CompareAndSwap>)[0].ok);
    assert!(!checks_with::<LoadStore>(skips::<LoadStore>)[0].ok);
}

#[test]
fn a_partner_that_stops_answering_ends_the_round_and_is_no_figure() {
    fn stops(place: &mut Place, _: &Asked) -> Seen {
        place.start();
        Seen::default()
    }
    let env = testing::env(1 << 20);
    let mut rig = Rig::new(&env.clock, 1).expect("a real clock");
    let asked = asked(1, 4);
    let [asking, _] = with_partner::<LoadStore>(&mut rig, cpus(&env), &asked, stops).expect("both end");
    assert!(asking.result.cut_short && asking.result.windows.is_empty());
    assert!(asking.result.stalls > 0);
}

#[test]
fn a_block_in_which_a_side_was_switched_out_or_late_is_not_counted() {
    let env = testing::env(1 << 20);
    let mut rig = Rig::new(&env.clock, env.patience).expect("a real clock");
    let asked = asked(1, 4);
    let mut done = exchange::<CompareAndSwap>(&mut rig, cpus(&env), &asked).expect("both sides live");
    for side in &mut done {
        side.result.stalls = 0;
        side.observed = latlab_record::Observed::default();
    }
    assert!(Evidence::default().add(&asked, &done));
    done[1].observed.involuntary_switches = Some(1);
    assert!(!Evidence::default().add(&asked, &done));
    done[1].observed.involuntary_switches = Some(0);
    done[0].result.stalls = 1;
    assert!(!Evidence::default().add(&asked, &done));
}

#[test]
fn every_pair_of_this_machine_is_proved_with_each_way_to_talk() {
    let env = testing::env(64 << 20);
    if env.cpus.len() < 2 {
        return;
    }
    let points = Erased(CoreToCore).points(&env);
    let few: Vec<Planned> = [&points[..1], &points[points.len() - 1..]].concat();
    assert_ne!(few[0].point.operation, few[1].point.operation);
    for proof in testing::assert_proved(&Erased(CoreToCore), &env, &few) {
        let findings = proof.findings.expect("the lines");
        let lines = findings["lines"].as_array().expect("a list");
        assert_eq!(lines.len(), 8);
        let homes: Vec<u64> = lines.iter().filter_map(|line| line["home_cpu"].as_u64()).collect();
        assert_ne!(homes[0], homes[7]);
    }
}

#[test]
fn one_cpu_is_not_enough_and_says_so() {
    let env = testing::env_of_one_cpu(64 << 20);
    let plan = CoreToCore.plan(&env);
    let Support::No(reason) = plan.support else {
        panic!("one CPU talks to nobody");
    };
    assert!(reason.contains("two CPUs") || !CAN_PIN, "{reason}");
    assert!(plan.points.is_empty());
}

#[test]
fn many_cpus_are_sampled_with_near_and_far_pairs_and_the_same_ones_again() {
    let mut env = testing::env(64 << 20);
    env.cpus = (0..384).collect();
    env.machine = Machine::default();
    let Plan { points, memory_bytes, .. } = CoreToCore.plan(&env);
    assert_eq!(points, CoreToCore.plan(&env).points);
    assert_eq!(points.len(), 2 * 15);
    assert!(memory_bytes <= env.memory_bytes);
    let cpus = chosen_cpus(&env);
    assert_eq!(cpus.len(), 6);
    assert!(cpus[0] < 128 && cpus[5] >= 256, "{cpus:?}");
    assert!(cpus.windows(2).any(|pair| pair[1] - pair[0] == 1), "{cpus:?}");
    assert!(points.iter().all(|planned| planned.point.from_cpu < planned.point.to_cpu));
    env.settings.seed += 1;
    assert_ne!(cpus, chosen_cpus(&env));
}

fn result(from_cpu: u32, to_cpu: u32, ns: f64, disturbed: bool) -> PointResult {
    let point = Pair { operation: Operation::CompareAndSwap, from_cpu, to_cpu };
    PointResult { disturbed, ..PointResult::new(point.to_point(), ns) }
}

/// Two groups of three CPUs, even and odd: 40 ns within, 200 between.
fn two_groups() -> Vec<PointResult> {
    let mut results = Vec::new();
    for a in 0..6u32 {
        for b in a + 1..6 {
            let ns = if (a + b) % 2 == 0 { 40.0 } else { 200.0 };
            results.push(result(a, b, ns + f64::from(a + b), false));
        }
    }
    results
}

fn conclusion(env: &Env, results: &[PointResult]) -> serde_json::Value {
    testing::conclusion(&Erased(CoreToCore), env, results)["operations"][0].clone()
}

#[test]
fn groups_are_found_from_the_latencies_and_named_by_a_node_that_is_exactly_one_of_them() {
    let mut env = testing::env(64 << 20);
    env.cpus = (0..6).collect();
    env.machine = Machine::default();
    env.machine.numa = vec![testing::node(7, &[1, 3, 5, 99])];
    let found = conclusion(&env, &two_groups());
    assert_eq!(found["cpus"], json!([0, 1, 2, 3, 4, 5]));
    assert_eq!(found["matrix_ns"][1][4], json!(205.0));
    assert_eq!(found["matrix_ns"][4][1], json!(205.0));
    assert_eq!(found["matrix_ns"][2][2], json!(null));
    let clusters = found["clusters"].as_array().expect("a list");
    assert_eq!(clusters.len(), 2, "{found}");
    assert_eq!((&clusters[0]["name"], &clusters[0]["cpus"]), (&json!("cluster 1"), &json!([0, 2, 4])));
    assert_eq!((&clusters[1]["name"], &clusters[1]["cpus"]), (&json!("NUMA node 7"), &json!([1, 3, 5])));
    assert_eq!(clusters[0]["within_ns"], json!(44.0));
    assert_eq!(found["between_ns"], json!(205.0));
    assert_eq!((&found["sampled"], &found["disturbed"]), (&json!(false), &json!([])));
}

#[test]
fn a_disturbed_pair_is_shown_and_makes_no_cluster() {
    let mut env = testing::env(64 << 20);
    env.cpus = (0..4).collect();
    let mut results = vec![result(0, 1, 900.0, true)];
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        results.push(result(a, b, 60.0 + f64::from(b), false));
    }
    let found = conclusion(&env, &results);
    assert_eq!(found["disturbed"], json!([[0, 1]]));
    assert_eq!(found["matrix_ns"][0][1], json!(900.0));
    assert_eq!(found["clusters"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["between_ns"], json!(null));
}

#[test]
fn spread_without_a_gap_is_one_cluster_and_missing_pairs_are_said() {
    let mut env = testing::env(64 << 20);
    env.cpus = (0..5).collect();
    let results: Vec<PointResult> = (1..5).map(|b| result(0, b, 50.0 + 8.0 * f64::from(b), false)).collect();
    let found = conclusion(&env, &results);
    assert_eq!(found["clusters"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["sampled"], json!(true));
    assert!(testing::conclusion(&Erased(CoreToCore), &env, &[]).is_null());
}

#[test]
fn a_whole_run_gives_the_matrix_where_there_are_two_cpus_and_says_so_where_there_are_not() {
    for env in [testing::env_of_one_cpu(64 << 20), testing::env(64 << 20)] {
        let kept = testing::records(&Erased(CoreToCore), &env);
        let derived = kept.iter().any(|record| record.kind == Kind::Derived);
        assert_eq!(derived, env.cpus.len() > 1);
        assert_eq!(kept.iter().all(|record| record.error.is_some()), !derived);
        assert!(!kept.is_empty());
    }
}
