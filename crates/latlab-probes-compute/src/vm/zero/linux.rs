//! Linux: memset, `MADV_POPULATE_WRITE`, writes to huge pages.

use std::hint::black_box;

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::walk::to_usize;
use rustix::mm::Advice;

use super::{Cleared, Clearing, HUGE, SMALL, WINDOWS, Zero};
use crate::region::{Region, Trust, page_bytes, populate_write_works};

pub(super) fn supports() -> Support {
    let lost = "MADV_POPULATE_WRITE (Linux 5.14) gives no memory here, so the kernel's rate in 4 KiB pages \
        is left out";
    let seen = Trust::of_this_system().residency;
    Trust::support(seen, populate_write_works(), lost, "that memory was new")
}

pub(super) type Session<'env> = Clearer;

pub(super) fn open(_env: &Env) -> Result<Clearer> {
    match supports() {
        Support::No(reason) => Err(ProbeError::Other(reason)),
        _ => Ok(Clearer::default()),
    }
}

/// The memory that has its pages, and what it was last filled with.
#[derive(Default)]
pub struct Clearer {
    resident: Option<Region>,
    fill: u8,
    #[cfg(test)]
    planted: bool,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    calls: u64,
    wrong_words: u64,
    /// Pages that had memory before, and those that had none afterwards; of new memory.
    there_before: u64,
    missing_after: u64,
}

/// Distance of the words that are checked afterwards: each page, at another line.
const CHECK_STEP: usize = 4096 + 64;

/// memset over memory that has its pages.
struct Resident<'r> {
    region: &'r Region,
    fill: u8,
    calls: u64,
}

impl Batch for Resident<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let mut sum = 0u64;
        for _ in 0..ops {
            self.fill = next(self.fill);
            set(self.region, self.fill);
            // SAFETY: the last word of the region.
            sum = sum.wrapping_add(unsafe { self.region.word(self.region.bytes() - 8).read_volatile() });
        }
        self.calls += ops;
        sum
    }
}

/// Never zero: new memory holds zeros.
fn next(fill: u8) -> u8 {
    fill.checked_add(1).unwrap_or(1)
}

fn set(region: &Region, fill: u8) {
    // SAFETY: the region's own bytes; the address is hidden, so that the call is made as it stands.
    unsafe { black_box(region.base()).write_bytes(black_box(fill), region.bytes()) };
}

/// What is done to memory that nobody touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Memset,
    Populate,
    WriteToHugePages,
}

struct Fresh {
    regions: Vec<Region>,
    used: usize,
    how: How,
    fill: u8,
    refused: Option<String>,
}

impl Batch for Fresh {
    fn run(&mut self, ops: u64) -> u64 {
        let mut sum = 0u64;
        for _ in 0..ops {
            let Some(region) = self.regions.get(self.used) else {
                self.refused = Some("a window had no new memory left".to_owned());
                return sum;
            };
            self.used += 1;
            match self.how {
                How::Memset => set(region, self.fill),
                How::Populate => {
                    if let Err(error) = region.advise(Advice::LinuxPopulateWrite) {
                        self.refused =
                            Some(format!("MADV_POPULATE_WRITE ({error}); Linux knows it from 5.14 on"));
                    }
                }
                How::WriteToHugePages => {
                    for offset in (0..region.bytes()).step_by(to_usize(HUGE)) {
                        // SAFETY: inside the region.
                        unsafe { region.word(offset).write_volatile(0) };
                    }
                }
            }
            // SAFETY: the region's first word.
            sum = sum.wrapping_add(unsafe { region.word(0).read_volatile() });
        }
        sum
    }
}

/// Words, one a page, that are not what the memory was filled with.
fn wrong_words(region: &Region, fill: u8) -> u64 {
    let wanted = u64::from_ne_bytes([fill; 8]);
    let last = region.bytes() - 8;
    (0..last)
        .step_by(CHECK_STEP)
        .chain([last])
        // SAFETY: inside the region; CHECK_STEP is a multiple of a word.
        .filter(|offset| unsafe { region.word(*offset).read_volatile() } != wanted)
        .count() as u64
}

impl Clearer {
    fn resident(&mut self, point: &Cleared, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let bytes = to_usize(point.size_bytes);
        let region = match self.resident.take() {
            Some(region) if region.bytes() == bytes => region,
            _ => {
                let region = Region::anonymous(bytes, Pages::Base)?;
                region.touch();
                region
            }
        };
        let mut work = Resident { region: &region, fill: self.fill, calls: 0 };
        if point.size_bytes > SMALL {
            block.set_windows(WINDOWS);
            block.set_window_ops(1);
        }
        block.rates(&mut work, bytes as u64);
        self.fill = work.fill;
        evidence.calls += work.calls;
        #[cfg(test)]
        if self.planted {
            // SAFETY: inside the region.
            unsafe { region.word(CHECK_STEP).write_volatile(0) };
        }
        evidence.wrong_words += wrong_words(&region, self.fill);
        self.resident = Some(region);
        Ok(())
    }

    fn fresh(&mut self, point: &Cleared, how: How, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        // Both would not fit.
        self.resident = None;
        let (bytes, pages) = (to_usize(point.size_bytes), point.pages);
        let regions =
            (0..=WINDOWS).map(|_| Region::anonymous(bytes, pages)).collect::<Result<Vec<_>, _>>()?;
        #[cfg(test)]
        if self.planted {
            // SAFETY: inside the region.
            unsafe { regions[1].word(page_bytes()).write_volatile(1) };
        }
        let there = |regions: &[Region]| -> usize {
            regions.iter().map(|region| region.resident().unwrap_or(0)).sum()
        };
        let before = there(&regions) as u64;
        self.fill = next(self.fill);
        let mut work = Fresh { regions, used: 0, how, fill: self.fill, refused: None };
        block.set_windows(WINDOWS);
        block.set_window_ops(1);
        block.rates(&mut work, bytes as u64);
        if let Some(refused) = work.refused {
            return Err(ProbeError::Other(refused));
        }
        let used = &work.regions[..work.used];
        let wanted = used.len() * (bytes / page_bytes());
        let fill = if how == How::Memset { work.fill } else { 0 };
        evidence.calls += used.len() as u64;
        evidence.there_before += before;
        evidence.missing_after += wanted.abs_diff(there(used)) as u64;
        evidence.wrong_words += used.iter().map(|region| wrong_words(region, fill)).sum::<u64>();
        Ok(())
    }
}

/// The checks of a block in which a page was touched too early, or not cleared.
#[cfg(test)]
pub(super) fn planted(env: &Env, point: &Cleared) -> Vec<Check> {
    use latlab_harness::{RemoteBlock, Session as _};

    let mut session = Clearer { planted: true, ..Clearer::default() };
    let mut evidence = Evidence::default();
    RemoteBlock::take(&env.clock, None, |block| session.block(point, &mut evidence, block))
        .expect("memory is there");
    session.proof(point, &evidence).checks
}

impl latlab_harness::Session<Zero> for Clearer {
    fn block(&mut self, point: &Cleared, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let how = match (point.operation, point.pages) {
            (Clearing::Memset, _) => return self.resident(point, evidence, block),
            (Clearing::MemsetFresh, _) => How::Memset,
            (Clearing::Kernel, Pages::Huge) => How::WriteToHugePages,
            (Clearing::Kernel, Pages::Base) => How::Populate,
        };
        self.fresh(point, how, evidence, block)
    }

    fn proof(&mut self, point: &Cleared, evidence: &Evidence) -> Proof<Nothing> {
        let Evidence { calls, wrong_words, there_before, missing_after } = evidence;
        let mut checks = vec![Check {
            name: "contents".to_owned(),
            ok: *calls > 0 && *wrong_words == 0,
            detail: format!("after {calls} calls {wrong_words} words hold something else"),
        }];
        if point.operation != Clearing::Memset {
            checks.push(Check {
                name: "memory was new".to_owned(),
                ok: *there_before == 0,
                detail: format!("{there_before} pages had memory before"),
            });
            // memset touches every page itself: that all are there says nothing of their size.
            let name = if (point.operation, point.pages) == (Clearing::Kernel, Pages::Huge) {
                "huge pages obtained"
            } else {
                "all of it has memory now"
            };
            checks.push(Check {
                name: name.to_owned(),
                ok: *missing_after == 0,
                detail: format!("{missing_after} pages have none afterwards"),
            });
        }
        Proof::of(checks)
    }
}
