//! The sweep: states of threads in order of time in, each instant of wall time given away exactly once.
//!
//! While threads run, the instant is theirs; else, while one is ready, it is spent waiting for a CPU; else it
//! belongs to the reason for which they wait: the main thread's own, if that is outside the program,
//! otherwise the first of all by [`Category::wait_order`]. Pure: time is what the caller says it is.

use std::collections::{BTreeMap, HashMap};

use crate::account::by_stage::{self, ByStage};
use crate::account::lanes::Doing;
use crate::account::timeline::Course;
use crate::account::unread::Unread;
use crate::rules::{Reason, Rules};
use crate::{Category, Counted};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// On a CPU. When threads are only scanned: on a CPU or ready, which a scan cannot tell apart.
    Running,
    /// Ready, without a CPU.
    Ready,
    /// Waiting; the reason may become known later.
    Waiting(Option<Reason>),
}

/// Where the states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From scans of /proc: a state stands for the time since the scan before.
    Scanned,
    /// From the kernel's records of every switch.
    Recorded,
}

/// Time given away, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    /// All of it.
    pub wall: u64,
    /// A thread ran.
    pub running: u64,
    /// The same, times the threads that ran.
    pub thread_running: u64,
    /// Sampled: wall time by how many threads were runnable, and by how many of other programs.
    pub by_runnable: BTreeMap<(u32, u32), u64>,
    /// None ran, one was ready.
    pub ready: u64,
    /// Ready threads, whatever the others did.
    pub thread_ready: u64,
    /// The same while threads of this program left a CPU free: another program had it.
    pub thread_ready_for_others: u64,
    /// All waited, by reason.
    pub waits: Counted,
    /// All waited, and the reason is not known.
    pub unknown: u64,
    /// Waiting threads by reason, whatever the others did.
    pub thread_waits: Counted,
    /// The same where the reason is not known.
    pub thread_unknown: u64,
    /// Waits that ended, by reason, and those of which it is not known: each ends with some time ready, which
    /// no record tells. While threads were looked at, how often they came to a CPU, by what they were met
    /// waiting for.
    pub wakes: Counted,
    /// See `wakes`.
    pub unknown_wakes: u64,
    /// The same of stretches of wall time in which all threads waited.
    pub all_waited: Counted,
    /// See `all_waited`.
    pub unknown_all_waited: u64,
    /// No thread was there: before the program was loaded, after its last thread.
    pub absent: u64,
}

impl Sums {
    /// Waits that ended, whatever they were for.
    pub(crate) fn all_wakes(&self) -> f64 {
        (self.wakes.total() + self.unknown_wakes) as f64
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.wall += other.wall;
        self.running += other.running;
        self.thread_running += other.thread_running;
        for (met, ns) in &other.by_runnable {
            *self.by_runnable.entry(*met).or_default() += ns;
        }
        self.ready += other.ready;
        self.thread_ready += other.thread_ready;
        self.thread_ready_for_others += other.thread_ready_for_others;
        self.waits.add(&other.waits);
        self.unknown += other.unknown;
        self.thread_waits.add(&other.thread_waits);
        self.thread_unknown += other.thread_unknown;
        self.wakes.add(&other.wakes);
        self.unknown_wakes += other.unknown_wakes;
        self.all_waited.add(&other.all_waited);
        self.unknown_all_waited += other.unknown_all_waited;
        self.absent += other.absent;
    }
}

impl Unsure {
    fn ran_alone(&mut self, ns: u64) {
        match self.alone.last_mut() {
            Some((past, threads)) if *threads == self.threads => *past += ns,
            _ => self.alone.push((ns, self.threads.clone())),
        }
    }
}

/// Threads that are accounted for together: the program, or one process of it.
#[derive(Debug, Default)]
struct Group {
    since: u64,
    running: u32,
    ready: u32,
    waiting: Vec<(Option<Reason>, u32)>,
    /// Of a process: time for which no reason is known since a thread of it last did something else.
    pending: u64,
}

impl Group {
    fn count(&mut self, state: State, by: i32) {
        let slot = match state {
            State::Running => &mut self.running,
            State::Ready => &mut self.ready,
            State::Waiting(reason) => {
                let at = self.waiting.iter().position(|known| known.0 == reason);
                let at = at.unwrap_or_else(|| {
                    self.waiting.push((reason, 0));
                    self.waiting.len() - 1
                });
                &mut self.waiting[at].1
            }
        };
        *slot = slot.saturating_add_signed(by);
    }

    fn waits(&self) -> impl Iterator<Item = (Option<Reason>, u32)> {
        self.waiting.iter().copied().filter(|(_, threads)| *threads > 0)
    }

    fn threads(&self) -> u32 {
        self.running + self.ready + self.waits().map(|(_, threads)| threads).sum::<u32>()
    }

    /// Why all of them wait. `first`: the main thread's reason.
    fn reason(&self, first: Option<Reason>, rules: &Rules) -> Option<Reason> {
        if let Some(first) = first.filter(|first| rules.is_outside(*first)) {
            return Some(first);
        }
        // An unknown reason hides neither the disk nor the network, and locks do not hide it: idle threads of
        // a pool wait for one all the time.
        let order = |reason: Option<Reason>| {
            let category = reason.map_or(Category::Locks, |reason| rules.category(reason));
            (category.wait_order(), reason)
        };
        self.waits().map(|(reason, _)| reason).min_by_key(|reason| order(*reason)).flatten()
    }
}

/// What an instant is spent on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spent {
    Running,
    Ready,
    Waiting(Reason),
    /// The thread to which the time is noted until its reason is known.
    Unknown(Option<u32>),
    Absent,
}

impl Spent {
    /// Whether a thread in this state is one of those that it was spent on.
    fn is(self, state: State) -> bool {
        match self {
            Self::Running => state == State::Running,
            Self::Ready => state == State::Ready,
            Self::Waiting(reason) => state == State::Waiting(Some(reason)),
            Self::Unknown(_) => state == State::Waiting(None),
            Self::Absent => false,
        }
    }

    /// Where a stage keeps it.
    fn slot(self, got: &mut by_stage::Got) -> &mut f64 {
        match self {
            Self::Running => &mut got.running,
            Self::Ready => &mut got.ready,
            Self::Waiting(reason) => got.waits.entry(reason).or_default(),
            Self::Unknown(_) => &mut got.unknown,
            Self::Absent => &mut got.absent,
        }
    }
}

/// One process, as far as it was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// When it was first and last seen.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// A thread of it ran or was ready.
    pub busy: u64,
    /// The same, times the threads that did.
    pub thread_busy: u64,
    /// All of its threads waited.
    pub waits: Counted,
    /// And the reason is not known.
    pub unknown: u64,
    /// Its waits whose reason was read in time, and those whose was not.
    pub unread: Unread,
}

#[derive(Debug)]
struct Thread {
    process: u32,
    state: State,
    /// Wall time for which this thread's unknown reason stands.
    pending: u64,
    began: u64,
    /// Its reason was found out after it began to wait.
    learned: bool,
}

/// Threads that were runnable when records began: each ran or was ready until the first record of it, which
/// tells.
#[derive(Debug, Default)]
struct Unsure {
    since: u64,
    threads: Vec<u32>,
    /// Most threads that ran besides.
    most_others: u32,
    /// Wall time in which no other thread ran, and those of them that may have.
    alone: Vec<(u64, Vec<u32>)>,
}

/// More processes than this are swept with the program but not listed one by one.
const MOST_PROCESSES: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sweep<'a> {
    rules: &'a Rules,
    main: u32,
    /// CPUs that the program may run on.
    cpus: u32,
    /// Runnable threads of other programs at the last sample.
    others: u32,
    source: Source,
    threads: HashMap<u32, Thread>,
    whole: Group,
    processes: HashMap<u32, (Group, Seen)>,
    unsure: Unsure,
    /// By [`Source`].
    sums: [Sums; 2],
    most: u32,
    course: Course,
    unread: Unread,
    stages: ByStage,
}

/// What a sweep gave.
#[derive(Debug)]
pub(crate) struct Swept {
    /// While threads were scanned.
    pub scanned: Sums,
    /// While every switch was recorded.
    pub recorded: Sums,
    /// Waits whose reason was read in time, and those whose was not.
    pub unread: Unread,
    /// Most threads at once.
    pub most: u32,
    /// By process.
    pub processes: HashMap<u32, Seen>,
    /// Over time.
    pub course: Course,
    /// By stages that the program marks.
    pub stages: by_stage::Sums,
}

impl<'a> Sweep<'a> {
    /// Begins at `now`, without threads. `main` is the thread whose wait counts first; no more threads than
    /// `cpus` run at once.
    pub(crate) fn begin(rules: &'a Rules, now: u64, main: u32, cpus: u32) -> Self {
        Self {
            rules,
            main,
            cpus,
            others: cpus,
            source: Source::Scanned,
            threads: HashMap::new(),
            whole: Group { since: now, ..Group::default() },
            processes: HashMap::new(),
            unsure: Unsure::default(),
            sums: Default::default(),
            most: 0,
            course: Course::begin(now),
            unread: Unread::default(),
            stages: ByStage::default(),
        }
    }

    /// When it has come to.
    pub(crate) fn now(&self) -> u64 {
        self.whole.since
    }

    /// CPU time of all threads so far, as far as it was seen.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.sums.iter().map(|sums| sums.thread_running).sum()
    }

    /// Of it what was recorded, and the wall time in which a thread ran meanwhile.
    pub(crate) fn recorded_ns(&self) -> (u64, u64) {
        let recorded = &self.sums[Source::Recorded as usize];
        (recorded.thread_running, recorded.running)
    }

    /// Threads running now; at least 1, as this is what a sample's weight is divided by.
    pub(crate) fn running(&self) -> u32 {
        self.whole.running.clamp(1, self.cpus.max(1))
    }

    /// A sample of a running thread, for the course of the run.
    pub(crate) fn sample(&mut self, time: u64, thread: u32, category: Category, weight: f64) {
        self.course.bins.sample(category, time, weight);
        self.course.lanes.sample(time, thread, category);
    }

    /// What a thread in this state does.
    fn doing(&self, state: State) -> Doing {
        match state {
            State::Running if self.source == Source::Scanned => Doing::OnCpuOrReady,
            State::Running => Doing::OnCpu,
            State::Ready => Doing::On(Category::RunQueueWait),
            State::Waiting(reason) => {
                Doing::On(reason.map_or(Category::Unexplained, |reason| self.rules.category(reason)))
            }
        }
    }

    /// The stages, to expect changes and for samples.
    pub(crate) fn stages(&mut self) -> &mut ByStage {
        &mut self.stages
    }

    /// Time goes on to `now`; what lies before is left as it was given away.
    pub(crate) fn advance(&mut self, now: u64) {
        while let Some(at) = self.stages.next(now) {
            self.pass(at);
            self.stages.change();
        }
        self.pass(now);
    }

    /// Processes and threads that an instant is spent on.
    fn threads_in(&self, spent: Spent) -> Vec<(u32, u32)> {
        let threads = self.threads.iter().filter(|(_, thread)| spent.is(thread.state));
        threads.map(|(id, thread)| (thread.process, *id)).collect()
    }

    /// Gives time to the stages of the threads that it was spent on, to each as much.
    fn give_stages(&mut self, past: u64, spent: Spent) {
        let of: Vec<(u32, u32)> = match spent {
            Spent::Absent => vec![(0, 0)],
            Spent::Unknown(Some(bearer)) => {
                let known = self.threads.get(&bearer).map(|thread| (thread.process, bearer));
                known.into_iter().collect()
            }
            _ => self.threads_in(spent),
        };
        let each = past as f64 / of.len().max(1) as f64;
        for (process, thread) in of {
            let got = self.stages.of(process, thread);
            got.time += each;
            if self.source == Source::Recorded {
                *spent.slot(got) += each;
            }
        }
    }

    /// A scan of `now` stands for `past`: for its stages what it sees counts at its own moment.
    fn scan_in_stages(&mut self, past: u64) {
        let spent = self.spent();
        let mut of = self.threads_in(spent);
        if of.is_empty() {
            of.push((0, 0));
        }
        let each = past as f64 / of.len() as f64;
        for (process, thread) in of {
            *spent.slot(self.stages.of(process, thread)) += each;
        }
    }

    /// What this instant is spent on.
    fn spent(&self) -> Spent {
        if self.whole.running > 0 {
            return Spent::Running;
        }
        if self.whole.ready > 0 {
            return Spent::Ready;
        }
        if self.whole.threads() == 0 {
            return Spent::Absent;
        }
        let main = self.threads.get(&self.main).and_then(|thread| match thread.state {
            State::Waiting(reason) => reason,
            _ => None,
        });
        if let Some(reason) = self.whole.reason(main, self.rules) {
            return Spent::Waiting(reason);
        }
        // The main thread's, or any one's, so that learning it moves the time once.
        let unknown = |thread: &Thread| thread.state == State::Waiting(None);
        if self.threads.get(&self.main).is_some_and(unknown) {
            return Spent::Unknown(Some(self.main));
        }
        let ids = self.threads.iter().filter(|(_, thread)| unknown(thread));
        Spent::Unknown(ids.map(|(id, _)| *id).min())
    }

    /// Time goes on to `now`, within which no stage changes.
    fn pass(&mut self, now: u64) {
        let from = self.whole.since;
        if now <= from {
            return;
        }
        self.whole.since = now;
        let past = now - from;
        let threads = self.whole.threads();
        self.most = self.most.max(threads);
        let spent = self.spent();
        let sums = &mut self.sums[self.source as usize];
        sums.wall += past;
        if self.source == Source::Scanned {
            *sums.by_runnable.entry((self.whole.running, self.others)).or_default() += past;
            sums.thread_running += past * u64::from(self.whole.running);
        } else {
            let unsure = u32::try_from(self.unsure.threads.len()).unwrap_or(u32::MAX);
            let others = self.whole.running.saturating_sub(unsure);
            self.unsure.most_others = self.unsure.most_others.max(others);
            sums.thread_running += past * u64::from(others);
            sums.thread_ready += past * u64::from(self.whole.ready);
            if self.whole.running < self.cpus {
                sums.thread_ready_for_others += past * u64::from(self.whole.ready);
            }
        }
        for (reason, waiting) in self.whole.waits() {
            let past = past * u64::from(waiting);
            match reason {
                Some(reason) => sums.thread_waits.count(reason, past),
                None => sums.thread_unknown += past,
            }
        }
        match spent {
            Spent::Running => {
                if self.whole.running as usize > self.unsure.threads.len() {
                    sums.running += past;
                } else {
                    self.unsure.ran_alone(past);
                }
                self.course.bins.running(from, now);
            }
            Spent::Ready => {
                sums.ready += past;
                self.course.bins.spend(Category::RunQueueWait, from, now);
            }
            Spent::Absent => {
                sums.absent += past;
                self.course.bins.spend(Category::StartAndExit, from, now);
            }
            Spent::Waiting(reason) => {
                sums.waits.count(reason, past);
                self.course.bins.spend(self.rules.category(reason), from, now);
            }
            Spent::Unknown(bearer) => {
                sums.unknown += past;
                self.course.bins.spend(Category::Unexplained, from, now);
                if let Some(thread) = bearer.and_then(|id| self.threads.get_mut(&id)) {
                    thread.pending += past;
                }
            }
        }
        if self.stages.is_used() {
            self.give_stages(past, spent);
        }
    }

    fn group(&mut self, process: u32, now: u64) {
        let room = self.processes.len() < MOST_PROCESSES;
        if !room && !self.processes.contains_key(&process) {
            return;
        }
        let (group, seen) = self.processes.entry(process).or_insert_with(|| {
            let group = Group { since: now, ..Group::default() };
            let seen = Seen { from: now, to: now, ..Seen::default() };
            (group, seen)
        });
        let past = now.saturating_sub(group.since);
        group.since = group.since.max(now);
        if past == 0 || group.threads() == 0 {
            return;
        }
        seen.to = seen.to.max(now);
        seen.thread_busy += past * u64::from(group.running + group.ready);
        if group.running + group.ready > 0 {
            seen.busy += past;
        } else if let Some(reason) = group.reason(None, self.rules) {
            seen.waits.count(reason, past);
        } else {
            seen.unknown += past;
            group.pending += past;
        }
    }

    /// A thread's state from `now` on.
    pub(crate) fn set(&mut self, now: u64, thread: u32, process: u32, state: State) {
        self.advance(now);
        let now = self.whole.since;
        let before = self.threads.get(&thread).map(|known| (known.process, known.state));
        let process = before.map_or(process, |before| before.0);
        self.course.lanes.set(now, thread, process, self.doing(state));
        self.group(process, now);
        if self.source == Source::Recorded {
            self.tell(thread, now, state != State::Running);
            if matches!(state, State::Running | State::Ready) {
                self.end_of_all_waiting();
            }
        }
        if let Some((_, old)) = before {
            self.whole.count(old, -1);
        }
        self.whole.count(state, 1);
        if let Some((group, _)) = self.processes.get_mut(&process) {
            if let Some((_, old)) = before {
                group.count(old, -1);
            }
            group.count(state, 1);
            group.pending = 0;
        }
        let before =
            self.threads.insert(thread, Thread { process, state, pending: 0, began: now, learned: false });
        if let Some(before) = before {
            self.close(&before, now, matches!(state, State::Running | State::Ready));
        }
    }

    /// Whether a thread that was runnable when records began has run since, if that was not known.
    fn tell(&mut self, thread: u32, now: u64, ran: bool) {
        let Some(at) = self.unsure.threads.iter().position(|known| *known == thread) else { return };
        self.unsure.threads.swap_remove(at);
        let sums = &mut self.sums[Source::Recorded as usize];
        let past = now - self.unsure.since;
        let of_thread = if ran { &mut sums.thread_running } else { &mut sums.thread_ready };
        *of_thread += past;
        self.unsure.alone.retain_mut(|(past, threads)| {
            let Some(at) = threads.iter().position(|known| *known == thread) else { return true };
            threads.swap_remove(at);
            let reported = ran || threads.is_empty();
            let of_wall = if ran { &mut sums.running } else { &mut sums.ready };
            *of_wall += if reported { *past } else { 0 };
            !reported
        });
    }

    /// Threads of which no record has come ran all the time, as far as others left CPUs to them.
    fn tell_all(&mut self) {
        let free = self.cpus.saturating_sub(self.unsure.most_others) as usize;
        for (place, thread) in self.unsure.threads.clone().into_iter().enumerate() {
            self.tell(thread, self.whole.since, place < free);
        }
    }

    /// A thread is about to run: if all waited until now, that is over.
    fn end_of_all_waiting(&mut self) {
        let spent = self.spent();
        let sums = &mut self.sums[self.source as usize];
        match spent {
            Spent::Waiting(reason) => sums.all_waited.count(reason, 1),
            Spent::Unknown(_) => sums.unknown_all_waited += 1,
            Spent::Running | Spent::Ready | Spent::Absent => {}
        }
    }

    /// A thread does something else: whether the reason of its wait was read. `woken`: it waits no more.
    fn close(&mut self, thread: &Thread, now: u64, woken: bool) {
        let ns = now.saturating_sub(thread.began);
        let own = self.processes.get_mut(&thread.process).map(|(_, seen)| &mut seen.unread);
        for unread in [Some(&mut self.unread), own].into_iter().flatten() {
            match thread.state {
                State::Waiting(Some(reason)) if thread.learned => unread.read(ns, reason),
                State::Waiting(None) => unread.unread(ns, thread.pending),
                _ => {}
            }
        }
        if woken && self.source == Source::Recorded {
            let sums = &mut self.sums[self.source as usize];
            match thread.state {
                State::Waiting(Some(reason)) => sums.wakes.count(reason, 1),
                State::Waiting(None) => sums.unknown_wakes += 1,
                State::Running | State::Ready => {}
            }
        }
    }

    /// Why a waiting thread waits, found out since it began to.
    pub(crate) fn learn(&mut self, now: u64, thread: u32, reason: Reason) {
        self.advance(now);
        let Some(known) = self.threads.get(&thread) else { return };
        match known.state {
            State::Waiting(None) => {}
            // What it waits for is known better from now on.
            State::Waiting(Some(known_as)) if self.rules.is_readiness(known_as) => {
                let process = known.process;
                self.set(now, thread, process, State::Waiting(Some(reason)));
                return;
            }
            _ => return,
        }
        let (pending, process, began) = (known.pending, known.process, known.began);
        self.group(process, now);
        let of_process = self.processes.get(&process).map_or(0, |(group, _)| group.pending);
        let sums = &mut self.sums[self.source as usize];
        // What was given away under the other source stays unknown: sums never go below zero.
        let moved = pending.min(sums.unknown);
        sums.unknown -= moved;
        sums.waits.count(reason, moved);
        let waited = now.saturating_sub(began).min(sums.thread_unknown);
        sums.thread_unknown -= waited;
        sums.thread_waits.count(reason, waited);
        if self.stages.is_used() {
            // A thread that waits stays in its stage; only one of its process or of the program may change
            // meanwhile.
            let got = self.stages.of(process, thread);
            let moved = (moved as f64).min(got.unknown);
            got.unknown -= moved;
            *got.waits.entry(reason).or_default() += moved;
        }
        let doing = self.doing(State::Waiting(Some(reason)));
        self.course.lanes.learn(thread, doing);
        // Its time has just been given to the reason: nothing of it is unread.
        if let Some(known) = self.threads.get_mut(&thread) {
            known.pending = 0;
            known.began = now;
        }
        self.set(now, thread, process, State::Waiting(Some(reason)));
        if let Some((group, seen)) = self.processes.get_mut(&process)
            && let Some(known) = group.reason(None, self.rules)
        {
            let moved = of_process.min(seen.unknown);
            seen.unknown -= moved;
            seen.waits.count(known, moved);
        }
        if let Some(known) = self.threads.get_mut(&thread) {
            known.began = began;
            known.learned = true;
        }
    }

    /// A thread is gone.
    pub(crate) fn remove(&mut self, now: u64, thread: u32) {
        self.advance(now);
        let now = self.whole.since;
        let Some(process) = self.threads.get(&thread).map(|known| known.process) else { return };
        self.group(process, now);
        self.course.lanes.end(now, thread);
        if self.source == Source::Recorded {
            self.tell(thread, now, true);
        }
        if let Some(known) = self.threads.remove(&thread) {
            self.close(&known, now, false);
            self.whole.count(known.state, -1);
            if let Some((group, _)) = self.processes.get_mut(&process) {
                group.count(known.state, -1);
                group.pending = 0;
            }
        }
    }

    /// So many threads of other programs are runnable in the sample that comes next; as many as there are
    /// CPUs where it is not known.
    pub(crate) fn beside(&mut self, others: Option<u32>) {
        self.others = others.unwrap_or(self.cpus);
    }

    /// What all threads did since the scan before: `(thread, process, state)`. Threads that are not named are
    /// gone.
    pub(crate) fn scan(&mut self, now: u64, states: &[(u32, u32, State)]) {
        let before = self.whole.since;
        let gone: Vec<u32> = {
            let there: std::collections::HashSet<u32> = states.iter().map(|state| state.0).collect();
            self.threads.keys().copied().filter(|id| !there.contains(id)).collect()
        };
        for thread in gone {
            self.remove(before, thread);
        }
        for (thread, process, state) in states {
            self.set(before, *thread, *process, *state);
        }
        self.advance(now);
        let now = self.whole.since;
        if self.stages.is_used() && self.source == Source::Scanned {
            self.scan_in_stages(now.saturating_sub(before));
        }
        for of_one in states.chunk_by(|a, b| a.1 == b.1) {
            self.group(of_one[0].1, now);
        }
    }

    /// From now on states come from elsewhere.
    pub(crate) fn switch_source(&mut self, now: u64, source: Source) {
        self.advance(now);
        self.tell_all();
        self.source = source;
        let now = self.whole.since;
        if source == Source::Recorded {
            let runnable = self.threads.iter().filter(|(_, thread)| thread.state == State::Running);
            self.unsure.threads = runnable.map(|(id, _)| *id).collect();
            self.unsure.since = now;
            self.unsure.most_others = 0;
        }
        for (id, thread) in &self.threads {
            let doing = self.doing(thread.state);
            self.course.lanes.set(now, *id, thread.process, doing);
        }
    }

    /// What a thread waits for, as far as it is known.
    pub(crate) fn waits_for(&self, thread: u32) -> Category {
        match self.threads.get(&thread).map(|known| known.state) {
            Some(State::Waiting(Some(reason))) => self.rules.category(reason),
            _ => Category::Unexplained,
        }
    }

    /// Where states come from.
    pub(crate) fn source(&self) -> Source {
        self.source
    }

    pub(crate) fn end(mut self, now: u64) -> Swept {
        self.advance(now);
        self.tell_all();
        let now = self.whole.since;
        for thread in std::mem::take(&mut self.threads).into_values() {
            self.close(&thread, now, false);
        }
        let processes: Vec<u32> = self.processes.keys().copied().collect();
        for process in processes {
            self.group(process, now);
        }
        let (stages, marks) = self.stages.finish(now);
        self.course.lanes.end_all(now);
        self.course.marks = marks;
        let [scanned, recorded] = self.sums;
        Swept {
            scanned,
            recorded,
            unread: self.unread,
            most: self.most,
            processes: self.processes.into_iter().map(|(pid, (_, seen))| (pid, seen)).collect(),
            course: self.course,
            stages,
        }
    }
}

#[cfg(test)]
mod tests;
