//! The ledger over time, in a bounded number of bins.

use crate::Category;
use crate::model::Timeline;

/// When all are used, pairs of bins become one.
const MOST: usize = 256;
const FIRST_NS: u64 = 1_000_000;
const CATEGORIES: usize = Category::ALL.len();

#[derive(Clone, Debug, Default, PartialEq)]
struct Bin {
    spent: [u64; CATEGORIES],
    running: u64,
    /// Weight of the samples that fell here.
    sampled: [f64; CATEGORIES],
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    begin: u64,
    width: u64,
    kept: Vec<Bin>,
}

fn column(category: Category) -> usize {
    Category::ALL
        .iter()
        .position(|known| *known == category)
        .unwrap_or(CATEGORIES - 1)
}

impl Bins {
    /// None yet.
    #[must_use]
    pub fn begin(now: u64) -> Self {
        Self {
            begin: now,
            width: FIRST_NS,
            kept: Vec::new(),
        }
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
    pub fn spend(&mut self, category: Category, from: u64, to: u64) {
        let at = column(category);
        self.each(from, to, |bin, part| bin.spent[at] += part);
    }

    /// Time on the CPU, which the samples divide.
    pub fn running(&mut self, from: u64, to: u64) {
        self.each(from, to, |bin, part| bin.running += part);
    }

    /// A sample.
    pub fn sample(&mut self, category: Category, at: u64, weight: f64) {
        let to = column(category);
        self.at(at).sampled[to] += weight;
    }

    /// As it is written; `on_cpu` divides time on the CPU where no sample fell.
    #[must_use]
    pub fn shown(&self, on_cpu: &[(Category, f64)]) -> Timeline {
        let whole: f64 = on_cpu.iter().map(|share| share.1).sum();
        let used: Vec<usize> = (0..CATEGORIES)
            .filter(|at| {
                let category = Category::ALL[*at];
                self.kept
                    .iter()
                    .any(|bin| bin.spent[*at] > 0 || bin.sampled[*at] > 0.0)
                    || on_cpu.iter().any(|share| share.0 == category && share.1 > 0.0)
            })
            .collect();
        let seconds = |bin: &Bin, at: usize| {
            let sampled: f64 = bin.sampled.iter().sum();
            let share = if sampled > 0.0 {
                bin.sampled[at] / sampled
            } else if whole > 0.0 {
                let category = Category::ALL[at];
                on_cpu
                    .iter()
                    .filter(|share| share.0 == category)
                    .map(|share| share.1)
                    .sum::<f64>()
                    / whole
            } else {
                0.0
            };
            (bin.spent[at] as f64 + bin.running as f64 * share) / 1e9
        };
        Timeline {
            bin_s: self.width as f64 / 1e9,
            names: used.iter().map(|at| Category::ALL[*at]).collect(),
            bins: self
                .kept
                .iter()
                .map(|bin| used.iter().map(|at| seconds(bin, *at)).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_takes_no_more_bins_and_loses_no_time() {
        let mut bins = Bins::begin(5);
        for second in 0..3600_u64 {
            let from = 5 + second * 1_000_000_000;
            bins.spend(Category::Sleep, from, from + 400_000_000);
            bins.running(from + 400_000_000, from + 1_000_000_000);
        }
        let shown = bins.shown(&[(Category::Compute, 3.0), (Category::Allocator, 1.0)]);
        assert!(shown.bins.len() <= MOST);
        let sum = |name| {
            let at = shown.names.iter().position(|known| *known == name).unwrap();
            shown.bins.iter().map(|bin| bin[at]).sum::<f64>()
        };
        assert!((sum(Category::Sleep) - 1440.0).abs() < 1e-6);
        assert!((sum(Category::Compute) - 1620.0).abs() < 1e-6);
        assert!((sum(Category::Allocator) - 540.0).abs() < 1e-6);
    }

    #[test]
    fn samples_divide_the_bin_that_they_fell_in() {
        let mut bins = Bins::begin(0);
        bins.running(0, 2_000_000);
        bins.sample(Category::Allocator, 500_000, 1.0);
        let shown = bins.shown(&[(Category::Compute, 1.0)]);
        assert_eq!(shown.names, [Category::Compute, Category::Allocator]);
        assert_eq!(shown.bins, [vec![0.0, 0.001], vec![0.001, 0.0]]);
    }
}
