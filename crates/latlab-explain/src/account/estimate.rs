//! From sums to rows: shares of wall time with intervals.
//!
//! What records give is exact. What scans give is a sample of instants; where the kernel's counters know
//! better (CPU time, run-queue delay), they correct it. Time on the CPU is divided by samples; without any,
//! into user code, which is left whole, and the kernel's work. How much that is the ticks tell; what it was
//! for, counts and the cost of one of each, measured on this machine, if they come to about as much. Where
//! they leave more than a fifth of wall time open, it is left whole as well, with what each part may be of
//! it.

mod kernel;
mod recorded;
mod rows;

use std::collections::BTreeMap;

use self::kernel::Kernel;
use crate::Category;
use crate::account::busy::{Busy, Exact, Seen, busy};
use crate::account::interval::{Range, of_share};
use crate::account::mix::Side;
use crate::account::sampled::{Sampled, Share};
use crate::account::tally::Tally;
use crate::account::woken;
use crate::costs::{Cost, Costs};
use crate::model::{Closure, Method, Row, Stack};
use crate::rules::{Reason, Rules};

/// The kernel's tick, by which it divides CPU time between user code and itself, nanoseconds. 250 Hz is what
/// distributions build with; kernels with 1000 Hz know it better than is said here.
const TICK_NS: f64 = 4e6;
/// Waits that the scans met, as a share of those that the counters know of: less, and they say nothing.
const RARE: f64 = 0.1;
/// Two counts of a process that runs already, user and system time, are in hundredths of a second.
const TWO_COUNTS_NS: f64 = 2e7;
/// Exact CPU time and the watcher's wall time agree no better than this, as a share of wall time.
const CLOCKS: f64 = 0.002;
/// A sample that comes due while its thread leaves the CPU comes when the thread has been back for 10 us (the
/// kernel's `perf_swevent_start_hrtimer`), wherever it is by then; that a timer of a virtual machine is late
/// does as much again.
const DISPLACED_NS: f64 = 15_000.0;
/// The kernel's work around a timed sleep in which no tick comes, as a multiple of what a sleep costs when
/// that is measured: a timer is only set where none comes before it, and setting it is the host's work in a
/// virtual machine.
const UNSEEN_OF_SLEEP: f64 = 1.1;
/// The same around a wait that something else ends: a tick that is due when an idle CPU wakes comes before
/// the program does.
const UNSEEN_OF_WAIT: f64 = 0.5;
/// And no more of the CPU time than this: where threads run for microseconds between waits, their CPU often
/// runs another one meanwhile.
const UNSEEN_AT_MOST: f64 = 0.2;
/// No more of what was recorded is taken for the recording.
const MOST_OF_RECORDED: f64 = 0.5;
/// Samples in the kernel that the model of its work counts as much as.
const MODELLED: f64 = 20.0;
/// Less of the CPU time, of which nothing alike was recorded, is taken for the rest: no interval would show
/// it.
pub(crate) const LEAST_UNLIKE: f64 = 0.02;

/// Nanoseconds of wall time by reason, each with how far it may be off.
#[derive(Debug, Default)]
struct Account {
    sums: BTreeMap<Reason, Vec<(Share, Method)>>,
}

impl Account {
    fn add(&mut self, reason: Reason, ns: f64, range: Range, method: Method) {
        if ns <= 0.0 && range.high <= 0.0 {
            return;
        }
        let share = Share::within(ns.max(0.0), range);
        self.sums.entry(reason).or_default().push((share, method));
    }

    fn exact(&mut self, reason: Reason, ns: f64) {
        self.add(reason, ns, Range { low: ns, high: ns }, Method::Counted);
    }

    fn total(&self) -> f64 {
        self.sums.values().flatten().map(|(share, _)| share.of).sum()
    }
}

/// The ledger of a tally.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Largest first.
    pub rows: Vec<Row>,
    /// Whether all of wall time was given away.
    pub closure: Closure,
    /// All user code, with what the kernel does for its allocator: shares of wall time, from and to.
    pub computing: Range,
    /// Stacks with their share of wall time.
    pub stacks: Vec<Stack>,
    /// Shares of time on the CPU, for the timeline.
    pub on_cpu: Vec<(Category, f64)>,
    /// What the samples stand for.
    pub sampled: Sampled,
    /// Wall time in which at least one thread ran, nanoseconds.
    pub running_ns: f64,
    /// CPU time of the threads that did, nanoseconds.
    pub cpu_ns: f64,
    /// The counter that no ledger can satisfy, if there is one: what was sampled is unexplained then.
    pub contradiction: Option<String>,
}

/// Ends of page faults that were seen as user code, shares of time on the CPU.
struct Tails {
    /// Part of what was seen at instructions that touched pages.
    part: f64,
    of: Vec<(Reason, f64)>,
    /// All together, at least and at most.
    least: f64,
    most: f64,
}

impl Tails {
    fn of(&self, reason: Reason) -> f64 {
        let of = self.of.iter().filter(|of| of.0 == reason);
        of.map(|of| of.1).sum()
    }
}

struct Estimate<'a> {
    tally: &'a Tally,
    rules: &'a Rules,
    costs: &'a Costs,
    account: Account,
    /// Nanoseconds of wall time in which a thread ran.
    on_cpu: BTreeMap<(Category, Side), Share>,
    /// Part of the samples at instructions that touched new pages which were ends of the faults.
    tail: f64,
    /// User code of which nothing is known, at most, nanoseconds of wall time.
    unseen: f64,
    /// See [`woken::before_records`].
    before_records: f64,
    /// All user code, nanoseconds of wall time: of the whole more is known than of what it consists of.
    user: Share,
    kernel: Kernel,
    /// At least one thread ran, nanoseconds of wall time.
    running: f64,
}

/// As many samples as would by chance be as far off as these are of which this share is in the wrong place.
fn worth_with(samples: f64, misplaced: f64) -> f64 {
    if samples > 0.0 { 1.0 / (1.0 / samples + misplaced.min(1.0).powi(2)) } else { 0.0 }
}

/// The ledger of these runs, with the costs of kernel work on this machine.
pub(crate) fn ledger(tally: &Tally, rules: &Rules, costs: &Costs) -> Ledger {
    let mut estimate = Estimate {
        tally,
        rules,
        costs,
        account: Account::default(),
        on_cpu: BTreeMap::new(),
        tail: 0.0,
        unseen: 0.0,
        before_records: woken::before_records(tally, rules),
        user: Share::default(),
        kernel: Kernel::default(),
        running: 0.0,
    };
    estimate.recorded();
    let contradiction = contradiction(tally);
    if contradiction.is_none() {
        estimate.scanned();
    } else {
        estimate.unreported();
    }
    estimate.divide_kernel();
    Ledger { contradiction, ..estimate.finish() }
}

/// CPU time that was more than the CPUs had, beyond what the clocks may differ.
fn contradiction(tally: &Tally) -> Option<String> {
    let (cpu, cpus) = (tally.usage.cpu_ns() as f64, f64::from(tally.cpus.max(1)));
    let most = cpus * tally.wall_ns as f64;
    (cpu > most * (1.0 + CLOCKS) + cpus * TICK_NS + TWO_COUNTS_NS).then(|| {
        let seconds = |ns: f64| ns / 1e9 / f64::from(tally.runs.max(1));
        format!(
            "The kernel counted {:.3} s of CPU time, more than {cpus} CPUs have in {:.3} s: the time of \
                sampled threads \
             is unknown.",
            seconds(cpu),
            seconds(tally.wall_ns as f64)
        )
    })
}

impl Estimate<'_> {
    fn whole(&self, category: Category) -> Reason {
        self.rules.whole(category)
    }

    /// CPU time in all, without that of processes that were met ending and that before records.
    fn cpu(&self) -> f64 {
        (self.tally.cpu_ns(self.rules) - self.before_records).max(0.0)
    }

    /// CPU time that fell into the time in which threads were sampled.
    fn sampled_cpu(&self) -> f64 {
        (self.cpu() - self.tally.recorded.thread_running as f64).max(0.0)
    }

    /// What was sampled contradicts what was counted.
    fn unreported(&mut self) {
        let ns = self.tally.scanned.wall as f64;
        self.account.add(
            self.whole(Category::Unexplained),
            ns,
            Range { low: 0.0, high: ns },
            Method::Sampled,
        );
    }

    fn scanned(&mut self) {
        let sums = &self.tally.scanned;
        let loading = (self.tally.loading_ns as f64).min(sums.absent as f64);
        self.account.exact(self.whole(Category::StartAndExit), loading);
        let wall = sums.wall as f64 - loading;
        if wall <= 0.0 {
            return;
        }
        let samples = (self.tally.scans as f64).max(1.0);
        let cpu = self.sampled_cpu();
        let delay = self.tally.delay;
        let (unread, stolen) = (delay.unread_ns as f64, delay.stolen_ns as f64);
        let seen =
            Seen { by_runnable: &sums.by_runnable, wall, samples, most_threads: self.tally.most_threads };
        let exact = Exact {
            cpu,
            queue: woken::sampled_delay(self.tally),
            uncounted: unread + stolen,
            cpus: self.tally.cpus,
        };
        let Busy { running, ready, uncounted } = busy(&seen, &exact);
        let of_host = if uncounted > 0.0 { uncounted * stolen / (unread + stolen) } else { 0.0 };
        let method = if self.tally.most_threads <= 1 { Method::Counted } else { Method::Sampled };
        self.account.add(
            self.whole(Category::InterruptsForOthers),
            of_host,
            Range { low: 0.0, high: uncounted },
            method,
        );
        let range = ready.range_ns();
        let range = Range { low: (range.low - of_host).max(0.0), high: range.high };
        self.account.add(self.whole(Category::RunQueueWait), ready.of - of_host, range, method);
        let all = self.cpu();
        let unlike = (self.unlike() * all / cpu.max(1.0)).min(1.0);
        self.on_cpu(running.of, running.range_ns(), unlike);
        let idle = (wall - running.of - ready.of).max(0.0);
        let most = wall - running.range_ns().low - ready.range_ns().low;
        self.idle(wall, Range { low: idle, high: most.max(idle) }, loading, samples);
    }

    /// The time in which nothing ran, divided as the scans saw it.
    ///
    /// `idle`: the estimate, and at most.
    fn idle(&mut self, wall: f64, Range { low: idle, high: most }: Range, loading: f64, scans: f64) {
        let sums = &self.tally.scanned;
        let absent = (sums.absent as f64 - loading).max(0.0);
        let mut parts: Vec<(Reason, f64)> =
            sums.waits.each().map(|(reason, ns)| (reason, ns as f64)).collect();
        parts.push((self.whole(Category::StartAndExit), absent));
        parts.push((self.whole(Category::Unexplained), sums.unknown as f64));
        let mut total: f64 = parts.iter().map(|part| part.1).sum();
        // A program that waits for microseconds is hardly ever met waiting: where its switches were recorded,
        // they say why.
        let recorded = &self.tally.recorded.waits;
        if total < RARE * idle && recorded.total() > 0 {
            parts = recorded.each().map(|(reason, ns)| (reason, ns as f64)).collect();
            total = recorded.total() as f64;
        }
        if total <= 0.0 {
            // No scan met the program waiting: it did, for this long, and nobody knows why.
            let range = Range { low: 0.0, high: most };
            let unexplained = self.whole(Category::Unexplained);
            self.account.add(unexplained, idle, range, Method::Sampled);
            return;
        }
        for (reason, seen) in parts {
            let ns = idle * seen / total;
            let range = of_share(ns / wall, scans).times(wall);
            let range = Range { low: range.low, high: range.high.min(most) };
            if ns > 0.0 {
                self.account.add(reason, ns, range, Method::Sampled);
            }
        }
    }

    /// Part of the CPU time that samples do not stand for.
    fn unlike(&self) -> f64 {
        let unlike = self.tally.unlike.of_cpu();
        if unlike > LEAST_UNLIKE { unlike.min(1.0) } else { 0.0 }
    }

    /// Time on the CPU, of which this part was like nothing that was recorded.
    fn on_cpu(&mut self, ns: f64, range: Range, unlike: f64) {
        self.running += ns;
        if ns <= 0.0 && range.high <= 0.0 {
            return;
        }
        let (ns, range) = if unlike > 0.0 && self.tally.mix.total().samples > 0 {
            self.unlike_on_cpu(ns * unlike, range.times(unlike));
            (ns * (1.0 - unlike), range.times(1.0 - unlike))
        } else {
            (ns, range)
        };
        let sampled = self.tally.mix.total();
        let worth = self.tally.mix.worth();
        if sampled.samples == 0 {
            self.by_counters(ns, range);
        } else if self.tally.sees_kernel {
            let mix = &self.tally.mix;
            let parts: Vec<_> = mix
                .reasons()
                .map(|(reason, weight)| {
                    (reason, weight.sum / sampled.sum, mix.kernel_of(reason) / sampled.sum)
                })
                .collect();
            let kernel: f64 = parts.iter().map(|part| part.2).sum();
            let (user, taken) = self.user_share(1.0 - kernel, worth);
            let of_all = of_share(user, taken);
            // A handful of samples in the kernel may have missed half of what it does there: what the counts
            // say stands beside them.
            let counts = ns * self.counts_left();
            let whole = Share::within((1.0 - user) * ns, range.times(1.0 - user));
            let of_model = if kernel <= 0.0 {
                1.0
            } else if self.is_known(&self.by_counts(whole, counts)) {
                1.0 / (1.0 + worth * kernel / MODELLED)
            } else {
                0.0
            };
            let scale = |to: f64, from: f64| if from > 0.0 { to / from } else { 0.0 };
            let of_user = scale(user, 1.0 - kernel);
            let of_kernel = scale((1.0 - user) * (1.0 - of_model), kernel);
            let touching = mix.touching();
            let tails =
                self.tails(&touching.user, of_user / sampled.sum, touching.kernel * of_user / sampled.sum);
            for (reason, share, kernel) in parts {
                let user = (share - kernel) * of_user - tails.of(reason);
                let sides = [(Side::User, share - kernel, user), (Side::Kernel, kernel, kernel * of_kernel)];
                for (side, _, share) in sides.into_iter().filter(|side| side.1 > 0.0) {
                    self.sampled((side, reason), share, self.steady(worth), ns, range);
                }
            }
            self.tail(&tails, ns);
            self.user_code(user, of_all, &tails, ns, range);
            if self.sees_user() {
                self.unmet(self.steady(worth) * (1.0 - kernel), user * range.high);
            } else {
                let whole = self.whole(Category::UserCpu);
                self.sampled((Side::User, whole), user, taken, ns, range);
            }
            self.kernel(whole.times(of_model), counts * of_model);
        } else {
            self.by_user_samples(ns, range, sampled.sum, worth);
        }
    }

    /// Share of user code in time on the CPU, and of how many samples it is known: besides those that were
    /// taken, of which there may be few, the kernel's ticks, which are samples of the whole program that tell
    /// nothing else.
    fn user_share(&self, sampled: f64, taken: f64) -> (f64, f64) {
        let taken = self.steady(taken);
        let sampled = (sampled * self.without_recording()).min(1.0);
        if self.unlike() > 0.0 {
            // Ticks say what the whole is.
            return (sampled, taken);
        }
        let (counted, ticks) = self.ticks();
        if taken + ticks <= 0.0 {
            return (sampled, taken);
        }
        ((sampled * taken + counted * ticks) / (taken + ticks), taken + ticks)
    }

    /// Recording is work of the kernel in the time that was recorded, and in no other: by so much is the part
    /// of user code larger in all of it.
    fn without_recording(&self) -> f64 {
        let all = self.cpu().max(1.0);
        let recorded = (self.tally.recorded.thread_running as f64).clamp(1.0, all);
        let sampled = self.tally.recording_ns as f64 - self.before_records;
        let took = (sampled / recorded).clamp(0.0, MOST_OF_RECORDED);
        let part = recorded / all;
        part + (1.0 - part) / (1.0 - took)
    }

    /// What so many samples are worth where some of them are not where they came due.
    fn steady(&self, samples: f64) -> f64 {
        let ran = self.tally.recorded.thread_running as f64;
        worth_with(samples, self.tally.switches as f64 * DISPLACED_NS / ran.max(1.0))
    }

    /// Share of user code by the kernel's ticks, with what of the kernel's work they cannot see; and how many
    /// came, or what they are worth where that was much.
    fn ticks(&self) -> (f64, f64) {
        let usage = &self.tally.usage;
        let cpu = self.cpu();
        if cpu <= 0.0 {
            return (0.5, 0.0);
        }
        let woken = self.woken();
        let sleeps = 2 * woken.of_category(Category::Sleep, self.rules) > woken.total();
        let around = usage.voluntary_switches as f64 * self.costs.sleep.mid / cpu;
        let (most, unseen) = if sleeps {
            let unseen = (around * UNSEEN_OF_SLEEP).min(1.0);
            (unseen, unseen)
        } else {
            let most = around * UNSEEN_OF_WAIT;
            (most, (most * self.found_idle()).min(UNSEEN_AT_MOST))
        };
        let seen = 1.0 - unseen;
        // Disks, pipes and other CPUs wake in different ways: half of it may be otherwise.
        let off = most - unseen / 2.0;
        ((usage.user_ns as f64 / cpu).min(1.0) * seen, worth_with(seen * cpu / TICK_NS, off))
    }

    /// Share of waits at whose end the CPU idled, by how long they then waited for it: others who have it
    /// keep its tick going.
    fn found_idle(&self) -> f64 {
        let usage = &self.tally.usage;
        let switches = (usage.voluntary_switches + usage.involuntary_switches).max(1) as f64;
        let queue = usage.queue_ns.unwrap_or(0) as f64 / switches;
        let sleep = self.costs.sleep.mid;
        if queue > 0.0 { sleep / (sleep + queue) } else { 1.0 }
    }

    /// Whether a sample fell in user code.
    fn sees_user(&self) -> bool {
        let mix = &self.tally.mix;
        mix.reasons().any(|(reason, weight)| weight.sum > mix.kernel_of(reason))
    }

    /// Share of page faults in the kernel's time, by counts and costs.
    fn modelled_faults(&self) -> f64 {
        let model = self.model().parts;
        let of = |faults: bool| {
            let parts = model.iter().filter(|part| !faults || self.rules.is_fault(part.0));
            parts.map(|part| part.1.mid).sum::<f64>()
        };
        let all = of(false);
        if all > 0.0 { of(true) / all } else { 0.0 }
    }

    /// What of user code, by reason and times `scale`, was the end of a page fault; `faults` is what was seen
    /// of them in the kernel.
    fn tails(&self, user: &[(Reason, f64)], scale: f64, faults: f64) -> Tails {
        let all: f64 = user.iter().map(|of| of.1).sum::<f64>() * scale;
        let at_most = |share: f64| (faults * share / (1.0 - share.min(0.9))).min(all);
        let Cost { low, mid, high } = self.costs.fault_in_user;
        let part = if all > 0.0 { at_most(mid) / all } else { 0.0 };
        Tails {
            part,
            of: user.iter().map(|(reason, of)| (*reason, of * scale * part)).collect(),
            least: at_most(low),
            most: at_most(high),
        }
    }

    /// Gives the ends of page faults, shares of time on the CPU, to those.
    fn tail(&mut self, tails: &Tails, ns: f64) {
        self.tail = tails.part;
        let all: f64 = tails.of.iter().map(|of| of.1).sum();
        let (inside, outside) = self.fault_reasons();
        for (reason, share) in &tails.of {
            let allocates = self.rules.category(*reason) == Category::Allocator;
            let range = Range {
                low: tails.least * share / all.max(1e-12) * ns,
                high: tails.most * share / all.max(1e-12) * ns,
            };
            let to = if allocates { inside } else { outside };
            self.kernel.faults.push((to, Share::within(share * ns, range)));
        }
    }

    /// User code was this part of some time on the CPU, within which the ends of page faults are none of it.
    fn user_code(&mut self, share: f64, of_share: Range, tails: &Tails, ns: f64, range: Range) {
        let tail: f64 = tails.of.iter().map(|of| of.1).sum();
        let low = (of_share.low * range.low - tails.most * ns).max(0.0);
        let high = (of_share.high * range.high - tails.least * ns).max(low);
        let of = ((share - tail) * ns).clamp(low, high);
        self.user = self.user.and(Share::within(of, Range { low, high }));
    }

    fn sampled(&mut self, what: (Side, Reason), share: f64, worth: f64, ns: f64, range: Range) {
        let of = of_share(share, worth);
        let range = Range { low: of.low * range.low, high: of.high * range.high };
        self.spend(what, share * ns, range, Method::Sampled);
    }

    fn spend(&mut self, (side, reason): (Side, Reason), ns: f64, range: Range, method: Method) {
        let spent = self.on_cpu.entry((self.rules.category(reason), side)).or_default();
        *spent = spent.and(Share::within(ns, range));
        self.account.add(reason, ns, range, method);
    }

    /// Samples of user code: what of the time on the CPU they do not cover is the kernel's.
    fn by_user_samples(&mut self, ns: f64, range: Range, sampled: f64, worth: f64) {
        let mix = &self.tally.mix;
        let user = (sampled / self.sampled_ns()).min(1.0);
        let (user, taken) = self.user_share(user, worth / user.max(1e-6));
        // A sample that a virtual machine has missed, as it did not run itself, would count as the kernel's:
        // ticks bound that.
        let (counted, ticks) = self.ticks();
        let counted = of_share(counted, ticks);
        let user =
            if ticks > 0.0 && self.unlike() <= 0.0 { user.clamp(counted.low, counted.high) } else { user };
        let of_user = of_share(user, taken);
        let parts: Vec<_> = mix.reasons().collect();
        let faults = self.modelled_faults() * (1.0 - user);
        let tails = self.tails(&mix.touching().user, user / sampled, faults);
        // Ticks tell how much user code there is; of what it is, only as many samples tell as there are.
        let in_user = self.steady(worth);
        for (reason, weight) in parts {
            let part = weight.sum / sampled;
            let of_part = of_share(part, in_user);
            let share = part * user - tails.of(reason);
            let off = |part_off: f64, user_off: f64| (user * part_off).hypot(part * user_off);
            let within = Range {
                low: (share - off(part - of_part.low, user - of_user.low)).max(0.0) * range.low,
                high: (share + off(of_part.high - part, of_user.high - user)).min(1.0) * range.high,
            };
            self.spend((Side::User, reason), share * ns, within, Method::Sampled);
        }
        self.unmet(in_user, of_user.high * range.high);
        self.tail(&tails, ns);
        self.user_code(user, of_user, &tails, ns, range);
        let kernel = Range { low: (1.0 - of_user.high) * range.low, high: (1.0 - of_user.low) * range.high };
        self.kernel(Share::within(ns * (1.0 - user), kernel), ns * self.counts_left());
    }

    /// What nothing like it was recorded of: user code by what the ticks of the whole leave to it, as a
    /// whole, and the kernel by its counters.
    fn unlike_on_cpu(&mut self, ns: f64, range: Range) {
        let unlike = self.unlike();
        let mix = &self.tally.mix;
        let sampled = if self.tally.sees_kernel {
            let kernel: f64 = mix.reasons().map(|(reason, _)| mix.kernel_of(reason)).sum();
            1.0 - kernel / mix.total().sum.max(1e-12)
        } else {
            (mix.total().sum / self.sampled_ns()).min(1.0)
        };
        let (counted, ticks) = self.ticks();
        let left = |whole: f64, like: f64| ((whole - (1.0 - unlike) * like) / unlike).clamp(0.0, 1.0);
        let user = left(counted, sampled);
        let (whole, like) = (of_share(counted, ticks), of_share(sampled, self.steady(mix.worth())));
        let below = (whole.low - counted).hypot((1.0 - unlike) * (like.high - sampled)) / unlike;
        let above = (whole.high - counted).hypot((1.0 - unlike) * (sampled - like.low)) / unlike;
        let (least, most) = ((user - below).max(0.0), (user + above).min(1.0));
        let of_user = Range { low: least * range.low, high: most * range.high };
        self.spend((Side::User, self.whole(Category::UserCpu)), user * ns, of_user, Method::Sampled);
        self.user = self.user.and(Share::within(user * ns, of_user));
        // It may have been any of these.
        for category in Category::OF_USER_CODE {
            let range = Range { low: 0.0, high: of_user.high };
            self.account.add(self.whole(category), 0.0, range, Method::Sampled);
        }
        self.unseen = self.unseen.max(of_user.high);
        let kernel = Range { low: (1.0 - most) * range.low, high: (1.0 - least) * range.high };
        let counts = self.tally.unlike.of_switches() * ns / unlike;
        self.kernel(Share::within((1.0 - user) * ns, kernel), counts);
    }

    /// Counts of switches and all else that are left to what samples stand for, beside what would be its part
    /// by time.
    fn counts_left(&self) -> f64 {
        let unlike = self.unlike();
        if unlike > 0.0 && unlike < 1.0 {
            (1.0 - self.tally.unlike.of_switches()) / (1.0 - unlike)
        } else {
            1.0
        }
    }

    /// What no sample of user code fell into may yet have had a part of it, of which there is this much at
    /// most.
    fn unmet(&mut self, samples: f64, user: f64) {
        let most = of_share(0.0, samples).high * user;
        for category in Category::OF_USER_CODE {
            let met = |reason| self.rules.category(reason) == category;
            if !self.tally.mix.reasons().any(|(reason, _)| met(reason)) {
                let range = Range { low: 0.0, high: most };
                self.spend((Side::User, self.whole(category)), 0.0, range, Method::Sampled);
            }
        }
    }

    /// Without samples: user code as a whole, the kernel's work by counts.
    fn by_counters(&mut self, ns: f64, range: Range) {
        let cpu = self.cpu();
        let (of_user, ticks) = self.ticks();
        let counted = 1.0 - of_user;
        let ticks = of_share(counted, ticks.max(1.0));
        // The tick knows a short program's kernel time badly; counts bound it from below.
        let least: f64 = self.model().parts.iter().map(|part| part.1.low).sum();
        let system = counted.max(least / cpu.max(f64::MIN_POSITIVE)).clamp(ticks.low, ticks.high);
        let user = 1.0 - system;
        let of_user = Range { low: (1.0 - ticks.high).min(user), high: (1.0 - ticks.low).max(user) };
        let whole = Range { low: of_user.low * range.low, high: of_user.high * range.high };
        let counted = [(self.whole(Category::UserCpu), user)];
        let tails = self.tails(&counted, 1.0, self.modelled_faults() * system);
        let tail = tails.of(counted[0].0);
        let whole = Range { low: (whole.low - tails.most * ns).max(0.0), ..whole };
        let rest = (user - tail) * ns;
        self.spend((Side::User, counted[0].0), rest, whole, Method::Counted);
        self.user = self.user.and(Share::within(rest, whole));
        self.tail(&tails, ns);
        let kernel = Range { low: (1.0 - of_user.high) * range.low, high: (1.0 - of_user.low) * range.high };
        self.kernel(Share::within(ns * system, kernel), ns);
    }
}

#[cfg(test)]
mod tests;
