use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dip::{Dip, dip_of_counts};
use crate::special::{normal_cdf, normal_sf};
use crate::weighted::quantile_counts;

/// Bins between the quartiles; away from the median they widen by this part of the distance from it.
const BODY_BINS: f64 = 25.0;
const WIDENING: f64 = 0.05;
/// No probability is below this, so that one sample where a family has nothing does not make its likelihood minus infinity.
const LEAST_PROBABILITY: f64 = 1e-300;
/// A tail is compared where so many samples lie beyond, and at most this share.
const LEAST_COMPARED: f64 = 10.0;
const COMPARED_SHARE: f64 = 0.1;
/// Expectation and maximisation is given up after so many rounds: what still moves then is a flat ridge.
const ROUNDS: usize = 80;

/// Samples in bins whose borders fall between steps of the clock, so that its comb favours no family.
#[derive(Debug, Clone)]
pub struct Bins {
    each: Vec<Bin>,
    total: f64,
    /// Width of a bin of the body.
    grain: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bin {
    from: f64,
    to: f64,
    count: f64,
    /// Mean of its samples.
    mean: f64,
}

impl Bins {
    /// Of `(value, count)`, ascending, none negative.
    ///
    /// `step`: what the values are multiples of (the clock's step), 0 where they are not. `grain`: relative width of the
    /// buckets that the values stand for, 0 for samples.
    #[must_use]
    pub fn new(counts: &[(f64, u64)], step: f64, grain: f64) -> Option<Self> {
        let sound = |value: f64| value >= 0.0 && value.is_finite();
        if !counts.iter().all(|(value, _)| sound(*value)) || !sound(step) || !sound(grain) {
            return None;
        }
        let total: f64 = counts.iter().map(|(_, count)| *count as f64).sum();
        let [lower, median, upper] = [0.25, 0.5, 0.75].map(|q| quantile_counts(counts, q));
        let largest = counts.last()?.0;
        if total < 1.0 {
            return None;
        }
        let mut body = ((upper - lower) / BODY_BINS).max(step).max(2.0 * grain * median);
        if body <= 0.0 {
            // Most samples are equal: as wide as what tells the others apart.
            body = counts.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(largest, f64::min).max(1e-12);
        }
        let whole = |width: f64| {
            if step > 0.0 { (width / step).round().max(1.0) * step } else { width }
        };
        let body = whole(body);
        let width = |at: f64| whole(body.max(WIDENING * (at - median).abs()).max(2.0 * grain * at));
        let lowest = counts.first()?.0;
        let mut from = if step > 0.0 { ((lowest / step).round() - 0.5) * step } else { lowest - body * 1e-3 };
        let mut bins = Vec::new();
        let mut rest = counts.iter().peekable();
        while rest.peek().is_some() {
            let to = from + width(from);
            let (mut count, mut sum) = (0.0, 0.0);
            while let Some((value, own)) = rest.next_if(|(value, _)| *value < to) {
                count += *own as f64;
                sum += value * *own as f64;
            }
            if count > 0.0 {
                bins.push(Bin { from, to, count, mean: sum / count });
            }
            // An empty stretch is passed in one go; the next bin's borders stay between steps.
            from = match rest.peek() {
                Some((value, _)) if *value >= to + 64.0 * width(to) => {
                    let ahead = ((*value - to) / body - 1.0).floor() * body;
                    to + ahead
                }
                _ => to,
            };
        }
        Some(Self { each: bins, total, grain: body })
    }

    /// Hartigan's dip test of the logarithms, with the samples spread evenly within each bin: the clock's steps are no modes.
    /// `effective`: how many independent samples these are worth. `None` for fewer than ten.
    #[must_use]
    pub fn dip_of_logs(&self, effective: f64) -> Option<Dip> {
        let mut borders: Vec<(f64, f64)> = Vec::with_capacity(2 * self.each.len());
        let mut below = 0.0;
        for bin in &self.each {
            // A bin around zero has no logarithm of its lower border: it is as wide as from half of its upper one.
            let from = if bin.from > 0.0 { bin.from } else { bin.to / 2.0 }.ln();
            if borders.last().is_none_or(|last| last.0 < from) {
                borders.push((from, below));
            }
            below += bin.count;
            borders.push((bin.to.ln(), below));
        }
        dip_of_counts(&borders, effective)
    }

    fn log_likelihood(&self, of: &Law) -> f64 {
        self.each.iter().map(|bin| bin.count * of.log_probability(bin)).sum()
    }

    /// `(upper border, samples above it)` where a tail can be compared.
    fn tail(&self) -> impl Iterator<Item = (f64, f64)> {
        let mut above = self.total;
        self.each.iter().filter_map(move |bin| {
            above -= bin.count;
            (above >= LEAST_COMPARED && above <= COMPARED_SHARE * self.total).then_some((bin.to, above))
        })
    }
}

/// A family of distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// By mean and standard deviation.
    Normal,
    /// The logarithm is normal.
    Lognormal,
    /// The logarithm of what exceeds a floor is normal.
    ShiftedLognormal,
    /// A power law from the smallest sample on.
    Pareto,
    /// Two lognormals.
    TwoLognormals,
    /// A lognormal, and a power law from a threshold on.
    LognormalAndPareto,
}

/// One part of a law.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Normal { mean: f64, deviation: f64 },
    Lognormal { floor: f64, mean: f64, deviation: f64 },
    Pareto { from: f64, index: f64 },
}

impl Part {
    /// Standard deviations above the middle; `None` at or below the floor, and of a power law.
    fn z(&self, x: f64) -> Option<f64> {
        match *self {
            Self::Normal { mean, deviation } => Some((x - mean) / deviation),
            Self::Lognormal { floor, mean, deviation } => {
                (x > floor).then(|| ((x - floor).ln() - mean) / deviation)
            }
            Self::Pareto { .. } => None,
        }
    }

    /// Share above `x`.
    fn above(&self, x: f64) -> f64 {
        match *self {
            Self::Pareto { from, index } if x > from => (x / from).powf(-index),
            _ => self.z(x).map_or(1.0, normal_sf),
        }
    }

    /// Share in a bin, exact far out on both sides.
    fn within(&self, bin: &Bin) -> f64 {
        match (self.z(bin.from), self.z(bin.to)) {
            // Below the middle the lower tails differ without cancelling.
            (Some(from), Some(to)) if to < 0.0 => normal_sf(-to) - normal_sf(-from),
            (None, Some(to)) if to < 0.0 => normal_sf(-to),
            _ => self.above(bin.from) - self.above(bin.to),
        }
    }
}

/// A weighted sum of parts.
#[derive(Debug, Clone, PartialEq)]
struct Law(Vec<(f64, Part)>);

impl Law {
    fn above(&self, x: f64) -> f64 {
        self.0.iter().map(|(weight, part)| weight * part.above(x)).sum()
    }

    fn log_probability(&self, bin: &Bin) -> f64 {
        let share: f64 = self.0.iter().map(|(weight, part)| weight * part.within(bin)).sum();
        share.max(LEAST_PROBABILITY).ln()
    }
}

/// One family, fitted by maximum likelihood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// Which.
    pub family: Family,
    /// Its parameters by name; values are in the unit of the samples, `log_` ones of the natural logarithm.
    pub parameters: Vec<(String, f64)>,
    /// Of the bins, natural logarithm.
    pub log_likelihood: f64,
    /// Schwarz's criterion (Annals of Statistics 6, 1978): smaller is better.
    pub bic: f64,
    /// Vuong's test against the best family, corrected for parameters (Econometrica 57, 1989): standard deviations by which
    /// the best one is better. None for the best one itself.
    pub vuong_z: Option<f64>,
    /// Chance of a difference at least as large between two that are equally far from the truth.
    pub vuong_p: Option<f64>,
    /// Where in the slowest tenth the family is furthest off, as long as ten samples lie beyond: `(value, share seen above it,
    /// share that the family puts there)`.
    pub furthest_off: Option<(f64, f64, f64)>,
    /// Share above each of the values that were asked for.
    pub above: Vec<f64>,
}

/// All families, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// By Schwarz's criterion.
    pub fits: Vec<Fit>,
    /// Samples.
    pub samples: f64,
    /// Independent samples that these are worth, as far as the caller said: Vuong's test counts with them.
    pub effective: f64,
}

/// Fits every family and compares them; `at`: where [`Fit::above`] is wanted. `None` for fewer than 50 samples, or if all are
/// in one bin.
#[must_use]
pub fn families(bins: &Bins, effective: f64, at: &[f64]) -> Option<Comparison> {
    const LEAST: f64 = 50.0;
    if bins.total < LEAST || bins.each.len() < 3 {
        return None;
    }
    let mut fitted: Vec<(Family, Law, f64)> = vec![
        (Family::Normal, normal(bins), 2.0),
        (Family::Lognormal, lognormal(bins, 0.0), 2.0),
        (Family::ShiftedLognormal, shifted(bins), 3.0),
        (Family::Pareto, pareto(bins), 2.0),
    ];
    fitted.extend(two_lognormals(bins).map(|law| (Family::TwoLognormals, law, 5.0)));
    fitted.extend(with_pareto(bins).map(|law| (Family::LognormalAndPareto, law, 5.0)));
    let effective = effective.clamp(1.0, bins.total);
    let size = bins.total.ln();
    let mut rated: Vec<(f64, f64, Family, Law, f64)> = fitted
        .into_iter()
        .map(|(family, law, free)| {
            let likelihood = bins.log_likelihood(&law);
            (free * size - 2.0 * likelihood, likelihood, family, law, free)
        })
        .collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = rated[0].clone();
    let fits = rated
        .into_iter()
        .enumerate()
        .map(|(place, (bic, log_likelihood, family, law, free))| {
            let z = (place > 0).then(|| vuong(bins, (&best.3, best.4), (&law, free), effective));
            Fit {
                family,
                parameters: parameters(&law),
                log_likelihood,
                bic,
                vuong_z: z,
                vuong_p: z.map(|z| 2.0 * normal_cdf(-z.abs())),
                furthest_off: furthest_off(bins, &law),
                above: at.iter().map(|x| law.above(*x)).collect(),
            }
        })
        .collect();
    Some(Comparison { fits, samples: bins.total, effective })
}

fn vuong(bins: &Bins, best: (&Law, f64), other: (&Law, f64), effective: f64) -> f64 {
    let n = bins.total;
    let (mut sum, mut squares) = (0.0, 0.0);
    for bin in &bins.each {
        let ratio = best.0.log_probability(bin) - other.0.log_probability(bin);
        sum += bin.count * ratio;
        squares += bin.count * ratio * ratio;
    }
    let variance = (squares / n - (sum / n).powi(2)).max(1e-30);
    (sum / n - (best.1 - other.1) * n.ln() / (2.0 * n)) / variance.sqrt() * effective.sqrt()
}

fn furthest_off(bins: &Bins, law: &Law) -> Option<(f64, f64, f64)> {
    bins.tail().map(|(x, above)| (x, above / bins.total, law.above(x))).max_by(|a, b| {
        let off = |t: &(f64, f64, f64)| (t.2.max(LEAST_PROBABILITY) / t.1).ln().abs();
        off(a).total_cmp(&off(b))
    })
}

fn parameters(law: &Law) -> Vec<(String, f64)> {
    let several = law.0.len() > 1;
    let mut named = Vec::new();
    for (number, (weight, part)) in (1..).zip(&law.0) {
        let mut add = |name: &str, value: f64| {
            named.push((if several { format!("{name}_{number}") } else { name.to_owned() }, value));
        };
        if several {
            add("share", *weight);
        }
        match *part {
            Part::Normal { mean, deviation } => {
                add("mean", mean);
                add("deviation", deviation);
            }
            Part::Lognormal { floor, mean, deviation } => {
                if floor != 0.0 {
                    add("floor", floor);
                }
                add("log_mean", mean);
                add("log_deviation", deviation);
            }
            Part::Pareto { from, index } => {
                add("from", from);
                add("index", index);
            }
        }
    }
    named
}

fn normal(bins: &Bins) -> Law {
    let mean = bins.each.iter().map(|bin| bin.count * bin.mean).sum::<f64>() / bins.total;
    let squares = bins.each.iter().map(|bin| bin.count * (bin.mean - mean).powi(2)).sum::<f64>();
    // A deviation far below a bin is not known; the bins hold it up.
    let deviation = (squares / bins.total).sqrt().max(bins.grain / 10.0);
    Law(vec![(1.0, Part::Normal { mean, deviation })])
}

/// Weights of the bins' samples in a part, and the part that fits them best.
fn lognormal_part(bins: &Bins, floor: f64, weight: impl Fn(usize) -> f64) -> (f64, Part) {
    let log = |bin: &Bin| (bin.mean - floor).max(0.25 * (bin.to - bin.from).min(bins.grain)).ln();
    let (mut held, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (place, bin) in bins.each.iter().enumerate() {
        let own = bin.count * weight(place);
        held += own;
        sum += own * log(bin);
        squares += own * log(bin).powi(2);
    }
    let mean = sum / held.max(1e-300);
    // Never narrower than a fifth of a bin: one that is cannot be told from a point.
    let least = 0.2 * (bins.grain / mean.exp()).min(1.0);
    let deviation = (squares / held.max(1e-300) - mean * mean).max(0.0).sqrt().max(least.max(1e-6));
    (held, Part::Lognormal { floor, mean, deviation })
}

fn lognormal(bins: &Bins, floor: f64) -> Law {
    Law(vec![(1.0, lognormal_part(bins, floor, |_| 1.0).1)])
}

/// The floor is searched for below the smallest bin, on a logarithmic axis of its distance.
fn shifted(bins: &Bins) -> Law {
    const STEPS: i32 = 32;
    let smallest = bins.each[0].mean;
    let typical = normal_scale(bins, smallest);
    let floors = (0..=STEPS).map(|step| smallest - typical * 10.0_f64.powf(f64::from(step) / 8.0 - 3.0));
    best_of(bins, floors.map(|floor| lognormal(bins, floor))).unwrap_or_else(|| lognormal(bins, 0.0))
}

/// Distance of the middle bin's samples from the smallest.
fn normal_scale(bins: &Bins, smallest: f64) -> f64 {
    let mut below = 0.0;
    let middle = bins.each.iter().find(|bin| {
        below += bin.count;
        below >= bins.total / 2.0
    });
    middle.map_or(0.0, |bin| bin.mean - smallest).max(bins.grain)
}

fn pareto(bins: &Bins) -> Law {
    let from = bins.each[0].from.max(bins.each[0].mean / 2.0).max(bins.grain / 4.0);
    Law(vec![(1.0, pareto_part(bins, from, |_| 1.0).1)])
}

fn pareto_part(bins: &Bins, from: f64, weight: impl Fn(usize) -> f64) -> (f64, Part) {
    let (mut held, mut logs) = (0.0, 0.0);
    for (place, bin) in bins.each.iter().enumerate().filter(|(_, bin)| bin.to > from) {
        let own = bin.count * weight(place);
        held += own;
        logs += own * (bin.mean.max(from) / from).ln();
    }
    let index = (held / logs.max(1e-12)).clamp(0.05, 1e3);
    (held, Part::Pareto { from, index })
}

/// Share of the samples below a place of the bins, for the starts of the mixtures.
fn splits(bins: &Bins) -> Vec<usize> {
    let mut places = Vec::new();
    let mut above = bins.total;
    let mut wanted = [0.7, 0.4, 0.15, 0.05, 0.015, 0.005, 0.0015, 0.0005, 0.00015].iter().peekable();
    for (place, bin) in bins.each.iter().enumerate() {
        if wanted.next_if(|share| above <= **share * bins.total).is_some() {
            while wanted.next_if(|share| above <= **share * bins.total).is_some() {}
            if place > 0 && above >= LEAST_COMPARED {
                places.push(place);
            }
        }
        above -= bin.count;
    }
    places
}

/// Expectation and maximisation from one start: `refit` gives the second part from the weights of the bins in it.
fn mixed(bins: &Bins, start: usize, refit: impl Fn(&dyn Fn(usize) -> f64) -> (f64, Part)) -> Law {
    let mut second: Vec<f64> =
        (0..bins.each.len()).map(|place| f64::from(u8::from(place >= start))).collect();
    let mut law = Law(Vec::new());
    let mut reached = f64::NEG_INFINITY;
    for _ in 0..ROUNDS {
        let body = lognormal_part(bins, 0.0, |place| 1.0 - second[place]);
        let tail = refit(&|place| second[place]);
        let held = body.0 + tail.0;
        law = Law(vec![(body.0 / held, body.1), (tail.0 / held, tail.1)]);
        let mut likelihood = 0.0;
        for (bin, own) in bins.each.iter().zip(&mut second) {
            let [a, b] = [0, 1].map(|part| law.0[part].0 * law.0[part].1.within(bin));
            let both = (a + b).max(LEAST_PROBABILITY);
            // Where neither part reaches, the sample stays where it was.
            if a + b > LEAST_PROBABILITY {
                *own = b / both;
            }
            likelihood += bin.count * both.ln();
        }
        if likelihood - reached < 1e-2 {
            break;
        }
        reached = likelihood;
    }
    law
}

fn best_of(bins: &Bins, laws: impl Iterator<Item = Law>) -> Option<Law> {
    laws.map(|law| (bins.log_likelihood(&law), law))
        .filter(|rated| rated.0.is_finite())
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|best| best.1)
}

fn two_lognormals(bins: &Bins) -> Option<Law> {
    let law = |start| mixed(bins, start, |weight| lognormal_part(bins, 0.0, weight));
    best_of(bins, splits(bins).into_iter().map(law))
}

/// Bins from the middle on with samples enough beyond, evenly on a logarithmic axis: a power law is fitted from each on.
fn origins(bins: &Bins) -> Vec<usize> {
    const MOST: f64 = 32.0;
    let mut above = bins.total;
    let mut places = Vec::new();
    for (place, bin) in bins.each.iter().enumerate() {
        if place > 0 && bin.from > 0.0 && above >= LEAST_COMPARED && above <= 0.7 * bins.total {
            places.push(place);
        }
        above -= bin.count;
    }
    let at = |place: usize| bins.each[place].from;
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return places;
    };
    let step = (at(*last) / at(*first)).ln() / MOST;
    let mut next = at(*first).ln();
    places.retain(|place| {
        let taken = at(*place).ln() >= next - 1e-9;
        if taken {
            next = at(*place).ln() + step;
        }
        taken
    });
    places
}

fn with_pareto(bins: &Bins) -> Option<Law> {
    let law = |start: usize| {
        let from = bins.each[start].from.max(bins.grain / 4.0);
        mixed(bins, start, |weight| pareto_part(bins, from, weight))
    };
    best_of(bins, origins(bins).into_iter().map(law))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn compared(draw: impl Fn(&mut Rng) -> f64, n: usize, step: f64) -> Comparison {
        let mut rng = Rng::new(11);
        let mut values: Vec<f64> = (0..n)
            .map(|_| {
                let value = draw(&mut rng);
                if step > 0.0 { (value / step).round() * step } else { value }
            })
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let counts: Vec<(f64, u64)> = values.into_iter().map(|value| (value, 1)).collect();
        families(&Bins::new(&counts, step, 0.0).unwrap(), n as f64, &[]).unwrap()
    }

    fn parameter(fit: &Fit, name: &str) -> f64 {
        fit.parameters.iter().find(|p| p.0 == name).unwrap_or_else(|| panic!("{name}: {fit:?}")).1
    }

    #[test]
    fn each_family_is_told_from_the_others_with_its_parameters() {
        for step in [0.0, 0.7] {
            let best = compared(|rng| 100.0 + 8.0 * rng.normal(), 8000, step).fits.remove(0);
            assert_eq!(best.family, Family::Normal, "{best:?}");
            assert!(
                (parameter(&best, "mean") - 100.0).abs() < 0.5
                    && (parameter(&best, "deviation") - 8.0).abs() < 0.3
            );

            let best = compared(|rng| (4.0 + 0.8 * rng.normal()).exp(), 8000, step).fits.remove(0);
            assert_eq!(best.family, Family::Lognormal, "{best:?}");
            assert!((parameter(&best, "log_mean") - 4.0).abs() < 0.05);
            assert!((parameter(&best, "log_deviation") - 0.8).abs() < 0.03);

            let best = compared(|rng| 200.0 + (3.0 + 0.8 * rng.normal()).exp(), 8000, step).fits.remove(0);
            assert_eq!(best.family, Family::ShiftedLognormal, "{best:?}");
            assert!((parameter(&best, "floor") / 200.0 - 1.0).abs() < 0.02, "{best:?}");

            let best =
                compared(|rng| 50.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.5), 8000, step).fits.remove(0);
            assert_eq!(best.family, Family::Pareto, "{best:?}");
            assert!((parameter(&best, "index") - 1.5).abs() < 0.1, "{best:?}");
        }
    }

    #[test]
    fn two_parts_are_found_with_their_shares() {
        let spikes = |rng: &mut Rng| {
            let slow = rng.uniform() < 0.02;
            (if slow { 8.0 + 0.3 * rng.normal() } else { 4.0 + 0.1 * rng.normal() }).exp()
        };
        let best = compared(spikes, 10_000, 0.7).fits.remove(0);
        assert_eq!(best.family, Family::TwoLognormals, "{best:?}");
        assert!((parameter(&best, "share_2") - 0.02).abs() < 0.005, "{best:?}");
        assert!((parameter(&best, "log_mean_2") - 8.0).abs() < 0.1, "{best:?}");

        let tailed = |rng: &mut Rng| {
            if rng.uniform() < 0.05 {
                500.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.2)
            } else {
                (4.0 + 0.2 * rng.normal()).exp()
            }
        };
        let best = compared(tailed, 20_000, 0.7).fits.remove(0);
        assert_eq!(best.family, Family::LognormalAndPareto, "{best:?}");
        assert!((parameter(&best, "index_2") - 1.2).abs() < 0.2, "{best:?}");
        assert!((parameter(&best, "share_2") - 0.05).abs() < 0.01, "{best:?}");
    }

    #[test]
    fn a_normal_is_furthest_off_where_the_tail_is() {
        let found = compared(|rng| 1.0 + (1.0 - rng.uniform()).powf(-1.0 / 1.5), 20_000, 0.0);
        let normal = found.fits.iter().find(|fit| fit.family == Family::Normal).unwrap();
        let (_, seen, expected) = normal.furthest_off.unwrap();
        assert!(seen > 100.0 * expected, "{normal:?}");
        assert!(normal.vuong_z.unwrap() > 3.0 && normal.vuong_p.unwrap() < 0.01);
        assert_eq!(found.fits[0].vuong_z, None);
    }

    #[test]
    fn families_that_cannot_be_told_apart_are_not() {
        // Fifty samples: lognormal or normal with a deviation of a tenth look alike.
        let found = compared(|rng| (4.0 + 0.1 * rng.normal()).exp(), 60, 0.0);
        let other = found
            .fits
            .iter()
            .find(|fit| matches!(fit.family, Family::Normal | Family::Lognormal) && fit.vuong_p.is_some());
        assert!(other.unwrap().vuong_p.unwrap() > 0.05, "{found:?}");
    }

    #[test]
    fn two_groups_dip_and_one_with_a_coarse_clock_does_not() {
        let dips = |slow: f64| {
            let mut rng = Rng::new(5);
            let mut values: Vec<f64> = (0..4000)
                .map(|_| {
                    let centre = if rng.uniform() < slow { 5.0 } else { 4.0 };
                    ((centre + 0.2 * rng.normal()).exp() / 10.0).round() * 10.0
                })
                .collect();
            values.sort_unstable_by(f64::total_cmp);
            let counts: Vec<(f64, u64)> = values.into_iter().map(|value| (value, 1)).collect();
            Bins::new(&counts, 10.0, 0.0).unwrap().dip_of_logs(4000.0).unwrap()
        };
        assert!(dips(0.3).p < 0.01, "{:?}", dips(0.3));
        assert!(dips(0.0).p > 0.1, "{:?}", dips(0.0));
    }

    #[test]
    fn what_cannot_be_fitted_is_not() {
        assert!(Bins::new(&[], 0.0, 0.0).is_none());
        assert!(Bins::new(&[(-1.0, 100)], 0.0, 0.0).is_none());
        assert!(families(&Bins::new(&[(5.0, 1000)], 1.0, 0.0).unwrap(), 1000.0, &[]).is_none());
        let half = [(0.0, 500), (10.0, 480), (20.0, 20)];
        assert!(families(&Bins::new(&half, 10.0, 0.0).unwrap(), 1000.0, &[5.0]).is_some(), "a coarse clock");
    }

    #[test]
    fn shares_above_and_within_a_bin_agree_with_scipy() {
        let bin = |from: f64, to: f64| Bin { from, to, count: 1.0, mean: from };
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
        let normal = Part::Normal { mean: 10.0, deviation: 2.0 };
        near(normal.above(13.0), 0.066_807_201_268_858_07);
        near(normal.within(&bin(3.0, 4.0)), 0.001_117_268_952_594_568_2);
        near(normal.within(&bin(3.0, 16.0)), 0.998_417_472_889_334_4);
        near(normal.within(&bin(-32.0, -30.0)), 2.753_624_115_326_877_8e-89);
        let lognormal = Part::Lognormal { floor: 5.0, mean: 3.0, deviation: 0.5 };
        near(lognormal.above(30.0), 0.330_783_161_901_765_27);
        near(lognormal.above(5.0), 1.0);
        near(lognormal.within(&bin(8.0, 40.0)), 0.866_578_872_164_171_4);
        near(lognormal.within(&bin(4.0, 7.0)), 1.977_762_634_330_915e-6);
        near(lognormal.within(&bin(60.0, 90.0)), 0.020_014_620_501_433_576);
        let pareto = Part::Pareto { from: 2.0, index: 1.5 };
        near(pareto.above(8.0), 0.125);
        near(pareto.above(1.0), 1.0);
        near(pareto.within(&bin(4.0, 8.0)), 0.228_553_390_593_273_8);
        near(pareto.within(&bin(1.0, 8.0)), 0.875);
    }

    #[test]
    fn the_deviation_of_a_normal_and_the_middle_are_those_of_the_bins() {
        let bins = |counts: &[(f64, u64)]| Bins::new(counts, 10.0, 0.0).unwrap();
        let deviation_of = |counts: &[(f64, u64)]| match normal(&bins(counts)).0[0].1 {
            Part::Normal { deviation, .. } => deviation,
            other => panic!("{other:?}"),
        };
        // 480 of 10 and 20 of 20 beside 500 of 0: a mean of 5.2.
        let found = deviation_of(&[(0.0, 500), (10.0, 480), (20.0, 20)]);
        assert!((found - 28.96_f64.sqrt()).abs() < 1e-12, "{found}");
        let found = deviation_of(&[(10.0, 1_000_000), (20.0, 1)]);
        assert!((found - 1.0).abs() < 1e-12, "a tenth of a bin: {found}");
        let scale = normal_scale(&bins(&[(0.0, 100), (50.0, 480), (60.0, 20)]), 0.0);
        assert!((scale - 50.0).abs() < 1e-12, "{scale}");
    }

    #[test]
    fn a_tail_is_compared_between_a_tenth_of_the_samples_and_the_last_ten() {
        let counts = [(0.0, 500), (10.0, 400), (20.0, 50), (30.0, 30), (40.0, 15), (50.0, 5)];
        let tail: Vec<(f64, f64)> = Bins::new(&counts, 10.0, 0.0).unwrap().tail().collect();
        assert_eq!(tail, [(15.0, 100.0), (25.0, 50.0), (35.0, 20.0)]);
    }
}
