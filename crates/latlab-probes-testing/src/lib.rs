//! What the tests of probes share: surroundings, a sink that keeps records, and one check of each point's
//! proof.

mod golden;
mod proofs;

use std::time::Duration;

use latlab_harness::{
    AnyProbe, Env, NoReference, Outcome, PointResult, Progress, Proof, Sink, Support, run_probe,
};
use latlab_machine::{Cache, CacheKind, CacheSource, NumaNode};
use latlab_record::{Header, Kind, Point, Record, SCHEMA_NAME, SCHEMA_VERSION, Tool};

pub use self::golden::{as_line, assert_golden};
pub use self::proofs::{
    as_a_child, assert_proved, assert_proved_at_its_smallest_points, env, env_of_one_cpu, env_of_threads,
    env_of_two_cpus, runner,
};

/// Keeps every record; wants all points, or those that a test names.
#[derive(Default)]
pub struct Kept {
    /// In the order in which they came.
    pub records: Vec<Record>,
    /// Which points are wanted; all where there is none.
    pub wanted: Option<fn(&Point) -> bool>,
    /// Blocks of a point at most, where they are fewer than the probe would like.
    pub most_blocks: Option<usize>,
    /// The user ends the run after so many visits of points.
    pub visits: Option<usize>,
}

impl Sink for Kept {
    fn begin(&mut self, _: &'static str, _: &Point, _: u64) {}
    fn progress(&mut self, _: &Progress) {
        if let Some(left) = &mut self.visits {
            *left = left.saturating_sub(1);
        }
    }
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn cancelled(&self) -> bool {
        self.visits == Some(0)
    }
}

impl Kept {
    /// Measures the wanted points of a probe, then what it would like to see closer; what it concludes comes
    /// last.
    pub fn measure(&mut self, probe: &dyn AnyProbe, env: &Env, deadline_ns: f64) -> Outcome {
        let mut planned = match probe.supports(env) {
            Support::No(_) => Vec::new(),
            Support::Yes | Support::Degraded(_) => probe.points(env),
        };
        if let Some(wanted) = self.wanted {
            planned.retain(|planned| wanted(&planned.point));
        }
        for planned in &mut planned {
            planned.most_blocks = planned.most_blocks.min(self.most_blocks.unwrap_or(usize::MAX));
        }
        let outcome = run_probe(probe, env, &planned, deadline_ns, &mut NoReference, self);
        if !outcome.further.is_empty() {
            run_probe(probe, env, &outcome.further, deadline_ns, &mut NoReference, self);
        }
        self.records = concluded(probe, env, std::mem::take(&mut self.records));
        outcome
    }
}

/// The records of a whole run of this probe, which ends with its points: however slow the machine is, all are
/// reached.
pub fn records(probe: &dyn AnyProbe, env: &Env) -> Vec<Record> {
    records_of(probe, env, Kept::default(), 20.0 * LONG.as_secs_f64())
}

/// The records of a run that ends after so many visits of points, for a probe that ends with its time.
pub fn records_of_visits(probe: &dyn AnyProbe, env: &Env, visits: usize) -> Vec<Record> {
    let kept = Kept { visits: Some(visits), ..Kept::default() };
    records_of(probe, env, kept, 20.0 * LONG.as_secs_f64())
}

/// The records of one run of so many seconds, whatever it reached.
pub fn one_run(probe: &dyn AnyProbe, env: &Env, seconds: f64) -> Vec<Record> {
    records_of(probe, env, Kept::default(), seconds)
}

fn records_of(probe: &dyn AnyProbe, env: &Env, mut kept: Kept, seconds: f64) -> Vec<Record> {
    let deadline_ns = env.clock.now_ns() + seconds * 1e9;
    kept.measure(probe, env, deadline_ns);
    kept.records
}

/// The records of a run with what follows from them and from its header alone.
pub fn concluded(probe: &dyn AnyProbe, env: &Env, mut records: Vec<Record>) -> Vec<Record> {
    records.retain(|record| record.kind != Kind::Derived);
    let results: Vec<PointResult> = records.iter().filter_map(PointResult::of).collect();
    for derived in probe.conclude(&header(env), &results) {
        if !records.contains(&derived) {
            records.push(derived);
        }
    }
    records
}

/// What follows from these figures in these surroundings; null where nothing does.
pub fn conclusion(probe: &dyn AnyProbe, env: &Env, results: &[PointResult]) -> serde_json::Value {
    let mut records = probe.conclude(&header(env), results);
    records.pop().and_then(|record| record.findings).unwrap_or_default()
}

/// Records as a round on this CPU leaves them behind.
pub fn in_round(mut records: Vec<Record>, round: u32, cpu: u32) -> Vec<Record> {
    records.retain(|record| record.kind != Kind::Derived);
    for record in &mut records {
        (record.round, record.cpu) = (Some(round), Some(cpu));
    }
    records
}

/// The figures of a run of rounds with what follows from them.
pub fn folded(probe: &dyn AnyProbe, env: &Env, lines: &[Record]) -> Vec<Record> {
    let header = header(env);
    let mut figures = latlab_record::fold(&header, lines);
    let results = PointResult::of_run(figures.iter(), lines.iter());
    figures.extend(probe.conclude(&header, &results));
    figures
}

/// The header of a run of one round with these surroundings, on a machine that allows just these CPUs.
pub fn header(env: &Env) -> Header {
    let mut machine = env.machine.clone();
    machine.limits.allowed_cpus.clone_from(&env.cpus);
    Header {
        schema: format!("{SCHEMA_NAME}/{SCHEMA_VERSION}"),
        id: String::new(),
        started: String::new(),
        tool: Tool { version: String::new(), commit: None, build: String::new() },
        machine,
        clock: env.clock.facts.clone(),
        settings: env.settings.clone(),
        plan: Vec::new(),
        rounds: 1,
        cpus: vec![env.home_cpu],
        doctor: Vec::new(),
    }
}

/// A unified cache of CPU 0, as a machine's description has it.
pub fn cache(level: u8, size_bytes: u64) -> Cache {
    Cache {
        level,
        kind: CacheKind::Unified,
        size_bytes,
        line_bytes: Some(64),
        ways: None,
        shared_cpus: vec![0],
        cpus: vec![0],
        instances: Some(1),
        source: CacheSource::Cpuid,
    }
}

/// A NUMA node with these CPUs.
pub fn node(id: u32, cpus: &[u32]) -> NumaNode {
    NumaNode { id, cpus: cpus.to_vec(), memory_bytes: None, distances: Vec::new() }
}

/// Long enough for whatever comes, on a machine however busy.
pub const LONG: Duration = Duration::from_secs(30);

/// Whether this probe of the disk can run: the build folder may be in memory.
pub fn has_disk(probe: &dyn AnyProbe, env: &Env) -> bool {
    !matches!(probe.supports(env), Support::No(_))
}

/// The names of the checks that did not hold.
pub fn failed<D>(proof: &Proof<D>) -> Vec<&str> {
    proof.checks.iter().filter(|check| !check.ok).map(|check| check.name.as_str()).collect()
}

/// Declares what a test binary does instead of its tests when a probe starts it as its child process: it
/// answers as this function does, before the tests' own main function and its threads, which would allocate
/// from the heap that is measured. Once, in the root of each crate whose tests measure with child processes.
#[macro_export]
macro_rules! as_a_child {
    ($run:expr) => {
        #[used]
        #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
        static AS_A_CHILD: extern "C" fn() = {
            extern "C" fn begin() {
                $crate::as_a_child($run);
            }
            begin
        };
    };
}
