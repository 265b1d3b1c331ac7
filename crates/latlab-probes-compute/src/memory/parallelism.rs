//! `memory.parallelism`: how many misses one core has under way at once.

use std::collections::BTreeSet;

use latlab_probes_shared::prelude::*;
use latlab_record::Order;

use crate::{levels, no_memory};
use latlab_probes_shared::walk::{Arena, Chain, Cycle, LINE_BYTES, Layout, link};

/// The probe.
pub struct Parallelism;

/// Largest number of chains: more than the misses that one core's first-level cache tracks (10 to 32 on CPUs
/// of 2010 to 2024; prefetch and second-level queues end at 48), as far as a loop can still be told from its
/// bookkeeping.
const MOST: usize = 32;
/// Working set in memory, by profile: beyond what one core's share of any last-level cache holds.
const LARGEST: [u64; 3] = [128 << 20, 256 << 20, 1 << 30];
const LEAST_MEMORY: u64 = 8 << 20;
/// Long against one miss, with which a window begins and ends: 100 to 200 ns.
const WINDOW_NS: f64 = 60_000.0;
const WINDOWS: u32 = 16;
/// Time for the core's frequency to come to what the work sustains (2 to 4 ms seen).
const SETTLING_NS: f64 = 3e6;
/// Accesses between two clock reads while settling.
const SETTLING_OPS: u64 = 1 << 12;
/// Touched before the first visit to a set, at most: more is not left by a walk in the share of the
/// last-level cache that one core has, and what building the ring left there must go.
const WARM_FIRST_BYTES: u64 = 32 << 20;
/// Touched before later visits to a set that no cache holds: private caches hold no more, and in the shared
/// one there is nothing of what comes next.
const WARM_BYTES: u64 = 4 << 20;
/// Estimate before the first visit tells: touching one line in memory, seconds.
const TOUCH_S: f64 = 40e-9;
/// Times that differ by less are the same: the smallest number of chains among them is reported.
const AS_GOOD: f64 = 1.05;

/// In the order in which they are given up last.
const CHAINS_QUICK: [u32; 4] = [1, 16, 8, 32];
const CHAINS_FEW: [u32; 6] = [1, 16, 8, 32, 4, 2];
const CHAINS_MANY: [u32; 12] = [1, 16, 8, 32, 4, 2, 12, 24, 10, 20, 6, 3];

/// A working set, and how many chains lead through it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    working_set_bytes: u64,
    pages: Pages,
    order: Order,
    chains: u32,
}

impl Place {
    fn new(working_set_bytes: u64, pages: Pages, chains: u32) -> Self {
        Self { working_set_bytes, pages, order: Order::Random, chains }
    }
}

/// What overlaps.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    sets: Vec<Set>,
}

/// A working set in pages of one size, where one chain alone was measured.
#[derive(Serialize, JsonSchema)]
struct Set {
    working_set_bytes: u64,
    pages: Pages,
    /// Time for an access of one chain alone.
    single_ns: f64,
    /// The lowest time for an access.
    best_ns: f64,
    /// The smallest number of chains whose time is as good.
    best_chains: u32,
    /// One chain's time over the lowest.
    misses_overlapped: Estimate,
}

impl Probe for Parallelism {
    type Point = Place;
    /// Ends of chains after blocks.
    type Evidence = Compared;
    type Details = Nothing;
    type Findings = Findings;
    type Session<'env> = Overlapping<'env>;

    const SPEC: Spec = Spec {
        id: "memory.parallelism",
        tier: Tier::Memory,
        title: "misses that overlap",
        question: "How many concurrent memory accesses can one core have, and what does each cost then?",
        method: "Up to 32 chains of pointers are followed side by side by one core: each round takes one \
            step in every chain. Within a chain a load waits for the one before it; \
between chains nothing waits, so the time for an access falls with the number of chains until the core, its \
queues of outstanding misses or the memory cannot hold more. \
One chain's time over the best time is the number of misses that overlap.

All lines of the working set lie on one ring in random order (a keyed bijection, no shuffle). For N chains \
the ring is cut into N arcs of equal length, each closed to a cycle of its own, \
so any number of chains together covers the same lines in the same order, and only the number of concurrent \
requests differs. Addresses come out of memory: no prefetcher can follow, and computing them costs nothing.

The loop for each number of chains is compiled for that number; the pointers are in registers as far as the \
CPU has them (about a dozen on x86-64, two dozen on aarch64), further ones on the stack, which is in the \
first-level cache: \
that adds a nanosecond or so to a step which then waits for a miss, and nothing to overlapped misses, but \
it bounds the second-level cache's figure from 16 chains on.

A value is the mean of a window of about 60 µs over all accesses of all chains: filling and draining the \
queues at a window's ends is less than half a percent. Before a visit to a point lines that the walk would \
have visited last are touched \
(the whole set where a cache is to hold it), and every point of a set continues where the last one ended, \
so that no point finds what another one has just loaded. \
In the caches the chains are first followed for three milliseconds, in which the core's frequency settles \
at what such work sustains.

Proof: in memory every line must be pointed to once, and after every block each chain must be at the line \
where the number of its steps puts it. \
Best is the lowest time; best_chains is the smallest number of chains within 5 % of it.",
        method_version: 1,
        convention: "one 8-byte load a line, all chains together; a line of 64 bytes is moved",
        needs: &["8 MiB of memory"],
        touches: &["memory: two arenas of up to 1 GiB (one of 128 MiB in the quick profile), at most a \
            quarter of what may be used"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Place> {
        let needed = format!("{} of memory", binary_size(LEAST_MEMORY));
        if let Some(reason) = no_memory(env, env.memory_bytes >= LEAST_MEMORY, &needed) {
            return Plan::no(reason);
        }
        let (largest, wanted) = (largest(env), LARGEST[0]);
        let quick = env.settings.profile == Profile::Quick;
        let plan = Plan::of(points(env)).memory(largest * if quick { 1 } else { 2 });
        if largest < wanted {
            return plan.degraded(format!(
                "the working set is {} instead of {}, which a last-level cache may hold: a quarter of the \
                    memory that may be used",
                binary_size(largest),
                binary_size(wanted)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Place]) -> Result<Overlapping<'env>> {
        let bytes = group.iter().map(|point| point.working_set_bytes).max().unwrap_or(largest(env));
        let pages = group.first().map_or(Pages::Base, |point| point.pages);
        let mut session = Overlapping { env, bytes, fields: Vec::new(), lanes: None };
        // Whichever point comes first, it is not the one that pays.
        session.ring(pages, bytes)?;
        Ok(session)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let sets = sets(figures);
        (!sets.is_empty()).then_some(Findings { sets })
    }
}

fn points(env: &Env) -> Vec<Planned<Place>> {
    let largest = largest(env);
    let few = env.settings.profile != Profile::Thorough;
    let mut points = Vec::new();
    let mut add = |bytes: u64, pages, chains: &[u32], priority| {
        points.extend(chains.iter().map(|chains| planned(Place::new(bytes, pages, *chains), priority, env)));
    };
    if env.settings.profile == Profile::Quick {
        add(largest, Pages::Base, &CHAINS_QUICK, 0);
        return points;
    }
    let chains: &[u32] = if few { &CHAINS_FEW } else { &CHAINS_MANY };
    add(largest, Pages::Base, chains, 0);
    for bytes in cached(env).into_iter().flatten() {
        add(bytes, Pages::Base, chains, 1);
    }
    add(largest, Pages::Huge, chains, 2);
    if few {
        add(largest, Pages::Base, &CHAINS_MANY[CHAINS_FEW.len()..], 3);
    }
    points
}

/// For each working set and page size: alone, at best, and how many that overlaps. Only where one chain alone
/// was measured.
fn sets(figures: &[Figure<Parallelism>]) -> Vec<Set> {
    let key = |figure: &Figure<Parallelism>| (figure.point.working_set_bytes, figure.point.pages);
    let keys: BTreeSet<(u64, Pages)> = figures.iter().map(key).collect();
    let found: Vec<[&Figure<Parallelism>; 3]> = keys
        .into_iter()
        .filter_map(|own| {
            let mut times: Vec<_> = figures.iter().filter(|figure| key(figure) == own).collect();
            times.sort_by_key(|figure| figure.point.chains);
            let single = times.first().filter(|figure| figure.point.chains == 1)?;
            let best = times.iter().min_by(|a, b| a.result.p50.total_cmp(&b.result.p50))?;
            let enough = times.iter().find(|figure| figure.result.p50 <= best.result.p50 * AS_GOOD)?;
            (times.len() > 1 && best.result.p50 > 0.0).then_some([*single, *best, *enough])
        })
        .collect();
    let pairs: Vec<[&PointResult; 2]> =
        found.iter().map(|[single, best, _]| [&single.result, &best.result]).collect();
    let sets = found.iter().zip(ratios(&pairs));
    sets.map(|([single, best, enough], misses_overlapped)| Set {
        working_set_bytes: single.point.working_set_bytes,
        pages: single.point.pages,
        single_ns: single.result.p50,
        best_ns: best.result.p50,
        best_chains: enough.point.chains,
        misses_overlapped,
    })
    .collect()
}

/// The working set in memory: one arena of each page size is held at once.
fn largest(env: &Env) -> u64 {
    let (nth, arenas) = match env.settings.profile {
        Profile::Quick => (0, 1),
        Profile::Standard => (1, 2),
        Profile::Thorough => (2, 2),
    };
    LARGEST[nth].min(levels::power_of_two(env.memory_bytes / arenas))
}

/// Working sets that the second level surely holds, and that it surely does not hold while the third does;
/// where there is one.
fn cached(env: &Env) -> [Option<u64>; 2] {
    let (second, largest) = (levels::second(&env.machine), largest(env));
    let inside = levels::power_of_two(second / 2).max(1);
    let beyond = levels::power_of_two(second * 4).clamp(4 << 20, 16 << 20);
    let third = levels::reported(&env.machine, 3).is_some_and(|third| third >= 2 * beyond);
    [(inside < largest).then_some(inside), (third && beyond > second && beyond < largest).then_some(beyond)]
}

fn planned(point: Place, priority: u8, env: &Env) -> Planned<Place> {
    let bytes = point.working_set_bytes;
    let scope = levels::cache_scope(bytes, &env.machine);
    let settling = if scope == CacheScope::Shared { 0.0 } else { SETTLING_NS * 1e-9 };
    Planned {
        rank: Rank::Curve,
        // Another arena; and what caches hold needs none that is large.
        group: match (point.pages, bytes == largest(env)) {
            (Pages::Huge, _) => 2,
            (_, true) => 0,
            _ => 1,
        },
        priority,
        setup_s: settling + (bytes.min(WARM_BYTES) / LINE_BYTES) as f64 * TOUCH_S,
        block_s: f64::from(WINDOWS + 1) * WINDOW_NS * 1e-9,
        cache_scope: scope,
        ..Planned::new(point)
    }
}

/// Takes so many steps in each of the first chains.
///
/// Safety: each of them must stand on a node of a cycle in which each address holds the next one.
type Walk = unsafe fn(&mut [*const u8; MOST], u64);

/// One loop for each number of chains; the array is a bundle of registers to the compiler, because every
/// index is a constant.
///
/// Safety: as [`Walk`].
unsafe fn walk<const N: usize>(at: &mut [*const u8; MOST], steps: u64) {
    let mut own = [std::ptr::null(); N];
    own.copy_from_slice(&at[..N]);
    for _ in 0..steps {
        for node in &mut own {
            // SAFETY: the caller promises that every address in the cycle is readable. Volatile: each load
            // stays, and in this order.
            *node = unsafe { link(*node).read_volatile() };
        }
    }
    at[..N].copy_from_slice(&own);
}

/// The loop for this number of chains.
fn walk_of(chains: usize) -> Option<Walk> {
    macro_rules! walks {
        ($($chains:literal)*) => {
            match chains {
                $($chains => Some(walk::<$chains> as Walk),)*
                _ => None,
            }
        };
    }
    walks!(1 2 3 4 6 8 10 12 16 20 24 32)
}

/// All lines of a working set in random order, cut into arcs. It refers into an arena that its owner keeps.
struct Ring {
    base: *mut u8,
    cycle: Cycle,
    /// Arcs that the pointers in memory form.
    arcs: u64,
    permutation: Check,
    /// Steps that each chain has gone so far: the next point of this set goes on there.
    gone: u64,
}

impl Ring {
    /// # Safety
    /// From `base` on, a line for each place of the cycle must be ours, aligned to a line, and outlive the
    /// ring; the words that it uses belong to no other.
    unsafe fn build(base: *mut u8, cycle: Cycle) -> Self {
        // SAFETY: as the caller promises.
        let whole = unsafe { Chain::build(base, Layout::Lines, cycle) };
        Self { base, cycle, arcs: 1, permutation: whole.permutation_check(), gone: 0 }
    }

    /// First step of an arc when there are `arcs`.
    fn first(&self, nth: u64, arcs: u64) -> u64 {
        nth * self.cycle.places() / arcs
    }

    /// Of a step below the cycle's length.
    #[inline]
    fn address(&self, step: u64) -> *mut u8 {
        let place = self.cycle.place(step);
        self.base.wrapping_add(usize::try_from(place * LINE_BYTES).unwrap_or(0))
    }

    fn point(&mut self, from_step: u64, to_step: u64) {
        let to = self.address(to_step % self.cycle.places()).cast_const();
        // SAFETY: places are below the cycle's length, so the line lies in the span that `build` was
        // promised.
        unsafe { link(self.address(from_step)).cast_mut().write(to) };
    }

    /// Joins the ring again and cuts it into so many arcs, each a cycle.
    fn cut(&mut self, arcs: u64) {
        for nth in 0..self.arcs {
            let end = self.first(nth + 1, self.arcs);
            self.point(end - 1, end);
        }
        for nth in 0..arcs {
            self.point(self.first(nth + 1, arcs) - 1, self.first(nth, arcs));
        }
        self.arcs = arcs;
    }
}

/// Where one chain stands.
#[derive(Clone, Copy)]
struct Lane {
    first: u64,
    len: u64,
    /// Within its arc.
    step: u64,
}

/// The chains of one point.
struct Lanes {
    walk: Walk,
    at: [*const u8; MOST],
    arcs: Vec<Lane>,
    steps: u64,
}

impl Lanes {
    /// On a ring that is cut for them, where the set's last point ended.
    fn on(ring: &Ring, chains: usize) -> Option<Self> {
        let walk = walk_of(chains)?;
        let arcs = chains as u64;
        let lanes: Vec<Lane> = (0..arcs)
            .map(|nth| {
                let first = ring.first(nth, arcs);
                let len = ring.first(nth + 1, arcs) - first;
                Lane { first, len, step: ring.gone % len.max(1) }
            })
            .collect();
        if ring.arcs != arcs || lanes.iter().any(|lane| lane.len == 0) {
            return None;
        }
        let mut at = [std::ptr::null(); MOST];
        for (at, lane) in at.iter_mut().zip(&lanes) {
            *at = ring.address(lane.first + lane.step).cast_const();
        }
        Some(Self { walk, at, arcs: lanes, steps: 0 })
    }

    /// Touches the `lines` that this walk would have met last; each chain's in its order.
    fn warm(&self, ring: &Ring, lines: u64) {
        // Chain after chain, without a division a line: touching them in turns took six times as long.
        for lane in &self.arcs {
            let each = (lines / self.arcs.len() as u64).min(lane.len);
            let mut step = lane.step + lane.len - each;
            for _ in 0..each {
                if step >= lane.len {
                    step -= lane.len;
                }
                // SAFETY: a node of the ring.
                unsafe { link(ring.address(lane.first + step)).read_volatile() };
                step += 1;
            }
        }
    }

    /// How many chains do not stand where the number of their steps puts them; those are put there.
    fn misplaced(&mut self, ring: &Ring) -> u64 {
        let mut wrong = 0;
        for (at, lane) in self.at.iter_mut().zip(&self.arcs) {
            let expected = ring.address(lane.first + lane.step).cast_const();
            if *at != expected {
                wrong += 1;
                *at = expected;
            }
        }
        wrong
    }
}

impl Batch for Lanes {
    /// One operation is one access: the first chains take one step more when the number of chains does not
    /// divide it.
    fn run(&mut self, ops: u64) -> u64 {
        let chains = self.arcs.len() as u64;
        let (steps, rest) = (ops / chains, ops % chains);
        // SAFETY: every chain stands on a node of its arc, which `Ring::cut` closed to a cycle.
        unsafe { (self.walk)(&mut self.at, steps) };
        let mut folded = 0u64;
        for (nth, (at, lane)) in self.at.iter_mut().zip(&mut self.arcs).enumerate() {
            let more = u64::from((nth as u64) < rest);
            if more == 1 {
                // SAFETY: as above.
                *at = unsafe { link(*at).read_volatile() };
            }
            lane.step = (lane.step + steps + more) % lane.len;
            folded ^= at.addr() as u64;
        }
        self.steps += steps;
        folded
    }
}

/// One arena and the rings in it: each uses another word of the lines.
struct Field {
    rings: Vec<(u64, Ring)>,
    arena: Arena,
    pages_check: Check,
}

/// The arenas, and the chains of the point that was selected last.
pub struct Overlapping<'env> {
    env: &'env Env,
    /// Of the largest working set of this session.
    bytes: u64,
    fields: Vec<(Pages, Field)>,
    lanes: Option<Lanes>,
}

impl Overlapping<'_> {
    /// The ring of this set, made when it is first needed.
    fn ring(&mut self, pages: Pages, bytes: u64) -> Result<&mut Ring> {
        let env = self.env;
        let field = kept(&mut self.fields, pages, || {
            let arena = Arena::new(self.bytes, pages, &env.populating_cpus())?;
            Ok(Field { rings: Vec::new(), pages_check: arena.pages_check(), arena })
        })?;
        let (slot, arena) = (field.rings.len() * size_of::<usize>(), &field.arena);
        kept(&mut field.rings, bytes, || {
            if bytes > arena.bytes() || slot as u64 >= LINE_BYTES {
                return Err(ProbeError::Other(format!("{bytes} bytes do not fit the arena")));
            }
            let cycle = Cycle::random(bytes / LINE_BYTES, env.seed(bytes));
            // SAFETY: the arena has the bytes, the word of the lines is no other ring's, and rings are
            // dropped with the field.
            Ok(unsafe { Ring::build(arena.base().wrapping_add(slot), cycle) })
        })
    }
}

impl Session<Parallelism> for Overlapping<'_> {
    fn select(&mut self, point: &Place) -> Result<()> {
        let (bytes, chains) = (point.working_set_bytes, point.chains as usize);
        self.lanes = None;
        let clock = &self.env.clock;
        let scope = levels::cache_scope(bytes, &self.env.machine);
        let in_caches = cached(self.env).contains(&Some(bytes));
        let ring = self.ring(point.pages, bytes)?;
        ring.cut(chains as u64);
        let mut lanes = Lanes::on(ring, chains)
            .ok_or_else(|| ProbeError::Other(format!("{chains} chains do not fit {bytes} bytes")))?;
        let warm_bytes = match (ring.gone, in_caches) {
            (_, true) => bytes,
            (0, false) => WARM_FIRST_BYTES.min(bytes),
            (_, false) => WARM_BYTES.min(bytes),
        };
        lanes.warm(ring, warm_bytes / LINE_BYTES);
        if scope != CacheScope::Shared || in_caches {
            let until = clock.now_ns() + SETTLING_NS;
            while clock.now_ns() < until {
                std::hint::black_box(lanes.run(SETTLING_OPS));
            }
        }
        self.lanes = Some(lanes);
        Ok(())
    }

    fn block(&mut self, point: &Place, ends: &mut Compared, block: &mut Block) -> Result<()> {
        let Some(mut lanes) = self.lanes.take() else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        let clock = &self.env.clock;
        block.set_windows(WINDOWS);
        block.window_ops(WINDOW_NS, |ops| {
            let begun = clock.now_ns();
            std::hint::black_box(lanes.run(ops));
            clock.now_ns() - begun
        });
        block.batches(&mut lanes);
        let ring = self.ring(point.pages, point.working_set_bytes)?;
        ends.add(lanes.arcs.len() as u64, lanes.misplaced(ring));
        ring.gone += std::mem::take(&mut lanes.steps);
        self.lanes = Some(lanes);
        Ok(())
    }

    fn proof(&mut self, point: &Place, ends: &Compared) -> Proof<Nothing> {
        let field = known(&self.fields, &point.pages);
        let ring = field.and_then(|field| known(&field.rings, &point.working_set_bytes));
        let mut checks: Vec<Check> = ring.iter().map(|ring| ring.permutation.clone()).collect();
        checks.push(ends.check("chains end where they should", "", "ends of chains after a block"));
        checks.extend(field.map(|field| field.pages_check.clone()));
        Proof::of(checks).by(&format!("{} loads, {} chains a loop", std::env::consts::ARCH, point.chains))
    }
}

#[cfg(test)]
mod tests {
    use latlab_harness::{AnyProbe as _, Erased, PointFields as _};
    use latlab_probes_testing as testing;

    use super::*;

    fn with_ring(lines: u64, test: impl FnOnce(&mut Ring)) {
        let arena = Arena::new(lines * LINE_BYTES, Pages::Base, &[]).expect("a small arena");
        // SAFETY: the arena has the lines and outlives the ring.
        let mut ring = unsafe { Ring::build(arena.base(), Cycle::random(lines, 5)) };
        test(&mut ring);
    }

    fn every_number_of_chains() -> impl Iterator<Item = usize> {
        (1..=MOST).filter(|chains| walk_of(*chains).is_some())
    }

    #[test]
    fn every_planned_number_of_chains_has_its_loop() {
        for chains in CHAINS_QUICK.iter().chain(&CHAINS_FEW).chain(&CHAINS_MANY) {
            assert!(walk_of(*chains as usize).is_some(), "{chains}");
        }
    }

    #[test]
    fn chains_of_any_number_end_where_their_length_puts_them() {
        with_ring(1_000, |ring| {
            for chains in every_number_of_chains() {
                ring.cut(chains as u64);
                let mut lanes = Lanes::on(ring, chains).expect("they fit");
                lanes.warm(ring, 2_000);
                for ops in [1, 7, 32, 33, 1_000, 54_321] {
                    lanes.run(ops);
                    assert_eq!(lanes.misplaced(ring), 0, "{chains} chains, {ops} accesses");
                }
                ring.gone += lanes.steps;
            }
        });
    }

    #[test]
    fn all_chains_together_meet_every_line_once() {
        with_ring(960, |ring| {
            for chains in every_number_of_chains() {
                ring.cut(chains as u64);
                let mut lanes = Lanes::on(ring, chains).expect("they fit");
                let mut met: Vec<usize> = Vec::new();
                for _ in 0..960 / chains {
                    met.extend(lanes.at[..chains].iter().map(|at| at.addr()));
                    lanes.run(chains as u64);
                }
                let walked = met.len();
                let met: BTreeSet<usize> = met.into_iter().collect();
                assert_eq!((met.len(), walked), (960, 960), "{chains} chains");
            }
        });
    }

    #[test]
    fn a_node_that_a_chain_skips_and_a_chain_that_runs_on_into_its_neighbours_share_are_noticed() {
        for (name, chain, from, to, steps) in [("skips", 2, 10, 12, 20), ("runs on", 1, -1, 0, 300)] {
            with_ring(1_000, |ring| {
                ring.cut(4);
                let mut lanes = Lanes::on(ring, 4).expect("they fit");
                let [from, to] = [from, to].map(|node| ring.first(chain, 4).wrapping_add_signed(node));
                ring.point(from, to);
                lanes.run(4 * steps);
                assert_eq!(lanes.misplaced(ring), 1, "{name}");
            });
        }
    }

    #[test]
    fn a_wrong_end_takes_the_figure_away() {
        let env = testing::env_of_one_cpu(16 << 20);
        let point = Parallelism.plan(&env).points[0].point;
        let mut session = Parallelism.open(&env, &[point]).expect("it fits");
        let mut holds = |ends: Compared| session.proof(&point, &ends).checks.iter().all(|check| check.ok);
        assert!(!holds(Compared::default()), "nothing was done");
        assert!(holds(Compared { all: 2, wrong: 0 }));
        assert!(!holds(Compared { all: 2, wrong: 1 }));
    }

    #[test]
    fn points_fit_one_cpu_and_64_mib_and_prove_their_work() {
        let mut env = testing::env_of_one_cpu(64 << 20);
        env.settings.profile = Profile::Standard;
        let plan = Parallelism.plan(&env);
        assert!(plan.points.iter().any(|planned| planned.point.pages == Pages::Huge));
        let wanted = [1, 8, 32].map(Some);
        let mut points = Erased(Parallelism).points(&env);
        points.retain(|planned| wanted.contains(&planned.point.chains));
        testing::assert_proved(&Erased(Parallelism), &env, &points);
    }

    #[test]
    fn what_overlaps_is_the_time_alone_over_the_best_time() {
        let figure = |(chains, p50)| {
            let point = Place::new(1 << 27, Pages::Base, chains);
            Figure::of(&PointResult::new(point.to_point(), p50)).expect("a point of this probe")
        };
        let found = sets(&[(16, 10.2), (1, 120.0), (32, 10.0), (4, 30.0)].map(figure));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].best_chains, 16, "32 are no better than 16");
        assert!((found[0].misses_overlapped.value - 12.0).abs() < 1e-9);
        assert!(sets(&[(16, 10.0), (32, 9.0)].map(figure)).is_empty(), "without one chain alone");
    }
}
