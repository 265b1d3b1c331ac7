//! One run of the program, or some time of a process, watched from beginning to end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_stages::{Event, Listener};
use latlab_stats::rng::Rng;

use super::launch::{Ended, Held, Signals, Streams, has_ended, pidfd, reap, wait_for};
use super::look::{About, Looker};
use super::proc_file::text;
use super::recorder::{FAULT_PERIOD, LEAST_PERIOD_NS, Recorder};
use super::symbols::Symbols;
use super::{now_ns, thread_cpu_ns};
use crate::ExplainError;
use crate::by_stage::{self, Change};
use crate::governor::{Governor, Price};
use crate::records::{Record, What};
use crate::rules::Rules;
use crate::stream::{self, Stream};
use crate::sweep::{Seen, Source, State, Sweep};
use crate::tally::{Io, Tally, Usage};
use crate::timeline::Bins;

/// Looks come at random distances around this, so that they do not fall into step with a program's own period.
const USUAL_NS: u64 = 1_000_000;
/// At first they come more often: many programs are over soon.
const FIRST_NS: u64 = 300_000;
const FIRST_FOR_NS: u64 = 20_000_000;
/// Long runs need fewer.
const LATER_NS: u64 = 4_000_000;
const LATER_FROM_NS: u64 = 30_000_000_000;
/// Thousands of threads take milliseconds to look at: seldom, but not never.
const FARTHEST_NS: u64 = 50_000_000;
/// Looking may take one part in so many of one CPU.
const SHARE: u64 = 50;
/// Recorded, with the kernel's stacks: rings are emptied this often.
const DRAIN_NS: u64 = 4_000_000;
/// Records of different CPUs are put in order; one may come this late.
const LATE_NS: u64 = 3_000_000;
/// Records that wait to be put in order; more are taken as they are.
const MOST_PENDING: usize = 1 << 18;
/// Threads whose reason is asked for at once.
const MOST_ASKED: usize = 32;
/// Faults are recorded for one slice of so many.
const FAULT_SLICE_NS: u64 = 10_000_000;
const FAULT_SLICES: u64 = 10;
/// Counters and names are read this often while everything is recorded.
const SELDOM_NS: u64 = 50_000_000;

/// What may be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// Whether at all; if so, whether the kernel too.
    pub(crate) recording: Option<bool>,
    /// What it costs.
    pub(crate) price: Price,
}

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
    /// Why nothing was recorded although it might have been.
    pub(crate) unrecorded: Option<String>,
}

/// Makes timeouts exact while it lives, where that is allowed also on a busy machine: the usual slack of 50 us is more than a short program's
/// share, and records are lost when nobody reads them. Of this thread alone.
struct Sharp {
    slack: libc::c_int,
    nice: libc::c_int,
}

/// Before others, behind what is in real time.
const NICE: libc::c_int = -11;

impl Sharp {
    fn timers() -> Self {
        // SAFETY: asks for a number, then sets it for this thread.
        unsafe {
            let this = libc::id_t::try_from(libc::gettid()).unwrap_or(0);
            let slack = libc::prctl(libc::PR_GET_TIMERSLACK);
            libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
            let nice = libc::getpriority(libc::PRIO_PROCESS, this);
            // Refused to ordinary users, who do without.
            libc::setpriority(libc::PRIO_PROCESS, this, nice.min(NICE));
            Self { slack, nice }
        }
    }
}

impl Drop for Sharp {
    fn drop(&mut self) {
        // SAFETY: gives back what it was.
        unsafe {
            let this = libc::id_t::try_from(libc::gettid()).unwrap_or(0);
            libc::prctl(libc::PR_SET_TIMERSLACK, self.slack);
            libc::setpriority(libc::PRIO_PROCESS, this, self.nice);
        }
    }
}

/// Stamps the moment at which a process ends, whatever the watcher is busy with.
struct EndStamp {
    at: Arc<AtomicU64>,
}

impl EndStamp {
    fn of(pid: i32) -> Self {
        let at = Arc::new(AtomicU64::new(0));
        let stamp = Arc::clone(&at);
        // A thread that cannot be had costs exactness, nothing else.
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let Some(ending) = pidfd(pid) else { return };
            loop {
                wait_for(&[Some(&ending)], 10_000_000_000);
                if has_ended(pid) {
                    stamp.store(now_ns(), Ordering::Release);
                    return;
                }
                // Nobody asks any more: the watcher has gone on.
                if Arc::strong_count(&stamp) == 1 {
                    return;
                }
            }
        });
        Self { at }
    }

    /// When it ended; now, where nobody saw it. To be asked once it has.
    fn time(&self) -> u64 {
        let seen = now_ns();
        for _ in 0..200 {
            let at = self.at.load(Ordering::Acquire);
            if at > 0 {
                return at.min(seen);
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        seen
    }
}

/// Distance to the next look.
fn distance(running_for: u64, look_ns: u64, random: &mut Rng) -> u64 {
    let usual = match running_for {
        0..FIRST_FOR_NS => FIRST_NS,
        FIRST_FOR_NS..LATER_FROM_NS => USUAL_NS,
        _ => LATER_NS,
    };
    let mean = usual.max((look_ns * SHARE).min(FARTHEST_NS));
    mean / 2 + random.next_u64() % mean.max(1)
}

/// Runs the program once.
pub(crate) fn run(
    arguments: &[OsString],
    streams: Streams,
    rules: &'static Rules,
    signals: &Signals,
    sight: Sight,
    listener: Option<&mut Listener>,
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
    let added = listener
        .as_deref()
        .map(|listener| listener.environment().to_vec());
    let mut held = Held::fork(arguments, &added.unwrap_or_default(), streams, signals)
        .map_err(|error| not_started(&error))?;
    let _sharp = Sharp::timers();
    let pid = u32::try_from(held.pid).unwrap_or(0);
    let stamp = EndStamp::of(held.pid);
    let ending = pidfd(held.pid);
    let mut watching = Watching::of(pid, rules, sight, true);
    watching.listener = listener;
    watching.begin(Before::of(pid));
    held.release();
    // Until the program is loaded there is nothing to look at.
    wait_for(&[Some(&held.status), ending.as_ref()], 60_000_000_000);
    if let Some(error) = held.failure() {
        reap(held.pid);
        return Err(not_started(&error));
    }
    // A program may be over before the watcher gets a CPU to see that it was loaded.
    watching.loaded(if has_ended(held.pid) {
        stamp.time()
    } else {
        now_ns()
    });
    while !has_ended(held.pid) {
        watching.step(ending.as_ref(), || has_ended(held.pid));
    }
    let end = stamp.time();
    let io = Io::parse(&text(&format!("/proc/{pid}/io")));
    Ok(watching.finish(end, io, |_| Some(reap(held.pid))))
}

/// Watches a process that runs already, for so long or until it ends.
pub(crate) fn attach(
    pid: u32,
    for_ns: u64,
    rules: &'static Rules,
    sight: Sight,
    mut go_on: impl FnMut() -> bool,
) -> Result<Watched, ExplainError> {
    let no_process = |reason: &str| ExplainError::NoProcess {
        pid,
        reason: reason.to_owned(),
    };
    let stat = text(&format!("/proc/{pid}/stat"));
    if stat.is_empty() {
        return Err(no_process("there is none that this user may see"));
    }
    if pid == std::process::id() {
        return Err(no_process("latlab does not watch itself"));
    }
    let _sharp = Sharp::timers();
    let ending = pidfd(i32::try_from(pid).unwrap_or(0));
    let mut watching = Watching::of(pid, rules, sight, false);
    watching.begin(Before::of_running(pid));
    let until = watching.begin + for_ns;
    let gone = || text(&format!("/proc/{pid}/stat")).rfind(") Z").is_some() || !is_there(pid);
    while now_ns() < until && go_on() && !gone() {
        watching.step(ending.as_ref(), || now_ns() >= until);
    }
    let end = now_ns().min(until.max(watching.begin + 1));
    let io = Io::parse(&text(&format!("/proc/{pid}/io")));
    Ok(watching.finish(end, io, |before| {
        // Not ours to wait for: what it used meanwhile, by its own counters.
        let after = Before::of_running(pid);
        let _ = before;
        Some(after.ended())
    }))
}

fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn words(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no such program".to_owned(),
        Some(libc::EACCES) => "may not be executed".to_owned(),
        Some(libc::ENOEXEC) => "is not a program this system can run".to_owned(),
        _ => error.to_string(),
    }
}

/// What a process had used when it began to be watched.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    user_ns: u64,
    system_ns: u64,
    queue_ns: u64,
    faults: u64,
    major_faults: u64,
    switches: (u64, u64),
    io: Option<Io>,
    resident: u64,
}

impl Before {
    /// Of the process that is to become the program: its CPU time is not the program's.
    fn of(pid: u32) -> Self {
        let line = text(&format!("/proc/{pid}/schedstat"));
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        let (system_ns, queue_ns) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self {
            system_ns,
            queue_ns,
            faults: stat_field(pid, 7),
            io: Io::parse(&text(&format!("/proc/{pid}/io"))),
            ..Self::default()
        }
    }

    /// Of a process that runs already.
    fn of_running(pid: u32) -> Self {
        // SAFETY: asks for a number.
        let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) })
            .unwrap_or(100)
            .max(1);
        let ns = |field| stat_field(pid, field) * (1_000_000_000 / ticks);
        let status = text(&format!("/proc/{pid}/status"));
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Self {
            user_ns: ns(11),
            system_ns: ns(12),
            queue_ns: 0,
            faults: stat_field(pid, 7),
            major_faults: stat_field(pid, 9),
            switches: (
                of("voluntary_ctxt_switches:").unwrap_or(0),
                of("nonvoluntary_ctxt_switches:").unwrap_or(0),
            ),
            io: Io::parse(&text(&format!("/proc/{pid}/io"))),
            resident: of("VmHWM:").unwrap_or(0) * 1024,
        }
    }

    fn ended(self) -> Ended {
        Ended {
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            minor_faults: self.faults,
            major_faults: self.major_faults,
            voluntary_switches: self.switches.0,
            involuntary_switches: self.switches.1,
            max_resident_bytes: self.resident,
            ..Ended::default()
        }
    }
}

/// A number of `/proc/PID/stat`, counted from the state, 0.
fn stat_field(pid: u32, field: usize) -> u64 {
    let stat = text(&format!("/proc/{pid}/stat"));
    let rest = stat.rfind(") ").and_then(|at| stat.get(at + 2..)).unwrap_or("");
    rest.split(' ')
        .nth(field)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

struct Recording {
    recorder: Recorder,
    stream: Stream<'static, Symbols>,
    governor: Governor,
    pending: Vec<Record>,
    faults_on: bool,
    /// Whether events are open.
    on: bool,
    /// Events could not be opened again.
    given_up: bool,
    /// Of threads that left a CPU to wait, by the records read last: when, of which process, and whether the reason was asked for.
    asked: HashMap<u32, (u64, u32, bool)>,
    /// Records before this moment have been taken.
    taken: u64,
    seldom: u64,
}

struct Watching<'a> {
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
    recording: Option<Recording>,
    unrecorded: Option<String>,
    before: Before,
    launched: bool,
    /// Hears the stages of a program that was launched.
    listener: Option<&'a mut Listener>,
}

impl Watching<'_> {
    fn of(pid: u32, rules: &'static Rules, sight: Sight, launched: bool) -> Self {
        let now = now_ns();
        let mut looker = Looker::at(rules, pid);
        let mut unrecorded = None;
        let mut recording = None;
        if let Some(sees_kernel) = sight.recording {
            let period = sight.price.period_ns(LEAST_PERIOD_NS);
            let threads = if launched { vec![pid] } else { looker.all_threads() };
            let opened = Recorder::open(sees_kernel, period).and_then(|mut recorder| {
                if launched {
                    recorder.start(&threads, true)?;
                }
                Ok(recorder)
            });
            match opened {
                Ok(recorder) => recording = Some(Recording::of(recorder, rules, sight.price)),
                Err(reason) => unrecorded = Some(reason),
            }
        }
        Self {
            pid,
            looker,
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
            recording,
            unrecorded,
            before: Before::default(),
            launched,
            listener: None,
        }
    }

    /// Time counts from now.
    fn begin(&mut self, before: Before) {
        self.before = before;
        self.cpu_begin = thread_cpu_ns();
        self.begin = now_ns();
        self.sweep = Sweep::begin(self.rules, self.begin, self.pid);
        let Some(recording) = &mut self.recording else {
            return;
        };
        if self.launched {
            recording.on = true;
            // Everything goes on with the exec: the first states are those of its record.
            self.sweep.switch_source(self.begin, Source::Recorded);
        } else {
            self.resume();
        }
    }

    fn loaded(&mut self, at: u64) {
        if self.sweep.source() == Source::Looked {
            self.sweep.advance(at);
        }
        self.loading_ns = at.saturating_sub(self.begin);
    }

    /// What the program has marked since the last time, before the sweep goes on. With `last`, there is no more to come.
    fn hear(&mut self, last: bool) {
        let Some(listener) = self.listener.as_deref_mut() else {
            return;
        };
        let stages = self.sweep.stages();
        let mut at = 0;
        let take = |event: Event<'_>| {
            let change = match event {
                Event::Lost => Change {
                    at,
                    process: 0,
                    thread: 0,
                    what: by_stage::What::Lost,
                },
                Event::Mark(mark) => {
                    at = mark.at_ns;
                    let name = || Arc::clone(&mark.name);
                    let begun = || by_stage::What::Begin(mark.number, name());
                    Change {
                        at,
                        process: mark.process,
                        thread: mark.thread,
                        what: mark.of.map_or_else(begun, by_stage::What::End),
                    }
                }
            };
            stages.expect(change);
        };
        if last {
            listener.finish(now_ns(), take);
        } else {
            listener.drain(take);
        }
    }

    /// Waits for the next moment to look or to read records, and does so.
    fn step(&mut self, ending: Option<&OwnedFd>, over: impl Fn() -> bool) {
        let now = now_ns();
        let running_for = now - self.begin;
        let ns = match &self.recording {
            Some(recording) if recording.on => match recording.recorder.sees_kernel {
                true if running_for > FIRST_FOR_NS => DRAIN_NS,
                true => FIRST_NS * 2,
                // Reasons are asked for as often as threads would be looked at.
                false => distance(running_for, self.look_ns, &mut self.random),
            },
            _ => distance(running_for, self.look_ns, &mut self.random),
        };
        wait_for(&[ending], ns);
        if over() {
            return;
        }
        if self.recording.as_ref().is_some_and(|recording| recording.on) {
            self.read_records();
        } else {
            self.look();
        }
        self.govern();
    }

    fn look(&mut self) {
        let before = thread_cpu_ns();
        self.looker.look(&mut self.states);
        let now = now_ns();
        self.hear(false);
        if !self.states.is_empty() {
            self.sweep.look(now, &self.states);
            self.looks += 1;
        }
        self.took(thread_cpu_ns() - before);
        // Kept for when the process is gone before it can be asked.
        if self.looks % 64 == 1 {
            self.io = Io::parse(&text(&format!("/proc/{}/io", self.pid))).or(self.io);
        }
    }

    fn took(&mut self, ns: u64) {
        self.look_ns = if self.look_ns == 0 {
            ns
        } else {
            (7 * self.look_ns + ns) / 8
        };
    }

    fn read_records(&mut self) {
        let mut asking_ns = None;
        let now = now_ns();
        let Some(read) = self.recording.as_mut().map(Recording::read) else {
            return;
        };
        self.hear(false);
        let Some(recording) = &mut self.recording else {
            return;
        };
        if !recording.recorder.sees_kernel {
            self.looks += 1;
            let before = thread_cpu_ns();
            recording.ask(read, &mut self.looker);
            asking_ns = Some(thread_cpu_ns() - before);
            let slice = (now - self.begin) / FAULT_SLICE_NS % FAULT_SLICES;
            if (slice == 0) != recording.faults_on {
                recording.faults_on = slice == 0;
                recording.recorder.switch_faults(recording.faults_on);
            }
        }
        recording.take(now.saturating_sub(LATE_NS), &mut self.sweep);
        if now >= recording.seldom {
            recording.seldom = now + SELDOM_NS;
            self.looker.look(&mut self.states);
            self.io = Io::parse(&text(&format!("/proc/{}/io", self.pid))).or(self.io);
        }
        if let Some(ns) = asking_ns {
            self.took(ns);
        }
    }

    fn govern(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        if recording.given_up {
            return;
        }
        let was = recording.on;
        let on = recording.governor.decide(self.sweep.cpu_ns());
        if was && !on {
            self.pause();
        } else if !was && on {
            self.resume();
        }
    }

    fn pause(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.recorder.stop();
        recording.on = false;
        let now = now_ns();
        recording.read();
        self.hear(false);
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.take(now, &mut self.sweep);
        recording.stream.waiting.clear();
        recording.asked.clear();
        self.sweep.switch_source(now, Source::Looked);
    }

    fn resume(&mut self) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        let threads = self.looker.all_threads();
        if let Err(reason) = recording.recorder.start(&threads, false) {
            // Too many threads, or too many open files: they are looked at to the end.
            recording.given_up = true;
            self.unrecorded = Some(reason);
            return;
        }
        recording.on = true;
        recording.faults_on = true;
        recording.stream.has(recording.recorder.events.clone());
        recording.knows_already(&self.looker);
        // What the records begin with: states at this moment, which later records correct.
        let now = now_ns();
        self.looker.look(&mut self.states);
        self.sweep.look(now, &self.states);
        self.looks += 1;
        self.sweep.switch_source(now, Source::Recorded);
        recording.taken = now;
    }

    fn finish(mut self, end: u64, io: Option<Io>, ended: impl FnOnce(&Before) -> Option<Ended>) -> Watched {
        if let Some(recording) = &mut self.recording {
            recording.recorder.stop();
            recording.read();
        }
        self.hear(true);
        if let Some(recording) = &mut self.recording {
            recording.take(u64::MAX, &mut self.sweep);
        }
        // A look that was under way when the program ended counts to its own end.
        let end = end.max(self.sweep.now()).max(self.begin + 1);
        let watcher_ns = thread_cpu_ns() - self.cpu_begin;
        let delays = self.looker.delays();
        let ended = ended(&self.before);
        if let Some(recording) = &self.recording {
            for (pid, parent) in recording.stream.started_processes() {
                self.looker.learn(*pid, *parent);
            }
        }
        let left_running = if self.launched {
            self.looker.left_running()
        } else {
            0
        };
        let usage = self.usage(ended.unwrap_or_default(), io.or(self.io), delays.1);
        let swept = self.sweep.end(end);
        let wall_ns = swept.looked.wall + swept.recorded.wall;
        let processes = u64::try_from(self.looker.about.len()).unwrap_or(1);
        let mut tally = Tally {
            runs: 1,
            wall_ns: end - self.begin,
            loading_ns: self.loading_ns,
            looked: swept.looked,
            recorded: swept.recorded,
            unread: swept.unread,
            stages: swept.stages,
            usage,
            processes,
            most_threads: swept.most,
            looks: self.looks,
            watcher_ns,
            ..Tally::default()
        };
        debug_assert!(wall_ns >= tally.wall_ns, "{wall_ns} {}", tally.wall_ns);
        tally.wall_range_ns = (tally.wall_ns, tally.wall_ns);
        if let Some(recording) = self.recording {
            tally.sees_kernel = recording.recorder.sees_kernel;
            tally.recording_ns = crate::tally::whole_ns(recording.governor.spent_ns());
            tally.switches = recording.stream.switches;
            tally.lost = recording.stream.lost;
            tally.mix = recording.stream.mix;
        }
        Watched {
            tally,
            ended: ended.filter(|_| self.launched),
            pid: self.pid,
            left_running,
            bins: swept.bins,
            processes: swept.processes,
            refused: self.looker.refused,
            overflown: self.looker.overflown,
            about: self.looker.about,
            unrecorded: self.unrecorded,
        }
    }

    /// What the program used: what it had used before it was watched is not its own.
    fn usage(&self, ended: Ended, io: Option<Io>, queue_ns: u64) -> Usage {
        let before = &self.before;
        let (user_ns, system_ns) = if self.launched {
            // In whole numbers: 2^64 ns times 2^64 ns fits.
            let counted = ended.user_ns + ended.system_ns;
            let cpu_ns = counted.saturating_sub(before.system_ns);
            let user = u128::from(cpu_ns) * u128::from(ended.user_ns) / u128::from(counted.max(1));
            let user_ns = u64::try_from(user).unwrap_or(cpu_ns);
            (user_ns, cpu_ns - user_ns)
        } else {
            (
                ended.user_ns.saturating_sub(before.user_ns),
                ended.system_ns.saturating_sub(before.system_ns),
            )
        };
        Usage {
            user_ns,
            system_ns,
            queue_ns: Some(queue_ns.saturating_sub(before.queue_ns)),
            minor_faults: ended.minor_faults.saturating_sub(before.faults),
            major_faults: ended.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: ended.voluntary_switches.saturating_sub(before.switches.0),
            involuntary_switches: ended.involuntary_switches.saturating_sub(before.switches.1),
            max_resident_bytes: ended.max_resident_bytes,
            io: match (io, before.io) {
                (Some(io), Some(before)) => Some(io.since(&before)),
                (io, _) => io,
            },
        }
    }
}

impl Recording {
    fn of(recorder: Recorder, rules: &'static Rules, price: Price) -> Self {
        let events = recorder.events.clone();
        Self {
            recorder,
            stream: Stream::of(rules, Symbols::default(), events),
            governor: Governor::with(price),
            pending: Vec::new(),
            faults_on: true,
            on: false,
            given_up: false,
            asked: HashMap::new(),
            taken: 0,
            seldom: 0,
        }
    }

    /// Mappings and names of processes that ran before.
    fn knows_already(&mut self, looker: &Looker) {
        for (pid, threads) in looker.threads() {
            self.stream.has_mapped(pid, super::maps::of(pid));
            for tid in threads {
                let name = text(&format!("/proc/{pid}/task/{tid}/comm"));
                self.stream.is_named(tid, name.trim_end());
            }
        }
    }

    /// Reads what the rings hold; where the records that came now begin. What they cost is told at once: they are put in order later.
    fn read(&mut self) -> usize {
        let from = self.pending.len();
        self.recorder.drain(&mut self.pending);
        let (mut switches, mut samples, mut faults) = (0, 0, 0);
        for record in &self.pending[from..] {
            match &record.what {
                What::Out { .. } => switches += 1,
                What::Sample { event, .. } => match self.recorder.events.get(event) {
                    Some(stream::Event::Cpu(_)) => samples += 1,
                    Some(stream::Event::Fault) => faults += FAULT_PERIOD,
                    _ => {}
                },
                // A switch makes three records: in, out, and its stack or nothing.
                What::Lost(records) => switches += records / 3,
                _ => {}
            }
        }
        self.governor.recorded(switches, samples, faults);
        from
    }

    /// Hands records before `until` to the stream, in order.
    fn take(&mut self, until: u64, sweep: &mut Sweep<'_>) {
        self.pending.sort_by_key(|record| record.time);
        let until = if self.pending.len() > MOST_PENDING {
            u64::MAX
        } else {
            until
        };
        let ready = self.pending.partition_point(|record| record.time < until);
        for record in self.pending.drain(..ready) {
            self.stream.take(&record, sweep);
        }
        self.taken = self.taken.max(until.min(now_ns()));
    }

    /// Asks /proc why threads wait that have left their CPU and not come back, by the records read last.
    fn ask(&mut self, from: usize, looker: &mut Looker) {
        for record in &self.pending[from..] {
            let known = self.asked.get(&record.tid).map_or(0, |known| known.0);
            match record.what {
                What::Out { preempted: false } if record.time >= known => {
                    self.asked.insert(record.tid, (record.time, record.pid, false));
                }
                What::Out { .. } | What::In | What::End if record.time >= known => {
                    self.asked.remove(&record.tid);
                }
                _ => {}
            }
        }
        let open: Vec<(u32, u64, u32)> = self
            .asked
            .iter()
            .filter(|(_, asked)| !asked.2)
            .map(|(tid, asked)| (*tid, asked.0, asked.1))
            .take(MOST_ASKED)
            .collect();
        let unexplained = self.stream.unexplained();
        for (tid, since, pid) in open {
            if let Some(State::Waiting(reason)) = looker.one(pid, tid) {
                let reason = reason.unwrap_or(unexplained);
                let what = What::Learned { since, reason };
                let time = now_ns();
                self.pending.push(Record { time, pid, tid, what });
                if let Some(asked) = self.asked.get_mut(&tid) {
                    asked.2 = true;
                }
            }
        }
    }
}
