//! Wall time by the stages that the program marks itself.
//!
//! The sweep gives each instant to what threads do; here the same instant goes to the stages that these
//! threads are in: the innermost open one of the thread, else of its process, else of the program. What a
//! stage got so sums to wall time like the ledger. How it divides into categories is estimated: waits from
//! the sweep, time on the CPU from the samples in the stage; both are then fitted to the ledger's own sums
//! (iterative proportional fitting), so that the two tables say the same.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::Category;
use crate::account::lanes::Doing;
use crate::account::marks::{Change, Marks, What};
use crate::rules::{Reason, Rules};

/// Changes that wait for the sweep to come to them.
const MOST_PENDING: usize = 1 << 20;
/// Places from the end at which a change is put in order; one that belongs further forward counts from there
/// on.
const MOST_BACK: usize = 1024;
/// Stages that one thread, and that all threads together, may be in at once.
const MOST_DEEP: usize = 256;
const MOST_OPEN: usize = 65_536;
/// Rounds of fitting; tables of this size settle within ten.
const ROUNDS: usize = 50;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Got {
    /// Wall time that was its own, nanoseconds. What follows says what it went to: of recorded time all of
    /// it; of time in which threads were looked at, a scan counts for the stage at its own moment, in
    /// proportion to the time since the scan before.
    pub time: f64,
    /// Threads in it ran, nanoseconds of wall time.
    pub running: f64,
    /// None ran, threads in it were ready.
    pub ready: f64,
    /// All waited, for the reason of a thread in it.
    pub waits: BTreeMap<Reason, f64>,
    /// The same, the reason not known.
    pub unknown: f64,
    /// No thread was there.
    pub absent: f64,
    /// Samples on the CPU, by what they fell in: their weights.
    pub samples: BTreeMap<Reason, f64>,
}

/// Adds all sums, each so many times.
fn add_each<K: Clone + Ord>(to: &mut BTreeMap<K, f64>, of: &BTreeMap<K, f64>, by: f64) {
    for (key, sum) in of {
        *to.entry(key.clone()).or_default() += sum * by;
    }
}

impl Got {
    /// What is known of what its time went to, nanoseconds.
    pub(crate) fn seen(&self) -> f64 {
        self.running + self.ready + self.waits.values().sum::<f64>() + self.unknown + self.absent
    }

    fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.running += other.running;
        self.ready += other.ready;
        self.unknown += other.unknown;
        self.absent += other.absent;
        add_each(&mut self.waits, &other.waits, 1.0);
        add_each(&mut self.samples, &other.samples, 1.0);
    }
}

/// Wall time by stage; the one without a name is time outside all stages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    by_name: BTreeMap<Arc<str>, Got>,
}

impl Sums {
    /// Adds another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, got) in &other.by_name {
            self.by_name.entry(Arc::clone(name)).or_default().add(got);
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &Got)> {
        self.by_name.iter().map(|(name, got)| (&**name, got))
    }

    /// Whether the program marked anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.keys().all(|name| name.is_empty())
    }

    fn of(&mut self, name: &Arc<str>) -> &mut Got {
        self.by_name.entry(Arc::clone(name)).or_default()
    }
}

/// Samples of a stretch of the run, by stage and by what they fell in: their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(BTreeMap<(Arc<str>, Reason), f64>);

impl Samples {
    /// Adds another stretch's, each so many times as heavy.
    pub(crate) fn add(&mut self, other: &Self, by: f64) {
        add_each(&mut self.0, &other.0, by);
    }
}

/// A stage's number and name.
type Open = (u64, Arc<str>);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ByStage {
    outside: Arc<str>,
    pending: VecDeque<Change>,
    /// Of a thread, what is open, the innermost last.
    open: HashMap<(u32, u32), Vec<Open>>,
    opened: usize,
    sums: Sums,
    /// Samples since they were taken out.
    samples: Samples,
    used: bool,
    marks: Marks,
}

impl ByStage {
    /// A change that the sweep will come to. Those of one thread come in order.
    pub(crate) fn expect(&mut self, mut change: Change) {
        self.used = true;
        self.marks.take(&change);
        if self.pending.len() >= MOST_PENDING {
            // What is left out would leave stages open for ever.
            self.pending.clear();
            let at = change.at;
            self.pending.push_back(Change { at, process: 0, thread: 0, what: What::Lost });
        }
        // Threads write at once: nearly in order, so the place is found from the end.
        let first = self.pending.len().saturating_sub(MOST_BACK);
        let later = self.pending.iter().rev().take(MOST_BACK);
        let later = later.take_while(|known| known.at > change.at).count();
        let place = self.pending.len() - later;
        if let Some(before) = place.checked_sub(1).filter(|_| place == first) {
            change.at = change.at.max(self.pending[before].at);
        }
        self.pending.insert(place, change);
    }

    /// Whether so many changes wait for the sweep that it should go on: more than [`MOST_PENDING`] are not
    /// kept.
    pub(crate) fn is_filling(&self) -> bool {
        self.pending.len() > MOST_PENDING / 4
    }

    /// When the next change is, if it is before `now`.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        self.pending.front().map(|change| change.at).filter(|at| *at < now)
    }

    /// The sweep has come to the next change.
    pub(crate) fn change(&mut self) {
        let Some(Change { process, thread, what, .. }) = self.pending.pop_front() else { return };
        match what {
            What::Begin(number, name) => {
                if self.opened >= MOST_OPEN {
                    return;
                }
                let open = self.open.entry((process, thread)).or_default();
                if open.len() < MOST_DEEP {
                    open.push((number, name));
                    self.opened += 1;
                }
            }
            What::End(number) => {
                if let Some(open) = self.open.get_mut(&(process, thread)) {
                    let before = open.len();
                    open.retain(|(known, _)| *known != number);
                    self.opened -= before - open.len();
                    if open.is_empty() {
                        self.open.remove(&(process, thread));
                    }
                }
            }
            What::Lost => {
                self.open.clear();
                self.opened = 0;
            }
        }
    }

    /// Whether time has to be divided at all.
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    fn stage(&self, process: u32, thread: u32) -> Arc<str> {
        [(process, thread), (process, 0), (0, 0)]
            .iter()
            .find_map(|key| self.open.get(key)?.last())
            .map_or_else(|| Arc::clone(&self.outside), |(_, name)| Arc::clone(name))
    }

    /// What the stage of a thread got so far, to add to it.
    pub(crate) fn of(&mut self, process: u32, thread: u32) -> &mut Got {
        let stage = self.stage(process, thread);
        self.sums.of(&stage)
    }

    pub(crate) fn sample(&mut self, process: u32, thread: u32, reason: Reason, weight: f64) {
        let stage = self.stage(process, thread);
        *self.samples.0.entry((stage, reason)).or_default() += weight;
    }

    /// Samples since the last time. Nobody has them then: they are to come back with the weight that they
    /// have in the whole run.
    pub(crate) fn take_samples(&mut self) -> Samples {
        std::mem::take(&mut self.samples)
    }

    /// Samples of a stretch that stand for so many times what they were.
    pub(crate) fn give_samples(&mut self, samples: &Samples, by: f64) {
        for ((stage, reason), weight) in &samples.0 {
            *self.sums.of(stage).samples.entry(*reason).or_default() += weight * by;
        }
    }

    /// What all stages got, nothing where none was marked, and when they were.
    pub(crate) fn finish(mut self, now: u64) -> (Sums, Marks) {
        self.marks.end_all(now);
        let samples = self.take_samples();
        self.give_samples(&samples, 1.0);
        let sums = if self.used { self.sums } else { Sums::default() };
        (sums, self.marks)
    }
}

/// Share of wall time by stage and by what it was spent on.
pub(crate) type Divided = Vec<(String, BTreeMap<Doing, f64>)>;

/// Divides each stage's time. `ledger`: the shares of wall time by category; `on_cpu`: those that time on the
/// CPU is divided into, with their nanoseconds; `samples`: whether samples were taken on the CPU, and whether
/// in the kernel too.
pub(crate) fn divided(
    sums: &Sums,
    rules: &Rules,
    ledger: &[(Category, f64)],
    on_cpu: &[(Category, f64)],
    samples: Option<bool>,
) -> Divided {
    let whole: f64 = sums.each().map(|(_, got)| got.time).sum();
    let seen: f64 = sums.each().map(|(_, got)| got.seen()).sum();
    if whole <= 0.0 || sums.is_empty() {
        return Vec::new();
    }
    let mut table: Divided =
        sums.each().map(|(name, got)| (name.to_owned(), seeds(got, rules, on_cpu, samples))).collect();
    let rows: Vec<f64> = sums.each().map(|(_, got)| got.time / whole).collect();
    let cpu: f64 = on_cpu.iter().map(|part| part.1).sum();
    let cpu_share = |category: Category| {
        let part: f64 = on_cpu.iter().filter(|part| part.0 == category).map(|part| part.1).sum();
        if cpu > 0.0 { part / cpu } else { 0.0 }
    };
    let mut columns: BTreeMap<Doing, f64> = BTreeMap::new();
    let cpu_whole = sums.each().map(|(_, got)| got.running).sum::<f64>() / seen.max(1.0);
    for (category, share) in ledger {
        let own = match (samples, category) {
            (Some(_), _) => 0.0,
            // A scan cannot tell a thread that runs from one that is ready to.
            (None, Category::RunQueueWait) => *share,
            (None, _) => (cpu_share(*category) * cpu_whole).min(*share),
        };
        *columns.entry(Doing::OnCpuOrReady).or_default() += own;
        *columns.entry(Doing::On(*category)).or_default() += share - own;
    }
    fit(&mut table, &rows, &columns);
    table
}

/// A stage's time as it was seen, before it is fitted.
fn seeds(
    got: &Got,
    rules: &Rules,
    on_cpu: &[(Category, f64)],
    samples: Option<bool>,
) -> BTreeMap<Doing, f64> {
    let mut parts: BTreeMap<Doing, f64> = BTreeMap::new();
    let mut add = |spent, ns: f64| {
        if ns > 0.0 {
            *parts.entry(spent).or_default() += ns;
        }
    };
    add(Doing::On(Category::RunQueueWait), got.ready);
    add(Doing::On(Category::StartAndExit), got.absent);
    add(Doing::On(Category::Unexplained), got.unknown);
    for (reason, ns) in &got.waits {
        add(Doing::On(rules.category(*reason)), *ns);
    }
    let weighed: f64 = got.samples.values().sum();
    let Some(sees_kernel) = samples else {
        add(Doing::OnCpuOrReady, got.running);
        return parts;
    };
    // Without samples in it, a stage on the CPU is taken for the program.
    let seen =
        if weighed > 0.0 { if sees_kernel { got.running } else { weighed.min(got.running) } } else { 0.0 };
    for (reason, weight) in &got.samples {
        add(Doing::On(rules.category(*reason)), weight / weighed * seen);
    }
    let of_user =
        |category: &Category| Category::OF_USER_CODE.contains(category) || *category == Category::UserCpu;
    let rest: Vec<&(Category, f64)> =
        on_cpu.iter().filter(|part| weighed <= 0.0 || !of_user(&part.0)).collect();
    let total: f64 = rest.iter().map(|part| part.1).sum();
    if total > 0.0 {
        for (category, ns) in rest {
            add(Doing::On(*category), (got.running - seen) * ns / total);
        }
    } else {
        add(Doing::On(Category::Unexplained), got.running - seen);
    }
    parts
}

/// Iterative proportional fitting: until rows and columns have these sums as nearly as what is in the table
/// allows. Rows are met exactly.
fn fit(table: &mut Divided, rows: &[f64], columns: &BTreeMap<Doing, f64>) {
    for _ in 0..ROUNDS {
        for (spent, wanted) in columns {
            let sum: f64 = table.iter().filter_map(|(_, parts)| parts.get(spent)).sum();
            for part in table.iter_mut().filter_map(|(_, parts)| parts.get_mut(spent)) {
                *part *= if sum > 0.0 { wanted / sum } else { 1.0 };
            }
        }
        for ((_, parts), wanted) in table.iter_mut().zip(rows) {
            let sum: f64 = parts.values().sum();
            if sum > 0.0 {
                for part in parts.values_mut() {
                    *part *= wanted / sum;
                }
            } else {
                // Nothing of what was seen here is in the ledger.
                parts.insert(Doing::On(Category::Unexplained), *wanted);
            }
        }
    }
}

#[cfg(test)]
mod tests;
