//! Samples taken on the CPU, by what they fell in. A sample weighs its period over the threads that ran: wall time, not thread time.

use std::collections::HashMap;

use crate::rules::{Reason, Rules};
use crate::{Category, Counted};

/// Functions and stacks kept; the rest is summed without a name.
const MOST: usize = 4096;

/// A sum of weights, and of their squares, which say how many equal samples they are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Sum, nanoseconds of wall time.
    pub sum: f64,
    /// Of squares.
    pub squares: f64,
    /// Samples.
    pub samples: u64,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.samples += other.samples;
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    reasons: HashMap<Reason, Weight>,
    functions: HashMap<(Category, String, String), f64>,
    stacks: HashMap<(Category, Vec<String>), f64>,
    /// Of samples of user code: all, and those without a name.
    named: (u64, u64),
    /// Page faults that were sampled, by what the user code did.
    faults: Counted,
}

impl Mix {
    /// A sample.
    pub fn sample(&mut self, reason: Reason, weight: f64) {
        self.reasons.entry(reason).or_default().add(Weight {
            sum: weight,
            squares: weight * weight,
            samples: 1,
        });
    }

    /// Where it was.
    pub fn function(&mut self, category: Category, name: &str, object: &str, weight: f64) {
        let key = (category, name.to_owned(), object.to_owned());
        if self.functions.len() < MOST || self.functions.contains_key(&key) {
            *self.functions.entry(key).or_default() += weight;
        }
    }

    /// How it got there, outermost function first.
    pub fn stack(&mut self, category: Category, frames: Vec<String>, weight: f64) {
        let key = (category, frames);
        if self.stacks.len() < MOST || self.stacks.contains_key(&key) {
            *self.stacks.entry(key).or_default() += weight;
        }
    }

    /// Whether a sample of user code has a name.
    pub fn is_named(&mut self, named: bool) {
        self.named.0 += 1;
        self.named.1 += u64::from(!named);
    }

    /// A sampled page fault, by what the user code did.
    pub fn fault(&mut self, reason: Reason) {
        self.faults.count(reason, 1);
    }

    /// Sampled page faults.
    #[must_use]
    pub fn faults(&self) -> &Counted {
        &self.faults
    }

    /// By reason.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, Weight)> {
        self.reasons.iter().map(|(reason, weight)| (*reason, *weight))
    }

    /// Of a category.
    #[must_use]
    pub fn of(&self, category: Category, rules: &Rules) -> Weight {
        let mut sum = Weight::default();
        for (reason, weight) in self.reasons() {
            if rules.category(reason) == category {
                sum.add(weight);
            }
        }
        sum
    }

    /// Of all.
    #[must_use]
    pub fn total(&self) -> Weight {
        let mut sum = Weight::default();
        self.reasons.values().for_each(|weight| sum.add(*weight));
        sum
    }

    /// Share of samples of user code without a name; `None` without samples.
    #[must_use]
    pub fn nameless(&self) -> Option<f64> {
        (self.named.0 > 0).then(|| self.named.1 as f64 / self.named.0 as f64)
    }

    /// Functions of a category, heaviest first: name, file, weight.
    #[must_use]
    pub fn functions(&self, category: Category) -> Vec<(&str, &str, f64)> {
        let functions = self.functions.iter().filter(|(key, _)| key.0 == category);
        let mut functions: Vec<_> = functions
            .map(|(key, weight)| (key.1.as_str(), key.2.as_str(), *weight))
            .collect();
        functions.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(b.0)));
        functions
    }

    /// Stacks, heaviest first.
    #[must_use]
    pub fn stacks(&self) -> Vec<(Category, &[String], f64)> {
        let mut stacks: Vec<_> = self
            .stacks
            .iter()
            .map(|(key, weight)| (key.0, key.1.as_slice(), *weight))
            .collect();
        stacks.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.1.cmp(b.1)));
        stacks
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (reason, weight) in other.reasons() {
            self.reasons.entry(reason).or_default().add(weight);
        }
        for ((category, name, object), weight) in &other.functions {
            self.function(*category, name, object, *weight);
        }
        for ((category, frames), weight) in &other.stacks {
            self.stack(*category, frames.clone(), *weight);
        }
        self.named.0 += other.named.0;
        self.named.1 += other.named.1;
        self.faults.add(&other.faults);
    }
}
