//! On this machine's memory, small: what was moved must be proved, and what was not moved must be found.

use latlab_harness::{AnyProbe as _, Erased, RemoteBlock};
use latlab_record::{Kind, Record, Settings};

use super::*;
use latlab_probes_testing::{self as testing, Kept};

fn env(settings: Settings, memory_bytes: u64) -> Env {
    Env { settings, ..testing::env(memory_bytes) }
}

fn quick() -> Settings {
    Settings { profile: Profile::Quick, seed: 7, ..Settings::default() }
}

/// Six blocks, and half as many more that may have been disturbed.
const BLOCKS: usize = 9;
/// No bound on how long that takes; an idle machine needs a second.
const DEADLINE_NS: f64 = 300e9;

/// With so few blocks to a point that a busy machine gets through them: what is asked for is each figure's
/// proof, not a narrow interval.
fn measure(env: &Env, wanted: fn(&Point) -> bool) -> Vec<Record> {
    let mut kept = Kept { wanted: Some(wanted), most_blocks: Some(BLOCKS), ..Kept::default() };
    kept.measure(&Erased(Bandwidth), env, env.clock.now_ns() + DEADLINE_NS);
    kept.records.retain(|record| record.kind != Kind::Absent);
    kept.records
}

fn labels(points: &[Planned<Moves>]) -> Vec<String> {
    points.iter().map(|planned| planned.point.to_point().label()).collect()
}

#[test]
fn every_operation_gives_a_rate_with_its_proof_and_its_convention() {
    let env = env(quick(), 24 << 20);
    let records = measure(&env, |point| point.threads == Some(1) && point.working_set_bytes == Some(8 << 20));
    assert!(records.len() >= 4, "{}", records.len());
    for record in &records {
        assert!(record.error.is_none() && record.checks.iter().any(|check| check.ok), "{:?}", record.checks);
        assert_eq!(record.unit, Unit::BytesPerS);
        let summary = record.summary.as_ref().expect("a figure");
        // A microsecond a byte and a petabyte a second are no memory.
        assert!((1e6..1e15).contains(&summary.p50.expect("a median")), "{:?}", summary.p50);
        let point = Moves::of_point(&record.point).expect("of this probe");
        assert_eq!(record.work.convention.as_deref(), Some(point.operation.convention()));
        assert!(record.work.bytes > 0);
        assert_eq!(record.engine, record.point.isa);
    }
}

#[test]
fn the_smallest_sets_are_measured_whole() {
    let env = env(Settings { profile: Profile::Standard, ..quick() }, 24 << 20);
    let records = measure(&env, |point| point.threads == Some(1) && point.working_set_bytes == Some(8 << 10));
    assert!(records.len() >= 4, "{}", records.len());
    for record in records {
        assert!(record.error.is_none(), "{:?}", record.error);
        assert!(record.work.bytes >= record.work.ops * 8_000, "{:?}", record.work);
    }
}

#[test]
fn workers_prove_each_members_part() {
    let env = Env { settings: quick(), ..testing::env_of_two_cpus(24 << 20) };
    let records = measure(&env, |point| point.threads == Some(2) && point.working_set_bytes >= Some(8 << 20));
    assert!(!records.is_empty());
    for record in records {
        assert!(record.error.is_none(), "{:?}", record.error);
        let findings = record.findings.expect("rates of the members");
        assert_eq!(findings["per_thread"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn on_several_nodes_each_thread_has_memory_of_its_own() {
    let mut env = Env { settings: quick(), ..testing::env_of_two_cpus(24 << 20) };
    env.machine.numa = [0, 1].map(|id| testing::node(id, &[id])).into();
    assert_eq!(Layout::of(&env).threads, [2]);
    assert_eq!(Bandwidth.plan(&env).memory_bytes, 24 << 20, "both fit");
    let records = measure(&env, |point| point.threads == Some(2));
    assert!(!records.is_empty());
    assert!(records.iter().all(|record| record.error.is_none()));
}

#[test]
fn one_cpu_gives_one_thread_and_says_so() {
    let mut env = env(quick(), 24 << 20);
    env.cpus = vec![env.home_cpu];
    let plan = Bandwidth.plan(&env);
    assert!(plan.points.iter().all(|planned| planned.point.threads == 1));
    assert_eq!(plan.cpus, 1);
    let absent = Erased(Bandwidth).conclude(&testing::header(&env), &[]);
    assert!(absent[0].error.as_ref().expect("a reason").text.contains("one CPU"));
}

#[test]
fn a_quota_below_two_cpus_gives_one_thread_too() {
    let mut env = env(quick(), 24 << 20);
    env.cpus = vec![0, 1, 2, 3];
    env.machine.limits.usable_cpus = Some(1.5);
    assert_eq!(Bandwidth.plan(&env).cpus, 1);
    env.machine.limits.usable_cpus = Some(3.0);
    assert_eq!(Layout::of(&env).threads, [2, 3]);
}

#[test]
fn gentle_stays_in_the_caches_with_one_thread() {
    let env = env(Settings { gentle: true, ..quick() }, 4 << 30);
    let second = levels::second(&env.machine);
    for Planned { point, .. } in Bandwidth.plan(&env).points {
        assert!(point.threads == 1 && point.working_set_bytes <= 4 * second, "{point:?}");
    }
}

#[test]
fn what_a_reader_wants_first_is_first() {
    let env = env(quick(), 4 << 30);
    let points = Bandwidth.plan(&env).points;
    let first = labels(&points[..6]);
    assert!(first[0].starts_with("read, 128 MiB") && first[1].starts_with("read, 24 KiB"), "{first:?}");
    assert!(first[4].starts_with("copy, 128 MiB") && first[5].starts_with("triad, 128 MiB"), "{first:?}");
}

#[test]
fn working_sets_that_end_in_the_caches_are_said() {
    assert!(matches!(Bandwidth.plan(&env(quick(), 64 << 20)).support, Support::Degraded(_)));
}

/// Kernels that leave out the last line of each call.
mod lazy {
    use super::vector;
    use vector::Kernels;

    fn honest() -> &'static Kernels {
        vector::available().pop().expect("the portable ones")
    }

    unsafe fn read(from: *const u8, lines: usize, passes: u64) -> u64 {
        // SAFETY: fewer lines than the caller promises.
        unsafe { (honest().read)(from, lines - 1, passes) }
    }
    unsafe fn write(to: *mut u8, lines: usize, passes: u64, word: u64) {
        // SAFETY: as above.
        unsafe { (honest().write)(to, lines - 1, passes, word) }
    }
    unsafe fn copy(to: *mut u8, from: *const u8, lines: usize, passes: u64) {
        // SAFETY: as above.
        unsafe { (honest().copy)(to, from, lines - 1, passes) }
    }
    unsafe fn triad(to: *mut u8, b: *const u8, c: *const u8, lines: usize, passes: u64, factor: f64) {
        // SAFETY: as above.
        unsafe { (honest().triad)(to, b, c, lines - 1, passes, factor) }
    }

    pub(super) static KERNELS: Kernels =
        Kernels { isa: "lazy", read, write, write_nt: Some(write), copy, triad };
}

#[test]
fn kernels_that_leave_out_a_line_fail_the_proof() {
    let env = Env { settings: quick(), ..testing::env_of_two_cpus(24 << 20) };
    let mut session = Moving::open(&env, vec![&lazy::KERNELS], &[]).expect("24 MiB are there");
    for (size, threads) in [(24 << 10, 1), (8 << 20, 1), (64 << 10, 2)] {
        for operation in Operation::ALL {
            let point = point(operation, size, threads, &lazy::KERNELS, None);
            let mut evidence = Evidence::default();
            session.select(&point).expect("it fits");
            let taken = |block: &mut Block| session.block(&point, &mut evidence, block);
            RemoteBlock::take(&env.clock, None, taken).expect("windows");
            let proof = session.proof(&point, &evidence);
            assert!(!testing::failed(&proof).is_empty(), "{point:?}");
        }
    }
}

#[test]
fn a_byte_changed_in_source_or_destination_is_found() {
    let field = Field::new(1 << 20, Pages::Base, &[], 3).expect("1.5 MiB");
    let widest = vector::available()[0];
    let field = Arc::new(field);
    let pass = |operation| {
        let streams = Streams::new(&field, Shape::new(operation, 96 << 10, 0, 0)).expect("it fits");
        let tally = Arc::<Tally>::default();
        let pass = Pass::new(streams.clone(), widest, Arc::clone(&tally)).expect("the operation exists");
        (pass, streams, tally)
    };
    for operation in Operation::ALL.into_iter().filter(|operation| has(widest, *operation)) {
        let (mut pass, streams, tally) = pass(operation);
        if operation.writes() {
            let shape = streams.shape();
            let (words, wrong) = pass.prove_destination(1);
            assert_eq!((words, wrong), (shape.slice_words(), 0), "{operation:?}");
            let byte = streams.dest(5).wrapping_add(17);
            // SAFETY: inside the destination.
            unsafe { byte.write(byte.read() ^ 4) };
            assert_eq!(streams.wrong_words(0, shape.stream_lines), 1, "{operation:?}");
        } else {
            pass.warm(1);
            assert_eq!(tally.checksums(), (1, 0), "{operation:?}");
        }
    }
    let (mut read, streams, tally) = pass(Operation::Read);
    let byte = streams.source(0, 7).cast_mut().wrapping_add(3);
    // SAFETY: inside the source.
    unsafe { byte.write(byte.read() ^ 1) };
    read.warm(1);
    let (compared, wrong) = tally.checksums();
    assert_eq!((compared, wrong), (1, 1));
}

#[test]
fn slices_cover_a_set_and_go_on_where_they_ended() {
    for operation in Operation::ALL {
        for bytes in [3 << 20, 8 << 20, 5_000_000, 64 << 20] {
            let shape = Shape::new(operation, bytes, 0, 0);
            assert_eq!(shape.stream_lines % shape.slice_lines, 0);
            let moved = (shape.stream_lines * 64 * operation.streams()) as u64;
            assert!(moved <= bytes && moved * 100 >= bytes * 97, "{operation:?} {bytes}: {moved}");
            assert!(shape.bytes_per_op() <= 2 << 20);
        }
    }
}
