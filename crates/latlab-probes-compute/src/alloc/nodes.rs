//! `alloc.nodes`: what building a linked list costs, by where its nodes come from, and what the parts of that
//! cost are.

mod build;

use std::io::{BufRead, Write};

use latlab_harness::{Child, serve_child};
use latlab_probes_shared::prelude::*;

use crate::heap::{self, Allocator};
use build::{Answer, Built, NODE, Request, Way, Workshop};

/// The probe.
pub struct Nodes;

/// Lists of so many nodes, the largest that is allowed is taken.
const LENGTHS: [u64; 4] = [1_000_000, 100_000, 10_000, 1_000];
/// Largest list of the quick profile.
const QUICK: u64 = 100_000;
/// Bytes that a child holds for each node at most: the aligned arena's and the pool's.
const HELD: u64 = 64 + 32 + 8;
/// Nanoseconds that a build, its preparation and its end take for each node, to plan with.
fn planned_ns(way: Way) -> f64 {
    match way {
        Way::Malloc | Way::MallocKept => 50.0,
        Way::Touch | Way::Vec | Way::Stores => 22.0,
        Way::ArenaAligned => 35.0,
        Way::Arena | Way::ArenaPrefetch | Way::ArenaTouched => 20.0,
        Way::Pool => 8.0,
    }
}
/// A build in new memory that had fewer faults than this share of its pages had memory that was there
/// already.
const NEW_SHARE: f64 = 0.9;
/// A build in old memory may have this share of its pages as faults, and some.
const OLD_SHARE: f64 = 0.05;
/// Faults that have nothing to do with the list: a stack's, a library's.
const OTHER_FAULTS: u64 = 32;

/// How a list is built, and of how many nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    operation: Way,
    nodes: u64,
}

/// What a node takes.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Cost of a page fault of this way's kind of memory, where its pages were touched alone.
    fault_ns: Option<f64>,
    /// Page faults without I/O; nothing where they are not counted.
    minor_faults_per_node: Option<f64>,
    /// Part of a build's time that its page faults take.
    fault_share: Option<f64>,
    #[serde(default)]
    bytes_per_node: usize,
}

/// The ways beside each other, and the parts of malloc's beside its whole.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    nodes: u64,
    steps: Vec<Step>,
    parts: Option<Parts>,
}

/// A way to build a list.
#[derive(Serialize, JsonSchema)]
struct Step {
    operation: Way,
    ns_per_node: f64,
    gain_over_malloc: Option<Estimate>,
    fault_share: Option<f64>,
}

/// What a node from malloc takes in the allocator, in page faults and in its stores, each measured by itself.
#[derive(Serialize, JsonSchema)]
struct Parts {
    allocator_ns: Option<Estimate>,
    faults_ns: Option<Estimate>,
    stores_ns: Option<Estimate>,
    sum_ns: Option<Estimate>,
    /// Measured as one.
    whole_ns: f64,
    /// The sum over the whole.
    closure: Option<Estimate>,
    disturbed: bool,
}

impl Probe for Nodes {
    type Point = List;
    type Evidence = Evidence;
    type Details = Cost;
    type Findings = Findings;
    type Session<'env> = Lists<'env>;

    const SPEC: Spec = Spec {
        id: "alloc.nodes",
        tier: Tier::Alloc,
        title: "nodes of a linked list",
        question: "What does a node of a linked list cost, and how much of that is the allocator, page \
            faults, and the stores?",
        method: "A list of a million nodes (100,000 in the quick profile) is built: a pointer and 20 bytes, \
            32 bytes with padding. A value is one whole build, ns a node. \
The nodes come from the C library's malloc, one call each (malloc); from a pointer that is moved on through \
newly mapped memory (arena); the same with a node to each 64-byte line (arena-aligned), \
or with the line 512 bytes ahead asked for by a prefetch for writing (arena-prefetch); through memory whose \
pages were touched before (arena-touched); from a free list of used nodes (pool); \
from a vector that grows as it is pushed to and links nodes by number (vec).

Each build begins with the same memory, in a child process whose heap nothing else uses: malloc's heap has \
been freed and given back to the system (malloc_trim; elsewhere than with glibc each block is a new process \
instead), \
arenas are newly mapped, untimed, and unmapped afterwards. As much memory as a build needs is touched once \
before the first one, because a virtual machine's host may have to find it first. \
Huge pages are refused for arenas, so that all variants have the same pages.

A request of 32 bytes takes 48 bytes of glibc's heap (8 for its size, in steps of 16), so that a list from \
malloc has half as many pages again as the arena's. Its parts are measured separately: \
page faults, by growing the heap as far in blocks of 64 KiB and touching each page once (touch): the faults \
that were counted during the builds are charged what a fault, with its share of growing the heap, cost \
there; \
the calls and stores together, by the same malloc loop in a heap that was grown and freed before and has \
kept its pages (malloc-kept); the stores, by the same loop on touched memory without the calls (stores). \
The allocator's part is the second less the third. In these two the lines of each 16 KiB are read before \
the nodes on them are timed, because a page fault leaves its page in the cache: \
waiting for memory would be counted twice otherwise (3-4 ns a node seen), and is part of arena-touched and \
pool, whose memory has left the caches. \
No parameter is fitted to make the sum agree: closure shows how near it comes to the whole.

The list is walked after each build: every node must be there once, with its number and its text. Page \
faults are counted by the kernel for this thread; a build in new memory must have had them, \
and one in old memory must not. Builds are timed by the system's monotonic clock (20-50 ns of milliseconds).",
        method_version: 1,
        convention: "one node: its memory, its payload of 20 bytes, and the link to it",
        needs: &["a child process", "Linux"],
        touches: &["memory: up to 64 MB, in a child process"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<List> {
        let nodes = length(env).unwrap_or(0);
        if let Some(reason) = heap::refused(env, nodes > 0, "1 MiB of memory") {
            return Plan::no(reason);
        }
        let ways = Way::ALL.into_iter().filter(|way| *way != Way::MallocKept || heap::can_keep());
        let planned = |operation| Planned {
            rank: rank(env, matches!(operation, Way::Malloc | Way::ArenaTouched), Rank::Detail),
            block_s: f64::from(builds(nodes)) * nodes as f64 * planned_ns(operation) / 1e9,
            ..Planned::new(List { operation, nodes })
        };
        let plan = Plan::of(ways.map(planned).collect()).memory(nodes * HELD + FIXED);
        let wanted = if env.settings.profile == Profile::Quick { QUICK } else { LENGTHS[0] };
        if nodes < wanted {
            return plan
                .degraded(format!("lists of {nodes} nodes: a quarter of the memory that may be used"));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[List]) -> Result<Lists<'env>> {
        Ok(Lists { env, child: None, fault_ns: Vec::new() })
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let whole = of(figures, Way::Malloc);
        let own: Vec<&Figure<Self>> =
            Way::ALL.into_iter().filter(|way| !way.is_part()).filter_map(|way| of(figures, way)).collect();
        let pairs: Vec<[&PointResult; 2]> =
            own.iter().map(|own| [&whole.unwrap_or(own).result, &own.result]).collect();
        let steps = own.iter().zip(ratios(&pairs)).map(|(own, gain)| Step {
            operation: own.point.operation,
            ns_per_node: own.result.p50,
            gain_over_malloc: whole.filter(|_| own.result.p50 > 0.0).map(|_| gain),
            fault_share: own.details.as_ref().and_then(|details| details.fault_share),
        });
        let nodes = figures.first()?.point.nodes;
        Some(Findings { nodes, steps: steps.collect(), parts: added_up(figures) })
    }
}

/// Nodes of the lists; none where not even the shortest fits.
fn length(env: &Env) -> Option<u64> {
    let quick = env.settings.profile == Profile::Quick;
    LENGTHS.into_iter().find(|nodes| nodes * HELD + FIXED <= env.memory_bytes && !(quick && *nodes > QUICK))
}

/// Beside the lists, bytes.
const FIXED: u64 = 1 << 20;

/// Builds in one block.
fn builds(nodes: u64) -> u32 {
    if nodes > QUICK { 1 } else { 2 }
}

/// The child's side.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut workshop: Option<Workshop> = None;
    serve_child(input, output, |request: Request| {
        let workshop = match &mut workshop {
            Some(workshop) => workshop,
            none => none.insert(Workshop::new(request.nodes)?),
        };
        workshop.answer(&request)
    })
}

/// What was built at one point.
#[derive(Default)]
pub struct Evidence {
    built: Vec<Built>,
    chunk: usize,
    counts_faults: bool,
}

/// The child process, and what page faults cost in it.
pub struct Lists<'env> {
    env: &'env Env,
    child: Option<Child>,
    /// Of each build that touched its pages alone, ns.
    fault_ns: Vec<(Way, f64)>,
}

impl Session<Nodes> for Lists<'_> {
    fn select(&mut self, _point: &List) -> Result<()> {
        if !heap::can_keep() {
            // A heap that cannot be told to give everything back is a new one each time.
            self.child = None;
        }
        if self.child.is_none() {
            self.child = Some(heap::start(self.env, Nodes::SPEC.id, &Allocator::SYSTEM)?);
        }
        Ok(())
    }

    fn block(&mut self, point: &List, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let List { operation: way, nodes } = *point;
        let child =
            self.child.as_mut().ok_or_else(|| ProbeError::Other("no point is selected".to_owned()))?;
        let builds = if heap::can_keep() { builds(nodes) } else { 1 };
        let answer: Answer = child.ask(&Request { way, nodes, builds })?;
        heap::absorb(block, &answer.block);
        self.fault_ns.extend(answer.built.iter().filter_map(|built| Some((way, built.fault_ns?))));
        evidence.built.extend(answer.built);
        evidence.chunk = answer.chunk_bytes;
        evidence.counts_faults = answer.counts_faults;
        Ok(())
    }

    fn proof(&mut self, point: &List, evidence: &Evidence) -> Proof<Cost> {
        let List { operation: way, nodes } = *point;
        let touched = if matches!(way, Way::Malloc | Way::MallocKept | Way::Touch) {
            Way::Touch
        } else {
            Way::ArenaTouched
        };
        let fault_ns = median(self.fault_ns.iter().filter(|(own, _)| *own == touched).map(|(_, ns)| *ns));
        let mut proof = Proof::of(vec![walked(&evidence.built, nodes)]).with(evidence.cost(point, fault_ns));
        proof.engine = Some(match way {
            Way::Malloc | Way::MallocKept | Way::Touch | Way::Vec => heap::answering().engine(),
            _ => "latlab's own arena".to_owned(),
        });
        if evidence.counts_faults {
            proof.checks.push(pages(&evidence.built, way, nodes, evidence.chunk));
        } else {
            proof.flags.push(heap::NOT_PROVED_NEW.to_owned());
        }
        proof
    }
}

impl Evidence {
    fn cost(&self, point: &List, fault_ns: Option<f64>) -> Cost {
        let List { operation: way, nodes } = *point;
        let counted = || self.built.iter().filter(|_| self.counts_faults);
        let faults = median(counted().map(|built| built.faults as f64));
        let ns = median(counted().map(|built| built.ns)).filter(|ns| *ns > 0.0);
        let share = |faults: f64| Some((faults * fault_ns? / ns?).min(1.0));
        Cost {
            fault_ns,
            minor_faults_per_node: faults.map(|faults| faults / nodes as f64),
            fault_share: faults.and_then(share),
            bytes_per_node: match way.new_bytes_per_node(self.chunk) {
                0 if way.is_part() => self.chunk,
                0 => NODE,
                bytes => bytes,
            },
        }
    }
}

/// Whether every list was whole.
fn walked(built: &[Built], nodes: u64) -> Check {
    let whole = built.iter().filter(|one| one.walked == nodes && one.intact).count();
    let walks = Compared { all: built.len() as u64, wrong: (built.len() - whole) as u64 };
    walks.check("list walked", "", &format!("lists had {nodes} nodes, each with its number and text"))
}

/// Whether the memory was as new, or as old, as the way of building says.
fn pages(built: &[Built], way: Way, nodes: u64, chunk: usize) -> Check {
    let page = heap::page_bytes() as u64;
    let expected = nodes * way.new_bytes_per_node(chunk) as u64 / page;
    let faults = || built.iter().map(|one| one.faults);
    let (least, most) = (faults().min().unwrap_or(0), faults().max().unwrap_or(0));
    if expected > 0 {
        return Check {
            name: "memory was new".to_owned(),
            ok: !built.is_empty() && least as f64 >= NEW_SHARE * expected as f64,
            detail: format!("at least {least} page faults in a build that touches {expected} pages"),
        };
    }
    let pages = nodes * NODE as u64 / page;
    Check {
        name: "memory was there".to_owned(),
        ok: most as f64 <= OLD_SHARE * pages as f64 + OTHER_FAULTS as f64,
        detail: format!("at most {most} page faults in a build that touches {pages} pages"),
    }
}

fn of(figures: &[Figure<Nodes>], way: Way) -> Option<&Figure<Nodes>> {
    figures.iter().find(|figure| figure.point.operation == way)
}

fn added_up(figures: &[Figure<Nodes>]) -> Option<Parts> {
    let of_parts = [Way::Malloc, Way::Touch, Way::MallocKept, Way::Stores].map(|way| of(figures, way));
    // A sum of figures without a range is none to rely on.
    if !of_parts.iter().all(|figure| figure.is_some_and(|figure| figure.result.interval.is_some())) {
        return None;
    }
    let (_, whole_ns) = parts(figures)?;
    let rounds = Rounds::of(figures);
    let each = rounds.estimates(&[0, 1, 2], |part, figures| Some(parts(figures)?.0[*part]));
    let sum = |figures: &[Figure<Nodes>]| Some(parts(figures)?.0.iter().sum::<f64>());
    Some(Parts {
        allocator_ns: each[0],
        faults_ns: each[1],
        stores_ns: each[2],
        sum_ns: rounds.estimate(sum),
        whole_ns,
        closure: rounds.estimate(|figures| Some(sum(figures)? / parts(figures)?.1)),
        disturbed: of_parts.iter().flatten().any(|figure| figure.result.disturbed),
    })
}

/// What a node takes in the allocator, in page faults and in its stores; and as a whole, ns.
fn parts(figures: &[Figure<Nodes>]) -> Option<([f64; 3], f64)> {
    let ns = |way| Some(of(figures, way)?.result.p50);
    let details = |way| of(figures, way)?.details.as_ref();
    let whole = ns(Way::Malloc).filter(|whole| *whole > 0.0)?;
    let stores = ns(Way::Stores)?;
    let allocator = ns(Way::MallocKept)? - stores;
    let faults = details(Way::Malloc)?.minor_faults_per_node? * details(Way::Touch)?.fault_ns?;
    Some(([allocator, faults, stores], whole))
}

#[cfg(test)]
mod tests {
    use latlab_harness::Erased;
    use latlab_probes_testing as testing;
    use serde_json::{Value, json};

    use super::*;

    fn result(operation: Way, p50: f64, findings: Value) -> PointResult {
        PointResult {
            interval: Some([0.9 * p50, 1.1 * p50]),
            findings: Some(findings),
            ..PointResult::new(List { operation, nodes: 1_000_000 }.to_point(), p50)
        }
    }

    fn concluded(results: &[PointResult]) -> Value {
        testing::conclusion(&Erased(Nodes), &testing::env(64 << 20), results)
    }

    #[test]
    fn the_parts_are_added_up_and_compared_with_a_whole_that_is_none_of_them() {
        let mut results = [
            result(Way::Malloc, 40.0, json!({"minor_faults_per_node": 0.0117, "fault_share": 0.5})),
            result(Way::Arena, 20.0, json!({"fault_share": 0.7})),
            result(Way::ArenaTouched, 6.0, json!({})),
            result(Way::Stores, 4.0, json!({})),
            result(Way::MallocKept, 16.0, json!({})),
            result(Way::Touch, 23.0, json!({"fault_ns": 2_000.0})),
        ];
        let findings = concluded(&results);
        let part = |name: &str| findings["parts"][name]["value"].as_f64().expect("a number");
        assert!((part("allocator_ns") - 12.0).abs() < 1e-9);
        assert!((part("faults_ns") - 23.4).abs() < 1e-9);
        assert!((part("closure") - 39.4 / 40.0).abs() < 1e-9);
        assert_eq!(findings["steps"].as_array().map(Vec::len), Some(3));
        assert_eq!(findings["steps"][1]["gain_over_malloc"]["value"], json!(2.0));
        results[4].interval = None;
        assert!(concluded(&results)["parts"].is_null(), "a part of too few blocks");
    }

    #[test]
    fn parts_that_are_missing_are_left_out_rather_than_guessed() {
        let findings = concluded(&[result(Way::Malloc, 40.0, json!({}))]);
        assert!(findings["parts"].is_null());
        assert!(concluded(&[]).is_null());
    }

    fn built(walked: u64, intact: bool, faults: u64) -> Built {
        Built { ns: 1e6, walked, intact, faults, fault_ns: None }
    }

    #[test]
    fn a_list_that_lacks_a_node_or_a_number_fails_the_proof() {
        assert!(walked(&[built(100, true, 0); 3], 100).ok);
        assert!(!walked(&[built(100, true, 0), built(99, true, 0)], 100).ok);
        assert!(!walked(&[built(100, false, 0)], 100).ok);
        assert!(!walked(&[], 100).ok);
    }

    #[test]
    fn new_memory_that_was_touched_before_fails_the_proof_and_so_does_old_memory_that_was_not() {
        let expected = 1_000_000 * NODE as u64 / heap::page_bytes() as u64;
        let check = |way, faults| pages(&[built(1_000_000, true, faults)], way, 1_000_000, 48).ok;
        assert!(check(Way::Arena, expected));
        assert!(!check(Way::Arena, expected / 2), "half of it was there");
        assert!(!check(Way::Malloc, expected), "malloc takes more pages");
        assert!(check(Way::ArenaTouched, 5));
        assert!(!check(Way::ArenaTouched, expected / 2));
    }

    #[test]
    fn a_page_that_was_touched_before_is_missing_among_the_faults() {
        if !heap::counts_faults() {
            return;
        }
        let count = |touched: bool| {
            let mut workshop = Workshop::new(20_000).expect("a small list");
            let way = if touched { Way::ArenaTouched } else { Way::Arena };
            let built = workshop.build(way, 20_000).expect("a small list");
            // An arena that was meant to be new.
            pages(&[built], Way::Arena, 20_000, 48).ok
        };
        assert!(count(false));
        assert!(!count(true));
    }

    #[test]
    fn lists_grow_with_the_profile_as_far_as_memory_goes() {
        let mut env = testing::env(256 << 20);
        assert_eq!(length(&env), Some(QUICK));
        env.settings.profile = Profile::Standard;
        assert_eq!(length(&env), Some(1_000_000));
        assert!(1_000_000 * heap::chunk_bytes(NODE) as u64 <= 1_000_000 * HELD);
        assert_eq!(length(&testing::env(1_000)), None);
    }
}
