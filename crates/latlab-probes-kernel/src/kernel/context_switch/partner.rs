//! The other side: a thread or a forked process that answers and does nothing else.

use std::sync::Arc;
use std::sync::mpsc::channel;

use latlab_harness::pin_this_thread;
use latlab_probes_shared::prelude::*;

use super::exchange::{Exchange, STOP, Side};
use latlab_probes_shared::linux::{Pinned, Task, thread_id};
use latlab_probes_shared::{Joined, start_thread};

/// Adds one to each number and sends it back, until there are none.
pub(super) fn answer(side: &Side) {
    while let Some(token) = side.receive() {
        if token >= STOP || !side.send(token + 1) {
            return;
        }
    }
}

/// A running partner; dropping it ends it and waits for its end.
pub(super) struct Partner {
    exchange: Arc<Exchange>,
    pub(super) task: Task,
    thread: Option<Joined>,
}

impl Partner {
    /// A thread on this CPU.
    pub(super) fn spawn(exchange: &Arc<Exchange>, cpu: u32, answer: fn(&Side)) -> Result<Self> {
        let (report, started) = channel();
        let theirs = Arc::clone(exchange);
        let thread = start_thread("partner", "starting a thread to exchange numbers with", move || {
            let pinned = Pinned::to(cpu);
            let begun = pinned.is_ok();
            // Nobody listens any more: there is nobody to answer either.
            let reported = report.send(pinned.as_ref().map(|_| thread_id()).map_err(ToString::to_string));
            if begun && reported.is_ok() {
                answer(&theirs.partner());
            }
        })?;
        let id = started
            .recv()
            .map_err(|_| ProbeError::Other("the partner's thread ended unexpectedly".to_owned()))?
            .map_err(ProbeError::Other)?;
        Ok(Self { exchange: Arc::clone(exchange), task: Task::Thread(id), thread: Some(thread.into()) })
    }

    /// A process on this CPU.
    pub(super) fn fork(exchange: &Arc<Exchange>, cpu: u32, answer: fn(&Side)) -> Result<Self> {
        // SAFETY: asks for a number.
        let parent = unsafe { libc::getpid() };
        let files = exchange.partners_files();
        let side = exchange.partner();
        // SAFETY: the child calls only what is allowed after a fork of a process with threads (see `live`),
        // and never returns.
        let id = unsafe { libc::fork() };
        if id == 0 {
            live(parent, cpu, files, &side, answer);
        }
        if id < 0 {
            return Err(ProbeError::last_os_error("forking a process to exchange numbers with"));
        }
        Ok(Self { exchange: Arc::clone(exchange), task: Task::Process(id), thread: None })
    }

    /// In words, for a user whose exchange came to nothing.
    pub(super) fn how_it_ended(&self, patience_ended: bool) -> String {
        match (self.task, state(self.task)) {
            (Task::Process(_), Some(status)) => format!("the other process ended ({status})"),
            (Task::Process(_), None) if patience_ended => {
                "the other process did not answer in time".to_owned()
            }
            (Task::Thread(_), _) if patience_ended => "the other thread did not answer in time".to_owned(),
            _ => "the response is not an answer".to_owned(),
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        match self.task {
            Task::Thread(_) => {
                self.exchange.stop();
                self.thread = None;
            }
            Task::Process(id) => {
                // SAFETY: our own child, not yet waited for, so the number is still its own.
                unsafe { libc::kill(id, libc::SIGKILL) };
                let mut status = 0;
                // SAFETY: as above; the status is ours.
                while unsafe { libc::waitpid(id, &raw mut status, 0) } < 0
                    && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
                {
                }
            }
        }
    }
}

/// How a child has ended, without taking it from who waits for it; `None` while it runs, and for a thread.
pub(super) fn state(task: Task) -> Option<String> {
    let Task::Process(id) = task else { return None };
    // SAFETY: all-zero is a valid siginfo.
    let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the siginfo is ours.
    let status = unsafe { libc::waitid(libc::P_PID, id.cast_unsigned(), &raw mut ended, options) };
    // SAFETY: the call fills the fields of a child's end, or leaves zeros.
    let (pid, value) = unsafe { (ended.si_pid(), ended.si_status()) };
    if status != 0 || pid == 0 {
        return None;
    }
    Some(match ended.si_code {
        libc::CLD_EXITED => format!("exit status {value}"),
        _ => format!("killed by signal {value}"),
    })
}

/// The forked process. The process it comes from has threads, so nothing here takes a lock or allocates; it
/// ends with its parent, however that ends, and holds none of its files open.
fn live(parent: i32, cpu: u32, files: [i32; 2], side: &Side, answer: fn(&Side)) -> ! {
    // SAFETY: calls that are allowed after a fork, on memory of this frame.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if libc::getppid() != parent {
            // It ended before it could be watched.
            libc::_exit(0);
        }
        // The parent's handlers are not for this process; the one signal that ends it cannot be blocked.
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
    latlab_perf::close_all_but(&mut { files });
    // Whether that worked the parent sees for itself.
    pin_this_thread(cpu);
    answer(side);
    // SAFETY: ends this process, without the parent's exit handlers.
    unsafe { libc::_exit(0) }
}
