//! Samples taken on the CPU, by what they fell in. A sample weighs its period over the threads that ran: wall
//! time, not thread time.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use crate::Category;
use crate::rules::Reason;

/// Functions kept; the rest is summed without a name.
const MOST: usize = 4096;
/// Stacks kept; the rest is left out. A compiler has ten thousand.
const MOST_STACKS: usize = 1 << 14;
/// Addresses kept, to be looked up in the tables of source lines when the program has ended.
const MOST_SPOTS: usize = 32_768;

/// What functions of the kernel have instead of a file.
pub(crate) const KERNEL: &str = "[kernel]";
/// What a function without a name is called.
pub(crate) const WITHOUT_NAME: &str = "[no name]";

/// Whose code it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    /// The program's, its libraries'.
    User,
    /// The kernel's.
    Kernel,
}

impl Side {
    /// Of a function in this file.
    pub(crate) fn of(object: &str) -> Self {
        if object == KERNEL { Self::Kernel } else { Self::User }
    }
}

/// Shares by category and function.
pub(crate) type Kinds = HashMap<(Category, String, String), f64>;

/// A sum of weights, and of their squares, which say how many equal samples they are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weight {
    /// Sum, nanoseconds of wall time.
    pub sum: f64,
    /// Of squares.
    pub squares: f64,
    /// Samples.
    pub samples: u64,
}

impl Weight {
    /// Of one sample.
    pub(crate) fn of(ns: f64) -> Self {
        Self { sum: ns, squares: ns * ns, samples: 1 }
    }

    /// How many equal samples these are worth.
    pub(crate) fn worth(self) -> f64 {
        if self.squares > 0.0 { self.sum * self.sum / self.squares } else { 0.0 }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.samples += other.samples;
    }

    /// Each of its samples so many times as heavy.
    fn times(self, by: f64) -> Self {
        Self { sum: self.sum * by, squares: self.squares * by * by, samples: self.samples }
    }
}

/// An address in a file that samples fell in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    /// The function; `None`: it has no name.
    pub function: Option<Rc<str>>,
    /// The file without its folder.
    pub object: Rc<str>,
    /// Sum of their weights.
    pub weight: f64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mix {
    reasons: HashMap<Reason, Weight>,
    /// Of these, what fell in the kernel.
    kernel: HashMap<Reason, f64>,
    functions: HashMap<(Category, String, String), f64>,
    stacks: HashMap<(Category, Side, Vec<Rc<str>>), f64>,
    /// By file and offset in it.
    spots: HashMap<(Category, Rc<str>, u64), Spot>,
    /// Of samples of user code, weights: all, and those without a name.
    named: (f64, f64),
    /// Page faults that were sampled, by what the user code did.
    faults: HashMap<Reason, f64>,
    /// Instructions, by file and offset, that touched a page that was not there: weight of the samples in the
    /// kernel for that.
    touched: HashMap<(Rc<str>, u64), f64>,
    /// Samples of user code by instruction and reason.
    at: HashMap<(Rc<str>, u64, Reason), f64>,
    /// See [`Mix::doubt`].
    spread: f64,
}

/// Samples at instructions that touched pages which were not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Touching {
    /// In the kernel, for the faults.
    pub kernel: f64,
    /// At the instruction itself, by what the user code did.
    pub user: Vec<(Reason, f64)>,
}

/// Adds to one of at most so many sums; what there is no room for is left out.
fn add_to<K: Eq + Hash>(sums: &mut HashMap<K, f64>, most: usize, key: K, weight: f64) {
    if sums.len() < most || sums.contains_key(&key) {
        *sums.entry(key).or_default() += weight;
    }
}

impl Mix {
    pub(crate) fn sample(&mut self, reason: Reason, weight: f64) {
        self.reasons.entry(reason).or_default().add(Weight::of(weight));
    }

    /// That sample was taken in the kernel.
    pub(crate) fn in_kernel(&mut self, reason: Reason, weight: f64) {
        *self.kernel.entry(reason).or_default() += weight;
    }

    /// What of a reason fell in the kernel, nanoseconds.
    pub(crate) fn kernel_of(&self, reason: Reason) -> f64 {
        self.kernel.get(&reason).copied().unwrap_or(0.0)
    }

    pub(crate) fn function(&mut self, category: Category, name: &str, object: &str, weight: f64) {
        let key = (category, name.to_owned(), object.to_owned());
        add_to(&mut self.functions, MOST, key, weight);
    }

    /// Where it was, to the instruction: an offset in a file.
    pub(crate) fn spot(&mut self, category: Category, path: &Rc<str>, offset: u64, of: Spot) {
        let key = (category, Rc::clone(path), offset);
        if let Some(known) = self.spots.get_mut(&key) {
            known.weight += of.weight;
        } else if self.spots.len() < MOST_SPOTS {
            self.spots.insert(key, of);
        }
    }

    /// Addresses that samples fell in: what they count as, file, offset, and what is there. Of samples at
    /// instructions that touched pages this part, the ends of page faults, is left out.
    pub(crate) fn spots(&self, tail: f64) -> impl Iterator<Item = (Category, &Rc<str>, u64, Spot)> {
        self.spots.iter().map(move |((category, path, offset), spot)| {
            let touched = self.touched.contains_key(&(Rc::clone(path), *offset));
            let weight = spot.weight * if touched { 1.0 - tail } else { 1.0 };
            let spot = Spot { weight, ..spot.clone() };
            (*category, path, *offset, spot)
        })
    }

    /// Functions of all categories: category, name, file, weight. Of samples at instructions that touched
    /// pages this part, the ends of page faults, is left out.
    pub(crate) fn functions(&self, tail: f64) -> Vec<(Category, &str, &str, f64)> {
        let mut touching: HashMap<(Category, &str, &str), f64> = HashMap::new();
        for ((category, path, offset), spot) in &self.spots {
            if self.touched.contains_key(&(Rc::clone(path), *offset)) {
                let name = spot.function.as_deref().unwrap_or(WITHOUT_NAME);
                *touching.entry((*category, name, &spot.object)).or_default() += spot.weight;
            }
        }
        let functions = self.functions.iter().map(|((category, name, object), weight)| {
            let touching = touching.get(&(*category, name, object)).copied().unwrap_or(0.0);
            (*category, name.as_str(), object.as_str(), weight - tail * touching)
        });
        functions.collect()
    }

    /// How it got there, outermost function first.
    pub(crate) fn stack(&mut self, category: Category, side: Side, frames: Vec<Rc<str>>, weight: f64) {
        add_to(&mut self.stacks, MOST_STACKS, (category, side, frames), weight);
    }

    /// Whether a sample of user code has a name.
    pub(crate) fn is_named(&mut self, named: bool, weight: f64) {
        self.named.0 += weight;
        self.named.1 += if named { 0.0 } else { weight };
    }

    /// A sampled page fault, by what the user code did.
    pub(crate) fn fault(&mut self, reason: Reason) {
        *self.faults.entry(reason).or_default() += 1.0;
    }

    /// Sampled page faults, by what the user code did: each counts for what its stretch stands for.
    pub(crate) fn faults(&self) -> impl Iterator<Item = (Reason, f64)> {
        self.faults.iter().map(|(reason, faults)| (*reason, *faults))
    }

    /// The kernel served a fault of this instruction; `weight`: of a sample in it, if it was one.
    pub(crate) fn touched(&mut self, path: &Rc<str>, offset: u64, weight: f64) {
        add_to(&mut self.touched, MOST_SPOTS, (Rc::clone(path), offset), weight);
    }

    /// A sample of user code at this instruction.
    pub(crate) fn at(&mut self, path: &Rc<str>, offset: u64, reason: Reason, weight: f64) {
        add_to(&mut self.at, MOST_SPOTS, (Rc::clone(path), offset, reason), weight);
    }

    /// What fell on instructions at which pages were touched.
    pub(crate) fn touching(&self) -> Touching {
        let mut user: HashMap<Reason, f64> = HashMap::new();
        for ((path, offset, reason), weight) in &self.at {
            if self.touched.contains_key(&(Rc::clone(path), *offset)) {
                *user.entry(*reason).or_default() += weight;
            }
        }
        let mut user: Vec<_> = user.into_iter().collect();
        user.sort_by_key(|of| of.0);
        Touching { kernel: self.touched.values().sum(), user }
    }

    pub(crate) fn reasons(&self) -> impl Iterator<Item = (Reason, Weight)> {
        self.reasons.iter().map(|(reason, weight)| (*reason, *weight))
    }

    pub(crate) fn total(&self) -> Weight {
        let mut sum = Weight::default();
        self.reasons.values().for_each(|weight| sum.add(*weight));
        sum
    }

    /// Share of samples of user code without a name; `None` without samples.
    pub(crate) fn nameless(&self) -> Option<f64> {
        (self.named.0 > 0.0).then(|| self.named.1 / self.named.0)
    }

    /// Stacks, heaviest first: category, whose code ran, functions, weight.
    pub(crate) fn stacks(&self) -> Vec<(Category, Side, &[Rc<str>], f64)> {
        let mut stacks: Vec<_> = self
            .stacks
            .iter()
            .map(|((category, side, frames), weight)| (*category, *side, frames.as_slice(), *weight))
            .collect();
        stacks.sort_by(|a, b| b.3.total_cmp(&a.3).then_with(|| a.2.cmp(b.2)));
        stacks
    }

    /// By how much slices differ more than samples do by chance, as a sum of squared weights. See
    /// [`crate::account::weights`].
    pub(crate) fn doubt(&mut self, spread: f64) {
        self.spread += spread;
    }

    /// Equal samples that all are worth, picked at random from what they stand for.
    pub(crate) fn worth(&self) -> f64 {
        let total = self.total();
        let off = total.squares + self.spread;
        if off > 0.0 { total.sum * total.sum / off } else { 0.0 }
    }

    /// Shares by category and function.
    pub(crate) fn kinds(&self) -> Kinds {
        let all: f64 = self.functions.values().sum();
        let functions = self.functions.iter();
        functions.map(|(key, weight)| (key.clone(), weight / all.max(1e-12))).collect()
    }

    /// Adds those of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.add_times(other, 1.0);
    }

    /// Adds those of another stretch or run, each so many times as heavy.
    pub(crate) fn add_times(&mut self, other: &Self, by: f64) {
        for (reason, weight) in other.reasons() {
            self.reasons.entry(reason).or_default().add(weight.times(by));
        }
        for (reason, weight) in &other.kernel {
            self.in_kernel(*reason, weight * by);
        }
        for ((category, name, object), weight) in &other.functions {
            self.function(*category, name, object, weight * by);
        }
        for ((category, side, frames), weight) in &other.stacks {
            self.stack(*category, *side, frames.clone(), weight * by);
        }
        for (category, path, offset, mut spot) in other.spots(0.0) {
            spot.weight *= by;
            self.spot(category, path, offset, spot);
        }
        self.named.0 += other.named.0 * by;
        self.named.1 += other.named.1 * by;
        for (reason, faults) in &other.faults {
            *self.faults.entry(*reason).or_default() += faults * by;
        }
        for ((path, offset), weight) in &other.touched {
            self.touched(path, *offset, weight * by);
        }
        for ((path, offset, reason), weight) in &other.at {
            self.at(path, *offset, *reason, weight * by);
        }
        self.doubt(other.spread * by * by);
    }
}
