//! What `latlab explain` hands over, and what its `--json` writes. Owner of the names.

use latlab_record::EncodedHistogram;
use serde::{Deserialize, Serialize};

use crate::Category;

/// Major version: names keep their meaning within one.
pub const VERSION: u32 = 1;

/// Where the wall time of a program went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<String>,
    /// The ledger. Shares of wall time that sum to 1, largest first; `unexplained` always among them.
    pub categories: Vec<Row>,
    /// What a category costs at most.
    pub bounds: Vec<Bound>,
    /// Whether the books close.
    pub closure: Closure,
    /// What watching cost.
    pub observer: Observer,
    /// Threads and processors.
    pub threads: Threads,
    /// The processes of the program, longest running first; at most 64.
    pub processes: Vec<Process>,
    /// The kernel's own counts.
    pub counters: Counters,
    /// Share of the samples of user code whose function has no name; absent where none were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nameless_share: Option<f64>,
    /// The ledger over time.
    pub timeline: Timeline,
    /// Sampled stacks, heaviest first; at most 512.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// The stages that the program marks, longest first, and last what lies outside them; none where it marks nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// What the reader must know: whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A stage that the program marks. Figures are of one run, the mean where there were several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name; empty: outside all stages.
    pub name: String,
    /// Share of wall time in which it was the innermost stage of what the ledger is about; all stages sum to 1.
    pub share: f64,
    /// The same, seconds.
    pub seconds: f64,
    /// What that time was spent on, largest first; sums to `share`. Names are those of categories, or `on-cpu-or-ready` at level 3.
    pub categories: Vec<Part>,
    /// How often it ran.
    pub count: f64,
    /// Seconds in it and in stages within it, summed over threads.
    pub thread_s: f64,
    /// The same without stages within it.
    pub own_thread_s: f64,
    /// What it said it went through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Shortest and longest time, nanoseconds.
    pub range_ns: (f64, f64),
    /// Every time of it, of all runs; absent outside of stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogram>,
    /// How often the program ended in it.
    #[serde(default)]
    pub cut: f64,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Name and arguments as given; empty for a program that ran already.
    pub arguments: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// Its exit code; absent when a signal ended it, or it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Processes of it that went on when it had ended.
    #[serde(default)]
    pub left_running: u32,
}

/// One level of sight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// 1, 2 or 3.
    pub level: u8,
    /// What it sees.
    pub name: String,
    /// Whether it is to be had here.
    pub available: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a figure came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Functions with their share of wall time, heaviest first; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// For `user-cpu`: what may be in it, and how much at least and at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Within>,
}

/// A part of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it was.
    pub name: String,
    /// Of wall time.
    pub share: f64,
    /// Seconds of `wall_s`.
    pub seconds: f64,
}

/// A function that samples fell in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Demangled; `[no name]` where the file has none.
    pub name: String,
    /// The file it is in, without its folder; `[kernel]`.
    pub object: String,
    /// Of wall time.
    pub share: f64,
}

/// What a row may contain that cannot be told apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The category.
    pub name: Category,
    /// Share of wall time, at least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// What could be saved at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The category.
    pub name: Category,
    /// `free`: if it took no time at all.
    #[serde(rename = "if")]
    pub condition: String,
    /// Wall time would be at least this, seconds.
    pub wall_s_at_least: f64,
    /// Share of wall time saved at most.
    pub saved_at_most: f64,
}

/// The check that every instant was given away once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Closure {
    /// Sum of all categories, before rounding, over wall time by the clock.
    pub sum: f64,
    /// Whether it is 1 within 0.005.
    pub holds: bool,
}

/// What watching cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observer {
    /// Estimated share of the program's wall time: records made in its own threads.
    pub share: f64,
    /// CPU time of the watcher beside it, as a share of one CPU.
    pub watcher_share: f64,
    /// Share of wall time in which perf records were on; the rest was filled by looking.
    pub recorded_share: f64,
    /// Times the threads were looked at in /proc.
    pub looks: u64,
    /// Samples taken on the CPU.
    pub samples: u64,
    /// Records of threads that left a CPU.
    pub switches: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
}

/// Threads and processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Threads {
    /// Most threads at once.
    pub most: u32,
    /// CPU time of all threads, seconds a run.
    pub cpu_s: f64,
    /// Threads running at once while any ran, mean.
    pub parallelism: f64,
    /// Seconds that all threads together waited, by category and run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<ThreadWait>,
}

/// Time that threads waited, added up over threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// What for.
    pub name: Category,
    /// Thread-seconds a run.
    pub seconds: f64,
}

/// One process of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its name.
    pub name: String,
    /// Seconds between its first and last sight.
    pub wall_s: f64,
    /// Share of its own time in which a thread of it ran or was ready to.
    pub running: f64,
    /// Share of its own time spent waiting, by category.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Part>,
}

/// The kernel's counts for the program and the children it waited for, per run. Absent: could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// CPU time in user code, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub system_s: f64,
    /// Time ready to run without a CPU, summed over threads, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_chars: Option<f64>,
    /// Read calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_calls: Option<f64>,
    /// Bytes handed to write calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_chars: Option<f64>,
    /// Write calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_calls: Option<f64>,
    /// Bytes that came from a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_read_bytes: Option<f64>,
    /// Bytes that are to go to a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_written_bytes: Option<f64>,
}

/// The ledger over time: of the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of one bin, seconds.
    pub bin_s: f64,
    /// The columns of `bins`.
    pub names: Vec<Category>,
    /// Seconds of each category in each bin; at most 256 bins.
    pub bins: Vec<Vec<f64>>,
}

/// A stack that was seen, outermost function first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Its category.
    pub name: Category,
    /// Functions from the outermost to the running one.
    pub frames: Vec<String>,
    /// Of wall time.
    pub share: f64,
}
