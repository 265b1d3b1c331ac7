//! What several probes of memory do alike.

use latlab_harness::Proof;
use latlab_record::{Check, Estimate};
use serde::{Deserialize as _, Deserializer};

/// With the check of the pages that were asked for, or a flag where other ones were there: the figure is true of what was read, and only the label
/// would be wrong, but a check that fails would refuse it.
pub(super) fn with_pages<D>(mut proof: Proof<D>, pages: &Check) -> Proof<D> {
    if pages.ok {
        proof.checks.push(pages.clone());
    } else {
        proof.flags.push(format!("degraded: {} not, {}", pages.name, pages.detail));
    }
    proof
}

/// `None` of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| latlab_stats::quantile(&values, 0.5))
}

/// An estimate, or a plain number; `None` of anything else.
pub(super) fn read_estimate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Estimate>, D::Error> {
    Ok(Estimate::read(&serde_json::Value::deserialize(from)?))
}
