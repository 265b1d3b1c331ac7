//! What samples stand for: a function has the part of what its category took that its samples are of those of
//! the category.
//!
//! How much a category took, the ledger may know better than samples do: by the kernel's ticks and counts,
//! and by what page faults take in user code. Of what that consists samples alone tell. So no function has
//! more than its category, and all together have what was spent on a CPU.

use std::collections::BTreeMap;

use crate::Category;
use crate::account::interval::{Range, of_share};
use crate::account::mix::{Mix, Side};
use crate::rules::Rules;

/// Time or a share of it, and how far it may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    /// The estimate.
    pub of: f64,
    /// It may be less by this.
    pub below: f64,
    /// It may be more by this.
    pub above: f64,
}

impl Share {
    /// Within this range.
    pub(crate) fn within(of: f64, range: Range) -> Self {
        Self { of, below: (of - range.low).max(0.0), above: (range.high - of).max(0.0) }
    }

    /// Both, as far as chance is concerned.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            of: self.of + other.of,
            below: self.below.hypot(other.below),
            above: self.above.hypot(other.above),
        }
    }

    pub(crate) fn times(self, by: f64) -> Self {
        Self { of: self.of * by, below: self.below * by, above: self.above * by }
    }

    /// From least to most.
    pub(crate) fn range_ns(self) -> Range {
        Range { low: self.of - self.below, high: self.of + self.above }
    }

    /// From least to most, as a share.
    pub(crate) fn range(self) -> Range {
        Range { low: (self.of - self.below).max(0.0), high: (self.of + self.above).min(1.0).max(self.of) }
    }
}

/// What a category took on one side, and its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Got {
    share: Share,
    /// Weight of its samples, and without those that were ends of page faults.
    weight: f64,
    own: f64,
    /// Equal samples that they are worth.
    worth: f64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sampled {
    /// Share of wall time in which a thread ran.
    pub on_cpu: f64,
    /// Part of the samples at instructions that touched new pages which were ends of the faults.
    pub tail: f64,
    /// Equal samples that the samples are worth, and the time on the CPU would be where the kernel is not
    /// sampled.
    pub worth: f64,
    got: BTreeMap<(Category, Side), Got>,
    /// User code of which nothing is known, a share of wall time: each function may have had some of it.
    unseen: f64,
}

impl Sampled {
    /// Of what was spent on the CPU, shares of wall time. `worth`: see the field; `steady`: how many of
    /// `worth` are where they came due.
    pub(crate) fn of(
        spent: &BTreeMap<(Category, Side), Share>,
        mix: &Mix,
        rules: &Rules,
        tail: f64,
        worth: f64,
        steady: f64,
    ) -> Self {
        let mut got: BTreeMap<(Category, Side), Got> = BTreeMap::new();
        for (key, share) in spent {
            got.entry(*key).or_default().share = *share;
        }
        let total = mix.total().sum.max(1.0);
        for (reason, weight) in mix.reasons() {
            let (category, kernel) = (rules.category(reason), mix.kernel_of(reason));
            for (side, weight) in [(Side::User, weight.sum - kernel), (Side::Kernel, kernel)] {
                if weight > 0.0 {
                    let got = got.entry((category, side)).or_default();
                    got.weight += weight;
                    got.own += weight;
                    got.worth += steady * weight / total;
                }
            }
        }
        for (reason, weight) in mix.touching().user {
            let key = (rules.category(reason), Side::User);
            got.entry(key).or_default().own -= tail * weight;
        }
        Self { on_cpu: spent.values().map(|share| share.of).sum(), tail, worth, got, unseen: 0.0 }
    }

    /// Besides, so much user code ran of which nothing is known, as a share of wall time at most.
    pub(crate) fn beside(self, unseen: f64) -> Self {
        Self { unseen, ..self }
    }

    /// Samples of this weight, without those that were ends of page faults.
    pub(crate) fn own(&self, category: Category, side: Side, weight: f64) -> Share {
        self.part(category, side, |got| weight / got.own)
    }

    /// Samples of this weight, whatever they were.
    pub(crate) fn any(&self, category: Category, side: Side, weight: f64) -> Share {
        self.part(category, side, |got| weight / got.weight)
    }

    fn part(&self, category: Category, side: Side, part: impl Fn(&Got) -> f64) -> Share {
        let Some(got) = self.got.get(&(category, side)).filter(|got| got.own > 0.0) else {
            return Share::default();
        };
        let part = part(got).clamp(0.0, 1.0);
        let range = of_share(part, got.worth);
        let whole = got.share;
        let unseen = if side == Side::User { self.unseen } else { 0.0 };
        Share {
            of: whole.of * part,
            below: (part * whole.below).hypot(whole.of * (part - range.low)),
            above: (part * whole.above).hypot(whole.of * (range.high - part)) + unseen,
        }
    }

    /// What was spent on one side, and what of it in categories without a sample.
    pub(crate) fn side(&self, side: Side) -> (f64, f64) {
        let of = self.got.iter().filter(|(key, _)| key.1 == side);
        of.fold((0.0, 0.0), |(all, unmet), (_, got)| {
            let without = if got.own > 0.0 { 0.0 } else { got.share.of };
            (all + got.share.of, unmet + without)
        })
    }

    /// A share of wall time spent on a CPU that no function stands for, by how many samples there are of the
    /// others.
    pub(crate) fn rest(&self, share: f64) -> Share {
        let cpu = share / self.on_cpu.max(1e-12);
        Share::within(share, of_share(cpu, self.worth).times(self.on_cpu))
    }
}
