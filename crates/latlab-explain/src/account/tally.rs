//! What one or more runs of the program gave: sums that can be added up.

use crate::Category;
use crate::account::busy::places;
use crate::account::by_stage;
use crate::account::discards::Discards;
use crate::account::io::Io;
use crate::account::mappings::Mapped;
use crate::account::mix::Mix;
use crate::account::sweep::Sums;
use crate::account::tcp::Traffic;
use crate::account::unread::Unread;
use crate::account::weights::Unlike;
use crate::rules::Rules;

/// The kernel's counts for the program and the children that it waited for. `None`: could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU time in user code, nanoseconds, as the kernel divides it: by its timer tick.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Ready to run without a CPU, all threads.
    pub queue_ns: Option<u64>,
    /// See [`crate::model::Counters`] for these.
    pub minor_faults: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// Waits.
    pub voluntary_switches: u64,
    /// Preemptions.
    pub involuntary_switches: u64,
    /// Largest of the runs.
    pub max_resident_bytes: u64,
    /// `/proc/PID/io` of all processes.
    pub io: Option<Io>,
    /// Bytes of regular files among what was read and written: their positions have moved so far.
    pub file_chars: u64,
    /// What TCP sockets carried.
    pub traffic: Traffic,
    /// What may have gone to `/dev/null`.
    pub discards: Discards,
}

/// Run-queue delay of all threads, and what no counter knows of it, nanoseconds of thread time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "each figure says its unit")]
pub(crate) struct Delay {
    /// Counted while switches were recorded, of [`Usage::queue_ns`].
    pub recorded_ns: u64,
    /// At most so much more: threads ended so long after their counters were last read.
    pub unread_ns: u64,
    /// At most so much of what looks like running or ready was time in which the host ran others.
    pub stolen_ns: u64,
}

impl Delay {
    fn add(&mut self, other: &Self) {
        self.recorded_ns += other.recorded_ns;
        self.unread_ns += other.unread_ns;
        self.stolen_ns += other.stolen_ns;
    }
}

impl Usage {
    /// CPU time in all, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    fn add(&mut self, other: &Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.queue_ns = self.queue_ns.zip(other.queue_ns).map(|(a, b)| a + b);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.max_resident_bytes = self.max_resident_bytes.max(other.max_resident_bytes);
        self.io = self.io.zip(other.io).map(|(mut a, b)| {
            a.add(&b);
            a
        });
        self.file_chars += other.file_chars;
        self.traffic.add(&other.traffic);
        self.discards.add(&other.discards);
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Runs added up.
    pub runs: u32,
    /// Wall time by the clock, nanoseconds.
    pub wall_ns: u64,
    /// Shortest and longest.
    pub wall_range_ns: (u64, u64),
    /// Of it, until the program was loaded: known exactly, at every level.
    pub loading_ns: u64,
    /// Swept while threads were scanned.
    pub scanned: Sums,
    /// Swept from records.
    pub recorded: Sums,
    /// Recorded waits whose reason was read in time, and those whose was not.
    pub unread: Unread,
    /// What the samples on the CPU fell in.
    pub mix: Mix,
    /// Nanoseconds of wall time in which a thread ran that they stand for.
    pub sampled_ns: f64,
    /// Frames of Python interpreters.
    pub python: crate::account::python::Read,
    /// What they do not stand for, as nothing like it was recorded.
    pub unlike: Unlike,
    /// Whether samples were taken in the kernel, too.
    pub sees_kernel: bool,
    /// The kernel's counts.
    pub usage: Usage,
    /// How its run-queue delay came about.
    pub delay: Delay,
    /// CPUs that the program may run on.
    pub cpus: u32,
    /// Processes seen.
    pub processes: u64,
    /// Most threads at once.
    pub most_threads: u32,
    /// Scans of the threads.
    pub scans: u64,
    /// Records of threads leaving a CPU.
    pub switches: u64,
    /// Records lost.
    pub lost: u64,
    /// Which files the program had mapped.
    pub mapped: Mapped,
    /// Some names of functions would have taken too much memory or time to read.
    pub names_left_out: bool,
    /// By stages that the program marks.
    pub stages: by_stage::Sums,
    /// CPU time of the watcher.
    pub watcher_ns: u64,
    /// Time that recording took from the program, by its calibrated cost.
    pub recording_ns: u64,
}

impl Tally {
    /// Thread time in which processes were met ending: a wait in the ledger, and on a CPU.
    pub(crate) fn ending_ns(&self, rules: &Rules) -> f64 {
        let exit = rules.whole(Category::StartAndExit);
        (self.scanned.thread_waits.of(exit) + self.recorded.thread_waits.of(exit)) as f64
    }

    /// CPUs that threads ran on at once, at most.
    pub(crate) fn places(&self) -> f64 {
        f64::from(places(self.most_threads, self.cpus))
    }

    /// CPU time in all, without that of processes that were met ending.
    pub(crate) fn cpu_ns(&self, rules: &Rules) -> f64 {
        // What they took is in the kernel: at least the program's own code is left.
        (self.usage.cpu_ns() as f64 - self.ending_ns(rules)).max(self.usage.user_ns as f64)
    }

    /// Adds another run.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.runs == 0 {
            *self = other.clone();
            return;
        }
        self.runs += other.runs;
        self.wall_ns += other.wall_ns;
        self.wall_range_ns.0 = self.wall_range_ns.0.min(other.wall_range_ns.0);
        self.wall_range_ns.1 = self.wall_range_ns.1.max(other.wall_range_ns.1);
        self.loading_ns += other.loading_ns;
        self.scanned.add(&other.scanned);
        self.recorded.add(&other.recorded);
        self.unread.add(&other.unread);
        self.mix.add(&other.mix);
        self.sampled_ns += other.sampled_ns;
        self.unlike.add(&other.unlike);
        self.python.add(&other.python);
        self.usage.add(&other.usage);
        self.delay.add(&other.delay);
        self.cpus = self.cpus.max(other.cpus);
        self.processes += other.processes;
        self.most_threads = self.most_threads.max(other.most_threads);
        self.scans += other.scans;
        self.switches += other.switches;
        self.lost += other.lost;
        self.mapped.add(&other.mapped);
        self.names_left_out |= other.names_left_out;
        self.stages.add(&other.stages);
        self.watcher_ns += other.watcher_ns;
        self.recording_ns += other.recording_ns;
    }
}
