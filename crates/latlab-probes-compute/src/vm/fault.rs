//! `vm.fault`: what touching a page costs, touch by touch, for each reason that a page can be missing.

use crate::levels::power_of_two;
use crate::{heap, no_memory};
use latlab_probes_shared::prelude::*;

#[cfg_attr(target_os = "linux", path = "fault/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/work.rs")]
mod system;

#[cfg(not(target_os = "linux"))]
const ELSEWHERE: &str = "page faults are measured on Linux only, so far";

/// The probe.
pub struct Fault;

/// Memory whose pages are touched in one block: the caches below the last one hold less.
const SPAN: u64 = 8 << 20;
/// Parts of the allowed memory that a span may be: a copied one exists twice, and files are in the page
/// cache.
const PARTS: u64 = 8;
const LEAST_SPAN: u64 = 256 << 10;
/// Bytes that a huge page maps.
const HUGE: u64 = 2 << 20;
/// Huge pages touched in one block.
const HUGE_PAGES: u64 = 8;
/// What the kernel maps around a fault of a file, unless root changed it
/// (`fault_around_bytes`, `mm/memory.c`).
const AROUND: u64 = 64 << 10;

/// How much is touched in a block here.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    page: u64,
    span: u64,
    huge_pages: u64,
}

fn sizes(env: &Env) -> Sizes {
    Sizes {
        page: heap::page_bytes() as u64,
        span: power_of_two(env.memory_bytes / PARTS).min(SPAN),
        huge_pages: (env.memory_bytes / HUGE).saturating_sub(2).min(HUGE_PAGES),
    }
}

/// What is touched, and how much one fault maps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Touch {
    operation: Operation,
    pages: Pages,
    size_bytes: u64,
}

/// What a touch does, in the order of the conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    FirstWrite,
    FirstRead,
    WriteAfterRead,
    CopyOnWrite,
    Recycled,
    FileMinor,
    FileMajor,
}

/// The touches of a point, by how long they took.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    modes: Vec<Mode>,
    touches: u64,
    /// Whether this system counts page faults, so that each touch is known to have been one.
    faults_counted: bool,
}

/// Touches that took about as long.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Mode {
    #[serde(flatten)]
    times: latlab_stats::modes::Mode,
    /// What they are likely to be.
    likely: String,
}

/// All kinds of touches beside each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    kinds: Vec<Kind>,
}

/// What a touch costs.
#[derive(Serialize, JsonSchema)]
struct Kind {
    operation: Operation,
    pages: Pages,
    size_bytes: u64,
    p50_ns: f64,
    modes: Vec<Mode>,
}

impl Operation {
    /// Whether a page of memory has to be found for it.
    fn allocates(self) -> bool {
        matches!(self, Self::FirstWrite | Self::WriteAfterRead | Self::CopyOnWrite | Self::Recycled)
    }
}

impl Probe for Fault {
    type Point = Touch;
    type Evidence = system::Evidence;
    type Details = Distribution;
    type Findings = Findings;
    type Session<'env> = system::Session<'env>;

    const SPEC: Spec = Spec {
        id: "vm.fault",
        tier: Tier::Vm,
        title: "touching a page for the first time",
        question: "What does it cost to touch memory or a mapped file for the first time, and why are some \
            touches slower than others?",
        method: "One word of each page is read or written, each touch between two time stamps of its own, \
            pages in ascending order; mapping, preparing and unmapping are outside. \
The stamps go to a buffer that was touched before, because a fault of the timer's own would be counted \
among those that are measured.

first-write: new anonymous memory: the kernel finds a free page, clears it and maps it. first-read: the \
same memory is only read: the kernel maps its one page of zeros. write-after-read: the write that follows \
such a read: \
a page is found and cleared, and the translation that pointed to the zeros is removed. recycled: memory \
that was used, given back with MADV_DONTNEED and is used again. copy-on-write: the first write to a page of \
a private mapping (of a file in memory) that had been read: \
the kernel copies it. That is the copy that a write after fork makes too (within 6 % of it where both were \
measured), without a second process. \
Huge pages are refused for all of these (MADV_NOHUGEPAGE): a first touch that clears 2 MiB does not belong \
among those that clear 4 KiB. With huge pages, asked for and aligned, one touch maps and clears 2 MiB.

file-minor: a read of a mapped file that is in the page cache. The kernel maps adjacent pages along with \
the page, 64 KiB at a time (fault-around), so one touch in 64 KiB is a fault: that is measured, and the \
other pages are touched afterwards to see that they needed none. \
MADV_RANDOM does not change that. The file was written page by page; where the page cache holds a file in \
larger pieces, as newer kernels do for files written or read in large pieces, one fault maps several times \
as much, and a page costs less than half. To measure one page alone, each page is a mapping of its own, \
without adjacent pages. \
file-major: the file was synced, evicted from the page cache (mincore shows that no page is left) and is \
read in random order with MADV_RANDOM, so that nothing is read ahead. What answers is the device, or a \
cache below the kernel, such as the host's in a virtual machine: which one is unknown. \
The files are small, hold incompressible data, have no name, and lie in the folder that is measured or else \
the user's cache.

Proof: no page had memory before (mincore), and the thread's own count of page faults (getrusage) rose by \
one for each touch, never by less, and by more only for a stray fault of the thread's own. A page that was \
there already, or two pages mapped by one fault, fail the record. Where the system's counts fail a trial on \
known pages, the record says so.

The distribution often has several modes. They are found on the logarithmic axis: groups of at least 0.5 % \
of the touches, their medians a factor of 1.4 or more apart, with a valley between them that is half as \
deep as the lower one is high; low and high are a group's 5 % and 95 % quantiles. \
The likely cause of a mode is derived only from its operation, its share and whether this is a virtual \
machine.",
        method_version: 1,
        convention: "one touch; size_bytes is what its fault maps",
        needs: &["Linux", "4 MiB of memory", "for file faults a folder on a disk"],
        touches: &[
            "memory up to 18 MiB",
            "two files of 8 MiB without a name, in the folder that is measured or the user's cache folder",
        ],
        operations: Operations::Faults,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Touch> {
        let sizes = sizes(env);
        if let Some(reason) = no_memory(env, sizes.span >= LEAST_SPAN, "4 MiB of memory") {
            return Plan::no(reason);
        }
        // Original and copy, or huge pages and what aligning them takes; and both files in the page cache.
        let anonymous = (2 * sizes.span).max((sizes.huge_pages + 1) * HUGE);
        let plan = Plan::of(points(env, sizes)).memory((anonymous + 2 * sizes.span).min(env.memory_bytes));
        plan.given(system::supports())
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Touch]) -> Result<system::Session<'env>> {
        system::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let kind = |figure: &Figure<Self>| {
            let Touch { operation, pages, size_bytes } = figure.point;
            let modes = figure.details.as_ref().map(|details| details.modes.clone()).unwrap_or_default();
            Kind { operation, pages, size_bytes, p50_ns: figure.result.p50, modes }
        };
        let mut kinds: Vec<Kind> = figures.iter().map(kind).collect();
        kinds.sort_by_key(|kind| (kind.operation, kind.pages, kind.size_bytes));
        (!kinds.is_empty()).then_some(Findings { kinds })
    }
}

fn points(env: &Env, sizes: Sizes) -> Vec<Planned<Touch>> {
    let touches = (sizes.span / sizes.page) as f64;
    let mut points: Vec<Planned<Touch>> = Vec::new();
    let mut add = |operation, pages, size_bytes, block_s: f64| {
        let is_file = matches!(operation, Operation::FileMinor | Operation::FileMajor);
        let is_first = points.iter().all(|planned| planned.point.operation != operation);
        points.push(Planned {
            rank: match (operation, pages) {
                (Operation::FirstWrite, Pages::Base) => Rank::Headline,
                (Operation::FirstWrite | Operation::FirstRead, _) => env.headline_but_quick(Rank::Detail),
                _ => Rank::Detail,
            },
            // Nothing lasts from one block to the next: each makes its own memory.
            setup_s: 1e-5,
            // The first visit writes the file and waits for the device, later ones look at the page cache.
            first_s: if is_file { 2e-2 } else { 0.0 },
            laid_out_bytes: if is_file && is_first { sizes.span } else { 0 },
            group: u16::from(is_file),
            block_s,
            ..Planned::new(Touch { operation, pages, size_bytes })
        });
    };
    add(Operation::FirstWrite, Pages::Base, sizes.page, touches * 1.5e-6);
    add(Operation::FirstRead, Pages::Base, sizes.page, touches * 0.6e-6);
    if sizes.huge_pages > 0 {
        add(Operation::FirstWrite, Pages::Huge, HUGE, sizes.huge_pages as f64 * 150e-6);
    }
    add(Operation::Recycled, Pages::Base, sizes.page, touches * 3e-6);
    add(Operation::CopyOnWrite, Pages::Base, sizes.page, touches * 4e-6);
    add(Operation::WriteAfterRead, Pages::Base, sizes.page, touches * 2.5e-6);
    // Where pages are as large there are no neighbours to map.
    if sizes.page < AROUND {
        add(Operation::FileMinor, Pages::Base, AROUND, 2e-3);
    }
    add(Operation::FileMinor, Pages::Base, sizes.page, 4e-3);
    add(Operation::FileMajor, Pages::Base, sizes.page, 6e-3);
    points
}

/// A mode with less than this share of the touches is rare: refills of the per-CPU list of free pages (one in
/// 28 seen, `mm/page_alloc.c`), new page tables (one in 512) and interrupts stay below it.
const RARE: f64 = 0.05;
/// A mode further above the first one than this is more than the caches and the frequency of the core make.
const NEAR: f64 = 2.0;

/// What a mode is likely to be; `above` is its median over that of the first one.
fn likely(
    operation: Operation,
    pages: Pages,
    nth: usize,
    above: f64,
    share: f64,
    guest: Option<bool>,
) -> String {
    let allocates = operation.allocates();
    if nth == 0 {
        return match (operation, pages) {
            (Operation::FirstWrite, Pages::Huge) => "a free block of 2 MiB at hand, cleared and mapped",
            (Operation::FirstWrite | Operation::Recycled, _) => "a free page at hand, cleared and mapped",
            (Operation::FirstRead, _) => "the one page of zeros mapped; nothing is cleared",
            (Operation::WriteAfterRead, _) => {
                "a free page at hand, cleared and put in the place of the zeros"
            }
            (Operation::CopyOnWrite, _) => "a free page at hand, filled with the copy",
            (Operation::FileMinor, _) => "pages of the page cache mapped; nothing is read",
            (Operation::FileMajor, _) => {
                "the fastest answer from below the page cache: device or a cache before it, not known which"
            }
        }
        .to_owned();
    }
    if operation == Operation::FileMajor {
        return "a slower answer from below the page cache: the device, its queue or the host's storage, not \
            known which".to_owned();
    }
    if share < RARE {
        let one_in = (1.0 / share).round();
        let why = if allocates && pages == Pages::Base {
            "a refill of the CPU's own list of free pages, a new page table, a lock that was held, or an \
                interrupt"
        } else {
            "a new page table, a lock that was held, or an interrupt"
        };
        return format!("one touch in {one_in:.0}: {why}");
    }
    if above < NEAR {
        return "within a factor of two of the first: pages that are no longer in a cache, or a slower core; \
            not known which".to_owned();
    }
    match (allocates, guest) {
        (true, Some(true)) => {
            "memory that the host had not backed yet and had to find first (only in a virtual machine), or \
                a kernel short of free pages"
        }
        (true, Some(false)) => {
            "not known; no host is involved: free pages of another node, or a busy lock \
            of the allocator"
        }
        (true, None) => "not known: the host's part if this is a virtual machine, else the allocator",
        (false, _) => "not known",
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
