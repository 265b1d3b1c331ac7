//! Probes of the clock, caches and RAM, virtual memory, allocators and the Python interpreter.

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "ahead_elsewhere.rs")]
mod ahead;
pub mod alloc;
pub mod clock;
mod heap;
mod levels;
pub mod memory;
pub mod python;
#[cfg(target_os = "linux")]
mod region;
mod vector;
pub mod vm;

use latlab_harness::{Env, Plan};
use latlab_machine::Machine;
use latlab_probes_shared::Program;
use latlab_record::binary_size;

/// Size of a base page there; where that is not known, the one of nearly all systems.
fn page_bytes(machine: &Machine) -> u64 {
    machine.memory.page_bytes.unwrap_or(4096)
}

/// The plan of a probe that needs at least so much memory and may not use it.
fn needs_memory<P>(least: &str, env: &Env) -> Plan<P> {
    Plan::no(format!("needs {least} of memory; {} may be used here", binary_size(env.memory_bytes)))
}

/// The programs that run in child processes of the measuring process, by the id of the probe that asks them.
pub static PROGRAMS: &[(&str, Program)] = &[
    ("alloc.malloc", alloc::malloc::serve),
    ("alloc.nodes", alloc::nodes::serve),
    ("alloc.reuse", alloc::reuse::serve),
];

#[cfg(test)]
latlab_probes_testing::as_a_child!(|name, input, output| {
    latlab_probes_shared::run_program(PROGRAMS, name, input, output)
});
