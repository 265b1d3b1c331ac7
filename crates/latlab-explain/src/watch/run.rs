//! One run of the program, or some time of a process, watched from beginning to end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_stages::{Event, Listener};
use latlab_stats::rng::Rng;
use rustix::param::clock_ticks_per_second;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;

use super::clock::{LATE_NS, now_ns, process_cpu_ns, thread_cpu_ns};
use super::files::Descriptors;
use super::interpreter;
use super::launch::{Ended, Held, Signals, Streams, has_ended, pidfd, pipe, reap, wait_for};
use super::pauses::Pausing;
use super::proc_file::{io_of, letter, text};
use super::prompt::Prompt;
use super::python::Python;
use super::recorder::{LEAST_PERIOD_NS, NEEDS_LEVEL_1, Recorder};
use super::scan::{About, Scanner};
use super::traced::Traced;
use crate::ExplainError;
use crate::account::io::Io;
use crate::account::marks::{Change, What};
use crate::account::sweep::{Seen, Source, State, Sweep};
use crate::account::tally::{Delay, Tally, Usage};
use crate::account::timeline::Course;
use crate::governor::{Counts, FAULT_SLICES, Governor, Price};
use crate::model;
use crate::rules::Rules;
use crate::time::whole_ns;

mod before;
mod recording;

use recording::Recording;

/// Scans come at random distances around this, so that they do not fall into step with a program's own
/// period.
const USUAL_NS: u64 = 1_000_000;
/// At first they come more often: many programs are over soon.
const FIRST_NS: u64 = 300_000;
const FIRST_FOR_NS: u64 = 20_000_000;
/// Long runs need fewer.
const LATER_NS: u64 = 4_000_000;
const LATER_FROM_NS: u64 = 30_000_000_000;
/// Thousands of threads take milliseconds to look at: seldom, but not never.
const FARTHEST_NS: u64 = 100_000_000;
/// Scanning may take this part of one CPU for each part of the program's time that recording may take, and no
/// more and no less than so much.
const OF_OVERHEAD: f64 = 0.5;
/// See [`OF_OVERHEAD`].
const SCANNING: std::ops::RangeInclusive<f64> = 0.01..=0.1;
/// Stages that the program marks by lines get the time at which they are heard, which is promised to 10 ms;
/// and a ring of 2^17 marks is read before it is full, at whatever rate one can be written.
const HEAR_NS: u64 = 5_000_000;
/// Recorded, with the kernel's stacks: rings are emptied this often.
const DRAIN_NS: u64 = 4_000_000;
/// Faults are recorded for one slice of [`FAULT_SLICES`].
const FAULT_SLICE_NS: u64 = 10_000_000;
/// Counters and names are read this often while everything is recorded.
const SELDOM_NS: u64 = 50_000_000;

/// Records come so late, and the kernel brings a running thread's CPU time up to date so seldom.
const UNRECORDED_NS: u64 = 20_000_000;
/// Locks that are reported.
const MOST_LOCKS: usize = 16;

/// What may be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracing {
    /// Whether at all; if so, whether the kernel too.
    pub(crate) recording: Option<bool>,
    /// What it costs.
    pub(crate) price: Price,
    /// What it may cost: see [`Governor::with`].
    pub(crate) overhead: f64,
}

impl Tracing {
    /// CPU time between samples, nanoseconds.
    pub(crate) fn period_ns(&self) -> u64 {
        self.price.period_ns(LEAST_PERIOD_NS, self.overhead)
    }

    /// Whether what the program does is recorded whatever it costs, as root at level 1.
    fn records_all(&self) -> bool {
        self.recording == Some(true) && self.overhead.is_infinite()
    }

    /// Share of a CPU that scans may take.
    fn scanning(&self) -> f64 {
        (self.overhead * OF_OVERHEAD).clamp(*SCANNING.start(), *SCANNING.end())
    }
}

/// A run, and what else is to be reported of it.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) tally: Tally,
    pub(crate) ended: Option<Ended>,
    pub(crate) pid: u32,
    pub(crate) left_running: u32,
    pub(crate) course: Course,
    pub(crate) files: model::Files,
    pub(crate) locks: Vec<model::Lock>,
    pub(crate) pauses: Vec<model::Pauses>,
    /// Where each was recorded.
    pub(crate) calls: Option<model::Calls>,
    /// Or why there is none.
    pub(crate) path: Result<model::Path, String>,
    pub(crate) processes: HashMap<u32, Seen>,
    pub(crate) about: HashMap<u32, About>,
    pub(crate) refused: bool,
    pub(crate) overflown: bool,
    /// Why nothing was recorded although it might have been.
    pub(crate) unrecorded: Option<String>,
    /// Processes whose bytes and calls are those of their last scan.
    pub(crate) by_scans: u32,
}

/// Stamps the moment at which a process ends, whatever the watcher is busy with.
struct EndStamp {
    at: Arc<AtomicU64>,
    /// The thread ends as this is closed, or with the process.
    asked: Option<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl EndStamp {
    fn of(pid: i32) -> Self {
        let at = Arc::new(AtomicU64::new(0));
        let stamp = Arc::clone(&at);
        let (still, asked) = pipe(PipeFlags::NONBLOCK).ok().unzip();
        // A thread that cannot be had costs exactness, nothing else.
        let thread = still.zip(pidfd(pid)).and_then(|(still, ending)| {
            let wait = move || {
                loop {
                    wait_for(&[Some(ending.as_fd()), Some(still.as_fd())], 10_000_000_000);
                    if has_ended(pid) {
                        return stamp.store(now_ns(), Ordering::Release);
                    }
                    if is_closed(&still) {
                        return;
                    }
                }
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(wait).ok()
        });
        Self { at, asked, thread }
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

impl Drop for EndStamp {
    /// Its descriptors are closed with it, whether the process has ended or not.
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether the other end of a pipe, to which nobody writes, is closed.
fn is_closed(pipe: &OwnedFd) -> bool {
    let mut byte = [0_u8; 1];
    rustix::io::read(pipe, &mut byte) == Ok(0)
}

/// Distance to the next scan, which may take this share of a CPU.
fn distance(running_for: u64, scan_ns: u64, share: f64, random: &mut Rng) -> u64 {
    let usual = match running_for {
        0..FIRST_FOR_NS => FIRST_NS,
        FIRST_FOR_NS..LATER_FROM_NS => USUAL_NS,
        _ => LATER_NS,
    };
    let mean = usual.max(whole_ns(scan_ns as f64 / share).min(FARTHEST_NS));
    mean / 2 + random.next_u64() % mean.max(1)
}

/// How long nobody was there to end a slice: records are read often where the kernel is seen, and the watcher
/// may come late; elsewhere they are read as seldom as threads are looked at.
fn late(sees_kernel: bool, now: u64, next: u64, before: u64) -> u64 {
    now.saturating_sub(if sees_kernel { next } else { before })
}

/// Whether threads run that are not recorded, as they were started by one that events were not yet opened
/// for: their CPU time is counted and not recorded. `ran_ns` and `recorded_ns`: of one slice, with what
/// recording its switches takes.
fn is_incomplete(ran_ns: u64, recorded_ns: u64) -> bool {
    ran_ns > recorded_ns + recorded_ns / 10 + UNRECORDED_NS
}

/// Runs the program once.
pub(crate) fn run(
    arguments: &[OsString],
    streams: Streams,
    rules: &'static Rules,
    signals: &Signals,
    tracing: Tracing,
    governor: &mut Governor,
    listener: Option<&mut Listener>,
) -> Result<Watched, ExplainError> {
    let name = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let not_started = |error: &std::io::Error| ExplainError::NotStarted {
        name: name.clone(),
        reason: words(error, arguments),
        exit_code: if error.raw_os_error() == Some(libc::ENOENT) {
            super::launch::NOT_FOUND
        } else {
            super::launch::NOT_EXECUTABLE
        },
    };
    signals.hand_on_again();
    let added = listener.as_deref().map(|listener| listener.environment().to_vec());
    let mut held = Held::fork(arguments, &added.unwrap_or_default(), streams, signals)
        .map_err(|error| not_started(&error))?;
    let _prompt = Prompt::begin();
    let pid = u32::try_from(held.pid).unwrap_or(0);
    let stamp = EndStamp::of(held.pid);
    let ending = pidfd(held.pid);
    let ending = ending.as_ref().map(OwnedFd::as_fd);
    let mut watching = Watching::of(pid, rules, tracing, governor, true);
    watching.listener = listener;
    watching.begin(before::of(pid));
    held.release();
    // Until the program is loaded there is nothing to look at.
    if let Err(error) = held.loaded(ending) {
        reap(held.pid);
        return Err(not_started(&error));
    }
    // A program may be over before the watcher gets a CPU to see that it was loaded.
    watching.loaded(if has_ended(held.pid) { stamp.time() } else { now_ns() });
    while !has_ended(held.pid) {
        watching.step(ending, || has_ended(held.pid));
    }
    signals.give_back();
    let end = stamp.time();
    Ok(watching.finish(end, io_of(pid), || reap_with_io(held.pid)))
}

/// Takes the ended process's entry away, and has its counters of bytes and calls: newer kernels (6.18) show
/// those of a process that has ended to nobody but root, but add them, and those of its children, to whoever
/// waits for it.
fn reap_with_io(pid: i32) -> (Ended, Option<Io>) {
    let own = || Io::parse(&text("/proc/self/io"));
    // Reading counts, too.
    let (first, before) = (own(), own());
    let ended = reap(pid);
    let counted = own().zip(before).zip(first).map(|((after, before), first)| {
        let reading = before.since(&first);
        after.since(&before).since(&reading)
    });
    (ended, counted)
}

/// Watches a process that runs already, for so long or until it ends.
pub(crate) fn attach(
    pid: u32,
    for_ns: u64,
    rules: &'static Rules,
    tracing: Tracing,
    governor: &mut Governor,
    mut go_on: impl FnMut() -> bool,
) -> Result<Watched, ExplainError> {
    let no_process = |reason: &str| ExplainError::NoProcess { pid, reason: reason.to_owned() };
    let stat = text(&format!("/proc/{pid}/stat"));
    if stat.is_empty() {
        return Err(no_process("there is none that this user may see"));
    }
    if pid == std::process::id() {
        return Err(no_process("latlab does not watch itself"));
    }
    let _prompt = Prompt::begin();
    let ending = pidfd(i32::try_from(pid).unwrap_or(0));
    let mut watching = Watching::of(pid, rules, tracing, governor, false);
    watching.begin(before::of_running(pid));
    let until = watching.begin + for_ns;
    let gone = || letter(&text(&format!("/proc/{pid}/stat"))).is_none_or(|letter| letter == b'Z');
    while now_ns() < until && go_on() && !gone() {
        watching.step(ending.as_ref().map(OwnedFd::as_fd), || now_ns() >= until);
    }
    let end = now_ns().min(until.max(watching.begin + 1));
    watching.descriptors.last(watching.scanner.threads());
    let io = io_of(pid);
    // Not ours to wait for: what it used meanwhile, by its own counters.
    let ended = || Ended { used: before::of_running(pid), ..Ended::default() };
    Ok(watching.finish(end, io, || (ended(), None)))
}

/// CPUs that a process may run on.
fn allowed_cpus(pid: u32) -> u32 {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    sched_getaffinity(pid).map_or(1, |set| set.count().max(1))
}

/// What the host has taken from all CPUs since the machine was started.
fn stolen_ns() -> u64 {
    let stat = text("/proc/stat");
    let of_all = stat.lines().next().unwrap_or("");
    let ticks: u64 = of_all.split_whitespace().nth(8).and_then(|word| word.parse().ok()).unwrap_or(0);
    ticks * (1_000_000_000 / clock_ticks_per_second().max(1))
}

fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn words(error: &std::io::Error, arguments: &[OsString]) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => match arguments.first().and_then(|name| interpreter::missing(name)) {
            Some(missing) => format!("its interpreter {} does not exist", missing.display()),
            None => "no such program".to_owned(),
        },
        Some(libc::EACCES) => "may not be executed".to_owned(),
        Some(libc::ENOEXEC) => "is not a program this system can run".to_owned(),
        _ => error.to_string(),
    }
}

struct Watching<'a> {
    pid: u32,
    scanner: Scanner,
    descriptors: Descriptors,
    sweep: Sweep<'static>,
    begin: u64,
    loading_ns: u64,
    cpu_begin: u64,
    random: Rng,
    scan_ns: u64,
    /// Share of a CPU that scans may take.
    scanning: f64,
    scans: u64,
    /// When threads are to be looked at, or records read, again; when stages were heard.
    next: u64,
    heard: u64,
    /// When the last step ended, and how long it took to scan or to read.
    stepped: u64,
    worked: u64,
    /// CPU time of this thread until what it does now.
    used: u64,
    states: Vec<(u32, u32, State)>,
    io: Option<Io>,
    rules: &'static Rules,
    governor: &'a mut Governor,
    /// CPU time of the program, as far as it is known.
    cpu_ns: u64,
    /// CPU time and run-queue delay of its threads before it was watched.
    delays_before: (u64, u64),
    /// CPUs that it may run on.
    cpus: u32,
    /// What the host had taken from all CPUs before.
    stolen_before_ns: u64,
    /// Run-queue delay while switches were recorded, and all of it when that began last.
    recorded_delay_ns: u64,
    delay_at_start_ns: u64,
    recording: Option<Recording>,
    unrecorded: Option<String>,
    before: Usage,
    launched: bool,
    /// Reads the frames of Python interpreters.
    python: Python,
    pausing: Pausing,
    /// Hears the stages of a program that was launched.
    listener: Option<&'a mut Listener>,
}

impl<'a> Watching<'a> {
    fn of(
        pid: u32,
        rules: &'static Rules,
        tracing: Tracing,
        governor: &'a mut Governor,
        launched: bool,
    ) -> Self {
        let now = now_ns();
        let mut scanner = Scanner::at(rules, pid);
        scanner.all_threads();
        governor.begin(scanner.counts().unwrap_or_default());
        let cpus = allowed_cpus(pid);
        let mut unrecorded = None;
        let mut recording = None;
        if let Some(sees_kernel) = tracing.recording {
            // In runs before, a program has shown what it costs to record: it is recorded from its first
            // instruction.
            let at_once = launched && governor.decide(0, 1);
            let mut period_ns = tracing.period_ns();
            if at_once {
                // The first sample comes one period after the exec: in run after run of a short program it
                // would fall on the same instruction.
                period_ns =
                    period_ns / 4 + Rng::new(now ^ u64::from(pid)).next_u64() % (3 * period_ns / 4).max(1);
            }
            let mut recorder = Recorder::of(sees_kernel, period_ns);
            if tracing.records_all() {
                recorder.calls = Traced::find();
            }
            let mut opened = Ok(());
            if at_once {
                governor.opened(1);
                opened = recorder.start(&[pid], true);
            }
            match opened {
                Ok(()) => {
                    let mut new = Recording::of(recorder, rules, pid, at_once);
                    new.begin(scanner.counts());
                    recording = Some(new);
                }
                Err(reason) => unrecorded = Some(reason),
            }
        }
        Self {
            pid,
            scanner,
            descriptors: Descriptors::begin(now),
            sweep: Sweep::begin(rules, now, pid, cpus),
            begin: now,
            loading_ns: 0,
            cpu_begin: process_cpu_ns(),
            random: Rng::new(now ^ u64::from(pid)),
            scan_ns: 0,
            scanning: tracing.scanning(),
            scans: 0,
            next: now,
            heard: now,
            stepped: now,
            worked: 0,
            used: thread_cpu_ns(),
            states: Vec::new(),
            io: None,
            rules,
            governor,
            cpu_ns: 0,
            delays_before: (0, 0),
            recorded_delay_ns: 0,
            delay_at_start_ns: 0,
            cpus,
            stolen_before_ns: 0,
            recording,
            unrecorded,
            before: Usage::default(),
            launched,
            python: Python::begin(now),
            pausing: if tracing.records_all() { Pausing::with_functions() } else { Pausing::default() },
            listener: None,
        }
    }

    /// Time counts from now.
    fn begin(&mut self, before: Usage) {
        self.before = before;
        self.delays_before = self.scanner.delays();
        self.scanner.came();
        self.delay_at_start_ns = self.delays_before.1;
        self.stolen_before_ns = stolen_ns();
        self.cpu_begin = process_cpu_ns();
        self.used = thread_cpu_ns();
        self.begin = now_ns();
        self.next = self.begin + self.distance();
        self.sweep = Sweep::begin(self.rules, self.begin, self.pid, self.cpus);
        self.python = Python::begin(self.begin);
        self.descriptors = Descriptors::begin(self.begin);
        // What was started before it was watched has counted before.
        let running: Vec<u32> = self.scanner.pids().collect();
        self.descriptors.inherit(&running);
        if self.recording.as_ref().is_some_and(|recording| recording.on) {
            // Everything goes on with the exec: the first states are those of its record.
            self.scanner.is_recorded(true);
            self.sweep.switch_source(self.begin, Source::Recorded);
            if let Some(recording) = &mut self.recording {
                recording.stream.resume(self.begin, &[], |_| 0);
            }
        }
    }

    fn loaded(&mut self, at: u64) {
        if self.sweep.source() == Source::Scanned {
            self.sweep.advance(at);
        }
        self.loading_ns = at.saturating_sub(self.begin);
        self.next = now_ns() + self.distance();
    }

    /// What the program has marked since the last time, before the sweep goes on. With `last`, there is no
    /// more to come.
    fn hear(&mut self, last: bool) {
        let Some(listener) = self.listener.as_deref_mut() else { return };
        self.heard = now_ns();
        let earliest = self.begin;
        let stages = self.sweep.stages();
        let mut at = earliest;
        let take = |event: Event<'_>| {
            let change = match event {
                Event::Lost => Change { at, process: 0, thread: 0, what: What::Lost },
                Event::Mark(mark) => {
                    at = mark.at_ns.max(earliest);
                    let name = || Arc::clone(&mark.name);
                    let begun = || What::Begin(mark.number, name());
                    Change {
                        at,
                        process: mark.process,
                        thread: mark.thread,
                        what: mark.of.map_or_else(begun, What::End),
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

    /// Waits until there is something to do, and does that: what must come often does not bring along what is
    /// dear.
    fn step(&mut self, ending: Option<BorrowedFd<'_>>, over: impl Fn() -> bool) {
        let hear = self.listener.as_ref().map_or(u64::MAX, |_| self.heard + HEAR_NS);
        let next = self.next.min(hear).min(self.python.due());
        wait_for(&[ending], next.saturating_sub(now_ns()));
        if over() {
            return;
        }
        let now = now_ns();
        if now >= self.next {
            let sees_kernel = self.recording.as_ref().is_some_and(|recording| recording.recorder.sees_kernel);
            let late = late(sees_kernel, now, self.next, self.stepped) + self.worked;
            self.governor.came_late(late);
            if self.recording.as_ref().is_some_and(|recording| recording.on) {
                self.read_records();
            } else {
                self.scan();
            }
            self.descriptors.step(self.scanner.threads());
            self.pausing.scan(now, self.scanner.pids(), self.launched);
            self.worked = now_ns() - now;
            self.govern();
            // These have shares of their own, and are not the cost of a scan.
            self.used = thread_cpu_ns();
            self.next = now_ns() + self.distance();
            self.stepped = now_ns();
        } else {
            self.hear(false);
        }
        if self.sweep.stages().is_filling() {
            self.next = now_ns();
        }
        self.python.scan(self.scanner.pids(), self.used, self.random.next_u64());
        self.used = thread_cpu_ns();
    }

    /// From now to the next scan or reading of records.
    fn distance(&mut self) -> u64 {
        let running_for = now_ns() - self.begin;
        match &self.recording {
            Some(recording) if recording.on && recording.recorder.sees_kernel => {
                if running_for > FIRST_FOR_NS { DRAIN_NS } else { FIRST_NS * 2 }
            }
            // Reasons are asked for as often as threads would be looked at.
            _ => distance(running_for, self.scan_ns, self.scanning, &mut self.random),
        }
    }

    fn scan(&mut self) {
        // What is seen is there from now on: whenever the program ends, it is later.
        let now = now_ns();
        let counted = self.scanner.scan(&mut self.states);
        if self.launched && self.states.is_empty() && !is_there(self.pid) {
            // Its entry stays until it is waited for: it is hidden (hidepid), and there is nothing to know
            // but that it lives.
            self.scanner.refused = true;
            self.states.push((self.pid, self.pid, State::Waiting(None)));
        }
        self.hear(false);
        if !self.states.is_empty() {
            self.sweep.beside(self.scanner.others());
            self.sweep.scan(now, &self.states);
            self.scans += 1;
        }
        if counted {
            self.count();
        }
        // Kept for when the process is gone before it can be asked.
        if self.scans % 64 == 1 {
            self.io = io_of(self.pid).or(self.io);
        }
        self.took();
    }

    /// What the counters say of the program, which the governor goes by.
    fn count(&mut self) {
        let ran = self.scanner.ran_ns().saturating_sub(self.delays_before.0);
        let ran = if ran > 0 { ran } else { self.sweep.cpu_ns() };
        self.cpu_ns = self.cpu_ns.max(ran);
        self.governor.counted(self.cpu_ns, self.scanner.counts());
        if let Some(recording) = self.recording.as_mut().filter(|recording| !recording.on) {
            recording.pass(self.cpu_ns, self.scanner.counts(), self.governor.price());
        }
    }

    /// A step is over: what it took of a CPU, from its wake-up on.
    fn took(&mut self) {
        let used = thread_cpu_ns();
        let ns = used - self.used;
        self.used = used;
        self.scan_ns = if self.scan_ns == 0 { ns } else { (7 * self.scan_ns + ns) / 8 };
    }

    fn read_records(&mut self) {
        let now = now_ns();
        let Some((read, counts, samples)) = self.recording.as_mut().map(Recording::read) else { return };
        self.governor.recorded(counts, samples);
        self.hear(false);
        let Some(recording) = &mut self.recording else { return };
        if !recording.recorder.sees_kernel {
            self.scans += 1;
            recording.ask(read, &mut self.scanner);
            let slice = (now - self.begin) / FAULT_SLICE_NS % FAULT_SLICES;
            if (slice == 0) != recording.faults_on {
                recording.faults_on = slice == 0;
                recording.recorder.switch_faults(recording.faults_on);
            }
        }
        let all = recording.take(now.saturating_sub(LATE_NS), false, &mut self.sweep);
        recording.cut(&mut self.sweep, false, self.governor.price());
        if recording.recorder.sees_kernel {
            recording.ask_what_is_polled(&mut self.scanner);
        }
        let seldom = now >= recording.seldom;
        // Records that wait for names do not tell what the program has used.
        if seldom || !all {
            self.scanner.scan(&mut self.states);
        }
        if seldom {
            recording.seldom = now + SELDOM_NS;
            self.io = io_of(self.pid).or(self.io);
        }
        let (cpu_ns, swept_ns, counts) = recording.from;
        // Between the record of one thread that leaves a CPU and that of the next one that comes to it.
        let switching = self.governor.price().of_waiting(recording.recorded().since(counts));
        let recorded = cpu_ns + self.sweep.cpu_ns() - swept_ns;
        let scanned = seldom || !all;
        let ran = if scanned { self.scanner.ran_ns().saturating_sub(self.delays_before.0) } else { 0 };
        self.cpu_ns = self.cpu_ns.max(recorded).max(if all { 0 } else { ran });
        self.took();
        let ran = ran.saturating_sub(cpu_ns);
        if all && is_incomplete(ran, recorded.saturating_sub(cpu_ns) + whole_ns(switching)) {
            // The governor lets it begin again, with all threads that there are.
            self.pause();
        }
    }

    fn govern(&mut self) {
        let Some(recording) = &mut self.recording else { return };
        if recording.given_up {
            return;
        }
        let was = recording.on;
        let on = self.governor.decide(self.cpu_ns, self.scanner.running().max(1));
        if was && !on {
            self.pause();
        } else if !was && on {
            self.resume();
        }
    }

    /// Closes the events, reads what the rings still hold, and hears what was marked meanwhile; with `last`,
    /// there is no more to come.
    fn stop_recording(&mut self, last: bool) {
        if let Some(recording) = &mut self.recording {
            recording.recorder.stop();
            recording.on = false;
            let (_, counts, samples) = recording.read();
            self.governor.recorded(counts, samples);
        }
        self.hear(last);
    }

    /// Recording ends: the run-queue delay since it began, of all that there is.
    fn count_recorded_delay(&mut self, delay: u64) {
        self.recorded_delay_ns += delay.saturating_sub(self.delay_at_start_ns);
    }

    /// How the run-queue delay of the whole time came about.
    fn delay(&self) -> Delay {
        Delay {
            recorded_ns: self.recorded_delay_ns,
            unread_ns: self.scanner.unread_ns,
            stolen_ns: stolen_ns().saturating_sub(self.stolen_before_ns),
        }
    }

    fn pause(&mut self) {
        // Closing takes milliseconds, in which more and more is missing: what came before counts.
        let now = now_ns();
        self.stop_recording(false);
        let (_, delay) = self.scanner.delays();
        self.scanner.is_recorded(false);
        self.count_recorded_delay(delay);
        let Some(recording) = &mut self.recording else { return };
        recording.take(now, true, &mut self.sweep);
        recording.forget_waits();
        if let Some(path) = &mut recording.stream.path {
            path.pause(now, |thread| self.sweep.waits_for(thread));
        }
        self.sweep.switch_source(now, Source::Scanned);
        recording.cut(&mut self.sweep, true, self.governor.price());
        // Of the rest only mappings and names are of use.
        recording.take(u64::MAX, true, &mut self.sweep);
    }

    fn resume(&mut self) {
        let threads = self.scanner.all_threads();
        if threads.is_empty() {
            return;
        }
        // What was used until now was not recorded.
        (_, self.delay_at_start_ns) = self.scanner.delays();
        self.count();
        let Some(recording) = &mut self.recording else { return };
        self.governor.opened(self.scanner.running().max(1));
        if let Err(reason) = recording.recorder.start(&threads, false) {
            // Too many threads, or too many open files: they are looked at to the end.
            recording.given_up = true;
            self.unrecorded = Some(reason);
            return;
        }
        recording.on = true;
        recording.begin_slice();
        recording.faults_on = true;
        recording.stream.has(recording.recorder.events.clone());
        recording.knows_already(&self.scanner);
        // What the records begin with: states at this moment, which later records correct. Opening events
        // takes milliseconds, in which much may have been marked.
        let now = now_ns();
        self.scanner.scan(&mut self.states);
        self.hear(false);
        if self.states.is_empty() {
            // It has ended meanwhile: its time is that of the scan before.
            self.stop_recording(false);
            return;
        }
        self.sweep.scan(now, &self.states);
        self.scans += 1;
        self.sweep.switch_source(now, Source::Recorded);
        self.scanner.is_recorded(true);
        if let Some(recording) = &mut self.recording {
            recording.from = (self.cpu_ns, self.sweep.cpu_ns(), recording.recorded());
            if recording.recorder.wakes.is_err() {
                recording.stream.path = None;
            }
            recording.stream.resume(now, &self.states, |process| self.scanner.parent(process));
        }
    }

    /// `io`: its counters of bytes and calls, if they could be read; `ended`: how it ended, and these
    /// counters by another way.
    fn finish(mut self, end: u64, io: Option<Io>, ended: impl FnOnce() -> (Ended, Option<Io>)) -> Watched {
        let delays = self.scanner.delays();
        if self.recording.as_ref().is_some_and(|recording| recording.on) {
            self.count_recorded_delay(delays.1);
        }
        self.stop_recording(true);
        if let Some(recording) = &mut self.recording {
            recording.has_ended();
            // What it leaves running goes on.
            recording.take(end + 1, true, &mut self.sweep);
        }
        let end = end.max(self.sweep.now()).max(self.begin + 1);
        let watcher_ns = process_cpu_ns() - self.cpu_begin;
        let delay = self.delay();
        if let Some(recording) = &mut self.recording {
            // What was recorded to the end, or what was not.
            recording.cut(&mut self.sweep, true, self.governor.price());
            let ran = self.scanner.ran_ns().saturating_sub(self.delays_before.0);
            recording.pass(ran, self.scanner.counts(), self.governor.price());
        }
        let (ended, counted) = ended();
        if let Some(recording) = &self.recording {
            for (pid, parent) in recording.stream.started_processes() {
                self.scanner.learn(*pid, *parent);
            }
        }
        let left_running = if self.launched { self.scanner.left_running() } else { 0 };
        let began = self.before.io.unwrap_or_default();
        let whole = io.or(counted).or(self.io).map(|last| {
            let parent = |process| self.scanner.parent(process);
            let is_orphan = |process| self.scanner.is_orphan(process);
            self.descriptors.whole((self.pid, began, last), parent, is_orphan)
        });
        let usage = self.usage(ended.used, whole.map(|whole| whole.io), delays);
        let path = self.path(end);
        let name = |process: u32| {
            let about = self.scanner.about.get(&process);
            about.map(|about| about.name.clone()).unwrap_or_default()
        };
        let files = self.descriptors.shown(usage.io.as_ref(), name);
        let calls = self.recording.as_mut().and_then(|recording| recording.recorder.calls.as_mut());
        let calls = calls.map(|calls| calls.reported(name, |socket| self.descriptors.peer(socket)));
        let cpu_ns = usage.cpu_ns();
        self.end_governing(&usage);
        let sweep = &mut self.sweep;
        let weighed = self.recording.as_mut().map(|recording| recording.weigh(cpu_ns, sweep));
        let swept = self.sweep.end(end);
        let wall_ns = swept.scanned.wall + swept.recorded.wall;
        let processes = u64::try_from(self.scanner.about.len()).unwrap_or(1);
        let mut tally = Tally {
            runs: 1,
            wall_ns: end - self.begin,
            loading_ns: self.loading_ns,
            scanned: swept.scanned,
            recorded: swept.recorded,
            unread: swept.unread,
            stages: swept.stages,
            usage,
            delay,
            cpus: self.cpus,
            processes,
            most_threads: swept.most,
            scans: self.scans,
            watcher_ns,
            python: self.python.finish(end),
            ..Tally::default()
        };
        let came = self.scanner.came();
        (tally.scanned.wakes, tally.scanned.unknown_wakes) = (came.by_reason, came.unknown);
        debug_assert!(wall_ns >= tally.wall_ns, "{wall_ns} {}", tally.wall_ns);
        tally.wall_range_ns = (tally.wall_ns, tally.wall_ns);
        if let Some(recording) = self.recording {
            tally.sees_kernel = recording.recorder.sees_kernel;
            tally.recording_ns = whole_ns(self.governor.spent_ns());
            tally.switches = recording.stream.switches;
            tally.lost = recording.stream.lost;
            tally.names_left_out = recording.stream.names.are_left_out();
            tally.mapped = recording.stream.names.mapped;
        }
        if let Some(weighed) = weighed {
            tally.mix = weighed.mix;
            tally.sampled_ns = weighed.of_ns;
            tally.unlike = weighed.unlike;
        }
        Watched {
            tally,
            ended: self.launched.then_some(ended),
            pid: self.pid,
            left_running,
            course: swept.course,
            files,
            path,
            locks: self.scanner.locks(MOST_LOCKS),
            pauses: self.pausing.reported(),
            calls,
            processes: swept.processes,
            refused: self.scanner.refused,
            overflown: self.scanner.overflown,
            about: self.scanner.about,
            unrecorded: self.unrecorded,
            by_scans: whole.map_or(0, |whole| whole.by_scans),
        }
    }

    /// What the run used is known.
    fn end_governing(&mut self, usage: &Usage) {
        let counts = Counts {
            switches: usage.voluntary_switches + usage.involuntary_switches,
            faults: (usage.minor_faults + usage.major_faults) / FAULT_SLICES,
            starts: self.scanner.counts().unwrap_or_default().starts,
        };
        self.governor.end(usage.cpu_ns(), counts);
    }

    /// What the program's end hung on, or why that is not known.
    fn path(&mut self, end: u64) -> Result<model::Path, String> {
        let Some(recording) = &mut self.recording else { return Err(NEEDS_LEVEL_1.to_owned()) };
        if let Err(reason) = &recording.recorder.wakes {
            return Err(reason.clone());
        }
        let path = recording.stream.path.take();
        let path = path.and_then(|path| path.shown(end, self.launched, end - self.begin));
        path.ok_or_else(|| "nothing was recorded".to_owned())
    }

    /// What the program used: what it had used before it was watched is not its own. `delays`: CPU time and
    /// run-queue delay of its threads.
    fn usage(&self, used: Usage, io: Option<Io>, delays: (u64, u64)) -> Usage {
        let before = &self.before;
        // In whole numbers: 2^64 ns times 2^64 ns fits.
        let user_of = |cpu_ns: u64, user_ns: u64, all: u64| {
            let part = u128::from(cpu_ns) * u128::from(user_ns) / u128::from(all.max(1));
            u64::try_from(part).unwrap_or(cpu_ns)
        };
        let (cpu_ns, user_ns) = if self.launched {
            let counted = used.cpu_ns();
            let cpu_ns = counted.saturating_sub(before.system_ns);
            (cpu_ns, user_of(cpu_ns, used.user_ns, counted))
        } else {
            // Its own counters know of threads that have ended, those of threads of its children. What of it
            // was user code, ticks say.
            let user_ns = used.user_ns.saturating_sub(before.user_ns);
            let system_ns = used.system_ns.saturating_sub(before.system_ns);
            let cpu_ns = delays.0.saturating_sub(self.delays_before.0).max(user_ns + system_ns);
            (cpu_ns, user_of(cpu_ns, user_ns, user_ns + system_ns))
        };
        let system_ns = cpu_ns - user_ns;
        Usage {
            user_ns,
            system_ns,
            queue_ns: Some(delays.1.saturating_sub(self.delays_before.1)),
            minor_faults: used.minor_faults.saturating_sub(before.minor_faults),
            major_faults: used.major_faults.saturating_sub(before.major_faults),
            voluntary_switches: used.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: used.involuntary_switches.saturating_sub(before.involuntary_switches),
            max_resident_bytes: used.max_resident_bytes,
            io,
            file_chars: self.descriptors.of_regular_files(),
            traffic: self.descriptors.traffic(),
            discards: self.descriptors.discarding.found(),
        }
    }
}

#[cfg(test)]
mod tests;
