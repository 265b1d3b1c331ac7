//! What the tests of probes share: surroundings, a sink that keeps records, and one look at each point's proof.

mod proofs;

use std::time::Duration;

use latlab_harness::{Env, NoReference, Probe, Progress, Proof, Sink, Support, run_probe};
use latlab_record::{Point, Record, StoppedBy};

pub(crate) use self::proofs::{ATTEMPTS, assert_proved, env, env_of_one_cpu, runner, taken};

/// Keeps every record; wants all points, or those that a test names.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) records: Vec<Record>,
    pub(crate) wanted: Option<fn(&Point) -> bool>,
}

impl Sink for Kept {
    fn begin(&mut self, _: &'static str, _: &Point) {}
    fn progress(&mut self, _: &Progress) {}
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn cancelled(&self) -> bool {
        false
    }
    fn excluded(&self, _: &str, point: &Point) -> bool {
        self.wanted.is_some_and(|wanted| !wanted(point))
    }
}

/// The records of a whole run of this probe, `seconds` at most; of a longer one where the machine was too busy to reach any point.
pub(crate) fn records(probe: &dyn Probe, env: &Env, seconds: f64) -> Vec<Record> {
    let mut records = Vec::new();
    for longer in [1.0, 5.0, 25.0] {
        records = one_run(probe, env, longer * seconds);
        if records
            .iter()
            .any(|record| record.stopped_by != StoppedBy::NotReached)
        {
            break;
        }
    }
    records
}

/// The records of one whole run, whatever it reached.
pub(crate) fn one_run(probe: &dyn Probe, env: &Env, seconds: f64) -> Vec<Record> {
    let mut kept = Kept::default();
    let deadline_ns = env.clock.now_ns() + seconds * 1e9;
    run_probe(probe, env, deadline_ns, &mut NoReference, &mut kept);
    kept.records
}

/// Long enough for whatever comes, on a machine however busy.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Waits in vain, `first` at most; longer where something else had no time to come on a busy machine.
///
/// # Panics
/// With what the last attempt says.
pub(crate) fn in_vain(first: Duration, attempt: impl Fn(Duration) -> Result<(), String>) {
    for times in [1, 8] {
        if attempt(times * first).is_ok() {
            return;
        }
    }
    if let Err(text) = attempt(64 * first) {
        panic!("{text}");
    }
}

/// Whether this probe of the disk can run: the build folder may be in memory.
pub(crate) fn has_disk(probe: &dyn Probe, env: &Env) -> bool {
    !matches!(probe.supports(env), Support::No(_))
}

/// The names of the checks that did not hold.
pub(crate) fn failed(proof: &Proof) -> Vec<&str> {
    proof
        .checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name.as_str())
        .collect()
}
