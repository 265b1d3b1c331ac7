//! Child processes that measure: an allocator preloaded, a library or a limit that the measuring process must
//! not have.
//!
//! ```text
//! Child::ask ──a JSON line──► standard input of the child ──► serve_child ──► its program
//!            ◄──a JSON line── standard output              ◄──
//! ```
//! The child inherits the CPU that its parent is pinned to and ends when its standard input does. Lines of
//! its standard output that are no answer are passed over: a runtime may print what it likes before the first
//! one.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{ProbeError, Result};

/// A child that was told to end may take this long before it is killed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest answer, bytes: a block's values take some kilobytes.
const LONGEST: usize = 16 << 20;

/// An answer as it crosses the pipe.
#[derive(Serialize, Deserialize)]
enum Answer<A> {
    #[serde(rename = "ok")]
    Ok(A),
    #[serde(rename = "failed")]
    Failed(String),
}

/// A running child, ended when this is dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// Taken at the end: closing it is what tells the child to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Child {
    /// Starts `command` (see [`Env::child`](crate::Env::child)) with the program's name as its last argument
    /// and more environment variables. Fails when the system refuses the process.
    pub fn start(command: &[OsString], program: &str, environment: &[(&str, OsString)]) -> Result<Self> {
        let refused =
            |source| ProbeError::System { what: format!("starting a process for {program}"), source };
        let (file, arguments) = command
            .split_first()
            .ok_or_else(|| ProbeError::Other(format!("{program}: no child process can be started here")))?;
        let mut process = Command::new(file)
            .args(arguments)
            .arg(program)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(ProbeError::Other(format!("{program}: no pipes")));
        };
        Ok(Self { process, requests: Some(requests), answers: BufReader::new(answers) })
    }

    /// Its process id, for its counters.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it was found to have ended when it was asked: another one may be started.
    pub fn is_gone(&self) -> bool {
        self.requests.is_none()
    }

    /// Ends it at once, whatever it is at.
    pub fn kill(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
    }

    /// Asks and waits for the answer. Errors: what the child says went wrong, or that it ended, with its
    /// status.
    pub fn ask<Q: Serialize, A: DeserializeOwned>(&mut self, request: &Q) -> Result<A> {
        let unreadable =
            |error: serde_json::Error| ProbeError::Other(format!("the measuring child: {error}"));
        let mut line = serde_json::to_vec(request).map_err(unreadable)?;
        line.push(b'\n');
        let sent = match &mut self.requests {
            Some(requests) => requests.write_all(&line).and_then(|()| requests.flush()),
            None => return Err(self.gone()),
        };
        if sent.is_err() {
            return Err(self.gone());
        }
        loop {
            line.clear();
            let read = std::io::Read::take(&mut self.answers, LONGEST as u64).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) || line.last() != Some(&b'\n') {
                return Err(self.gone());
            }
            if line.first() == Some(&b'{') {
                break;
            }
        }
        match serde_json::from_slice(&line).map_err(unreadable)? {
            Answer::Ok(answer) => Ok(answer),
            Answer::Failed(reason) => Err(ProbeError::Other(reason)),
        }
    }

    fn gone(&mut self) -> ProbeError {
        self.end();
        let status = self.process.try_wait().ok().flatten();
        let how = status.map_or_else(|| "was killed".to_owned(), |status| status.to_string());
        ProbeError::Other(format!("the measuring child ended ({how})"))
    }

    /// Closes its input, waits, and kills it when it does not end.
    fn end(&mut self) {
        self.requests = None;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Already gone, or beyond our reach: there is nothing more to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// The child's side: answers requests from `input` on `output` until there are none. Fails when a pipe fails;
/// the parent is gone then.
pub fn serve_child<Q: DeserializeOwned, A: Serialize>(
    input: impl BufRead,
    output: &mut dyn Write,
    mut answer: impl FnMut(Q) -> Result<A>,
) -> std::io::Result<()> {
    for line in input.lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(request) => answer(request),
            Err(error) => Err(ProbeError::Other(format!("a request that cannot be read: {error}"))),
        };
        answer_parent(output, answer)?;
    }
    Ok(())
}

/// One answer, for a child that goes on with something else after it than with the next request.
/// Fails when the pipe fails; the parent is gone then.
pub fn answer_parent<A: Serialize>(output: &mut dyn Write, answer: Result<A>) -> std::io::Result<()> {
    let answer = match answer {
        Ok(answer) => Answer::Ok(answer),
        Err(error) => Answer::Failed(error.to_string()),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A child that is a shell script: `$0` is the program's name.
    fn shell(script: &str) -> Vec<OsString> {
        ["/bin/sh", "-c", script].map(OsString::from).to_vec()
    }

    #[test]
    fn a_child_answers_and_what_it_prints_besides_is_passed_over() {
        let script = r#"echo hello; read line; echo "{\"ok\":$line}"; echo noise; read line; echo "{\"failed\":\"no such size\"}""#;
        let mut child = Child::start(&shell(script), "test", &[]).expect("a shell starts");
        assert_eq!(child.ask::<u32, u32>(&7).expect("an answer"), 7);
        let error = child.ask::<u32, u32>(&8).expect_err("the child refused");
        assert_eq!(error.to_string(), "no such size");
        assert!(!child.is_gone(), "a refusal is an answer");
    }

    #[test]
    fn a_child_that_dies_is_named_with_its_status() {
        let mut child = Child::start(&shell("read line; exit 3"), "test", &[]).expect("a shell starts");
        let error = child.ask::<u32, u32>(&7).expect_err("it ended");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(child.ask::<u32, u32>(&7).is_err(), "and stays ended");
        assert!(child.is_gone());
    }

    #[test]
    fn a_child_that_does_not_end_is_killed_and_reaped() {
        let child = Child::start(&shell("exec sleep 100"), "test", &[]).expect("a shell starts");
        let id = child.process.id();
        drop(child);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_refused_by_name() {
        // Some emulators start it all the same, and it ends at once.
        let error = Child::start(&[OsString::from("/nonexistent")], "alloc.malloc", &[])
            .and_then(|mut child| child.ask::<u32, u32>(&7))
            .expect_err("nothing there");
        let text = error.to_string();
        assert!(text.contains("alloc.malloc") || text.contains("the measuring child ended"), "{text}");
        assert!(Child::start(&[], "alloc.malloc", &[]).is_err());
    }

    #[test]
    fn requests_are_answered_in_order_and_a_bad_one_harms_no_other() {
        let mut output = Vec::new();
        let input = &b"1\nx\n3\n"[..];
        serve_child(input, &mut output, |n: u32| {
            if n == 3 {
                return Err(ProbeError::Other("three".to_owned()));
            }
            Ok(n + 1)
        })
        .expect("pipes of memory hold");
        let text = String::from_utf8(output).expect("JSON is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r#"{"ok":2}"#);
        assert!(lines[1].contains("cannot be read"), "{text}");
        assert_eq!(lines[2], r#"{"failed":"three"}"#);
    }
}
