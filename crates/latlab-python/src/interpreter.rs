//! The interpreter that latlab runs in, as something whose programs can be timed.

use std::ffi::CString;
use std::path::PathBuf;

use latlab_harness::{Batch, Interpreter};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The interpreter of this process. Its programs run with the interpreter attached, window by window.
pub(crate) struct ThisInterpreter;

struct Program {
    run: Py<PyAny>,
    /// What the program defined. Not a module: those of one name share one namespace.
    names: Py<PyDict>,
}

impl Interpreter for ThisInterpreter {
    fn name(&self) -> String {
        let version = Python::version_str().split_whitespace().next();
        format!("CPython {}", version.unwrap_or("of unknown version"))
    }

    fn executable(&self) -> Option<PathBuf> {
        let path: Option<PathBuf> =
            Python::attach(|py| py.import("sys")?.getattr("executable")?.extract()).unwrap_or_default();
        path.filter(|path| !path.as_os_str().is_empty())
    }

    fn compile(&self, program: &str) -> Result<Box<dyn Batch>, String> {
        let code = CString::new(program).map_err(|error| error.to_string())?;
        Python::attach(|py| {
            let names = PyDict::new(py);
            names.set_item("__name__", "latlab_probe")?;
            py.run(&code, Some(&names), None)?;
            let run = names.as_any().get_item("run")?.unbind();
            Ok(Box::new(Program { run, names: names.unbind() }) as Box<dyn Batch>)
        })
        .map_err(|error: PyErr| error.to_string())
    }
}

impl Batch for Program {
    fn run(&mut self, ops: u64) -> u64 {
        // A program that fails has done no work: 0 fails the proof of whoever asked for it.
        Python::attach(|py| self.run.call1(py, (ops,)).and_then(|result| result.extract(py)).unwrap_or(0))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Its functions and its names hold each other: what the program keeps would stay until the collector
        // comes by.
        Python::attach(|py| self.names.bind(py).clear());
    }
}
