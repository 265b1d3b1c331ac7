//! `memory.load.dependent`: what one load costs when the next one needs its answer, over the size of what is walked.
//!
//! ```text
//! curve      page-local over 4 KiB pages, two sizes an octave        ─┐
//! order      fully random over 4 KiB and over huge pages              ├─► levels, translation, effective page
//! paired     equal node count, packed on lines and spread over pages ─┘
//! refine     eight sizes an octave around the knees found
//! ```

use std::collections::HashMap;

use latlab_clock::SimulatedClock;
use latlab_harness::{
    AnyProbe, AnySession, Batch, Block, Env, MemorySource, Operations, Planned, PointResult, ProbeError,
    Proof, Rank, Reach, SimulatedMemory, Spec, Support, Tier,
};
use latlab_record::{Check, Header, Order, Pages, Point, Profile, Record, Unit, binary_size};

use crate::levels;
use latlab_probes_shared::walk::{Arena, Chain, Cycle, LINE_BYTES, Layout, PAGE_BYTES};

/// The probe.
pub struct LoadDependent;

static SPEC: Spec = Spec {
    id: "memory.load.dependent",
    tier: Tier::Memory,
    title: "latency of a dependent load",
    question: "How long does one access to memory take, when the next one has to wait for it?",
    method: "A chain of pointers, one on each 64-byte line of the working set, is followed by a loop of dependent loads \
written in assembly, so no load can begin before the one before it has ended and the compiler can neither remove nor widen one.

The order is a single cycle by construction: a keyed bijection of the lines, which no stride prefetcher can follow. \
In memory every pointer is checked (each line is pointed to once), and every block must end at the line where its length puts it.

Page-local order visits all lines of 64 pages in random order, then those of the next 64 pages: translations stay in the first-level TLB, and no \
page is visited line after line, which would let the prefetcher halve the figure. Even so, adjacent-line prefetching hides part of RAM's latency in this order, and switches itself on and off every millisecond or two: samples there are windows of 16,384 loads, four times the 64 pages, so each one covers that whole. Random order mixes the whole working set, so each \
access beyond the TLB's reach pays for a translation too. The two, and paired chains of equal length (packed on consecutive lines; spread, one line a page), \
tell the cost of caches from the cost of translation.

Before each block the lines are touched in the order of the walk, so the caches hold what an endless walk would have left there. A value is the mean of a \
window of loads about 20 us long: its quantiles are quantiles of window means, never of single loads. The clock's own cost is a thousandth of a window and is not subtracted.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one 8-byte load a line; a line of 64 bytes is moved",
    needs: &["8 MiB of memory"],
    touches: &["memory: two arenas of 256 MiB (up to 1 GiB beside large caches and in the thorough profile), at most a quarter of what may be used"],
    saturates: false,
    operations: Operations::Unwatched,
};

/// Smallest working set: 16 lines.
const SMALLEST: u64 = 1 << 10;
/// Two working sets of 4 MiB: less would not leave the private caches.
const LEAST_MEMORY: u64 = 8 << 20;
/// Largest working set of the thorough profile: beyond it nothing new is met, and 10 GB are poked at by `memory.poke`. The others end with the one that
/// stands for memory: populating and building more takes seconds.
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
/// Lines that page-local order mixes: those of 64 pages, as many translations as the smallest first-level TLB holds.
const LOCAL_LINES: u64 = 64 * PAGE_BYTES / LINE_BYTES;
/// Pointers that fit a line: as many chains can live in the same lines side by side.
const SLOTS: usize = (LINE_BYTES / 8) as usize;
/// Chains from here on keep a slot of their own for the whole session; smaller ones are built anew at each visit.
const KEPT_FROM: u64 = 64 << 20;
/// A random walk that costs more than this a load is answered by memory, not by a cache, ns.
const BEYOND_CACHES_NS: f64 = 50.0;
/// Loads of the walks that look for the end of the caches.
const TRIAL_LOADS: u64 = 4_000;
const TRIALS: u32 = 3;
/// Estimates before the first visit tells: a load while the core's frequency settles, s; and where each node lies on a page of its own.
const PRIVATE_S: f64 = 4e-9;
const SPREAD_S: f64 = 15e-9;
/// Loads from the second level that let the core's frequency come to what such a walk sustains: 3 ms. (A walk through the
/// first level is settled by the harness; one through RAM settles while its lines are touched.)
const SETTLING_LOADS: u64 = 700_000;
/// One core's share of a last-level cache: for estimates only.
const CACHED: u64 = 8 << 20;
/// Unless the machine says otherwise.
const LAST_CACHE_UNKNOWN: u64 = 64 << 20;

impl AnyProbe for LoadDependent {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        let largest = largest(env);
        if env.memory_bytes < LEAST_MEMORY {
            return Support::No(format!(
                "needs {} of memory at least; {} may be used here",
                binary_size(LEAST_MEMORY),
                binary_size(env.memory_bytes)
            ));
        }
        if largest < levels::LEAST_RAM {
            return Support::Degraded(format!(
                "working sets end at {}: a quarter of the memory that may be used",
                binary_size(largest)
            ));
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let largest = largest(env);
        let quick = env.settings.profile == Profile::Quick;
        let mut points = Vec::new();
        // Page-local: the curve. What a reader wants first is first: RAM, L1, L2, L3, then the rest.
        let mut curve = sizes(largest, quick);
        let landmarks = [largest, 16 << 10, 256 << 10, 4 << 20, 8 << 20];
        curve.sort_by_key(|size| {
            (landmarks.iter().position(|mark| mark == size).unwrap_or(landmarks.len()), *size)
        });
        points.extend(curve.iter().map(|size| planned(walk(*size, Pages::Base, Order::PageLocal), 0, env)));
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
            points.extend(random.iter().map(|size| planned(walk(*size, pages, Order::Random), 1, env)));
        }
        for nodes in paired_nodes(largest, env.settings.profile) {
            for pages in [Pages::Base, Pages::Huge] {
                for order in [Order::Packed, Order::Spread] {
                    points.push(planned(pair(nodes, pages, order), 2, env));
                }
            }
        }
        points
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        2 * largest(env)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        match &env.memory {
            MemorySource::Simulated(memory) => {
                Ok(Box::new(Planted { memory, lines: 1, pages: 1, huge: false }))
            }
            MemorySource::Real => Ok(Box::new(Walking::open(env, group)?)),
        }
    }

    fn refine(&self, env: &Env, results: &[PointResult]) -> Vec<Planned> {
        let largest = largest(env);
        let fresh = |bytes: f64| {
            // Whole lines; a size that is already in the grid is dropped by the scheduler.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bounded by `largest`"
            )]
            let size = (bytes.round() as u64).next_multiple_of(LINE_BYTES);
            (SMALLEST..=largest).contains(&size).then_some(size)
        };
        latlab_stats::levels::refine_sizes(&levels::curve(results), PER_OCTAVE)
            .into_iter()
            .filter_map(fresh)
            .map(|size| planned(walk(size, Pages::Base, Order::PageLocal), 3, env))
            .collect()
    }

    fn conclude(&self, header: &Header, results: &[PointResult]) -> Vec<Record> {
        let findings = levels::findings(header, results);
        vec![SPEC.derived(findings)]
    }
}

/// Largest working set: two arenas of it are held at once.
fn largest(env: &Env) -> u64 {
    let most = if env.settings.profile == Profile::Thorough { LARGEST } else { levels::ram_bytes(env) };
    let fits = (env.memory_bytes / 2).checked_ilog2().map_or(0, |bits| 1 << bits);
    most.min(fits)
}

fn octaves(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |size| Some(size * 2)).take_while(|size| *size <= to).collect()
}

/// Two sizes an octave, one beyond [`FINE_UP_TO`]; the quick profile leaves out what lies inside the smallest first-level
/// cache and takes one an octave from 16 MiB on.
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

/// Node counts of the paired chains: two an octave, so that 64, 96, 1,536 and 2,048 (common TLB sizes) are met; quick: one.
/// No TLB reaches beyond 16,384 pages; what lies behind is the page tables falling out of the caches.
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

fn walk(size: u64, pages: Pages, order: Order) -> Point {
    Point { working_set_bytes: Some(size), pages: Some(pages), order: Some(order), ..Point::default() }
}

fn pair(nodes: u64, pages: Pages, order: Order) -> Point {
    // Both of a pair touch the same number of lines; only the pages differ.
    Point { nodes: Some(nodes), ..walk(nodes * LINE_BYTES, pages, order) }
}

fn layout(order: Option<Order>) -> Layout {
    if order == Some(Order::Spread) { Layout::Pages } else { Layout::Lines }
}

/// A coarse ladder up to memory, and memory with translation missed; in the standard and thorough profile two sizes an octave where caches end.
fn is_headline(point: &Point, env: &Env) -> bool {
    let Some(bytes) = point.working_set_bytes.filter(|_| point.draw.is_none()) else {
        return false;
    };
    let ram = levels::ram_bytes(env).min(largest(env));
    let fine = env.settings.profile != Profile::Quick && FINE_HEADLINE.contains(&bytes);
    match point.order {
        Some(Order::PageLocal) => {
            let quick = env.settings.profile == Profile::Quick;
            let coarse = bytes == ram || !quick || bytes <= COARSE_UP_TO;
            let octave = bytes.is_power_of_two() && (HEADLINE_FROM..=ram).contains(&bytes);
            octave && coarse || fine && bytes % 3 == 0 && (bytes / 3).is_power_of_two()
        }
        Some(Order::Random) => point.pages == Some(Pages::Base) && bytes == ram,
        _ => false,
    }
}

/// What needs memory beyond that of the headline has sessions of its own: walks in random order, and pairs.
fn group(point: &Point, headline: bool) -> u16 {
    match point.order {
        Some(Order::PageLocal) => 0,
        Some(Order::Random) if headline => 0,
        Some(Order::Random) => 1,
        _ => 2,
    }
}

/// What stays near the core is measured before and apart from what does not: walks that wait let the core's frequency drop (4.1
/// to 3.6 GHz on one machine), and it takes longer than a block to come back.
fn planned(point: Point, class: u8, env: &Env) -> Planned {
    let nodes = nodes(&point);
    let [build_s, touch_s, load_s] = node_s(nodes * LINE_BYTES);
    let warm = nodes.min(reported_lines(env)) as f64 * touch_s;
    let build = nodes as f64 * build_s;
    let (first_s, again_s) = if keeps_slot(&point) { (build, 0.0) } else { (0.0, build) };
    let private_bytes = levels::reported(&env.machine, 2).unwrap_or(256 << 10);
    let block_s = whole_periods(&point, private_bytes, env.settings.profile)
        .map_or(2e-3, |(ops, windows)| ops as f64 * f64::from(windows) * load_s);
    let reach = levels::reach(nodes * LINE_BYTES, &env.machine);
    let settling = match (reach, point.order) {
        (Reach::Private, Some(Order::Spread)) => SETTLING_LOADS as f64 * SPREAD_S,
        (Reach::Private, _) => SETTLING_LOADS as f64 * PRIVATE_S,
        _ => 0.0,
    };
    let headline = is_headline(&point, env);
    Planned {
        rank: if headline { Rank::Headline } else { Rank::Curve },
        group: group(&point, headline),
        priority: 3 * class + reach as u8,
        setup_s: again_s + warm + settling,
        first_s,
        block_s,
        reach,
        ..Planned::new(point)
    }
}

/// What a node of a chain of this size takes before the first visit tells, seconds: building it, touching it, and following it beyond the
/// private caches.
fn node_s(bytes: u64) -> [f64; 3] {
    if bytes > CACHED { [40e-9, 60e-9, 110e-9] } else { [10e-9, 10e-9, 15e-9] }
}

fn nodes(point: &Point) -> u64 {
    point.nodes.unwrap_or(point.working_set_bytes.unwrap_or(LINE_BYTES) / LINE_BYTES).max(1)
}

fn keeps_slot(point: &Point) -> bool {
    nodes(point) * LINE_BYTES >= KEPT_FROM
}

/// Lines that a walk must have touched for the caches to be in the state of an endless walk, if they are as large as the
/// CPU says.
fn reported_lines(env: &Env) -> u64 {
    let last = env.machine.caches.iter().map(|cache| cache.size_bytes).max().unwrap_or(LAST_CACHE_UNKNOWN);
    (last + last / 4) / LINE_BYTES
}

/// The same, looked for: the smallest working set (from 16 MiB, doubling) whose random walk is answered by memory, twice. A guest
/// is told of hundreds of MiB that it shares, and touching them all before each block would cost more than the block.
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

/// Gives the largest chains places of their own in an arena: side by side in the words of the same lines, and behind one another.
/// The last slot stays free for all the others.
fn places<'p>(points: impl Iterator<Item = &'p Point>, arena_bytes: u64) -> HashMap<Point, Place> {
    let mut kept: Vec<&Point> = points.filter(|point| keeps_slot(point)).collect();
    kept.sort_by_key(|point| std::cmp::Reverse(nodes(point)));
    let mut used = [0u64; SLOTS - 1];
    let mut places = HashMap::new();
    for point in kept {
        let span = layout(point.order).span(nodes(point));
        let fits = used.iter().position(|used| used + span <= arena_bytes);
        if let Some(slot) = fits {
            places.insert(point.clone(), Place { slot, offset: used[slot] });
            used[slot] += span.next_multiple_of(PAGE_BYTES);
        }
    }
    places
}

/// Loads a window and windows a block for page-local walks that leave the private caches. In each page-local window the first loads miss
/// and the last ones find what adjacent-line prefetching brought in, and the prefetcher switches itself off and on
/// every few windows (both seen as a sawtooth of 150 to 15 ns): a sample must cover whole windows, and several of them.
fn whole_periods(point: &Point, private_bytes: u64, profile: Profile) -> Option<(u64, u32)> {
    let windows = if profile == Profile::Thorough { 16 } else { 8 };
    let local = point.order == Some(Order::PageLocal) && nodes(point) > LOCAL_LINES;
    (local && nodes(point) * LINE_BYTES > private_bytes).then_some((4 * LOCAL_LINES, windows))
}

/// A session on this machine's memory.
struct Walking<'env> {
    env: &'env Env,
    /// Size of the largest private cache: beyond it page-local walks have a period.
    private_bytes: u64,
    /// Lines touched before each block, at most.
    warm_lines: u64,
    arenas: HashMap<Pages, Field>,
    selected: Option<(Pages, Point)>,
    evidence: HashMap<Point, Evidence>,
}

/// One arena and the chains in it.
struct Field {
    chains: HashMap<Point, Chain>,
    places: HashMap<Point, Place>,
    arena: Arena,
    pages_check: Check,
}

#[derive(Default)]
struct Evidence {
    permutation: Option<Check>,
    walks: Option<Check>,
}

impl<'env> Walking<'env> {
    fn open(env: &'env Env, group: &[Planned]) -> Result<Self, ProbeError> {
        let helpers = env.populating_cpus();
        let mut arenas = HashMap::new();
        for pages in [Pages::Base, Pages::Huge] {
            let points =
                || group.iter().map(|planned| &planned.point).filter(|point| point.pages == Some(pages));
            let Some(bytes) = points().map(|point| layout(point.order).span(nodes(point))).max() else {
                continue;
            };
            let arena = Arena::new(bytes, pages, &helpers)?;
            let places = places(points(), arena.bytes());
            let pages_check = arena.pages_check();
            arenas.insert(pages, Field { chains: HashMap::new(), places, arena, pages_check });
        }
        let warm_lines = arenas
            .get(&Pages::Base)
            .map_or_else(|| reported_lines(env), |field: &Field| effective_lines(env, &field.arena));
        let private_bytes = levels::reported(&env.machine, 2).unwrap_or(256 << 10);
        Ok(Self { env, private_bytes, warm_lines, arenas, selected: None, evidence: HashMap::new() })
    }

    fn chain(&mut self) -> Option<&mut Chain> {
        let (pages, point) = self.selected.as_ref()?;
        self.arenas.get_mut(pages)?.chains.get_mut(point)
    }
}

impl Field {
    /// Builds the point's chain: in its own slot, or in the last one, which all others share.
    fn build(&mut self, point: &Point, seed: u64) -> Result<&mut Chain, ProbeError> {
        let nodes = nodes(point);
        let layout = layout(point.order);
        let span = layout.span(nodes);
        if span > self.arena.bytes() {
            return Err(ProbeError::Other(format!("{span} bytes do not fit the arena")));
        }
        let place = self.places.get(point).copied().unwrap_or(Place { slot: SLOTS - 1, offset: 0 });
        if place.slot == SLOTS - 1 {
            let places = &self.places;
            self.chains.retain(|other, _| places.contains_key(other));
        }
        let base =
            self.arena.base().wrapping_add(usize::try_from(place.offset).unwrap_or(0) + place.slot * 8);
        let cycle = match point.order {
            Some(Order::PageLocal) => Cycle::windowed(nodes, LOCAL_LINES, seed),
            _ => Cycle::random(nodes, seed),
        };
        // SAFETY: `offset + span` is at most the arena's size; the slot's words of these lines belong to this chain alone;
        // the chain is dropped with the field, before the arena.
        let chain = unsafe { Chain::build(base, layout, cycle) };
        Ok(self.chains.entry(point.clone()).insert_entry(chain).into_mut())
    }
}

impl AnySession for Walking<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let pages = point.pages.unwrap_or(Pages::Base);
        let seed = self.env.seed(nodes(point));
        let warm = self.warm_lines;
        let field = self
            .arenas
            .get_mut(&pages)
            .ok_or_else(|| ProbeError::Other("no memory was taken for this page size".to_owned()))?;
        let known = field.places.contains_key(point) && field.chains.contains_key(point);
        if !known {
            let chain = field.build(point, seed)?;
            let evidence = self.evidence.entry(point.clone()).or_default();
            if evidence.permutation.is_none() {
                evidence.permutation = Some(chain.permutation_check());
            }
        }
        self.selected = Some((pages, point.clone()));
        let reach = levels::reach(nodes(point) * LINE_BYTES, &self.env.machine);
        if let Some(chain) = self.chain() {
            chain.warm(warm);
            if reach == Reach::Private {
                std::hint::black_box(chain.run(SETTLING_LOADS));
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let whole_periods = self
            .selected
            .as_ref()
            .and_then(|(_, point)| whole_periods(point, self.private_bytes, self.env.settings.profile));
        let Some(chain) = self.chain() else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        if let Some((ops, windows)) = whole_periods {
            block.set_window_ops(ops);
            block.set_windows(windows);
        }
        block.batches(chain);
        chain.verify_position();
        let check = chain.walk_check();
        if let Some((_, point)) = &self.selected {
            let evidence = self.evidence.entry(point.clone()).or_default();
            // A chain that is built anew at each visit counts its walks anew; one wrong end is remembered.
            if evidence.walks.as_ref().is_none_or(|walks| walks.ok) {
                evidence.walks = Some(check);
            }
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let mut proof = Proof {
            engine: Some(format!("{} loads in assembly", std::env::consts::ARCH)),
            ..Proof::default()
        };
        if let Some(evidence) = self.evidence.get(point) {
            proof.checks.extend(evidence.permutation.clone());
            proof.checks.extend(evidence.walks.clone());
        }
        if let Some(field) = point.pages.and_then(|pages| self.arenas.get(&pages)) {
            // The page size is the point: the figure of other pages under its name would be a wrong one.
            proof.checks.push(field.pages_check.clone());
        }
        proof
    }
}

/// A session on a planted hierarchy.
struct Planted<'env> {
    memory: &'env SimulatedMemory,
    lines: u64,
    pages: u64,
    huge: bool,
}

impl Batch for Planted<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let clock: &SimulatedClock = &self.memory.clock;
        clock.advance_ns(ops as f64 * self.memory.latency_ns(self.lines, self.pages, self.huge));
        ops
    }
}

impl AnySession for Planted<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.lines = nodes(point);
        self.huge = point.pages == Some(Pages::Huge);
        let spanned = layout(point.order).span(self.lines).div_ceil(PAGE_BYTES);
        self.pages = if point.order == Some(Order::PageLocal) { spanned.min(64) } else { spanned };
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        block.batches(self);
        Ok(())
    }

    fn proof(&mut self, _point: &Point) -> Proof {
        Proof { engine: Some("simulated".to_owned()), ..Proof::default() }
    }
}

#[cfg(test)]
mod tests;
