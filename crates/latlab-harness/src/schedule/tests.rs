//! The scheduler on a simulated clock: every duration is planted.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use latlab_clock::SimulatedClock;
use latlab_record::{CacheScope, Check, Kind, Observed};

use super::*;
use crate::planned::MAX_BLOCKS;
use crate::{Batch, Kernel, NoReference, Plan, Proof, ReferenceReading, Result, Spec};

static SPEC: Spec = Spec::planted("test.planted");

#[expect(clippy::struct_excessive_bools, reason = "each is one planted property of its own")]
/// A probe of `points` points; an operation at point `n` takes `10 + n` ns of simulated time.
struct Planted {
    clock: SimulatedClock,
    points: u64,
    setup_ns: f64,
    block_s: f64,
    /// Of the first visit to each point besides.
    first_ns: f64,
    /// What each visit adds to the closing of the session.
    closing_ns: f64,
    rank: Rank,
    priority: fn(u64) -> u8,
    order: Rc<RefCell<Vec<u64>>>,
    stall: Option<(u64, f64)>,
    per_op: bool,
    noisy: bool,
    most_blocks: usize,
    least_blocks: usize,
    proof_holds: bool,
    takes_samples: bool,
    opened: Cell<u32>,
    /// What is asked for when the points so far are these.
    further: fn(&[u64]) -> Vec<u64>,
}

impl Planted {
    fn new(clock: &SimulatedClock, points: u64) -> Self {
        Self {
            clock: clock.clone(),
            points,
            setup_ns: 1e5,
            block_s: 3e-3,
            first_ns: 0.0,
            closing_ns: 0.0,
            rank: Rank::Detail,
            priority: |_| 0,
            order: Rc::default(),
            stall: None,
            per_op: false,
            noisy: false,
            most_blocks: MAX_BLOCKS,
            least_blocks: 0,
            proof_holds: true,
            takes_samples: true,
            opened: Cell::new(0),
            further: |_| Vec::new(),
        }
    }
}

struct Working<'p> {
    probe: &'p Planted,
    at: u64,
    ops: u64,
    rng: Rng,
}

impl Batch for Working<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let noise = if self.probe.noisy { 1.0 + self.rng.uniform() } else { 1.0 };
        self.probe.clock.advance_ns(ops as f64 * (10.0 + self.at as f64) * noise);
        ops
    }
}

impl Kernel for Working<'_> {
    type Arg = ();
    fn arg(&mut self) {}
    fn op(&mut self, (): ()) -> u64 {
        self.ops += 1;
        self.probe.clock.advance_ns(10.0 + self.at as f64);
        if let Some((at, ns)) = self.probe.stall
            && self.ops == at
        {
            self.probe.clock.advance_ns(ns);
        }
        1
    }
}

impl AnySession for Working<'_> {
    fn select(&mut self, point: &Point) -> Result<()> {
        self.at = point.working_set_bytes.unwrap_or(0);
        if !self.probe.order.borrow().contains(&self.at) {
            self.probe.clock.advance_ns(self.probe.first_ns);
        }
        self.probe.order.borrow_mut().push(self.at);
        self.probe.clock.advance_ns(self.probe.setup_ns);
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<()> {
        if !self.probe.takes_samples {
            return Ok(());
        }
        if self.probe.per_op {
            block.each(self);
        } else {
            block.batches(self);
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point, _sampled: &Sampled) -> Proof {
        let check =
            Check { name: "planted".to_owned(), ok: self.probe.proof_holds, detail: "as told".to_owned() };
        Proof {
            checks: vec![check],
            findings: Some(serde_json::json!({ "seen_at": point.working_set_bytes })),
            ..Proof::default()
        }
    }

    fn closing_s(&self) -> f64 {
        self.probe.order.borrow().len() as f64 * self.probe.closing_ns / 1e9
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let visits = self.probe.order.borrow().len() as f64;
        self.probe.clock.advance_ns(visits * self.probe.closing_ns);
    }
}

impl AnyProbe for Planted {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }
    fn plan(&self, _env: &Env) -> Plan<Point> {
        let points = (0..self.points)
            .map(|n| Planned {
                rank: self.rank,
                priority: (self.priority)(n),
                setup_s: self.setup_ns / 1e9,
                first_s: self.first_ns / 1e9,
                block_s: self.block_s,
                most_blocks: self.most_blocks,
                least_blocks: self.least_blocks,
                ..Planned::new(Point { working_set_bytes: Some(n), ..Point::default() })
            })
            .collect();
        Plan::of(points)
    }
    fn refine(&self, _env: &Env, results: &[PointResult]) -> Vec<Planned> {
        let seen: Vec<u64> =
            results.iter().filter_map(|result| result.findings.as_ref()?["seen_at"].as_u64()).collect();
        assert_eq!(seen.len(), results.len(), "each has the findings of its record");
        (self.further)(&seen)
            .into_iter()
            .map(|n| Planned::new(Point { working_set_bytes: Some(n), ..Point::default() }))
            .collect()
    }
    fn open<'env>(&'env self, _env: &'env Env, _group: &[Planned]) -> Result<Box<dyn AnySession + 'env>> {
        self.opened.set(self.opened.get() + 1);
        Ok(Box::new(Working { probe: self, at: 0, ops: 0, rng: Rng::new(7) }))
    }
}

#[derive(Default)]
struct Kept {
    records: Vec<Record>,
    visits: usize,
    cancel_after: Option<usize>,
}

impl Sink for Kept {
    fn begin(&mut self, _probe: &'static str, point: &Point, _most_bytes: u64) {
        // The first one names the opening of the session.
        self.visits += usize::from(*point != Point::default());
    }
    fn progress(&mut self, _progress: &Progress) {}
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn cancelled(&self) -> bool {
        self.cancel_after.is_some_and(|after| self.visits >= after)
    }
}

/// A probe that has run on a clock of its own, and what it left.
struct Ran {
    probe: Planted,
    env: Env,
    outcome: Outcome,
    records: Vec<Record>,
    /// Simulated time that it took.
    took_s: f64,
}

/// Runs a probe of so many points that is made otherwise by `change`, beside nothing that drifts.
fn ran(points: u64, seconds: f64, change: impl FnOnce(&mut Planted)) -> Ran {
    run_until(points, seconds, None, change)
}

/// The same, stopped by the user after so many visits.
fn run_until(
    points: u64,
    seconds: f64,
    cancel_after: Option<usize>,
    change: impl FnOnce(&mut Planted),
) -> Ran {
    let clock = SimulatedClock::ideal();
    let (env, mut probe) = (Env::planted(&clock), Planted::new(&clock, points));
    change(&mut probe);
    let mut sink = Kept { cancel_after, ..Kept::default() };
    let begun_ns = env.clock.now_ns();
    let planned = probe.points(&env);
    let deadline_ns = begun_ns + seconds * 1e9;
    let outcome = run_probe(&probe, &env, &planned, deadline_ns, &mut NoReference, &mut sink);
    let took_s = (env.clock.now_ns() - begun_ns) / 1e9;
    Ran { probe, env, outcome, records: sink.records, took_s }
}

#[test]
fn every_point_comes_out_as_planted_with_the_blocks_of_its_rank() {
    for (rank, blocks) in [(Rank::Headline, 2), (Rank::Curve, 2), (Rank::Detail, 3), (Rank::Once, MAX_BLOCKS)]
    {
        let records = ran(5, 10.0, |probe| probe.rank = rank).records;
        assert_eq!(records.len(), 5);
        for record in &records {
            let planted = 10.0 + record.point.working_set_bytes.expect("planted") as f64;
            let summary = record.summary.as_ref().expect("measured");
            assert!((summary.p50.expect("enough samples") - planted).abs() < 1e-2, "{record:?}");
            assert_eq!(record.blocks.len(), blocks);
            assert_eq!(record.stopped_by, StoppedBy::Planned);
            assert_eq!((record.rank, record.cache_scope), (Some(rank), Some(CacheScope::Shared)));
            let kept = if rank == Rank::Headline { blocks * 64 } else { 16 };
            assert_eq!(record.values.as_ref().map(Vec::len), Some(kept));
            assert!(summary.intervals.is_empty(), "one round says nothing of others");
        }
    }
}

#[test]
fn points_are_interleaved_in_a_random_order_that_the_seed_repeats() {
    let orders = [(); 2].map(|()| ran(4, 10.0, |_| ()).probe.order.take());
    assert_eq!(orders[0], orders[1]);
    let passes: Vec<HashSet<u64>> = orders[0].chunks(4).map(|pass| pass.iter().copied().collect()).collect();
    assert!(passes.iter().all(|pass| pass.len() == 4), "each pass visits each point once: {orders:?}");
    assert!(orders[0].chunks(4).any(|round| round != [0, 1, 2, 3]));
}

#[test]
fn giving_everything_back_ends_before_the_deadline_too() {
    let Ran { probe, env, .. } = ran(50, 2.0, |probe| probe.closing_ns = 30e6);
    let seconds = env.clock.now_ns() / 1e9;
    assert!(seconds <= 2.0 + 0.04, "{seconds}");
    assert!(probe.order.borrow().len() > 40, "most of it was measured with");
}

#[test]
fn what_only_the_first_visit_pays_is_reckoned_once() {
    let paid = ran(1, 1.0, |probe| probe.first_ns = 0.9e9).records;
    assert_eq!(paid[0].blocks.len(), 3, "{:?}", paid[0].error);
    let late = ran(1, 1.0, |probe| probe.first_ns = 1.1e9);
    assert!(late.probe.order.borrow().is_empty(), "not begun");
    assert!(late.took_s < 0.1);
}

#[test]
fn one_long_block_does_not_end_the_only_point() {
    let ran = ran(1, 0.5, |probe| {
        (probe.rank, probe.least_blocks) = (Rank::Once, 16);
        (probe.per_op, probe.stall) = (true, Some((30_001, 50e6)));
    });
    let blocks = ran.records[0].blocks.len();
    assert!(blocks >= 16, "{blocks}");
}

#[test]
fn a_deadline_is_kept_and_what_was_not_reached_is_said() {
    let Ran { records, took_s, .. } = ran(50, 2.0, |probe| probe.setup_ns = 80e6);
    assert!(took_s <= 2.0, "{took_s}");
    assert!(took_s > 1.5, "the time is used: {took_s}");
    let absent: Vec<&Record> = records.iter().filter(|record| record.kind == Kind::Absent).collect();
    assert_eq!(absent.len(), 1, "one record for all that was not reached");
    let points =
        absent[0].findings.as_ref().and_then(|findings| findings["points"].as_array()).expect("a list");
    assert_eq!(points.len() + records.len() - 1, 50, "each planned point is measured or said to be missing");
    let names = |n: u64| points.iter().any(|point| point["working_set_bytes"] == n);
    assert!(names(49) && !names(0), "the last of the list are given up first: {points:?}");
    assert!(records.len() > 1);
}

#[test]
fn what_a_probe_would_like_to_see_closer_is_handed_on_but_for_what_is_known() {
    let Ran { probe, outcome, .. } = ran(3, 10.0, |probe| {
        probe.rank = Rank::Curve;
        probe.further = |seen| match seen {
            [0, 1, 2] => vec![2, 8, 9],
            _ => Vec::new(),
        };
    });
    let further = outcome.further.iter();
    assert_eq!(
        further.map(|planned| planned.point.working_set_bytes).collect::<Vec<_>>(),
        [Some(8), Some(9)]
    );
    assert!(!probe.order.borrow().contains(&8), "in the rounds to come");
}

#[test]
fn the_first_priority_is_complete_before_the_second_begins() {
    let order = ran(6, 10.0, |probe| probe.priority = |n| u8::from(n >= 3)).probe.order.take();
    let first_of_second = order.iter().position(|n| *n >= 3).expect("the second priority was reached");
    assert_eq!(first_of_second, 3, "each of the first once: {order:?}");
}

#[test]
fn what_uses_something_up_gets_no_more_blocks_than_were_planned() {
    for (most_blocks, expected) in [(1, 1), (7, 7), (1_000, MAX_BLOCKS)] {
        let records = ran(2, 60.0, |probe| {
            // Long enough to set up that a visit takes several blocks.
            (probe.rank, probe.setup_ns, probe.most_blocks) = (Rank::Once, 50e6, most_blocks);
        })
        .records;
        assert_eq!(records.len(), 2);
        for record in &records {
            assert_eq!(record.blocks.len(), expected);
            assert_eq!(record.error, None);
        }
    }
}

#[test]
fn what_is_about_how_things_go_on_has_the_blocks_that_it_needs() {
    for (least_blocks, blocks) in [(0, 3), (15, 15), (1_000, MAX_BLOCKS)] {
        let records = ran(1, 60.0, |probe| probe.least_blocks = least_blocks).records;
        assert_eq!(records[0].blocks.len(), blocks);
    }
}

#[test]
fn a_planted_stall_lands_in_the_tail_with_its_time_stamp() {
    let stalled = |probe: &mut Planted| (probe.per_op, probe.stall) = (true, Some((30_001, 50_000.0)));
    let record = ran(1, 10.0, stalled).records.remove(0);
    assert_eq!(record.kind, Kind::PerOp);
    assert_eq!(record.tail.len(), 1, "{:?}", record.tail);
    assert!((record.tail[0].value - 50_010.0).abs() < 10.0, "{:?}", record.tail);
    let causes = record.tail_causes.as_ref().expect("a tail has causes");
    assert_eq!((causes.causes.len(), causes.causes[0].count), (1, 1));
    assert_eq!(causes.causes[0].cause, "unexplained", "nothing explains what was planted");
    let second = &record.blocks[1];
    let into_block = record.tail[0].at_ns - second.at_ns;
    assert!(
        (into_block - 10_000.0 * 10.0).abs() < 2_000.0,
        "operation 10,001 of the second block: {into_block}"
    );
    let max = record.summary.as_ref().and_then(|summary| summary.max).expect("measured");
    assert!((max - 50_010.0).abs() < 10.0);
}

#[test]
fn stopping_keeps_what_was_measured() {
    let Ran { outcome, records, .. } = run_until(3, 10.0, Some(4), |_| ());
    assert!(outcome.cancelled);
    assert_eq!(records.len(), 3);
    assert!(records.iter().any(|record| record.stopped_by == StoppedBy::Interrupted));
}

#[test]
fn a_failed_proof_leaves_no_headline_figure() {
    let record = ran(1, 10.0, |probe| probe.proof_holds = false).records.remove(0);
    assert_eq!(record.summary, None);
    assert!(
        record
            .error
            .as_ref()
            .is_some_and(|error| error.kind == "proof_failed" && error.text.contains("planted"))
    );
}

/// A reference that drifts between two moments of simulated time.
struct DriftsBetween(SimulatedClock, f64, f64);

impl Reference for DriftsBetween {
    fn read(&mut self) -> Option<ReferenceReading> {
        let now = self.0.true_ns();
        let shared_ns = if now >= self.1 && now < self.2 { 134.0 } else { 11.0 };
        Some(ReferenceReading { private_ns: 3.7, shared_ns })
    }
}

/// Ten points of this cache scope, measured in turns for 6 s, of which the reference is drifted for two.
fn beside_a_drift(scope: CacheScope) -> (Outcome, Kept) {
    let clock = SimulatedClock::ideal();
    let env = Env::planted(&clock);
    let mut probe = Planted::new(&clock, 10);
    probe.rank = Rank::Headline;
    // Short enough that a visit takes one block.
    probe.setup_ns = 200e6;
    probe.block_s = 0.1;
    let mut sink = Kept::default();
    let mut reference = DriftsBetween(clock.clone(), 2e9, 4e9);
    let deadline = env.clock.now_ns() + 60e9;
    let mut planned = probe.points(&env);
    for point in &mut planned {
        point.cache_scope = scope;
    }
    let outcome = run_probe(&probe, &env, &planned, deadline, &mut reference, &mut sink);
    (outcome, sink)
}

#[test]
fn blocks_beside_a_drifted_reference_are_marked_and_do_not_count() {
    let (outcome, sink) = beside_a_drift(CacheScope::Shared);
    assert!(outcome.disturbed_blocks > 0);
    let mut in_part = 0;
    for record in &sink.records {
        let quiet = record.blocks.iter().filter(|block| !block.disturbed).count();
        let used = if quiet > 0 { quiet } else { record.blocks.len() };
        in_part += usize::from(quiet > 0 && quiet < record.blocks.len());
        assert_eq!(record.values.as_ref().map(Vec::len), Some(64 * used));
        assert_eq!(record.flags.contains(&"disturbed".to_owned()), quiet == 0);
    }
    assert!(in_part > 0, "of some points only the quiet blocks count");
}

#[test]
fn no_block_is_left_out_of_a_figure_that_disturbances_are_part_of() {
    let (outcome, sink) = beside_a_drift(CacheScope::Disturbances);
    assert_eq!(outcome.disturbed_blocks, 0);
    assert_eq!(sink.records.len(), 10);
    for record in &sink.records {
        assert_eq!(record.values.as_ref().map(Vec::len), Some(64 * record.blocks.len()));
    }
}

/// The same, in a run that has seen two quiet moments before.
struct Informed(DriftsBetween);

impl Reference for Informed {
    fn read(&mut self) -> Option<ReferenceReading> {
        self.0.read()
    }
    fn earlier(&self) -> Vec<(f64, ReferenceReading)> {
        let quiet = ReferenceReading { private_ns: 3.7, shared_ns: 11.0 };
        vec![(-2e9, quiet), (-1e9, quiet)]
    }
}

#[test]
fn a_neighbour_who_came_after_the_last_reading_is_noticed_before_a_record_is_handed_over() {
    let clock = SimulatedClock::ideal();
    let env = Env::planted(&clock);
    let probe = Planted::new(&clock, 1);
    let mut sink = Kept::default();
    // The six blocks take 8 ms: all of them before the next regular reading, a second after the first.
    let arrival = clock.true_ns() + 1e5;
    let mut reference = Informed(DriftsBetween(clock.clone(), arrival, f64::INFINITY));
    let deadline = env.clock.now_ns() + 5e9;
    let planned = probe.points(&env);
    run_probe(&probe, &env, &planned, deadline, &mut reference, &mut sink);
    let record = &sink.records[0];
    assert_eq!(record.blocks.len(), 4, "one more than its rank has");
    assert!(record.flags.contains(&"disturbed".to_owned()), "{:?}", record.flags);
}

/// Readings of a run, counted; the last one before the probe was taken at this time.
struct Counted(f64, Vec<f64>, SimulatedClock);

impl Reference for Counted {
    fn read(&mut self) -> Option<ReferenceReading> {
        self.1.push(self.2.true_ns());
        Some(ReferenceReading { private_ns: 3.7, shared_ns: 11.0 })
    }
    fn earlier(&self) -> Vec<(f64, ReferenceReading)> {
        vec![(self.0, ReferenceReading { private_ns: 3.7, shared_ns: 11.0 })]
    }
}

#[test]
fn the_last_reading_of_a_probe_is_the_first_of_the_next_where_it_is_not_old() {
    for (age_ns, readings) in [(1e6, 1), (2e9, 2)] {
        let clock = SimulatedClock::ideal();
        let env = Env::planted(&clock);
        let probe = Planted::new(&clock, 1);
        let mut sink = Kept::default();
        let mut reference = Counted(env.clock.now_ns() - age_ns, Vec::new(), clock.clone());
        let deadline = env.clock.now_ns() + 5e9;
        let planned = probe.points(&env);
        run_probe(&probe, &env, &planned, deadline, &mut reference, &mut sink);
        let block = &sink.records[0].blocks[0];
        assert_eq!(reference.1.len(), readings, "its blocks take some milliseconds");
        assert!(reference.1.last().is_some_and(|last| *last >= block.at_ns + block.duration_ns));
    }
}

#[test]
fn nothing_is_opened_after_the_deadline_or_the_users_stop() {
    for (seconds, cancel_after) in [(-1.0, None), (0.0, None), (10.0, Some(0))] {
        let Ran { probe, outcome, records, .. } = run_until(3, seconds, cancel_after, |_| ());
        assert_eq!(probe.opened.get(), 0);
        assert_eq!(outcome.cancelled, cancel_after.is_some());
        let error = records[0].error.as_ref().expect("absent");
        assert!(error.text.starts_with("3 of 3 points"), "{}", error.text);
    }
}

#[test]
fn nothing_is_looked_at_closer_because_of_points_whose_proof_failed() {
    for (proof_holds, further) in [(true, 1), (false, 0)] {
        let ran = ran(2, 10.0, |probe| {
            (probe.rank, probe.proof_holds) = (Rank::Curve, proof_holds);
            probe.further = |seen| if seen.is_empty() { Vec::new() } else { vec![8] };
        });
        assert_eq!(ran.outcome.further.len(), further);
    }
}

#[test]
fn a_block_without_a_sample_is_a_failure_and_no_zero() {
    let records = ran(1, 10.0, |probe| probe.takes_samples = false).records;
    assert_eq!((records[0].kind, records[0].stopped_by), (Kind::Absent, StoppedBy::Failed));
}

fn windows_block(waited_ns: u64, stolen_ns: u64) -> BlockData {
    BlockData {
        duration_ns: 2e6,
        observed: Observed {
            run_queue_delay_ns: Some(waited_ns),
            steal_ns: Some(stolen_ns),
            ..Observed::default()
        },
        values: vec![1.0],
        ..BlockData::default()
    }
}

#[test]
fn a_block_of_windows_that_lost_a_fifth_of_its_time_is_disturbed_and_a_preempted_operation_is_the_tail() {
    for (waited_ns, stolen_ns, lost) in [
        (1_000_000, 0, true),
        (100_000, 0, false),
        // Stolen time counts from one tick of the kernel on.
        (0, 1_000_000, false),
        (0, 10_000_000, true),
    ] {
        assert_eq!(lost_its_cpu(&windows_block(waited_ns, stolen_ns)), lost, "{waited_ns}, {stolen_ns}");
    }
    let block = BlockData { histogram: Some(latlab_record::Histogram::new()), ..windows_block(1_900_000, 0) };
    assert!(!lost_its_cpu(&block));
}
