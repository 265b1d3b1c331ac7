//! What the slow operations of a probe are made of: the evidence that its thread carries, taken between blocks, and the judgement when a
//! record is made.
//!
//! A block of single operations lasts milliseconds, a tick comes every four: periods are looked for in all blocks of the probe so far.
//! Nothing is asked inside the timed loop. Looking there for what fell between two operations, or at the rseq flag, cost 1 ns an access: the
//! loop ran out of registers. So a comb of short operations misses the teeth that fall beside them, and may stay unexplained.

use std::cell::RefCell;

use latlab_clock::{Clock, Source};
use latlab_observe::{
    Attributed, Cause, Context, CpuCounters, CpuReading, Event, Evidence, Level, Sample, Span, attribute,
};
use latlab_record::{TailCause, TailCauses};

use crate::pin::is_pinned_to;
use crate::summary;
use crate::{BlockData, Env};

/// Set to anything, it leaves the evidence out: for looking at what it costs.
const WITHOUT: &str = "LATLAB_WITHOUT_EVIDENCE";
/// More gaps or events are not kept: a probe with more has no tail but a second mode, and their judgement would take seconds.
const MOST: usize = 100_000;
/// When more than one operation in so many is over the threshold, that is no tail.
const TAIL_SHARE: u64 = 20;
/// Reading the interrupts takes 70 us, and far longer on a machine of many CPUs.
const INTERRUPTS_EVERY_NS: f64 = 100e6;
/// Records are stamped by another clock, and a handler's some hundred nanoseconds after it was entered.
const MARGIN_NS: f64 = 2_000.0;

/// The evidence of one probe's run, and what it heard so far.
pub(crate) struct Listening {
    evidence: Option<Evidence>,
    interrupts: Option<Interrupts>,
    heard: Heard,
    /// The last judgement, with the number of blocks that it knew.
    judged: RefCell<Option<(usize, Attributed)>>,
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

impl Listening {
    /// Only for time stamps: their periods are all that is known.
    pub(crate) fn to_time_stamps() -> Self {
        Self {
            evidence: None,
            interrupts: None,
            heard: Heard::default(),
            judged: RefCell::default(),
        }
    }

    /// On the thread that measures. `in_user_space`: the operations do not enter the kernel by themselves, so that records of switches and
    /// faults are no part of their price.
    pub(crate) fn of_this_thread(env: &Env, in_user_space: bool) -> Self {
        let clock = &env.clock;
        let mut listening = Self::to_time_stamps();
        if !in_user_space
            || matches!(clock.source, Source::Simulated(_))
            || std::env::var_os(WITHOUT).is_some()
        {
            return listening;
        }
        let cpu = is_pinned_to(env.home_cpu).then_some(env.home_cpu);
        let mut evidence = Evidence::of_this_thread(clock, cpu, Level::Tracepoints);
        evidence.start(clock);
        listening.evidence = Some(evidence);
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

    /// Right before a block: what happened since the last one is forgotten.
    pub(crate) fn begin(&mut self, clock: &Clock) {
        if let Some(evidence) = &mut self.evidence {
            evidence.drain(clock);
        }
    }

    /// Right after a block.
    pub(crate) fn end(&mut self, clock: &Clock, block: &BlockData) {
        if !may_be_judged(block) {
            return;
        }
        let (events, lost) = match &mut self.evidence {
            Some(evidence) => evidence.drain(clock),
            None => Default::default(),
        };
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
        let events: Vec<Event> = events.into_iter().filter(within).collect();
        heard.full |=
            heard.samples.len() + block.tail.len() > MOST || heard.events.len() + events.len() > MOST;
        if heard.full {
            return;
        }
        heard.samples.extend(block.tail.iter().map(|slow| Sample {
            at_ns: slow.at_ns,
            ns: slow.value,
            preempted: false,
        }));
        heard.listened.extend_from_slice(&block.listened);
        heard.events.extend(events);
        heard.lost_records += lost;
        heard.throttled_ns += block.observed.throttled_ns.unwrap_or(0);
    }

    fn level(&self) -> Level {
        // The flag is not asked.
        self.evidence
            .as_ref()
            .map(Evidence::level)
            .filter(|level| *level > Level::Rseq)
            .unwrap_or(Level::TimeStamps)
    }

    /// Writes into each tail sample what caused it, as far as that is known, and sums up those of the blocks that count. `None` where
    /// that was not looked for: of operations that wait or were not timed in a row, and where there was no room.
    pub(crate) fn judge(
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

/// Whether a slow operation of this block was an operation that was kept from being fast: not one that waits as part of its work, nor one
/// of a mode that is slow.
fn may_be_judged(block: &BlockData) -> bool {
    let slow = block.tail.len() as u64 + block.tail_dropped;
    !block.listened.is_empty() && !block.waits && slow * TAIL_SHARE <= block.ops
}

/// Writes into each tail sample the cause that `of` knows for its time, and sums up those of the blocks that count, the most frequent first.
fn write_into(blocks: &mut [BlockData], of: impl Fn(f64) -> Option<(Cause, f64)>) -> Vec<TailCause> {
    let mut rows: Vec<(Cause, TailCause)> = Vec::new();
    let counted: Vec<f64> = summary::counted(blocks)
        .0
        .iter()
        .map(|block| block.at_ns)
        .collect();
    for block in blocks {
        let counts = counted.contains(&block.at_ns);
        for sample in &mut block.tail {
            let (cause, explained_ns) = of(sample.at_ns).unwrap_or((Cause::Unexplained, 0.0));
            sample.cause = (cause != Cause::Unexplained).then(|| cause.name().to_owned());
            if counts {
                count(&mut rows, cause, sample.value, explained_ns);
            }
        }
    }
    let mut causes: Vec<TailCause> = rows.into_iter().map(|(_, row)| row).collect();
    causes.sort_by(|a, b| b.count.cmp(&a.count).then(b.ns.total_cmp(&a.ns)));
    for row in &mut causes {
        (row.ns, row.explained_ns) = (row.ns.round(), row.explained_ns.round());
    }
    causes
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
    pub(crate) fn written_into(&self, blocks: &mut [BlockData], threshold_ns: f64) -> TailCauses {
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
        }
    }
}

fn count(rows: &mut Vec<(Cause, TailCause)>, cause: Cause, ns: f64, explained_ns: f64) {
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
        listening.judge(&clock, blocks, 1_000.0)
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
        let found = listening.judge(&clock, &mut blocks, 1_000.0).expect("a tail");
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

    #[test]
    fn operations_that_wait_have_no_causes_nor_has_what_is_usually_slow() {
        let tick = [event(Cause::TimerTick, 1.001e6, 9_000.0)];
        let mut waiting = blocks(6, &[(1e6, 12_000.0)]);
        waiting[2].waits = true;
        assert_eq!(judged(&mut waiting, &tick), None);
        let mut usual = blocks(6, &[(1e6, 12_000.0)]);
        usual[0].ops = 19;
        assert_eq!(judged(&mut usual, &tick), None);
        assert!(usual[0].tail[0].cause.is_none());
    }

    #[test]
    fn more_than_there_is_room_for_has_no_causes_rather_than_wrong_ones() {
        let mut many = blocks(6, &[(1e6, 12_000.0)]);
        many[1].tail = vec![many[0].tail[0].clone(); MOST];
        many[1].ops = u64::MAX / TAIL_SHARE;
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
