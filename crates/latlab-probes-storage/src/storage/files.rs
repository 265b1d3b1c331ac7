//! `storage.files`: many small files against one large one.

use std::collections::BTreeMap;

use latlab_harness::PointFields as _;
use latlab_probes_shared::prelude::*;
use latlab_record::Point;

#[cfg_attr(target_os = "linux", path = "files/linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Files;

/// Of all files of a point together, bytes: decimal, as the lesson has it.
const TOTAL_BYTES: u64 = 10_000_000;
/// Held at once: the data, what is read back, and in Python a copy of the data and of one file.
const MEMORY_BYTES: u64 = 48 << 20;

/// Blocks of a round of what writes or removes: what a block wrote stays until the end, and disks wear, so
/// none is taken again.
const BLOCKS: usize = 3;
/// Fewer blocks of a round are compared with nothing.
const LEAST_BLOCKS: usize = 2;

const ONE: u64 = 1;
const MANY: u64 = 1_000;
/// Numbers of files between and beyond, with the first profile that has them.
const SWEEP: [(u64, Profile); 3] =
    [(100, Profile::Standard), (10, Profile::Standard), (10_000, Profile::Thorough)];

/// What is done to files of one size, and by which arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    files: u64,
    file_bytes: u64,
    operation: Operation,
    /// How each file that is written is made durable.
    sync: Option<Sync>,
    engine: Arm,
}

/// What is done to each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    Write,
    ReadWarm,
    ReadCold,
    ReadMetadataCold,
    Stat,
    Rename,
    Unlink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sync {
    Fsync,
}

/// Whose program does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Arm {
    /// The system calls that the work needs.
    Psync,
    /// The interpreter that latlab runs in.
    Python,
}

/// What the blocks of a point took, step by step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// What the steps of all files add up to, as a share of what another clock gave a pass.
    phases_share_of_wall: f64,
    /// Middle of the later blocks over the middle of the earlier ones; none of a single block.
    drift: Option<f64>,
    /// Mean of a file in each block, ns.
    block_means_ns: Vec<f64>,
    /// All files of the point, by the middle block, s.
    total_s: f64,
    /// A file, all its steps, ns.
    mean_ns: f64,
    phases: Vec<Phase>,
    /// Files that one block takes of all.
    files_a_block: u64,
}

/// A step of each file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Phase {
    name: String,
    mean_ns: f64,
}

/// What many files cost against one, and what of it is Python's.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    ratios: Vec<ManyOverOne>,
    /// By operation, what of a file's time is Python's own, of a thousand files and where that is decided;
    /// ns.
    python_share_per_file_ns: BTreeMap<String, f64>,
    python_shares: Vec<PythonShare>,
}

/// All files over one file of the same bytes.
#[derive(Serialize, JsonSchema)]
struct ManyOverOne {
    one: Named,
    many: Named,
    /// With how it was made durable: `write fsync`.
    operation: String,
    engine: Arm,
    ratio: f64,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct Named {
    files: u64,
    file_bytes: u64,
    /// All of them, s.
    total_s: f64,
}

/// What of each file's time in Python is Python's own.
#[derive(Serialize, JsonSchema)]
struct PythonShare {
    files: u64,
    file_bytes: u64,
    /// With how it was made durable: `write fsync`.
    operation: String,
    /// A file in Python, ns.
    python_ns: f64,
    /// A file without it, ns.
    native_ns: f64,
    /// The difference, ns.
    share_ns: f64,
    /// The difference over the time in Python.
    share: f64,
    /// Whether the middle halves of the blocks lie apart.
    decided: bool,
}

impl Task {
    fn new(files: u64, operation: Operation, engine: Arm) -> Self {
        Self { files, file_bytes: TOTAL_BYTES / files, operation, sync: None, engine }
    }

    /// The same with a flush of each file.
    fn flushed(self) -> Self {
        Self { sync: Some(Sync::Fsync), ..self }
    }

    /// Files that one block takes: all, unless that would take a profile's whole time.
    fn files_a_block(&self, profile: Profile) -> u64 {
        let most = match (profile, self.operation) {
            (Profile::Quick, _) => 150,
            // A flush is a matter of 0.1 ms to 10 ms, and each of these flushes.
            (Profile::Standard, Operation::Write) if self.sync.is_some() => 50,
            (Profile::Standard, Operation::Unlink) => 50,
            // All of them are removed at the end, which may take longer than making them.
            (Profile::Standard, Operation::Write) | (Profile::Thorough, Operation::Unlink) => 500,
            (Profile::Standard, Operation::ReadCold | Operation::ReadMetadataCold) => 250,
            (Profile::Standard | Profile::Thorough, _) => 1_000,
        };
        self.files.min(most)
    }

    /// Files that what reads, looks at and renames share: enough for warm reads, which take most.
    fn files_kept(&self, profile: Profile) -> u64 {
        Self { operation: Operation::ReadWarm, ..*self }.files_a_block(profile)
    }

    /// Passes in one block. A single file gives one value a pass: reading it again costs little, writing it
    /// again costs its bytes.
    fn passes_a_block(&self) -> u64 {
        match self.operation {
            Operation::ReadWarm if self.files == ONE => 6,
            Operation::ReadCold | Operation::ReadMetadataCold if self.files == ONE => 2,
            // Half a millisecond: a thread that loses its CPU once would be all that is seen.
            Operation::Stat => 3,
            _ => 1,
        }
    }

    /// Whether it leaves something on the file system that the next block meets.
    fn leaves_traces(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Unlink)
    }

    fn is_cold(&self) -> bool {
        matches!(self.operation, Operation::ReadCold | Operation::ReadMetadataCold)
    }

    /// Estimate for one file and for one byte, with what is done around the time; ns. From an ext4 file
    /// system on a virtual disk.
    fn estimate_ns(&self) -> (f64, f64) {
        match self.operation {
            Operation::Write if self.sync.is_some() => (500e3, 4.0),
            Operation::Write => (90e3, 3.0),
            Operation::ReadWarm => (12e3, 1.0),
            Operation::ReadCold | Operation::ReadMetadataCold => (200e3, 4.0),
            Operation::Stat => (3e3, 0.0),
            Operation::Rename => (60e3, 0.0),
            Operation::Unlink => (300e3, 0.0),
        }
    }

    /// With how it is made durable: `write fsync`.
    fn name(&self) -> String {
        let Point { operation, sync, .. } = self.to_point();
        operation.into_iter().chain(sync).collect::<Vec<_>>().join(" ")
    }
}

fn planned(env: &Env, priority: u8, task: Task) -> Planned<Task> {
    let profile = env.settings.profile;
    let Task { files, file_bytes, operation, sync, engine } = task;
    let at_once = task.files_a_block(profile);
    let (each_ns, byte_ns) = task.estimate_ns();
    let small = files == MANY && engine == Arm::Psync && sync.is_none();
    Planned {
        rank: match operation {
            Operation::Write | Operation::ReadWarm if small => Rank::Headline,
            _ => Rank::Detail,
        },
        priority,
        setup_s: 1e-5,
        // The first visit lays out, and flushes, what later ones find.
        first_s: match operation {
            Operation::ReadWarm | Operation::ReadCold => (at_once as f64) * (1e-4 + file_bytes as f64 * 2e-9),
            _ => 0.0,
        },
        block_s: (at_once * task.passes_a_block()) as f64 * (each_ns + file_bytes as f64 * byte_ns) / 1e9,
        // Where no block left files enough before, unlinking writes its own.
        written_bytes: if task.leaves_traces() { at_once * file_bytes } else { 0 },
        // What a block wrote stays until the end, and disks wear: no more than a record needs.
        most_blocks: if task.leaves_traces() { BLOCKS } else { usize::MAX },
        ..Planned::new(task)
    }
}

/// What it would like to measure, most important first.
fn points(env: &Env) -> Vec<Planned<Task>> {
    use Arm::{Psync, Python};
    use Operation::{ReadCold, ReadMetadataCold, ReadWarm, Rename, Stat, Unlink, Write};

    let quick = env.settings.profile == Profile::Quick;
    let thorough = env.settings.profile == Profile::Thorough;
    let python = env.interpreter.is_some();
    let mut points = Vec::new();
    let mut add = |priority, task: Task| {
        if task.engine == Psync || python {
            points.push(planned(env, priority, task));
        }
    };
    for operation in [Write, ReadWarm] {
        for files in [MANY, ONE] {
            add(0, Task::new(files, operation, Psync));
        }
    }
    for (files, operation) in [(MANY, Write), (MANY, ReadWarm), (ONE, ReadWarm)] {
        add(0, Task::new(files, operation, Python));
    }
    if quick {
        // Another 60 MB, of the little that a quick run may write.
        add(3, Task::new(MANY, Stat, Psync));
        return points;
    }
    add(0, Task::new(ONE, Write, Python));
    for files in [MANY, ONE] {
        for engine in [Psync, Python] {
            add(1, Task::new(files, ReadCold, engine));
        }
    }
    for files in [MANY, ONE] {
        add(2, Task::new(files, Write, Psync).flushed());
    }
    for (files, profile) in SWEEP {
        if profile == Profile::Standard || thorough {
            add(3, Task::new(files, Write, Psync));
            add(3, Task::new(files, ReadWarm, Psync));
            if thorough {
                add(3, Task::new(files, ReadCold, Psync));
                add(4, Task::new(files, Write, Python));
                add(4, Task::new(files, ReadWarm, Python));
            }
        }
    }
    if thorough {
        for files in [MANY, ONE] {
            add(4, Task::new(files, Write, Python).flushed());
        }
    }
    add(5, Task::new(MANY, Stat, Psync));
    add(5, Task::new(MANY, Rename, Psync));
    if env.settings.drop_caches {
        add(6, Task::new(MANY, ReadMetadataCold, Psync));
        add(6, Task::new(ONE, ReadMetadataCold, Psync));
    }
    // After everything that creates.
    add(7, Task::new(MANY, Unlink, Psync));
    points
}

impl Probe for Files {
    type Point = Task;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.files",
        tier: Tier::Storage,
        title: "many small files against one large one",
        question: "What does it cost to keep the same bytes in a thousand files instead of one, and which \
            step costs it?",
        method: "The same 10 MB as one file, as 1,000 files of 10 KB, and in the longer profiles in \
            between. Each file is created, written and closed (and in one variant flushed with fsync), or \
            opened, read and closed, as a program would do it, \
one file after the other; a value is one whole file, and each step has its own distribution. A block is one \
pass over the files; where that would take too long, over a part of them, which the record says. \
The steps of all files must add up to 95 % of the pass, which another clock times.

A benchmark that deletes its files and begins again affects its own result: file systems avoid what was \
just freed, and creating a file became up to 60 times slower that way. So every block has a fresh \
directory, which ext4 is asked to put where no others are (as chattr +T does for all directories of a \
folder), as rounds and runs before have removed theirs; \
nothing is removed while anything else is measured, and unlinking comes last, of files that earlier blocks \
left and that were flushed before. How far the later blocks lie from the earlier ones is given as drift, \
and reported where it is more than a quarter and all later blocks lie on one side of all earlier ones.

The bytes are random, others for each block, and every file is read back and compared, outside the time. \
Files are given their contents as they come from a program, without preallocation. \
Without fsync most of a write's cost is still to come when the file is closed: the disk is reached later.

Warm reads come from the page cache: the kernel's count of bytes fetched from storage must not move; a pass \
in which it did, because the kernel had reclaimed pages, is repeated, at most eight times. For cold reads \
each file is flushed, its pages are dropped, and the kernel is asked whether they are gone; its map must \
show every byte written, and the kernel's count of bytes fetched must grow by all of them, and the count of \
the device under the files. \
That is data cold, metadata warm: names and inodes stay in memory. Making those cold empties the caches of \
the whole machine and is done only for root with --drop-caches.

The Python variant is the lesson's loop, open(name, \"wb\"), write, close, and back, in the interpreter \
that latlab runs in, on the same kind of files, its blocks between those of the Rust variant. It makes its \
names and cuts its data as a program does, and takes its own time stamps (0.2 µs a file). \
Both use the same absolute paths, so the difference is Python's own, where it is larger than the variation \
of the file system: its objects, its buffers, and the calls that it makes besides (fstat, ioctl, lseek at \
each open). It writes through a buffer: files below 8 KiB are handed to the kernel at close.",
        method_version: 3,
        unit: Unit::Ns,
        convention: "one file, all its steps",
        needs: &["a directory on a disk", "48 MiB of memory"],
        touches: &[
            "files of 10 MB in all, some dozens of times, in a private folder that is removed at the \
            end",
        ],
        saturates: false,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Task> {
        if let Some(reason) = super::refusal(env).or_else(|| super::too_little_memory(env, MEMORY_BYTES)) {
            return Plan::no(reason);
        }
        let mut points = points(env);
        super::announce_laid_out(&mut points, |task| {
            let kept = task.files_kept(env.settings.profile) * task.file_bytes;
            (!task.leaves_traces()).then_some((task.file_bytes, kept))
        });
        Plan::of(points).memory(MEMORY_BYTES)
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Task]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let passes: Vec<Pass> = figures.iter().filter_map(Pass::of).collect();
        let (ratios, python_shares) = (ratios(&passes), python_shares(&passes));
        let of_many = python_shares.iter().filter(|share| share.files == MANY && share.decided);
        let python_share_per_file_ns = of_many.map(|own| (own.operation.clone(), own.share_ns)).collect();
        (!ratios.is_empty() || !python_shares.is_empty()).then_some(Findings {
            ratios,
            python_share_per_file_ns,
            python_shares,
        })
    }
}

/// What was found at one point, for all its files.
struct Pass {
    named: Named,
    operation: String,
    engine: Arm,
    /// Mean of a file in each block, ns, ascending.
    blocks_ns: Vec<f64>,
}

impl Pass {
    fn of(figure: &Figure<Files>) -> Option<Self> {
        let Task { files, file_bytes, engine, .. } = figure.point;
        let Details { block_means_ns: mut blocks_ns, total_s, .. } = figure.details.clone()?;
        // A point for which the time ran out is compared with nothing: one block of four took six times as
        // long as the others.
        if blocks_ns.len() < LEAST_BLOCKS {
            return None;
        }
        blocks_ns.sort_by(f64::total_cmp);
        let operation = figure.point.name();
        Some(Self { named: Named { files, file_bytes, total_s }, operation, engine, blocks_ns })
    }

    /// Mean of a file, ns.
    fn file_ns(&self) -> f64 {
        self.named.total_s * 1e9 / self.named.files as f64
    }

    fn quartile(&self, q: f64) -> f64 {
        latlab_stats::quantile(&self.blocks_ns, q)
    }
}

/// The one of so many files with the same operation.
fn find<'passes>(passes: &'passes [Pass], operation: &str, files: u64, engine: Arm) -> Option<&'passes Pass> {
    let is = |own: &&Pass| own.named.files == files && own.operation == operation && own.engine == engine;
    passes.iter().find(is)
}

/// Everything that has more than one file, against one.
fn ratios(passes: &[Pass]) -> Vec<ManyOverOne> {
    let ratio = |many: &Pass| {
        let Pass { named, operation, engine, .. } = many;
        let one = find(passes, operation, ONE, *engine)?.named;
        (named.files > ONE && one.total_s > 0.0).then(|| ManyOverOne {
            one,
            many: *named,
            operation: operation.clone(),
            engine: *engine,
            ratio: named.total_s / one.total_s,
        })
    };
    passes.iter().filter_map(ratio).collect()
}

/// What of each file's time in Python is Python's own: what the native arm does not need. Not decided where
/// the file system's own ups and downs are larger.
fn python_shares(passes: &[Pass]) -> Vec<PythonShare> {
    let share = |python: &Pass| {
        let Named { files, file_bytes, total_s } = python.named;
        let native = find(passes, &python.operation, files, Arm::Psync)?;
        let (python_ns, native_ns) = (python.file_ns(), native.file_ns());
        (python.engine == Arm::Python && total_s > 0.0).then(|| PythonShare {
            files,
            file_bytes,
            operation: python.operation.clone(),
            python_ns,
            native_ns,
            share_ns: python_ns - native_ns,
            share: (python_ns - native_ns) / python_ns,
            // The middle halves of the blocks lie apart, in the only order that makes sense.
            decided: python.quartile(0.25) > native.quartile(0.75),
        })
    };
    passes.iter().filter_map(share).collect()
}
