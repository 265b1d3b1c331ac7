use crate::rng::Rng;

/// One measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Working set in bytes.
    pub size_bytes: f64,
    /// Median latency in ns.
    pub p50_ns: f64,
    /// Lower end of its interval.
    pub lo_ns: f64,
    /// Upper end of its interval.
    pub hi_ns: f64,
    /// The reference chase drifted meanwhile: counts for little.
    pub disturbed: bool,
}

/// Weight of a disturbed point: enough to stand in where nothing else was measured, never to outvote a
/// neighbour.
const DISTURBED_WEIGHT: f64 = 0.2;
/// Plateaus of real machines wave by some per cent (page colouring, drift); a finer scale would split them.
const LEAST_NOISE: f64 = 0.03;

/// The points, merged and sorted by size, with their isotonic fit.
#[derive(Default)]
pub(super) struct Curve {
    pub(super) size: Vec<f64>,
    pub(super) raw: Vec<f64>,
    lo: Vec<f64>,
    hi: Vec<f64>,
    pub(super) disturbed: Vec<bool>,
    pub(super) weight: Vec<f64>,
    /// Never falling, ns.
    pub(super) fit: Vec<f64>,
    /// Scatter of ln(raw) about the fit.
    pub(super) noise: f64,
}

impl Curve {
    pub(super) fn new(points: &[CurvePoint]) -> Self {
        let usable = |v: f64| v.is_finite() && v > 0.0;
        let mut sorted: Vec<&CurvePoint> =
            points.iter().filter(|p| usable(p.size_bytes) && usable(p.p50_ns)).collect();
        sorted.sort_by(|a, b| a.size_bytes.total_cmp(&b.size_bytes));
        let mut curve = Self::default();
        for same in sorted.chunk_by(|a, b| a.size_bytes >= b.size_bytes) {
            curve.push(same);
        }
        curve.refit();
        curve
    }

    /// Several draws of one size become one point.
    fn push(&mut self, same: &[&CurvePoint]) {
        let quiet = same.iter().any(|p| !p.disturbed);
        let kept = || same.iter().filter(|p| !quiet || !p.disturbed);
        let p50 = weighted_median(kept().map(|p| (p.p50_ns.ln(), 1.0)).collect()).exp();
        self.size.push(same[0].size_bytes);
        self.raw.push(p50);
        // An interval that is missing or inverted says nothing beyond the point.
        self.lo.push(kept().map(|p| p.lo_ns).filter(|v| *v > 0.0).fold(p50, f64::min));
        self.hi.push(kept().map(|p| p.hi_ns).filter(|v| v.is_finite()).fold(p50, f64::max));
        self.disturbed.push(!quiet);
        self.weight.push(if quiet { 1.0 } else { DISTURBED_WEIGHT });
    }

    fn refit(&mut self) {
        let logs: Vec<f64> = self.raw.iter().map(|v| v.ln()).collect();
        let fit = isotonic(&logs, &self.weight);
        let off = logs.iter().zip(&fit).map(|(a, b)| ((a - b).abs(), 1.0)).collect();
        // 1.4826 makes a median deviation a normal's standard deviation; the fit follows the noise by about
        // half.
        self.noise = (1.4826 * 1.5 * weighted_median(off)).max(LEAST_NOISE);
        self.fit = fit.iter().map(|v| v.exp()).collect();
    }

    /// The curve as it might have come out: each median anywhere in its interval, and off by the scatter that
    /// the intervals do not show.
    pub(super) fn draw(&self, rng: &mut Rng) -> Self {
        let hidden = (self.noise / 1.5).min(0.1);
        let raw = (0..self.len())
            .map(|i| {
                let (lo, hi) = (self.lo[i].ln(), self.hi[i].ln());
                (lo + (hi - lo) * rng.uniform() + hidden * rng.normal()).exp()
            })
            .collect();
        let (size, disturbed) = (self.size.clone(), self.disturbed.clone());
        let mut drawn = Self { size, raw, disturbed, weight: self.weight.clone(), ..Self::default() };
        drawn.refit();
        drawn
    }

    pub(super) fn len(&self) -> usize {
        self.size.len()
    }

    /// Median of the measured values `from..=to`, weighted, ns.
    pub(super) fn median(&self, from: usize, to: usize) -> f64 {
        weighted_median((from..=to).map(|i| (self.raw[i].ln(), self.weight[i])).collect()).exp()
    }
}

/// Isotonic regression in the L1 norm: neighbours that fall are pooled, a pool's value is its weighted
/// median.
fn isotonic(y: &[f64], weight: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, Vec<(f64, f64)>)> = Vec::new();
    for (&v, &w) in y.iter().zip(weight) {
        let mut pool = (v, vec![(v, w)]);
        while let Some(mut before) = pools.pop_if(|before| before.0 > pool.0) {
            before.1.append(&mut pool.1);
            pool = (lower_median(before.1.clone()), before.1);
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|(v, members)| std::iter::repeat_n(*v, members.len())).collect()
}

/// The middle of all values that split the weight in halves; 0 for none.
fn weighted_median(pairs: Vec<(f64, f64)>) -> f64 {
    let (lower, upper) = medians(pairs);
    f64::midpoint(lower, upper)
}

/// The least of them: of one slow and one fast measurement the fast one is right, as nothing makes a load
/// faster.
fn lower_median(pairs: Vec<(f64, f64)>) -> f64 {
    medians(pairs).0
}

fn medians(mut pairs: Vec<(f64, f64)>) -> (f64, f64) {
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = pairs.iter().map(|p| p.1).sum::<f64>() / 2.0;
    let mut passed = 0.0;
    for (i, &(v, w)) in pairs.iter().enumerate() {
        passed += w;
        // Weights such as 0.2 do not add up exactly.
        if (passed - half).abs() <= half * 1e-12 {
            return (v, pairs.get(i + 1).map_or(v, |next| next.0));
        }
        if passed > half {
            return (v, v);
        }
    }
    (0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use super::{isotonic, weighted_median};

    #[test]
    fn a_spike_is_outvoted_by_what_follows() {
        let fit = isotonic(&[1.0, 1.0, 9.0, 1.0, 1.0, 3.0, 3.0], &[1.0; 7]);
        assert_eq!(fit, [1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0]);
        let fit = isotonic(&[1.0, 3.0, 0.1, 3.0, 3.0], &[1.0; 5]);
        assert!(fit.is_sorted() && (fit[4] - 3.0).abs() < 1e-12);
        assert_eq!(isotonic(&[1.0, 1.0, 7.0, 1.0], &[1.0; 4]), [1.0; 4]);
    }

    #[test]
    fn a_weighted_median_splits_the_weight() {
        assert!((weighted_median(vec![(5.0, 0.2), (1.0, 1.0), (9.0, 0.2)]) - 1.0).abs() < 1e-12);
        assert!((weighted_median(vec![(1.0, 1.0), (3.0, 1.0)]) - 2.0).abs() < 1e-12);
    }
}
