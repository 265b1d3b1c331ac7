//! `memory.prefetch`: what the CPU's prefetchers hide by stride, and what a program's own prefetch instructions gain.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "buffers begin on a page, nodes on a line, and offsets are whole words"
)]
#![expect(clippy::inline_always, reason = "the timed loop must hold no call, whatever the profile")]

use latlab_harness::{
    AnyProbe, AnySession, Block, Env, MemorySource, Operations, Planned, PointResult, ProbeError, Proof,
    Rank, Spec, Support, Tier, ratio, ratios,
};
use latlab_record::{Check, Header, Order, Pages, Point, Profile, Record, Unit, binary_size};
use serde_json::{Value, json};

use crate::levels;
use latlab_probes_shared::walk::{Arena, Cycle, LINE_BYTES};

mod chase;
mod fill;
#[cfg_attr(target_arch = "x86_64", path = "prefetch/x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "prefetch/aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "prefetch/portable.rs")]
mod instructions;
mod list;

use chase::{Chase, Course};

/// The probe.
pub struct Prefetch;

static SPEC: Spec = Spec {
    id: "memory.prefetch",
    tier: Tier::Memory,
    title: "prefetching by the CPU and by the program",
    question: "How much of memory's latency does prefetching hide, and how far ahead should a program ask?",
    method: "By the CPU: dependent loads, each waiting for the one before, whose addresses lie a fixed stride apart, against the same loads of the same lines in random order. \
No load can begin early, so whatever the strided order saves was fetched before it was asked for: hidden_share = 1 - strided / random. \
Each line holds its own address; the next place is that address, once loaded, plus the stride (in assembly) or the distance to the next line of the random cycle, which is computed while the load is under way. So one memory serves all orders, \
and a load needs what the one before it brought, as with pointers. A lap by a large stride meets few lines; the next lap takes another line within the stride, in random order, until all were visited: \
nothing is met again that a cache could still hold, nor right after its neighbour, with which it may have been fetched.

Huge pages are asked for, because random order over small ones pays for a translation at each load and strided order hardly does, which is no prefetching. Where they were not obtained the record says so, and where a host maps a \
guest's memory in small pages they do not help: hidden_share then includes what is saved on translations, which are prefetched too. The second working set lies in the third-level cache; its lines are touched before each block in the order of the walk. The large one is not \
prepared: each order goes on where it ended.

By the program: a list whose nodes (one line each) lie in random order is walked, and a dozen instructions are spent on each node. A node also holds the addresses of the nodes 2, 4, 8, 16 and 32 ahead; one of those is prefetched \
(prefetcht0, prfm pldl1keep) when the node is met. Distance 0 has no prefetch; 1 prefetches what is about to be loaded. Jump pointers stand in the nodes and not in an array beside the list, because a CPU that executes out of order would run ahead through an array while a load waits. \
And an array is written from front to back, eight words of 8 bytes a line, with a prefetch for writing (prefetchw, prfm pstl1keep) some lines ahead of each line; there the CPU's own prefetchers work too, and little may be left to gain. The array has 4 KiB pages, as most programs do.

Proof: walks must end where the number of steps leads; the payloads of the nodes on the way give a sum that is computed again from the order; jump pointers are looked at; every line that was written must hold what its block wrote. A value is the mean of a window of about 20 us. \
Walks and writing go on where the last block ended, whatever its distance, so all of them meet what was left longest ago.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one dependent 8-byte load, one node, or one written line of 64 bytes",
    needs: &["4 MiB of memory"],
    touches: &[
        "memory: up to 1.5 GiB (384 MiB in the standard, 96 MiB in the quick profile), at most a quarter of what may be used",
    ],
    saturates: false,
    operations: Operations::Unwatched,
};

const CHASE: &str = "chase";
const LIST: &str = "list-walk";
const FILL: &str = "fill";

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

impl AnyProbe for Prefetch {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let MemorySource::Simulated(_) = env.memory {
            return Support::No("simulated memory has no prefetchers".to_owned());
        }
        let sizes = Sizes::of(env);
        if sizes.chase < SMALLEST {
            return Support::No(format!(
                "needs 4 MiB of memory; {} may be used here",
                binary_size(env.memory_bytes)
            ));
        }
        if sizes.chase < LIKELY_RAM {
            return Support::Degraded(format!(
                "working sets end at {}, within the caches of many machines: a quarter of the memory that may be used is {}",
                binary_size(sizes.chase),
                binary_size(env.memory_bytes)
            ));
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let sizes = Sizes::of(env);
        let quick = env.settings.profile == Profile::Quick;
        let mut points: Vec<Planned> = Vec::new();
        let mut add = |point: Point, priority, setup_s| {
            points.push(Planned {
                rank: if priority < 3 { Rank::Curve } else { Rank::Detail },
                priority,
                setup_s,
                block_s: 1.5e-3,
                ..Planned::new(point)
            });
        };
        // The answers in short: does a stride help, does asking help.
        add(random(sizes.chase), 0, 1e-4);
        add(strided(sizes.chase, STRIDES[0]), 0, 1e-4);
        for distance in [0, 8] {
            if offered(LIST, distance) {
                add(ahead(LIST, sizes.chase, distance), 0, 1e-4);
            }
            if offered(FILL, distance) {
                add(ahead(FILL, sizes.fill, distance), 0, 1e-4);
            }
        }
        let strides =
            |working_set: u64| STRIDES.into_iter().filter(move |stride| stride * SHORTEST_LAP <= working_set);
        for stride in strides(sizes.chase).skip(1).take(QUICK_STRIDES - 1) {
            add(strided(sizes.chase, stride), 1, 1e-4);
        }
        for distance in [4, 16, 2, 64, 32, 1] {
            for (operation, bytes) in [(LIST, sizes.chase), (FILL, sizes.fill)] {
                if offered(operation, distance) && (!quick || [4, 16].contains(&distance)) {
                    add(ahead(operation, bytes, distance), 1, 1e-4);
                }
            }
        }
        if quick {
            return points;
        }
        for stride in strides(sizes.chase).skip(QUICK_STRIDES) {
            add(strided(sizes.chase, stride), 2, 1e-4);
        }
        if let Some(third) = sizes.third {
            let warm_s = (third / LINE_BYTES) as f64 * TOUCH_S;
            add(random(third), 3, warm_s);
            for stride in strides(third) {
                add(strided(third, stride), 3, warm_s);
            }
        }
        points
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        let sizes = Sizes::of(env);
        sizes.chase + sizes.fill
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        Ok(Box::new(Prefetching::open(env)?))
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        // The list lies in the lines of the larger chase, and the smaller one is far smaller than what is written.
        let sizes = || results.iter().filter_map(|result| result.point.working_set_bytes);
        let largest = sizes().max().unwrap_or(0);
        let chased = results
            .iter()
            .filter(|result| result.point.operation.as_deref() == Some(CHASE))
            .filter_map(|result| result.point.working_set_bytes);
        let hardware = hidden(results, largest);
        let third =
            chased.filter(|size| *size < largest).max().map_or(Value::Null, |third| hidden(results, third));
        let (list, fill) = (gained(results, LIST), gained(results, FILL));
        if [&hardware, &third, &list, &fill].into_iter().all(Value::is_null) {
            return Vec::new();
        }
        let findings = json!({
            "hardware": hardware,
            "hardware_third_level": third,
            "list_walk": list,
            "fill": fill,
        });
        vec![SPEC.derived(findings)]
    }
}

/// What fits here; powers of two.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Of the chase and the list, which lie in the same lines: beyond the caches, as far as memory and time go.
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
        let fits = (env.memory_bytes / 3 * 2).checked_ilog2().map_or(0, |bits| 1 << bits);
        let chase = most.min(fits);
        let second = levels::reported(&env.machine, 2).unwrap_or(1 << 20);
        let wanted = THIRD_LIKELY.max((4 * second).next_power_of_two());
        let room = levels::reported(&env.machine, 3).unwrap_or(0) / 2;
        Self { chase, fill: chase / 2, third: (wanted <= room && 4 * wanted <= chase).then_some(wanted) }
    }
}

fn random(working_set: u64) -> Point {
    Point {
        operation: Some(CHASE.to_owned()),
        order: Some(Order::Random),
        working_set_bytes: Some(working_set),
        ..Point::default()
    }
}

fn strided(working_set: u64, stride: u64) -> Point {
    Point { order: Some(Order::Strided), stride_bytes: Some(stride), ..random(working_set) }
}

fn ahead(operation: &str, working_set: u64, distance: u32) -> Point {
    Point {
        operation: Some(operation.to_owned()),
        distance: Some(distance),
        working_set_bytes: Some(working_set),
        ..Point::default()
    }
}

/// Whether this CPU has the instruction, and the work that distance.
fn offered(operation: &str, distance: u32) -> bool {
    match (operation, distance) {
        (LIST | FILL, 0) => true,
        (LIST, _) => instructions::READ.is_some() && list::distances().any(|known| known == distance),
        (FILL, _) => instructions::write().is_some() && fill::DISTANCES.contains(&distance),
        _ => false,
    }
}

/// What strided order hides of random order's latency.
fn hidden(results: &[PointResult], working_set: u64) -> Value {
    let chases = || {
        results.iter().filter(|result| {
            result.point.operation.as_deref() == Some(CHASE)
                && result.point.working_set_bytes == Some(working_set)
        })
    };
    let Some(random) = chases().find(|result| result.point.order == Some(Order::Random)) else {
        return Value::Null;
    };
    let mut strides: Vec<[&PointResult; 2]> = chases()
        .filter(|result| result.point.stride_bytes.is_some())
        .map(|result| [result, random])
        .collect();
    strides.sort_by_key(|[strided, _]| strided.point.stride_bytes);
    let strides: Vec<Value> = strides
        .iter()
        .zip(ratios(&strides))
        .map(|([strided, _], left)| {
            json!({
                "stride_bytes": strided.point.stride_bytes,
                "ns": strided.p50,
                "hidden_share": left.map(|left| 1.0 - left),
            })
        })
        .collect();
    let pages = random.findings.as_ref().map_or(Value::Null, |findings| findings["pages"].clone());
    json!({
        "working_set_bytes": working_set,
        "pages": pages,
        "random_ns": random.p50,
        "strides": strides,
    })
}

/// What asking ahead gains at best.
fn gained(results: &[PointResult], operation: &str) -> Value {
    let at = || results.iter().filter(|result| result.point.operation.as_deref() == Some(operation));
    let Some(without) = at().find(|result| result.point.distance == Some(0)) else {
        return Value::Null;
    };
    let best = at().filter(|result| result.point.distance > Some(0)).min_by(|a, b| a.p50.total_cmp(&b.p50));
    json!({
        "working_set_bytes": without.point.working_set_bytes,
        "without_ns": without.p50,
        "best_ns": best.map(|best| best.p50),
        "best_distance": best.and_then(|best| best.point.distance),
        "gain": best.map(|best| ratio(without, best)),
    })
}

fn to_usize(value: u64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded by the size of a mapping that exists, or a distance within one, modulo the address space"
    )]
    {
        value as usize
    }
}

struct Prefetching {
    sizes: Sizes,
    seed: u64,
    selected: Option<Point>,
    chases: Vec<(Point, Chase)>,
    walks: Vec<(u32, list::Evidence)>,
    fills: Vec<(u32, fill::Evidence)>,
    list: list::List,
    array: fill::Array,
    chase_pages: Check,
    array_pages: Check,
    /// Declared after what points into it: the lines of chases and list.
    lines: Arena,
    _array: Arena,
}

/// The entry of a key, made when it is first asked for.
fn entry<K: PartialEq, V: Default>(entries: &mut Vec<(K, V)>, key: K) -> &mut V {
    let known = entries.iter().position(|(other, _)| *other == key);
    let place = known.unwrap_or_else(|| {
        entries.push((key, V::default()));
        entries.len() - 1
    });
    &mut entries[place].1
}

impl Prefetching {
    fn open(env: &Env) -> Result<Self, ProbeError> {
        let sizes = Sizes::of(env);
        let helpers = env.populating_cpus();
        let lines = Arena::new(sizes.chase, Pages::Huge, &helpers)?;
        let seed = env.seed(40);
        // SAFETY: the arena has the size, begins on a page and is kept beside what points into it; the list takes other words of its
        // lines than the chase.
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
            selected: None,
            chases: Vec::new(),
            walks: Vec::new(),
            fills: Vec::new(),
            list,
            array: writing,
            chase_pages: lines.pages_check(),
            array_pages: array.pages_check(),
            lines,
            _array: array,
        })
    }

    fn course(&self, point: &Point) -> Option<Course> {
        let bytes = point.working_set_bytes.filter(|bytes| *bytes <= self.sizes.chase)?;
        let lines = bytes / LINE_BYTES;
        match (point.order?, point.stride_bytes) {
            (Order::Random, None) => Some(Course::Random(Cycle::random(lines, self.seed ^ 1))),
            (Order::Strided, Some(stride)) if STRIDES.contains(&stride) && stride < bytes => {
                Some(Course::strided(lines, stride, self.seed))
            }
            _ => None,
        }
    }

    fn chase(&mut self, point: &Point) -> Result<&mut Chase, ProbeError> {
        let known = self.chases.iter().position(|(other, _)| other == point);
        let place = if let Some(place) = known {
            place
        } else {
            let course = self.course(point).ok_or_else(|| ProbeError::no_point(point))?;
            // SAFETY: `open` gave each line of the arena its own address, and nothing else writes there.
            let chase = unsafe { Chase::new(self.lines.base(), course) };
            self.chases.push((point.clone(), chase));
            self.chases.len() - 1
        };
        Ok(&mut self.chases[place].1)
    }
}

impl AnySession for Prefetching {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let third = self.sizes.third;
        if point.operation.as_deref() == Some(CHASE) {
            let chase = self.chase(point)?;
            if third.is_some() && point.working_set_bytes == third {
                chase.warm();
            }
        }
        self.selected = Some(point.clone());
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let point =
            self.selected.clone().ok_or_else(|| ProbeError::Other("no point is selected".to_owned()))?;
        match (point.operation.as_deref(), point.distance) {
            (Some(CHASE), _) => {
                let chase = self.chase(&point)?;
                block.batches(chase);
                chase.verify();
            }
            (Some(LIST), Some(distance)) if offered(LIST, distance) => {
                let mut walk = list::Walk::new(&mut self.list, distance);
                block.batches(&mut walk);
                walk.end(entry(&mut self.walks, distance));
            }
            (Some(FILL), Some(distance)) if offered(FILL, distance) => {
                let mut writing = fill::Fill::new(&mut self.array, distance);
                block.batches(&mut writing);
                writing.end(entry(&mut self.fills, distance));
            }
            _ => return Err(ProbeError::no_point(&point)),
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let mut proof = Proof::default();
        let distance = point.distance.unwrap_or(0);
        let instruction = |name: Option<&str>| match (distance, name) {
            (1.., Some(name)) => name.to_owned(),
            _ => "no prefetch instruction".to_owned(),
        };
        let mut pages = &self.chase_pages;
        match point.operation.as_deref() {
            Some(LIST) => {
                proof.checks.extend(entry(&mut self.walks, distance).checks());
                proof.engine = Some(instruction(instructions::READ));
            }
            Some(FILL) => {
                let evidence = entry(&mut self.fills, distance);
                proof.checks.push(evidence.check());
                proof.work.bytes = evidence.bytes();
                proof.engine = Some(instruction(instructions::write()));
                pages = &self.array_pages;
            }
            _ => {
                let known = self.chases.iter().find(|(other, _)| other == point);
                proof.checks.extend(known.map(|(_, chase)| chase.check()));
                proof.engine = Some(format!("{} loads", std::env::consts::ARCH));
            }
        }
        // The figure is true of the pages that were there; a check would refuse it.
        if pages.ok {
            proof.checks.push(pages.clone());
        } else {
            proof.flags.push(format!("degraded: {} not, {}", pages.name, pages.detail));
        }
        let huge = pages.ok == (point.operation.as_deref() != Some(FILL));
        proof.findings = Some(json!({ "pages": if huge { "huge" } else { "4k" } }));
        proof
    }
}

#[cfg(test)]
mod tests;
