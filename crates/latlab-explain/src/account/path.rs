//! The critical path: what the end of a program hangs on.
//!
//! Each thread carries who did what, for how long, that led to where it is now. It adds what it does itself.
//! When another thread of the program ends its wait, it takes over what that one carries at that moment: had
//! that one been faster, the wait would have been shorter. What the main thread carries at the end is the
//! critical path. The definition is that of Yang and Miller ("Critical path analysis for the execution of
//! parallel and distributed programs", ICDCS 1988), found while the program runs as by Hollingsworth ("An
//! online computation of critical path profiling", SPDT 1996).
//!
//! Time that was not recorded does not exist: a clock of its own stands still meanwhile, and what a thread
//! carries always sums to that clock. Pure: time is what the caller says it is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::Category;
use crate::account::lanes::Doing;
use crate::account::sweep::State;
use crate::model::{self, EndedWait, PathStep};

/// Threads that are followed.
const MOST_THREADS: usize = 4096;
/// Processes that keep their ids, and names without an id.
const MOST_NAMES: usize = 256;
/// Parts of what a thread carries, before ids are left out.
const MOST_PARTS: usize = 64;
/// Kinds of waits, by who waited, for what and who ended it, before ids are left out.
const MOST_WAITS: usize = 1024;
/// Rows that are reported, of either table.
const MOST_SHOWN: usize = 16;
/// Processes of one name that have rows of their own where there are too many rows: the stages of a pipeline
/// are few, the compilers of a build are many.
const MOST_ALIKE: usize = 4;
/// What is shown for the rest.
const OTHERS: &str = "others";

/// A process and the name of a thread of it, by number.
type Who = u16;

/// All others, as one.
const REST: Who = 0;

/// Who there is. Bounded: the first keep their process, the next only their name, and the rest are one.
#[derive(Debug)]
struct Names {
    all: Vec<(Option<u32>, Rc<str>)>,
    known: HashMap<(Option<u32>, Rc<str>), Who>,
    /// How many have a process, and how many have none.
    processes: usize,
    alone: usize,
}

impl Names {
    fn new() -> Self {
        Self { all: vec![(None, Rc::from(OTHERS))], known: HashMap::new(), processes: 0, alone: 0 }
    }

    fn push(&mut self, key: (Option<u32>, Rc<str>)) -> Who {
        let who = Who::try_from(self.all.len()).unwrap_or(REST);
        self.all.push(key.clone());
        self.known.insert(key, who);
        who
    }

    fn of(&mut self, process: u32, name: &Rc<str>) -> Who {
        let key = (Some(process), Rc::clone(name));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.processes >= MOST_NAMES {
            return self.name(name);
        }
        self.processes += 1;
        self.push(key)
    }

    fn name(&mut self, name: &Rc<str>) -> Who {
        let key = (None, Rc::clone(name));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.alone >= MOST_NAMES {
            return REST;
        }
        self.alone += 1;
        self.push(key)
    }

    fn without_process(&mut self, who: Who) -> Who {
        match self.all.get(usize::from(who)) {
            Some((Some(_), name)) => {
                let name = Rc::clone(name);
                self.name(&name)
            }
            _ => who,
        }
    }
}

/// Who did what for how long.
#[derive(Clone, Debug, Default, PartialEq)]
struct Carried {
    parts: Vec<(Who, Doing, u64)>,
    /// There were too many parts: only names are kept, without process ids.
    names_only: bool,
}

impl Carried {
    fn add(&mut self, who: Who, doing: Doing, ns: u64, names: &mut Names) {
        if self.parts.len() >= MOST_PARTS && !self.names_only {
            self.names_only = true;
            for (who, doing, ns) in std::mem::take(&mut self.parts) {
                self.add(who, doing, ns, names);
            }
        }
        let who = if self.names_only { names.without_process(who) } else { who };
        if self.grow(who, doing, ns) {
            return;
        }
        let who = if self.parts.len() < MOST_PARTS { who } else { REST };
        if !self.grow(who, doing, ns) {
            self.parts.push((who, doing, ns));
        }
    }

    /// Adds to a part that is there.
    fn grow(&mut self, who: Who, doing: Doing, ns: u64) -> bool {
        let part = self.parts.iter_mut().find(|part| (part.0, part.1) == (who, doing));
        part.map(|part| part.2 += ns).is_some()
    }

    fn sum(&self) -> u64 {
        self.parts.iter().map(|part| part.2).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Runs,
    /// Or is not yet on a CPU after a wait.
    IsReady,
    /// Since this time of the own clock.
    Waits(u64),
}

/// A wait in which a child ended and that nobody is known to have ended: if the thread is told of the child
/// next, that was it.
#[derive(Debug)]
struct Late {
    child: Last,
    category: Category,
    since: u64,
    until: u64,
}

#[derive(Debug)]
struct Thread {
    process: u32,
    name: Rc<str>,
    who: Who,
    does: Does,
    /// What led to where it was at this time of the own clock.
    carried: Rc<Carried>,
    at: u64,
    /// Of the wait that is over since it came to a CPU.
    late: Option<Box<Late>>,
}

/// What the last thread of a process carried at its end.
#[derive(Clone, Debug)]
struct Last {
    who: Who,
    carried: Rc<Carried>,
    at: u64,
}

#[derive(Debug, Default)]
struct Process {
    parent: u32,
    threads: u32,
    /// Of the child that ended last.
    child: Option<Last>,
}

/// A thread, as a record has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of<'a> {
    pub process: u32,
    pub thread: u32,
    /// Where it is known.
    pub name: Option<&'a Rc<str>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Path {
    /// The main process, and its main thread.
    main: u32,
    /// What is recorded has come to this time; `None`: nothing is recorded now.
    now: Option<u64>,
    /// The own clock.
    clock: u64,
    threads: HashMap<u32, Thread>,
    processes: HashMap<u32, Process>,
    names: Names,
    /// Of the main process.
    last: Option<Last>,
    /// Time of threads, and how often: who waited, for what, and which thread of the program ended it.
    waits: BTreeMap<(Who, Category, Option<Who>), (u64, u64)>,
}

impl Path {
    /// Nothing is recorded yet.
    pub(crate) fn of(main: u32) -> Self {
        Self {
            main,
            now: None,
            clock: 0,
            threads: HashMap::new(),
            processes: HashMap::new(),
            names: Names::new(),
            last: None,
            waits: BTreeMap::new(),
        }
    }

    fn advance(&mut self, now: u64) {
        if let Some(before) = self.now {
            self.clock = self.clock.saturating_add(now.saturating_sub(before));
            self.now = Some(before.max(now));
        }
    }

    /// What a thread did until now.
    fn add(&mut self, thread: u32, doing: Doing) {
        let Some(known) = self.threads.get_mut(&thread) else { return };
        let past = self.clock - known.at;
        if past > 0 {
            Rc::make_mut(&mut known.carried).add(known.who, doing, past, &mut self.names);
            known.at = self.clock;
        }
        debug_assert_eq!(known.carried.sum(), self.clock, "{thread}");
    }

    /// The same of one that did not wait, or of whose wait nobody knows the end: a record was lost.
    fn settle(&mut self, thread: u32) {
        let doing = match self.threads.get(&thread).map(|known| known.does) {
            Some(Does::IsReady) => Doing::On(Category::RunQueueWait),
            Some(Does::Waits(_)) => Doing::On(Category::Unexplained),
            Some(Does::Runs) | None => Doing::OnCpu,
        };
        self.add(thread, doing);
    }

    /// Follows a thread that is new, or of which nothing was known: it goes on from what its starter carries,
    /// or its process's main thread, or the program's.
    fn follow(&mut self, of: Of<'_>, by: Option<u32>, does: Does) {
        self.forget(of.thread);
        if self.threads.len() >= MOST_THREADS {
            return;
        }
        if let Some(by) = by {
            self.settle(by);
        }
        let before = [by, Some(of.process), Some(self.main)];
        let before = before.into_iter().flatten().find_map(|thread| self.threads.get(&thread));
        let name = of.name.or(before.map(|before| &before.name)).map_or_else(|| Rc::from(""), Rc::clone);
        let (carried, at) =
            before.map_or_else(Default::default, |before| (Rc::clone(&before.carried), before.at));
        let who = self.names.of(of.process, &name);
        self.process(of.process).threads += 1;
        self.threads
            .insert(of.thread, Thread { process: of.process, name, who, does, carried, at, late: None });
        // What came before is not known.
        self.add(of.thread, Doing::On(Category::StartAndExit));
    }

    fn process(&mut self, process: u32) -> &mut Process {
        self.processes.entry(process).or_default()
    }

    /// A thread is gone. Whether it was its process's last one, and which process that was a child of.
    fn forget(&mut self, thread: u32) -> Option<(Thread, Option<u32>)> {
        let gone = self.threads.remove(&thread)?;
        let process = self.processes.get_mut(&gone.process)?;
        process.threads = process.threads.saturating_sub(1);
        let parent = (process.threads == 0).then_some(process.parent);
        if parent.is_some() {
            self.processes.remove(&gone.process);
        }
        Some((gone, parent))
    }

    fn count(&mut self, who: Who, category: Category, by: Option<Who>, ns: u64) {
        let mut key = (who, category, by);
        if self.waits.len() >= MOST_WAITS && !self.waits.contains_key(&key) {
            key = (self.names.without_process(who), category, by.map(|by| self.names.without_process(by)));
        }
        if self.waits.len() >= 2 * MOST_WAITS && !self.waits.contains_key(&key) {
            key = (REST, category, by.map(|_| REST));
        }
        let (sum, times) = self.waits.entry(key).or_default();
        *sum = sum.saturating_add(ns);
        *times += 1;
    }

    /// A thread comes to a CPU. `waited`: for what, where it waited and nobody is known to have ended that.
    pub(crate) fn runs(&mut self, now: u64, of: Of<'_>, waited: Category) {
        self.advance(now);
        let Some(known) = self.threads.get(&of.thread) else { return self.follow(of, None, Does::Runs) };
        let (who, process) = (known.who, known.process);
        match known.does {
            // After a scan: it was runnable.
            Does::Runs | Does::IsReady => self.add(of.thread, Doing::On(Category::RunQueueWait)),
            Does::Waits(since) => {
                let child = self.processes.get(&process).and_then(|process| process.child.clone());
                let child = child.filter(|child| child.at >= since);
                self.add(of.thread, Doing::On(waited));
                self.count(who, waited, None, self.clock - since);
                let until = self.clock;
                if let Some((child, known)) = child.zip(self.threads.get_mut(&of.thread)) {
                    known.late = Some(Box::new(Late { child, category: waited, since, until }));
                }
            }
        }
        if let Some(known) = self.threads.get_mut(&of.thread) {
            known.does = Does::Runs;
        }
        // A process's end is recorded, that it wakes its parent is not: its events are gone by then.
        if waited == Category::WaitingForChildren {
            self.child_ended(now, of.thread);
        }
    }

    /// A thread is told that a child of its process has ended: that has ended its wait, where nobody else is
    /// known to have done so.
    pub(crate) fn child_ended(&mut self, now: u64, thread: u32) {
        self.advance(now);
        let Some(known) = self.threads.get_mut(&thread).filter(|known| known.does == Does::Runs) else {
            return;
        };
        let Some(late) = known.late.take() else { return };
        let Late { child, category, since, until } = *late;
        (known.carried, known.at) = (child.carried, child.at);
        let (who, by, ready) = (known.who, child.who, until - child.at);
        if ready > 0 {
            // Its memory is taken down, and its parent gets a CPU.
            let doing = Doing::On(Category::StartAndExit);
            Rc::make_mut(&mut known.carried).add(by, doing, ready, &mut self.names);
            known.at = until;
        }
        self.settle(thread);
        if let Some((sum, times)) = self.waits.get_mut(&(who, category, None)) {
            *sum = sum.saturating_sub(until - since);
            *times = times.saturating_sub(1);
        }
        self.count(who, category, Some(child.who), child.at - since);
    }

    /// A thread leaves its CPU.
    pub(crate) fn leaves(&mut self, now: u64, of: Of<'_>, waits: bool) {
        self.advance(now);
        let does = if waits { Does::Waits(self.clock) } else { Does::IsReady };
        if !self.threads.contains_key(&of.thread) {
            self.follow(of, None, Does::Runs);
        }
        self.settle(of.thread);
        if let Some(known) = self.threads.get_mut(&of.thread) {
            known.does = does;
            known.late = None;
        }
    }

    /// A thread ends the wait of another one, which `waited` for this.
    pub(crate) fn wakes(&mut self, now: u64, by: u32, thread: u32, waited: Category) {
        self.advance(now);
        let Some(Does::Waits(since)) = self.threads.get(&thread).map(|known| known.does) else { return };
        if by == thread || !self.threads.contains_key(&by) {
            return;
        }
        self.settle(by);
        let Some(waker) = self.threads.get_mut(&by) else { return };
        // Whatever records were lost.
        waker.does = Does::Runs;
        let (carried, by) = (Rc::clone(&waker.carried), waker.who);
        if let Some(known) = self.threads.get_mut(&thread) {
            (known.carried, known.at, known.does) = (carried, self.clock, Does::IsReady);
            let who = known.who;
            self.count(who, waited, Some(by), self.clock - since);
        }
    }

    /// A thread is started. `parent`: the process that did so; `by`: the thread of it.
    pub(crate) fn starts(&mut self, now: u64, of: Of<'_>, parent: u32, by: u32) {
        self.advance(now);
        self.follow(of, Some(by), Does::IsReady);
        if let Some(process) = self.processes.get_mut(&of.process).filter(|_| parent != of.process) {
            process.parent = parent;
        }
    }

    /// A thread has this name from now on; as it loads a new program, it runs.
    pub(crate) fn is_named(&mut self, now: u64, of: Of<'_>, loads: bool) {
        self.advance(now);
        if loads && !self.threads.contains_key(&of.thread) {
            self.follow(of, None, Does::Runs);
        }
        let does = self.threads.get(&of.thread).map(|known| known.does);
        // One that waits was given a name by another: what it did is known at its end.
        if matches!(does, Some(Does::Runs | Does::IsReady)) {
            self.settle(of.thread);
        }
        if let Some((known, name)) = self.threads.get_mut(&of.thread).zip(of.name) {
            known.name = Rc::clone(name);
            known.who = self.names.of(known.process, name);
        }
    }

    pub(crate) fn ends(&mut self, now: u64, thread: u32) {
        self.advance(now);
        self.settle(thread);
        let Some((gone, Some(parent))) = self.forget(thread) else { return };
        let last = Last { who: gone.who, carried: gone.carried, at: gone.at };
        if gone.process == self.main {
            self.last = Some(last);
        } else if let Some(parent) = self.processes.get_mut(&parent) {
            parent.child = Some(last);
        }
    }

    /// Nothing is recorded from now on. `waits_for`: what threads wait for now.
    pub(crate) fn pause(&mut self, now: u64, waits_for: impl Fn(u32) -> Category) {
        self.advance(now);
        self.now = None;
        let threads: Vec<(u32, Does)> = self.threads.iter().map(|(id, known)| (*id, known.does)).collect();
        for (thread, does) in threads {
            match does {
                Does::Waits(_) => self.add(thread, Doing::On(waits_for(thread))),
                Does::Runs | Does::IsReady => self.settle(thread),
            }
        }
        for process in self.processes.values_mut() {
            process.child = None;
        }
        for known in self.threads.values_mut() {
            known.late = None;
        }
    }

    /// All is recorded from now on. `states`: what a scan has seen, with the parent of each process.
    pub(crate) fn resume<'a>(&mut self, now: u64, states: impl IntoIterator<Item = (Of<'a>, u32, State)>) {
        self.now = Some(now);
        let mut before = std::mem::take(&mut self.threads);
        // The main thread first: new ones may follow from it.
        let mut states: Vec<(Of<'a>, u32, State)> = states.into_iter().collect();
        states.sort_by_key(|(of, ..)| (of.thread != self.main, of.thread != of.process));
        let is_known = |of: &Of<'_>, known: &Thread| known.process == of.process;
        let seen = |(of, ..): &(Of<'a>, u32, State)| {
            before.remove(&of.thread).filter(|known| is_known(of, known)).map(|known| (of.thread, known))
        };
        self.threads = states.iter().filter_map(seen).collect();
        self.processes.clear();
        for known in self.threads.values() {
            self.processes.entry(known.process).or_default().threads += 1;
        }
        for (of, parent, state) in states {
            let waited = self.threads.get(&of.thread).map(|known| known.does);
            let does = match (state, waited) {
                (State::Running, _) => Does::Runs,
                (State::Ready, _) => Does::IsReady,
                // It may have been another wait meanwhile, which nobody can tell.
                (State::Waiting(_), Some(Does::Waits(since))) => Does::Waits(since),
                (State::Waiting(_), _) => Does::Waits(self.clock),
            };
            match self.threads.get_mut(&of.thread) {
                Some(known) => known.does = does,
                None => self.follow(of, None, does),
            }
            if let Some(process) = self.processes.get_mut(&of.process) {
                process.parent = parent;
            }
        }
    }

    /// What is published, at the end; nothing where nothing was recorded. `ends`: the program has ended, and
    /// with it the path.
    pub(crate) fn shown(mut self, now: u64, ends: bool, wall_ns: u64) -> Option<model::Path> {
        self.advance(now);
        if self.clock == 0 {
            return None;
        }
        let carried = if ends { self.at_the_end() } else { Rc::default() };
        let recorded_share = (self.clock as f64 / (wall_ns as f64).max(1.0)).min(1.0);
        Some(model::Path { recorded_share, steps: self.steps(&carried), ended: self.ended() })
    }

    /// What the main thread carries; or, where it is gone, the last thread of its process.
    fn at_the_end(&mut self) -> Rc<Carried> {
        let of_main = self.threads.iter().filter(|(_, known)| known.process == self.main);
        let there = of_main.map(|(id, _)| *id).min_by_key(|id| (*id != self.main, *id));
        if let Some(thread) = there {
            self.settle(thread);
            return self.threads.get(&thread).map_or_else(Rc::default, |known| Rc::clone(&known.carried));
        }
        let Some(Last { who, mut carried, at }) = self.last.take() else { return Rc::default() };
        let past = self.clock - at;
        if past > 0 {
            let doing = Doing::On(Category::StartAndExit);
            Rc::make_mut(&mut carried).add(who, doing, past, &mut self.names);
        }
        carried
    }

    /// Many processes of one name become one.
    fn merged(&mut self, all: &BTreeSet<Who>) -> HashMap<Who, Who> {
        let mut of_name: HashMap<Who, usize> = HashMap::new();
        let alone: Vec<(Who, Who)> = all.iter().map(|who| (*who, self.names.without_process(*who))).collect();
        for (_, name) in &alone {
            *of_name.entry(*name).or_default() += 1;
        }
        alone
            .into_iter()
            .map(|(who, name)| (who, if of_name[&name] > MOST_ALIKE { name } else { who }))
            .collect()
    }

    fn name(&self, who: Who) -> (Option<u32>, String) {
        let (process, name) = &self.names.all[usize::from(who)];
        (*process, name.to_string())
    }

    fn steps(&mut self, carried: &Carried) -> Vec<PathStep> {
        let whole = (carried.sum() as f64).max(1.0);
        let mut rows: BTreeMap<(Who, Doing), u64> = BTreeMap::new();
        let merged = self.merged(&carried.parts.iter().map(|part| part.0).collect());
        let too_many = carried.parts.len() > MOST_SHOWN;
        for (who, doing, ns) in &carried.parts {
            *rows.entry((if too_many { merged[who] } else { *who }, *doing)).or_default() += ns;
        }
        let mut rest = 0;
        rows.retain(|(who, _), ns| {
            rest += if *who == REST { *ns } else { 0 };
            *who != REST
        });
        let mut rows: Vec<((Who, Doing), u64)> = rows.into_iter().collect();
        rows.sort_by_key(|(_, ns)| Reverse(*ns));
        if rest > 0 || rows.len() > MOST_SHOWN {
            rest += rows.drain((MOST_SHOWN - 1).min(rows.len())..).map(|(_, ns)| ns).sum::<u64>();
        }
        let step = |(process, name): (Option<u32>, String), doing: Option<Doing>, ns: u64| PathStep {
            process,
            name,
            doing: doing.map(Doing::name),
            share: ns as f64 / whole,
            seconds: ns as f64 / 1e9,
        };
        let rest = (rest > 0).then(|| step(self.name(REST), None, rest));
        rows.into_iter().map(|((who, doing), ns)| step(self.name(who), Some(doing), ns)).chain(rest).collect()
    }

    fn ended(&mut self) -> Vec<EndedWait> {
        let waits = std::mem::take(&mut self.waits);
        let all = waits.keys().flat_map(|(who, _, by)| [Some(*who), *by]).flatten().collect();
        let merged = self.merged(&all);
        let too_many = waits.len() > MOST_SHOWN;
        let of = |who: Who| if too_many { merged[&who] } else { who };
        let mut rows: BTreeMap<(Who, Category, Option<Who>), (u64, u64)> = BTreeMap::new();
        for ((who, category, by), (ns, count)) in waits {
            let (sum, times) = rows.entry((of(who), category, by.map(of))).or_default();
            *sum = sum.saturating_add(ns);
            *times += count;
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.retain(|(_, (_, count))| *count > 0);
        rows.sort_by_key(|(_, (ns, _))| Reverse(*ns));
        let row = |((who, category, by), (ns, count)): ((Who, Category, Option<Who>), (u64, u64))| {
            let (process, name) = self.name(who);
            let (by_process, by_name) = by.map(|by| self.name(by)).unzip();
            let by_process = by_process.flatten();
            EndedWait { process, name, category, by_process, by_name, seconds: ns as f64 / 1e9, count }
        };
        rows.into_iter().take(MOST_SHOWN).map(row).collect()
    }
}

#[cfg(test)]
mod tests;
