//! From a request to the ledger: runs, levels, and what is told of them.

use super::costs;
use super::launch::{Signals, Streams};
use super::watch::{self, Watched};
use crate::estimate;
use crate::model::{self, Counters, Explained, Observer, Part, Process, Program, Rung, ThreadWait, Threads};
use crate::rules::Rules;
use crate::tally::Tally;
use crate::{Category, ExplainError, Progress, Request, Subject};

const MOST_LISTED: usize = 64;
/// Wall time of one and of several runs, seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Runs or watches what is asked for, and says where its wall time went. `told` returns whether to go on.
///
/// # Errors
/// The program cannot be started, there is no such process, or the system refuses what is needed.
pub fn explain(
    request: &Request,
    mut told: impl FnMut(&Progress) -> bool,
) -> Result<Explained, ExplainError> {
    let rules = Rules::built_in();
    let _ = &mut told;
    let Subject::Program(arguments) = &request.subject else {
        return Err(ExplainError::Unsupported);
    };
    let signals = Signals::hand_on();
    let watched = watch::run(arguments, Streams::Inherited, rules, &signals)?;
    drop(signals);
    let mut tally = Tally::default();
    tally.add(&watched.tally);
    let levels = vec![Rung {
        level: 3,
        name: "/proc and the kernel's counters".to_owned(),
        available: true,
        reason: None,
    }];
    let mut explained = assemble(&tally, &watched, rules, 3, levels);
    explained.program.arguments = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Ok(explained)
}

fn assemble(
    tally: &Tally,
    first: &Watched,
    rules: &'static Rules,
    level: u8,
    levels: Vec<Rung>,
) -> Explained {
    let ledger = estimate::ledger(tally, rules, &costs::measure());
    let runs = f64::from(tally.runs.max(1));
    let wall = (tally.wall_ns as f64).max(1.0);
    Explained {
        version: model::VERSION,
        rules_version: rules.version(),
        program: program(first),
        runs: tally.runs,
        wall_s: wall / 1e9 / runs,
        wall_range_s: (seconds(tally.wall_range_ns.0), seconds(tally.wall_range_ns.1)),
        level,
        levels,
        raise: None,
        timeline: first.bins.shown(&ledger.on_cpu),
        categories: ledger.rows,
        bounds: ledger.bounds,
        closure: ledger.closure,
        stacks: ledger.stacks,
        observer: Observer {
            share: tally.recording_ns as f64 / wall,
            watcher_share: tally.watcher_ns as f64 / wall,
            recorded_share: tally.recorded.wall as f64 / wall,
            looks: tally.looks,
            samples: tally.mix.total().samples,
            switches: tally.switches,
            lost: tally.lost,
        },
        threads: threads(tally, rules, runs),
        processes: processes(first, rules),
        counters: counters(tally, runs),
        nameless_share: tally.mix.nameless(),
        notes: notes(first),
    }
}

fn notes(first: &Watched) -> Vec<String> {
    let mut notes = Vec::new();
    if first.refused {
        notes.push(
            "What some threads waited for could not be read in /proc/PID/task/TID/syscall (another user's process, or \
             kernel.yama.ptrace_scope); the kernel function they waited in was used where it could be read."
                .to_owned(),
        );
    }
    if first.overflown {
        notes.push("There were more threads than are followed.".to_owned());
    }
    notes
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

fn threads(tally: &Tally, rules: &Rules, runs: f64) -> Threads {
    let cpu = tally.usage.user_ns + tally.usage.system_ns;
    let running = tally.looked.running + tally.recorded.running;
    let at_once = tally.looked.thread_running + tally.recorded.thread_running;
    let of = |category| {
        let sums = [&tally.looked, &tally.recorded];
        let ns: u64 = sums
            .iter()
            .map(|sums| sums.thread_waits.of_category(category, rules))
            .sum();
        ns as f64 / 1e9 / runs
    };
    let mut waits: Vec<ThreadWait> = Category::ALL
        .into_iter()
        .map(|name| ThreadWait {
            name,
            seconds: of(name),
        })
        .filter(|wait| wait.seconds > 0.0)
        .collect();
    waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Threads {
        most: tally.most_threads,
        cpu_s: cpu as f64 / 1e9 / runs,
        parallelism: if running > 0 {
            at_once as f64 / running as f64
        } else {
            0.0
        },
        waits,
    }
}

fn processes(first: &Watched, rules: &Rules) -> Vec<Process> {
    let mut processes: Vec<Process> = first
        .processes
        .iter()
        .map(|(pid, seen)| {
            let about = first.about.get(pid).cloned().unwrap_or_default();
            let wall = (seen.to - seen.from).max(1) as f64;
            let mut waits: Vec<Part> = Category::ALL
                .into_iter()
                .map(|category| (category, seen.waits.of_category(category, rules)))
                .filter(|(_, ns)| *ns > 0)
                .map(|(category, ns)| Part {
                    name: category.name().to_owned(),
                    share: ns as f64 / wall,
                    seconds: seconds(ns),
                })
                .collect();
            waits.sort_by(|a, b| b.share.total_cmp(&a.share));
            Process {
                pid: *pid,
                parent: about.parent,
                name: about.name,
                wall_s: wall / 1e9,
                running: seen.busy as f64 / wall,
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
    let io = |field: fn(&crate::tally::Io) -> u64| usage.io.as_ref().map(|io| per(field(io)));
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
