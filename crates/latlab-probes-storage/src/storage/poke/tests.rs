use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

#[test]
fn its_points_fit_one_cpu_and_little_memory_and_say_their_real_size() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Poke.plan(&env).points;
    for planned in &points {
        let Pokes { file_bytes: size, path, .. } = planned.point;
        assert!(path != WARM || size <= env.memory_bytes);
        assert!(size <= SMALL[1] || size <= disk::file_bytes(&env));
        assert_eq!(planned.written_bytes, written(env.settings.profile, size, path));
    }
    assert_eq!(points[0].point.file_bytes, 0);
    assert_eq!(points[0].round_bytes(), 0);
    for size in SMALL {
        let own = points.iter().filter(|planned| planned.point.file_bytes == size);
        let laid_out: u64 = own.map(|planned| planned.laid_out_bytes).sum();
        assert_eq!(laid_out, pages(size) * PAGE_BYTES, "once for all ways");
    }
    let written: u64 = points.iter().map(Planned::round_bytes).sum();
    assert!(written < 64 << 20, "{written}");
}

#[test]
fn cold_pokes_that_are_no_slower_than_warm_ones_break_a_rule() {
    let figure = |size, path, p50| {
        let point = point(size, path);
        Figure { point, details: None, result: PointResult::new(point.to_point(), p50) }
    };
    let figures = [
        figure(0, WARM, 20.0),
        figure(1_000, WARM, 1_500.0),
        figure(1_000, COLD, 1_400.0),
        figure(1_000, DIRECT, 120_000.0),
    ];
    let header = testing::header(&testing::env(64 << 20));
    let findings = Poke.conclude(&header, &figures).expect("findings");
    assert_eq!([false, true], [0, 1].map(|nth: usize| findings.sanity[nth].holds));
    assert_eq!(findings.sizes[0].direct_over_warm, Some(80.0));
    assert!(Poke.conclude(&header, &figures[..1]).is_none());
}

#[cfg(target_os = "linux")]
mod linux {
    use latlab_harness::{AnyProbe as _, Erased, Proof, Session as _, Support};
    use latlab_storage::{ProcessCounters, residency};

    use super::*;
    use crate::planted::{Mapped, on_a_disk};
    use crate::storage::poke::work::{Evidence, Fault, open};
    use crate::storage::proved_once;

    const SIZE: u64 = SMALL[1];

    /// The proof after one block of the file of 1 MB, or why there is none.
    fn proved(env: &Env, path: Access, fault: Option<Fault>) -> Result<Proof<Details>, ProbeError> {
        let point = point(SIZE, path);
        let mut session = open(env, &[point]).expect("room");
        session.fault = fault;
        proved_once(&mut session, env, &point)
    }

    #[test]
    fn of_a_file_that_was_cut_short_the_points_say_what_there_is_of_it() {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(2 << 30)) else { return };
        let size = |env: &Env| {
            let mut sizes: Vec<u64> = large(env, COLD);
            sizes.extend(large(env, WARM));
            sizes.dedup();
            sizes
        };
        let planned = size(&env);
        // On a slow disk the first piece is all.
        disk::lay_out(&env, disk::file_bytes(&env), std::time::Duration::ZERO);
        let real = env.disk.laid_out_bytes().expect("the first piece");
        assert!(planned[0] > real, "{planned:?}");
        assert_eq!(size(&env), [real]);
        let support = Poke.plan(&env).support;
        assert!(matches!(support, Support::No(reason) if reason.contains("the disk was too slow")));
        let points = [COLD, WARM].map(|path| point(real, path));
        let mut session = open(&env, &points).expect("what there is");
        for point in points {
            let proof = proved_once(&mut session, &env, &point).expect("poked");
            assert_eq!(testing::failed(&proof), Vec::<&str>::new());
            assert!(proof.flags[0].starts_with("poked into 4 MiB of the test file"), "{:?}", proof.flags);
        }
    }

    #[test]
    fn every_point_proves_its_work() {
        let env = testing::env_of_one_cpu(64 << 20);
        if !testing::has_disk(&Erased(Poke), &env) {
            return;
        }
        let direct = env.disk.test_file(disk::file_bytes(&env)).is_ok_and(|file| file.direct.is_ok());
        let mut points = Erased(Poke).points(&env);
        points.retain(|planned| direct || planned.point.path.as_deref() != Some("direct"));
        let proofs = testing::assert_proved(&Erased(Poke), &env, &points);
        assert!(proofs[0].flags[0].contains("zero"));
    }

    #[test]
    fn a_file_that_was_not_evicted_gives_no_cold_figure() {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(64 << 20)) else { return };
        let fault = Some(Fault::NotEvicted);
        assert_eq!(testing::failed(&proved(&env, WARM, fault).expect("poked")), Vec::<&str>::new());
        assert!(testing::failed(&proved(&env, COLD, fault).expect("poked")).contains(&"evicted"));
    }

    #[test]
    fn no_page_is_poked_twice_between_two_evictions() {
        let (mut found, mut rng) = (Evidence::default(), latlab_stats::rng::Rng::new(7));
        for _ in 0..5 {
            found.order(SIZE, 150, &mut rng);
            let mut pages: Vec<u64> = (0..150).map(|_| found.next_page()).collect();
            pages.sort_unstable();
            pages.dedup();
            assert_eq!(pages.len(), 150);
        }
    }

    #[test]
    fn what_is_warm_came_page_by_page_and_nothing_came_ahead_of_it() {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(64 << 20)) else { return };
        let test = env.disk.test_file(disk::file_bytes(&env)).expect("room");
        // As another probe leaves it: read from front to back.
        let mut whole = vec![0; usize::try_from(test.bytes).expect("small")];
        rustix::io::pread(&*test.file, &mut whole, 0).expect("read");
        let part = test.bytes / 2 / 4096 * 4096;
        let point = point(part, WARM);
        let mut session = open(&env, &[point]).expect("its file");
        session.select(&point).expect("warmed");
        assert_eq!(residency(session.file(part)).expect("asked").resident_bytes, part);
    }

    #[test]
    fn an_eviction_that_did_nothing_gives_no_cold_figure() {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(64 << 20)) else { return };
        if testing::runner().is_empty() {
            let point = point(SIZE, COLD);
            let mut session = open(&env, &[point]).expect("room");
            let _mapped = Mapped::new(session.file(SIZE), 1_000_000);
            let error = proved_once(&mut session, &env, &point);
            let error = error.expect_err("pages were in memory").to_string();
            assert!(error.contains("could be evicted"), "{error}");
        }
    }

    #[test]
    fn pokes_that_met_pages_which_the_kernel_took_back_do_not_count_and_the_record_says_so_or_why_there_is_none()
     {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(64 << 20)) else { return };
        if ProcessCounters::of_this_thread().is_none() {
            return;
        }
        let pokes = |proof: Proof<Details>| proof.findings.expect("details").pokes;
        let proof = proved(&env, WARM, Some(Fault::TakenBackOnce)).expect("poked");
        assert_eq!(testing::failed(&proof), Vec::<&str>::new());
        assert!(proof.flags[0].contains("warm pokes do not count"), "{:?}", proof.flags);
        let clean = proved(&env, WARM, None).expect("poked");
        assert_eq!(clean.flags, Vec::<String>::new());
        let (some, all) = (pokes(proof), pokes(clean));
        assert!(some < all && some >= all / 2, "{some} of {all}");
        let text = proved(&env, WARM, Some(Fault::TakenBack)).expect_err("no figure").to_string();
        assert!(text.contains("reclaimed pages of the file") && text.contains("mincore"), "{text}");
    }

    #[test]
    fn other_bytes_than_were_read_fail_the_proof_on_every_path() {
        let Some(env) = on_a_disk(&Erased(Poke), testing::env_of_one_cpu(64 << 20)) else { return };
        let test = env.disk.test_file(disk::file_bytes(&env)).expect("room");
        for path in [WARM, COLD, DIRECT].into_iter().filter(|path| *path != DIRECT || test.direct.is_ok()) {
            let proof = proved(&env, path, Some(Fault::OtherBytes)).expect("poked");
            assert!(testing::failed(&proof).contains(&"contents unchanged"), "{path:?}");
        }
    }
}
