//! `storage.reread`: the same file read again and again, against its contents kept in memory.

use latlab_harness::{Env, Figure, Operations, Plan, Planned, Probe, ProbeError, Rank, Spec, Tier};
use latlab_probes_shared::result_at;
use latlab_record::{Header, Profile, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg_attr(target_os = "linux", path = "reread/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Reread;

/// Decimal, as the lesson has it.
const SIZES: [(u64, Profile); 4] = [
    (10_000_000, Profile::Quick),
    (1_000_000, Profile::Standard),
    (10_000, Profile::Standard),
    (100_000, Profile::Thorough),
];
const MEMORY_BYTES: u64 = SIZES[0].0 + (1 << 20);

/// Where the bytes of a file of this size come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    operation: Way,
    file_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Reread,
    Kept,
}

/// What one operation handled.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Handled {
    /// Size of the file.
    bytes: u64,
}

/// What reading again costs.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    ratios: Vec<OfSize>,
}

/// Medians of one size of file, and how many times the one is the other.
#[derive(Serialize, JsonSchema)]
struct OfSize {
    file_bytes: u64,
    reread_ns: f64,
    kept_ns: f64,
    ratio: f64,
}

impl Probe for Reread {
    type Point = Bytes;
    type Evidence = work::Evidence;
    type Details = Handled;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.reread",
        tier: Tier::Storage,
        title: "reading a file again against keeping it",
        question: "What does it cost to read the same file again and again instead of keeping what was read?",
        method: "A file of random bytes is written once, and read until the page cache holds all of it. \
            Then, one value each: \
it is opened, read as a whole into memory that is already there, closed, and its bytes are added up \
(reread); or the bytes of the last reading are added up where they are (kept). \
The adding is in both, because a program that reads wants the bytes; so the difference is the reading \
alone. Opening, reading, closing and adding have their own distributions.

The disk is not involved: the kernel's count of bytes fetched from storage must not move. This is the \
favourable case for reading again; a file that left the page cache in between costs what storage.files \
calls cold.

Both sums must be that of what was written, so neither can be left out. Memory that a program allocates for \
each reading costs page faults too (alloc.reuse).",
        method_version: 2,
        unit: Unit::Ns,
        convention: "one whole file, its bytes added up",
        needs: &["a directory on a disk"],
        touches: &["a file of up to 10 MB in a private folder that is removed at the end"],
        saturates: false,
        operations: Operations::Disk,
    };

    fn plan(&self, env: &Env) -> Plan<Bytes> {
        if let Some(reason) = super::refusal(env).or_else(|| super::too_little_memory(env, MEMORY_BYTES)) {
            return Plan::no(reason);
        }
        let sizes = SIZES.into_iter().filter(|(_, first)| first.nth() <= env.settings.profile.nth());
        let mut points: Vec<_> = sizes
            .flat_map(|(file_bytes, _)| {
                [Way::Reread, Way::Kept].map(|operation| Planned {
                    // What the page cache gives.
                    rank: Rank::Curve,
                    block_s: (readings(file_bytes) * file_bytes) as f64 / 8e9,
                    ..Planned::new(Bytes { operation, file_bytes })
                })
            })
            .collect();
        super::announce_laid_out(&mut points, |point| Some((point.file_bytes, point.file_bytes)));
        Plan::of(points).memory(MEMORY_BYTES)
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Bytes]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let p50 = |operation, file_bytes| Some(result_at(figures, &Bytes { operation, file_bytes })?.p50);
        let ratio = |(file_bytes, _)| {
            let (reread_ns, kept_ns) = (p50(Way::Reread, file_bytes)?, p50(Way::Kept, file_bytes)?);
            Some(OfSize { file_bytes, reread_ns, kept_ns, ratio: reread_ns / kept_ns })
        };
        let ratios: Vec<_> = SIZES.into_iter().filter_map(ratio).collect();
        (!ratios.is_empty()).then_some(Findings { ratios })
    }
}

/// Readings in one block: a few of a large file, some hundred of a small one.
fn readings(file_bytes: u64) -> u64 {
    (16_000_000 / file_bytes.max(1)).clamp(2, 200)
}
