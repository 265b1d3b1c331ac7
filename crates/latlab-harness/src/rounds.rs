//! What is derived from figures gets its range from the rounds of the run.
//!
//! ```text
//! made in each round   knee, fit, ratio of a round's points ──► the same function of every round alone ──► fold_rounds about the value
//! made of points       ratio of two figures that share few rounds ──► their intervals, squares of half widths added on the logarithm
//! of different rounds
//! ```
//! What is made anew from each round keeps what its points share there: a slow round is slow in both terms of
//! a ratio, and no part of its range (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM
//! 2013, compare systems within an execution for the same reason). Where terms come from different rounds
//! nothing is shared, and relative variances add (JCGM 100:2008, the GUM, 5.1.6 for products of powers).

use std::collections::BTreeMap;

use latlab_record::{ByCpu, Estimate};

use crate::{Figure, PointResult, Probe};

/// What has a figure and what each of its rounds says alone.
pub trait OfRounds: Sized {
    /// Each with its round and CPU.
    fn of_rounds(&self) -> impl Iterator<Item = (u32, u32, Self)>;
}

impl OfRounds for PointResult {
    fn of_rounds(&self) -> impl Iterator<Item = (u32, u32, Self)> {
        self.rounds.iter().map(|own| (own.round, own.cpu, own.result.clone()))
    }
}

impl<P: Probe> OfRounds for Figure<P> {
    fn of_rounds(&self) -> impl Iterator<Item = (u32, u32, Self)> {
        self.result.rounds.iter().filter_map(|own| Some((own.round, own.cpu, Self::of(&own.result)?)))
    }
}

/// The figures of a probe, together and by round.
#[derive(Debug)]
pub struct Rounds<'a, F = PointResult> {
    figures: &'a [F],
    /// CPU and figures of each round.
    alone: Vec<(u32, Vec<F>)>,
}

impl<'a, F: OfRounds> Rounds<'a, F> {
    /// Sorts what the rounds of these figures say.
    pub fn of(figures: &'a [F]) -> Self {
        let mut alone: BTreeMap<u32, (u32, Vec<F>)> = BTreeMap::new();
        for (round, cpu, figure) in figures.iter().flat_map(OfRounds::of_rounds) {
            alone.entry(round).or_insert((cpu, Vec::new())).1.push(figure);
        }
        Self { figures, alone: alone.into_values().collect() }
    }

    /// One quantity for each of these kin: its value is the function of the figures, its range that of the
    /// function of each round alone. `None` of a round that lacks points which the function needs leaves that
    /// round out.
    pub fn estimates<T>(&self, kin: &[T], of: impl Fn(&T, &[F]) -> Option<f64>) -> Vec<Option<Estimate>> {
        let mut known = Vec::new();
        let values: Vec<Option<f64>> = kin
            .iter()
            .map(|own| {
                let value = of(own, self.figures)?;
                let reported = self.alone.iter().filter_map(|(cpu, results)| Some((*cpu, of(own, results)?)));
                known.push((value, by_cpu(reported)));
                Some(value)
            })
            .collect();
        let mut estimates = Estimate::of_kin(&known).into_iter();
        values.into_iter().map(|value| value.and_then(|_| estimates.next())).collect()
    }

    /// A quantity without kin.
    pub fn estimate(&self, of: impl Fn(&[F]) -> Option<f64>) -> Option<Estimate> {
        self.estimates(&[()], |(), results| of(results)).remove(0)
    }
}

/// Each first figure over its second one; the ratios are kin.
pub fn ratios(kin: &[[&PointResult; 2]]) -> Vec<Estimate> {
    let made: Vec<(f64, ByCpu)> = kin
        .iter()
        .map(|[over, under]| {
            let ratio = |over: f64, under: f64| over / under;
            (ratio(over.p50, under.p50), shared(over, under, ratio))
        })
        .collect();
    let estimates = Estimate::of_kin(&made).into_iter().zip(kin);
    estimates
        .map(|(own, [over, under])| match own.ends() {
            Some(_) => own,
            None => product(own.value, &[over.median(), under.median()]),
        })
        .collect()
}

/// One figure over another one.
pub fn ratio(over: &PointResult, under: &PointResult) -> Estimate {
    ratios(&[[over, under]])[0]
}

/// A product or quotient of quantities from different rounds, given its value; without a range where one of
/// them has none.
pub fn product(value: f64, of: &[Estimate]) -> Estimate {
    let squares: Option<f64> = of
        .iter()
        .map(|own| {
            let [low, high] = own.ends()?;
            Some(((high / low).ln() / 2.0).powi(2))
        })
        .sum();
    let factors = squares.map(|squares| [(-squares.sqrt()).exp(), squares.sqrt().exp()]);
    Estimate::within(value, factors)
}

/// What a function of two points was in the rounds that have both; empty where those are less than most of
/// one's: the other's other rounds would have no say.
fn shared(one: &PointResult, other: &PointResult, of: impl Fn(f64, f64) -> f64) -> ByCpu {
    let both: Vec<(u32, f64)> = one
        .rounds
        .iter()
        .filter_map(|own| {
            let theirs = other.rounds.iter().find(|theirs| theirs.round == own.round)?;
            Some((own.cpu, of(own.result.p50, theirs.result.p50)))
        })
        .collect();
    if 2 * both.len() > one.rounds.len().max(other.rounds.len()) {
        by_cpu(both.into_iter())
    } else {
        ByCpu::new()
    }
}

fn by_cpu(reported: impl Iterator<Item = (u32, f64)>) -> ByCpu {
    let mut by_cpu: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (cpu, value) in reported {
        by_cpu.entry(cpu).or_default().push(value);
    }
    by_cpu.into_values().collect()
}

#[cfg(test)]
mod tests {
    use latlab_record::Point;

    use super::*;
    use crate::RoundResult;

    /// By round on two CPUs in turn.
    fn figure(files: u64, p50: f64, rounds: &[(u32, f64)]) -> PointResult {
        let point = Point { files: Some(files), ..Point::default() };
        let alone = |(round, p50): &(u32, f64)| RoundResult {
            round: *round,
            cpu: round % 2,
            result: PointResult::new(point.clone(), *p50),
        };
        PointResult { rounds: rounds.iter().map(alone).collect(), ..PointResult::new(point.clone(), p50) }
    }

    fn p50(results: &[PointResult], files: u64) -> Option<f64> {
        let own = results.iter().find(|result| result.point.files == Some(files));
        own.map(|result| result.p50)
    }

    /// A machine that is 30 % slower in every second pair of rounds, in all that it does.
    fn slow_and_fast() -> Vec<PointResult> {
        let speed = |round: u32| if (round / 2).is_multiple_of(2) { 1.0 } else { 1.3 };
        let rounds = |ns: f64| -> Vec<(u32, f64)> {
            (0..8).map(|round| (round, ns * speed(round) * (1.0 + 0.002 * f64::from(round % 3)))).collect()
        };
        vec![figure(1, 11.5, &rounds(10.0)), figure(2, 46.0, &rounds(40.0))]
    }

    #[test]
    fn what_points_share_in_a_round_is_not_in_the_range_of_their_ratio() {
        let results = slow_and_fast();
        let own = ratio(&results[1], &results[0]);
        let [low, high] = own.ends().expect("eight rounds");
        assert!((own.value - 4.0).abs() < 1e-9 && low < 4.0 && 4.0 < high);
        assert!(high / low < 1.01, "{own:?}");
        // The same by the function of each round.
        let rounds = Rounds::of(&results);
        let made = rounds.estimate(|results| Some(p50(results, 2)? / p50(results, 1)?));
        assert_eq!(made, Some(own));
        // One of them alone is as unsure as its rounds differ.
        let single = rounds.estimate(|results| p50(results, 1)).expect("a figure");
        let [low, high] = single.ends().expect("eight rounds");
        assert!(high / low > 1.2, "{single:?}");
    }

    #[test]
    fn rounds_that_lack_a_point_have_no_say_and_a_quantity_of_no_point_is_none() {
        let mut results = slow_and_fast();
        results[1].rounds.truncate(5);
        results[1].rounds[4].result.p50 = 60.0;
        let rounds = Rounds::of(&results);
        let made = rounds.estimates(&[2, 3], |files, results| Some(p50(results, *files)? / p50(results, 1)?));
        let [low, high] = made[0].expect("both").ends().expect("five rounds");
        assert!(high / low > 1.2, "the odd one is among them");
        assert_eq!(made[1], None);
    }

    #[test]
    fn figures_of_different_rounds_are_combined_by_their_own_intervals() {
        let mut results = slow_and_fast();
        results[1].rounds.truncate(2);
        assert_eq!(ratio(&results[1], &results[0]).ends(), None, "neither has one");
        results[0].interval = Some([11.5 / 1.03, 11.5 * 1.03]);
        results[1].interval = Some([46.0 / 1.04, 46.0 * 1.04]);
        let [low, high] = ratio(&results[1], &results[0]).ends().expect("both have one");
        let half = (1.03_f64.ln().powi(2) + 1.04_f64.ln().powi(2)).sqrt();
        assert!(
            ((high / 4.0).ln() - half).abs() < 1e-4 && ((4.0 / low).ln() - half).abs() < 1e-4,
            "{low} {high}"
        );
    }
}
