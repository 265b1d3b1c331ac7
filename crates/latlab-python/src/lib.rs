//! `latlab._core`: the measuring core as Python sees it. Conversions and errors, nothing else.
//!
//! Structured values cross as JSON text of the types that own them, so that the run file, the worker's pipe
//! and these functions share one schema. Samples cross as buffers or lists of floats. Whatever takes longer
//! than a few microseconds releases the interpreter.

mod describe;
mod explain;
mod fold;
mod interpreter;
mod noise;
mod run;
mod samples;
mod serve;
mod stages;
mod statistics;
#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
#[cfg_attr(all(unix, not(target_os = "linux")), path = "system/other_unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod text;

use pyo3::prelude::*;

/// The measuring core of latlab.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::describe::{decode_histogram, describe, schema_json, sweep};
    #[pymodule_export]
    use crate::explain::{explain_process, explain_program};
    #[pymodule_export]
    use crate::fold::fold;
    #[pymodule_export]
    use crate::noise::{noise, noise_self_test, noise_survey};
    #[pymodule_export]
    use crate::run::{die_with_parent, list_probes, plan, run_child, run_worker};
    #[pymodule_export]
    use crate::serve::Server;
    #[pymodule_export]
    use crate::stages::{Stage, stage, stages_environment, stages_file, stages_heard, stages_start};
    #[pymodule_export]
    use crate::statistics::{
        centre, contrast_groups, digamma, min_samples, moments, order_statistic_interval, quantile,
        t_quantile, t_tail, trigamma_inverse,
    };

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FOLD_VERSION", latlab_record::FOLD_VERSION)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
