use latlab_harness::{Erased, PointFields as _};
use latlab_probes_testing as testing;

use super::*;
use crate::planted::on_a_disk;

#[test]
fn what_is_announced_fits_the_budget_and_each_record_has_its_blocks() {
    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
        let mut env = testing::env(64 << 20);
        env.settings.profile = profile;
        let Some(env) = on_a_disk(&Erased(WriteSequential), env) else { return };
        let Plan { points, memory_bytes, .. } = WriteSequential.plan(&env);
        let written: u64 = points.iter().map(|planned| planned.run_bytes(profile)).sum();
        assert!(written + disk::file_bytes(&env) <= env.disk.budget().limit_bytes(), "{written}");
        for planned in &points {
            let rounds = planned.rank.rounds(profile.rounds()) as usize;
            assert!(rounds * planned.wanted_blocks() >= 4);
        }
        assert!(memory_bytes <= env.memory_bytes);
    }
    let all = |profile, longest: usize| -> u64 {
        POINTS
            .iter()
            .flat_map(|(path, blocks)| blocks[..=longest].iter().map(move |list| (*path, *list)))
            .flat_map(|(path, list)| list.iter().map(move |block| planned(profile, path, *block, 0)))
            .map(|planned| planned.run_bytes(profile))
            .sum()
    };
    assert!(all(Profile::Quick, 0) <= 256 * MIB, "{}", all(Profile::Quick, 0) / MIB);
    assert!(all(Profile::Standard, 1) <= 1536 * MIB, "{}", all(Profile::Standard, 1) / MIB);
    assert!(all(Profile::Thorough, 2) <= 6144 * MIB, "{}", all(Profile::Thorough, 2) / MIB);
}

#[test]
fn every_path_is_proved_in_one_block_and_pays_for_what_it_writes() {
    let Some(env) = on_a_disk(&Erased(WriteSequential), testing::env(64 << 20)) else { return };
    let direct = [4 * KIB, 512, MIB].map(|block_bytes| (DIRECT, block_bytes));
    let others = [(FSYNC_EACH, 4 * KIB), (FSYNC_END, MIB), (BUFFERED, 4 * KIB), (BUFFERED, 512)];
    let paths: Vec<_> = direct.into_iter().chain(others).collect();
    let planned =
        |(path, block_bytes): &(Access, u64)| Planned::new(Blocks::of(*path, *block_bytes).to_point());
    let points: Vec<_> = paths.iter().map(planned).collect();
    let proofs = testing::assert_proved(&Erased(WriteSequential), &env, &points);
    let stretches: u64 =
        paths.iter().map(|(path, block_bytes)| stretch(Profile::Quick, *path, *block_bytes)).sum();
    assert_eq!(
        env.disk.budget().spent_bytes(),
        stretches + disk::file_bytes(&env),
        "all bytes were paid for"
    );
    for ((path, _), proof) in paths.iter().zip(&proofs) {
        let names: Vec<&str> = proof.checks.iter().map(|check| check.name.as_str()).collect();
        assert!(names.contains(&"contents verified"), "{names:?}");
        let findings = proof.findings.as_ref().expect("a bandwidth");
        assert!(findings["bytes_per_s"].as_f64().expect("a number") > 0.0);
        assert_eq!(findings["fsync_ns"].is_number(), *path == FSYNC_END);
    }
}

#[test]
fn a_spent_budget_is_said_and_nothing_is_written() {
    let Some(env) = on_a_disk(&Erased(WriteSequential), testing::env(64 << 20)) else { return };
    let session = WriteSequential.open(&env, &[]).expect("laid out");
    let left = env.disk.budget().left_bytes();
    env.disk.budget().spend(left).expect("all of it");
    drop(session);
    let records = testing::records(&Erased(WriteSequential), &env);
    let errors: Vec<_> = records.into_iter().filter_map(|record| record.error).collect();
    assert!(errors.iter().any(|error| error.text.contains("--max-bytes")), "{errors:?}");
}
