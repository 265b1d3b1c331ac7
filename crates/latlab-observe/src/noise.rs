//! Listening: a thread that does nothing but read the clock on one CPU, and what interrupted it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use latlab_clock::{Clock, Source};
use serde::Serialize;

use crate::attribute::{
    Agreement, Attributed, Attribution, Context, NamedInterference, agreement, attribute,
};
use crate::cause::{Cause, Event, Proof, Sample};
use crate::counters::{Counted, CpuCounters, Tally};
use crate::evidence::Evidence;
use crate::gaps::{Buffer, Disturber, Flag, Gap, Heard, Quiet, listen};
use crate::level::{Level, Rung};
use crate::live::pin_to;
use crate::periodic::Span;
use crate::summary::{CauseRow, Explained, NamedGap, by_cause, explained, longest};

/// One turn of the loop. Between turns the records are taken from the kernel's memory (some tens of
/// microseconds, not listened to) and an interrupt is noticed.
const TURN_NS: f64 = 250e6;
/// What is left of the time and shorter is not listened to.
const LEAST_TURN_NS: f64 = 1_000.0;
/// Gaps of one turn for which there is room: one every 4 us.
const ROOM: usize = 1 << 16;
/// How long the caller sleeps between two checks for an interrupt.
const POLL: Duration = Duration::from_millis(200);
/// Gaps that are listed one by one, the longest.
const LISTED: usize = 500;
/// Ticks are compared from this length on: shorter gaps are mostly the hypervisor's.
const COMPARED_FROM_NS: f64 = 10_000.0;

/// What to listen to.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// For how long, s.
    pub seconds: f64,
    /// On which CPU.
    pub cpu: u32,
    /// Shorter gaps are not written down, ns.
    pub threshold_ns: f64,
    /// Evidence above this level is not used, even where it could be had.
    pub highest: Level,
}

/// Why nothing was heard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// Simulated time has no gaps.
    #[error("measuring noise needs a real clock")]
    Simulated,
    /// No thread could be started, or it died.
    #[error("the recording thread: {0}")]
    Thread(String),
    /// It was stopped before there was anything to say.
    #[error("stopped before anything was recorded")]
    Stopped,
}

/// Everything that was heard and seen, before anybody judged it.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Gaps, in order of time.
    pub samples: Vec<Sample>,
    /// What the kernel says happened.
    pub events: Vec<Event>,
    /// When a gap would have been noticed, turn by turn.
    pub listened: Vec<Span>,
    /// What the kernel counted in each of them.
    pub turns: Vec<Tally>,
    /// Clock reads.
    pub clock_reads: u64,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
    /// Gaps that we had no room for.
    pub dropped_gaps: u64,
    /// What the kernel counted meanwhile.
    pub counted: Counted,
    /// Whether every switch of the thread was recorded.
    pub records_switches: bool,
    /// Whether every interrupt was flagged.
    pub flags_interrupts: bool,
}

impl Recording {
    /// Nothing yet, of a thread of which this can be seen.
    fn with(evidence: &Evidence) -> Self {
        Self {
            records_switches: evidence.records_switches(),
            flags_interrupts: evidence.flags_interrupts(),
            ..Self::default()
        }
    }

    /// Time listened to, ns.
    pub fn listened_ns(&self) -> f64 {
        self.listened.iter().map(|span| span.to_ns - span.from_ns).sum()
    }

    /// What the judgement needs to know beside the events.
    pub fn context(&self) -> Context<'_> {
        Context {
            listened: &self.listened,
            switches_are_recorded: self.records_switches && self.lost_records == 0,
            timer_interrupts: self.counted.timer_interrupts(),
            // The loop does nothing else.
            outside_from_ns: self.flags_interrupts.then_some(0.0),
            throttled_ns: self.counted.thread.throttled_ns.unwrap_or(0),
        }
    }
}

/// One turn of the loop by whichever clock it is. Fails when the clock is simulated.
pub(crate) fn turn<F: Flag, D: Disturber>(
    clock: &Clock,
    flag: &mut F,
    ns: f64,
    threshold_ns: f64,
    disturber: &mut D,
    buffer: &mut Buffer,
) -> Result<Heard, NoiseError> {
    let (ticks, threshold) = (clock.ticks(ns), clock.ticks(threshold_ns));
    match &clock.source {
        Source::Hardware(time) => Ok(listen(time, ticks, threshold, flag, disturber, buffer)),
        Source::Os(time) => Ok(listen(time, ticks, threshold, flag, disturber, buffer)),
        Source::Simulated(_) => Err(NoiseError::Simulated),
    }
}

/// What a machine's noise is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// The CPU that was listened on.
    pub cpu: u32,
    /// Whether the thread could be kept there.
    pub pinned: bool,
    /// `completed` or `interrupted`.
    pub stopped_by: &'static str,
    /// Time listened to, s.
    pub seconds: f64,
    /// Shorter gaps were not written down, ns.
    pub threshold_ns: f64,
    /// Mean time between two clock reads, ns.
    pub step_ns: f64,
    /// The highest level of evidence that was used.
    pub level: Level,
    /// All levels, and why one is missing.
    pub levels: Vec<Rung>,
    /// Gaps.
    pub gaps: u64,
    /// Their time, ns.
    pub gaps_ns: f64,
    /// Rows by cause, the one that took most time first; `unexplained` is one of them.
    pub causes: Vec<CauseRow>,
    /// Periodic causes. `phase_ns` counts from the first clock read.
    #[serde(rename = "combs")]
    pub periodic: Vec<InterferenceRow>,
    /// How much has a cause, from each length on.
    pub explained: Vec<Explained>,
    /// What an ordinary user of this machine would have been told: the same without what root alone sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unprivileged: Option<Unprivileged>,
    /// The longest gaps.
    pub longest: Vec<NamedGap>,
    /// Events in no gap: shorter than the threshold.
    pub events_outside: u64,
    /// Records that the kernel had no room for: their gaps may be unexplained.
    pub lost_records: u64,
    /// Gaps that there was no room for.
    pub dropped_gaps: u64,
    /// What the kernel counted meanwhile.
    pub counted: Counted,
}

/// Periodic interference and what it took.
#[derive(Clone, Debug, Serialize)]
pub struct InterferenceRow {
    /// What it is.
    #[serde(flatten)]
    pub interference: NamedInterference,
    /// Ticks a second.
    pub hz: f64,
    /// Gaps that have their cause from it.
    pub gaps: u64,
    /// Their time, ns.
    pub ns: f64,
    /// The share of the time of all gaps.
    pub share_time: f64,
}

/// The same gaps judged without what root alone sees.
#[derive(Clone, Debug, Serialize)]
pub struct Unprivileged {
    /// How much has a cause, from each length on.
    pub explained: Vec<Explained>,
    /// Whether by their period the same gaps are timer ticks as the tracepoints did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_ticks: Option<Agreement>,
    /// Of gaps of 10 us and more: its cause, then that by all evidence but the interrupt flag
    /// (`without event` where that has none), and how many.
    pub named: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Periodic causes that it finds.
    #[serde(rename = "combs")]
    pub periodic: Vec<InterferenceRow>,
}

/// Listening in turns on the calling thread: between two turns other things may be done.
#[derive(Debug)]
pub struct Listener<'a> {
    clock: &'a Clock,
    request: Request,
    pinned: bool,
    /// What can be seen of the thread.
    pub(crate) evidence: Evidence,
    counters: CpuCounters,
    buffer: Buffer,
    recording: Recording,
}

/// All turns of a [`Listener`], judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// As figures.
    pub noise: Noise,
    /// The gaps, in order of time.
    pub samples: Vec<Sample>,
    /// What each of them was made of.
    pub each: Vec<Attribution>,
}

impl<'a> Listener<'a> {
    /// On the calling thread; `pinned` is whether it runs on the CPU of the request only. Its `seconds` mean
    /// nothing here. Fails when the clock is simulated.
    pub fn of_this_thread(clock: &'a Clock, request: Request, pinned: bool) -> Result<Self, NoiseError> {
        if matches!(clock.source, Source::Simulated(_)) {
            return Err(NoiseError::Simulated);
        }
        let mut evidence = Evidence::of_this_thread(clock, pinned.then_some(request.cpu), request.highest);
        evidence.start(clock);
        Ok(Self {
            clock,
            request,
            pinned,
            counters: CpuCounters::of_this_thread(request.cpu),
            buffer: Buffer::new(ROOM),
            recording: Recording::with(&evidence),
            evidence,
        })
    }

    /// On the calling thread, which is kept on the CPU of the request from now on where that can be. Fails
    /// when the clock is simulated.
    pub(crate) fn pinned(clock: &'a Clock, request: Request) -> Result<Self, NoiseError> {
        let pinned = pin_to(request.cpu);
        Self::of_this_thread(clock, request, pinned)
    }

    /// Whether the thread is kept on its CPU.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Listens anew until the seconds of the request have passed or somebody stopped it, and keeps what was
    /// recorded. Fails when the clock is simulated.
    pub(crate) fn record<D: Disturber>(
        &mut self,
        disturber: &mut D,
        stopped: &AtomicBool,
    ) -> Result<(), NoiseError> {
        self.recording = Recording::with(&self.evidence);
        self.buffer.dropped = 0;
        let mut left_ns = self.request.seconds * 1e9;
        // Half a tick that is left would be a turn of no ticks, for ever.
        while left_ns >= LEAST_TURN_NS && !stopped.load(Ordering::Relaxed) {
            let heard = self.counted_turn(left_ns.min(TURN_NS), disturber)?;
            left_ns -= self.clock.ns(heard.end - heard.begin);
        }
        Ok(())
    }

    /// What was recorded so far; nothing is left.
    pub(crate) fn take(&mut self) -> Recording {
        std::mem::take(&mut self.recording)
    }

    /// Listens for so long, a quarter of a second at most, and returns what was covered and the gaps in it.
    /// Fails when the clock is simulated.
    pub fn turn(&mut self, ns: f64) -> Result<(Heard, &[Gap]), NoiseError> {
        let heard = self.counted_turn(ns.min(TURN_NS), &mut Quiet)?;
        Ok((heard, self.buffer.gaps()))
    }

    /// A turn of `ns` with what the kernel recorded and counted in it. What happens while nobody listens is
    /// nobody's cause, and is not counted.
    fn counted_turn<D: Disturber>(&mut self, ns: f64, disturber: &mut D) -> Result<Heard, NoiseError> {
        let (clock, buffer, into) = (self.clock, &mut self.buffer, &mut self.recording);
        buffer.clear();
        self.evidence.drain(clock);
        let before = self.counters.read();
        let heard = turn(clock, self.evidence.flag(), ns, self.request.threshold_ns, disturber, buffer)?;
        let counted = self.counters.read().since(&before);
        let (events, lost) = self.evidence.drain(clock);
        into.events.extend(events);
        into.lost_records += lost;
        into.samples.extend(buffer.gaps().iter().map(|gap| Sample {
            at_ns: clock.at_ns(gap.begin),
            ns: clock.ns(gap.end - gap.begin),
            interruption: gap.interruption,
        }));
        into.clock_reads += heard.clock_reads;
        into.listened.push(Span { from_ns: clock.at_ns(heard.begin), to_ns: clock.at_ns(heard.end) });
        into.turns.push(counted.tally());
        into.counted = if into.turns.len() == 1 { counted } else { into.counted.and(&counted) };
        into.dropped_gaps = buffer.dropped;
        Ok(heard)
    }

    /// Stands still for about so long in the middle of a short turn that does not count, and returns how long
    /// the gap is that was found there, ns; `None` when there was none. Fails when the clock is simulated.
    pub fn rehearse(&mut self, stall_ns: f64) -> Result<Option<f64>, NoiseError> {
        let mut found = None;
        for _ in 0..REHEARSALS {
            self.buffer.clear();
            let mut stall = Stall {
                clock: self.clock,
                at: self.clock.source.now() + self.clock.ticks(stall_ns),
                ticks: self.clock.ticks(stall_ns),
                done: None,
            };
            let (flag, ns) = (self.evidence.flag(), 4.0 * stall_ns);
            let heard = turn(self.clock, flag, ns, self.request.threshold_ns, &mut stall, &mut self.buffer)?;
            // A thread that was kept from its CPU until the turn was over stood still after its last clock
            // read: nobody could hear that.
            if let Some((begin, end)) = stall.done.filter(|(_, end)| heard.end >= *end) {
                let held = |gap: &&Gap| gap.begin <= begin && gap.end >= end;
                let gap = self.buffer.gaps().iter().find(held);
                found = gap.map(|gap| self.clock.ns(gap.end - gap.begin));
                break;
            }
        }
        self.buffer.clear();
        Ok(found)
    }

    /// What all turns so far were made of; `None` before the first.
    pub fn judge(&self) -> Option<Judged> {
        let (noise, each) = self.judged(false)?;
        Some(Judged { noise, samples: self.recording.samples.clone(), each })
    }

    fn judged(&self, stopped: bool) -> Option<(Noise, Vec<Attribution>)> {
        let (request, recording) = (&self.request, &self.recording);
        let samples = &recording.samples;
        let attributed = attribute(samples, &recording.events, &recording.context());
        let seconds = recording.listened_ns() / 1e9;
        let from_ns = recording.listened.first()?.from_ns;
        let level = self.evidence.level();
        let noise = Noise {
            cpu: request.cpu,
            pinned: self.pinned,
            stopped_by: if stopped { "interrupted" } else { "completed" },
            seconds,
            threshold_ns: request.threshold_ns,
            step_ns: seconds * 1e9 / (recording.clock_reads as f64).max(1.0),
            level,
            levels: self.evidence.rungs().to_vec(),
            gaps: samples.len() as u64,
            gaps_ns: samples.iter().map(|sample| sample.ns).sum(),
            causes: by_cause(samples, &attributed, seconds),
            periodic: interference_rows(samples, &attributed, from_ns),
            explained: explained(samples, &attributed, request.threshold_ns),
            unprivileged: (level == Level::Tracepoints)
                .then(|| unprivileged(request, recording, &attributed, from_ns)),
            longest: longest(samples, &attributed, from_ns, LISTED),
            events_outside: attributed.events_outside as u64,
            lost_records: recording.lost_records,
            dropped_gaps: recording.dropped_gaps,
            counted: recording.counted.clone(),
        };
        Some((noise, attributed.each))
    }
}

/// How often a stall is planted anew that came too late for its turn.
const REHEARSALS: usize = 100;

/// A planted gap.
struct Stall<'a> {
    clock: &'a Clock,
    at: u64,
    ticks: u64,
    done: Option<(u64, u64)>,
}

impl Disturber for Stall<'_> {
    #[inline]
    fn step(&mut self, now: u64) {
        if self.done.is_some() || now < self.at {
            return;
        }
        let mut end = now;
        while end < now + self.ticks {
            end = self.clock.source.now();
        }
        self.done = Some((now, end));
    }
}

/// Listens on a thread of its own. `go_on` is asked on the calling thread a few times a second; when it says
/// no, what was heard until then is what there is. Fails when no thread can be started, or it was stopped
/// before anything was heard.
pub fn hear(clock: &Clock, request: &Request, mut go_on: impl FnMut() -> bool) -> Result<Noise, NoiseError> {
    let stopped = AtomicBool::new(false);
    on_own_thread(&stopped, &mut go_on, || {
        let mut listener = Listener::pinned(clock, *request)?;
        listener.record(&mut Quiet, &stopped)?;
        let judged = listener.judged(stopped.load(Ordering::Relaxed));
        judged.map(|(noise, _)| noise).ok_or(NoiseError::Stopped)
    })
}

/// Runs `work` on a new thread while `go_on` is asked here; `stopped` is set when it says no.
pub(crate) fn on_own_thread<T: Send>(
    stopped: &AtomicBool,
    go_on: &mut dyn FnMut() -> bool,
    work: impl FnOnce() -> Result<T, NoiseError> + Send,
) -> Result<T, NoiseError> {
    std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("listen".to_owned())
            .spawn_scoped(scope, move || {
                let result = work();
                // The receiver waits until this is dropped.
                drop(done);
                result
            })
            .map_err(|error| NoiseError::Thread(error.to_string()))?;
        while wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            if !go_on() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        thread.join().map_err(|_| NoiseError::Thread("it ended unexpectedly".to_owned()))?
    })
}

fn unprivileged(request: &Request, recording: &Recording, truth: &Attributed, from_ns: f64) -> Unprivileged {
    let samples = &recording.samples;
    let events: Vec<Event> =
        recording.events.iter().filter(|event| event.proof != Proof::Tracepoint).cloned().collect();
    let blind = attribute(samples, &events, &recording.context());
    Unprivileged {
        explained: explained(samples, &blind, request.threshold_ns),
        named: named_both_ways(samples, truth, &blind),
        timer_ticks: agreement(samples, &truth.each, &blind.each, COMPARED_FROM_NS),
        periodic: interference_rows(samples, &blind, from_ns),
    }
}

fn named_both_ways(
    samples: &[Sample],
    truth: &Attributed,
    blind: &Attributed,
) -> BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
    let mut named: BTreeMap<_, BTreeMap<_, u64>> = BTreeMap::new();
    for ((sample, truth), blind) in samples.iter().zip(&truth.each).zip(&blind.each) {
        if sample.ns < COMPARED_FROM_NS {
            continue;
        }
        // What the flag alone says cannot confirm it.
        let truly = match truth.proof {
            Some(Proof::InterruptFlag) if truth.parts.is_empty() => "without event",
            Some(Proof::InterruptFlag) => Cause::Unexplained.name(),
            _ => truth.cause.name(),
        };
        let row = named.entry(blind.cause.name()).or_default();
        *row.entry(truly).or_default() += 1;
    }
    named
}

fn interference_rows(samples: &[Sample], attributed: &Attributed, from_ns: f64) -> Vec<InterferenceRow> {
    let all_ns: f64 = samples.iter().map(|sample| sample.ns).sum();
    let mut rows: Vec<InterferenceRow> = attributed
        .periodic
        .iter()
        .map(|named| {
            let mut interference = named.clone();
            interference.interference.phase_ns -= from_ns;
            let hz = interference.interference.hz();
            InterferenceRow { interference, hz, gaps: 0, ns: 0.0, share_time: 0.0 }
        })
        .collect();
    for (sample, one) in samples.iter().zip(&attributed.each) {
        if let (Some(index), Some(Proof::Period)) = (one.interference, one.proof) {
            rows[index].gaps += 1;
            rows[index].ns += sample.ns;
            rows[index].share_time += sample.ns / all_ns;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;

    use super::*;

    fn request(seconds: f64, highest: Level) -> Request {
        Request { seconds, cpu: 0, threshold_ns: 1_000.0, highest }
    }

    #[test]
    fn listening_ends_by_itself_and_rows_hold_every_gap() {
        let clock = Clock::open();
        for &highest in Level::ALL {
            let heard = hear(&clock, &request(0.1, highest), || true).expect("a thread starts");
            assert_eq!(heard.stopped_by, "completed");
            assert!(heard.level <= highest);
            assert!(heard.seconds >= 0.0999);

            assert_eq!(heard.causes.iter().map(|row| row.count).sum::<u64>(), heard.gaps);
        }
    }

    #[test]
    fn an_interrupt_ends_it_with_what_there_is() {
        let clock = Clock::open();
        let heard = hear(&clock, &request(60.0, Level::TimeStamps), || false).expect("one turn is heard");
        assert_eq!(heard.stopped_by, "interrupted");
        assert!(heard.seconds < 30.0);
    }

    #[test]
    fn turns_with_something_else_between_them_are_judged_together() {
        let clock = Clock::open();
        let mut listener =
            Listener::of_this_thread(&clock, request(1.0, Level::PerfRecords), false).expect("a real clock");
        assert!(listener.judge().is_none());
        let (mut gaps, mut heard_ns) = (0, 0.0);
        for _ in 0..3 {
            let (heard, found) = listener.turn(10e6).expect("a real clock");
            assert!(heard.clock_reads > 1 && found.iter().all(|gap| gap.begin >= heard.begin));
            gaps += found.len();
            heard_ns += clock.ns(heard.end - heard.begin);
            std::thread::sleep(Duration::from_millis(5));
        }
        let judged = listener.judge().expect("three turns");
        assert_eq!((judged.samples.len(), judged.each.len()), (gaps, gaps));
        // The sleeps in between were not listened to, and are no gaps.
        assert!((judged.noise.seconds * 1e9 / heard_ns - 1.0).abs() < 1e-6);
        assert_eq!(judged.noise.gaps, gaps as u64);
    }

    #[test]
    fn a_planted_stall_is_heard_and_does_not_count() {
        let clock = Clock::open();
        let mut listener =
            Listener::of_this_thread(&clock, request(1.0, Level::TimeStamps), false).expect("a real clock");
        let found = listener.rehearse(50_000.0).expect("a real clock");
        assert!(found.is_some_and(|ns| ns >= 49_999.0), "{found:?}");
        assert!(listener.judge().is_none());
        let deaf = Request { threshold_ns: 1e12, ..request(1.0, Level::TimeStamps) };
        let mut listener = Listener::of_this_thread(&clock, deaf, false).expect("a real clock");
        assert_eq!(listener.rehearse(50_000.0), Ok(None));
    }

    #[test]
    fn a_stall_is_heard_on_a_cpu_that_others_use() {
        let clock = Clock::open();
        let request = request(1.0, Level::TimeStamps);
        let ended = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = pin_to(request.cpu);
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let listening = scope.spawn(|| {
                let mut listener = Listener::pinned(&clock, request)?;
                (0..100).map(|_| listener.rehearse(50_000.0)).collect::<Result<Vec<_>, _>>()
            });
            let found = listening.join();
            ended.store(true, Ordering::Relaxed);
            found
        });
        let found = found.expect("it ended").expect("a real clock");
        assert!(found.iter().all(Option::is_some), "{found:?}");
    }

    #[test]
    fn simulated_time_cannot_be_listened_to() {
        let clock = Clock::simulated(SimulatedClock::ideal());
        let refused = hear(&clock, &request(0.1, Level::TimeStamps), || true);
        assert_eq!(refused.err(), Some(NoiseError::Simulated));
    }

    #[test]
    fn a_time_of_less_than_a_tick_of_the_clock_ends() {
        let clock = Clock::open();
        let heard = hear(&clock, &request(1e-10, Level::TimeStamps), || true);
        assert_eq!(heard.err(), Some(NoiseError::Stopped));
    }

    #[test]
    fn a_thread_that_dies_is_an_error_and_nobody_waits() {
        let stopped = AtomicBool::new(false);
        let refused = on_own_thread::<()>(&stopped, &mut || true, || panic!("planted"));
        assert!(matches!(refused, Err(NoiseError::Thread(_))));
    }
}
