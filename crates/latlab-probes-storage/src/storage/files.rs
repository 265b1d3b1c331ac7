//! `storage.files`: many small files against one large one.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Plan, Planned, PointResult, ProbeError, Rank, Spec, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Unit, binary_size};
use serde_json::{Value, json};

#[cfg_attr(target_os = "linux", path = "files/linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "files/elsewhere.rs")]
mod work;

/// The probe.
pub struct Files;

static SPEC: Spec = Spec {
    id: "storage.files",
    tier: Tier::Storage,
    title: "many small files against one large one",
    question: "What does it cost to keep the same bytes in a thousand files instead of one, and which step costs it?",
    method: "The same 10 MB as one file, as 1,000 files of 10 KB, and in the longer profiles in between. Each file is created, written and closed (and in one arm flushed with fsync), or opened, read and closed, as a program would do it, \
one file after the other; a value is one whole file, and each step has its own distribution. A block is one pass over the files; where that would take too long, over a part of them, which the record says. \
The steps of all files must add up to 95 % of the pass, which another clock times.

A benchmark that deletes its files and begins again measures its own shadow: file systems avoid what was just freed, and creating a file became up to 60 times slower that way. So every block has a fresh directory, nothing is removed while anything else is measured, \
and unlinking comes last, of files that earlier blocks left and that were flushed before. How far the later blocks lie from the earlier ones is given as drift, and said where it is more than a quarter and all later blocks lie on one side of all earlier ones.

The bytes are random, others for each block, and every file is read back and compared, outside the time. Files are given their contents as they come from a program, without preallocation. \
Without fsync most of a write's cost is still to come when the file is closed: the disk is reached later.

Warm reads come from the page cache: the kernel's count of bytes fetched from storage must not move; a pass in which it did, because the kernel had taken pages back, is taken again, at most eight times. For cold reads each file is flushed, its pages are dropped, and the kernel is asked whether they are gone; its map must show every byte written, and the kernel's count of bytes fetched must grow by all of them, and the count of the device under the files. \
That is data cold, metadata warm: names and inodes stay in memory. Making those cold empties the caches of the whole machine and is done only for root with --drop-caches.

The Python arm is the lesson's loop, open(name, \"wb\"), write, close, and back, in the interpreter that latlab runs in, on the same kind of files, its blocks between those of the native arm. It makes its names and cuts its data as a program does, and takes its own time stamps (0.2 us a file). \
Both use the same absolute paths, so the difference is Python's own, where it is larger than the ups and downs of the file system: its objects, its buffers, and the calls that it makes besides (fstat, ioctl, lseek at each open). It writes through a buffer: files below 8 KiB are handed to the kernel at close.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one file, all its steps",
    needs: &["a directory on a disk", "48 MiB of memory"],
    touches: &["files of 10 MB in all, some dozens of times, in a private folder that is removed at the end"],
    saturates: false,
    operations: Operations::Disk,
};

/// Of all files of a point together, bytes: decimal, as the lesson has it.
const TOTAL_BYTES: u64 = 10_000_000;
/// Held at once: the data, what is read back, and in Python a copy of the data and of one file.
const MEMORY_BYTES: u64 = 48 << 20;

/// Blocks of a round of what writes or removes: what a block wrote stays until the end, and disks wear, so none is taken again.
const BLOCKS: usize = 3;
/// Fewer blocks of a round are compared with nothing.
const LEAST_BLOCKS: usize = 2;

const ONE: u64 = 1;
const MANY: u64 = 1_000;
/// Numbers of files between and beyond, with the first profile that has them.
const SWEEP: [(u64, Profile); 3] =
    [(100, Profile::Standard), (10, Profile::Standard), (10_000, Profile::Thorough)];

const NATIVE: &str = "psync";
const PYTHON: &str = "python";

/// What is done to each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Write { sync: bool },
    ReadWarm,
    ReadCold,
    ReadMetadataCold,
    Stat,
    Rename,
    Unlink,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::Write { sync: false },
        Self::Write { sync: true },
        Self::ReadWarm,
        Self::ReadCold,
        Self::ReadMetadataCold,
        Self::Stat,
        Self::Rename,
        Self::Unlink,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Write { .. } => "write",
            Self::ReadWarm => "read-warm",
            Self::ReadCold => "read-cold",
            Self::ReadMetadataCold => "read-metadata-cold",
            Self::Stat => "stat",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
        }
    }

    fn of(point: &Point) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| {
            point.operation.as_deref() == Some(operation.name()) && point.sync.as_deref() == operation.sync()
        })
    }

    fn sync(self) -> Option<&'static str> {
        (self == Self::Write { sync: true }).then_some("fsync")
    }

    /// Files that one block takes of so many: all, unless that would take a profile's whole time.
    fn files_a_block(self, files: u64, profile: Profile) -> u64 {
        let most = match (profile, self) {
            (Profile::Quick, _) => 150,
            // A flush is a matter of 0.1 ms to 10 ms, and each of these flushes.
            (Profile::Standard, Self::Write { sync: true } | Self::Unlink) => 50,
            // All of them are removed at the end, which may take longer than making them.
            (Profile::Standard, Self::Write { sync: false }) | (Profile::Thorough, Self::Unlink) => 500,
            (Profile::Standard, Self::ReadCold | Self::ReadMetadataCold) => 250,
            (Profile::Standard | Profile::Thorough, _) => 1_000,
        };
        files.min(most)
    }

    /// Passes in one block. A single file gives one value a pass: reading it again costs little, writing it again costs its bytes.
    fn passes_a_block(self, files: u64) -> u64 {
        match self {
            Self::ReadWarm if files == ONE => 6,
            Self::ReadCold | Self::ReadMetadataCold if files == ONE => 2,
            // Half a millisecond: a thread that loses its CPU once would be all that is seen.
            Self::Stat => 3,
            _ => 1,
        }
    }

    /// Whether it leaves something on the file system that the next block meets.
    fn leaves_traces(self) -> bool {
        matches!(self, Self::Write { .. } | Self::Unlink)
    }

    /// Estimate for one file and for one byte, with what is done around the time; ns. From an ext4 file system on a virtual disk.
    fn estimate_ns(self) -> (f64, f64) {
        match self {
            Self::Write { sync: false } => (90e3, 3.0),
            Self::Write { sync: true } => (500e3, 4.0),
            Self::ReadWarm => (12e3, 1.0),
            Self::ReadCold | Self::ReadMetadataCold => (200e3, 4.0),
            Self::Stat => (3e3, 0.0),
            Self::Rename => (60e3, 0.0),
            Self::Unlink => (300e3, 0.0),
        }
    }
}

fn point(files: u64, operation: Operation, engine: &str) -> Point {
    Point {
        files: Some(files),
        file_bytes: Some(TOTAL_BYTES / files),
        operation: Some(operation.name().to_owned()),
        sync: operation.sync().map(str::to_owned),
        engine: Some(engine.to_owned()),
        ..Point::default()
    }
}

fn planned(env: &Env, priority: u8, files: u64, operation: Operation, engine: &str) -> Planned {
    let profile = env.settings.profile;
    let at_once = operation.files_a_block(files, profile);
    let file_bytes = TOTAL_BYTES / files;
    let (each_ns, byte_ns) = operation.estimate_ns();
    let written_bytes = match operation {
        // Where no block left files enough before, unlinking writes its own.
        Operation::Write { .. } | Operation::Unlink => at_once * file_bytes,
        _ => 0,
    };
    let small = files == MANY && engine == NATIVE;
    Planned {
        rank: match operation {
            Operation::Write { sync: false } | Operation::ReadWarm if small => Rank::Headline,
            _ => Rank::Detail,
        },
        priority,
        setup_s: 1e-5,
        // The first visit lays out, and flushes, what later ones find.
        first_s: match operation {
            Operation::ReadWarm | Operation::ReadCold => {
                (operation.files_a_block(files, profile) as f64) * (1e-4 + file_bytes as f64 * 2e-9)
            }
            _ => 0.0,
        },
        block_s: (at_once * operation.passes_a_block(files)) as f64 * (each_ns + file_bytes as f64 * byte_ns)
            / 1e9,
        written_bytes,
        // What a block wrote stays until the end, and disks wear: no more than a record needs.
        most_blocks: if operation.leaves_traces() { BLOCKS } else { usize::MAX },
        ..Planned::new(point(files, operation, engine))
    }
}

/// What it would like to measure, most important first.
fn points(env: &Env) -> Vec<Planned> {
    let write = Operation::Write { sync: false };
    let quick = env.settings.profile == Profile::Quick;
    let thorough = env.settings.profile == Profile::Thorough;
    let python = env.interpreter.is_some();
    let mut points = Vec::new();
    let mut add = |priority, files, operation, engine| {
        if engine == NATIVE || python {
            points.push(planned(env, priority, files, operation, engine));
        }
    };
    for operation in [write, Operation::ReadWarm] {
        for files in [MANY, ONE] {
            add(0, files, operation, NATIVE);
        }
    }
    add(0, MANY, write, PYTHON);
    add(0, MANY, Operation::ReadWarm, PYTHON);
    add(0, ONE, Operation::ReadWarm, PYTHON);
    if quick {
        // Another 60 MB, of the little that a quick run may write.
        add(3, MANY, Operation::Stat, NATIVE);
        return points;
    }
    add(0, ONE, write, PYTHON);
    for files in [MANY, ONE] {
        for engine in [NATIVE, PYTHON] {
            add(1, files, Operation::ReadCold, engine);
        }
    }
    for files in [MANY, ONE] {
        add(2, files, Operation::Write { sync: true }, NATIVE);
    }
    for (files, profile) in SWEEP {
        if profile == Profile::Standard || thorough {
            add(3, files, write, NATIVE);
            add(3, files, Operation::ReadWarm, NATIVE);
            if thorough {
                add(3, files, Operation::ReadCold, NATIVE);
                add(4, files, write, PYTHON);
                add(4, files, Operation::ReadWarm, PYTHON);
            }
        }
    }
    if thorough {
        for files in [MANY, ONE] {
            add(4, files, Operation::Write { sync: true }, PYTHON);
        }
    }
    add(5, MANY, Operation::Stat, NATIVE);
    add(5, MANY, Operation::Rename, NATIVE);
    if env.settings.drop_caches {
        add(6, MANY, Operation::ReadMetadataCold, NATIVE);
        add(6, ONE, Operation::ReadMetadataCold, NATIVE);
    }
    // After everything that creates.
    add(7, MANY, Operation::Unlink, NATIVE);
    points
}

impl AnyProbe for Files {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn plan(&self, env: &Env) -> Plan<Point> {
        if let Some(reason) = super::refusal(env) {
            return Plan::no(reason);
        }
        if env.memory_bytes < MEMORY_BYTES {
            let (needed, usable) = (binary_size(MEMORY_BYTES), binary_size(env.memory_bytes));
            return Plan::no(format!("needs {needed} of memory; {usable} may be used here"));
        }
        let mut points = points(env);
        super::announce_laid_out(&mut points, |point| {
            let (operation, files) = (Operation::of(point)?, point.files?);
            let kept = Operation::ReadWarm.files_a_block(files, env.settings.profile) * point.file_bytes?;
            (!operation.leaves_traces()).then_some((point.file_bytes?, kept))
        });
        Plan::of(points).memory(MEMORY_BYTES)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let passes: Vec<Pass> = results.iter().filter_map(Pass::of).collect();
        let (ratios, shares) = (ratios(&passes), python_shares(&passes));
        if ratios.is_empty() && shares.is_empty() {
            return Vec::new();
        }
        let of_many: serde_json::Map<String, Value> = shares
            .iter()
            .filter(|share| share["files"] == json!(MANY) && share["decided"] == json!(true))
            .filter_map(|share| Some((share["operation"].as_str()?.to_owned(), share["share_ns"].clone())))
            .collect();
        let findings = json!({
            "ratios": ratios,
            "python_share_per_file_ns": of_many,
            "python_shares": shares,
        });
        vec![SPEC.derived(findings)]
    }
}

/// What was found at one point, for all its files.
struct Pass<'a> {
    files: u64,
    file_bytes: u64,
    /// With how it was made durable: `write fsync`.
    operation: String,
    engine: &'a str,
    total_s: f64,
    /// Mean of a file in each block, ns, ascending.
    blocks_ns: Vec<f64>,
}

impl<'a> Pass<'a> {
    fn of(result: &'a PointResult) -> Option<Self> {
        let (point, findings) = (&result.point, result.findings.as_ref()?);
        let mut blocks_ns: Vec<f64> =
            findings["block_means_ns"].as_array()?.iter().filter_map(Value::as_f64).collect();
        // A point for which the time ran out is compared with nothing: one block of four took six times as long as the others.
        if blocks_ns.len() < LEAST_BLOCKS {
            return None;
        }
        blocks_ns.sort_by(f64::total_cmp);
        let sync = point.sync.as_ref().map_or(String::new(), |sync| format!(" {sync}"));
        Some(Self {
            files: point.files?,
            file_bytes: point.file_bytes?,
            operation: format!("{}{sync}", point.operation.as_deref()?),
            engine: point.engine.as_deref()?,
            total_s: findings["total_s"].as_f64()?,
            blocks_ns,
        })
    }

    fn named(&self) -> Value {
        json!({ "files": self.files, "file_bytes": self.file_bytes, "total_s": self.total_s })
    }
}

/// Everything that has more than one file, against one.
fn ratios(passes: &[Pass]) -> Vec<Value> {
    let mut ratios = Vec::new();
    for many in passes.iter().filter(|pass| pass.files > ONE) {
        let one = passes
            .iter()
            .find(|one| one.files == ONE && one.operation == many.operation && one.engine == many.engine);
        if let Some(one) = one.filter(|one| one.total_s > 0.0) {
            ratios.push(json!({
                "one": one.named(),
                "many": many.named(),
                "operation": many.operation,
                "engine": many.engine,
                "ratio": many.total_s / one.total_s,
            }));
        }
    }
    ratios
}

/// What of each file's time in Python is Python's own: what the native arm does not need. Not decided where the file system's own ups and downs are larger.
fn python_shares(passes: &[Pass]) -> Vec<Value> {
    let mut shares = Vec::new();
    for python in passes.iter().filter(|pass| pass.engine == PYTHON) {
        let native = passes.iter().find(|native| {
            native.engine == NATIVE && native.files == python.files && native.operation == python.operation
        });
        if let Some(native) = native.filter(|_| python.total_s > 0.0) {
            let a_file = |pass: &Pass| pass.total_s * 1e9 / pass.files as f64;
            let (with, without) = (a_file(python), a_file(native));
            // The middle halves of the blocks lie apart, in the only order that makes sense.
            let quartile = |pass: &Pass, q| latlab_stats::quantile(&pass.blocks_ns, q);
            let decided = quartile(python, 0.25) > quartile(native, 0.75);
            shares.push(json!({
                "files": python.files,
                "file_bytes": python.file_bytes,
                "operation": python.operation,
                "python_ns": with,
                "native_ns": without,
                "share_ns": with - without,
                "share": (with - without) / with,
                "decided": decided,
            }));
        }
    }
    shares
}
