//! One block of samples, and the only places where time is taken.

use std::hint::black_box;

use latlab_clock::{Clock, Source, TimeSource};
use latlab_observe::{Flag as _, Interruption, Sample, ThreadFlag};
use latlab_record::{Histogram, Observed, TailSample};
use latlab_stats::count::nearest;

use crate::causes::Listening;
use crate::samples::{BlockData, Candidate, Note};
use crate::slow::{self, CANDIDATES};
use crate::workers::Span;
use crate::{Batch, Kernel, Workers, WorkersError};

mod remote;

pub use remote::RemoteBlock;

/// Windows of a batch are about this long: a thousand times the coarsest clock quantum seen (10 ns) and of
/// the empty region (22 ns), and short enough that most windows see no timer tick (4 ms apart at 250 Hz).
const WINDOW_NS: f64 = 20_000.0;
/// Windows in one block: with six blocks enough for a p99 of window means (needs 368 samples).
const WINDOWS: u32 = 64;
/// Operations timed one by one in one block.
const EACH: u64 = 20_000;
/// Time-stamped tail samples kept for one block; more are counted, not kept.
pub(crate) const TAIL_ROOM: usize = 4_096;
/// The same of a block that listens: one gap every 50 us for a second.
const GAP_ROOM: usize = 20_000;
/// A single operation slower than this keeps its time stamp, unless the probe asks for another threshold, ns.
const TAIL_NS: f64 = 1_000.0;

/// One block under way: the session's only access to time.
pub struct Block<'a> {
    clock: &'a Clock,
    /// Operations a window, the same for all windows of a record; chosen at its first window.
    ops_per_window: &'a mut Option<u64>,
    tail_threshold_ns: &'a mut f64,
    /// What is watched beside the operations.
    listening: Option<&'a mut Listening>,
    /// Operations of a block that waits, the slowest of which will be kept.
    candidates: Vec<Candidate>,
    /// First begin and last end of operations that the session stamped.
    stamped: Option<(u64, u64)>,
    data: BlockData,
    windows: u32,
}

impl<'a> Block<'a> {
    pub(crate) fn new(
        clock: &'a Clock,
        ops_per_window: &'a mut Option<u64>,
        tail_threshold_ns: &'a mut f64,
    ) -> Self {
        if *tail_threshold_ns <= 0.0 {
            *tail_threshold_ns = TAIL_NS;
        }
        Self {
            clock,
            ops_per_window,
            tail_threshold_ns,
            listening: None,
            candidates: Vec::new(),
            stamped: None,
            data: BlockData::default(),
            windows: WINDOWS,
        }
    }

    /// With the evidence of this thread.
    pub(crate) fn heard_by(mut self, listening: &'a mut Listening) -> Self {
        self.candidates = listening.lend();
        self.listening = Some(listening);
        self
    }

    pub(crate) fn into_data(mut self) -> BlockData {
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut data = self.data;
        if data.histogram.is_none() {
            return give_back(self.listening, candidates, data);
        }
        data.kept_over_ns = self.tail_threshold_ns.next_down();
        if candidates.is_empty() {
            slow::leave_out_the_usual(&mut data);
        } else {
            slow::keep_slowest(&mut data, &mut candidates, self.clock, *self.tail_threshold_ns);
        }
        if let Some((first, last)) = self.stamped
            && data.listened.is_empty()
        {
            data.listened.push(latlab_observe::Span {
                from_ns: self.clock.at_ns(first),
                to_ns: self.clock.at_ns(last),
            });
        }
        give_back(self.listening, candidates, data)
    }

    /// Takes fewer or more windows than usual, where one operation is long or short.
    pub fn set_windows(&mut self, windows: u32) {
        self.windows = windows.max(1);
    }

    /// Fixes the operations of a window where the work has a period that every window must cover whole. Takes
    /// effect for a record's first block only: all windows of a record are alike.
    pub fn set_window_ops(&mut self, ops: u64) {
        self.ops_per_window.get_or_insert(ops.max(1));
    }

    /// Times windows of operations; each window's mean, ns an operation, is one sample. The empty region is
    /// not subtracted: it is a thousandth of a window.
    pub fn batches<K: Batch + ?Sized>(&mut self, kernel: &mut K) {
        let ops = *self.ops_per_window.get_or_insert_with(|| {
            window_ops(self.clock, WINDOW_NS, |ops| {
                let begin = self.clock.source.now();
                black_box(kernel.run(ops));
                self.clock.ns(self.clock.source.now().saturating_sub(begin))
            })
        });
        self.data.values.reserve(self.windows as usize);
        // One window that does not count: reading the counters before the block has pushed lines out of the
        // first-level cache (11 % on the first window of a full one, which is one of 64 and would be the
        // p99), and warming up has left the prefetchers bolder than a walk does (a third less on the first
        // window in RAM).
        black_box(kernel.run(ops));
        let (clock, windows, data) = (self.clock, self.windows, &mut self.data);
        match &clock.source {
            Source::Hardware(time) => batches_with(time, clock, kernel, ops, windows, data),
            Source::Os(time) => batches_with(time, clock, kernel, ops, windows, data),
            Source::Simulated(time) => batches_with(time, clock, kernel, ops, windows, data),
        }
    }

    /// Like [`Self::batches`], with bytes a second as the sample.
    pub fn rates<K: Batch + ?Sized>(&mut self, kernel: &mut K, bytes_per_op: u64) {
        let first = self.data.values.len();
        let before = self.data.ops;
        self.batches(kernel);
        let step_ns = self.clock.facts.quantum_ns / self.ops_per_window.unwrap_or(1) as f64;
        for value in &mut self.data.values[first..] {
            // A window in which the clock did not move took up to one of its steps; the rate is no larger
            // than known.
            *value = bytes_per_op as f64 * 1e9 / value.max(step_ns);
        }
        self.data.bytes += (self.data.ops - before) * bytes_per_op;
    }

    /// Times single operations one by one; in picoseconds, with the empty region inside.
    pub fn each<K: Kernel>(&mut self, kernel: &mut K) {
        let mut histogram = self.data.histogram.take().unwrap_or_default();
        let threshold = self.clock.ticks(*self.tail_threshold_ns);
        let mut no_flag = ThreadFlag::none();
        let watched = self.listening.is_some();
        let mut tail = Tail {
            threshold,
            samples: Vec::with_capacity(TAIL_ROOM),
            dropped: 0,
            flag: self.listening.as_mut().and_then(|listening| listening.flag()).unwrap_or(&mut no_flag),
            turns: watched.then(Turns::default),
        };
        let from_ns = self.clock.now_ns();
        match &self.clock.source {
            Source::Hardware(time) => each_with(time, self.clock, kernel, &mut histogram, &mut tail),
            Source::Os(time) => each_with(time, self.clock, kernel, &mut histogram, &mut tail),
            Source::Simulated(time) => each_with(time, self.clock, kernel, &mut histogram, &mut tail),
        }
        self.data.listened.push(latlab_observe::Span { from_ns, to_ns: self.clock.now_ns() });
        // Copied: the room that was not needed is given back.
        for (at, ticks, interruption) in &tail.samples {
            let note = Note { interruption: *interruption, ..Note::default() };
            self.data.push_slow(self.clock.at_ns(*at), self.clock.ns(*ticks), note);
        }
        if let Some(turns) = &tail.turns {
            self.data.gaps.extend(turns.gaps.iter().map(|(at, ticks, interruption)| Sample {
                at_ns: self.clock.at_ns(*at),
                ns: self.clock.ns(*ticks),
                interruption: *interruption,
            }));
        }
        self.data.tail_dropped += tail.dropped;
        self.data.ops += EACH;
        self.data.histogram = Some(histogram);
    }

    /// One turn of a loop that did nothing but read the clock, `clock_reads` times from `begin` to `end`
    /// (ticks): its samples are the gaps between two clock reads, (begin, end) in order of time, all of which
    /// keep their times while there is room. What disturbs such a block is what it measures: its point has
    /// [`CacheScope::Disturbances`](crate::CacheScope::Disturbances).
    pub fn listened(
        &mut self,
        begin: u64,
        end: u64,
        clock_reads: u64,
        gaps: impl IntoIterator<Item = (u64, u64)>,
    ) {
        let (clock, data) = (self.clock, &mut self.data);
        let picoseconds = Picoseconds::of(clock);
        let histogram = data.histogram.get_or_insert_default();
        for (from, to) in gaps {
            let ticks = to.saturating_sub(from);
            histogram.record(picoseconds.in_ticks(ticks));
            if data.tail.len() < GAP_ROOM {
                data.tail.push(TailSample { at_ns: clock.at_ns(from), value: clock.ns(ticks), cause: None });
            } else {
                data.tail_dropped += 1;
            }
        }
        data.listened.push(latlab_observe::Span { from_ns: clock.at_ns(begin), to_ns: clock.at_ns(end) });
        data.ops += clock_reads;
    }

    /// Single operations slower than this keep their time stamps, ns. The same for a whole record.
    pub fn set_tail_threshold_ns(&mut self, threshold: f64) {
        *self.tail_threshold_ns = threshold;
    }

    /// The operation waits for another thread, a timer or a device, so this thread is off its CPU as part of
    /// the work and the block is not judged by that.
    pub fn set_waits(&mut self) {
        self.begin_to_wait(None);
    }

    /// As [`Self::set_waits`], where each operation ends when this other thread of the process runs: how long
    /// that one was ready without a CPU is then looked at. `thread` is the kernel's number of it.
    pub fn set_waits_for(&mut self, thread: u32) {
        self.begin_to_wait(Some(thread));
    }

    fn begin_to_wait(&mut self, thread: Option<u32>) {
        if !self.data.waits
            && let Some(listening) = &mut self.listening
        {
            listening.begin_to_wait(self.clock, thread);
        }
        self.data.waits = true;
    }

    /// Another thread that took part in this block was kept from its CPU: the block is marked, repeated, and
    /// not counted.
    pub fn mark_disturbed(&mut self) {
        self.data.partner_disturbed = true;
    }

    /// Adds what was observed on another thread that took part.
    pub fn observe_elsewhere(&mut self, observed: &Observed) {
        let sum = match &self.data.observed_elsewhere {
            Some(earlier) => latlab_observe::sum(earlier, observed),
            None => observed.clone(),
        };
        self.data.observed_elsewhere = Some(sum);
    }

    /// Operations of every window of this record, for a session that times windows on another thread: chosen
    /// at the first call so that a window takes about `window_ns`; `run` does that many operations and says
    /// how long they took, ns.
    pub fn window_ops(&mut self, window_ns: f64, run: impl FnMut(u64) -> f64) -> u64 {
        *self.ops_per_window.get_or_insert_with(|| window_ops(self.clock, window_ns, run))
    }

    /// A window of `ops` operations that was timed on another thread, stamps in ticks of the run's clock
    /// ([`Stamps`](crate::Stamps)): its mean, ns an operation, is one sample. All windows of a record have as
    /// many operations.
    pub fn window(&mut self, begin: u64, end: u64, ops: u64) {
        self.data.values.push(self.clock.ns(end.saturating_sub(begin)) / ops.max(1) as f64);
        self.data.ops += ops;
        self.ops_per_window.get_or_insert(ops.max(1));
    }

    /// So many bytes that others moved between two stamps: bytes a second is one sample.
    pub fn rate(&mut self, begin: u64, end: u64, bytes: u64) {
        let ns = self
            .clock
            .ns(end.saturating_sub(begin))
            // What took no step of the clock took up to one.
            .max(self.clock.facts.quantum_ns);
        self.data.values.push(bytes as f64 * 1e9 / ns);
        self.data.ops += 1;
        self.data.bytes += bytes;
        self.ops_per_window.get_or_insert(1);
    }

    /// One operation whose begin and end were stamped by the session, on this thread or another: for what has
    /// to be prepared apart for each operation, or begins on one thread and ends on another.
    pub fn span(&mut self, begin: u64, end: u64) {
        let ticks = end.saturating_sub(begin);
        let picoseconds = Picoseconds::of(self.clock);
        self.data.histogram.get_or_insert_default().record(picoseconds.in_ticks(ticks));
        self.data.ops += 1;
        let (first, last) = self.stamped.unwrap_or((begin, end));
        self.stamped = Some((first.min(begin), last.max(end)));
        let ns = self.clock.ns(ticks);
        let note = match &mut self.listening {
            Some(listening) => listening.note(self.clock, ns, self.data.waits),
            None => Note::default(),
        };
        if self.data.waits && self.candidates.len() < self.candidates.capacity().min(CANDIDATES) {
            self.candidates.push(Candidate { begin, ticks, note });
        } else if ns >= *self.tail_threshold_ns {
            self.keep(self.clock.at_ns(begin), ns, note);
        }
    }

    fn keep(&mut self, at_ns: f64, ns: f64, note: Note) {
        if self.data.tail.len() < TAIL_ROOM {
            self.data.push_slow(at_ns, ns, note);
        } else {
            self.data.tail_dropped += 1;
        }
    }

    /// Time between two stamps, ns: for totals that a session keeps besides.
    pub fn span_ns(&self, begin: u64, end: u64) -> f64 {
        self.clock.ns(end.saturating_sub(begin))
    }

    /// A part of an operation, or another view of it, with a distribution of its own: a phase, the time in
    /// service.
    pub fn channel(&mut self, name: &'static str, begin: u64, end: u64) {
        let picoseconds = Picoseconds::of(self.clock).in_ticks(end.saturating_sub(begin));
        self.channel_mut(name).record(picoseconds);
    }

    pub(crate) fn channel_mut(&mut self, name: &'static str) -> &mut Histogram {
        let channels = &mut self.data.channels;
        let place = channels.iter().position(|(own, _)| *own == name).unwrap_or_else(|| {
            channels.push((name, Histogram::new()));
            channels.len() - 1
        });
        &mut channels[place].1
    }

    pub(crate) fn clock(&self) -> &'a Clock {
        self.clock
    }

    pub(crate) fn tail_threshold_ns(&self) -> f64 {
        *self.tail_threshold_ns
    }

    /// Adds single operations that were recorded elsewhere in this crate.
    pub(crate) fn add_operations(
        &mut self,
        operations: &Histogram,
        tail: Vec<TailSample>,
        dropped: u64,
        ops: u64,
    ) {
        self.data.histogram.get_or_insert_default().merge(operations);
        for sample in tail {
            self.keep(sample.at_ns, sample.value, Note { under_way: true, ..Note::default() });
        }
        self.data.tail_dropped += dropped;
        self.data.ops += ops;
    }

    /// Room for operations under way, of which the slowest will be kept; empty where nobody listens.
    pub(crate) fn take_candidates(&mut self) -> Vec<Candidate> {
        std::mem::take(&mut self.candidates)
    }

    pub(crate) fn return_candidates(&mut self, candidates: Vec<Candidate>) {
        self.candidates = candidates;
    }

    /// What the thread's own counters say of an operation that has just ended.
    /// `ns`: how long it took.
    pub(crate) fn note(&mut self, ns: f64) -> Note {
        match &mut self.listening {
            Some(listening) => listening.note(self.clock, ns, true),
            None => Note::default(),
        }
    }

    /// Lets workers run in windows that all start together; one window's bytes over the time from the
    /// first start to the last end is one sample, bytes a second. Fails when a member died.
    pub fn workers(&mut self, workers: &mut Workers, bytes_per_op: u64) -> Result<(), WorkersError> {
        let ops = if let Some(ops) = *self.ops_per_window {
            ops
        } else {
            let mut failed = None;
            // Ten times the usual window: starting together is uncertain by about a microsecond.
            let ops = window_ops(self.clock, 10.0 * WINDOW_NS, |ops| match workers.window(ops) {
                // From the spans: waking the members is no part of their work.
                Ok(spans) => self.clock.ns(length(&spans)),
                Err(error) => {
                    failed.get_or_insert(error);
                    f64::INFINITY
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
            *self.ops_per_window.insert(ops)
        };
        let step_ns = self.clock.facts.quantum_ns;
        let mut members: Vec<Vec<f64>> = Vec::new();
        for _ in 0..self.windows {
            let spans = workers.window(ops)?;
            let bytes = ops * bytes_per_op * spans.len() as u64;
            let together_ns = self.clock.ns(length(&spans));
            self.data.values.push(bytes as f64 * 1e9 / together_ns.max(step_ns));
            self.data.ops += ops * spans.len() as u64;
            self.data.bytes += bytes;
            members.resize(spans.len(), Vec::new());
            for (rates, span) in members.iter_mut().zip(&spans) {
                let own_ns = self.clock.ns(span.end.saturating_sub(span.begin));
                rates.push((ops * bytes_per_op) as f64 * 1e9 / own_ns.max(step_ns));
            }
        }
        self.data.members = members
            .into_iter()
            .map(|mut rates| {
                rates.sort_by(f64::total_cmp);
                latlab_stats::quantile(&rates, 0.5)
            })
            .collect();
        Ok(())
    }
}

/// Ticks from the first start to the last end.
fn length(spans: &[Span]) -> u64 {
    let first = spans.iter().map(|span| span.begin).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.end).max().unwrap_or(0);
    last.saturating_sub(first)
}

/// Shortest window in steps of the clock: its length is then known to 1 %.
const QUANTA: f64 = 100.0;

/// Operations that fill a window: doubled until a trial is long enough to be trusted, then scaled. Called
/// once a record, before the first sample; `run` says how long its operations took, ns.
///
/// Each trial that was long enough is made again and the shorter one counts: an interrupt (17 us seen) in one
/// short trial, or a cold first one, would otherwise make every window of the record as short, with the
/// clock's own cost on each operation.
fn window_ops(clock: &Clock, window_ns: f64, mut run: impl FnMut(u64) -> f64) -> u64 {
    let window_ns = window_ns.max(QUANTA * clock.facts.quantum_ns);
    let mut ops = 1u64;
    loop {
        let mut took = run(ops);
        if took >= window_ns / 4.0 {
            took = took.min(run(ops));
        }
        if took >= window_ns / 4.0 || ops >= 1 << 40 {
            return nearest(ops as f64 * window_ns / took.max(1.0)).max(1);
        }
        ops *= 2;
    }
}

fn batches_with<T: TimeSource, K: Batch + ?Sized>(
    time: &T,
    clock: &Clock,
    kernel: &mut K,
    ops: u64,
    windows: u32,
    data: &mut BlockData,
) {
    for _ in 0..windows {
        let begin = time.begin();
        let result = kernel.run(ops);
        let end = time.end();
        black_box(result);
        data.values.push(clock.ns(end.saturating_sub(begin)) / ops as f64);
    }
    data.ops += ops * u64::from(windows);
}

fn give_back(listening: Option<&mut Listening>, candidates: Vec<Candidate>, data: BlockData) -> BlockData {
    if let Some(listening) = listening {
        listening.take_back(candidates);
    }
    data
}

struct Tail<'a> {
    threshold: u64,
    /// Begin, ticks, and what the flags said.
    samples: Vec<(u64, u64, Interruption)>,
    dropped: u64,
    flag: &'a mut ThreadFlag,
    turns: Option<Turns>,
}

impl Tail<'_> {
    /// A call, so that the timed loop keeps its registers: asking for the flag in it cost 1 ns an access.
    #[cold]
    #[inline(never)]
    fn push(&mut self, begin: u64, ticks: u64) {
        let interruption = self.flag.interruption();
        if self.samples.len() < self.samples.capacity() {
            self.samples.push((begin, ticks, interruption));
        } else {
            self.dropped += 1;
        }
    }
}

/// Operations between two readings of the time that they took together: what fell between two of them is then
/// known to some microseconds, and the flags, which are raised anew, speak of these alone.
const TURN: u64 = 32;
/// A turn is this much longer than the shortest, at least, when something fell into it, ns.
const LEAST_GAP_NS: f64 = 3_000.0;

/// Checks the time of each turn; the shortest says how long a turn is by itself.
#[derive(Default)]
struct Turns {
    least_gap: u64,
    shortest: Option<u64>,
    /// Slow operations before this turn.
    slow: u64,
    /// About when, how long, ticks, and what the flags said.
    gaps: Vec<(u64, u64, Interruption)>,
}

impl Turns {
    fn end(&mut self, begin: u64, end: u64, slow: u64, flag: &mut ThreadFlag) {
        let ticks = end.saturating_sub(begin);
        let shortest = *self.shortest.get_or_insert(ticks);
        self.shortest = Some(shortest.min(ticks));
        let slow_before = std::mem::replace(&mut self.slow, slow);
        let gap = ticks.saturating_sub(shortest);
        // One that took an operation's time is that operation's.
        if slow == slow_before && gap > self.least_gap.max(shortest / 2) && self.gaps.len() < TAIL_ROOM {
            self.gaps.push((begin + shortest / 2, gap, flag.interruption()));
        }
    }
}

/// Ticks to picoseconds by one multiplication of integers: a way through floats and back costs more than the
/// histogram.
#[derive(Clone, Copy, Debug)]
pub struct Picoseconds {
    /// In units of 2^-32 ps: wrong by less than 10^-9 at any rate of a clock.
    per_tick: u64,
}

impl Picoseconds {
    /// For differences of this clock's readings.
    pub fn of(clock: &Clock) -> Self {
        const TICKS: u64 = 1 << 32;
        Self { per_tick: nearest(clock.ns(TICKS) * 1e3) }
    }

    /// So many ticks take this long.
    #[inline]
    pub fn in_ticks(self, ticks: u64) -> u64 {
        let ps = (u128::from(ticks) * u128::from(self.per_tick)) >> 32;
        u64::try_from(ps).unwrap_or(u64::MAX)
    }
}

fn each_with<T: TimeSource, K: Kernel>(
    time: &T,
    clock: &Clock,
    kernel: &mut K,
    histogram: &mut Histogram,
    tail: &mut Tail,
) {
    let picoseconds = Picoseconds::of(clock);
    if let Some(turns) = &mut tail.turns {
        turns.least_gap = clock.ticks(LEAST_GAP_NS);
    }
    let mut left = EACH;
    while left > 0 {
        let turn = left.min(TURN);
        left -= turn;
        let turned = tail.turns.is_some().then(|| {
            tail.flag.interruption();
            time.begin()
        });
        for _ in 0..turn {
            let arg = kernel.arg();
            let begin = time.begin();
            let result = kernel.op(arg);
            let end = time.end();
            black_box(result);
            // A clock that stepped back would give a huge unsigned difference; it counts as zero and the
            // clock's own check reports it.
            let ticks = end.saturating_sub(begin);
            histogram.record(picoseconds.in_ticks(ticks));
            if ticks >= tail.threshold {
                tail.push(begin, ticks);
            }
        }
        let slow = tail.samples.len() as u64 + tail.dropped;
        if let (Some(turned), Some(turns)) = (turned, &mut tail.turns)
            && turn == TURN
        {
            turns.end(turned, time.end(), slow, tail.flag);
        }
    }
}

#[cfg(test)]
mod tests;
