//! Probes of the clock, computing, caches and RAM, virtual memory, allocators and the Python interpreter.

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "ahead_elsewhere.rs")]
mod ahead;
pub mod alloc;
pub mod clock;
pub mod cpu;
mod heap;
mod levels;
pub mod memory;
pub mod python;
#[cfg(target_os = "linux")]
mod region;
mod vector;
pub mod vm;

use latlab_harness::{Env, MemorySource};
use latlab_machine::Machine;
use latlab_probes_shared::Program;
use latlab_record::binary_size;

/// Size of a base page there; where that is not known, the one of nearly all systems.
fn page_bytes(machine: &Machine) -> u64 {
    machine.memory.page_bytes.unwrap_or(4096)
}

/// Why a probe that needs so much memory, with pages and bytes, cannot run here; `None` when it can.
fn no_memory(env: &Env, is_enough: bool, needed: &str) -> Option<String> {
    if let MemorySource::Simulated(_) = env.memory {
        return Some("simulated memory can only be walked".to_owned());
    }
    (!is_enough).then(|| too_little(env, needed))
}

/// Why a probe that needs so much memory cannot run here.
fn too_little(env: &Env, needed: &str) -> String {
    format!("needs {needed}; {} may be used here", binary_size(env.memory_bytes))
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

#[cfg(test)]
mod tests {
    use latlab_harness::{AnyProbe, Erased, Support};
    use latlab_probes_testing as testing;
    use latlab_record::Profile;

    use super::*;

    /// With so much memory each of them refuses, in words, to run.
    const TOO_LITTLE: [(&dyn AnyProbe, u64); 14] = [
        (&Erased(alloc::malloc::Malloc), 1 << 20),
        (&Erased(alloc::nodes::Nodes), 1_000),
        (&Erased(alloc::reuse::Reuse), 1 << 10),
        (&Erased(memory::alignment::Alignment), 1 << 10),
        (&Erased(memory::bandwidth::Bandwidth), 1 << 10),
        (&Erased(memory::load_dependent::LoadDependent), 1 << 20),
        (&Erased(memory::loaded::Loaded), 8 << 20),
        (&Erased(memory::parallelism::Parallelism), 1 << 20),
        (&Erased(memory::poke::Poke), 1 << 10),
        (&Erased(memory::prefetch::Prefetch), 1 << 20),
        (&Erased(memory::stride::Stride), 1 << 10),
        (&Erased(vm::fault::Fault), 1 << 20),
        (&Erased(vm::map::Map), 1 << 19),
        (&Erased(vm::zero::Zero), 1 << 20),
    ];

    #[test]
    fn plans_fit_the_memory_that_may_be_used_and_name_no_point_twice() {
        let envs = [testing::env_of_one_cpu(0), testing::env(0)];
        for mut env in envs {
            for (probe, too_little) in TOO_LITTLE {
                let id = probe.spec().id;
                env.memory_bytes = too_little;
                assert!(matches!(probe.supports(&env), Support::No(reason) if reason.len() > 10), "{id}");
                for memory_bytes in [32 << 10, 2 << 20, 5 << 20, 64 << 20, 300 << 20, 5 << 30] {
                    for profile in [Profile::Quick, Profile::Standard, Profile::Thorough] {
                        (env.memory_bytes, env.settings.profile) = (memory_bytes, profile);
                        let plan = probe.plan(&env);
                        assert!(
                            plan.memory_bytes <= memory_bytes,
                            "{id}: {} of {memory_bytes}",
                            plan.memory_bytes
                        );
                        assert_eq!(plan.points.is_empty(), matches!(plan.support, Support::No(_)), "{id}");
                        for (nth, planned) in plan.points.iter().enumerate() {
                            let (point, others) = (&planned.point, &plan.points[..nth]);
                            let most = point.working_set_bytes.max(point.size_bytes);
                            assert!(most <= Some(memory_bytes), "{id}: {}", point.label());
                            assert!(
                                others.iter().all(|other| other.point != *point),
                                "{id}: {}",
                                point.label()
                            );
                        }
                    }
                }
            }
        }
    }
}
