//! `storage.first_touch`: blocks of files that were there before, read for the first time by this run, and
//! again.

use latlab_probes_shared::prelude::*;
use latlab_record::Settings;

use crate::disk::{Access, COLD, DIRECT};

#[cfg_attr(target_os = "linux", path = "first_touch/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct FirstTouch;

/// Which reading of blocks of a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    operation: Nth,
    block_bytes: u64,
    path: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Nth {
    First,
    Second,
}

/// What the regions of a size of blocks have shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Of this reading.
    bytes_per_s: f64,
    /// Median over the regions of the first reading's time over the second's.
    ratio: Option<f64>,
    /// Its 95 % interval between regions; none of fewer than six.
    interval: Option<[f64; 2]>,
    /// The first reading's time over the second's, of all regions together.
    total_ratio: f64,
    regions: u64,
    /// Regions that were not read yet.
    left_regions: u64,
    left_bytes: u64,
}

/// What the first readings cost.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    ratios: Vec<OfSize>,
    /// What cannot be known.
    since: &'static str,
}

/// Of one size of blocks.
#[derive(Serialize, JsonSchema)]
struct OfSize {
    block_bytes: u64,
    ratio: f64,
    interval: Option<[f64; 2]>,
    regions: u64,
    total_ratio: f64,
    verdict: Verdict,
    /// A sentence.
    detail: String,
}

/// What a ratio with its interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
enum Verdict {
    #[serde(rename = "first reading costs more")]
    CostsMore,
    #[serde(rename = "alike")]
    Alike,
    #[serde(rename = "undecided")]
    Undecided,
}

/// Blocks, and how many of them are read in one region.
const SIZES: [(u64, u64); 2] = [(4096, 256), (1 << 20, 8)];
/// Regions of one size of blocks.
const MOST_REGIONS: u64 = 24;
/// Fewer are no record.
const LEAST_REGIONS: u64 = 6;
/// The first reading costs more when the whole interval is above this; less is what two readings differ by
/// anyway.
const MORE: f64 = 1.1;
/// They are alike when the whole interval is within this factor.
const ALIKE: f64 = 1.25;

/// What cannot be known.
const SINCE: &str = "first means first by latlab in this run: whether something else has read these blocks \
    since the machine was started is not known; where it has, both readings are equal";

/// What a directory holds for this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Survey {
    files: u64,
    regions: u64,
    /// Of all regions.
    bytes: u64,
    /// Files that were left out: with holes, in the page cache, not readable.
    left_out: u64,
    direct: bool,
}

impl Survey {
    /// The sizes of blocks for which there are regions enough, each with its number of regions.
    fn sizes(&self) -> Vec<(u64, u64)> {
        let sizes = if self.regions >= 2 * LEAST_REGIONS { SIZES.len() } else { 1 };
        let each = (self.regions / sizes as u64).min(MOST_REGIONS);
        let known = if each >= LEAST_REGIONS { &SIZES[..sizes] } else { &[] };
        known.iter().map(|(block_bytes, _)| (*block_bytes, each)).collect()
    }

    fn support(&self) -> Support {
        if self.sizes().is_empty() {
            return Support::No(format!(
                "the directory (--first-touch) has {} of {LEAST_REGIONS} regions of 2 to 16 MiB that could \
                    be read first: {} files, {} more left out (holes, already in the page cache, not \
                    readable)",
                self.regions, self.files, self.left_out
            ));
        }
        if !self.direct {
            let why = "no direct I/O there: read through the page cache, and evicted before each reading";
            return Support::Degraded(why.to_owned());
        }
        Support::Yes
    }

    fn points(&self) -> Vec<Planned<Reading>> {
        let path = if self.direct { DIRECT } else { COLD };
        let mut points = Vec::new();
        for (block_bytes, regions) in self.sizes() {
            for operation in [Nth::First, Nth::Second] {
                points.push(Planned {
                    rank: Rank::Once,
                    block_s: 0.05,
                    most_blocks: usize::try_from(regions).unwrap_or(usize::MAX),
                    least_blocks: usize::MAX,
                    // What is marked as disturbed is left out and cannot be repeated: a neighbour's use of
                    // the memory is no reason for that.
                    cache_scope: CacheScope::Private,
                    ..Planned::new(Reading { operation, block_bytes, path })
                });
            }
        }
        points
    }
}

/// Blocks read in a region of so many bytes.
fn blocks_of(block_bytes: u64, region_bytes: u64) -> u64 {
    let most = SIZES.iter().find(|(own, _)| *own == block_bytes).map_or(0, |(_, blocks)| *blocks);
    most.min(region_bytes / block_bytes.max(1))
}

impl Probe for FirstTouch {
    type Point = Reading;
    /// The two readings of a region are two points: what is known of them is the session's.
    type Evidence = ();
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "storage.first_touch",
        tier: Tier::Storage,
        title: "the first reading of a block against the second",
        question: "What does the first read of a block cost?",
        method: "Only when a directory is named (--first-touch DIR): disks of clouds, images of containers \
            and lazily restored snapshots fetch a block from far away when it is first read, which can be \
            measured only once on the same block. \
Regular files of at least 2 MiB in that directory and below are opened for reading only, never through a \
symbolic link, on its own file system only, and without noting the access where the system allows that \
(O_NOATIME). They are cut into regions of up to 16 MiB in random order; each block of samples takes a \
region that this run has not read yet, reads \
random blocks of it (256 of 4 KiB, or 8 of 1 MiB), and then the same blocks again in the same order. The \
two readings are two points, and each pair is one region apart from all others, because storage fetches \
megabytes at a time.

Reading is direct (O_DIRECT), so that the page cache of this machine is not involved; where that is not \
possible, the file is evicted from the page cache before each of the two readings, and the kernel is asked \
whether it is gone. Both readings must bring the same bytes, and the kernel must have counted them as \
fetched. Files with holes, and files of which more than a tenth is in the page cache (something has read \
them), are left out.

The ratio is the median over the regions of the first reading's time over the second's, with its \
distribution-free 95 % interval between regions (six at least). Medians of single blocks hide it: one block \
in a hundred waits for the fetch, and the others find what it brought; so the ratio is one of total times, \
and the tails are shown side by side.

First means first by latlab in this run. Whether anything else, or an earlier run, has read a block since \
the machine was started cannot be known; where it has, the two readings take equally long. Each region can \
be read for the first time only once; the record says how much is left.",
        method_version: 2,
        unit: Unit::Ns,
        convention: "each byte read counts once a reading",
        needs: &["a directory of files that nothing has read (--first-touch)", "the thorough profile"],
        touches: &[
            "files in the directory that was named: at most 216 MiB of them are read, twice; nothing \
            is written",
        ],
        saturates: false,
        operations: Operations::Disk,
    };

    fn wanted(&self, settings: &Settings) -> bool {
        settings.first_touch.is_some() || super::asked_for(settings, Self::SPEC.id)
    }

    fn plan(&self, env: &Env) -> Plan<Reading> {
        if env.settings.first_touch.is_none() {
            return Plan::no(
                "only where a directory with files that nothing has read yet is named: --first-touch DIR",
            );
        }
        if env.settings.profile != Profile::Thorough {
            return Plan::no(
                "first readings cannot be repeated, so they are taken only where there is time for all of \
                    them: in the thorough profile (--profile thorough)",
            );
        }
        #[cfg(target_os = "linux")]
        let survey = work::Pool::survey(env).map(|pool| pool.survey);
        #[cfg(not(target_os = "linux"))]
        let survey: Result<Survey, &str> = Err("measured on Linux only");
        match survey {
            Err(reason) => Plan::no(reason),
            Ok(survey) => Plan::of(survey.points()).memory(2 << 20).given(survey.support()),
        }
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Reading]) -> Result<Self::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let first = figures.iter().filter(|figure| figure.point.operation == Nth::First);
        let ratio = |figure: &Figure<Self>| {
            let Details { ratio, interval, total_ratio, regions, .. } = *figure.details.as_ref()?;
            let (ratio, block_bytes) = (ratio?, figure.point.block_bytes);
            let (verdict, detail) = judge(block_bytes, ratio, interval);
            Some(OfSize { block_bytes, ratio, interval, regions, total_ratio, verdict, detail })
        };
        let ratios: Vec<_> = first.filter_map(ratio).collect();
        (!ratios.is_empty()).then_some(Findings { ratios, since: SINCE })
    }
}

/// What a ratio with its interval says, and a sentence.
fn judge(block_bytes: u64, ratio: f64, interval: Option<[f64; 2]>) -> (Verdict, String) {
    let size = binary_size(block_bytes);
    let Some([low, high]) = interval else {
        let why = "as long the first time, from too few regions for an interval";
        return (Verdict::Undecided, format!("blocks of {size}: {ratio:.2} times {why}"));
    };
    let (verdict, why) = if low > MORE {
        let why = "the storage below fetches them on first access, or caches what was read";
        (Verdict::CostsMore, why)
    } else if low > 1.0 / ALIKE && high < ALIKE {
        let why = "nothing is fetched here, or they have been read since the machine was started";
        (Verdict::Alike, why)
    } else {
        (Verdict::Undecided, "the interval is too wide to decide")
    };
    let figures = format!("{ratio:.2} times ({low:.2} to {high:.2})");
    (verdict, format!("blocks of {size} take {figures} as long the first time: {why}"))
}

#[cfg(test)]
mod tests;
