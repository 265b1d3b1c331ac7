//! `memory.loaded`: what a load from memory costs while other cores keep the memory busy.
//!
//! ```text
//! Loaders (one pinned thread a CPU, for each block) ─┐
//! Chain (page-local, on the home CPU) ───────────────┴─► latency and load of the same block ──► curves, knees
//! ```

mod curve;
mod loaders;

use latlab_probes_shared::prelude::*;
use latlab_record::Order;

use crate::levels::{self, power_of_two};
use crate::no_memory;
use curve::Curve;
use latlab_probes_shared::walk::{Arena, Chain, Cycle, LINE_BYTES, Layout, PAGE_BYTES, SPARSE_BYTES};
use loaders::{Loaders, Mix, Run, Shown};

/// The probe.
pub struct Loaded;

/// What the chain covers, by profile.
const CHASE_BYTES: [u64; 3] = [128 << 20, 256 << 20, 256 << 20];
/// What each load thread reads, by profile; what it writes is half of that on top.
const LOAD_BYTES: [u64; 3] = [64 << 20, 128 << 20, 256 << 20];
/// Below this a load would be one on the caches.
const LEAST_LOAD_BYTES: u64 = 2 << 20;
const LEAST_MEMORY: u64 = 32 << 20;
/// More do not saturate the memory of one node any further, and each takes memory and time to set up.
const MOST_LOADERS: usize = 64;
/// Nodes that page-local order mixes: those of 512 pages, which every second-level TLB since 2011 holds.
/// Among 64 pages, as in `memory.load.dependent`, prefetchers remember each page until its next visit, and
/// answer a third to a half of the loads for half a millisecond at a time (70 to 160 ns by turns, on every
/// distance of nodes); that would hide what the load does. Among 512 it was steady.
const LOCAL_NODES: u64 = 512 * PAGE_BYTES / SPARSE_BYTES;
/// Loads a window: 0.15 ms when idle.
const WINDOW_LOADS: u64 = 1 << 10;
const WINDOWS: u32 = 32;
/// The chain is followed untimed for so long after the load began: frequencies and queues settle (2 to 4 ms
/// seen).
const SETTLING_NS: f64 = 3e6;
/// Loaded latency for the estimate only, seconds.
const LOAD_S: f64 = 150e-9;

/// Most wanted first: both ends of the curve of reading, then its middle.
const DELAYS_QUICK: [u32; 3] = [0, 200, 800];
const DELAYS: [u32; 6] = [0, 200, 800, 100, 400, 3200];
const DELAYS_FINE: [u32; 12] = [0, 200, 800, 100, 400, 3200, 50, 25, 300, 600, 1600, 12_800];

/// The chain, and the load beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    working_set_bytes: u64,
    pages: Pages,
    order: Order,
    /// Distance of the nodes. Conclusions do without it.
    stride_bytes: Option<u64>,
    /// Load threads; the idle point has none.
    threads: u32,
    read_percent: Option<u32>,
    delay_steps: Option<u32>,
}

/// Traffic while the chain was timed, bytes a second.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Of all load threads together.
    load_bytes_per_s: Estimate,
    #[serde(default)]
    per_thread_bytes_per_s: Vec<Option<f64>>,
    chase_bytes_per_s: Option<f64>,
    /// Of the windows' means; from the samples, when there are enough of them.
    p99_ns: Option<f64>,
}

/// What follows from the points.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    curves: Vec<Curve>,
}

impl Probe for Loaded {
    type Point = Place;
    type Evidence = Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Chasing<'env>;

    const SPEC: Spec = Spec {
        id: "memory.loaded",
        tier: Tier::Memory,
        title: "latency under load",
        question: "How much longer does an access to memory take while other cores use the memory too?",
        method: "One core follows a chain of pointers while every other allowed CPU of its NUMA node moves \
            data: the chain has a node on every fourth line and goes through those of 512 pages (4 KiB \
            each) in random order, then through those of the next 512, so translations stay in the \
            second-level TLB and cost next to nothing. \
Nodes on every line of 64 pages, as in memory.load.dependent, would let prefetchers answer up to half of \
the loads, half a millisecond on and half a millisecond off; that would hide the effect of the load. The \
idle latency here is therefore RAM's alone, above the page-local figure there. \
The other threads are pinned, one a CPU, and each passes over memory of its own, larger than its share of \
the last-level cache, with the loops of memory.bandwidth at the CPU's full width. \
They work in steps of 4 KiB and wait between two steps for a number of delay steps (a chain of \
multiplications in registers, about a nanosecond each), so the load ranges from none to the most that these \
cores can request, without long bursts.

A mix is a fixed pattern of reading and writing steps. A line that is written with ordinary stores is read \
first and written back later, so writing alone is traffic of 50 % reads, two reading steps and one writing \
step are 75 %. \
CPUs that notice full lines being overwritten may skip the read; the share of reads is then smaller than \
its name. Loads are given as traffic between caches and memory: 64 bytes a line read, 128 a line written.

New threads are started for each block and settle for three milliseconds while the chain is followed \
untimed; then their counters and the time are read, the chain is timed, counters and time are read again, \
and they end. \
So the load is counted during the same time as the latency. A thread that waited for its CPU for more than \
a tenth of its time, or made no step, marks the block as disturbed; it is repeated. The idle point, without \
any load thread, is taken between the others like any point, and shows whether the machine drifted. \
A value is the mean of a window of 1,024 loads (0.15 ms when idle). The p99 is that of such means: it shows \
how steady the latency is under load, not the slowest single load.

The knee of a curve is the load at which the latency crosses 1.5 times the idle latency and stays above, \
interpolated between the two points around it. Below it an access waits mostly for the memory itself, above \
it mostly for others; 1.5 times is far beyond the variation of repeated idle points. \
A curve that does not reach it has no knee: these cores cannot saturate this memory. Where the idle point \
or points of the curve were disturbed no knee is given either. The saturated end is the point without delay.

Proof: every pointer is checked once, and each block must end at the line where its length puts it. Each \
reading step's checksum is compared with that of the known contents; before each block the words that will \
be written next are overwritten with wrong values, and must be right afterwards; and the steps that were \
counted must be those that the position in memory shows.",
        method_version: 1,
        convention: "one 8-byte load a line, every fourth line; load_bytes_per_s is traffic of the other \
            threads: 64 bytes a line read, 128 a line written (read before, written back)",
        needs: &["two CPUs", "64 MiB of memory"],
        touches: &[
            "memory: up to 256 MiB, and up to 384 MiB for each other CPU, at most a quarter of what may be \
                used",
            "memory bandwidth of all allowed CPUs together",
        ],
        saturates: true,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Place> {
        let loaders = load_cpus(env).len();
        if loaders == 0 {
            return Plan::no(
                "needs two CPUs of one NUMA node: one to measure on and one to load the memory; only one \
                    may be used here",
            );
        }
        let (sizes, wanted) = (Sizes::of(env), env.settings.profile.of(LOAD_BYTES));
        let [least, each] = [LEAST_MEMORY, LEAST_LOAD_BYTES].map(binary_size);
        let needed = format!("{least} of memory and {each} for each of {loaders} load threads");
        let is_enough = env.memory_bytes >= LEAST_MEMORY && sizes.load >= LEAST_LOAD_BYTES;
        if let Some(reason) = no_memory(env, is_enough, &needed) {
            return Plan::no(reason);
        }
        let plan = Plan::of(points(env, sizes))
            .memory(sizes.chase + sizes.load * 3 / 2 * loaders as u64)
            .cpus(u32::try_from(loaders + 1).unwrap_or(u32::MAX));
        if sizes.load < wanted {
            return plan.degraded(format!(
                "each load thread has {} instead of {} (a quarter of the memory that may be used): part of \
                    the load may stay in the last-level cache",
                binary_size(sizes.load),
                binary_size(wanted)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Place]) -> Result<Chasing<'env>> {
        Chasing::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let curves = curve::curves(figures);
        (!curves.is_empty()).then_some(Findings { curves })
    }
}

fn points(env: &Env, sizes: Sizes) -> Vec<Planned<Place>> {
    let most = u32::try_from(load_cpus(env).len()).unwrap_or(1);
    let idle = Place {
        working_set_bytes: sizes.chase,
        pages: Pages::Base,
        order: Order::PageLocal,
        stride_bytes: Some(SPARSE_BYTES),
        threads: 0,
        read_percent: None,
        delay_steps: None,
    };
    let mut points = vec![Planned { rank: env.headline_but_quick(Rank::Curve), ..planned(idle, 0) }];
    let mut add = |threads: u32, percent: u32, delays: &[u32], priority: u8| {
        for delay in delays {
            let point = Place { threads, read_percent: Some(percent), delay_steps: Some(*delay), ..idle };
            // Without a load, and beside the heaviest: how much slower, before how it becomes so.
            let heaviest = threads == most && percent == 100 && *delay == 0;
            let rank = rank(env, heaviest, Rank::Curve);
            if !points.iter().any(|known| known.point == point) {
                points.push(Planned { rank, ..planned(point, priority) });
            }
        }
    };
    match env.settings.profile {
        Profile::Quick => {
            add(most, 100, &DELAYS_QUICK, 0);
            add(most, 50, &DELAYS_QUICK[..1], 1);
        }
        Profile::Standard => {
            add(most, 100, &DELAYS, 0);
            add(most, 50, &DELAYS[..3], 1);
            add(most, 75, &DELAYS[..3], 1);
        }
        Profile::Thorough => {
            add(most, 100, &DELAYS_FINE, 0);
            add(most, 75, &DELAYS_FINE, 1);
            add(most, 50, &DELAYS_FINE, 1);
            add(1, 100, &DELAYS, 2);
        }
    }
    points
}

/// CPUs for load threads: of the home CPU's node, because memory lies near the thread that touches it first;
/// no more than the quota lets run at once.
fn load_cpus(env: &Env) -> Vec<u32> {
    let node = env
        .machine
        .numa
        .iter()
        .find(|node| node.cpus.contains(&env.home_cpu))
        .filter(|_| env.machine.numa.len() > 1);
    let most = MOST_LOADERS.min(levels::cpus_at_once(&env.machine) - 1);
    other_cpus(env).filter(|cpu| node.is_none_or(|node| node.cpus.contains(cpu))).take(most).collect()
}

/// What is held.
#[derive(Clone, Copy)]
struct Sizes {
    chase: u64,
    /// Of each load thread, to be read; half as much is written.
    load: u64,
}

impl Sizes {
    fn of(env: &Env) -> Self {
        let profile = env.settings.profile;
        let threads = load_cpus(env).len().max(1) as u64;
        let chase = power_of_two(env.memory_bytes / 4).min(profile.of(CHASE_BYTES));
        let each = (env.memory_bytes - chase) / threads * 2 / 3;
        // Whole turns of source and of destination.
        let load = (each / (8 * PAGE_BYTES) * (8 * PAGE_BYTES)).min(profile.of(LOAD_BYTES));
        Self { chase, load }
    }
}

fn planned(point: Place, priority: u8) -> Planned<Place> {
    Planned {
        priority,
        setup_s: 1e-4,
        block_s: SETTLING_NS * 1e-9 + f64::from(WINDOWS + 1) * WINDOW_LOADS as f64 * LOAD_S,
        ..Planned::new(point)
    }
}

/// What the load threads of a point do; none when it is idle.
fn run_of(point: &Place) -> Result<Option<Run>> {
    if point.threads == 0 {
        return Ok(None);
    }
    let mix = point.read_percent.and_then(Mix::of);
    let run = mix.zip(point.delay_steps).map(|(mix, delay_steps)| Run {
        threads: point.threads as usize,
        mix,
        delay_steps,
    });
    run.map(Some).ok_or_else(|| ProbeError::no_point(&point.to_point()))
}

/// What the blocks of a point have proved.
#[derive(Clone, Default)]
pub struct Evidence {
    walks: Compared,
    load: Shown,
    /// Of each block.
    rates: Vec<Rates>,
}

/// Traffic in one block, bytes a second.
#[derive(Clone)]
struct Rates {
    /// Every load thread kept its CPU and worked.
    whole: bool,
    threads: Vec<f64>,
    chase: f64,
}

/// The chain, and the threads that load the memory.
pub struct Chasing<'env> {
    env: &'env Env,
    // Dropped first: nobody works any more when memory goes.
    loaders: Loaders,
    chain: Chain,
    permutation: Check,
    arena: Arena,
}

impl<'env> Chasing<'env> {
    fn open(env: &'env Env, group: &[Place]) -> Result<Self> {
        let sizes = Sizes::of(env);
        let arena = Arena::new(sizes.chase, Pages::Base, &env.populating_cpus())?;
        let cycle = Cycle::windowed(sizes.chase / SPARSE_BYTES, LOCAL_NODES, env.seed(40));
        // SAFETY: the arena has room for each place of the cycle, and outlives the chain.
        let chain = unsafe { Chain::build(arena.base(), Layout::Sparse, cycle) };
        let permutation = chain.permutation_check();
        // After the chain: filling their memory drives it out of the caches.
        let wanted = group.iter().map(|point| point.threads).max().unwrap_or(0);
        let mut cpus = load_cpus(env);
        cpus.truncate(wanted as usize);
        let loaders = Loaders::new(&cpus, sizes.load, env.seed(41), loaders::PATIENCE * env.patience)?;
        Ok(Self { env, loaders, chain, permutation, arena })
    }

    /// Follows the chain for a while.
    fn settle(&mut self) {
        let clock = &self.env.clock;
        let until = clock.now_ns() + SETTLING_NS;
        while clock.now_ns() < until {
            std::hint::black_box(self.chain.run(WINDOW_LOADS));
        }
    }
}

/// The chain, counting its loads.
struct Counted<'c> {
    chain: &'c mut Chain,
    loads: u64,
}

impl Batch for Counted<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        self.loads += ops;
        self.chain.run(ops)
    }
}

impl Session<Loaded> for Chasing<'_> {
    fn select(&mut self, point: &Place) -> Result<()> {
        let run = run_of(point)?;
        let have = self.loaders.len();
        if run.is_some_and(|run| run.threads > have) {
            return Err(ProbeError::Other(format!(
                "{} needs more than the {have} load threads there are",
                point.to_point().label()
            )));
        }
        Ok(())
    }

    fn block(&mut self, point: &Place, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let run = run_of(point)?;
        if let Some(run) = run {
            self.loaders.start(run)?;
        }
        self.settle();
        let before = self.loaders.counts();
        let begun = self.env.clock.now_ns();
        block.set_window_ops(WINDOW_LOADS);
        block.set_windows(WINDOWS);
        let mut counted = Counted { chain: &mut self.chain, loads: 0 };
        block.batches(&mut counted);
        let loads = counted.loads;
        let took_ns = self.env.clock.now_ns() - begun;
        let after = self.loaders.counts();
        let kept_their_cpus = run.is_none() || self.loaders.stop(&mut evidence.load)?;
        evidence.walks.one(self.chain.verify_position());

        let per_second = |bytes: u64| bytes as f64 * 1e9 / took_ns.max(1.0);
        let threads: Vec<f64> = before
            .iter()
            .zip(&after)
            .take(run.map_or(0, |run| run.threads))
            .map(|(before, after)| per_second(after.traffic_since(before)))
            .collect();
        let whole = kept_their_cpus && threads.iter().all(|rate| *rate > 0.0);
        let rates = Rates { whole, threads, chase: per_second(loads * LINE_BYTES) };
        if !rates.whole {
            block.mark_disturbed();
        }
        evidence.rates.push(rates);
        Ok(())
    }

    fn proof(&mut self, point: &Place, evidence: &Evidence) -> Proof<Details> {
        let walks = evidence.walks.check("walks end where they should", "", "walks");
        let mut checks = vec![self.permutation.clone(), walks];
        if let Ok(Some(run)) = run_of(point) {
            checks.extend(evidence.load_checks(run.mix));
        }
        checks.push(self.arena.pages_check());
        // A load that was not what it should be has no figure either.
        let findings = checks.iter().all(|check| check.ok).then(|| evidence.details());
        let load = match evidence.load.isa {
            "" => String::new(),
            isa => format!(", load: {isa}"),
        };
        let engine = format!("{} loads in assembly{load}", std::env::consts::ARCH);
        Proof { findings, ..Proof::of(checks).by(&engine) }
    }

    fn add_samples(&self, details: Option<Details>, sampled: &Sampled) -> Option<Details> {
        Some(Details { p99_ns: sampled.p99, ..details? })
    }
}

impl Evidence {
    fn whole(&self) -> usize {
        self.rates.iter().filter(|rates| rates.whole).count()
    }

    /// What the load threads have to prove.
    fn load_checks(&self, mix: Mix) -> Vec<Check> {
        let (load, blocks) = (&self.load, self.rates.len());
        let mut checks = vec![
            Check {
                name: "every load thread worked".to_owned(),
                ok: blocks > 0 && load.idle_threads == 0,
                detail: format!(
                    "{} threads made no step; in {} of {blocks} blocks all of them kept their CPU, the \
                        others are marked as disturbed",
                    load.idle_threads,
                    self.whole()
                ),
            },
            Check {
                name: "turns counted are turns made".to_owned(),
                ok: blocks > 0 && load.wrong_counts == 0,
                detail: format!("{} counters differ from the place reached", load.wrong_counts),
            },
        ];
        if mix.reads() {
            let after = "reading turns found the known contents";
            checks.push(load.checksums.check("checksum of the load", "", after));
        }
        if mix.writes() {
            let after = "words looked at afterwards were what is written";
            checks.push(load.words.check("destination of the load", "", after));
        }
        checks
    }

    fn details(&self) -> Details {
        // Of blocks that count, when there are any.
        let whole = self.whole();
        let counted: Vec<&Rates> = self.rates.iter().filter(|rates| rates.whole || whole == 0).collect();
        let threads = counted.first().map_or(0, |rates| rates.threads.len());
        let all = median(counted.iter().map(|rates| rates.threads.iter().fold(0.0, |sum, rate| sum + rate)));
        Details {
            load_bytes_per_s: Estimate::once(all.unwrap_or(0.0)),
            per_thread_bytes_per_s: (0..threads)
                .map(|nth| median(counted.iter().map(|rates| rates.threads[nth])))
                .collect(),
            chase_bytes_per_s: median(counted.iter().map(|rates| rates.chase)),
            p99_ns: None,
        }
    }
}

#[cfg(test)]
mod tests;
