//! The middle of some values, and how well it is known.

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

/// 95 % interval of the median; none with fewer than six.
pub(crate) fn interval(values: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    order_statistic_interval(&sorted, 0.5, 0.95)
        .ok()
        .map(|own| [own.lo, own.hi])
}
