//! The child's side: lists of nodes, built in one way after the other.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "regions begin on a page, blocks are aligned by their allocator, and nodes are multiples of 32 \
        bytes apart"
)]

use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use latlab_harness::RemoteBlock;
use latlab_probes_shared::prelude::*;

use crate::ahead;
use crate::heap::{self, Region, nanoseconds};

/// A node of the list: 28 bytes, 32 with padding.
#[repr(C)]
pub(super) struct Node {
    next: *mut Node,
    payload: [u8; PAYLOAD],
}

pub(super) const NODE: usize = size_of::<Node>();
const PAYLOAD: usize = 20;
const TEXT: [u8; PAYLOAD] = *b"This is a sample tex";
/// The payload's last bytes hold the node's number, so that the walk can tell a node that was left out.
const NUMBER_AT: usize = PAYLOAD - 4;
const LINE: usize = 64;
/// Lines between the node that is written and the one that is asked for. 512 bytes are some twenty
/// nanoseconds of building.
const AHEAD: usize = 8 * LINE;
/// Blocks by which the heap is grown when its pages are touched alone: below the size that has a mapping of
/// its own (128 KiB).
const STRETCH: usize = 64 << 10;

/// Memory beyond the list's own: what is fetched ahead of its end, and what else the heap holds.
const SLACK: usize = 1 << 20;
/// Bytes whose lines are fetched before as many nodes are built on them: few enough for a first-level cache,
/// enough for the clock.
const WARM: usize = 16 << 10;

/// A way to come by nodes; the three last ones are parts of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    Malloc,
    Arena,
    ArenaAligned,
    ArenaPrefetch,
    Pool,
    ArenaTouched,
    Vec,
    Touch,
    MallocKept,
    Stores,
}

impl Way {
    pub(super) const ALL: [Self; 10] = [
        Self::Malloc,
        Self::Arena,
        Self::ArenaTouched,
        Self::Touch,
        Self::MallocKept,
        Self::Stores,
        Self::Vec,
        Self::Pool,
        Self::ArenaAligned,
        Self::ArenaPrefetch,
    ];

    /// Bytes of new pages that a build touches for each node; none where the pages are there already.
    /// `chunk` is what `malloc` takes.
    pub(super) fn new_bytes_per_node(self, chunk: usize) -> usize {
        match self {
            Self::Malloc | Self::Touch => chunk,
            Self::Arena | Self::ArenaPrefetch | Self::Vec => NODE,
            Self::ArenaAligned => LINE,
            Self::Pool | Self::ArenaTouched | Self::MallocKept | Self::Stores => 0,
        }
    }

    /// Whether it is a part of `malloc`'s cost rather than a way to build a list.
    pub(super) fn is_part(self) -> bool {
        matches!(self, Self::Touch | Self::MallocKept | Self::Stores)
    }

    /// Whether its pages are the heap's.
    fn is_in_heap(self) -> bool {
        matches!(self, Self::Malloc | Self::Touch | Self::MallocKept | Self::Vec)
    }

    fn stride(self) -> usize {
        if self == Self::ArenaAligned { LINE } else { NODE }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) way: Way,
    pub(super) nodes: u64,
    pub(super) builds: u32,
}

/// What came of one build.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Built {
    /// Timed, ns.
    pub(super) ns: f64,
    /// Nodes that the walk met, up to one more than asked for.
    pub(super) walked: u64,
    /// Whether every node carried its number and its text.
    pub(super) intact: bool,
    /// Page faults inside the timed region.
    pub(super) faults: u64,
    /// Cost of a page fault, where pages were touched alone, ns.
    pub(super) fault_ns: Option<f64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) block: RemoteBlock,
    pub(super) built: Vec<Built>,
    /// Bytes that `malloc` takes for a node, header included.
    pub(super) chunk_bytes: usize,
    /// Whether the kernel counts page faults one by one, those of this way's memory at least.
    pub(super) counts_faults: bool,
}

/// What a child keeps from build to build.
pub(super) struct Workshop {
    pool: Option<Pool>,
    chunk: usize,
    counts_faults: bool,
    renews_heap: bool,
}

impl Workshop {
    /// Touches as much memory as a build takes once: where the host has to find memory for the guest first, a
    /// fault takes several times as long, and the first list alone would pay for it.
    pub(super) fn new(nodes: u64) -> Result<Self> {
        heap::as_in_a_new_process();
        let bytes = length(nodes, LINE);
        let region = heap::new_pages(bytes)?;
        touch_pages(region.base(), bytes);
        Ok(Self {
            pool: None,
            chunk: heap::chunk_bytes(NODE),
            counts_faults: heap::counts_faults(),
            renews_heap: heap::renews() || !heap::can_keep(),
        })
    }

    pub(super) fn answer(&mut self, request: &Request) -> Result<Answer> {
        let mut built = Vec::with_capacity(request.builds as usize);
        let block = RemoteBlock::gather(request.nodes, |values| {
            for _ in 0..request.builds.max(1) {
                let one = self.build(request.way, request.nodes)?;
                values.push(one.ns / request.nodes.max(1) as f64);
                built.push(one);
            }
            Ok(())
        })?;
        Ok(Answer {
            block,
            built,
            chunk_bytes: self.chunk,
            counts_faults: self.counts_faults && (self.renews_heap || !request.way.is_in_heap()),
        })
    }

    pub(super) fn build(&mut self, way: Way, nodes: u64) -> Result<Built> {
        match way {
            Way::Malloc => Ok(from_malloc(nodes)),
            Way::MallocKept => from_heap_that_is_there(nodes, self.chunk),
            Way::Stores => stores(nodes, self.chunk),
            Way::Touch => touch_heap(nodes, self.chunk),
            Way::Vec => Ok(from_vec(nodes)),
            Way::Pool => {
                if self.pool.as_ref().is_none_or(|pool| pool.nodes != nodes) {
                    self.pool = Some(Pool::new(nodes)?);
                }
                let built = self.pool.as_mut().map(Pool::build);
                built.ok_or_else(|| ProbeError::Other("no pool".to_owned()))
            }
            Way::Arena | Way::ArenaAligned | Way::ArenaPrefetch => {
                let region = heap::new_pages(length(nodes, way.stride()))?;
                Ok(from_region(&region, way, nodes))
            }
            Way::ArenaTouched => {
                let bytes = length(nodes, NODE);
                let region = heap::new_pages(bytes)?;
                let ((), touching) = counted(|| touch_pages(region.base(), bytes));
                Ok(Built { fault_ns: touching.fault_ns(), ..from_region(&region, way, nodes) })
            }
        }
    }
}

fn length(nodes: u64, stride: usize) -> usize {
    usize::try_from(nodes).unwrap_or(usize::MAX).saturating_mul(stride)
}

fn touch_pages(base: *mut u8, bytes: usize) {
    for offset in (0..bytes).step_by(heap::page_bytes()) {
        // SAFETY: the caller's memory has `bytes`.
        unsafe { base.add(offset).write_volatile(1) };
    }
}

/// A list under way.
struct List {
    first: *mut Node,
    last: *mut Node,
    nodes: u64,
}

impl List {
    const EMPTY: Self = Self { first: null_mut(), last: null_mut(), nodes: 0 };

    /// Adds so many nodes from `new`, which says where the next one lies. Ends early when that is nowhere.
    #[inline]
    fn extend(&mut self, nodes: u64, mut new: impl FnMut() -> *mut Node) {
        let (mut last, mut number) = (self.last, self.nodes);
        let end = number + nodes;
        if last.is_null() && number < end {
            last = new();
            self.first = last;
            if last.is_null() {
                return;
            }
            // SAFETY: room for a node of ours.
            unsafe { fill(last, number) };
            number += 1;
        }
        while number < end {
            let node = new();
            if node.is_null() {
                break;
            }
            // SAFETY: `node` is room for a node of ours, and `last` is the one before it.
            unsafe {
                fill(node, number);
                (*last).next = node;
            }
            last = node;
            number += 1;
        }
        (self.last, self.nodes) = (last, number);
        black_box(self);
    }
}

/// Builds a list of nodes from `new`.
#[inline]
fn build(nodes: u64, new: impl FnMut() -> *mut Node) -> *mut Node {
    let mut list = List::EMPTY;
    list.extend(nodes, new);
    list.first
}

/// Builds a list on memory that is there, a stretch at a time, and fetches the lines of each stretch before
/// it is timed: a page fault leaves a page's lines in the cache too, and waiting for memory must not count
/// twice.
fn build_warm(
    count: u64,
    chunk: usize,
    mut new: impl FnMut() -> *mut Node,
    start: *mut u8,
) -> (*mut Node, Built) {
    let stretch = (WARM / chunk) as u64;
    let mut list = List::EMPTY;
    let mut ns = 0.0;
    let faults = heap::minor_faults();
    while list.nodes < count {
        let ahead = if list.last.is_null() { start } else { list.last.cast() };
        warm(ahead);
        let before = list.nodes;
        let begun = Instant::now();
        list.extend(stretch.min(count - before), &mut new);
        ns += nanoseconds(begun);
        if list.nodes == before {
            break;
        }
    }
    let took = Took { ns, faults: heap::minor_faults() - faults };
    (list.first, took.for_list(walk(list.first, count)))
}

/// Fetches the lines of a stretch and a little more.
fn warm(begin: *const u8) {
    for offset in (0..WARM + 4 * LINE).step_by(LINE) {
        // SAFETY: both callers have taken so much more memory than their nodes need (`SLACK`).
        black_box(unsafe { begin.add(offset).read_volatile() });
    }
}

/// # Safety
/// `node` is writable room for a node.
#[inline]
unsafe fn fill(node: *mut Node, number: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        (&raw mut (*node).payload).write(payload(number));
        (&raw mut (*node).next).write(null_mut());
    }
}

#[inline]
fn payload(number: u64) -> [u8; PAYLOAD] {
    let mut payload = TEXT;
    #[expect(clippy::cast_possible_truncation, reason = "lists are shorter than 2^32")]
    payload[NUMBER_AT..].copy_from_slice(&(number as u32).to_le_bytes());
    payload
}

/// Walks the list: how many nodes there are, and whether each carries what it was given.
fn walk(first: *const Node, nodes: u64) -> (u64, bool) {
    let (mut node, mut walked, mut intact) = (first, 0u64, true);
    // One more than asked for is enough to know that there are too many, and a ring ends.
    while !node.is_null() && walked <= nodes {
        // SAFETY: the list was built of nodes that still exist; its last link is null.
        let (next, held) = unsafe { ((*node).next, (*node).payload) };
        intact &= held == payload(walked);
        walked += 1;
        node = next;
    }
    (walked, intact)
}

/// What a piece of work took.
struct Took {
    ns: f64,
    faults: u64,
}

impl Took {
    /// Where it did nothing but touch pages.
    fn fault_ns(&self) -> Option<f64> {
        (self.faults > 0).then(|| self.ns / self.faults as f64)
    }

    /// Of a list with so many nodes, whole or not.
    fn for_list(self, (walked, intact): (u64, bool)) -> Built {
        Built { ns: self.ns, walked, intact, faults: self.faults, fault_ns: None }
    }
}

/// Times work and counts its page faults.
#[inline]
fn counted<R>(work: impl FnOnce() -> R) -> (R, Took) {
    let before = heap::minor_faults();
    let begun = Instant::now();
    let result = work();
    let ns = nanoseconds(begun);
    (result, Took { ns, faults: heap::minor_faults() - before })
}

/// Times a build, counts its faults, and walks it.
fn timed(nodes: u64, work: impl FnOnce() -> *mut Node) -> (*mut Node, Built) {
    let (first, took) = counted(work);
    (first, took.for_list(walk(first, nodes)))
}

/// Moves on through memory, a node each time.
#[inline]
fn bump(begin: *mut u8, stride: usize) -> impl FnMut() -> *mut Node {
    let mut next = begin;
    move || {
        let node = next;
        next = next.wrapping_add(stride);
        node.cast()
    }
}

fn from_region(region: &Region, way: Way, nodes: u64) -> Built {
    let mut bump = bump(region.base(), way.stride());
    let built = if way == Way::ArenaPrefetch {
        timed(nodes, || {
            build(nodes, || {
                let node = bump();
                ahead::to_write(node.cast::<u8>().wrapping_add(AHEAD));
                node
            })
        })
    } else {
        timed(nodes, || build(nodes, bump))
    };
    built.1
}

#[inline]
fn allocate() -> *mut Node {
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(NODE) }.cast()
}

/// Frees a list node by node.
///
/// # Safety
/// Each of its nodes came from [`allocate`], and nothing else refers to it.
unsafe fn free(first: *mut Node) {
    let mut node = first;
    while !node.is_null() {
        // SAFETY: the caller's promise; the link is read before the node goes.
        unsafe {
            let next = (*node).next;
            libc::free(node.cast());
            node = next;
        }
    }
}

fn from_malloc(nodes: u64) -> Built {
    heap::give_back();
    let (first, built) = timed(nodes, || build(nodes, allocate));
    // SAFETY: built of malloc's nodes just now.
    unsafe { free(first) };
    heap::give_back();
    built
}

/// The same calls where every page is there already: the heap was grown and freed before, and has kept it.
fn from_heap_that_is_there(nodes: u64, chunk: usize) -> Result<Built> {
    heap::keep_what_is_freed();
    let bytes = length(nodes, chunk) + SLACK;
    // SAFETY: any size may be asked for; what is not there is null.
    let block = unsafe { libc::malloc(bytes) };
    if !block.is_null() {
        touch_pages(block.cast(), bytes);
    }
    // SAFETY: a block of malloc's, or null.
    unsafe { libc::free(block) };
    let built = if block.is_null() {
        Err(ProbeError::Other(format!("a heap of {} MiB was refused", bytes >> 20)))
    } else {
        let (first, built) = build_warm(nodes, chunk, allocate, block.cast());
        // SAFETY: built of malloc's nodes just now.
        unsafe { free(first) };
        Ok(built)
    };
    heap::as_in_a_new_process();
    heap::give_back();
    built
}

/// The list alone, as far apart as malloc's nodes, in memory that is there.
fn stores(nodes: u64, chunk: usize) -> Result<Built> {
    let bytes = length(nodes, chunk) + SLACK;
    let region = heap::new_pages(bytes)?;
    touch_pages(region.base(), bytes);
    Ok(build_warm(nodes, chunk, bump(region.base(), chunk), region.base()).1)
}

/// Grows the heap by as much as `malloc` takes for the list, and touches each page once: the faults and the
/// growing alone.
fn touch_heap(nodes: u64, chunk: usize) -> Result<Built> {
    heap::give_back();
    let page = heap::page_bytes();
    let stretches = length(nodes, chunk).div_ceil(STRETCH);
    let ((first, grown), touching) = counted(|| {
        let mut first: *mut *mut u8 = null_mut();
        let mut grown = 0;
        while grown < stretches {
            // SAFETY: any size may be asked for.
            let block = unsafe { libc::malloc(STRETCH) }.cast::<u8>();
            if block.is_null() {
                break;
            }
            for offset in (block.align_offset(page)..STRETCH).step_by(page) {
                // SAFETY: inside the block.
                unsafe { block.add(offset).write_volatile(1) };
            }
            let link = block.cast::<*mut u8>();
            // SAFETY: the block's first word, which malloc has aligned.
            unsafe { link.write(first.cast()) };
            first = link;
            grown += 1;
        }
        (first, grown)
    });
    let mut block = first;
    while !block.is_null() {
        // SAFETY: the chain of blocks that was linked above; the link is read before the block goes.
        unsafe {
            let next = block.read().cast::<*mut u8>();
            libc::free(block.cast());
            block = next;
        }
    }
    heap::give_back();
    if grown < stretches {
        return Err(ProbeError::Other("the heap could not grow".to_owned()));
    }
    let fault_ns = touching.fault_ns();
    Ok(Built { fault_ns, ..touching.for_list((nodes, true)) })
}

/// Nodes in a vector that grows as it is pushed to; a link is the next one's number, because the vector
/// moves.
fn from_vec(nodes: u64) -> Built {
    heap::give_back();
    let (list, took) = counted(|| {
        let mut list: Vec<Node> = Vec::new();
        for number in 0..nodes {
            let next = std::ptr::without_provenance_mut(list.len());
            if let Some(last) = list.last_mut() {
                last.next = next;
            }
            list.push(Node { next: null_mut(), payload: payload(number) });
        }
        black_box(list)
    });
    let (mut at, mut walked, mut intact) = (0usize, 0u64, true);
    while let Some(node) = list.get(at).filter(|_| walked <= nodes) {
        intact &= node.payload == payload(walked);
        walked += 1;
        at = node.next.addr();
        if at == 0 {
            break;
        }
    }
    took.for_list((walked, intact))
}

/// Nodes that were used before and hang on a free list.
struct Pool {
    free: *mut Node,
    nodes: u64,
    /// The nodes' memory.
    _region: Region,
}

impl Pool {
    fn new(nodes: u64) -> Result<Self> {
        let region = heap::new_pages(length(nodes, NODE))?;
        let free = build(nodes, bump(region.base(), NODE));
        Ok(Self { free, nodes, _region: region })
    }

    fn build(&mut self) -> Built {
        let mut free = self.free;
        let take = || {
            let node = free;
            if !node.is_null() {
                // SAFETY: a free node links to the next free one.
                free = unsafe { (*node).next };
            }
            node
        };
        let (first, built) = timed(self.nodes, || build(self.nodes, take));
        // Back one by one, as a program frees a list from its head: the next build takes them in the opposite
        // order.
        let mut node = first;
        while !node.is_null() {
            // SAFETY: the list that was built; the link is read before it is turned round.
            unsafe {
                let next = (*node).next;
                (*node).next = free;
                free = node;
                node = next;
            }
        }
        self.free = free;
        built
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_way_builds_the_whole_list_again_and_again() {
        let mut workshop = Workshop::new(3_000).expect("a small list");
        for way in Way::ALL {
            for _ in 0..3 {
                let built = workshop.build(way, 3_000).expect("a small list");
                assert_eq!((built.walked, built.intact), (3_000, true), "{way:?} {built:?}");
            }
        }
    }

    /// An arena that skips the work of one node, or gives one twice.
    fn planted(fault: impl Fn(u64, *mut Node) -> *mut Node) -> Built {
        let region = heap::new_pages(1_000 * NODE).expect("a small arena");
        let (mut bump, mut numbers) = (bump(region.base(), NODE), 0..);
        let new = || fault(numbers.next().expect("endless"), bump());
        timed(1_000, || build(1_000, new)).1
    }

    #[test]
    fn a_node_that_is_skipped_handed_out_twice_or_missing_is_noticed() {
        let sound = planted(|_, node| node);
        assert_eq!((sound.walked, sound.intact), (1_000, true));
        let twice = planted(|number, node| if number == 500 { node.wrapping_sub(1) } else { node });
        assert!(twice.walked != 1_000 || !twice.intact, "{twice:?}");
        let missing = planted(|number, node| if number == 999 { null_mut() } else { node });
        assert_eq!(missing.walked, 999);

        let region = heap::new_pages(1_000 * NODE).expect("a small arena");
        let way = Way::Arena;
        let base = region.base().cast::<Node>();
        from_region(&region, way, 1_000);
        // SAFETY: the third of a thousand nodes is taken out of the list.
        unsafe { (*base.add(1)).next = base.add(3) };
        assert_eq!(walk(base, 1_000), (999, false));
    }

    #[test]
    fn a_chunk_of_malloc_is_larger_than_its_node() {
        let chunk = heap::chunk_bytes(NODE);
        assert!((NODE..=4 * NODE).contains(&chunk), "{chunk}");
        #[cfg(target_env = "gnu")]
        assert_eq!(chunk, 48, "32 bytes, 8 of header, in steps of 16");
    }
}
