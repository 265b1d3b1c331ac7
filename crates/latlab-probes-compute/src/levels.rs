//! The levels of memory as the CPU reports them, and the working set that stands for memory itself.

use latlab_harness::{CacheScope, Env};
use latlab_machine::{CacheKind, Machine};
use latlab_record::Profile;
use latlab_stats::count::index;

/// Smallest and largest working set that stands for memory. The first is no cache of most machines, and
/// populated within a twentieth of a second.
pub(crate) const LEAST_RAM: u64 = 128 << 20;
const MOST_RAM: u64 = 1 << 30;

/// The working set that stands for memory, bytes: a power of two, the same in every run with this profile on
/// this machine, and at least four times the largest cache that is reported, where that much can be populated
/// in each round. A quick run takes the smallest: a guest is told of caches that it shares.
pub(crate) fn ram_bytes(env: &Env) -> u64 {
    let largest = env.machine.caches.iter().map(|cache| cache.size_bytes).max();
    match env.settings.profile {
        Profile::Quick => LEAST_RAM,
        _ => (4 * largest.unwrap_or(0)).next_power_of_two().clamp(2 * LEAST_RAM, MOST_RAM),
    }
}

/// Size of the data or unified cache of a level, as the CPU reports it.
pub(crate) fn reported(machine: &Machine, level: u8) -> Option<u64> {
    machine
        .caches
        .iter()
        .filter(|cache| cache.level == level && cache.kind != CacheKind::Instruction)
        .map(|cache| cache.size_bytes)
        .max()
}

/// Size of the second-level cache; where it is not reported, what many CPUs have.
pub(crate) fn second(machine: &Machine) -> u64 {
    reported(machine, 2).unwrap_or(1 << 20)
}

/// CPUs that the quota lets run at once, where there is one: of 1.5 one.
pub(crate) fn cpus_at_once(machine: &Machine) -> usize {
    machine.limits.usable_cpus.map_or(usize::MAX, |cpus| index(cpus.max(1.0)))
}

/// The largest power of two in so many bytes; 0 in none.
pub(crate) fn power_of_two(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |bits| 1 << bits)
}

/// How far a working set reaches. What is at most half of the second-level cache, the largest that belongs to
/// one core, does not notice who else uses the shared one. Where sizes are unknown, those are taken that
/// every CPU met has.
pub(crate) fn cache_scope(bytes: u64, machine: &Machine) -> CacheScope {
    if bytes <= reported(machine, 1).unwrap_or(32 << 10) {
        CacheScope::First
    } else if bytes <= reported(machine, 2).unwrap_or(256 << 10) / 2 {
        CacheScope::Private
    } else {
        CacheScope::Shared
    }
}
