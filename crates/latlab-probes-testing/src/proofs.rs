//! One check of each point's proof.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use latlab_clock::Clock;
use latlab_harness::{AnyProbe, Env, MemorySource, Planned, Proof, Support, measure_once};
use latlab_record::{Profile, Settings};
use latlab_storage::Disk;

/// This machine in the quick profile, all allowed CPUs, with so much memory for the probes and this test
/// binary as child process.
pub fn env(memory_bytes: u64) -> Env {
    let machine = latlab_machine::describe(Path::new("."));
    let mut cpus = machine.limits.allowed_cpus.clone();
    if cpus.is_empty() {
        cpus.push(0);
    }
    Env {
        round: 0,
        home_cpu: cpus[0],
        cpus,
        machine,
        clock: Clock::open(),
        settings: Settings { profile: Profile::Quick, seed: 3, ..Settings::default() },
        memory_bytes,
        memory: MemorySource::Real,
        interpreter: None,
        child: cfg!(unix).then(|| command("")),
        packages: None,
        patience: 20,
        disk: disk(),
    }
}

/// Beside the test binary: on a disk wherever the build folder is on one.
fn disk() -> Disk {
    let binary = std::env::current_exe().expect("the test binary has a path");
    Disk::new(binary.parent().expect("in a folder"), 64 << 20, 3)
}

/// The same with one CPU only.
pub fn env_of_one_cpu(memory_bytes: u64) -> Env {
    let mut env = env(memory_bytes);
    env.cpus.truncate(1);
    env
}

/// The same with two CPUs of one node and no quota; where only one is allowed, who is sent to the second
/// takes turns with the first.
pub fn env_of_two_cpus(memory_bytes: u64) -> Env {
    let mut env = env(memory_bytes);
    let other = env.cpus.iter().copied().find(|cpu| *cpu != env.home_cpu);
    env.cpus = vec![env.home_cpu, other.unwrap_or(env.home_cpu + 1)];
    env.machine.numa.clear();
    env.machine.limits.usable_cpus = None;
    env
}

/// The same with child processes that have a second thread: such a process cannot move to another namespace.
pub fn env_of_threads(memory_bytes: u64) -> Env {
    let mut env = env(memory_bytes);
    env.child = cfg!(unix).then(|| command(&format!("{THREAD}=1")));
    env
}

/// Takes one block of each of these points and asserts that it has samples and that every check holds.
/// Returns the proofs.
///
/// # Panics
/// When a point cannot be measured, proves nothing, or a check fails.
pub fn assert_proved(probe: &dyn AnyProbe, env: &Env, points: &[Planned]) -> Vec<Proof> {
    let id = probe.spec().id;
    assert!(!matches!(probe.supports(env), Support::No(_)), "{id}");
    let outcomes = measure_once(probe, env, points);
    for (planned, (samples, proof)) in points.iter().zip(&outcomes) {
        let label = planned.point.label();
        assert!(*samples > 0, "{id}: {label} has no samples");
        assert!(!proof.checks.is_empty(), "{id}: {label} proves nothing");
        // Whether huge pages are to be had is a matter of the machine, not of the work; under emulation the
        // thread's faults are also those of the emulator, which translates code as it comes.
        let emulated = !runner().is_empty();
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

/// Set for the test binary when it is started again as a child: the program's name.
const PROGRAM: &str = "LATLAB_TEST_CHILD";
/// Set for one that has a second thread.
const THREAD: &str = "LATLAB_TEST_THREAD";

/// For `Env::child` in tests: this test binary again, as [`as_a_child!`](crate::as_a_child) has it. The shell
/// moves the program's name from the command line to the environment, with what `more` sets there. Under
/// emulation the kernel does not know how to start the binary; what cargo was told to run it with does.
fn command(more: &str) -> Vec<OsString> {
    let binary = std::env::current_exe().expect("the test binary has a path");
    let script = format!("exec env {PROGRAM}=\"$1\" {more} {} \"$0\"", runner());
    vec!["/bin/sh".into(), "-c".into(), script.into(), binary.into()]
}

/// What cargo was told to run test binaries with; empty when they run by themselves.
pub fn runner() -> String {
    cfg!(target_arch = "aarch64")
        .then(|| std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok())
        .flatten()
        .unwrap_or_default()
}

/// What [`as_a_child!`](crate::as_a_child) declares: runs the program that the parent asked for, and ends
/// this process; nothing where there is no such parent.
///
/// # Panics
/// When the program is not known, or the parent's pipes break.
pub fn as_a_child(run: impl FnOnce(&str, &mut dyn BufRead, &mut dyn Write) -> std::io::Result<bool>) {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    if std::env::var_os(THREAD).is_some() {
        std::thread::spawn(|| std::thread::sleep(Duration::MAX));
    }
    let known = run(&program, &mut std::io::stdin().lock(), &mut std::io::stdout().lock())
        .expect("the parent's pipes hold");
    assert!(known, "{program}");
    std::process::exit(0);
}

/// The probe at its smallest points, on one CPU and on all, as a small container has it: a quarter of 256
/// MiB.
///
/// # Panics
/// When it cannot be measured, plans nothing, or its proof fails.
pub fn assert_proved_at_its_smallest_points(probe: &dyn AnyProbe) {
    let id = probe.spec().id;
    for env in [env_of_one_cpu(64 << 20), env(64 << 20)] {
        if !probe.wanted(&env.settings) {
            continue;
        }
        if let Support::No(reason) = probe.supports(&env) {
            assert!(needs_more(id, &env), "{id}: {reason}");
            assert!(reason.len() > 10, "{id}: {reason}");
            continue;
        }
        let mut points = probe.points(&env);
        assert!(!points.is_empty(), "{id} runs here and plans nothing");
        // What is written needs a disk, which the machine of a test may not have.
        points.retain(|planned| planned.round_bytes() == 0);
        // A rate that the disk of a busy machine does not reach is not asked for, with the reason.
        points.retain(|planned| planned.point.rate_per_s.is_none_or(|rate| rate <= 100));
        points.sort_by_key(|planned| (planned.point.working_set_bytes, planned.point.size_bytes));
        points.truncate(10);
        // One session a group, as in a run.
        points.sort_by_key(|planned| planned.group);
        for group in points.chunk_by(|a, b| a.group == b.group) {
            assert_proved(probe, &env, group);
        }
    }
}

/// What tests of the core alone do not have: an interpreter; on one CPU, a second one; and in a build folder
/// in memory, a disk.
fn needs_more(id: &str, env: &Env) -> bool {
    let two_cpus = ["memory.loaded", "memory.core_to_core", "memory.false_sharing", "kernel.wakeup"];
    // The build folder may lie in memory.
    id.starts_with("python.") || id.starts_with("storage.") || (env.cpus.len() < 2 && two_cpus.contains(&id))
}
