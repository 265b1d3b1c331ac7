//! What the slow operations of a probe are made of: the evidence that its thread carries, taken between
//! blocks, and the judgement when a record is made.
//!
//! ```text
//! block that does not wait   slow ones, flag, records, gaps between turns ─► heard: all blocks of the probe ─► periodic interference, attribute
//! block that waits           slow ones, records, time without a CPU ───────► split, block by block: what each was waiting for
//! ```
//! A block of single operations lasts milliseconds, a tick comes every four: periods are looked for in all
//! blocks of the probe, so records are judged when the last of them is taken. Nothing is asked inside the
//! timed loop: what falls between two operations is looked for once in some dozens.

use std::cell::RefCell;

use latlab_clock::{Clock, Source};
use latlab_observe::{
    Attributed, Cause, Context, CpuCounters, CpuReading, Event, Evidence, Level, RunDelay, Sample, Span,
    ThreadFlag, Wanted, attribute, is_pinned_to,
};
use latlab_record::TailCauses;
use latlab_stats::count::nearest;

use crate::samples::{BlockData, Candidate, Delay, Note, Records};
use crate::slow::{self, CANDIDATES, LONG_WAIT_NS, USUAL};
use crate::{Env, Operations};

mod known;
mod split;
mod sums;

use known::Judged;
pub use known::{KnownCause, KnownCauses};
use split::{cause_of, split_block};
use sums::{Parts, Rows, name_of, times_of_counted, write_into};

/// Set to anything, it leaves the evidence out: for looking at what it costs.
const WITHOUT: &str = "LATLAB_WITHOUT_EVIDENCE";
/// More gaps or events are not kept: a probe with more has no tail but a second mode, and their judgement
/// would take seconds.
const MOST: usize = 100_000;
/// Reading the interrupts takes 70 us, and far longer on a machine of many CPUs.
const INTERRUPTS_EVERY_NS: f64 = 100e6;
/// Records are stamped by another clock, and a handler's some hundred nanoseconds after it was entered.
const MARGIN_NS: f64 = 2_000.0;
/// The thread's time without a CPU is asked after operations of this length and more, which takes 0.7 us, and
/// 0.5 more for its time on the CPU.
const WORTH_ASKING_NS: f64 = 20_000.0;
/// One access to memory never takes so long by itself: a walk of both page tables of a virtual machine is two
/// dozen reads of memory, 2.5 us.
const LONGEST_OWN_NS: f64 = 5_000.0;
/// Of the blocks that wait for a disk one of so many is recorded: records of switches and faults made a read
/// of 80 us 6 % longer on a noisy host, with those of requests 10 %.
const RECORDED_EVERY: u64 = 4;
/// How the part of a sleep is called in which no device had a request of the operation, where requests were
/// recorded.
const WAY: &str = "way";
/// Records of an ordinary user have room for some 3,000 operations that sleep; they are taken out well
/// before.
const DRAIN_EVERY: u32 = 1_000;

/// The evidence of one probe's run, and what it heard so far; by itself nothing but time stamps, whose
/// periods are all that is known.
#[derive(Default)]
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
    /// Blocks that were begun, counted from the number of the round: not in every round are those of the same
    /// point recorded.
    begun: u64,
    /// No records are written: this block is none of those that are recorded.
    paused: bool,
    /// In this block so far all requests to devices were recorded.
    requests_known: bool,
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

thread_local! {
    /// The tracepoints that the probe before this one used on this thread, switched off. The kernel takes a
    /// second to forget them (25 times two grace periods), and next to nothing to open them again before it
    /// begins to.
    static KEPT: RefCell<Option<Evidence>> = const { RefCell::new(None) };
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(mut evidence) = self.evidence.take().filter(|_| self.operations.are_traced()) {
            evidence.stop();
            KEPT.set(Some(evidence));
        }
    }
}

impl Listening {
    /// On the thread that measures.
    pub(crate) fn of_this_thread(env: &Env, operations: Operations) -> Self {
        let clock = &env.clock;
        // Closed when that of this probe is open, or beside it where it needs no tracepoints: a switch takes
        // 3.5 % longer while one of its own is in use. In that second there are some 200 interrupts of a
        // microsecond or two more, as the kernel changes its code.
        let _last = KEPT.take().filter(|_| operations.are_traced());
        let mut listening = Self::default();
        if operations == Operations::Unwatched
            || matches!(clock.source, Source::Simulated(_))
            || std::env::var_os(WITHOUT).is_some()
        {
            return listening;
        }
        let cpu = is_pinned_to(env.home_cpu).then_some(env.home_cpu);
        let wanted = Wanted {
            // A device's answer is an interrupt, deferred work, a wake-up and two switches: six records of a
            // fifth of a microsecond each.
            highest: match operations {
                Operations::SystemCalls => Level::Rseq,
                Operations::Disk => Level::PerfRecords,
                _ => Level::Tracepoints,
            },
            faults: operations != Operations::Faults,
            sleeps: operations != Operations::UserSpace,
            requests: operations == Operations::Disk,
        };
        let mut evidence = Evidence::open(clock, cpu, wanted);
        evidence.start(clock);
        listening.operations = operations;
        listening.begun = u64::from(env.round);
        listening.evidence = Some(evidence);
        listening.delay = wanted.sleeps.then(RunDelay::of_this_thread).flatten();
        listening.interrupts = cpu.map(|cpu| {
            let counters = CpuCounters::of_this_thread(cpu);
            let now_ns = clock.now_ns();
            Interrupts { first: (now_ns, counters.read()), counters, last_ns: now_ns, per_ns: None }
        });
        listening
    }

    /// Whether there is anything beside the operations to listen to.
    pub(crate) fn listens(&self) -> bool {
        self.evidence.is_some()
    }

    /// Whether a record is judged better when all blocks of the probe are known: where slow operations are
    /// few and periods explain them.
    pub(crate) fn needs_all_blocks(&self) -> bool {
        matches!(self.operations, Operations::UserSpace | Operations::Faults)
    }

    /// Room for the operations of one block, touched before.
    pub(crate) fn lend(&mut self) -> Vec<Candidate> {
        let mut lent = std::mem::take(&mut self.candidates);
        if self.operations != Operations::UserSpace && lent.capacity() < CANDIDATES {
            let touched = Candidate { begin: 1, ..Candidate::default() };
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

    /// Before the first operation of a block that waits, for this other thread of the process if there is
    /// one.
    pub(crate) fn begin_to_wait(&mut self, clock: &Clock, partner: Option<u32>) {
        if self.partner.as_ref().map(|(tid, _)| *tid) != partner {
            self.partner = partner.map(|tid| (tid, RunDelay::of_thread(tid)));
        }
        if self.operations == Operations::Disk
            && !self.is_turn_of_records()
            && let Some(evidence) = &mut self.evidence
        {
            evidence.stop();
            self.paused = true;
        }
        self.unasked = 0;
        self.last_count = self.count(clock);
    }

    /// Whether the block that was begun last is one of those that are recorded though they wait.
    fn is_turn_of_records(&self) -> bool {
        self.begun % RECORDED_EVERY == 1
    }

    fn count(&self, clock: &Clock) -> Option<Counted> {
        let counted = match &self.partner {
            Some((_, other)) => other.as_ref()?,
            None => self.delay.as_ref()?,
        };
        Some(Counted {
            delay: counted.read_ns()?,
            // Where there are records, these say when it ran.
            running: if self.has_records() { None } else { counted.running_ns() },
            at_ns: clock.now_ns(),
        })
    }

    fn has_records(&self) -> bool {
        !self.paused && self.evidence.as_ref().is_some_and(Evidence::records_switches)
    }

    /// Right after an operation, outside of what is timed.
    pub(crate) fn note(&mut self, clock: &Clock, ns: f64, waits: bool) -> Note {
        if !waits {
            // Those that are stamped in one go and reported later would share a flag.
            let reported_at_once = self.operations == Operations::SystemCalls;
            return Note {
                interruption: self
                    .flag()
                    .filter(|_| reported_at_once)
                    .map(latlab_observe::Flag::interruption)
                    .unwrap_or_default(),
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
            running_ns: now.running.zip(last.running).map(|(now, last)| now.saturating_sub(last) as f64),
        });
        Note { delay, ..Note::default() }
    }

    fn drain(&mut self, clock: &Clock) {
        self.since_drain = 0;
        if let Some(evidence) = &mut self.evidence {
            let (events, lost) = evidence.drain(clock);
            self.early.0.extend(events);
            self.early.1 += lost;
            self.requests_known &= evidence.knows_requests();
        }
    }

    /// Right before a block: what happened since the last one is forgotten.
    pub(crate) fn begin(&mut self, clock: &Clock) {
        self.drain(clock);
        self.early = (Vec::new(), 0);
        if self.operations != Operations::Disk {
            return;
        }
        self.begun += 1;
        let recorded = self.is_turn_of_records();
        if let Some(evidence) = &mut self.evidence {
            if std::mem::take(&mut self.paused) {
                evidence.start(clock);
            }
            if recorded || self.requests_known {
                // What stands in between is cheap, but not free: an interrupt of each CPU.
                evidence.record_requests(recorded);
            }
        }
        self.requests_known = recorded;
    }

    /// Right after a block.
    pub(crate) fn end(&mut self, clock: &Clock, block: &mut BlockData) {
        if block.histogram.is_none() || !(block.waits || may_be_judged(block)) {
            return;
        }
        self.drain(clock);
        let (events, lost) = std::mem::take(&mut self.early);
        if block.waits {
            let records = match (lost == 0 && self.has_records(), self.requests_known) {
                (false, _) => Records::Incomplete,
                (true, false) => Records::Switches,
                (true, true) => Records::Requests,
            };
            split_block(block, events, records);
            return;
        }
        self.hear(block, events, lost);
        let now_ns = clock.now_ns();
        if let Some(interrupts) = &mut self.interrupts
            && now_ns - interrupts.last_ns >= INTERRUPTS_EVERY_NS
        {
            interrupts.read(now_ns);
        }
    }

    fn hear(&mut self, block: &BlockData, events: Vec<Event>, lost: u64) {
        let heard = &mut self.heard;
        let within = |event: &Event| {
            let end_ns = event.known_end_ns();
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
                interruption: block.marks.get(index).map(|mark| mark.note.interruption).unwrap_or_default(),
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

    /// Writes into each tail sample what caused it, as far as that is known, and sums up those of the blocks
    /// that count.
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
            let records = block.records;
            for (sample, mark) in block.tail.iter_mut().zip(&block.marks) {
                let Some(one) = &mark.split else { continue };
                let cause = cause_of(one, sample.value);
                sample.cause = name_of(cause);
                if counts {
                    rows.count(cause, sample.value, one.explained_ns);
                    let apart = records == Records::Requests && !mark.note.under_way;
                    for part in &one.parts {
                        let name = match part.cause {
                            Cause::Waiting if apart => WAY,
                            other => other.name(),
                        };
                        parts.add(name, part.explained_ns);
                    }
                }
                if mark.note.delay.is_none() {
                    asked = false;
                    let sum = |wanted: &dyn Fn(Cause) -> bool| -> f64 {
                        let own = one.parts.iter().filter(|part| wanted(part.cause));
                        own.map(|part| part.explained_ns).sum()
                    };
                    let waiting_ns = match records {
                        Records::Incomplete => sample.value - sum(&|cause| cause != Cause::Waiting),
                        _ => sum(&|cause| cause == Cause::Waiting),
                    };
                    if mark.note.under_way {
                        // One delay can hold back all that are under way; the thread did not wait longer than
                        // this for any of them.
                        together_ns += waiting_ns.min(most_ns).min(LONG_WAIT_NS);
                    } else {
                        alone_ns += waiting_ns;
                    }
                }
            }
            let more_ns = alone_ns.min(most_ns) + together_ns;
            if counts && !asked && more_ns > 0.0 {
                parts.at_most(Cause::RunQueueDelay.name(), more_ns);
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
                interrupts.read(now_ns);
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
            heard.at_ns.total_cmp(&at_ns).is_eq().then_some((one.cause, one.explained_ns))
        });
        Some(TailCauses { level: self.level().name().to_owned(), threshold_ns, causes, parts: Vec::new() })
    }

    fn attribute(&self) -> Attributed {
        let heard = &self.heard;
        let listened_ns: f64 = heard.listened.iter().map(|span| span.to_ns - span.from_ns).sum();
        let timer_per_ns = self.interrupts.as_ref().and_then(|interrupts| interrupts.per_ns);
        let context = Context {
            listened: &heard.listened,
            switches_are_recorded: heard.lost_records == 0
                && self.evidence.as_ref().is_some_and(Evidence::records_switches),
            timer_interrupts: timer_per_ns.map(|per_ns| nearest(per_ns * listened_ns)),
            outside_from_ns: self
                .evidence
                .as_ref()
                .filter(|evidence| evidence.flags_interrupts())
                .map(|_| LONGEST_OWN_NS),
            throttled_ns: heard.throttled_ns,
        };
        attribute(&heard.samples, &heard.events, &context)
    }
}

impl Interrupts {
    fn read(&mut self, now_ns: f64) {
        let (first_ns, first) = &self.first;
        let counted = self.counters.read().since(first);
        self.last_ns = now_ns;
        self.per_ns = counted
            .timer_interrupts()
            .filter(|_| now_ns > *first_ns)
            .map(|count| count as f64 / (now_ns - first_ns));
    }
}

/// Whether a slow operation of this block was an operation that was kept from being fast: not one of a mode
/// that is slow.
fn may_be_judged(block: &BlockData) -> bool {
    let slow = block.tail.len() as u64 + block.tail_dropped;
    !block.listened.is_empty() && !block.waits && slow * USUAL <= block.ops
}

#[cfg(test)]
mod tests;
