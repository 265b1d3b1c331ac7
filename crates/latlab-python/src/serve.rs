//! The server of the network probes, for as long as its handle lives.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use latlab_net::serve::{ServeError, Server as Serving, Settings};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// More threads than this serve no faster than a client can ask.
const MOST_THREADS: usize = 4;

/// A running server.
#[pyclass(frozen)]
pub(crate) struct Server {
    listening: String,
    serving: Mutex<Option<Serving>>,
}

#[pymethods]
impl Server {
    /// Starts it: at `bind` (an address with a port) or on the loopback, with a secret or without.
    #[new]
    #[pyo3(signature = (bind=None, secret=None))]
    fn new(py: Python<'_>, bind: Option<&str>, secret: Option<Vec<u8>>) -> PyResult<Self> {
        let bind: Option<SocketAddr> = bind
            .map(|text| {
                text.parse()
                    .map_err(|_| PyValueError::new_err(format!("{text} is not an address with a port")))
            })
            .transpose()?;
        let threads = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(MOST_THREADS));
        let settings = Settings { bind, secret, threads, enclosed: false, answers_after: Duration::ZERO };
        let serving = py.detach(|| Serving::start(&settings)).map_err(|error| raised(&error))?;
        Ok(Self { listening: crate::text::json(serving.listening())?, serving: Mutex::new(Some(serving)) })
    }

    /// Where it listens, as JSON.
    #[getter]
    fn listening(&self) -> &str {
        &self.listening
    }

    /// Ends it with all its connections. Returns what it has done, as JSON; `None` when it was ended before.
    fn close(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(serving) = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(None);
        };
        let served = crate::text::json(&serving.served())?;
        py.detach(|| drop(serving));
        Ok(Some(served))
    }
}

/// A mistake in what was asked is a `ValueError`; what the system refused otherwise an `OSError`.
fn raised(error: &ServeError) -> PyErr {
    let text = error.to_string();
    match error {
        ServeError::Bind { .. } | ServeError::Open(_) | ServeError::ShortSecret(_) => {
            PyValueError::new_err(text)
        }
        ServeError::Certificate(_) | ServeError::System(_) => PyOSError::new_err(text),
    }
}
