//! What disturbs a CPU, and whether its causes are found.

use std::time::{SystemTime, UNIX_EPOCH};

use latlab_clock::Clock;
use latlab_observe::noise::{NoiseError, Request, hear};
use latlab_observe::self_test::SelfTest;
use latlab_observe::survey::{quietest, survey};
use latlab_observe::{Level, self_test};
use latlab_storage::default_directory;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

use crate::system;

/// How long each CPU is listened to before the quietest is taken.
const LISTEN_NS: f64 = 20e6;
/// Gaps of a survey, as of a listen by default.
const SURVEY_THRESHOLD_NS: f64 = 1_000.0;
/// Nobody waits longer, and what is heard must fit into memory.
const LONGEST_S: f64 = 3600.0;

fn level(name: Option<&str>) -> PyResult<Level> {
    let Some(name) = name else { return Ok(Level::Tracepoints) };
    Level::named(name).ok_or_else(|| {
        let names: Vec<&str> = Level::ALL.iter().map(|level| level.name()).collect();
        PyValueError::new_err(format!("no such level: {name:?}; there are {}", names.join(", ")))
    })
}

fn checked_seconds(seconds: f64) -> PyResult<f64> {
    if seconds > 0.0 && seconds <= LONGEST_S {
        return Ok(seconds);
    }
    Err(PyValueError::new_err(format!("seconds: {seconds} is not above 0 and at most {LONGEST_S}")))
}

/// The CPU that was asked for, or the quietest on which this process may run; and another one.
fn cpus(clock: &Clock, asked: Option<u32>) -> PyResult<(u32, Option<u32>)> {
    let allowed = latlab_machine::describe(&default_directory()).limits.allowed_cpus;
    let cpu = match asked {
        Some(cpu) if allowed.is_empty() || allowed.contains(&cpu) => cpu,
        Some(cpu) => {
            return Err(PyValueError::new_err(format!(
                "cpu: {cpu} is not one of {allowed:?}, on which this process may run"
            )));
        }
        // Looked for on a thread of its own: the caller's is not to be pinned.
        None => std::thread::scope(|scope| {
            let search = scope.spawn(|| quietest(clock, &allowed, LISTEN_NS).ok().flatten());
            search.join().ok().flatten().or(allowed.first().copied()).unwrap_or(0)
        }),
    };
    Ok((cpu, allowed.into_iter().find(|other| *other != cpu)))
}

/// Goes on until SIGTERM, in the measuring process, or Ctrl-C, in the user's.
struct Interrupts {
    termination: Option<system::Termination>,
    raised: Option<PyErr>,
}

impl Interrupts {
    fn watch(in_worker: bool) -> PyResult<Self> {
        Ok(Self { termination: in_worker.then(system::Termination::watch).transpose()?, raised: None })
    }

    fn go_on(&mut self) -> bool {
        if self.raised.is_none() && self.termination.is_none() {
            self.raised = Python::attach(raised);
        }
        self.raised.is_none() && !self.termination.as_ref().is_some_and(system::Termination::noted)
    }
}

/// What a signal's handler raised: for Ctrl-C, `KeyboardInterrupt`.
fn raised(py: Python<'_>) -> Option<PyErr> {
    py.check_signals().err()
}

fn failed(error: &NoiseError) -> PyErr {
    match error {
        NoiseError::Stopped => PyKeyboardInterrupt::new_err(error.to_string()),
        NoiseError::Simulated | NoiseError::Thread(_) => PyOSError::new_err(error.to_string()),
    }
}

/// The JSON of what `work` hears with a clock, until it is interrupted as [`Interrupts`] say.
fn heard<T: Serialize>(
    py: Python<'_>,
    in_worker: bool,
    work: impl FnOnce(&Clock, &mut dyn FnMut() -> bool) -> PyResult<Result<T, NoiseError>> + Send,
) -> PyResult<String> {
    let mut interrupts = Interrupts::watch(in_worker)?;
    py.detach(|| {
        let heard = work(&Clock::open(), &mut || interrupts.go_on())?;
        interrupts.raised.take().map_or(Ok(()), Err)?;
        crate::text::json(&heard.map_err(|error| failed(&error))?)
    })
}

/// Listens on a CPU, without one on the quietest, and returns what kept a thread from looking at the clock
/// there, as JSON.
///
/// `level` is the most evidence that is used. `in_worker`: ends early with what there is on SIGTERM; else
/// Ctrl-C raises.
#[pyfunction]
#[pyo3(signature = (seconds=10.0, cpu=None, threshold_ns=1000.0, level=None, in_worker=false))]
pub(crate) fn noise(
    py: Python<'_>,
    seconds: f64,
    cpu: Option<u32>,
    threshold_ns: f64,
    level: Option<&str>,
    in_worker: bool,
) -> PyResult<String> {
    let (seconds, highest) = (checked_seconds(seconds)?, self::level(level)?);
    if !(100.0..=1e9).contains(&threshold_ns) {
        return Err(PyValueError::new_err(format!(
            "threshold_ns: {threshold_ns} is not between 100 (below it, reading the clock is the noise) and \
                1e9"
        )));
    }
    heard(py, in_worker, |clock, go_on| {
        let (cpu, _) = cpus(clock, cpu)?;
        Ok(hear(clock, &Request { seconds, cpu, threshold_ns, highest }, go_on))
    })
}

/// Listens to every CPU shortly and to the quietest for the rest of
/// `seconds`, and returns how disturbed they are, as JSON. Options as of `noise`.
#[pyfunction]
#[pyo3(signature = (seconds=2.0, level=None, in_worker=false))]
pub(crate) fn noise_survey(
    py: Python<'_>,
    seconds: f64,
    level: Option<&str>,
    in_worker: bool,
) -> PyResult<String> {
    let (seconds, highest) = (checked_seconds(seconds)?, self::level(level)?);
    heard(py, in_worker, |clock, go_on| {
        let allowed = latlab_machine::describe(&default_directory()).limits.allowed_cpus;
        let request = Request {
            seconds,
            cpu: allowed.first().copied().unwrap_or(0),
            threshold_ns: SURVEY_THRESHOLD_NS,
            highest,
        };
        Ok(survey(clock, &allowed, &request, go_on))
    })
}

/// Makes known disturbances for
/// `seconds` each and returns how well their causes are found, as JSON. Options as of `noise`.
#[pyfunction]
#[pyo3(signature = (seconds=2.0, cpu=None, level=None, in_worker=false))]
pub(crate) fn noise_self_test(
    py: Python<'_>,
    seconds: f64,
    cpu: Option<u32>,
    level: Option<&str>,
    in_worker: bool,
) -> PyResult<String> {
    let (seconds, highest) = (checked_seconds(seconds)?, self::level(level)?);
    heard(py, in_worker, |clock, go_on| {
        let (cpu, other_cpu) = cpus(clock, cpu)?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let test = SelfTest {
            cpu,
            other_cpu,
            seconds,
            highest,
            seed: since_epoch.as_secs() ^ u64::from(since_epoch.subsec_nanos()),
        };
        Ok(self_test(clock, &test, go_on))
    })
}
