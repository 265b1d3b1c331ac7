//! `storage.sync`: what it costs to make a write durable, and whether it can have become so.

use latlab_machine::Machine;
use latlab_probes_shared::prelude::*;
use strum::VariantArray as _;

use crate::disk::{DevicePart, Verified, answered_by_a_device, quantile};

#[cfg_attr(any(target_os = "linux", target_os = "macos"), path = "sync/session.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "macos")), path = "sync/elsewhere.rs")]
mod work;

/// The probe.
pub struct Durable;

/// Bytes of one write.
const BLOCK_BYTES: u64 = 4096;
/// The file whose blocks are overwritten, and the size at which a growing file is given up for a new one,
/// bytes.
const FILE_BYTES: u64 = 4 << 20;

/// What its files take at least: one for each way to overwrite and to append, and as much again for those
/// that grew to their size.
const ROOM_BYTES: u64 = 16 * FILE_BYTES;

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::VariantArray)]
enum Operation {
    Overwrite,
    Append,
    Create,
}

impl Operation {
    /// What the plan reckons for one: medians on a virtual disk whose flush takes 50 us, ns.
    fn reckoned_ns(self) -> f64 {
        match self {
            Self::Overwrite => 130e3,
            Self::Append => 250e3,
            Self::Create => 900e3,
        }
    }

    /// Blocks that are written for one, the file system's own among them: the file's node when it grows; a
    /// directory's block and a map of what is free when it is new.
    fn written_blocks(self) -> u64 {
        match self {
            Self::Overwrite => 1,
            Self::Append => 2,
            Self::Create => 4,
        }
    }
}

/// How it is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
enum Way {
    Fsync,
    Fdatasync,
    #[serde(rename = "o_dsync")]
    #[strum(serialize = "o_dsync")]
    ODsync,
    DirectFdatasync,
    /// Of macOS alone (`work::WAYS`).
    #[serde(rename = "f_fullfsync")]
    #[strum(serialize = "f_fullfsync")]
    FullFsync,
}

impl Way {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// A write of a kind, and how it is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Write {
    operation: Operation,
    sync: Way,
}

impl Write {
    const fn of(operation: Operation, sync: Way) -> Self {
        Self { operation, sync }
    }
}

/// Of a system that has these operations and ways: one of each kind of work, and each way once, before all
/// the others.
fn offered(operations: &[Operation], ways: &[Way]) -> Vec<Write> {
    let mut all = FIRST.to_vec();
    for operation in Operation::VARIANTS {
        let writes = Way::VARIANTS.iter().map(|way| Write::of(*operation, *way));
        all.extend(writes.filter(|write| !FIRST.contains(write)));
    }
    all.retain(|write| operations.contains(&write.operation) && ways.contains(&write.sync));
    all
}

const FIRST: [Write; 7] = [
    Write::of(Operation::Overwrite, Way::Fdatasync),
    Write::of(Operation::Append, Way::Fdatasync),
    Write::of(Operation::Overwrite, Way::DirectFdatasync),
    Write::of(Operation::Overwrite, Way::Fsync),
    Write::of(Operation::Create, Way::Fsync),
    Write::of(Operation::Overwrite, Way::ODsync),
    Write::of(Operation::Overwrite, Way::FullFsync),
];

/// About the time of one block, s.
fn block_s(profile: Profile) -> f64 {
    profile.of([5e-3, 20e-3, 60e-3])
}

/// A block ends early when it takes so many times what was planned, on a slow disk; but not before so many
/// operations.
fn patience_ns(profile: Profile) -> f64 {
    4.0 * block_s(profile) * 1e9
}
const FEWEST: u64 = 4;

/// Blocks of a point in the quick profile at most: what may be written there is little.
const QUICK_BLOCKS: usize = 12;

/// Operations of one block.
fn operations(profile: Profile, operation: Operation) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let fitting = (block_s(profile) * 1e9 / operation.reckoned_ns()) as u64;
    fitting.max(8)
}

/// What is known of the writes of a point.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Bytes that were written.
    bytes: u64,
    /// Median of the write alone, ns.
    write_p50_ns: Option<f64>,
    /// Median of the sync alone, ns; none where the write is the sync.
    sync_p50_ns: Option<f64>,
    /// The fastest tenth takes at most so long, ns. With `O_DSYNC` it is that of the write.
    sync_p10_ns: Option<f64>,
    /// What Linux tells besides.
    #[serde(flatten)]
    linux: Option<OnLinux>,
}

/// What the kernel and the device say of the writes; nothing where they do not tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct OnLinux {
    /// Share of the time in which some program waited for a CPU.
    cpu_pressure: Option<f64>,
    flushes_per_operation: Option<f64>,
    device_writes_per_operation: Option<f64>,
    /// `write back` needs flushes.
    write_cache: Option<String>,
    /// Whether the device is made of others: it passes flushes on and counts none itself.
    made_of_others: Option<bool>,
    /// Its kind, options and journal, in a sentence.
    file_system: Option<String>,
    device_time: Option<DevicePart>,
}

/// Whether a flush can have reached a medium, and what the kinds of work cost.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    verdict: Verdict,
    /// Sentences.
    evidence: Vec<String>,
    judged_by: JudgedBy,
    /// Ratios of medians.
    append_over_overwrite: Option<f64>,
    create_over_overwrite: Option<f64>,
}

/// The sync that the verdict is about.
#[derive(Serialize, JsonSchema)]
struct JudgedBy {
    operation: Operation,
    sync: Way,
    sync_p50_ns: f64,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Found {
    whole_ns: Vec<f64>,
    write_ns: Vec<f64>,
    sync_ns: Vec<f64>,
    /// Blocks whose last write was read back.
    read_back: Verified,
    /// What the system counted.
    counted: work::Counted,
}

impl Found {
    fn bytes(&self) -> u64 {
        self.whole_ns.len() as u64 * BLOCK_BYTES
    }

    fn contents_check(&self, read_back: &str) -> Check {
        let blocks = self.read_back.all;
        let held =
            format!("the last write of each of {blocks} blocks was {read_back} and is what was written");
        self.read_back.check("contents verified", held)
    }

    fn device_check(&self) -> Check {
        answered_by_a_device(quantile(&self.whole_ns, 0.5).unwrap_or(0.0))
    }

    fn details(&self, linux: Option<OnLinux>) -> Details {
        // With O_DSYNC the write is the sync.
        let synced = if self.sync_ns.is_empty() { &self.write_ns } else { &self.sync_ns };
        Details {
            bytes: self.bytes(),
            write_p50_ns: quantile(&self.write_ns, 0.5),
            sync_p50_ns: quantile(&self.sync_ns, 0.5),
            sync_p10_ns: quantile(synced, 0.1),
            linux,
        }
    }
}

impl Probe for Durable {
    type Point = Write;
    type Evidence = Found;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.sync",
        tier: Tier::Storage,
        title: "making a write durable",
        question: "How long does it take until a small write is on the disk, and is it really there?",
        method: "4 KiB are written and made durable, one write after the other, on files of the probe's \
            own. Overwriting, growing and creating are different work for a file system, so each is \
            measured: \
overwrite: blocks of a file that was written before, sequentially (as a database does with its log); \
append: the end of a file that grows, so its size and the place of the new block must be stored too; \
create: a new file is made, written and synced, and then the directory that names it, without which the \
file may be gone after a crash. \
How it is made durable: fsync, fdatasync (no times are stored), a file opened with O_DSYNC (each write \
returns when it is durable), and a write past the page cache (O_DIRECT) followed by fdatasync, which has \
only the device's cache left to flush.

A value is the whole operation. Its parts have distributions of their own: create (opening the new file), \
write, sync (the file's), directory (syncing it). Each write carries new incompressible bytes that are \
filled in before the first stamp. \
Files that were made stay until the end of the probe: deleting them in between slows down what follows. On \
a slow disk a block of samples ends early, but not before four operations.

Proof: after each block nothing of the file waits to be written (cachestat), the block written last is read \
back past the page cache and compared whole, and the kernel and the device under the file counted at least \
the bytes that were written.

The verdict: flash that has no power-protected cache needs 0.3 to 1 ms for a durable flush, a spinning disk \
about one rotation (4 to 8 ms). The fastest tenth of the syncs is judged, because a busy machine slows a \
sync down and nothing makes a medium faster. Below 150 µs it is not a flush to such a medium: a cache with \
a battery or capacitors took the bytes, or the host of a virtual machine did, and durability is not shown. \
Between 150 and 300 µs, or where programs waited for CPUs in more than a tenth of the time and no sync was \
fast, no verdict is given. The medians, the flushes that the device counted, its cache setting, the file \
system's options and the virtual machine are given as evidence; none of them proves that bytes survive a \
power failure. Only cutting the power does.

Rust's and Python's fsync are the same call on Linux. On macOS they are not: fsync, which Python's os.fsync \
is, hands the bytes to the drive and does not have it flush its cache; F_FULLFSYNC, which Rust's sync_all \
is, does. \
There overwrite and append are measured with both, the bytes are read back, and nothing counts what reached \
the drive.",
        method_version: 2,
        unit: Unit::Ns,
        convention: "one write of 4 KiB with everything that makes it durable",
        needs: &["Linux or macOS", "a directory on a disk"],
        touches: &[
            "files of 4 MiB without a name, four laid out and those that grow, and small ones in one \
                private folder, all removed at the end",
            "writes tens to hundreds of MB",
        ],
        saturates: false,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Write> {
        match work::room(env) {
            Ok(bytes) if bytes < ROOM_BYTES => Plan::no(format!(
                "needs {} for files of its own, and {} are left for them: 5 % of the file system, at least \
                    1 GiB, stay free for others, and no file may be larger than ulimit -f says; free some \
                    space, or name another directory with --dir",
                binary_size(ROOM_BYTES),
                binary_size(bytes)
            )),
            Ok(_) => {
                let writes = offered(work::OPERATIONS, work::WAYS);
                Plan::of(writes.into_iter().map(|write| planned(env, write)).collect()).memory(1 << 20)
            }
            Err(reason) => Plan::no(reason),
        }
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Write]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        concluded(&header.machine, figures)
    }
}

fn planned(env: &Env, write: Write) -> Planned<Write> {
    let profile = env.settings.profile;
    let Write { operation, .. } = write;
    let operations = operations(profile, operation);
    let planned = Planned::new(write);
    Planned {
        rank: match FIRST.iter().position(|first| *first == write) {
            Some(0) => Rank::Headline,
            Some(1..=2) => env.headline_but_quick(Rank::Detail),
            _ => Rank::Detail,
        },
        priority: u8::from(!FIRST.contains(&write)),
        setup_s: 1e-5,
        // What neighbours do to memory is not seen in hundreds of microseconds.
        cache_scope: CacheScope::Private,
        most_blocks: if profile == Profile::Quick { QUICK_BLOCKS } else { planned.most_blocks },
        block_s: operations as f64 * operation.reckoned_ns() * 1.1 / 1e9,
        laid_out_bytes: if operation == Operation::Overwrite { FILE_BYTES } else { 0 },
        written_bytes: operations * operation.written_blocks() * BLOCK_BYTES,
        ..planned
    }
}

/// A durable flush of flash without a protected cache takes at least so long, ns; a rotation takes longer.
/// Measured devices: 0.3 to 1 ms.
const PLAUSIBLE_NS: f64 = 300e3;
/// Nothing that has to reach such a medium is done sooner, ns.
const ABSORBED_NS: f64 = 150e3;
/// Where a flush is sent with each sync, other programs' flushes may be merged with it, never so many.
const FEWEST_FLUSHES: f64 = 0.5;

/// What may be said of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
enum Verdict {
    #[serde(rename = "durable flush plausible")]
    Plausible,
    #[serde(rename = "absorbed by a protected cache or the host")]
    Absorbed,
    #[serde(rename = "undecided")]
    Undecided,
    #[serde(rename = "no flush reached the device: durability not shown")]
    NotSent,
}

/// Above this share of the time in which somebody waited for a CPU, a slow sync may be the scheduler's: the
/// flush is sent by a thread of the kernel that waits with the others. A busy machine gave medians of 1.2 to
/// 4 ms (one tick) for syncs that take 100 us.
const BUSY: f64 = 0.1;

/// Of syncs whose fastest tenth is at most
/// `fast_ns` long: a medium is never faster, whatever else slows it down. `flushes` for each sync, where the
/// device has a cache to flush and counts; `busy`: share of the time in which some program waited for a CPU,
/// where the kernel tells.
fn verdict(fast_ns: f64, flushes: Option<f64>, busy: Option<f64>) -> Verdict {
    if flushes.is_some_and(|each| each < FEWEST_FLUSHES) {
        Verdict::NotSent
    } else if fast_ns < ABSORBED_NS {
        Verdict::Absorbed
    } else if fast_ns < PLAUSIBLE_NS || busy.is_some_and(|share| share > BUSY) {
        Verdict::Undecided
    } else {
        Verdict::Plausible
    }
}

fn concluded(machine: &Machine, figures: &[Figure<Durable>]) -> Option<Findings> {
    let of = |operation, way| figures.iter().find(|figure| figure.point == Write::of(operation, way));
    let overwritten = |way| {
        let figure = of(Operation::Overwrite, way)?;
        let details = figure.details.clone().unwrap_or_default();
        // With O_DSYNC the write is the sync.
        let sync_ns = details.sync_p50_ns.unwrap_or(figure.result.p50);
        Some((way, sync_ns, figure.result.p50, details))
    };
    let order = [Way::FullFsync, Way::Fdatasync, Way::Fsync, Way::ODsync];
    let (way, sync_ns, p50_ns, judged) = order.into_iter().find_map(overwritten)?;
    let fast_ns = judged.sync_p10_ns.unwrap_or(sync_ns);
    let reported = judged.linux.unwrap_or_default();
    let [median, tenth, least] = [sync_ns, fast_ns, ABSORBED_NS].map(|ns| ns / 1e3);
    let sync = way.name();
    let mut evidence = vec![format!(
        "{sync} after an overwrite of 4 KiB: median {median:.0} µs, fastest tenth {tenth:.0} µs (a durable \
            flush of flash without a protected cache takes 300 µs or more, of a spinning disk 4 ms; below \
            {least:.0} µs neither has happened)"
    )];
    if let Some((_, flush_ns, ..)) = overwritten(Way::DirectFdatasync) {
        evidence.push(format!(
            "fdatasync after a direct write, which has only the device's cache to flush: median {:.0} µs",
            flush_ns / 1e3
        ));
    }
    let cache = reported.write_cache.as_deref();
    evidence.push(match cache {
        Some("write back") => {
            "the device says that it has a cache that needs flushes (write back)".to_owned()
        }
        Some(other) => format!("the device says that it needs no flushes (cache setting: {other})"),
        None => "the device does not say whether it has a cache".to_owned(),
    });
    evidence.push(match reported.flushes_per_operation {
        Some(each) => {
            format!("the device counted {each:.2} flushes for each {sync} (with those of other programs)")
        }
        None => "nothing here counts flushes".to_owned(),
    });
    // A device made of others passes flushes on and counts none itself.
    let own = reported.made_of_others == Some(false) && cache == Some("write back");
    evidence.extend(reported.file_system);
    evidence.push(guest(machine));

    if let Some(share) = reported.cpu_pressure.filter(|share| *share > BUSY) {
        evidence.push(format!(
            "programs waited for a CPU {:.0} % of the time: slow syncs may be due to that, so only fast \
                ones are judged",
            share * 100.0
        ));
    }
    let ratio = |operation| Some(of(operation, way)?.result.p50 / p50_ns);
    Some(Findings {
        verdict: verdict(fast_ns, reported.flushes_per_operation.filter(|_| own), reported.cpu_pressure),
        evidence,
        judged_by: JudgedBy { operation: Operation::Overwrite, sync: way, sync_p50_ns: sync_ns },
        append_over_overwrite: ratio(Operation::Append),
        create_over_overwrite: ratio(Operation::Create),
    })
}

fn guest(machine: &Machine) -> String {
    match machine.virtualisation.guest {
        Some(true) => {
            let hypervisor = machine.virtualisation.hypervisor.as_deref().unwrap_or("unknown hypervisor");
            format!("this is a virtual machine ({hypervisor}): a flush may end in its host's memory")
        }
        Some(false) => "this is not a virtual machine".to_owned(),
        None => "whether this is a virtual machine is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests;
