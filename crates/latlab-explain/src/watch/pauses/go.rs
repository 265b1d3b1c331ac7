//! Pauses of Go programs, by the statistics that the runtime keeps in its own memory
//! (`runtime.memstats`), which `runtime.ReadMemStats` reads too.
//!
//! The address comes from the program's symbols, and where its fields lie from the types that its linker
//! wrote for debuggers: a program without either tells nothing. The memory goes with the process, so what
//! comes after the last scan is not known. What its bytes mean is found out when all is over: the types of a
//! program of 20 MB take 24 ms to read.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::Rc;

use gimli::RunTimeEndian;
use object::{Object as _, ObjectSymbol as _};

use super::Counters;
use crate::account::mappings::Map;
use crate::account::records::FileId;
use crate::model::Pauses;
use crate::watch::budget::Budget;
use crate::watch::image::{Image, Parsed};
use crate::watch::segments::Segments;
use crate::watch::structures::{Field, Structures};
use crate::watch::{mapped, maps};

/// What every program has that the `go` command linked.
const OF_GO: &str = ".go.buildinfo";
const VARIABLE: &str = "runtime.memstats";
const TYPE: &str = "runtime.mstats";
/// The variable is no larger, bytes; in Go 1.26 it has 10 KiB.
const MOST_BYTES: usize = 64 << 10;
/// Of a program's symbols, while it is watched: memory, and steps. Those of a Kubernetes server are some
/// 200,000.
const MOST_OF_SYMBOLS: u64 = 64 << 20;
const MOST_STEPS: u64 = 2 << 20;
/// Files whose answers are kept; those of Go stay open.
const MOST_FILES: usize = 256;
const KIND: &str = "garbage collection pauses";

/// Where the fields lie in the variable.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    times: Field,
    total_ns: Field,
    /// The pauses of the last collections, 256 of them.
    each_ns: Field,
}

impl Layout {
    /// By the types in a program's file.
    fn of(image: &Image, file: &Parsed<'_>, bytes: usize, budget: &Budget) -> Option<Self> {
        let (entries, kinds) = (image.section(file, ".debug_info")?, image.section(file, ".debug_abbrev")?);
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let types = Structures::of(&entries, &kinds, endian, budget);
        let (size, [times, total_ns, each_ns]) = types.find(TYPE, ["numgc", "pause_total_ns", "pause_ns"])?;
        let layout = Self { times, total_ns, each_ns };
        (size <= bytes && layout.is_usual()).then_some(layout)
    }

    fn is_usual(&self) -> bool {
        let of_words = |field: Field| field.offset.is_multiple_of(8) && field.bytes.is_multiple_of(8);
        self.times.bytes == 4 && self.total_ns.bytes == 8 && of_words(self.each_ns)
    }

    /// How often and how long, nanoseconds.
    fn counted(&self, variable: &[u8]) -> Option<(u32, u64)> {
        let times = *variable.get(self.times.offset..)?.first_chunk()?;
        let total = *variable.get(self.total_ns.offset..)?.first_chunk()?;
        Some((u32::from_ne_bytes(times), u64::from_ne_bytes(total)))
    }
}

/// The file of a Go program that may tell.
#[derive(Debug)]
struct Program {
    /// Open, so that its inode is no other file's.
    file: File,
    written: [u64; 3],
    /// Of the variable, as it was linked.
    address: u64,
    bytes: usize,
    segments: Segments,
    layout: OnceCell<Option<Layout>>,
}

impl Program {
    /// `None`: it is not of Go, or without symbols or types.
    fn of(file: File) -> Option<Self> {
        let budget = Rc::new(Budget::of(MOST_OF_SYMBOLS, MOST_STEPS));
        let image = Image::of(file.try_clone().ok()?, &budget)?;
        let parsed = image.parsed()?;
        let has = |name| parsed.section_by_name(name).is_some();
        let is_own = parsed.is_64() && parsed.is_little_endian() == cfg!(target_endian = "little");
        if !is_own || !has(OF_GO) || !has(".debug_info") {
            return None;
        }
        image.read_names(&parsed);
        let is_it =
            |symbol: &object::Symbol<'_, '_, &Image>| symbol.name().is_ok_and(|name| name == VARIABLE);
        let mut symbols = parsed.symbols().map_while(|symbol| budget.step(1).map(|()| symbol));
        let variable = symbols.find(is_it)?;
        let bytes = usize::try_from(variable.size()).ok().filter(|bytes| *bytes <= MOST_BYTES)?;
        let (address, segments) = (variable.address(), Segments::of(&parsed));
        drop(symbols);
        Some(Self { written: written(&file)?, file, address, bytes, segments, layout: OnceCell::new() })
    }

    fn layout(&self, budget: &Rc<Budget>) -> Option<Layout> {
        let read = || {
            let image = Image::of(self.file.try_clone().ok()?, budget)?;
            Layout::of(&image, &image.parsed()?, self.bytes, budget)
        };
        *self.layout.get_or_init(|| budget.lent(read))
    }
}

/// How long a file is and when it was changed.
fn written(file: &File) -> Option<[u64; 3]> {
    let about = file.metadata().ok()?;
    Some([about.len(), about.ctime().cast_unsigned(), about.ctime_nsec().cast_unsigned()])
}

/// The programs of all processes: many run the same.
#[derive(Debug, Default)]
pub(super) struct Programs(HashMap<FileId, Option<Rc<Program>>>);

impl Programs {
    /// The statistics of a process that runs this program.
    pub(super) fn find(&mut self, pid: u32, path: &Path) -> Option<Process> {
        // Of the program that runs now: after another exec, nothing can be read from it.
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let path = path.to_str()?;
        let map = maps::of(pid).into_iter().find(|map| *map.path == *path)?;
        let program = self.program(pid, &map)?;
        let moved = map.start.wrapping_sub(program.segments.begin(map.offset)?);
        let address = program.address.wrapping_add(moved);
        let mut process = Process::of(program, memory, address);
        process.scan().then_some(process)
    }

    fn program(&mut self, pid: u32, map: &Map) -> Option<Rc<Program>> {
        let is_same = |known: &Program| written(&known.file) == Some(known.written);
        if let Some(known) = self.0.get(&map.file)
            && known.as_ref().is_none_or(|known| is_same(known))
        {
            return known.clone();
        }
        if self.0.len() >= MOST_FILES {
            self.0.clear();
        }
        let program = mapped::open(pid, map).and_then(Program::of).map(Rc::new);
        self.0.insert(map.file, program.clone());
        program
    }
}

/// The statistics of one process.
#[derive(Debug)]
pub(super) struct Process {
    program: Rc<Program>,
    /// Of the process; `None`: there is nothing more to read.
    memory: Option<File>,
    address: u64,
    /// The bytes of the variable before it was watched, at the last scan, and at the one that is going on.
    before: Vec<u8>,
    last: Vec<u8>,
    now: Vec<u8>,
    /// The largest value that each word has got since it was watched: of all pauses the longest, though the
    /// last 256 only are kept there.
    largest: Vec<u64>,
}

impl Process {
    fn of(program: Rc<Program>, memory: File, address: u64) -> Self {
        let none = vec![0; program.bytes];
        let largest = vec![0; program.bytes / 8];
        Self {
            program,
            memory: Some(memory),
            address,
            before: none.clone(),
            last: none.clone(),
            now: none,
            largest,
        }
    }
}

impl Counters for Process {
    fn scan(&mut self) -> bool {
        let read = self.memory.as_ref().map(|memory| memory.read_exact_at(&mut self.now, self.address));
        if read.is_none_or(|read| read.is_err()) {
            self.memory = None;
            return false;
        }
        let words = self.now.chunks_exact(8).zip(self.before.chunks_exact(8));
        for (largest, (now, before)) in self.largest.iter_mut().zip(words) {
            if now != before
                && let Some(now) = now.first_chunk()
            {
                *largest = u64::from_ne_bytes(*now).max(*largest);
            }
        }
        std::mem::swap(&mut self.last, &mut self.now);
        true
    }

    fn has_run(&mut self) {
        self.before.clone_from(&self.last);
        self.largest.fill(0);
    }

    fn reported(&mut self, process: u32, budget: &Rc<Budget>) -> Vec<Pauses> {
        let is_there = self.scan();
        let reported = || {
            let layout = self.program.layout(budget)?;
            let (before, last) = (layout.counted(&self.before)?, layout.counted(&self.last)?);
            let (from, words) = (layout.each_ns.offset / 8, layout.each_ns.bytes / 8);
            let longest = self.largest.get(from..from + words)?.iter().max().filter(|ns| **ns > 0);
            let pauses = Pauses {
                process,
                runtime: "Go",
                kind: KIND.to_owned(),
                is_least: !is_there,
                times: last.0.saturating_sub(before.0).into(),
                seconds: last.1.saturating_sub(before.1) as f64 / 1e9,
                longest_s: longest.map(|ns| *ns as f64 / 1e9),
            };
            (pauses.times > 0).then_some(pauses)
        };
        reported().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::sample::{self, CODE_AT, Section};

    const MIB: u64 = 1 << 20;
    /// As Go's, but for four pauses.
    const FIELDS: [(&str, u8, u16); 3] = [("pause_total_ns", 0, 8), ("pause_ns", 8, 32), ("numgc", 40, 4)];

    /// A program whose variable has 64 bytes.
    fn sections(bytes: u16, fields: &[(&str, u8, u16)]) -> Vec<Section> {
        let mut sections = sample::named(VARIABLE);
        sections.push(sample::debug(OF_GO, vec![0; 32]));
        sections.extend(sample::structure(TYPE, bytes, fields));
        sections
    }

    fn program(sections: &[Section]) -> Option<Program> {
        Program::of(sample::file(&sample::elf(sections)))
    }

    fn layout(bytes: u16, fields: &[(&str, u8, u16)]) -> Option<Layout> {
        program(&sections(bytes, fields))?.layout(&Rc::new(Budget::of(MIB, MIB)))
    }

    /// The variable after so many pauses.
    fn variable(pauses: &[u64]) -> Vec<u8> {
        let mut words = [0; 8];
        for (at, pause) in pauses.iter().enumerate() {
            words[0] += pause;
            words[1 + at % 4] = *pause;
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        bytes[40..44].copy_from_slice(&u32::try_from(pauses.len()).unwrap().to_ne_bytes());
        bytes
    }

    /// A process whose memory is a file with this variable.
    fn process(pauses: &[u64]) -> (Process, File) {
        let program = Rc::new(program(&sections(64, &FIELDS)).unwrap());
        let memory = sample::file(&[]);
        memory.set_len(CODE_AT).unwrap();
        let mut process = Process::of(program, memory.try_clone().unwrap(), CODE_AT);
        set(&memory, pauses);
        assert!(process.scan());
        (process, memory)
    }

    fn set(memory: &File, pauses: &[u64]) {
        memory.write_all_at(&variable(pauses), CODE_AT).unwrap();
    }

    /// How often, how long, the longest, and whether there may have been more.
    fn reported(process: &mut Process) -> Option<(u64, f64, Option<f64>, bool)> {
        let mut reported = process.reported(7, &Rc::new(Budget::of(MIB, MIB)));
        assert!(reported.len() <= 1);
        let pauses = reported.pop()?;
        assert_eq!((pauses.process, pauses.runtime, pauses.kind.as_str()), (7, "Go", KIND));
        let ns = |seconds: f64| (seconds * 1e9).round();
        Some((pauses.times, ns(pauses.seconds), pauses.longest_s.map(ns), pauses.is_least))
    }

    #[test]
    fn the_longest_pause_is_kept_though_its_place_is_used_again() {
        let (mut process, memory) = process(&[10, 900]);
        set(&memory, &[10, 900, 20, 30, 40, 50, 60]);
        assert_eq!(reported(&mut process), Some((7, 1110.0, Some(900.0), false)));
    }

    #[test]
    fn pauses_of_before_are_left_out() {
        let (mut process, memory) = process(&[10, 900]);
        process.has_run();
        assert_eq!(reported(&mut process), None);
        set(&memory, &[10, 900, 20, 30]);
        assert_eq!(reported(&mut process), Some((2, 50.0, Some(30.0), false)));
    }

    #[test]
    fn what_was_read_last_is_reported_of_a_process_whose_memory_is_gone() {
        let (mut process, memory) = process(&[10, 20]);
        memory.set_len(CODE_AT).unwrap();
        assert!(!process.scan());
        assert_eq!(reported(&mut process), Some((2, 30.0, Some(20.0), true)));
        set(&memory, &[10, 20, 30]);
        assert!(!process.scan(), "it is not asked again");
    }

    #[test]
    fn a_program_without_symbols_or_types_tells_nothing() {
        let all = sections(64, &FIELDS);
        assert!(program(&all).is_some());
        for missing in [".symtab", OF_GO, ".debug_info"] {
            let mut sections = all.clone();
            sections.iter_mut().find(|section| section.name == missing).unwrap().name = ".other";
            // What a symbol table is, its kind says.
            sections.iter_mut().filter(|section| section.name == ".other").for_each(|other| other.kind = 1);
            assert!(program(&sections).is_none(), "{missing}");
        }
        let mut other = all;
        other.splice(..3, sample::named("runtime.memstat"));
        assert!(program(&other).is_none());
    }

    #[test]
    fn a_variable_that_is_too_large_is_not_read() {
        let mut all = sections(64, &FIELDS);
        for (bytes, is_read) in [(MOST_BYTES as u64, true), (MOST_BYTES as u64 + 1, false), (u64::MAX, false)]
        {
            let symbols = &mut all.iter_mut().find(|section| section.name == ".symtab").unwrap().bytes;
            let at = symbols.len() - 8;
            symbols[at..].copy_from_slice(&bytes.to_le_bytes());
            assert_eq!(program(&all).is_some(), is_read, "{bytes}");
        }
    }

    #[test]
    fn fields_that_are_not_as_the_runtime_has_them_tell_nothing() {
        let [total, each, times] = FIELDS;
        assert!(layout(64, &FIELDS).is_some());
        assert_eq!(layout(65, &FIELDS), None, "larger than the variable");
        assert_eq!(layout(64, &[total, each]), None);
        assert_eq!(layout(64, &[total, each, ("numgc", 40, 8)]), None);
        assert_eq!(layout(64, &[total, each, ("numgc", 62, 4)]), None);
        assert_eq!(layout(64, &[("pause_total_ns", 0, 4), each, times]), None);
        assert_eq!(layout(64, &[total, ("pause_ns", 4, 32), times]), None);
        assert_eq!(layout(64, &[total, ("pause_ns", 8, 33), times]), None);
    }

    #[test]
    fn fuzzed_programs_do_no_harm() {
        let bytes = sample::elf(&sections(64, &FIELDS));
        let mut understood = 0;
        sample::fuzz(|random| {
            let mut bytes = bytes.clone();
            random.change(&mut bytes);
            if let Some(program) = Program::of(sample::file(&bytes)) {
                let layout = program.layout(&Rc::new(Budget::of(MIB, MIB)));
                understood += u32::from(layout.is_some());
                let memory = sample::file(&variable(&[1, 2]));
                let mut process = Process::of(Rc::new(program), memory, random.below(200) as u64);
                process.scan();
                reported(&mut process);
            }
        });
        assert!(understood > 0);
    }
}
