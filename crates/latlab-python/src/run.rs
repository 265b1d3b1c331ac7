//! What a run would do, and the run itself, in the measuring process.

use std::ffi::OsString;
use std::fs::File;

use latlab_probes::session::{self, Host, Request};
use latlab_record::Settings;
use pyo3::prelude::*;

use crate::interpreter::ThisInterpreter;
use crate::system;

/// All probes in the order in which they run, as a JSON list.
#[pyfunction]
pub(crate) fn list_probes() -> PyResult<String> {
    crate::text::json(&session::list())
}

/// What a run with these settings would do here, as JSON.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, settings_json: &str) -> PyResult<String> {
    let settings: Settings = crate::text::parsed("settings", settings_json)?;
    crate::text::json(
        &py.detach(|| session::plan(&settings, host(Some(vec![OsString::from("a plan starts none")]), None))),
    )
}

/// Measures, writing one event a line to `fd`. Returns when all is done, when SIGTERM asked to stop (what
/// there is of the points under way is written first), and fails with an `OSError` when nobody reads any
/// more. `child` is the command that starts a process which calls [`run_child`] with its last argument.
#[pyfunction]
#[pyo3(signature = (request_json, fd, child=None))]
pub(crate) fn run_worker(
    py: Python<'_>,
    request_json: &str,
    fd: i32,
    child: Option<Vec<OsString>>,
) -> PyResult<()> {
    let request: Request = crate::text::parsed("request", request_json)?;
    py.detach(|| {
        let mut pipe = system::open(fd)?;
        let termination = system::Termination::watch()?;
        let test_file = request.test_file.and_then(system::inherited);
        session::run(&request, host(child, test_file), &mut *pipe, &|| termination.noted())
    })?;
    Ok(())
}

fn host(child: Option<Vec<OsString>>, test_file: Option<File>) -> Host {
    Host { interpreter: Some(Box::new(ThisInterpreter)), child, test_file }
}

/// Serves one child program on standard input and the descriptor `fd` until its input ends. Returns whether
/// there is a program of that name.
#[pyfunction]
pub(crate) fn run_child(py: Python<'_>, program: &str, fd: i32) -> PyResult<bool> {
    Ok(py.detach(|| {
        let mut pipe = system::open(fd)?;
        latlab_probes::run_child(program, &mut std::io::stdin().lock(), &mut *pipe)
    })?)
}

/// Asks the kernel to kill this process when the one that started it ends, however it ends. Returns whether
/// that was arranged: elsewhere than on Linux it cannot be.
#[pyfunction]
pub(crate) fn die_with_parent() -> bool {
    system::die_with_parent()
}
