use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exceedances::{Exceedances, LEAST_BEYOND};
use crate::special::t_quantile;

/// Thresholds of a plot.
const THRESHOLDS: usize = 24;
/// Fewest samples beyond a threshold to which a shape is fitted, and fewest independent ones for an interval: with 200 the bias
/// of the estimate left 90 % of coverage.
const LEAST_FOR_SHAPE: f64 = 40.0;
const LEAST_FOR_INTERVAL: f64 = 300.0;
/// A threshold below so many different values is left out: a fit there costs more than it tells of the tail.
const MOST_ROWS: usize = 20_000;
/// Below this shape the estimate is not near normal (Smith, Biometrika 72, 1985).
const REGULAR: f64 = -0.4;

/// A generalised Pareto distribution fitted to what lies above one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapePoint {
    /// Samples above the threshold.
    pub beyond: f64,
    /// Their part of all samples.
    pub share: f64,
    /// The threshold, in the unit of the samples.
    pub threshold: f64,
    /// 0: falls exponentially; above: as a power of 1 over this; below: there is a largest value.
    pub shape: f64,
    /// In the unit of the samples.
    pub scale: f64,
    /// 95 % interval of the shape.
    pub interval: Option<(f64, f64)>,
}

/// Mean distance above a threshold of what lies above it. It has no interval: under heavy tails the usual one holds the
/// truth 3 to 77 times in a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExcessPoint {
    /// Samples above the threshold.
    pub beyond: f64,
    /// The threshold, in the unit of the samples.
    pub threshold: f64,
    /// Mean of value less threshold.
    pub excess: f64,
}

/// Mean excess over thresholds: level where the tail is exponential, rising straight where it falls as a power.
#[must_use]
pub fn mean_excess(of: &Exceedances) -> Vec<ExcessPoint> {
    of.thresholds(LEAST_BEYOND as f64, THRESHOLDS)
        .into_iter()
        .map(|(place, beyond)| {
            let threshold = of.largest[place].0;
            let sum: f64 = of.largest[..place].iter().map(|(x, w, _)| w * (x - threshold)).sum();
            ExcessPoint { beyond, threshold, excess: sum / beyond }
        })
        .collect()
}

/// Shape of the generalised Pareto distribution over thresholds (Davison and Smith, JRSS B 52, 1990), by maximum likelihood
/// in one dimension (Grimshaw, Technometrics 35, 1993).
#[must_use]
pub fn shape(of: &Exceedances) -> Vec<ShapePoint> {
    of.thresholds(LEAST_FOR_SHAPE, THRESHOLDS)
        .into_iter()
        .take_while(|(place, _)| *place <= MOST_ROWS)
        .filter_map(|(place, beyond)| at(of, place, beyond))
        .collect()
}

fn at(of: &Exceedances, place: usize, beyond: f64) -> Option<ShapePoint> {
    let threshold = of.largest[place].0;
    let above = &of.largest[..place];
    let (shape, scale) = fitted(above, threshold, beyond)?;
    Some(ShapePoint {
        beyond,
        share: beyond / of.total,
        threshold,
        shape,
        scale,
        interval: interval(of, above, threshold, beyond, (shape, scale)),
    })
}

fn interval(
    of: &Exceedances,
    above: &[(f64, f64, u32)],
    threshold: f64,
    beyond: f64,
    (shape, scale): (f64, f64),
) -> Option<(f64, f64)> {
    if beyond * of.worth < LEAST_FOR_INTERVAL || shape < REGULAR {
        return None;
    }
    // What each sample adds to the estimate: the inverse information times its score.
    let (error, df) = of.error(above, |x| {
        let z = (x - threshold) / scale;
        let (by_shape, by_scale) = score(z, shape);
        (1.0 + shape) * ((1.0 + shape) * by_shape - by_scale)
    })?;
    let alone = (1.0 + shape) / beyond.sqrt();
    // What the estimate is off by on average (Giles, Feng and Godwin, Communications in Statistics 45, 2016).
    let bias = (1.0 + shape) * (3.0 + shape) / (beyond * of.worth * (1.0 + 3.0 * shape).max(0.3));
    let half = t_quantile(0.975, df) * error.max(alone) + bias;
    Some((shape - half, shape + half))
}

/// Derivatives of the logarithm of the density by shape and by scale (the latter times the scale).
fn score(z: f64, shape: f64) -> (f64, f64) {
    let by_scale = -1.0 + (1.0 + shape) * z / (1.0 + shape * z);
    let by_shape = if shape.abs() < 1e-4 {
        z * z / 2.0 - z
    } else {
        (shape * z).ln_1p() / (shape * shape) - (1.0 + 1.0 / shape) * z / (1.0 + shape * z)
    };
    (by_shape, by_scale)
}

/// Shape and scale of highest likelihood with a shape above -1/2.
fn fitted(above: &[(f64, f64, u32)], threshold: f64, beyond: f64) -> Option<(f64, f64)> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let largest = above.first()?.0 - threshold;
    let mean = above.iter().map(|(x, w, _)| w * (x - threshold)).sum::<f64>() / beyond;
    if largest <= 0.0 || mean <= 0.0 {
        return None;
    }
    // In theta = shape / scale the likelihood has one dimension; the shape is then a mean.
    let shape_of = |theta: f64| {
        above.iter().map(|(x, w, _)| w * (theta * (x - threshold)).ln_1p()).sum::<f64>() / beyond
    };
    let value = |theta: f64| {
        if theta.abs() * mean < 1e-7 {
            return -mean.ln() - 1.0;
        }
        let shape = shape_of(theta);
        if shape < -0.5 {
            return f64::NEG_INFINITY;
        }
        -(shape / theta).ln() - shape - 1.0
    };
    // From close to the end of the distribution to a hundred thousand times heavier than an exponential.
    let mut grid: Vec<f64> = (1..12).rev().map(|step| -(1.0 - 0.5_f64.powi(step)) / largest).collect();
    grid.push(0.0);
    grid.extend((-12..=20).map(|step| 10.0_f64.powf(f64::from(step) / 4.0) / mean));
    let values: Vec<f64> = grid.iter().map(|theta| value(*theta)).collect();
    let best = (0..grid.len()).max_by(|a, b| values[*a].total_cmp(&values[*b]))?;
    let (mut low, mut high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    let mut inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    let mut heights = inner.map(value);
    for _ in 0..30 {
        if heights[0] < heights[1] {
            low = inner[0];
            inner = [inner[1], low + GOLDEN * (high - low)];
            heights = [heights[1], value(inner[1])];
        } else {
            high = inner[1];
            inner = [high - GOLDEN * (high - low), inner[0]];
            heights = [value(inner[0]), heights[0]];
        }
    }
    let theta = f64::midpoint(low, high);
    if theta.abs() * mean < 1e-7 {
        return Some((0.0, mean));
    }
    let shape = shape_of(theta);
    Some((shape, shape / theta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn drawn(seed: u64, n: usize, shape: f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n)
            .map(|_| {
                let left = 1.0 - rng.uniform();
                // A scale of 3, on a floor of 100.
                100.0 + 3.0 * if shape == 0.0 { -left.ln() } else { (left.powf(-shape) - 1.0) / shape }
            })
            .collect()
    }

    #[test]
    fn planted_shapes_are_found_at_every_threshold() {
        for planted in [-0.3, 0.0, 0.3, 0.7, 1.2] {
            let of = Exceedances::of_blocks(&[&drawn(1, 20_000, planted)]).unwrap();
            let points = shape(&of);
            assert!(points.len() > 10);
            for point in points {
                let tolerance = 4.0 * (1.0 + planted) / point.beyond.sqrt();
                assert!((point.shape - planted).abs() < tolerance, "{planted}: {point:?}");
                assert!(point.interval.is_none_or(|(lo, hi)| lo < point.shape && point.shape < hi));
            }
        }
    }

    #[test]
    fn the_mean_excess_of_an_exponential_is_level_and_of_a_pareto_rises() {
        let level = mean_excess(&Exceedances::of_blocks(&[&drawn(2, 20_000, 0.0)]).unwrap());
        for point in &level {
            assert!((point.excess / 3.0 - 1.0).abs() < 4.0 / point.beyond.sqrt(), "{point:?}");
        }
        let rising = mean_excess(&Exceedances::of_blocks(&[&drawn(2, 20_000, 0.5)]).unwrap());
        assert!(rising[0].excess > 2.0 * rising[rising.len() - 1].excess);
    }

    #[test]
    fn what_has_no_spread_has_no_shape() {
        assert!(shape(&Exceedances::of_counts(&[(5.0, 1000)]).unwrap()).is_empty());
        assert!(shape(&Exceedances::of_counts(&[]).unwrap()).is_empty());
    }

    #[test]
    fn the_score_is_the_derivative_of_the_density() {
        // Central differences of the generalised Pareto's logarithm, in Python.
        for (z, shape, by_shape, by_scale) in [
            (0.7, 0.4, -0.371_187_012_9, -0.234_375),
            (2.5, -0.2, 2.671_320_490_6, 3.0),
            (1.3, 0.0, -0.455, 0.3),
        ] {
            let found = score(z, shape);
            assert!((found.0 - by_shape).abs() < 1e-8 && (found.1 - by_scale).abs() < 1e-8, "{z}: {found:?}");
        }
    }

    #[test]
    fn the_interval_is_the_wider_one_of_two_and_holds_the_bias() {
        // The definition in Python with scipy.stats.t: groups that contribute alike, and groups that do not.
        for (apart, lo, hi) in [
            (0.0, 0.132_696_980_401_662_83, 0.667_303_019_598_337_2),
            (3.0, 0.185_568_502_171_268_2, 0.614_431_497_828_731_9),
        ] {
            let groups: Vec<Vec<f64>> = (0..8_i32)
                .map(|group| {
                    let widened = 4.0 * (1.0 + apart * f64::from(group) / 8.0);
                    (1..=40)
                        .map(|i| 100.0 + widened * ((40.0 / (40.5 - f64::from(i))).powf(0.4) - 1.0))
                        .collect()
                })
                .collect();
            let refs: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
            let of = Exceedances::of_groups(&refs, 3200, 0.95).unwrap();
            let (low, high) = interval(&of, &of.largest, 100.0, 320.0, (0.4, 4.0)).unwrap();
            assert!((low - lo).abs() < 1e-8 && (high - hi).abs() < 1e-8, "{low}, {high}");
            assert_eq!(interval(&of, &of.largest, 100.0, 315.0, (0.4, 4.0)), None, "300 of 0.95 each");
            assert_eq!(interval(&of, &of.largest, 100.0, 320.0, (-0.41, 4.0)), None);
        }
    }

    #[test]
    fn the_shape_is_the_same_in_every_unit_and_the_scale_is_not() {
        let above: Vec<(f64, f64, u32)> = drawn(3, 500, 0.5).into_iter().map(|x| (x, 1.0, 0)).collect();
        let largest = above.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let sorted = [&[largest], &above[..]].concat();
        let (shape, scale) = fitted(&sorted, 100.0, 501.0).unwrap();
        for unit in [1e-6, 1e6] {
            let other: Vec<(f64, f64, u32)> = sorted.iter().map(|(x, w, g)| (x * unit, *w, *g)).collect();
            let found = fitted(&other, 100.0 * unit, 501.0).unwrap();
            assert!(
                (found.0 - shape).abs() < 1e-5 && (found.1 / unit / scale - 1.0).abs() < 1e-5,
                "{found:?}"
            );
        }
    }
}
