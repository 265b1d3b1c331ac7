//! Where a Python program is in its own code: stacks that were read in the interpreter's memory, and the
//! tables in which it keeps its lines.
//!
//! Pure: `watch` reads the memory. An instant belongs to the stacks of the thread that holds the
//! interpreter's lock and of those that are on a CPU without it, to each as much; when there are none, to the
//! main thread's.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::account::interval::of_share;
use crate::account::mix::Weight;
use crate::model::{PythonCode, PythonPlace, PythonStack};

/// Different stacks that are kept; of others the running function alone.
const MOST_STACKS: usize = 8192;
/// Different running functions and lines that are kept; beyond, they are summed without a name.
const MOST_LEAVES: usize = 32_768;
/// Listed.
const MOST_LISTED: usize = 20;
const MOST_STACKS_LISTED: usize = 512;

/// Which of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTable {
    /// Python 3.10: PEP 626, pairs of bytes.
    Pairs,
    /// From 3.11 on: PEP 657, with columns.
    Locations,
}

impl LineTable {
    /// The line of an instruction, counted in units of two bytes; `None`: it has none, or the table is
    /// damaged.
    pub(crate) fn line(self, table: &[u8], first_line: u32, instruction: u64) -> Option<u32> {
        match self {
            Self::Pairs => of_pairs(table, first_line, instruction),
            Self::Locations => of_locations(table, first_line, instruction),
        }
    }
}

/// Each pair: bytes of code, and lines from the entry before; -128: no line.
fn of_pairs(table: &[u8], first_line: u32, instruction: u64) -> Option<u32> {
    let (mut end, mut line) = (0_u64, i64::from(first_line));
    for pair in table.chunks_exact(2) {
        let step = i8::from_ne_bytes([pair[1]]);
        end += u64::from(pair[0]);
        if step != i8::MIN {
            line += i64::from(step);
        }
        if 2 * instruction < end {
            return (step != i8::MIN).then(|| u32::try_from(line).ok()).flatten();
        }
    }
    None
}

/// Each entry: a byte of kind and length, then by kind; bytes that go on have the high bit clear.
fn of_locations(table: &[u8], first_line: u32, instruction: u64) -> Option<u32> {
    let (mut end, mut line) = (0_u64, i64::from(first_line));
    let mut at = 0;
    while let Some(head) = table.get(at) {
        let kind = head >> 3 & 15;
        let mut rest = at + 1;
        let has_line = kind != 15;
        line += match kind {
            // A line without columns, and one with an end and columns.
            13 | 14 => signed(varint(table, &mut rest)?),
            10..=12 => i64::from(kind - 10),
            _ => 0,
        };
        end += u64::from(head & 7) + 1;
        if instruction < end {
            return has_line.then(|| u32::try_from(line).ok()).flatten();
        }
        at += 1;
        // Entries begin with a high bit.
        while table.get(at).is_some_and(|byte| byte & 0x80 == 0) {
            at += 1;
        }
    }
    None
}

/// Six bits a byte, the lowest first; bit 6 says that there are more.
fn varint(table: &[u8], at: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = *table.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 63) << shift;
        shift += 6;
        if byte & 64 == 0 {
            return Some(value);
        }
        if shift > 54 {
            return None;
        }
    }
}

fn signed(value: u64) -> i64 {
    let size = i64::try_from(value >> 1).unwrap_or(0);
    if value & 1 == 1 { -size } else { size }
}

/// A function that a thread is in, and the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Its name, with that of its class where the interpreter keeps it.
    pub function: Rc<str>,
    /// The file as the interpreter knows it.
    pub file: Rc<str>,
    /// 0: not known.
    pub line: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Got {
    all: Weight,
    /// Of it, on a CPU.
    running: f64,
}

impl Got {
    fn add(&mut self, other: &Self) {
        self.all.add(other.all);
        self.running += other.running;
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Read {
    /// The running function first.
    stacks: HashMap<Vec<Frame>, Got>,
    leaves: HashSet<Frame>,
    /// No thread was in Python code: the interpreter starts or ends, or is not there yet.
    outside: Got,
    /// Of more functions than are kept.
    rest: Got,
    /// Versions that were met.
    pub versions: BTreeSet<String>,
    /// Instants at which frames were read.
    pub reads: u64,
    /// Reads that contradicted themselves, and were left out.
    pub torn: u64,
    /// Why an interpreter that was there could not be read.
    pub refused: Option<String>,
}

impl Read {
    /// A stack, the running function first, that stands for so many nanoseconds of wall time; empty: no
    /// Python code was running.
    pub(crate) fn stack(&mut self, mut stack: Vec<Frame>, ns: f64, running: bool) {
        let got = Got { all: Weight::of(ns), running: if running { ns } else { 0.0 } };
        let Some(leaf) = stack.first() else {
            self.outside.add(&got);
            return;
        };
        if !self.leaves.contains(leaf) {
            if self.leaves.len() >= MOST_LEAVES {
                self.rest.add(&got);
                return;
            }
            self.leaves.insert(leaf.clone());
        }
        if self.stacks.len() >= MOST_STACKS && !self.stacks.contains_key(&stack) {
            stack.truncate(1);
        }
        self.stacks.entry(stack).or_default().add(&got);
    }

    /// Whether an interpreter was met.
    pub(crate) fn is_empty(&self) -> bool {
        self.reads == 0 && self.refused.is_none()
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (stack, got) in &other.stacks {
            self.leaves.extend(stack.first().cloned());
            self.stacks.entry(stack.clone()).or_default().add(got);
        }
        self.outside.add(&other.outside);
        self.rest.add(&other.rest);
        self.versions.extend(other.versions.iter().cloned());
        self.reads += other.reads;
        self.torn += other.torn;
        if self.refused.is_none() {
            self.refused.clone_from(&other.refused);
        }
    }

    fn total(&self) -> Got {
        let mut total = self.outside;
        total.add(&self.rest);
        self.stacks.values().for_each(|got| total.add(got));
        total
    }

    /// As it is reported; `None` where there was no interpreter.
    pub(crate) fn reported(&self) -> Option<PythonCode> {
        if self.is_empty() {
            return None;
        }
        let total = self.total();
        let named = |by_line: bool| {
            let mut places: HashMap<Frame, (Got, f64)> = HashMap::new();
            let of = |frame: &Frame| Frame { line: if by_line { frame.line } else { 0 }, ..frame.clone() };
            for (stack, got) in &self.stacks {
                let mut seen = HashSet::new();
                for (at, frame) in stack.iter().enumerate() {
                    let place = of(frame);
                    // A function that calls itself is in the stack more than once.
                    if !seen.insert(place.clone()) {
                        continue;
                    }
                    let sums = places.entry(place).or_default();
                    sums.1 += got.all.sum;
                    if at == 0 {
                        sums.0.add(got);
                    }
                }
            }
            self.listed(places, &total)
        };
        let share = |ns: f64| ns / total.all.sum.max(1.0);
        let mut stacks: Vec<(&Vec<Frame>, &Got)> = self.stacks.iter().collect();
        stacks.sort_by(|a, b| b.1.all.sum.total_cmp(&a.1.all.sum));
        let stacks = stacks.into_iter().take(MOST_STACKS_LISTED).map(|(stack, got)| {
            let frames = stack.iter().rev().map(|frame| frame.function.to_string());
            PythonStack { frames: frames.collect(), share: share(got.all.sum), running: share(got.running) }
        });
        Some(PythonCode {
            versions: self.versions.iter().cloned().collect(),
            reads: self.reads,
            torn: self.torn,
            nameless_share: share(self.outside.all.sum + self.rest.all.sum),
            functions: named(false),
            lines: named(true),
            stacks: stacks.collect(),
            refused: self.refused.clone(),
        })
    }

    /// The heaviest, what is outside of all, and the rest as one.
    fn listed(&self, places: HashMap<Frame, (Got, f64)>, total: &Got) -> Vec<PythonPlace> {
        let worth = total.all.worth();
        let whole = total.all.sum.max(1.0);
        let place = |function: String, file: Option<String>, line: u32, got: &Got, within: f64| {
            let share = got.all.sum / whole;
            let range = of_share(share, worth);
            PythonPlace {
                name: function,
                file,
                line: (line > 0).then_some(line),
                share,
                low: range.low,
                high: range.high,
                within: within / whole,
                busy_share: got.running / total.running.max(1.0),
            }
        };
        let mut places: Vec<(Frame, (Got, f64))> = places.into_iter().collect();
        places.sort_by(|a, b| {
            let heavy = b.1.0.all.sum.total_cmp(&a.1.0.all.sum);
            heavy
                .then_with(|| (&a.0.file, a.0.line, &a.0.function).cmp(&(&b.0.file, b.0.line, &b.0.function)))
        });
        // Callers that never ran themselves are in the stacks.
        places.retain(|(_, (own, _))| own.all.samples > 0);
        let mut listed: Vec<PythonPlace> = places
            .iter()
            .take(MOST_LISTED)
            .map(|(frame, (own, within))| {
                let file = Some(frame.file.to_string());
                place(frame.function.to_string(), file, frame.line, own, *within)
            })
            .collect();
        let mut rest = self.rest;
        let left = places.get(MOST_LISTED..).unwrap_or_default();
        for (_, (own, _)) in left {
            rest.add(own);
        }
        if rest.all.samples > 0 {
            let name = format!("[{} more]", left.len());
            listed.push(place(name, None, 0, &rest, rest.all.sum));
        }
        if self.outside.all.samples > 0 {
            let name = "[no Python code]".to_owned();
            listed.push(place(name, None, 0, &self.outside, self.outside.all.sum));
        }
        listed
    }
}

#[cfg(test)]
mod tests;
