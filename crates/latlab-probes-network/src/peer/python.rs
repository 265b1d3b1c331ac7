//! The same transfers as a Python program does them: by a library, with a pool of threads.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use latlab_harness::{Env, ProbeError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::Engine;
use super::side::failed;
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
    ///
    /// # Errors
    /// Why there is none, in words for the user.
    pub(crate) fn with(env: &Env, engine: Engine) -> Result<Self, String> {
        let executable = env
            .interpreter
            .as_ref()
            .and_then(|interpreter| interpreter.executable())
            .ok_or("there is no interpreter that could run it")?;
        let packages = env.packages.clone().ok_or("where the user's packages are is not known")?;
        let package = engine.package();
        if !packages.join(package).join("__init__.py").is_file() {
            return Err(format!("{package} is not installed"));
        }
        Ok(Self { executable, packages })
    }

    /// Starts it, in the namespace and on the CPUs of this process.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn start(&self) -> Result<Running, ProbeError> {
        let mut process = Command::new(&self.executable)
            .args(["-I", "-S", "-c", PROGRAM])
            .arg(&self.packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(Running {
                interpreter: self.clone(),
                process,
                requests: Some(requests),
                answers: BufReader::new(answers),
            }),
            _ => Err(ProbeError::Other("the interpreter has no pipes".to_owned())),
        }
    }
}

/// A running interpreter, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    interpreter: Interpreter,
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Done { stamps: Vec<(u64, u64)>, connections: u64 },
    Failed(String),
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
        let ended = || ProbeError::Other("the Python program ended".to_owned());
        let requests = self.requests.as_mut().ok_or_else(ended)?;
        writeln!(requests, "{request}").map_err(|_| ended())?;
        requests.flush().map_err(|_| ended())?;
        let mut line = String::new();
        if self.answers.read_line(&mut line).map_err(|_| ended())? == 0 {
            return Err(ended());
        }
        match serde_json::from_str(&line) {
            Ok(Told::Done { stamps, connections }) => {
                let first = stamps.iter().map(|(begun, _)| *begun).min().unwrap_or(0);
                let stamped = stamps.into_iter().map(|(begun, ended)| Stamped {
                    begun: begun - first + 1,
                    last_byte: ended - first + 1,
                    ..Stamped::default()
                });
                Ok(Transferred { stamped: stamped.collect(), connections })
            }
            Ok(Told::Failed(reason)) => Err(ProbeError::Other(format!("the Python program: {reason}"))),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests = None;
        // It may wait for a server: nothing of it is needed any longer.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
