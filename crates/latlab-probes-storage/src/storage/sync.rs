//! `storage.sync`: what it costs to make a write durable, and whether it can have become so.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Spec, Support, Tier,
};
use latlab_machine::Machine;
use latlab_record::{Header, Point, Profile, Record, Unit, binary_size};
use serde_json::{Value, json};

#[cfg_attr(target_os = "linux", path = "sync/linux.rs")]
#[cfg_attr(target_os = "macos", path = "sync/macos.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "macos")), path = "sync/elsewhere.rs")]
mod work;

/// The probe.
pub struct Durable;

static SPEC: Spec = Spec {
    id: "storage.sync",
    tier: Tier::Storage,
    title: "making a write durable",
    question: "How long does it take until a small write is on the disk, and is it really there?",
    method: "4 KiB are written and made durable, one write after the other, on files of the probe's own. Overwriting, growing and creating are different work for a file system, so each is measured: \
overwrite: blocks of a file that was written before, in order (what a database does with its log); append: the end of a file that grows, so its size and the place of the new block must be stored too; \
create: a new file is made, written and synced, and then the directory that names it, without which the file may be gone after a crash. \
How it is made durable: fsync, fdatasync (no times are stored), a file opened with O_DSYNC (each write returns when it is durable), and a write past the page cache (O_DIRECT) followed by fdatasync, which has only the device's cache left to flush.

A value is the whole operation. Its parts have distributions of their own: create (opening the new file), write, sync (the file's), directory (syncing it). Each write carries new incompressible bytes that are filled in before the first stamp. \
Files that were made stay until the end of the probe: deleting them in between slows down what follows. On a slow disk a block of samples ends early, but not before four operations.

Proof: after each block nothing of the file waits to be written (cachestat), the block written last is read back past the page cache and compared whole, and the kernel and the device under the file counted at least the bytes that were written.

The verdict: flash that has no power-protected cache needs 0.3 to 1 ms for a durable flush, a spinning disk about one rotation (4 to 8 ms). The fastest tenth of the syncs is judged, because a busy machine slows a sync down and nothing makes a medium faster. Below 150 us it is no flush to such a medium: a cache with a battery or capacitors took the bytes, or the host of a virtual machine did, and durability is not shown. \
Between 150 and 300 us, or where programs waited for CPUs in more than a tenth of the time and no sync was fast, nothing is said. The medians, the flushes that the device counted, its cache setting, the file system's options and the virtual machine are given as evidence; none of them proves that bytes survive a power failure. Only pulling the plug does.

Rust's and Python's fsync are the same call on Linux. On macOS they are not: fsync, which Python's os.fsync is, hands the bytes to the drive and does not have it flush its cache; F_FULLFSYNC, which Rust's sync_all is, does. \
There overwrite and append are measured with both, the bytes are read back, and nothing counts what reached the drive.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one write of 4 KiB with everything that makes it durable",
    needs: &["Linux or macOS", "a directory on a disk"],
    touches: &[
        "files of 4 MiB without a name, four laid out and those that grow, and small ones in one private folder, all removed at the end",
        "writes tens to hundreds of MB",
    ],
    saturates: false,
    operations: Operations::Disk,
};

/// Bytes of one write.
const BLOCK_BYTES: u64 = 4096;
/// The file whose blocks are overwritten, and the size at which a growing file is given up for a new one, bytes.
const FILE_BYTES: u64 = 4 << 20;

/// What its files take at least: one for each way to overwrite and to append, and as much again for those that grew to their size.
const ROOM_BYTES: u64 = 16 * FILE_BYTES;

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Overwrite,
    Append,
    Create,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Overwrite, Self::Append, Self::Create];

    fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::Create => "create",
        }
    }

    /// What the plan reckons for one: medians on a virtual disk whose flush takes 50 us, ns.
    fn reckoned_ns(self) -> f64 {
        match self {
            Self::Overwrite => 130e3,
            Self::Append => 250e3,
            Self::Create => 900e3,
        }
    }

    /// Blocks that are written for one, the file system's own among them: the file's node when it grows; a directory's block and a map of
    /// what is free when it is new.
    fn written_blocks(self) -> u64 {
        match self {
            Self::Overwrite => 1,
            Self::Append => 2,
            Self::Create => 4,
        }
    }
}

/// How it is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Fsync,
    Fdatasync,
    ODsync,
    DirectFdatasync,
    /// Of macOS alone (`work::WAYS`).
    FullFsync,
}

impl Way {
    const ALL: [Self; 5] =
        [Self::Fsync, Self::Fdatasync, Self::ODsync, Self::DirectFdatasync, Self::FullFsync];

    fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::ODsync => "o_dsync",
            Self::DirectFdatasync => "direct-fdatasync",
            Self::FullFsync => "f_fullfsync",
        }
    }
}

fn point(operation: Operation, way: Way) -> Point {
    Point {
        operation: Some(operation.name().to_owned()),
        sync: Some(way.name().to_owned()),
        ..Point::default()
    }
}

/// What a point asks for; nothing that this system has not.
fn asked(point: &Point) -> Option<(Operation, Way)> {
    offered(work::OPERATIONS, work::WAYS).into_iter().find(|(operation, way)| {
        point.operation.as_deref() == Some(operation.name()) && point.sync.as_deref() == Some(way.name())
    })
}

/// Of a system that has these operations and ways: one of each kind of work, and each way once, before all the others.
fn offered(operations: &[Operation], ways: &[Way]) -> Vec<(Operation, Way)> {
    let mut all = FIRST.to_vec();
    for operation in Operation::ALL {
        for way in Way::ALL {
            if !all.contains(&(operation, way)) {
                all.push((operation, way));
            }
        }
    }
    all.retain(|(operation, way)| operations.contains(operation) && ways.contains(way));
    all
}

const FIRST: [(Operation, Way); 7] = [
    (Operation::Overwrite, Way::Fdatasync),
    (Operation::Append, Way::Fdatasync),
    (Operation::Overwrite, Way::DirectFdatasync),
    (Operation::Overwrite, Way::Fsync),
    (Operation::Create, Way::Fsync),
    (Operation::Overwrite, Way::ODsync),
    (Operation::Overwrite, Way::FullFsync),
];

/// About the time of one block, s.
fn block_s(profile: Profile) -> f64 {
    match profile {
        Profile::Quick => 5e-3,
        Profile::Standard => 20e-3,
        Profile::Thorough => 60e-3,
    }
}

/// Blocks of a point in the quick profile at most: what may be written there is little.
const QUICK_BLOCKS: usize = 12;

/// Operations of one block.
fn operations(profile: Profile, operation: Operation) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let fitting = (block_s(profile) * 1e9 / operation.reckoned_ns()) as u64;
    fitting.max(8)
}

impl AnyProbe for Durable {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        match work::room(env) {
            Ok(bytes) if bytes < ROOM_BYTES => Support::No(format!(
                "needs {} for files of its own, and {} are left for them: 5 % of the file system, at least 1 GiB, stay free for others, and no file may be larger than ulimit -f says; free some space, or name another directory with --dir",
                binary_size(ROOM_BYTES),
                binary_size(bytes)
            )),
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        offered(work::OPERATIONS, work::WAYS)
            .into_iter()
            .map(|(operation, way)| {
                let operations = operations(env.settings.profile, operation);
                let planned = Planned::new(point(operation, way));
                let most_blocks =
                    if env.settings.profile == Profile::Quick { QUICK_BLOCKS } else { planned.most_blocks };
                let laid_out_bytes = if operation == Operation::Overwrite { FILE_BYTES } else { 0 };
                let rank = match FIRST.iter().position(|first| *first == (operation, way)) {
                    Some(0) => Rank::Headline,
                    Some(1..=2) => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                };
                Planned {
                    rank,
                    priority: u8::from(!FIRST.contains(&(operation, way))),
                    setup_s: 1e-5,
                    // What neighbours do to memory is not seen in hundreds of microseconds.
                    reach: Reach::Private,
                    most_blocks,
                    block_s: operations as f64 * operation.reckoned_ns() * 1.1 / 1e9,
                    laid_out_bytes,
                    written_bytes: operations * operation.written_blocks() * BLOCK_BYTES,
                    ..planned
                }
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        1 << 20
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, header: &Header, results: &[PointResult]) -> Vec<Record> {
        let Some(findings) = concluded(&header.machine, results) else {
            return Vec::new();
        };
        vec![SPEC.derived(findings)]
    }
}

/// A durable flush of flash without a protected cache takes at least so long, ns; a rotation takes longer. Measured devices: 0.3 to 1 ms.
const PLAUSIBLE_NS: f64 = 300e3;
/// Nothing that has to reach such a medium is done sooner, ns.
const ABSORBED_NS: f64 = 150e3;
/// Where a flush is sent with each sync, other programs' flushes may be merged with it, never so many.
const FEWEST_FLUSHES: f64 = 0.5;

const PLAUSIBLE: &str = "durable flush plausible";
const ABSORBED: &str = "absorbed by a protected cache or the host";
const UNDECIDED: &str = "undecided";
const NOT_SENT: &str = "no flush reached the device: durability not shown";

/// Above this share of the time in which somebody waited for a CPU, a slow sync may be the scheduler's: the flush is sent by a thread
/// of the kernel that waits with the others. A busy machine gave medians of 1.2 to 4 ms (one tick) for syncs that take 100 us.
const BUSY: f64 = 0.1;

/// What is known of one sync.
#[derive(Clone, Copy, Debug)]
struct Judged {
    /// The fastest tenth is at most so long, ns: a medium is never faster, whatever else slows it down.
    fast_ns: f64,
    /// For each sync, where the device has a cache to flush and counts.
    flushes: Option<f64>,
    /// Share of the time in which some program waited for a CPU, where the kernel tells.
    busy: Option<f64>,
}

fn verdict(judged: Judged) -> &'static str {
    if judged.flushes.is_some_and(|each| each < FEWEST_FLUSHES) {
        NOT_SENT
    } else if judged.fast_ns < ABSORBED_NS {
        ABSORBED
    } else if judged.fast_ns < PLAUSIBLE_NS || judged.busy.is_some_and(|share| share > BUSY) {
        UNDECIDED
    } else {
        PLAUSIBLE
    }
}

fn number(result: &PointResult, name: &str) -> Option<f64> {
    result.findings.as_ref()?.get(name)?.as_f64()
}

fn concluded(machine: &Machine, results: &[PointResult]) -> Option<Value> {
    let of = |operation, way| results.iter().find(|result| result.point == point(operation, way));
    let overwritten = |way| {
        let result = of(Operation::Overwrite, way)?;
        // With O_DSYNC the write is the sync.
        let sync_ns = number(result, "sync_p50_ns").unwrap_or(result.p50);
        Some((way, sync_ns, result))
    };
    let order = [Way::FullFsync, Way::Fdatasync, Way::Fsync, Way::ODsync];
    let (way, sync_ns, judged) = order.into_iter().find_map(overwritten)?;

    let fast_ns = number(judged, "sync_p10_ns").unwrap_or(sync_ns);
    let busy = number(judged, "cpu_pressure");
    let us = |ns: f64| ns / 1e3;
    let mut evidence = vec![format!(
        "{} after an overwrite of 4 KiB: median {:.0} us, fastest tenth {:.0} us (a durable flush of flash without a protected cache takes 300 us or more, of a spinning disk 4 ms; below {:.0} us neither has happened)",
        way.name(),
        us(sync_ns),
        us(fast_ns),
        us(ABSORBED_NS)
    )];
    if let Some((_, flush_ns, _)) = overwritten(Way::DirectFdatasync) {
        evidence.push(format!(
            "fdatasync after a direct write, which has nothing but the device's cache to flush: median {:.0} us",
            us(flush_ns)
        ));
    }
    let found = |name: &str| judged.findings.as_ref().and_then(|findings| findings.get(name));
    let cache = found("write_cache").and_then(Value::as_str);
    evidence.push(match cache {
        Some("write back") => {
            "the device says that it has a cache that needs flushes (write back)".to_owned()
        }
        Some(other) => format!("the device says that it needs no flushes (cache setting: {other})"),
        None => "the device does not say whether it has a cache".to_owned(),
    });
    let counted = number(judged, "flushes_per_operation");
    match counted {
        Some(each) => evidence.push(format!(
            "the device counted {each:.2} flushes for each {} (with those of other programs)",
            way.name()
        )),
        None => evidence.push("nothing here counts flushes".to_owned()),
    }
    evidence.extend(found("file_system").and_then(|text| text.as_str().map(str::to_owned)));
    evidence.push(guest(machine));

    if let Some(share) = busy.filter(|share| *share > BUSY) {
        evidence.push(format!(
            "some program waited for a CPU in {:.0} % of the time: slow syncs may be the scheduler's, so only fast ones say something",
            share * 100.0
        ));
    }
    // A device made of others passes flushes on and counts none itself.
    let own = found("made_of_others").and_then(Value::as_bool) == Some(false) && cache == Some("write back");
    let ratio = |operation| Some(of(operation, way)?.p50 / judged.p50);
    Some(json!({
        "verdict": verdict(Judged {
            fast_ns,
            flushes: counted.filter(|_| own),
            busy,
        }),
        "evidence": evidence,
        "judged_by": { "operation": Operation::Overwrite.name(), "sync": way.name(), "sync_p50_ns": sync_ns },
        "append_over_overwrite": ratio(Operation::Append),
        "create_over_overwrite": ratio(Operation::Create),
    }))
}

fn guest(machine: &Machine) -> String {
    let virtualisation = &machine.virtualisation;
    match virtualisation.guest {
        Some(true) => format!(
            "this is a virtual machine ({}): a flush may end in its host's memory",
            virtualisation.hypervisor.as_deref().unwrap_or("unknown hypervisor")
        ),
        Some(false) => "this is no virtual machine".to_owned(),
        None => "whether this is a virtual machine is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests;
