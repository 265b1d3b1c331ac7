//! The statistics of samples, for everything that is computed after the run: one owner.
//!
//! A refusal (too few samples, dependent samples, too skewed ones) is a `ValueError` whose text can be printed.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands over what it converted")]

use latlab_stats::{Estimate, Interval, Moments, Refusal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::samples::{Samples, views};

/// Estimate, lower end, upper end, method.
type Figure = (f64, f64, f64, &'static str);

fn refused(reason: Refusal) -> PyErr {
    PyValueError::new_err(reason.to_string())
}

fn figure(estimate: &Estimate) -> Figure {
    let Interval { lo, hi, method, .. } = estimate.interval;
    (estimate.value, lo, hi, method.into())
}

/// Mean, standard deviation (n - 1), smallest, largest.
fn parts(moments: Option<Moments>) -> Option<(f64, Option<f64>, f64, f64)> {
    moments.map(|m| (m.mean, m.std, m.min, m.max))
}

/// The value that a share `q` of the samples lies below; samples in any order, NaN when there are none.
#[pyfunction]
pub(crate) fn quantile(py: Python<'_>, samples: Samples, q: f64) -> f64 {
    py.detach(|| {
        let mut sorted = samples.0;
        sorted.sort_unstable_by(f64::total_cmp);
        latlab_stats::quantile(&sorted, q)
    })
}

/// A quantile with its interval, by the method that the samples' dependence allows.
#[pyfunction]
#[pyo3(signature = (blocks, q, level=0.95, seed=0))]
pub(crate) fn quantile_interval(
    py: Python<'_>,
    blocks: Vec<Samples>,
    q: f64,
    level: f64,
    seed: u64,
) -> PyResult<Figure> {
    py.detach(|| latlab_stats::quantile_interval(&views(&blocks), q, level, seed))
        .map(|estimate| figure(&estimate))
        .map_err(refused)
}

/// The mean with its interval from the blocks' means.
#[pyfunction]
#[pyo3(signature = (blocks, level=0.95))]
pub(crate) fn mean_interval(py: Python<'_>, blocks: Vec<Samples>, level: f64) -> PyResult<Figure> {
    py.detach(|| latlab_stats::mean_interval(&views(&blocks), level))
        .map(|estimate| figure(&estimate))
        .map_err(refused)
}

/// The exact interval of a quantile of independent samples, in any order.
#[pyfunction]
#[pyo3(signature = (samples, q, level=0.95))]
pub(crate) fn order_statistic_interval(
    py: Python<'_>,
    samples: Samples,
    q: f64,
    level: f64,
) -> PyResult<(f64, f64)> {
    py.detach(|| {
        let mut sorted = samples.0;
        sorted.sort_unstable_by(f64::total_cmp);
        latlab_stats::order_statistic_interval(&sorted, q, level)
    })
    .map(|interval| (interval.lo, interval.hi))
    .map_err(refused)
}

/// Fewest independent samples for which quantile `q` has an interval of this confidence.
#[pyfunction]
#[pyo3(signature = (q, level=0.95))]
pub(crate) fn min_samples(q: f64, level: f64) -> u64 {
    latlab_stats::min_samples(q, level)
}

/// Smallest and largest of the blocks' own quantiles.
#[pyfunction]
pub(crate) fn between_block_range(py: Python<'_>, blocks: Vec<Samples>, q: f64) -> (f64, f64) {
    py.detach(|| latlab_stats::between_block_range(&views(&blocks), q))
}

/// How far the samples are from independent draws, as JSON.
#[pyfunction]
pub(crate) fn dependence(py: Python<'_>, blocks: Vec<Samples>) -> PyResult<String> {
    crate::text::json(&py.detach(|| latlab_stats::dependence(&views(&blocks))))
}

/// Mean, standard deviation, smallest and largest sample; `None` when there are none.
#[pyfunction]
pub(crate) fn moments(py: Python<'_>, samples: Samples) -> Option<(f64, Option<f64>, f64, f64)> {
    parts(py.detach(|| latlab_stats::moments(&samples.0)))
}
