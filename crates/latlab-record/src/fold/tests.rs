use latlab_clock::{Clock, SimulatedClock};
use latlab_machine::Machine;
use latlab_stats::count::whole;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    BlockSummary, CacheScope, Channel, Check, CpuFigure, Histogram, Observed, PlannedProbe, Rank,
    RoundFigure, Settings, Summary, TailCause, TailCauses, TailPart, TailSample, Tool, Unit,
};

pub(super) fn header(plan: &[(&str, u64)]) -> Header {
    Header {
        schema: "latlab.run/2.0".to_owned(),
        id: "test".to_owned(),
        started: String::new(),
        tool: Tool { version: String::new(), commit: None, build: String::new() },
        machine: Machine::default(),
        clock: Clock::simulated(SimulatedClock::ideal()).facts,
        settings: Settings::default(),
        plan: plan
            .iter()
            .map(|(id, points)| PlannedProbe {
                id: (*id).to_owned(),
                points: *points,
                seconds: 1.0,
                memory_bytes: 0,
                written_bytes: 0,
                cpus: 1,
            })
            .collect(),
        rounds: 6,
        cpus: vec![0, 1],
        doctor: Vec::new(),
    }
}

fn point(kib: u64) -> Point {
    Point { working_set_bytes: Some(kib << 10), ..Point::default() }
}

/// A point of `memory.load` in one round.
pub(super) fn line(kib: u64, round: u32, cpu: u32, p50: f64) -> Record {
    let summary = Summary {
        min: Some(p50 * 0.9),
        p50: Some(p50),
        p90: Some(p50 * 1.1),
        max: Some(p50 * 1.2),
        mean: Some(p50),
        std: Some(0.1),
        ..Summary::default()
    };
    Record {
        kind: Kind::BatchMean,
        rank: Some(Rank::Headline),
        cache_scope: Some(CacheScope::Private),
        round: Some(round),
        cpu: Some(cpu),
        samples: 3,
        summary: Some(summary),
        values: Some(vec![p50 * 0.9, p50, p50 * 1.2]),
        error: None,
        ..failed(kib, round, cpu, "")
    }
}

fn failed(kib: u64, round: u32, cpu: u32, kind: &str) -> Record {
    let absence = Absence { kind: kind.to_owned(), text: format!("{kind} in round {round}") };
    Record {
        round: Some(round),
        cpu: Some(cpu),
        ..Record::absent("memory.load", 1, point(kib), Unit::Ns, StoppedBy::Failed, absence)
    }
}

fn fold_lines(lines: &[Record]) -> Vec<Record> {
    fold(&header(&[("memory.load", 9)]), lines)
}

fn figure(lines: &[Record]) -> Record {
    let mut figures = fold_lines(lines);
    assert_eq!(figures.len(), 1, "{figures:?}");
    figures.remove(0)
}

fn p50(figure: &Record) -> f64 {
    figure.summary.as_ref().and_then(|summary| summary.p50).expect("a figure")
}

fn interval(figure: &Record, name: &str) -> Option<[f64; 2]> {
    figure.summary.as_ref()?.intervals.get(name).copied()
}

/// Six rounds on two CPUs that are 20 % apart.
fn six() -> Vec<Record> {
    let medians = [100.0, 120.0, 104.0, 118.0, 98.0, 125.0];
    (0..6u32).zip(medians).map(|(round, median)| line(64, round, round % 2, median)).collect()
}

#[test]
fn six_rounds_on_two_cpus_are_one_figure_with_what_they_differ_by() {
    let figure = figure(&six());
    assert!((p50(&figure) - 109.54).abs() < 1e-9);
    // As `fold_rounds` has it of the same rounds.
    assert_eq!(interval(&figure, "p50"), Some([105.32, 113.94]));
    assert!(interval(&figure, "p90").is_some() && interval(&figure, "mean").is_some());
    assert_eq!((figure.round, figure.cpu, figure.rank), (None, None, Some(Rank::Headline)));
    let rounds: Vec<(u32, u32)> = figure.rounds.iter().map(|round| (round.round, round.cpu)).collect();
    assert_eq!(rounds, [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)]);
    let spread = figure.spread.as_ref().expect("six rounds");
    let by_cpu = [(0, 100.0), (1, 120.0)].map(|(cpu, p50)| CpuFigure { cpu, p50, rounds: 3 });
    assert_eq!(spread.by_cpu, by_cpu);
    assert!((spread.rounds.expect("four degrees") - 0.029_927).abs() < 1e-6);
    assert!((spread.cpus.expect("two CPUs") - 0.127_35).abs() < 1e-6);
    let summary = figure.summary.expect("a figure");
    assert_eq!((summary.min, summary.max), (Some(88.2), Some(150.0)));
    assert_eq!(figure.samples, 18);
    assert_eq!(figure.values.map(|values| values.len()), Some(18));
}

#[test]
fn every_cpu_that_has_a_round_counts_once_after_a_death_and_after_ctrl_c() {
    // Round 2 died before this point; the user stopped in round 4.
    let mut lines = six();
    lines.remove(2);
    lines.truncate(3);
    let figure = figure(&lines);
    assert!((p50(&figure) - (100.0 * (120.0_f64 * 118.0).sqrt()).sqrt()).abs() < 0.01);
    assert!(interval(&figure, "p50").is_some(), "one CPU has two rounds");
    assert_eq!(figure.rounds.len(), 3);
    // The first round alone is a figure, without an interval and with the reason.
    let first = self::figure(&lines[..1]);
    assert_eq!((p50(&first), interval(&first, "p50")), (100.0, None));
    let refused = &first.summary.as_ref().expect("a figure").refused;
    assert!(refused["p50 interval"].starts_with("measured once"), "{refused:?}");
    assert!(first.flags.is_empty());
    // One CPU has nothing between CPUs.
    let one_cpu: Vec<Record> = (0..6).map(|round| line(64, round, 3, 100.0 + f64::from(round))).collect();
    let spread = self::figure(&one_cpu).spread.expect("six rounds");
    assert_eq!((spread.cpus, spread.by_cpu.len()), (None, 1));
}

#[test]
fn one_round_on_each_of_two_cpus_is_not_said_to_be_one_measurement() {
    let two = figure(&six()[..2]);
    assert_eq!(interval(&two, "p50"), None);
    let refused = &two.summary.as_ref().expect("a figure").refused["p50 interval"];
    assert!(refused.starts_with("measured once on each of 2 CPUs,"), "{refused}");
}

#[test]
fn an_interval_is_as_wide_as_the_step_of_the_clock() {
    let of_steps = |step: f64| {
        let line = |round| Record { resolution_ns: Some(step), ..line(64, round, round % 2, 20.0) };
        figure(&(0..6).map(line).collect::<Vec<_>>())
    };
    assert_eq!(interval(&of_steps(20.0), "p50"), Some([10.0, 30.0]));
    assert_eq!(interval(&of_steps(20.0), "p90"), Some([12.0, 32.0]));
    assert_eq!(interval(&of_steps(50.0), "p50"), Some([10.0, 60.0]), "never at zero");
    let mean = interval(&of_steps(20.0), "mean").expect("six rounds");
    assert!(mean[1] - mean[0] < 0.01, "a mean lies between steps: {mean:?}");
    let mut wide = six();
    for line in &mut wide {
        line.resolution_ns = Some(1.0);
    }
    assert_eq!(interval(&figure(&wide), "p50"), interval(&figure(&six()), "p50"));
}

#[test]
fn a_line_whose_proof_failed_is_in_no_figure_even_if_it_does_not_say_so() {
    let unproved = |line: &mut Record| {
        line.checks = vec![Check { name: "checksum".to_owned(), ok: false, detail: "1 is not 2".to_owned() }];
    };
    let mut lines = six();
    lines[3].summary.as_mut().expect("a figure").p50 = Some(9_000.0);
    unproved(&mut lines[3]);
    let of_five = figure(&lines);
    assert!(p50(&of_five) < 130.0);
    assert_eq!(of_five.flags, ["1 of 6 rounds has no figure: a proof failed: checksum (1 is not 2)"]);
    // Neither in a file of version 1, whose lines are its figures.
    let mut old = line(64, 0, 0, 9_000.0);
    (old.round, old.cpu) = (None, None);
    unproved(&mut old);
    let old = figure(&[old]);
    assert_eq!((old.summary, old.error.map(|error| error.kind)), (None, Some("proof_failed".to_owned())));
}

#[test]
fn a_round_without_a_figure_is_left_out_and_said() {
    let mut lines = six();
    lines[3] = Record {
        checks: vec![Check { name: "checksum".to_owned(), ok: false, detail: "1 is not 2".to_owned() }],
        ..failed(64, 3, 1, "proof_failed")
    };
    let of_five = figure(&lines);
    assert_eq!(of_five.flags, ["1 of 6 rounds has no figure: proof_failed in round 3"]);
    assert_eq!((of_five.rounds.len(), of_five.error), (5, None));
    assert_eq!(of_five.checks, [], "the proofs are those of the rounds that count");
    // That the time ran out is no fault of the figure's.
    lines[3] = failed(64, 3, 1, NOT_REACHED);
    assert_eq!(figure(&lines).flags, [""; 0]);
    // Where none has a figure, the first reason that is not the time's stands for all.
    let none =
        [failed(64, 0, 0, NOT_REACHED), failed(64, 1, 1, "worker_died"), failed(64, 2, 0, "proof_failed")];
    let absent = figure(&none);
    assert_eq!(absent.error.expect("no figure").text, "worker_died in round 1");
    assert_eq!((absent.round, absent.cpu, absent.summary), (None, None, None));
    assert_eq!(figure(&none[..1]).error.expect("no figure").kind, NOT_REACHED);
}

#[test]
fn points_of_a_curve_and_details_have_the_interval_of_their_kin() {
    let mut lines = Vec::new();
    for (kib, scale) in [(32, 1.0), (64, 2.0), (128, 3.0)] {
        lines.extend(six().into_iter().map(|own| {
            let p50 = own.summary.as_ref().and_then(|summary| summary.p50).expect("set");
            line(kib, own.round.expect("set"), own.cpu.expect("set"), p50 * scale)
        }));
    }
    lines.push(line(256, 2, 0, 400.0));
    lines.push(line(256, 4, 0, 410.0));
    lines.push(line(512, 3, 1, 800.0));
    let with_kin = fold_lines(&lines);
    let ends: Vec<[f64; 2]> = with_kin.iter().map(|figure| interval(figure, "p50").expect("kin")).collect();
    let half = |[lo, hi]: [f64; 2]| (hi / lo).ln() / 2.0;
    assert!(half(ends[0]) < 0.04 && half(ends[3]) < 0.06 && half(ends[4]) < 0.08, "{ends:?}");
    // RAM is no kin of a private cache.
    for own in lines.iter_mut().filter(|own| own.point == point(512)) {
        own.cache_scope = Some(CacheScope::Shared);
    }
    assert_eq!(interval(&fold_lines(&lines)[4], "p50"), None);
}

fn per_op(kib: u64, round: u32, cpu: u32, ns: f64, samples: u64) -> Record {
    let mut histogram = Histogram::new();
    for sample in 0..samples {
        // One in a hundred takes ten times as long.
        let ps = ns * 1e3 * if sample % 100 == 99 { 10.0 } else { 1.0 };
        histogram.record(whole(ps));
    }
    let mut own = line(kib, round, cpu, ns);
    own.kind = Kind::PerOp;
    own.values = None;
    own.samples = samples;
    own.channels = vec![Channel {
        name: "service".to_owned(),
        samples,
        summary: own.summary.clone().expect("set"),
        histogram: Some(histogram.encode()),
    }];
    own.histogram = Some(histogram.encode());
    own
}

#[test]
fn a_quantile_that_no_round_has_samples_for_is_taken_from_a_cpus_rounds_together_or_refused() {
    let rounds = |samples: u64| -> Vec<Record> {
        (0..6).map(|round| per_op(64, round, round % 2, 100.0, samples)).collect()
    };
    let pooled = figure(&rounds(2_000));
    let summary = pooled.summary.as_ref().expect("a figure");
    assert!((summary.p999.expect("6,000 of a CPU") - 120.0).abs() < 1e-9, "at most the largest");
    assert_eq!(summary.refused["p9999"], "6000 samples on one of the CPUs, needs 36887");
    assert!(!summary.intervals.contains_key("p999"), "no kin tell");
    let few = figure(&rounds(1_000));
    let refused = &few.summary.as_ref().expect("a figure").refused;
    assert_eq!(refused["p999"], "3000 samples on one of the CPUs, needs 3688");
    // The shape is that of all rounds.
    let count = |stored: Option<&crate::EncodedHistogram>| -> u64 {
        let decoded = stored.expect("a shape").decode().expect("our own");
        decoded.iter().map(|(_, _, count)| count).sum()
    };
    assert_eq!((pooled.samples, count(pooled.histogram.as_ref())), (12_000, 12_000));
    let channel = &pooled.channels[0];
    assert_eq!((channel.samples, count(channel.histogram.as_ref())), (12_000, 12_000));
    assert!(channel.summary.intervals.contains_key("p50"));
    assert!((summary.std.expect("many") - 89.6).abs() < 1.0, "{:?}", summary.std);
}

#[test]
fn a_quantile_of_batch_means_is_taken_from_those_that_lines_keep() {
    let rounds = |kept: usize| -> Vec<Record> {
        let each = (0..3).map(|round| Record {
            samples: 192,
            values: Some((0..kept).map(|nth| 100.0 + nth as f64).collect()),
            ..line(64, round, 0, 200.0)
        });
        each.collect()
    };
    let all = figure(&rounds(192)).summary.expect("a figure");
    assert_eq!(all.p99, Some(240.0), "of 576; no line's largest is above 240");
    let some = figure(&rounds(32)).summary.expect("a figure");
    assert_eq!((some.p99, some.refused["p99"].as_str()), (None, "96 samples kept, needs 368"));
}

#[test]
fn values_at_or_below_zero_have_an_arithmetic_mean_and_no_interval() {
    let lines = [line(64, 0, 0, -1.0), line(64, 1, 1, 5.0), line(64, 2, 0, -3.0)];
    let figure = figure(&lines);
    assert_eq!((p50(&figure), interval(&figure, "p50")), (1.5, None));
    let refused = &figure.summary.as_ref().expect("a figure").refused;
    assert_eq!(refused["p50 interval"], "only positive values have an interval");
}

#[test]
fn what_any_round_measured_is_not_missing_and_the_rest_is_one_record_a_probe() {
    let missed = |round: u32, points: &[u64], stopped_by: StoppedBy| {
        let points: Vec<Point> = points.iter().map(|kib| point(*kib)).collect();
        let points: Vec<&Point> = points.iter().collect();
        let like = Record { stopped_by, ..failed(0, round, 0, NOT_REACHED) };
        Record { round: Some(round), cpu: Some(0), ..Record::not_reached(&like, &points, 5).expect("some") }
    };
    let lines = [
        line(64, 0, 0, 5.0),
        missed(0, &[128, 256], StoppedBy::NotReached),
        line(128, 1, 1, 6.0),
        missed(1, &[64, 256, 512], StoppedBy::NotReached),
    ];
    let figures = fold_lines(&lines);
    assert_eq!(figures.len(), 3);
    let absence = figures[2].error.as_ref().expect("two are left");
    assert_eq!(
        absence.text,
        "2 of 9 points (256 KiB, ...): skipped (time); use a longer --profile or --budget"
    );
    let left = json!({"points": [{"working_set_bytes": 256 << 10}, {"working_set_bytes": 512 << 10}]});
    assert_eq!(figures[2].findings, Some(left));
    let both = [&lines[..], &[line(256, 2, 0, 7.0), line(512, 2, 0, 8.0)]].concat();
    assert!(fold_lines(&both).iter().all(|figure| figure.error.is_none()));
    let stopped = fold_lines(&[missed(2, &[64], StoppedBy::Interrupted)]);
    assert!(stopped[0].error.as_ref().expect("missing").text.ends_with("the run was stopped"));
}

#[test]
fn a_probe_that_failed_as_a_whole_in_some_rounds_says_in_how_many() {
    let died = |round| Record { point: Point::default(), ..failed(0, round, 0, "worker_died") };
    let lines = [line(64, 0, 0, 5.0), died(1), line(64, 2, 0, 5.1)];
    let figures = fold_lines(&lines);
    assert_eq!(figures[0].flags, [""; 0]);
    assert_eq!(figures[1].flags, ["in 1 of 3 rounds"]);
    assert_eq!(fold_lines(&[died(0), died(1)])[0].flags, [""; 0]);
}

#[test]
fn figures_stand_in_the_order_of_the_plan_whatever_order_their_rounds_had() {
    let of =
        |probe: &str, kib: u64, round: u32| Record { probe: probe.to_owned(), ..line(kib, round, 0, 5.0) };
    let lines = [of("b", 2, 0), of("new", 1, 0), of("a", 1, 0), of("b", 1, 0), of("a", 1, 1), of("b", 2, 1)];
    let figures = fold(&header(&[("a", 1), ("b", 2)]), &lines);
    let order: Vec<(&str, u64)> = figures
        .iter()
        .map(|figure| (figure.probe.as_str(), figure.point.working_set_bytes.expect("set") >> 10))
        .collect();
    assert_eq!(order, [("a", 1), ("b", 2), ("b", 1), ("new", 1)]);
}

#[test]
fn what_rounds_did_proved_and_met_is_added_up() {
    let round = |number: u32, tail: f64, disturbed: bool| {
        let mut own = per_op(64, number, number % 2, 100.0, 50);
        own.tail = vec![sample(2.0, 900.0), sample(1.0, tail)];
        own.tail_threshold = Some(if number == 1 { 1_000.0 } else { 500.0 });
        own.tail_dropped = 2;
        own.tail_causes = Some(TailCauses {
            level: if number == 1 { "rseq" } else { "tracepoints" }.to_owned(),
            threshold_ns: 500.0,
            causes: vec![cause("timer-tick", 1), cause("unexplained", u64::from(number))],
            parts: vec![TailPart {
                cause: "waiting".to_owned(),
                ns: 10.0,
                at_most_more_ns: (number == 1).then_some(1.0),
            }],
        });
        own.work.ops = 50;
        own.work.device_bytes = (number != 2).then_some(4096);
        own.observed =
            Observed { minor_faults: Some(1), steal_ns: (number != 0).then_some(5), ..Observed::default() };
        own.checks = vec![Check { name: "read".to_owned(), ok: true, detail: format!("round {number}") }];
        own.flags = vec![format!("depth {number}.5 of 4 was reached")];
        if disturbed {
            own.flags.push("disturbed".to_owned());
        }
        own.blocks = vec![block(100.0), block(f64::from(number).mul_add(2.0, 100.0))];
        own
    };
    let lines = [round(0, 1_100.0, true), round(1, 1_200.0, false), round(2, 700.0, true)];
    let figure = figure(&lines);
    assert_eq!(figure.tail, [sample(1.0, 1_100.0), sample(1.0, 1_200.0)]);
    assert_eq!((figure.tail_threshold, figure.tail_dropped), (Some(1_000.0), 6));
    let causes = figure.tail_causes.expect("all have them");
    assert_eq!((causes.level.as_str(), causes.threshold_ns), ("rseq", 500.0));
    assert_eq!(causes.causes, [cause("timer-tick", 3), cause("unexplained", 3)]);
    assert_eq!((causes.parts[0].ns, causes.parts[0].at_most_more_ns), (30.0, Some(1.0)));
    assert_eq!((figure.work.ops, figure.work.device_bytes), (150, None));
    assert_eq!((figure.observed.minor_faults, figure.observed.steal_ns), (Some(3), None));
    assert_eq!((figure.checks.len(), figure.checks[0].detail.as_str()), (1, "round 2"));
    assert_eq!(figure.flags, ["depth 0.5 of 4 was reached", "disturbed"]);
    assert_eq!(figure.blocks.len(), 6);
    assert!(figure.spread.expect("rounds").within.expect("two blocks a round") > 0.0);
    let quieter = self::figure(&[lines[0].clone(), lines[1].clone()]);
    assert_eq!(quieter.flags, ["depth 0.5 of 4 was reached"], "half of the rounds are not more than half");
}

fn sample(at_ns: f64, value: f64) -> TailSample {
    TailSample { at_ns, value, cause: None }
}

fn cause(name: &str, count: u64) -> TailCause {
    TailCause { cause: name.to_owned(), count, ns: count as f64, explained_ns: 0.0 }
}

fn block(p50: f64) -> BlockSummary {
    BlockSummary { at_ns: 0.0, duration_ns: 1.0, samples: 10, p50, core_ghz: None, disturbed: false }
}

#[test]
fn of_too_large_a_tail_the_slowest_stay_in_order_of_time() {
    let lines: Vec<Record> = (0..2)
        .map(|round| Record {
            tail: (0..3_000).map(|n| sample(f64::from(n), f64::from(n))).collect(),
            ..line(64, round, 0, 100.0)
        })
        .collect();
    let figure = figure(&lines);
    assert_eq!((figure.tail.len(), figure.tail_dropped), (1_000, 5_000));
    assert!(figure.tail.iter().all(|slow| slow.value >= 2_500.0));
    assert!(figure.tail.is_sorted_by(|a, b| a.at_ns <= b.at_ns));
}

#[test]
fn findings_have_the_median_of_what_was_measured_and_else_are_the_nearest_rounds() {
    let of = |round: u32, p50: f64, findings: serde_json::Value| Record {
        findings: Some(findings),
        ..line(64, round, 0, p50)
    };
    let round = |cpu: u32, rate: f64, count: u64, part: f64, more: serde_json::Value| {
        json!({
            "cpu": cpu, "rate": rate, "count": count, "parts": [{"name": "open", "ns": part}], "cpus": [[cpu]],
            "shares": [rate, 1.5], "more": more, "same": "word",
        })
    };
    let lines = [
        of(0, 10.0, round(0, 1.5, 7, 3.5, json!({"a": 1.5}))),
        of(1, 30.0, round(1, 9.5, 9, 4.5, json!({"told": "not"}))),
        of(2, 11.0, round(1, 2.5, 8, 8.5, json!({"a": 2.5}))),
    ];
    let expected = json!({
        // Of the round nearest to the median of 11: a count, a CPU, and what has another form.
        "cpu": 1, "rate": 2.5, "count": 8, "parts": [{"name": "open", "ns": 4.5}], "cpus": [[1]],
        "shares": [2.5, 1.5], "more": {"a": 2.5}, "same": "word",
    });
    assert_eq!(figure(&lines).findings, Some(expected));
    assert_eq!(figure(&lines[..1]).findings, lines[0].findings);
}

#[test]
fn an_estimate_in_findings_has_the_range_of_its_rounds_moderated_by_its_kin() {
    let of = |kib: u64, round: u32, rate: f64| Record {
        findings: Some(json!({"rates": [{"name": "read", "rate": {"value": rate}}], "count": round})),
        ..line(kib, round, round % 2, 10.0)
    };
    let mut lines: Vec<Record> = (0..4).map(|round| of(64, round, 100.0 + f64::from(round))).collect();
    let rate = |lines: &[Record]| {
        let found = fold_lines(lines).remove(0).findings.expect("rounds have them");
        crate::Estimate::read(&found["rates"][0]["rate"]).expect("an estimate")
    };
    let own = rate(&lines);
    let rounds = [vec![vec![100.0, 102.0], vec![101.0, 103.0]]];
    let alone = latlab_stats::fold_rounds(&rounds, 0.95).remove(0).expect("finite");
    let ((low, high), [own_low, own_high]) = (alone.interval.expect("rounds"), own.ends().expect("rounds"));
    for (found, expected) in [(own.value, alone.value), (own_low, low), (own_high, high)] {
        assert!((found / expected - 1.0).abs() < 1e-4, "{own:?}");
    }
    // In one round nothing tells.
    assert_eq!(rate(&lines[..1]).ends(), None);
    // Kin whose rounds differ by ten times as much do.
    for kib in [1, 2, 3] {
        lines.extend((0..4).map(|round| of(kib, round, 50.0 + 5.0 * f64::from(round))));
    }
    let among = rate(&lines).ends().expect("kin");
    assert!((among[1] / among[0]).ln() > 1.2 * (own_high / own_low).ln(), "{among:?}");
    lines.drain(1..4);
    assert!(rate(&lines).ends().is_some());
}

#[test]
fn a_file_of_version_1_keeps_its_figures_and_conclusions_without_intervals() {
    let mut old = line(64, 0, 0, 5.0);
    (old.round, old.cpu) = (None, None);
    let mut expected = old.clone();
    for summary in [&mut old, &mut expected].map(|own| own.summary.as_mut().expect("set")) {
        summary.p99 = Some(9.0);
    }
    old.summary.as_mut().expect("set").intervals.insert("p50".to_owned(), [4.0, 6.0]);
    let derived = Record::derived("memory.load", 1, Unit::Ns, json!({"levels": 3}));
    assert_eq!(fold_lines(&[old, derived.clone()]), [expected, derived]);
}

#[test]
fn a_file_that_somebody_made_up_is_folded_without_a_panic() {
    let odd = [f64::NAN, f64::INFINITY, f64::MAX, -f64::MAX, 5e-324, 0.0];
    let mut lines = Vec::new();
    for (round, value) in (0u32..).zip(odd) {
        let mut own = per_op(64, round, round % 2, 1.0, 10);
        own.summary = line(64, 0, 0, value).summary;
        own.samples = u64::MAX;
        own.work.ops = u64::MAX;
        own.tail = vec![sample(value, value), sample(0.0, 1.0)];
        own.tail_threshold = Some(value);
        own.blocks = vec![block(value), block(1.0)];
        own.tail_causes = Some(TailCauses {
            level: "magic".to_owned(),
            threshold_ns: value,
            causes: vec![cause("a", u64::MAX)],
            parts: Vec::new(),
        });
        if let Some(stored) = &mut own.histogram {
            stored.data.truncate(20);
        }
        own.findings = Some(json!({"x": value, "points": [1]}));
        lines.push(own.clone());
        // Another kind, another unit, no statistics, no round, no CPU, the same round twice.
        lines.push(line(64, round, 0, value));
        lines.push(Record { unit: Unit::BytesPerS, cpu: None, ..own.clone() });
        lines.push(Record { summary: Some(Summary::default()), histogram: None, round: None, ..own.clone() });
        lines.push(own);
    }
    let odd_points = json!({"points": [1, {"working_set_bytes": -1}, {"novel": 2}]});
    lines.push(Record { findings: Some(odd_points), ..failed(64, 0, 0, NOT_REACHED) });
    for many in 0..=lines.len() {
        for figure in fold_lines(&lines[..many]) {
            let summary = figure.summary.unwrap_or_default();
            for [lo, hi] in summary.intervals.values() {
                assert!(0.0 < *lo && lo <= hi && hi.is_finite());
            }
        }
    }
}

prop_compose! {
    fn any_line()(
        kib in 1u64..4,
        round in 0u32..7,
        cpu in 0u32..3,
        p50 in prop_oneof![8 => 0.1..1e6_f64, 1 => -5.0..0.1_f64],
        form in 0u32..8,
    ) -> Record {
        match form {
            0 => failed(kib, round, cpu, "proof_failed"),
            1 => failed(kib, round, cpu, NOT_REACHED),
            2 | 3 => per_op(kib + 10, round, cpu, f64::abs(p50), 60),
            _ => line(kib, round, cpu, p50),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_beginning_of_any_run_folds_the_same_every_time(lines in prop::collection::vec(any_line(), 0..20)) {
        for many in 0..=lines.len() {
            let figures = fold_lines(&lines[..many]);
            prop_assert_eq!(&figures, &fold_lines(&lines[..many]));
            for figure in &figures {
                prop_assert!(figure.summary.is_some() != figure.error.is_some());
                let Some(summary) = &figure.summary else { continue };
                let p50 = summary.p50.expect("rounds have one");
                let all: Vec<f64> = figure.rounds.iter().map(|round: &RoundFigure| round.p50).collect();
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let little = 1e-4 * p50.abs();
                prop_assert!(least - little <= p50 && p50 <= most + little, "{p50} of {all:?}");
                if let Some([lo, hi]) = summary.intervals.get("p50") {
                    prop_assert!(0.0 < *lo && *lo <= p50 && p50 <= *hi);
                }
            }
        }
    }
}
