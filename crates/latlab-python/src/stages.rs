//! Stages of a Python program: `with stage("read", bytes=n):`, at most a few hundred nanoseconds a block.

#[cfg_attr(target_os = "linux", path = "stages/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "stages/elsewhere.rs")]
mod here;

use latlab_stages::FILES;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyString};

use here::ring;

/// A stage of a program: in a `with` statement, as a decorator, or over what an iterator produces.
#[pyclass]
pub(crate) struct Stage {
    name: Py<PyString>,
    /// What it goes through, bytes.
    #[pyo3(get, set)]
    bytes: u64,
    number: u32,
    begun: Vec<u64>,
}

/// Begins nothing yet: `with` does. Without a listener it is one and the same object for all.
#[pyfunction]
#[pyo3(signature = (name, bytes = 0))]
pub(crate) fn stage(py: Python<'_>, name: Bound<'_, PyString>, bytes: u64) -> PyResult<Py<PyAny>> {
    static OFF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Some(ring) = ring() else {
        return OFF
            .get_or_try_init(py, || Ok(Py::new(py, Off { bytes: 0 })?.into_any()))
            .map(|off| off.clone_ref(py));
    };
    let number = ring.name(name.to_str()?);
    let stage = Stage { name: name.unbind(), bytes, number, begun: Vec::new() };
    Ok(Py::new(py, stage)?.into_any())
}

#[pymethods]
impl Stage {
    fn __enter__(mut slf: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        if let Some(ring) = ring() {
            let begun = ring.begin(slf.number);
            slf.begun.push(begun);
        }
        slf
    }

    fn __exit__(&mut self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        if let (Some(ring), Some(begun)) = (ring(), self.begun.pop()) {
            ring.end(self.number, begun, self.bytes);
        }
    }

    /// The function, each call of it a stage.
    fn __call__<'py>(&self, py: Python<'py>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        decorated(py, self.name.bind(py), function)
    }

    /// The items of an iterable; the stage is the time that producing each takes.
    fn over<'py>(&self, py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let over = Over { items: items.try_iter()?.unbind(), number: self.number };
        Ok(Bound::new(py, over)?.into_any())
    }
}

/// What `stage` gives where nobody listens.
#[pyclass]
pub(crate) struct Off {
    #[pyo3(get, set)]
    bytes: u64,
}

#[expect(clippy::unused_self, reason = "the interpreter calls them on an object")]
#[pymethods]
impl Off {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {}

    fn __call__<'py>(&self, function: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        function
    }

    fn over<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(items.try_iter()?.into_any())
    }
}

/// An iterator whose every step is a stage.
#[pyclass]
struct Over {
    items: Py<PyIterator>,
    number: u32,
}

#[pymethods]
impl Over {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let begun = ring().map(|ring| (ring, ring.begin(self.number)));
        let item = self.items.bind(py).clone().next();
        if let Some((ring, begun)) = begun {
            ring.end(self.number, begun, 0);
        }
        item.transpose()
    }
}

fn decorated<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyString>,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("latlab.stages")?.call_method1("decorated", (name, function))
}

/// Listens to this program's own stages from now on. Nothing when it does so already.
#[pyfunction]
pub(crate) fn stages_start() -> PyResult<()> {
    here::start().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// What was heard so far, as JSON; `None` when nobody listens.
#[pyfunction]
pub(crate) fn stages_heard(py: Python<'_>) -> PyResult<Option<String>> {
    py.detach(here::heard).map(|heard| crate::text::json(&heard)).transpose()
}

/// What the environment of programs that this one starts must hold for their stages to be heard too.
#[pyfunction]
pub(crate) fn stages_environment(py: Python<'_>) -> Vec<(&'static str, String)> {
    py.detach(here::environment)
}

/// A file that marks stages in another language, as its name and its text; `None`: no such language.
#[pyfunction]
pub(crate) fn stages_file(language: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(name, ..)| *name == language).map(|(_, file, text)| (*file, *text))
}
