use latlab_probes_testing as testing;

use super::*;

#[test]
fn it_is_planned_only_where_a_directory_is_named_and_says_what_it_needs() {
    let mut env = testing::env(64 << 20);
    assert!(!FirstTouch.wanted(&env.settings));
    env.settings.only = vec![FirstTouch::SPEC.id.to_owned()];
    assert!(FirstTouch.wanted(&env.settings));
    let refused = |env: &Env, why: &str| {
        let plan = FirstTouch.plan(env);
        assert!(plan.points.is_empty());
        assert!(matches!(&plan.support, Support::No(reason) if reason.contains(why)), "{:?}", plan.support);
    };
    refused(&env, "--first-touch DIR");
    env.settings.only.clear();
    env.settings.first_touch = Some("/nowhere at all".to_owned());
    assert!(FirstTouch.wanted(&env.settings));
    refused(&env, "--profile thorough");
    env.settings.profile = Profile::Thorough;
    refused(&env, if cfg!(target_os = "linux") { "opening the directory" } else { "Linux only" });
}

#[test]
fn a_ratio_is_called_what_its_interval_allows() {
    let (verdict, detail) = judge(4096, 1.9, Some([1.4, 2.6]));
    assert_eq!(verdict, Verdict::CostsMore);
    assert_eq!(
        detail,
        "blocks of 4 KiB take 1.90 times (1.40 to 2.60) as long the first time: the storage below fetches \
            them on first access, or caches what was read"
    );
    let (verdict, detail) = judge(1 << 20, 1.01, Some([0.95, 1.08]));
    assert_eq!(verdict, Verdict::Alike);
    assert!(detail.starts_with("blocks of 1 MiB take 1.01 times (0.95 to 1.08) as long"), "{detail}");
    assert!(detail.contains("have been read since the machine was started"), "{detail}");
    assert_eq!(judge(4096, 1.5, Some([0.9, 2.6])).0, Verdict::Undecided);
    assert_eq!(judge(4096, 1.5, None).0, Verdict::Undecided);
    assert!(SINCE.contains("is not known"));
}

#[test]
fn few_regions_are_for_the_small_blocks_and_fewer_for_nobody() {
    let of = |regions| Survey { regions, ..Survey::default() }.sizes();
    assert_eq!(of(5), []);
    assert_eq!(of(6), [(4096, 6)]);
    assert_eq!(of(13), [(4096, 6), (1 << 20, 6)]);
    assert_eq!(of(500), [(4096, 24), (1 << 20, 24)]);
    assert_eq!(blocks_of(1 << 20, 2 << 20), 2);
    assert_eq!(blocks_of(4096, 16 << 20), 256);
    let most: u64 =
        of(500).iter().map(|(block, regions)| regions * block * blocks_of(*block, 16 << 20)).sum();
    assert_eq!(most, 216 << 20, "as touches says");
}

#[cfg(target_os = "linux")]
mod on_a_disk {
    use std::os::unix::fs::{MetadataExt, symlink};

    use latlab_harness::{AnyProbe as _, Erased};
    use latlab_storage::{Contents, evict};

    use super::super::work::{Session, open};
    use super::*;
    use crate::planted::{Mapped, Own};
    use crate::storage::proved_once;

    /// A directory of files, put out of the page cache; `None` where the build folder is in memory: no file
    /// there is out of it.
    fn directory(name: &str, files: u64) -> Option<(Own, Env)> {
        let own = Own::new(&format!("first-touch-{name}"));
        std::fs::create_dir(own.0.join("below")).expect("the build folder can be written");
        for nth in 0..files {
            let mut bytes = vec![0; 2 << 20];
            Contents::new(nth).fill(0, &mut bytes);
            let path = own.0.join("below").join(format!("file-{nth}"));
            std::fs::write(&path, bytes).expect("written");
            evict(std::fs::File::open(&path).expect("there")).expect("asked");
        }
        let mut env = testing::env_of_one_cpu(64 << 20);
        env.settings.profile = Profile::Thorough;
        env.settings.first_touch = Some(own.0.to_str().expect("UTF-8").to_owned());
        (!matches!(crate::disk::support(&env), Support::No(_))).then_some((own, env))
    }

    #[test]
    fn both_readings_of_both_sizes_are_proved_and_nothing_is_changed() {
        let Some((own, env)) = directory("proved", 12) else { return };
        let path = own.0.join("below/file-3");
        let before = std::fs::metadata(&path).expect("there");
        let points = Erased(FirstTouch).points(&env);
        assert_eq!(points.len(), 4);
        let proofs = testing::assert_proved(&Erased(FirstTouch), &env, &points);
        assert_eq!(proofs.len(), 4);
        let findings = proofs[3].findings.as_ref().expect("findings");
        assert!(findings["ratio"].as_f64().expect("a ratio") > 0.0, "{findings}");
        assert!(findings["interval"].is_null(), "one region has none");
        assert_eq!(findings["left_regions"], 10, "two were read, each by a pair of points");
        let after = std::fs::metadata(&path).expect("there");
        assert_eq!((before.mtime(), before.len()), (after.mtime(), after.len()));
        assert_eq!(env.disk.budget().spent_bytes(), 0);
    }

    #[test]
    fn a_whole_run_ends_with_a_ratio_and_its_interval() {
        let Some((_own, env)) = directory("run", 12) else { return };
        let records = testing::records(&Erased(FirstTouch), &env);
        let derived = records.last().and_then(|record| record.findings.as_ref()).expect("concluded");
        assert_eq!(derived["ratios"].as_array().expect("ratios").len(), 2, "{derived}");
        assert_eq!(derived["ratios"][0]["regions"], 6);
        assert!(derived["ratios"][0]["interval"][0].is_number(), "{derived}");
        assert_eq!(derived["since"], SINCE);
    }

    #[test]
    fn links_second_names_holes_small_files_and_what_was_read_are_left_out() {
        let Some((own, env)) = directory("out", 3) else { return };
        let below = own.0.join("below");
        std::fs::hard_link(below.join("file-0"), own.0.join("second-name")).expect("linked");
        symlink(below.join("file-1"), own.0.join("link")).expect("linked");
        symlink(&below, own.0.join("folder-link")).expect("linked");
        std::fs::write(own.0.join("small"), [1; 1000]).expect("written");
        let hole = std::fs::File::create(own.0.join("hole")).expect("made");
        hole.set_len(8 << 20).expect("a hole");
        // In the page cache.
        std::fs::write(own.0.join("read"), vec![7; 2 << 20]).expect("written");
        let survey = super::super::work::Pool::survey(&env).expect("surveyed").survey;
        assert_eq!((survey.files, survey.regions, survey.left_out), (3, 3, 2), "{survey:?}");
        let reason = FirstTouch.plan(&env).support;
        assert!(matches!(&reason, Support::No(text) if text.contains("3 of 6 regions")), "{reason:?}");
    }

    #[test]
    fn other_bytes_and_a_region_that_was_read_before_fail_the_proof() {
        let Some((_own, env)) = directory("planted", 12) else { return };
        let point = FirstTouch.plan(&env).points[0].point;
        let proof = |session: &mut Session| proved_once(session, &env, &point).expect("read");
        let mut session = open(&env, &[]).expect("opened");
        session.pool.plant_again();
        assert_eq!(testing::failed(&proof(&mut session)), Vec::<&str>::new());
        assert_eq!(testing::failed(&proof(&mut session)), ["each region once"]);
        let mut session = open(&env, &[]).expect("opened");
        session.plant_other_bytes = true;
        assert_eq!(testing::failed(&proof(&mut session)), ["the same bytes both times"]);
    }

    /// As where the file system refuses to open a file for direct transfers.
    fn without_direct(env: &Env) -> Session<'_> {
        let mut touching = open(env, &[]).expect("opened");
        touching.pool.survey.direct = false;
        touching
    }

    #[test]
    fn without_direct_transfers_each_reading_goes_through_a_page_cache_that_was_emptied_before() {
        let Some((_own, env)) = directory("cold", 12) else { return };
        let mut touching = without_direct(&env);
        let survey = touching.pool.survey;
        assert!(matches!(survey.support(), Support::Degraded(reason) if reason.contains("no direct I/O")));
        let points = survey.points();
        assert!(points.iter().all(|planned| planned.point.path == COLD));
        for (planned, readings) in points.iter().zip([2, 2, 2, 2]) {
            let proof = proved_once(&mut touching, &env, &planned.point).expect("read");
            assert!(testing::failed(&proof).is_empty(), "{:?}", proof.checks);
            let evicted = proof.checks.iter().find(|check| check.name == "evicted");
            assert!(
                evicted.is_some_and(|check| check.detail.ends_with(&format!("before {readings} readings"))),
                "{evicted:?}"
            );
        }
    }

    #[test]
    fn a_file_that_somebody_keeps_mapped_is_no_cold_reading() {
        let Some((own, env)) = directory("mapped", 12) else { return };
        // Under emulation the planted mappings did not hold the pages.
        if !testing::runner().is_empty() {
            return;
        }
        let mut touching = without_direct(&env);
        let file = |nth| std::fs::File::open(own.0.join(format!("below/file-{nth}"))).expect("there");
        let _mapped: Vec<Mapped> = (0..12).map(|nth| Mapped::new(file(nth), 2 << 20)).collect();
        let point = touching.pool.survey.points()[0].point;
        let error = proved_once(&mut touching, &env, &point).expect_err("pages were in memory");
        assert!(error.to_string().contains("could be evicted"), "{error}");
    }

    #[test]
    fn when_all_regions_are_read_the_next_is_a_reason() {
        let Some((_own, env)) = directory("used-up", 6) else { return };
        let mut touching = open(&env, &[]).expect("opened");
        let point = FirstTouch.plan(&env).points[0].point;
        while touching.pool.next().is_some() {}
        let error = proved_once(&mut touching, &env, &point).expect_err("nothing was left to read");
        assert!(error.to_string().contains("cannot be repeated"), "{error}");
    }
}
