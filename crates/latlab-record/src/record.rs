//! One measured point: the samples, what was done to get them, and what disturbed them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{EncodedHistogram, Point};

/// Unit of a record's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds an operation.
    #[default]
    Ns,
    /// Bytes a second (decimal).
    BytesPerS,
}

/// What one value of a record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// The mean over a window of operations: its quantiles are never the tail of single operations.
    BatchMean,
    /// One operation, timed alone.
    PerOp,
    /// Computed from other records of the run (levels, reach); `findings` holds it.
    Derived,
    /// Nothing was measured; `error` says why.
    #[default]
    Absent,
}

/// In how many of a run's rounds a point is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// In every round: what the ladder, operations, surprises, predictions and gates are made of.
    Headline,
    /// In at least two rounds on one CPU, together with its neighbours: a curve's shape and its knees.
    Curve,
    /// In one round: its range is that of its kin.
    Detail,
    /// In one round with all of its time, because it is about how things go on, or because it is there only
    /// once.
    Once,
}

impl Rank {
    /// A curve is measured in one of so many rounds, in two at least.
    const CURVE_EVERY: u32 = 3;
    const CURVE_LEAST: u32 = 2;

    /// In how many of a run's rounds a point of this rank is measured at most: in fewer where its CPU has
    /// fewer.
    pub fn rounds(self, of_run: u32) -> u32 {
        match self {
            Self::Headline => of_run,
            Self::Curve => (of_run / Self::CURVE_EVERY).max(Self::CURVE_LEAST),
            Self::Detail | Self::Once => 1,
        }
    }
}

/// How far from the core a point's work reaches: what disturbs it, and what it does to the core. Points of
/// the same probe and the same reach are kin: their rounds differ alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Reach")]
pub enum CacheScope {
    /// Registers and the first-level cache: the core never waits and runs as fast as it may.
    First,
    /// The caches that belong to this core: nobody else's work is noticed.
    Private,
    /// Caches and memory that others use too.
    Shared,
    /// What disturbs is part of what is asked for: who listens for it, and requests at their own rate, whose
    /// tail it makes. No block is left out for that.
    Disturbances,
}

/// A figure's median in one of the rounds that it was measured in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundFigure {
    /// The round, from 0.
    pub round: u32,
    /// Where its measuring thread ran.
    pub cpu: u32,
    /// Its median, in the record's unit.
    pub p50: f64,
}

/// What a figure's rounds differ by: standard deviations of the logarithm (0.05 is 5 %). Absent = not to be
/// told from so few.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spread {
    /// Between blocks of one round.
    pub within: Option<f64>,
    /// Between rounds on one CPU, kin included.
    pub rounds: Option<f64>,
    /// Between CPUs, beyond what their rounds differ by; not in the interval.
    pub cpus: Option<f64>,
    /// Each CPU's own figure, in the record's unit: the median over its rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_cpu: Vec<CpuFigure>,
    /// Present where its CPUs differ by a tenth or more and beyond what their rounds do: why. At most one run
    /// in twenty on CPUs that are alike says so of any figure.
    pub differ: Option<Difference>,
}

/// What the machine's description says of why the fastest and the slowest CPU of a figure differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// It waits for a disk whose interrupts the fastest handles and the slowest does not.
    DiskInterrupts,
    /// They are of different kinds, or have different caches.
    CoreKind,
    /// They belong to different nodes of memory.
    NumaNode,
    /// They do not share the last cache.
    LastCache,
    /// Nothing.
    Unknown,
}

/// A figure as one CPU has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFigure {
    /// Which.
    pub cpu: u32,
    /// The median over its rounds, in the record's unit.
    pub p50: f64,
    /// Its rounds.
    pub rounds: u32,
}

/// Why no more samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The interval of the asked quantile became narrow enough.
    NarrowInterval,
    /// The time set aside was used up.
    Deadline,
    /// The planned number of samples was taken.
    #[default]
    Planned,
    /// The user stopped the run.
    Interrupted,
    /// The time ran out before this point had its least number of blocks.
    NotReached,
    /// This machine or this process cannot do it.
    Unsupported,
    /// It failed while it was measured.
    Failed,
}

/// Why a record has no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Absence {
    /// `unsupported`, `not_reached`, `worker_died`, `failed`, `proof_failed`.
    pub kind: String,
    /// One sentence for the user: what was wrong and what would lift it.
    pub text: String,
}

impl Absence {
    /// Why there is no figure, when a check did not hold.
    pub fn of_failed(checks: &[Check]) -> Option<Self> {
        let failed: Vec<String> = checks
            .iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{} ({})", check.name, check.detail))
            .collect();
        (!failed.is_empty()).then(|| Self {
            kind: "proof_failed".to_owned(),
            text: format!("a proof failed: {}", failed.join("; ")),
        })
    }
}

/// Order statistics and moments. A quantile without enough samples is absent; a figure names it in `refused`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Smallest value.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Sample standard deviation.
    pub std: Option<f64>,
    /// 95 % interval of each figure above that has one: `{"p50": [lo, hi]}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, [f64; 2]>,
    /// Of a figure, why a quantile or its interval is not given: `{"p999": "1,200 samples, needs 3,688"}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// Smallest and largest of the blocks' medians: how far repeats within this run lie apart.
    pub between_blocks: Option<[f64; 2]>,
}

impl Summary {
    /// The place of a quantile or the mean by its name; `None` for other names.
    pub fn place(&mut self, name: &str) -> Option<&mut Option<f64>> {
        match name {
            "p50" => Some(&mut self.p50),
            "p90" => Some(&mut self.p90),
            "p99" => Some(&mut self.p99),
            "p999" => Some(&mut self.p999),
            "p9999" => Some(&mut self.p9999),
            "mean" => Some(&mut self.mean),
            _ => None,
        }
    }
}

/// A single slow operation, kept with its time so that it can be explained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailSample {
    /// When it began, ns since the start of the run.
    pub at_ns: f64,
    /// How long it took, in the record's unit.
    pub value: f64,
    /// What caused it, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What the samples above the threshold are made of: each has one cause. What nothing explains is a row of
/// its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailCauses {
    /// What could be seen: `time stamps` (periods only),
    /// `counters` (how long the thread was ready without a CPU), `interrupt
    /// flag` (that there was an interrupt), `rseq` (and that the thread was preempted), `perf records` (its
    /// switches and page faults), `tracepoints` (interrupts of its CPU).
    pub level: String,
    /// Faster samples are not in it, ns.
    pub threshold_ns: f64,
    /// The most frequent first.
    pub causes: Vec<TailCause>,
    /// Their time split by cause, the largest part first, of operations that wait as part of their work. What
    /// is missing from the whole is unexplained, this thread's own work on its CPU included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<TailPart>,
}

/// A cause's part in the time of all slow samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailPart {
    /// Its name: `waiting`, `run-queue-delay`, `context-switch`, `page-fault`; of the waiting where requests
    /// were recorded `device` and `way` (there and back).
    pub cause: String,
    /// Time that is known to be its own, ns.
    pub ns: f64,
    /// Where only a counter of the whole block knows more: so much of the time of other parts may be its own
    /// too, at most, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_more_ns: Option<f64>,
}

/// One cause's share of the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailCause {
    /// Its name: `timer-tick`, `host-tick`, `context-switch`, ..., `unexplained`.
    pub cause: String,
    /// Samples.
    pub count: u64,
    /// Their time, ns.
    pub ns: f64,
    /// The part of it that evidence covers, ns.
    pub explained_ns: f64,
}

/// One block: samples that were taken in one go, apart in time from the next block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSummary {
    /// When it began, ns since the start of the run.
    pub at_ns: f64,
    /// How long it took, ns.
    pub duration_ns: f64,
    /// Samples in it.
    pub samples: u64,
    /// Their median.
    pub p50: f64,
    /// Frequency of the core right after it, GHz: what turns its nanoseconds into cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_ghz: Option<f64>,
    /// A reference measurement next to it had drifted, or the thread lost its CPU for too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

/// What was done, counted.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Work {
    /// Operations.
    pub ops: u64,
    /// Bytes moved, by the convention named.
    pub bytes: u64,
    /// Bytes that a device counted, where one is involved.
    pub device_bytes: Option<u64>,
    /// What a byte of `bytes` means: `each byte read counts once`.
    pub convention: Option<String>,
}

/// One proof that the work was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was checked: `single cycle`, `huge pages obtained`.
    pub name: String,
    /// Whether it held. A record with a failed check has no headline figure.
    pub ok: bool,
    /// The evidence in words and numbers.
    pub detail: String,
}

/// What else happened on the measuring thread while the samples were taken. Absent = could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Observed {
    /// Context switches that the thread asked for.
    pub voluntary_switches: Option<u64>,
    /// Context switches that were forced on it.
    pub involuntary_switches: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults with I/O.
    pub major_faults: Option<u64>,
    /// Time that the thread was ready but waited for a CPU, ns.
    pub run_queue_delay_ns: Option<u64>,
    /// Time that the host took from this CPU, ns (as the guest kernel was told).
    pub steal_ns: Option<u64>,
    /// Time that the control group's CPU quota held this process back, ns.
    pub throttled_ns: Option<u64>,
}

impl Observed {
    /// Each counter of both, by this operation; one that either lacks is unknown.
    #[must_use]
    pub fn combined(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        let field = |a: Option<u64>, b: Option<u64>| Some(with(a?, b?));
        Self {
            voluntary_switches: field(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: field(self.involuntary_switches, other.involuntary_switches),
            minor_faults: field(self.minor_faults, other.minor_faults),
            major_faults: field(self.major_faults, other.major_faults),
            run_queue_delay_ns: field(self.run_queue_delay_ns, other.run_queue_delay_ns),
            steal_ns: field(self.steal_ns, other.steal_ns),
            throttled_ns: field(self.throttled_ns, other.throttled_ns),
        }
    }
}

/// What the instrument itself costs in this record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Mean of an empty timed region, ns.
    pub region_ns: f64,
    /// Share of a value that it is at the median (0.001 = 0.1 %). It is in the value, and subtracted from
    /// nothing.
    pub share: f64,
}

/// A part of each operation with a distribution of its own, or another view of it: a phase (`open`, `close`),
/// the time in service without the wait for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Number of values.
    pub samples: u64,
    /// Statistics of the undisturbed samples, ns.
    pub summary: Summary,
    /// All of them; absent of a figure in a footer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<EncodedHistogram>,
}

/// One measured point of one probe.
#[serde_with::apply(Vec => #[serde(default, skip_serializing_if = "Vec::is_empty")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Id of the probe: `memory.load.dependent`.
    pub probe: String,
    /// Version of its method; figures of different versions are not compared.
    pub method: u32,
    /// Where it was measured.
    #[serde(default)]
    pub point: Point,
    /// In how many rounds it is measured; absent of what has no point of its own.
    pub rank: Option<Rank>,
    /// What its kin share with it.
    #[serde(rename = "reach")]
    pub cache_scope: Option<CacheScope>,
    /// Of a line of the file: the round that it was measured in, from 0.
    pub round: Option<u32>,
    /// Of a line of the file: where the measuring thread ran.
    pub cpu: Option<u32>,
    /// Of a figure: what each round says.
    pub rounds: Vec<RoundFigure>,
    /// Of a figure: what its rounds differ by.
    pub spread: Option<Spread>,
    /// Unit of every value.
    pub unit: Unit,
    /// What one value is.
    pub kind: Kind,
    /// Operations behind one value: 1 for `per_op`.
    #[serde(default)]
    pub ops_per_sample: u64,
    /// Number of values.
    #[serde(default)]
    pub samples: u64,
    /// Smallest difference that one value can show, ns: the clock's quantum over the operations of a window.
    pub resolution_ns: Option<f64>,
    /// What did the work: `avx512`, `io_uring`, ...
    pub engine: Option<String>,
    /// Statistics of the undisturbed samples; absent when nothing was measured or a proof failed.
    pub summary: Option<Summary>,
    /// Per-operation samples, all of them.
    pub histogram: Option<EncodedHistogram>,
    /// Batch means, block after block in the order in which they were taken: all of a headline point, at most
    /// 16 of another's line.
    pub values: Option<Vec<f64>>,
    /// Samples above `tail_threshold`, in order of time.
    pub tail: Vec<TailSample>,
    /// Value above which a sample keeps its time stamp.
    pub tail_threshold: Option<f64>,
    /// Samples above the threshold for which there was no room.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tail_dropped: u64,
    /// What the tail is made of; absent where no cause was looked for, as of operations that wait.
    pub tail_causes: Option<TailCauses>,
    /// Parts of each operation, in their order.
    pub channels: Vec<Channel>,
    /// The blocks.
    pub blocks: Vec<BlockSummary>,
    /// What was done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub work: Work,
    /// Proofs.
    pub checks: Vec<Check>,
    /// What else happened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub observed: Observed,
    /// `disturbed`, `degraded: <reason>`, `few_blocks`, ...
    pub flags: Vec<String>,
    /// Why it ended.
    pub stopped_by: StoppedBy,
    /// What the instrument costs.
    pub overhead: Option<Overhead>,
    /// What a derived record found.
    pub findings: Option<serde_json::Value>,
    /// Why there is no figure.
    pub error: Option<Absence>,
}

/// Whether a field is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Record {
    /// A record that says why nothing was measured.
    pub fn absent(
        probe: &str,
        method: u32,
        point: Point,
        unit: Unit,
        stopped_by: StoppedBy,
        error: Absence,
    ) -> Self {
        Self {
            probe: probe.to_owned(),
            method,
            point,
            unit,
            kind: Kind::Absent,
            stopped_by,
            error: Some(error),
            ..Self::default()
        }
    }

    /// A record computed from others.
    pub fn derived(probe: &str, method: u32, unit: Unit, findings: serde_json::Value) -> Self {
        Self {
            probe: probe.to_owned(),
            method,
            unit,
            kind: Kind::Derived,
            stopped_by: StoppedBy::Planned,
            findings: Some(findings),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_record_survives_the_file_and_says_why() {
        let absence =
            Absence { kind: "unsupported".to_owned(), text: "needs two CPUs, one is allowed".to_owned() };
        let record = Record::absent(
            "memory.loaded",
            1,
            Point::default(),
            Unit::Ns,
            StoppedBy::Unsupported,
            absence.clone(),
        );
        let text = serde_json::to_string(&record).expect("a record serialises");
        let back: Record = serde_json::from_str(&text).expect("our own text");
        assert_eq!(back, record);
        assert_eq!(back.error, Some(absence));
    }

    #[test]
    fn a_count_of_dropped_samples_is_written_unless_it_is_zero() {
        let findings = serde_json::json!({"levels": 4});
        let mut record = Record::derived("memory.levels", 2, Unit::Ns, findings.clone());
        assert_eq!((record.kind, record.error.clone()), (Kind::Derived, None));
        assert_eq!(record.findings, Some(findings));
        let dropped = |record: &Record| {
            let value = serde_json::to_value(record).expect("a record serialises");
            value.get("tail_dropped").cloned()
        };
        assert_eq!(dropped(&record), None);
        record.tail_dropped = 3;
        assert_eq!(dropped(&record), Some(3.into()));
    }

    #[test]
    fn fields_of_a_newer_minor_version_are_ignored() {
        let text =
            r#"{"probe":"x.y","method":1,"unit":"ns","kind":"per_op","stopped_by":"planned","novel":[1,2]}"#;
        let record: Record = serde_json::from_str(text).expect("unknown fields are no error");
        assert_eq!(record.samples, 0);
    }
}
