//! Which CPUs are paired where there are too many to pair all.

use latlab_machine::Machine;
use latlab_stats::rng::Rng;

/// At most `most` of these CPUs (ascending): spread over all of them, and each with a near one, so that both
/// short and long ways are among the pairs. The same again for the same seed.
pub(super) fn choose(cpus: &[u32], most: usize, machine: &Machine, seed: u64) -> Vec<u32> {
    if cpus.len() <= most {
        return cpus.to_vec();
    }
    let mut rng = Rng::new(seed);
    let strata = (most / 2).max(1);
    let mut chosen: Vec<u32> = Vec::with_capacity(most);
    for stratum in 0..strata {
        let (first, end) = (stratum * cpus.len() / strata, (stratum + 1) * cpus.len() / strata);
        let one = cpus[first + rng.below(end - first)];
        if !chosen.contains(&one) {
            chosen.push(one);
        }
        if let Some(near) = near(one, cpus, &chosen, machine) {
            chosen.push(near);
        }
    }
    chosen.truncate(most);
    chosen.sort_unstable();
    chosen
}

/// One that is said to share a cache with this one, the innermost; else the next by number.
fn near(one: u32, cpus: &[u32], taken: &[u32], machine: &Machine) -> Option<u32> {
    let free = |cpu: &u32| *cpu != one && cpus.contains(cpu) && !taken.contains(cpu);
    let sharing = machine
        .caches
        .iter()
        .filter(|cache| cache.shared_cpus.contains(&one))
        .find_map(|cache| cache.shared_cpus.iter().copied().find(|cpu| free(cpu)));
    sharing
        .or_else(|| cpus.iter().copied().find(|cpu| *cpu > one && free(cpu)))
        .or_else(|| cpus.iter().rev().copied().find(|cpu| *cpu < one && free(cpu)))
}
