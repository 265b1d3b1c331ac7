use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocks::{Pooled, cut};
use crate::refusal::Refusal;
use crate::special::NORMAL_95;

/// How alike samples are that lie a number of samples apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Correlation {
    /// Samples apart.
    pub lag: u64,
    /// Rank correlation of the pairs, -1 to 1.
    pub value: f64,
    /// Independent samples stay within plus or minus this in 95 of 100 cases: no interval of the value, but what is nothing.
    pub nothing_within: f64,
}

/// Rank autocorrelation at lags 1, 2, 4, ... within blocks: of ranks, so that a single outlier neither makes nor hides it.
///
/// # Errors
/// [`Refusal::NotFinite`].
pub fn autocorrelation(blocks: &[&[f64]]) -> Result<Vec<Correlation>, Refusal> {
    /// Fewest pairs from which a correlation is taken.
    const LEAST_PAIRS: usize = 30;
    let pooled = Pooled::new(blocks)?;
    let middle = f64::midpoint(pooled.len() as f64, 1.0);
    let ranks: Vec<f64> = pooled.ranks().into_iter().map(|rank| rank - middle).collect();
    let variance = ranks.iter().map(|rank| rank * rank).sum::<f64>() / ranks.len().max(1) as f64;
    let mut found = Vec::new();
    if variance <= 0.0 {
        return Ok(found);
    }
    let mut lag = 1;
    loop {
        let (mut sum, mut pairs) = (0.0, 0);
        for block in cut(&ranks, &pooled.sizes) {
            sum += block.iter().zip(block.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>();
            pairs += block.len().saturating_sub(lag);
        }
        if pairs < LEAST_PAIRS {
            return Ok(found);
        }
        found.push(Correlation {
            lag: lag as u64,
            value: (sum / pairs as f64 / variance).clamp(-1.0, 1.0),
            nothing_within: NORMAL_95 / (pairs as f64).sqrt(),
        });
        lag *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_planted_correlation_is_found_and_falls_as_it_was_planted() {
        let mut rng = Rng::new(4);
        let mut x = 0.0;
        let series: Vec<f64> = (0..50_000)
            .map(|_| {
                x = 0.8 * x + 0.6 * rng.normal();
                x
            })
            .collect();
        let found = autocorrelation(&[&series]).unwrap();
        for (correlation, planted) in found.iter().zip([0.8, 0.64, 0.41, 0.168]) {
            // Spearman's is a little below Pearson's: 6/pi asin(r/2).
            let ranked = 6.0 / std::f64::consts::PI * f64::asin(planted / 2.0);
            assert!((correlation.value - ranked).abs() < 0.03, "{correlation:?}");
        }
    }

    #[test]
    fn independent_samples_stay_within_what_is_nothing() {
        let mut outside = 0;
        let mut all = 0;
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let blocks: Vec<Vec<f64>> =
                (0..8).map(|_| (0..200).map(|_| rng.uniform().powi(-3)).collect()).collect();
            let refs: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
            for correlation in autocorrelation(&refs).unwrap() {
                all += 1;
                outside += u32::from(correlation.value.abs() > correlation.nothing_within);
            }
        }
        assert!(f64::from(outside) < 0.08 * f64::from(all), "{outside} of {all}");
    }

    #[test]
    fn too_few_or_equal_samples_have_none() {
        assert!(autocorrelation(&[&[1.0; 20]]).unwrap().is_empty());
        assert!(autocorrelation(&[&[1.0; 100]]).unwrap().is_empty());
        assert!(autocorrelation(&[&[f64::NAN]]).is_err());
    }
}
