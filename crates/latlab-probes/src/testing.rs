//! What the tests of probes share: surroundings, a sink that keeps records, and one look at each point's proof.

use std::path::Path;

use latlab_clock::Clock;
use latlab_harness::{
    Env, MemorySource, NoReference, Planned, Probe, Progress, Proof, Sink, Support, measure_once, run_probe,
};
use latlab_record::{Point, Profile, Record, Settings};
use latlab_storage::Disk;

/// This machine in the quick profile, all allowed CPUs, with so much memory for the probes and this test binary as child process.
pub(crate) fn env(memory_bytes: u64) -> Env {
    let machine = latlab_machine::describe(Path::new("."));
    let mut cpus = machine.limits.allowed_cpus.clone();
    if cpus.is_empty() {
        cpus.push(0);
    }
    Env {
        home_cpu: cpus[0],
        cpus,
        machine,
        clock: Clock::open(),
        settings: Settings {
            profile: Profile::Quick,
            seed: 3,
            ..Settings::default()
        },
        memory_bytes,
        memory: MemorySource::Real,
        interpreter: None,
        child: cfg!(unix).then(crate::children::tests::command),
        packages: None,
        disk: disk(),
    }
}

/// Beside the test binary: on a disk wherever the build folder is on one.
fn disk() -> Disk {
    let binary = std::env::current_exe().expect("the test binary has a path");
    Disk::new(binary.parent().expect("in a folder"), 64 << 20, 3)
}

/// The same with one CPU only.
pub(crate) fn env_of_one_cpu(memory_bytes: u64) -> Env {
    let mut env = env(memory_bytes);
    env.cpus.truncate(1);
    env
}

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

/// The records of a whole run of this probe, `seconds` at most.
pub(crate) fn records(probe: &dyn Probe, env: &Env, seconds: f64) -> Vec<Record> {
    let mut kept = Kept::default();
    let deadline_ns = env.clock.now_ns() + seconds * 1e9;
    run_probe(probe, env, deadline_ns, &mut NoReference, &mut kept);
    kept.records
}

/// Checks that fail when this thread is kept from its CPU between two stamps, as a busy machine does to a short block now and then.
const OF_TIME: [&str; 1] = ["phases add up"];
/// How often such a block is taken before it counts.
const ATTEMPTS: usize = 5;

/// Takes one block of each of these points and asserts that it has samples and that every check holds. Returns the proofs.
///
/// # Panics
/// When a point cannot be measured, proves nothing, or a check fails.
pub(crate) fn assert_proved(probe: &dyn Probe, env: &Env, points: &[Planned]) -> Vec<Proof> {
    let id = probe.spec().id;
    assert!(!matches!(probe.supports(env), Support::No(_)), "{id}");
    let mut outcomes = measure_once(probe, env, points);
    for _ in 1..ATTEMPTS {
        let kept_waiting = |check: &latlab_record::Check| !check.ok && OF_TIME.contains(&check.name.as_str());
        if !outcomes
            .iter()
            .any(|(_, proof)| proof.checks.iter().any(kept_waiting))
        {
            break;
        }
        outcomes = measure_once(probe, env, points);
    }
    for (planned, (samples, proof)) in points.iter().zip(&outcomes) {
        let label = planned.point.label();
        assert!(*samples > 0, "{id}: {label} has no samples");
        assert!(!proof.checks.is_empty(), "{id}: {label} proves nothing");
        // Whether huge pages are to be had is a matter of the machine, not of the work; under emulation the thread's faults are also those of
        // the emulator, which translates code as it comes.
        let emulated = !crate::children::tests::runner().is_empty();
        for check in proof
            .checks
            .iter()
            .filter(|check| check.name != "huge pages obtained")
            .filter(|check| !(emulated && check.name == "one fault a touch"))
        {
            assert!(check.ok, "{id}: {label}: {} ({})", check.name, check.detail);
        }
    }
    outcomes.into_iter().map(|(_, proof)| proof).collect()
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
