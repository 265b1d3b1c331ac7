//! The ledger and all that is reported beside it, as it is published.

use latlab_stages::{Heard, StageRow};

use crate::account::tally::Tally;
use crate::account::{by_place, by_stage, estimate, io, woken};
use crate::model::{self, Counters, Explained, Observer, Part, Process, Program, Stage, ThreadWait, Threads};
use crate::rules::Rules;
use crate::watch::levels::Levels;
use crate::watch::lines::Dwarf;
use crate::watch::run::{Tracing, Watched};
use crate::{Calibration, Category};

/// Processes that are listed.
const MOST_LISTED: usize = 64;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What is published of a program. `first`: the run of which the course is shown; `heard`: its stages.
pub(crate) fn assemble(
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
    let parallelism = if ledger.running_ns > 0.0 { ledger.cpu_ns / ledger.running_ns } else { 0.0 };
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
        pauses: first.pauses.clone(),
        calls: first.calls.clone(),
        path: first.path.as_ref().ok().cloned(),
        categories: ledger.rows,
        computing: model::Bounds { low: ledger.computing.low, high: ledger.computing.high },
        closure: ledger.closure,
        stacks: ledger.stacks,
        symbols,
        lines,
        about_symbols: about_symbols(tally),
        about_lines,
        about_path: about_path(first),
        python: tally.python.reported(),
        observer: Observer {
            share: tally.recording_ns as f64 / (tally.usage.cpu_ns() as f64).max(1.0),
            allowed_share: levels.tracing.overhead.is_finite().then_some(levels.tracing.overhead),
            watcher_share: tally.watcher_ns as f64 / wall,
            recorded_share: tally.recorded.wall as f64 / wall,
            scans: tally.scans,
            samples: tally.mix.total().samples,
            switches: tally.switches,
            lost: tally.lost,
        },
        calibration: *calibration,
        calibration_kept: levels.kept.is_some(),
        threads: threads(tally, parallelism, rules, runs),
        processes: processes(first, rules),
        counters: counters(tally, runs),
        nameless_share: tally.mix.nameless(),
        notes: ledger.contradiction.into_iter().chain(notes(tally, first, &heard, levels.tracing)).collect(),
    }
}

/// How the functions were found.
fn about_symbols(tally: &Tally) -> String {
    let samples = tally.mix.total().samples;
    if samples == 0 {
        return "Functions are unknown: nothing was sampled, and scans of /proc cannot sample a program's \
            code."
            .to_owned();
    }
    let of = if tally.sees_kernel {
        "the program and the kernel"
    } else {
        "the program's own code; the kernel's part is the rest of the time on the CPU, and is not divided"
    };
    let left_out = if tally.names_left_out {
        " Some names are missing: one file's symbols take too much memory or time to read."
    } else {
        ""
    };
    let nameless = match tally.mix.nameless() {
        Some(share) if share > 0.0 => {
            let share = 100.0 * share;
            format!(" {share:.1} % of those in the program's code are in functions without a symbol.")
        }
        _ => String::new(),
    };
    format!(
        "From {samples} samples on the CPU, of {of}. They divide each category's time, so no function \
            exceeds its categories.{nameless}{left_out}"
    )
}

/// How the lines were found.
fn about_lines(lines: &[model::Line], dwarf: &Dwarf) -> String {
    let Some(lineless) = by_place::lineless(lines) else {
        return "Source lines are unknown: no code of the program was sampled.".to_owned();
    };
    let left = match dwarf.left_out.first() {
        Some(file) => format!(" Some tables take too much memory or time to read, such as that of {file}."),
        None => String::new(),
    };
    if !dwarf.found() {
        return format!(
            "Source lines are not known: no file that ran has line tables (compile with -g).{left}"
        );
    }
    let share = 100.0 * lineless;
    format!(
        "From the line tables of the files that ran; they do not cover {share:.1} % of the time in the \
            program's code.{left}"
    )
}

/// How the critical path was found.
fn about_path(first: &Watched) -> String {
    let path = match &first.path {
        Ok(path) => path,
        Err(reason) => return format!("The critical path is not known: {reason}."),
    };
    let share = 100.0 * path.recorded_share;
    let found = if path.steps.is_empty() {
        "There is no critical path: the end of the program was not recorded, or it is still running."
    } else {
        "A thread depends on the thread of this program that ended its wait; the path is what the end of \
            the main thread depended on."
    };
    format!(
        "{found} {share:.0} % of the time was recorded. Waits that an interrupt ended belong to no thread, \
            even if a thread caused it."
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

fn notes(tally: &Tally, first: &Watched, heard: &Heard, tracing: Tracing) -> Vec<String> {
    let mut notes = Vec::new();
    let allowed = 100.0 * tracing.overhead;
    if let Some(reason) = &first.unrecorded {
        notes.push(format!(
            "This program could not be recorded fully; its threads were scanned instead: {reason}."
        ));
    }
    let recorded = tally.recorded.wall as f64 / (tally.wall_ns as f64).max(1.0);
    let (bound, within) = if tracing.overhead.is_finite() {
        (
            format!(", or recording would have slowed it by more than {allowed} %"),
            format!(": as much as slows the program by at most {allowed} %"),
        )
    } else {
        (String::new(), String::new())
    };
    if tracing.recording.is_some() && first.unrecorded.is_none() && tally.recorded.wall == 0 {
        notes.push(format!(
            "This program was not recorded: it ended before its rate of switches was known{bound}. Its \
                threads were scanned instead."
        ));
    } else if tally.recorded.wall > 0 && recorded < 0.9 {
        notes.push(format!(
            "{:.0} % of the time was recorded{within}. During the rest, its threads were scanned.",
            100.0 * recorded
        ));
    }
    let unlike = tally.unlike.of_cpu();
    if unlike > estimate::LEAST_UNLIKE {
        notes.push(format!(
            "Parts with {:.0} % of the CPU time were not recorded, nor was any part that switches as often. \
                The program's own code in \
             them is not divided; the kernel's work is known from its counters.",
            100.0 * unlike
        ));
    }
    if tally.lost > 0 {
        notes.push(format!("{} records were lost because latlab did not get a CPU in time.", tally.lost));
    }
    if heard.lost > 0 {
        notes.push(format!(
            "{} marks of stages were lost: they came faster than they could be read, and their stages are \
                too short in the table.",
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
            "What some threads waited for could not be read in /proc/PID/task/TID/syscall (another user's \
                process, or \
             kernel.yama.ptrace_scope); the kernel function they waited in was used where it could be read."
                .to_owned(),
        );
    }
    if first.by_scans > 0 {
        notes.push(format!(
            "{} processes ended without the program waiting for them: what they read and wrote is counted \
                up to \
             their last scan.",
            first.by_scans
        ));
    }
    if first.overflown {
        notes.push("The program had more threads than latlab follows.".to_owned());
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

fn threads(tally: &Tally, parallelism: f64, rules: &Rules, runs: f64) -> Threads {
    let cpu = tally.usage.cpu_ns();
    let mut waits: Vec<ThreadWait> = woken::by_category(&woken::thread_waits(tally, rules), rules)
        .into_iter()
        .map(|(name, ns)| ThreadWait { name, seconds: ns / 1e9 / runs })
        .collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Threads { most: tally.most_threads, cpu_s: cpu as f64 / 1e9 / runs, parallelism, waits }
}

fn processes(first: &Watched, rules: &Rules) -> Vec<Process> {
    let mut processes: Vec<Process> = first
        .processes
        .iter()
        .map(|(pid, seen)| {
            let about = first.about.get(pid).cloned().unwrap_or_default();
            let own = woken::of_process(seen, &first.tally.unread, about.busy(seen.from, seen.to));
            let wall = (seen.to - seen.from).max(1) as f64;
            let mut waits: Vec<Part> = woken::by_category(&own.waits, rules)
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
                running: own.busy / wall,
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
    let io = |field: fn(&io::Io) -> u64| usage.io.as_ref().map(|io| per(field(io)));
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
