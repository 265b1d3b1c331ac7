use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use latlab_harness::{
    AnyProbe as _, Batch, Env, Erased, Figure, Interpreter, Planned, PointFields as _, PointResult,
    Probe as _, Session as _, Support, measure_once,
};
use latlab_record::{Profile, Rank};
use latlab_storage::{Disk, Place, Purpose, sweep};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::super::{LEAST_BLOCKS, MANY};
use super::*;
use crate::planted::{Mapped, Own, on_a_disk};
use latlab_probes_testing as testing;

/// A directory, and surroundings with its disk; `None` where it is in memory.
fn env_of(name: &str) -> Option<(Own, Env)> {
    let own = Own::new(&format!("files-{name}"));
    let mut env = testing::env(64 << 20);
    env.disk = Disk::new(&own.0, 1 << 40, 3);
    Some((own, on_a_disk(&Erased(Files), env)?))
}

/// The same with a stand-in for Python.
fn python_of(name: &str, fault: Fault) -> Option<(Own, Env)> {
    let (own, mut env) = env_of(name)?;
    env.interpreter = Some(Box::new(StandIn(fault)));
    Some((own, env))
}

/// What a stand-in for Python does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Writes or returns other bytes at the end of a file.
    OtherBytes,
    /// Leaves the last file out, and says so.
    OneLess,
    /// Its steps leave out most of the time.
    LostTime,
    /// Fails with a reason.
    Refused,
    /// The first so many times that it reads, the kernel has taken the files out of memory.
    TakenBack(u32),
}

/// Does what the programs do, by their text; the real interpreter runs them in the tests of the installed
/// command.
struct StandIn(Fault);

struct Program {
    fault: Fault,
    folder: String,
    source: Option<String>,
    result: String,
    files: usize,
    size: usize,
    runs: u32,
}

fn value<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    line.expect("the program has it").trim_matches('"')
}

impl Interpreter for StandIn {
    fn name(&self) -> String {
        "CPython 3.11.7".to_owned()
    }

    fn executable(&self) -> Option<PathBuf> {
        None
    }

    fn compile(&self, text: &str) -> Result<Box<dyn Batch>, String> {
        Ok(Box::new(Program {
            fault: self.0,
            folder: value(text, "FOLDER").to_owned(),
            source: text.contains("\nSOURCE").then(|| value(text, "SOURCE").to_owned()),
            result: value(text, "RESULT").to_owned(),
            files: value(text, "FILES").parse().expect("a number"),
            size: value(text, "FILE_BYTES").parse().expect("a number"),
            runs: 0,
        }))
    }
}

impl Batch for Program {
    fn run(&mut self, number: u64) -> u64 {
        if self.fault == Fault::Refused {
            fs::write(&self.result, "No space left on device").expect("in memory");
            return 0;
        }
        self.runs += 1;
        let taken_back =
            matches!(self.fault, Fault::TakenBack(times) if self.runs <= times && self.source.is_none());
        let begun = std::time::Instant::now();
        let now = || u64::try_from(begun.elapsed().as_nanos()).expect("short");
        let data = self.source.as_ref().map(|source| fs::read(source).expect("given"));
        let files = self.files - usize::from(self.fault == Fault::OneLess);
        let (mut steps, mut ends, mut moved) = (Vec::new(), Vec::new(), 0);
        for index in 0..files {
            let path = format!("{}/{number}/f{index}", self.folder);
            steps.push(now());
            if taken_back {
                latlab_storage::evict(fs::File::open(&path).expect("laid out")).expect("allowed");
            }
            let mut part = match &data {
                Some(data) => data[index * self.size..][..self.size].to_vec(),
                None => fs::read(&path).expect("laid out"),
            };
            if self.fault == Fault::OtherBytes {
                part[self.size - 1] ^= 1;
            }
            moved += part.len() as u64;
            if data.is_some() {
                fs::write(&path, &part).expect("written");
                steps.extend([now(); 4]);
            } else {
                ends.extend_from_slice(&part[self.size - LAST_BYTES..]);
                steps.extend([now(); 3]);
            }
        }
        // As if nothing lay between two files: timing decides no test.
        let mut wall: u64 =
            steps.chunks(if data.is_some() { 5 } else { 4 }).map(|own| own[own.len() - 1] - own[0]).sum();
        wall = wall.max(1);
        if self.fault == Fault::LostTime {
            wall *= 2;
        }
        let numbers = std::iter::once(wall).chain(steps).flat_map(u64::to_ne_bytes);
        fs::write(&self.result, numbers.chain(ends).collect::<Vec<u8>>()).expect("in memory");
        moved
    }
}

fn check<'p>(proof: &'p Proof, name: &str) -> &'p Check {
    let found = proof.checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("no check {name}: {proof:?}"))
}

fn filing_at<'env>(env: &'env Env, task: &Task) -> Session<'env> {
    let mut filing = open(env, &[]).expect("opened");
    filing.select(task).expect("selected");
    filing
}

/// As the plan has it.
fn planned(task: Task) -> Planned {
    Planned::new(task.to_point())
}

/// One run over these points, so short that blocks are few.
fn proofs(env: &Env, tasks: &[Task]) -> Vec<Proof> {
    let planned: Vec<_> = tasks.iter().copied().map(planned).collect();
    measure_once(&Erased(Files), env, &planned).into_iter().map(|(_, proof)| proof).collect()
}

#[test]
fn every_operation_of_the_thorough_profile_is_proved_and_nothing_is_left() {
    let Some((own, mut env)) = python_of("thorough", Fault::None) else { return };
    env.settings.profile = Profile::Thorough;
    let mut points = Files.plan(&env).points;
    // Small files by the thousand and large ones are the same code.
    points.retain(|planned| {
        let unlinks = planned.point.operation == Operation::Unlink;
        matches!(planned.point.files, 1 | 10) || (planned.priority >= 5 && !unlinks)
    });
    let tasks: Vec<Task> = points.iter().map(|planned| planned.point).collect();
    let points: Vec<Planned> = tasks.iter().copied().map(planned).collect();
    let proofs = testing::assert_proved(&Erased(Files), &env, &points);
    // Of the 150 files of a quick block: each is flushed before it is removed.
    env.settings.profile = Profile::Quick;
    let unlink = planned(Task::new(MANY, Operation::Unlink, Arm::Psync));
    testing::assert_proved(&Erased(Files), &env, &[unlink]);
    let cold = tasks.iter().position(|task| task.operation == Operation::ReadCold);
    let cold = &proofs[cold.expect("planned")];
    assert!(cold.flags.contains(&"data cold, metadata warm".to_owned()), "{cold:?}");
    for name in ["evicted", "extents written", "contents verified", "phases add up"] {
        assert!(check(cold, name).ok, "{cold:?}");
    }
    assert_eq!(own.entries(), 0, "the folder is gone with the session");
}

#[test]
fn a_python_arm_that_writes_or_reads_other_bytes_is_found() {
    for fault in [Fault::OtherBytes, Fault::LostTime] {
        let Some((_own, env)) = python_of("python", fault) else { return };
        let points = [Operation::Write, Operation::ReadWarm].map(|own| Task::new(MANY, own, Arm::Python));
        for proof in proofs(&env, &points) {
            let failed = if fault == Fault::LostTime { "phases add up" } else { "contents verified" };
            assert!(!check(&proof, failed).ok, "{fault:?}: {proof:?}");
        }
    }
}

#[test]
fn a_warm_pass_whose_files_the_kernel_had_taken_back_is_taken_again_and_fails_where_it_always_had() {
    // The first time is that of a program that is not timed.
    for (times, holds) in [(3, true), (u32::MAX, false)] {
        let Some((_own, env)) = python_of("taken-back", Fault::TakenBack(times)) else { return };
        for proof in proofs(&env, &[Task::new(MANY, Operation::ReadWarm, Arm::Python)]) {
            assert_eq!(check(&proof, "read from memory").ok, holds, "{proof:?}");
            assert!(proof.flags.iter().any(|flag| flag.contains("repeated")), "{proof:?}");
        }
    }
}

#[test]
fn a_python_program_that_fails_or_does_less_gives_its_reason() {
    for (fault, words) in [(Fault::Refused, "No space left on device"), (Fault::OneLess, "of 1500000 bytes")]
    {
        let Some((own, env)) = python_of("failing", fault) else { return };
        let mut kept = testing::Kept {
            wanted: Some(|point| point.engine.as_deref() == Some("python") && point.files == Some(MANY)),
            ..testing::Kept::default()
        };
        // Its first blocks end it, long before the time does.
        let deadline = env.clock.now_ns() + 60e9;
        kept.measure(&Erased(Files), &env, deadline);
        assert!(!kept.records.is_empty());
        for record in &kept.records {
            let error = record.error.as_ref().expect("no figure");
            assert!(error.text.contains(words), "{error:?}");
        }
        assert_eq!(own.entries(), 0);
    }
}

#[test]
fn the_programs_run_in_python_as_the_core_expects_it() {
    /// Another process, which must come to the files in memory by this process's number.
    struct Spawned;
    struct Source(String);
    impl Interpreter for Spawned {
        fn name(&self) -> String {
            "python3".to_owned()
        }
        fn executable(&self) -> Option<PathBuf> {
            None
        }
        fn compile(&self, text: &str) -> Result<Box<dyn Batch>, String> {
            Ok(Box::new(Source(format!("{text}\nimport sys\nprint(run(int(sys.argv[1])))"))))
        }
    }
    impl Batch for Source {
        fn run(&mut self, number: u64) -> u64 {
            let output = Command::new("python3").args(["-c", &self.0, &number.to_string()]).output();
            let output = output.expect("it ran before").stdout;
            String::from_utf8_lossy(&output).trim().parse().unwrap_or(0)
        }
    }
    let there = Command::new("python3").args(["-c", "open('/proc/1/stat')"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return;
    }
    let Some((_own, mut env)) = env_of("spawned") else { return };
    env.interpreter = Some(Box::new(Spawned));
    let points = [
        Task::new(1, Operation::Write, Arm::Python).flushed(),
        Task::new(MANY, Operation::ReadWarm, Arm::Python),
    ];
    for proof in proofs(&env, &points) {
        assert!(check(&proof, "contents verified").ok, "{proof:?}");
        let phases = proof.findings.as_ref().expect("found")["phases"].as_array().expect("phases").len();
        assert!(phases == 3 || phases == 4, "{proof:?}");
    }
}

#[test]
fn directories_lie_apart_from_those_that_were_removed() {
    const EXT4: i64 = 0xEF53;
    let Some((own, env)) = env_of("apart") else { return };
    let at = Task::new(MANY, Operation::Write, Arm::Psync);
    let made = [(); 2].map(|()| {
        let mut filing = filing_at(&env, &at);
        let set = filing.prepare(1, 10_000).expect("laid out");
        let flags = rustix::fs::ioctl_getflags(filing.scratch.folder.directory());
        (set.directory, flags.map_or(0, |flags| flags.bits()))
    });
    assert_ne!(made[0].0, made[1].0, "a directory's name chooses its group");
    let system = rustix::fs::statfs(&own.0).expect("there");
    if system.f_type == EXT4 {
        assert_eq!(made.map(|(_, flags)| flags & 0x0002_0000), [0x0002_0000; 2]);
    }
}

#[test]
fn a_file_that_was_changed_or_cut_behind_our_back_fails_the_proof() {
    let Some((_own, env)) = env_of("changed") else { return };
    for cut in [false, true] {
        let at = Task::new(MANY, Operation::ReadWarm, Arm::Psync);
        let mut filing = filing_at(&env, &at);
        let set = filing.keep(150, 10_000).expect("laid out");
        let path = filing.scratch.path.join(set.directory.to_string()).join("f7");
        let mut bytes = fs::read(&path).expect("there");
        if cut {
            bytes.truncate(9_999);
        } else {
            bytes[5_000] ^= 1;
        }
        fs::write(&path, bytes).expect("written");
        let mut seen = Evidence::default();
        filing.read(&at, 150, &mut seen).expect("read");
        assert!(!seen.checks[0].ok && seen.checks[0].detail.contains("file 8"), "{seen:?}");
    }
}

#[test]
fn an_eviction_that_does_nothing_fails_the_proof() {
    let Some((_own, env)) = env_of("mapped") else { return };
    let mut filing = filing_at(&env, &Task::new(MANY, Operation::ReadCold, Arm::Psync));
    let set = filing.keep(150, 10_000).expect("laid out");
    let names = filing.names(&set, latlab_storage::Entry::File, 0..150).expect("names");
    let _mapped = Mapped::new(open_to_read(&names[3]).expect("there"), 10_000);
    let mut seen = Evidence::default();
    make_cold(&names, &mut seen).expect("asked");
    let evicted = seen.checks.iter().find(|own| own.name == "evicted").expect("noted");
    assert!(
        !evicted.ok && evicted.detail.contains("file 4 of 150"),
        "a live mapping keeps its pages: {seen:?}"
    );
}

#[test]
fn a_cold_read_that_the_kernel_did_not_count_and_a_warm_one_that_it_did_fail() {
    let mut seen = Evidence::default();
    note_fetched(&mut seen, Some(999), 1_000, true);
    note_fetched(&mut seen, Some(1 << 20), 1_000, false);
    assert!(seen.checks.iter().all(|own| !own.ok), "{seen:?}");
    let mut seen = Evidence::default();
    note_fetched(&mut seen, None, 1_000, true);
    assert!(seen.checks.is_empty() && seen.remarks.len() == 1, "{seen:?}");
}

#[test]
fn steps_that_leave_time_out_and_blocks_that_drift_are_said() {
    let Some((_own, env)) = env_of("drift") else { return };
    let at = Task::new(MANY, Operation::ReadWarm, Arm::Psync);
    let mut filing = filing_at(&env, &at);
    let seen = Evidence {
        means_ns: vec![10.0, 11.0, 12.0, 20.0, 21.0, 22.0],
        shares: vec![0.9, 0.99, 0.91],
        files: 6,
        ..Evidence::default()
    };
    let proof = filing.proof(&at, &seen);
    assert_eq!(testing::failed(&proof), ["phases add up"]);
    assert!(proof.flags.iter().any(|flag| flag.starts_with("drift: ")), "{proof:?}");
    let drift = proof.findings.and_then(|details| details.drift).expect("two halves");
    assert!((drift - 21.0 / 11.0).abs() < 1e-9, "{drift}");
}

#[test]
fn blocks_that_go_up_and_down_are_no_drift_and_single_files_far_apart_have_no_typical_time() {
    let seen = |means_ns: [f64; 6]| Evidence { means_ns: means_ns.to_vec(), ..Evidence::default() };
    let wild = seen([4e6, 18e6, 4.1e6, 17e6, 4.2e6, 19e6]);
    assert!(wild.drift().is_some_and(|drift| drift > 1.25));
    assert_eq!(wild.drifted(true), None);
    let said = wild.spread(ONE).expect("two kinds of writes");
    assert!(said.contains("4.0 ms to 19.0 ms"), "{said}");
    assert_eq!(wild.spread(MANY), None, "each block is the mean of many");

    let growing = seen([10e3, 11e3, 12e3, 20e3, 21e3, 22e3]);
    let said = growing.drifted(true).expect("all later ones are slower");
    assert!(said.contains("21.0 µs in the later half") && said.contains("left by earlier blocks"), "{said}");
    assert!(!growing.drifted(false).expect("also of reads").contains("left"));
    assert_eq!(seen([10e3, 11e3, 12e3, 10e3, 11e3, 12e3]).drifted(true), None);
}

#[test]
fn what_is_written_was_announced() {
    // A busy machine may write nothing in a short run.
    for seconds in [0.7, 7.0] {
        let Some((_own, env)) = python_of("announced", Fault::None) else { return };
        let announced: u64 = Erased(Files).points(&env).iter().map(Planned::round_bytes).sum();
        testing::one_run(&Erased(Files), &env, seconds);
        let spent = env.disk.budget().spent_bytes();
        assert!(spent <= announced, "{spent} of {announced}");
        if spent > 0 {
            return;
        }
    }
    panic!("nothing was written");
}

#[test]
fn what_points_of_one_rank_lay_out_and_write_was_announced() {
    let Some((_own, mut env)) = python_of("ranks", Fault::None) else { return };
    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
        env.settings.profile = profile;
        for rank in [Rank::Headline, Rank::Detail] {
            let mut points = Erased(Files).points(&env);
            points.retain(|planned| planned.rank == rank);
            let before = env.disk.budget().spent_bytes();
            let _ = measure_once(&Erased(Files), &env, &points);
            let spent = env.disk.budget().spent_bytes() - before;
            let a_block = |planned: &Planned| planned.laid_out_bytes + planned.written_bytes;
            let announced: u64 = points.iter().map(a_block).sum();
            assert!(0 < spent && spent <= announced, "{profile:?} {rank:?}: {spent} of {announced}");
        }
    }
}

#[test]
fn the_points_fit_one_cpu_and_64_mib_and_python_is_offered_where_it_is() {
    let Some((_own, mut env)) = env_of("points") else { return };
    env.cpus.truncate(1);
    assert!(!matches!(Files.plan(&env).support, Support::No(_)));
    assert!(Files.plan(&env).memory_bytes <= 64 << 20);
    let engines =
        |env: &Env| Files.plan(env).points.iter().filter(|own| own.point.engine == Arm::Python).count();
    assert_eq!(engines(&env), 0);
    env.interpreter = Some(Box::new(StandIn(Fault::None)));
    assert!(engines(&env) > 0);
    let mut labels: Vec<String> = Erased(Files).points(&env).iter().map(|own| own.point.label()).collect();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), Erased(Files).points(&env).len());
    for planned in Erased(Files).points(&env) {
        assert!(planned.wanted_blocks() >= LEAST_BLOCKS, "compared");
    }
    env.memory_bytes = 1 << 20;
    assert!(matches!(Files.plan(&env).support, Support::No(_)), "too little memory");
}

testing::as_a_child!(as_a_victim);

/// The process that the tests below start: what to do, and where.
fn as_a_victim(order: &str, _: &mut dyn BufRead, out: &mut dyn Write) -> std::io::Result<bool> {
    let (order, directory) = order.split_once(':').expect("what and where");
    let mut env = testing::env(64 << 20);
    env.disk = Disk::new(Path::new(directory), 1 << 30, 3);
    if order == "limit" {
        let limit = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
        setrlimit(Resource::Fsize, limit).expect("a lower one");
        env.interpreter = Some(Box::new(StandIn(Fault::None)));
        let mut kept = testing::Kept {
            wanted: Some(|point| point.operation.as_deref() == Some("write")),
            ..testing::Kept::default()
        };
        let deadline = env.clock.now_ns() + 30e9;
        kept.measure(&Erased(Files), &env, deadline);
        for record in kept.records {
            let text = record.error.map_or("measured".to_owned(), |error| error.text);
            writeln!(out, "record {}: {text}", record.point.label())?;
        }
        return Ok(true);
    }
    let mut filing = open(&env, &[]).expect("opened");
    for directory in 0u64.. {
        let write = Task::new(MANY, Operation::Write, Arm::Psync);
        filing.write(&write, 150, &mut Evidence::default()).expect("written");
        writeln!(out, "written {directory}")?;
    }
    Ok(true)
}

fn victim(order: &str, own: &Own) -> std::process::Child {
    let command = testing::env(64 << 20).child.expect("this binary");
    Command::new(&command[0])
        .args(&command[1..])
        .arg(format!("{order}:{}", own.0.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started again")
}

#[test]
fn what_a_killed_process_left_is_swept_by_the_next() {
    let Some((own, env)) = env_of("killed") else { return };
    let place = Place::open(&own.0, Purpose::Any).expect("our own directory");
    let mut child = victim("kill", &own);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.by_ref().any(|line| line.is_ok_and(|line| line.starts_with("written 2"))));
    assert_eq!(own.entries(), 1);
    assert_eq!(sweep(&place).expect("listed"), 0, "it is in use");
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert_eq!(own.entries(), 1, "a killed process removes nothing");
    drop(open(&env, &[]).expect("opened"));
    assert_eq!(own.entries(), 0, "the next session sweeps, and removes its own");
}

#[test]
fn a_limit_on_file_sizes_is_the_reason_for_large_files_only() {
    let Some((own, _)) = env_of("limit") else { return };
    let child = victim("limit", &own);
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "no signal kills it: {text}");
    let records: Vec<&str> = text.lines().filter(|line| line.contains("record ")).collect();
    let large = records.iter().find(|line| line.contains("write, 1 file,")).expect("recorded");
    assert!(large.contains("ulimit -f"), "{large}");
    let small = records.iter().find(|line| line.contains("write, 1000 files") && line.contains("psync"));
    assert!(small.expect("recorded").ends_with("measured"), "{text}");
    let python = records.iter().find(|line| line.contains("write, 1000 files") && line.contains("python"));
    assert!(python.expect("recorded").contains("ulimit -f"), "{text}");
    assert_eq!(own.entries(), 0);
}

#[test]
fn ratios_and_pythons_share_come_from_whole_passes() {
    let figure = |files, engine, total_s: f64, means_ns: &[f64]| {
        let task = Task::new(files, Operation::ReadWarm, engine);
        let details = Details {
            total_s,
            block_means_ns: means_ns.to_vec(),
            phases_share_of_wall: 1.0,
            drift: None,
            mean_ns: 0.0,
            phases: Vec::new(),
            files_a_block: files,
        };
        Figure { point: task, details: Some(details), result: PointResult::new(task.to_point(), 1.0) }
    };
    let env = testing::env(64 << 20);
    let conclude = |figures: &[Figure<Files>]| Files.conclude(&testing::header(&env), figures);
    let many = || figure(MANY, Arm::Psync, 0.006, &[6e3; 2]);
    let findings = conclude(&[
        figure(1, Arm::Psync, 0.002, &[2e6; 3]),
        many(),
        figure(MANY, Arm::Python, 0.010, &[1e4; 3]),
        // Time for one block only.
        figure(1, Arm::Python, 0.5, &[5e8]),
    ])
    .expect("concluded");
    assert_eq!(findings.ratios.len(), 1, "python has no single file to compare with");
    assert!((findings.ratios[0].ratio - 3.0).abs() < 1e-9);
    let share = findings.python_share_per_file_ns["read-warm"];
    assert!((share - 4_000.0).abs() < 1e-6, "{share}");
    assert!(conclude(&[]).is_none());
    let wide = [1e3, 2e3, 6e3, 6e3, 3e4, 4e4];
    let findings = conclude(&[many(), figure(MANY, Arm::Python, 0.006, &wide)]).expect("concluded");
    assert!(!findings.python_shares[0].decided);
    assert!(findings.python_share_per_file_ns.is_empty(), "what is not known is not given");
    let flushed = Task::new(MANY, Operation::Write, Arm::Psync).flushed();
    assert_eq!(flushed.name(), "write fsync");
}
