//! The programs that run in child processes of the measuring process, by the id of the probe that asks them; or by what several ask for.

use std::io::{BufRead, Write};

/// Answers requests from `input` on `output` until there are none.
type Program = fn(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()>;

/// Every program, under its probe's id.
static PROGRAMS: &[(&str, Program)] = &[
    ("alloc.malloc", crate::alloc::malloc::serve),
    ("alloc.nodes", crate::alloc::nodes::serve),
    ("alloc.reuse", crate::alloc::reuse::serve),
    #[cfg(target_os = "linux")]
    ("network.client", crate::peer::fetch),
    #[cfg(target_os = "linux")]
    ("network.path", crate::peer::keep),
    ("network.roundtrip", crate::network::roundtrip::serve),
    #[cfg(target_os = "linux")]
    ("network.sockets", crate::network::serve_sockets),
    ("network.throughput", crate::network::throughput::serve),
    #[cfg(target_os = "linux")]
    ("network.web", crate::peer::serve),
];

/// Runs the child program of this name. Returns false when there is none.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub fn run_child(program: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<bool> {
    let Some((_, run)) = PROGRAMS.iter().find(|(name, _)| *name == program) else {
        return Ok(false);
    };
    run(input, output)?;
    Ok(true)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::OsString;

    use super::*;

    /// Set for the test binary when it is started again as a child: the program's name.
    const PROGRAM: &str = "LATLAB_TEST_CHILD";

    /// For `Env::child` in tests: this test binary again, doing nothing but [`as_a_child`]. The shell moves the program's name
    /// from the command line, where libtest would take it for a filter, to the environment. Under emulation the kernel does not know how to
    /// start the binary; what cargo was told to run it with does.
    pub(crate) fn command() -> Vec<OsString> {
        let binary = std::env::current_exe().expect("the test binary has a path");
        let runner = runner();
        let script = format!(
            "exec env {PROGRAM}=\"$1\" {runner} \"$0\" --exact children::tests::as_a_child --nocapture --test-threads=1"
        );
        vec!["/bin/sh".into(), "-c".into(), script.into(), binary.into()]
    }

    /// What cargo was told to run test binaries with; empty when they run by themselves.
    pub(crate) fn runner() -> String {
        cfg!(target_arch = "aarch64")
            .then(|| std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok())
            .flatten()
            .unwrap_or_default()
    }

    #[test]
    fn as_a_child() {
        // An ordinary test run: there is no parent that asks.
        let Ok(program) = std::env::var(PROGRAM) else {
            return;
        };
        // libtest has begun a line with this test's name; an answer begins its own.
        println!();
        let known = run_child(
            &program,
            &mut std::io::stdin().lock(),
            &mut std::io::stdout().lock(),
        )
        .expect("the parent's pipes hold");
        assert!(known, "{program}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_refused() {
        let known = run_child("no.such", &mut &b""[..], &mut Vec::new()).expect("nothing was read");
        assert!(!known);
    }

    #[test]
    fn every_program_belongs_to_a_probe_or_to_several() {
        const SEVERAL: [&str; 4] = ["network.client", "network.path", "network.sockets", "network.web"];
        for (name, _) in PROGRAMS.iter().filter(|(name, _)| !SEVERAL.contains(name)) {
            assert!(
                crate::REGISTRY.iter().any(|entry| entry.probe.spec().id == *name),
                "{name}"
            );
        }
    }
}
