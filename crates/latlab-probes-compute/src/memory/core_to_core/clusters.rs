//! Which CPUs are near each other, found from the round trips alone, and only then named by what the machine
//! says of itself.

use std::collections::BTreeSet;

use latlab_machine::Machine;
use schemars::JsonSchema;
use serde::Serialize;

use latlab_probes_shared::median;

/// Neighbouring distances that lie apart by at least this factor separate clusters. Between cores of one mesh
/// or ring they spread by up to 1.3 without a gap; from one core complex or socket to another they jump by 2
/// to 5 (core-to-core-latency's tables).
const GAP: f64 = 1.5;

/// Round trips between CPUs: symmetric, `None` where there is none.
pub(super) struct Matrix {
    pub(super) cpus: Vec<u32>,
    pub(super) ns: Vec<Vec<Option<f64>>>,
}

/// CPUs that are near each other.
#[derive(Serialize, JsonSchema)]
pub(super) struct Cluster {
    /// That of the NUMA node or the cache whose CPUs, as far as they were measured, it is exactly; else a
    /// number.
    name: String,
    cpus: Vec<u32>,
    /// Median round trip within.
    within_ns: Option<f64>,
}

impl Matrix {
    pub(super) fn of(pairs: &[(u32, u32, f64)]) -> Self {
        let cpus: BTreeSet<u32> = pairs.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
        let cpus: Vec<u32> = cpus.into_iter().collect();
        let mut ns = vec![vec![None; cpus.len()]; cpus.len()];
        for (a, b, value) in pairs {
            if let (Ok(a), Ok(b)) = (cpus.binary_search(a), cpus.binary_search(b)) {
                ns[a][b] = Some(*value);
                ns[b][a] = Some(*value);
            }
        }
        Self { cpus, ns }
    }

    /// Single linkage: the clusters that are left when the merges beyond the widest gap between two merges in
    /// a row are undone, and the median between clusters.
    pub(super) fn clusters(&self, machine: &Machine) -> (Vec<Cluster>, Option<f64>) {
        let mut edges: Vec<(f64, usize, usize)> = Vec::new();
        for (a, row) in self.ns.iter().enumerate() {
            for (b, value) in row.iter().enumerate().skip(a + 1) {
                edges.extend(value.map(|ns| (ns, a, b)));
            }
        }
        edges.sort_by(|one, other| one.0.total_cmp(&other.0));
        let merges = merge(self.cpus.len(), &edges, f64::INFINITY).1;
        let widest = merges
            .windows(2)
            .filter(|pair| pair[0] > 0.0)
            .max_by(|one, other| (one[1] / one[0]).total_cmp(&(other[1] / other[0])))
            .filter(|pair| pair[1] / pair[0] >= GAP);
        let limit = widest.map_or(f64::INFINITY, |pair| pair[0]);
        let (of, _) = merge(self.cpus.len(), &edges, limit);
        let roots: BTreeSet<usize> = of.iter().copied().collect();
        let cluster = |(index, root): (usize, &usize)| {
            let own = (0..self.cpus.len()).filter(|index| of[*index] == *root);
            let cpus: Vec<u32> = own.map(|index| self.cpus[index]).collect();
            let known = if roots.len() > 1 { known(&cpus, &self.cpus, machine) } else { None };
            let within = edges.iter().filter(|(_, a, b)| of[*a] == *root && of[*b] == *root);
            Cluster {
                name: known.unwrap_or_else(|| format!("cluster {}", index + 1)),
                cpus,
                within_ns: median(within.map(|edge| edge.0)),
            }
        };
        let clusters = roots.iter().enumerate().map(cluster).collect();
        let between = median(edges.iter().filter(|(_, a, b)| of[*a] != of[*b]).map(|edge| edge.0));
        (clusters, between)
    }
}

/// Joins what is at most `limit` apart, nearest first. Each one's cluster (its lowest index), and the lengths
/// at which clusters were joined.
fn merge(count: usize, edges: &[(f64, usize, usize)], limit: f64) -> (Vec<usize>, Vec<f64>) {
    let mut of: Vec<usize> = (0..count).collect();
    let mut merges = Vec::new();
    for (ns, a, b) in edges.iter().take_while(|edge| edge.0 <= limit) {
        let (low, high) = (of[*a].min(of[*b]), of[*a].max(of[*b]));
        if low != high {
            merges.push(*ns);
            for own in &mut of {
                if *own == high {
                    *own = low;
                }
            }
        }
    }
    (of, merges)
}

fn known(cluster: &[u32], measured: &[u32], machine: &Machine) -> Option<String> {
    if cluster.len() < 2 {
        return None;
    }
    let is = |cpus: &[u32]| {
        let own: BTreeSet<&u32> = cpus.iter().filter(|cpu| measured.contains(cpu)).collect();
        own.into_iter().eq(cluster)
    };
    let core = machine.caches.iter().find(|cache| cache.level == 1 && is(&cache.shared_cpus));
    if core.is_some() {
        return Some(format!("threads of CPU {}'s core", cluster[0]));
    }
    if let Some(node) = machine.numa.iter().find(|node| is(&node.cpus)) {
        return Some(format!("NUMA node {}", node.id));
    }
    let shared = machine.caches.iter().find(|cache| is(&cache.shared_cpus))?;
    Some(format!("L{} of CPU {}", shared.level, cluster[0]))
}
