use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exceedances::{Exceedances, LEAST_BEYOND};
use crate::count::whole;
use crate::special::{NORMAL_95, t_quantile};

/// Thresholds of a plot.
const THRESHOLDS: usize = 40;
/// Below this many samples the interval covers less than it says.
const LEAST_FOR_INTERVAL: f64 = 60.0;
/// The same of one series, whose stretches stand in for blocks, and how many independent ones these must be worth.
const LEAST_OF_A_SERIES: f64 = 150.0;
const LEAST_WORTH: f64 = 40.0;

/// Hill's estimate of the tail index above one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HillPoint {
    /// Samples above the threshold.
    pub beyond: f64,
    /// Their part of all samples.
    pub share: f64,
    /// The threshold, in the unit of the samples.
    pub threshold: f64,
    /// The share of samples above x falls as x to the power of minus this, if it falls as a power at all.
    pub index: f64,
    /// 95 % interval of the index above this very threshold; none where the order of measuring is not known.
    pub interval: Option<(f64, f64)>,
}

/// Hill's plot (Annals of Statistics 3, 1975): the tail index over thresholds, up to half of the samples, which must be
/// positive. Where it does not stand still there is no tail index.
///
/// The interval is the wider one of two: Student's t of the sums that the groups contribute, and that of as many
/// independent samples.
#[must_use]
pub fn hill(of: &Exceedances) -> Vec<HillPoint> {
    of.thresholds(LEAST_BEYOND as f64, THRESHOLDS)
        .into_iter()
        .filter_map(|(place, beyond)| at(of, place, beyond))
        .collect()
}

fn at(of: &Exceedances, place: usize, beyond: f64) -> Option<HillPoint> {
    let threshold = of.largest[place].0;
    let above = &of.largest[..place];
    let gamma = above.iter().map(|(x, w, _)| w * (x / threshold).ln()).sum::<f64>() / beyond;
    (gamma > 0.0).then(|| HillPoint {
        beyond,
        share: beyond / of.total,
        threshold,
        index: 1.0 / gamma,
        interval: interval(of, above, beyond, threshold, gamma),
    })
}

fn interval(
    of: &Exceedances,
    above: &[(f64, f64, u32)],
    beyond: f64,
    threshold: f64,
    gamma: f64,
) -> Option<(f64, f64)> {
    let few = if of.series {
        beyond < LEAST_OF_A_SERIES || beyond * of.worth < LEAST_WORTH
    } else {
        beyond < LEAST_FOR_INTERVAL
    };
    if few {
        return None;
    }
    let (error, df) = of.error(above, |x| (x / threshold).ln() - gamma)?;
    // On the logarithm, where the estimate of a scale is nearly symmetric.
    let between = t_quantile(0.975, df) * error / gamma;
    let least = NORMAL_95 / beyond.sqrt();
    let factor = between.max(least).exp();
    Some((1.0 / (gamma * factor), factor / gamma))
}

/// A tail index that holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailIndex {
    /// Where it was taken.
    pub at: HillPoint,
    /// The largest value of which at least twenty samples are as large, over the threshold: how far it was seen to hold.
    pub span: f64,
}

/// Why no tail index is given; figures are without unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum IndexRefusal {
    /// The tail ends before a decade of values.
    #[error("the slowest tenth spans a factor of {span:.1} up to where 20 samples are left, needs 10")]
    TooShort {
        /// The twentieth largest sample over the threshold of the slowest tenth.
        span: f64,
    },
    /// The index depends on the threshold.
    #[error("it would be {low:.2} or {high:.2}, depending on where it is taken")]
    DoesNotHold {
        /// The smallest of a decade's estimates.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Too few samples.
    #[error("{have} samples in the slowest tenth, needs {need}")]
    TooFew {
        /// Samples there are.
        have: u64,
        /// Samples it takes.
        need: u64,
    },
}

/// Shares of the samples that are tried as the tail, largest first.
const TAILS: [f64; 5] = [0.1, 0.03, 0.01, 0.003, 0.001];
/// Fewest samples in a tail whose index is given: with 600, one in five lognormals passed for a power law.
const LEAST_FOR_INDEX: f64 = 1000.0;
/// The tail reaches this factor with at least [`LEAST_BEYOND`] samples beyond it.
const DECADE: f64 = 10.0;
/// Each of two tests may refuse a true power law once in ten times: refusing costs a number, passing costs trust.
const DEVIATIONS: f64 = 1.645;

/// The tail index, where the tail falls as one power of the value over at least a factor of ten.
///
/// Of the shares 10 %, 3 %, ... of the samples the first is taken whose logarithms are exponential above the threshold
/// (variance over squared mean, Greenwood 1946), with the same index below and above the middle of the decade.
///
/// # Errors
/// [`IndexRefusal`].
pub fn tail_index(of: &Exceedances) -> Result<TailIndex, IndexRefusal> {
    let borders = of.thresholds(LEAST_FOR_INDEX, 4 * THRESHOLDS);
    // Of each share the nearest border that is not further in; only one above which there is so much.
    let mut tried: Vec<(usize, f64)> = TAILS
        .iter()
        .filter(|share| **share * of.total >= LEAST_FOR_INDEX)
        .filter_map(|share| borders.iter().rev().find(|border| border.1 <= share * of.total * 1.001))
        .copied()
        .collect();
    tried.dedup();
    if tried.is_empty() {
        let (have, need) = (whole(TAILS[0] * of.total), whole(LEAST_FOR_INDEX));
        return Err(IndexRefusal::TooFew { have, need });
    }
    let end = value_of_rank(of, LEAST_BEYOND as f64);
    let mut refusal: Option<IndexRefusal> = None;
    for (place, beyond) in tried {
        let Some(point) = at(of, place, beyond) else {
            continue;
        };
        let span = end / point.threshold;
        if span < DECADE {
            refusal = refusal.or(Some(IndexRefusal::TooShort { span }));
            continue;
        }
        match holds(of, place, &point) {
            Ok(()) => return Ok(TailIndex { at: point, span }),
            Err((low, high)) => {
                let (low, high) = match refusal {
                    Some(IndexRefusal::DoesNotHold { low: l, high: h }) => (low.min(l), high.max(h)),
                    _ => (low, high),
                };
                refusal = Some(IndexRefusal::DoesNotHold { low, high });
            }
        }
    }
    Err(refusal.unwrap_or(IndexRefusal::TooShort { span: 1.0 }))
}

fn value_of_rank(of: &Exceedances, rank: f64) -> f64 {
    let mut above = 0.0;
    for (value, count, _) in &of.largest {
        above += count;
        if above >= rank {
            return *value;
        }
    }
    of.largest.last().map_or(f64::NAN, |value| value.0)
}

/// Whether the logarithms above the threshold are exponential; else the smallest and largest index of its parts.
fn holds(of: &Exceedances, place: usize, point: &HillPoint) -> Result<(), (f64, f64)> {
    let above = &of.largest[..place];
    let mean = 1.0 / point.index;
    let squares: f64 =
        above.iter().map(|(x, w, _)| w * (x / point.threshold).ln().powi(2)).sum::<f64>() / point.beyond;
    // Of an exponential the squared coefficient of variation is 1, with a variance of 4/n.
    let curved = (squares / (mean * mean) - 2.0) * point.beyond.sqrt() / 2.0;
    // Below and above the middle of the decade, the lower part censored there.
    let half = DECADE.sqrt().ln();
    let (mut exposure, mut excess, mut below, mut beyond) = (0.0, 0.0, 0.0, 0.0);
    for (x, w, _) in above {
        let log = (x / point.threshold).ln();
        exposure += w * log.min(half);
        if log > half {
            excess += w * (log - half);
            beyond += w;
        } else {
            below += w;
        }
    }
    let (lower, upper) = (below / exposure, beyond / excess);
    let step = (upper / lower).ln() / (1.0 / below + 1.0 / beyond).sqrt();
    if curved.abs() <= DEVIATIONS && step.abs() <= DEVIATIONS {
        Ok(())
    } else {
        Err((lower.min(upper), lower.max(upper)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn pareto(seed: u64, n: usize, index: f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| (1.0 - rng.uniform()).powf(-1.0 / index)).collect()
    }

    #[test]
    fn the_estimate_is_hills() {
        // ln(8/1), ln(4/1), ln(2/1): the mean is 2 ln 2.
        let mut values = vec![8.0, 4.0, 2.0];
        values.extend([1.0; 3]);
        let of = Exceedances::of_blocks(&[&values]).unwrap();
        let point = at(&of, 3, 3.0).unwrap();
        assert!((point.index - 1.0 / (2.0 * std::f64::consts::LN_2)).abs() < 1e-12);
        assert_eq!(point.interval, None);
    }

    #[test]
    fn the_index_of_a_pareto_is_found_and_its_plot_stands_still() {
        let of = Exceedances::of_blocks(&[&pareto(1, 20_000, 1.5)]).unwrap();
        for point in hill(&of) {
            assert!((point.index / 1.5 - 1.0).abs() < 4.0 / point.beyond.sqrt(), "{point:?}");
        }
        let found = tail_index(&of).unwrap();
        let (lo, hi) = found.at.interval.unwrap();
        assert!(lo < 1.5 && 1.5 < hi && hi < 1.8, "{found:?}");
        assert!(found.span > 10.0);
    }

    #[test]
    fn a_histogram_gives_the_same_estimate_without_an_interval() {
        let mut values = pareto(2, 20_000, 1.5);
        values.sort_unstable_by(f64::total_cmp);
        let buckets: Vec<(f64, u64)> = values.iter().map(|x| (*x, 1)).collect();
        let (one, other) = (
            tail_index(&Exceedances::of_blocks(&[&values]).unwrap()).unwrap(),
            tail_index(&Exceedances::of_counts(&buckets).unwrap()).unwrap(),
        );
        assert!((one.at.index - other.at.index).abs() < 1e-12);
        assert_eq!(other.at.interval, None);
    }

    #[test]
    fn what_is_no_power_law_has_no_index() {
        let mut rng = Rng::new(3);
        let normal: Vec<f64> = (0..20_000).map(|_| 100.0 + rng.normal()).collect();
        let lognormal: Vec<f64> = (0..20_000).map(|_| (2.0 * rng.normal()).exp()).collect();
        let spikes: Vec<f64> = (0..20_000)
            .map(|_| if rng.uniform() < 0.01 { 4000.0 + 10.0 * rng.normal() } else { 10.0 + rng.uniform() })
            .collect();
        let refused = |values: &[f64]| tail_index(&Exceedances::of_blocks(&[values]).unwrap()).unwrap_err();
        assert!(matches!(refused(&normal), IndexRefusal::TooShort { .. }));
        assert!(matches!(refused(&lognormal), IndexRefusal::DoesNotHold { .. }));
        assert!(matches!(refused(&spikes), IndexRefusal::DoesNotHold { .. } | IndexRefusal::TooShort { .. }));
        assert!(matches!(refused(&normal[..100]), IndexRefusal::TooFew { .. }));
    }

    /// Eight groups of ten samples above 1, whose logarithms are multiples of `1 / (10 + apart * group)`.
    fn groups(apart: f64) -> Exceedances {
        let groups: Vec<Vec<f64>> = (0..8_i32)
            .map(|g| (1..=10).map(|i| (f64::from(i) / (10.0 + apart * f64::from(g))).exp()).collect())
            .collect();
        let mut refs: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
        refs.push(&[1.0]);
        Exceedances::of_groups(&refs, 1000, 1.0).unwrap()
    }

    #[test]
    fn the_interval_is_the_wider_one_of_two() {
        // With scipy.stats.t between groups that differ; as many independent samples where they hardly do.
        for (apart, index, lo, hi) in [
            (1.0, 2.382_219_014_105_688, 1.913_438_292_814_783_5, 2.965_848_155_373_986_4),
            (6.0, 4.290_055_533_550_205, 2.347_548_268_278_28, 7.839_913_977_335_543),
        ] {
            let point = at(&groups(apart), 80, 80.0).unwrap();
            assert!((point.index - index).abs() < 1e-9 && (point.share - 0.08).abs() < 1e-12, "{point:?}");
            let (low, high) = point.interval.unwrap();
            assert!((low / lo - 1.0).abs() < 1e-7 && (high / hi - 1.0).abs() < 1e-7, "{point:?}");
        }
        assert_eq!(at(&groups(1.0), 59, 59.0).unwrap().interval, None, "fewer than sixty");
        assert!(at(&groups(1.0), 60, 60.0).unwrap().interval.is_some());
    }

    #[test]
    fn a_single_series_has_an_interval_from_150_samples_on() {
        let of = Exceedances::of_blocks(&[&pareto(5, 2000, 1.5)]).unwrap();
        let of = Exceedances { worth: 0.4, ..of };
        assert_eq!(at(&of, 149, 149.0).unwrap().interval, None);
        assert!(at(&of, 150, 150.0).unwrap().interval.is_some());
        let of = Exceedances { worth: 0.2, ..of };
        assert_eq!(at(&of, 150, 150.0).unwrap().interval, None, "worth 30 samples");
    }
}
