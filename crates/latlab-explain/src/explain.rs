//! From a request to what is reported: how often the program runs, and which runs count.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::time::{SystemTime, UNIX_EPOCH};

use latlab_stages::{Listener, Table};
use rustix::fs::{FileType, fstat, tell};

use crate::account::first_run::{self, Run};
use crate::account::tally::Tally;
use crate::governor::Governor;
use crate::model::Explained;
use crate::present::assemble;
use crate::rules::Rules;
use crate::watch::costs;
use crate::watch::launch::{Signals, Streams};
use crate::watch::levels::{self, Levels};
use crate::watch::run::{self, Tracing, Watched};
use crate::watch::scan::started_with;
use crate::{Calibration, ExplainError, Request, Subject};

/// Scans may miss the processes that a program of less time leaves behind.
const SHORT_NS: u64 = 50_000_000;
/// Marks of stages that wait to be heard: more than a thread writes in the time between.
const MARKS: u32 = 1 << 17;

fn governor(levels: &Levels) -> Governor {
    Governor::with(levels.tracing.price, levels.tracing.period_ns(), levels.tracing.overhead)
}

/// Runs or watches what is asked for, and says where its wall time went. A process that runs already is
/// watched, and a program is run again, while `go_on` says so. Errors: the program cannot be started, there
/// is no such process, or the system refuses what is needed.
pub fn explain(request: &Request, go_on: impl FnMut() -> bool) -> Result<Explained, ExplainError> {
    let rules = Rules::built_in();
    let levels = levels::find(request.level, request.overhead, &request.kept);
    match &request.subject {
        Subject::Program(arguments) => {
            // Without it, stages go unheard.
            let listener = Listener::new(MARKS);
            let unheard = listener.as_ref().err();
            let unheard = unheard.map(|error| format!("No stages could be recorded: {error}."));
            let mut runs = Runs {
                arguments,
                rules,
                levels: &levels,
                // Before Python or anybody else can be asked to stop: what is sent to the watcher is the
                // program's.
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
            let watched = run::attach(*pid, *for_ns, rules, levels.tracing, &mut governor, go_on)?;
            let calibration = calibration(&levels);
            Ok(assemble(&watched.tally, &watched, &levels, rules, &calibration, Vec::new(), None))
        }
    }
}

/// What was kept, or what is measured now.
fn calibration(levels: &Levels) -> Calibration {
    let Tracing { recording, price, .. } = levels.tracing;
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
        run::run(
            self.arguments,
            streams,
            self.rules,
            &self.signals,
            self.levels.tracing,
            &mut self.governor,
            self.listener.as_mut(),
        )
    }

    fn first(&mut self) -> Result<Watched, ExplainError> {
        let mut first = self.once(Streams::Inherited)?;
        self.seen.push(Run::of(&first.tally));
        // One that is over at once may leave processes that no scan has met.
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
                return Ok(Some(format!("Only {} of {times} runs were possible: {why}.", self.seen.len())));
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
                return Ok(Some("the first run consumed its input, which is not a file; use < FILE"));
            }
        };
        let Ok(nowhere) = File::options().write(true).open("/dev/null") else {
            return Ok(Some("/dev/null cannot be opened to take the output of further runs"));
        };
        let again = self.once(Streams::Repeated(from, nowhere.as_raw_fd()))?;
        let ended = |watched: &Watched| watched.ended.map(|ended| (ended.exit_code, ended.signal));
        if self.signals.have_come() {
            return Ok(INTERRUPTED);
        }
        if ended(&again) != ended(first) {
            return Ok(Some("the next run ended differently from the first"));
        }
        self.seen.push(Run::of(&again.tally));
        self.after_first.add(&again.tally);
        self.second.get_or_insert(again);
        Ok(None)
    }
}
