//! The middle of some values, and how well it is known.

use latlab_record::Estimate;
use latlab_stats::{order_statistic_interval, quantile};

/// None without values.
pub(crate) fn at_quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, q))
}

/// The median; none without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    at_quantile(values, 0.5)
}

/// The median with its 95 % interval, which fewer than six do not have. It stays where the run has no other round of the point.
pub(crate) fn estimate(values: &[f64]) -> Option<Estimate> {
    let value = median(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ends = order_statistic_interval(&sorted, 0.5, 0.95).ok();
    Some(Estimate { value, low: ends.as_ref().map(|own| own.lo), high: ends.map(|own| own.hi) })
}
