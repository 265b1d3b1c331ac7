//! What is where the figures come from: machine, clock, tool; and the forms that figures are kept in.

use std::path::PathBuf;

use latlab_clock::{Clock, ClockFacts};
use latlab_machine::Machine;
use latlab_probes::session;
use latlab_record::{EncodedHistogram, Tool};
use latlab_storage::default_directory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

#[derive(Serialize)]
struct Description {
    machine: Machine,
    clock: ClockFacts,
    tool: Tool,
}

/// Machine, clock and tool as one JSON object. `dir` is the directory whose file system is asked about;
/// without it, that of the user's cache, as in a run.
#[pyfunction]
#[pyo3(signature = (dir=None))]
pub(crate) fn describe(py: Python<'_>, dir: Option<&str>) -> PyResult<String> {
    py.detach(|| {
        let machine = latlab_machine::describe(&dir.map_or_else(default_directory, PathBuf::from));
        let clock = Clock::open().facts;
        crate::text::json(&Description { machine, clock, tool: session::tool() })
    })
}

/// Removes scratch folders that runs before left in `dir` (without it, the directory that a run measures by
/// default): this user's own, of which no process holds the lock. Returns how many; 0 too where the directory
/// cannot be used, and elsewhere than on Linux.
#[pyfunction]
#[pyo3(signature = (dir=None))]
pub(crate) fn sweep(py: Python<'_>, dir: Option<PathBuf>) -> usize {
    py.detach(|| crate::system::sweep(&dir.unwrap_or_else(default_directory)))
}

/// `(lowest ns, highest ns, count)` of every bucket of a run file's histogram that holds something,
/// ascending.
#[pyfunction]
pub(crate) fn decode_histogram(py: Python<'_>, encoding: &str, data: &str) -> PyResult<Vec<(f64, f64, u64)>> {
    let stored =
        EncodedHistogram { encoding: encoding.to_owned(), unit: "ps".to_owned(), data: data.to_owned() };
    py.detach(|| stored.decode()).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The JSON Schema of run files, as committed in `schema/run.v2.json`.
#[pyfunction]
pub(crate) fn schema_json() -> String {
    latlab_probes::schema_json()
}
