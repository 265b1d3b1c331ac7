//! Threads and processes by the calls that POSIX has for them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "watch_linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "watch_other.rs")]
mod watch;

use super::{Memory, Spawn, Started, What, program_true, python};

pub(super) const HERE: bool = true;

/// Longest wait for the end of a program, ms: a thousand times what Python takes to start.
const PATIENCE_MS: c_int = 10_000;

unsafe extern "C" {
    /// The environment of this process, which programs inherit.
    static environ: *const *mut c_char;
}

pub(super) fn open(env: &Env) -> Result<Session<'_>> {
    Session::new(env, start)
}

/// What starts it, where that is here.
fn start(what: What, env: &Env) -> Result<Start> {
    let program = |path: Option<PathBuf>, arguments: &[&str]| {
        let none = || ProbeError::Other("there is no program to start".to_owned());
        Start::program(&path.ok_or_else(none)?, arguments)
    };
    match what {
        What::Thread => Ok(Start::Thread),
        What::ForkExit => Ok(Start::Fork { code }),
        What::PosixSpawn => program(program_true(), &[]),
        What::Python => program(python(env), &["-I", "-S", "-c", "pass"]),
    }
}

/// What became of a point's starts.
#[derive(Default)]
pub struct Evidence {
    /// Numbers the starts; each one's end depends on it.
    count: u64,
    /// The first one that ended otherwise than it should have.
    wrong: Option<String>,
    resident_bytes: Option<u64>,
}

impl Evidence {
    /// One start; returns its begin and end.
    fn once(&mut self, start: &Start, stamps: Stamps) -> Result<(u64, u64)> {
        self.count += 1;
        let begin = stamps.begin();
        let ended = start.once(self.count)?;
        let end = stamps.end();
        let expected = start.expected(self.count);
        if ended != expected && self.wrong.is_none() {
            self.wrong = Some(format!("start {} ended with {ended}, not with {expected}", self.count));
        }
        Ok((begin, end))
    }

    /// Takes in what became of others.
    fn add(&mut self, others: Self) {
        self.count += others.count;
        self.wrong = self.wrong.take().or(others.wrong);
        self.resident_bytes = others.resident_bytes.or(self.resident_bytes);
    }
}

type Make = fn(What, &Env) -> Result<Start>;

/// What the selected point starts.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// Replaced in tests by one that starts something else.
    make: Make,
    start: Option<Start>,
    /// The start before the visit, for the evidence of its block.
    untimed: Evidence,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, make: Make) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("processes do not run in simulated time".to_owned()))?;
        Ok(Self { env, stamps, make, start: None, untimed: Evidence::default() })
    }
}

impl latlab_harness::Session<Spawn> for Session<'_> {
    fn select(&mut self, point: &Started) -> Result<()> {
        let start = (self.make)(point.operation, self.env)?;
        self.untimed = Evidence { resident_bytes: watch::resident_bytes(), ..Evidence::default() };
        self.untimed.once(&start, self.stamps)?;
        self.start = Some(start);
        Ok(())
    }

    fn block(&mut self, point: &Started, ends: &mut Evidence, block: &mut Block) -> Result<()> {
        let Some(start) = &self.start else {
            return Err(ProbeError::Other("nothing to start is selected".to_owned()));
        };
        ends.add(std::mem::take(&mut self.untimed));
        block.set_waits();
        for _ in 0..point.operation.starts(self.env.settings.profile) {
            let (begin, end) = ends.once(start, self.stamps)?;
            block.span(begin, end);
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Started, ends: &Evidence) -> Proof<Memory> {
        let all = || format!("{} starts, each joined or reaped", ends.count);
        let check = Check {
            name: "each ended as it should".to_owned(),
            ok: ends.count > 0 && ends.wrong.is_none(),
            detail: ends.wrong.clone().unwrap_or_else(all),
        };
        Proof::of(vec![check]).with(Memory { resident_bytes: ends.resident_bytes })
    }
}

/// Something that can be started and waited for.
enum Start {
    Thread,
    Fork { code: fn(u64) -> i32 },
    Program { words: Vec<CString> },
}

/// How a start ends: changes from one to the next, is never 0, and fits the eight bits of an exit status. 251
/// is prime.
fn code(number: u64) -> i32 {
    i32::try_from(number % 251).map_or(1, |rest| rest + 1)
}

impl Start {
    fn program(path: &Path, arguments: &[&str]) -> Result<Self> {
        let words: Result<Vec<CString>, _> = std::iter::once(path.as_os_str().as_bytes())
            .chain(arguments.iter().map(|argument| argument.as_bytes()))
            .map(CString::new)
            .collect();
        let words = words.map_err(|_| ProbeError::Other(format!("{} holds a NUL", path.display())))?;
        Ok(Self::Program { words })
    }

    /// Starts, waits for the end, and says how it ended.
    fn once(&self, number: u64) -> Result<i32> {
        match self {
            Self::Thread => thread(number),
            Self::Fork { code } => fork(code(number)),
            Self::Program { words } => program(words),
        }
    }

    /// How start `number` must end.
    fn expected(&self, number: u64) -> i32 {
        match self {
            Self::Thread | Self::Fork { .. } => code(number),
            Self::Program { .. } => 0,
        }
    }
}

fn refused(what: &str, number: c_int) -> ProbeError {
    let source = Error::from_raw_os_error(number);
    // As fork, posix_spawn and pthread_create say that a limit is reached.
    let limit = if source.kind() == ErrorKind::WouldBlock {
        " (the limit of processes and threads, ulimit -u or the container's, may be reached)"
    } else {
        ""
    };
    ProbeError::System { what: format!("{what}{limit}"), source }
}

/// Ends with the code of the number that it is given in place of a pointer.
extern "C" fn ends(number: *mut c_void) -> *mut c_void {
    ptr::without_provenance_mut(usize::try_from(code(number.addr() as u64)).unwrap_or(0))
}

fn thread(number: u64) -> Result<i32> {
    let argument = ptr::without_provenance_mut(usize::try_from(number).unwrap_or(0));
    // SAFETY: an all-zero pthread_t is a place to write one.
    let mut thread: libc::pthread_t = unsafe { std::mem::zeroed() };
    // SAFETY: the function has the right type, does not unwind, and takes no memory of ours.
    let status = unsafe { libc::pthread_create(&raw mut thread, ptr::null(), ends, argument) };
    if status != 0 {
        return Err(refused("starting a thread", status));
    }
    let mut ended = ptr::null_mut();
    // SAFETY: the thread was created above and is joined once; `ended` outlives the call.
    let status = unsafe { libc::pthread_join(thread, &raw mut ended) };
    if status != 0 {
        return Err(refused("joining a thread", status));
    }
    Ok(i32::try_from(ended.addr()).unwrap_or(-1))
}

fn fork(code: i32) -> Result<i32> {
    // SAFETY: other threads may hold locks that the child would wait for: the child calls nothing but _exit,
    // which is async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends this process without running anything of its parent's.
        unsafe { libc::_exit(code) };
    }
    if child < 0 {
        return Err(refused("fork", Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    reap(child)
}

fn program(words: &[CString]) -> Result<i32> {
    let mut arguments: [*mut c_char; 8] = [ptr::null_mut(); 8];
    for (place, word) in arguments.iter_mut().take(7).zip(words) {
        *place = word.as_ptr().cast_mut();
    }
    let mut child: libc::pid_t = 0;
    // SAFETY: path and arguments are NUL-terminated and outlive the call, the list ends with a null, and
    // nothing in this process changes the environment while it measures.
    let status = unsafe {
        libc::posix_spawn(&raw mut child, arguments[0], ptr::null(), ptr::null(), arguments.as_ptr(), environ)
    };
    if status != 0 {
        let path = words.first().map(|path| path.to_string_lossy()).unwrap_or_default();
        return Err(refused(&format!("starting {path}"), status));
    }
    if !watch::ends_within(child, PATIENCE_MS) {
        // SAFETY: a child of ours that nobody has reaped: the number is still its own.
        unsafe { libc::kill(child, libc::SIGKILL) };
        reap(child)?;
        return Err(ProbeError::Other(format!(
            "a program had not ended after {} s and was killed",
            PATIENCE_MS / 1000
        )));
    }
    reap(child)
}

/// The exit code of this child; of one that a signal ended, the signal's number below zero.
fn reap(child: libc::pid_t) -> Result<i32> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let reaped = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if reaped == child {
            break;
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            // ECHILD: whoever started this process told it to ignore SIGCHLD.
            return Err(ProbeError::System { what: "waiting for a child process".to_owned(), source: error });
        }
    }
    Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
