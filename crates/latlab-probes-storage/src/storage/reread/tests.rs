use latlab_harness::{AnyProbe, RemoteBlock, Support};

use super::super::Reread;
use super::*;
use latlab_probes_testing as testing;

#[test]
fn reading_again_and_keeping_are_proved_and_fit_64_mib() {
    let env = testing::env_of_one_cpu(64 << 20);
    if let Support::No(reason) = Reread.supports(&env) {
        assert!(reason.contains("tmpfs"), "{reason}");
        return;
    }
    let points = Reread.points(&env);
    assert_eq!(points.len(), 2);
    testing::assert_proved(&Reread, &env, &points);
}

#[test]
fn a_file_that_holds_something_else_fails_the_proof_of_both() {
    let env = testing::env(64 << 20);
    if matches!(Reread.supports(&env), Support::No(_)) {
        return;
    }
    for planned in Reread.points(&env) {
        let mut reading = Reading::new(&env).expect("opened");
        let written = reading.file(planned.point.file_bytes.expect("planned")).expect("written");
        let path = std::path::PathBuf::from(written.name.into_string().expect("UTF-8"));
        let mut bytes = std::fs::read(&path).expect("there");
        bytes[77] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        reading.select(&planned.point).expect("selected");
        // Only the work matters here: a block of single readings has no window means, so no block comes back.
        assert!(RemoteBlock::take(&env.clock, None, |block| reading.block(block)).is_err());
        let proof = reading.proof(&planned.point);
        let contents = proof.checks.iter().find(|check| check.name == "contents verified");
        assert!(!contents.expect("a proof of the contents").ok, "{proof:?}");
    }
}
