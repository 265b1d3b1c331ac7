//! What recorded stretches of a run stand for.
//!
//! Recording goes on and off by what it costs ([`crate::governor`]): of a part that waits often a tenth is
//! recorded, of a quiet one all. So samples are weighed by the CPU time that their stretch stands for, which
//! the kernel's counters know of recorded time and of the rest (weights by the inverse of the chance of being
//! taken: Horvitz and Thompson 1952; within strata, here by cost: Holt and Smith 1979).
//!
//! 1. The run's CPU time is a row of stretches, each with what recording it costs by its switches and starts,
//!    recorded or not.
//! 2. CPU time that was not recorded is given to the nearest recorded stretches before and after that cost
//!    about as much to record, to the nearer one more. Whether something is recorded hangs on cost and time
//!    alone, so among those recorded is as good as not.
//! 3. Of what nothing that was recorded costs as much, nothing is known, and samples of other parts are not
//!    taken for it: the ledger has the kernel's counters for it, as for a program that cannot be recorded at
//!    all, and the rest is unexplained ([`crate::account::estimate`]).
//! 4. What was given to a slice varies as slices do: by half the squared difference between one and the next
//!    alike (successive differences: Wolter, Introduction to Variance Estimation, chapter 8). What that is
//!    more than samples differ by chance makes the interval wider.

use std::collections::HashMap;

use crate::account::by_stage::Samples;
use crate::account::mix::{Kinds, Mix};

/// A stretch that was not recorded is cut when it is as long as a slice, of CPU time; a recorded one at half
/// of it, so that a slice which goes on into a quieter part has some of each.
const UNRECORDED_NS: f64 = 5_000_000.0;
/// See [`UNRECORDED_NS`].
pub(crate) const RECORDED_NS: f64 = 2_500_000.0;
/// Costs so many times apart are alike: of a hundred switches chance alone makes 80 to 120, and programs are
/// not as even as chance.
const ALIKE: f64 = 3.0;
/// What costs less than this is recorded all the time, and alike: half of the least overhead that is allowed
/// by name.
const CHEAP: f64 = 0.01;
/// Samples on each side that stand for what was not recorded between them: one alone would be all or nothing.
const NEAR: f64 = 3.0;
/// More than as much again as the scans have met is of processes that came and went between them, nobody
/// knows when: it is as all the rest.
const MOST_UNMET: f64 = 2.0;
/// Stretches kept; of more, neighbours are put together. Comparing each with each stays within a millisecond
/// or two.
const MOST: usize = 1024;

/// What a recorded stretch gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// Its samples.
    pub mix: Mix,
    /// The same by stages that the program marked.
    pub stages: Samples,
    /// Nanoseconds of wall time in which a thread ran.
    pub running_ns: f64,
    /// Nanoseconds of CPU time that its samples stand for by their period alone.
    pub sampled_ns: f64,
}

#[derive(Clone, Debug, Default)]
struct Stretch {
    cpu_ns: f64,
    cost_ns: f64,
    /// Recorded without a pause.
    slice: u32,
    kept: Option<Kept>,
}

impl Stretch {
    fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.cost_ns += other.cost_ns;
        if let (Some(kept), Some(more)) = (&mut self.kept, other.kept) {
            kept.mix.add(&more.mix);
            kept.stages.add(&more.stages, 1.0);
            kept.running_ns += more.running_ns;
            kept.sampled_ns += more.sampled_ns;
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        is_alike(self.cost_ns / self.cpu_ns, other.cost_ns / other.cpu_ns)
    }
}

fn is_alike(one: f64, other: f64) -> bool {
    let (one, other) = (one.max(CHEAP), other.max(CHEAP));
    one.max(other) <= ALIKE * one.min(other)
}

/// What the samples of a run say of all of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weighed {
    /// Samples, each with the weight of what it stands for.
    pub mix: Mix,
    /// By stages, each with its factor.
    pub stages: Vec<(Samples, f64)>,
    /// Nanoseconds of wall time in which a thread ran that they stand for.
    pub of_ns: f64,
    /// What nothing like it was recorded of.
    pub unlike: Unlike,
}

/// What nothing like it was recorded of, and of how much.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Unlike {
    /// CPU time.
    pub ns: f64,
    /// CPU time of the whole run.
    pub of_ns: f64,
    /// What recording it would have cost, by its switches and starts.
    pub cost: f64,
    /// The same of the whole run.
    pub of_cost: f64,
}

impl Unlike {
    /// Adds another run's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ns += other.ns;
        self.of_ns += other.of_ns;
        self.cost += other.cost;
        self.of_cost += other.of_cost;
    }

    /// Part of CPU time.
    pub(crate) fn of_cpu(&self) -> f64 {
        if self.of_ns > 0.0 { self.ns / self.of_ns } else { 0.0 }
    }

    /// Part of the switches and starts.
    pub(crate) fn of_switches(&self) -> f64 {
        if self.of_cost > 0.0 { self.cost / self.of_cost } else { self.of_cpu() }
    }
}

/// A run's stretches, in order of time. See the module.
#[derive(Debug, Default)]
pub(crate) struct Stretches {
    list: Vec<Stretch>,
    slice: u32,
    /// Times that neighbours were put together.
    coarse: i32,
}

/// What a stretch is taken for.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    /// Of its samples, for itself.
    own: f64,
    /// CPU time given to it.
    given_ns: f64,
}

impl Stretches {
    /// CPU time that was not recorded, and what recording would have cost.
    pub(crate) fn unrecorded(&mut self, cpu_ns: f64, cost_ns: f64) {
        let most = UNRECORDED_NS * 2.0_f64.powi(self.coarse);
        let new = Stretch { cpu_ns, cost_ns, ..Stretch::default() };
        match self.list.last_mut() {
            Some(last) if last.kept.is_none() && last.cpu_ns + cpu_ns / 2.0 < most => last.add(new),
            _ => self.push(new),
        }
    }

    /// Recording begins again.
    pub(crate) fn begin_slice(&mut self) {
        self.slice += 1;
    }

    /// CPU time that was recorded, what that cost, and what it gave.
    pub(crate) fn recorded(&mut self, cpu_ns: f64, cost_ns: f64, kept: Kept) {
        let new = Stretch {
            // Of a moment without CPU time there may be a sample all the same.
            cpu_ns: cpu_ns.max(1.0),
            cost_ns,
            slice: self.slice,
            kept: Some(kept),
        };
        let long = RECORDED_NS * 2.0_f64.powi(self.coarse);
        match self.list.last_mut() {
            Some(last)
                if last.kept.is_some() && last.slice == new.slice && last.cpu_ns.min(cpu_ns) < long / 2.0 =>
            {
                last.add(new);
            }
            _ => self.push(new),
        }
    }

    fn push(&mut self, new: Stretch) {
        if self.list.len() >= MOST {
            self.coarse += 1;
            let mut list: Vec<Stretch> = Vec::with_capacity(MOST);
            // Of four neighbours, one recorded stretch and one that was not.
            for four in std::mem::take(&mut self.list).chunks_mut(4) {
                let from = list.len();
                for stretch in four.iter_mut().map(std::mem::take) {
                    let fits = |known: &&mut Stretch| known.kept.is_some() == stretch.kept.is_some();
                    match list[from..].iter_mut().find(fits) {
                        Some(known) => known.add(stretch),
                        None => list.push(stretch),
                    }
                }
            }
            self.list = list;
        }
        self.list.push(new);
    }

    /// CPU time by stretches that were not recorded, nanoseconds.
    fn unrecorded_ns(&self) -> f64 {
        let not = self.list.iter().filter(|stretch| stretch.kept.is_none());
        not.map(|stretch| stretch.cpu_ns).sum()
    }

    /// What all samples say. `unrecorded_ns`: CPU time that was not recorded by the kernel's last word, which
    /// scans may have met only in part.
    pub(crate) fn weigh(mut self, unrecorded_ns: f64, sees_kernel: bool) -> Weighed {
        let met = self.unrecorded_ns();
        if met > 0.0 {
            let by = (unrecorded_ns / met).clamp(0.0, MOST_UNMET);
            for stretch in self.list.iter_mut().filter(|stretch| stretch.kept.is_none()) {
                stretch.cpu_ns *= by;
                stretch.cost_ns *= by;
            }
        }
        self.list.retain(|stretch| stretch.cpu_ns > 0.0);
        let (weights, unlike) = self.weights(sees_kernel);
        let mut weighed = Weighed::default();
        let mut given: Vec<f64> = vec![0.0; self.list.len()];
        for (at, (stretch, weight)) in self.list.iter().zip(&weights).enumerate() {
            let Some(kept) = &stretch.kept else { continue };
            let base = if sees_kernel { kept.sampled_ns } else { stretch.cpu_ns };
            let more = if base > 0.0 { weight.given_ns / base } else { 0.0 };
            let factor = weight.own + more;
            weighed.mix.add_times(&kept.mix, factor);
            weighed.stages.push((kept.stages.clone(), factor));
            weighed.of_ns += factor * kept.running_ns;
            given[at] = more;
        }
        let spread = self.spread(&given, &weighed.mix.kinds());
        let all = |of: fn(&Stretch) -> f64| self.list.iter().map(of).sum::<f64>();
        weighed.mix.doubt(spread);
        if weighed.mix.total().samples == 0 {
            // Other runs may say what this one was.
            return weighed;
        }
        weighed.unlike = Unlike {
            ns: unlike.cpu_ns,
            of_ns: all(|stretch| stretch.cpu_ns),
            cost: unlike.cost_ns,
            of_cost: all(|stretch| stretch.cost_ns),
        };
        weighed
    }

    /// Of each stretch, and what nothing alike was recorded of.
    fn weights(&self, sees_kernel: bool) -> (Vec<Weight>, Stretch) {
        let mut slices: HashMap<u32, (f64, f64)> = HashMap::new();
        for stretch in &self.list {
            if let Some(kept) = &stretch.kept {
                let slice = slices.entry(stretch.slice).or_default();
                slice.0 += stretch.cpu_ns;
                slice.1 += kept.sampled_ns;
            }
        }
        let mut weights: Vec<Weight> = vec![Weight::default(); self.list.len()];
        for (stretch, weight) in self.list.iter().zip(&mut weights) {
            let (cpu_ns, sampled_ns) = slices.get(&stretch.slice).copied().unwrap_or_default();
            weight.own = match &stretch.kept {
                // What of a slice comes before its first sample and after its last is as the samples are.
                Some(_) if sees_kernel && sampled_ns > 0.0 => cpu_ns / sampled_ns,
                Some(_) if !sees_kernel => 1.0,
                _ => 0.0,
            };
        }
        // Samples that a stretch has; those of user code alone, that it would have of all.
        let period = self.period_ns();
        let taken = |stretch: &Stretch| match &stretch.kept {
            Some(kept) if sees_kernel => kept.mix.total().samples as f64,
            Some(_) => stretch.cpu_ns / period,
            None => 0.0,
        };
        let taken: Vec<f64> = self.list.iter().map(taken).collect();
        let middles: Vec<f64> = self
            .list
            .iter()
            .scan(0.0, |end, stretch| {
                *end += stretch.cpu_ns;
                Some(*end - stretch.cpu_ns / 2.0)
            })
            .collect();
        let mut unlike = Stretch::default();
        for (at, stretch) in self.list.iter().enumerate() {
            if weights[at].own > 0.0 {
                continue;
            }
            // A switch or two of a moment are no rate.
            let is_moment = stretch.cpu_ns < RECORDED_NS;
            let found = self.nearest(at, &taken, |other| is_moment || other.is_alike(stretch));
            if found.iter().all(Vec::is_empty) {
                unlike.cpu_ns += stretch.cpu_ns;
                unlike.cost_ns += stretch.cost_ns;
                continue;
            }
            let far = |side: &[usize]| {
                let nearest = side.first().map(|near| (middles[*near] - middles[at]).abs());
                nearest.map_or(0.0, |far| 1.0 / far.max(1.0))
            };
            let all = far(&found[0]) + far(&found[1]);
            for side in &found {
                let of_side: f64 = side.iter().map(|near| taken[*near]).sum();
                for near in side {
                    weights[*near].given_ns += stretch.cpu_ns * far(side) / all * taken[*near] / of_side;
                }
            }
        }
        (weights, unlike)
    }

    /// CPU time between samples, by those that there are; without any, whatever: nothing hangs on it then.
    fn period_ns(&self) -> f64 {
        let kept = self.list.iter().filter_map(|stretch| stretch.kept.as_ref());
        let (ns, samples) = kept
            .fold((0.0, 0.0), |sum, kept| (sum.0 + kept.sampled_ns, sum.1 + kept.mix.total().samples as f64));
        if samples > 0.0 { ns / samples } else { RECORDED_NS }
    }

    /// The nearest stretches with samples before and after one, as many as it takes.
    fn nearest(&self, at: usize, taken: &[f64], fits: impl Fn(&Stretch) -> bool) -> [Vec<usize>; 2] {
        let gather = |candidates: &mut dyn Iterator<Item = usize>| {
            let (mut side, mut sum) = (Vec::new(), 0.0);
            for near in candidates {
                if taken[near] > 0.0 && fits(&self.list[near]) {
                    side.push(near);
                    sum += taken[near];
                    if sum >= NEAR {
                        break;
                    }
                }
            }
            side
        };
        [gather(&mut (0..at).rev()), gather(&mut (at + 1..self.list.len()))]
    }

    /// What was given to slices, times that and their own, times how much one slice differs from the next
    /// that is alike, as a part of how much one sample differs from the next; without what chance makes of
    /// that. `given`: times what the samples of a stretch are; `kinds`: shares of the whole.
    fn spread(&self, given: &[f64], kinds: &Kinds) -> f64 {
        let apart = 1.0 - kinds.values().map(|share| share * share).sum::<f64>();
        if apart <= 1e-9 {
            return 0.0;
        }
        // What follows each other in a slice is one cluster.
        let mut clusters: Vec<Cluster> = Vec::new();
        for (at, stretch) in self.list.iter().enumerate() {
            let Some(kept) = stretch.kept.as_ref().filter(|_| given[at] > 0.0) else { continue };
            let goes_on = clusters
                .last()
                .is_some_and(|last| last.last + 1 == at && self.list[at - 1].slice == stretch.slice);
            if !goes_on {
                clusters.push(Cluster { first: at, last: at, own: 0.0, mix: Mix::default() });
            }
            if let Some(cluster) = clusters.last_mut() {
                cluster.last = at;
                cluster.own += kept.mix.total().sum;
                cluster.mix.add_times(&kept.mix, given[at]);
            }
        }
        let kinds: Vec<Kinds> = clusters.iter().map(|cluster| cluster.mix.kinds()).collect();
        let first = |at: usize| &self.list[clusters[at].first];
        let of = |at: usize| {
            let next = (at + 1..clusters.len()).find(|other| first(at).is_alike(first(*other)));
            let next = next.or_else(|| (0..at).rev().find(|other| first(at).is_alike(first(*other))));
            // One alone does not say how much another would differ: as one sample.
            let differs = next.map_or(1.0, |next| apart_by(&kinds[at], &kinds[next]) / 2.0 / apart);
            let total = clusters[at].mix.total();
            // What was not recorded differs from slice to slice as well.
            total.sum * (total.sum + clusters[at].own) * differs - total.squares
        };
        (0..clusters.len()).map(of).sum::<f64>().max(0.0)
    }
}

/// Stretches of one slice that were given something.
struct Cluster {
    first: usize,
    last: usize,
    /// Weight of its samples for themselves.
    own: f64,
    /// Samples with the weight of what was given.
    mix: Mix,
}

fn apart_by(one: &Kinds, other: &Kinds) -> f64 {
    let in_one: f64 =
        one.iter().map(|(key, share)| (share - other.get(key).copied().unwrap_or(0.0)).powi(2)).sum();
    let in_other = other.iter().filter(|(key, _)| !one.contains_key(key));
    in_one + in_other.map(|(_, share)| share * share).sum::<f64>()
}

#[cfg(test)]
mod tests;
