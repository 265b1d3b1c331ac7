//! What the slow operations of a probe are made of: the evidence that its thread carries, taken between blocks, and the judgement when a
//! record is made.
//!
//! ```text
//! block that does not wait   slow ones, flag, records, gaps between turns ─► heard: all blocks of the probe ─► combs, attribute
//! block that waits           slow ones, records, time without a CPU ───────► split, block by block: what each was waiting for
//! ```
//! A block of single operations lasts milliseconds, a tick comes every four: periods are looked for in all blocks of the probe, so records are
//! judged when the last of them is taken. Nothing is asked inside the timed loop: what falls between two operations is looked for once in some dozens.

use std::cell::RefCell;

use latlab_clock::{Clock, Source};
use latlab_observe::{
    Attributed, Cause, Context, CpuCounters, CpuReading, Event, Evidence, Level, Proof, RunDelay, Sample,
    Span, ThreadFlag, Wanted, attribute, split,
};
use latlab_record::{TailCause, TailCauses, TailPart};

use crate::in_flight::LONG_WAIT_NS;
use crate::pin::is_pinned_to;
use crate::slow::{self, CANDIDATES, Candidate, Delay, Note, USUAL};
use crate::summary;
use crate::{BlockData, Env, Operations};

/// Set to anything, it leaves the evidence out: for looking at what it costs.
const WITHOUT: &str = "LATLAB_WITHOUT_EVIDENCE";
/// More gaps or events are not kept: a probe with more has no tail but a second mode, and their judgement would take seconds.
const MOST: usize = 100_000;
/// Reading the interrupts takes 70 us, and far longer on a machine of many CPUs.
const INTERRUPTS_EVERY_NS: f64 = 100e6;
/// Records are stamped by another clock, and a handler's some hundred nanoseconds after it was entered.
const MARGIN_NS: f64 = 2_000.0;
/// The thread's time without a CPU is asked after operations of this length and more, which takes 0.7 us, and 0.5 more for its time on the CPU.
const WORTH_ASKING_NS: f64 = 20_000.0;
/// After this thread was back on its CPU it took what was done within this time.
const PICKED_UP_NS: f64 = 50_000.0;
/// Records of an ordinary user have room for some 3,000 operations that sleep; they are taken out well before.
const DRAIN_EVERY: u32 = 1_000;

/// The evidence of one probe's run, and what it heard so far.
pub(crate) struct Listening {
    operations: Operations,
    evidence: Option<Evidence>,
    delay: Option<RunDelay>,
    /// The same of the thread that a block waits for, with its number.
    partner: Option<(u32, Option<RunDelay>)>,
    last_count: Option<Counted>,
    /// Operations since then that were too short to ask.
    unasked: u32,
    /// Room that the blocks share.
    candidates: Vec<Candidate>,
    /// Records that were taken out before the end of the block, and how many were lost.
    early: (Vec<Event>, u64),
    since_drain: u32,
    interrupts: Option<Interrupts>,
    heard: Heard,
    /// The last judgement, with the number of blocks that it knew.
    judged: RefCell<Option<(usize, Attributed)>>,
}

/// What the thread's counters said, ns, and when.
#[derive(Clone, Copy)]
struct Counted {
    delay: u64,
    running: Option<u64>,
    at_ns: f64,
}

/// This CPU's timer interrupts: their rate over the whole time tells this kernel's tick from the host's.
struct Interrupts {
    counters: CpuCounters,
    first: (f64, CpuReading),
    last_ns: f64,
    per_ns: Option<f64>,
}

#[derive(Default)]
struct Heard {
    samples: Vec<Sample>,
    events: Vec<Event>,
    listened: Vec<Span>,
    lost_records: u64,
    throttled_ns: u64,
    /// There was no room for all of it.
    full: bool,
}

/// The slow operations of a record.
pub(crate) struct Judged {
    /// From this length on all of them are known, ns.
    pub(crate) threshold_ns: f64,
    /// What they are made of; `None` where that was not looked for: of what was not timed in a row, and where there was no room.
    pub(crate) causes: Option<TailCauses>,
}

impl Listening {
    /// Only for time stamps: their periods are all that is known.
    pub(crate) fn to_time_stamps() -> Self {
        Self {
            operations: Operations::Unwatched,
            evidence: None,
            delay: None,
            partner: None,
            last_count: None,
            unasked: 0,
            candidates: Vec::new(),
            early: (Vec::new(), 0),
            since_drain: 0,
            interrupts: None,
            heard: Heard::default(),
            judged: RefCell::default(),
        }
    }

    /// On the thread that measures.
    pub(crate) fn of_this_thread(env: &Env, operations: Operations) -> Self {
        let clock = &env.clock;
        let mut listening = Self::to_time_stamps();
        if operations == Operations::Unwatched
            || matches!(clock.source, Source::Simulated(_))
            || std::env::var_os(WITHOUT).is_some()
        {
            return listening;
        }
        let cpu = is_pinned_to(env.home_cpu).then_some(env.home_cpu);
        let wanted = Wanted {
            // A device's answer is an interrupt, deferred work, a wake-up and two switches: six records of a fifth of a microsecond each.
            highest: match operations {
                Operations::SystemCalls => Level::Rseq,
                Operations::Disk => Level::PerfRecords,
                _ => Level::Tracepoints,
            },
            faults: operations != Operations::Faults,
            sleeps: operations != Operations::UserSpace,
        };
        let mut evidence = Evidence::open(clock, cpu, wanted);
        evidence.start(clock);
        listening.operations = operations;
        listening.evidence = Some(evidence);
        listening.delay = wanted.sleeps.then(RunDelay::of_this_thread).flatten();
        listening.interrupts = cpu.map(|cpu| {
            let counters = CpuCounters::of_this_thread(cpu);
            let now_ns = clock.now_ns();
            Interrupts {
                first: (now_ns, counters.read(clock)),
                counters,
                last_ns: now_ns,
                per_ns: None,
            }
        });
        listening
    }

    /// Whether there is anything beside the operations to listen to.
    pub(crate) fn listens(&self) -> bool {
        self.evidence.is_some()
    }

    /// Whether a record is judged better when all blocks of the probe are known: where slow operations are few and periods explain them.
    pub(crate) fn needs_all_blocks(&self) -> bool {
        matches!(self.operations, Operations::UserSpace | Operations::Faults)
    }

    /// Room for the operations of one block, touched before.
    pub(crate) fn lend(&mut self) -> Vec<Candidate> {
        let mut lent = std::mem::take(&mut self.candidates);
        if self.operations != Operations::UserSpace && lent.capacity() < CANDIDATES {
            let touched = Candidate {
                begin: 1,
                ..Candidate::default()
            };
            lent = vec![touched; CANDIDATES];
        }
        lent.clear();
        lent
    }

    pub(crate) fn take_back(&mut self, lent: Vec<Candidate>) {
        self.candidates = lent;
    }

    pub(crate) fn flag(&mut self) -> Option<&mut ThreadFlag> {
        self.evidence.as_mut().map(Evidence::flag)
    }

    /// Before the first operation of a block that waits, for this other thread of the process if there is one.
    pub(crate) fn begin_to_wait(&mut self, clock: &Clock, partner: Option<u32>) {
        if self.partner.as_ref().map(|(tid, _)| *tid) != partner {
            self.partner = partner.map(|tid| (tid, RunDelay::of_thread(tid)));
        }
        self.unasked = 0;
        self.last_count = self.count(clock);
    }

    fn count(&self, clock: &Clock) -> Option<Counted> {
        let counted = match &self.partner {
            Some((_, other)) => other.as_ref()?,
            None => self.delay.as_ref()?,
        };
        Some(Counted {
            delay: counted.read_ns()?,
            // Where there are records, these say when it ran.
            running: if self.has_records() {
                None
            } else {
                counted.running_ns()
            },
            at_ns: clock.now_ns(),
        })
    }

    fn has_records(&self) -> bool {
        self.evidence.as_ref().is_some_and(Evidence::records_switches)
    }

    /// Right after an operation, outside of what is timed.
    pub(crate) fn note(&mut self, clock: &Clock, ns: f64, waits: bool) -> Note {
        if !waits {
            // Those that are stamped in one go and told later would share a flag.
            let told_at_once = self.operations == Operations::SystemCalls;
            return Note {
                preempted: told_at_once && self.flag().is_some_and(latlab_observe::Flag::taken),
                ..Note::default()
            };
        }
        self.since_drain += 1;
        if self.since_drain >= DRAIN_EVERY {
            self.drain(clock);
        }
        // What is woken by this thread has time enough, as it sleeps before each operation.
        if ns < WORTH_ASKING_NS && self.partner.is_none() {
            self.unasked += 1;
            return Note::default();
        }
        let now = self.count(clock);
        let last = std::mem::replace(&mut self.last_count, now);
        let unasked = std::mem::take(&mut self.unasked);
        // What was counted since then may be that of others.
        let delay = now.zip(last).filter(|_| unasked == 0).map(|(now, last)| Delay {
            ns: now.delay.saturating_sub(last.delay) as f64,
            since_ns: last.at_ns,
            at_end: self.partner.is_some(),
            running_ns: now
                .running
                .zip(last.running)
                .map(|(now, last)| now.saturating_sub(last) as f64),
        });
        Note {
            delay,
            ..Note::default()
        }
    }

    fn drain(&mut self, clock: &Clock) {
        self.since_drain = 0;
        if let Some(evidence) = &mut self.evidence {
            let (events, lost) = evidence.drain(clock);
            self.early.0.extend(events);
            self.early.1 += lost;
        }
    }

    /// Right before a block: what happened since the last one is forgotten.
    pub(crate) fn begin(&mut self, clock: &Clock) {
        self.drain(clock);
        self.early = (Vec::new(), 0);
    }

    /// Right after a block.
    pub(crate) fn end(&mut self, clock: &Clock, block: &mut BlockData) {
        if block.histogram.is_none() || !(block.waits || may_be_judged(block)) {
            return;
        }
        self.drain(clock);
        let (events, lost) = std::mem::take(&mut self.early);
        if block.waits {
            let complete = lost == 0 && self.has_records();
            split_block(block, events, complete);
            return;
        }
        self.hear(block, events, lost);
        let now_ns = clock.now_ns();
        if let Some(interrupts) = &mut self.interrupts
            && now_ns - interrupts.last_ns >= INTERRUPTS_EVERY_NS
        {
            interrupts.read(clock, now_ns);
        }
    }

    fn hear(&mut self, block: &BlockData, events: Vec<Event>, lost: u64) {
        let heard = &mut self.heard;
        let within = |event: &Event| {
            let end_ns = event.end_ns.unwrap_or(event.at_ns);
            block
                .listened
                .iter()
                .any(|span| event.at_ns <= span.to_ns + MARGIN_NS && end_ns >= span.from_ns - MARGIN_NS)
        };
        let mut events: Vec<Event> = events.into_iter().filter(within).collect();
        if !matches!(self.operations, Operations::SystemCalls | Operations::Disk) {
            // Where sleeping is no part of the work, who ran meanwhile is the cause.
            for event in events.iter_mut().filter(|event| event.cause == Cause::Waiting) {
                event.cause = Cause::ContextSwitch;
            }
        }
        let mut samples: Vec<Sample> = block
            .tail
            .iter()
            .enumerate()
            .map(|(index, slow)| Sample {
                at_ns: slow.at_ns,
                ns: slow.value,
                preempted: block.marks.get(index).is_some_and(|mark| mark.note.preempted),
            })
            .collect();
        samples.extend(&block.gaps);
        samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        heard.full |= heard.samples.len() + samples.len() > MOST || heard.events.len() + events.len() > MOST;
        if heard.full {
            return;
        }
        heard.samples.extend(samples);
        heard.listened.extend_from_slice(&block.listened);
        heard.events.extend(events);
        heard.lost_records += lost;
        heard.throttled_ns += block.observed.throttled_ns.unwrap_or(0);
    }

    fn level(&self) -> Level {
        self.evidence.as_ref().map_or(Level::TimeStamps, Evidence::level)
    }

    /// Writes into each tail sample what caused it, as far as that is known, and sums up those of the blocks that count.
    pub(crate) fn judge(&mut self, clock: &Clock, blocks: &mut [BlockData], threshold_ns: f64) -> Judged {
        let threshold_ns = slow::settle(blocks, threshold_ns);
        let causes = if blocks.iter().any(|block| block.waits) {
            self.judge_split(blocks, threshold_ns)
        } else {
            self.judge_heard(clock, blocks, threshold_ns)
        };
        Judged { threshold_ns, causes }
    }

    /// Of operations that wait: what is known was found block by block.
    fn judge_split(&self, blocks: &mut [BlockData], threshold_ns: f64) -> Option<TailCauses> {
        let evidence = self.evidence.as_ref()?;
        let known = |block: &BlockData| block.marks.iter().all(|mark| mark.split.is_some());
        if !blocks.iter().all(|block| block.waits && known(block)) {
            return None;
        }
        let counted = times_of_counted(blocks);
        let recorded = evidence.records_switches();
        let (mut rows, mut parts) = (Rows::default(), Parts::default());
        for block in blocks {
            let counts = counted.contains(&block.at_ns);
            let most_ns = block.delay_at_most_ns.unwrap_or(f64::INFINITY);
            let (mut alone_ns, mut together_ns, mut asked) = (0.0, 0.0, true);
            for (sample, mark) in block.tail.iter_mut().zip(&block.marks) {
                let Some(one) = &mark.split else { continue };
                sample.cause = name_of(one.cause);
                if counts {
                    rows.count(one.cause, sample.value, one.explained_ns);
                    for part in &one.parts {
                        parts.add(part.cause, part.explained_ns);
                    }
                }
                if mark.note.delay.is_none() {
                    asked = false;
                    let sum = |wanted: &dyn Fn(Cause) -> bool| -> f64 {
                        let own = one.parts.iter().filter(|part| wanted(part.cause));
                        own.map(|part| part.explained_ns).sum()
                    };
                    let waiting_ns = if recorded {
                        sum(&|cause| cause == Cause::Waiting)
                    } else {
                        sample.value - sum(&|cause| cause != Cause::Waiting)
                    };
                    if mark.note.under_way {
                        // One delay can hold back all that are under way; the thread did not wait longer than this for any of them.
                        together_ns += waiting_ns.min(most_ns).min(LONG_WAIT_NS);
                    } else {
                        alone_ns += waiting_ns;
                    }
                }
            }
            let more_ns = alone_ns.min(most_ns) + together_ns;
            if counts && !asked && more_ns > 0.0 {
                parts.at_most(Cause::RunQueueDelay, more_ns);
            }
        }
        let level = if recorded {
            self.level().name()
        } else if self.delay.is_some() {
            "counters"
        } else {
            Level::TimeStamps.name()
        };
        Some(TailCauses {
            level: level.to_owned(),
            threshold_ns,
            causes: rows.sorted(),
            parts: parts.sorted(),
        })
    }

    fn judge_heard(
        &mut self,
        clock: &Clock,
        blocks: &mut [BlockData],
        threshold_ns: f64,
    ) -> Option<TailCauses> {
        if blocks.is_empty() || self.heard.full || !blocks.iter().all(may_be_judged) {
            return None;
        }
        let now_ns = clock.now_ns();
        let known = self.judged.borrow().as_ref().map(|(spans, _)| *spans);
        if known != Some(self.heard.listened.len()) {
            if let Some(interrupts) = &mut self.interrupts {
                interrupts.read(clock, now_ns);
            }
            let found = self.attribute();
            self.judged.replace(Some((self.heard.listened.len(), found)));
        }
        let judged = self.judged.borrow();
        let (_, found) = judged.as_ref()?;
        let causes = write_into(blocks, |at_ns| {
            let place = self.heard.samples.partition_point(|other| other.at_ns < at_ns);
            let heard = self.heard.samples.get(place)?;
            let one = found.each.get(place)?;
            heard
                .at_ns
                .total_cmp(&at_ns)
                .is_eq()
                .then_some((one.cause, one.explained_ns))
        });
        Some(TailCauses {
            level: self.level().name().to_owned(),
            threshold_ns,
            causes,
            parts: Vec::new(),
        })
    }

    fn attribute(&self) -> Attributed {
        let heard = &self.heard;
        let listened_ns: f64 = heard.listened.iter().map(|span| span.to_ns - span.from_ns).sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of some thousands at most"
        )]
        let timer_interrupts = self
            .interrupts
            .as_ref()
            .and_then(|interrupts| interrupts.per_ns)
            .map(|per_ns| (per_ns * listened_ns).round() as u64);
        let context = Context {
            listened: &heard.listened,
            switches_are_recorded: heard.lost_records == 0
                && self.evidence.as_ref().is_some_and(Evidence::records_switches),
            timer_interrupts,
            throttled_ns: heard.throttled_ns,
        };
        attribute(&heard.samples, &heard.events, &context)
    }
}

impl Interrupts {
    fn read(&mut self, clock: &Clock, now_ns: f64) {
        let (first_ns, first) = &self.first;
        let counted = self.counters.read(clock).since(first);
        self.last_ns = now_ns;
        self.per_ns = counted
            .timer_interrupts()
            .filter(|_| now_ns > *first_ns)
            .map(|count| count as f64 / (now_ns - first_ns));
    }
}

/// Whether a slow operation of this block was an operation that was kept from being fast: not one of a mode that is slow.
fn may_be_judged(block: &BlockData) -> bool {
    let slow = block.tail.len() as u64 + block.tail_dropped;
    !block.listened.is_empty() && !block.waits && slow * USUAL <= block.ops
}

/// Writes into each tail sample the cause that `of` knows for its time, and sums up those of the blocks that count, the most frequent first.
fn write_into(blocks: &mut [BlockData], of: impl Fn(f64) -> Option<(Cause, f64)>) -> Vec<TailCause> {
    let mut rows = Rows::default();
    let counted = times_of_counted(blocks);
    for block in blocks {
        let counts = counted.contains(&block.at_ns);
        for sample in &mut block.tail {
            let (cause, explained_ns) = of(sample.at_ns).unwrap_or((Cause::Unexplained, 0.0));
            sample.cause = name_of(cause);
            if counts {
                rows.count(cause, sample.value, explained_ns);
            }
        }
    }
    rows.sorted()
}

/// What a session found out itself about its slow operations.
#[derive(Clone, Debug)]
pub struct KnownCauses {
    /// What could be seen.
    pub level: Level,
    /// One a slow operation, in order of time.
    pub each: Vec<KnownCause>,
}

/// What kept one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownCause {
    /// When the operation began, ns since the clock was opened: exactly as in its block.
    pub at_ns: f64,
    /// What it was.
    pub cause: Cause,
    /// How much of it evidence covers, ns.
    pub explained_ns: f64,
}

impl KnownCauses {
    /// The slow operations with these causes.
    pub(crate) fn judged(&self, blocks: &mut [BlockData], threshold_ns: f64) -> Judged {
        let causes = self.written_into(blocks, threshold_ns);
        Judged {
            threshold_ns,
            causes: Some(causes),
        }
    }

    fn written_into(&self, blocks: &mut [BlockData], threshold_ns: f64) -> TailCauses {
        let causes = write_into(blocks, |at_ns| {
            let place = self
                .each
                .binary_search_by(|one| one.at_ns.total_cmp(&at_ns))
                .ok()?;
            Some((self.each[place].cause, self.each[place].explained_ns))
        });
        TailCauses {
            level: self.level.name().to_owned(),
            threshold_ns,
            causes,
            parts: Vec::new(),
        }
    }
}

/// What each slow operation of a block that waits is made of. `complete`: every switch of the thread is among the events.
fn split_block(block: &mut BlockData, mut events: Vec<Event>, complete: bool) {
    if !complete {
        events.clear();
    }
    events.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    let preempted_ns: f64 = events
        .iter()
        .filter(|event| event.cause == Cause::ContextSwitch)
        .map(|event| event.end_ns.unwrap_or(event.at_ns) - event.at_ns)
        .sum();
    block.delay_at_most_ns = block
        .observed
        .run_queue_delay_ns
        .map(|ns| (ns as f64 - preempted_ns).max(0.0));
    let longest_ns = events
        .iter()
        .filter_map(|event| Some(event.end_ns? - event.at_ns))
        .fold(0.0, f64::max);
    for (slow, mark) in block.tail.iter().zip(&mut block.marks) {
        let sample = Sample {
            at_ns: slow.at_ns,
            ns: slow.value,
            preempted: false,
        };
        let since_ns = mark
            .note
            .delay
            .map_or(sample.at_ns, |delay| delay.since_ns.min(sample.at_ns));
        let first = events.partition_point(|event| event.at_ns < since_ns - longest_ns);
        let beside: Vec<&Event> = events[first..]
            .iter()
            .take_while(|event| event.at_ns < sample.end_ns())
            .collect();
        // While a device works, that this thread is away costs nothing: only when it comes back too late for the answer.
        let earliest_ns = if mark.note.under_way {
            sample.end_ns() - PICKED_UP_NS
        } else {
            sample.at_ns
        };
        // Where another thread is waited for, that this one was away after it had woken it costs nothing.
        let is_others = mark.note.delay.is_some_and(|delay| delay.at_end) && !mark.note.under_way;
        let mut own: Vec<Event> = beside
            .iter()
            .filter(|_| !is_others)
            .filter(|event| event.end_ns.unwrap_or(event.at_ns) > earliest_ns)
            .map(|event| (*event).clone())
            .collect();
        if mark.note.under_way {
            own.push(Event {
                cause: Cause::Waiting,
                proof: Proof::UnderWay,
                at_ns: sample.at_ns,
                end_ns: Some(sample.end_ns()),
                who: None,
            });
        }
        if let Some(delay) = mark.note.delay {
            own.extend(ready(&sample, delay, &beside, complete));
        }
        own.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        mark.split = split(&[sample], &own).pop();
    }
}

/// When this operation was ready without a CPU and no record says so: at the end of its sleeps, when it had been woken; without records, at its end.
fn ready(sample: &Sample, delay: Delay, beside: &[&Event], complete: bool) -> Vec<Event> {
    let at = |from: f64, to: f64| Event {
        cause: Cause::RunQueueDelay,
        proof: Proof::DelayCounter,
        at_ns: from,
        end_ns: Some(to),
        who: None,
    };
    if !complete || delay.at_end {
        let late_ns = delay.ns.min(sample.ns);
        let mut found = vec![at(sample.end_ns() - late_ns, sample.end_ns())];
        if let Some(running_ns) = delay.running_ns {
            // Before it began, the thread ran.
            let within_ns = (running_ns - (sample.at_ns - delay.since_ns)).clamp(0.0, sample.ns - late_ns);
            found.push(Event {
                cause: Cause::Waiting,
                ..at(sample.at_ns, sample.end_ns() - late_ns - within_ns)
            });
        }
        return found;
    }
    let overlap = |event: &Event, from: f64| {
        let end_ns = event.end_ns.unwrap_or(event.at_ns);
        (end_ns.min(sample.end_ns()) - event.at_ns.max(from)).max(0.0)
    };
    // The count has all of it since it was last asked; preemptions have records of their own.
    let recorded: f64 = beside
        .iter()
        .filter(|event| event.cause == Cause::ContextSwitch)
        .map(|event| overlap(event, delay.since_ns))
        .sum();
    let mut left = (delay.ns - recorded).max(0.0);
    let mut found = Vec::new();
    for event in beside.iter().rev().filter(|event| event.cause == Cause::Waiting) {
        let taken = overlap(event, sample.at_ns).min(left);
        if taken > 0.0 {
            let end_ns = event.end_ns.unwrap_or(event.at_ns).min(sample.end_ns());
            found.push(at(end_ns - taken, end_ns));
            left -= taken;
        }
    }
    found
}

fn times_of_counted(blocks: &[BlockData]) -> Vec<f64> {
    let (counted, _) = summary::counted(blocks);
    counted.iter().map(|block| block.at_ns).collect()
}

fn name_of(cause: Cause) -> Option<String> {
    (cause != Cause::Unexplained).then(|| cause.name().to_owned())
}

/// How many slow operations each cause has.
#[derive(Default)]
struct Rows(Vec<(Cause, TailCause)>);

impl Rows {
    fn count(&mut self, cause: Cause, ns: f64, explained_ns: f64) {
        let rows = &mut self.0;
        let place = rows.iter().position(|(own, _)| *own == cause).unwrap_or_else(|| {
            let row = TailCause {
                cause: cause.name().to_owned(),
                count: 0,
                ns: 0.0,
                explained_ns: 0.0,
            };
            rows.push((cause, row));
            rows.len() - 1
        });
        let row = &mut rows[place].1;
        row.count += 1;
        row.ns += ns;
        row.explained_ns += explained_ns.min(ns);
    }

    fn sorted(self) -> Vec<TailCause> {
        let mut causes: Vec<TailCause> = self.0.into_iter().map(|(_, row)| row).collect();
        causes.sort_by(|a, b| b.count.cmp(&a.count).then(b.ns.total_cmp(&a.ns)));
        for row in &mut causes {
            (row.ns, row.explained_ns) = (row.ns.round(), row.explained_ns.round());
        }
        causes
    }
}

/// How much of their time each cause has.
#[derive(Default)]
struct Parts(Vec<TailPart>);

impl Parts {
    fn of(&mut self, cause: Cause) -> &mut TailPart {
        let place = self.0.iter().position(|part| part.cause == cause.name());
        let place = place.unwrap_or_else(|| {
            self.0.push(TailPart {
                cause: cause.name().to_owned(),
                ns: 0.0,
                at_most_more_ns: None,
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    fn add(&mut self, cause: Cause, ns: f64) {
        self.of(cause).ns += ns;
    }

    fn at_most(&mut self, cause: Cause, ns: f64) {
        *self.of(cause).at_most_more_ns.get_or_insert(0.0) += ns;
    }

    fn sorted(mut self) -> Vec<TailPart> {
        for part in &mut self.0 {
            part.ns = part.ns.round();
            part.at_most_more_ns = part.at_most_more_ns.map(f64::round);
        }
        self.0.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;
    use latlab_observe::Proof;
    use latlab_record::{Histogram, TailSample};

    use super::*;

    /// Blocks of 2 ms that follow each other at once; each sample is (time, length).
    fn blocks(count: usize, samples: &[(f64, f64)]) -> Vec<BlockData> {
        (0..count)
            .map(|index| {
                let (from_ns, to_ns) = (index as f64 * 2e6, (index + 1) as f64 * 2e6);
                let own = samples.iter().filter(|(at, _)| (from_ns..to_ns).contains(at));
                BlockData {
                    at_ns: from_ns,
                    duration_ns: to_ns - from_ns,
                    ops: 20_000,
                    histogram: Some(Histogram::new()),
                    listened: vec![Span { from_ns, to_ns }],
                    tail: own
                        .map(|&(at_ns, value)| TailSample {
                            at_ns,
                            value,
                            cause: None,
                        })
                        .collect(),
                    ..BlockData::default()
                }
            })
            .collect()
    }

    fn judged(blocks: &mut [BlockData], events: &[Event]) -> Option<TailCauses> {
        let clock = Clock::simulated(SimulatedClock::ideal());
        let mut listening = Listening::to_time_stamps();
        for block in blocks.iter() {
            listening.hear(block, events.to_vec(), 0);
        }
        listening.judge(&clock, blocks, 1_000.0).causes
    }

    fn rows(causes: &TailCauses) -> Vec<(&str, u64)> {
        causes
            .causes
            .iter()
            .map(|row| (row.cause.as_str(), row.count))
            .collect()
    }

    fn event(cause: Cause, at_ns: f64, ns: f64) -> Event {
        Event {
            cause,
            proof: Proof::Tracepoint,
            at_ns,
            end_ns: Some(at_ns + ns),
            who: None,
        }
    }

    #[test]
    fn each_planted_event_names_its_sample_and_the_rest_stays_unexplained() {
        let mut blocks = blocks(6, &[(1e6, 12_000.0), (3e6, 40_000.0), (5e6, 15_000.0)]);
        let events = [
            event(Cause::TimerTick, 1.001e6, 9_000.0),
            event(Cause::ContextSwitch, 3.001e6, 38_000.0),
        ];
        let found = judged(&mut blocks, &events).expect("there is a tail");
        assert_eq!(
            rows(&found),
            [("context-switch", 1), ("unexplained", 1), ("timer-tick", 1)]
        );
        let tail: Vec<Option<&str>> = blocks
            .iter()
            .flat_map(|block| block.tail.iter().map(|sample| sample.cause.as_deref()))
            .collect();
        assert_eq!(tail, [Some("timer-tick"), Some("context-switch"), None]);
        for row in &found.causes {
            assert!(row.explained_ns <= row.ns, "{row:?}");
        }
        assert!(found.causes.iter().any(|row| row.cause == "unexplained"
            && row.ns.total_cmp(&15_000.0).is_eq()
            && row.explained_ns.total_cmp(&0.0).is_eq()));
    }

    #[test]
    fn an_event_while_nothing_was_timed_names_nothing() {
        let mut blocks = blocks(6, &[(1e6, 12_000.0)]);
        blocks[0].listened = vec![Span {
            from_ns: 0.9e6,
            to_ns: 1.5e6,
        }];
        let mut listening = Listening::to_time_stamps();
        listening.hear(&blocks[0], vec![event(Cause::PageFault, 1.7e6, 500.0)], 0);
        assert!(listening.heard.events.is_empty());
        let clock = Clock::simulated(SimulatedClock::ideal());
        let found = listening
            .judge(&clock, &mut blocks, 1_000.0)
            .causes
            .expect("a tail");
        assert_eq!(rows(&found), [("unexplained", 1)]);
    }

    #[test]
    fn a_tick_without_events_is_a_comb_over_many_blocks() {
        // 250 Hz for 0.4 s; one tooth in five is in no operation.
        let teeth: Vec<(f64, f64)> = (0..100)
            .filter(|tooth| tooth % 5 != 0)
            .map(|tooth| (1e6 + f64::from(tooth) * 4e6, 6_000.0))
            .collect();
        let found = judged(&mut blocks(200, &teeth), &[]).expect("a tail");
        assert_eq!(rows(&found), [("periodic", 80)], "which one cannot be told here");
        assert_eq!(found.level, "time stamps");
    }

    /// One block that waits, its operations at these times; nothing is known of them yet.
    fn waiting(samples: &[(f64, f64)], notes: &[Note]) -> BlockData {
        let mut block = BlockData {
            ops: 1_000,
            waits: true,
            histogram: Some(Histogram::new()),
            ..BlockData::default()
        };
        for (&(at_ns, ns), note) in samples.iter().zip(notes) {
            block.push_slow(at_ns, ns, *note);
        }
        block
    }

    fn part_of(block: &BlockData, index: usize, cause: Cause) -> f64 {
        let split = block.marks[index].split.as_ref().expect("split");
        let own = split.parts.iter().find(|part| part.cause == cause);
        own.map_or(0.0, |part| part.explained_ns)
    }

    fn delayed(ns: f64, since_ns: f64) -> Note {
        Note {
            delay: Some(Delay {
                ns,
                since_ns,
                at_end: false,
                running_ns: None,
            }),
            ..Note::default()
        }
    }

    #[test]
    fn time_that_a_woken_thread_stood_in_line_is_not_the_disks() {
        // Asleep for 800 us; 300 us of being ready are counted, 100 of which were a preemption with a record of its own.
        let mut block = waiting(&[(1e6, 1e6)], &[delayed(300_000.0, 0.9e6)]);
        let events = vec![
            event(Cause::Waiting, 1.1e6, 800_000.0),
            event(Cause::ContextSwitch, 0.92e6, 40_000.0),
            event(Cause::ContextSwitch, 1.92e6, 60_000.0),
        ];
        split_block(&mut block, events, true);
        assert!((part_of(&block, 0, Cause::RunQueueDelay) - 200_000.0).abs() < 1.0);
        assert!((part_of(&block, 0, Cause::Waiting) - 600_000.0).abs() < 1.0);
        assert!((part_of(&block, 0, Cause::ContextSwitch) - 60_000.0).abs() < 1.0);
    }

    #[test]
    fn without_records_the_count_of_an_operation_is_all_that_is_known_and_never_more_than_it() {
        let mut block = waiting(
            &[(1e6, 1e6), (3e6, 1e5)],
            &[delayed(300_000.0, 0.9e6), delayed(5e6, 2.9e6)],
        );
        split_block(&mut block, vec![event(Cause::Waiting, 1.1e6, 800_000.0)], false);
        assert!((part_of(&block, 0, Cause::RunQueueDelay) - 300_000.0).abs() < 1.0);
        assert!(
            part_of(&block, 0, Cause::Waiting) < 1.0,
            "records with gaps are none"
        );
        assert!((part_of(&block, 1, Cause::RunQueueDelay) - 1e5).abs() < 1.0);
    }

    #[test]
    fn what_a_thread_neither_ran_nor_stood_in_line_it_slept() {
        let mut block = waiting(&[(1e6, 1e6)], &[delayed(300_000.0, 0.9e6)]);
        let delay = block.marks[0].note.delay.as_mut().expect("given");
        // 100 us before it began, 50 in it.
        delay.running_ns = Some(150_000.0);
        split_block(&mut block, Vec::new(), false);
        assert!((part_of(&block, 0, Cause::RunQueueDelay) - 300_000.0).abs() < 1.0);
        assert!((part_of(&block, 0, Cause::Waiting) - 650_000.0).abs() < 1.0);
    }

    #[test]
    fn a_thread_that_is_away_while_a_device_works_delays_nothing_but_what_it_picks_up_late() {
        let under_way = Note {
            under_way: true,
            ..Note::default()
        };
        let mut block = waiting(&[(1e6, 1e6), (1e6, 3e6)], &[under_way; 2]);
        split_block(
            &mut block,
            vec![event(Cause::ContextSwitch, 1.5e6, 490_000.0)],
            true,
        );
        assert!((part_of(&block, 0, Cause::ContextSwitch) - 490_000.0).abs() < 1.0);
        assert!((part_of(&block, 0, Cause::Waiting) - 510_000.0).abs() < 1.0);
        assert!((part_of(&block, 1, Cause::Waiting) - 3e6).abs() < 1.0);
    }

    #[test]
    fn what_is_split_adds_up_and_what_was_not_asked_is_a_bound() {
        let clock = Clock::simulated(SimulatedClock::ideal());
        let mut six: Vec<BlockData> = (0..6)
            .map(|index| {
                let from_ns = f64::from(index) * 1e7;
                let mut block = waiting(&[(from_ns, 1e6)], &[Note::default()]);
                block.at_ns = from_ns;
                block.observed.run_queue_delay_ns = Some(200_000);
                split_block(&mut block, vec![event(Cause::Waiting, from_ns, 900_000.0)], true);
                block
            })
            .collect();
        let mut listening = Listening::to_time_stamps();
        assert_eq!(
            listening.judge(&clock, &mut six, 1_000.0).causes,
            None,
            "nothing listened"
        );
        let real = Clock::open();
        listening.evidence = Some(Evidence::of_this_thread(&real, None, Level::TimeStamps));
        listening.operations = Operations::Disk;
        let found = listening.judge(&clock, &mut six, 1_000.0).causes.expect("a tail");
        assert_eq!(rows(&found), [("waiting", 6)]);
        let parts: Vec<(&str, f64, Option<f64>)> = found
            .parts
            .iter()
            .map(|part| (part.cause.as_str(), part.ns, part.at_most_more_ns))
            .collect();
        assert_eq!(
            parts,
            [("waiting", 5.4e6, None), ("run-queue-delay", 0.0, Some(1.2e6))]
        );
        assert_eq!(six[0].tail[0].cause.as_deref(), Some("waiting"));
    }

    #[test]
    fn the_flag_names_a_switch_only_where_switches_have_no_records() {
        let mut six = blocks(6, &[(1e6, 12_000.0)]);
        six[0].marks = vec![slow::Mark {
            note: Note {
                preempted: true,
                ..Note::default()
            },
            split: None,
        }];
        let found = judged(&mut six, &[]).expect("a tail");
        assert_eq!(rows(&found), [("context-switch", 1)]);
    }

    #[test]
    fn what_fell_between_two_operations_completes_a_period() {
        // One tooth in two hits an operation: without the others there is no period to be found.
        let times = |parity: i32| -> Vec<(f64, f64)> {
            (0..100)
                .filter(|tooth| tooth % 2 == parity)
                .map(|tooth| (1e6 + f64::from(tooth) * 4e6, 6_000.0))
                .collect()
        };
        let mut all = blocks(200, &times(0));
        for (at_ns, ns) in times(1) {
            let own = all
                .iter_mut()
                .find(|block| at_ns < block.at_ns + block.duration_ns);
            own.expect("within the blocks").gaps.push(Sample {
                at_ns,
                ns,
                preempted: false,
            });
        }
        let found = judged(&mut all, &[]).expect("a tail");
        assert_eq!(rows(&found), [("periodic", 50)]);
    }

    #[test]
    fn blocks_that_do_not_all_wait_have_no_causes_nor_has_what_is_usually_slow() {
        let tick = [event(Cause::TimerTick, 1.001e6, 9_000.0)];
        let mut mixed = blocks(6, &[(1e6, 12_000.0)]);
        mixed[2].waits = true;
        assert_eq!(judged(&mut mixed, &tick), None);
        let mut usual = blocks(6, &[(1e6, 12_000.0)]);
        usual[0].ops = 19;
        assert_eq!(judged(&mut usual, &tick), None);
        assert!(usual[0].tail[0].cause.is_none());
    }

    #[test]
    fn more_than_there_is_room_for_has_no_causes_rather_than_wrong_ones() {
        let mut many = blocks(6, &[(1e6, 12_000.0)]);
        many[1].tail = vec![many[0].tail[0].clone(); MOST];
        many[1].ops = u64::MAX / USUAL;
        assert_eq!(judged(&mut many, &[]), None);
    }

    #[test]
    fn what_a_session_knows_itself_is_written_by_time() {
        let mut blocks = blocks(6, &[(1e6, 12_000.0), (3e6, 40_000.0)]);
        let known = KnownCauses {
            level: Level::Rseq,
            each: vec![KnownCause {
                at_ns: 3e6,
                cause: Cause::HostTick,
                explained_ns: 30_000.0,
            }],
        };
        let found = known.written_into(&mut blocks, 1_000.0);
        assert_eq!(rows(&found), [("host-tick", 1), ("unexplained", 1)]);
        assert_eq!(found.level, "rseq");
        assert!((found.causes[0].explained_ns - 30_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_disturbed_block_is_not_in_the_sum() {
        let mut seven = blocks(7, &[(1e6, 12_000.0), (3e6, 12_000.0)]);
        seven[1].disturbed = true;
        let found = judged(&mut seven, &[]).expect("a tail");
        assert_eq!(rows(&found), [("unexplained", 1)]);
    }
}
