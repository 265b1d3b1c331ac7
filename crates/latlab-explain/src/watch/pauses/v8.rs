//! Pauses of V8, the engine of Node. It keeps no counters outside of its heap, so the two functions are
//! watched that it calls as a pause begins and as it ends
//! (`GCTracer::StartObservablePause`, `StopObservablePause`), in all isolates of a process.
//!
//! The kernel puts a breakpoint at each, in the memory of the watched process and of no other (uprobes): this
//! is for who allows any overhead, as root at level 1. Each thread has events of its own from the first scan
//! that meets it (the kernel cannot let threads inherit these); what came before is not known.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use latlab_perf::{Detail, Event, Flags, Kind, Ring, What, Whose, close_beside, instructions};
use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::Counters;
use crate::model::Pauses;
use crate::watch::budget::Budget;
use crate::watch::image::{Image, Parsed};
use crate::watch::segments::Segments;
use crate::watch::{mapped, maps};

/// What is called as a pause begins, and as it ends. Newer versions take the time as an argument.
const BEGINS: &str = "_ZN2v88internal8GCTracer20StartObservablePauseE";
const ENDS: &str = "_ZN2v88internal8GCTracer19StopObservablePauseE";
/// Of a library's or program's symbols, while it is watched: memory, and steps. Node 20 exports 75,000.
const MOST_OF_SYMBOLS: u64 = 64 << 20;
const MOST_STEPS: u64 = 8 << 20;
/// Threads of one process: two descriptors each.
const MOST_THREADS: usize = 100;
/// Records of a thread, bytes: some hundred between two scans.
const RING_BYTES: usize = 8 << 10;
const KIND: &str = "garbage collection pauses";

/// That functions can be watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probes {
    pmu: u32,
}

impl Probes {
    /// `None`: this kernel cannot.
    pub(super) fn find() -> Option<Self> {
        instructions().map(|pmu| Self { pmu })
    }
}

/// Whether a program is Node by its name: symbols of others are not read for V8's.
pub(super) fn is_node(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "node" || name == "nodejs")
}

/// Where the two functions are in a file that has them, bytes.
fn functions(file: &Parsed<'_>, budget: &Budget) -> Option<[u64; 2]> {
    let segments = Segments::of(file);
    let mut found = [None; 2];
    let symbols = file.dynamic_symbols().chain(file.symbols());
    for symbol in symbols.map_while(|symbol| budget.step(1).map(|()| symbol)) {
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        // Parts that a compiler has cut off have a dot in their names.
        let is = |function: &&str| name.starts_with(*function) && !name.contains('.');
        if let Some(at) = [BEGINS, ENDS].iter().position(is) {
            found[at] = found[at].or_else(|| segments.offset(symbol.address()));
        }
        if let [Some(begins), Some(ends)] = found {
            return Some([begins, ends]);
        }
    }
    None
}

/// The file of a process that has V8 in it, and where the functions are. Files that were searched already are
/// left out, and those searched now added.
fn engine(pid: u32, searched: &mut HashSet<Rc<str>>) -> Option<(File, [u64; 2])> {
    let budget = Rc::new(Budget::of(MOST_OF_SYMBOLS, MOST_STEPS));
    let holds_it = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        is_node(Path::new(path)) || name.starts_with("libnode.so")
    };
    maps::of(pid).iter().filter(|map| holds_it(&map.path)).find_map(|map| {
        if searched.contains(&map.path) {
            return None;
        }
        let file = mapped::open(pid, map)?;
        searched.insert(Rc::clone(&map.path));
        let image = Image::of(file.try_clone().ok()?, &budget)?;
        let parsed = image.parsed()?;
        image.read_names(&parsed);
        let found = functions(&parsed, &budget)?;
        Some((file, found))
    })
}

fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The pauses of one process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    times: u64,
    ns: u64,
    longest_ns: Option<u64>,
}

/// A thread's calls of the two functions.
#[derive(Debug)]
struct Thread {
    ring: Ring,
    /// The event of a beginning; the other one is of an end.
    begin: u64,
    /// It is in a pause.
    since: Option<u64>,
}

impl Thread {
    /// Follows a thread, if it is there.
    fn of(tid: u32, pmu: u32, file: &CStr, functions: [u64; 2]) -> Option<Self> {
        let whose = Whose::Alone { tid };
        let [begins, ends] = functions.map(|offset| {
            let kind = Kind::Instruction { pmu, file, offset };
            Event::of(kind, Flags::EXCLUDE_HV)
        });
        let (mut ring, begin) = Ring::open(begins, whose, RING_BYTES).ok()?;
        ring.join(ends, whose).ok()?;
        ring.switch_all(true);
        Some(Self { ring, begin, since: None })
    }

    /// Adds the pauses that are over; whether none was lost.
    fn read(&mut self, sum: &mut Sum) -> bool {
        let mut is_whole = true;
        for record in self.ring.drain(|_| Detail::None) {
            match record.what {
                What::Sample(_) if record.event == self.begin => self.since = Some(record.time_ns),
                What::Sample(_) => sum.end(self.since.take(), record.time_ns),
                What::Lost(_) => {
                    is_whole = false;
                    self.since = None;
                }
                _ => {}
            }
        }
        is_whole
    }
}

impl Sum {
    /// A pause has ended that began then; `None`: nobody knows when.
    fn end(&mut self, since: Option<u64>, now: u64) {
        let Some(ns) = since.map(|since| now.saturating_sub(since)) else { return };
        self.times += 1;
        self.ns += ns;
        self.longest_ns = self.longest_ns.max(Some(ns));
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Engine {
    process: u32,
    program: PathBuf,
    probes: Probes,
    /// The file with the functions, and where they are in it.
    file: File,
    functions: [u64; 2],
    /// `None`: it could not be followed.
    threads: HashMap<u32, Option<Thread>>,
    sum: Sum,
    /// Whether all threads were followed from the first scan on.
    is_whole: bool,
    has_run: bool,
}

impl Engine {
    /// Watches the process from now on; `None`: it cannot be, or what it has mapped and is not in `searched`
    /// has no such functions.
    pub(super) fn find(
        process: u32,
        program: &Path,
        probes: Probes,
        searched: &mut HashSet<Rc<str>>,
    ) -> Option<Self> {
        let (file, functions) = engine(process, searched)?;
        let (program, threads, sum) = (program.to_owned(), HashMap::new(), Sum::default());
        let (is_whole, has_run) = (true, false);
        let mut engine = Self { process, program, probes, file, functions, threads, sum, is_whole, has_run };
        engine.follow();
        engine.threads.values().any(Option::is_some).then_some(engine)
    }

    /// Threads that are not followed yet; those that have ended are not followed any more.
    fn follow(&mut self) {
        let threads = threads(self.process);
        let ended: Vec<Thread> = self
            .threads
            .extract_if(|tid, _| !threads.contains(tid))
            .filter_map(|(_, thread)| thread)
            .collect();
        for mut thread in ended {
            self.is_whole &= thread.read(&mut self.sum);
            close_beside(thread.ring.into_events());
        }
        let is_first = self.threads.is_empty();
        // The very file that was read, whatever has become of its path.
        let Ok(file) = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd())) else { return };
        for tid in threads {
            if self.threads.contains_key(&tid) {
                continue;
            }
            let room = self.threads.len() < MOST_THREADS;
            let thread = room.then(|| Thread::of(tid, self.probes.pmu, &file, self.functions)).flatten();
            self.is_whole &= is_first && thread.is_some();
            if room {
                self.threads.insert(tid, thread);
            }
        }
    }

    /// Takes the breakpoints away.
    fn leave(&mut self) {
        self.read();
        let threads = self.threads.drain().filter_map(|(_, thread)| thread);
        close_beside(threads.flat_map(|thread| thread.ring.into_events()).collect());
    }

    fn read(&mut self) {
        for thread in self.threads.values_mut().flatten() {
            self.is_whole &= thread.read(&mut self.sum);
        }
    }
}

impl Counters for Engine {
    fn scan(&mut self) -> bool {
        let program = fs::read_link(format!("/proc/{}/exe", self.process));
        let is_it = program.is_ok_and(|program| program == self.program);
        if is_it {
            self.follow();
            self.read();
        } else {
            self.leave();
        }
        is_it
    }

    fn has_run(&mut self) {
        self.has_run = true;
    }

    fn reported(&mut self, process: u32, _: &Rc<Budget>) -> Vec<Pauses> {
        self.leave();
        let Sum { times, ns, longest_ns } = self.sum;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let pauses = Pauses {
            process,
            runtime: "V8",
            kind: KIND.to_owned(),
            // Of a process that was started under watch, the first ones came before its functions were found.
            is_least: !(self.has_run && self.is_whole),
            times,
            seconds: seconds(ns),
            longest_s: longest_ns.map(seconds),
        };
        if times > 0 { vec![pauses] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_a_beginning_is_no_pause() {
        let mut sum = Sum::default();
        sum.end(None, 10);
        assert_eq!(sum, Sum::default());
        sum.end(Some(20), 60);
        sum.end(Some(70), 100);
        assert_eq!(sum, Sum { times: 2, ns: 70, longest_ns: Some(40) });
    }

    #[test]
    fn only_node_is_searched_for_the_functions() {
        for (path, is) in
            [("/usr/bin/node", true), ("/opt/nodejs", true), ("/usr/bin/node-gyp", false), ("/", false)]
        {
            assert_eq!(is_node(Path::new(path)), is, "{path}");
        }
        // This program is not.
        assert!(engine(std::process::id(), &mut HashSet::new()).is_none());
    }
}
