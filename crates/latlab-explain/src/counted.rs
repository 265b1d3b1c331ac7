//! Sums by reason.

use std::collections::BTreeMap;

use crate::Category;
use crate::rules::{Reason, Rules};

/// A sum for each reason; takes no more memory than there are reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted(BTreeMap<Reason, u64>);

impl Counted {
    /// Adds to one.
    pub(crate) fn count(&mut self, reason: Reason, by: u64) {
        *self.0.entry(reason).or_default() += by;
    }

    /// Adds all of another's.
    pub(crate) fn add(&mut self, other: &Self) {
        for (reason, sum) in other.each() {
            self.count(reason, sum);
        }
    }

    pub(crate) fn of(&self, reason: Reason) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Those that are not zero.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.0.iter().map(|(reason, sum)| (*reason, *sum)).filter(|(_, sum)| *sum > 0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn of_category(&self, category: Category, rules: &Rules) -> u64 {
        let sums = self.each().filter(|(reason, _)| rules.category(*reason) == category);
        sums.map(|(_, sum)| sum).sum()
    }
}
