//! What the threads of the program do, by scanning /proc: needs no permission but the owner's, and less where
//! that is refused.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use super::calls;
use super::clock::now_ns;
use super::futex::{self, Naming, Place};
use super::polled::{Polled, kind};
use super::proc_file::{ProcFile, field, letter, text};
use crate::Category;
use crate::account::locks::{Locks, Waiting};
use crate::account::sweep::State;
use crate::governor::{Counts, FAULT_SLICES};
use crate::model;
use crate::rules::{Kind, Reason, Rules};

/// Files kept open at once; beyond, they are opened for each scan. Below the usual limit of 1024.
const MOST_OPEN: usize = 640;
/// Of each process.
const OF_PROCESS: usize = 3;
/// One scan may take this long; threads that are left keep the state they had, and each scan begins with
/// others. The kernel makes whoever reads `syscall` wait for a tick when the thread is just about to wait
/// itself.
const LONGEST_NS: u64 = 20_000_000;
/// Locks of which it is asked where they lie, and threads of which the names are kept.
const MOST_PLACES: usize = 256;
/// Of these, at one scan: the list of what a large process has mapped is long.
const MOST_ASKED: usize = 4;
/// Of a lock that are reported.
const MOST_HOLDERS: usize = 4;
/// More threads than this are not followed; said in a note.
const MOST_THREADS: usize = 8192;
/// Of an environment in which something was not found: while its process is being loaded it is cut short or
/// empty.
const ENVIRONMENT_READS: u32 = 10;
const BETWEEN_READS: Duration = Duration::from_millis(1);
/// Scans between those at what changes slowly: run-queue delay, names, children of other threads than the
/// main one.
const SELDOM: u64 = 8;
/// Or after this long: while a program is recorded, scans are seldom themselves.
const SELDOM_NS: u64 = 45_000_000;

#[derive(Debug)]
struct Thread {
    file: Option<ProcFile>,
    /// The line of `file` that this scan began with, until it is used.
    call: Option<String>,
    /// What it did when it was last scanned.
    last: State,
    counters: Option<ProcFile>,
    delays: Delays,
    /// When `delays` were read last; before that, when it was first seen.
    read_at: u64,
    /// What it was met waiting for since then, and how often.
    met: crate::Counted,
}

/// How often threads came to a CPU, by what they had been met waiting for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Came {
    pub(crate) by_reason: crate::Counted,
    /// They were not met waiting.
    pub(crate) unknown: u64,
    /// Nothing counts now.
    pauses: bool,
}

impl Came {
    /// A thread came so often, and was met waiting for these.
    fn count(&mut self, times: u64, met: &crate::Counted) {
        if self.pauses {
            return;
        }
        let mut left = times;
        for (reason, seen) in met.each() {
            let part = times * seen / met.total();
            left -= part;
            self.by_reason.count(reason, part);
        }
        match met.each().next() {
            Some((reason, _)) => self.by_reason.count(reason, left),
            None => self.unknown += left,
        }
    }
}

/// `/proc/TID/schedstat`: CPU time and run-queue delay, nanoseconds, and how often the thread came to a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Delays {
    ran: u64,
    waited: u64,
    came: u64,
}

impl Delays {
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse().ok());
        Some(Self { ran: numbers.next()?, waited: numbers.next()?, came: numbers.next()? })
    }

    fn and(self, other: Self) -> Self {
        Self { ran: self.ran + other.ran, waited: self.waited + other.waited, came: self.came + other.came }
    }
}

#[derive(Debug)]
struct Process {
    pid: u32,
    name: String,
    /// `/proc/PID/task/TID/syscall` is: what is left is `wchan`, the kernel function it waits in, and the
    /// letter of its state.
    is_refused: bool,
    threads: HashMap<u32, Thread>,
    links: u64,
    memory: Option<ProcFile>,
    children: Option<ProcFile>,
    counters: Option<ProcFile>,
    /// Of its threads that are gone.
    past: Delays,
    /// Page faults, those of children that it waited for too.
    faults: u64,
}

impl Process {
    fn delays(&self) -> Delays {
        let threads = self.threads.values();
        threads.fold(self.past, |sum, thread| sum.and(thread.delays))
    }
}

/// What is known of a process besides its states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) parent: u32,
    pub(crate) name: String,
    /// Its counters when they were first read, and last.
    counted: Option<(Counted, Counted)>,
}

/// CPU time and run-queue delay of a process's threads at a moment, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    at: u64,
    busy: u64,
}

impl About {
    /// Threads of a process that was there from then to then that ran or were ready, on average, by its
    /// counters; `None` where they were read for less than half of that time.
    pub(crate) fn busy(&self, from: u64, to: u64) -> Option<f64> {
        let (first, last) = self.counted?;
        let past = last.at.min(to).saturating_sub(first.at.max(from));
        let busy = last.busy.saturating_sub(first.busy);
        (past > 0 && past >= (to - from) / 2).then(|| busy as f64 / past as f64)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scanner {
    rules: &'static Rules,
    root: u32,
    processes: Vec<Process>,
    known: HashSet<u32>,
    open: usize,
    scans: u64,
    /// When the counters were read last.
    counted: u64,
    /// Of threads that are gone.
    past: Delays,
    /// Time for which their counters were not read any more, nanoseconds.
    pub(crate) unread_ns: u64,
    /// Threads ever seen.
    started: u64,
    lists_children: bool,
    functions: HashMap<String, Option<Reason>>,
    polled: Polled,
    /// Of every process that was ever seen; as many as the sweep lists.
    pub(crate) about: HashMap<u32, About>,
    /// Whether `syscall` of some thread could not be read.
    pub(crate) refused: bool,
    /// Whether there were more threads than are followed.
    pub(crate) overflown: bool,
    /// Processes that ended after their parents; as many as the sweep lists.
    orphans: HashSet<u32>,
    /// Says how many threads of the machine are runnable.
    load: Option<ProcFile>,
    came: Came,
    /// Threads met in `futex` at this scan; when the scan before was.
    waits: Vec<Waiting>,
    scanned: u64,
    locks: Locks,
    /// What the addresses of locks are of, and what threads that had them are called.
    places: HashMap<(u32, u64), Place>,
    holders: HashMap<u32, String>,
}

impl Scanner {
    pub(crate) fn at(rules: &'static Rules, root: u32) -> Self {
        let mut scanner = Self {
            rules,
            root,
            processes: Vec::new(),
            known: HashSet::new(),
            open: 0,
            scans: 0,
            counted: 0,
            past: Delays::default(),
            unread_ns: 0,
            started: 0,
            lists_children: std::path::Path::new(&format!("/proc/{root}/task/{root}/children")).exists(),
            functions: HashMap::new(),
            polled: Polled::default(),
            about: HashMap::new(),
            refused: false,
            overflown: false,
            orphans: HashSet::new(),
            load: ProcFile::open("/proc/loadavg").ok(),
            came: Came::default(),
            waits: Vec::new(),
            scanned: now_ns(),
            locks: Locks::default(),
            places: HashMap::new(),
            holders: HashMap::new(),
        };
        scanner.follow(root, 0);
        scanner
    }

    /// All threads of all processes, found now.
    pub(crate) fn all_threads(&mut self) -> Vec<u32> {
        self.scan(&mut Vec::new());
        self.threads().flat_map(|(_, threads)| threads).collect()
    }

    /// Processes with their threads, as they were last seen.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (u32, Vec<u32>)> {
        let of = |process: &Process| (process.pid, process.threads.keys().copied().collect());
        self.processes.iter().map(of)
    }

    /// Processes, as they were last seen, the first one first.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|process| process.pid)
    }

    /// The parent that a process had when it was first seen; 0: not known.
    pub(crate) fn parent(&self, pid: u32) -> u32 {
        self.about.get(&pid).map_or(0, |about| about.parent)
    }

    /// Whether a process has ended after its parent.
    pub(crate) fn is_orphan(&self, pid: u32) -> bool {
        self.orphans.contains(&pid)
    }

    /// A process that was started between two scans.
    pub(crate) fn learn(&mut self, pid: u32, parent: u32) {
        if self.processes.len() < MOST_THREADS {
            self.follow(pid, parent);
        }
    }

    /// What one thread does.
    pub(crate) fn one(&mut self, pid: u32, tid: u32) -> Option<State> {
        let line = text(&format!("/proc/{pid}/task/{tid}/syscall"));
        if !line.is_empty() {
            return self.of_line(pid, line.trim_end());
        }
        let stat = text(&format!("/proc/{pid}/task/{tid}/stat"));
        match letter(&stat)? {
            b'R' => Some(State::Running),
            b'Z' | b'X' => None,
            letter => {
                self.refused = true;
                Some(self.by_function(pid, tid, letter))
            }
        }
    }

    /// Processes that still run, the first one apart.
    pub(crate) fn left_running(&self) -> u32 {
        let others = self.processes.iter().filter(|process| process.pid != self.root);
        let running = others.filter(|process| {
            let stat = text(&format!("/proc/{}/stat", process.pid));
            letter(&stat).is_some_and(|letter| !matches!(letter, b'Z' | b'X'))
        });
        u32::try_from(running.count()).unwrap_or(u32::MAX)
    }

    /// CPU time and run-queue delay of all threads that were seen, nanoseconds.
    pub(crate) fn delays(&mut self) -> (u64, u64) {
        self.read_delays();
        let sum = self.sum();
        (sum.ran, sum.waited)
    }

    /// How often threads came to a CPU since this was asked for the last time, while they were not recorded.
    pub(crate) fn came(&mut self) -> Came {
        let pauses = self.came.pauses;
        std::mem::replace(&mut self.came, Came { pauses, ..Came::default() })
    }

    /// Whether every switch is recorded from now on: what threads do meanwhile is not counted here.
    pub(crate) fn is_recorded(&mut self, is_recorded: bool) {
        self.came.pauses = is_recorded;
    }

    /// CPU time of all threads, nanoseconds, as it was last read; the kernel brings that of a running thread
    /// up to date at its tick.
    pub(crate) fn ran_ns(&self) -> u64 {
        self.sum().ran
    }

    /// Threads that ran, or were ready to, when they were last scanned.
    pub(crate) fn running(&self) -> usize {
        let threads = self.processes.iter().flat_map(|process| process.threads.values());
        threads.filter(|thread| thread.last == State::Running).count()
    }

    /// Runnable threads of other programs, but for the watcher, when threads were last scanned; `None`: not
    /// known.
    pub(crate) fn others(&self) -> Option<u32> {
        let mut buffer = [0_u8; 128];
        let line = self.load.as_ref()?.read(&mut buffer)?;
        let own = u32::try_from(self.running()).ok()?;
        Some(runnable(line)?.saturating_sub(own + 1))
    }

    /// What recording would have cost for, by the counters as they were last read; `None` where there are
    /// none.
    pub(crate) fn counts(&self) -> Option<Counts> {
        let sum = self.sum();
        let faults = self.processes.iter().map(|process| process.faults).sum::<u64>();
        (sum != Delays::default()).then_some(Counts {
            switches: sum.came,
            faults: faults / FAULT_SLICES,
            starts: self.started,
        })
    }

    fn sum(&self) -> Delays {
        let processes = self.processes.iter();
        processes.fold(self.past, |sum, process| sum.and(process.delays()))
    }

    fn read_delays(&mut self) {
        for at in 0..self.processes.len() {
            self.read_delays_of(at);
        }
    }

    fn read_delays_of(&mut self, at: usize) {
        let mut buffer = [0_u8; 1024];
        let process = &mut self.processes[at];
        for (tid, thread) in &mut process.threads {
            let path = || format!("/proc/{}/task/{tid}/schedstat", process.pid);
            if thread.counters.is_none() && self.open < MOST_OPEN {
                thread.counters = ProcFile::open(&path()).ok();
                self.open += usize::from(thread.counters.is_some());
            }
            let read = match &thread.counters {
                Some(file) => file.read(&mut buffer).and_then(Delays::parse),
                None => Delays::parse(&text(&path())),
            };
            if let Some(read) = read {
                let times = read.came.saturating_sub(thread.delays.came);
                self.came.count(times, &thread.met);
                thread.met = crate::Counted::default();
                thread.delays = read;
                thread.read_at = now_ns();
            }
        }
        if let Some(file) = &process.counters {
            let faults = file.read(&mut buffer).and_then(faults);
            process.faults = faults.unwrap_or(process.faults);
        }
        let sum = process.delays();
        let now = Counted { at: now_ns(), busy: sum.ran + sum.waited };
        if let Some(about) = self.about.get_mut(&process.pid).filter(|_| sum.ran > 0) {
            let first = about.counted.map_or(now, |counted| counted.0);
            about.counted = Some((first, now));
        }
    }

    fn follow(&mut self, pid: u32, parent: u32) {
        if !self.known.insert(pid) {
            return;
        }
        let name = text(&format!("/proc/{pid}/comm")).trim_end().to_owned();
        if self.about.len() < MOST_THREADS {
            let about = About {
                parent,
                name: name.clone(),
                // One that was started since had nothing to count before.
                counted: (self.scans > 1).then(Default::default),
            };
            self.about.insert(pid, about);
        }
        self.processes.push(Process {
            pid,
            name,
            is_refused: false,
            threads: HashMap::new(),
            links: 0,
            memory: ProcFile::open(&format!("/proc/{pid}/statm")).ok(),
            children: ProcFile::open(&format!("/proc/{pid}/task/{pid}/children")).ok(),
            counters: ProcFile::open(&format!("/proc/{pid}/stat")).ok(),
            past: Delays::default(),
            faults: 0,
        });
        self.open += OF_PROCESS;
    }

    /// One scan of every thread; whether the counters were read too.
    pub(crate) fn scan(&mut self, into: &mut Vec<(u32, u32, State)>) -> bool {
        into.clear();
        self.scans += 1;
        let now = now_ns();
        let until = now + LONGEST_NS;
        self.read_calls(until);
        let seldom = self.scans % SELDOM == 1 || now >= self.counted + SELDOM_NS;
        if seldom {
            self.names();
        }
        self.find_children(seldom);
        let mut gone = Vec::new();
        for at in 0..self.processes.len() {
            if !self.find_threads(at) || !self.scan_process(at, until, into) {
                gone.push(self.processes[at].pid);
            }
        }
        for pid in &gone {
            let parent = self.parent(*pid);
            if parent != 0 && !self.known.contains(&parent) && self.orphans.len() < MOST_THREADS {
                self.orphans.insert(*pid);
            }
        }
        for pid in gone {
            self.forget(pid);
        }
        self.meet_locks(now);
        if seldom {
            self.counted = now;
            self.read_delays();
        }
        seldom
    }

    /// What threads wait at, for the time since the scan before.
    fn meet_locks(&mut self, now: u64) {
        let waits = std::mem::take(&mut self.waits);
        let most = MOST_PLACES.min(self.places.len() + MOST_ASKED);
        for wait in &waits {
            let key = (wait.process, wait.address);
            // Where a lock lies can only be asked while its process is there; that takes longer than a scan.
            if wait.is_lock && self.places.len() < most && !self.places.contains_key(&key) {
                self.places.insert(key, futex::place(wait.process, wait.address));
            }
            if let Some(holder) = wait.holder.filter(|holder| !self.holders.contains_key(holder))
                && self.holders.len() < MOST_PLACES
            {
                let name = text(&format!("/proc/{}/task/{holder}/comm", wait.process));
                self.holders.insert(holder, name.trim_end().to_owned());
            }
        }
        self.locks.take(now.saturating_sub(self.scanned), &waits);
        self.scanned = now;
        self.waits = waits;
        self.waits.clear();
    }

    /// Locks that threads waited at, longest first; at most so many.
    pub(crate) fn locks(&self, most: usize) -> Vec<model::Lock> {
        let mut naming = None;
        let rows = self.locks.rows(most).into_iter().filter(|(_, _, row)| row.is_lock());
        rows.map(|(process, address, row)| {
            let place = self.places.get(&(process, address)).unwrap_or(&Place::Memory);
            let (name, object) = naming.get_or_insert_with(Naming::begin).name(process, place);
            let holders = row.holders().into_iter().take(MOST_HOLDERS);
            model::Lock {
                name: name.map(|name| name.to_string()),
                object: object.to_string(),
                address: format!("{address:#x}"),
                process,
                waited_s: row.ns as f64 / 1e9,
                threads: row.threads(),
                scans: row.scans,
                holders: holders
                    .map(|(thread, share)| model::Holder {
                        thread,
                        name: self.holders.get(&thread).cloned().unwrap_or_default(),
                        share,
                    })
                    .collect(),
            }
        })
        .collect()
    }

    fn names(&mut self) {
        for process in &mut self.processes {
            let name = text(&format!("/proc/{}/comm", process.pid));
            let name = name.trim_end();
            if !name.is_empty() && name != process.name {
                name.clone_into(&mut process.name);
                if let Some(about) = self.about.get_mut(&process.pid) {
                    name.clone_into(&mut about.name);
                }
            }
        }
    }

    fn forget(&mut self, pid: u32) {
        // The root keeps its counters until it is waited for.
        if pid == self.root {
            return;
        }
        if let Some(at) = self.processes.iter().position(|process| process.pid == pid) {
            // One that nobody has waited for yet still has its counters.
            self.read_delays_of(at);
            let process = self.processes.swap_remove(at);
            self.open = self.open.saturating_sub(OF_PROCESS);
            self.past = self.past.and(process.delays());
            process.threads.values().for_each(|thread| self.lose(thread));
            self.known.remove(&pid);
        }
    }

    /// A thread is gone.
    fn lose(&mut self, thread: &Thread) {
        self.unread_ns += now_ns().saturating_sub(thread.read_at);
        let open = usize::from(thread.file.is_some()) + usize::from(thread.counters.is_some());
        self.open = self.open.saturating_sub(open);
    }

    fn find_children(&mut self, seldom: bool) {
        let mut buffer = [0_u8; 4096];
        let mut found = Vec::new();
        if self.lists_children {
            for process in &self.processes {
                let mut read = |file: &ProcFile| {
                    for child in file.read(&mut buffer).unwrap_or("").split_whitespace() {
                        found.extend(child.parse::<u32>().map(|child| (child, process.pid)));
                    }
                };
                process.children.iter().for_each(&mut read);
                if seldom && process.threads.len() > 1 {
                    for tid in process.threads.keys().filter(|tid| **tid != process.pid).take(64) {
                        let file = ProcFile::open(&format!("/proc/{}/task/{tid}/children", process.pid));
                        file.iter().for_each(&mut read);
                    }
                }
            }
        } else if seldom {
            found = by_parents(&self.known);
        }
        for (child, parent) in found {
            let full = self.processes.len() >= MOST_THREADS;
            self.overflown |= full;
            if !full {
                self.follow(child, parent);
            }
        }
    }

    /// Whether the process is there.
    fn find_threads(&mut self, at: usize) -> bool {
        let process = &mut self.processes[at];
        let folder = format!("/proc/{}/task", process.pid);
        let Ok(entry) = std::fs::metadata(&folder) else { return false };
        // The folder has a link for each thread.
        let changed = entry.nlink() != process.links || process.threads.is_empty();
        if !changed {
            return true;
        }
        process.links = entry.nlink();
        let Ok(entries) = std::fs::read_dir(&folder) else { return false };
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let there: HashSet<u32> = names.take(MOST_THREADS).collect();
        self.overflown |= there.len() == MOST_THREADS;
        let gone: Vec<u32> = process.threads.keys().copied().filter(|tid| !there.contains(tid)).collect();
        let lost: Vec<Thread> = gone.iter().filter_map(|tid| process.threads.remove(tid)).collect();
        for tid in there {
            process.threads.entry(tid).or_insert_with(|| {
                self.started += 1;
                Thread {
                    file: None,
                    call: None,
                    last: State::Waiting(None),
                    counters: None,
                    delays: Delays::default(),
                    read_at: now_ns(),
                    met: crate::Counted::default(),
                }
            });
        }
        for thread in lost {
            self.processes[at].past = self.processes[at].past.and(thread.delays);
            self.lose(&thread);
        }
        true
    }

    /// Whether the process lives.
    fn scan_process(&mut self, at: usize, until: u64, into: &mut Vec<(u32, u32, State)>) -> bool {
        let pid = self.processes[at].pid;
        let mut tids: Vec<u32> = self.processes[at].threads.keys().copied().collect();
        tids.sort_unstable();
        // A prime number of threads further on than the scan before: all get their turn.
        let first = usize::try_from(self.scans * 97).unwrap_or(0) % tids.len().max(1);
        tids.rotate_left(first);
        let mut buffer = [0_u8; 256];
        let mut alive = false;
        let mut lost = false;
        for tid in tids {
            if now_ns() > until {
                alive = true;
                let thread = self.processes[at].threads.get_mut(&tid);
                into.extend(thread.map(|thread| {
                    thread.call = None;
                    (tid, pid, thread.last)
                }));
                continue;
            }
            match self.state(at, tid, &mut buffer) {
                Some(state) => {
                    alive = true;
                    let state = if state == State::Running && tid == pid && self.is_ending(at) {
                        State::Waiting(Some(self.rules.whole(Category::StartAndExit)))
                    } else {
                        state
                    };
                    if let Some(thread) = self.processes[at].threads.get_mut(&tid) {
                        thread.last = state;
                        if let State::Waiting(Some(reason)) = state {
                            thread.met.count(reason, 1);
                        }
                    }
                    into.push((tid, pid, state));
                }
                None => lost = true,
            }
        }
        if lost {
            self.processes[at].links = 0;
        }
        alive
    }

    /// A process that has given back its memory and still runs is on its way out.
    fn is_ending(&self, at: usize) -> bool {
        let mut buffer = [0_u8; 64];
        let memory = self.processes[at].memory.as_ref().and_then(|file| file.read(&mut buffer));
        memory.is_some_and(|memory| memory.starts_with("0 "))
    }

    /// Reads what the threads are in, before anything else: the longer a scan has its CPU, the more of them
    /// stand ready only for that.
    fn read_calls(&mut self, until: u64) {
        let mut buffer = [0_u8; 256];
        for thread in self.processes.iter_mut().flat_map(|process| process.threads.values_mut()) {
            let file = thread.file.as_ref().filter(|_| now_ns() <= until);
            thread.call = file.and_then(|file| file.read(&mut buffer)).map(str::to_owned);
        }
    }

    fn state(&mut self, at: usize, tid: u32, buffer: &mut [u8]) -> Option<State> {
        if !self.processes[at].is_refused {
            if let Ok(state) = self.by_call(at, tid, buffer) {
                return state;
            }
            self.processes[at].is_refused = true;
            self.refused = true;
        }
        self.by_letter(at, tid)
    }

    /// `Err`: may not be read.
    fn by_call(&mut self, at: usize, tid: u32, buffer: &mut [u8]) -> Result<Option<State>, ()> {
        let pid = self.processes[at].pid;
        let process = &mut self.processes[at];
        let Some(thread) = process.threads.get_mut(&tid) else { return Ok(None) };
        if thread.file.is_none() {
            match ProcFile::open(&format!("/proc/{pid}/task/{tid}/syscall")) {
                Ok(file) => {
                    self.open += 1;
                    thread.file = Some(file);
                }
                Err(error) if is_refusal(&error) => return Err(()),
                Err(_) => return Ok(None),
            }
        }
        let line = thread.call.take();
        let line = line.or_else(|| Some(thread.file.as_ref()?.read(buffer)?.to_owned()));
        if self.open > MOST_OPEN {
            thread.file = None;
            self.open -= 1;
        }
        let Some(line) = line else {
            // Refused when it is read, not when it is opened; or the thread is gone.
            let stat = text(&format!("/proc/{pid}/task/{tid}/stat"));
            return match letter(&stat) {
                None | Some(b'Z' | b'X') => Ok(None),
                Some(_) => Err(()),
            };
        };
        let line = line.trim_end();
        if let Some(arguments) = futex_arguments(line)
            && self.waits.len() < MOST_THREADS
        {
            let threads = &self.processes[at].threads;
            self.waits.extend(futex::waiting(pid, tid, arguments, |tid| threads.contains_key(&tid)));
        }
        Ok(self.of_line(pid, line))
    }

    fn of_line(&mut self, pid: u32, line: &str) -> Option<State> {
        if line.starts_with("running") {
            return Some(State::Running);
        }
        let mut words = line.split(' ');
        let number: i64 = words.next()?.parse().ok()?;
        let argument = |at: usize| calls::argument(line, at);
        if number == -1 {
            // Without a stack pointer it is a thread that has ended.
            let ended = words.next().is_none_or(|pointer| pointer == "0x0");
            let fault = self.rules.wait_in_call("(fault)", Kind::Other);
            return (!ended).then_some(State::Waiting(fault));
        }
        let Some(name) = calls::name(number) else { return Some(State::Waiting(None)) };
        if calls::descriptors_argument(name).and_then(argument) == Some(0) {
            return Some(State::Waiting(self.rules.wait_in_call("nanosleep", Kind::Other)));
        }
        let kind = if Polled::is(name) {
            let arguments = [0, 1, 2].map(|at| argument(at).unwrap_or(0));
            self.polled.kind(pid, name, arguments)
        } else if self.rules.depends_on_descriptor(name) {
            argument(0).map_or(Kind::Other, |fd| kind(pid, fd))
        } else {
            Kind::Other
        };
        Some(State::Waiting(self.rules.wait_in_call(name, kind)))
    }

    fn by_letter(&mut self, at: usize, tid: u32) -> Option<State> {
        let pid = self.processes[at].pid;
        let stat = text(&format!("/proc/{pid}/task/{tid}/stat"));
        match letter(&stat)? {
            b'R' => Some(State::Running),
            b'Z' | b'X' => None,
            b'T' | b't' => Some(State::Waiting(Some(self.rules.whole(Category::Sleep)))),
            letter => Some(self.by_function(pid, tid, letter)),
        }
    }

    /// A waiting thread by the kernel function that it waits in, or else by the letter of its state.
    fn by_function(&mut self, pid: u32, tid: u32, letter: u8) -> State {
        // "0" where that is refused too, and where the thread has just woken: the next scan asks again.
        let reason = self.of_function(&text(&format!("/proc/{pid}/task/{tid}/wchan")));
        let storage = (letter == b'D').then(|| self.rules.whole(Category::StorageWait));
        State::Waiting(reason.or(storage))
    }

    fn of_function(&mut self, function: &str) -> Option<Reason> {
        if let Some(reason) = self.functions.get(function) {
            return *reason;
        }
        let reason = self.rules.wait_by(self.rules.wait_fit(function));
        // There are no more functions to wait in than this; whatever fills it is no kernel.
        if self.functions.len() < MOST_THREADS {
            self.functions.insert(function.to_owned(), reason);
        }
        reason
    }
}

/// The first three arguments of a thread that waits in `futex`.
fn futex_arguments(line: &str) -> Option<[u64; 3]> {
    let argument = |at| calls::argument(line, at);
    (calls::of_line(line)? == "futex").then(|| Some([argument(0)?, argument(1)?, argument(2)?]))?
}

/// The runnable threads of a line of `/proc/loadavg`.
fn runnable(line: &str) -> Option<u32> {
    line.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// Minor page faults of a process and of the children that it waited for, in a line of `stat`.
fn faults(stat: &str) -> Option<u64> {
    Some(field::<u64>(stat, 7)? + field::<u64>(stat, 8)?)
}

/// Processes that still run, were started after this one and have this, `NAME=VALUE`, in the environment that
/// they were started with, as far as they may be asked.
pub(crate) fn started_with(variable: &str) -> u32 {
    let own = start_ticks("self");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| start_ticks(pid) >= own)
        .collect();
    let mut found = 0;
    for _ in 0..ENVIRONMENT_READS {
        pids.retain(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ"));
            let has_it = |environment: &Vec<u8>| {
                let mut words = environment.split(|byte| *byte == 0);
                words.any(|word| word == variable.as_bytes())
            };
            let is_one = environment.as_ref().is_ok_and(has_it);
            found += u32::from(is_one);
            !is_one && environment.is_ok()
        });
        if pids.is_empty() {
            break;
        }
        std::thread::sleep(BETWEEN_READS);
    }
    found
}

/// When a process was started, in the kernel's ticks since the machine was; `None` of one that is gone.
fn start_ticks(pid: impl std::fmt::Display) -> Option<u64> {
    // Of proc_pid_stat(5): the 22nd field, the 20th after the name.
    field(&text(&format!("/proc/{pid}/stat")), 19)
}

/// Children by scanning all processes, for kernels without lists of them.
fn by_parents(known: &HashSet<u32>) -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let new = pids.filter(|pid| !known.contains(pid)).filter_map(|pid| {
        let stat = text(&format!("/proc/{pid}/stat"));
        let parent: u32 = field(&stat, 1)?;
        known.contains(&parent).then_some((pid, parent))
    });
    new.take(MOST_THREADS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_their_lines() {
        assert_eq!(runnable("4.86 6.80 9.09 3/345 12345\n"), Some(3));
        assert_eq!(runnable("4.86 6.80"), None);
        let stat = "12 (a b) S 1 12 12 0 -1 4194304 300 40 2 0 5 6";
        assert_eq!(faults(stat), Some(340));
        let delays = Delays::parse("500 60 7\n").unwrap();
        assert_eq!((delays.ran, delays.waited, delays.came), (500, 60, 7));
        assert_eq!(Delays::parse(""), None);
    }

    #[test]
    fn a_thread_came_to_a_cpu_by_what_it_was_met_waiting_for() {
        let rules = Rules::built_in();
        let (pipe, sleep) = (rules.whole(Category::Pipe), rules.whole(Category::Sleep));
        let met = |of: &[(Reason, u64)]| {
            let mut met = crate::Counted::default();
            for (reason, times) in of {
                met.count(*reason, *times);
            }
            met
        };
        let mut came = Came::default();
        came.count(10, &met(&[(pipe, 1), (sleep, 2)]));
        assert_eq!((came.by_reason.of(pipe), came.by_reason.of(sleep)), (4, 6));
        // An idle thread is met waiting all the time.
        came.count(0, &met(&[(sleep, 1000)]));
        came.count(7, &met(&[]));
        assert_eq!((came.by_reason.total(), came.unknown), (10, 7));
    }

    #[test]
    fn processes_are_found_by_what_they_were_started_with_while_they_run() {
        let value = format!("{}", std::process::id());
        let variable = format!("LATLAB_TEST_STARTED_WITH={value}");
        assert_eq!(started_with(&variable), 0);
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("LATLAB_TEST_STARTED_WITH", &value)
            .spawn()
            .unwrap();
        // What an emulator starts is still a copy of this process for a moment.
        let begun = std::time::Instant::now();
        while started_with(&variable) == 0 && begun.elapsed().as_secs() < 30 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let found = started_with(&variable);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, 1);
        assert_eq!(started_with(&variable), 0);
    }

    #[test]
    fn a_thread_is_in_the_call_that_it_was_in_when_the_scan_began() {
        use std::process::{Command, Stdio};
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let mut scanner = Scanner::at(Rules::built_in(), pid);
        let mut states = Vec::new();
        scanner.scan(&mut states);
        // An emulator has threads of its own.
        let threads = states.len();
        assert!(threads > 0, "it waits for input");
        scanner.read_calls(u64::MAX);
        drop(child.stdin.take());
        child.wait().unwrap();
        states.clear();
        scanner.scan_process(0, u64::MAX, &mut states);
        assert_eq!(states.len(), threads, "it has ended only since");
        scanner.scan(&mut states);
        assert!(states.is_empty(), "{states:?}");
    }

    #[test]
    fn lines_of_system_calls_become_states() {
        let rules = Rules::built_in();
        let mut scanner = Scanner::at(rules, std::process::id());
        let mut of = |line: &str| scanner.of_line(std::process::id(), line);
        let wait = |state: Option<State>| match state {
            Some(State::Waiting(Some(reason))) => Some(rules.category(reason)),
            _ => None,
        };
        assert_eq!(of("running"), Some(State::Running));
        assert_eq!(of("-1 0x0 0x0"), None, "a thread that has ended");
        assert_eq!(wait(of("-1 0x7ffd 0x55")), Some(Category::StorageWait));
        let futex = format!("{} 0x1 0x0 0x0 0x0 0x0 0x0 0x7f 0x7f", libc::SYS_futex);
        assert_eq!(wait(of(&futex)), Some(Category::Locks));
        let poll = format!("{} 0x0 0x0 0x64 0x0 0x0 0x0 0x7f 0x7f", libc::SYS_ppoll);
        assert_eq!(wait(of(&poll)), Some(Category::Sleep), "a poll of nothing is a sleep");
        let poll = format!("{} 0x7f 0x2 0x64 0x0 0x0 0x0 0x7f 0x7f", libc::SYS_ppoll);
        assert_eq!(wait(of(&poll)), Some(Category::Network));
        assert_eq!(of("99999 0x0 0x0"), Some(State::Waiting(None)), "a call that no rule speaks of");
    }
}
