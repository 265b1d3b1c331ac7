use super::*;
use latlab_probes_testing as testing;

#[test]
fn its_points_fit_one_cpu_and_little_memory_and_say_their_real_size() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Poke.points(&env);
    for planned in &points {
        let size = planned.point.file_bytes.expect("each has one");
        let path = Access::of(&planned.point);
        assert!(path != WARM || size <= env.memory_bytes);
        assert!(size <= SMALL[1] || size <= disk::file_bytes(&env));
        assert_eq!(planned.written_bytes, written(env.settings.profile, size, path));
    }
    assert_eq!(points[0].point.file_bytes, Some(0));
    assert_eq!(points[0].round_bytes(), 0);
    for size in SMALL {
        let own = points.iter().filter(|planned| planned.point.file_bytes == Some(size));
        let laid_out: u64 = own.map(|planned| planned.laid_out_bytes).sum();
        assert_eq!(laid_out, pages(size) * PAGE_BYTES, "once for all ways");
    }
    let written: u64 = points.iter().map(Planned::round_bytes).sum();
    assert!(written < 64 << 20, "{written}");
}

#[test]
fn cold_pokes_that_are_no_slower_than_warm_ones_break_a_rule() {
    let result = |size, path, p50| PointResult::new(point(size, path), p50);
    let results = [
        result(0, WARM, 20.0),
        result(1_000, WARM, 1_500.0),
        result(1_000, COLD, 1_400.0),
        result(1_000, DIRECT, 120_000.0),
    ];
    let env = testing::env(64 << 20);
    let records = Poke.conclude(&testing::header(&env), &results);
    let findings = records[0].findings.as_ref().expect("findings");
    assert_eq!(findings["sanity"][0]["holds"], false);
    assert_eq!(findings["sanity"][1]["holds"], true);
    assert_eq!(findings["sizes"][0]["direct_over_warm"], 80.0);
    assert!(Poke.conclude(&testing::header(&env), &results[..1]).is_empty());
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use latlab_harness::measure_once;
    use latlab_storage::Disk;

    use super::*;
    use crate::storage::poke::work::{Fault, Poking};

    /// The probe with a fault.
    struct Faulty(Fault);

    impl AnyProbe for Faulty {
        fn spec(&self) -> &'static Spec {
            &SPEC
        }
        fn plan(&self, env: &Env) -> Plan<Point> {
            let path = match self.0 {
                Fault::TakenBack | Fault::TakenBackOnce => WARM,
                _ => COLD,
            };
            Plan { points: of(env, &[path]), ..Poke.plan(env) }
        }
        fn open<'env>(
            &'env self,
            env: &'env Env,
            group: &[Planned],
        ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
            let mut session = Poking::new(env, group)?;
            session.plant(self.0);
            Ok(Box::new(session))
        }
    }

    fn of(env: &Env, paths: &[Access]) -> Vec<Planned> {
        paths.iter().map(|path| planned(env, SMALL[1], *path)).collect()
    }

    #[test]
    fn of_a_file_that_was_cut_short_the_points_say_what_there_is_of_it() {
        let env = testing::env_of_one_cpu(2 << 30);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        let size = |env: &Env| {
            let mut sizes: Vec<u64> = large(env, COLD);
            sizes.extend(large(env, WARM));
            sizes.dedup();
            sizes
        };
        let planned = size(&env);
        // On a slow disk the first piece is all.
        disk::lay_out(&env, disk::file_bytes(&env), std::time::Duration::ZERO);
        let real = disk::laid_out(&env).expect("the first piece");
        assert!(planned[0] > real, "{planned:?}");
        assert_eq!(size(&env), [real]);
        assert!(matches!(Poke.supports(&env), Support::No(reason) if reason.contains("the disk was slower")));
        let mut points = points(&env);
        points.retain(|each| each.point.file_bytes == Some(real) && Access::of(&each.point) != DIRECT);
        let proofs = measure_once(&Poke, &env, &points);
        assert_eq!(proofs.len(), 2);
        for (_, proof) in proofs {
            assert_eq!(testing::failed(&proof), Vec::<&str>::new());
            assert!(proof.flags[0].starts_with("poked into 4 MiB of the test file"), "{:?}", proof.flags);
        }
    }

    #[test]
    fn every_point_proves_its_work() {
        let env = testing::env_of_one_cpu(64 << 20);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        let direct = env.disk.test_file(disk::file_bytes(&env)).is_ok_and(|file| file.direct.is_ok());
        let mut points = Poke.points(&env);
        points.retain(|planned| direct || Access::of(&planned.point) != DIRECT);
        let proofs = testing::assert_proved(&Poke, &env, &points);
        assert!(proofs[0].flags[0].contains("zero"));
    }

    #[test]
    fn a_file_that_was_not_evicted_gives_no_cold_figure() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        let outcomes = measure_once(&Faulty(Fault::NotEvicted), &env, &of(&env, &[WARM, COLD]));
        assert_eq!(testing::failed(&outcomes[0].1), Vec::<&str>::new());
        assert!(testing::failed(&outcomes[1].1).contains(&"evicted"));
    }

    #[test]
    fn no_page_is_poked_twice_between_two_evictions() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        let planned = of(&env, &[COLD]);
        let mut session = Poking::new(&env, &planned).expect("room");
        session.select(&planned[0].point).expect("its file");
        for _ in 0..5 {
            let mut pages = session.places_of_a_round(150);
            pages.sort_unstable();
            pages.dedup();
            assert_eq!(pages.len(), 150);
        }
    }

    #[test]
    fn what_is_warm_came_page_by_page_and_nothing_came_ahead_of_it() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        let test = env.disk.test_file(disk::file_bytes(&env)).expect("room");
        // As another probe leaves it: read from front to back.
        let mut whole = vec![0; usize::try_from(test.bytes).expect("small")];
        rustix::io::pread(&*test.file, &mut whole, 0).expect("read");
        let part = test.bytes / 2 / 4096 * 4096;
        let planned = [planned(&env, part, WARM)];
        let mut session = Poking::new(&env, &planned).expect("its file");
        session.select(&planned[0].point).expect("warmed");
        assert_eq!(session.resident_bytes(), part);
    }

    #[test]
    fn an_eviction_that_did_nothing_gives_no_cold_figure() {
        let env = testing::env(64 << 20);
        // Under emulation the planted mapping did not hold the pages: they were evicted, and the figures are right.
        if !testing::has_disk(&Poke, &env) || !testing::runner().is_empty() {
            return;
        }
        let records = testing::records(&Faulty(Fault::Mapped), &env);
        let texts: Vec<&str> =
            records.iter().filter_map(|record| Some(record.error.as_ref()?.text.as_str())).collect();
        assert!(texts.iter().any(|text| text.contains("could be evicted")), "{texts:?}");
    }

    #[test]
    fn pages_that_the_kernel_took_back_are_brought_back_and_the_pokes_that_met_them_do_not_count() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) || !Poking::is_told_what_is_fetched() {
            return;
        }
        let faulty = Faulty(Fault::TakenBackOnce);
        let (_, proof) = measure_once(&faulty, &env, &faulty.points(&env)).remove(0);
        assert_eq!(testing::failed(&proof), Vec::<&str>::new());
        assert!(proof.flags[0].contains("warm pokes do not count"), "{:?}", proof.flags);
        let pokes = proof.findings.expect("findings")["pokes"].as_u64().expect("a count");
        let all = pokes_of_all_portions(&env);
        assert!(pokes < all && pokes >= all / 2, "{pokes} of {all}");
    }

    fn pokes_of_all_portions(env: &Env) -> u64 {
        let clean = measure_once(&Poke, env, &of(env, &[WARM])).remove(0).1;
        assert_eq!(clean.flags, Vec::<String>::new());
        clean.findings.expect("findings")["pokes"].as_u64().expect("a count")
    }

    #[test]
    fn where_the_kernel_takes_pages_back_again_and_again_there_is_no_warm_figure_and_the_record_says_why() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) || !Poking::is_told_what_is_fetched() {
            return;
        }
        let records = testing::records(&Faulty(Fault::TakenBack), &env);
        let text = &records[0].error.as_ref().expect("no figure").text;
        assert!(text.contains("taken pages of the file back") && text.contains("mincore"), "{text}");
    }

    #[test]
    fn other_bytes_than_were_read_fail_the_proof_on_every_path() {
        let env = testing::env(64 << 20);
        if !testing::has_disk(&Poke, &env) {
            return;
        }
        for path in [WARM, COLD] {
            let outcomes = measure_once(&Faulty(Fault::OtherBytes), &env, &of(&env, &[path]));
            assert!(testing::failed(&outcomes[0].1).contains(&"contents unchanged"), "{path:?}");
        }
        let test = env.disk.test_file(disk::file_bytes(&env)).expect("room");
        if test.direct.is_ok() {
            let outcomes = measure_once(&Faulty(Fault::OtherBytes), &env, &of(&env, &[DIRECT]));
            assert!(testing::failed(&outcomes[0].1).contains(&"contents unchanged"));
        }
    }

    #[test]
    fn memory_is_no_disk_and_a_users_file_is_not_poked_into() {
        let mut env = testing::env(64 << 20);
        env.settings.file = Some("Cargo.toml".to_owned());
        assert!(matches!(Poke.supports(&env), Support::No(_)));
        let mut env = testing::env(64 << 20);
        let shared = Path::new("/dev/shm");
        if shared.is_dir() {
            env.disk = Disk::new(shared, 64 << 20, 3);
            let Support::No(reason) = Poke.supports(&env) else {
                panic!("tmpfs passes for a disk");
            };
            assert!(reason.contains("tmpfs"), "{reason}");
        }
    }
}
