use latlab_harness::Probe as _;
use latlab_probes_testing as testing;

use super::*;
use crate::storage::proved_once;

#[test]
fn a_file_that_holds_something_else_fails_the_proof_of_both() {
    let env = testing::env(64 << 20);
    // None where it cannot run.
    for planned in Reread.plan(&env).points {
        let point = planned.point;
        let mut session = open(&env, &[]).expect("opened");
        let written = session.file(point.file_bytes).expect("written");
        let path = std::path::PathBuf::from(written.name.into_string().expect("UTF-8"));
        let mut bytes = std::fs::read(&path).expect("there");
        bytes[77] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        let proof = proved_once(&mut session, &env, &point).expect("taken");
        assert_eq!(testing::failed(&proof), ["contents verified"]);
    }
}
