//! One run of the program, watched from its start to its end.

use std::ffi::OsString;

use latlab_stats::rng::Rng;

use super::launch::{Ended, Held, Signals, Streams, has_ended, pidfd, reap, wait_for};
use super::look::{About, Looker};
use super::proc_file::text;
use super::{now_ns, thread_cpu_ns};
use crate::ExplainError;
use crate::rules::Rules;
use crate::sweep::{Seen, State, Sweep};
use crate::tally::{Io, Tally, Usage};
use crate::timeline::Bins;
use std::collections::HashMap;

/// Looks come at random distances around this, so that they do not fall into step with a program's own period.
const USUAL_NS: u64 = 1_000_000;
/// At first they come more often: many programs are over soon.
const FIRST_NS: u64 = 300_000;
const FIRST_FOR_NS: u64 = 20_000_000;
/// Long runs need fewer.
const LATER_NS: u64 = 4_000_000;
const LATER_FROM_NS: u64 = 30_000_000_000;
/// Looking may take this share of one CPU.
const SHARE: u64 = 50;

/// A run, and what else is to be told of it.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) tally: Tally,
    pub(crate) ended: Option<Ended>,
    pub(crate) pid: u32,
    pub(crate) left_running: u32,
    pub(crate) bins: Bins,
    pub(crate) processes: HashMap<u32, Seen>,
    pub(crate) about: HashMap<u32, About>,
    pub(crate) refused: bool,
    pub(crate) overflown: bool,
}

/// Makes timeouts exact while it lives: the usual slack of 50 us is more than a short program's share.
struct Sharp(libc::c_int);

impl Sharp {
    fn timers() -> Self {
        // SAFETY: asks for a number, then sets it for this thread.
        unsafe {
            let before = libc::prctl(libc::PR_GET_TIMERSLACK);
            libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
            Self(before)
        }
    }
}

impl Drop for Sharp {
    fn drop(&mut self) {
        // SAFETY: gives back what it was.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, self.0) };
    }
}

/// Distance to the next look.
fn distance(running_for: u64, look_ns: u64, random: &mut Rng) -> u64 {
    let usual = match running_for {
        0..FIRST_FOR_NS => FIRST_NS,
        FIRST_FOR_NS..LATER_FROM_NS => USUAL_NS,
        _ => LATER_NS,
    };
    let mean = usual.max(look_ns * SHARE);
    mean / 2 + random.next_u64() % mean.max(1)
}

/// Runs the program once.
pub(crate) fn run(
    arguments: &[OsString],
    streams: Streams,
    rules: &'static Rules,
    signals: &Signals,
) -> Result<Watched, ExplainError> {
    let name = arguments
        .first()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let not_started = |error: &std::io::Error| ExplainError::NotStarted {
        name: name.clone(),
        reason: words(error),
        exit_code: if error.raw_os_error() == Some(libc::ENOENT) {
            super::launch::NOT_FOUND
        } else {
            super::launch::NOT_EXECUTABLE
        },
    };
    let mut held = Held::fork(arguments, streams, signals).map_err(|error| not_started(&error))?;
    let _sharp = Sharp::timers();
    let pid = u32::try_from(held.pid).unwrap_or(0);
    let watched = Watching::begin(pid, rules);
    let ending = pidfd(held.pid);
    let before = Before::of(pid);
    let mut watching = watched;
    watching.restart();
    held.release();
    // Until the program is loaded there is nothing to look at.
    wait_for(&[Some(&held.status), ending.as_ref()], 60_000_000_000);
    if let Some(error) = held.failure() {
        reap(held.pid);
        return Err(not_started(&error));
    }
    watching.loaded();
    while !has_ended(held.pid) {
        watching.wait(ending.as_ref());
        if has_ended(held.pid) {
            break;
        }
        watching.look();
    }
    let end = now_ns();
    let io = Io::parse(&text(&format!("/proc/{pid}/io"))).or(watching.io);
    let delays = watching.looker.delays();
    let ended = reap(held.pid);
    Ok(watching.finish(end, Some(ended), io, delays, before))
}

fn words(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no such program".to_owned(),
        Some(libc::EACCES) => "may not be executed".to_owned(),
        Some(libc::ENOEXEC) => "is not a program this system can run".to_owned(),
        _ => error.to_string(),
    }
}

/// What the process that was to become the program had used before it was let go.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    cpu_ns: u64,
    queue_ns: u64,
    faults: u64,
}

impl Before {
    fn of(pid: u32) -> Self {
        let line = text(&format!("/proc/{pid}/schedstat"));
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        let (cpu_ns, queue_ns) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let stat = text(&format!("/proc/{pid}/stat"));
        let rest = stat.rfind(") ").and_then(|at| stat.get(at + 2..)).unwrap_or("");
        let faults = rest
            .split(' ')
            .nth(7)
            .and_then(|word| word.parse().ok())
            .unwrap_or(0);
        Self {
            cpu_ns,
            queue_ns,
            faults,
        }
    }
}

struct Watching {
    pid: u32,
    looker: Looker,
    sweep: Sweep<'static>,
    begin: u64,
    loading_ns: u64,
    cpu_begin: u64,
    random: Rng,
    look_ns: u64,
    looks: u64,
    states: Vec<(u32, u32, State)>,
    io: Option<Io>,
    rules: &'static Rules,
}

impl Watching {
    fn begin(pid: u32, rules: &'static Rules) -> Self {
        let now = now_ns();
        Self {
            pid,
            looker: Looker::at(rules, pid),
            sweep: Sweep::begin(rules, now, pid),
            begin: now,
            loading_ns: 0,
            cpu_begin: thread_cpu_ns(),
            random: Rng::new(now ^ u64::from(pid)),
            look_ns: 0,
            looks: 0,
            states: Vec::new(),
            io: None,
            rules,
        }
    }

    /// Time counts from now.
    fn restart(&mut self) {
        self.begin = now_ns();
        self.sweep = Sweep::begin(self.rules, self.begin, self.pid);
    }

    fn loaded(&mut self) {
        let now = now_ns();
        self.sweep.advance(now);
        self.loading_ns = now - self.begin;
    }

    fn wait(&mut self, ending: Option<&std::os::fd::OwnedFd>) {
        let ns = distance(now_ns() - self.begin, self.look_ns, &mut self.random);
        wait_for(&[ending], ns);
    }

    fn look(&mut self) {
        let before = thread_cpu_ns();
        self.looker.look(&mut self.states);
        let now = now_ns();
        if !self.states.is_empty() {
            self.sweep.look(now, &self.states);
            self.looks += 1;
        }
        // Kept for when the process is gone before it can be asked.
        if self.looks % 64 == 1 {
            self.io = Io::parse(&text(&format!("/proc/{}/io", self.pid))).or(self.io);
        }
        let took = thread_cpu_ns() - before;
        self.look_ns = if self.look_ns == 0 {
            took
        } else {
            (7 * self.look_ns + took) / 8
        };
    }

    fn finish(
        self,
        end: u64,
        ended: Option<Ended>,
        io: Option<Io>,
        delays: (u64, u64),
        before: Before,
    ) -> Watched {
        let watcher_ns = thread_cpu_ns() - self.cpu_begin;
        let left_running = self.looker.left_running();
        let swept = self.sweep.end(end);
        let usage = ended.unwrap_or_default();
        let wall_ns = end - self.begin;
        // CPU time of children that nobody waited for is only in what was looked at.
        let counted = usage.user_ns + usage.system_ns;
        let cpu_ns = counted.saturating_sub(before.cpu_ns);
        // In whole numbers: 2^64 ns times 2^64 ns fits.
        let user = u128::from(cpu_ns) * u128::from(usage.user_ns) / u128::from(counted.max(1));
        let user_ns = u64::try_from(user).unwrap_or(cpu_ns);
        let tally = Tally {
            runs: 1,
            wall_ns,
            wall_range_ns: (wall_ns, wall_ns),
            loading_ns: self.loading_ns,
            looked: swept.looked,
            recorded: swept.recorded,
            learned: swept.learned,
            usage: Usage {
                user_ns,
                system_ns: cpu_ns - user_ns,
                queue_ns: Some(delays.1.saturating_sub(before.queue_ns)),
                minor_faults: usage.minor_faults.saturating_sub(before.faults),
                major_faults: usage.major_faults,
                voluntary_switches: usage.voluntary_switches,
                involuntary_switches: usage.involuntary_switches,
                max_resident_bytes: usage.max_resident_bytes,
                io,
            },
            processes: u64::try_from(self.looker.about.len()).unwrap_or(1),
            most_threads: swept.most,
            looks: self.looks,
            watcher_ns,
            ..Tally::default()
        };
        Watched {
            tally,
            ended,
            pid: self.pid,
            left_running,
            bins: swept.bins,
            processes: swept.processes,
            refused: self.looker.refused,
            overflown: self.looker.overflown,
            about: self.looker.about,
        }
    }
}
