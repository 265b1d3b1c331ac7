//! What each thread did, stretch by stretch, in a bounded number of spans.
//!
//! A short program is kept exactly. When there are too many spans, neighbours become one that says what most
//! of it was, and how much: what is shorter than the grain is seen in its share only.

use std::collections::{HashMap, HashSet};

use crate::Category;
use crate::account::grain::{self, Grain};
use crate::model::{self, Lane as Shown};
use crate::time::micros;

/// Spans of all threads together.
const MOST: usize = 8192;
/// Threads; those that come later are counted.
const MOST_LANES: usize = 256;
/// Threads that are shown, the busiest.
const MOST_SHOWN: usize = 64;
const MOST_COUNTED: usize = 65_536;
const KINDS: usize = Category::ALL.len() + 2;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// On a CPU or ready, which a scan cannot tell apart, nor see into.
    OnCpuOrReady,
    /// On a CPU; samples may say with what.
    OnCpu,
    /// As in the ledger.
    On(Category),
}

impl Doing {
    fn column(self) -> usize {
        match self {
            Self::On(category) => category.index(),
            Self::OnCpu => KINDS - 2,
            Self::OnCpuOrReady => KINDS - 1,
        }
    }

    fn of_column(column: usize) -> Self {
        match Category::ALL.get(column) {
            Some(category) => Self::On(*category),
            None if column == KINDS - 2 => Self::OnCpu,
            None => Self::OnCpuOrReady,
        }
    }

    /// The name as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::On(category) => category.name(),
            Self::OnCpu => "on-cpu",
            Self::OnCpuOrReady => "on-cpu-or-ready",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Span {
    from: u64,
    to: u64,
    spent: [u64; KINDS],
}

impl Span {
    fn of(kind: usize, from: u64, to: u64) -> Self {
        let mut spent = [0; KINDS];
        spent[kind] = to - from;
        Self { from, to, spent }
    }

    fn is_all(&self, kind: usize) -> bool {
        self.spent[kind] == self.to - self.from
    }

    fn most(&self) -> (usize, u64) {
        let most = self.spent.iter().enumerate().max_by_key(|(_, ns)| **ns);
        most.map_or((0, 0), |(kind, ns)| (kind, *ns))
    }
}

impl grain::Span for Span {
    /// What goes on stays one, however long.
    fn takes(&mut self, next: &Self, grain_ns: u64) -> bool {
        let goes_on = self.to == next.from && {
            let (kind, _) = next.most();
            self.is_all(kind) && next.is_all(kind)
        };
        if !goes_on && next.to.saturating_sub(self.from) > grain_ns {
            return false;
        }
        self.to = next.to;
        for (sum, ns) in self.spent.iter_mut().zip(next.spent) {
            *sum += ns;
        }
        true
    }
}

/// What a thread does since when.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Open {
    kind: usize,
    since: u64,
    /// What the last sample of this stretch fell in.
    sampled: Option<usize>,
}

impl Open {
    /// Only such stretches are sampled. A category alone does not tell: a pipe is waited for, and the kernel
    /// works on it.
    fn is_on_cpu(self) -> bool {
        self.kind >= Category::ALL.len()
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Lane {
    thread: u32,
    process: u32,
    spans: Vec<Span>,
    open: Option<Open>,
    /// Time on the CPU, or ready for one where that cannot be told apart; all its time.
    busy: (u64, u64),
}

impl grain::Row for Lane {
    type Span = Span;
    fn spans(&mut self) -> &mut Vec<Span> {
        &mut self.spans
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lanes {
    threads: Vec<Lane>,
    by_thread: HashMap<u32, usize>,
    grain: Grain<MOST>,
    left_out: HashSet<u32>,
}

impl Lanes {
    fn lane(&mut self, thread: u32, process: u32) -> Option<usize> {
        if let Some(at) = self.by_thread.get(&thread)
            && self.threads[*at].process == process
        {
            return Some(*at);
        }
        if self.threads.len() >= MOST_LANES {
            if self.left_out.len() < MOST_COUNTED {
                self.left_out.insert(thread);
            }
            return None;
        }
        self.threads.push(Lane { thread, process, spans: Vec::new(), open: None, busy: (0, 0) });
        self.by_thread.insert(thread, self.threads.len() - 1);
        Some(self.threads.len() - 1)
    }

    /// What a thread does from `now` on.
    pub(crate) fn set(&mut self, now: u64, thread: u32, process: u32, doing: Doing) {
        let Some(at) = self.lane(thread, process) else { return };
        let kind = doing.column();
        if self.threads[at].open.is_some_and(|open| open.kind == kind) {
            return;
        }
        self.close(at, now);
        self.threads[at].open = Some(Open { kind, since: now, sampled: None });
    }

    /// What a thread has been doing since it was set was this.
    pub(crate) fn learn(&mut self, thread: u32, doing: Doing) {
        let at = self.by_thread.get(&thread).copied();
        if let Some(open) = at.and_then(|at| self.threads[at].open.as_mut()) {
            open.kind = doing.column();
        }
    }

    /// A sample of a running thread: stands for its time since the one before, and for what follows until the
    /// next.
    pub(crate) fn sample(&mut self, at: u64, thread: u32, category: Category) {
        let kind = Doing::On(category).column();
        let Some(lane) = self.by_thread.get(&thread).copied() else { return };
        let Some(open) = self.threads[lane].open.filter(|open| open.is_on_cpu()) else { return };
        self.push(lane, open, kind, at);
        self.threads[lane].open = Some(Open { since: at.max(open.since), sampled: Some(kind), ..open });
    }

    /// A thread is gone.
    pub(crate) fn end(&mut self, now: u64, thread: u32) {
        if let Some(at) = self.by_thread.get(&thread).copied() {
            self.close(at, now);
        }
    }

    /// All of them are.
    pub(crate) fn end_all(&mut self, now: u64) {
        for at in 0..self.threads.len() {
            self.close(at, now);
        }
    }

    fn close(&mut self, at: usize, now: u64) {
        if let Some(open) = self.threads[at].open.take() {
            self.push(at, open, open.sampled.unwrap_or(open.kind), now);
        }
    }

    /// What was `open` has been this until now.
    fn push(&mut self, at: usize, open: Open, kind: usize, to: u64) {
        if to <= open.since {
            return;
        }
        let lane = &mut self.threads[at];
        lane.busy.0 += if open.is_on_cpu() { to - open.since } else { 0 };
        lane.busy.1 += to - open.since;
        let next = Span::of(kind, open.since, to);
        self.grain.push(&mut self.threads, at, next);
    }

    /// Threads that are not shown.
    pub(crate) fn left_out(&self) -> u64 {
        (self.left_out.len() + self.threads.len().saturating_sub(MOST_SHOWN)) as u64
    }

    /// Shorter stretches than this are seen in the shares of longer ones, seconds.
    pub(crate) fn grain_s(&self) -> f64 {
        self.grain.ns() as f64 / 1e9
    }

    /// As it is written: times from `begin`, the busiest threads in the order in which they began.
    pub(crate) fn shown(&self, begin: u64) -> (Vec<String>, Vec<Shown>) {
        let used: Vec<usize> = (0..KINDS)
            .filter(|kind| {
                let mut spans = self.threads.iter().flat_map(|lane| &lane.spans);
                spans.any(|span| span.most().0 == *kind)
            })
            .collect();
        let mut lanes: Vec<&Lane> = self.threads.iter().filter(|lane| !lane.spans.is_empty()).collect();
        // Time on the CPU, which is what threads are shown for; then any time.
        lanes.sort_by_key(|lane| std::cmp::Reverse(lane.busy));
        lanes.truncate(MOST_SHOWN);
        lanes.sort_by_key(|lane| (lane.spans.first().map(|span| span.from), lane.process, lane.thread));
        let shown = lanes.into_iter().map(|lane| Shown {
            process: lane.process,
            thread: lane.thread,
            spans: lane
                .spans
                .iter()
                .map(|span| {
                    let (kind, ns) = span.most();
                    let name = used.iter().position(|known| *known == kind).unwrap_or(0);
                    model::Span(
                        micros(span.from.saturating_sub(begin)),
                        micros(span.to - span.from),
                        name,
                        thousandths(ns as f64 / (span.to - span.from) as f64),
                    )
                })
                .collect(),
        });
        let names = used.iter().map(|kind| Doing::of_column(*kind).name().to_owned()).collect();
        (names, shown.collect())
    }
}

fn thousandths(share: f64) -> f64 {
    (1e3 * share).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLEEP: Doing = Doing::On(Category::Sleep);

    fn spans(lanes: &Lanes) -> Vec<(String, f64, f64, f64)> {
        let (names, shown) = lanes.shown(0);
        let of = |span: &model::Span| (names[span.2].clone(), span.0, span.1, span.3);
        shown.iter().flat_map(|lane| lane.spans.iter().map(of)).collect()
    }

    #[test]
    fn a_few_stretches_are_kept_as_they_were() {
        let mut lanes = Lanes::default();
        lanes.set(0, 7, 7, Doing::OnCpu);
        lanes.set(2_000, 7, 7, Doing::OnCpu);
        lanes.set(3_000, 7, 7, SLEEP);
        lanes.end(10_000, 7);
        assert_eq!(
            spans(&lanes),
            [("on-cpu".to_owned(), 0.0, 3e-6, 1.0), ("sleep".to_owned(), 3e-6, 7e-6, 1.0)]
        );
    }

    #[test]
    fn a_reason_that_is_learned_late_counts_from_the_beginning_of_the_wait() {
        let mut lanes = Lanes::default();
        lanes.set(0, 7, 7, Doing::On(Category::Unexplained));
        lanes.learn(7, SLEEP);
        lanes.set(5_000, 7, 7, SLEEP);
        lanes.end(9_000, 7);
        assert_eq!(spans(&lanes), [("sleep".to_owned(), 0.0, 9e-6, 1.0)]);
    }

    #[test]
    fn samples_say_what_a_thread_did_on_the_cpu() {
        let mut lanes = Lanes::default();
        lanes.set(0, 7, 7, Doing::OnCpu);
        lanes.sample(1_000, 7, Category::Allocator);
        lanes.sample(4_000, 7, Category::Compute);
        lanes.end(5_000, 7);
        let spans = spans(&lanes);
        assert_eq!(spans[0], ("allocator".to_owned(), 0.0, 1e-6, 1.0));
        assert_eq!(spans[1], ("compute".to_owned(), 1e-6, 4e-6, 1.0));
    }

    #[test]
    fn however_often_threads_switch_the_spans_stay_few_and_no_time_is_lost() {
        let mut lanes = Lanes::default();
        for at in 0..200_000_u64 {
            let thread = u32::try_from(at % 5).unwrap();
            let doing = if at / 5 % 2 == 0 { Doing::OnCpu } else { SLEEP };
            lanes.set(at * 1_000, thread, 1, doing);
        }
        lanes.end_all(200_000_000);
        let kept: usize = lanes.threads.iter().map(|lane| lane.spans.len()).sum();
        assert!((1_000..=MOST).contains(&kept), "{kept}");
        let spent: u64 =
            lanes.threads.iter().flat_map(|lane| lane.spans.iter().flat_map(|span| span.spent)).sum();
        assert_eq!(spent, 5 * 200_000_000 - 1_000 * (1 + 2 + 3 + 4));
        assert!(lanes.grain_s() > 0.0);
        assert!(spans(&lanes).iter().all(|span| (0.4..=1.0).contains(&span.3)));
    }

    #[test]
    fn those_that_work_are_shown_before_those_that_wait_for_longer_whatever_for() {
        let mut lanes = Lanes::default();
        for thread in 0..50 {
            lanes.set(0, thread, 1, Doing::On(Category::Unexplained));
        }
        for thread in 50..150 {
            lanes.set(0, thread, 1, Doing::OnCpu);
            // The kernel's work on faults and pipes is no wait for them.
            let category = [Category::PageFaults, Category::Pipe][thread as usize % 2];
            lanes.sample(900, thread, category);
            lanes.end(1_000, thread);
        }
        lanes.end_all(1_000_000);
        let (_, shown) = lanes.shown(0);
        assert_eq!(shown.len(), MOST_SHOWN);
        assert!(shown.iter().all(|lane| lane.thread >= 50), "{shown:?}");
    }

    #[test]
    fn threads_beyond_those_that_are_followed_are_counted() {
        let mut lanes = Lanes::default();
        for thread in 0..1_000 {
            lanes.set(0, thread, 1, Doing::OnCpu);
            lanes.set(1, thread, 1, SLEEP);
        }
        lanes.end_all(10);
        assert_eq!(lanes.shown(0).1.len(), MOST_SHOWN);
        assert_eq!(lanes.left_out(), 1_000 - MOST_SHOWN as u64);
    }
}
