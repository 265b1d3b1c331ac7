//! Simulated schedules: threads that compute, take locks, use a pipe, sleep and wait for the outside, on a
//! few CPUs that other programs use too. What each thread did is known, so a ledger made from samples or
//! records of it can be held against the truth.

use latlab_stats::rng::Rng;

use crate::account::estimate::{Ledger, ledger};
use crate::account::sweep::{Source, State, Sweep};
use crate::account::tally::{Delay, Tally, Usage};
use crate::costs::{Cost, Costs};
use crate::rules::{Reason, Rules};
use crate::{Category, Counted};

/// Of simulated time, nanoseconds.
const TICK: u64 = 50_000;
/// Four tenths of a second.
const TICKS: u64 = 8_000;
/// Ticks that a thread keeps its CPU while another one is ready.
const TURN: u64 = 60;
/// Ticks between samples of `/proc`.
const BETWEEN: u64 = 20;
/// See [`Way::RecordedLate`], nanoseconds.
const LATE: u64 = 10_000;
/// Ticks that records and samples take turns for.
const WINDOW: u64 = 1_000;
/// The main thread, and the process.
const MAIN: u32 = 1;

/// What a thread does next, with ticks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Compute(u64),
    /// Waits for the outside.
    Outside(Category, u64),
    /// Takes the lock, holds it for so much CPU time, gives it back.
    Locked(u64),
    /// Puts one item into the pipe, which holds four.
    Put,
    /// Takes one.
    Take,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Running,
    Ready,
    Waits(Category),
}

#[derive(Debug)]
struct Thread {
    /// Done again and again.
    steps: Vec<Step>,
    at: usize,
    /// CPU time or waiting that is left of the step.
    left: u64,
    does: Does,
    holds: bool,
    /// Ticks for which it has done so.
    since: u64,
}

impl Thread {
    fn becomes(&mut self, does: Does) {
        if self.does != does {
            self.does = does;
            self.since = 0;
        }
    }
}

/// The program and the machine.
#[derive(Debug)]
pub(crate) struct Schedule {
    cpus: u32,
    threads: Vec<Thread>,
    /// Threads of other programs that always compute.
    others: u32,
    /// All threads are as likely to have a CPU; else each CPU is lost to the others independently of the
    /// rest.
    is_balanced: bool,
    items: u32,
    random: Rng,
}

/// What was really so, thread time and wall time in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub cpu: u64,
    pub queue: u64,
    pub running: u64,
    pub ready: u64,
    pub waits: Counted,
}

/// How the program is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sampled,
    Recorded,
    /// Recorded; that a thread runs is written [`LATE`] after its CPU time began to count.
    RecordedLate,
    /// By turns.
    Both,
}

fn whole(category: Category) -> Reason {
    Rules::built_in().whole(category)
}

fn costs() -> Costs {
    let none = Cost::default();
    Costs {
        fault: none,
        fault_in_user: none,
        unmap: none,
        call: none,
        send: none,
        byte: none,
        cold_byte: none,
        device: none,
        switch: none,
        sleep: none,
        process: none,
    }
}

impl Schedule {
    /// One of up to six threads on up to four CPUs.
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let mut below = |most: u64| random.next_u64() % most;
        let cpus = u32::try_from(1 + below(4)).unwrap();
        let others = u32::try_from([0, 0, 1, 2][usize::try_from(below(4)).unwrap()]).unwrap();
        let is_balanced = below(2) == 1;
        let pairs = below(2);
        let many = 1 + below(5);
        let longest = [8, 40, 400][usize::try_from(below(3)).unwrap()];
        let mut threads = Vec::new();
        for at in 0..many + pairs {
            let mut steps = Vec::new();
            for _ in 0..=below(3) {
                steps.push(Step::Compute(1 + below(longest)));
                steps.push(match below(5) {
                    0 => Step::Outside(Category::Sleep, 1 + below(200)),
                    1 => Step::Outside(Category::Network, 1 + below(100)),
                    2 => Step::Outside(Category::StorageWait, 1 + below(40)),
                    3 => Step::Locked(1 + below(longest / 4 + 1)),
                    _ => Step::Outside(Category::Sleep, 1 + below(20)),
                });
            }
            if pairs == 1 && at < 2 {
                steps.push(if at == 0 { Step::Put } else { Step::Take });
            }
            threads.push(Thread { steps, at: 0, left: 1, does: Does::Ready, holds: false, since: 0 });
        }
        Self { cpus, threads, others, is_balanced, items: 0, random }
    }

    /// The next step of a thread that ran to the end of its last one, or what it waits for, which may be had
    /// now.
    fn go_on(&mut self, id: usize) {
        let free = self.threads.iter().all(|thread| !thread.holds);
        let thread = &mut self.threads[id];
        if thread.does == Does::Running {
            thread.holds = false;
            thread.at = (thread.at + 1) % thread.steps.len();
        }
        let waits = match thread.steps[thread.at] {
            Step::Compute(ticks) => {
                thread.left = ticks;
                None
            }
            Step::Outside(category, ticks) if thread.does == Does::Running => {
                thread.left = ticks;
                Some(category)
            }
            // It is over, and the thread has to run to see that.
            Step::Outside(..) => {
                thread.left = 1;
                None
            }
            Step::Locked(ticks) => {
                thread.holds = free;
                thread.left = if free { ticks } else { 0 };
                (!free).then_some(Category::Locks)
            }
            Step::Put | Step::Take => {
                let puts = matches!(thread.steps[thread.at], Step::Put);
                let may = if puts { self.items < 4 } else { self.items > 0 };
                if may {
                    self.items = if puts { self.items + 1 } else { self.items - 1 };
                }
                thread.left = u64::from(may);
                (!may).then_some(Category::Pipe)
            }
        };
        let does = match waits {
            Some(category) => Does::Waits(category),
            None if thread.does == Does::Running => Does::Running,
            None => Does::Ready,
        };
        thread.becomes(does);
    }

    /// One tick: what ends ends, and the CPUs are given to those who are ready, the longest waiting first.
    fn tick(&mut self) {
        for id in 0..self.threads.len() {
            let thread = &mut self.threads[id];
            thread.since += 1;
            match thread.does {
                Does::Ready => continue,
                Does::Waits(Category::Locks | Category::Pipe) => {}
                Does::Running | Does::Waits(_) => thread.left -= 1,
            }
            if thread.left == 0 {
                self.go_on(id);
            }
        }
        let mut wants: Vec<usize> =
            (0..self.threads.len()).filter(|id| !matches!(self.threads[*id].does, Does::Waits(_))).collect();
        let free = self.cpus as usize - self.taken(wants.len());
        wants.sort_by_key(|id| {
            let thread = &self.threads[*id];
            let stays = thread.does == Does::Running && thread.since < TURN;
            let waited = if thread.does == Does::Ready { thread.since } else { 0 };
            (!stays, u64::MAX - waited)
        });
        for (place, id) in wants.into_iter().enumerate() {
            self.threads[id].becomes(if place < free { Does::Running } else { Does::Ready });
        }
    }

    /// CPUs that others have while so many threads want one: as often as there are of them, and no more at
    /// once.
    fn taken(&mut self, wanting: usize) -> usize {
        let (cpus, others, mut taken) = (self.cpus as usize, self.others as usize, 0);
        for cpu in 0..cpus {
            let (theirs, all) = if self.is_balanced {
                (others - taken, (wanting + others).saturating_sub(cpu))
            } else {
                (others, others + cpus)
            };
            if taken < others && self.random.uniform() * (all as f64) < theirs as f64 {
                taken += 1;
            }
        }
        taken
    }

    fn spent(&self) -> Does {
        let any = |does: Does| self.threads.iter().any(|thread| thread.does == does);
        if any(Does::Running) {
            return Does::Running;
        }
        if any(Does::Ready) {
            return Does::Ready;
        }
        if let Does::Waits(category) = self.threads[0].does
            && category.is_outside()
        {
            return self.threads[0].does;
        }
        let waits = self.threads.iter().filter_map(|thread| match thread.does {
            Does::Waits(category) => Some(category),
            _ => None,
        });
        Does::Waits(waits.min_by_key(|category| category.wait_order()).unwrap())
    }

    /// What `/proc` shows of all threads.
    fn sampled(&self) -> Vec<(u32, u32, State)> {
        (MAIN..).zip(&self.threads).map(|(id, thread)| (id, MAIN, sampled(thread.does))).collect()
    }

    /// Some time of it, observed in this way.
    pub(crate) fn observed(mut self, way: Way) -> (Tally, Truth) {
        let mut sweep = Sweep::begin(Rules::built_in(), 0, MAIN, self.cpus);
        sweep.beside(Some(self.others));
        let mut truth = Truth::default();
        let (mut scans, mut next, mut recorded_ns) = (0, 0, 0);
        let mut recording = false;
        for tick in 0..TICKS {
            let now = tick * TICK;
            let before: Vec<Does> = self.threads.iter().map(|thread| thread.does).collect();
            if tick > 0 {
                self.tick();
            }
            let records = match way {
                Way::Sampled => false,
                Way::Recorded | Way::RecordedLate => true,
                Way::Both => tick / WINDOW % 2 == 1,
            };
            if records && !recording {
                // A sample says what records begin with.
                sweep.scan(now, &self.sampled());
                scans += 1;
                sweep.switch_source(now, Source::Recorded);
            } else if recording && !records {
                sweep.switch_source(now, Source::Scanned);
                next = tick + BETWEEN;
            } else if records {
                let mut late: Vec<u32> = Vec::new();
                for ((id, thread), was) in (MAIN..).zip(&self.threads).zip(&before) {
                    match recorded(*was, thread.does) {
                        Some(State::Running) if way == Way::RecordedLate => late.push(id),
                        Some(state) => sweep.set(now, id, MAIN, state),
                        None => {}
                    }
                }
                for id in late {
                    sweep.set(now + LATE, id, MAIN, State::Running);
                }
            } else if tick >= next {
                sweep.scan(now, &self.sampled());
                scans += 1;
                next = tick + BETWEEN / 2 + self.random.next_u64() % BETWEEN;
            }
            recording = records;
            for thread in &self.threads {
                match thread.does {
                    Does::Running => truth.cpu += TICK,
                    Does::Ready => {
                        truth.queue += TICK;
                        recorded_ns += if recording { TICK } else { 0 };
                    }
                    Does::Waits(_) => {}
                }
            }
            match self.spent() {
                Does::Running => truth.running += TICK,
                Does::Ready => truth.ready += TICK,
                Does::Waits(category) => truth.waits.count(whole(category), TICK),
            }
        }
        let end = TICKS * TICK;
        if !recording {
            sweep.scan(end, &self.sampled());
            scans += 1;
        }
        let swept = sweep.end(end);
        let tally = Tally {
            runs: 1,
            wall_ns: end,
            wall_range_ns: (end, end),
            scanned: swept.scanned,
            recorded: swept.recorded,
            unread: swept.unread,
            usage: Usage { user_ns: truth.cpu, queue_ns: Some(truth.queue), ..Usage::default() },
            delay: Delay { recorded_ns, ..Delay::default() },
            recording_ns: if way == Way::RecordedLate { truth.cpu } else { 0 },
            cpus: self.cpus,
            processes: 1,
            most_threads: swept.most,
            scans,
            ..Tally::default()
        };
        (tally, truth)
    }
}

/// A thread's state as `/proc` shows it.
fn sampled(does: Does) -> State {
    match does {
        Does::Running | Does::Ready => State::Running,
        Does::Waits(category) => State::Waiting(Some(whole(category))),
    }
}

/// What is recorded of a change: a thread that is woken is still seen waiting until it gets a CPU.
fn recorded(was: Does, does: Does) -> Option<State> {
    match does {
        _ if was == does => None,
        Does::Running => Some(State::Running),
        Does::Ready if was == Does::Running => Some(State::Ready),
        Does::Ready => None,
        Does::Waits(category) => Some(State::Waiting(Some(whole(category)))),
    }
}

/// The ledger of a tally without any cost of kernel work: all CPU time is user code.
pub(crate) fn ledger_of(tally: &Tally) -> Ledger {
    ledger(tally, Rules::built_in(), &costs())
}

fn share(ledger: &Ledger, category: Category) -> f64 {
    ledger.rows.iter().filter(|row| row.name == category).map(|row| row.share).sum()
}

/// What the kernel's counters allow, of the whole and of each row.
fn assert_allowed(about: &str, tally: &Tally, truth: &Truth, ledger: &Ledger) {
    let cpus = f64::from(tally.cpus);
    let (wall, cpu, queue) = (tally.wall_ns as f64, truth.cpu as f64, truth.queue as f64);
    let about = format!("{about}: {:?} {truth:?}", ledger.rows);
    // A nanosecond of rounding.
    assert!(ledger.running_ns >= cpu / cpus - 1.0, "{about}");
    assert!(ledger.running_ns <= cpu.min(wall) + 1.0, "{about}");
    assert!((ledger.cpu_ns - cpu).abs() <= 1.0, "{about}");
    assert!(share(ledger, Category::RunQueueWait) * wall <= queue + 1.0, "{about}");
    let sum: f64 = ledger.rows.iter().map(|row| row.share).sum();
    assert!((sum - 1.0).abs() < 1e-9 && ledger.closure.holds, "{about}");
    for row in &ledger.rows {
        assert!(row.low <= row.share && row.share <= row.high, "{row:?} of {about}");
        let most = match row.name {
            Category::RunQueueWait => queue,
            // A part of the time on a CPU may be the kernel's.
            Category::UserCpu | Category::KernelCpu => cpu.min(wall),
            _ => wall - cpu / cpus,
        };
        assert!(row.high * wall <= most + 1.0, "{row:?} above {most} of {about}");
    }
}

/// Shares that are worth telling, and those that are neither within five points nor in an interval of at most
/// ±10 points.
fn missed(about: &str, tally: &Tally, truth: &Truth, ledger: &Ledger) -> (usize, Vec<String>) {
    let mut shares = 0;
    let mut missed = Vec::new();
    for category in Category::ALL {
        let ns = match category {
            Category::UserCpu => truth.running,
            Category::RunQueueWait => truth.ready,
            category => truth.waits.of_category(*category, Rules::built_in()),
        };
        let true_share = ns as f64 / tally.wall_ns as f64;
        // All of the kernel's work is recording here.
        let is_of = |name: Category| match category {
            Category::UserCpu => name == Category::UserCpu || name == Category::KernelCpu,
            Category::KernelCpu => false,
            category => name == *category,
        };
        let rows = ledger.rows.iter().filter(|row| is_of(row.name));
        let (reported, low, high) = rows.fold((0.0, 0.0, 0.0), |(reported, low, high), row| {
            (reported + row.share, low + row.low, high + row.high)
        });
        if reported < 0.005 && true_share < 0.005 {
            continue;
        }
        shares += 1;
        let within = high - low <= 0.2 && low <= true_share && true_share <= high;
        if !within && (reported - true_share).abs() > 0.05 {
            missed.push(format!("{about} {category}: {reported:.3} [{low:.3} {high:.3}] of {true_share:.3}"));
        }
    }
    (shares, missed)
}

#[test]
fn no_ledger_contradicts_the_kernel_s_counters_and_shares_are_true() {
    for way in [Way::Sampled, Way::Recorded, Way::RecordedLate, Way::Both] {
        let (mut shares, mut wrong) = (0, Vec::new());
        for seed in 0..60 {
            let (tally, truth) = Schedule::random(seed).observed(way);
            let ledger = ledger_of(&tally);
            let about = format!("{way:?} {seed}");
            assert_allowed(&about, &tally, &truth, &ledger);
            let (reported, missed) = missed(&about, &tally, &truth, &ledger);
            shares += reported;
            wrong.extend(missed);
        }
        assert!(shares > 100 && wrong.len() * 50 <= shares, "{way:?}: of {shares} shares {wrong:#?}");
    }
}
