//! Threads and processes by the calls that POSIX has for them.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "watch_linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "watch_other.rs")]
mod watch;

pub(super) use watch::resident_bytes;

pub(super) const AVAILABLE: bool = true;

/// Longest wait for the end of a program, ms: a thousand times what Python takes to start.
const PATIENCE_MS: c_int = 10_000;

unsafe extern "C" {
    /// The environment of this process, which programs inherit.
    static environ: *const *mut c_char;
}

/// Something that can be started and waited for.
pub(super) enum Start {
    Thread,
    Fork { code: fn(u64) -> i32 },
    Program { words: Vec<CString> },
}

/// How a start ends: changes from one to the next, is never 0, and fits the eight bits of an exit status. 251 is prime.
fn code(number: u64) -> i32 {
    i32::try_from(number % 251).map_or(1, |rest| rest + 1)
}

impl Start {
    pub(super) fn thread() -> Self {
        Self::Thread
    }

    pub(super) fn fork() -> Self {
        Self::Fork { code }
    }

    pub(super) fn program(path: &Path, arguments: &[&str]) -> Result<Self> {
        let words: Result<Vec<CString>, _> = std::iter::once(path.as_os_str().as_bytes())
            .chain(arguments.iter().map(|argument| argument.as_bytes()))
            .map(CString::new)
            .collect();
        let words = words.map_err(|_| ProbeError::Other(format!("{} holds a NUL", path.display())))?;
        Ok(Self::Program { words })
    }

    /// Starts, waits for the end, and says how it ended.
    pub(super) fn once(&self, number: u64) -> Result<i32> {
        match self {
            Self::Thread => thread(number),
            Self::Fork { code } => fork(code(number)),
            Self::Program { words } => program(words),
        }
    }

    /// How start `number` must end.
    pub(super) fn expected(&self, number: u64) -> i32 {
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
    // SAFETY: other threads may hold locks that the child would wait for: the child calls nothing but _exit, which is
    // async-signal-safe.
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
    // SAFETY: path and arguments are NUL-terminated and outlive the call, the list ends with a null, and nothing in this process
    // changes the environment while it measures.
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
