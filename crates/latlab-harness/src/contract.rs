//! What a probe is: one file says what it measures, how, and how it proves its work. What calls it is in
//! `erased`.

use latlab_record::{Absence, Check, Header, Point, Record, Settings, StoppedBy, Unit, Work};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::causes::KnownCauses;
use crate::{Block, Env, Operations, Planned, PointResult, Result, Sampled, Share};

/// Group of probes that share a quota of time and a section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Tier {
    /// The instrument itself.
    Clock,
    /// Computing with what a core holds.
    Cpu,
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
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a probe cannot do without, in words for `latlab list`.
pub type Needs = &'static [&'static str];

/// What a probe touches on the machine, in words for `latlab list`: `memory up to 1 GiB`.
pub type Touches = &'static [&'static str];

/// Everything that a person or a program wants to know of a probe before running it. `latlab list`,
/// the reference, the report's "how this was measured" and shell completion are made from it.
#[derive(Debug, Serialize)]
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
    /// What a value is of: one operation, in words; of rates, which bytes count.
    pub convention: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// What it touches.
    pub touches: Touches,
    /// Whether it saturates a resource that other programs share (left out by `--gentle`).
    pub saturates: bool,
    /// What its single operations do by themselves: what may be watched beside them to find the causes of the
    /// slow ones.
    #[serde(skip)]
    pub operations: Operations,
}

impl Spec {
    /// What the probe concludes from all of its records.
    pub fn derived(&self, findings: serde_json::Value) -> Record {
        Record::derived(self.id, self.method_version, self.unit, findings)
    }

    /// That a point cannot be measured, and why.
    pub fn unsupported(&self, point: Point, text: String) -> Record {
        let absence = Absence { kind: "unsupported".to_owned(), text };
        Record::absent(self.id, self.method_version, point, self.unit, StoppedBy::Unsupported, absence)
    }
}

impl Spec {
    /// What most probes have in common: times of operations that need nothing, saturate nothing and cannot be
    /// watched one by one.
    pub const USUAL: Self = Self {
        id: "",
        tier: Tier::Memory,
        title: "",
        question: "",
        method: "",
        method_version: 1,
        unit: Unit::Ns,
        convention: "",
        needs: &[],
        touches: &[],
        saturates: false,
        operations: Operations::Unwatched,
    };

    /// That of a probe which only tests have.
    #[cfg(test)]
    pub(crate) const fn planted(id: &'static str) -> Self {
        Self { id, title: "planted", question: "?", method: "planted", ..Self::USUAL }
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

/// What a session says of a point after its blocks.
#[derive(Clone, Debug)]
pub struct Proof<D = serde_json::Value> {
    /// Each proof of work.
    pub checks: Vec<Check>,
    /// Bytes, and their convention where it is not the probe's own; operations are counted by the harness.
    pub work: Work,
    /// What did the work.
    pub engine: Option<String>,
    /// Degradations and remarks.
    pub flags: Vec<String>,
    /// Details worth keeping with the record.
    pub findings: Option<D>,
    /// What its slow operations were kept by, where the session looked for that itself.
    pub causes: Option<KnownCauses>,
}

impl<D> Default for Proof<D> {
    fn default() -> Self {
        Self {
            checks: Vec::new(),
            work: Work::default(),
            engine: None,
            flags: Vec::new(),
            findings: None,
            causes: None,
        }
    }
}

impl<D> Proof<D> {
    /// These checks and nothing else.
    pub fn of(checks: Vec<Check>) -> Self {
        Self { checks, ..Self::default() }
    }

    /// With details that are kept with the record.
    #[must_use]
    pub fn with(self, details: D) -> Self {
        Self { findings: Some(details), ..self }
    }

    /// With the name of what did the work.
    #[must_use]
    pub fn by(self, engine: &str) -> Self {
        Self { engine: Some(engine.to_owned()), ..self }
    }
}

/// What a probe would do here. It is the same in all rounds of a run.
#[derive(Clone, Debug)]
pub struct Plan<P> {
    /// Whether it can run.
    pub support: Support,
    /// What it would like to measure, most important first within a priority.
    pub points: Vec<Planned<P>>,
    /// Most memory that its session holds at once, bytes.
    pub memory_bytes: u64,
    /// Most CPUs that it keeps busy at once.
    pub cpus: u32,
    /// Size of the disk's common test file that it needs ([`Env::disk`]), bytes. The largest that any probe
    /// of a run asks for is laid out once, before the first of them and in time of its own, and announced
    /// apart from what points write. On a slow disk it may be smaller: a session looks at its size.
    pub test_file_bytes: u64,
}

impl<P> Plan<P> {
    /// These points, on one CPU, in memory that is not worth mentioning.
    pub fn of(points: Vec<Planned<P>>) -> Self {
        Self { support: Support::Yes, points, memory_bytes: 0, cpus: 1, test_file_bytes: 0 }
    }

    /// It cannot run, for this reason.
    pub fn no(reason: impl Into<String>) -> Self {
        Self { support: Support::No(reason.into()), ..Self::of(Vec::new()) }
    }

    /// This plan where it can run, with the loss that there is; nothing where it cannot.
    #[must_use]
    pub fn given(self, support: Support) -> Self {
        match support {
            Support::No(reason) => Self::no(reason),
            support => Self { support, ..self },
        }
    }

    /// It can run, with this loss.
    #[must_use]
    pub fn degraded(self, loss: impl Into<String>) -> Self {
        Self { support: Support::Degraded(loss.into()), ..self }
    }

    /// With so much memory held at once, bytes.
    #[must_use]
    pub fn memory(self, memory_bytes: u64) -> Self {
        Self { memory_bytes, ..self }
    }

    /// With a test file of so many bytes.
    #[must_use]
    pub fn test_file(self, test_file_bytes: u64) -> Self {
        Self { test_file_bytes, ..self }
    }

    /// With so many CPUs busy at once.
    #[must_use]
    pub fn cpus(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }
}

/// A point as its probe says it: a type whose fields, as
/// `serde` writes them, are fields of the record's [`Point`].
pub trait PointFields: Clone + PartialEq + Serialize + DeserializeOwned + 'static {
    /// As records have it.
    ///
    /// # Panics
    /// When it is no record's point, which the test of every probe's points would have found.
    fn to_point(&self) -> Point {
        serde_json::to_value(self)
            .and_then(serde_json::from_value)
            .expect("fields are those of a record's point")
    }

    /// What a record has; `None` of a point that is none of this probe.
    fn of_point(point: &Point) -> Option<Self> {
        serde_json::to_value(point).and_then(serde_json::from_value).ok()
    }
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned + 'static> PointFields for T {}

/// A figure of a probe's own point.
pub struct Figure<P: Probe> {
    /// Where.
    pub point: P::Point,
    /// What was kept with its record.
    pub details: Option<P::Details>,
    /// What was found.
    pub result: PointResult,
}

impl<P: Probe> Figure<P> {
    /// `None` of a point that is none of this probe. Details of another version are none.
    pub fn of(result: &PointResult) -> Option<Self> {
        let details = result.findings.clone().and_then(|findings| serde_json::from_value(findings).ok());
        Some(Self { point: P::Point::of_point(&result.point)?, details, result: result.clone() })
    }
}

/// A probe: what it is, what it can measure here, and how.
pub trait Probe: Sized + Sync + 'static {
    /// What tells its points apart.
    type Point: PointFields;
    /// What the blocks of one point have shown: counted by them, judged by the proof, kept by the harness for
    /// each point apart.
    type Evidence: Default;
    /// What is kept with a point's record, as its findings; [`Nothing`] where that is nothing.
    type Details: Serialize + DeserializeOwned + JsonSchema;
    /// What follows from all points; [`Nothing`] where that is nothing.
    type Findings: Serialize + JsonSchema;
    /// Measures one group of points. What it borrows of the run lives as long as `'env`.
    type Session<'env>: Session<Self> + 'env;

    /// Its description.
    const SPEC: Spec;

    /// Whether these settings ask for it at all. A probe that is not wanted is in no plan and leaves no
    /// record.
    fn wanted(&self, _settings: &Settings) -> bool {
        true
    }

    /// Its seconds, where these settings make its work take other times than usual: a server far away.
    /// `None`: as the registry says.
    fn share(&self, _settings: &Settings) -> Option<Share> {
        None
    }

    /// Whether these settings make its work take so much longer than usual that it is given the time that the
    /// chosen probes leave over of the profile's: with a path between client and server each transfer waits
    /// for its round trips.
    fn takes_the_rest(&self, _settings: &Settings) -> bool {
        false
    }

    /// Whether it can run here, and what it would like to measure. What walks no
    /// [`MemorySource::Simulated`](crate::MemorySource) says that it cannot run there.
    fn plan(&self, env: &Env) -> Plan<Self::Point>;

    /// Takes what a group of points needs. Dropping the session gives everything back.
    /// Fails when the system refuses a resource; the points of the group are then recorded as failed.
    fn open<'env>(&'env self, env: &'env Env, group: &[Self::Point]) -> Result<Self::Session<'env>>;

    /// Further points for the rounds to come, given what this one found: where there is a knee, more sizes
    /// around it. They are asked for after each round; those that are known already are not measured twice.
    fn refine(&self, _env: &Env, _figures: &[Figure<Self>]) -> Vec<Planned<Self::Point>> {
        Vec::new()
    }

    /// A point that this machine or these settings leave out of every plan, with the reason for the reader.
    fn left_out(&self, _header: &Header) -> Option<(Point, String)> {
        None
    }

    /// What follows from the figures of all points together. It looks at nothing else: a run may be concluded
    /// from on another machine, years later. What a conclusion needs to know of this one is in the header or
    /// in the details of a point.
    fn conclude(&self, _header: &Header, _figures: &[Figure<Self>]) -> Option<Self::Findings> {
        None
    }
}

/// The measuring of one group of points.
pub trait Session<P: Probe> {
    /// Untimed: sets up and warms up. Called before every visit to a point.
    /// Fails when the point cannot be set up; it is then recorded as failed and the others go on.
    fn select(&mut self, _point: &P::Point) -> Result<()> {
        Ok(())
    }

    /// Takes one block of samples at the point that was selected, with the evidence of its blocks so far.
    /// Fails when the work failed.
    fn block(&mut self, point: &P::Point, evidence: &mut P::Evidence, block: &mut Block) -> Result<()>;

    /// Before the proof of a point: which of its blocks, by their place among them, are left out of its
    /// figure because something disturbed them. What the evidence keeps by block and tells as a detail leaves
    /// them out too ([`crate::without`]).
    fn leave_out(&mut self, _evidence: &mut P::Evidence, _blocks: &[usize]) {}

    /// The proof that the work of a point was done, after its last block.
    fn proof(&mut self, point: &P::Point, evidence: &P::Evidence) -> Proof<P::Details>;

    /// The details of a point whose proof holds, with what the samples say.
    fn add_samples(&self, details: Option<P::Details>, _sampled: &Sampled) -> Option<P::Details> {
        details
    }

    /// Estimated seconds that giving everything back takes by now, so that it ends before the deadline: files
    /// that will be removed.
    fn closing_s(&self) -> f64 {
        0.0
    }
}

/// What a probe without details of its points, or without conclusions, has in their place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Nothing {}

/// The session of a probe on a system where it cannot run.
#[derive(Clone, Copy, Debug)]
pub enum NoSession {}

impl<P: Probe> Session<P> for NoSession {
    fn block(&mut self, _: &P::Point, _: &mut P::Evidence, _: &mut Block) -> Result<()> {
        match *self {}
    }

    fn proof(&mut self, _: &P::Point, _: &P::Evidence) -> Proof<P::Details> {
        match *self {}
    }
}
