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
mod tests {
    use super::*;

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
