//! Records in order of time: the states of the sweep, and samples by what they fell in.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Category;
use crate::account::mappings::{Map, Mappings};
use crate::account::mix::{KERNEL, Mix, Side, Spot, WITHOUT_NAME};
use crate::account::path::{Of, Path};
use crate::account::records::{Record, What};
use crate::account::sweep::{Source, State, Sweep};
use crate::rules::{CALLERS, Fit, Reason, Rules};

const MOST_PROCESSES: usize = 4096;
const MOST_THREADS: usize = 65_536;
/// Nobody who waits for a process comes later than so long after its last record.
const LONGEST_EXIT_NS: u64 = 500_000_000;

/// A function of user code, or where its name would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its name; `None`: the file has none for it.
    pub function: Option<Rc<str>>,
    /// The file, without its folder.
    pub object: Rc<str>,
}

/// Who knows the names of addresses.
pub(crate) trait Names {
    /// The name for the file of a mapping that a process has now.
    fn mapped(&mut self, pid: u32, map: &Map) -> Rc<str>;
    /// The kernel's function.
    fn kernel(&mut self, address: u64) -> Rc<str>;
    /// A function of user code: an offset in a file, or an address of a process where no file is. `None`: the
    /// file is still being read.
    fn user(&mut self, file: Option<(&Rc<str>, u64)>, pid: u32, address: u64) -> Option<Place>;
}

/// What an event of a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// Time on the CPU: nanoseconds of thread time.
    Cpu(u64),
    /// The thread leaves its CPU now; the stack says why.
    Switch,
    /// A page fault.
    Fault,
    /// The thread ends the wait of another one.
    Wake,
    /// A signal comes to the thread.
    Signal,
}

struct Function {
    name: Rc<str>,
    wait: Fit,
    busy: Fit,
}

/// See the module.
pub(crate) struct Stream<'a, N> {
    rules: &'a Rules,
    /// Who knows names.
    pub names: N,
    events: HashMap<u64, Event>,
    maps: Mappings,
    threads: HashMap<u32, Rc<str>>,
    children: HashMap<u32, u32>,
    kernel: HashMap<u64, Rc<Function>>,
    user: HashMap<(Rc<str>, Rc<str>), (u64, u64)>,
    /// Of a thread, the reason that its stack gave just before it left its CPU.
    leaving: HashMap<u32, (u64, Option<Reason>)>,
    /// When the thread left its CPU to wait.
    pub waiting: HashMap<u32, u64>,
    /// Threads that wait for descriptors of which nobody has said lately what they are: processes, and since
    /// when.
    pub polling: HashMap<u32, (u32, u64)>,
    /// What threads wait for that poll, and when that was found out.
    polled: HashMap<u32, (Reason, u64)>,
    /// Who ends waits, where that is recorded.
    pub path: Option<Path>,
    /// Samples.
    pub mix: Mix,
    /// Threads that left a CPU.
    pub switches: u64,
    /// Threads and processes that were started.
    pub starts: u64,
    /// Records lost.
    pub lost: u64,
    /// Processes whose last record has come, when, and who started them.
    exiting: Vec<(u64, u32, u32)>,
    unexplained: Reason,
    other_kernel_work: Reason,
    exit: Reason,
    compute: Reason,
}

impl<'a, N: Names> Stream<'a, N> {
    /// Without any mappings. `events`: what the ids of samples stand for.
    pub(crate) fn of(rules: &'a Rules, names: N, events: HashMap<u64, Event>) -> Self {
        Self {
            rules,
            names,
            events,
            maps: Mappings::default(),
            threads: HashMap::new(),
            children: HashMap::new(),
            kernel: HashMap::new(),
            user: HashMap::new(),
            leaving: HashMap::new(),
            waiting: HashMap::new(),
            polling: HashMap::new(),
            polled: HashMap::new(),
            path: None,
            mix: Mix::default(),
            switches: 0,
            starts: 0,
            lost: 0,
            unexplained: rules.whole(Category::Unexplained),
            exiting: Vec::new(),
            other_kernel_work: rules.whole(Category::KernelCpu),
            exit: rules.whole(Category::StartAndExit),
            compute: rules.whole(Category::Compute),
        }
    }

    /// What the ids of samples stand for from now on.
    pub(crate) fn has(&mut self, events: HashMap<u64, Event>) {
        self.events = events;
    }

    /// Processes that were started and have not ended: their parents.
    pub(crate) fn started_processes(&self) -> &HashMap<u32, u32> {
        &self.children
    }

    /// The mappings of a process that ran before it was followed.
    pub(crate) fn has_mapped(&mut self, pid: u32, mut maps: Vec<Map>) {
        for map in &mut maps {
            map.path = self.names.mapped(pid, map);
        }
        self.maps.has(pid, maps);
    }

    /// The name of a thread that ran before.
    pub(crate) fn is_named(&mut self, tid: u32, name: &str) {
        self.threads.insert(tid, Rc::from(name));
    }

    /// All is recorded from now on: what a scan has seen, and the parents of processes.
    pub(crate) fn resume(&mut self, now: u64, states: &[(u32, u32, State)], parent: impl Fn(u32) -> u32) {
        if let Some(path) = &mut self.path {
            let of = |thread| self.threads.get(&thread);
            path.resume(
                now,
                states.iter().map(|(thread, process, state)| {
                    let of = Of { process: *process, thread: *thread, name: of(*thread) };
                    (of, parent(*process), *state)
                }),
            );
        }
    }

    /// What stands for waits of which no rule speaks.
    pub(crate) fn unexplained(&self) -> Reason {
        self.unexplained
    }

    /// The next record; times never decrease. Whether it was taken: if not, the names of its functions are
    /// still being read, and it is to come again.
    #[must_use]
    pub(crate) fn take(&mut self, record: &Record, sweep: &mut Sweep<'_>) -> bool {
        let (time, pid, tid) = (record.time, record.pid, record.tid);
        let recorded = sweep.source() == Source::Recorded;
        self.follow(record, sweep);
        self.maps.take(record, |map| self.names.mapped(pid, map));
        match &record.what {
            What::Sample { event, kernel, user } => match self.events.get(event).copied() {
                Some(Event::Cpu(period)) if recorded => {
                    sweep.advance(time);
                    return self.on_cpu(record, kernel, user, period, sweep).is_some();
                }
                Some(Event::Switch) => {
                    let reason = self.waits_for(kernel);
                    if self.leaving.len() < MOST_THREADS {
                        self.leaving.insert(tid, (time, reason));
                    }
                }
                Some(Event::Fault) => return self.fault(pid, tid, user).is_some(),
                _ => {}
            },
            What::Out { preempted } if recorded => {
                self.switches += 1;
                self.waiting.remove(&tid);
                let state = self.left(time, tid, *preempted);
                if let Some(path) = &mut self.path {
                    let of = Of { process: pid, thread: tid, name: self.threads.get(&tid) };
                    path.leaves(time, of, state != State::Ready);
                }
                sweep.set(time, tid, pid, self.with_descriptors(record, state));
                if !preempted && self.waiting.len() < MOST_THREADS {
                    self.waiting.insert(tid, time);
                }
            }
            What::In if recorded => {
                self.waiting.remove(&tid);
                self.polling.remove(&tid);
                self.have_ended(time, pid, sweep);
                sweep.set(time, tid, pid, State::Running);
            }
            What::Name { exec, name } => {
                if *exec && recorded {
                    sweep.set(time, tid, pid, State::Running);
                }
                if self.threads.len() < MOST_THREADS {
                    self.threads.insert(tid, Rc::from(name.as_str()));
                }
            }
            What::Start { parent, .. } => self.started(record, *parent, sweep),
            What::End => {
                self.threads.remove(&tid);
                self.leaving.remove(&tid);
                self.waiting.remove(&tid);
                self.polling.remove(&tid);
                self.polled.remove(&tid);
                let parent = if pid == tid { self.children.remove(&pid) } else { None };
                if recorded {
                    self.ends(record, parent, sweep);
                }
            }
            What::Lost(records) => self.lost += records,
            What::Learned { since, reason } if recorded && self.waiting.get(&tid) == Some(since) => {
                sweep.learn(time, tid, *reason);
                if self.polling.remove(&tid).is_some() && self.polled.len() < MOST_THREADS {
                    self.polled.insert(tid, (*reason, time));
                }
            }
            What::Learned { .. }
            | What::Out { .. }
            | What::In
            | What::Map { .. }
            | What::Wake { .. }
            | What::ChildEnded => {}
        }
        true
    }

    /// Tells the path what else it goes by than threads that leave their CPU, before the sweep hears of it.
    fn follow(&mut self, record: &Record, sweep: &Sweep<'_>) {
        let Some(path) = self.path.as_mut().filter(|_| sweep.source() == Source::Recorded) else { return };
        let (time, thread) = (record.time, record.tid);
        let of = Of { process: record.pid, thread, name: self.threads.get(&thread) };
        match &record.what {
            What::In => path.runs(time, of, sweep.waits_for(thread)),
            What::Wake { thread: woken } => path.wakes(time, thread, *woken, sweep.waits_for(*woken)),
            What::ChildEnded => path.child_ended(time, thread),
            What::Name { exec, name } => {
                path.is_named(time, Of { name: Some(&Rc::from(name.as_str())), ..of }, *exec);
            }
            What::Start { parent, by } => path.starts(time, Of { name: None, ..of }, *parent, *by),
            What::End => path.ends(time, thread),
            _ => {}
        }
    }

    /// A thread ends. Newer kernels (6.18) close a process's events before they take its memory down: until
    /// its parent goes on, that is what it does.
    fn ends(&mut self, record: &Record, parent: Option<u32>, sweep: &mut Sweep<'_>) {
        let (time, pid, tid) = (record.time, record.pid, record.tid);
        match parent {
            Some(parent) if self.exiting.len() < MOST_PROCESSES => {
                sweep.set(time, tid, pid, State::Waiting(Some(self.exit)));
                self.exiting.push((time, pid, parent));
            }
            _ => sweep.remove(time, tid),
        }
    }

    /// A thread of a process goes on: children of it that were ending have ended.
    fn have_ended(&mut self, time: u64, process: u32, sweep: &mut Sweep<'_>) {
        self.exiting.retain(|(since, pid, parent)| {
            let is_over = *parent == process || since + LONGEST_EXIT_NS < time;
            if is_over {
                sweep.remove(time, *pid);
            }
            !is_over
        });
    }

    /// The state of a thread that has left its CPU.
    fn left(&mut self, time: u64, tid: u32, preempted: bool) -> State {
        // The stack was taken in the same switch: more than this before it belongs to another one, whose
        // record was lost.
        const SAME_SWITCH_NS: u64 = 1_000_000;
        let stack = self.leaving.remove(&tid);
        if preempted {
            return State::Ready;
        }
        let reason = match stack {
            Some((at, reason)) if time.saturating_sub(at) < SAME_SWITCH_NS => {
                Some(reason.unwrap_or(self.unexplained))
            }
            _ => None,
        };
        let gave_up = reason.is_some_and(|reason| self.rules.category(reason) == Category::RunQueueWait);
        if gave_up { State::Ready } else { State::Waiting(reason) }
    }

    /// The kernel's stack does not say what descriptors a thread waits for that polls; what it waited for the
    /// last time does.
    fn with_descriptors(&mut self, record: &Record, state: State) -> State {
        const LATELY_NS: u64 = 50_000_000;
        let State::Waiting(Some(reason)) = state else { return state };
        if !self.rules.is_readiness(reason) {
            return state;
        }
        let known = self.polled.get(&record.tid);
        if known.is_none_or(|known| known.1 + LATELY_NS < record.time) && self.polling.len() < MOST_THREADS {
            self.polling.insert(record.tid, (record.pid, record.time));
        }
        State::Waiting(Some(known.map_or(reason, |known| known.0)))
    }

    fn started(&mut self, record: &Record, parent: u32, sweep: &mut Sweep<'_>) {
        let (pid, tid) = (record.pid, record.tid);
        self.starts += 1;
        if pid != parent && self.children.len() < MOST_PROCESSES {
            self.children.insert(pid, parent);
        }
        if sweep.source() == Source::Recorded {
            sweep.set(record.time, tid, pid, State::Ready);
        }
    }

    fn function(&mut self, address: u64) -> Rc<Function> {
        if let Some(known) = self.kernel.get(&address) {
            return Rc::clone(known);
        }
        let name = self.names.kernel(address);
        let function =
            Rc::new(Function { wait: self.rules.wait_fit(&name), busy: self.rules.busy_fit(&name), name });
        if self.kernel.len() < MOST_THREADS {
            self.kernel.insert(address, Rc::clone(&function));
        }
        function
    }

    fn waits_for(&mut self, kernel: &[u64]) -> Option<Reason> {
        let mut stack = Fit::default();
        for address in kernel {
            stack = stack.and(self.function(*address).wait);
        }
        self.rules.wait_by(stack)
    }

    /// The file that is mapped at an address, and the offset in it.
    fn file(&self, pid: u32, address: u64) -> Option<(Rc<str>, u64)> {
        let map = self.maps.at(pid, address)?;
        Some((Rc::clone(&map.path), (address - map.start).saturating_add(map.offset)))
    }

    fn place(&mut self, pid: u32, address: u64) -> Option<Place> {
        let file = self.file(pid, address);
        let file = file.as_ref().map(|(path, offset)| (path, *offset));
        self.names.user(file, pid, address)
    }

    fn user_fit(&mut self, key: (Rc<str>, Rc<str>)) -> (u64, u64) {
        if let Some(known) = self.user.get(&key) {
            return *known;
        }
        let found = self.rules.user_fit(&key.0, &key.1);
        if self.user.len() < MOST_THREADS {
            self.user.insert(key, found);
        }
        found
    }

    /// The places of a chain, the running one first, with what they say together; `None`: names of them are
    /// still being read.
    fn places(&mut self, pid: u32, tid: u32, user: &[u64]) -> Option<(Vec<Place>, u64)> {
        let mut fit = self.threads.get(&tid).map_or(0, |name| self.rules.thread_fit(name));
        let mut places = Vec::with_capacity(user.len());
        for (at, address) in user.iter().enumerate() {
            // A caller's address is where it will go on: the call is before it.
            let address = if at == 0 { *address } else { address.wrapping_sub(1) };
            let place = self.place(pid, address)?;
            if at <= CALLERS {
                let name = place.function.clone().unwrap_or_default();
                let key = (name, Rc::clone(&place.object));
                let (leaf, caller) = self.user_fit(key);
                fit |= if at == 0 { leaf } else { caller };
            }
            places.push(place);
        }
        Some((places, fit))
    }

    /// `None`: names of its functions are still being read, and nothing was done.
    fn on_cpu(
        &mut self,
        record: &Record,
        kernel: &[u64],
        user: &[u64],
        period: u64,
        sweep: &mut Sweep<'_>,
    ) -> Option<()> {
        let (places, fit) = self.places(record.pid, record.tid, user)?;
        let weight = period as f64 / f64::from(sweep.running());
        let mut names: Vec<Rc<str>> = Vec::new();
        let mut stack = Fit::default();
        for address in kernel {
            let function = self.function(*address);
            stack = stack.and(function.busy);
            names.push(Rc::clone(&function.name));
        }
        let reason = if kernel.is_empty() {
            self.rules.user_by(fit).unwrap_or(self.compute)
        } else {
            let allocating = self.rules.is_allocating(fit);
            self.rules.busy_by(stack, allocating).unwrap_or(self.other_kernel_work)
        };
        let category = self.rules.category(reason);
        self.mix.sample(reason, weight);
        let stages = sweep.stages();
        if stages.is_used() {
            stages.sample(record.pid, record.tid, reason, weight);
        }
        sweep.sample(record.time, record.tid, category, weight);
        let file = user.first().and_then(|address| self.file(record.pid, *address));
        if let Some(leaf) = names.first() {
            self.mix.in_kernel(reason, weight);
            self.mix.function(category, leaf, KERNEL, weight);
            if let Some((path, offset)) = file.filter(|_| self.rules.is_fault(reason)) {
                self.mix.touched(&path, offset, weight);
            }
        } else if let Some(leaf) = places.first() {
            self.mix.is_named(leaf.function.is_some(), weight);
            let name = leaf.function.as_deref().unwrap_or(WITHOUT_NAME);
            self.mix.function(category, name, &leaf.object, weight);
            if let Some((path, offset)) = file {
                self.mix.at(&path, offset, reason, weight);
                let spot = Spot { function: leaf.function.clone(), object: Rc::clone(&leaf.object), weight };
                self.mix.spot(category, &path, offset, spot);
            }
        }
        let shown = |place: &Place| match &place.function {
            Some(name) => Rc::clone(name),
            None => Rc::from(format!("[{}]", place.object)),
        };
        let frames = places.iter().rev().map(shown).chain(names.iter().rev().map(Rc::clone));
        let side = if kernel.is_empty() { Side::User } else { Side::Kernel };
        self.mix.stack(category, side, frames.collect(), weight);
        Some(())
    }

    /// As [`Self::on_cpu`].
    fn fault(&mut self, pid: u32, tid: u32, user: &[u64]) -> Option<()> {
        let (_, fit) = self.places(pid, tid, user)?;
        if let Some((path, offset)) = user.first().and_then(|address| self.file(pid, *address)) {
            self.mix.touched(&path, offset, 0.0);
        }
        let reason = self.rules.user_by(fit).unwrap_or(self.compute);
        self.mix.fault(reason);
        Some(())
    }
}

#[cfg(test)]
mod tests;
