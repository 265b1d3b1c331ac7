//! `memory.bandwidth`: how many bytes a second can be read, written, copied and combined, over the working
//! set and over threads.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use latlab_harness::{Workers, WorkersError, usable_cpus};
use latlab_machine::Machine;
use latlab_probes_shared::prelude::*;
use latlab_record::{Point, Settings, Work};

use super::with_pages;
use crate::vector::{self, Field, Kernels, Operation, Pass, Shape, Streams, Tally};
use crate::{levels, no_memory};
use best::AtLevel;

mod best;

/// The probe.
pub struct Bandwidth;

/// Largest working set of the thorough profile, all streams together. The others end with the one that stands
/// for memory: populating and filling more takes longer than measuring it.
const LARGEST: u64 = 1 << 30;
/// Two sizes an octave from here on.
const OCTAVES_FROM: u64 = 32 << 10;
/// Sizes below: most first-level caches are 32 or 48 KiB, and the fastest figure is wanted from within.
const SMALL: [u64; 3] = [8 << 10, 16 << 10, 24 << 10];
/// Third-level rate: beyond every private cache, within a fair share of the shared one.
const THIRD_LIKELY: u64 = 8 << 20;
/// Passed over before a block at most; more is not kept by any cache that one core fills in that time.
const WARM_QUICK: u64 = 64 << 20;
const WARM: u64 = 256 << 20;
/// A window of workers is 200 us: half as many in a block as usual.
const WORKER_WINDOWS: u32 = 32;
/// Estimates before the first visit tells: a slow RAM, bytes a second.
const RAM_RATE: f64 = 20e9;

/// What is moved, and by how many.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Moves {
    operation: Operation,
    /// All streams together.
    working_set_bytes: u64,
    threads: u32,
    /// Instruction set of the loops.
    isa: String,
    /// Base pages where it is not said.
    pages: Option<Pages>,
}

/// What is kept beside a rate.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Details {
    /// Of several threads.
    Together {
        /// Median rate of each thread alone, bytes a second.
        per_thread: Vec<f64>,
    },
    /// Of one thread that reads, writes or copies.
    Alone {
        /// By the core's frequency right after each block.
        bytes_per_cycle: Option<Estimate>,
        /// The most that the core can move at this level, where that is documented.
        best_bytes_per_cycle: Option<f64>,
    },
}

/// One thread's rates in each level.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// Reading.
    levels: Vec<AtLevel>,
    /// Writing.
    write: Vec<AtLevel>,
    /// Copying.
    copy: Vec<AtLevel>,
}

impl Probe for Bandwidth {
    type Point = Moves;
    type Evidence = Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Moving<'env>;

    const SPEC: Spec = Spec {
        id: "memory.bandwidth",
        tier: Tier::Memory,
        title: "bandwidth of reading, writing, copying",
        question: "How fast can one thread, and how fast can all threads, read, write and copy memory of \
            each level?",
        method: "Loops in assembly, at the widest vectors that the CPU has (AVX-512, AVX2, SSE2 or NEON, \
            chosen at run time and named in the record), \
pass over the working set in ascending order, repeatedly. A compiler would drop unused loads, replace the \
copy by memcpy \
(which changes to other stores at some size), or use half of the width: the same first-level cache then \
seems half as fast.

A working set of up to 2 MiB is passed over whole, as often as fits a window of about 20 µs (200 µs with \
several threads). A larger one is passed over in slices of about 2 MiB, a window each, \
that continue where the last one ended: the next slice is always the least recently used one, so RAM is \
measured, not the slice. Each window gives one rate; the record has their quantiles, never the best. \
Before each block up to 64 MiB (quick profile) or 256 MiB before that place are passed over untimed, so \
that the caches hold what an endless run would have left.

Rates of one thread are also given in bytes a core cycle (by the frequency right after each block), and \
where the CPU is known, beside the most that its load and store ports or the way from its second-level \
cache can move: best_bytes_per_cycle, from the vendors' documents, which the record names. No such limit is \
known for a server's third-level cache, which has its own clock, nor for memory.

The working set is all streams together: half of it source and half destination for the copy, a third each \
for the triad (a = b + 3 c, doubles). Every figure says how bytes count: \
read and written bytes count once each, as in STREAM; the reading of lines before they are overwritten \
(write-allocate) is real traffic but not counted, and non-temporal stores avoid it. \
Non-temporal stores are complete (fence) at the end of each pass or slice.

With several threads, each is pinned to a CPU and has its own part of the memory; they start every window \
together, and a rate is all bytes of the window over the time from the first start to the last end. \
On machines with several NUMA nodes each thread fills memory of its own, near its CPU, and only the full \
number of threads is measured. Base pages (4 KiB) are used, as most programs have them; the thorough \
profile adds huge pages.

Proof: the source holds words that differ from place to place. Each read window's last pass, and beyond 2 \
MiB every pass, is folded into a checksum that is compared with the one computed from the definition of the \
contents. \
(Folding every load costs up to a third of a first-level cache's rate where loads are 64 bytes wide, so the \
other passes over small sets only load.) Before each block, words throughout the destination of the next \
slice are overwritten; \
afterwards every word there must be what the operation makes of the source; with one thread, at the end one \
more pass is compared word by word, all of it or 64 MiB.",
        method_version: 1,
        unit: Unit::BytesPerS,
        convention: "bytes that the program reads and writes; each record says how they count",
        needs: &["1 MiB of memory"],
        touches: &[
            "memory: 384 MiB (up to 1.5 GiB beside large caches, 3 GiB in the thorough profile), at most a \
                quarter of what may be used",
            "memory bandwidth of all allowed CPUs together; with --gentle one thread within its own caches",
        ],
        // `--gentle` is obeyed by leaving out the points that saturate, not the probe.
        saturates: false,
        operations: Operations::Unwatched,
    };

    fn plan(&self, env: &Env) -> Plan<Moves> {
        let layout = Layout::of(env);
        if let Some(reason) = no_memory(env, layout.largest >= SMALL[2], "1 MiB of memory") {
            return Plan::no(reason);
        }
        let plan = Plan::of(points(env, &layout))
            .memory(field_bytes(layout.largest) * (1 + u64::from(layout.huge) + u64::from(layout.own)))
            .cpus(layout.threads.last().copied().unwrap_or(1));
        if !env.settings.gentle && layout.largest < levels::LEAST_RAM {
            return plan.degraded(format!(
                "working sets end at {}: with their destinations they take a quarter of the memory that may \
                    be used",
                binary_size(layout.largest)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Moves]) -> Result<Moving<'env>> {
        Moving::open(env, vector::available(), group)
    }

    fn left_out(&self, header: &Header) -> Option<(Point, String)> {
        let cpus = usable_cpus(&header.machine, &header.settings).len();
        let why = most_threads(cpus, &header.machine, &header.settings).err()?;
        Some((Point { operation: Some("read".to_owned()), threads: Some(2), ..Point::default() }, why))
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let [levels, write, copy] = [Operation::Read, Operation::Write, Operation::Copy]
            .map(|operation| best::levels(header, figures, operation));
        (!levels.is_empty()).then_some(Findings { levels, write, copy })
    }
}

/// What a reader wants first is first.
fn points(env: &Env, layout: &Layout) -> Vec<Planned<Moves>> {
    let widest = vector::available()[0];
    let sizes = layout.sizes(env);
    let largest = layout.largest;
    let landmarks = layout.landmarks(env);
    let single = |operation, size| point(operation, size, 1, widest, None);
    let mut points: Vec<Planned<Moves>> = Vec::new();
    let mut add = |point: Moves, priority| {
        let known = points.iter().any(|planned| planned.point == point);
        if !known && layout.fits(&point) && has(widest, point.operation) {
            points.push(Planned {
                rank: layout.rank(env, &point),
                // Its arena is another one.
                group: u16::from(point.pages == Some(Pages::Huge)),
                ..planned(point, priority, env)
            });
        }
    };
    for size in landmarks {
        add(single(Operation::Read, size), 0);
    }
    for operation in [Operation::Copy, Operation::Triad] {
        add(single(operation, largest), 0);
    }
    for operation in [Operation::Write, Operation::WriteNt] {
        add(single(operation, largest / 2), 1);
    }
    for threads in layout.threads.iter().rev().copied() {
        let each = landmarks[2] * u64::from(threads);
        add(point(Operation::Read, largest, threads, widest, None), 1);
        add(point(Operation::Copy, largest, threads, widest, None), 1);
        add(point(Operation::WriteNt, largest / 2, threads, widest, None), 1);
        add(point(Operation::Read, each, threads, widest, None), 1);
        add(point(Operation::Copy, each, threads, widest, None), 2);
        add(point(Operation::WriteNt, each, threads, widest, None), 3);
    }
    for operation in Operation::ALL {
        for size in landmarks {
            add(single(operation, size), 2);
        }
    }
    // Curves: reading first, then an octave a step for the others; a quick run has no time for more than one.
    let (octaves, between): (Vec<u64>, Vec<u64>) = sizes.iter().partition(|size| size.is_power_of_two());
    let quick = env.settings.profile == Profile::Quick;
    let others = || Operation::ALL.into_iter().filter(|operation| !quick && *operation != Operation::Read);
    for size in &octaves {
        add(single(Operation::Read, *size), 2);
    }
    for size in between.iter().filter(|_| !quick) {
        add(single(Operation::Read, *size), 2);
    }
    for (sizes, priority) in [(octaves, 3), (between, 4)] {
        for size in sizes {
            for operation in others() {
                add(single(operation, size), priority);
            }
        }
    }
    if layout.huge {
        for operation in Operation::ALL {
            let size = if operation.sources() == 0 { largest / 2 } else { largest };
            add(point(operation, size, 1, widest, Some(Pages::Huge)), 5);
        }
    }
    points
}

/// How many threads may work at once, or why only one.
fn most_threads(cpus: usize, machine: &Machine, settings: &Settings) -> Result<u32, String> {
    let allowed = u32::try_from(cpus).unwrap_or(u32::MAX);
    // A quota of 1.5 CPUs stops two threads for a quarter of the time.
    let quota = u32::try_from(levels::cpus_at_once(machine)).unwrap_or(u32::MAX);
    let why = match (settings.gentle, allowed, quota) {
        (true, ..) => "--gentle: one thread only, within its caches",
        (_, 1, _) => "one CPU is allowed: several threads would only alternate",
        (_, _, 1) => "the CPU quota is less than two CPUs: several threads would only alternate",
        _ => return Ok(allowed.min(quota)),
    };
    Err(why.to_owned())
}

/// What fits here.
#[derive(Debug)]
struct Layout {
    /// Largest working set; a power of two.
    largest: u64,
    /// Reported size of the second-level cache.
    second: u64,
    /// Numbers of threads above one, ascending.
    threads: Vec<u32>,
    /// Whether each thread needs memory of its own, near it.
    own: bool,
    /// Whether a second field of huge pages fits.
    huge: bool,
}

impl Layout {
    fn of(env: &Env) -> Self {
        let settings = &env.settings;
        let second = levels::second(&env.machine);
        let most = most_threads(env.cpus.len(), &env.machine, settings).unwrap_or(1);
        let own = most > 1 && env.machine.numa.len() > 1;
        let threads = if most == 1 {
            Vec::new()
        } else if own {
            vec![most]
        } else {
            let mut counts: Vec<u32> = std::iter::successors(Some(2), |count| Some(count * 2))
                .take_while(|count| *count < most)
                .collect();
            counts.push(most);
            counts
        };
        let wanted = match (settings.gentle, settings.profile) {
            (true, _) => (4 * second).next_power_of_two().min(levels::LEAST_RAM),
            (false, Profile::Thorough) => LARGEST,
            (false, _) => levels::ram_bytes(env),
        };
        let fields = |count: u64| levels::power_of_two(env.memory_bytes / count / 3 * 2);
        let largest = wanted.min(fields(1 + u64::from(own)));
        let huge = settings.profile == Profile::Thorough
            && !settings.gentle
            && fields(2 + u64::from(own)) >= largest;
        Self { largest, second, threads, own, huge }
    }

    /// Ascending.
    fn sizes(&self, env: &Env) -> Vec<u64> {
        let fine_up_to = 4 * self.second;
        let octaves = std::iter::successors(Some(OCTAVES_FROM), |size| Some(size * 2));
        let mut sizes = SMALL.to_vec();
        sizes.extend(
            octaves
                .take_while(|size| *size <= self.largest)
                .flat_map(|size| [size, size / 2 * 3])
                .filter(|size| size.is_power_of_two() || *size <= fine_up_to),
        );
        let most = if env.settings.gentle { fine_up_to } else { self.largest };
        sizes.retain(|size| *size <= most.min(self.largest));
        if sizes.is_empty() {
            sizes.push(self.largest);
        }
        sizes
    }

    /// In memory, and within the first, the second and the third level.
    fn landmarks(&self, env: &Env) -> [u64; 4] {
        let sizes = self.sizes(env);
        let nearest = |wanted: u64| {
            let below = sizes.iter().copied().filter(|size| *size <= wanted);
            below.max().unwrap_or(sizes[0])
        };
        [self.largest, nearest(SMALL[2]), nearest(self.second / 2), nearest(THIRD_LIKELY)]
    }

    /// Reading in each level, every way of moving memory, and all threads reading it; in a quick run reading
    /// memory alone.
    fn rank(&self, env: &Env, point: &Moves) -> Rank {
        let (bytes, operation) = (point.working_set_bytes, point.operation);
        let in_memory = levels::ram_bytes(env).min(self.largest);
        let from_memory = bytes == if operation.sources() == 0 { in_memory / 2 } else { in_memory };
        let read = operation == Operation::Read;
        match (point.threads, point.pages) {
            (1, None) if read && from_memory => Rank::Headline,
            (1, None)
                if from_memory && operation != Operation::Triad
                    || read && self.landmarks(env).contains(&bytes) =>
            {
                env.headline_but_quick(Rank::Curve)
            }
            (1, None) => Rank::Curve,
            (threads, None) if read && self.threads.last() == Some(&threads) && bytes == self.largest => {
                env.headline_but_quick(Rank::Detail)
            }
            _ => Rank::Detail,
        }
    }

    /// Destinations are half as large as sources.
    fn fits(&self, point: &Moves) -> bool {
        let most = if point.operation.sources() == 0 { self.largest / 2 } else { self.largest };
        point.working_set_bytes <= most
    }
}

/// Source and destination of a field for working sets of `largest`.
fn field_bytes(largest: u64) -> u64 {
    largest + largest / 2
}

fn has(kernels: &Kernels, operation: Operation) -> bool {
    operation != Operation::WriteNt || kernels.write_nt.is_some()
}

fn point(operation: Operation, size: u64, threads: u32, kernels: &Kernels, pages: Option<Pages>) -> Moves {
    Moves { operation, working_set_bytes: size, threads, isa: kernels.isa.to_owned(), pages }
}

/// Bytes moved before a block in a private cache, so that the core's frequency comes to what such work
/// sustains (wide vectors have limits of their own): 1 to 4 ms.
const SETTLING_BYTES: u64 = 600_000_000;

fn planned(point: Moves, priority: u8, env: &Env) -> Planned<Moves> {
    let bytes = point.working_set_bytes;
    let several = point.threads > 1;
    let scope = levels::cache_scope(bytes, &env.machine);
    let settles = scope != CacheScope::Shared && !several && point.operation != Operation::WriteNt;
    let setup_s = bytes.min(warm_bytes(env)) as f64 / RAM_RATE
        + if several { 1e-3 } else { 0.0 }
        + if settles { SETTLING_BYTES as f64 / CACHE_RATE } else { 0.0 };
    let block_s = match (several, bytes > LARGEST_CACHED) {
        (true, _) => 10e-3,
        (false, true) => 64.0 * f64::from(2 << 20) / RAM_RATE,
        (false, false) => 2e-3,
    };
    Planned { priority, setup_s, block_s, cache_scope: scope, ..Planned::new(point) }
}

/// For the estimates only.
const LARGEST_CACHED: u64 = 16 << 20;
const CACHE_RATE: f64 = 120e9;

fn warm_bytes(env: &Env) -> u64 {
    if env.settings.profile == Profile::Quick { WARM_QUICK } else { WARM }
}

/// Memory of a worker on a machine with several nodes, made by its thread when it first needs it.
type Own = OnceLock<Result<Arc<Field>, String>>;

/// The memory, and who works on it.
pub struct Moving<'env> {
    env: &'env Env,
    layout: Layout,
    sets: Vec<&'static Kernels>,
    /// Source that the points of this session need, bytes.
    wanted: u64,
    fields: Vec<(Pages, Arc<Field>)>,
    own: Arc<Vec<Own>>,
    /// CPUs in the order in which threads are given one: the home CPU first.
    cpus: Vec<u32>,
    selected: Option<Selected>,
    /// Where the passes of each point go on at the next visit, one a thread.
    tallies: HashMap<Moves, Vec<Arc<Tally>>>,
    /// Blocks so far: each spoils other words.
    blocks: u64,
}

struct Selected {
    point: Moves,
    /// Each thread's part of the work.
    parts: Vec<Part>,
    worker: Worker,
}

enum Worker {
    One(Pass),
    Several(Workers),
}

/// What is needed to look after a thread's work from outside.
#[derive(Clone)]
struct Part {
    streams: Streams,
    tally: Arc<Tally>,
}

/// What the blocks of a point have proved.
#[derive(Default)]
pub struct Evidence {
    /// Words of what was written, or checksums of what was read.
    compared: Compared,
    /// Of the memory: the one that failed, or the first.
    pages: Option<Check>,
}

impl<'env> Moving<'env> {
    fn open(env: &'env Env, sets: Vec<&'static Kernels>, group: &[Moves]) -> Result<Self> {
        let layout = Layout::of(env);
        let wanted = group.iter().map(source_bytes).max();
        let pages = group.iter().find_map(|point| point.pages);
        let cpus = std::iter::once(env.home_cpu).chain(other_cpus(env)).collect();
        let own = (0..layout.threads.last().copied().unwrap_or(0)).map(|_| Own::new()).collect();
        let mut session = Self {
            env,
            wanted: wanted.map_or(layout.largest, |bytes| bytes.min(layout.largest)),
            layout,
            sets,
            fields: Vec::new(),
            own: Arc::new(own),
            cpus,
            selected: None,
            tallies: HashMap::new(),
            blocks: 0,
        };
        session.field(pages.unwrap_or(Pages::Base))?;
        Ok(session)
    }

    /// The common field of this page size, made when it is first needed.
    fn field(&mut self, pages: Pages) -> Result<Arc<Field>> {
        // Pages land near the CPU that touches them first.
        let helpers =
            if self.env.machine.numa.len() > 1 { &[] } else { &self.cpus[1..self.cpus.len().min(4)] };
        let make = || Field::new(self.wanted, pages, helpers, self.env.seed(20)).map(Arc::new);
        kept(&mut self.fields, pages, make).cloned()
    }

    /// Workers, each on a CPU and a part of memory of its own.
    fn start_workers(
        &mut self,
        kernels: &'static Kernels,
        point: &Moves,
        tallies: Vec<Arc<Tally>>,
    ) -> Result<(Vec<Part>, Worker)> {
        let (operation, bytes, threads) = (point.operation, point.working_set_bytes, tallies.len());
        let common = if self.layout.own { None } else { Some(self.field(Pages::Base)?) };
        let (owned, seed) = (Arc::clone(&self.own), self.env.seed(21));
        let own_bytes = (self.wanted / threads as u64).next_multiple_of(4096);
        let part_of = move |member: usize| -> Result<Part, String> {
            let make = || {
                let own = Field::new(own_bytes, Pages::Base, &[], seed ^ member as u64);
                own.map(Arc::new).map_err(|error| error.to_string())
            };
            let (field, nth, parts) = match &common {
                Some(field) => (Arc::clone(field), member as u64, threads as u64),
                None => (owned[member].get_or_init(make).clone()?, 0, 1),
            };
            // Whole pages, of the destination too, so that no two threads have one in common.
            let own = field.bytes() / parts / 8192 * 8192;
            let place = |bytes: u64| usize::try_from(bytes / vector::LINE_BYTES as u64).unwrap_or(usize::MAX);
            let most = if operation.sources() == 0 { own / 2 } else { own };
            let bytes = (bytes / threads as u64).min(most);
            let shape = Shape::new(operation, bytes, place(nth * own), place(nth * own / 2));
            let streams = Streams::new(&field, shape).map_err(|error| error.to_string())?;
            Ok(Part { streams, tally: Arc::clone(&tallies[member]) })
        };
        let part_of = Arc::new(part_of);
        let (theirs, warm) = (Arc::clone(&part_of), warm_bytes(self.env) / threads as u64);
        let workers = Workers::start(&self.env.clock, &self.cpus[..threads], move |member| {
            let Part { streams, tally } = theirs(member)?;
            let mut pass = Pass::new(streams, kernels, tally).map_err(|error| error.to_string())?;
            pass.warm(warm);
            Ok(pass)
        });
        let workers = workers.map_err(|error| workers_error(&error))?;
        // The members have made their memory by now.
        let parts: Result<Vec<Part>, String> = (0..threads).map(|member| part_of(member)).collect();
        Ok((parts.map_err(ProbeError::Other)?, Worker::Several(workers)))
    }

    /// Those who work at a point.
    fn workers(&mut self, point: &Moves) -> Result<Selected> {
        let threads = point.threads as usize;
        let known = self.sets.iter().copied().find(|kernels| point.isa == kernels.isa);
        let kernels = known
            .filter(|_| threads <= self.cpus.len())
            .ok_or_else(|| ProbeError::no_point(&point.to_point()))?;
        let tallies = self
            .tallies
            .entry(point.clone())
            .or_insert_with(|| (0..threads).map(|_| Arc::default()).collect())
            .clone();
        let (parts, worker) = if threads > 1 {
            self.start_workers(kernels, point, tallies)?
        } else {
            let field = self.field(point.pages.unwrap_or(Pages::Base))?;
            let tally = Arc::clone(&tallies[0]);
            let streams = Streams::new(&field, Shape::new(point.operation, point.working_set_bytes, 0, 0))?;
            let pass = Pass::new(streams.clone(), kernels, Arc::clone(&tally))?;
            (vec![Part { streams, tally }], Worker::One(pass))
        };
        Ok(Selected { point: point.clone(), parts, worker })
    }

    /// The point's workers, made where another one's are there. The threads of several workers end before
    /// others begin.
    fn at(&mut self, point: &Moves) -> Result<&mut Selected> {
        let selected = match self.selected.take().filter(|selected| selected.point == *point) {
            Some(selected) => selected,
            None => self.workers(point)?,
        };
        Ok(self.selected.insert(selected))
    }
}

/// What it takes of a field's source: half as much is there to be written to. Each thread has whole pages.
fn source_bytes(point: &Moves) -> u64 {
    let bytes = point.working_set_bytes;
    let streamed = if point.operation.sources() == 0 { 2 * bytes } else { bytes };
    streamed.next_multiple_of(u64::from(point.threads) * 8192)
}

fn workers_error(error: &WorkersError) -> ProbeError {
    ProbeError::Other(error.to_string())
}

impl Session<Bandwidth> for Moving<'_> {
    fn select(&mut self, point: &Moves) -> Result<()> {
        let warm = warm_bytes(self.env);
        let scope = levels::cache_scope(point.working_set_bytes, &self.env.machine);
        // Workers have warmed their own.
        if let Worker::One(pass) = &mut self.at(point)?.worker {
            pass.warm(warm);
            // Non-temporal writes go to memory whatever their working set.
            if scope != CacheScope::Shared && point.operation != Operation::WriteNt {
                let ops = SETTLING_BYTES / pass.shape().bytes_per_op().max(1);
                std::hint::black_box(pass.run(ops));
            }
        }
        Ok(())
    }

    fn block(&mut self, point: &Moves, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        self.blocks += 1;
        let (blocks, writes) = (self.blocks, point.operation.writes());
        let Selected { parts, worker, .. } = self.at(point)?;
        let places: Vec<usize> = parts.iter().map(|part| part.tally.at()).collect();
        for (part, at) in parts.iter().zip(&places).filter(|_| writes) {
            part.streams.spoil(*at, part.streams.shape().slice_lines, blocks);
        }
        let before: Vec<(u64, u64)> = parts.iter().map(|part| part.tally.checksums()).collect();
        match worker {
            Worker::One(pass) => {
                let bytes = pass.shape().bytes_per_op();
                block.rates(pass, bytes);
            }
            Worker::Several(workers) => {
                block.set_windows(WORKER_WINDOWS);
                block
                    .workers(workers, parts[0].streams.shape().bytes_per_op())
                    .map_err(|error| workers_error(&error))?;
            }
        }
        for ((part, at), before) in parts.iter().zip(places).zip(before) {
            let shape = part.streams.shape();
            if writes {
                let wrong = part.streams.wrong_words(at, shape.slice_lines);
                evidence.compared.add(shape.slice_words(), wrong);
            } else {
                let after = part.tally.checksums();
                evidence.compared.add(after.0 - before.0, after.1 - before.1);
            }
        }
        if evidence.pages.is_none() {
            let checks = || parts.iter().flat_map(|part| part.streams.pages_checks());
            evidence.pages = checks().find(|check| !check.ok).or_else(|| checks().next()).cloned();
        }
        Ok(())
    }

    fn proof(&mut self, point: &Moves, evidence: &Evidence) -> Proof<Details> {
        let (operation, blocks) = (point.operation, self.blocks);
        let mut compared = evidence.compared;
        // Others have written to the same destination since this point's last block.
        if operation.writes()
            && point.threads == 1
            && let Ok(Selected { worker: Worker::One(pass), .. }) = self.at(point)
        {
            let (words, wrong) = pass.prove_destination(blocks);
            compared.add(words, wrong);
        }
        let check = if operation.writes() {
            let after = "words looked at afterwards were what the operation makes of its source";
            compared.check("destination", "", after)
        } else {
            compared.check("checksum", "", "checksums of what was read were those of the known contents")
        };
        let proof = Proof {
            work: Work { convention: Some(operation.convention().to_owned()), ..Work::default() },
            findings: best::details(&self.env.machine, point),
            ..Proof::of(vec![check]).by(&point.isa)
        };
        match &evidence.pages {
            Some(pages) => with_pages(proof, pages),
            None => proof,
        }
    }

    fn add_samples(&self, details: Option<Details>, sampled: &Sampled) -> Option<Details> {
        match details {
            Some(Details::Alone { best_bytes_per_cycle, .. }) => {
                let bytes_per_cycle = sampled.bytes_per_cycle.map(Estimate::once);
                Some(Details::Alone { bytes_per_cycle, best_bytes_per_cycle })
            }
            None if !sampled.per_thread.is_empty() => {
                Some(Details::Together { per_thread: sampled.per_thread.clone() })
            }
            details => details,
        }
    }
}

#[cfg(test)]
mod tests;
