/// Mean, deviation and extremes, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1; none for a single sample.
    pub std: Option<f64>,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

/// Arithmetic mean, summed up in order; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// [`Moments`] of the values in any order; none when there are none or one is not finite. One pass (Welford,
/// Technometrics 4, 1962): no sum of squares, so no cancellation for a small spread far from 0.
pub fn moments(values: &[f64]) -> Option<Moments> {
    let (mut n, mut mean, mut squares) = (0_u64, 0.0_f64, 0.0_f64);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for &x in values {
        if !x.is_finite() {
            return None;
        }
        n += 1;
        let off = x - mean;
        mean += off / n as f64;
        squares += off * (x - mean);
        min = min.min(x);
        max = max.max(x);
    }
    let std = (n > 1).then(|| (squares / (n - 1) as f64).max(0.0).sqrt());
    (n > 0).then_some(Moments { mean, std, min, max })
}

#[cfg(test)]
mod tests {
    use super::moments;

    #[test]
    fn a_small_spread_far_from_zero_keeps_its_deviation() {
        let m = moments(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]).unwrap();
        assert!((m.mean - (1e9 + 10.0)).abs() < 1e-6);
        assert!((m.std.unwrap() - 30_f64.sqrt()).abs() < 1e-6);
        assert_eq!((m.min, m.max), (1e9 + 4.0, 1e9 + 16.0));
    }

    #[test]
    fn one_sample_has_no_deviation_and_none_has_no_moments() {
        assert_eq!(moments(&[5.0]).unwrap().std, None);
        assert!(moments(&[]).is_none() && moments(&[1.0, f64::INFINITY]).is_none());
    }
}
