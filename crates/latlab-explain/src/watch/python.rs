//! Where Python threads are in their own code, by reading the interpreter's memory from outside.
//!
//! The program does not stop and does not notice. What is read in one call was there within a microsecond or
//! so; what contradicts itself (a frame whose code is no code, an instruction outside of it) is left out and
//! counted.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use object::{Object as _, ObjectSymbol as _};

use super::budget::Budget;
use super::clock::{now_ns, thread_cpu_ns};
use super::image::Image;
use super::mapped;
use super::memory::gather;
use super::proc_file::{letter, text};
use super::segments::Segments;
use crate::account::mappings::{Map, Mapped};
use crate::account::python::{Frame, Read};

mod layout;

use layout::{Holder, Instruction, Layout};

/// Reading may take one part in so many of one CPU.
const SHARE: u64 = 100;
/// While Python code is there, reads come this often on average, or more often where the watcher wakes up for
/// other things anyway.
const USUAL_NS: u64 = 4_000_000;
/// Of a file with an interpreter in it: its symbols are some ten thousand, and take some megabytes.
const MOST_BYTES: u64 = 64 << 20;
const MOST_STEPS: u64 = 4 << 20;
/// Processes followed at once.
const MOST_PROCESSES: usize = 16;
/// Threads of one that are looked at when none of them holds the lock.
const MOST_THREADS: usize = 64;
/// Callers further out are cut.
const DEEPEST: usize = 64;
/// Frames that are read before it is known whether they are in use: those in use the last times.
const MOST_RECENT: usize = 64;
/// Code objects whose names are kept.
const MOST_CODES: usize = 16_384;
/// Longest names and tables.
const LONGEST_NAME: usize = 512;
const LONGEST_TABLE: usize = 256 << 10;
/// A process in which nothing can be read so often in a row has become another program.
const MOST_FAILURES: u32 = 8;
/// Distances between scans of what a process has mapped: a shell may become an interpreter.
const FIRST_SEEK_NS: u64 = 2_000_000;
const LAST_SEEK_NS: u64 = 500_000_000;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Why nothing came of a read.
#[derive(Debug)]
enum Miss {
    /// It contradicted itself.
    Torn,
    /// No thread is in Python code.
    Outside,
    /// The process is gone, or is another program now.
    Gone,
    /// It may not be read.
    Refused,
}

impl From<io::Error> for Miss {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => Self::Refused,
            Some(libc::ESRCH) => Self::Gone,
            _ => Self::Torn,
        }
    }
}

/// What a file with an interpreter in it says.
#[derive(Clone, Debug)]
struct Interpreter {
    layout: &'static Layout,
    runtime: u64,
    code_type: u64,
    segments: Segments,
}

impl Interpreter {
    /// `None`: there is none in it; else, or the version whose memory is not known here.
    fn of(pid: u32, map: &Map) -> Option<Result<Self, String>> {
        let version = version(&map.path)?;
        let budget = Rc::new(Budget::of(MOST_BYTES, MOST_STEPS));
        let image = Image::of(mapped::open(pid, map)?, &budget)?;
        let file = image.parsed()?;
        let (mut runtime, mut code_type) = (0, 0);
        let mut find = |name: Option<&str>, address| match name {
            Some("_PyRuntime") => runtime = address,
            Some("PyCode_Type") => code_type = address,
            _ => {}
        };
        for symbol in file.dynamic_symbols() {
            budget.step(1)?;
            find(symbol.name().ok(), symbol.address());
        }
        if runtime == 0 || code_type == 0 {
            return None;
        }
        let Some(layout) = Layout::of(&version) else { return Some(Err(version)) };
        Some(Ok(Self { layout, runtime, code_type, segments: Segments::of(&file) }))
    }

    /// How far the file was moved when it was mapped.
    fn moved(&self, start: u64, offset: u64) -> Option<u64> {
        Some(start.wrapping_sub(self.segments.address(offset)?))
    }
}

/// The version that a file's name tells: `python3.11`, `libpython3.11.so.1.0`.
fn version(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let name = name.strip_prefix("lib").unwrap_or(name);
    let rest = name.strip_prefix("python")?;
    let version = rest.split(".so").next()?;
    version.starts_with("3.").then(|| version.to_owned())
}

/// A code object, as far as it is known.
#[derive(Debug)]
struct Code {
    /// Its fields when it was read: another object may come to the same address.
    head: [u64; 4],
    function: Rc<str>,
    file: Rc<str>,
    first_line: u32,
    table: Vec<u8>,
}

/// An interpreter that is read.
#[derive(Debug)]
struct Process {
    pid: u32,
    layout: &'static Layout,
    runtime: u64,
    code_type: u64,
    /// The main interpreter's state, and its lock; 0: not found yet.
    interpreter: u64,
    lock: u64,
    /// Of the thread that was read last.
    chain: u64,
    recent: Vec<u64>,
    codes: HashMap<u64, Rc<Code>>,
    failures: u32,
    buffer: Vec<u8>,
}

/// A frame as it was read.
#[derive(Clone, Copy, Debug)]
struct Raw {
    code: u64,
    instruction: u64,
    previous: u64,
    /// Not of Python code: where C code called the interpreter.
    is_mark: bool,
}

impl Process {
    /// Reads several places, all of them.
    fn fill(&self, places: &[(u64, usize)], into: &mut [u8]) -> Result<(), Miss> {
        if gather(self.pid, places, into)? < into.len() { Err(Miss::Torn) } else { Ok(()) }
    }

    fn words<const N: usize>(&self, places: [u64; N]) -> Result<[u64; N], Miss> {
        let mut bytes = [0_u8; 64];
        let bytes = bytes.get_mut(..8 * N).ok_or(Miss::Torn)?;
        let places = places.map(|place| (place, 8));
        self.fill(&places, bytes)?;
        let mut words = [0; N];
        for (at, found) in words.iter_mut().enumerate() {
            *found = word(bytes, 8 * at).unwrap_or(0);
        }
        Ok(words)
    }

    /// Finds the interpreter's state, once it is there.
    fn enter(&mut self) -> Result<(), Miss> {
        if self.interpreter == 0 {
            [self.interpreter] = self.words([self.runtime + self.layout.interpreter])?;
            if self.interpreter == 0 {
                return Err(Miss::Outside);
            }
        }
        if let (Holder::OfInterpreter { lock, .. }, 0) = (&self.layout.holder, self.lock) {
            [self.lock] = self.words([self.interpreter + lock])?;
            if self.lock == 0 {
                return Err(Miss::Outside);
            }
        }
        Ok(())
    }

    /// The thread that holds the lock, 0: none; and the first of the list of threads.
    fn holder(&self) -> Result<(u64, u64), Miss> {
        let threads = self.interpreter + self.layout.threads;
        match self.layout.holder {
            Holder::OfRuntime(at) => {
                let [holder, first] = self.words([self.runtime + at, threads])?;
                Ok((holder, first))
            }
            Holder::OfInterpreter { locked, last, .. } => {
                let [last, locked, first] = self.words([self.lock + last, self.lock + locked, threads])?;
                // A number of four bytes: 1 while it is held.
                let held = u32::try_from(locked & 0xffff_ffff).is_ok_and(|locked| locked == 1);
                Ok((if held { last } else { 0 }, first))
            }
        }
    }

    /// Stacks of the threads that the instant belongs to, and whether they are on a CPU.
    fn stacks(&mut self) -> Result<Vec<(Vec<Frame>, bool)>, Miss> {
        self.enter()?;
        let (holder, first) = self.holder()?;
        let mut threads = Vec::new();
        let mut at = first;
        while at != 0 && threads.len() < MOST_THREADS {
            let [next, id] = self.words([at + self.layout.next_thread, at + self.layout.thread_id])?;
            threads.push((at, u32::try_from(id).unwrap_or(0)));
            at = next;
        }
        // New ones come first; the main thread is the last of the list.
        let Some((main, _)) = threads.last().copied() else { return Err(Miss::Outside) };
        let mut stacks = Vec::new();
        if holder != 0 {
            stacks.push((self.stack(holder)?, true));
        }
        for (thread, id) in &threads {
            // Before 3.11 the list has no ids that the kernel knows: the main thread's is the process's.
            let (id, known) = if *thread == main { (self.pid, true) } else { (*id, self.layout.has_ids) };
            // Who waits for the lock sleeps: another one that runs has given it back for as long, and is in
            // code that is not Python.
            if *thread != holder && known && runs(self.pid, id) {
                match self.stack(*thread) {
                    Ok(stack) => stacks.push((stack, true)),
                    Err(Miss::Outside) => {}
                    Err(miss) => return Err(miss),
                }
            }
        }
        if stacks.is_empty() {
            stacks.push((self.stack(main)?, false));
        }
        Ok(stacks)
    }

    fn raw(&self, bytes: &[u8]) -> Option<Raw> {
        let layout = self.layout;
        let instruction = match layout.instruction {
            Instruction::Index(at) => u64::from(half(bytes, at)?),
            Instruction::Pointer(at) => word(bytes, at)?,
        };
        Some(Raw {
            code: word(bytes, layout.frame_code)?,
            previous: word(bytes, layout.frame_previous)?,
            instruction,
            is_mark: layout
                .frame_owner
                .is_some_and(|at| bytes.get(at).is_some_and(|owner| *owner >= layout::OWNED_BY_C)),
        })
    }

    /// The stack of a thread, the running function first.
    fn stack(&mut self, thread: u64) -> Result<Vec<Frame>, Miss> {
        let size = self.layout.frame_bytes;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(16 + MOST_RECENT * size, 0);
        let found = self.chain_of(thread, size, &mut buffer);
        self.buffer = buffer;
        self.named(&found?)
    }

    /// The frames of a thread, the running one first.
    fn chain_of(&mut self, thread: u64, size: usize, buffer: &mut [u8]) -> Result<Vec<Raw>, Miss> {
        let (field, through) = self.layout.current_frame;
        // All at once: where the chain begins, by where it was the last time, and the frames that were in it.
        let link = through.map_or(thread + field, |_| self.chain);
        let mut places = vec![(thread + field, 8), (link + through.unwrap_or(0), 8)];
        places.extend(self.recent.iter().map(|frame| (*frame, size)));
        let wanted = 16 + self.recent.len() * size;
        let got = gather(self.pid, &places, &mut buffer[..wanted])?;
        let begin = word(buffer, 0).filter(|_| got >= 8).ok_or(Miss::Torn)?;
        let mut current = match through {
            None => begin,
            Some(_) if begin == self.chain && got >= 16 => word(buffer, 8).unwrap_or(0),
            Some(through) => {
                if begin == 0 {
                    return Err(Miss::Outside);
                }
                self.chain = begin;
                self.words([begin + through])?[0]
            }
        };
        let mut frames = Vec::new();
        let mut addresses = Vec::new();
        while current != 0 && addresses.len() < DEEPEST {
            let known = self.recent.iter().position(|frame| *frame == current);
            let known = known.map(|at| 16 + at * size).filter(|at| at + size <= got);
            let raw = if let Some(at) = known {
                self.raw(&buffer[at..at + size])
            } else {
                let mut bytes = [0_u8; 128];
                let bytes = bytes.get_mut(..size).ok_or(Miss::Torn)?;
                self.fill(&[(current, size)], bytes)?;
                self.raw(bytes)
            };
            let raw = raw.ok_or(Miss::Torn)?;
            addresses.push(current);
            if !raw.is_mark {
                frames.push(raw);
            }
            current = raw.previous;
        }
        addresses.extend(
            self.recent.iter().filter(|known| !addresses.contains(known)).copied().collect::<Vec<_>>(),
        );
        addresses.truncate(MOST_RECENT);
        self.recent = addresses;
        if frames.is_empty() {
            return Err(Miss::Outside);
        }
        Ok(frames)
    }

    fn named(&mut self, frames: &[Raw]) -> Result<Vec<Frame>, Miss> {
        let layout = self.layout;
        let size = layout.code_bytes;
        let mut objects: Vec<u64> = frames.iter().map(|frame| frame.code).collect();
        objects.sort_unstable();
        objects.dedup();
        let places: Vec<(u64, usize)> = objects.iter().map(|object| (*object, size)).collect();
        let mut heads = vec![0; objects.len() * size];
        self.fill(&places, &mut heads)?;
        let mut codes: HashMap<u64, Rc<Code>> = HashMap::new();
        for (object, head) in objects.iter().zip(heads.chunks_exact(size)) {
            if word(head, 8) != Some(self.code_type) {
                return Err(Miss::Torn);
            }
            codes.insert(*object, self.code(*object, head)?);
        }
        frames
            .iter()
            .map(|frame| {
                let code = codes.get(&frame.code).ok_or(Miss::Torn)?;
                let at = match layout.instruction {
                    // Before the first instruction: -1.
                    Instruction::Index(_) => {
                        let signed = u32::try_from(frame.instruction).unwrap_or(0).cast_signed();
                        u64::from(signed.max(0).unsigned_abs())
                    }
                    Instruction::Pointer(_) => {
                        let from = (frame.code + layout.code_begin).wrapping_sub(2);
                        // One before the first counts as the first.
                        let past = frame.instruction.wrapping_sub(from) / 2;
                        past.saturating_sub(1)
                    }
                };
                if at > layout::MOST_INSTRUCTIONS {
                    return Err(Miss::Torn);
                }
                Ok(Frame {
                    function: Rc::clone(&code.function),
                    file: Rc::clone(&code.file),
                    line: layout.line_table.line(&code.table, code.first_line, at).unwrap_or(0),
                })
            })
            .collect()
    }

    fn code(&mut self, object: u64, head: &[u8]) -> Result<Rc<Code>, Miss> {
        let layout = self.layout;
        let field = |at| word(head, at).ok_or(Miss::Torn);
        let first_line = half(head, layout.code_first_line).ok_or(Miss::Torn)?;
        let fields = [
            field(layout.code_name)?,
            field(layout.code_file)?,
            field(layout.code_lines)?,
            u64::from(first_line),
        ];
        if let Some(known) = self.codes.get(&object).filter(|known| known.head == fields) {
            return Ok(Rc::clone(known));
        }
        let code = Rc::new(Code {
            head: fields,
            function: self.string(fields[0])?,
            file: self.string(fields[1])?,
            first_line,
            table: self.bytes(fields[2])?,
        });
        if self.codes.len() >= MOST_CODES {
            self.codes.clear();
        }
        self.codes.insert(object, Rc::clone(&code));
        Ok(code)
    }

    fn string(&self, object: u64) -> Result<Rc<str>, Miss> {
        let layout = self.layout;
        let mut head = [0_u8; 40];
        self.fill(&[(object, 40)], &mut head)?;
        let length = word(&head, 16).and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or(Miss::Torn)?.min(LONGEST_NAME);
        let state = half(&head, 32).ok_or(Miss::Torn)? >> 2;
        // After how it is interned: bytes of a character; then whether the characters follow the object, and
        // whether they are all ASCII.
        let (kind, compact, ascii) = ((state & 7) as usize, state & 8 != 0, state & 16 != 0);
        if !compact || !matches!(kind, 1 | 2 | 4) {
            return Err(Miss::Torn);
        }
        let begin = if ascii { layout.ascii_bytes } else { layout.compact_bytes };
        let mut bytes = vec![0; length * kind];
        self.fill(&[(object + begin, bytes.len())], &mut bytes)?;
        let letters = bytes.chunks_exact(kind).map(|letter| {
            let mut number = [0_u8; 4];
            number[..kind].copy_from_slice(letter);
            char::from_u32(u32::from_le_bytes(number)).unwrap_or('\u{fffd}')
        });
        Ok(Rc::from(letters.collect::<String>()))
    }

    fn bytes(&self, object: u64) -> Result<Vec<u8>, Miss> {
        let [length] = self.words([object + 16])?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > LONGEST_TABLE {
            return Err(Miss::Torn);
        }
        let mut bytes = vec![0; length];
        self.fill(&[(object + 32, length)], &mut bytes)?;
        Ok(bytes)
    }
}

fn runs(pid: u32, tid: u32) -> bool {
    letter(&text(&format!("/proc/{pid}/task/{tid}/stat"))) == Some(b'R')
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Python {
    /// Until then, time was given away.
    last: u64,
    /// Before that, reading would take more than its share; then, it is time to.
    next: u64,
    due: u64,
    followed: Vec<Process>,
    /// When to look again at what a process has mapped, and how long after that.
    sought: HashMap<u32, (u64, u64)>,
    mapped: Mapped,
    files: HashMap<Rc<str>, Option<Result<Interpreter, String>>>,
    read: Read,
    cost_ns: u64,
}

impl Python {
    pub(crate) fn begin(now: u64) -> Self {
        Self {
            last: now,
            next: now,
            due: u64::MAX,
            followed: Vec::new(),
            sought: HashMap::new(),
            mapped: Mapped::default(),
            files: HashMap::new(),
            read: Read::default(),
            cost_ns: 0,
        }
    }

    /// A read is to come at this moment.
    #[cfg(test)]
    pub(crate) fn due_at(at: u64) -> Self {
        Self { due: at, ..Self::begin(at) }
    }

    /// When the next read is to come, whatever else there is to do.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Reads where the interpreters among these processes are now, when that may be done again.
    /// `since`: this thread's CPU time when it was woken for this. `random` is any number.
    pub(crate) fn scan(&mut self, processes: impl Iterator<Item = u32>, since: u64, random: u64) {
        let now = now_ns();
        if now < self.next {
            return;
        }
        for pid in processes {
            if self.followed.len() < MOST_PROCESSES && self.followed.iter().all(|known| known.pid != pid) {
                self.seek(pid, now);
            }
        }
        if !self.followed.is_empty() {
            self.read_all();
        }
        self.plan(now, thread_cpu_ns() - since, random);
    }

    /// After a read that took this of a CPU.
    fn plan(&mut self, now: u64, took: u64, random: u64) {
        self.cost_ns = (7 * self.cost_ns + took) / 8;
        let least = self.cost_ns.max(took / 8) * SHARE;
        self.next = now + least;
        self.due = if self.followed.is_empty() {
            u64::MAX
        } else {
            // Reading must not fall into step with the program.
            let mean = USUAL_NS.max(least);
            self.next.max(now + mean / 2 + random % mean)
        };
    }

    fn read_all(&mut self) {
        let (mut running, mut waiting) = (Vec::new(), None);
        let (mut torn, mut gone) = (false, Vec::new());
        for process in &mut self.followed {
            match process.stacks() {
                Ok(stacks) => {
                    process.failures = 0;
                    for (stack, runs) in stacks {
                        if runs {
                            running.push(stack);
                        } else if waiting.is_none() {
                            waiting = Some(stack);
                        }
                    }
                }
                Err(Miss::Outside) => process.failures = 0,
                Err(Miss::Refused) => {
                    self.read.refused = Some(
                        "its memory may not be read (kernel.yama.ptrace_scope, another user's process, or a \
                            sandbox)"
                            .to_owned(),
                    );
                    gone.push(process.pid);
                    // It will not be allowed later either.
                    self.sought.insert(process.pid, (u64::MAX, LAST_SEEK_NS));
                }
                Err(Miss::Gone) => gone.push(process.pid),
                Err(Miss::Torn) => {
                    torn = true;
                    process.failures += 1;
                    process.interpreter = 0;
                    process.lock = 0;
                    if process.failures >= MOST_FAILURES {
                        gone.push(process.pid);
                    }
                }
            }
        }
        for pid in &gone {
            self.followed.retain(|process| process.pid != *pid);
        }
        if self.followed.is_empty() && running.is_empty() && waiting.is_none() {
            // What could not be read was no interpreter any more, or must not be.
            return;
        }
        let now = now_ns();
        let past = now.saturating_sub(self.last) as f64;
        self.last = now;
        self.read.reads += 1;
        if !running.is_empty() {
            let each = past / running.len() as f64;
            for stack in running {
                self.read.stack(stack, each, true);
            }
        } else if let Some(stack) = waiting {
            self.read.stack(stack, past, false);
        } else if torn {
            self.read.torn += 1;
        } else {
            self.read.stack(Vec::new(), past, false);
        }
    }

    /// Whether there is an interpreter in a process, now and then.
    fn seek(&mut self, pid: u32, now: u64) {
        let (at, distance) = self.sought.get(&pid).copied().unwrap_or((0, FIRST_SEEK_NS));
        if now < at || self.sought.len() > 4096 {
            return;
        }
        self.sought.insert(pid, (now + distance, (2 * distance).min(LAST_SEEK_NS)));
        for map in super::maps::of(pid) {
            if version(&map.path).is_none() {
                continue;
            }
            let found =
                self.files.entry(self.mapped.name(pid, &map)).or_insert_with(|| Interpreter::of(pid, &map));
            match found {
                Some(Ok(interpreter)) => {
                    let Some(moved) = interpreter.moved(map.start, map.offset) else { continue };
                    self.read.versions.insert(interpreter.layout.version.to_owned());
                    let process = Process {
                        pid,
                        layout: interpreter.layout,
                        runtime: interpreter.runtime.wrapping_add(moved),
                        code_type: interpreter.code_type.wrapping_add(moved),
                        interpreter: 0,
                        lock: 0,
                        chain: 0,
                        recent: Vec::new(),
                        codes: HashMap::new(),
                        failures: 0,
                        buffer: Vec::new(),
                    };
                    if self.followed.is_empty() {
                        // Until now there was none.
                        let past = now.saturating_sub(self.last) as f64;
                        self.read.stack(Vec::new(), past, false);
                        self.last = now;
                    }
                    self.followed.push(process);
                    return;
                }
                Some(Err(version)) => {
                    let reason = format!("the memory layout of Python {version} is unknown");
                    self.read.refused.get_or_insert(reason);
                }
                None => {}
            }
        }
    }

    /// What was read of a program that ended, or was left, at `end`.
    pub(crate) fn finish(mut self, end: u64) -> Read {
        if self.read.reads == 0 && self.read.torn > 0 {
            let reason = "what was read in its memory made no sense".to_owned();
            self.read.refused.get_or_insert(reason);
        }
        if self.read.reads > 0 {
            self.read.stack(Vec::new(), end.saturating_sub(self.last) as f64, false);
        }
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_name_of_the_file() {
        assert_eq!(version("/usr/bin/python3.11").as_deref(), Some("3.11"));
        assert_eq!(version("/usr/lib/libpython3.12.so.1.0").as_deref(), Some("3.12"));
        assert_eq!(version("/usr/lib/libpython3.13t.so.1.0").as_deref(), Some("3.13t"));
        assert_eq!(version("/usr/bin/python2.7"), None);
        assert_eq!(version("/usr/lib/libperl.so.5"), None);
        assert!(Layout::of("3.13t").is_none() && Layout::of("3.11").is_some());
    }

    #[test]
    fn memory_of_this_process_is_read_and_what_is_not_there_is_not() {
        let known = [7_u64, 8, 9];
        let at = known.as_ptr().expose_provenance() as u64;
        let mut bytes = [0_u8; 16];
        let pid = std::process::id();
        // An emulator or a sandbox may not have the call.
        match gather(pid, &[(at, 8), (at + 16, 8)], &mut bytes) {
            Ok(got) => {
                assert_eq!(got, 16);
                assert_eq!((word(&bytes, 0), word(&bytes, 8)), (Some(7), Some(9)));
                assert!(gather(pid, &[(8, 8)], &mut bytes).is_err());
                assert_eq!(gather(pid, &[(at, 8), (8, 8)], &mut bytes).unwrap(), 8, "as far as it goes");
            }
            Err(error) => assert!(matches!(Miss::from(error), Miss::Refused)),
        }
    }

    #[test]
    fn reads_keep_to_their_share_of_a_cpu() {
        let mut python = Python::begin(0);
        let took = 1_000_000;
        let mut reads = 0_u64;
        let mut now = 0;
        while now < 10_000_000_000 {
            python.plan(now, took, now);
            reads += 1;
            // Whoever is awake for something else may ask at once.
            now = python.next;
        }
        assert!(reads * took <= 10_000_000_000 / SHARE + 20 * took, "{reads}");
    }

    #[test]
    fn what_is_no_interpreter_is_not_followed() {
        let mut python = Python::begin(now_ns());
        python.scan(std::iter::once(std::process::id()), thread_cpu_ns(), 0);
        assert_eq!(python.due(), u64::MAX, "nobody has to wake up for it");
        assert!(python.finish(now_ns()).is_empty());
    }
}
