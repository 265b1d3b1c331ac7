//! The one scheduler of a round: what is measured when, and when it is enough.
//!
//! ```text
//! group by group (a group shares one session), of the points that are dealt to this round:
//! least     rank by rank and priority by priority, in random order, until every point has its least number of blocks;
//!           what cannot get them in the time left is given up, last of the list first
//! wanted    passes over all points until each has the blocks that its rank wants, or the time is up
//! ```
//! Passes interleave the points, so a slow second of the machine falls on all of them alike. A reference is
//! read about once a second; blocks beside a reading that had drifted are marked, and a point whose blocks
//! all were gets one more. What a figure's rounds agree on is judged where they are folded, not here.

use latlab_clock::Source;
use latlab_observe::{Observer, is_pinned_to};
use latlab_record::{Absence, Histogram, Point, Rank, Record, StoppedBy, keep_values};
use latlab_stats::rng::Rng;

use crate::causes::Listening;
use crate::ramp::Ramp;
use crate::reference::Drift;
use crate::samples::{self, BlockData, Sampled};
use crate::summary::{self, Measured};
use crate::{
    AnyProbe, AnySession, Block, CacheScope, Env, Planned, PointResult, ProbeError, Proof, Reference, Result,
    Spec, Support,
};

/// Seconds between two readings of the reference.
const REFERENCE_EVERY_S: f64 = 1.0;
/// While the reference is drifted it is read more often, to know when the disturbance ended.
const REFERENCE_EVERY_DRIFTED_S: f64 = 0.25;
/// Blocks taken in one visit where selecting a point costs far more than a block.
const MAX_VISIT_BLOCKS: usize = 3;

/// A block in which the thread was kept from its CPU for more than this share is disturbed.
const LOST_SHARE: f64 = 0.2;
/// Step of the kernel's count of stolen time, ns.
const STEAL_TICK_NS: f64 = 10e6;

/// Where a run stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Probe that is measuring.
    pub probe: &'static str,
    /// Point that was just visited.
    pub point: Point,
    /// Its median so far, in the probe's unit.
    pub p50: Option<f64>,
}

/// Takes what the scheduler has to say.
pub trait Sink {
    /// A point is about to be visited, which writes at most so many bytes; if the process dies now, it was
    /// this one.
    fn begin(&mut self, probe: &'static str, point: &Point, most_bytes: u64);
    /// A visit ended.
    fn progress(&mut self, progress: &Progress);
    /// A record is complete.
    fn record(&mut self, record: Record);
    /// Whether the user wants the run to end.
    fn cancelled(&self) -> bool;
}

/// What became of a probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether the user ended it.
    pub cancelled: bool,
    /// Blocks that were marked as disturbed.
    pub disturbed_blocks: u64,
    /// What the probe would like to measure besides in the rounds to come, given what it found: sizes around
    /// a knee.
    pub further: Vec<Planned>,
}

enum State {
    Open,
    Done(StoppedBy),
    Failed(String),
}

struct PointState {
    planned: Planned,
    blocks: Vec<BlockData>,
    ops_per_window: Option<u64>,
    tail_threshold_ns: f64,
    /// Of one visit, from the plan until the first one tells.
    setup_s: f64,
    block_s: f64,
    state: State,
    /// Whether its record was handed over.
    recorded: bool,
}

impl PointState {
    fn new(planned: Planned) -> Self {
        let (setup_s, block_s) = (planned.setup_s, planned.block_s);
        Self {
            planned,
            blocks: Vec::new(),
            ops_per_window: None,
            tail_threshold_ns: 0.0,
            setup_s,
            block_s,
            state: State::Open,
            recorded: false,
        }
    }

    fn quiet_blocks(&self) -> usize {
        self.blocks.iter().filter(|block| !block.disturbed).count()
    }

    /// Whether it has as many blocks as the round is to give it before others get more.
    fn has_least(&self) -> bool {
        self.blocks.len() >= self.planned.least_blocks()
    }

    fn is_enough(&self) -> bool {
        let enough =
            if self.quiet_blocks() == 0 { self.planned.round_blocks() } else { self.planned.wanted_blocks() };
        self.blocks.len() >= enough
    }

    fn missing(&self) -> usize {
        self.planned.least_blocks().saturating_sub(self.blocks.len())
    }

    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    fn visit_blocks(&self) -> usize {
        if self.setup_s > 4.0 * self.block_s { MAX_VISIT_BLOCKS.min(self.planned.wanted_blocks()) } else { 1 }
    }

    fn visit_s(&self) -> f64 {
        self.setup_s + self.visit_blocks() as f64 * self.block_s
    }

    /// What only the first visit pays for.
    fn first_s(&self) -> f64 {
        if self.blocks.is_empty() { self.planned.first_s } else { 0.0 }
    }

    fn to_least_s(&self) -> f64 {
        self.first_s() + self.missing().div_ceil(self.visit_blocks()) as f64 * self.visit_s()
    }

    /// Its place in the order of what is given up last.
    fn importance(&self) -> (Rank, u8) {
        (self.planned.rank, self.planned.priority)
    }
}

/// Measures these points of one probe, as many as it can until `deadline_ns` (on the run's clock).
pub fn run_probe(
    probe: &dyn AnyProbe,
    env: &Env,
    planned: &[Planned],
    deadline_ns: f64,
    reference: &mut dyn Reference,
    sink: &mut dyn Sink,
) -> Outcome {
    let spec = probe.spec();
    let degraded = match probe.supports(env) {
        Support::No(reason) => {
            sink.record(absent(spec, Point::default(), StoppedBy::Unsupported, reason));
            return Outcome::default();
        }
        Support::Degraded(reason) => Some(format!("degraded: {reason}")),
        Support::Yes => None,
    };
    let mut groups: Vec<u16> = planned.iter().map(|planned| planned.group).collect();
    groups.sort_unstable();
    groups.dedup();

    let drift = Drift::after(reference.earlier());
    let mut run = Run {
        probe,
        env,
        reference,
        sink,
        drift,
        observer: None,
        listening: Listening::of_this_thread(env, spec.operations),
        ramp: Ramp::default(),
        degraded,
        results: Vec::new(),
    };
    // A simulated clock knows nothing of the real time that this thread loses.
    if !matches!(env.clock.source, Source::Simulated(_)) {
        run.observer = Some(Observer::of_this_thread(is_pinned_to(env.home_cpu).then_some(env.home_cpu)));
    }
    let mut outcome = Outcome::default();
    for (index, group) in groups.iter().enumerate() {
        let members: Vec<Planned> =
            planned.iter().filter(|planned| planned.group == *group).cloned().collect();
        let now = env.clock.now_ns();
        outcome.cancelled |= run.sink.cancelled();
        if outcome.cancelled || now >= deadline_ns {
            // Nothing is taken for what will not be measured.
            let missed: Vec<&Point> = members.iter().map(|member| &member.point).collect();
            if let Some(record) = not_reached(spec, &missed, members.len(), outcome.cancelled) {
                run.sink.record(record);
            }
            continue;
        }
        let group_deadline = now + (deadline_ns - now) / (groups.len() - index) as f64;
        // Taking memory is what a process dies of: that too must have a name.
        let laid_out_bytes = members.iter().map(|member| member.laid_out_bytes).sum();
        run.sink.begin(spec.id, &Point::default(), laid_out_bytes);
        match probe.open(env, &members) {
            Ok(mut session) => {
                let ended = run.group(session.as_mut(), members, group_deadline);
                outcome.disturbed_blocks += ended.disturbed_blocks;
                outcome.cancelled |= ended.cancelled;
            }
            Err(error) => {
                for member in members {
                    run.sink.record(absent(spec, member.point, StoppedBy::Failed, error.to_string()));
                }
            }
        }
    }
    // The few points that every round has show no knee.
    if planned.iter().any(|planned| planned.rank == Rank::Curve) {
        let further = probe.refine(env, &run.results).into_iter();
        outcome.further =
            further.filter(|further| planned.iter().all(|known| known.point != further.point)).collect();
    }
    outcome
}

/// The record of a point without a figure; its kind follows from why.
fn absent(spec: &Spec, point: Point, stopped_by: StoppedBy, text: String) -> Record {
    let kind = match stopped_by {
        StoppedBy::Unsupported => "unsupported",
        StoppedBy::Failed => "failed",
        _ => "not_reached",
    };
    let absence = Absence { kind: kind.to_owned(), text };
    Record::absent(spec.id, spec.method_version, point, spec.unit, stopped_by, absence)
}

/// One record for all points of a group that were never visited.
fn not_reached(spec: &Spec, missed: &[&Point], planned: usize, cancelled: bool) -> Option<Record> {
    let stopped_by = if cancelled { StoppedBy::Interrupted } else { StoppedBy::NotReached };
    let like = absent(spec, Point::default(), stopped_by, String::new());
    Record::not_reached(&like, missed, planned)
}

/// One block of each point in turn, in one session, with its number of samples and its proof: for tests of a
/// probe's work, which ask for no figure.
///
/// # Panics
/// When the probe cannot do one of the points.
pub fn measure_once(probe: &dyn AnyProbe, env: &Env, points: &[Planned]) -> Vec<(u64, Proof)> {
    let what = probe.spec().id;
    let mut session = probe.open(env, points).unwrap_or_else(|error| panic!("{what}: {error}"));
    points
        .iter()
        .map(|planned| {
            let point = &planned.point;
            session.select(point).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (mut ops, mut threshold) = (None, 0.0);
            let mut block = Block::new(&env.clock, &mut ops, &mut threshold);
            session.block(&mut block).unwrap_or_else(|error| panic!("{what}: {error}"));
            let data = block.into_data();
            let samples = data.histogram.as_ref().map_or(data.values.len() as u64, Histogram::total);
            let summary = summary::of(std::slice::from_ref(&data));
            (samples, session.proof(point, &Sampled::of(&[&data], &summary)))
        })
        .collect()
}

struct Run<'a> {
    probe: &'a dyn AnyProbe,
    env: &'a Env,
    reference: &'a mut dyn Reference,
    sink: &'a mut dyn Sink,
    drift: Drift,
    observer: Option<Observer>,
    listening: Listening,
    ramp: Ramp,
    degraded: Option<String>,
    /// Of all groups so far.
    results: Vec<PointResult>,
}

impl Run<'_> {
    fn group(&mut self, session: &mut dyn AnySession, members: Vec<Planned>, deadline_ns: f64) -> Outcome {
        let mut states: Vec<PointState> = members.into_iter().map(PointState::new).collect();
        let mut rng =
            Rng::new(self.env.seed(u64::from(states.first().map_or(0, |state| state.planned.group))));
        let mut cancelled = false;
        'passes: loop {
            self.mark_disturbed(&mut states);
            self.close_what_is_enough(session, &mut states);
            let mut pass = match next(&states) {
                Some(importance) => {
                    let ends_ns = deadline_ns - session.closing_s() * 1e9;
                    self.give_up_what_does_not_fit(&mut states, importance, ends_ns);
                    let pass = due(&states, importance);
                    if pass.is_empty() {
                        continue;
                    }
                    pass
                }
                None => indices(&states, PointState::is_open),
            };
            if pass.is_empty() {
                break;
            }
            rng.shuffle(&mut pass);
            for index in pass {
                if self.sink.cancelled() {
                    cancelled = true;
                    break 'passes;
                }
                let left_s = (deadline_ns - self.env.clock.now_ns()) / 1e9 - session.closing_s();
                // The visit that would overrun is not begun.
                if left_s < states[index].first_s() + states[index].visit_s() {
                    let enough = states[index].has_least();
                    states[index].state =
                        State::Done(if enough { StoppedBy::Deadline } else { StoppedBy::NotReached });
                    continue;
                }
                self.visit(session, &mut states[index]);
                if let State::Failed(_) = states[index].state {
                    self.finish(session, &mut states[index], StoppedBy::Failed);
                }
            }
        }
        if self.has_blocks_after_the_reference(&states) {
            self.read_reference(true);
        }
        self.mark_disturbed(&mut states);
        let fallback = if cancelled { StoppedBy::Interrupted } else { StoppedBy::Deadline };
        let mut outcome = Outcome { cancelled, ..Outcome::default() };
        self.say_what_was_not_reached(&mut states, cancelled);
        for state in &mut states {
            outcome.disturbed_blocks += state.blocks.iter().filter(|block| block.disturbed).count() as u64;
            self.finish(session, state, fallback);
        }
        outcome
    }

    fn visit(&mut self, session: &mut dyn AnySession, state: &mut PointState) {
        self.read_reference(false);
        let spec = self.probe.spec();
        let most_bytes = state.planned.round_bytes();
        self.sink.begin(spec.id, &state.planned.point, most_bytes);
        let begun = self.env.clock.now_ns();
        if let Err(error) = session.select(&state.planned.point) {
            state.state = State::Failed(error.to_string());
            return;
        }
        if state.planned.cache_scope == CacheScope::First {
            self.ramp.settle(&self.env.clock);
        }
        let selected = self.env.clock.now_ns();
        let setup_s = (selected - begun) / 1e9;
        // The first visit builds what later ones may find; the plan knows what those cost.
        state.setup_s = if state.blocks.is_empty() { setup_s.min(2.0 * state.setup_s) } else { setup_s };
        let left = state.planned.wanted_blocks().saturating_sub(state.blocks.len());
        let blocks = state.visit_blocks().min(left.max(1));
        for _ in 0..blocks {
            match self.block(session, state) {
                Ok(data) => {
                    state.block_s = data.duration_ns / 1e9;
                    state.blocks.push(data);
                }
                Err(error) => {
                    state.state = State::Failed(error.to_string());
                    return;
                }
            }
        }
        let p50 = state.blocks.last().map(BlockData::p50);
        self.sink.progress(&Progress { probe: spec.id, point: state.planned.point.clone(), p50 });
    }

    fn block(&mut self, session: &mut dyn AnySession, state: &mut PointState) -> Result<BlockData> {
        let clock = &self.env.clock;
        self.listening.begin(clock);
        let before = self.observer.as_ref().map(Observer::read);
        let begun = clock.now_ns();
        let mut block = Block::new(clock, &mut state.ops_per_window, &mut state.tail_threshold_ns);
        if self.listening.listens() {
            block = block.heard_by(&mut self.listening);
        }
        session.block(&mut block)?;
        let mut data = block.into_data();
        if data.values.is_empty() && data.histogram.is_none() {
            return Err(ProbeError::Proof("a block came back without a sample".to_owned()));
        }
        data.at_ns = begun;
        data.duration_ns = clock.now_ns() - begun;
        if let (Some(observer), Some(before)) = (&self.observer, before) {
            data.observed = observer.read().since(&before);
            if let Some(elsewhere) = &data.observed_elsewhere {
                data.observed = latlab_observe::sum(&data.observed, elsewhere);
            }
            data.core_ghz = latlab_clock::core_frequency_now(clock);
        }
        self.listening.end(clock, &mut data);
        Ok(data)
    }

    fn read_reference(&mut self, now: bool) {
        let at_ns = self.env.clock.now_ns();
        let every_s = if self.drift.is_drifted() { REFERENCE_EVERY_DRIFTED_S } else { REFERENCE_EVERY_S };
        let due = self.drift.last_ns().is_none_or(|last| at_ns - last >= every_s * 1e9);
        if (now || due)
            && let Some(reading) = self.reference.read()
        {
            self.drift.push(at_ns, reading);
        }
    }

    /// Whether one of these has a block that no reading follows yet.
    fn has_blocks_after_the_reference<'s>(&self, states: impl IntoIterator<Item = &'s PointState>) -> bool {
        let mut blocks = states.into_iter().filter_map(|state| state.blocks.last());
        blocks.any(|block| self.drift.last_ns().is_none_or(|last| last < block.at_ns + block.duration_ns))
    }

    /// Marks the blocks beside a drifted reading, and those whose thread was kept from its CPU.
    fn mark_disturbed(&self, states: &mut [PointState]) {
        for state in states {
            let leaves_private = state.planned.cache_scope == CacheScope::Shared;
            for block in &mut state.blocks {
                let (from_ns, to_ns) = (block.at_ns, block.at_ns + block.duration_ns);
                block.disturbed = state.planned.cache_scope != CacheScope::Disturbances
                    && (lost_its_cpu(block) || self.drift.disturbs(from_ns, to_ns, leaves_private));
            }
        }
    }

    /// Gives up the points of one importance that cannot all get their least blocks, last of the list first.
    fn give_up_what_does_not_fit(&self, states: &mut [PointState], importance: (Rank, u8), deadline_ns: f64) {
        let left_s = (deadline_ns - self.env.clock.now_ns()) / 1e9;
        let waiting = due(states, importance);
        let mut need_s: f64 = waiting.iter().map(|index| states[*index].to_least_s()).sum();
        let first = waiting.first().copied();
        for index in waiting.into_iter().rev() {
            // Nobody gains by giving up one that has begun and is the last: it has what there is time for.
            let alone = first == Some(index) && !states[index].blocks.is_empty();
            if need_s <= left_s || alone {
                break;
            }
            need_s -= states[index].to_least_s();
            states[index].state = State::Done(StoppedBy::NotReached);
        }
    }

    /// Hands over what has all of its blocks, at once: what was measured survives a crash. What is judged
    /// better with the blocks of all is handed over with the last of them.
    fn close_what_is_enough(&mut self, session: &mut dyn AnySession, states: &mut [PointState]) {
        let mut enough = complete(states);
        if self.has_blocks_after_the_reference(enough.iter().map(|index| &states[*index])) {
            // A record cannot be called back: who came after the last reading must be noticed before it is
            // handed over.
            self.read_reference(true);
            self.mark_disturbed(states);
            enough = complete(states);
        }
        for index in enough {
            states[index].state = State::Done(StoppedBy::Planned);
            if !self.listening.needs_all_blocks() {
                self.finish(session, &mut states[index], StoppedBy::Planned);
            }
        }
    }

    fn say_what_was_not_reached(&mut self, states: &mut [PointState], cancelled: bool) {
        let all = states.len();
        let mut missed = Vec::new();
        for state in states.iter_mut() {
            if state.blocks.is_empty() && !state.recorded && !matches!(state.state, State::Failed(_)) {
                state.recorded = true;
                missed.push(&state.planned.point);
            }
        }
        if let Some(record) = not_reached(self.probe.spec(), &missed, all, cancelled) {
            self.sink.record(record);
        }
    }

    /// Hands the point's record over, once.
    fn finish(&mut self, session: &mut dyn AnySession, state: &mut PointState, fallback: StoppedBy) {
        if std::mem::replace(&mut state.recorded, true) {
            return;
        }
        let spec = self.probe.spec();
        let point = state.planned.point.clone();
        let (rank, scope) = (state.planned.rank, state.planned.cache_scope);
        let record = match (&state.state, state.blocks.is_empty()) {
            (State::Failed(text), _) => absent(spec, point, StoppedBy::Failed, text.clone()),
            (State::Done(StoppedBy::NotReached), true) => {
                absent(spec, point, StoppedBy::NotReached, "skipped (time): not enough samples".to_owned())
            }
            (_, true) => absent(spec, point, StoppedBy::Failed, "its blocks hold no samples".to_owned()),
            (State::Open | State::Done(_), false) => {
                let stopped_by = match state.state {
                    State::Done(reason) => reason,
                    _ => fallback,
                };
                session.leave_out(&point, &samples::left_out(&state.blocks));
                let summary = summary::of(&state.blocks);
                let sampled = Sampled::of(&samples::counted(&state.blocks).0, &summary);
                let mut proof = session.proof(&point, &sampled);
                proof.flags.extend(self.degraded.clone());
                let judged = match proof.causes.take() {
                    Some(known) => known.judged(&mut state.blocks, state.tail_threshold_ns),
                    None => self.listening.judge(&self.env.clock, &mut state.blocks, state.tail_threshold_ns),
                };
                summary::record(Measured {
                    spec,
                    point,
                    blocks: &state.blocks,
                    summary,
                    proof,
                    ops_per_window: state.ops_per_window,
                    tail_threshold_ns: judged.threshold_ns,
                    tail_causes: judged.causes,
                    stopped_by,
                    facts: &self.env.clock.facts,
                })
            }
        };
        self.results.extend(PointResult::of(&record));
        self.sink.record(Record {
            rank: Some(rank),
            cache_scope: Some(scope),
            values: record.values.map(|values| keep_values(values, rank)),
            ..record
        });
    }
}

/// Whether the thread was kept from its CPU for so long that the block's windows are about that.
///
/// Single operations are never judged by it: there a preempted operation is the tail, which is asked for. Nor
/// is a workers' block, or one whose work is to wait: this thread is off its CPU while others work. A session
/// that watches those others says itself when one of them was kept from its CPU.
fn lost_its_cpu(block: &BlockData) -> bool {
    if block.partner_disturbed {
        return true;
    }
    if block.histogram.is_some() || !block.members.is_empty() || block.waits {
        return false;
    }
    let observed = &block.observed;
    let waited = observed.run_queue_delay_ns.unwrap_or(0) + observed.throttled_ns.unwrap_or(0);
    let stolen = observed.steal_ns.unwrap_or(0);
    // Steal is counted in ticks of 10 ms: below a tick's worth it says nothing of a block.
    waited as f64 > LOST_SHARE * block.duration_ns
        || stolen as f64 > LOST_SHARE * block.duration_ns.max(STEAL_TICK_NS)
}

/// The most important rank and priority with a point that still lacks blocks.
fn next(states: &[PointState]) -> Option<(Rank, u8)> {
    states.iter().filter(|state| state.is_open() && !state.has_least()).map(PointState::importance).min()
}

fn due(states: &[PointState], importance: (Rank, u8)) -> Vec<usize> {
    indices(states, |state| state.is_open() && !state.has_least() && state.importance() == importance)
}

/// The open points that need no more blocks.
fn complete(states: &[PointState]) -> Vec<usize> {
    indices(states, |state| state.is_open() && state.is_enough())
}

fn indices(states: &[PointState], wanted: impl Fn(&PointState) -> bool) -> Vec<usize> {
    states.iter().enumerate().filter(|(_, state)| wanted(state)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests;
