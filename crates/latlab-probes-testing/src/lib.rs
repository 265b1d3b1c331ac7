//! What the tests of probes share: surroundings, a sink that keeps records, and one look at each point's proof.

mod proofs;

#[doc(hidden)]
pub use latlab_probes_shared;

use std::time::Duration;

use latlab_harness::{Env, NoReference, Probe, Progress, Proof, Sink, Support, run_probe};
use latlab_record::{Point, Record, StoppedBy};

pub use self::proofs::{
    ATTEMPTS, as_a_child, assert_proved, assert_proved_at_its_smallest_points, env, env_of_one_cpu, runner,
    taken,
};

/// Keeps every record; wants all points, or those that a test names.
#[derive(Default)]
pub struct Kept {
    /// In the order in which they came.
    pub records: Vec<Record>,
    /// Which points are wanted; all where there is none.
    pub wanted: Option<fn(&Point) -> bool>,
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
pub fn records(probe: &dyn Probe, env: &Env, seconds: f64) -> Vec<Record> {
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
pub fn one_run(probe: &dyn Probe, env: &Env, seconds: f64) -> Vec<Record> {
    let mut kept = Kept::default();
    let deadline_ns = env.clock.now_ns() + seconds * 1e9;
    run_probe(probe, env, deadline_ns, &mut NoReference, &mut kept);
    kept.records
}

/// Long enough for whatever comes, on a machine however busy.
pub const LONG: Duration = Duration::from_secs(30);

/// Waits in vain, `first` at most; longer where something else had no time to come on a busy machine.
///
/// # Panics
/// With what the last attempt says.
pub fn in_vain(first: Duration, attempt: impl Fn(Duration) -> Result<(), String>) {
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
pub fn has_disk(probe: &dyn Probe, env: &Env) -> bool {
    !matches!(probe.supports(env), Support::No(_))
}

/// The names of the checks that did not hold.
#[must_use]
pub fn failed(proof: &Proof) -> Vec<&str> {
    proof
        .checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name.as_str())
        .collect()
}

/// Declares the test that a test binary runs instead of all others when a probe starts it as its child process: it answers as these
/// programs do. Once, in the root of each crate whose tests measure with child processes.
#[macro_export]
macro_rules! as_a_child {
    ($programs:expr) => {
        #[test]
        fn as_a_child() {
            $crate::as_a_child(|name, input, output| {
                $crate::latlab_probes_shared::run_program($programs, name, input, output)
            });
        }
    };
}
