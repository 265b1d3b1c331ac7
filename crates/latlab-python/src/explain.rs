//! Where a program's wall time goes.

use std::ffi::OsString;

use latlab_explain::{Calibration, ExplainError, Request, Subject};
use pyo3::exceptions::{PyChildProcessError, PyOSError, PyValueError};
use pyo3::prelude::*;

fn raised(error: &ExplainError) -> PyErr {
    let text = error.to_string();
    match error {
        // The first argument is the exit code: the caller ends with it, as a shell would.
        ExplainError::NotStarted { exit_code, .. } => PyChildProcessError::new_err((*exit_code, text)),
        ExplainError::NoProcess { .. } => PyValueError::new_err(text),
        ExplainError::System(_) | ExplainError::Unsupported => PyOSError::new_err(text),
    }
}

/// Runs a program and returns the ledger of its wall time, as JSON.
///
/// `level` is the most that is used, 1 to 3; `runs` how often it is run;
/// `kept` the calibrations that hold here, as JSON; `overhead` the share of its CPU time that recording may
/// cost (otherwise 5 %), infinite for all that there is.
#[pyfunction]
#[pyo3(signature = (arguments, level=1, runs=1, kept="[]", overhead=None))]
pub(crate) fn explain_program(
    py: Python<'_>,
    arguments: Vec<OsString>,
    level: u8,
    runs: u32,
    kept: &str,
    overhead: Option<f64>,
) -> PyResult<String> {
    explained(py, Subject::Program(arguments), level, overhead, runs, kept)
}

/// The same of a process that runs already, for so many seconds.
#[pyfunction]
#[pyo3(signature = (pid, seconds, level=1, kept="[]", overhead=None))]
pub(crate) fn explain_process(
    py: Python<'_>,
    pid: u32,
    seconds: f64,
    level: u8,
    kept: &str,
    overhead: Option<f64>,
) -> PyResult<String> {
    let time = std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("seconds: {error}")))?;
    let for_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    explained(py, Subject::Running { pid, for_ns }, level, overhead, 1, kept)
}

fn explained(
    py: Python<'_>,
    subject: Subject,
    level: u8,
    overhead: Option<f64>,
    runs: u32,
    kept: &str,
) -> PyResult<String> {
    if !(1..=3).contains(&level) {
        return Err(PyValueError::new_err(format!("level: {level} is not 1, 2 or 3")));
    }
    let overhead = overhead.unwrap_or(Request::USUAL_OVERHEAD);
    // Not a number is not above 0 either.
    if overhead.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
        return Err(PyValueError::new_err(format!("overhead: {overhead} is not above 0")));
    }
    if runs == 0 {
        return Err(PyValueError::new_err("runs: 0 is not above 0"));
    }
    // What another version kept may not be read: it is measured again.
    let kept: Vec<Calibration> = serde_json::from_str(kept).unwrap_or_default();
    let request = Request { subject, level, overhead, runs, kept };
    // Ctrl-C ends the watching of a process, and what was seen until then is reported.
    let not_interrupted = || Python::attach(|py| py.check_signals().is_ok());
    let explained = py.detach(|| latlab_explain::explain(&request, not_interrupted));
    crate::text::json(&explained.map_err(|error| raised(&error))?)
}
