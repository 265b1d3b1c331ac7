use super::*;
use latlab_probes_testing as testing;

#[test]
fn what_is_announced_fits_the_budget_and_each_record_has_its_blocks() {
    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
        let mut env = testing::env(64 << 20);
        env.settings.profile = profile;
        if !testing::has_disk(&WriteSequential, &env) {
            return;
        }
        let points = WriteSequential.points(&env);
        let written: u64 = points.iter().map(|planned| planned.run_bytes(profile)).sum();
        assert!(written + disk::file_bytes(&env) <= env.disk.budget().limit_bytes(), "{written}");
        for planned in &points {
            let rounds = planned.rank.rounds(profile.rounds()) as usize;
            assert!(rounds * planned.wanted_blocks() >= 4);
        }
        assert!(WriteSequential.memory_bytes(&env) <= env.memory_bytes);
    }
    let all = |profile, longest: usize| -> u64 {
        POINTS
            .iter()
            .flat_map(|(path, blocks)| blocks[..=longest].iter().map(move |list| (*path, *list)))
            .flat_map(|(path, list)| list.iter().map(move |block| plan(profile, path, *block, 0)))
            .map(|planned| planned.run_bytes(profile))
            .sum()
    };
    assert!(all(Profile::Quick, 0) <= 256 * MIB, "{}", all(Profile::Quick, 0) / MIB);
    assert!(all(Profile::Standard, 1) <= 1536 * MIB, "{}", all(Profile::Standard, 1) / MIB);
    assert!(all(Profile::Thorough, 2) <= 6144 * MIB, "{}", all(Profile::Thorough, 2) / MIB);
}

#[test]
fn every_path_is_proved_in_one_block_and_pays_for_what_it_writes() {
    let env = testing::env(64 << 20);
    if !testing::has_disk(&WriteSequential, &env) {
        return;
    }
    let points: Vec<Planned> = [
        (DIRECT, 4 * KIB),
        (DIRECT, 512),
        (DIRECT, MIB),
        (FSYNC_EACH, 4 * KIB),
        (FSYNC_END, MIB),
        (BUFFERED, 4 * KIB),
        (BUFFERED, 512),
    ]
    .map(|(path, block)| plan(Profile::Quick, path, block, 0))
    .to_vec();
    let proofs = testing::assert_proved(&WriteSequential, &env, &points);
    let stretches: u64 = points
        .iter()
        .map(|planned| {
            stretch(
                Profile::Quick,
                planned.point.path.as_deref().expect("planned"),
                planned.point.block_bytes.expect("planned"),
            )
        })
        .sum();
    assert_eq!(
        env.disk.budget().spent_bytes(),
        stretches + disk::file_bytes(&env),
        "every byte was paid for"
    );
    for (planned, proof) in points.iter().zip(&proofs) {
        let names: Vec<&str> = proof.checks.iter().map(|check| check.name.as_str()).collect();
        assert!(names.contains(&"contents verified"), "{names:?}");
        let findings = proof.findings.as_ref().expect("a bandwidth");
        assert!(findings["bytes_per_s"].as_f64().expect("a number") > 0.0);
        let flushed = planned.point.path.as_deref() == Some(FSYNC_END);
        assert_eq!(findings["fsync_ns"].is_number(), flushed);
    }
}

#[test]
fn a_spent_budget_is_said_and_nothing_is_written() {
    let env = testing::env(64 << 20);
    if !testing::has_disk(&WriteSequential, &env) {
        return;
    }
    let points = [plan(Profile::Quick, DIRECT, 4 * KIB, 0)];
    let session = WriteSequential.open(&env, &points).expect("laid out");
    let left = env.disk.budget().left_bytes();
    env.disk.budget().spend(left).expect("all of it");
    drop(session);
    let records = testing::records(&WriteSequential, &env);
    assert!(
        records
            .iter()
            .filter_map(|record| record.error.as_ref())
            .any(|error| error.text.contains("--max-bytes")),
        "{:?}",
        records.iter().map(|record| &record.error).collect::<Vec<_>>()
    );
}
