//! The same transfers as a Python program does them: by a library, with a pool of threads.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;

use latlab_harness::{Child, Env, ProbeError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::Engine;
use super::transfers::{Stamped, Transferred, Work};

const PROGRAM: &str = include_str!("programs/transfers.py");

/// An interpreter and where its packages are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interpreter {
    executable: PathBuf,
    packages: PathBuf,
}

impl Interpreter {
    /// The one that latlab runs in, where it has this library.
    pub(crate) fn with(env: &Env, engine: Engine) -> Result<Self, String> {
        let executable = env
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.executable())
            .ok_or("no interpreter can run it")?;
        let packages = env.packages.clone().ok_or("the folder of the user's packages is unknown")?;
        let package = engine.package();
        if !packages.join(package).join("__init__.py").is_file() {
            return Err(format!("{package} is not installed"));
        }
        Ok(Self { executable, packages })
    }

    /// Starts it, in the namespace and on the CPUs of this process.
    pub(crate) fn start(&self) -> Result<Running, ProbeError> {
        let [executable, packages] = [&self.executable, &self.packages].map(|path| path.as_os_str());
        let command = [executable, "-I".as_ref(), "-S".as_ref(), "-c".as_ref(), PROGRAM.as_ref(), packages]
            .map(OsStr::to_owned);
        Ok(Running { interpreter: self.clone(), child: Child::start(&command, "network.transfer", &[])? })
    }
}

/// A running interpreter, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    interpreter: Interpreter,
    child: Child,
}

/// What it has done.
#[derive(Deserialize)]
struct Reported {
    stamps: Vec<(u64, u64)>,
    connections: u64,
}

impl Running {
    /// Whether it is this one that runs.
    pub(crate) fn is_of(&self, interpreter: &Interpreter) -> bool {
        self.interpreter == *interpreter
    }

    pub(crate) fn prepare(
        &mut self,
        library: Engine,
        address: SocketAddr,
        work: &Work,
    ) -> Result<Transferred, ProbeError> {
        let request = json!({ "prepare": {
            "library": library,
            "workers": work.workers,
            "kept": work.kept,
            "bytes": work.bytes,
            "url": format!("http://{address}/bytes/{}", work.bytes),
            "patience_s": work.patience.as_secs_f64(),
        }});
        self.ask(&request)
    }

    /// Stamps without phases: a library does not tell them.
    pub(crate) fn transfer(&mut self, work: &Work) -> Result<Transferred, ProbeError> {
        self.ask(&json!({ "count": work.count }))
    }

    fn ask(&mut self, request: &Value) -> Result<Transferred, ProbeError> {
        let of_python = |error| ProbeError::Other(format!("the Python program: {error}"));
        let Reported { stamps, connections } = self.child.ask(request).map_err(of_python)?;
        let first = stamps.iter().map(|(begun, _)| *begun).min().unwrap_or(0);
        let stamped = stamps.into_iter().map(|(begun, ended)| Stamped {
            begun: begun - first + 1,
            last_byte: ended - first + 1,
            ..Stamped::default()
        });
        Ok(Transferred { stamped: stamped.collect(), connections })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may wait for a server: nothing of it is needed any longer.
        self.child.kill();
    }
}
