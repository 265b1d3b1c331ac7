//! The programs that run in child processes of the measuring process, by the id of the probe that asks them;
//! or by what several ask for.

use std::io::{BufRead, Write};

use latlab_probes_shared::{Program, run_program};

/// Every program, under the id of the probe that asks it.
pub(crate) fn programs() -> Vec<(&'static str, Program)> {
    [latlab_probes_compute::PROGRAMS, latlab_probes_network::PROGRAMS].concat()
}

/// Runs the child program of this name. Returns false when there is none. Fails when a pipe fails: the parent
/// is gone.
pub fn run_child(program: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<bool> {
    run_program(&programs(), program, input, output)
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
        for (name, _) in programs().iter().filter(|(name, _)| !SEVERAL.contains(name)) {
            assert!(crate::REGISTRY.iter().any(|entry| entry.probe.spec().id == *name), "{name}");
        }
    }
}
