use super::MIN_RATIO;
use super::curve::Curve;

/// First and last index on a plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plateau {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// d ln(latency) / d ln(size) up to which a stretch counts as flat. Plateaus measured on shared machines
/// reach 0.25 (an L3 that neighbours nibble at, RAM with growing TLB cost); soft knees start at 0.7.
const FLAT: f64 = 0.35;
/// A slope costs a plateau (slope / this)^2, so that flat ones are preferred.
const USUAL_SLOPE: f64 = 0.2;
/// The same for a plateau of two points, which has nothing else to show for itself.
const PAIR_FLAT: f64 = 0.15;
/// Shortest plateau in ln(size): 0.4 octave. The shortest seen was an L3 of 1.5 to 2 MiB beside busy
/// neighbours.
const SHORTEST: f64 = 0.277;
/// Neighbouring plateaus are two only if the latency also steps by this factor from the end of one to the
/// start of the next, and on the way more steeply than this; otherwise a long bend was cut in two.
const STEP: f64 = 1.2;
const STEEP: f64 = 0.5;

/// A stretch of the curve, fitted.
struct Segment {
    from: usize,
    /// One past the last.
    end: usize,
    flat: bool,
}

pub(super) fn plateaus(curve: &Curve) -> Vec<Plateau> {
    let segments = cut(curve);
    let mut found: Vec<Plateau> = Vec::new();
    for s in segments.iter().filter(|s| s.flat) {
        let next = Plateau { from: s.from, to: s.end - 1 };
        match found.last_mut() {
            Some(last) if !distinct(curve, *last, next) => last.to = next.to,
            _ => found.push(next),
        }
    }
    extend(curve, &mut found);
    found
}

fn distinct(curve: &Curve, a: Plateau, b: Plateau) -> bool {
    let step = curve.fit[b.from] / curve.fit[a.to];
    let steepness = step.ln() / (curve.size[b.from] / curve.size[a.to]).ln();
    let ratio = curve.median(b.from, b.to) / curve.median(a.from, a.to);
    ratio >= MIN_RATIO && step >= STEP && steepness >= STEEP
}

/// Points beside a plateau that do not differ from it by more than its noise belong to it.
fn extend(curve: &Curve, found: &mut [Plateau]) {
    let tolerance = (3.0 * curve.noise).clamp(0.1, MIN_RATIO.ln() / 2.0).exp();
    for i in 0..found.len() {
        let Plateau { mut from, mut to } = found[i];
        let level = curve.median(from, to);
        let floor = if i == 0 { 0 } else { found[i - 1].to + 1 };
        let ceiling = found.get(i + 1).map_or(curve.len(), |next| next.from);
        while from > floor && curve.fit[from - 1] * tolerance >= level {
            from -= 1;
        }
        while to + 1 < ceiling && curve.fit[to + 1] <= level * tolerance {
            to += 1;
        }
        found[i] = Plateau { from, to };
    }
}

/// The cheapest cutting into flat and rising stretches: squared error over the noise plus BIC's ln(n) a
/// parameter (Schwarz 1978), by dynamic programming over all cuts.
fn cut(curve: &Curve) -> Vec<Segment> {
    let n = curve.len();
    let sums = Sums::new(curve);
    let parameter = (n.max(2) as f64).ln();
    let mut best = vec![(0.0, 0, false); n + 1];
    for end in 1..=n {
        best[end].0 = f64::INFINITY;
        for from in 0..end {
            let s = sums.over(from, end);
            let ramp = s.cost(curve.noise, FLAT, f64::INFINITY, f64::INFINITY)
                + parameter * if end - from == 1 { 2.0 } else { 3.0 };
            let long = (curve.size[end - 1] / curve.size[from]).ln() >= SHORTEST
                && (end - from > 2 || (end - from == 2 && s.steepness(0.0) <= PAIR_FLAT));
            let flat = if long {
                s.cost(curve.noise, 0.0, FLAT, USUAL_SLOPE) + parameter * 2.0
            } else {
                f64::INFINITY
            };
            let cost: f64 = best[from].0 + ramp.min(flat);
            if cost < best[end].0 {
                best[end] = (cost, from, flat <= ramp);
            }
        }
    }
    let mut segments = Vec::new();
    let mut end = n;
    while end > 0 {
        let (_, from, flat) = best[end];
        segments.push(Segment { from, end, flat });
        end = from;
    }
    segments.reverse();
    segments
}

/// Running weighted sums of x = ln(size), y = ln(fit), so that any stretch is fitted in constant time.
struct Sums(Vec<[f64; 6]>);

/// Centred sums of one stretch.
struct Stretch {
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn new(curve: &Curve) -> Self {
        let mut sums = vec![[0.0; 6]];
        // Relative to the first point, so that the differences of sums keep their digits.
        let origin = (curve.size.first().copied().unwrap_or(1.0), curve.fit.first().copied().unwrap_or(1.0));
        let mut total = [0.0; 6];
        for i in 0..curve.len() {
            let (x, y) = ((curve.size[i] / origin.0).ln(), (curve.fit[i] / origin.1).ln());
            let w = curve.weight[i];
            for (t, v) in total.iter_mut().zip([w, w * x, w * y, w * x * x, w * x * y, w * y * y]) {
                *t += v;
            }
            sums.push(total);
        }
        Self(sums)
    }

    fn over(&self, from: usize, end: usize) -> Stretch {
        let [w, x, y, xx, xy, yy]: [f64; 6] = std::array::from_fn(|i| self.0[end][i] - self.0[from][i]);
        Stretch { xx: xx - x * x / w, xy: xy - x * y / w, yy: yy - y * y / w }
    }
}

impl Stretch {
    fn steepness(&self, pull: f64) -> f64 {
        if self.xx > 1e-12 { self.xy / (self.xx + pull) } else { 0.0 }
    }

    /// Least squares with the slope held in `[least, most]` and pulled to 0 by a normal prior of deviation
    /// `usual`.
    fn cost(&self, noise: f64, least: f64, most: f64, usual: f64) -> f64 {
        let variance = noise * noise;
        let slope = self.steepness(variance / (usual * usual)).clamp(least, most);
        let error = (self.yy - 2.0 * slope * self.xy + slope * slope * self.xx).max(0.0);
        error / variance + (slope / usual).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::{Curve, Segment, Sums, cut};
    use crate::levels::CurvePoint;

    /// One point a doubling, from 1 KiB on.
    fn curve(ns: &[f64]) -> Curve {
        let mut size_bytes = 512.0;
        let points: Vec<CurvePoint> = ns
            .iter()
            .map(|&p50_ns| {
                size_bytes *= 2.0;
                CurvePoint { size_bytes, p50_ns, lo_ns: p50_ns, hi_ns: p50_ns, disturbed: false }
            })
            .collect();
        Curve::new(&points)
    }

    #[test]
    fn a_plateau_is_one_stretch_and_a_step_between_two_is_a_ramp() {
        let stretches = |ns: &[f64]| -> Vec<(usize, usize, bool)> {
            let each = |s: &Segment| (s.from, s.end, s.flat);
            cut(&curve(ns)).iter().map(each).collect()
        };
        assert_eq!(stretches(&[1.0; 9]), [(0, 9, true)]);
        assert_eq!(stretches(&[1.0, 1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0]), [(0, 4, true), (4, 8, true)]);
        assert_eq!(
            stretches(&[1.0, 1.0, 1.0, 1.0, 3.0, 6.0, 12.0, 20.0, 20.0, 20.0, 20.0]),
            [(0, 4, true), (4, 7, false), (7, 11, true)]
        );
    }

    #[test]
    fn a_stretch_is_fitted_by_least_squares_with_its_slope_held_and_pulled() {
        // Latency grows as the square root of the size, in logarithms along x = 0, ln 2, 2 ln 2.
        let sums = Sums::new(&curve(&[1.0, 2.0_f64.sqrt(), 2.0]));
        let fit = sums.over(0, 3);
        let square = std::f64::consts::LN_2.powi(2);
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        near(fit.xx, 2.0 * square);
        near(fit.xy, square);
        near(fit.yy, square / 2.0);
        near(fit.steepness(0.0), 0.5);
        near(fit.steepness(2.0 * square), 0.25);
        near(fit.cost(0.1, 0.35, f64::INFINITY, f64::INFINITY), 0.0);
        // Held to 0.25: an error of 2 ln^2 2 / 16, over the variance.
        near(fit.cost(0.1, 0.0, 0.25, f64::INFINITY), 100.0 * square / 8.0);
        near(fit.cost(0.1, 0.0, 0.25, 0.5), 100.0 * square / 8.0 + 0.25);
        near(sums.over(1, 2).steepness(0.0), 0.0);
    }
}
