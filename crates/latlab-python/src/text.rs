//! Values as JSON text, in which they cross.

use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// A value as the JSON text of its type.
pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A value from its JSON text; `what` names it in the error.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}
