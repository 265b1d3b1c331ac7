//! `alloc.malloc`: what malloc and free cost by size, with memory used before and with memory new to the
//! process, for each allocator that is installed.

mod work;

use std::collections::BTreeSet;
use std::io::{BufRead, Write};

use latlab_harness::{Child, serve_child};
use latlab_probes_shared::prelude::*;
use latlab_record::Work;

use crate::heap::{self, Allocator, Answering, FaultTally, Name};
use crate::levels::power_of_two;
use work::{Answer, Bench, Request, Use};

/// The probe.
pub struct Malloc;

/// Sizes of the quick profile, in the order in which they are given up last; 32 bytes are a node of a list.
const QUICK: [u64; 4] = [32, 1 << 20, 1 << 10, 64 << 10];
/// Largest block, bytes.
const LARGEST: u64 = 64 << 20;
/// Largest block of the allocators that are preloaded, except in the thorough profile: 64 MiB take 30 ms each
/// time.
const LARGEST_OF_OTHERS: u64 = 16 << 20;
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

const ACROSS_CONVENTION: &str = "one block: malloc, a word written to each page and the hand-over by one \
    thread; a read and free by another, concurrently";
/// What most allocations of programs are like.
const HEADLINE_BYTES: u64 = 32;

/// Whose blocks, how large, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    allocator: Name,
    size_bytes: u64,
    state: State,
    placement: Placement,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Reused,
    Fresh,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Placement {
    SameThread,
    AcrossThreads,
}

/// Who answered, and what an operation paid. A threshold is the size from which on blocks have mappings of
/// their own.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// File name of the library.
    library: Option<String>,
    version: Option<String>,
    /// Page faults without I/O; nothing where they are not counted.
    minor_faults_per_op: Option<f64>,
    /// Allocators that would be measured if they were there.
    not_installed: Option<Vec<Name>>,
    /// The threshold of a new process.
    mmap_threshold_bytes: Option<u64>,
    /// The largest to which freeing such blocks raises it.
    mmap_threshold_largest_bytes: Option<u64>,
}

/// Allocators beside each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    allocators: Vec<OfAllocator>,
    not_installed: Option<Vec<Name>>,
}

/// The curve of an allocator, and where reusing a block stops to be cheap.
#[derive(Serialize, JsonSchema)]
struct OfAllocator {
    allocator: Name,
    library: Option<String>,
    version: Option<String>,
    mmap_threshold_bytes: Option<u64>,
    mmap_threshold_largest_bytes: Option<u64>,
    sizes: Vec<OfSize>,
    trim_cliff: Option<Cliff>,
}

/// One block of a size.
#[derive(Serialize, JsonSchema)]
struct OfSize {
    size_bytes: u64,
    fresh_ns: Option<f64>,
    reused_ns: Option<f64>,
    across_threads_ns: Option<f64>,
}

/// The size from which on reused blocks are faulted in again each time.
#[derive(Serialize, JsonSchema)]
struct Cliff {
    /// Its range reaches down to the size before: nothing was measured between them.
    size_bytes: Estimate,
    before_ns: f64,
    after_ns: f64,
}

impl Probe for Malloc {
    type Point = Blocks;
    type Evidence = Evidence;
    type Details = Answered;
    type Findings = Findings;
    type Session<'env> = Processes<'env>;

    const SPEC: Spec = Spec {
        id: "alloc.malloc",
        tier: Tier::Alloc,
        title: "malloc and free by size",
        question: "What do malloc and free cost here, from which size on do their pages come from the \
            system each time, and is another allocator faster?",
        method: "An operation is malloc, a write of one word to each page of the block (to its beginning \
            where it is smaller), reading the first word back, and free: untouched memory costs only \
its address, and programs do not allocate for that. Each value is a window of at least 50 µs, or one \
operation that takes longer.

Reused: one block after the other of the same size, so that free blocks are found where they were put (in \
glibc's thread cache, up to 1 KiB). Fresh: blocks that make 1 MiB together, or one larger one, are all \
allocated, then all freed, \
and their pages are given back to the system before the next round, untimed (malloc_trim), so that they are \
new: the page faults are part of the figure, and are counted. \
mimalloc and jemalloc keep pages deliberately, even when asked to return them: each of their rounds is the \
first one of a new process.

glibc gives blocks from 128 KiB on a mapping of their own; freeing one raises that threshold to its size, \
up to 32 MiB, so that from then on such blocks come from the heap and stay there. Above 32 MiB every block \
is mapped, faulted in and unmapped again. \
What a size costs therefore depends on the sizes that were freed before: each size of 128 KiB or more is \
measured in a process of its own, and both thresholds are determined in new processes too. \
The trim cliff is the size from which on at least half of a reused block's pages are faulted in again each \
time: from there on each free returns memory to the system.

Across threads: one thread allocates and touches, and another one on another CPU reads and frees; blocks \
are handed over through a ring, 64 at a time. A value is the time until the last block was freed, divided \
by the number of blocks, with both sides working.

Every allocator runs in child processes with its library preloaded. The child reports which library the \
dynamic linker bound malloc to, and its version: when it is not the requested one, there is no figure. \
The user's own preload is removed for these processes. Timed by the system's monotonic clock (20-50 ns a \
window).",
        method_version: 1,
        convention: "one malloc, one word written to each page, one free",
        needs: &["child processes", "Linux"],
        touches: &["memory: up to 64 MiB a block, at most half of what may be used, in child processes"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Blocks> {
        let largest = largest(env);
        if let Some(reason) = heap::refused(env, largest >= 64 << 10, "2 MiB of memory") {
            return Plan::no(reason);
        }
        let plan = Plan::of(points(env))
            // The block in use, and what glibc keeps of it in each process: up to twice the sizes below,
            // which are a quarter of the next at most (half in the thorough profile).
            .memory((largest * 4).max(2 << 20))
            .cpus(if env.cpus.len() > 1 { 2 } else { 1 });
        if !heap::can_keep() {
            return plan.degraded(
                "this C library has no malloc_trim: it decides itself which freed memory it keeps",
            );
        }
        if largest < LARGEST {
            let largest = binary_size(largest);
            return plan
                .degraded(format!("blocks end at {largest}: an eighth of the memory that may be used"));
        }
        plan
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Blocks]) -> Result<Processes<'env>> {
        let (mut allocators, not_installed) = heap::found();
        allocators.insert(0, Allocator::SYSTEM);
        Ok(Processes { env, allocators, not_installed, children: Vec::new(), thresholds: None })
    }

    fn conclude(&self, header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let page_bytes = crate::page_bytes(&header.machine) as f64;
        let mut names: Vec<Name> = Vec::new();
        for figure in figures {
            if !names.contains(&figure.point.allocator) {
                names.push(figure.point.allocator);
            }
        }
        let allocators: Vec<OfAllocator> =
            names.into_iter().map(|name| of_allocator(name, figures, page_bytes)).collect();
        let not_installed = figures.iter().find_map(|figure| figure.details.as_ref()?.not_installed.clone());
        (!allocators.is_empty()).then_some(Findings { allocators, not_installed })
    }
}

fn points(env: &Env) -> Vec<Planned<Blocks>> {
    let mut points = Vec::new();
    let (others, _) = heap::found();
    let profile = env.settings.profile;
    let quick = profile == Profile::Quick;
    let mut add = |allocator, size_bytes, state, placement, priority| {
        points.push(planned(env, Blocks { allocator, size_bytes, state, placement }, priority));
    };
    for size in sizes(env) {
        // The ends of the scale and the steps between them, then the rest.
        let first = QUICK.contains(&size) || size == LARGEST;
        for state in [State::Reused, State::Fresh] {
            add(Name::System, size, state, Placement::SameThread, u8::from(!first));
        }
        for other in &others {
            if size > LARGEST_OF_OTHERS && profile != Profile::Thorough {
                continue;
            }
            let priority = if QUICK.contains(&size) { u8::from(quick) } else { 3 };
            add(other.name, size, State::Reused, Placement::SameThread, priority);
            if QUICK.contains(&size) || profile == Profile::Thorough {
                add(other.name, size, State::Fresh, Placement::SameThread, priority.max(2));
            }
        }
    }
    if env.cpus.len() > 1 {
        for size in ACROSS.into_iter().filter(|size| *size <= largest(env)) {
            add(Name::System, size, State::Reused, Placement::AcrossThreads, 1);
            for other in &others {
                add(other.name, size, State::Reused, Placement::AcrossThreads, 3);
            }
        }
    }
    points
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
    if most < 512 << 10 { 0 } else { power_of_two(most).min(LARGEST) }
}

fn planned(env: &Env, point: Blocks, priority: u8) -> Planned<Blocks> {
    let is_system = point.allocator == Name::System;
    let is_same_thread = point.placement == Placement::SameThread;
    let pages = (point.size_bytes / heap::page_bytes() as u64) as f64;
    let block_s = match point.state {
        _ if !is_same_thread => 20e-3,
        State::Fresh if !is_system => START_S + pages * FAULT_NS / 1e9,
        State::Fresh => 5e-3_f64.max(pages * FAULT_NS / 1e9),
        State::Reused if point.size_bytes > 32 << 20 => pages * FAULT_NS / 1e9,
        State::Reused => 4e-3,
    };
    Planned {
        rank: match point.size_bytes {
            _ if !(is_system && is_same_thread) => Rank::Detail,
            HEADLINE_BYTES => env.headline_but_quick(Rank::Curve),
            _ => Rank::Curve,
        },
        priority,
        // Only the first visit of a process's first size pays for its start.
        setup_s: if point.size_bytes >= OWN_PROCESS && is_system { START_S / 6.0 } else { 1e-4 },
        block_s,
        ..Planned::new(point)
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
    allocator: Name,
    /// Of sizes that move thresholds: the size.
    size: u64,
    /// Whether a second thread was ever started: a C library may lock from then on.
    threads: bool,
    /// Whether memory is given back between operations: it would be missing where blocks are reused.
    gives_back: bool,
}

impl Heap {
    fn of(point: &Blocks) -> Self {
        let moves = point.allocator == Name::System && point.size_bytes >= OWN_PROCESS;
        let threads = point.placement == Placement::AcrossThreads;
        Self {
            allocator: point.allocator,
            size: if moves { point.size_bytes } else { 0 },
            threads,
            gives_back: point.state == State::Fresh && !threads,
        }
    }
}

struct Process {
    child: Child,
    answering: Answering,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    answering: Answering,
    /// Blocks of memory that were refused, lost, or held another word.
    wrong: u64,
    faults: FaultTally,
    /// Whether pages that were given back were seen to come again as they were.
    keeps: bool,
}

/// The child processes, by the history of their heaps.
pub struct Processes<'env> {
    env: &'env Env,
    allocators: Vec<Allocator>,
    not_installed: Vec<Name>,
    children: Vec<(Heap, Process)>,
    /// glibc's thresholds, asked for once: in a new process, and the largest.
    thresholds: Option<[Option<u64>; 2]>,
}

impl Processes<'_> {
    fn process(&mut self, point: &Blocks) -> Result<&mut Process> {
        let allocator = self.allocators.iter().find(|own| own.name == point.allocator);
        let allocator = allocator.ok_or_else(|| ProbeError::no_point(&point.to_point()))?;
        kept(&mut self.children, Heap::of(point), || {
            let mut child = heap::start(self.env, Malloc::SPEC.id, allocator)?;
            match child.ask(&Request::Describe)? {
                Answer::Description(answering) => Ok(Process { child, answering }),
                _ => Err(confused()),
            }
        })
    }

    fn use_of(&self, point: &Blocks) -> Result<Use> {
        if point.placement == Placement::SameThread {
            return Ok(if point.state == State::Fresh { Use::Fresh } else { Use::Reused });
        }
        let none = || ProbeError::no_point(&point.to_point());
        Ok(Use::Across { cpu: other_cpus(self.env).next().ok_or_else(none)? })
    }

    fn thresholds(&mut self) -> [Option<u64>; 2] {
        if let Some(known) = self.thresholds {
            return known;
        }
        let ask = || {
            let mut child = heap::start(self.env, Malloc::SPEC.id, &Allocator::SYSTEM)?;
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
    ProbeError::Other("the measuring child sent an unexpected answer".to_owned())
}

impl Session<Malloc> for Processes<'_> {
    fn select(&mut self, point: &Blocks) -> Result<()> {
        self.use_of(point)?;
        self.process(point).map(drop)
    }

    fn block(&mut self, point: &Blocks, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let is_system = point.allocator == Name::System;
        let how = self.use_of(point)?;
        if how == Use::Fresh && !is_system {
            // The others keep pages on purpose, whatever they are told: only a new process has none.
            self.children.retain(|(heap, _)| *heap != Heap::of(point));
        }
        let process = self.process(point)?;
        let request = Request::Take {
            size_bytes: point.size_bytes,
            how,
            rounds: if is_system { 3 } else { 1 },
            ops_per_window: block.chosen_window_ops(),
        };
        let Answer::Taken(taken) = process.child.ask(&request)? else { return Err(confused()) };
        heap::absorb(block, &taken.block);
        evidence.answering.clone_from(&process.answering);
        evidence.wrong += taken.wrong;
        evidence.faults.add(taken.faults, taken.block.ops);
        evidence.keeps |= !taken.renews;
        Ok(())
    }

    fn proof(&mut self, point: &Blocks, evidence: &Evidence) -> Proof<Answered> {
        let is_system = point.allocator == Name::System;
        let [mmap_threshold_bytes, mmap_threshold_largest_bytes] =
            if is_system { self.thresholds() } else { [None, None] };
        let Evidence { answering, wrong, faults, .. } = evidence;
        let held = Check {
            name: "blocks held their words".to_owned(),
            ok: faults.ops > 0 && *wrong == 0,
            detail: format!(
                "{wrong} of {} blocks were refused, lost, or held another word than was written",
                faults.ops
            ),
        };
        let answered = Answered {
            library: Some(answering.library.clone()),
            version: answering.version.clone(),
            minor_faults_per_op: faults.per_op(),
            not_installed: Some(self.not_installed.clone()),
            mmap_threshold_bytes,
            mmap_threshold_largest_bytes,
        };
        let mut proof =
            Proof::of(vec![answers(point.allocator, answering), held]).with(answered).by(&answering.engine());
        if point.placement == Placement::AcrossThreads {
            proof.work = Work { convention: Some(ACROSS_CONVENTION.to_owned()), ..Work::default() };
        }
        if point.state == State::Fresh {
            if faults.uncounted {
                proof.flags.push(heap::NOT_PROVED_NEW.to_owned());
            } else {
                let gives_back = is_system && heap::can_keep() && !evidence.keeps;
                judge_freshness(&mut proof, point.size_bytes, faults, gives_back);
            }
        }
        proof
    }
}

/// Whether the allocator that was asked for is the one that answered.
fn answers(wanted: Name, answering: &Answering) -> Check {
    let is = |name| answering.name == name;
    let ok = match wanted {
        Name::System => !is("mimalloc") && !is("jemalloc"),
        Name::Mimalloc => is("mimalloc") && answering.version.is_some(),
        Name::Jemalloc => is("jemalloc") && answering.version.is_some(),
    };
    Check {
        name: "allocator answered".to_owned(),
        ok,
        detail: format!("malloc was bound to {}", answering.engine()),
    }
}

/// New pages are the point of "fresh": glibc gives back what it is told to; the others keep some of it on
/// purpose.
fn judge_freshness<D>(proof: &mut Proof<D>, size_bytes: u64, tally: &FaultTally, gives_back: bool) {
    let expected = size_bytes as f64 * tally.ops as f64 / heap::page_bytes() as f64;
    let share = tally.faults as f64 / expected.max(1.0);
    if gives_back {
        proof.checks.push(Check {
            name: "memory was new".to_owned(),
            ok: share >= NEW_SHARE,
            detail: format!("{} page faults for {expected:.0} pages of blocks", tally.faults),
        });
    } else if share < NEW_SHARE {
        proof.flags.push(format!(
            "degraded: {:.0} % of the pages were new; the allocator kept the others",
            share * 100.0
        ));
    }
}

fn of_allocator(allocator: Name, figures: &[Figure<Malloc>], page_bytes: f64) -> OfAllocator {
    let own = || figures.iter().filter(move |figure| figure.point.allocator == allocator);
    let sizes: BTreeSet<u64> = own().map(|figure| figure.point.size_bytes).collect();
    let row = |size_bytes: u64| {
        let ns = |state, placement| {
            Some(result_at(figures, &Blocks { allocator, size_bytes, state, placement })?.p50)
        };
        OfSize {
            size_bytes,
            fresh_ns: ns(State::Fresh, Placement::SameThread),
            reused_ns: ns(State::Reused, Placement::SameThread),
            across_threads_ns: ns(State::Reused, Placement::AcrossThreads),
        }
    };
    let details = own().find_map(|figure| figure.details.clone()).unwrap_or_default();
    OfAllocator {
        allocator,
        library: details.library,
        version: details.version,
        mmap_threshold_bytes: details.mmap_threshold_bytes,
        mmap_threshold_largest_bytes: details.mmap_threshold_largest_bytes,
        sizes: sizes.into_iter().map(row).collect(),
        trim_cliff: cliff(allocator, figures, page_bytes),
    }
}

fn cliff(allocator: Name, figures: &[Figure<Malloc>], page_bytes: f64) -> Option<Cliff> {
    let size = |figure: &Figure<Malloc>| figure.point.size_bytes as f64;
    let [before, after] = around_cliff(allocator, figures, page_bytes)?;
    let of_rounds = Rounds::of(figures)
        .estimate(|figures| Some(size(around_cliff(allocator, figures, page_bytes)?[1])))?;
    Some(Cliff {
        size_bytes: of_rounds.reaching([size(before), size(after)]),
        before_ns: before.result.p50,
        after_ns: after.result.p50,
    })
}

/// The sizes before and after it.
fn around_cliff(
    allocator: Name,
    figures: &[Figure<Malloc>],
    page_bytes: f64,
) -> Option<[&Figure<Malloc>; 2]> {
    let mut reused: Vec<(&Figure<Malloc>, bool)> = figures
        .iter()
        .filter(|figure| {
            let Blocks { allocator: own, state, placement, .. } = figure.point;
            (own, state, placement) == (allocator, State::Reused, Placement::SameThread)
        })
        .filter_map(|figure| {
            let pages = figure.point.size_bytes as f64 / page_bytes;
            let faults = figure.details.as_ref()?.minor_faults_per_op?;
            Some((figure, faults >= (0.5 * pages).max(0.5)))
        })
        .collect();
    reused.sort_by_key(|(figure, _)| figure.point.size_bytes);
    let before = reused.iter().rposition(|(_, again)| !again)?;
    Some([reused[before].0, reused.get(before + 1)?.0])
}

#[cfg(test)]
mod tests;
