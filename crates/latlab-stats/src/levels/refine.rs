use super::curve::{Curve, CurvePoint};

/// A rise of less than this between two sizes is within a plateau's own scatter.
const RISE: f64 = 1.1;

/// Further sizes, ascending, that bring each rise, and the step on either side of it, to
/// `per_octave` sizes an octave. None of them is in `points` already; they are not rounded to lines or pages.
/// Empty once the curve is fine enough.
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
