//! `vm.fault`: what touching a page costs, touch by touch, for each reason that a page can be missing.

use latlab_harness::{
    AnyProbe, AnySession, Env, MemorySource, Operations, Planned, PointResult, ProbeError, Rank, Spec,
    Stamps, Support, Tier,
};
use latlab_record::{Header, Pages, Point, Record, Unit, binary_size};
use serde_json::json;

#[cfg_attr(target_os = "linux", path = "fault/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "fault/other.rs")]
mod system;

/// The probe.
pub struct Fault;

static SPEC: Spec = Spec {
    id: "vm.fault",
    tier: Tier::Vm,
    title: "touching a page for the first time",
    question: "What does it cost to touch memory or a mapped file for the first time, and why are some touches slower than others?",
    method: "One word of each page is read or written, each touch between two time stamps of its own, pages in ascending order; mapping, preparing and unmapping are outside. \
The stamps go to a buffer that was touched before, because a fault of the instrument's own would be counted among those that are measured.

first-write: new anonymous memory: the kernel finds a free page, clears it and maps it. first-read: the same memory is only read: the kernel maps its one page of zeros. write-after-read: the write that follows such a read: \
a page is found and cleared, and the translation that pointed to the zeros is taken back. recycled: memory that was used, given back with MADV_DONTNEED and is used again. copy-on-write: the first write to a page of a private mapping (of a file in memory) that had been read: \
the kernel copies it. That is the copy that a write after fork makes too (within 6 % of it where both were measured), without a second process. \
Huge pages are refused for all of these (MADV_NOHUGEPAGE): a first touch that clears 2 MiB, among those that clear 4 KiB, would be neither. With huge pages, asked for and aligned, one touch maps and clears 2 MiB.

file-minor: a read of a mapped file that is in the page cache. The kernel maps neighbours along with the page, 64 KiB at a time (fault-around), so one touch in 64 KiB is a fault: that is measured, and the other pages are touched afterwards to see that they needed none. \
MADV_RANDOM does not change that. The file was written page by page; of one that the page cache holds in larger pieces, as it does for files written or read in large pieces on newer kernels, one fault maps several times as much, and a page costs less than half. For what one page alone costs, each page is a mapping of its own, where there are no neighbours. \
file-major: the file was synced, taken out of the page cache (mincore shows that no page is left) and is read in random order with MADV_RANDOM, so that nothing is read ahead. What answers is the device, or a cache below the kernel, such as the host's in a virtual machine: this is not known here. \
The files are small, hold incompressible data, have no name, and lie in the folder that is measured or else the user's cache.

Proof: no page had memory before (mincore), and the thread's own count of page faults (getrusage) rose by one for each touch, never by less, and by more only for a stray fault of the thread's own. A page that was there already, or two pages mapped by one fault, fail the record. Where the system's counts fail a trial on known pages, this is said.

The distribution often has several modes. They are found on the logarithmic axis: groups of at least 0.5 % of the touches, their medians a factor of 1.4 or more apart, with a valley between them that is half as deep as the lower one is high; low and high are a group's 5 % and 95 % quantiles. \
What a mode is likely to be is said only as far as its operation, its share and whether this is a virtual machine tell it.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one touch; size_bytes is what its fault maps",
    needs: &[
        "Linux",
        "4 MiB of memory",
        "for file faults a folder on a disk",
    ],
    touches: &[
        "memory up to 18 MiB",
        "two files of 8 MiB without a name, in the folder that is measured or the user's cache folder",
    ],
    saturates: false,
    operations: Operations::Faults,
};

/// Memory whose pages are touched in one block: the caches below the last one hold less.
const SPAN: u64 = 8 << 20;
/// Parts of the allowed memory that a span may be: a copied one exists twice, and files are in the page cache.
const PARTS: u64 = 8;
const LEAST_SPAN: u64 = 256 << 10;
/// Bytes that a huge page maps.
const HUGE: u64 = 2 << 20;
/// Huge pages touched in one block.
const HUGE_PAGES: u64 = 8;
/// What the kernel maps around a fault of a file, unless root changed it (`fault_around_bytes`, `mm/memory.c`).
const AROUND: u64 = 64 << 10;

/// How much is touched in a block here.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    page: u64,
    span: u64,
    huge_pages: u64,
}

fn sizes(env: &Env) -> Sizes {
    let parts = env.memory_bytes / PARTS;
    let span = if parts == 0 { 0 } else { 1u64 << parts.ilog2() };
    Sizes {
        page: system::page_bytes(),
        span: span.min(SPAN),
        huge_pages: (env.memory_bytes / HUGE).saturating_sub(2).min(HUGE_PAGES),
    }
}

/// What a touch does, in words of its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    FirstWrite,
    FirstRead,
    WriteAfterRead,
    CopyOnWrite,
    Recycled,
    FileMinor,
    FileMajor,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::FirstWrite,
        Self::FirstRead,
        Self::WriteAfterRead,
        Self::CopyOnWrite,
        Self::Recycled,
        Self::FileMinor,
        Self::FileMajor,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::FirstWrite => "first-write",
            Self::FirstRead => "first-read",
            Self::WriteAfterRead => "write-after-read",
            Self::CopyOnWrite => "copy-on-write",
            Self::Recycled => "recycled",
            Self::FileMinor => "file-minor",
            Self::FileMajor => "file-major",
        }
    }

    fn of(point: &Point) -> Option<Self> {
        let name = point.operation.as_deref()?;
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Whether a page of memory has to be found for it.
    fn allocates(self) -> bool {
        matches!(self, Self::FirstWrite | Self::WriteAfterRead | Self::CopyOnWrite | Self::Recycled)
    }
}

impl AnyProbe for Fault {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if matches!(env.memory, MemorySource::Simulated(_)) || Stamps::of(&env.clock).is_none() {
            return Support::No("simulated memory has no pages".to_owned());
        }
        if sizes(env).span < LEAST_SPAN {
            return Support::No(format!(
                "needs 4 MiB of memory; {} may be used here",
                binary_size(env.memory_bytes)
            ));
        }
        system::supports()
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let sizes = sizes(env);
        let touches = (sizes.span / sizes.page) as f64;
        let mut points = Vec::new();
        let mut add = |operation: Operation, pages, size_bytes, block_s: f64| {
            points.push(Planned {
                rank: match (operation, pages) {
                    (Operation::FirstWrite, Pages::Base) => Rank::Headline,
                    (Operation::FirstWrite | Operation::FirstRead, _) => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                },
                // Nothing lasts from one block to the next: each makes its own memory.
                setup_s: 1e-5,
                block_s,
                ..Planned::new(Point {
                    operation: Some(operation.name().to_owned()),
                    pages: Some(pages),
                    size_bytes: Some(size_bytes),
                    ..Point::default()
                })
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
        let mut written = Vec::new();
        for planned in &mut points {
            if let Some(operation @ (Operation::FileMinor | Operation::FileMajor)) =
                Operation::of(&planned.point)
            {
                // The first visit writes the file and waits for the device, later ones look at the page cache.
                planned.first_s = 2e-2;
                planned.group = 1;
                if !written.contains(&operation.name()) {
                    written.push(operation.name());
                    planned.laid_out_bytes = sizes.span;
                }
            }
        }
        points
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        let sizes = sizes(env);
        // Original and copy, or huge pages and what aligning them takes; and both files in the page cache.
        let anonymous = (2 * sizes.span).max((sizes.huge_pages + 1) * HUGE);
        (anonymous + 2 * sizes.span).min(env.memory_bytes)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        system::open(env, sizes(env))
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let mut kinds: Vec<(usize, serde_json::Value)> = results
            .iter()
            .filter_map(|result| {
                let operation = Operation::of(&result.point)?;
                let place = Operation::ALL.iter().position(|own| *own == operation)?;
                let modes = result.findings.as_ref().map(|findings| findings["modes"].clone());
                let kind = json!({
                    "operation": operation.name(),
                    "pages": result.point.pages,
                    "size_bytes": result.point.size_bytes,
                    "p50_ns": result.p50,
                    "modes": modes.unwrap_or_else(|| json!([])),
                });
                let huge = usize::from(result.point.pages == Some(Pages::Huge));
                Some((2 * place + huge, kind))
            })
            .collect();
        if kinds.is_empty() {
            return Vec::new();
        }
        kinds.sort_by_key(|(place, kind)| (*place, kind["size_bytes"].as_u64()));
        let kinds: Vec<serde_json::Value> = kinds.into_iter().map(|(_, kind)| kind).collect();
        vec![SPEC.derived(json!({ "kinds": kinds }))]
    }
}

/// A mode with less than this share of the touches is rare: refills of the per-CPU list of free pages (one in 28 seen, `mm/page_alloc.c`),
/// new page tables (one in 512) and interrupts stay below it.
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
        return "a slower answer from below the page cache: the device, its queue or the host's storage, not known which".to_owned();
    }
    if share < RARE {
        let one_in = (1.0 / share).round();
        let why = if allocates && pages == Pages::Base {
            "a refill of the CPU's own list of free pages, a new page table, a lock that was held, or an interrupt"
        } else {
            "a new page table, a lock that was held, or an interrupt"
        };
        return format!("one touch in {one_in:.0}: {why}");
    }
    if above < NEAR {
        return "within a factor of two of the first: pages that are no longer in a cache, or a slower core; not known which".to_owned();
    }
    match (allocates, guest) {
        (true, Some(true)) => {
            "memory that the host had not backed yet and had to find first (only in a virtual machine), or a kernel short of free pages"
        }
        (true, Some(false)) => "not known; no host is involved: free pages of another node, or a busy lock of the allocator",
        (true, None) => "not known: the host's part if this is a virtual machine, else the allocator",
        (false, _) => "not known",
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
