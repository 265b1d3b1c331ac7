//! From a request to the ledger: runs, levels, and what is told of them.

use super::launch::{Signals, Streams};
use super::levels::{self, Levels};
use super::watch::{self, Watched};
use super::{costs, now_ns};
use latlab_stages::{Heard, Listener, StageRow};

use crate::by_stage::{self, Spent};
use crate::costs::Costs;
use crate::estimate;
use crate::model::{
    self, Counters, Explained, Method, Observer, Part, Process, Program, Stage, ThreadWait, Threads,
};
use crate::rules::Rules;
use crate::tally::Tally;
use crate::{Category, ExplainError, Progress, Request, Subject};

const MOST_LISTED: usize = 64;
/// A program that is over sooner is run again, unless it is said how often.
const SHORT_NS: u64 = 50_000_000;
/// Until each share is known to this, half the width of its interval.
const KNOWN: f64 = 0.02;
/// Or for this long.
const REPEAT_FOR_NS: u64 = 10_000_000_000;
/// Marks of stages that wait to be heard: more than a thread writes in the time between.
const MARKS: u32 = 1 << 17;
const MOST_RUNS: u32 = 10_000;

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
    let levels = levels::find(request.level);
    match &request.subject {
        Subject::Program(arguments) => {
            let mut runs = Runs {
                arguments,
                rules,
                levels: &levels,
                // Before Python or anybody else can be asked to stop: what is sent to the watcher is the program's.
                signals: Signals::hand_on(),
                stdin: Stdin::now(),
                tally: Tally::default(),
                // Without memory for it, stages go unheard.
                listener: Listener::new(MARKS).ok(),
            };
            let first = runs.first()?;
            let costs = costs::measure();
            match request.runs {
                Some(times) => runs.up_to(times, &first)?,
                None => runs.until_known(&first, &costs, &mut told)?,
            }
            let words = arguments
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let heard = runs.listener.as_ref().map(Listener::heard);
            Ok(assemble(
                &runs.tally,
                &first,
                &levels,
                rules,
                &costs,
                words,
                heard,
            ))
        }
        Subject::Running { pid, for_ns } => {
            let watched = watch::attach(*pid, *for_ns, rules, levels.sight, || told(&Progress::Watching))?;
            let costs = costs::measure();
            Ok(assemble(
                &watched.tally,
                &watched,
                &levels,
                rules,
                &costs,
                Vec::new(),
                None,
            ))
        }
    }
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
        // SAFETY: asks where the descriptor stands and what it is; changes nothing.
        unsafe {
            let at = libc::lseek(0, 0, libc::SEEK_CUR);
            let mut about: libc::stat = std::mem::zeroed();
            if libc::fstat(0, &raw mut about) != 0 {
                return Self::Nothing;
            }
            match about.st_mode & libc::S_IFMT {
                libc::S_IFREG if at >= 0 => Self::File(at),
                libc::S_IFCHR => Self::Nothing,
                _ => Self::Gone,
            }
        }
    }
}

struct Runs<'a> {
    arguments: &'a [std::ffi::OsString],
    rules: &'static Rules,
    levels: &'a Levels,
    signals: Signals,
    stdin: Stdin,
    tally: Tally,
    listener: Option<Listener>,
}

impl Runs<'_> {
    fn once(&mut self, streams: Streams) -> Result<Watched, ExplainError> {
        let watched = watch::run(
            self.arguments,
            streams,
            self.rules,
            &self.signals,
            self.levels.sight,
            self.listener.as_mut(),
        )?;
        self.tally.add(&watched.tally);
        Ok(watched)
    }

    fn first(&mut self) -> Result<Watched, ExplainError> {
        self.once(Streams::Inherited)
    }

    /// Runs it again, its output thrown away; whether it ended as the first time.
    fn again(&mut self, first: &Watched) -> Result<bool, ExplainError> {
        if self.signals.have_come() {
            return Ok(false);
        }
        let from = match self.stdin {
            Stdin::File(at) => Some(at),
            Stdin::Nothing => None,
            Stdin::Gone => return Ok(false),
        };
        let again = watch::run(
            self.arguments,
            Streams::Repeated(from),
            self.rules,
            &self.signals,
            self.levels.sight,
            self.listener.as_mut(),
        )?;
        let ended = |watched: &Watched| watched.ended.map(|ended| (ended.exit_code, ended.signal));
        let same = ended(&again) == ended(first);
        if same && !self.signals.have_come() {
            self.tally.add(&again.tally);
        }
        Ok(same && !self.signals.have_come())
    }

    fn up_to(&mut self, times: u32, first: &Watched) -> Result<(), ExplainError> {
        while self.tally.runs < times && self.again(first)? {}
        Ok(())
    }

    fn until_known(
        &mut self,
        first: &Watched,
        costs: &Costs,
        told: &mut impl FnMut(&Progress) -> bool,
    ) -> Result<(), ExplainError> {
        let ended = first.ended.unwrap_or_default();
        // A program that failed or was interrupted is not run again: it may go on for longer this time.
        let succeeded = ended.exit_code == Some(0) && !self.signals.have_come();
        let repeatable = succeeded && first.left_running == 0 && !matches!(self.stdin, Stdin::Gone);
        if self.tally.wall_ns >= SHORT_NS || !repeatable || self.is_known(costs) {
            return Ok(());
        }
        let go_on = told(&Progress::Repeating {
            wall_ns: self.tally.wall_ns,
            budget_ns: REPEAT_FOR_NS,
        });
        let until = now_ns() + REPEAT_FOR_NS;
        let mut next = 8;
        while go_on && self.tally.runs < MOST_RUNS && now_ns() < until && self.again(first)? {
            if self.tally.runs >= next {
                next = next * 5 / 4;
                if self.is_known(costs) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether more runs would say nothing more: what is modelled does not get better by them.
    fn is_known(&self, costs: &Costs) -> bool {
        let ledger = estimate::ledger(&self.tally, self.rules, costs);
        let open = |row: &model::Row| row.method != Method::Modelled && row.high - row.low > 2.0 * KNOWN;
        !ledger.rows.iter().any(open)
    }
}

fn assemble(
    tally: &Tally,
    first: &Watched,
    levels: &Levels,
    rules: &'static Rules,
    costs: &Costs,
    arguments: Vec<String>,
    heard: Option<Heard>,
) -> Explained {
    let ledger = estimate::ledger(tally, rules, costs);
    let heard = heard.unwrap_or_default();
    let recorded = tally.recorded.wall > 0;
    let level = if recorded { levels.level } else { 3 };
    let runs = f64::from(tally.runs.max(1));
    let wall = (tally.wall_ns as f64).max(1.0);
    Explained {
        version: model::VERSION,
        rules_version: rules.version(),
        program: Program {
            arguments,
            ..program(first)
        },
        runs: tally.runs,
        wall_s: wall / 1e9 / runs,
        wall_range_s: (seconds(tally.wall_range_ns.0), seconds(tally.wall_range_ns.1)),
        level,
        levels: levels.rungs.clone(),
        raise: levels.raise.clone(),
        stages: stages(tally, &ledger, rules, &heard),
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
        notes: notes(tally, first, &heard),
    }
}

fn notes(tally: &Tally, first: &Watched, heard: &Heard) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = &first.unrecorded {
        notes.push(format!(
            "Not everything could be recorded of this program, which was looked at instead: {reason}."
        ));
    }
    let recorded = tally.recorded.wall as f64 / (tally.wall_ns as f64).max(1.0);
    if tally.recorded.wall > 0 && recorded < 0.99 {
        notes.push(format!(
            "The program switches or faults so often that recording it all would have slowed it: {:.0} % of the time was recorded, in \
             slices; in between, its threads were looked at.",
            100.0 * recorded
        ));
    }
    if tally.lost > 0 {
        notes.push(format!(
            "{} records were lost, as the watcher did not get a CPU in time.",
            tally.lost
        ));
    }
    if heard.lost > 0 {
        notes.push(format!(
            "{} marks of stages were lost: they came faster than they could be read, and their stages are too short in the table.",
            heard.lost
        ));
    }
    if let Some(refused) = &heard.first_refused {
        notes.push(format!(
            "{} lines about stages were left out; the first: {refused}.",
            heard.refused
        ));
    }
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
                .map(|(spent, share)| Part {
                    name: match spent {
                        Spent::OnCpu => "on-cpu-or-ready".to_owned(),
                        Spent::On(category) => category.name().to_owned(),
                    },
                    share,
                    seconds: share * wall_s,
                })
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
    stages.sort_by(|a, b| {
        a.name
            .is_empty()
            .cmp(&b.name.is_empty())
            .then(b.share.total_cmp(&a.share))
    });
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
