//! From sums to rows: shares of wall time with intervals.
//!
//! What records give is exact. What looks give is a sample of instants; where the kernel's counters know better (CPU time, run-queue delay), they
//! correct it. Time on the CPU is divided by samples; without any, into user code, which is left whole, and the kernel's work, which is
//! modelled from counts and the cost of one, measured on this machine.

use std::collections::BTreeMap;

use crate::costs::{Cost, Costs};
use crate::interval::{Range, of_share};
use crate::model::{Bound, Closure, Function, Method, Part, Row, Stack, Within};
use crate::rules::{Reason, Rules};
use crate::tally::Tally;
use crate::{Category, Counted};

/// The kernel's tick, by which it divides CPU time between user code and itself, nanoseconds. 250 Hz is what distributions build with;
/// kernels with 1000 Hz know it better than is said here.
const TICK_NS: f64 = 4e6;
/// Exact CPU time and the watcher's wall time agree no better than this, as a share of wall time.
const CLOCKS: f64 = 0.002;
/// Share of wall time that threads must wait for pipes and sockets before reads and writes are taken for theirs.
const WAITED: f64 = 0.05;
/// Waits that the looks met, as a share of those that the counters know of: less, and they say nothing.
const RARE: f64 = 0.1;
const CLOSED: f64 = 0.005;
const MOST_FUNCTIONS: usize = 16;
const MOST_STACKS: usize = 512;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: f64,
    below: f64,
    above: f64,
    method: Method,
}

/// Nanoseconds of wall time by reason, each with how far it may be off.
#[derive(Debug, Default)]
struct Account {
    sums: BTreeMap<Reason, Vec<Sum>>,
}

impl Account {
    fn add(&mut self, reason: Reason, ns: f64, range: Range, method: Method) {
        if ns <= 0.0 && range.high <= 0.0 {
            return;
        }
        let ns = ns.max(0.0);
        self.sums.entry(reason).or_default().push(Sum {
            ns,
            below: (ns - range.low).max(0.0),
            above: (range.high - ns).max(0.0),
            method,
        });
    }

    fn exact(&mut self, reason: Reason, ns: f64) {
        self.add(reason, ns, Range { low: ns, high: ns }, Method::Counted);
    }

    fn total(&self) -> f64 {
        self.sums.values().flatten().map(|sum| sum.ns).sum()
    }
}

/// The ledger of a tally.
#[derive(Debug)]
pub struct Ledger {
    /// Largest first.
    pub rows: Vec<Row>,
    /// Whether all of wall time was given away.
    pub closure: Closure,
    /// Of each row.
    pub bounds: Vec<Bound>,
    /// Stacks with their share of wall time.
    pub stacks: Vec<Stack>,
    /// Shares of time on the CPU, for the timeline.
    pub on_cpu: Vec<(Category, f64)>,
}

struct Estimate<'a> {
    tally: &'a Tally,
    rules: &'a Rules,
    costs: &'a Costs,
    account: Account,
    on_cpu: BTreeMap<Category, f64>,
}

/// The ledger of these runs, with the costs of kernel work on this machine.
#[must_use]
pub fn ledger(tally: &Tally, rules: &Rules, costs: &Costs) -> Ledger {
    let mut estimate = Estimate {
        tally,
        rules,
        costs,
        account: Account::default(),
        on_cpu: BTreeMap::new(),
    };
    estimate.recorded();
    estimate.looked();
    estimate.finish()
}

impl Estimate<'_> {
    fn whole(&self, category: Category) -> Reason {
        self.rules.whole(category)
    }

    /// CPU time and run-queue delay that fell into the time in which threads were looked at.
    fn counted(&self) -> (f64, f64) {
        let tally = self.tally;
        let cpu = (tally.usage.user_ns + tally.usage.system_ns) as f64;
        let queue = tally.usage.queue_ns.unwrap_or(0) as f64;
        (
            (cpu - tally.recorded.thread_running as f64).max(0.0),
            (queue - tally.recorded.thread_ready as f64).max(0.0),
        )
    }

    fn recorded(&mut self) {
        let sums = &self.tally.recorded;
        if sums.wall == 0 {
            return;
        }
        self.account
            .exact(self.whole(Category::StartAndExit), sums.absent as f64);
        self.account
            .exact(self.whole(Category::RunQueueWait), sums.ready as f64);
        for (reason, ns) in sums.waits.each() {
            self.account.exact(reason, ns as f64);
        }
        self.unknown(sums.unknown as f64);
        let running = sums.running as f64;
        self.on_cpu(
            running,
            Range {
                low: running,
                high: running,
            },
        );
    }

    /// Waits that were over before their reason could be read are taken for those of the same program that could be read in time.
    fn unknown(&mut self, ns: f64) {
        let mut given = 0.0;
        for (reason, share, from) in self.tally.unread.reasons() {
            let range = of_share(share, from).times(ns);
            given += share;
            self.account.add(reason, ns * share, range, Method::Sampled);
        }
        let rest = ns * (1.0 - given).max(0.0);
        let unexplained = self.whole(Category::Unexplained);
        self.account.exact(unexplained, rest);
    }

    fn looked(&mut self) {
        let sums = &self.tally.looked;
        let loading = (self.tally.loading_ns as f64).min(sums.absent as f64);
        self.account.exact(self.whole(Category::StartAndExit), loading);
        let wall = sums.wall as f64 - loading;
        if wall <= 0.0 {
            return;
        }
        let looks = (self.tally.looks as f64).max(1.0);
        let (cpu, queue) = self.counted();
        let seen = sums.thread_running as f64;
        let alone = self.tally.most_threads <= 1;
        let busy = if alone || seen <= 0.0 {
            (cpu + queue).min(wall)
        } else {
            // Looks may come preferably when a CPU is free: what the counters know of all threads together corrects them, within reason.
            let counted = if cpu > 0.0 {
                ((cpu + queue) / seen).clamp(0.5, 2.0)
            } else {
                1.0
            };
            (sums.running as f64 * counted).min(wall)
        };
        let range = if alone {
            Range {
                low: (busy - CLOCKS * wall).max(0.0),
                high: (busy + CLOCKS * wall).min(wall),
            }
        } else {
            let sampled = of_share(busy / wall, looks).times(wall);
            Range {
                low: sampled.low,
                high: sampled.high,
            }
        };
        // All threads that are ready wait at once only if each does.
        let waits = if cpu + queue > 0.0 {
            queue / (cpu + queue)
        } else {
            0.0
        };
        let together = if sums.running > 0 {
            (seen / sums.running as f64).max(1.0)
        } else {
            1.0
        };
        let waiting = busy * waits.powf(together);
        let spread = Range {
            low: if alone {
                (waiting - CLOCKS * wall).max(0.0)
            } else {
                0.0
            },
            high: if alone {
                (waiting + CLOCKS * wall).min(busy)
            } else {
                busy * waits
            },
        };
        let (method, reason) = (Method::Counted, self.whole(Category::RunQueueWait));
        self.account.add(
            reason,
            waiting,
            spread,
            if alone { method } else { Method::Sampled },
        );
        self.on_cpu(
            busy - waiting,
            Range {
                low: (range.low - waiting).max(0.0),
                high: (range.high - waiting).max(0.0),
            },
        );
        self.idle(wall, wall - busy, loading, looks);
    }

    /// The time in which nothing ran, divided as the looks saw it.
    fn idle(&mut self, wall: f64, idle: f64, loading: f64, looks: f64) {
        let sums = &self.tally.looked;
        let absent = (sums.absent as f64 - loading).max(0.0);
        let mut parts: Vec<(Reason, f64)> = sums
            .waits
            .each()
            .map(|(reason, ns)| (reason, ns as f64))
            .collect();
        parts.push((self.whole(Category::StartAndExit), absent));
        parts.push((self.whole(Category::Unexplained), sums.unknown as f64));
        let mut total: f64 = parts.iter().map(|part| part.1).sum();
        // A program that waits for microseconds is hardly ever met waiting: where its switches were recorded, they say why.
        let recorded = &self.tally.recorded.waits;
        if total < RARE * idle && recorded.total() > 0 {
            parts = recorded.each().map(|(reason, ns)| (reason, ns as f64)).collect();
            total = recorded.total() as f64;
        }
        if total <= 0.0 {
            // No look met the program waiting: it did, for this long, and nobody knows why.
            let range = Range { low: 0.0, high: idle };
            let unexplained = self.whole(Category::Unexplained);
            self.account.add(unexplained, idle, range, Method::Sampled);
            return;
        }
        for (reason, seen) in parts {
            let ns = idle * seen / total;
            let range = of_share(ns / wall, looks).times(wall);
            let range = Range {
                low: range.low,
                high: range.high.min(idle),
            };
            if ns > 0.0 {
                self.account.add(reason, ns, range, Method::Sampled);
            }
        }
    }

    fn on_cpu(&mut self, ns: f64, range: Range) {
        if ns <= 0.0 && range.high <= 0.0 {
            return;
        }
        let sampled = self.tally.mix.total();
        let worth = if sampled.squares > 0.0 {
            sampled.sum * sampled.sum / sampled.squares
        } else {
            0.0
        };
        if sampled.samples == 0 {
            self.by_counters(ns, range);
        } else if self.tally.sees_kernel {
            let parts: Vec<_> = self.tally.mix.reasons().collect();
            for (reason, weight) in parts {
                let share = weight.sum / sampled.sum;
                self.sampled(reason, share, worth, ns, range);
            }
        } else {
            self.by_user_samples(ns, range, sampled.sum, worth);
        }
    }

    fn sampled(&mut self, reason: Reason, share: f64, worth: f64, ns: f64, range: Range) {
        let of = of_share(share, worth);
        let range = Range {
            low: of.low * range.low,
            high: of.high * range.high,
        };
        self.spend(reason, share * ns, range, Method::Sampled);
    }

    fn spend(&mut self, reason: Reason, ns: f64, range: Range, method: Method) {
        *self.on_cpu.entry(self.rules.category(reason)).or_default() += ns;
        self.account.add(reason, ns, range, method);
    }

    /// Samples of user code: what of the time on the CPU they do not cover is the kernel's.
    fn by_user_samples(&mut self, ns: f64, range: Range, sampled: f64, worth: f64) {
        let mix = &self.tally.mix;
        let user = (sampled / (self.tally.recorded.running as f64).max(1.0)).min(1.0);
        let taken = worth / user.max(1e-6);
        let of_user = of_share(user, taken);
        let parts: Vec<_> = mix.reasons().collect();
        for (reason, weight) in parts {
            let share = weight.sum / sampled * user;
            self.sampled(reason, share, taken, ns, range);
        }
        let kernel = Range {
            low: (1.0 - of_user.high) * range.low,
            high: (1.0 - of_user.low) * range.high,
        };
        self.kernel(ns * (1.0 - user), kernel, ns);
    }

    /// Without samples: user code as a whole, the kernel's work by counts.
    fn by_counters(&mut self, ns: f64, range: Range) {
        let usage = &self.tally.usage;
        let cpu = (usage.user_ns + usage.system_ns) as f64;
        let counted = if cpu > 0.0 {
            usage.system_ns as f64 / cpu
        } else {
            0.5
        };
        let ticks = of_share(counted, (cpu / TICK_NS).max(1.0));
        // The tick knows a short program's kernel time badly; counts bound it from below, and most of it from above.
        let model = self.model(ns);
        let total = model
            .iter()
            .fold((0.0, 0.0), |sum, part| (sum.0 + part.1.low, sum.1 + part.1.high));
        let share = |part: f64| if cpu > 0.0 { part / cpu } else { 0.0 };
        let system = counted
            .max(share(total.0))
            .min(share(total.1))
            .clamp(ticks.low, ticks.high);
        let user = 1.0 - system;
        let of_user = Range {
            low: (1.0 - ticks.high).min(user),
            high: (1.0 - ticks.low).max(user),
        };
        let whole = Range {
            low: of_user.low * range.low,
            high: of_user.high * range.high,
        };
        self.spend(self.whole(Category::UserCpu), ns * user, whole, Method::Counted);
        let kernel = Range {
            low: (1.0 - of_user.high) * range.low,
            high: (1.0 - of_user.low) * range.high,
        };
        self.kernel(ns * system, kernel, ns);
    }

    /// What counts of kernel work cost: nanoseconds of CPU time, of all the program's.
    fn model(&self, _ns: f64) -> Vec<(Reason, Cost)> {
        let (usage, costs) = (&self.tally.usage, self.costs);
        let pages = usage.max_resident_bytes as f64 / 4096.0 * f64::from(self.tally.runs);
        let faults = costs
            .fault
            .times((usage.minor_faults + usage.major_faults) as f64);
        let mut parts = self.faults(faults);
        let ending = costs
            .unmap
            .times(pages)
            .plus(costs.process.times(self.tally.processes as f64));
        parts.push((self.whole(Category::StartAndExit), ending));
        // Giving up the CPU is part of what it was given up for.
        let mut waits = Counted::default();
        waits.add(&self.tally.looked.thread_waits);
        waits.add(&self.tally.recorded.thread_waits);
        // Few of the switches are made for these, however long they last.
        let few = |reason| {
            matches!(
                self.rules.category(reason),
                Category::WaitingForChildren | Category::Sleep
            )
        };
        let many: u64 = waits
            .each()
            .filter(|(reason, _)| !few(*reason))
            .map(|(_, ns)| ns)
            .sum();
        let total = if many > 0 { many } else { waits.total() };
        let of = |category| waits.of_category(category, self.rules) as f64 / (total as f64).max(1.0);
        let switches = usage.voluntary_switches as f64;
        for (reason, ns) in waits.each().filter(|(reason, _)| many == 0 || !few(*reason)) {
            let switches = switches * ns as f64 / total as f64;
            let (category, cost) = match self.rules.category(reason) {
                Category::StorageWait => (Category::FileIoCpu, costs.switch.plus(costs.device)),
                category => (category, costs.switch),
            };
            parts.push((self.whole(category), cost.times(switches)));
        }
        if let Some(io) = usage.io {
            // Reads and writes do not say of what. Where threads wait for pipes or sockets, that is what they read and write.
            let calls = costs.call.times((io.read_calls + io.write_calls) as f64);
            let bytes = costs.byte.times((io.read_chars + io.written_chars) as f64);
            let (pipe, network) = (of(Category::Pipe), of(Category::Network));
            let waited = waits.total() as f64 / (self.tally.wall_ns as f64).max(1.0);
            let (pipe, network) = if waited * (pipe + network) > WAITED {
                (pipe, network)
            } else {
                (0.0, 0.0)
            };
            for (category, share) in [
                (Category::Pipe, pipe),
                (Category::Network, network),
                (Category::FileIoCpu, (1.0 - pipe - network).max(0.0)),
            ] {
                if share > 0.0 {
                    parts.push((self.whole(category), calls.plus(bytes).times(share)));
                }
            }
            parts.push((
                self.whole(Category::FileIoCpu),
                costs.cold_byte.times(io.read_bytes as f64),
            ));
        }
        parts
    }

    /// Page faults by whose code touched the page, where that was sampled.
    fn faults(&self, cost: Cost) -> Vec<(Reason, Cost)> {
        let sampled = self.tally.mix.faults();
        let all = sampled.total();
        let allocating = sampled.of_category(Category::Allocator, self.rules);
        let part = |name| self.rules.named(Category::PageFaults, name);
        match (part("in the allocator"), part("in other code")) {
            (Some(inside), Some(outside)) if all > 0 => {
                let share = allocating as f64 / all as f64;
                vec![(inside, cost.times(share)), (outside, cost.times(1.0 - share))]
            }
            _ => vec![(self.whole(Category::PageFaults), cost)],
        }
    }

    fn kernel(&mut self, ns: f64, range: Range, on_cpu: f64) {
        let cpu = (self.tally.usage.user_ns + self.tally.usage.system_ns) as f64;
        // From CPU time of all threads to wall time of the part in question.
        let scale = if cpu > 0.0 { on_cpu / cpu } else { 0.0 };
        let parts: Vec<(Reason, Cost)> = self
            .model(on_cpu)
            .into_iter()
            .map(|(reason, cost)| (reason, cost.times(scale)))
            .collect();
        let total = parts.iter().fold(
            Cost {
                low: 0.0,
                mid: 0.0,
                high: 0.0,
            },
            |sum, part| sum.plus(part.1),
        );
        let toward = |from: f64, to: f64| {
            if to > from {
                ((ns - from) / (to - from)).clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        let up = toward(total.mid, total.high);
        let down = 1.0 - toward(total.low, total.mid);
        let squeeze = if ns < total.low && total.low > 0.0 {
            ns / total.low
        } else {
            1.0
        };
        let mut given = 0.0;
        for (reason, cost) in parts {
            let part = if ns >= total.mid {
                cost.mid + up * (cost.high - cost.mid)
            } else {
                (cost.mid - down * (cost.mid - cost.low)) * squeeze
            };
            given += part;
            let bounds = Range {
                low: cost.low.min(part),
                high: cost.high.max(part).min(range.high),
            };
            self.spend(reason, part, bounds, Method::Modelled);
        }
        let rest = (ns - given).max(0.0);
        let bounds = Range {
            low: (range.low - total.high).max(0.0).min(rest),
            high: (range.high - total.low).max(rest),
        };
        let other = self.whole(Category::Unexplained);
        self.spend(other, rest, bounds, Method::Modelled);
    }

    fn finish(self) -> Ledger {
        let wall = (self.tally.wall_ns as f64).max(1.0);
        let runs = f64::from(self.tally.runs.max(1));
        let sum = self.account.total() / wall;
        let closure = Closure {
            sum,
            holds: (sum - 1.0).abs() <= CLOSED,
        };
        // Rounding of the clocks is spread over all rows; more than that is what `closure` says.
        let scale = if sum > 0.0 { 1.0 / sum } else { 1.0 };
        let levels_user = !self.tally.mix.reasons().any(|(_, weight)| weight.samples > 0);
        let mut rows = Vec::new();
        for category in Category::ALL {
            let unseen = Category::OF_USER_CODE.contains(&category) && levels_user;
            let of: Vec<(Reason, &Vec<Sum>)> = self
                .account
                .sums
                .iter()
                .filter(|(reason, _)| self.rules.category(**reason) == category)
                .map(|(reason, sums)| (*reason, sums))
                .collect();
            if of.is_empty() && (unseen || category == Category::UserCpu) {
                continue;
            }
            rows.push(self.row(category, &of, wall, scale, runs));
        }
        if let Some(user) = rows.iter_mut().find(|row| row.name == Category::UserCpu) {
            user.within = Category::OF_USER_CODE
                .map(|name| Within {
                    name,
                    low: 0.0,
                    high: user.high,
                })
                .to_vec();
        }
        rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.name.cmp(&b.name)));
        let bounds = rows
            .iter()
            .filter(|row| row.high > 0.0 && row.name != Category::Unexplained);
        let bounds = bounds
            .map(|row| Bound {
                name: row.name,
                condition: "free".to_owned(),
                wall_s_at_least: wall / 1e9 / runs * (1.0 - row.high),
                saved_at_most: row.high,
            })
            .collect();
        let sampled = self.tally.mix.total().sum.max(1.0);
        let running: f64 = self.on_cpu.values().sum::<f64>() * scale / wall;
        let stacks = self.tally.mix.stacks().into_iter().take(MOST_STACKS);
        let stacks = stacks
            .map(|(name, frames, weight)| Stack {
                name,
                frames: frames.to_vec(),
                share: weight / sampled * running,
            })
            .collect();
        Ledger {
            rows,
            closure,
            bounds,
            stacks,
            on_cpu: self.on_cpu.into_iter().collect(),
        }
    }

    fn row(&self, category: Category, of: &[(Reason, &Vec<Sum>)], wall: f64, scale: f64, runs: f64) -> Row {
        let all = || of.iter().flat_map(|(_, sums)| sums.iter());
        let share = all().map(|sum| sum.ns).sum::<f64>().max(0.0) / wall * scale;
        let root = |side: fn(&Sum) -> f64| all().map(|sum| side(sum).powi(2)).sum::<f64>().sqrt() / wall;
        let method =
            all()
                .filter(|sum| sum.ns > 0.0)
                .map(|sum| sum.method)
                .max_by_key(|method| match method {
                    Method::Counted => 0,
                    Method::Sampled => 1,
                    Method::Modelled => 2,
                });
        let mut parts: Vec<Part> = of
            .iter()
            .filter(|(reason, _)| !self.rules.part(*reason).is_empty())
            .map(|(reason, sums)| {
                let share = sums.iter().map(|sum| sum.ns).sum::<f64>() / wall * scale;
                Part {
                    name: self.rules.part(*reason).to_owned(),
                    share,
                    seconds: share * wall / 1e9 / runs,
                }
            })
            .collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let sampled = self.tally.mix.total().sum.max(1.0);
        let on_cpu: f64 = self.on_cpu.values().sum::<f64>() * scale / wall;
        let user = if self.tally.sees_kernel {
            on_cpu
        } else {
            let running = (self.tally.recorded.running as f64).max(1.0);
            on_cpu * (sampled / running).min(1.0)
        };
        let functions = self
            .tally
            .mix
            .functions(category)
            .into_iter()
            .take(MOST_FUNCTIONS);
        Row {
            name: category,
            share,
            low: (share - root(|sum| sum.below)).max(0.0),
            high: (share + root(|sum| sum.above)).clamp(0.0, 1.0),
            seconds: share * wall / 1e9 / runs,
            method: method.unwrap_or(Method::Counted),
            parts,
            functions: functions
                .map(|(name, object, weight)| Function {
                    name: name.to_owned(),
                    object: object.to_owned(),
                    share: weight / sampled * user,
                })
                .collect(),
            within: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
