use super::*;
use latlab_probes_testing as testing;

#[test]
fn each_start_proves_its_end_on_one_cpu_and_64_mib() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Spawn.points(&env);
    assert!(points.len() >= 2, "{points:?}");
    assert!(Spawn.memory_bytes(&env) <= env.memory_bytes);
    for proof in testing::assert_proved(&Spawn, &env, &points) {
        assert!(proof.findings.is_some_and(|findings| findings.get("resident_bytes").is_some()));
    }
}

#[test]
fn python_is_offered_only_where_its_program_is_known() {
    let operations = |env: &Env| -> Vec<String> {
        let points = Spawn.points(env);
        points.into_iter().filter_map(|planned| planned.point.operation).collect()
    };
    let mut env = testing::env_of_one_cpu(64 << 20);
    assert!(!operations(&env).contains(&"python".to_owned()));
    env.interpreter = Some(Box::new(Installed(None)));
    assert!(!operations(&env).contains(&"python".to_owned()));
    env.interpreter = Some(Box::new(Installed(Some("/usr/bin/python3".into()))));
    assert!(operations(&env).contains(&"python".to_owned()));
}

struct Installed(Option<PathBuf>);

impl latlab_harness::Interpreter for Installed {
    fn name(&self) -> String {
        "CPython 3.11.7".to_owned()
    }

    fn executable(&self) -> Option<PathBuf> {
        self.0.clone()
    }

    fn compile(&self, _: &str) -> Result<Box<dyn latlab_harness::Batch>, String> {
        Err("not here".to_owned())
    }
}

/// The proof after one start, or why there is none.
#[cfg(unix)]
fn one_block(make: fn(&Env, &str) -> Result<Start, ProbeError>, operation: &str) -> Result<Proof, String> {
    let env = testing::env_of_one_cpu(64 << 20);
    let stamps = Stamps::of(&env.clock).expect("a real clock");
    let mut session = Starting::new(&env, stamps, make);
    let point = Point { operation: Some(operation.to_owned()), ..Point::default() };
    session.select(&point).map_err(|error| error.to_string())?;
    Ok(session.proof(&point))
}

#[cfg(unix)]
#[test]
fn a_child_that_ends_with_another_code_fails_the_proof() {
    let sound = one_block(|_, _| Ok(Start::fork()), "fork-exit").expect("forks");
    assert!(sound.checks[0].ok, "{:?}", sound.checks);
    let wrong = one_block(|_, _| Ok(Start::Fork { code: |_| 7 }), "fork-exit").expect("forks");
    assert!(!wrong.checks[0].ok);
    assert_eq!(wrong.checks[0].detail, "start 1 ended with 7, not with 2");
}

#[cfg(unix)]
#[test]
fn a_program_that_fails_or_is_killed_fails_the_proof() {
    let failed = one_block(|_, _| Start::program("/bin/sh".as_ref(), &["-c", "exit 3"]), "posix_spawn");
    let detail = failed.expect("starts").checks[0].detail.clone();
    assert_eq!(detail, "start 1 ended with 3, not with 0");
    let killed = one_block(|_, _| Start::program("/bin/sh".as_ref(), &["-c", "kill -9 $$"]), "posix_spawn");
    let detail = killed.expect("starts").checks[0].detail.clone();
    assert_eq!(detail, "start 1 ended with -9, not with 0");
}

#[cfg(unix)]
#[test]
fn a_program_that_is_not_there_gives_no_figure() {
    match one_block(|_, _| Start::program("/no/such/program".as_ref(), &[]), "posix_spawn") {
        Err(reason) => assert!(reason.contains("/no/such/program"), "{reason}"),
        // Emulators make a copy of the process in place of a shared one, which cannot tell that it found nothing: it ends with 127.
        Ok(proof) => assert!(!proof.checks[0].ok, "{:?}", proof.checks),
    }
}

#[cfg(unix)]
#[test]
fn no_child_is_left_unreaped() {
    let start = Start::fork();
    let before = children();
    for number in 0..5 {
        assert_eq!(start.once(number).expect("forks"), start.expected(number));
    }
    assert_eq!(children(), before);
}

/// Processes that this thread has started and not reaped, where the kernel tells.
#[cfg(unix)]
fn children() -> usize {
    std::fs::read_to_string("/proc/thread-self/children").map_or(0, |text| text.split_whitespace().count())
}
