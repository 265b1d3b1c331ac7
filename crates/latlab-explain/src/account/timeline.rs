//! The ledger over time: in a bounded number of bins, by thread, and by stage.

use crate::Category;
use crate::account::lanes::Lanes;
use crate::account::marks::Marks;
use crate::model::Timeline;
use crate::time::nanos;

/// When all are used, pairs of bins become one.
const MOST: usize = 512;
/// Rounds of fitting, and how near is near enough, as a share of wall time.
const ROUNDS: usize = 100;
const FITTED: f64 = 1e-6;
/// This far off is as good as fitted, as a share of wall time.
const NEAR: f64 = 1e-3;
/// What is mixed into each bin of the ledger as a whole, as a share of its length, until that is so.
const MIXED: [f64; 4] = [0.0, 0.01, 0.05, 0.25];
/// What stands for a category that no bin has seen: next to nothing, until it is fitted.
const UNSEEN: f64 = 1e-6;
const FIRST_NS: u64 = 1_000_000;
const CATEGORIES: usize = Category::ALL.len();

#[derive(Clone, Debug, Default, PartialEq)]
struct Bin {
    spent: [u64; CATEGORIES],
    running: u64,
    /// Weight of the samples that fell here.
    sampled: [f64; CATEGORIES],
}

impl Bin {
    fn whole(&self) -> f64 {
        (self.running + self.spent.iter().sum::<u64>()) as f64
    }
}

/// The ledger by bins of time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bins {
    begin: u64,
    width: u64,
    kept: Vec<Bin>,
}

impl Bins {
    /// None yet.
    pub(crate) fn begin(now: u64) -> Self {
        Self { begin: now, width: FIRST_NS, kept: Vec::new() }
    }

    fn at(&mut self, time: u64) -> &mut Bin {
        let after = time.saturating_sub(self.begin);
        while after / self.width >= MOST as u64 {
            let halved = self.kept.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                if let Some(second) = pair.get(1) {
                    sum.running += second.running;
                    for at in 0..CATEGORIES {
                        sum.spent[at] += second.spent[at];
                        sum.sampled[at] += second.sampled[at];
                    }
                }
                sum
            });
            self.kept = halved.collect();
            self.width *= 2;
        }
        let at = usize::try_from(after / self.width).unwrap_or(0);
        if at >= self.kept.len() {
            self.kept.resize(at + 1, Bin::default());
        }
        &mut self.kept[at]
    }

    fn each(&mut self, from: u64, to: u64, add: impl Fn(&mut Bin, u64)) {
        // Widens first: a long stretch then touches at most MOST bins.
        self.at(to.saturating_sub(1));
        let mut from = from.max(self.begin);
        while from < to {
            let end = self.begin + ((from - self.begin) / self.width + 1) * self.width;
            let part = end.min(to) - from;
            add(self.at(from), part);
            from += part;
        }
    }

    /// Time spent on a category.
    pub(crate) fn spend(&mut self, category: Category, from: u64, to: u64) {
        let at = category.index();
        self.each(from, to, |bin, part| bin.spent[at] += part);
    }

    /// Time on the CPU, which the samples divide.
    pub(crate) fn running(&mut self, from: u64, to: u64) {
        self.each(from, to, |bin, part| bin.running += part);
    }

    pub(crate) fn sample(&mut self, category: Category, at: u64, weight: f64) {
        self.at(at).sampled[category.index()] += weight;
    }

    /// Seconds by bin and category of
    /// `names`, fitted so that bins have their length and categories their share. `on_cpu` divides time on
    /// the CPU where no sample fell.
    fn fitted(
        &self,
        names: &[Category],
        shares: &[f64],
        on_cpu: &[(Category, f64)],
        wall_s: f64,
    ) -> Vec<Vec<f64>> {
        let whole: f64 = on_cpu.iter().map(|share| share.1).sum();
        let divides: Vec<f64> = names
            .iter()
            .map(|name| {
                let parts = on_cpu.iter().filter(|part| part.0 == *name);
                parts.map(|part| part.1).sum::<f64>() / whole.max(f64::MIN_POSITIVE)
            })
            .collect();
        let seen: Vec<Vec<f64>> = self
            .kept
            .iter()
            .map(|bin| {
                let sampled: f64 = names.iter().map(|name| bin.sampled[name.index()]).sum();
                let running = bin.running as f64;
                let all = bin.whole();
                let seed = |(at, name): (usize, &Category)| {
                    let share = if sampled > 0.0 { bin.sampled[name.index()] / sampled } else { divides[at] };
                    // Scans take being ready for running, and waits may have got their reasons later.
                    let is_busy = divides[at] > 0.0 || *name == Category::RunQueueWait;
                    let likely = if is_busy { running } else { all - running };
                    let unseen = UNSEEN * shares[at] * (likely + UNSEEN * all);
                    bin.spent[name.index()] as f64 + running * share + unseen
                };
                names.iter().enumerate().map(seed).collect()
            })
            .collect();
        let given: f64 = self.kept.iter().map(Bin::whole).sum();
        let rows: Vec<f64> = self.kept.iter().map(|bin| bin.whole() / given.max(1.0) * wall_s).collect();
        let columns: Vec<f64> = shares.iter().map(|share| share * wall_s).collect();
        // Where the counters know better than the scans, no bin may be only what was seen in it: as little is
        // mixed in as does.
        let mut table = Vec::new();
        for mixed in MIXED {
            table.clone_from(&seen);
            for (bin, parts) in self.kept.iter().zip(&mut table) {
                for (part, share) in parts.iter_mut().zip(shares) {
                    *part += mixed * bin.whole() * share;
                }
            }
            if fit(&mut table, &rows, &columns, FITTED * wall_s) < NEAR * wall_s {
                break;
            }
        }
        table
    }
}

/// Iterative proportional fitting, bins last: they are met exactly. How far the farthest column is off.
fn fit(table: &mut [Vec<f64>], rows: &[f64], columns: &[f64], near: f64) -> f64 {
    let mut off: f64 = 0.0;
    for _ in 0..ROUNDS {
        off = 0.0;
        for (at, wanted) in columns.iter().enumerate() {
            let sum: f64 = table.iter().map(|row| row[at]).sum();
            off = off.max((sum - wanted).abs());
            for row in table.iter_mut() {
                row[at] *= if sum > 0.0 { wanted / sum } else { 1.0 };
            }
        }
        for (row, wanted) in table.iter_mut().zip(rows) {
            let sum: f64 = row.iter().sum();
            for part in row.iter_mut() {
                *part *= if sum > 0.0 { wanted / sum } else { 1.0 };
            }
        }
        if off < near {
            break;
        }
    }
    off
}

/// The course of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    /// By category.
    pub bins: Bins,
    /// By thread.
    pub lanes: Lanes,
    /// By stage.
    pub marks: Marks,
}

impl Course {
    /// Nothing yet.
    pub(crate) fn begin(now: u64) -> Self {
        Self { bins: Bins::begin(now), lanes: Lanes::default(), marks: Marks::default() }
    }

    /// As it is written. `shares`: the ledger of this run; `on_cpu`: what its time on the CPU is divided
    /// into; `wall_s`: its length.
    pub(crate) fn shown(
        &self,
        shares: &[(Category, f64)],
        on_cpu: &[(Category, f64)],
        wall_s: f64,
    ) -> Timeline {
        let of = |category: Category| -> f64 {
            let own = shares.iter().filter(|share| share.0 == category);
            own.map(|share| share.1).sum()
        };
        let names: Vec<Category> = Category::ALL.iter().copied().filter(|name| of(*name) > 0.0).collect();
        let wanted: Vec<f64> = names.iter().map(|name| of(*name)).collect();
        let bins = self.bins.fitted(&names, &wanted, on_cpu, wall_s);
        let (thread_names, threads) = self.lanes.shown(self.bins.begin);
        Timeline {
            bin_s: self.bins.width as f64 / 1e9,
            names,
            bins: bins.into_iter().map(|bin| bin.into_iter().map(nanos).collect()).collect(),
            thread_names,
            threads,
            threads_left_out: self.lanes.left_out(),
            grain_s: self.lanes.grain_s(),
            stages: self.marks.shown(self.bins.begin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(timeline: &Timeline) -> Vec<(Category, f64)> {
        let of = |at: usize| timeline.bins.iter().map(|bin| bin[at]).sum();
        let names = timeline.names.iter().enumerate();
        names.map(|(at, name)| (*name, of(at))).collect()
    }

    #[test]
    fn a_long_run_takes_no_more_bins_and_loses_no_time() {
        let mut course = Course::begin(5);
        for second in 0..3600_u64 {
            let from = 5 + second * 1_000_000_000;
            course.bins.spend(Category::Sleep, from, from + 400_000_000);
            course.bins.running(from + 400_000_000, from + 1_000_000_000);
        }
        let shares = [(Category::Sleep, 0.4), (Category::Compute, 0.45), (Category::Allocator, 0.15)];
        let on_cpu = [(Category::Compute, 3.0), (Category::Allocator, 1.0)];
        let shown = course.shown(&shares, &on_cpu, 3600.0);
        assert!(shown.bins.len() <= MOST);
        for ((name, sum), (wanted, share)) in sums(&shown).iter().zip([shares[1], shares[2], shares[0]]) {
            assert_eq!(*name, wanted);
            assert!((sum - 3600.0 * share).abs() < 1e-3, "{name}: {sum}");
        }
    }

    #[test]
    fn samples_divide_the_bin_that_they_fell_in() {
        let mut course = Course::begin(0);
        course.bins.running(0, 2_000_000);
        course.bins.sample(Category::Allocator, 500_000, 1.0);
        let shares = [(Category::Compute, 0.5), (Category::Allocator, 0.5)];
        let shown = course.shown(&shares, &[(Category::Compute, 1.0)], 0.002);
        assert_eq!(shown.names, [Category::Compute, Category::Allocator]);
        assert!(shown.bins[0][1] > 0.000_999 && shown.bins[1][0] > 0.000_999);
    }

    #[test]
    fn bins_sum_to_the_ledger_also_where_it_says_otherwise_than_any_bin() {
        let mut course = Course::begin(0);
        course.bins.running(0, 5_000_000);
        course.bins.spend(Category::Sleep, 5_000_000, 10_000_000);
        let shares = [(Category::UserCpu, 0.6), (Category::Sleep, 0.4)];
        let shown = course.shown(&shares, &[(Category::UserCpu, 1.0)], 0.01);
        let sums = sums(&shown);
        assert!((sums[0].1 / 0.01 - 0.6).abs() < 0.002, "{sums:?}");
        assert!(shown.bins[0][0] > 0.9e-3 && shown.bins[9][0] < 0.4e-3);
    }

    #[test]
    fn bins_sum_to_the_ledger_where_scans_could_not_tell_what_it_knows() {
        let mut course = Course::begin(0);
        course.bins.running(0, 6_000_000);
        course.bins.spend(Category::Unexplained, 6_000_000, 8_000_000);
        course.bins.spend(Category::Sleep, 8_000_000, 10_000_000);
        // The counters know of waits for a CPU, and the unread waits were given to the disk.
        let shares = [
            (Category::UserCpu, 0.35),
            (Category::RunQueueWait, 0.2),
            (Category::StorageWait, 0.2),
            (Category::Sleep, 0.2),
            (Category::PageFaults, 0.05),
        ];
        let on_cpu = [(Category::UserCpu, 0.9), (Category::PageFaults, 0.1)];
        let shown = course.shown(&shares, &on_cpu, 0.01);
        for (name, sum) in sums(&shown) {
            let wanted = shares.iter().find(|share| share.0 == name).unwrap().1;
            assert!((sum / 0.01 - wanted).abs() < 0.002, "{name}: {sum}");
        }
        for bin in &shown.bins {
            assert!((bin.iter().sum::<f64>() - 0.001).abs() < 1e-8);
        }
    }
}
