//! `vm.zero`: how fast memory is cleared: by the program, by the program in memory that it has not touched
//! yet, and by the kernel.

use crate::levels::power_of_two;
use crate::no_memory;
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "zero/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/work.rs")]
mod system;

#[cfg(not(target_os = "linux"))]
const ELSEWHERE: &str = "memory mappings are measured on Linux only, so far";

/// The probe.
pub struct Zero;

/// What is cleared, and who does it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cleared {
    operation: Clearing,
    size_bytes: u64,
    pages: Pages,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Clearing {
    Memset,
    MemsetFresh,
    Kernel,
}

const SMALL: u64 = 256 << 10;
const LEAST: u64 = 4 << 20;
/// Windows of new memory in a block; one more does not count.
const WINDOWS: u32 = 2;
const HUGE: u64 = 2 << 20;

fn fresh(env: &Env) -> u64 {
    // Three at a time exist in a block, and alignment takes a huge page each.
    let most = env.settings.profile.of([4 << 20, 8 << 20, 16 << 20]);
    power_of_two(env.memory_bytes / 4).min(most)
}

fn large(env: &Env) -> u64 {
    let most = env.settings.profile.of([8 << 20, 32 << 20, 256 << 20]);
    power_of_two(env.memory_bytes / 2).min(most)
}

impl Probe for Zero {
    type Point = Cleared;
    type Evidence = system::Evidence;
    type Details = Nothing;
    type Findings = Nothing;
    type Session<'env> = system::Session<'env>;

    const SPEC: Spec = Spec {
        id: "vm.zero",
        tier: Tier::Vm,
        title: "clearing memory",
        question: "How fast is memory cleared, and how much of that does new memory lose to page faults?",
        method: "memset: the C library's memset over memory that has its pages, small enough for the \
            second-level cache or larger than it; one call clears all of size_bytes. \
memset-fresh: the same call over memory that was mapped and never touched, as after malloc of a large \
block: each page is found, cleared by the kernel, mapped, and then written once more by memset. \
kernel: the kernel's share alone: MADV_POPULATE_WRITE over such memory in 4 KiB pages, or one write to each \
of its huge pages, of which each clears 2 MiB.

Mapping and unmapping are outside of the time. Each value is the rate of a window; where a window is one \
call over new memory, that memory was mapped before it. In the small array a window is many calls of about \
20 µs together.

Proof: words all over the memory hold what the last call wrote; of new memory, no page was there before and \
all are there afterwards (mincore), and one write to a huge page made all its 512 pages present.",
        method_version: 1,
        unit: Unit::BytesPerS,
        convention: "each byte cleared counts once, however often it is written on the way",
        needs: &["Linux", "4 MiB of memory"],
        touches: &["memory up to 256 MiB (32 MiB in the standard profile), at most half of what may be used"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Cleared> {
        if let Some(reason) = no_memory(env, env.memory_bytes >= LEAST, "4 MiB of memory") {
            return Plan::no(reason);
        }
        let mut points = Vec::new();
        let mut add = |operation, size_bytes: u64, pages, ns_a_page: f64, calls: f64| {
            points.push(Planned {
                setup_s: 1e-4,
                block_s: calls * size_bytes as f64 / 4096.0 * ns_a_page * 1e-9 + 1e-3,
                ..Planned::new(Cleared { operation, size_bytes, pages })
            });
        };
        let calls = f64::from(WINDOWS + 1);
        let (large, fresh) = (large(env), fresh(env));
        // One slot is spent on aligning.
        let aligned = if 3 * (fresh + HUGE) <= env.memory_bytes { HUGE } else { 0 };
        add(Clearing::Memset, large, Pages::Base, 500.0, calls);
        add(Clearing::MemsetFresh, fresh, Pages::Base, 1_500.0, calls);
        let support = system::supports();
        if support == Support::Yes {
            add(Clearing::Kernel, fresh, Pages::Base, 1_200.0, calls);
        }
        if fresh >= 2 * HUGE && aligned > 0 {
            add(Clearing::Kernel, fresh, Pages::Huge, 500.0, calls);
        }
        add(Clearing::Memset, SMALL, Pages::Base, 100.0, 10.0);
        let memory_bytes = large.max(3 * (fresh + aligned)).max(SMALL).min(env.memory_bytes);
        Plan::of(points).memory(memory_bytes).given(support)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Cleared]) -> Result<system::Session<'env>> {
        system::open(env)
    }
}

#[cfg(test)]
mod tests {
    use latlab_probes_testing as testing;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_was_touched_before_or_was_left_out_fails_the_proof() {
        let env = testing::env_of_one_cpu(16 << 20);
        for planned in Zero.plan(&env).points {
            let found = system::planted(&env, &planned.point)
                .iter()
                .any(|check| !check.ok && check.name != "huge pages obtained");
            assert!(found, "{:?}", planned.point);
        }
    }
}
