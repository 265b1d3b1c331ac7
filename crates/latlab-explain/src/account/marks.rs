//! When a program was in its stages, in a bounded number of stretches: a row a thread and stage.

use std::collections::HashMap;
use std::sync::Arc;

use crate::account::grain::{self, Grain};
use crate::model::StageSpans;
use crate::time::micros;

/// Stretches of all rows together.
const MOST: usize = 4096;
const MOST_ROWS: usize = 256;
const MOST_OPEN: usize = 65_536;

/// A stage begins or ends in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When, nanoseconds.
    pub at: u64,
    /// Process; 0: the program as a whole.
    pub process: u32,
    /// Thread; 0: the process as a whole.
    pub thread: u32,
    /// What.
    pub what: What,
}

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A stage begins: its number, its name.
    Begin(u64, Arc<str>),
    /// The stage of this number ends.
    End(u64),
    /// Marks were lost: what is open is not known any more.
    Lost,
}

/// Some time in which the stage ran so often.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    from: u64,
    to: u64,
    /// In the stage.
    busy: u64,
    times: u64,
}

impl grain::Span for Stretch {
    fn takes(&mut self, next: &Self, grain_ns: u64) -> bool {
        let from = self.from.min(next.from);
        let to = self.to.max(next.to);
        let apart = next.from >= self.to;
        // One within the other, as a stage that calls itself is, or so near that the eye does not part them.
        if apart && to - from > grain_ns {
            return false;
        }
        self.busy = if apart {
            self.busy + next.busy
        } else {
            (self.busy + (to - self.to) + (self.from - from)).min(to - from)
        };
        (self.from, self.to) = (from, to);
        self.times += next.times;
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    process: u32,
    thread: u32,
    name: Arc<str>,
    stretches: Vec<Stretch>,
}

impl grain::Row for Row {
    type Span = Stretch;
    fn spans(&mut self) -> &mut Vec<Stretch> {
        &mut self.stretches
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Marks {
    rows: Vec<Row>,
    by_key: HashMap<(u32, u32, Arc<str>), usize>,
    open: HashMap<u64, (usize, u64)>,
    grain: Grain<MOST>,
}

impl Marks {
    /// A mark, as it is heard; those of one thread come in order.
    pub(crate) fn take(&mut self, change: &Change) {
        match &change.what {
            What::Begin(number, name) => {
                let key = (change.process, change.thread, Arc::clone(name));
                let known = self.by_key.get(&key).copied();
                let row = known.or_else(|| self.row(key));
                if let Some(row) = row.filter(|_| self.open.len() < MOST_OPEN) {
                    self.open.insert(*number, (row, change.at));
                }
            }
            What::End(number) => {
                if let Some((row, from)) = self.open.remove(number) {
                    self.push(row, from, change.at);
                }
            }
            What::Lost => self.open.clear(),
        }
    }

    fn row(&mut self, key: (u32, u32, Arc<str>)) -> Option<usize> {
        if self.rows.len() >= MOST_ROWS {
            return None;
        }
        self.rows.push(Row {
            process: key.0,
            thread: key.1,
            name: Arc::clone(&key.2),
            stretches: Vec::new(),
        });
        self.by_key.insert(key, self.rows.len() - 1);
        Some(self.rows.len() - 1)
    }

    /// What is open ends with the program.
    pub(crate) fn end_all(&mut self, now: u64) {
        let mut open: Vec<(usize, u64)> = self.open.drain().map(|(_, open)| open).collect();
        // The innermost first, as their ends would have come.
        open.sort_by_key(|open| std::cmp::Reverse(open.1));
        for (row, from) in open {
            self.push(row, from, now);
        }
    }

    fn push(&mut self, row: usize, from: u64, to: u64) {
        let next = Stretch { from, to: to.max(from), busy: to.saturating_sub(from), times: 1 };
        self.grain.push(&mut self.rows, row, next);
    }

    /// As it is written: times from `begin`.
    pub(crate) fn shown(&self, begin: u64) -> Vec<StageSpans> {
        let rows = self.rows.iter().filter(|row| !row.stretches.is_empty());
        rows.map(|row| StageSpans {
            name: row.name.to_string(),
            process: row.process,
            thread: row.thread,
            spans: row
                .stretches
                .iter()
                .map(|stretch| {
                    let from = stretch.from.saturating_sub(begin);
                    (micros(from), micros(stretch.to - stretch.from), stretch.times, micros(stretch.busy))
                })
                .collect(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: u64, what: What) -> Change {
        Change { at, process: 1, thread: 1, what }
    }

    fn once(marks: &mut Marks, number: u64, name: &str, from: u64, to: u64) {
        marks.take(&mark(from, What::Begin(number, Arc::from(name))));
        marks.take(&mark(to, What::End(number)));
    }

    #[test]
    fn a_few_stages_are_kept_as_they_were() {
        let mut marks = Marks::default();
        once(&mut marks, 1, "read", 1_000, 3_000);
        once(&mut marks, 2, "parse", 3_000, 4_000);
        once(&mut marks, 3, "read", 4_000, 9_000);
        let shown = marks.shown(1_000);
        assert_eq!(shown[0].name, "read");
        assert_eq!(shown[0].spans, [(0.0, 2e-6, 1, 2e-6), (3e-6, 5e-6, 1, 5e-6)]);
        assert_eq!(shown[1].spans, [(2e-6, 1e-6, 1, 1e-6)]);
    }

    #[test]
    fn stages_of_single_lines_become_stretches_that_say_how_often() {
        let mut marks = Marks::default();
        for line in 0..100_000 {
            let at = line * 3_000;
            once(&mut marks, 2 * line, "read", at, at + 1_000);
            once(&mut marks, 2 * line + 1, "parse", at + 1_000, at + 3_000);
        }
        let shown = marks.shown(0);
        let spans: usize = shown.iter().map(|row| row.spans.len()).sum();
        assert!(spans <= MOST, "{spans}");
        let times: u64 = shown[0].spans.iter().map(|span| span.2).sum();
        let busy: f64 = shown[1].spans.iter().map(|span| span.3).sum();
        assert_eq!(times, 100_000);
        assert!((busy - 0.2).abs() < 1e-3, "{busy}");
    }

    #[test]
    fn a_stage_within_itself_counts_once_and_one_that_is_open_ends_with_the_program() {
        let mut marks = Marks::default();
        marks.take(&mark(0, What::Begin(1, Arc::from("walk"))));
        once(&mut marks, 2, "walk", 2_000, 4_000);
        marks.end_all(10_000);
        assert_eq!(marks.shown(0)[0].spans, [(0.0, 1e-5, 2, 1e-5)]);
    }
}
