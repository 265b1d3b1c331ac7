use latlab_harness::Session as _;
use latlab_probes_testing as testing;

use super::*;

/// The check after one start, or why there is none.
fn one_start(make: Make, operation: What) -> Result<Check, String> {
    let env = testing::env_of_one_cpu(64 << 20);
    let point = Started { operation };
    let mut session = Session::new(&env, make).expect("a real clock");
    session.select(&point).map_err(|error| error.to_string())?;
    let ends = std::mem::take(&mut session.untimed);
    Ok(session.proof(&point, &ends).checks.remove(0))
}

#[test]
fn a_child_that_ends_with_another_code_fails_the_proof() {
    let sound = one_start(|_, _| Ok(Start::Fork { code }), What::ForkExit).expect("forks");
    assert!(sound.ok, "{sound:?}");
    let wrong = one_start(|_, _| Ok(Start::Fork { code: |_| 7 }), What::ForkExit).expect("forks");
    assert!(!wrong.ok);
    assert_eq!(wrong.detail, "start 1 ended with 7, not with 2");
}

#[test]
fn a_program_that_fails_or_is_killed_fails_the_proof() {
    let failed = one_start(|_, _| Start::program("/bin/sh".as_ref(), &["-c", "exit 3"]), What::PosixSpawn);
    assert_eq!(failed.expect("starts").detail, "start 1 ended with 3, not with 0");
    let killed =
        one_start(|_, _| Start::program("/bin/sh".as_ref(), &["-c", "kill -9 $$"]), What::PosixSpawn);
    assert_eq!(killed.expect("starts").detail, "start 1 ended with -9, not with 0");
}

#[test]
fn a_program_that_is_not_there_gives_no_figure() {
    match one_start(|_, _| Start::program("/no/such/program".as_ref(), &[]), What::PosixSpawn) {
        Err(reason) => assert!(reason.contains("/no/such/program"), "{reason}"),
        // Emulators make a copy of the process in place of a shared one, which cannot tell that it found
        // nothing: it ends with 127.
        Ok(check) => assert!(!check.ok, "{check:?}"),
    }
}

#[test]
fn no_child_is_left_unreaped() {
    let start = Start::Fork { code };
    let before = children();
    for number in 0..5 {
        assert_eq!(start.once(number).expect("forks"), start.expected(number));
    }
    assert_eq!(children(), before);
}

/// Processes that this thread has started and not reaped, where the kernel tells.
fn children() -> usize {
    std::fs::read_to_string("/proc/thread-self/children").map_or(0, |text| text.split_whitespace().count())
}
