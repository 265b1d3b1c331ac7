//! From a request to the ledger: runs, levels, and what is told of them.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::time::{SystemTime, UNIX_EPOCH};

use latlab_stages::{Heard, Listener, StageRow, Table};
use rustix::fs::{FileType, fstat, tell};

use super::costs;
use super::launch::{Signals, Streams};
use super::levels::{self, Levels};
use super::lines::Dwarf;
use super::look::started_with;
use super::watch::{self, Sight, Watched};
use crate::by_place;
use crate::by_stage;
use crate::estimate;
use crate::first_run::{self, Run};
use crate::governor::Governor;
use crate::model::{self, Counters, Explained, Observer, Part, Process, Program, Stage, ThreadWait, Threads};
use crate::rules::Rules;
use crate::tally::Tally;
use crate::woken;
use crate::{Calibration, Category, ExplainError, Request, Subject};

const MOST_LISTED: usize = 64;
/// Looks may miss the processes that a program of less time leaves behind.
const SHORT_NS: u64 = 50_000_000;
/// Marks of stages that wait to be heard: more than a thread writes in the time between.
const MARKS: u32 = 1 << 17;

fn governor(levels: &Levels) -> Governor {
    Governor::with(levels.sight.price, levels.sight.period_ns(), levels.sight.overhead)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Runs or watches what is asked for, and says where its wall time went. A process that runs already is watched, and a
/// program is run again, while `go_on` says so.
///
/// # Errors
/// The program cannot be started, there is no such process, or the system refuses what is needed.
pub fn explain(request: &Request, go_on: impl FnMut() -> bool) -> Result<Explained, ExplainError> {
    let rules = Rules::built_in();
    let levels = levels::find(request.level, request.overhead, &request.kept);
    match &request.subject {
        Subject::Program(arguments) => {
            // Without it, stages go unheard.
            let listener = Listener::new(MARKS);
            let unheard = listener.as_ref().err();
            let unheard = unheard.map(|error| format!("No stages could be listened to: {error}."));
            let mut runs = Runs {
                arguments,
                rules,
                levels: &levels,
                // Before Python or anybody else can be asked to stop: what is sent to the watcher is the program's.
                signals: Signals::hand_on(),
                stdin: Stdin::now(),
                seen: Vec::new(),
                stages_of_first: Table::default(),
                after_first: Tally::default(),
                second: None,
                governor: governor(&levels),
                listener: listener.ok(),
            };
            let first = runs.first()?;
            let calibration = calibration(&levels);
            let fewer = runs.up_to(request.runs, &first, go_on)?;
            let apart = first_run::kept_apart(&runs.seen);
            let (tally, shown) = match runs.second.take() {
                Some(second) if apart.is_some() => (runs.after_first, second),
                _ => (runs.with(&first), first),
            };
            let words = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let heard = runs.listener.as_ref().map(Listener::heard);
            let mut explained = assemble(&tally, &shown, &levels, rules, &calibration, words, heard);
            explained.notes.extend(apart.into_iter().chain(fewer).chain(unheard));
            Ok(explained)
        }
        Subject::Running { pid, for_ns } => {
            let mut governor = governor(&levels);
            let watched = watch::attach(*pid, *for_ns, rules, levels.sight, &mut governor, go_on)?;
            let calibration = calibration(&levels);
            Ok(assemble(&watched.tally, &watched, &levels, rules, &calibration, Vec::new(), None))
        }
    }
}

/// What was kept, or what is measured now.
fn calibration(levels: &Levels) -> Calibration {
    let Sight { recording, price, .. } = levels.sight;
    levels.kept.unwrap_or_else(|| Calibration {
        recording,
        measured_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        price,
        costs: costs::measure(recording),
    })
}

/// What standard input was before the first run.
#[derive(Clone, Copy, Debug)]
enum Stdin {
    /// A file that can be read again from here.
    File(i64),
    /// The first run has read what there was.
    Gone,
    /// Nothing that a program of some milliseconds reads.
    Nothing,
}

impl Stdin {
    fn now() -> Self {
        let input = std::io::stdin();
        match fstat(&input).map(|about| FileType::from_raw_mode(about.st_mode)) {
            Ok(FileType::RegularFile) => {
                let at = tell(&input).ok().and_then(|at| i64::try_from(at).ok());
                at.map_or(Self::Gone, Self::File)
            }
            Err(_) | Ok(FileType::CharacterDevice) => Self::Nothing,
            Ok(_) => Self::Gone,
        }
    }
}

struct Runs<'a> {
    arguments: &'a [std::ffi::OsString],
    rules: &'static Rules,
    levels: &'a Levels,
    signals: Signals,
    stdin: Stdin,
    seen: Vec<Run>,
    stages_of_first: Table,
    after_first: Tally,
    second: Option<Watched>,
    governor: Governor,
    listener: Option<Listener>,
}

impl Runs<'_> {
    fn once(&mut self, streams: Streams) -> Result<Watched, ExplainError> {
        watch::run(
            self.arguments,
            streams,
            self.rules,
            &self.signals,
            self.levels.sight,
            &mut self.governor,
            self.listener.as_mut(),
        )
    }

    fn first(&mut self) -> Result<Watched, ExplainError> {
        let mut first = self.once(Streams::Inherited)?;
        self.seen.push(Run::of(&first.tally));
        // One that is over at once may leave processes that no look has met.
        if let Some(listener) = self.listener.as_ref().filter(|_| first.tally.wall_ns < SHORT_NS) {
            let [(name, value), _] = listener.environment();
            let left = started_with(&format!("{name}={value}"));
            first.left_running = first.left_running.max(left);
        }
        Ok(first)
    }

    /// All runs together.
    fn with(&mut self, first: &Watched) -> Tally {
        if let Some(listener) = &mut self.listener {
            listener.put_back(&self.stages_of_first);
        }
        let mut all = first.tally.clone();
        if self.after_first.runs > 0 {
            all.add(&self.after_first);
        }
        all
    }

    /// Runs it this often, first run included. Of a repeated run the output is thrown away.
    ///
    /// Returns why it was not run as often.
    fn up_to(
        &mut self,
        times: u32,
        first: &Watched,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<String>, ExplainError> {
        if let Some(listener) = &mut self.listener {
            self.stages_of_first = listener.take_table();
        }
        while self.seen.len() < times as usize {
            if let Some(why) = self.again(first, go_on())? {
                return Ok(Some(format!("Of {times} runs {} could be made: {why}.", self.seen.len())));
            }
        }
        Ok(None)
    }

    /// Runs it again; why it could not be, or why that run does not count.
    fn again(&mut self, first: &Watched, go_on: bool) -> Result<Option<&'static str>, ExplainError> {
        const INTERRUPTED: Option<&str> = Some("it was interrupted");
        if !go_on || self.signals.have_come() {
            return Ok(INTERRUPTED);
        }
        let from = match self.stdin {
            Stdin::File(at) => Some(at),
            Stdin::Nothing => None,
            Stdin::Gone => {
                return Ok(Some(
                    "the first run has read its input, which is no file (< FILE can be read again)",
                ));
            }
        };
        let Ok(nowhere) = File::options().write(true).open("/dev/null") else {
            return Ok(Some("/dev/null cannot be opened, which takes the output of further runs"));
        };
        let again = self.once(Streams::Repeated(from, nowhere.as_raw_fd()))?;
        let ended = |watched: &Watched| watched.ended.map(|ended| (ended.exit_code, ended.signal));
        if self.signals.have_come() {
            return Ok(INTERRUPTED);
        }
        if ended(&again) != ended(first) {
            return Ok(Some("the next run did not end as the first"));
        }
        self.seen.push(Run::of(&again.tally));
        self.after_first.add(&again.tally);
        self.second.get_or_insert(again);
        Ok(None)
    }
}

fn assemble(
    tally: &Tally,
    first: &Watched,
    levels: &Levels,
    rules: &'static Rules,
    calibration: &Calibration,
    arguments: Vec<String>,
    heard: Option<Heard>,
) -> Explained {
    let ledger = estimate::ledger(tally, rules, &calibration.costs);
    let heard = heard.unwrap_or_default();
    let recorded = tally.recorded.wall > 0;
    let level = if recorded { levels.level } else { 3 };
    let runs = f64::from(tally.runs.max(1));
    let wall = (tally.wall_ns as f64).max(1.0);
    let symbols = by_place::symbols(&tally.mix, &ledger.sampled);
    let mut dwarf = Dwarf::begin(tally.mapped.clone());
    let lines = by_place::lines(&tally.mix, &ledger.sampled, &mut dwarf);
    let about_lines = about_lines(&lines, &dwarf);
    Explained {
        version: model::VERSION,
        rules_version: rules.version(),
        program: Program { arguments, ..program(first) },
        runs: tally.runs,
        wall_s: wall / 1e9 / runs,
        wall_range_s: (seconds(tally.wall_range_ns.0), seconds(tally.wall_range_ns.1)),
        level,
        levels: levels.rungs.clone(),
        raise: levels.raise.clone(),
        stages: stages(tally, &ledger, rules, &heard),
        timeline: course(tally, first, &ledger, rules, calibration),
        files: first.files.clone(),
        locks: first.locks.clone(),
        categories: ledger.rows,
        closure: ledger.closure,
        stacks: ledger.stacks,
        symbols,
        lines,
        about_symbols: about_symbols(tally),
        about_lines,
        python: tally.python.told(),
        observer: Observer {
            share: tally.recording_ns as f64 / (tally.usage.cpu_ns() as f64).max(1.0),
            allowed_share: levels.sight.overhead.is_finite().then_some(levels.sight.overhead),
            watcher_share: tally.watcher_ns as f64 / wall,
            recorded_share: tally.recorded.wall as f64 / wall,
            looks: tally.looks,
            samples: tally.mix.total().samples,
            switches: tally.switches,
            lost: tally.lost,
        },
        calibration: *calibration,
        calibration_kept: levels.kept.is_some(),
        threads: threads(tally, ledger.running_ns, rules, runs),
        processes: processes(first, rules),
        counters: counters(tally, runs),
        nameless_share: tally.mix.nameless(),
        notes: ledger.contradiction.into_iter().chain(notes(tally, first, &heard, levels.sight)).collect(),
    }
}

/// How the functions were found.
fn about_symbols(tally: &Tally) -> String {
    let samples = tally.mix.total().samples;
    if samples == 0 {
        return "Functions cannot be told: nothing was sampled, and looks at /proc do not see into a program.".to_owned();
    }
    let of = if tally.sees_kernel {
        "the program and the kernel"
    } else {
        "the program's own code; the kernel's part is known from what they leave of the time on the CPU, and not divided"
    };
    let left_out = if tally.names_left_out {
        " Not all names were read: those of one of its files take too much memory or time."
    } else {
        ""
    };
    let nameless = match tally.mix.nameless() {
        Some(share) if share > 0.0 => {
            let share = 100.0 * share;
            format!(
                " Of those in the program's code {share:.1} % fell in functions without a name: the file has none for them."
            )
        }
        _ => String::new(),
    };
    format!(
        "By {samples} samples on the CPU, of {of}. They divide what each category took, so no function has more than its categories.{nameless}{left_out}"
    )
}

/// How the lines were found.
fn about_lines(lines: &[model::Line], dwarf: &Dwarf) -> String {
    let Some(lineless) = by_place::lineless(lines) else {
        return "Source lines cannot be told: no code of the program was sampled.".to_owned();
    };
    let left = match dwarf.left_out.first() {
        Some(file) => format!(" Some tables take too much memory or time to read, as that of {file}."),
        None => String::new(),
    };
    if !dwarf.found() {
        return format!(
            "Source lines are not known: no file that ran has line tables (compile with -g).{left}"
        );
    }
    let share = 100.0 * lineless;
    format!(
        "By the line tables of the files that ran; for {share:.1} % of the time in the program's code there is none.{left}"
    )
}

/// The course of the first run, fitted to what the ledger says of that run alone.
fn course(
    tally: &Tally,
    first: &Watched,
    ledger: &estimate::Ledger,
    rules: &Rules,
    calibration: &Calibration,
) -> model::Timeline {
    let own = (tally.runs > 1).then(|| estimate::ledger(&first.tally, rules, &calibration.costs));
    let ledger = own.as_ref().unwrap_or(ledger);
    let shares: Vec<(Category, f64)> = ledger.rows.iter().map(|row| (row.name, row.share)).collect();
    first.course.shown(&shares, &ledger.on_cpu, seconds(first.tally.wall_ns))
}

fn notes(tally: &Tally, first: &Watched, heard: &Heard, sight: Sight) -> Vec<String> {
    let mut notes = Vec::new();
    let allowed = 100.0 * sight.overhead;
    if let Some(reason) = &first.unrecorded {
        notes.push(format!(
            "Not everything could be recorded of this program, which was looked at instead: {reason}."
        ));
    }
    let recorded = tally.recorded.wall as f64 / (tally.wall_ns as f64).max(1.0);
    if sight.recording.is_some() && first.unrecorded.is_none() && tally.recorded.wall == 0 {
        notes.push(format!(
            "Nothing was recorded of this program: it was over before it was known how often it switches, or recording would have slowed \
             it by more than {allowed} %; it was looked at instead."
        ));
    } else if tally.recorded.wall > 0 && recorded < 0.9 {
        notes.push(format!(
            "{:.0} % of the time was recorded: as much as slows the program by no more than {allowed} %. The rest of the time its threads were \
             looked at.",
            100.0 * recorded
        ));
    }
    let unlike = tally.unlike.of_cpu();
    if unlike > estimate::LEAST_UNLIKE {
        notes.push(format!(
            "Of parts with {:.0} % of the CPU time nothing was recorded, nor of any that switch as often: what the program's own code did in them is \
             unexplained, and the kernel's work is known from its counters.",
            100.0 * unlike
        ));
    }
    if tally.lost > 0 {
        notes.push(format!("{} records were lost, as the watcher did not get a CPU in time.", tally.lost));
    }
    if heard.lost > 0 {
        notes.push(format!(
            "{} marks of stages were lost: they came faster than they could be read, and their stages are too short in the table.",
            heard.lost
        ));
    }
    if heard.unread_bytes > 0 {
        notes.push(format!(
            "{} bytes of lines about stages were left out: they came faster than they could be read.",
            heard.unread_bytes
        ));
    }
    if let Some(refused) = &heard.first_refused {
        notes.push(format!("{} lines about stages were left out; the first: {refused}.", heard.refused));
    }
    if first.refused {
        notes.push(
            "What some threads waited for could not be read in /proc/PID/task/TID/syscall (another user's process, or \
             kernel.yama.ptrace_scope); the kernel function they waited in was used where it could be read."
                .to_owned(),
        );
    }
    if first.by_looks > 0 {
        notes.push(format!(
            "{} processes ended and the program had not waited for them: what they read and wrote is counted as far as the last look at them \
             saw it.",
            first.by_looks
        ));
    }
    if first.overflown {
        notes.push("There were more threads than are followed.".to_owned());
    }
    notes
}

/// The stages as the program marked them, with what the ledger says of their time.
fn stages(tally: &Tally, ledger: &estimate::Ledger, rules: &Rules, heard: &Heard) -> Vec<Stage> {
    let shares: Vec<(Category, f64)> = ledger.rows.iter().map(|row| (row.name, row.share)).collect();
    let sampled = (tally.mix.total().samples > 0).then_some(tally.sees_kernel);
    let runs = f64::from(tally.runs.max(1));
    let wall_s = tally.wall_ns as f64 / 1e9 / runs;
    let mut stages: Vec<Stage> = by_stage::divided(&tally.stages, rules, &shares, &ledger.on_cpu, sampled)
        .into_iter()
        .map(|(name, parts)| {
            let marked = heard.stages.iter().find(|row| row.name == name);
            let per_run = |of: fn(&StageRow) -> f64| marked.map_or(0.0, of) / runs;
            let mut categories: Vec<Part> = parts
                .into_iter()
                .filter(|(_, share)| *share > 1e-6)
                .map(|(doing, share)| Part { name: doing.name().to_owned(), share, seconds: share * wall_s })
                .collect();
            categories.sort_by(|a, b| b.share.total_cmp(&a.share));
            let share: f64 = categories.iter().map(|part| part.share).sum();
            Stage {
                share,
                seconds: share * wall_s,
                categories,
                count: per_run(|row| row.count as f64),
                thread_s: per_run(|row| row.seconds),
                own_thread_s: per_run(|row| row.self_seconds),
                bytes: marked.and_then(|row| Some(row.bytes? as f64 / runs)),
                range_ns: marked.map_or((0.0, 0.0), |row| (row.min_ns, row.max_ns)),
                histogram: marked.map(|row| row.histogram.clone()),
                cut: per_run(|row| row.cut as f64),
                name,
            }
        })
        .collect();
    stages.sort_by(|a, b| a.name.is_empty().cmp(&b.name.is_empty()).then(b.share.total_cmp(&a.share)));
    stages
}

fn program(first: &Watched) -> Program {
    let ended = first.ended.unwrap_or_default();
    Program {
        arguments: Vec::new(),
        pid: first.pid,
        exit_code: ended.exit_code,
        signal: ended.signal,
        left_running: first.left_running,
    }
}

fn threads(tally: &Tally, running_ns: f64, rules: &Rules, runs: f64) -> Threads {
    let cpu = tally.usage.cpu_ns();
    let mut waits: Vec<ThreadWait> = woken::by_category(&woken::thread_waits(tally), rules)
        .into_iter()
        .map(|(name, ns)| ThreadWait { name, seconds: ns / 1e9 / runs })
        .collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Threads {
        most: tally.most_threads,
        cpu_s: cpu as f64 / 1e9 / runs,
        parallelism: if running_ns > 0.0 { cpu as f64 / running_ns } else { 0.0 },
        waits,
    }
}

fn processes(first: &Watched, rules: &Rules) -> Vec<Process> {
    let mut processes: Vec<Process> = first
        .processes
        .iter()
        .map(|(pid, seen)| {
            let about = first.about.get(pid).cloned().unwrap_or_default();
            let books = woken::of_process(seen, &first.tally.unread, about.busy(seen.from, seen.to));
            let wall = (seen.to - seen.from).max(1) as f64;
            let mut waits: Vec<Part> = woken::by_category(&books.waits, rules)
                .into_iter()
                .map(|(category, ns)| Part {
                    name: category.name().to_owned(),
                    share: ns / wall,
                    seconds: ns / 1e9,
                })
                .collect();
            waits.sort_by(|a, b| b.share.total_cmp(&a.share));
            Process {
                pid: *pid,
                parent: about.parent,
                name: about.name,
                wall_s: wall / 1e9,
                running: books.busy / wall,
                waits,
            }
        })
        .collect();
    let busy = |process: &Process| process.running * process.wall_s;
    processes.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(a.pid.cmp(&b.pid)));
    processes.truncate(MOST_LISTED);
    processes
}

fn counters(tally: &Tally, runs: f64) -> Counters {
    let usage = &tally.usage;
    let per = |count: u64| count as f64 / runs;
    let io = |field: fn(&crate::io::Io) -> u64| usage.io.as_ref().map(|io| per(field(io)));
    Counters {
        user_s: per(usage.user_ns) / 1e9,
        system_s: per(usage.system_ns) / 1e9,
        run_queue_s: usage.queue_ns.map(|ns| per(ns) / 1e9),
        minor_faults: per(usage.minor_faults),
        major_faults: per(usage.major_faults),
        voluntary_switches: per(usage.voluntary_switches),
        involuntary_switches: per(usage.involuntary_switches),
        max_resident_bytes: usage.max_resident_bytes,
        read_chars: io(|io| io.read_chars),
        read_calls: io(|io| io.read_calls),
        written_chars: io(|io| io.written_chars),
        write_calls: io(|io| io.write_calls),
        device_read_bytes: io(|io| io.read_bytes),
        device_written_bytes: io(|io| io.written_bytes),
    }
}
