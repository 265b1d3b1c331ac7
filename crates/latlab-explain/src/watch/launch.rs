//! Starting the program as a shell would: the same terminal, process group, descriptors, signal mask; and
//! ending with it.
//!
//! The program stays in the process group that the shell made: Ctrl-C, Ctrl-\ and Ctrl-Z reach it as they
//! would without the watcher. Signals that somebody sends to the watcher alone are handed on.
//!
//! Until it becomes the program, the new process runs in the watcher's memory, as with `vfork`: a copy of
//! Python's would have to be made here and given back by the program's exec, which took a program of a
//! millisecond half of one.

use std::ffi::{CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::account::tally::Usage;

/// A program that could not be started: a shell's exit codes.
pub(crate) const NOT_FOUND: i32 = 127;
pub(crate) const NOT_EXECUTABLE: i32 = 126;

/// What is handed on to the program when it is sent to the watcher.
const HANDED_ON: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
/// Python ignores these when it starts, so whether the caller did cannot be known: a program has them as a
/// shell leaves them.
const IGNORED_BY_PYTHON: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

static RECEIVER: AtomicI32 = AtomicI32::new(0);
/// Whether a signal has come that was the program's.
static SIGNALLED: AtomicBool = AtomicBool::new(false);

extern "C" fn hand_on(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo to a handler that asked for it.
    let code = unsafe { (*info).si_code };
    SIGNALLED.store(true, Ordering::Relaxed);
    let receiver = RECEIVER.load(Ordering::Relaxed);
    // From the keyboard it reaches the whole process group: the program has it already.
    if receiver > 0 && code != libc::SI_KERNEL {
        // SAFETY: kill(2) may be called in a handler; the id stays valid until the program is waited for, and
        // RECEIVER is cleared before.
        unsafe { libc::kill(receiver, signal) };
    }
}

/// Hands signals on to the program while there is one; then everything is as it was.
#[derive(Debug)]
pub(crate) struct Signals {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Signals {
    pub(crate) fn hand_on() -> Self {
        SIGNALLED.store(false, Ordering::Relaxed);
        Self { before: Self::take() }
    }

    /// The same before a further run of the program.
    #[expect(clippy::unused_self, reason = "what is taken now is given back by it")]
    pub(crate) fn hand_on_again(&self) {
        Self::take();
    }

    /// What the signals did before.
    fn take() -> Vec<(libc::c_int, libc::sigaction)> {
        let mut before = Vec::new();
        for signal in HANDED_ON {
            let mut action: libc::sigaction = unsafe {
                // SAFETY: all zero is a valid sigaction.
                MaybeUninit::zeroed().assume_init()
            };
            action.sa_sigaction = hand_on as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            let mut old = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: both point to actions of ours; the handler does only what a handler may do.
            if unsafe { libc::sigaction(signal, &raw const action, old.as_mut_ptr()) } == 0 {
                // SAFETY: filled by the call that succeeded.
                before.push((signal, unsafe { old.assume_init() }));
            }
        }
        before
    }

    /// The program has ended: who wants the watcher ended from now on ends it, whatever it still has to find
    /// out.
    pub(crate) fn give_back(&self) {
        RECEIVER.store(0, Ordering::Relaxed);
        for (signal, old) in &self.before {
            // SAFETY: gives back the action that the kernel gave us.
            unsafe { libc::sigaction(*signal, &raw const *old, ptr::null_mut()) };
        }
    }

    /// Whether one has come: whoever sent it wants the program ended, not run again.
    #[expect(clippy::unused_self, reason = "only while they are handed on is it known")]
    pub(crate) fn have_come(&self) -> bool {
        SIGNALLED.load(Ordering::Relaxed)
    }

    fn ignored(&self) -> Vec<libc::c_int> {
        let ignored = self.before.iter().filter(|(_, old)| old.sa_sigaction == libc::SIG_IGN);
        ignored.map(|(signal, _)| *signal).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What is done with the program's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    /// They are the watcher's own, untouched.
    Inherited,
    /// Input again from this offset, output to this descriptor: a run for more samples.
    Repeated(Option<i64>, RawFd),
}

/// A process that waits to become the program.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) pid: i32,
    release: Option<OwnedFd>,
    status: OwnedFd,
    /// The thread that it runs in the place of, until it has a memory of its own.
    lender: Option<JoinHandle<()>>,
}

pub(crate) fn pipe(flags: PipeFlags) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | flags)?)
}

impl Held {
    /// Forks a process that runs `arguments` once it is released, and ends when this one does before.
    pub(crate) fn fork(
        arguments: &[impl AsRef<OsStr>],
        added: &[(&str, String)],
        streams: Streams,
        signals: &Signals,
    ) -> io::Result<Self> {
        let words = arguments
            .iter()
            .map(|word| CString::new(word.as_ref().as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))?;
        if words.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        let (wait, release) = pipe(PipeFlags::empty())?;
        let (status, tell) = pipe(PipeFlags::NONBLOCK)?;
        let start = Start {
            words,
            environment: environment(added)?,
            wait: wait.as_raw_fd(),
            release: release.as_raw_fd(),
            tell: tell.as_raw_fd(),
            streams,
            ignored: signals.ignored(),
        };
        let lender = std::thread::Builder::new().spawn(move || start.lend())?;
        let mut held = Self { pid: 0, release: Some(release), status, lender: Some(lender) };
        // Whoever kills it before it has told its id does not stop the watcher.
        for _ in 0..100 {
            wait_for(&[Some(held.status.as_fd())], 100_000_000);
            if let Ok(Some(number)) = held.number() {
                held.pid = number;
                break;
            }
        }
        if held.pid <= 0 {
            return Err(io::Error::from_raw_os_error(if held.pid < 0 { -held.pid } else { libc::EIO }));
        }
        RECEIVER.store(held.pid, Ordering::Relaxed);
        // The process has copies of its own by now; ours would keep the pipes open after it.
        drop((wait, tell));
        Ok(held)
    }

    /// Lets it go on.
    pub(crate) fn release(&mut self) {
        if let Some(release) = self.release.take() {
            // When it fails, the process has gone, which its exit tells.
            let _ = rustix::io::write(release, b"x");
        }
    }

    /// Waits until it has become the program, or has ended.
    pub(crate) fn loaded(&self, ending: Option<BorrowedFd<'_>>) -> io::Result<()> {
        loop {
            wait_for(&[Some(self.status.as_fd()), ending], 10_000_000_000);
            let over = has_ended(self.pid);
            match self.number() {
                Ok(Some(reason)) => return Err(io::Error::from_raw_os_error(reason)),
                Ok(None) => return Ok(()),
                Err(_) if over => return Ok(()),
                Err(_) => {}
            }
        }
    }

    /// What it tells next: first its id, or why there is none, as a negative number; then why it did not
    /// become the program. `None`: nothing any more; an error: nothing yet.
    fn number(&self) -> io::Result<Option<i32>> {
        let mut number = [0_u8; 4];
        let got = rustix::io::read(&self.status, &mut number)?;
        Ok((got == 4).then(|| i32::from_ne_bytes(number)))
    }
}

/// The environment that this process was given, with these in place of their like.
fn environment(added: &[(&str, String)]) -> io::Result<Vec<CString>> {
    let is_like = |entry: &[u8], name: &str| {
        let rest = entry.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    let mut given = given();
    given.retain(|entry| !added.iter().any(|(name, _)| is_like(entry, name)));
    given.extend(added.iter().map(|(name, value)| format!("{name}={value}").into_bytes()));
    given
        .into_iter()
        .map(|entry| CString::new(entry).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL)))
        .collect()
}

/// The entries that this process was started with, byte for byte. Python sets variables for itself meanwhile
/// (`LC_CTYPE`, where there is no locale), and keeps one of several of a name.
fn given() -> Vec<Vec<u8>> {
    match std::fs::read("/proc/self/environ") {
        Ok(block) if block.is_empty() => Vec::new(),
        Ok(block) => {
            let entries = block.strip_suffix(b"\0").unwrap_or(&block);
            entries.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
        }
        Err(_) => std::env::vars_os()
            .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
            .collect(),
    }
}

/// What a new process needs to become the program.
struct Start {
    words: Vec<CString>,
    environment: Vec<CString>,
    wait: libc::c_int,
    release: libc::c_int,
    tell: libc::c_int,
    streams: Streams,
    ignored: Vec<libc::c_int>,
}

/// The same as the process takes it.
struct Ready<'a> {
    of: &'a Start,
    /// End with a null pointer.
    words: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    /// Signals that were blocked before all were.
    blocked: libc::sigset_t,
}

/// Stack for the calls below; `execvpe` needs some for each word besides.
const STACK: usize = 128 << 10;

impl Start {
    /// Starts the process, and stands still until it has a memory of its own or is gone.
    fn lend(&self) {
        let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
            words.iter().map(|word| word.as_ptr()).chain(std::iter::once(ptr::null())).collect()
        };
        let mut ready = Ready {
            of: self,
            words: pointers(&self.words),
            environment: pointers(&self.environment),
            // SAFETY: a set of bits.
            blocked: unsafe { MaybeUninit::zeroed().assume_init() },
        };
        let bytes = STACK + 16 * self.words.len();
        let mut stack: Vec<u128> = Vec::with_capacity(bytes / size_of::<u128>());
        // SAFETY: the process runs on a stack of its own, in memory that nothing touches or gives back before
        // it has left it, as this thread stands still until then. It calls nothing but what `become_program`
        // does: all signals are blocked until they have their usual actions again.
        let (pid, error) = unsafe {
            let mut all = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), &raw mut ready.blocked);
            let top = stack.as_mut_ptr().add(stack.capacity());
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let pid = libc::clone(become_program, top.cast(), flags, (&raw mut ready).cast());
            (pid, *libc::__errno_location())
        };
        if pid < 0 {
            tell(self.tell, -error);
        }
    }
}

/// Four bytes into a pipe that has room for them.
fn tell(to: libc::c_int, number: i32) {
    // SAFETY: a number of ours. When it fails, nobody reads it any more.
    unsafe { libc::write(to, (&raw const number).cast(), 4) };
}

/// Runs in the new process: only system calls, no memory from the allocator, until the program replaces it.
extern "C" fn become_program(ready: *mut libc::c_void) -> libc::c_int {
    // SAFETY: what `lend` gave, which stands still meanwhile.
    let ready = unsafe { &*ready.cast::<Ready<'_>>() };
    let start = ready.of;
    // SAFETY: system calls on descriptors and memory of this process; `words` and `environment` end with a
    // null pointer.
    unsafe {
        // Its own copy would keep the pipe open when the watcher is gone.
        libc::close(start.release);
        // No handler may run here: it would find the watcher's memory.
        for signal in 1..=libc::SIGRTMAX() {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            let known = libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0;
            let handler = (*action.as_ptr()).sa_sigaction;
            if start.ignored.contains(&signal) {
                libc::signal(signal, libc::SIG_IGN);
            } else if IGNORED_BY_PYTHON.contains(&signal)
                || known && handler != libc::SIG_IGN && handler != libc::SIG_DFL
            {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        tell(start.tell, libc::getpid());
        let mut go = 0_u8;
        loop {
            let got = libc::read(start.wait, (&raw mut go).cast(), 1);
            if got == 1 {
                break;
            }
            if got == 0 || *libc::__errno_location() != libc::EINTR {
                libc::_exit(NOT_FOUND);
            }
        }
        if let Streams::Repeated(from, output) = start.streams {
            if let Some(from) = from {
                libc::lseek(0, from, libc::SEEK_SET);
            }
            if libc::dup2(output, 1) < 0 || libc::dup2(output, 2) < 0 {
                libc::_exit(NOT_EXECUTABLE);
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const ready.blocked, ptr::null_mut());
        libc::execvpe(ready.words[0], ready.words.as_ptr(), ready.environment.as_ptr());
        let error = *libc::__errno_location();
        tell(start.tell, error);
        libc::_exit(if error == libc::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.release.take().is_some() && self.pid > 0 {
            // Never let go: it ends by itself as its pipe closes; only its entry is left to be cleared.
            // SAFETY: waits for a child of ours.
            unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
        }
        RECEIVER.store(0, Ordering::Relaxed);
        if let Some(lender) = self.lender.take() {
            let _ = lender.join();
        }
    }
}

/// How a process ended, and what it used together with the children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ended {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) used: Usage,
}

/// Whether the process has ended; it keeps its entry in /proc.
pub(crate) fn has_ended(pid: i32) -> bool {
    let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Pid::from_raw(pid).is_some_and(|pid| match waitid(WaitId::Pid(pid), flags) {
        Ok(status) => status.is_some(),
        Err(error) => error == Errno::CHILD,
    })
}

/// Takes the ended process's entry away.
pub(crate) fn reap(pid: i32) -> Ended {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // The id is free for another process from now on.
    RECEIVER.store(0, Ordering::Relaxed);
    // SAFETY: both are ours; a zeroed rusage is valid.
    let (got, usage) = unsafe {
        let got = libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr());
        (got, usage.assume_init())
    };
    if got != pid {
        return Ended::default();
    }
    let ns = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
    };
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    Ended {
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        used: Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            max_resident_bytes: count(usage.ru_maxrss) * 1024,
            ..Usage::default()
        },
    }
}

/// A descriptor that can be polled for the process's end; `None` where the kernel or a sandbox has none.
pub(crate) fn pidfd(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Waits until one of the descriptors can be read or was closed at its other end, or the time is over. An
/// interrupted wait ends early.
pub(crate) fn wait_for(descriptors: &[Option<BorrowedFd<'_>>], ns: u64) {
    let open = descriptors.iter().flatten();
    let mut polled: Vec<PollFd<'_>> = open.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(Duration::from_nanos(ns)).ok();
    let _ = poll(&mut polled, timeout.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(words: &[&str]) -> (Held, Signals) {
        let signals = Signals::hand_on();
        let added = [("LATLAB_TRIED", "a b".to_owned())];
        let held = Held::fork(words, &added, Streams::Inherited, &signals).unwrap();
        (held, signals)
    }

    #[test]
    fn a_program_begins_when_it_is_released_with_what_was_added_to_its_environment() {
        let script = r#"[ "$LATLAB_TRIED" = "a b" ] && exit 3"#;
        let (mut held, _signals) = started(&["sh", "-c", script]);
        assert!(!has_ended(held.pid));
        held.release();
        held.loaded(None).unwrap();
        assert_eq!(reap(held.pid).exit_code, Some(3));
    }

    #[test]
    fn why_a_program_cannot_be_started_is_reported() {
        let (mut held, _signals) = started(&["/nowhere/at/all"]);
        held.release();
        let reason = held.loaded(None).unwrap_err().raw_os_error();
        assert_eq!(reason, Some(libc::ENOENT));
        assert_eq!(reap(held.pid).exit_code, Some(NOT_FOUND));
    }

    #[test]
    fn a_process_that_is_never_released_leaves_nothing() {
        let (held, _signals) = started(&["true"]);
        let pid = held.pid;
        drop(held);
        assert!(has_ended(pid), "there is no such child");
    }
}
