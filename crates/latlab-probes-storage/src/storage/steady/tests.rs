use latlab_harness::{AnyProbe as _, Erased, Support};
use latlab_probes_testing as testing;

use super::*;
use crate::planted::on_a_disk;

fn thorough() -> Env {
    let mut env = testing::env_of_one_cpu(64 << 20);
    env.settings.profile = Profile::Thorough;
    env
}

#[test]
fn it_is_planned_in_the_thorough_profile_only_and_says_so_to_who_names_it() {
    let mut settings = Settings::default();
    assert!(!Steady.wanted(&settings));
    settings.only = vec!["storage".to_owned()];
    assert!(!Steady.wanted(&settings), "not named");
    settings.only = vec![Steady::SPEC.id.to_owned()];
    assert!(Steady.wanted(&settings));
    let mut env = testing::env(64 << 20);
    assert!(Steady.plan(&env).points.is_empty());
    assert!(
        matches!(Steady.plan(&env).support, Support::No(reason) if reason.contains("--profile thorough"))
    );
    env.settings.profile = Profile::Thorough;
    assert!(Steady.wanted(&env.settings));
}

#[test]
fn a_longer_budget_for_it_alone_is_used_up() {
    let mut settings = Settings { budget_s: Some(1_800.0), ..Settings::default() };
    assert!((stretch_s(&settings) - 1.0).abs() < 1e-9, "others have their share of it");
    settings.only = vec![Steady::SPEC.id.to_owned()];
    assert!((stretch_s(&settings) * 54.0 - 1_800.0).abs() < 1e-9);
    settings.budget_s = None;
    assert!((stretch_s(&settings) - 1.0).abs() < 1e-9);
}

#[test]
fn writing_takes_an_eighth_of_the_bytes_and_alone_what_the_file_leaves() {
    let Some(mut env) = on_a_disk(&Erased(Steady), thorough()) else { return };
    let limit = env.disk.budget().limit_bytes();
    let announced = |env: &Env| -> u64 { Steady.plan(env).points.iter().map(Planned::round_bytes).sum() };
    assert!(announced(&env) <= limit / 8 && announced(&env) >= limit / 16);
    env.settings.only = vec![Steady::SPEC.id.to_owned()];
    let alone = announced(&env);
    assert!(alone + disk::file_bytes(&env) <= limit && alone > limit / 4, "{alone}");
    // Reading goes on without a byte to write.
    env.settings.file = Some("Cargo.toml".to_owned());
    assert!(written(&env).is_none());
    assert_eq!(points(&env).len(), 1);
}

#[cfg(target_os = "linux")]
mod on_a_disk {
    use latlab_storage::Contents;

    use super::super::work::Filler;
    use super::*;
    use crate::disk::Places;
    use crate::storage::proved_once;

    #[test]
    fn both_ways_are_proved_on_one_cpu_and_64_mib_and_pay_for_what_they_write() {
        let Some(env) = on_a_disk(&Erased(Steady), thorough()) else { return };
        let points = Erased(Steady).points(&env);
        assert_eq!(points.len(), 2);
        let proofs = testing::assert_proved(&Erased(Steady), &env, &points);
        let (_, stretch) = written(&env).expect("planned");
        assert!(env.disk.budget().spent_bytes() <= disk::file_bytes(&env) + stretch);
        let findings = proofs[0].findings.as_ref().expect("findings");
        assert_eq!(findings["sustained"], false, "{findings}");
        assert!(findings["why"].as_str().expect("a reason").contains("at least 20 s are needed"));
    }

    #[test]
    fn contents_are_computed_here_or_beside_and_are_the_same() {
        let contents = Contents::new(9);
        for mut env in [testing::env(64 << 20), testing::env_of_one_cpu(64 << 20)] {
            env.home_cpu = env.cpus[0];
            let mut filler = Filler::new(&env, contents, Places::in_order(BLOCK, 5, 3));
            for expected in [3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3] {
                let (offset, bytes) = filler.next().expect("filled");
                assert_eq!(offset, expected * BLOCK);
                assert_eq!(contents.verify_headers(offset, bytes), Ok(()));
            }
        }
    }

    #[test]
    fn blocks_of_another_file_fail_the_proof_of_the_writes() {
        let Some(env) = on_a_disk(&Erased(Steady), thorough()) else { return };
        let point = points(&env)[0].point;
        let mut session = Steady.open(&env, &[point]).expect("a file");
        let places = Places::in_order(BLOCK, disk::file_bytes(&env) / BLOCK, 0);
        session.filler = Some(Filler::new(&env, Contents::new(77), places));
        let proof = proved_once(&mut session, &env, &point).expect("written");
        assert_eq!(testing::failed(&proof), ["contents verified"]);
    }
}
