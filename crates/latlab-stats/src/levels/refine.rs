use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CurvePoint;
use super::curve::Curve;

/// A rise of the curve between two neighbouring sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// Size before the rise.
    pub lo_bytes: f64,
    /// Size after it.
    pub hi_bytes: f64,
    /// Latency after over latency before, of the isotonic fit.
    pub ratio: f64,
    /// Geometric middle: the next size to measure. Not rounded to lines or pages.
    pub middle_bytes: f64,
}

/// A rise of less than this between two sizes is within a plateau's own scatter.
const RISE: f64 = 1.1;

/// Where the curve rises, the largest rise first: whoever has time for one more size takes the first middle.
#[must_use]
pub fn knee_between(points: &[CurvePoint]) -> Vec<Knee> {
    let mut knees = rises(&Curve::new(points));
    knees.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    knees
}

fn rises(curve: &Curve) -> Vec<Knee> {
    (1..curve.len())
        .map(|i| {
            let (lo_bytes, hi_bytes) = (curve.size[i - 1], curve.size[i]);
            let ratio = curve.fit[i] / curve.fit[i - 1];
            Knee { lo_bytes, hi_bytes, ratio, middle_bytes: (lo_bytes * hi_bytes).sqrt() }
        })
        .filter(|k| k.ratio >= RISE)
        .collect()
}

/// Further sizes, ascending, that bring each rise, and the step on either side of it, to `per_octave` sizes an octave.
/// None of them is in `points` already; they are not rounded to lines or pages. Empty once the curve is fine enough.
#[must_use]
pub fn refine_sizes(points: &[CurvePoint], per_octave: u32) -> Vec<f64> {
    let curve = Curve::new(points);
    let rising: Vec<bool> = (1..curve.len()).map(|i| curve.fit[i] / curve.fit[i - 1] >= RISE).collect();
    let near = |gap: usize| (gap.saturating_sub(1)..(gap + 2).min(rising.len())).any(|g| rising[g]);
    let mut sizes = Vec::new();
    for gap in (0..rising.len()).filter(|&g| near(g)) {
        let (lo, hi) = (curve.size[gap], curve.size[gap + 1]);
        // A hair less, so that sizes rounded to lines do not ask for one more for ever.
        let pieces = ((hi / lo).log2() * f64::from(per_octave) * 0.99).ceil();
        let mut piece = 1.0;
        while piece < pieces {
            sizes.push(lo * (hi / lo).powf(piece / pieces));
            piece += 1.0;
        }
    }
    sizes
}
