//! `storage.steady`: one stream of blocks for as long as time and bytes permit, second by second, and whether
//! what it ends with may be called sustained.

use latlab_probes_shared::prelude::*;
use latlab_record::Settings;
use serde_json::Number;

use crate::disk::{self, Access, DIRECT, Engine, Way};

#[cfg_attr(target_os = "linux", path = "steady/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

mod series;
mod verdict;

/// The probe.
pub struct Steady;

const MIB: u64 = 1 << 20;
/// Beyond the half-bandwidth block of every disk met so far.
const BLOCK: u64 = MIB;
/// The longest block of samples, s: long enough that what is done between two of them does not matter, and
/// six of them are what a record needs.
const STRETCH_S: f64 = 1.0;
/// A longer budget of time for this probe alone makes the stretches longer: their number is bounded. Twice 24
/// of them, and what is around.
const STRETCHES_IN_A_BUDGET: f64 = 54.0;
/// As many as a record may have.
const MOST_BLOCKS: u64 = 24;
/// A whole run's other probes need the rest.
const SHARE: u64 = 8;

/// Whether nothing else was asked for, and this by its whole name.
fn alone(settings: &Settings) -> bool {
    settings.only.len() == 1 && super::asked_for(settings, Steady::SPEC.id)
}

/// The longest block of samples, s.
fn stretch_s(settings: &Settings) -> f64 {
    let given = settings.budget_s.filter(|_| alone(settings));
    given.map_or(STRETCH_S, |budget_s| (budget_s / STRETCHES_IN_A_BUDGET).max(STRETCH_S))
}

/// Bytes that the writing may take, whole stretches of them, and of one stretch; `None` when six are too
/// many.
fn written(env: &Env) -> Option<(u64, u64)> {
    let limit = env.disk.budget().limit_bytes();
    let left = limit.saturating_sub(disk::file_bytes(env));
    let share = if alone(&env.settings) { left } else { left.min(limit / SHARE) };
    let stretch = (share / MOST_BLOCKS / BLOCK * BLOCK).max(BLOCK);
    let stretches = (share / stretch).min(MOST_BLOCKS);
    (env.settings.file.is_none() && stretches >= 6).then_some((stretches * stretch, stretch))
}

/// Blocks of 1 MiB, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    operation: Way,
    block_bytes: u64,
    path: Access,
    engine: Engine,
}

/// How fast the stream was at what time, and what that lets one say.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// All bytes over the time of all transfers.
    bytes_per_s: f64,
    bytes: u64,
    /// Share of the wall time in which a transfer was under way.
    busy_share: f64,
    /// Length of a slice of time under way, s.
    slice_s: f64,
    /// Bandwidth of each slice, bytes a second.
    slices: Vec<f64>,
    /// The same of each second.
    seconds: Vec<f64>,
    /// Levels of bandwidth, one after the other.
    regimes: Vec<Level>,
    /// Whether it rises or falls all the while, which is no level.
    trend: bool,
    sustained: bool,
    /// A sentence: what that rests on, or why it is not.
    why: String,
    /// A sentence for each step down or up.
    steps: Vec<String>,
}

/// A level of bandwidth.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Level {
    /// Bytes moved before it, as they were written: a conclusion only hands them on.
    #[schemars(with = "f64")]
    from_bytes: Option<Number>,
    /// Seconds under way before it.
    from_s: f64,
    /// How long it was.
    seconds: f64,
    /// Its bytes over its time.
    bytes_per_s: f64,
}

/// Whether either stream may be called sustained.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    operations: Vec<OfStream>,
}

#[derive(Serialize, JsonSchema)]
struct OfStream {
    operation: Way,
    sustained: bool,
    /// A sentence.
    why: String,
    regimes: Vec<Level>,
}

impl Probe for Steady {
    type Point = Stream;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.steady",
        tier: Tier::Storage,
        title: "bandwidth second by second",
        question: "How fast is the disk after the first second, and does it stay that fast?",
        method: "One thread overwrites the test file from front to back, repeatedly, in blocks of 1 MiB \
            past the page cache (O_DIRECT), one system call after the other; then it reads it in the same \
            way. A value is the time of one block; slices are the bandwidth of each quarter of a second of \
            transfers, seconds of each second. \
Time between transfers (evidence, references) is not in them; busy_share says how much of the wall time the \
transfers fill, and what a drive does in its pauses it does there, too. \
It runs until its time or its bytes are used up, even when the interval is narrow.

Levels (regimes) are found in the slices by optimal partitioning (Jackson et al. 2005) of their logarithms, \
with the sum of distances to a level's median as cost and a penalty in units of the noise, widened where \
neighbours are alike; no level is shorter than a second, none differs by less than 10 % from the one beside \
it, \
and where a straight line is as good as steps it is a trend and has no levels. Of 300 simulated series that \
do not change, fewer than 1 % show a change when the noise is independent, 7 % when neighbouring slices \
correlate by 0.6. A level's bandwidth is its bytes over its time, stalls included.

It is called sustained only when at least 20 s were measured, the last level holds for at least 10 s and a \
third of all, rises or falls by no more than 10 % within itself and within the last third, and its five \
parts lie within 20 % of their mean (the bounds are those of SNIA's performance test specification for \
steady state, whose rounds take a minute each and whose preparation writes the drive twice over). \
Otherwise the reason is given instead. Even then it holds for these seconds and bytes only: caches of \
drives hold tens of GB, and credits of clouds last half an hour.

Each byte written is taken from the run's budget before, so on a fast disk the bytes end the writing: a \
whole thorough run leaves it an eighth of them, a run of this probe alone all that the test file does not \
need. `--only storage.steady --max-bytes 100GB --budget 120s` gives it more of both. What is written is \
what the file holds, bytes that cannot be compressed, computed ahead by a thread on another CPU where there \
is one. \
A cache below that holds the whole file answers from its second round on; then the bandwidth rises by a \
step there, and the finding says so. One block at a time may not keep all channels of a drive busy: \
storage.read.random and storage.write.random vary the queue depth. fio --rw=read --bs=1M --direct=1 \
--ioengine=psync --time_based --runtime=20 --write_bw_log=... --log_avg_msec=250 logs the same.",
        method_version: 2,
        unit: Unit::Ns,
        convention: "each byte read or written counts once",
        needs: &["a disk: no file system in memory", "direct I/O", "the thorough profile"],
        touches: &[
            "disk: an eighth of the bytes that the run may write, written into the test file (2 GiB); \
                alone, 12 GiB",
        ],
        saturates: true,
        operations: Operations::Disk,
    };

    fn wanted(&self, settings: &Settings) -> bool {
        settings.profile == Profile::Thorough || super::asked_for(settings, Self::SPEC.id)
    }

    fn plan(&self, env: &Env) -> Plan<Stream> {
        if env.settings.profile != Profile::Thorough {
            return Plan::no(
                "steady bandwidth takes time to confirm: measured only in the thorough profile (--profile \
                    thorough), without a short --budget",
            );
        }
        if env.settings.file.is_some() && disk::users_bytes(env) < BLOCK {
            return Plan::no(format!("the file (--file) is smaller than {}", binary_size(BLOCK)));
        }
        let plan = Plan::of(points(env)).memory(16 * BLOCK).test_file(disk::file_bytes(env));
        plan.cpus(if env.cpus.len() > 1 { 2 } else { 1 }).given(disk::support(env))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Stream]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let sustained = |figure: &Figure<Self>| {
            let Details { sustained, why, regimes, .. } = figure.details.clone()?;
            Some(OfStream { operation: figure.point.operation, sustained, why, regimes })
        };
        let operations: Vec<_> = figures.iter().filter_map(sustained).collect();
        (!operations.is_empty()).then_some(Findings { operations })
    }
}

fn points(env: &Env) -> Vec<Planned<Stream>> {
    let longest_s = stretch_s(&env.settings);
    let mut points = Vec::new();
    // Writing first: on a fast disk its bytes end before its time, and reading gets what is left.
    if let Some((bytes, stretch)) = written(env) {
        points.push(Planned {
            written_bytes: stretch,
            most_blocks: usize::try_from(bytes / stretch).unwrap_or(usize::MAX),
            // A GB/s is an everyday disk's; a slower one ends a stretch by its time.
            block_s: (stretch as f64 / 1e9).min(longest_s),
            ..planned(Way::Write, longest_s)
        });
    }
    points.push(Planned { group: 1, ..planned(Way::Read, longest_s) });
    points
}

fn planned(operation: Way, block_s: f64) -> Planned<Stream> {
    Planned {
        rank: Rank::Once,
        block_s,
        least_blocks: usize::MAX,
        ..Planned::new(Stream { operation, block_bytes: BLOCK, path: DIRECT, engine: Engine::Psync })
    }
}

#[cfg(test)]
mod tests;
