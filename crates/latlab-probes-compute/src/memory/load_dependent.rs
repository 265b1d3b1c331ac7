//! `memory.load.dependent`: what one load costs when the next one needs its answer, over the size of what is
//! walked.
//!
//! ```text
//! curve      page-local over 4 KiB pages, two sizes an octave        ─┐
//! order      fully random over 4 KiB and over huge pages              ├─► levels, translation, effective page
//! paired     equal node count, packed on lines and spread over pages ─┘
//! refine     eight sizes an octave around the knees found
//! ```

use std::collections::HashMap;

use latlab_clock::SimulatedClock;
use latlab_harness::{MemorySource, SimulatedMemory};
use latlab_probes_shared::prelude::*;
use latlab_record::Order;
use latlab_stats::count::nearest;

use crate::{levels, too_little};
use latlab_probes_shared::walk::{Arena, Chain, Cycle, LINE_BYTES, Layout, PAGE_BYTES};

mod hierarchy;

use hierarchy::Findings;

/// The probe.
pub struct LoadDependent;

/// Smallest working set: 16 lines.
const SMALLEST: u64 = 1 << 10;
/// Two working sets of 4 MiB: less would not leave the private caches.
const LEAST_MEMORY: u64 = 8 << 20;
/// Largest working set of the thorough profile: beyond it nothing new is met, and 10 GB are poked at by
/// `memory.poke`. The others end with the one that stands for memory: populating and building more takes
/// seconds.
const LARGEST: u64 = 1 << 30;
/// The coarse ladder of each round begins here.
const HEADLINE_FROM: u64 = 4 << 10;
/// A quick run has it up to here, and the largest: building longer walks takes most of its time.
const COARSE_UP_TO: u64 = 8 << 20;
/// Two sizes of it an octave.
const FINE_HEADLINE: std::ops::RangeInclusive<u64> = 24 << 10..=24 << 20;
/// Two sizes an octave up to here, one beyond.
const FINE_UP_TO: u64 = 64 << 20;
/// Sizes an octave near knees.
const PER_OCTAVE: u32 = 8;
/// Lines that page-local order mixes: those of 64 pages, as many translations as the smallest first-level TLB
/// holds.
const LOCAL_LINES: u64 = 64 * PAGE_BYTES / LINE_BYTES;
/// Pointers that fit a line: as many chains can live in the same lines side by side.
const SLOTS: usize = (LINE_BYTES / 8) as usize;
/// Chains from here on keep a slot of their own for the whole session; smaller ones are built anew at each
/// visit.
const KEPT_FROM: u64 = 64 << 20;
/// A random walk that costs more than this a load is answered by memory, not by a cache, ns.
const BEYOND_CACHES_NS: f64 = 50.0;
/// Loads of the walks that look for the end of the caches.
const TRIAL_LOADS: u64 = 4_000;
const TRIALS: u32 = 3;
/// Estimates before the first visit tells: a load while the core's frequency settles, s; and where each node
/// lies on a page of its own.
const PRIVATE_S: f64 = 4e-9;
const SPREAD_S: f64 = 15e-9;
/// Loads from the second level that let the core's frequency come to what such a walk sustains: 3 ms. (A walk
/// through the first level is settled by the harness; one through RAM settles while its lines are touched.)
const SETTLING_LOADS: u64 = 700_000;
/// One core's share of a last-level cache: for estimates only.
const CACHED: u64 = 8 << 20;
/// Unless the machine says otherwise.
const LAST_CACHE_UNKNOWN: u64 = 64 << 20;

/// A walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Walk {
    working_set_bytes: u64,
    pages: Pages,
    order: Order,
    /// Of one of a pair.
    nodes: Option<u64>,
}

impl Walk {
    fn new(working_set_bytes: u64, pages: Pages, order: Order) -> Self {
        Self { working_set_bytes, pages, order, nodes: None }
    }

    /// One of a pair. Both touch the same number of lines; only the pages differ.
    fn paired(nodes: u64, pages: Pages, order: Order) -> Self {
        Self { nodes: Some(nodes), ..Self::new(nodes * LINE_BYTES, pages, order) }
    }

    /// How many it visits.
    fn lines(self) -> u64 {
        self.nodes.unwrap_or(self.working_set_bytes / LINE_BYTES).max(1)
    }

    fn layout(self) -> Layout {
        if self.order == Order::Spread { Layout::Pages } else { Layout::Lines }
    }

    /// Bytes from its first line to the end of its last one.
    fn span(self) -> u64 {
        self.layout().span(self.lines())
    }

    fn keeps_slot(self) -> bool {
        self.lines() * LINE_BYTES >= KEPT_FROM
    }
}

impl Probe for LoadDependent {
    type Point = Walk;
    type Evidence = Option<Check>;
    type Details = Nothing;
    type Findings = Findings;
    type Session<'env> = Loads<'env>;

    const SPEC: Spec = Spec {
        id: "memory.load.dependent",
        tier: Tier::Memory,
        title: "latency of a dependent load",
        question: "How long does one access to memory take, when the next one has to wait for it?",
        method: "A chain of pointers, one on each 64-byte line of the working set, is followed by a loop of \
            dependent loads \
written in assembly, so no load can begin before the one before it has ended and the compiler can neither \
remove nor widen one.

The order is a single cycle by construction: a keyed bijection of the lines, which no stride prefetcher can \
follow. \
In memory every pointer is checked (each line is pointed to once), and every block must end at the line \
where its length puts it.

Page-local order visits all lines of 64 pages in random order, then those of the next 64 pages: \
translations stay in the first-level TLB, and no \
page is visited line after line, which would let the prefetcher halve the figure. Even so, adjacent-line \
prefetching hides part of RAM's latency in this order, and switches itself on and off every millisecond or \
two: samples there are windows of 16,384 loads, four times the 64 pages, so each one covers all of that. \
Random order mixes the whole working set, so each \
access beyond the TLB's reach pays for a translation too. The two, and paired chains of equal length \
(packed on consecutive lines; spread, one line a page), \
separate the cost of caches from that of translation.

Before each block the lines are touched in the order of the walk, so the caches hold what an endless walk \
would have left there. A value is the mean of a \
window of loads about 20 µs long: its quantiles are quantiles of window means, never of single loads. The \
clock's own cost is a thousandth of a window and is not subtracted.",
        method_version: 1,
        convention: "one 8-byte load a line; a line of 64 bytes is moved",
        needs: &["8 MiB of memory"],
        touches: &["memory: two arenas of 256 MiB (up to 1 GiB beside large caches and in the thorough \
            profile), at most a quarter of what may be used"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Walk> {
        let largest = largest(env);
        if env.memory_bytes < LEAST_MEMORY {
            return Plan::no(too_little(env, &format!("{} of memory", binary_size(LEAST_MEMORY))));
        }
        let plan = Plan::of(points(env, largest)).memory(2 * largest);
        if largest < levels::LEAST_RAM {
            return plan.degraded(format!(
                "working sets end at {}: a quarter of the memory that may be used",
                binary_size(largest)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Walk]) -> Result<Loads<'env>> {
        match &env.memory {
            MemorySource::Simulated(memory) => Ok(Loads::Planted(memory)),
            MemorySource::Real => Walking::open(env, group).map(Loads::Real),
        }
    }

    fn refine(&self, env: &Env, figures: &[Figure<Self>]) -> Vec<Planned<Walk>> {
        let largest = largest(env);
        let fresh = |bytes: f64| {
            // Whole lines; a size that is already in the grid is dropped by the scheduler.
            let size = nearest(bytes).next_multiple_of(LINE_BYTES);
            (SMALLEST..=largest).contains(&size).then_some(size)
        };
        latlab_stats::levels::refine_sizes(&hierarchy::curve(figures), PER_OCTAVE)
            .into_iter()
            .filter_map(fresh)
            .map(|size| planned(Walk::new(size, Pages::Base, Order::PageLocal), 3, env))
            .collect()
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        Some(hierarchy::findings(header, figures))
    }
}

fn points(env: &Env, largest: u64) -> Vec<Planned<Walk>> {
    let quick = env.settings.profile == Profile::Quick;
    let mut points = Vec::new();
    // Page-local: the curve. What a reader wants first is first: RAM, L1, L2, L3, then the rest.
    let mut curve = sizes(largest, quick);
    let landmarks = [largest, 16 << 10, 256 << 10, 4 << 20, 8 << 20];
    curve.sort_by_key(|size| {
        (landmarks.iter().position(|mark| mark == size).unwrap_or(landmarks.len()), *size)
    });
    points.extend(curve.iter().map(|size| planned(Walk::new(*size, Pages::Base, Order::PageLocal), 0, env)));
    let mut random = octaves(256 << 10, largest);
    match env.settings.profile {
        Profile::Quick => random.retain(|size| *size == largest || [1 << 20, 16 << 20].contains(size)),
        // Every second octave, so that there is time to look closely at the knees.
        Profile::Standard => {
            random.retain(|size| *size == largest || size.trailing_zeros().is_multiple_of(2));
        }
        Profile::Thorough => {}
    }
    random.reverse();
    for pages in [Pages::Base, Pages::Huge] {
        points.extend(random.iter().map(|size| planned(Walk::new(*size, pages, Order::Random), 1, env)));
    }
    for nodes in paired_nodes(largest, env.settings.profile) {
        for pages in [Pages::Base, Pages::Huge] {
            for order in [Order::Packed, Order::Spread] {
                points.push(planned(Walk::paired(nodes, pages, order), 2, env));
            }
        }
    }
    points
}

/// Largest working set: two arenas of it are held at once.
fn largest(env: &Env) -> u64 {
    let most = if env.settings.profile == Profile::Thorough { LARGEST } else { levels::ram_bytes(env) };
    most.min(levels::power_of_two(env.memory_bytes / 2))
}

fn octaves(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |size| Some(size * 2)).take_while(|size| *size <= to).collect()
}

/// Two sizes an octave, one beyond [`FINE_UP_TO`]; the quick profile leaves out what lies inside the smallest
/// first-level cache and takes one an octave from 16 MiB on.
fn sizes(largest: u64, quick: bool) -> Vec<u64> {
    let (fine_from, fine_up_to) = if quick { (16 << 10, 16 << 20) } else { (0, FINE_UP_TO) };
    octaves(SMALLEST, largest)
        .into_iter()
        .flat_map(|size| [size, size / 2 * 3])
        .filter(|size| {
            *size <= largest && (size.is_power_of_two() || (fine_from..=fine_up_to).contains(size))
        })
        .filter(|size| !quick || *size >= fine_from || [SMALLEST, 4 << 10].contains(size))
        .collect()
}

/// Node counts of the paired chains: two an octave, so that 64, 96, 1,536 and 2,048 (common TLB sizes) are
/// met; quick: one. No TLB reaches beyond 16,384 pages; what lies behind is the page tables falling out of
/// the caches.
fn paired_nodes(largest: u64, profile: Profile) -> Vec<u64> {
    let quick = profile == Profile::Quick;
    let wanted = match profile {
        Profile::Quick | Profile::Standard => 32..=16_384,
        Profile::Thorough => 16..=u64::MAX,
    };
    octaves(16, largest / PAGE_BYTES)
        .into_iter()
        .flat_map(|nodes| if quick { vec![nodes] } else { vec![nodes, nodes / 2 * 3] })
        .filter(|nodes| nodes * PAGE_BYTES <= largest && wanted.contains(nodes))
        .collect()
}

/// A coarse ladder up to memory, and memory with translation missed; in the standard and thorough profile two
/// sizes an octave where caches end.
fn is_headline(point: &Walk, env: &Env) -> bool {
    let bytes = point.working_set_bytes;
    let ram = levels::ram_bytes(env).min(largest(env));
    let quick = env.settings.profile == Profile::Quick;
    let fine = !quick && FINE_HEADLINE.contains(&bytes);
    match point.order {
        Order::PageLocal => {
            let coarse = bytes == ram || !quick || bytes <= COARSE_UP_TO;
            let octave = bytes.is_power_of_two() && (HEADLINE_FROM..=ram).contains(&bytes);
            octave && coarse || fine && bytes.is_multiple_of(3) && (bytes / 3).is_power_of_two()
        }
        Order::Random => point.pages == Pages::Base && bytes == ram,
        _ => false,
    }
}

/// What needs memory beyond that of the headline has sessions of its own: walks in random order, and pairs.
fn group(point: &Walk, headline: bool) -> u16 {
    match point.order {
        Order::PageLocal => 0,
        Order::Random if headline => 0,
        Order::Random => 1,
        _ => 2,
    }
}

/// What stays near the core is measured before and apart from what does not: walks that wait let the core's
/// frequency drop (4.1 to 3.6 GHz on one machine), and it takes longer than a block to come back.
fn planned(point: Walk, class: u8, env: &Env) -> Planned<Walk> {
    let nodes = point.lines();
    let [build_s, touch_s, load_s] = node_s(nodes * LINE_BYTES);
    let warm = nodes.min(reported_lines(env)) as f64 * touch_s;
    let build = nodes as f64 * build_s;
    let (first_s, again_s) = if point.keeps_slot() { (build, 0.0) } else { (0.0, build) };
    let private_bytes = levels::reported(&env.machine, 2).unwrap_or(256 << 10);
    let block_s = whole_periods(&point, private_bytes, env.settings.profile)
        .map_or(2e-3, |(ops, windows)| ops as f64 * f64::from(windows) * load_s);
    let scope = levels::cache_scope(nodes * LINE_BYTES, &env.machine);
    let settling = match (scope, point.order) {
        (CacheScope::Private, Order::Spread) => SETTLING_LOADS as f64 * SPREAD_S,
        (CacheScope::Private, _) => SETTLING_LOADS as f64 * PRIVATE_S,
        _ => 0.0,
    };
    let headline = is_headline(&point, env);
    Planned {
        rank: if headline { Rank::Headline } else { Rank::Curve },
        group: group(&point, headline),
        priority: 3 * class + scope as u8,
        setup_s: again_s + warm + settling,
        first_s,
        block_s,
        cache_scope: scope,
        ..Planned::new(point)
    }
}

/// What a node of a chain of this size takes before the first visit tells, seconds: building it, touching it,
/// and following it beyond the private caches.
fn node_s(bytes: u64) -> [f64; 3] {
    if bytes > CACHED { [40e-9, 60e-9, 110e-9] } else { [10e-9, 10e-9, 15e-9] }
}

/// Lines that a walk must have touched for the caches to be in the state of an endless walk, if they are as
/// large as the CPU says.
fn reported_lines(env: &Env) -> u64 {
    let last = env.machine.caches.iter().map(|cache| cache.size_bytes).max().unwrap_or(LAST_CACHE_UNKNOWN);
    (last + last / 4) / LINE_BYTES
}

/// The same, looked for: the smallest working set (from 16 MiB, doubling) whose random walk is answered by
/// memory, twice. A guest is told of hundreds of MiB that it shares, and touching them all before each block
/// would cost more than the block.
fn effective_lines(env: &Env, arena: &Arena) -> u64 {
    let reported = reported_lines(env);
    for size in octaves(16 << 20, arena.bytes() / 2) {
        let lines = size / LINE_BYTES;
        if 2 * lines >= reported {
            break;
        }
        let cycle = Cycle::random(lines, env.seed(5));
        // SAFETY: the lines lie in the arena; the chain is dropped before anything else is built there.
        let mut chain = unsafe { Chain::build(arena.base(), Layout::Lines, cycle) };
        chain.warm(lines);
        let trial = |_| {
            let begin = env.clock.now_ns();
            std::hint::black_box(chain.run(TRIAL_LOADS));
            (env.clock.now_ns() - begin) / TRIAL_LOADS as f64
        };
        // The shortest: one preemption (4 ms) is a microsecond a load.
        if (0..TRIALS).map(trial).fold(f64::INFINITY, f64::min) > BEYOND_CACHES_NS {
            return 2 * lines;
        }
    }
    reported
}

/// A place for a chain that is kept: a word of the lines (slot) from an offset on, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    slot: usize,
    offset: u64,
}

/// Gives the largest chains places of their own in an arena: side by side in the words of the same lines, and
/// behind one another. The last slot stays free for all the others.
fn places(points: impl Iterator<Item = Walk>, arena_bytes: u64) -> HashMap<Walk, Place> {
    let mut kept: Vec<Walk> = points.filter(|point| point.keeps_slot()).collect();
    kept.sort_by_key(|point| std::cmp::Reverse(point.lines()));
    let mut used = [0u64; SLOTS - 1];
    let mut places = HashMap::new();
    for point in kept {
        let span = point.span();
        let fits = used.iter().position(|used| used + span <= arena_bytes);
        if let Some(slot) = fits {
            places.insert(point, Place { slot, offset: used[slot] });
            used[slot] += span.next_multiple_of(PAGE_BYTES);
        }
    }
    places
}

/// Loads a window and windows a block for page-local walks that leave the private caches. In each page-local
/// window the first loads miss and the last ones find what adjacent-line prefetching brought in, and the
/// prefetcher switches itself off and on every few windows (both seen as a sawtooth of 150 to 15 ns): a
/// sample must cover whole windows, and several of them.
fn whole_periods(point: &Walk, private_bytes: u64, profile: Profile) -> Option<(u64, u32)> {
    let windows = if profile == Profile::Thorough { 16 } else { 8 };
    let local = point.order == Order::PageLocal && point.lines() > LOCAL_LINES;
    (local && point.lines() * LINE_BYTES > private_bytes).then_some((4 * LOCAL_LINES, windows))
}

/// Loads from this machine's memory, or from a planted hierarchy.
pub enum Loads<'env> {
    /// With chains in arenas.
    Real(Walking<'env>),
    /// By simulated time alone.
    Planted(&'env SimulatedMemory),
}

impl Session<LoadDependent> for Loads<'_> {
    fn select(&mut self, point: &Walk) -> Result<()> {
        match self {
            Self::Real(walking) => walking.select(*point),
            Self::Planted(_) => Ok(()),
        }
    }

    fn block(&mut self, point: &Walk, walks: &mut Option<Check>, block: &mut Block) -> Result<()> {
        match self {
            Self::Real(walking) => walking.block(point, walks, block),
            Self::Planted(memory) => {
                block.batches(&mut Waiting::of(memory, *point));
                Ok(())
            }
        }
    }

    fn proof(&mut self, point: &Walk, walks: &Option<Check>) -> Proof<Nothing> {
        match self {
            Self::Real(walking) => Proof::of(walking.checks(point, walks.as_ref()))
                .by(&format!("{} loads in assembly", std::env::consts::ARCH)),
            Self::Planted(_) => Proof::default().by("simulated"),
        }
    }
}

/// Chains in this machine's memory.
pub struct Walking<'env> {
    env: &'env Env,
    /// Size of the largest private cache: beyond it page-local walks have a period.
    private_bytes: u64,
    /// Lines touched before each block, at most.
    warm_lines: u64,
    arenas: HashMap<Pages, Field>,
    /// Of each chain when it was first built.
    permutations: HashMap<Walk, Check>,
}

/// One arena and the chains in it.
struct Field {
    chains: HashMap<Walk, Chain>,
    places: HashMap<Walk, Place>,
    arena: Arena,
    pages_check: Check,
}

impl<'env> Walking<'env> {
    fn open(env: &'env Env, group: &[Walk]) -> Result<Self> {
        let helpers = env.populating_cpus();
        let mut arenas = HashMap::new();
        for pages in [Pages::Base, Pages::Huge] {
            let points = || group.iter().copied().filter(|point| point.pages == pages);
            let Some(bytes) = points().map(Walk::span).max() else { continue };
            let arena = Arena::new(bytes, pages, &helpers)?;
            let places = places(points(), arena.bytes());
            let pages_check = arena.pages_check();
            arenas.insert(pages, Field { chains: HashMap::new(), places, arena, pages_check });
        }
        let warm_lines = arenas
            .get(&Pages::Base)
            .map_or_else(|| reported_lines(env), |field: &Field| effective_lines(env, &field.arena));
        let private_bytes = levels::reported(&env.machine, 2).unwrap_or(256 << 10);
        Ok(Self { env, private_bytes, warm_lines, arenas, permutations: HashMap::new() })
    }

    fn field(&mut self, point: &Walk) -> Result<&mut Field> {
        self.arenas.get_mut(&point.pages).ok_or_else(|| ProbeError::no_point(&point.to_point()))
    }

    /// The chain that was built for this point.
    fn chain(&mut self, point: &Walk) -> Result<&mut Chain> {
        let chain = self.field(point)?.chains.get_mut(point);
        chain.ok_or_else(|| ProbeError::no_point(&point.to_point()))
    }

    fn select(&mut self, point: Walk) -> Result<()> {
        let seed = self.env.seed(point.lines());
        let warm = self.warm_lines;
        let field = self.field(&point)?;
        let known = field.places.contains_key(&point) && field.chains.contains_key(&point);
        if !known {
            field.build(point, seed)?;
            if !self.permutations.contains_key(&point) {
                let check = self.chain(&point)?.permutation_check();
                self.permutations.insert(point, check);
            }
        }
        let scope = levels::cache_scope(point.lines() * LINE_BYTES, &self.env.machine);
        let chain = self.chain(&point)?;
        chain.warm(warm);
        if scope == CacheScope::Private {
            std::hint::black_box(chain.run(SETTLING_LOADS));
        }
        Ok(())
    }

    fn block(&mut self, point: &Walk, walks: &mut Option<Check>, block: &mut Block) -> Result<()> {
        let whole_periods = whole_periods(point, self.private_bytes, self.env.settings.profile);
        let chain = self.chain(point)?;
        if let Some((ops, windows)) = whole_periods {
            block.set_window_ops(ops);
            block.set_windows(windows);
        }
        block.batches(chain);
        chain.verify_position();
        // A chain that is built anew at each visit counts its walks anew; one wrong end is remembered.
        if walks.as_ref().is_none_or(|walks| walks.ok) {
            *walks = Some(chain.walk_check());
        }
        Ok(())
    }

    /// The page size is the point: the figure of other pages under its name would be a wrong one, so its
    /// check is one like the others.
    fn checks(&self, point: &Walk, walks: Option<&Check>) -> Vec<Check> {
        let pages = self.arenas.get(&point.pages).map(|field| &field.pages_check);
        [self.permutations.get(point), walks, pages].into_iter().flatten().cloned().collect()
    }
}

impl Field {
    /// Builds the point's chain: in its own slot, or in the last one, which all others share.
    fn build(&mut self, point: Walk, seed: u64) -> Result<()> {
        let span = point.span();
        if span > self.arena.bytes() {
            return Err(ProbeError::Other(format!("{span} bytes do not fit the arena")));
        }
        let place = self.places.get(&point).copied().unwrap_or(Place { slot: SLOTS - 1, offset: 0 });
        if place.slot == SLOTS - 1 {
            let places = &self.places;
            self.chains.retain(|other, _| places.contains_key(other));
        }
        let base =
            self.arena.base().wrapping_add(usize::try_from(place.offset).unwrap_or(0) + place.slot * 8);
        let cycle = match point.order {
            Order::PageLocal => Cycle::windowed(point.lines(), LOCAL_LINES, seed),
            _ => Cycle::random(point.lines(), seed),
        };
        // SAFETY: `offset + span` is at most the arena's size; the slot's words of these lines belong to this
        // chain alone; the chain is dropped with the field, before the arena.
        let chain = unsafe { Chain::build(base, point.layout(), cycle) };
        self.chains.insert(point, chain);
        Ok(())
    }
}

/// Loads that take simulated time.
struct Waiting<'a> {
    clock: &'a SimulatedClock,
    load_ns: f64,
}

impl<'a> Waiting<'a> {
    fn of(memory: &'a SimulatedMemory, point: Walk) -> Self {
        let spanned = point.span().div_ceil(PAGE_BYTES);
        let pages = if point.order == Order::PageLocal { spanned.min(64) } else { spanned };
        let load_ns = memory.latency_ns(point.lines(), pages, point.pages == Pages::Huge);
        Self { clock: &memory.clock, load_ns }
    }
}

impl Batch for Waiting<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        self.clock.advance_ns(ops as f64 * self.load_ns);
        ops
    }
}

#[cfg(test)]
mod tests;
