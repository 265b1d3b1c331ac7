//! Marks become spans, and spans a table: how often, how long, how much of it in stages within.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use latlab_record::{EncodedHistogram, Histogram};
use serde::Serialize;

use crate::reader::Mark;

/// Stages that may be under way at once; a program that never ends them is not followed beyond.
const MOST_OPEN: usize = 100_000;
/// Stages of one thread of which it is known what lies in what; goroutines and tasks share a thread's.
const MOST_DEEP: usize = 1024;

/// A stage from begin to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub name: Arc<str>,
    /// The process.
    pub process: u32,
    /// The thread that began and ended it; 0 when these are two or none was said.
    pub thread: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub begin_ns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub end_ns: u64,
    /// What it has gone through; 0: not said.
    pub bytes: u64,
    /// How many stages of its thread it lies in.
    pub depth: u32,
    /// Time in stages that lie in it, ns.
    pub within_ns: u64,
    /// The program ended in it.
    pub cut: bool,
}

impl Span {
    /// How long it took, ns.
    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

struct Open {
    mark: Mark,
    within_ns: u64,
}

/// Brings begins and ends together.
#[derive(Default)]
pub struct Spans {
    open: HashMap<u64, Open>,
    /// What is open of each thread, the innermost last.
    stacks: HashMap<(u32, u32), Vec<u64>>,
    /// Ends without begin, and begins beyond what is kept.
    pub unmatched: u64,
}

impl Spans {
    /// Takes one mark; the span that it ends.
    pub fn take(&mut self, mark: Mark) -> Option<Span> {
        let Some(begun) = mark.of else {
            if self.open.len() >= MOST_OPEN {
                self.unmatched += 1;
                return None;
            }
            let stack = self.stacks.entry((mark.process, mark.thread)).or_default();
            if stack.len() < MOST_DEEP {
                stack.push(mark.number);
            }
            self.open.insert(mark.number, Open { mark, within_ns: 0 });
            return None;
        };
        self.close(begun, mark.at_ns, mark.bytes, mark.thread, false)
    }

    /// What is still open when the program is over ends then.
    pub fn finish(&mut self, at_ns: u64) -> Vec<Span> {
        let mut open: Vec<(u64, u32)> =
            self.open.iter().map(|(number, open)| (*number, open.mark.thread)).collect();
        // The innermost first, so that each adds to what it lies in.
        open.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        open.into_iter().filter_map(|(number, thread)| self.close(number, at_ns, 0, thread, true)).collect()
    }

    /// Marks are missing: what is open may have ended in them.
    pub fn forget(&mut self) {
        self.unmatched += self.open.len() as u64;
        self.open.clear();
        self.stacks.clear();
    }

    fn close(&mut self, begun: u64, at_ns: u64, bytes: u64, thread: u32, cut: bool) -> Option<Span> {
        let Some(open) = self.open.remove(&begun) else {
            self.unmatched += 1;
            return None;
        };
        let key = (open.mark.process, open.mark.thread);
        let mut depth = 0;
        let mut outer = None;
        if let Some(stack) = self.stacks.get_mut(&key) {
            if let Some(place) = stack.iter().rposition(|number| *number == begun) {
                stack.remove(place);
                depth = place;
                outer = place.checked_sub(1).and_then(|place| stack.get(place).copied());
            }
            if stack.is_empty() {
                self.stacks.remove(&key);
            }
        }
        let span = Span {
            name: open.mark.name,
            process: open.mark.process,
            thread: if thread == open.mark.thread { thread } else { 0 },
            begin_ns: open.mark.at_ns,
            end_ns: at_ns.max(open.mark.at_ns),
            bytes,
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            within_ns: open.within_ns,
            cut,
        };
        // Goroutines share a stack here: what lies in what is known only where a thread is.
        if span.thread != 0
            && let Some(outer) = outer.and_then(|number| self.open.get_mut(&number))
        {
            outer.within_ns = outer.within_ns.saturating_add(span.ns());
        }
        Some(span)
    }
}

/// One stage over the whole program.
#[derive(Clone, Debug, Serialize)]
pub struct StageRow {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// Time in it, summed over threads, seconds.
    pub seconds: f64,
    /// Of that, time outside the stages that lie in it, seconds.
    pub self_seconds: f64,
    /// What it went through, bytes; absent where it was never said.
    pub bytes: Option<u64>,
    /// Shortest, ns.
    pub min_ns: f64,
    /// Longest, ns.
    pub max_ns: f64,
    /// Each time, as a distribution.
    pub histogram: EncodedHistogram,
    /// How often the program ended in it.
    pub cut: u64,
}

#[derive(Default)]
struct Sum {
    count: u64,
    ns: u64,
    self_ns: u64,
    bytes: u64,
    cut: u64,
    times: Histogram,
}

/// Sums of spans by name, of which the ring and the lines have a bounded number each.
#[derive(Default)]
pub struct Table {
    by_name: BTreeMap<Arc<str>, Sum>,
}

impl Table {
    /// Adds one span.
    pub fn add(&mut self, span: &Span) {
        let sum = self.by_name.entry(Arc::clone(&span.name)).or_default();
        sum.count += 1;
        sum.ns = sum.ns.saturating_add(span.ns());
        sum.self_ns = sum.self_ns.saturating_add(span.ns().saturating_sub(span.within_ns));
        sum.bytes = sum.bytes.saturating_add(span.bytes);
        sum.cut += u64::from(span.cut);
        sum.times.record(span.ns().saturating_mul(1000));
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        for (name, more) in &other.by_name {
            let sum = self.by_name.entry(Arc::clone(name)).or_default();
            sum.count += more.count;
            sum.ns = sum.ns.saturating_add(more.ns);
            sum.self_ns = sum.self_ns.saturating_add(more.self_ns);
            sum.bytes = sum.bytes.saturating_add(more.bytes);
            sum.cut += more.cut;
            sum.times.merge(&more.times);
        }
    }

    /// The stages, the longest first.
    pub fn rows(&self) -> Vec<StageRow> {
        let mut rows: Vec<StageRow> = self
            .by_name
            .iter()
            .map(|(name, sum)| StageRow {
                name: name.to_string(),
                count: sum.count,
                seconds: sum.ns as f64 / 1e9,
                self_seconds: sum.self_ns as f64 / 1e9,
                bytes: (sum.bytes > 0).then_some(sum.bytes),
                min_ns: sum.times.min_ns().unwrap_or(0.0),
                max_ns: sum.times.max_ns().unwrap_or(0.0),
                histogram: sum.times.encode(),
                cut: sum.cut,
            })
            .collect();
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        rows
    }
}
