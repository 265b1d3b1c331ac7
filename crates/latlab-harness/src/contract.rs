//! What a probe is.

use serde::{Deserialize, Serialize};

use latlab_record::{BlockSummary, Check, Header, Point, Profile, Rank, Reach, Record, Settings, Unit, Work};

use crate::causes::KnownCauses;
use crate::{Block, Env, RoundResult, Share};

/// Group of probes that share a quota of time and a section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The instrument itself.
    Clock,
    /// Caches and RAM.
    Memory,
    /// Virtual memory: faults and mappings.
    Vm,
    /// Allocators.
    Alloc,
    /// The interpreter that latlab runs in.
    Python,
    /// System calls, switches, sleeping and waking.
    Kernel,
    /// Disks and file systems.
    Storage,
    /// Sockets and what is behind them.
    Network,
}

impl Tier {
    /// The first part of the ids of its probes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Memory => "memory",
            Self::Vm => "vm",
            Self::Alloc => "alloc",
            Self::Python => "python",
            Self::Kernel => "kernel",
            Self::Storage => "storage",
            Self::Network => "network",
        }
    }
}

/// What a probe cannot do without, in words for `latlab list`.
pub type Needs = &'static [&'static str];

/// What a probe touches on the machine, in words for `latlab list`: `memory up to 1 GiB`.
pub type Touches = &'static [&'static str];

/// Everything that a person or a program wants to know of a probe before running it. `latlab list`,
/// the reference, the report's "how this was measured" and shell completion are made from it.
#[derive(Debug)]
pub struct Spec {
    /// Dotted, noun first, general to particular: `memory.load.dependent`.
    pub id: &'static str,
    /// Its group.
    pub tier: Tier,
    /// A few words.
    pub title: &'static str,
    /// The question that it answers, as a person would ask it.
    pub question: &'static str,
    /// How: paragraphs of prose, with what was avoided and why.
    pub method: &'static str,
    /// Raised whenever figures of the old and the new method are not comparable.
    pub method_version: u32,
    /// Unit of its values.
    pub unit: Unit,
    /// What one byte means, for rates; empty for latencies.
    pub convention: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// What it touches.
    pub touches: Touches,
    /// Whether it saturates a resource that other programs share (left out by `--gentle`).
    pub saturates: bool,
    /// What its single operations do by themselves: what may be watched beside them to find the causes of the slow ones.
    pub operations: Operations,
}

impl Spec {
    /// What the probe concludes from all of its records.
    #[must_use]
    pub fn derived(&self, findings: serde_json::Value) -> Record {
        Record::derived(self.id, self.method_version, self.unit, findings)
    }
}

/// Whether a probe can run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Yes,
    /// It can, with this loss.
    Degraded(String),
    /// It cannot, for this reason.
    No(String),
}

/// What the single operations of a probe do by themselves. It decides what can be a cause of a slow one, and what is cheap enough to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// None are timed one by one on this thread: only periods in their time stamps are looked for.
    Unwatched,
    /// They never enter the kernel: switches, faults and interrupts are all somebody else's.
    UserSpace,
    /// They are page faults, or make and unmake mappings. Faults are not recorded: each would take some 0.2 us longer.
    Faults,
    /// System calls, of which sleeping is part of the work in a block that waits ([`Block::set_waits`]). Their switches are too short for records
    /// (a round trip within one CPU took a third longer with them, and 17 % with events that recorded nothing): the thread's own counters are read
    /// after each operation.
    SystemCalls,
    /// System calls that wait for a disk: of blocks that wait one of four is recorded, for root with when devices were handed requests and had done
    /// them; in the others the thread's own counters are read after each operation. Interrupts are not recorded, because an answer is several of them.
    Disk,
}

/// Blocks of one point in one round at most: the raw window means are kept, and 24 blocks are 1,536 of them.
pub(crate) const MAX_BLOCKS: usize = 24;
/// Blocks that a point gets beyond those of its rank when all of these were disturbed.
const MORE_WHERE_DISTURBED: usize = 1;
/// Blocks at least of what is measured in one round only, with all of its time.
const LEAST_ONCE: usize = 6;

impl Operations {
    /// Whether interrupts are recorded beside them by tracepoints, where that is allowed: changing to other probes and back takes a second.
    #[must_use]
    pub fn are_traced(self) -> bool {
        matches!(self, Self::UserSpace | Self::Faults)
    }
}

/// A point that a probe would like to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Where.
    pub point: Point,
    /// In how many of a run's rounds it is measured.
    pub rank: Rank,
    /// 0 is measured first; within a priority the list's order says which are given up last.
    pub priority: u8,
    /// Estimated seconds to select it, before the first real visit tells.
    pub setup_s: f64,
    /// Estimated seconds that the first selection takes beyond that, for what later ones find: files that are written or brought into memory.
    pub first_s: f64,
    /// Estimated seconds for one block.
    pub block_s: f64,
    /// Bytes that its session writes to files for it before its first block.
    pub laid_out_bytes: u64,
    /// Bytes that each of its blocks writes to files.
    pub written_bytes: u64,
    /// Blocks of one round at most. For work of which each block uses something up, as bytes that may be written.
    pub most_blocks: usize,
    /// Blocks of one round at least: for work that is about how things go on, not about one median.
    pub least_blocks: usize,
    /// How far from the core its work reaches.
    pub reach: Reach,
    /// Points of one group are measured interleaved in one session; groups follow each other.
    pub group: u16,
}

impl Planned {
    /// A detail of priority 0 in group 0 that is cheap to select and has blocks of a few milliseconds.
    #[must_use]
    pub fn new(point: Point) -> Self {
        Self {
            point,
            rank: Rank::Detail,
            priority: 0,
            setup_s: 1e-3,
            first_s: 0.0,
            block_s: 3e-3,
            laid_out_bytes: 0,
            written_bytes: 0,
            most_blocks: MAX_BLOCKS,
            least_blocks: 0,
            reach: Reach::Shared,
            group: 0,
        }
    }

    /// Blocks of a round before which it has no record; other points do not get more of theirs until all have so many.
    #[must_use]
    pub fn least_blocks(&self) -> usize {
        let own = match self.rank {
            Rank::Headline | Rank::Curve | Rank::Detail => 1,
            Rank::Once => LEAST_ONCE.max(self.least_blocks),
        };
        own.min(self.most_blocks())
    }

    /// Blocks that a round gives it when there is time for all.
    #[must_use]
    pub fn wanted_blocks(&self) -> usize {
        let own = match self.rank {
            Rank::Headline | Rank::Curve => 2,
            Rank::Detail => 3,
            Rank::Once => MAX_BLOCKS,
        };
        own.max(self.least_blocks).min(self.most_blocks())
    }

    /// Blocks that it gets in one round at most: one more where all that it was to have were disturbed.
    #[must_use]
    pub fn round_blocks(&self) -> usize {
        (self.wanted_blocks() + MORE_WHERE_DISTURBED).min(self.most_blocks())
    }

    /// Bytes that it writes to files in one round at most.
    #[must_use]
    pub fn round_bytes(&self) -> u64 {
        self.laid_out_bytes.saturating_add(self.written_bytes.saturating_mul(self.round_blocks() as u64))
    }

    /// Bytes that it writes to files in a whole run at most.
    #[must_use]
    pub fn run_bytes(&self, profile: Profile) -> u64 {
        self.round_bytes().saturating_mul(u64::from(self.rank.rounds(profile.rounds())))
    }

    /// Blocks beyond which a round gives it none.
    #[must_use]
    pub fn most_blocks(&self) -> usize {
        self.most_blocks.clamp(1, MAX_BLOCKS)
    }

    /// Estimated seconds that it takes in a round.
    #[must_use]
    pub fn round_s(&self) -> f64 {
        self.first_s + self.setup_s + self.wanted_blocks() as f64 * self.block_s
    }
}

/// What was found at a point so far, for [`Probe::refine`] and [`Probe::conclude`].
#[derive(Clone, Debug)]
pub struct PointResult {
    /// Where.
    pub point: Point,
    /// Median of all undisturbed samples, in the probe's unit.
    pub p50: f64,
    /// 95 % interval of the median, when there are blocks enough.
    pub interval: Option<[f64; 2]>,
    /// Core cycles of the median, from each block's own frequency; latencies only.
    pub cycles: Option<f64>,
    /// Whether too few undisturbed blocks were left.
    pub disturbed: bool,
    /// What its record holds as findings.
    pub findings: Option<serde_json::Value>,
    /// What each round says alone; empty where the rounds were not folded.
    pub rounds: Vec<RoundResult>,
}

impl PointResult {
    /// Nothing but a median.
    #[must_use]
    pub fn new(point: Point, p50: f64) -> Self {
        Self {
            point,
            p50,
            interval: None,
            cycles: None,
            disturbed: false,
            findings: None,
            rounds: Vec::new(),
        }
    }

    /// What a figure or a line of one round says of its point, without its rounds. `None` of what has no figure, and of what is derived.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let summary = record.summary.as_ref()?;
        Some(Self {
            point: record.point.clone(),
            p50: summary.p50?,
            interval: summary.intervals.get("p50").copied(),
            cycles: cycles(&record.blocks),
            disturbed: record.flags.iter().any(|flag| flag == "disturbed"),
            findings: record.findings.clone(),
            rounds: Vec::new(),
        })
    }
}

/// Core cycles of the median operation, from each block's own frequency: of the undisturbed blocks where there are any.
fn cycles(blocks: &[BlockSummary]) -> Option<f64> {
    let all = blocks.iter().all(|block| block.disturbed);
    let mut cycles: Vec<f64> = blocks
        .iter()
        .filter(|block| all || !block.disturbed)
        .filter_map(|block| Some(block.p50 * block.core_ghz?))
        .collect();
    cycles.sort_by(f64::total_cmp);
    (!cycles.is_empty()).then(|| latlab_stats::quantile(&cycles, 0.5))
}

/// Why a probe could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The system refused a resource.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The work was not what it should have been.
    #[error("{0}")]
    Proof(String),
    /// A probe was asked for a point that it does not have: the one with this label.
    #[error("{0} is no point of this probe")]
    NoPoint(String),
    /// Anything else, as a sentence for the user.
    #[error("{0}")]
    Other(String),
}

impl ProbeError {
    /// The system's answer to the last call, with what was asked for.
    #[must_use]
    pub fn last_os_error(what: impl Into<String>) -> Self {
        Self::System { what: what.into(), source: std::io::Error::last_os_error() }
    }

    /// A point that lacks a field or has a value that the probe does not know.
    #[must_use]
    pub fn no_point(point: &Point) -> Self {
        Self::NoPoint(point.label())
    }
}

/// What a session says of the selected point after its blocks.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// Each proof of work.
    pub checks: Vec<Check>,
    /// Bytes, and their convention where it is not the probe's own; operations are counted by the harness.
    pub work: Work,
    /// What did the work.
    pub engine: Option<String>,
    /// Degradations and remarks.
    pub flags: Vec<String>,
    /// Details worth keeping with the record.
    pub findings: Option<serde_json::Value>,
    /// What its slow operations were kept by, where the session looked for that itself.
    pub causes: Option<KnownCauses>,
}

/// A probe: what it is, what it can measure here, and how.
pub trait Probe {
    /// Its description.
    fn spec(&self) -> &'static Spec;

    /// Whether these settings ask for it at all. A probe that is not wanted is in no plan and leaves no record.
    fn wanted(&self, _settings: &Settings) -> bool {
        true
    }

    /// Its seconds, where these settings make its work take other times than usual: a server far away. `None`: as the registry says.
    fn share(&self, _settings: &Settings) -> Option<Share> {
        None
    }

    /// Whether these settings make its work take so much longer than usual that it is given the time that the chosen probes leave over of the
    /// profile's: with a path between client and server each transfer waits for its round trips.
    fn takes_the_rest(&self, _settings: &Settings) -> bool {
        false
    }

    /// Whether it can run here.
    fn supports(&self, env: &Env) -> Support;

    /// What it would like to measure, most important first within a priority.
    fn points(&self, env: &Env) -> Vec<Planned>;

    /// Most memory that its session holds at once, bytes.
    fn memory_bytes(&self, env: &Env) -> u64;

    /// Most CPUs that it keeps busy at once.
    fn cpus(&self, _env: &Env) -> u32 {
        1
    }

    /// Size of the disk's common test file that it needs ([`Env::disk`]), bytes. The largest that any probe of a run asks for is laid out once, before
    /// the first of them and in time of its own, and announced apart from what points write. On a slow disk it may be smaller: a session looks at its size.
    fn test_file_bytes(&self, _env: &Env) -> u64 {
        0
    }

    /// Takes what a group of points needs. Dropping the session gives everything back.
    ///
    /// # Errors
    /// When the system refuses a resource; the points of the group are then recorded as failed.
    fn open<'env>(
        &'env self,
        env: &'env Env,
        group: &[Planned],
    ) -> Result<Box<dyn Session + 'env>, ProbeError>;

    /// Further points for the rounds to come, given what this one found: where there is a knee, more sizes around it. They are asked for after each
    /// round; those that are known already are not measured twice.
    fn refine(&self, _env: &Env, _results: &[PointResult]) -> Vec<Planned> {
        Vec::new()
    }

    /// What follows from the figures of all points together, as derived records. It looks at nothing else: a run may be concluded from on another
    /// machine, years later. What a conclusion needs to know of this one is in the header or in the findings of a point's record.
    fn conclude(&self, _header: &Header, _results: &[PointResult]) -> Vec<Record> {
        Vec::new()
    }
}

/// The measuring of one group of points.
pub trait Session {
    /// Untimed: sets up and warms up. Called before every visit to a point.
    ///
    /// # Errors
    /// When the point cannot be set up; it is then recorded as failed and the others go on.
    fn select(&mut self, point: &Point) -> Result<(), ProbeError>;

    /// Takes one block of samples at the selected point.
    ///
    /// # Errors
    /// When the work failed.
    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError>;

    /// Before the proof of a point: which of its blocks, by their place among them, are left out of its figure because something disturbed them. What
    /// a session keeps by block and tells as a finding leaves them out too ([`crate::without`]).
    fn leave_out(&mut self, _point: &Point, _blocks: &[usize]) {}

    /// The proof that the work of the selected point was done, after its last block.
    fn proof(&mut self, point: &Point) -> Proof;

    /// Estimated seconds that giving everything back takes by now, so that it ends before the deadline: files that will be removed.
    fn closing_s(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use latlab_record::{Absence, StoppedBy, Summary};

    use super::*;

    fn figure() -> Record {
        let block = |p50, core_ghz, disturbed| BlockSummary {
            at_ns: 0.0,
            duration_ns: 1e6,
            samples: 10,
            p50,
            core_ghz,
            disturbed,
        };
        let mut summary = Summary { p50: Some(4.0), ..Summary::default() };
        summary.intervals.insert("p50".to_owned(), [3.9, 4.1]);
        summary.intervals.insert("p90".to_owned(), [5.0, 6.0]);
        let absence = Absence { kind: String::new(), text: String::new() };
        let point = Point { threads: Some(2), ..Point::default() };
        let mut blocks = vec![block(4.0, Some(3.0), false)];
        blocks.push(block(9.0, Some(3.0), true));
        blocks.push(block(4.0, None, false));
        Record {
            summary: Some(summary),
            blocks,
            findings: Some(serde_json::json!({ "pages": "huge" })),
            error: None,
            ..Record::absent("test.of", 1, point, Unit::Ns, StoppedBy::Planned, absence)
        }
    }

    #[test]
    fn what_is_concluded_from_is_in_the_figure() {
        let mut record = figure();
        let result = PointResult::of(&record).expect("a figure");
        assert_eq!(result.point.threads, Some(2));
        assert_eq!((result.p50, result.interval, result.cycles), (4.0, Some([3.9, 4.1]), Some(12.0)));
        assert!(!result.disturbed);
        assert_eq!(result.findings.expect("findings")["pages"], "huge");
        record.flags.push("disturbed".to_owned());
        assert!(PointResult::of(&record).expect("a figure").disturbed);
    }

    #[test]
    fn disturbed_blocks_have_cycles_where_no_others_do() {
        let mut record = figure();
        for block in &mut record.blocks {
            *block = BlockSummary { p50: 5.0, disturbed: true, ..block.clone() };
        }
        assert_eq!(PointResult::of(&record).expect("a figure").cycles, Some(15.0));
        record.blocks.clear();
        assert_eq!(PointResult::of(&record).expect("a figure").cycles, None);
    }

    #[test]
    fn nothing_is_concluded_from_what_has_no_figure() {
        let unproved = Record { summary: None, ..figure() };
        assert!(PointResult::of(&unproved).is_none());
        let derived = Record::derived("test.of", 1, Unit::Ns, serde_json::json!({}));
        assert!(PointResult::of(&derived).is_none());
    }
}
