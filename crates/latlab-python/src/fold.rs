//! The lines of a run as figures.

use latlab_record::{Header, Record};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// Folds the records of a run file into its figures, derived ones included: a JSON array. The header and each
/// record are JSON as they stand in the file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands over what it converted")]
pub(crate) fn fold(
    py: Python<'_>,
    header: PyBackedBytes,
    lines: Vec<PyBackedBytes>,
) -> PyResult<Bound<'_, PyBytes>> {
    let figures = py
        .detach(|| -> Result<Vec<u8>, String> {
            let header: Header =
                serde_json::from_slice(&header).map_err(|error| format!("header: {error}"))?;
            let records: Vec<Record> = lines
                .iter()
                .enumerate()
                .map(|(index, line)| {
                    serde_json::from_slice(line)
                        .map_err(|error| format!("record {} of {}: {error}", index + 1, lines.len()))
                })
                .collect::<Result<_, _>>()?;
            latlab_record::to_json(&latlab_probes::fold(&header, &records)).map_err(|error| error.to_string())
        })
        .map_err(PyValueError::new_err)?;
    Ok(PyBytes::new(py, &figures))
}
