//! What `latlab explain` hands over, and what its `--json` writes. Owner of the names.

use latlab_record::EncodedHistogram;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::{Calibration, Category};

/// Major version: names keep their meaning within one.
pub const VERSION: u32 = 1;

/// Where the wall time of a program went.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explained {
    /// [`VERSION`].
    pub version: u32,
    /// Of the classification rules.
    pub rules_version: u32,
    /// What was run, and how it ended.
    pub program: Program,
    /// How often it was run; the figures are those of all runs together.
    pub runs: u32,
    /// Wall time, seconds: of one run, the mean of them when there were several.
    pub wall_s: f64,
    /// Shortest and longest run, seconds.
    pub wall_range_s: (f64, f64),
    /// How much could be seen: 1 the most, 3 the least.
    pub level: u8,
    /// The three levels, and why one is not there.
    pub levels: Vec<Rung>,
    /// The command that would raise the level; absent at the highest.
    pub raise: Option<String>,
    /// The ledger. Shares of wall time that sum to 1, largest first; `unexplained` always among them.
    pub categories: Vec<Row>,
    /// All user code, with what the kernel does for its allocator: of the whole more is known than of its
    /// rows.
    pub computing: Bounds,
    /// The accounting check.
    pub closure: Closure,
    /// What watching cost.
    pub observer: Observer,
    /// By which prices it was recorded, and by which costs the kernel's counts became time.
    pub calibration: Calibration,
    /// It was measured before this program.
    pub calibration_kept: bool,
    /// Threads and processors.
    pub threads: Threads,
    /// The processes of the program, longest running first; at most 64.
    pub processes: Vec<Process>,
    /// The kernel's own counts.
    pub counters: Counters,
    /// Share of the samples of user code whose function has no name; absent where none were taken.
    pub nameless_share: Option<f64>,
    /// The course of the first of the runs that were put together.
    pub timeline: Timeline,
    /// Which files it read and wrote, in the same run.
    pub files: Files,
    /// Locks at which its threads were met waiting in the same run, longest first; at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// Pauses of its programs of Java and Go in the same run, those that took longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pauses>,
    /// Its calls of the kernel, in the same run, all of them; absent where they were not recorded one by one.
    pub calls: Option<Calls>,
    /// What its end hung on, and who ended the waits of its threads, in the same run; absent where that was
    /// not recorded.
    pub path: Option<Path>,
    /// Sampled stacks, heaviest first; at most 2048.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Functions of the program and the kernel by their share of wall time on a CPU: the twenty heaviest, and
    /// the rest as one. They sum to the share of wall time in which a thread ran; none where nothing was
    /// sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Symbol>,
    /// The same time by source line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// How `symbols` came about, or why there are none.
    pub about_symbols: String,
    /// The same of `lines`.
    pub about_lines: String,
    /// How `path` came about, or why it is absent.
    pub about_path: String,
    /// Functions and lines of Python code; absent where no interpreter ran.
    pub python: Option<PythonCode>,
    /// The stages that the program marks, longest first, and last what lies outside them; none where it marks
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What the reader must know: whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A stage that the program marks. Figures are of one run, the mean where there were several.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its name; empty: outside all stages.
    pub name: String,
    /// Share of wall time in which it was the innermost stage of what the ledger is about; all stages sum to
    /// 1.
    pub share: f64,
    /// The same, seconds.
    pub seconds: f64,
    /// What that time was spent on, largest first; sums to
    /// `share`. Names are those of categories, or `on-cpu-or-ready` at level 3.
    pub categories: Vec<Part>,
    /// How often it ran.
    pub count: f64,
    /// Seconds in it and in stages within it, summed over threads.
    pub thread_s: f64,
    /// The same without stages within it.
    pub own_thread_s: f64,
    /// What it said it went through.
    pub bytes: Option<f64>,
    /// Shortest and longest time, nanoseconds.
    pub range_ns: (f64, f64),
    /// Every time of it, of all runs; absent outside of stages.
    pub histogram: Option<EncodedHistogram>,
    /// How often the program ended in it.
    pub cut: f64,
}

/// What was run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Program {
    /// Name and arguments as given; empty for a program that ran already.
    pub arguments: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// Its exit code; absent when a signal ended it, or it still runs.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes of it that went on when it had ended.
    pub left_running: u32,
}

/// One tracing level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rung {
    /// 1, 2 or 3.
    pub level: u8,
    /// What it sees.
    pub name: String,
    /// Whether it is to be had here.
    pub available: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a figure came about, from the surest to the weakest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the kernel's exact records or counters.
    Counted,
    /// From samples.
    #[default]
    Sampled,
    /// From counts and the cost of one, measured on this machine.
    Modelled,
}

/// One category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: Category,
    /// Of wall time, 0 to 1.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Seconds of `wall_s`.
    pub seconds: f64,
    /// How the share came about, where it has several sources the weakest.
    pub method: Method,
    /// The same by what of it; sums to the row. Empty when nothing is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Functions with their share of wall time, heaviest first; at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// For `user-cpu` and `kernel-cpu`: what may be in it, and how much at least and at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Within>,
}

/// A part of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What it was.
    pub name: String,
    /// Of wall time.
    pub share: f64,
    /// Seconds of `wall_s`.
    pub seconds: f64,
}

/// A function that samples fell in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Demangled; `[no name]` where the file has none.
    pub name: String,
    /// The file it is in, without its folder; `[kernel]`.
    pub object: String,
    /// Of wall time; all functions of a category together have no more than it has.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a row may contain that cannot be told apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Within {
    /// The category.
    pub name: Category,
    /// Share of wall time as far as counts tell; 0 where none does.
    pub share: f64,
    /// Share of wall time, at least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// Shares of wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// The check that every instant was given away once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Closure {
    /// Sum of all categories, before rounding, over wall time by the clock.
    pub sum: f64,
    /// Whether it is 1 within 0.005.
    pub holds: bool,
}

/// What watching cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Observer {
    /// Estimated share of the program's CPU time that recording took, in its own threads: records, and
    /// opening and closing events.
    pub share: f64,
    /// The share that recording may take; `None`: it may take whatever it takes.
    pub allowed_share: Option<f64>,
    /// CPU time of the watching process beside it while the program ran, all its threads, as a share of one
    /// CPU.
    pub watcher_share: f64,
    /// Share of wall time in which perf records were on; the rest was filled by scans.
    pub recorded_share: f64,
    /// Scans of the threads in /proc.
    #[serde(rename = "looks")]
    pub scans: u64,
    /// Samples taken on the CPU.
    pub samples: u64,
    /// Records of threads that left a CPU.
    pub switches: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
}

/// Threads and processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Threads {
    /// Most threads at once.
    pub most: u32,
    /// CPU time of all threads, seconds a run.
    pub cpu_s: f64,
    /// Threads running at once while any ran, mean.
    pub parallelism: f64,
    /// Seconds that all threads together waited, by category and run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<ThreadWait>,
}

/// Time that threads waited, added up over threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadWait {
    /// What for.
    pub name: Category,
    /// Thread-seconds a run.
    pub seconds: f64,
}

/// One process of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// Seconds from when it was first seen to when it was last seen.
    pub wall_s: f64,
    /// Share of its own time in which a thread of it ran or was ready to.
    pub running: f64,
    /// Share of its own time spent waiting, by category.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Part>,
}

/// The kernel's counts for the program and the children it waited for, per run; bytes and calls of all its
/// processes. Absent: could not be read.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// CPU time in user code, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub system_s: f64,
    /// Time ready to run without a CPU, summed over threads, seconds.
    pub run_queue_s: Option<f64>,
    /// Page faults served from memory.
    pub minor_faults: f64,
    /// Page faults that waited for a disk.
    pub major_faults: f64,
    /// Times a thread gave up its CPU to wait.
    pub voluntary_switches: f64,
    /// Times it was taken off.
    pub involuntary_switches: f64,
    /// Largest resident memory, bytes.
    pub max_resident_bytes: u64,
    /// Bytes that read calls returned.
    pub read_chars: Option<f64>,
    /// Read calls.
    pub read_calls: Option<f64>,
    /// Bytes handed to write calls.
    pub written_chars: Option<f64>,
    /// Write calls.
    pub write_calls: Option<f64>,
    /// Bytes that came from a disk.
    pub device_read_bytes: Option<f64>,
    /// Bytes that are to go to a disk.
    pub device_written_bytes: Option<f64>,
}

/// The course of one run. Times are seconds since it was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of one bin, seconds.
    pub bin_s: f64,
    /// The columns of `bins`.
    pub names: Vec<Category>,
    /// Seconds of each category in each bin; at most 512 bins. They sum to the ledger of this run.
    pub bins: Vec<Vec<f64>>,
    /// What threads do: names of categories, `on-cpu` where no sample says more, `on-cpu-or-ready` where it
    /// was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thread_names: Vec<String>,
    /// The busiest threads, in the order in which they began; at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Lane>,
    /// Threads that are not among them.
    pub threads_left_out: u64,
    /// Stretches of threads shorter than this are part of others, seconds; 0: all are there.
    pub grain_s: f64,
    /// When threads were in the stages that the program marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageSpans>,
}

/// What one thread did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its process.
    pub process: u32,
    /// Its id.
    pub thread: u32,
    /// In order of time; at most 8192 in all lanes.
    pub spans: Vec<Span>,
}

/// From when, for how long (seconds), what most of it was (a column of `thread_names`), and which share of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span(pub f64, pub f64, pub usize, pub f64);

/// When a thread was in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageSpans {
    /// The stage.
    pub name: String,
    /// Its process; 0: the program as a whole.
    pub process: u32,
    /// Its thread; 0: the process as a whole.
    pub thread: u32,
    /// From when, for how long, how often it ran, and for how long of it (seconds); at most 4096 in all rows.
    pub spans: Vec<(f64, f64, u64, f64)>,
}

/// Files, pipes and sockets of one run, as they were found open when the program was looked at: what was open
/// for less than the time between two scans may be missing, and so may the last bytes before a file was
/// closed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Files {
    /// Those with the most bytes first; at most 64.
    pub rows: Vec<File>,
    /// Scans of a process.
    #[serde(rename = "looks")]
    pub scans: u64,
    /// Files that are not among them.
    pub left_out: u64,
    /// Bytes of all rows as a share of what the kernel counted; absent where it counted nothing, or what
    /// could not be read.
    pub read_share: Option<f64>,
    /// The same for writing.
    pub written_share: Option<f64>,
    /// What the kernel counted, of all processes as far as they were looked at.
    pub counted_read_bytes: Option<f64>,
    /// The same for writing.
    pub counted_written_bytes: Option<f64>,
    /// The descriptors or counters of some process could not be read.
    pub refused: bool,
    /// Seconds from one scan of all processes to the next, the mean; absent where there was none.
    pub every_s: Option<f64>,
    /// The kernel did not say which descriptors share a position (`kcmp`): those that stood together were
    /// taken for one.
    pub by_position: bool,
}

/// One file of one process.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// Its path, both ends of a TCP connection, or what the kernel calls it: `pipe:[4711]`.
    pub name: String,
    /// `file`, `pipe`, `socket`, `terminal`, `device`.
    pub kind: String,
    /// The process.
    pub process: u32,
    /// Its name.
    pub process_name: String,
    /// Numbers that it had; at most 8.
    pub descriptors: Vec<u32>,
    /// How often it was found open anew.
    pub opened: u64,
    /// Times between two scans in which its position went back, or further than was read.
    pub seeks: u64,
    /// When it was first and last seen, seconds since the start.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// What was read; absent: nothing that was found.
    pub read: Option<Moved>,
    /// What was written.
    pub written: Option<Moved>,
    /// Of a TCP connection: its smoothed round trip when it was last looked at, seconds.
    pub round_trip_s: Option<f64>,
    /// Of a TCP connection: segments that were sent again.
    pub sent_again: Option<u64>,
}

/// A lock, by the address at which threads wait for it. Each scan stands for the time since the one before.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lock {
    /// The variable; absent where its file names none, or it is no variable of a file.
    pub name: Option<String>,
    /// The file it is in, without its folder; `[heap]`, `[stack]`, `memory`.
    pub object: String,
    /// Hexadecimal.
    pub address: String,
    /// Its process.
    pub process: u32,
    /// Time waited for it, of all threads together, seconds.
    pub waited_s: f64,
    /// Threads that were met waiting for it.
    pub threads: usize,
    /// Scans that met one.
    #[serde(rename = "looks")]
    pub scans: u64,
    /// Threads that had it meanwhile, longest first, at most 4; none where the lock does not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
}

/// How often and how long a runtime stopped its program, by its own counters or, of V8, by calls of two of
/// its functions.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// Its process.
    pub process: u32,
    /// `Java`, `Go` or `V8`.
    pub runtime: &'static str,
    /// As the virtual machine of Java calls them: `G1 young collection pauses`; or all stops of its threads.
    /// Of Go: `garbage collection pauses`, where all stops of one collection are one. Of V8 too.
    pub kind: String,
    /// Whether some are not in these numbers: the counters went with the process, and what came after the
    /// last scan of them is unknown; or the functions of V8 were not watched from the first instruction on,
    /// or records of them were lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_least: bool,
    /// How many.
    pub times: u64,
    /// All together, seconds.
    pub seconds: f64,
    /// The longest of those that a scan found to be over, seconds; absent where it found none.
    pub longest_s: Option<f64>,
}

/// What a program asked of the kernel, by the records of each call (`raw_syscalls`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Calls {
    /// Those that took longest first. A call that had not come back at the end is in none.
    pub of: Vec<Call>,
    /// The same by file, pipe, socket and device; at most 64, those that took longest first. What has no
    /// descriptor is in none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<CallsOn>,
    /// Files of processes that are not among them.
    pub left_out: usize,
    /// Programs of 32 bits ran; their calls are in no row.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_narrow: bool,
    /// How often recording ended and began again: calls of the moments between are in no row.
    pub restarts: u64,
    /// Records and descriptors that there was no room for: as many more calls may have begun or come back.
    pub lost: u64,
}

/// Calls of one kind, or on one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallSum {
    /// How many came back.
    pub times: u64,
    /// From the call to its return, waiting included, of all threads together, seconds.
    pub seconds: f64,
    /// The longest of them, seconds.
    pub longest_s: f64,
    /// The errors that they returned, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CallError>,
}

/// All calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// As `read`; the number where it has no name.
    pub name: String,
    /// How often, how long, and the errors.
    #[serde(flatten)]
    pub sum: CallSum,
}

/// All calls on one file, pipe, socket or device of one process.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallsOn {
    /// Its path, both ends of a TCP connection, or what the kernel calls it; absent: those of which no name
    /// is known, as what was closed before it was asked for.
    pub name: Option<String>,
    /// `file`, `pipe`, `socket`, `terminal`, `device`, `other`.
    pub kind: Option<String>,
    /// The process.
    pub process: u32,
    /// Its name.
    pub process_name: String,
    /// How often, how long, and the errors.
    #[serde(flatten)]
    pub sum: CallSum,
    /// What calls returned that read.
    pub read_bytes: u64,
    /// What calls returned that write.
    pub written_bytes: u64,
}

/// An error that calls returned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallError {
    /// As `ENOENT`; the number where it has no name.
    pub name: String,
    /// How often.
    pub times: u64,
}

/// What the end of a program hung on. Times are of what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Path {
    /// Of wall time.
    pub recorded_share: f64,
    /// The critical path by who did what, longest first; at most 16, the last of them the rest. They sum to
    /// what was recorded; none where the end of the program was not recorded, or it is still running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PathStep>,
    /// Waits that are over, by who ended them, longest first; at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedWait>,
}

/// Who did what on the critical path.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStep {
    /// Its process; absent where it is several of one name, or the rest.
    pub process: Option<u32>,
    /// The name of its thread; `others` for the rest.
    pub name: String,
    /// A category that it waited in, or `on-cpu`; absent for the rest.
    pub doing: Option<&'static str>,
    /// Of the time that was recorded.
    pub share: f64,
    /// Of the same, seconds.
    pub seconds: f64,
}

/// Waits of threads that another thread of the program ended, or none of it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedWait {
    /// The process that waited; absent where it is several of one name.
    pub process: Option<u32>,
    /// The name of its thread.
    pub name: String,
    /// What it waited for.
    pub category: Category,
    /// The process that ended it; absent where it is several of one name, or none of the program.
    pub by_process: Option<u32>,
    /// The name of its thread; absent where it was none of the program.
    pub by_name: Option<String>,
    /// Of all such threads together, seconds.
    pub seconds: f64,
    /// How often.
    pub count: u64,
}

/// A thread that had a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// Its id.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Of the time that others waited for the lock.
    pub share: f64,
}

/// Bytes read or written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// How many.
    pub bytes: f64,
    /// Of them: no position moved, and this is the only descriptor in which a thread was seen waiting.
    pub inferred: f64,
    /// Mean bytes of a call, in times in which the process used nothing else; absent: there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<f64>,
    /// Share of the bytes that moved in such times.
    pub block_known: f64,
    /// Times between two scans in which they moved, seconds; 0 where only one scan saw them.
    pub busy_s: f64,
}

/// A stack that was seen, outermost function first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stack {
    /// Its category.
    pub name: Category,
    /// Functions from the outermost to the running one.
    pub frames: Vec<String>,
    /// Of wall time.
    pub share: f64,
}

/// A function, by the samples that fell in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Symbol {
    /// Demangled; `[no name]` where the file has none, `[37 more]` for the rest.
    pub name: String,
    /// What of the time on a CPU it has.
    #[serde(flatten)]
    pub on_cpu: OnCpu,
}

/// What a function or a line has of the time on a CPU.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnCpu {
    /// The file it is in, without its folder; `[kernel]`; empty for the rest.
    pub object: String,
    /// What most of it counts as; absent where several functions are one row.
    pub category: Option<Category>,
    /// Where it counts as several: its share by category, largest first. They sum to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Counts>,
    /// Of wall time; of one category no more than that has.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of the time in which a thread ran.
    pub cpu_share: f64,
}

/// What of a function or a line counts as a category.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// The category.
    pub name: Category,
    /// Of wall time.
    pub share: f64,
}

/// A source line, by the samples that fell in its code.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The file as the compiler knew it; absent where nothing tells lines.
    pub file: Option<String>,
    /// Its line.
    pub line: Option<u32>,
    /// The function that most of the samples are in; where there is no line, what of it is meant.
    pub function: String,
    /// What of the time on a CPU it has.
    #[serde(flatten)]
    pub on_cpu: OnCpu,
}

/// Where a Python program was in its own code, by reading the interpreter's frames now and then.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PythonCode {
    /// Of the interpreters.
    pub versions: Vec<String>,
    /// Instants at which frames were read.
    pub reads: u64,
    /// Reads that contradicted themselves as the program went on meanwhile, and were left out.
    pub torn: u64,
    /// Share of wall time in which no Python function could be named: the interpreter starts, ends, or is not
    /// there.
    pub nameless_share: f64,
    /// Functions by their own share of wall time: the twenty heaviest, the rest as one, and the time outside
    /// Python code. They sum to 1.
    pub functions: Vec<PythonPlace>,
    /// The same by line.
    pub lines: Vec<PythonPlace>,
    /// Stacks, heaviest first; at most 512.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<PythonStack>,
    /// Why an interpreter could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A function or a line of Python code.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PythonPlace {
    /// The function's; in brackets: several, or none.
    pub name: String,
    /// The file as the interpreter knows it.
    pub file: Option<String>,
    /// Absent for functions.
    pub line: Option<u32>,
    /// Of wall time, itself, with what it calls that is not Python.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of wall time, with the Python functions that it calls.
    pub within: f64,
    /// Of the time in which the interpreter's lock was held or a thread was on a CPU, or ready for one.
    pub busy_share: f64,
}

/// A stack of Python functions, outermost first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PythonStack {
    /// Functions from the outermost to the running one.
    pub frames: Vec<String>,
    /// Of wall time.
    pub share: f64,
    /// Of it, on a CPU.
    pub running: f64,
}
