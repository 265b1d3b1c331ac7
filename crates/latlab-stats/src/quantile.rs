use crate::count::whole;

/// Quantile `q` of values sorted ascending, by linear interpolation between order statistics.
///
/// Hyndman and Fan's type 7 (The American Statistician 50, 1996), with numpy's way of interpolating, so that
/// it agrees with `numpy.quantile`'s default. The unit is that of the values. `q` is clamped to `[0, 1]`; NaN
/// for an empty slice or a NaN `q`.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    let (below, share) = position(sorted.len() as u64, q);
    let below = usize::try_from(below).unwrap_or(usize::MAX).min(sorted.len() - 1);
    interpolate(sorted[below], sorted[(below + 1).min(sorted.len() - 1)], share)
}

/// The middle of values in any order; NaN for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// The middle of values that an iterator gives; `None` of nothing.
pub fn median_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| median(&values))
}

/// The zero-based order statistic below the quantile, and how far towards the next one it lies.
pub(crate) fn position(n: u64, q: f64) -> (u64, f64) {
    let place = n.saturating_sub(1) as f64 * q.clamp(0.0, 1.0);
    (whole(place), place.fract())
}

/// From whichever end is nearer, so that the result never leaves `[a, b]` and mirrors exactly (as numpy
/// does).
pub(crate) fn interpolate(a: f64, b: f64, share: f64) -> f64 {
    if share <= 0.0 || a >= b {
        return a;
    }
    let width = b - a;
    if share < 0.5 { a + width * share } else { b - width * (1.0 - share) }
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn agrees_with_numpy_on_known_values() {
        // numpy.quantile([1, 2, 4, 8, 16], q)
        let x = [1.0, 2.0, 4.0, 8.0, 16.0];
        for (q, want) in
            [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8), (0.99, 15.68), (1.0, 16.0)]
        {
            assert!((quantile(&x, q) - want).abs() < 1e-12, "q = {q}");
        }
        assert!((quantile(&[3.0, 5.0], 0.5) - 4.0).abs() < 1e-15);
        assert!((median(&[9.0, 3.0, 1.0, 5.0]) - 4.0).abs() < 1e-15, "in any order");
    }

    #[test]
    fn an_empty_sample_has_no_quantile() {
        assert!(quantile(&[], 0.5).is_nan() && median(&[]).is_nan());
        assert!(quantile(&[1.0], f64::NAN).is_nan());
        assert!((quantile(&[7.0], 0.999) - 7.0).abs() < 1e-15);
    }
}
