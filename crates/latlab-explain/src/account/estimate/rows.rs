//! The ledger's rows, their functions and stacks, from nanoseconds by reason.

use std::collections::BTreeMap;

use super::{Estimate, Ledger};
use crate::Category;
use crate::account::interval::Range;
use crate::account::mix::{Mix, Side};
use crate::account::sampled::{Sampled, Share};
use crate::model::{Closure, Function, Method, Part, Row, Stack, Within};
use crate::rules::Reason;

const CLOSED: f64 = 0.005;
const MOST_FUNCTIONS: usize = 16;
const MOST_STACKS: usize = 2048;
/// Bytes of their functions' names together; of a large C++ program they are less.
pub(super) const MOST_TEXT: usize = 4 << 20;

impl Estimate<'_> {
    pub(super) fn finish(self) -> Ledger {
        let wall = (self.tally.wall_ns as f64).max(1.0);
        let runs = f64::from(self.tally.runs.max(1));
        let sum = self.account.total() / wall;
        let closure = Closure { sum, holds: (sum - 1.0).abs() <= CLOSED };
        // Rounding of the clocks is spread over all rows; more than that is what `closure` says.
        let scale = if sum > 0.0 { 1.0 / sum } else { 1.0 };
        let reported = self.reported(scale / wall);
        let functions = functions(&self.tally.mix, &reported);
        let levels_user = !self.sees_user();
        let within = self.kernel.within.as_ref();
        let mut rows = Vec::new();
        for &category in Category::ALL {
            let unseen = Category::OF_USER_CODE.contains(&category) && levels_user
                || Category::OF_THE_KERNEL.contains(&category) && within.is_some();
            let of: Vec<(Reason, &Vec<(Share, Method)>)> = self
                .account
                .sums
                .iter()
                .filter(|(reason, _)| self.rules.category(**reason) == category)
                .map(|(reason, sums)| (*reason, sums))
                .collect();
            if of.is_empty() && (unseen || category == Category::UserCpu) {
                continue;
            }
            let functions = functions.get(&category).map_or(&[][..], Vec::as_slice);
            rows.push(self.row(category, &of, wall, scale, runs, functions));
        }
        for row in &mut rows {
            let most = row.high;
            let any = |of: &[Category]| {
                of.iter().map(|name| Within { name: *name, share: 0.0, low: 0.0, high: most }).collect()
            };
            let part = |(name, share): (&Category, &Share)| {
                let Range { low, high } = share.times(scale / wall).range();
                Within { name: *name, share: share.of * scale / wall, low, high: high.min(most) }
            };
            row.within = match (row.name, within) {
                (Category::UserCpu, _) => any(&Category::OF_USER_CODE),
                (Category::KernelCpu, Some(within)) => within.iter().map(part).collect(),
                (Category::KernelCpu, None) if !self.tally.sees_kernel => any(&Category::OF_THE_KERNEL),
                _ => Vec::new(),
            };
        }
        rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.name.cmp(&b.name)));
        let stacks = self.tally.mix.stacks().into_iter().take(MOST_STACKS);
        let mut text = 0;
        let mut stacks: Vec<Stack> = stacks
            .take_while(|stack| {
                text += stack.2.iter().map(|name| name.len()).sum::<usize>();
                text <= MOST_TEXT
            })
            .map(|(name, side, frames, weight)| Stack {
                name,
                frames: frames.iter().map(ToString::to_string).collect(),
                share: reported.any(name, side, weight).of,
            })
            .collect();
        stacks.sort_by(|a, b| b.share.total_cmp(&a.share));
        let of_user = |category| category == Category::UserCpu || Category::OF_USER_CODE.contains(&category);
        let for_it = self.on_cpu.iter().filter(|(key, _)| key.1 == Side::Kernel && of_user(key.0));
        let computing = for_it.fold(self.user, |sum, (_, spent)| sum.and(*spent)).times(scale / wall).range();
        let mut on_cpu: BTreeMap<Category, f64> = BTreeMap::new();
        for ((category, _), spent) in &self.on_cpu {
            *on_cpu.entry(*category).or_default() += spent.of;
        }
        Ledger {
            rows,
            closure,
            computing,
            stacks,
            on_cpu: on_cpu.into_iter().collect(),
            sampled: reported,
            running_ns: self.running,
            cpu_ns: self.cpu() + self.before_records,
            contradiction: None,
        }
    }

    /// Nanoseconds of wall time in which a thread ran that the samples stand for, with those that fell in the
    /// kernel unseen.
    pub(super) fn sampled_ns(&self) -> f64 {
        let ns = self.tally.sampled_ns;
        if ns > 0.0 { ns } else { (self.tally.recorded.running as f64).max(1.0) }
    }

    /// What the samples stand for; `share`: of wall time, of a nanosecond.
    fn reported(&self, share: f64) -> Sampled {
        let mix = &self.tally.mix;
        let sampled = (mix.total().sum / self.sampled_ns()).clamp(1e-6, 1.0);
        let worth = if self.tally.sees_kernel { mix.worth() } else { mix.worth() / sampled };
        let spent = self.on_cpu.iter().map(|(key, spent)| (*key, spent.times(share)));
        let steady = self.steady(mix.worth());
        let reported = Sampled::of(&spent.collect(), mix, self.rules, self.tail, worth, steady);
        reported.beside(self.unseen * share)
    }

    fn row(
        &self,
        category: Category,
        of: &[(Reason, &Vec<(Share, Method)>)],
        wall: f64,
        scale: f64,
        runs: f64,
        functions: &[Function],
    ) -> Row {
        let all = || of.iter().flat_map(|(_, sums)| sums.iter());
        let share = all().map(|(share, _)| share.of).sum::<f64>().max(0.0) / wall * scale;
        let root =
            |side: fn(&Share) -> f64| all().map(|(share, _)| side(share).powi(2)).sum::<f64>().sqrt() / wall;
        let method = all().filter(|(share, _)| share.of > 0.0).map(|(_, method)| *method).max();
        let mut parts: Vec<Part> = of
            .iter()
            .filter(|(reason, _)| !self.rules.part(*reason).is_empty())
            .map(|(reason, sums)| {
                let share = sums.iter().map(|(share, _)| share.of).sum::<f64>() / wall * scale;
                Part { name: self.rules.part(*reason).to_owned(), share, seconds: share * wall / 1e9 / runs }
            })
            .collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        Row {
            name: category,
            share,
            low: (share - root(|share| share.below)).max(0.0),
            high: (share + root(|share| share.above)).clamp(0.0, 1.0),
            seconds: share * wall / 1e9 / runs,
            method: method.unwrap_or(Method::Counted),
            parts,
            functions: functions.to_vec(),
            within: Vec::new(),
        }
    }
}

/// The heaviest functions of each category.
fn functions(mix: &Mix, reported: &Sampled) -> BTreeMap<Category, Vec<Function>> {
    let mut of: BTreeMap<Category, Vec<Function>> = BTreeMap::new();
    for (category, name, object, weight) in mix.functions(reported.tail) {
        let share = reported.own(category, Side::of(object), weight);
        let range = share.range();
        of.entry(category).or_default().push(Function {
            name: name.to_owned(),
            object: object.to_owned(),
            share: share.of,
            low: range.low,
            high: range.high,
        });
    }
    for functions in of.values_mut() {
        functions.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        functions.truncate(MOST_FUNCTIONS);
    }
    of
}
