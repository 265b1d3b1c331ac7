//! `latlab._core`: the measuring core as Python sees it. Conversions and errors, nothing else.
//!
//! Structured values cross as JSON text of the types that own them, so that the run file, the worker's pipe and
//! these functions share one schema. Samples cross as buffers or lists of floats. Whatever takes longer than a few
//! microseconds releases the interpreter.

mod describe;
mod process;
mod samples;
mod statistics;

use pyo3::prelude::*;

/// The measuring core of latlab.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::describe::{decode_histogram, describe, schema_json};
    #[pymodule_export]
    use crate::process::die_with_parent;
    #[pymodule_export]
    use crate::statistics::{
        between_block_range, dependence, mean_interval, min_samples, moments, moments_counts,
        order_statistic_interval, order_statistic_interval_counts, quantile, quantile_counts,
        quantile_interval,
    };

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// A value as the JSON text of its type.
fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}
