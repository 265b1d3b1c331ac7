use latlab_harness::{AnyProbe as _, Erased, PointFields as _};
use latlab_probes_testing as testing;
use latlab_record::Kind;

use super::*;
#[cfg(target_os = "linux")]
use crate::planted::Mapped;
use crate::planted::on_a_disk;
#[cfg(target_os = "linux")]
use crate::storage::proved_once;

/// As the plan has it.
fn of_path(path: Access, block_bytes: u64) -> latlab_harness::Planned {
    latlab_harness::Planned::new(Blocks::of(path, block_bytes).to_point())
}

#[test]
fn points_fit_a_small_machine() {
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env_of_one_cpu(64 << 20)) else { return };
    let plan = ReadSequential.plan(&env);
    assert!(plan.points.iter().any(|planned| planned.point.path == DIRECT));
    assert!(plan.memory_bytes <= 64 << 20);
    assert!(plan.points.iter().all(|planned| planned.round_bytes() == 0));
    let mut small = testing::env_of_one_cpu(1 << 20);
    small.settings.profile = Profile::Thorough;
    assert!(ReadSequential.plan(&small).memory_bytes <= 1 << 20);
}

#[test]
fn stretches_are_whole_blocks_and_leave_room_for_another_one() {
    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
        for path in PATHS {
            for block_bytes in BLOCKS {
                let stretch = stretch(profile, 1 << 30, path, block_bytes);
                assert!(stretch.is_multiple_of(block_bytes), "{path:?} {block_bytes}");
                let calls = if path == COLD { 2 } else { 1 };
                assert!((calls * block_bytes..=256 << 20).contains(&stretch));
            }
        }
    }
}

#[test]
fn every_path_is_proved_in_one_block() {
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let paths =
        [(COLD, 64 * KIB), (WARM, 4 * KIB), (WARM, 512), (DIRECT, 4 * KIB), (DIRECT, MIB), (COLD, 512)];
    let points = paths.map(|(path, block_bytes)| of_path(path, block_bytes));
    let proofs = testing::assert_proved(&Erased(ReadSequential), &env, &points);
    for ((path, _), proof) in paths.into_iter().zip(&proofs) {
        let names: Vec<&str> = proof.checks.iter().map(|check| check.name.as_str()).collect();
        assert!(names.contains(&"extents written") && names.contains(&"contents verified"), "{names:?}");
        assert_eq!(names.contains(&"evicted"), path == COLD);
        assert_eq!(names.contains(&"resident"), path == WARM);
        assert_eq!(names.contains(&"direct"), path == DIRECT);
        let findings = proof.findings.as_ref().expect("a bandwidth");
        assert!(findings["bytes_per_s"].as_f64().expect("a number") > 0.0);
        assert!(proof.work.bytes > 0);
    }
}

#[test]
fn a_users_file_is_read_and_nothing_is_written() {
    let Some(mut env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let binary = std::env::current_exe().expect("a path");
    // The build may be reached by way of a link; only regular files are taken.
    let binary = binary.canonicalize().expect("it runs");
    env.settings.file = Some(binary.to_string_lossy().into_owned());
    let direct = of_path(DIRECT, 4 * KIB);
    let planned = Erased(ReadSequential).points(&env);
    assert_eq!(planned.iter().filter(|planned| planned.point == direct.point).count(), 1);
    let outcomes = latlab_harness::measure_once(&Erased(ReadSequential), &env, &[direct]);
    let (samples, proof) = &outcomes[0];
    assert!(*samples > 0 && proof.flags.len() == 1, "{:?}", proof.flags);
    assert_eq!(env.disk.budget().spent_bytes(), 0);
    assert!(!matches!(
        crate::disk::support_writing(&env),
        latlab_harness::Support::Yes | latlab_harness::Support::Degraded(_)
    ));
}

#[test]
fn a_run_concludes_a_fit_from_its_points() {
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let records = testing::records_of_visits(&Erased(ReadSequential), &env, 60);
    for record in &records {
        // An emulated or overloaded disk may be slow, never unproved.
        assert!(record.checks.iter().all(|check| check.ok), "{:?}", record.checks);
    }
    if let Some(derived) = records.iter().find(|record| record.kind == Kind::Derived) {
        let findings = derived.findings.as_ref().expect("findings");
        assert!(findings["rules"].as_array().is_some_and(|rules| rules.len() == 1));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_met_pages_that_the_kernel_took_back_does_not_count_and_is_read_again_or_has_no_figure() {
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let point = Blocks::of(WARM, 64 * KIB);
    let mut session = work::open(&env, &[]).expect("room");
    session.taken_back = 1;
    let proof = proved_once(&mut session, &env, &point).expect("read again");
    assert!(proof.work.bytes > 0);
    assert_eq!(testing::failed(&proof), Vec::<&str>::new());
    let resident = proof.checks.iter().find(|check| check.name == "resident");
    assert!(resident.is_some_and(|check| check.detail.contains("; 1 readings")), "{resident:?}");
    session.taken_back = u32::MAX;
    let error = proved_once(&mut session, &env, &point).expect_err("no figure").to_string();
    assert!(error.contains("the kernel reclaims pages"), "{error}");
}

/// How many pages of the file's begin are parts of large folios, of how many that could be asked about; only
/// root may ask.
#[cfg(target_os = "linux")]
fn in_large_folios(file: impl std::os::fd::AsFd, bytes: usize) -> Option<(usize, usize)> {
    use std::os::unix::fs::FileExt;

    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    /// `KPF_COMPOUND_HEAD` and `KPF_COMPOUND_TAIL`.
    const COMPOUND: u64 = (1 << 15) | (1 << 16);

    let number = |file: &std::fs::File, place: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, place * 8).ok().map(|()| u64::from_ne_bytes(bytes))
    };
    let maps = std::fs::File::open("/proc/self/pagemap").ok()?;
    let flags = std::fs::File::open("/proc/kpageflags").ok()?;
    let mapped = Mapped::new(file, bytes);
    let pages = (0..bytes as u64 / 4096).map(|page| mapped.base as u64 / 4096 + page);
    let frames = pages.filter_map(|page| number(&maps, page).filter(|entry| entry & PRESENT != 0));
    let known: Vec<u64> = frames
        .map(|entry| entry & FRAME)
        .filter(|frame| *frame != 0)
        .filter_map(|frame| number(&flags, frame))
        .collect();
    let large = known.iter().filter(|what| **what & COMPOUND != 0).count();
    (!known.is_empty()).then_some((large, known.len()))
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_warm_lies_in_the_page_cache_as_a_reader_from_front_to_back_leaves_it() {
    const BYTES: usize = 8 << 20;
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let target = crate::disk::Target::open(&env).expect("room");
    let mut chunk = vec![0; 1 << 16];
    let mut by = |read_ahead: bool| {
        target.chill().expect("cold");
        target.read_ahead(read_ahead).expect("advised");
        for offset in (0..BYTES as u64).step_by(chunk.len()) {
            assert_eq!(rustix::io::pread(&*target.test.file, &mut *chunk, offset), Ok(chunk.len()));
        }
        in_large_folios(&*target.test.file, BYTES)
    };
    // Only root sees folios, and not every file system has large ones.
    let (Some((ahead, _)), Some((apart, _))) = (by(true), by(false)) else { return };
    if ahead <= apart {
        return;
    }
    target.chill().expect("cold");
    let mut session = work::open(&env, &[]).expect("room");
    latlab_harness::Session::select(&mut session, &Blocks::of(WARM, 64 * KIB)).expect("warm");
    let (large, known) = in_large_folios(session.file(), BYTES).expect("asked before");
    assert!(2 * large > known, "{large} of {known}; read ahead {ahead}, apart {apart}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_live_mapping_leaves_no_cold_figure() {
    let Some(env) = on_a_disk(&Erased(ReadSequential), testing::env(64 << 20)) else { return };
    let target = crate::disk::Target::open(&env).expect("room");
    let _mapped = Mapped::new(&*target.test.file, 1 << 20);
    let chilled = target.chill();
    assert!(matches!(chilled, Err(latlab_harness::ProbeError::Proof(_))), "{chilled:?}");
}
