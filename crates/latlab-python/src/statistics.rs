//! The statistics of samples, for everything that is computed after the run: one owner.
//!
//! A refusal (too few samples) is a `ValueError` whose text can be printed.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands over what it converted")]

use latlab_stats::Moments;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::samples::Samples;

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
    .map_err(|refusal| PyValueError::new_err(refusal.to_string()))
}

/// Fewest independent samples for which quantile `q` has an interval of this confidence.
#[pyfunction]
#[pyo3(signature = (q, level=0.95))]
pub(crate) fn min_samples(q: f64, level: f64) -> u64 {
    latlab_stats::min_samples(q, level)
}

/// Mean, standard deviation, smallest and largest sample; `None` when there are none.
#[pyfunction]
pub(crate) fn moments(py: Python<'_>, samples: Samples) -> Option<(f64, Option<f64>, f64, f64)> {
    parts(py.detach(|| latlab_stats::moments(&samples.0)))
}

/// The centre of runs, as two sides of them are compared; `None` where no value is finite and positive.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands over what it converted")]
pub(crate) fn centre(values: Vec<f64>) -> Option<f64> {
    latlab_stats::centre(&values)
}

/// Of each point how its second group of runs compares with its first:
/// `(log ratio, standard error, deviation between runs, degrees of freedom)`.
#[pyfunction]
pub(crate) fn contrast_groups(points: Vec<Vec<Vec<f64>>>) -> Vec<Option<(f64, f64, f64, f64)>> {
    let found = latlab_stats::contrast_groups(&points);
    found.into_iter().map(|each| each.map(|c| (c.ratio, c.error, c.between, c.degrees))).collect()
}

/// The `p` quantile of Student's t with `df` degrees of freedom.
#[pyfunction]
pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    latlab_stats::t_quantile(p, df)
}

/// How often Student's t with `df` degrees of freedom lies beyond `t`, on either side.
#[pyfunction]
pub(crate) fn t_tail(t: f64, df: f64) -> f64 {
    latlab_stats::t_tail(t, df)
}

/// First derivative of the logarithm of the gamma function, for x > 0.
#[pyfunction]
pub(crate) fn digamma(x: f64) -> f64 {
    latlab_stats::digamma(x)
}

/// The x > 0 at which its second derivative is `v`, for v > 0.
#[pyfunction]
pub(crate) fn trigamma_inverse(v: f64) -> f64 {
    latlab_stats::trigamma_inverse(v)
}
