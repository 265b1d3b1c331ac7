//! `memory.prefetch`: what the CPU's prefetchers hide by stride, and what a program's own prefetch
//! instructions gain.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "buffers begin on a page, nodes on a line, and offsets are whole words"
)]
#![expect(clippy::inline_always, reason = "the timed loop must hold no call, whatever the profile")]

use latlab_probes_shared::prelude::*;
use latlab_record::{Order, Work};

use super::with_pages;
use crate::{ahead, levels, no_memory};
use latlab_probes_shared::walk::{Arena, Cycle, LINE_BYTES};

mod chase;
mod fill;
mod list;

use chase::{Chase, Course};

/// The probe.
pub struct Prefetch;

/// Most important first.
const STRIDES: [u64; 10] = [64, 4096, 256, 1024, 128, 512, 2048, 8192, 16_384, 65_536];
/// The quick profile has time for these at most.
const QUICK_STRIDES: usize = 4;
/// Beyond every private cache, within a fair share of a shared one, unless the second level is large.
const THIRD_LIKELY: u64 = 8 << 20;
/// Smallest working set of a chase.
const SMALLEST: u64 = 2 << 20;
/// Below this the caches of many machines answer.
const LIKELY_RAM: u64 = 64 << 20;
/// Laps shorter than this would be about their ends, where prefetchers are taken by surprise.
const SHORTEST_LAP: u64 = 64;
/// Cost of touching a line of the third-level set, seconds, before the first visit tells.
const TOUCH_S: f64 = 12e-9;

/// What is done, in how much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    #[serde(flatten)]
    task: Task,
    working_set_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "kebab-case")]
enum Task {
    /// Dependent loads, by strides or in random order.
    Chase { order: Order, stride_bytes: Option<u64> },
    /// A list is walked, with so many nodes asked for ahead.
    ListWalk { distance: u32 },
    /// An array is written, with so many lines asked for ahead.
    Fill { distance: u32 },
}

const RANDOM: Task = Task::Chase { order: Order::Random, stride_bytes: None };

fn strided(stride: u64) -> Task {
    Task::Chase { order: Order::Strided, stride_bytes: Some(stride) }
}

impl Task {
    /// How far ahead the program asks; 0 where it does not.
    fn distance(self) -> u32 {
        match self {
            Self::Chase { .. } => 0,
            Self::ListWalk { distance } | Self::Fill { distance } => distance,
        }
    }

    /// Whether this CPU has the instruction, and the work that distance.
    fn is_offered(self) -> bool {
        match self {
            Self::Chase { .. } | Self::ListWalk { distance: 0 } | Self::Fill { distance: 0 } => true,
            Self::ListWalk { distance } => {
                ahead::READ.is_some() && list::distances().any(|known| known == distance)
            }
            Self::Fill { distance } => ahead::write().is_some() && fill::DISTANCES.contains(&distance),
        }
    }

    /// What prefetches, or loads.
    fn engine(self) -> String {
        let instruction = match self {
            Self::Chase { .. } => return format!("{} loads", std::env::consts::ARCH),
            Self::ListWalk { .. } => ahead::READ,
            Self::Fill { .. } => ahead::write(),
        };
        instruction.filter(|_| self.distance() > 0).unwrap_or("no prefetch instruction").to_owned()
    }
}

/// What the blocks of a point have proved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// Where walks ended.
    ends: Compared,
    /// Of the nodes on the way of each walk of the list.
    sums: Compared,
    /// Walks behind which jump pointers were looked at.
    jumps: Compared,
    /// Lines that were written.
    lines: Compared,
}

/// The pages that were there.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Details {
    pages: Pages,
}

/// What prefetching hides and gains; `null` where it was not measured.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// By the CPU, of loads from memory.
    hardware: Option<Hidden>,
    /// By the CPU, of loads from the third-level cache.
    hardware_third_level: Option<Hidden>,
    /// By the program that walks a list.
    list_walk: Option<Gained>,
    /// By the program that writes an array.
    fill: Option<Gained>,
}

/// What strided order hides of random order's latency.
#[derive(Serialize, JsonSchema)]
struct Hidden {
    working_set_bytes: u64,
    pages: Option<Pages>,
    random_ns: f64,
    strides: Vec<Strided>,
}

#[derive(Serialize, JsonSchema)]
struct Strided {
    stride_bytes: u64,
    /// Time of one load.
    ns: f64,
    /// 1 less strided over random.
    hidden_share: Estimate,
}

/// What asking ahead gains at best.
#[derive(Serialize, JsonSchema)]
struct Gained {
    working_set_bytes: u64,
    without_ns: f64,
    best_ns: Option<f64>,
    /// Nodes or lines ahead.
    best_distance: Option<u32>,
    /// Time without over the best time.
    gain: Option<Estimate>,
}

impl Probe for Prefetch {
    type Point = Place;
    type Evidence = Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = Prefetching;

    const SPEC: Spec = Spec {
        id: "memory.prefetch",
        tier: Tier::Memory,
        title: "prefetching by the CPU and by the program",
        question: "How much of memory's latency does prefetching hide, and how far ahead should a program \
            prefetch?",
        method: "By the CPU: dependent loads, each waiting for the one before, whose addresses lie a fixed \
            stride apart, against the same loads of the same lines in random order. \
No load can begin early, so whatever the strided order saves was fetched before it was requested: \
hidden_share = 1 - strided / random. \
Each line holds its own address; the next place is that address, once loaded, plus the stride (in assembly) \
or the distance to the next line of the random cycle, which is computed while the load is under way. So one \
array serves all orders, \
and a load needs the result of the one before it, as with pointers. A pass with a large stride visits few \
lines; the next pass takes another line within the stride, in random order, until all were visited. \
So no line is visited while a cache may still hold it, nor right after an adjacent line that may have been \
fetched with it.

Huge pages are requested, because random order over small ones pays for a translation at each load and \
strided order hardly does, which is not prefetching. Where they were not obtained the record says so, and \
where a host maps a \
guest's memory in small pages they do not help: hidden_share then includes what is saved on translations, \
which are prefetched too. The second working set is in the third-level cache; its lines are touched before \
each block in the order of the walk. The large one is not \
prepared: each order continues where it ended.

By the program: a list whose nodes (one line each) lie in random order is walked, and a dozen instructions \
are spent on each node. A node also holds the addresses of the nodes 2, 4, 8, 16 and 32 ahead; one of those \
is prefetched \
(prefetcht0, prfm pldl1keep) when the node is visited. Distance 0 has no prefetch; 1 prefetches what is \
about to be loaded. Jump pointers are in the nodes and not in an array beside the list, because a CPU that \
executes out of order would run ahead through an array while a load waits. \
And an array is written from front to back, eight words of 8 bytes a line, with a prefetch for writing \
(prefetchw, prfm pstl1keep) some lines ahead of each line; there the CPU's own prefetchers work too, and \
little may be left to gain. The array has 4 KiB pages, as most programs do.

Proof: walks must end where the number of steps leads; the payloads of the nodes on the way give a sum that \
is computed again from the order; jump pointers are checked; every line that was written must hold what its \
block wrote. A value is the mean of a window of about 20 µs. \
Walks and writing continue where the last block ended, whatever its distance, so all of them visit the \
least recently used lines.",
        method_version: 1,
        convention: "one dependent 8-byte load, one node, or one written line of 64 bytes",
        needs: &["4 MiB of memory"],
        touches: &[
            "memory: up to 1.5 GiB (384 MiB in the standard, 96 MiB in the quick profile), at most a \
                quarter of what may be used",
        ],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Place> {
        let sizes = Sizes::of(env);
        if let Some(reason) = no_memory(env, sizes.chase >= SMALLEST, "4 MiB of memory") {
            return Plan::no(reason);
        }
        let plan = Plan::of(points(env, sizes)).memory(sizes.chase + sizes.fill);
        if sizes.chase < LIKELY_RAM {
            return plan.degraded(format!(
                "working sets end at {}, within the caches of many machines: a quarter of the memory that \
                    may be used is {}",
                binary_size(sizes.chase),
                binary_size(env.memory_bytes)
            ));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Place]) -> Result<Prefetching> {
        Prefetching::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        // The list lies in the lines of the larger chase, and the smaller one is far smaller than what is
        // written.
        let largest = figures.iter().map(|figure| figure.point.working_set_bytes).max()?;
        let chased = figures
            .iter()
            .filter(|figure| matches!(figure.point.task, Task::Chase { .. }))
            .map(|figure| figure.point.working_set_bytes);
        let third = chased.filter(|size| *size < largest).max();
        let findings = Findings {
            hardware: hidden(figures, largest),
            hardware_third_level: third.and_then(|third| hidden(figures, third)),
            list_walk: gained(figures, |distance| Task::ListWalk { distance }),
            fill: gained(figures, |distance| Task::Fill { distance }),
        };
        let Findings { hardware, hardware_third_level, list_walk, fill } = &findings;
        let any =
            hardware.is_some() || hardware_third_level.is_some() || list_walk.is_some() || fill.is_some();
        any.then_some(findings)
    }
}

fn points(env: &Env, sizes: Sizes) -> Vec<Planned<Place>> {
    let quick = env.settings.profile == Profile::Quick;
    let mut points: Vec<Planned<Place>> = Vec::new();
    let mut add = |task: Task, working_set_bytes, priority, setup_s| {
        if task.is_offered() {
            points.push(Planned {
                rank: if priority < 3 { Rank::Curve } else { Rank::Detail },
                priority,
                setup_s,
                block_s: 1.5e-3,
                ..Planned::new(Place { task, working_set_bytes })
            });
        }
    };
    // The answers in short: does a stride help, does asking help.
    add(RANDOM, sizes.chase, 0, 1e-4);
    add(strided(STRIDES[0]), sizes.chase, 0, 1e-4);
    for distance in [0, 8] {
        add(Task::ListWalk { distance }, sizes.chase, 0, 1e-4);
        add(Task::Fill { distance }, sizes.fill, 0, 1e-4);
    }
    let strides =
        |working_set: u64| STRIDES.into_iter().filter(move |stride| stride * SHORTEST_LAP <= working_set);
    for stride in strides(sizes.chase).skip(1).take(QUICK_STRIDES - 1) {
        add(strided(stride), sizes.chase, 1, 1e-4);
    }
    for distance in [4, 16, 2, 64, 32, 1] {
        if !quick || [4, 16].contains(&distance) {
            add(Task::ListWalk { distance }, sizes.chase, 1, 1e-4);
            add(Task::Fill { distance }, sizes.fill, 1, 1e-4);
        }
    }
    if quick {
        return points;
    }
    for stride in strides(sizes.chase).skip(QUICK_STRIDES) {
        add(strided(stride), sizes.chase, 2, 1e-4);
    }
    if let Some(third) = sizes.third {
        let warm_s = (third / LINE_BYTES) as f64 * TOUCH_S;
        add(RANDOM, third, 3, warm_s);
        for stride in strides(third) {
            add(strided(stride), third, 3, warm_s);
        }
    }
    points
}

/// What fits here; powers of two.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Of the chase and the list, which lie in the same lines: beyond the caches, as far as memory and time
    /// go.
    chase: u64,
    /// Of the array that is written.
    fill: u64,
    /// A chase in the third-level cache, where there is one that is large enough.
    third: Option<u64>,
}

impl Sizes {
    fn of(env: &Env) -> Self {
        let most = match env.settings.profile {
            // Populating memory takes 1 to 5 ms a MiB in some guests: a quick run's whole share is 200 ms.
            Profile::Quick => 64 << 20,
            Profile::Standard => 256 << 20,
            Profile::Thorough => 1 << 30,
        };
        // The array takes half as much again.
        let chase = most.min(levels::power_of_two(env.memory_bytes / 3 * 2));
        let wanted = THIRD_LIKELY.max((4 * levels::second(&env.machine)).next_power_of_two());
        let room = levels::reported(&env.machine, 3).unwrap_or(0) / 2;
        Self { chase, fill: chase / 2, third: (wanted <= room && 4 * wanted <= chase).then_some(wanted) }
    }
}

fn hidden(figures: &[Figure<Prefetch>], working_set_bytes: u64) -> Option<Hidden> {
    let own = || figures.iter().filter(|figure| figure.point.working_set_bytes == working_set_bytes);
    let random =
        own().find(|figure| matches!(figure.point.task, Task::Chase { order: Order::Random, .. }))?;
    let mut strides: Vec<(u64, &PointResult)> = own()
        .filter_map(|figure| match figure.point.task {
            Task::Chase { stride_bytes, .. } => Some((stride_bytes?, &figure.result)),
            _ => None,
        })
        .collect();
    strides.sort_by_key(|(stride, _)| *stride);
    let pairs: Vec<[&PointResult; 2]> =
        strides.iter().map(|(_, strided)| [*strided, &random.result]).collect();
    let strides = strides.iter().zip(ratios(&pairs)).map(|((stride_bytes, strided), left)| Strided {
        stride_bytes: *stride_bytes,
        ns: strided.p50,
        hidden_share: left.map(|left| 1.0 - left),
    });
    Some(Hidden {
        working_set_bytes,
        pages: random.details.as_ref().map(|details| details.pages),
        random_ns: random.result.p50,
        strides: strides.collect(),
    })
}

fn gained(figures: &[Figure<Prefetch>], asking: impl Fn(u32) -> Task) -> Option<Gained> {
    let own = || figures.iter().filter(|figure| figure.point.task == asking(figure.point.task.distance()));
    let without = own().find(|figure| figure.point.task.distance() == 0)?;
    let best = own()
        .filter(|figure| figure.point.task.distance() > 0)
        .min_by(|a, b| a.result.p50.total_cmp(&b.result.p50));
    Some(Gained {
        working_set_bytes: without.point.working_set_bytes,
        without_ns: without.result.p50,
        best_ns: best.map(|best| best.result.p50),
        best_distance: best.map(|best| best.point.task.distance()),
        gain: best.map(|best| ratio(&without.result, &best.result)),
    })
}

/// The memory, and how far each chase has come.
pub struct Prefetching {
    sizes: Sizes,
    seed: u64,
    chases: Vec<(Place, Chase)>,
    list: list::List,
    array: fill::Array,
    chase_pages: Check,
    array_pages: Check,
    /// Declared after what points into it: the lines of chases and list.
    lines: Arena,
    _array: Arena,
}

impl Prefetching {
    fn open(env: &Env) -> Result<Self> {
        let sizes = Sizes::of(env);
        let helpers = env.populating_cpus();
        let lines = Arena::new(sizes.chase, Pages::Huge, &helpers)?;
        let seed = env.seed(40);
        // SAFETY: the arena has the size, begins on a page and is kept beside what points into it; the list
        // takes other words of its lines than the chase.
        let list = unsafe {
            chase::lay(lines.base(), sizes.chase);
            list::List::build(lines.base(), Cycle::random(sizes.chase / LINE_BYTES, seed))
        };
        // Populated last: that leaves its zeros in the caches, not the lines that are chased first.
        let array = Arena::new(sizes.fill, Pages::Base, &helpers)?;
        // SAFETY: as above.
        let writing = unsafe { fill::Array::new(array.base(), sizes.fill / LINE_BYTES) };
        Ok(Self {
            sizes,
            seed,
            chases: Vec::new(),
            list,
            array: writing,
            chase_pages: lines.pages_check(),
            array_pages: array.pages_check(),
            lines,
            _array: array,
        })
    }

    /// The chase of a point, which begins when it is first needed.
    fn chase(&mut self, point: &Place) -> Result<&mut Chase> {
        kept(&mut self.chases, *point, || {
            let course = course(point, self.sizes.chase, self.seed);
            let course = course.ok_or_else(|| ProbeError::no_point(&point.to_point()))?;
            // SAFETY: `open` gave each line of the arena its own address, and nothing else writes there.
            Ok(unsafe { Chase::new(self.lines.base(), course) })
        })
    }
}

/// `None` of what is no chase within so many bytes.
fn course(point: &Place, most_bytes: u64, seed: u64) -> Option<Course> {
    let bytes = Some(point.working_set_bytes).filter(|bytes| *bytes <= most_bytes)?;
    let lines = bytes / LINE_BYTES;
    match point.task {
        RANDOM => Some(Course::Random(Cycle::random(lines, seed ^ 1))),
        Task::Chase { order: Order::Strided, stride_bytes: Some(stride) }
            if STRIDES.contains(&stride) && stride < bytes =>
        {
            Some(Course::strided(lines, stride, seed))
        }
        _ => None,
    }
}

impl Session<Prefetch> for Prefetching {
    fn select(&mut self, point: &Place) -> Result<()> {
        let in_third = self.sizes.third == Some(point.working_set_bytes);
        if let Task::Chase { .. } = point.task {
            let chase = self.chase(point)?;
            if in_third {
                chase.warm();
            }
        }
        Ok(())
    }

    fn block(&mut self, point: &Place, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        match point.task {
            Task::Chase { .. } => {
                let chase = self.chase(point)?;
                block.batches(chase);
                evidence.ends.one(chase.verify());
            }
            task if !task.is_offered() => return Err(ProbeError::no_point(&point.to_point())),
            Task::ListWalk { distance } => {
                let mut walk = list::Walk::new(&mut self.list, distance);
                block.batches(&mut walk);
                walk.end(evidence);
            }
            Task::Fill { distance } => {
                let mut writing = fill::Fill::new(&mut self.array, distance);
                block.batches(&mut writing);
                writing.end(&mut evidence.lines);
            }
        }
        Ok(())
    }

    fn proof(&mut self, point: &Place, evidence: &Evidence) -> Proof<Details> {
        let (pages, asked_for) = match point.task {
            Task::Fill { .. } => (&self.array_pages, Pages::Base),
            _ => (&self.chase_pages, Pages::Huge),
        };
        let huge = pages.ok == (asked_for == Pages::Huge);
        let details = Details { pages: if huge { Pages::Huge } else { Pages::Base } };
        let proof = Proof::of(evidence.checks(point.task)).with(details).by(&point.task.engine());
        // The written lines are all bytes that are counted.
        let work = Work { bytes: evidence.lines.all * LINE_BYTES, ..Work::default() };
        with_pages(Proof { work, ..proof }, pages)
    }
}

impl Evidence {
    fn checks(&self, task: Task) -> Vec<Check> {
        let ends = "walks end where they should";
        match task {
            Task::Chase { .. } => vec![self.ends.check(ends, "", "walks")],
            Task::ListWalk { .. } => vec![
                self.sums.check("checksum", "", "walks gave the sum of the nodes that lie on their way"),
                self.ends.check(ends, "", "walks ended at the node where their length puts it"),
                self.jumps.check(
                    "jump pointers",
                    "",
                    "walks had jump pointers that lead as far ahead as they say",
                ),
            ],
            Task::Fill { .. } => {
                let after = "lines looked at afterwards held what their block wrote";
                vec![self.lines.check("destination", "", after)]
            }
        }
    }
}

#[cfg(test)]
mod tests;
