//! Samples as they come from Python: numpy arrays and other buffers without a detour, lists of numbers
//! otherwise.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// Floats that Rust owns, so that the interpreter can be released while they are read.
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl<'py> FromPyObject<'_, 'py> for Samples {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match PyBuffer::<f64>::get(&object) {
            Ok(buffer) => buffer.to_vec(object.py()).map(Self),
            // No buffer, or one of another type.
            Err(_) => object.extract().map(Self),
        }
    }
}
