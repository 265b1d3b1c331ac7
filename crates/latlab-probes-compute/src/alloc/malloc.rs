//! `alloc.malloc`: what malloc and free cost by size, with memory used before and with memory new to the process, for each allocator
//! that is installed.

mod work;

use std::io::{BufRead, Write};

use latlab_harness::{
    AnyProbe, AnySession, Block, Child, Env, Operations, Planned, PointResult, ProbeError, Proof, Rank,
    Rounds, Spec, Support, Tier, serve_child,
};
use latlab_record::{Check, Header, Point, Profile, Record, Unit, Work, binary_size};
use serde_json::{Value, json};

use crate::heap::{self, Allocator, Answering};
use work::{Answer, Bench, Request, Taken, Use};

/// The probe.
pub struct Malloc;

static SPEC: Spec = Spec {
    id: "alloc.malloc",
    tier: Tier::Alloc,
    title: "malloc and free by size",
    question: "What do malloc and free cost here, from which size on do their pages come from the system each time, and is another allocator faster?",
    method: "An operation is malloc, a write of one word to each page of the block (to its beginning where it is smaller), reading the first word back, and free: memory that is never touched costs \
nothing but its address, which is not why programs allocate. Each value is a window of at least 50 us, or one operation that takes longer.

Reused: one block after the other of the same size, so that free blocks are found where they were put (in glibc's thread cache, up to 1 KiB). Fresh: blocks that make 1 MiB together, or one larger one, are all allocated, then all freed, \
and their pages are given back to the system before the next round, untimed (malloc_trim), so that they come anew: the page faults are in the figure, and are counted. \
mimalloc and jemalloc keep pages on purpose, whatever they are told: for them each round is the first one of a new process.

glibc gives blocks from 128 KiB on a mapping of their own; freeing one raises that threshold to its size, up to 32 MiB, so that from then on such blocks come from the heap and stay there. Above 32 MiB every block is mapped, faulted in and unmapped again. \
What a size costs therefore depends on the sizes that were freed before: each size of 128 KiB or more is measured in a process of its own, and both thresholds are looked for in new processes too. \
The trim cliff is the size from which on at least half of a reused block's pages are faulted in again each time: from there on memory goes back to the system with each free.

Across threads: one thread allocates and touches, another one on another CPU reads and frees, handed over through a ring 64 at a time; time until the last block was freed over the number of blocks, with both sides at work.

Every allocator runs in child processes with its library preloaded. The child says which library the dynamic linker bound malloc to, and that library its version: when it is not the one that was asked for, there is no figure. \
A preload of the user's own is taken away for these processes. Timed by the system's monotonic clock (20-50 ns a window).",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one malloc, one word written to each page, one free",
    needs: &["child processes", "Linux"],
    touches: &["memory: up to 64 MiB a block, at most half of what may be used, in child processes"],
    saturates: false,
    operations: Operations::Unwatched,
};

/// Sizes of the quick profile, in the order in which they are given up last; 32 bytes are a node of a list.
const QUICK: [u64; 4] = [32, 1 << 20, 1 << 10, 64 << 10];
/// Largest block, bytes.
const LARGEST: u64 = 64 << 20;
/// Largest block of the allocators that are preloaded, except in the thorough profile: 64 MiB take 30 ms each time.
const LARGEST_OF_OTHERS: u64 = 16 << 20;
const SAME: &str = "same-thread";
const ACROSS_THREADS: &str = "across-threads";
/// Sizes that one thread allocates and another frees.
const ACROSS: [u64; 4] = [32, 1 << 10, 256, 64 << 10];
/// From here on a size's history matters: glibc's thresholds begin at 128 KiB.
const OWN_PROCESS: u64 = 128 << 10;
/// Nanoseconds of a page fault, to plan with.
const FAULT_NS: f64 = 2_000.0;
/// Seconds until a child has started, to plan with.
const START_S: f64 = 0.015;
/// Fewer faults than this share of the pages of fresh blocks mean that they were not fresh.
const NEW_SHARE: f64 = 0.9;

/// What most allocations of programs are like.
const HEADLINE_BYTES: u64 = 32;

impl AnyProbe for Malloc {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Some(reason) = heap::refused(env) {
            return Support::No(reason.to_owned());
        }
        let largest = largest(env);
        if largest < 64 << 10 {
            return Support::No(format!(
                "needs 2 MiB of memory; {} may be used here",
                binary_size(env.memory_bytes)
            ));
        }
        if !heap::can_keep() {
            return Support::Degraded(
                "this C library has no malloc_trim: what it keeps of freed memory is its own affair"
                    .to_owned(),
            );
        }
        if largest < LARGEST {
            return Support::Degraded(format!(
                "blocks end at {}: an eighth of the memory that may be used",
                binary_size(largest)
            ));
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut points = Vec::new();
        let (others, _) = heap::found();
        let profile = env.settings.profile;
        let quick = profile == Profile::Quick;
        for size in sizes(env) {
            // The ends of the scale and the steps between them, then the rest.
            let first = QUICK.contains(&size) || size == LARGEST;
            for state in ["reused", "fresh"] {
                let rank =
                    if size == HEADLINE_BYTES { env.headline_but_quick(Rank::Curve) } else { Rank::Curve };
                points.push(Planned {
                    rank,
                    ..planned(&Allocator::SYSTEM, size, state, SAME, u8::from(!first))
                });
            }
            for other in &others {
                if size > LARGEST_OF_OTHERS && profile != Profile::Thorough {
                    continue;
                }
                let priority = if QUICK.contains(&size) { u8::from(quick) } else { 3 };
                points.push(planned(other, size, "reused", SAME, priority));
                if QUICK.contains(&size) || profile == Profile::Thorough {
                    points.push(planned(other, size, "fresh", SAME, priority.max(2)));
                }
            }
        }
        if env.cpus.len() > 1 {
            for size in ACROSS.into_iter().filter(|size| *size <= largest(env)) {
                points.push(planned(&Allocator::SYSTEM, size, "reused", ACROSS_THREADS, 1));
                for other in &others {
                    points.push(planned(other, size, "reused", ACROSS_THREADS, 3));
                }
            }
        }
        points
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        // The block in use, and what glibc keeps of it in each process: up to twice the sizes below, which are a quarter of the next
        // at most (half in the thorough profile).
        (largest(env) * 4).max(2 << 20)
    }

    fn cpus(&self, env: &Env) -> u32 {
        if env.cpus.len() > 1 { 2 } else { 1 }
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        let (mut allocators, not_installed) = heap::found();
        allocators.insert(0, Allocator::SYSTEM);
        Ok(Box::new(Blocks {
            env,
            allocators,
            not_installed,
            children: Vec::new(),
            thresholds: None,
            selected: None,
            ledgers: Vec::new(),
        }))
    }

    fn conclude(&self, header: &Header, results: &[PointResult]) -> Vec<Record> {
        let page_bytes = crate::page_bytes(&header.machine);
        conclude(results, page_bytes as f64).into_iter().collect()
    }
}

/// Sizes of the standard profile, in the order in which they are given up last.
const STANDARD: [u64; 13] =
    [32, 16, 1 << 20, 1 << 10, 64 << 20, 64 << 10, 16 << 20, 256 << 10, 64, 4 << 10, 256, 16 << 10, 4 << 20];

fn sizes(env: &Env) -> Vec<u64> {
    let mut sizes: Vec<u64> = match env.settings.profile {
        Profile::Quick => QUICK.to_vec(),
        _ => STANDARD.to_vec(),
    };
    if env.settings.profile == Profile::Thorough {
        let powers = (4..=LARGEST.ilog2()).map(|power| 1 << power);
        let more: Vec<u64> = powers.filter(|size| !sizes.contains(size)).collect();
        sizes.extend(more);
    }
    sizes.retain(|size| *size <= largest(env));
    sizes
}

/// A power of two.
fn largest(env: &Env) -> u64 {
    let most = env.memory_bytes / 4;
    if most < 512 << 10 {
        return 0;
    }
    (1u64 << most.ilog2()).min(LARGEST)
}

fn planned(allocator: &Allocator, size: u64, state: &str, placement: &str, priority: u8) -> Planned {
    let pages = (size / heap::page_bytes() as u64) as f64;
    let block_s = match (state, placement) {
        (_, ACROSS_THREADS) => 20e-3,
        ("fresh", _) if allocator.preload.is_some() => START_S + pages * FAULT_NS / 1e9,
        ("fresh", _) => 5e-3_f64.max(pages * FAULT_NS / 1e9),
        _ if size > 32 << 20 => pages * FAULT_NS / 1e9,
        _ => 4e-3,
    };
    Planned {
        priority,
        // Only the first visit of a process's first size pays for its start.
        setup_s: if size >= OWN_PROCESS && allocator.preload.is_none() { START_S / 6.0 } else { 1e-4 },
        block_s,
        ..Planned::new(Point {
            allocator: Some(allocator.name.to_owned()),
            size_bytes: Some(size),
            state: Some(state.to_owned()),
            placement: Some(placement.to_owned()),
            ..Point::default()
        })
    }
}

/// The child's side.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut bench: Option<Bench> = None;
    serve_child(input, output, |request: Request| {
        let bench = match &mut bench {
            Some(bench) => bench,
            none => none.insert(Bench::new()?),
        };
        bench.answer(&request)
    })
}

/// What shares a process: the allocator, and the history of its heap.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Heap {
    allocator: &'static str,
    /// Of sizes that move thresholds: the size.
    size: u64,
    /// Whether a second thread was ever started: a C library may lock from then on.
    threads: bool,
    /// Whether memory is given back between operations: it would be missing where blocks are reused.
    gives_back: bool,
}

struct Process {
    heap: Heap,
    child: Child,
    answering: Answering,
}

struct Ledger {
    point: Point,
    taken: Vec<Taken>,
    answering: Answering,
}

struct Blocks<'env> {
    env: &'env Env,
    allocators: Vec<Allocator>,
    not_installed: Vec<&'static str>,
    children: Vec<Process>,
    /// glibc's thresholds, asked for once: in a new process, and the largest.
    thresholds: Option<[Option<u64>; 2]>,
    selected: Option<(usize, u64, Use, Point)>,
    ledgers: Vec<Ledger>,
}

impl Blocks<'_> {
    fn process(&mut self, allocator: &Allocator, heap: Heap) -> Result<usize, ProbeError> {
        if let Some(place) = self.children.iter().position(|process| process.heap == heap) {
            return Ok(place);
        }
        let mut child = heap::start(self.env, SPEC.id, allocator)?;
        let Answer::Description(answering) = child.ask(&Request::Describe)? else {
            return Err(confused());
        };
        self.children.push(Process { heap, child, answering });
        Ok(self.children.len() - 1)
    }

    /// A new process in place of the one with this heap.
    fn renewed(&mut self, heap: Heap) -> Result<usize, ProbeError> {
        self.children.retain(|process| process.heap != heap);
        let allocator = self
            .allocators
            .iter()
            .find(|own| own.name == heap.allocator)
            .cloned()
            .ok_or_else(|| ProbeError::Other(format!("there is no {} here", heap.allocator)))?;
        let place = self.process(&allocator, heap)?;
        if let Some(selected) = &mut self.selected {
            selected.0 = place;
        }
        Ok(place)
    }

    fn thresholds(&mut self) -> [Option<u64>; 2] {
        if let Some(known) = self.thresholds {
            return known;
        }
        let ask = || {
            let mut child = heap::start(self.env, SPEC.id, &Allocator::SYSTEM)?;
            match child.ask(&Request::Thresholds)? {
                Answer::Thresholds { new_bytes, largest_bytes } => Ok([new_bytes, largest_bytes]),
                _ => Err(confused()),
            }
        };
        // Not known is not wrong: the figures stand without it.
        *self.thresholds.insert(ask().unwrap_or([None, None]))
    }
}

fn confused() -> ProbeError {
    ProbeError::Other("the measuring child answered something else".to_owned())
}

impl AnySession for Blocks<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let unknown = || ProbeError::no_point(point);
        let allocator = self
            .allocators
            .iter()
            .find(|own| Some(own.name) == point.allocator.as_deref())
            .cloned()
            .ok_or_else(unknown)?;
        let size = point.size_bytes.ok_or_else(unknown)?;
        let how = match (point.placement.as_deref(), point.state.as_deref()) {
            (Some(ACROSS_THREADS), _) => {
                let cpu = self.env.cpus.iter().find(|cpu| **cpu != self.env.home_cpu);
                Use::Across { cpu: *cpu.ok_or_else(unknown)? }
            }
            (_, Some("reused")) => Use::Reused,
            (_, Some("fresh")) => Use::Fresh,
            _ => return Err(unknown()),
        };
        let heap = Heap {
            allocator: allocator.name,
            size: if allocator.preload.is_none() && size >= OWN_PROCESS { size } else { 0 },
            threads: matches!(how, Use::Across { .. }),
            gives_back: how == Use::Fresh,
        };
        let place = self.process(&allocator, heap)?;
        self.selected = Some((place, size, how, point.clone()));
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some((place, size_bytes, how, point)) = self.selected.clone() else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        let heap = self.children[place].heap;
        let place = if how == Use::Fresh && heap.allocator != Allocator::SYSTEM.name {
            // The others keep pages on purpose, whatever they are told: only a new process has none.
            self.renewed(heap)?
        } else {
            place
        };
        let process = &mut self.children[place];
        let request = Request::Take {
            size_bytes,
            how,
            rounds: if heap.allocator == Allocator::SYSTEM.name { 3 } else { 1 },
            ops_per_window: block.chosen_window_ops(),
        };
        let Answer::Taken(taken) = process.child.ask(&request)? else {
            return Err(confused());
        };
        heap::absorb(block, &taken.block);
        let taken = Taken { block: latlab_harness::RemoteBlock::default(), ..taken };
        if let Some(ledger) = self.ledgers.iter_mut().find(|ledger| ledger.point == point) {
            ledger.taken.push(taken);
        } else {
            self.ledgers.push(Ledger { point, taken: vec![taken], answering: process.answering.clone() });
        }
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let mut proof = Proof {
            work: Work {
                convention: (point.placement.as_deref() == Some(ACROSS_THREADS)).then(|| {
                    "one block: malloc, a word written to each page and the handing over by one thread; a look and free by another, at the same time".to_owned()
                }),
                ..Work::default()
            },
            ..Proof::default()
        };
        let is_system = point.allocator.as_deref() == Some("system");
        let thresholds = if is_system { self.thresholds() } else { [None, None] };
        let Some(ledger) = self.ledgers.iter().find(|ledger| ledger.point == *point) else {
            return proof;
        };
        proof.engine = Some(ledger.answering.engine());
        proof.checks.push(answered(point.allocator.as_deref().unwrap_or(""), &ledger.answering));
        let wrong: u64 = ledger.taken.iter().map(|taken| taken.wrong).sum();
        let ops: u64 = ledger.taken.iter().map(|taken| taken.ops).sum();
        proof.checks.push(Check {
            name: "blocks held their words".to_owned(),
            ok: ops > 0 && wrong == 0,
            detail: format!(
                "{wrong} of {ops} blocks were refused, lost, or held another word than was written"
            ),
        });
        let mut per_op = None;
        if ledger.taken.iter().all(|taken| taken.counts_faults) {
            let faults: u64 = ledger.taken.iter().map(|taken| taken.faults).sum();
            per_op = Some(faults as f64 / ops.max(1) as f64);
            if point.state.as_deref() == Some("fresh") {
                let renews = heap::can_keep() && ledger.taken.iter().all(|taken| taken.renews);
                judge_freshness(&mut proof, point, faults, ops, is_system && renews);
            }
        } else if point.state.as_deref() == Some("fresh") {
            proof.flags.push(
                "degraded: this system does not count page faults, so that new memory is not proved new"
                    .to_owned(),
            );
        }
        proof.findings = Some(json!({
            "library": ledger.answering.library,
            "version": ledger.answering.version,
            "minor_faults_per_op": per_op,
            "not_installed": self.not_installed,
            "mmap_threshold_bytes": thresholds[0],
            "mmap_threshold_largest_bytes": thresholds[1],
        }));
        proof
    }
}

/// Whether the allocator that was asked for is the one that answered.
fn answered(wanted: &str, answering: &Answering) -> Check {
    let ok = match wanted {
        "system" => !["mimalloc", "jemalloc"].contains(&answering.name.as_str()),
        other => answering.name == other && answering.version.is_some(),
    };
    Check {
        name: "allocator answered".to_owned(),
        ok,
        detail: format!("malloc was bound to {}", answering.engine()),
    }
}

/// New pages are the point of "fresh": glibc gives back what it is told to; the others keep some of it on purpose.
fn judge_freshness(proof: &mut Proof, point: &Point, faults: u64, ops: u64, gives_back: bool) {
    let bytes = point.size_bytes.unwrap_or(0) as f64 * ops as f64;
    let expected = bytes / heap::page_bytes() as f64;
    let share = faults as f64 / expected.max(1.0);
    if gives_back {
        proof.checks.push(Check {
            name: "memory was new".to_owned(),
            ok: share >= NEW_SHARE,
            detail: format!("{faults} page faults for {expected:.0} pages of blocks"),
        });
    } else if share < NEW_SHARE {
        proof.flags.push(format!(
            "degraded: {:.0} % of the pages were new; the allocator kept the others",
            share * 100.0
        ));
    }
}

/// The curve of each allocator, and where reusing a block stops to be cheap.
fn conclude(results: &[PointResult], page_bytes: f64) -> Option<Record> {
    let mut names: Vec<&str> = Vec::new();
    for result in results {
        if let Some(name) = result.point.allocator.as_deref()
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    let allocators: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let own: Vec<&PointResult> =
                results.iter().filter(|result| result.point.allocator.as_deref() == Some(name)).collect();
            allocator(name, &own, page_bytes)
        })
        .collect();
    if allocators.is_empty() {
        return None;
    }
    let not_installed = results.iter().find_map(|result| result.findings.as_ref()?.get("not_installed"));
    let findings = json!({ "allocators": allocators, "not_installed": not_installed });
    Some(SPEC.derived(findings))
}

fn allocator(name: &str, own: &[&PointResult], page_bytes: f64) -> Value {
    let curve = |state: &str, placement: &str| {
        let mut curve: Vec<(u64, f64)> = own
            .iter()
            .filter(|result| {
                result.point.state.as_deref() == Some(state)
                    && result.point.placement.as_deref() == Some(placement)
            })
            .filter_map(|result| Some((result.point.size_bytes?, result.p50)))
            .collect();
        curve.sort_by_key(|(size, _)| *size);
        curve
    };
    let (reused, fresh) = (curve("reused", SAME), curve("fresh", SAME));
    let across = curve("reused", ACROSS_THREADS);
    let at = |curve: &[(u64, f64)], size: u64| curve.iter().find(|(own, _)| *own == size).map(|(_, ns)| *ns);
    let mut sizes: Vec<u64> =
        [&reused, &fresh, &across].into_iter().flatten().map(|(size, _)| *size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let rows: Vec<Value> = sizes
        .iter()
        .map(|size| {
            json!({
                "size_bytes": size,
                "fresh_ns": at(&fresh, *size),
                "reused_ns": at(&reused, *size),
                "across_threads_ns": at(&across, *size),
            })
        })
        .collect();
    let findings = own.iter().find_map(|result| result.findings.as_ref());
    let found = |name: &str| findings.map(|findings| findings[name].clone());
    json!({
        "allocator": name,
        "library": found("library"),
        "version": found("version"),
        "mmap_threshold_bytes": found("mmap_threshold_bytes"),
        "mmap_threshold_largest_bytes": found("mmap_threshold_largest_bytes"),
        "sizes": rows,
        "trim_cliff": cliff(own, page_bytes),
    })
}

/// The size from which on reused blocks are faulted in again each time. Its range reaches down to the size before: nothing was measured between them.
fn cliff(own: &[&PointResult], page_bytes: f64) -> Option<Value> {
    let own: Vec<PointResult> = own.iter().map(|result| (*result).clone()).collect();
    let [before, after] = around_cliff(&own, page_bytes)?;
    let size = |result: &PointResult| result.point.size_bytes.map(|bytes| bytes as f64);
    let of_rounds = Rounds::of(&own).estimate(|results| size(around_cliff(results, page_bytes)?[1]))?;
    Some(json!({
        "size_bytes": of_rounds.reaching([size(before)?, size(after)?]),
        "before_ns": before.p50,
        "after_ns": after.p50,
    }))
}

/// The sizes before and after it.
fn around_cliff(own: &[PointResult], page_bytes: f64) -> Option<[&PointResult; 2]> {
    let mut reused: Vec<(&PointResult, bool)> = own
        .iter()
        .filter(|result| {
            result.point.state.as_deref() == Some("reused") && result.point.placement.as_deref() == Some(SAME)
        })
        .filter_map(|result| {
            let pages = result.point.size_bytes? as f64 / page_bytes;
            let faults = result.number("minor_faults_per_op")?;
            Some((result, faults >= (0.5 * pages).max(0.5)))
        })
        .collect();
    reused.sort_by_key(|(result, _)| result.point.size_bytes);
    let before = reused.iter().rposition(|(_, again)| !again)?;
    Some([reused[before].0, reused.get(before + 1)?.0])
}

#[cfg(test)]
mod tests;
