//! The child's side: blocks that are allocated, touched and freed.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use latlab_harness::{RemoteBlock, pin_this_thread};
use latlab_probes_shared::prelude::*;

use crate::heap::{self, Answering, Region, block_of_windows, nanoseconds};

/// Blocks of memory that are allocated before the first of them is freed, where all are given back to the
/// system: as many as make this many bytes.
const ROUND_BYTES: usize = 1 << 20;
/// Largest number of blocks in a round: their addresses take half a megabyte.
const MOST_IN_A_ROUND: usize = ROUND_BYTES / 16;
/// Blocks on their way from one thread to the other, and how many are handed over at once.
const RING: usize = 1024;
const BATCH: u64 = 64;
/// A partner that does not answer for so long has no CPU.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Use {
    /// One block after the other of the same size.
    Reused,
    /// Many blocks, all freed, and their pages given back to the system.
    Fresh,
    /// Allocated here, freed by a thread on this CPU.
    Across { cpu: u32 },
}

#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// Who answers malloc?
    Describe,
    /// From which size on do blocks have mappings of their own, in a new process, and at most?
    Thresholds,
    /// A block of samples.
    Take {
        size_bytes: u64,
        how: Use,
        /// Of fresh blocks.
        rounds: u32,
        ops_per_window: Option<u64>,
    },
}

#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Description(Answering),
    Thresholds { new_bytes: Option<u64>, largest_bytes: Option<u64> },
    Taken(Taken),
}

/// A block of samples and what proves it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) block: RemoteBlock,
    /// Blocks that did not hold what was written to them, or were refused.
    pub(super) wrong: u64,
    /// Page faults in timed regions, where the kernel counts them.
    pub(super) faults: Option<u64>,
    /// Whether pages that were given back come anew, seen apart from the samples; of fresh blocks.
    pub(super) renews: bool,
}

/// What a child keeps.
pub(super) struct Bench {
    page: usize,
    counts_faults: bool,
    /// Looked at once, after the first fresh block: before it, it would leave pages in the heap.
    renews: Option<bool>,
    /// Addresses of a round's blocks, in memory of its own: a vector would disturb the heap that is measured.
    addresses: Region,
    /// Whether this size was used before: the first block of a size may move the allocator's thresholds.
    warmed: Vec<usize>,
}

impl Bench {
    pub(super) fn new() -> Result<Self> {
        let addresses = heap::new_pages(MOST_IN_A_ROUND * size_of::<usize>())?;
        let page = heap::page_bytes();
        for offset in (0..MOST_IN_A_ROUND * size_of::<usize>()).step_by(page) {
            // SAFETY: inside the region.
            unsafe { addresses.base().add(offset).write_volatile(0) };
        }
        Ok(Self {
            page,
            counts_faults: heap::counts_faults(),
            renews: None,
            addresses,
            warmed: Vec::with_capacity(64),
        })
    }

    pub(super) fn answer(&mut self, request: &Request) -> Result<Answer> {
        match request {
            Request::Describe => Ok(Answer::Description(heap::answering())),
            Request::Thresholds => Ok(Answer::Thresholds {
                new_bytes: threshold_of_a_new_process(),
                largest_bytes: largest_threshold(),
            }),
            Request::Take { size_bytes, how, rounds, ops_per_window } => {
                let size = usize::try_from(*size_bytes)
                    .map_err(|_| ProbeError::Other(format!("{size_bytes} bytes do not fit")))?;
                let taken = match how {
                    Use::Reused => self.reused(size, *ops_per_window),
                    Use::Fresh => self.fresh(size, *rounds),
                    Use::Across { cpu } => self.across(size, *cpu),
                }?;
                let faults = taken.faults.filter(|_| self.counts_faults);
                Ok(Answer::Taken(Taken { faults, ..taken }))
            }
        }
    }

    fn reused(&mut self, size: usize, ops_per_window: Option<u64>) -> Result<Taken> {
        let page = self.page;
        let mut wrong = 0;
        let mut run = |ops: u64| -> Result<f64> {
            let begun = Instant::now();
            for mark in 1..=ops {
                wrong += u64::from(!allocate_touch_free(size, page, mark));
            }
            Ok(nanoseconds(begun))
        };
        if !self.warmed.contains(&size) {
            self.warmed.push(size);
            run(1)?;
        }
        let (block, faults) = block_of_windows(ops_per_window, size > ROUND_BYTES, run)?;
        Ok(Taken { faults: Some(faults), wrong, block, ..Taken::default() })
    }

    fn fresh(&mut self, size: usize, rounds: u32) -> Result<Taken> {
        let count = (ROUND_BYTES / size).clamp(1, MOST_IN_A_ROUND);
        let rounds = if size > ROUND_BYTES { 1 } else { rounds };
        #[expect(clippy::cast_ptr_alignment, reason = "regions begin on a page")]
        let addresses = self.addresses.base().cast::<*mut u64>();
        let (mut wrong, mut faults) = (0, 0);
        heap::give_back();
        let block = RemoteBlock::gather(count as u64, |values| {
            for _ in 0..rounds {
                let before = heap::minor_faults();
                let begun = Instant::now();
                for number in 0..count {
                    // SAFETY: the region has room for the largest count; the block is touched where it
                    // exists.
                    unsafe {
                        let block = libc::malloc(size).cast::<u64>();
                        if !block.is_null() {
                            heap::touch(block, size, self.page, number as u64);
                        }
                        addresses.add(number).write(block);
                    }
                }
                for number in 0..count {
                    // SAFETY: written above; each block is freed once.
                    unsafe {
                        let block = addresses.add(number).read();
                        wrong += u64::from(block.is_null() || block.read() != number as u64);
                        libc::free(block.cast());
                    }
                }
                values.push(nanoseconds(begun) / count as f64);
                faults += heap::minor_faults() - before;
                heap::give_back();
            }
            Ok(())
        })?;
        Ok(Taken {
            faults: Some(faults),
            wrong,
            block,
            renews: *self.renews.get_or_insert_with(heap::renews),
        })
    }

    fn across(&mut self, size: usize, cpu: u32) -> Result<Taken> {
        let ops = ((16 << 20) / size as u64).clamp(2 * BATCH, 8192) / BATCH * BATCH;
        let mut wrong = 0;
        let page = self.page;
        // For this block only: a thread that waits for work keeps its CPU busy.
        with_partner(cpu, |ring| {
            ring.window(size, page, ops, |number| number)?;
            let before = heap::minor_faults();
            let block = RemoteBlock::gather(ops, |values| {
                for _ in 0..8 {
                    let (ns, lost) = ring.window(size, page, ops, |number| number)?;
                    wrong += lost;
                    values.push(ns / ops as f64);
                }
                Ok(())
            })?;
            let faults = Some(heap::minor_faults() - before);
            Ok(Taken { block, wrong, faults, ..Taken::default() })
        })
    }
}

/// Whether the block was there and held what was written to it.
#[inline]
fn allocate_touch_free(size: usize, page: usize, mark: u64) -> bool {
    // SAFETY: any size may be asked for; what is not there is null, and is not touched.
    unsafe {
        let block = black_box(libc::malloc(black_box(size))).cast::<u64>();
        if block.is_null() {
            return false;
        }
        heap::touch(block, size, page, mark);
        let held = block.read_volatile();
        libc::free(block.cast());
        held == mark
    }
}

/// Sizes between which a threshold is looked for, bytes: from below glibc's fixed one to above its largest.
const BETWEEN: (usize, usize) = (32 << 10, 96 << 20);

/// Whether a block lies in the heap that grows in place.
fn in_heap(block: *const u8, size: usize) -> Option<bool> {
    let end = heap::break_address()?;
    // Mappings lie far above the break.
    Some(block.addr() + size <= end)
}

/// The smallest size, to a page, from which on `is_mapped` says so; none where it never does, or always.
fn smallest(mut is_mapped: impl FnMut(usize) -> Option<bool>) -> Option<u64> {
    const STEP: usize = 4096;
    let (mut below, mut above) = (BETWEEN.0 / STEP, BETWEEN.1 / STEP);
    if is_mapped(below * STEP)? || !is_mapped(above * STEP)? {
        return None;
    }
    while above - below > 1 {
        let middle = usize::midpoint(below, above);
        if is_mapped(middle * STEP)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some((above * STEP) as u64)
}

/// The size from which on a new process's blocks are mapped one by one. Nothing is freed before the end:
/// freeing a mapped block moves the threshold.
fn threshold_of_a_new_process() -> Option<u64> {
    let mut blocks = Vec::with_capacity(64);
    let found = smallest(|size| {
        // SAFETY: any size may be asked for.
        let block = unsafe { libc::malloc(size) };
        if block.is_null() {
            return None;
        }
        blocks.push(block);
        in_heap(block.cast(), size).map(|inside| !inside)
    });
    for block in blocks {
        // SAFETY: a block of malloc's, freed once.
        unsafe { libc::free(block) };
    }
    found
}

/// The size from which on blocks are mapped however often such a block was freed before.
fn largest_threshold() -> Option<u64> {
    smallest(|size| {
        let mut inside = None;
        for _ in 0..2 {
            // SAFETY: any size may be asked for, and is freed once.
            unsafe {
                let block = black_box(libc::malloc(size));
                inside = (!block.is_null()).then(|| in_heap(block.cast(), size)).flatten();
                libc::free(block);
            }
        }
        inside.map(|inside| !inside)
    })
}

/// A ring that one thread fills and another empties.
#[derive(Default)]
struct Ring {
    slots: Vec<AtomicPtr<u64>>,
    /// Blocks handed over, by the thread that allocates.
    sent: AtomicU64,
    /// Blocks freed, by the thread that frees.
    freed: AtomicU64,
    /// Sum of what the freed blocks held.
    sum: AtomicU64,
    closed: AtomicBool,
}

/// Ends the thread that frees, however its user ends.
struct Closing<'a>(&'a Ring);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Relaxed);
    }
}

/// Gives `work` a ring whose blocks a thread on this CPU frees.
fn with_partner<R>(cpu: u32, work: impl FnOnce(&Ring) -> Result<R>) -> Result<R> {
    let ring = Ring { slots: (0..RING).map(|_| AtomicPtr::default()).collect(), ..Ring::default() };
    std::thread::scope(|scope| {
        let _closing = Closing(&ring);
        let frees = || {
            pin_this_thread(cpu);
            ring.free_what_comes();
        };
        let started = std::thread::Builder::new().name("frees".to_owned()).spawn_scoped(scope, frees);
        started.map_err(|error| refused("starting a thread that frees", error))?;
        work(&ring)
    })
}

impl Ring {
    /// Allocates, touches and hands over `ops` blocks, each with its number, which `mark` turns into what is
    /// written: until the last was freed, ns; and how many were refused, one more when the numbers did not
    /// arrive.
    fn window(&self, size: usize, page: usize, ops: u64, mark: impl Fn(u64) -> u64) -> Result<(f64, u64)> {
        let first = self.sent.load(Ordering::Relaxed);
        let sum = self.sum.load(Ordering::Relaxed);
        let begun = Instant::now();
        let mut refused = 0u64;
        let mut expected = 0u64;
        for number in first..first + ops {
            if (number - first).is_multiple_of(BATCH) {
                self.sent.store(number, Ordering::Release);
                self.wait_until(begun, |freed| number + BATCH <= freed + RING as u64)?;
            }
            // SAFETY: any size may be asked for; what is not there is null, and is not touched.
            let block = unsafe {
                let block = libc::malloc(size).cast::<u64>();
                if block.is_null() {
                    refused += 1;
                } else {
                    heap::touch(block, size, page, mark(number));
                    expected = expected.wrapping_add(number);
                }
                block
            };
            self.slot(number).store(block, Ordering::Relaxed);
        }
        self.sent.store(first + ops, Ordering::Release);
        self.wait_until(begun, |freed| freed == first + ops)?;
        let ns = nanoseconds(begun);
        let held = self.sum.load(Ordering::Acquire).wrapping_sub(sum);
        Ok((ns, refused + u64::from(held != expected)))
    }

    fn slot(&self, number: u64) -> &AtomicPtr<u64> {
        #[expect(clippy::cast_possible_truncation, reason = "a remainder below 1024")]
        let place = (number % RING as u64) as usize;
        &self.slots[place]
    }

    fn wait_until(&self, begun: Instant, enough: impl Fn(u64) -> bool) -> Result<()> {
        let mut spins = 0u32;
        while !enough(self.freed.load(Ordering::Acquire)) {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 14) {
                if begun.elapsed() > PATIENCE {
                    return Err(ProbeError::Other("the thread that frees has no CPU".to_owned()));
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn free_what_comes(&self) {
        let mut next = 0u64;
        let mut spins = 0u32;
        while !self.closed.load(Ordering::Relaxed) {
            let sent = self.sent.load(Ordering::Acquire);
            if sent == next {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(1 << 14) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
                continue;
            }
            let mut sum = self.sum.load(Ordering::Relaxed);
            while next < sent {
                let block = self.slot(next).load(Ordering::Relaxed);
                if !block.is_null() {
                    // SAFETY: handed over by the thread that allocated it, which does not touch it any more.
                    unsafe {
                        sum = sum.wrapping_add(block.read());
                        libc::free(block.cast());
                    }
                }
                next += 1;
                if next.is_multiple_of(BATCH) || next == sent {
                    self.sum.store(sum, Ordering::Relaxed);
                    self.freed.store(next, Ordering::Release);
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn take(bench: &mut Bench, size_bytes: u64, how: Use) -> Taken {
        let request = Request::Take { size_bytes, how, rounds: 3, ops_per_window: None };
        match bench.answer(&request) {
            Ok(Answer::Taken(taken)) => taken,
            Ok(_) => panic!("another answer"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn every_use_gives_windows_and_loses_no_block() {
        let mut bench = Bench::new().expect("a megabyte is there");
        for how in [Use::Reused, Use::Fresh, Use::Across { cpu: 0 }] {
            for size in [16, 1000, 300_000] {
                let taken = take(&mut bench, size, how);
                assert_eq!(taken.wrong, 0, "{how:?} {size}");
                assert!(!taken.block.values.is_empty() && taken.block.ops > 0);
            }
        }
    }

    #[test]
    fn a_block_that_is_changed_on_its_way_is_noticed() {
        let wrong = with_partner(0, |ring| {
            let window = |changed: u64| {
                let mark = |number| if number == changed { number + 1 } else { number };
                ring.window(64, 4096, 3_000, mark).map(|(_, wrong)| wrong)
            };
            Ok([window(u64::MAX)?, window(3_017)?, window(u64::MAX)?])
        });
        assert_eq!(wrong.expect("it frees"), [0, 1, 0]);
    }

    #[test]
    fn a_threshold_is_found_to_a_page() {
        assert_eq!(smallest(|size| Some(size >= 200_000)), Some(200_704));
        assert_eq!(smallest(|_| Some(false)), None);
        assert_eq!(smallest(|_| None), None);
    }
}
