//! Whether causes are found on this machine: known disturbances are made, and what was found is compared with
//! what was done.
//!
//! Each kind is made in a phase of its own, at random times: a thread on the same CPU wakes up and runs for a
//! while; fresh pages are touched; another CPU asks this one for a memory barrier, which comes as an
//! interprocessor interrupt; the loop itself is kept busy for a while, which nothing explains and which must
//! therefore come out unexplained.
//!
//! On a busy machine not all that is tried comes about: a thread that has lost its CPU to others cannot be
//! switched out, and while the records are fetched nobody listens; and what comes due while it is away is not
//! made up for, as it would then come at the ticks. What is tried and could not be found by anybody is not
//! called injected, and is counted with its reason. That is decided by the loop's own stamps and those of
//! whoever disturbs, never by the evidence that is on trial.
//!
//! A machine makes switches, faults and interrupts of its own meanwhile. Those that were reported and not
//! injected count as right only as far as the kernel's own counters (switches and faults of the thread,
//! interrupts of the CPU) grew by more than was injected, turn by turn: what the kernel counted in one
//! quarter of a second confirms nothing in another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use latlab_clock::Clock;
use latlab_stats::count;
use latlab_stats::rng::Rng;
use serde::Serialize;

use crate::attribute::{Attributed, Attribution, Context, attribute};
use crate::cause::{Cause, Sample};
use crate::counters::function_calls_now;
use crate::gaps::{Disturber, Quiet};
use crate::level::{Level, Rung};
use crate::live::disturb::{self, FreshPages};
use crate::live::pin_to;
use crate::noise::{Listener, NoiseError, Recording, Request, on_own_thread};
use crate::periodic::Span;

/// Gaps from this length on are looked at: a minor fault takes half a microsecond on some machines.
const THRESHOLD_NS: f64 = 250.0;
/// The stamps of whoever disturbs are taken before and after; on another CPU they may be off by this much.
const MATCH_NS: f64 = 2_000.0;
/// How long the partner runs each time.
const PARTNER_RUNS_NS: f64 = 60_000.0;

/// Before or after a turn of listening, or across its end.
const NOBODY_LISTENED: &str = "nobody-listened";
/// The loop had not read the clock since the one before: it was still off its CPU.
const STILL_AWAY: &str = "still-away";
/// It came due while the loop was kept from reading it. Done right after that it would come at no random
/// time: others give the CPU back at ticks.
const OFF_CPU: &str = "off-cpu";
/// The CPU ran another program, which is not asked for a barrier.
const NOT_INTERRUPTED: &str = "not-interrupted";
/// The flag tells one interrupt of a gap.
const SAME_GAP: &str = "same-gap";

/// What to test, and for how long each kind is made.
#[derive(Clone, Copy, Debug)]
pub struct SelfTest {
    /// On which CPU.
    pub cpu: u32,
    /// Another CPU to interrupt from, where there is one.
    pub other_cpu: Option<u32>,
    /// Seconds for each kind.
    pub seconds: f64,
    /// Evidence above this level is not used.
    pub highest: Level,
    /// Of the random times.
    pub seed: u64,
}

/// How well one cause is found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Disturbances that came about while the loop listened.
    pub injected: u64,
    /// Of those, how many were found: one event each, in a gap at that time.
    pub found: u64,
    /// Events of this cause that were reported in that time, whether injected or not.
    pub reported: u64,
    /// Of those not injected, how many the kernel's own counters confirm, turn by turn.
    pub confirmed: u64,
    /// `found / injected`.
    pub recall: f64,
    /// `(found + confirmed) / reported`.
    pub precision: f64,
    /// Disturbances that were tried and did not come about, by reason: `nobody-listened`, `still-away`,
    /// `off-cpu`, `not-interrupted`, `same-gap`.
    pub not_injected: BTreeMap<&'static str, u64>,
}

/// What became of stalls that nothing explains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stalls {
    /// Stalls that were made.
    pub injected: u64,
    /// Of those, how many came out unexplained, as they must.
    pub unexplained: u64,
    /// `unexplained / injected`.
    pub recall: f64,
    /// As of [`Score`].
    pub not_injected: BTreeMap<&'static str, u64>,
}

/// The confusion matrix of this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Confusion {
    /// The CPU that was tested.
    pub cpu: u32,
    /// Seconds for each kind.
    pub seconds: f64,
    /// The highest level of evidence.
    pub level: Level,
    /// All levels, and why one is missing.
    pub levels: Vec<Rung>,
    /// Each cause that can be seen here.
    pub causes: BTreeMap<&'static str, Score>,
    /// Causes that cannot be seen at this level.
    pub unseen: Vec<&'static str>,
    /// Why each of them cannot.
    pub unseen_because: BTreeMap<&'static str, String>,
    /// Stalls that must come out unexplained.
    pub stalls: Stalls,
    /// What was done, and by what cause its gap was named:
    /// `{"page-fault": {"page-fault": 990, "timer-tick": 3, "no gap": 7}}`.
    pub matrix: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
}

/// Makes disturbances on a thread of its own and compares. Takes four times `seconds`.
/// Fails when no thread can be started, or `go_on` said no.
pub fn self_test(
    clock: &Clock,
    test: &SelfTest,
    mut go_on: impl FnMut() -> bool,
) -> Result<Confusion, NoiseError> {
    let stopped = AtomicBool::new(false);
    let confusion = on_own_thread(&stopped, &mut go_on, || run(clock, test, &stopped))?;
    if stopped.load(Ordering::Relaxed) { Err(NoiseError::Stopped) } else { Ok(confusion) }
}

/// One kind of disturbance, made and heard.
struct Phase {
    recording: Recording,
    tried: Tried,
}

/// What somebody did to this CPU, in order of time.
#[derive(Default)]
struct Tried {
    done: Vec<Span>,
    /// How often it did not reach the CPU.
    not_interrupted: u64,
    /// How often the loop was away when it was to do it.
    off_cpu: u64,
}

impl Tried {
    /// Those that could be found, and how many could not for which reason.
    fn came_about(&self, cause: Cause, recording: &Recording) -> (Vec<Span>, BTreeMap<&'static str, u64>) {
        let mut left = heard(&self.done, &recording.listened);
        let heard = left.len();
        let mut not = BTreeMap::from([
            (NOBODY_LISTENED, (self.done.len() - heard) as u64),
            (NOT_INTERRUPTED, self.not_interrupted),
            (OFF_CPU, self.off_cpu),
        ]);
        if cause == Cause::ContextSwitch {
            back_between(&mut left, &recording.samples);
            not.insert(STILL_AWAY, (heard - left.len()) as u64);
        } else if cause == Cause::Interrupt {
            one_a_gap(&mut left, &recording.samples);
            not.insert(SAME_GAP, (heard - left.len()) as u64);
        }
        not.retain(|_, count| *count > 0);
        (left, not)
    }
}

fn run(clock: &Clock, test: &SelfTest, stopped: &AtomicBool) -> Result<Confusion, NoiseError> {
    let request =
        Request { seconds: test.seconds, cpu: test.cpu, threshold_ns: THRESHOLD_NS, highest: test.highest };
    let listener = Listener::pinned(clock, request)?;
    let evidence = &listener.evidence;
    let (level, levels) = (evidence.level(), evidence.rungs().to_vec());
    let switches_are_seen = evidence.records_switches() || evidence.has_flag();
    let (faults_are_seen, interrupts_are_flagged) = (evidence.records_faults(), evidence.flags_interrupts());
    let mut confusion = Confusion {
        cpu: test.cpu,
        seconds: test.seconds,
        level,
        levels,
        causes: BTreeMap::new(),
        unseen: Vec::new(),
        unseen_because: BTreeMap::new(),
        stalls: Stalls { injected: 0, unexplained: 0, recall: 0.0, not_injected: BTreeMap::new() },
        matrix: BTreeMap::new(),
        lost_records: 0,
    };
    let mut bench = Bench { clock, test, stopped, listener, rng: Rng::new(test.seed) };

    let because = missing(&confusion.levels, Level::PerfRecords);
    if switches_are_seen {
        confusion.take(Cause::ContextSwitch, bench.switches())?;
    } else {
        confusion.unseen(Cause::ContextSwitch, because.clone());
    }
    if faults_are_seen {
        confusion.take(Cause::PageFault, bench.faults())?;
    } else {
        confusion.unseen(Cause::PageFault, because);
    }
    if level == Level::Tracepoints {
        confusion.take(Cause::Ipi, bench.interrupts())?;
    } else {
        confusion.unseen(Cause::Ipi, missing(&confusion.levels, Level::Tracepoints));
        if interrupts_are_flagged {
            // Seen, but not which interrupts they were.
            confusion.take(Cause::Interrupt, bench.interrupts())?;
        }
    }
    confusion.take_stalls(&bench.stalls()?);
    Ok(confusion)
}

fn missing(rungs: &[Rung], level: Level) -> String {
    rungs
        .iter()
        .find(|rung| rung.level == level)
        .and_then(|rung| rung.reason.clone())
        .unwrap_or_else(|| format!("{level} do not show it here"))
}

/// Why a phase could not be made: a reason for the user, or the end of all.
enum Unmade {
    Reason(String),
    Failed(NoiseError),
}

impl From<NoiseError> for Unmade {
    fn from(error: NoiseError) -> Self {
        Self::Failed(error)
    }
}

impl Confusion {
    fn unseen(&mut self, cause: Cause, because: String) {
        self.unseen.push(cause.name());
        self.unseen_because.insert(cause.name(), because);
    }

    fn take(&mut self, cause: Cause, phase: Result<Phase, Unmade>) -> Result<(), NoiseError> {
        let phase = match phase {
            Ok(phase) => phase,
            Err(Unmade::Reason(reason)) => {
                self.unseen(cause, reason);
                return Ok(());
            }
            Err(Unmade::Failed(error)) => return Err(error),
        };
        let Phase { recording, tried } = phase;
        let (injected, not_injected) = tried.came_about(cause, &recording);
        self.lost_records += recording.lost_records;
        if injected.is_empty() {
            let tried: u64 = not_injected.values().sum();
            self.unseen(
                cause,
                format!("none of the {tried} attempts took effect while the loop was recording"),
            );
            return Ok(());
        }
        let found = judged(&recording);
        let counted: Vec<Option<u64>> = recording
            .turns
            .iter()
            .map(|turn| match cause {
                Cause::ContextSwitch => turn.switches,
                Cause::PageFault => turn.faults,
                Cause::Interrupt => turn.interrupts,
                _ => turn.interprocessor_interrupts,
            })
            .collect();
        let turns: Vec<(Span, Option<u64>)> = recording.listened.iter().copied().zip(counted).collect();
        let score = score(cause, &injected, &recording.samples, &found.each, &turns);
        self.matrix.insert(cause.name(), named(&injected, &recording.samples, &found.each));
        self.causes.insert(cause.name(), Score { not_injected, ..score });
        Ok(())
    }

    fn take_stalls(&mut self, phase: &Phase) {
        let recording = &phase.recording;
        let found = judged(recording);
        let (injected, not_injected) = phase.tried.came_about(Cause::Unexplained, recording);
        let row = named(&injected, &recording.samples, &found.each);
        let unexplained = row.get(Cause::Unexplained.name()).copied().unwrap_or(0);
        self.lost_records += recording.lost_records;
        self.stalls = Stalls {
            injected: injected.len() as u64,
            unexplained,
            recall: ratio(unexplained, injected.len() as u64),
            not_injected,
        };
        self.matrix.insert("busy-stall", row);
    }
}

/// This loop is kept busy: what was outside this kernel may have been its own work, and stays unexplained.
fn judged(recording: &Recording) -> Attributed {
    let context = Context { outside_from_ns: None, ..recording.context() };
    attribute(&recording.samples, &recording.events, &context)
}

/// Disturbances that lie in the time that was listened to.
fn heard(tried: &[Span], listened: &[Span]) -> Vec<Span> {
    tried
        .iter()
        .filter(|one| {
            let turn = listened.partition_point(|span| span.to_ns < one.to_ns);
            listened.get(turn).is_some_and(|span| one.from_ns >= span.from_ns)
        })
        .copied()
        .collect()
}

/// Leaves those before which the loop had read the clock since the one before: whoever is still off its CPU
/// cannot be switched out.
fn back_between(injected: &mut Vec<Span>, samples: &[Sample]) {
    let mut last_ns = f64::NEG_INFINITY;
    injected.retain(|one| {
        let gap = samples.partition_point(|sample| sample.end_ns() < one.from_ns);
        let away = samples.get(gap).is_some_and(|sample| sample.at_ns <= last_ns);
        last_ns = one.to_ns;
        !away
    });
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Compares events with disturbances by time, one to one: a gap answers for as many disturbances as it has
/// events of the cause. `turns` are the times that were listened to, with what the kernel counted of the
/// cause in each.
fn score(
    cause: Cause,
    injected: &[Span],
    samples: &[Sample],
    each: &[Attribution],
    turns: &[(Span, Option<u64>)],
) -> Score {
    let mut left: Vec<u64> =
        samples.iter().zip(each).map(|(sample, one)| events_of(cause, sample, one)).collect();
    let reported: u64 = left.iter().sum();
    let mut found = 0;
    for one in injected {
        let answer = nearest(one, samples, |index| left[index] > 0);
        if let Some(index) = answer {
            left[index] -= 1;
            found += 1;
        }
    }
    let confirmed = turns
        .iter()
        .map(|(turn, counted)| {
            let gaps = place(turn, samples, |sample| sample.at_ns);
            let made = place(turn, injected, |one| one.from_ns).len() as u64;
            let others = counted.map_or(0, |counted| counted.saturating_sub(made));
            others.min(left[gaps].iter().sum())
        })
        .sum();
    let injected = injected.len() as u64;
    Score {
        injected,
        found,
        reported,
        confirmed,
        recall: ratio(found, injected),
        precision: ratio(found + confirmed, reported),
        not_injected: BTreeMap::new(),
    }
}

/// Where those stand that begin in a turn, of what is in order of time.
fn place<T>(turn: &Span, all: &[T], from_ns: impl Fn(&T) -> f64) -> std::ops::Range<usize> {
    all.partition_point(|one| from_ns(one) < turn.from_ns)
        ..all.partition_point(|one| from_ns(one) < turn.to_ns)
}

/// How many events of a cause a gap has.
fn events_of(cause: Cause, sample: &Sample, one: &Attribution) -> u64 {
    if cause == Cause::Interrupt {
        // The flag says that there was one, also where a record or a period says which.
        return u64::from(sample.interruption.interrupted);
    }
    let recorded: u64 =
        one.parts.iter().filter(|part| part.cause == cause).map(|part| u64::from(part.events)).sum();
    // The flag has no event: the gap is the switch.
    recorded.max(u64::from(one.cause == cause))
}

/// Positive when they overlap; else the distance, negative.
fn overlap(sample: &Sample, one: &Span) -> f64 {
    sample.end_ns().min(one.to_ns) - sample.at_ns.max(one.from_ns)
}

/// By what cause the gap of each disturbance was named.
fn named(injected: &[Span], samples: &[Sample], each: &[Attribution]) -> BTreeMap<&'static str, u64> {
    let mut row = BTreeMap::new();
    for one in injected {
        let name = gap_of(one, samples).map_or("no gap", |index| each[index].cause.name());
        *row.entry(name).or_insert(0) += 1;
    }
    row
}

/// The gap that a disturbance made, if any is near.
fn gap_of(one: &Span, samples: &[Sample]) -> Option<usize> {
    nearest(one, samples, |_| true)
}

/// Of the gaps near a disturbance that are wanted, the one that it overlaps most.
fn nearest(one: &Span, samples: &[Sample], wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let first = samples.partition_point(|sample| sample.end_ns() + MATCH_NS < one.from_ns);
    (first..samples.len())
        .take_while(|index| samples[*index].at_ns - MATCH_NS <= one.to_ns)
        .filter(|index| wanted(*index))
        .max_by(|a, b| overlap(&samples[*a], one).total_cmp(&overlap(&samples[*b], one)))
}

/// Leaves the first disturbance of each gap: the flag says that there was an interrupt, not how many while
/// another thread ran.
fn one_a_gap(injected: &mut Vec<Span>, samples: &[Sample]) {
    let mut last = None;
    injected.retain(|one| {
        let gap = gap_of(one, samples);
        let again = gap.is_some() && gap == last;
        last = gap;
        !again
    });
}

/// Random times apart, between half and one and a half of the mean.
fn apart(rng: &mut Rng, mean_ns: f64) -> f64 {
    mean_ns * (0.5 + rng.uniform())
}

/// How many disturbances there may be in so many seconds, if one comes each `mean_ns`.
fn most(seconds: f64, mean_ns: f64) -> usize {
    count::index(3.0 * seconds * 1e9 / mean_ns) + 16
}

/// What all kinds of disturbances are made with.
struct Bench<'a> {
    clock: &'a Clock,
    test: &'a SelfTest,
    stopped: &'a AtomicBool,
    listener: Listener<'a>,
    rng: Rng,
}

impl Bench<'_> {
    /// Listens here while a thread on `cpu` disturbs at random times, and writes down what it did.
    fn with_partner(
        &mut self,
        cpu: u32,
        mean_ns: f64,
        mut disturb: impl FnMut(&mut Tried) + Send,
    ) -> Result<Phase, Unmade> {
        let mut rng = Rng::new(self.rng.next_u64());
        let done = AtomicBool::new(false);
        let partner = || {
            let _pinned = pin_to(cpu);
            let mut tried = Tried::default();
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_nanos(count::whole(apart(&mut rng, mean_ns))));
                disturb(&mut tried);
            }
            tried
        };
        std::thread::scope(|scope| {
            let partner = std::thread::Builder::new()
                .name("disturb".to_owned())
                .spawn_scoped(scope, partner)
                .map_err(|error| NoiseError::Thread(error.to_string()))?;
            let recorded = self.listener.record(&mut Quiet, self.stopped);
            done.store(true, Ordering::Relaxed);
            let died = |_| NoiseError::Thread("the disturbing thread died".to_owned());
            let tried = partner.join().map_err(died)?;
            recorded?;
            Ok(Phase { recording: self.listener.take(), tried })
        })
    }

    fn switches(&mut self) -> Result<Phase, Unmade> {
        if !self.listener.is_pinned() {
            return Err(Unmade::Reason("two threads cannot be pinned to one CPU here".to_owned()));
        }
        let clock = self.clock;
        self.with_partner(self.test.cpu, 6e6, |tried| {
            let from_ns = clock.now_ns();
            let mut to_ns = from_ns;
            while to_ns < from_ns + PARTNER_RUNS_NS {
                to_ns = clock.now_ns();
            }
            tried.done.push(Span { from_ns, to_ns });
        })
    }

    fn interrupts(&mut self) -> Result<Phase, Unmade> {
        let Some(other_cpu) = self.test.other_cpu else {
            return Err(Unmade::Reason("needs a second CPU to interrupt from".to_owned()));
        };
        disturb::prepare_interrupts().map_err(Unmade::Reason)?;
        let (clock, cpu) = (self.clock, self.test.cpu);
        self.with_partner(other_cpu, 3e6, |tried| {
            // A CPU that happens to run somebody else is not interrupted: its own count tells.
            let before = function_calls_now(cpu);
            let from_ns = clock.now_ns();
            let done = disturb::interrupt_the_others();
            let to_ns = clock.now_ns();
            if done && (before.is_none() || function_calls_now(cpu) > before) {
                tried.done.push(Span { from_ns, to_ns });
            } else {
                tried.not_interrupted += 1;
            }
        })
    }

    /// Listens here, and acts at random times inside the loop.
    fn in_loop(&mut self, mean_ns: f64, act: impl FnMut(&mut Rng)) -> Result<Phase, NoiseError> {
        // Touched before: the first page of it would be a fault that nobody planted.
        let mut done = vec![(1, 1); most(self.test.seconds, mean_ns)];
        done.clear();
        let (clock, rng) = (self.clock, Rng::new(self.rng.next_u64()));
        let mut disturber = AtTimes { clock, rng, mean_ns, next: 0, act, done, off_cpu: 0 };
        self.listener.record(&mut disturber, self.stopped)?;
        let done = disturber
            .done
            .iter()
            .map(|(from, to)| Span { from_ns: clock.at_ns(*from), to_ns: clock.at_ns(*to) })
            .collect();
        let tried = Tried { done, off_cpu: disturber.off_cpu, ..Tried::default() };
        Ok(Phase { recording: self.listener.take(), tried })
    }

    fn faults(&mut self) -> Result<Phase, Unmade> {
        const MEAN_NS: f64 = 2e6;
        let mut fresh = FreshPages::new(most(self.test.seconds, MEAN_NS))
            .map_err(|error| Unmade::Reason(format!("fresh pages: {error}")))?;
        let phase = self.in_loop(MEAN_NS, |_| {
            fresh.touch();
        });
        Ok(phase?)
    }

    fn stalls(&mut self) -> Result<Phase, NoiseError> {
        self.in_loop(7e6, |rng| {
            // 10 to 110 us of arithmetic; how long it really takes does not matter.
            let rounds = 10_000 + rng.below(100_000);
            let mut value = 1_u64;
            for _ in 0..rounds {
                value = std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            }
        })
    }
}

/// Does something at random times, inside the loop.
struct AtTimes<'a, F: FnMut(&mut Rng)> {
    clock: &'a Clock,
    rng: Rng,
    mean_ns: f64,
    next: u64,
    act: F,
    done: Vec<(u64, u64)>,
    off_cpu: u64,
}

impl<F: FnMut(&mut Rng)> Disturber for AtTimes<'_, F> {
    #[inline]
    fn step(&mut self, now: u64) {
        if now < self.next {
            return;
        }
        // The first time only sets the hour.
        let due = self.next > 0;
        if due && now - self.next > self.clock.ticks(THRESHOLD_NS) {
            self.off_cpu += 1;
        } else if due && self.done.len() < self.done.capacity() {
            // What there is no room for is not done: a vector that grows would be a disturbance too.
            (self.act)(&mut self.rng);
            self.done.push((now, self.clock.source.now()));
        }
        self.next = now + self.clock.ticks(apart(&mut self.rng, self.mean_ns));
    }
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;

    use super::*;
    use crate::attribute::Part;
    use crate::cause::{Event, Proof};

    fn gap(at_ns: f64) -> Sample {
        Sample { at_ns, ns: 2_000.0, interruption: crate::Interruption::default() }
    }

    fn span(at_ns: f64) -> Span {
        Span { from_ns: at_ns, to_ns: at_ns + 1_500.0 }
    }

    fn named_at(samples: &[Sample], at: &[(usize, Cause)]) -> Vec<Attribution> {
        let events: Vec<Event> = at
            .iter()
            .map(|&(index, cause)| Event {
                cause,
                proof: Proof::Tracepoint,
                at_ns: samples[index].at_ns + 100.0,
                end_ns: Some(samples[index].at_ns + 1_500.0),
                who: None,
            })
            .collect();
        attribute(samples, &events, &Context::default()).each
    }

    /// One turn over everything, in which the kernel counted so many.
    fn counted(count: Option<u64>) -> [(Span, Option<u64>); 1] {
        [(Span { from_ns: 0.0, to_ns: 1e9 }, count)]
    }

    #[test]
    fn found_is_matched_by_time_one_to_one() {
        let samples = [gap(1e5), gap(2e5), gap(3e5)];
        let each = named_at(&samples, &[(0, Cause::Ipi), (2, Cause::Ipi)]);
        // Two at the first gap, which has one event; one at the second, which has none; one at the third.
        let injected = [span(1e5), span(1.005e5), span(2e5), span(3e5)];
        let score = score(Cause::Ipi, &injected, &samples, &each, &counted(None));
        assert_eq!((score.injected, score.found, score.reported), (4, 2, 2));
        assert!((score.recall - 0.5).abs() < 1e-12 && (score.precision - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_gap_with_two_events_answers_for_two() {
        let samples = [gap(1e5)];
        let each = named_at(&samples, &[(0, Cause::Ipi), (0, Cause::Ipi)]);
        let score = score(Cause::Ipi, &[span(1e5), span(1.002e5)], &samples, &each, &counted(None));
        assert_eq!(score.found, 2);
    }

    #[test]
    fn what_was_not_injected_is_right_only_as_far_as_the_kernel_counted_it() {
        let samples = [gap(1e5), gap(2e5), gap(3e5), gap(4e5)];
        let all = [
            (0, Cause::ContextSwitch),
            (1, Cause::ContextSwitch),
            (2, Cause::ContextSwitch),
            (3, Cause::ContextSwitch),
        ];
        let each = named_at(&samples, &all);
        let precision = |turns: &[(Span, Option<u64>)]| {
            score(Cause::ContextSwitch, &[span(1e5)], &samples, &each, turns).precision
        };
        assert!((precision(&counted(None)) - 0.25).abs() < 1e-12);
        assert!((precision(&counted(Some(3))) - 0.75).abs() < 1e-12);
        assert!((precision(&counted(Some(9))) - 1.0).abs() < 1e-12);
        // As many in all, but in a turn in which only one of them was reported.
        let (first, second) = (Span { from_ns: 0.0, to_ns: 3.5e5 }, Span { from_ns: 3.5e5, to_ns: 1e9 });
        assert!((precision(&[(first, Some(1)), (second, Some(8))]) - 0.5).abs() < 1e-12);
    }

    /// A gap of ten milliseconds in which the thread was switched out once, and a short one with nothing in
    /// it.
    fn absence() -> (Vec<Sample>, Vec<Attribution>) {
        let away = Sample { ns: 1e7, ..gap(1e6) };
        let samples = vec![away, gap(3e7)];
        let out = Event {
            cause: Cause::ContextSwitch,
            proof: Proof::SwitchRecord,
            at_ns: 1e6,
            end_ns: Some(1.1e7),
            who: None,
        };
        let each = attribute(&samples, &[out], &Context::default()).each;
        (samples, each)
    }

    fn tried(at: &[f64], samples: &[Sample]) -> (Vec<Span>, BTreeMap<&'static str, u64>) {
        let recording = Recording {
            samples: samples.to_vec(),
            listened: vec![Span { from_ns: 0.0, to_ns: 5e7 }, Span { from_ns: 6e7, to_ns: 1e8 }],
            ..Recording::default()
        };
        let tried = Tried { done: at.iter().map(|at_ns| span(*at_ns)).collect(), ..Tried::default() };
        tried.came_about(Cause::ContextSwitch, &recording)
    }

    #[test]
    fn a_thread_that_is_still_away_cannot_be_switched_out_again() {
        let (samples, each) = absence();
        // Three runs of the partner while the thread was away, each behind somebody else; one after it was
        // back.
        let (injected, not) = tried(&[2e6, 5e6, 9e6, 3e7], &samples);
        assert_eq!(injected, [span(2e6), span(3e7)]);
        assert_eq!(not, BTreeMap::from([(STILL_AWAY, 2)]));
        // The first has the absence to answer for it. That no gap names the last one is a miss.
        let score = score(Cause::ContextSwitch, &injected, &samples, &each, &counted(Some(2)));
        assert_eq!((score.injected, score.found, score.reported), (2, 1, 1));
    }

    #[test]
    fn a_partner_that_waited_in_line_is_found_in_the_absence_in_which_it_ran() {
        let (samples, each) = absence();
        let (injected, not) = tried(&[1.0e7], &samples);
        assert!(not.is_empty(), "{not:?}");
        let score = score(Cause::ContextSwitch, &injected, &samples, &each, &counted(Some(1)));
        assert_eq!((score.found, score.reported, score.confirmed), (1, 1, 0));
    }

    #[test]
    fn a_partner_that_came_too_late_is_not_injected() {
        let (samples, _) = absence();
        // Across the end of the first turn, between the turns, and after the last.
        let (injected, not) = tried(&[4e7, 4.9999e7, 5.5e7, 2e8], &samples);
        assert_eq!(injected, [span(4e7)]);
        assert_eq!(not, BTreeMap::from([(NOBODY_LISTENED, 3)]));
    }

    #[test]
    fn what_came_due_while_the_loop_was_away_is_not_done_when_it_is_back() {
        let clock = Clock::simulated(SimulatedClock::ideal());
        let mut disturber = AtTimes {
            clock: &clock,
            rng: Rng::new(1),
            mean_ns: 1e6,
            next: 0,
            act: |_: &mut Rng| {},
            done: Vec::with_capacity(8),
            off_cpu: 0,
        };
        disturber.step(1);
        // In time, and three milliseconds late, as after a preemption.
        disturber.step(disturber.next);
        disturber.step(disturber.next + clock.ticks(3e6));
        assert_eq!((disturber.done.len(), disturber.off_cpu), (1, 1));
        let due = disturber.next;
        disturber.step(due - 1);
        assert_eq!(disturber.done.len(), 1, "not before its time");
    }

    #[test]
    fn a_gap_with_two_disturbances_answers_for_each_by_its_own_event() {
        let samples = [Sample { ns: 80_000.0, ..gap(1e6) }];
        let event =
            |cause, at_ns, end_ns| Event { cause, proof: Proof::SwitchRecord, at_ns, end_ns, who: None };
        let events =
            [event(Cause::PageFault, 1.001e6, None), event(Cause::ContextSwitch, 1.01e6, Some(1.075e6))];
        let found = |events: &[Event], cause, injected| {
            let each = attribute(&samples, events, &Context::default()).each;
            score(cause, &[injected], &samples, &each, &counted(Some(1))).found
        };
        let (touch, run) = (Span { from_ns: 1e6, to_ns: 1.08e6 }, Span { from_ns: 1.01e6, to_ns: 1.07e6 });
        assert_eq!(found(&events, Cause::ContextSwitch, run), 1);
        assert_eq!(found(&events, Cause::PageFault, touch), 1);
        // The event of the one does not answer for the other.
        assert_eq!(found(&events[..1], Cause::ContextSwitch, run), 0);
        assert_eq!(found(&events[1..], Cause::PageFault, touch), 0);
    }

    #[test]
    fn a_disturbance_whose_gap_has_another_name_is_missed_and_a_name_without_one_is_false() {
        let samples = [gap(1e5), gap(2e5)];
        let each = named_at(&samples, &[(0, Cause::TimerTick), (1, Cause::ContextSwitch)]);
        // The kernel counted the one that was made, and no other.
        let score = score(Cause::ContextSwitch, &[span(1e5)], &samples, &each, &counted(Some(1)));
        assert_eq!((score.found, score.reported, score.confirmed), (0, 1, 0));
        assert!(score.recall.abs() < 1e-12 && score.precision.abs() < 1e-12);
    }

    #[test]
    fn the_matrix_says_what_each_disturbance_was_taken_for() {
        let samples = [gap(1e5), gap(2e5)];
        let each = named_at(&samples, &[(0, Cause::TimerTick)]);
        let row = named(&[span(1e5), span(2e5), span(9e5)], &samples, &each);
        assert_eq!(row, BTreeMap::from([("timer-tick", 1), ("unexplained", 1), ("no gap", 1)]));
    }

    #[test]
    fn a_flagged_gap_counts_as_one_switch() {
        let one = Attribution {
            cause: Cause::ContextSwitch,
            proof: Some(Proof::RseqFlag),
            explained_ns: 2_000.0,
            confidence: 0.85,
            interference: None,
            parts: Vec::<Part>::new(),
        };
        let sample =
            Sample { interruption: crate::Interruption { preempted: true, interrupted: true }, ..gap(1e5) };
        assert_eq!(events_of(Cause::ContextSwitch, &sample, &one), 1);
        assert_eq!(events_of(Cause::Ipi, &sample, &one), 0);
        assert_eq!(events_of(Cause::Interrupt, &sample, &one), 1);
        assert_eq!(events_of(Cause::Interrupt, &gap(1e5), &one), 0);
    }

    #[test]
    fn of_interrupts_that_share_a_gap_the_flag_can_tell_one() {
        let samples = [gap(1e5), gap(2e5)];
        let mut injected = vec![span(1e5), span(1.003e5), span(2e5), span(9e5), span(9.5e5)];
        one_a_gap(&mut injected, &samples);
        assert_eq!(injected, [span(1e5), span(2e5), span(9e5), span(9.5e5)]);
    }

    #[test]
    fn disturbances_while_nobody_listened_do_not_count() {
        let listened = [Span { from_ns: 0.0, to_ns: 1e5 }];
        assert_eq!(heard(&[span(5e4), span(9.9e4), span(2e5)], &listened).len(), 1);
    }

    #[test]
    fn a_short_test_names_what_it_can_and_cannot_see() {
        let clock = Clock::open();
        let test = SelfTest { cpu: 0, other_cpu: None, seconds: 0.05, highest: Level::Tracepoints, seed: 1 };
        let found = self_test(&clock, &test, || true).expect("threads start");
        for cause in ["context-switch", "page-fault", "ipi"] {
            assert!(found.causes.contains_key(cause) != found.unseen.contains(&cause), "{found:?}");
        }
        for cause in &found.unseen {
            assert!(!found.unseen_because[cause].is_empty());
        }
        assert!(found.unseen.contains(&"ipi"), "there is no second CPU to interrupt from");
        assert!(matches!(
            self_test(&clock, &SelfTest { seconds: 5.0, ..test }, || false),
            Err(NoiseError::Stopped)
        ));
    }
}
