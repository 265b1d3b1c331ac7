use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::order::min_samples;
use crate::{MIN_BLOCKS, quantile_interval};

/// When a point has been measured long enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopRule {
    /// The quantile whose interval decides, 0 to 1.
    pub q: f64,
    /// Its confidence, 0 to 1.
    pub level: f64,
    /// Stop at an interval of at most value * (1 ± this).
    pub relative_half_width: f64,
    /// Never before this many blocks: what lasts as long as a block looks steady inside it.
    pub min_blocks: usize,
    /// Never before this many samples.
    pub min_samples: u64,
}

impl StopRule {
    /// At 95 %, six blocks, and twice the samples that the quantile needs at all: an interval that reaches to the
    /// extreme samples is valid, but its width says little.
    #[must_use]
    pub fn new(q: f64, relative_half_width: f64) -> Self {
        let level = 0.95;
        let min_samples = min_samples(q, level).saturating_mul(2);
        Self {
            q,
            level,
            relative_half_width,
            min_blocks: MIN_BLOCKS,
            min_samples,
        }
    }
}

/// What to do next, with the relative half width reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StopState {
    /// Measure more. No half width: no interval can be given yet.
    Continue {
        /// Half the interval over the value.
        half_width: Option<f64>,
    },
    /// Narrow enough.
    Narrow {
        /// Half the interval over the value.
        half_width: f64,
    },
}

/// Whether the blocks measured so far are enough. Deterministic: the same blocks always give the same answer.
///
/// Looking after each block and stopping at the first narrow interval makes intervals a little optimistic; the
/// smallest number of blocks and samples keeps that small.
#[must_use]
pub fn should_stop(rule: &StopRule, blocks: &[&[f64]]) -> StopState {
    let filled = blocks.iter().filter(|b| !b.is_empty()).count();
    let samples: usize = blocks.iter().map(|b| b.len()).sum();
    // The bootstrap's seed: fixed, so that a run can be replayed; it decides nothing but the resampling.
    let half_width = quantile_interval(blocks, rule.q, rule.level, 0)
        .ok()
        .map(|e| e.interval.relative_half_width(e.value))
        .filter(|w| w.is_finite());
    match half_width {
        Some(half_width)
            if filled >= rule.min_blocks
                && samples as u64 >= rule.min_samples
                && half_width <= rule.relative_half_width =>
        {
            StopState::Narrow { half_width }
        }
        half_width => StopState::Continue { half_width },
    }
}

#[cfg(test)]
mod tests {
    use super::{StopRule, StopState, should_stop};
    use crate::rng::Rng;

    #[test]
    fn more_blocks_end_in_a_narrow_interval_and_few_never_do() {
        let mut rng = Rng::new(4);
        let rule = StopRule::new(0.5, 0.01);
        let mut blocks: Vec<Vec<f64>> = Vec::new();
        let mut ended = None;
        for k in 1..200 {
            blocks.push((0..50).map(|_| 100.0 + 5.0 * rng.normal()).collect());
            let refs: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
            if let StopState::Narrow { half_width } = should_stop(&rule, &refs) {
                assert!(half_width <= 0.01);
                ended = Some(k);
                break;
            }
        }
        assert!(ended.is_some_and(|k| (6..60).contains(&k)), "{ended:?}");
    }

    #[test]
    fn blocks_that_differ_are_not_narrow_however_long_they_are() {
        let mut rng = Rng::new(5);
        let blocks: Vec<Vec<f64>> = (0..6)
            .map(|b| {
                (0..4000)
                    .map(|_| 100.0 + 20.0 * f64::from(b % 2) + rng.normal())
                    .collect()
            })
            .collect();
        let refs: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
        let state = should_stop(&StopRule::new(0.5, 0.02), &refs);
        assert!(
            matches!(state, StopState::Continue { half_width: Some(w) } if w > 0.05),
            "{state:?}"
        );
        assert_eq!(
            should_stop(&StopRule::new(0.5, 0.02), &[]),
            StopState::Continue { half_width: None }
        );
    }
}
