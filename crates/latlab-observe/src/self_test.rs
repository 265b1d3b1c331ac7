//! Whether causes are found on this machine: known disturbances are made, and what was found is compared with what was done.
//!
//! Each kind is made in a phase of its own, at random times: a thread on the same CPU wakes up and runs for a while; fresh pages are touched;
//! another CPU asks this one for a memory barrier, which comes as an interprocessor interrupt; the loop itself is kept busy for a while, which
//! nothing explains and which must therefore come out unexplained.
//!
//! A machine makes switches, faults and interrupts of its own meanwhile. Those that were reported and not injected count as right only as far
//! as the kernel's own counters (switches and faults of the thread, interrupts of the CPU) grew by more than was injected.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use latlab_clock::Clock;
use latlab_stats::rng::Rng;
use serde::Serialize;

use crate::attribute::{Attribution, attribute};
use crate::comb::Span;
use crate::counters::interprocessor_interrupts_now;
use crate::gaps::{Disturber, Quiet};
use crate::live::disturb::{self, FreshPages};
use crate::noise::{NoiseError, Recording, Request, on_own_thread, record};
use crate::{Cause, Evidence, Level, Rung, Sample};

/// Gaps from this length on are looked at: a minor fault takes half a microsecond on some machines.
const THRESHOLD_NS: f64 = 250.0;
/// The stamps of whoever disturbs are taken before and after; on another CPU they may be off by this much.
const MATCH_NS: f64 = 2_000.0;
/// How long the partner runs each time.
const PARTNER_RUNS_NS: f64 = 60_000.0;

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
    /// Disturbances that were made while the loop listened.
    pub injected: u64,
    /// Of those, how many were found: one event each, in a gap at that time.
    pub found: u64,
    /// Events of this cause that were reported in that time, whether injected or not.
    pub reported: u64,
    /// Of those not injected, how many the kernel's own counters confirm.
    pub confirmed: u64,
    /// `found / injected`.
    pub recall: f64,
    /// `(found + confirmed) / reported`.
    pub precision: f64,
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
    /// What was done, and by what cause its gap was named: `{"page-fault": {"page-fault": 990, "timer-tick": 3, "no gap": 7}}`.
    pub matrix: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
}

/// Makes disturbances on a thread of its own and compares. Takes four times `seconds`.
///
/// # Errors
/// When no thread can be started, or `go_on` said no.
pub fn self_test(
    clock: &Clock,
    test: &SelfTest,
    mut go_on: impl FnMut() -> bool,
) -> Result<Confusion, NoiseError> {
    let stopped = AtomicBool::new(false);
    let confusion = on_own_thread(&stopped, &mut go_on, || run(clock, test, &stopped))?;
    if stopped.load(Ordering::Relaxed) {
        Err(NoiseError::Stopped)
    } else {
        Ok(confusion)
    }
}

/// One kind of disturbance, made and heard.
struct Phase {
    recording: Recording,
    injected: Vec<Span>,
}

fn run(clock: &Clock, test: &SelfTest, stopped: &AtomicBool) -> Result<Confusion, NoiseError> {
    let pinned = disturb::pin(test.cpu);
    let mut evidence = Evidence::of_this_thread(clock, pinned.then_some(test.cpu), test.highest);
    let level = evidence.level();
    let mut confusion = Confusion {
        cpu: test.cpu,
        seconds: test.seconds,
        level,
        levels: evidence.rungs().to_vec(),
        causes: BTreeMap::new(),
        unseen: Vec::new(),
        unseen_because: BTreeMap::new(),
        stalls: Stalls {
            injected: 0,
            unexplained: 0,
            recall: 0.0,
        },
        matrix: BTreeMap::new(),
        lost_records: 0,
    };
    let mut rng = Rng::new(test.seed);

    let because = missing(&confusion.levels, Level::PerfRecords);
    if evidence.records_switches() || evidence.has_flag() {
        let phase = switches(clock, &mut evidence, test, &mut rng, stopped, pinned);
        confusion.take(Cause::ContextSwitch, phase)?;
    } else {
        confusion.unseen(Cause::ContextSwitch, because.clone());
    }
    if evidence.records_faults() {
        let phase = faults(clock, &mut evidence, test, &mut rng, stopped);
        confusion.take(Cause::PageFault, phase)?;
    } else {
        confusion.unseen(Cause::PageFault, because);
    }
    if level == Level::Tracepoints {
        let phase = interrupts(clock, &mut evidence, test, &mut rng, stopped);
        confusion.take(Cause::Ipi, phase)?;
    } else {
        confusion.unseen(Cause::Ipi, missing(&confusion.levels, Level::Tracepoints));
    }
    let phase = stalls(clock, &mut evidence, test, &mut rng, stopped)?;
    confusion.take_stalls(&phase);
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
        let Phase { recording, injected } = phase;
        let injected = heard(&injected, &recording.listened);
        let found = attribute(&recording.samples, &recording.events, &recording.context());
        let counted = match cause {
            Cause::ContextSwitch => {
                let thread = &recording.counted.thread;
                thread
                    .voluntary_switches
                    .zip(thread.involuntary_switches)
                    .map(|(a, b)| a + b)
            }
            Cause::PageFault => {
                let thread = &recording.counted.thread;
                thread.minor_faults.zip(thread.major_faults).map(|(a, b)| a + b)
            }
            _ => recording.counted.interprocessor_interrupts(),
        };
        self.lost_records += recording.lost_records;
        self.causes.insert(
            cause.name(),
            score(cause, &injected, &recording.samples, &found.each, counted),
        );
        self.matrix
            .insert(cause.name(), named(&injected, &recording.samples, &found.each));
        Ok(())
    }

    fn take_stalls(&mut self, phase: &Phase) {
        let recording = &phase.recording;
        let found = attribute(&recording.samples, &recording.events, &recording.context());
        let injected = heard(&phase.injected, &recording.listened);
        let row = named(&injected, &recording.samples, &found.each);
        let unexplained = row.get(Cause::Unexplained.name()).copied().unwrap_or(0);
        self.lost_records += recording.lost_records;
        self.stalls = Stalls {
            injected: injected.len() as u64,
            unexplained,
            recall: ratio(unexplained, injected.len() as u64),
        };
        self.matrix.insert("busy-stall", row);
    }
}

/// Disturbances that lie in the time that was listened to.
fn heard(injected: &[Span], listened: &[Span]) -> Vec<Span> {
    injected
        .iter()
        .filter(|one| {
            listened
                .iter()
                .any(|span| one.from_ns >= span.from_ns && one.to_ns <= span.to_ns)
        })
        .copied()
        .collect()
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Compares events with disturbances by time, one to one: a gap answers for as many disturbances as it has events of the cause.
fn score(
    cause: Cause,
    injected: &[Span],
    samples: &[Sample],
    each: &[Attribution],
    counted: Option<u64>,
) -> Score {
    let mut left: Vec<u64> = each.iter().map(|one| events_of(cause, one)).collect();
    let reported: u64 = left.iter().sum();
    let mut found = 0;
    for one in injected {
        let first = samples.partition_point(|sample| sample.end_ns() + MATCH_NS < one.from_ns);
        let answer = (first..samples.len())
            .take_while(|index| samples[*index].at_ns - MATCH_NS <= one.to_ns)
            .filter(|index| left[*index] > 0)
            .max_by(|a, b| overlap(&samples[*a], one).total_cmp(&overlap(&samples[*b], one)));
        if let Some(index) = answer {
            left[index] -= 1;
            found += 1;
        }
    }
    let injected = injected.len() as u64;
    let others = counted.map_or(0, |counted| counted.saturating_sub(injected));
    let confirmed = others.min(reported - found);
    Score {
        injected,
        found,
        reported,
        confirmed,
        recall: ratio(found, injected),
        precision: ratio(found + confirmed, reported),
    }
}

/// How many events of a cause a gap has.
fn events_of(cause: Cause, one: &Attribution) -> u64 {
    let recorded: u64 = one
        .parts
        .iter()
        .filter(|part| part.cause == cause)
        .map(|part| u64::from(part.events))
        .sum();
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
        let first = samples.partition_point(|sample| sample.end_ns() + MATCH_NS < one.from_ns);
        let gap = (first..samples.len())
            .take_while(|index| samples[*index].at_ns - MATCH_NS <= one.to_ns)
            .max_by(|a, b| overlap(&samples[*a], one).total_cmp(&overlap(&samples[*b], one)));
        let name = gap.map_or("no gap", |index| each[index].cause.name());
        *row.entry(name).or_insert(0) += 1;
    }
    row
}

/// Random times apart, between half and one and a half of the mean.
fn apart(rng: &mut Rng, mean_ns: f64) -> f64 {
    mean_ns * (0.5 + rng.uniform())
}

fn request(test: &SelfTest) -> Request {
    Request {
        seconds: test.seconds,
        cpu: test.cpu,
        threshold_ns: THRESHOLD_NS,
        highest: test.highest,
    }
}

/// Listens here while `partner` disturbs from another thread; it returns when it did what, and ends when it is told.
fn with_partner(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    stopped: &AtomicBool,
    partner: impl FnOnce(&AtomicBool) -> Vec<Span> + Send,
) -> Result<Phase, Unmade> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let partner = std::thread::Builder::new()
            .name("disturb".to_owned())
            .spawn_scoped(scope, || partner(&done))
            .map_err(|error| Unmade::Failed(NoiseError::Thread(error.to_string())))?;
        let go_on = || !stopped.load(Ordering::Relaxed);
        let recording = record(clock, evidence, &request(test), &mut Quiet, &go_on);
        done.store(true, Ordering::Relaxed);
        let injected = partner
            .join()
            .map_err(|_| Unmade::Failed(NoiseError::Thread("the disturbing thread died".to_owned())))?;
        Ok(Phase {
            recording: recording?,
            injected,
        })
    })
}

fn switches(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    rng: &mut Rng,
    stopped: &AtomicBool,
    pinned: bool,
) -> Result<Phase, Unmade> {
    if !pinned {
        return Err(Unmade::Reason(
            "two threads cannot be kept on one CPU here".to_owned(),
        ));
    }
    let mut rng = Rng::new(rng.next_u64());
    with_partner(clock, evidence, test, stopped, move |done| {
        disturb::pin(test.cpu);
        let mut spans = Vec::new();
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_nanos(whole(apart(&mut rng, 6e6))));
            let from_ns = clock.now_ns();
            let mut to_ns = from_ns;
            while to_ns < from_ns + PARTNER_RUNS_NS {
                to_ns = clock.now_ns();
            }
            spans.push(Span { from_ns, to_ns });
        }
        spans
    })
}

fn interrupts(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    rng: &mut Rng,
    stopped: &AtomicBool,
) -> Result<Phase, Unmade> {
    let Some(other_cpu) = test.other_cpu else {
        return Err(Unmade::Reason("needs a second CPU to interrupt from".to_owned()));
    };
    disturb::prepare_interrupts().map_err(Unmade::Reason)?;
    let mut rng = Rng::new(rng.next_u64());
    with_partner(clock, evidence, test, stopped, move |done| {
        disturb::pin(other_cpu);
        let mut spans = Vec::new();
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_nanos(whole(apart(&mut rng, 3e6))));
            // A CPU that happens to run somebody else is not interrupted: its own count tells.
            let before = interprocessor_interrupts_now(test.cpu);
            let from_ns = clock.now_ns();
            let done = disturb::interrupt_the_others();
            let to_ns = clock.now_ns();
            if done && (before.is_none() || interprocessor_interrupts_now(test.cpu) > before) {
                spans.push(Span { from_ns, to_ns });
            }
        }
        spans
    })
}

/// Does something at random times, inside the loop.
struct AtTimes<'a, F: FnMut(&mut Rng)> {
    clock: &'a Clock,
    rng: Rng,
    mean_ns: f64,
    next: u64,
    act: F,
    done: Vec<(u64, u64)>,
}

impl<F: FnMut(&mut Rng)> Disturber for AtTimes<'_, F> {
    #[inline]
    fn step(&mut self, now: u64) {
        if now < self.next {
            return;
        }
        // The first time only sets the hour. What there is no room for is not done: a vector that grows would be a disturbance too.
        if self.next > 0 && self.done.len() < self.done.capacity() {
            (self.act)(&mut self.rng);
            self.done.push((now, self.clock.source.now()));
        }
        self.next = now + self.clock.ticks(apart(&mut self.rng, self.mean_ns));
    }
}

fn in_loop(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    rng: &mut Rng,
    stopped: &AtomicBool,
    mean_ns: f64,
    act: impl FnMut(&mut Rng),
) -> Result<Phase, NoiseError> {
    let most = usize::try_from(whole(3.0 * test.seconds * 1e9 / mean_ns)).unwrap_or(0) + 16;
    // Touched before: the first page of it would be a fault that nobody planted.
    let mut done = vec![(1, 1); most];
    done.clear();
    let mut disturber = AtTimes {
        clock,
        rng: Rng::new(rng.next_u64()),
        mean_ns,
        next: 0,
        act,
        done,
    };
    let go_on = || !stopped.load(Ordering::Relaxed);
    let recording = record(clock, evidence, &request(test), &mut disturber, &go_on)?;
    let injected = disturber
        .done
        .iter()
        .map(|(from, to)| Span {
            from_ns: clock.at_ns(*from),
            to_ns: clock.at_ns(*to),
        })
        .collect();
    Ok(Phase { recording, injected })
}

fn faults(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    rng: &mut Rng,
    stopped: &AtomicBool,
) -> Result<Phase, Unmade> {
    const MEAN_NS: f64 = 2e6;
    let pages = usize::try_from(whole(3.0 * test.seconds * 1e9 / MEAN_NS)).unwrap_or(0) + 16;
    let mut fresh =
        FreshPages::new(pages).map_err(|error| Unmade::Reason(format!("fresh pages: {error}")))?;
    let phase = in_loop(clock, evidence, test, rng, stopped, MEAN_NS, |_| {
        fresh.touch();
    });
    phase.map_err(Unmade::Failed)
}

fn stalls(
    clock: &Clock,
    evidence: &mut Evidence,
    test: &SelfTest,
    rng: &mut Rng,
    stopped: &AtomicBool,
) -> Result<Phase, NoiseError> {
    in_loop(clock, evidence, test, rng, stopped, 7e6, |rng| {
        // 10 to 110 us of arithmetic; how long it really takes does not matter.
        let rounds = 10_000 + rng.below(100_000);
        let mut value = 1_u64;
        for _ in 0..rounds {
            value = std::hint::black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and small"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Part;
    use crate::{Event, Proof};

    fn gap(at_ns: f64) -> Sample {
        Sample {
            at_ns,
            ns: 2_000.0,
            preempted: false,
        }
    }

    fn span(at_ns: f64) -> Span {
        Span {
            from_ns: at_ns,
            to_ns: at_ns + 1_500.0,
        }
    }

    fn judged(samples: &[Sample], at: &[(usize, Cause)]) -> Vec<Attribution> {
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
        attribute(samples, &events, &crate::Context::default()).each
    }

    #[test]
    fn found_is_matched_by_time_one_to_one() {
        let samples = [gap(1e5), gap(2e5), gap(3e5)];
        let each = judged(&samples, &[(0, Cause::Ipi), (2, Cause::Ipi)]);
        // Two at the first gap, which has one event; one at the second, which has none; one at the third.
        let injected = [span(1e5), span(1.005e5), span(2e5), span(3e5)];
        let score = score(Cause::Ipi, &injected, &samples, &each, None);
        assert_eq!((score.injected, score.found, score.reported), (4, 2, 2));
        assert!((score.recall - 0.5).abs() < 1e-12 && (score.precision - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_gap_with_two_events_answers_for_two() {
        let samples = [gap(1e5)];
        let each = judged(&samples, &[(0, Cause::Ipi), (0, Cause::Ipi)]);
        let score = score(Cause::Ipi, &[span(1e5), span(1.002e5)], &samples, &each, None);
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
        let each = judged(&samples, &all);
        let score = |counted| score(Cause::ContextSwitch, &[span(1e5)], &samples, &each, counted);
        assert!((score(None).precision - 0.25).abs() < 1e-12);
        assert!((score(Some(3)).precision - 0.75).abs() < 1e-12);
        assert!((score(Some(9)).precision - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_matrix_says_what_each_disturbance_was_taken_for() {
        let samples = [gap(1e5), gap(2e5)];
        let each = judged(&samples, &[(0, Cause::TimerTick)]);
        let row = named(&[span(1e5), span(2e5), span(9e5)], &samples, &each);
        assert_eq!(
            row,
            BTreeMap::from([("timer-tick", 1), ("unexplained", 1), ("no gap", 1)])
        );
    }

    #[test]
    fn a_flagged_gap_counts_as_one_switch() {
        let one = Attribution {
            cause: Cause::ContextSwitch,
            proof: Some(Proof::RseqFlag),
            explained_ns: 2_000.0,
            confidence: 0.85,
            comb: None,
            parts: Vec::<Part>::new(),
        };
        assert_eq!(events_of(Cause::ContextSwitch, &one), 1);
        assert_eq!(events_of(Cause::Ipi, &one), 0);
    }

    #[test]
    fn disturbances_while_nobody_listened_do_not_count() {
        let listened = [Span {
            from_ns: 0.0,
            to_ns: 1e5,
        }];
        assert_eq!(heard(&[span(5e4), span(9.9e4), span(2e5)], &listened).len(), 1);
    }

    #[test]
    fn a_short_test_names_what_it_can_and_cannot_see() {
        let clock = Clock::open();
        let test = SelfTest {
            cpu: 0,
            other_cpu: None,
            seconds: 0.05,
            highest: Level::Tracepoints,
            seed: 1,
        };
        let found = self_test(&clock, &test, || true).expect("threads start");
        for cause in ["context-switch", "page-fault", "ipi"] {
            assert!(
                found.causes.contains_key(cause) != found.unseen.contains(&cause),
                "{found:?}"
            );
        }
        for cause in &found.unseen {
            assert!(!found.unseen_because[cause].is_empty());
        }
        assert!(
            found.unseen.contains(&"ipi"),
            "there is no second CPU to interrupt from"
        );
        assert!(matches!(
            self_test(&clock, &SelfTest { seconds: 5.0, ..test }, || false),
            Err(NoiseError::Stopped)
        ));
    }
}
