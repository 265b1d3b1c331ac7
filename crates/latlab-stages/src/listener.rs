//! Hears the stages of a program and of all that it starts, while they run.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use crate::lines::{Line, LineError, Lines};
use crate::reader::{Mark, Reader};
use crate::shared::Shared;
use crate::spans::{Spans, StageRow, Table};
use crate::writer::now_ns;

/// Stages that may be under way at once by lines.
const MOST_OPEN_LINES: usize = 1_000;
/// Names of stages by lines; further ones share one.
const MOST_NAMES: usize = 256;
/// Bytes of lines that are read at a time, that one drain reads at most, and that may wait for the next
/// drains; what is beyond is not read.
const CHUNK: usize = 1 << 16;
const DRAINED: u64 = 256 << 10;
const MOST_WAITING: u64 = 1 << 20;
/// Numbers of lines' marks, which no ring reaches.
const LINES_FROM: u64 = 1 << 63;

/// A ring and a file of lines, with what came out of them so far.
pub struct Listener {
    ring: Shared,
    reader: Reader,
    file: File,
    read_to: u64,
    lines: Lines,
    next_line: u64,
    /// By name, the numbers of what lines have begun and not ended.
    names: HashMap<Arc<str>, Vec<u64>>,
    open: usize,
    /// Of the last drain: kept for their memory.
    marks: Vec<Mark>,
    bytes: Vec<u8>,
    spans: Spans,
    table: Table,
    refused: u64,
    first_refused: Option<LineError>,
    unread_bytes: u64,
}

/// What is heard.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A stage begins or ends.
    Mark(&'a Mark),
    /// Marks are missing from before the next one: what was open may be so no more.
    Lost,
}

/// What was heard in all.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Heard {
    /// The stages, the longest first.
    pub stages: Vec<StageRow>,
    /// Marks that were overwritten before they were read.
    pub lost: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Lines that were not understood.
    pub refused: u64,
    /// The first of them.
    pub first_refused: Option<String>,
    /// Lines that were not read, as they came too fast, bytes.
    pub unread_bytes: u64,
}

impl Listener {
    /// Listens with a ring of so many slots (64 bytes each).
    /// Errors: the system gives no anonymous file whose length can be fixed, or no memory.
    pub fn new(slots: u32) -> io::Result<Self> {
        let ring = Shared::new(slots)?;
        Ok(Self {
            reader: Reader::new(ring.slots),
            ring,
            file: File::from(memfd_create("latlab-lines", MemfdFlags::CLOEXEC)?),
            read_to: 0,
            lines: Lines::default(),
            next_line: LINES_FROM,
            names: HashMap::new(),
            open: 0,
            marks: Vec::new(),
            bytes: vec![0; CHUNK],
            spans: Spans::default(),
            table: Table::default(),
            refused: 0,
            first_refused: None,
            unread_bytes: 0,
        })
    }

    /// What the program's environment must hold; of use to processes of this user, while this one lives.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let lines = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        [("LATLAB_STAGES", self.ring.path()), ("LATLAB_STAGE_LINES", lines)]
    }

    /// The ring.
    pub fn ring(&self) -> &Shared {
        &self.ring
    }

    /// Takes what has come since the last time, in order of writing; to be called every few milliseconds.
    pub fn drain(&mut self, each: impl FnMut(Event<'_>)) {
        self.take(false, each);
    }

    /// Takes what is left, and ends what is still open at `at_ns`, when the program was over.
    pub fn finish(&mut self, at_ns: u64, each: impl FnMut(Event<'_>)) {
        self.take(true, each);
        for span in self.spans.finish(at_ns) {
            self.table.add(&span);
        }
    }

    /// The stages so far, which are none of the sums from now on.
    pub fn take_table(&mut self) -> Table {
        std::mem::take(&mut self.table)
    }

    /// Adds stages that were taken to the sums.
    pub fn put_back(&mut self, table: &Table) {
        self.table.merge(table);
    }

    /// The sums so far.
    pub fn heard(&self) -> Heard {
        Heard {
            stages: self.table.rows(),
            lost: self.reader.lost(),
            unmatched: self.spans.unmatched,
            refused: self.refused,
            first_refused: self.first_refused.as_ref().map(LineError::to_string),
            unread_bytes: self.unread_bytes,
        }
    }

    fn take(&mut self, last: bool, mut each: impl FnMut(Event<'_>)) {
        let before = (self.reader.lost(), self.unread_bytes);
        let mut marks = std::mem::take(&mut self.marks);
        self.reader.drain(self.ring.words(), last, &mut marks);
        self.read_lines(last, &mut marks);
        let now = now_ns();
        if (self.reader.lost(), self.unread_bytes) != before {
            self.spans.forget();
            each(Event::Lost);
        }
        for mut mark in marks.drain(..) {
            // Whoever writes it may say anything.
            mark.at_ns = mark.at_ns.min(now);
            each(Event::Mark(&mark));
            if let Some(span) = self.spans.take(mark) {
                self.table.add(&span);
            }
        }
        self.marks = marks;
    }

    fn read_lines(&mut self, last: bool, marks: &mut Vec<Mark>) {
        let length = self.file.metadata().map_or(0, |about| about.len());
        if length < self.read_to {
            // The program has emptied it, as `>` does in a shell.
            self.read_to = 0;
            self.lines = Lines::default();
        }
        let beyond = (length - self.read_to).saturating_sub(MOST_WAITING);
        if beyond > 0 {
            self.read_to += beyond;
            self.lines = Lines::default();
        }
        self.unread_bytes = self.unread_bytes.saturating_add(beyond);
        let until = self.read_to + if last { MOST_WAITING } else { DRAINED };
        while self.read_to < until {
            // Never mapped: it may become shorter at any time.
            let Ok(got @ 1..) = self.file.read_at(&mut self.bytes, self.read_to) else { break };
            let seen_ns = now_ns();
            for line in self.lines.take(&self.bytes[..got]) {
                match line {
                    Ok(line) => marks.push(self.mark(line, seen_ns)),
                    Err(error) => {
                        self.refused += 1;
                        self.first_refused.get_or_insert(error);
                    }
                }
            }
            self.read_to += got as u64;
        }
        self.forget();
    }

    /// Gives the memory of lines that were read back to the system.
    fn forget(&self) {
        let whole = self.read_to / 4096 * 4096;
        if whole > 0 {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where it is refused, the memory stays until the end.
            let _ = fallocate(&self.file, hole, 0, whole);
        }
    }

    fn mark(&mut self, line: Line, seen_ns: u64) -> Mark {
        let number = self.next_line;
        self.next_line += 1;
        let is_new = !self.names.contains_key(line.name.as_str());
        let name: Arc<str> = if is_new && self.names.len() >= MOST_NAMES {
            Arc::from("(further names)")
        } else {
            Arc::from(line.name)
        };
        let open = self.names.entry(Arc::clone(&name)).or_default();
        let mut of = None;
        if line.ends {
            let begun = open.pop();
            self.open -= usize::from(begun.is_some());
            // An end without a begin keeps a number that was never begun, and is counted as that.
            of = Some(begun.unwrap_or(number));
        } else if self.open < MOST_OPEN_LINES {
            open.push(number);
            self.open += 1;
        }
        Mark {
            number,
            at_ns: line.at_ns.unwrap_or(seen_ns),
            of,
            bytes: line.bytes,
            process: 0,
            thread: 0,
            name,
        }
    }
}
