//! `vm.map`: what the calls cost that change a mapping, by its size.

use latlab_probes_shared::prelude::*;
use strum::{IntoStaticStr, VariantArray};

use crate::{heap, no_memory};

#[cfg_attr(target_os = "linux", path = "map/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/work.rs")]
mod system;

#[cfg(not(target_os = "linux"))]
const ELSEWHERE: &str = "memory mappings are measured on Linux only, so far";

/// The probe.
pub struct Map;

/// Most important first; the second number is the least profile: quick, standard, thorough.
const SIZES: [(u64, u8); 7] =
    [(4 << 10, 0), (4 << 20, 0), (256 << 10, 0), (16 << 20, 1), (1 << 20, 1), (64 << 10, 1), (64 << 20, 2)];
/// Bytes of memory that are the least to be mapped.
const LEAST: u64 = 1 << 20;

/// What is called, and for how much memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    operation: Operation,
    size_bytes: u64,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
enum Operation {
    Map,
    Unmap,
    MapPopulate,
    Protect,
    #[serde(rename = "dontneed")]
    #[strum(serialize = "dontneed")]
    DontNeed,
}

/// The line through the sizes of each call.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    operations: Vec<Line>,
}

/// What a call costs by itself, and for each page.
#[derive(Serialize, JsonSchema)]
struct Line {
    operation: Operation,
    fixed_ns: Estimate,
    per_page_ns: Estimate,
}

/// Calls in one block: of small mappings many, of large ones as many as touch a thousand pages, two at least.
fn calls(size: u64) -> u32 {
    let pages = size / 4096;
    u32::try_from((1024 / pages.max(1)).clamp(2, 64)).unwrap_or(2)
}

impl Probe for Map {
    type Point = Call;
    type Evidence = system::Evidence;
    type Details = Nothing;
    type Findings = Findings;
    type Session<'env> = system::Session<'env>;

    const SPEC: Spec = Spec {
        id: "vm.map",
        tier: Tier::Vm,
        title: "mapping, unmapping, protecting and giving back memory",
        question: "What do the system calls cost that map memory, take it back or change its protection, \
            and how does that grow with its size?",
        method: "Each call is timed alone, on anonymous private memory in 4 KiB pages. map: mmap, which \
            only records the mapping; pages are allocated at their first touch (vm.fault). \
map-populate: mmap with MAP_POPULATE, which finds, clears and maps all of them. unmap: munmap of memory of \
which every page was written. protect: mprotect of such memory to read-only. dontneed: \
madvise(MADV_DONTNEED) of such memory, which frees the pages and keeps the mapping. \
Creating and touching the memory is not timed.

Huge pages are refused (MADV_NOHUGEPAGE; for map-populate by PR_SET_THP_DISABLE, for the time of a block): \
one of them replaces 512 pages. This process has one active thread, so no other CPU has to drop \
translations; in a program with busy threads unmap, protect and dontneed cost more. \
The kernel may join a mapping to its neighbour, which makes map and unmap slightly faster or slower.

Proof: after map no page has memory, after map-populate all, after unmap the range is gone, after dontneed \
none has memory, and after protect the kernel refuses to write to it.

The derived line through the sizes is robust: the cost per page is the median of the slopes between all \
pairs of sizes (Theil and Sen), the fixed cost what is left of the smallest call.",
        method_version: 1,
        convention: "one call",
        needs: &["Linux", "1 MiB of memory"],
        touches: &["memory up to 64 MiB (16 MiB in the standard, 4 MiB in the quick profile)"],
        operations: Operations::Faults,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Call> {
        if let Some(reason) = no_memory(env, env.memory_bytes >= LEAST, "1 MiB of memory") {
            return Plan::no(reason);
        }
        let profile = env.settings.profile.nth();
        let can_be = |size| (heap::page_bytes() as u64..=env.memory_bytes).contains(&size);
        let sizes = SIZES.into_iter().filter(|(size, least)| *least <= profile && can_be(*size));
        let support = system::supports();
        let populates = support == Support::Yes;
        let operations =
            Operation::VARIANTS.iter().copied().filter(|own| *own != Operation::MapPopulate || populates);
        let points: Vec<_> = sizes
            .flat_map(|(size, least)| {
                operations.clone().map(move |operation| planned(operation, size, least))
            })
            .collect();
        let memory_bytes = points.iter().map(|planned| planned.point.size_bytes).max();
        Plan::of(points).memory(memory_bytes.unwrap_or(0)).given(support)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Call]) -> Result<system::Session<'env>> {
        system::open(env)
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let page_bytes = crate::page_bytes(&header.machine);
        let costs = |figures: &[Figure<Self>], operation| -> Vec<(f64, f64)> {
            let own = figures.iter().filter(|figure| figure.point.operation == operation);
            own.map(|figure| ((figure.point.size_bytes / page_bytes) as f64, figure.result.p50)).collect()
        };
        // A round with fewer sizes has another line.
        let fit = |operation: &Operation, own: &[Figure<Self>]| {
            let costs = [own, figures].map(|figures| costs(figures, *operation));
            (costs[0].len() == costs[1].len()).then(|| line(&costs[0]))?
        };
        let rounds = Rounds::of(figures);
        let fixed = rounds.estimates(Operation::VARIANTS, |own, figures| Some(fit(own, figures)?.0));
        let per_page = rounds.estimates(Operation::VARIANTS, |own, figures| Some(fit(own, figures)?.1));
        let operations: Vec<Line> = Operation::VARIANTS
            .iter()
            .zip(fixed.into_iter().zip(per_page))
            .filter_map(|(operation, (fixed_ns, per_page_ns))| {
                Some(Line { operation: *operation, fixed_ns: fixed_ns?, per_page_ns: per_page_ns? })
            })
            .collect();
        (!operations.is_empty()).then_some(Findings { operations })
    }
}

fn planned(operation: Operation, size_bytes: u64, priority: u8) -> Planned<Call> {
    let each_page = if operation == Operation::Map { 0.0 } else { 1.5e-6 };
    Planned {
        rank: Rank::Curve,
        priority,
        setup_s: 1e-5,
        block_s: f64::from(calls(size_bytes)) * (5e-6 + each_page * size_bytes as f64 / 4096.0),
        ..Planned::new(Call { operation, size_bytes })
    }
}

/// Fixed cost and cost per page of `(pages, ns)`; none below two sizes.
fn line(costs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut slopes: Vec<f64> = Vec::new();
    for (nth, from) in costs.iter().enumerate() {
        for to in &costs[nth + 1..] {
            if (to.0 - from.0).abs() > 0.0 {
                slopes.push((to.1 - from.1) / (to.0 - from.0));
            }
        }
    }
    let per_page = median(slopes)?.max(0.0);
    let smallest = costs.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(((smallest.1 - per_page * smallest.0).max(0.0), per_page))
}

#[cfg(test)]
mod tests {
    use latlab_probes_testing as testing;

    use super::*;

    #[test]
    fn a_planted_line_is_found_though_one_size_was_disturbed() {
        let mut costs: Vec<(f64, f64)> =
            [1.0, 16.0, 64.0, 256.0, 1024.0, 16384.0].map(|pages| (pages, 900.0 + 45.0 * pages)).to_vec();
        costs[3].1 *= 3.0;
        let (fixed, per_page) = line(&costs).expect("six sizes");
        assert!((per_page - 45.0).abs() < 1.0 && (fixed - 900.0).abs() < 5.0, "{fixed} {per_page}");
        assert_eq!(line(&[(1.0, 900.0)]), None);
        assert_eq!(line(&[(1.0, 900.0), (64.0, 880.0)]), Some((900.0, 0.0)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_call_that_was_left_out_fails_the_proof() {
        let env = testing::env_of_one_cpu(1 << 20);
        if matches!(Map.plan(&env).support, Support::No(_)) {
            return;
        }
        for operation in Operation::VARIANTS.iter().copied() {
            if !system::populates() && matches!(operation, Operation::Map | Operation::MapPopulate) {
                continue;
            }
            let wrong = system::one_call(&env, operation, true).expect("memory is there");
            // To leave out an mmap leaves nothing to look at: there another kind of mapping is made.
            assert!(wrong, "{operation:?}");
            assert!(!system::one_call(&env, operation, false).expect("memory is there"), "{operation:?}");
        }
    }
}
