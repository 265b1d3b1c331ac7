//! Linux: memset, `MADV_POPULATE_WRITE`, writes to huge pages.

use std::hint::black_box;

use latlab_harness::{AnySession, Batch, Block, Env, ProbeError, Proof, Support};
use latlab_record::{Check, Pages, Point};
use rustix::mm::Advice;

use super::{HUGE, WINDOWS};
use crate::region::{Region, Trust, page_bytes, populate_write_works};

pub(super) fn supports() -> Support {
    if Trust::of_this_system().residency && populates() {
        Support::Yes
    } else if Trust::of_this_system().residency {
        Support::Degraded(
            "MADV_POPULATE_WRITE (Linux 5.14) gives no memory here, so the kernel's rate in 4 KiB pages is left out"
                .to_owned(),
        )
    } else {
        Support::No(
            "mincore does not say here which pages have memory, so nothing shows that memory was new"
                .to_owned(),
        )
    }
}

pub(super) fn populates() -> bool {
    populate_write_works()
}

pub(super) fn open(_: &Env) -> Result<Box<dyn AnySession + '_>, ProbeError> {
    match supports() {
        Support::No(reason) => Err(ProbeError::Other(reason)),
        _ => Ok(Box::new(Clearing::new())),
    }
}

struct Tally {
    point: Point,
    calls: u64,
    wrong_words: u64,
    there_before: u64,
    missing_after: u64,
}

struct Clearing {
    selected: Point,
    tallies: Vec<Tally>,
    resident: Option<Region>,
    fill: u8,
    #[cfg(test)]
    planted: bool,
}

/// Distance of the words that are looked at afterwards: each page, at another line.
const LOOK: usize = 4096 + 64;

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
                    let step = usize::try_from(HUGE).unwrap_or(usize::MAX);
                    for offset in (0..region.bytes()).step_by(step) {
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
        .step_by(LOOK)
        .chain([last])
        // SAFETY: inside the region; LOOK is a multiple of a word.
        .filter(|offset| unsafe { region.word(*offset).read_volatile() } != wanted)
        .count() as u64
}

impl Clearing {
    fn new() -> Self {
        Self {
            selected: Point::default(),
            tallies: Vec::new(),
            resident: None,
            fill: 0,
            #[cfg(test)]
            planted: false,
        }
    }

    fn tally(&mut self) -> Result<&mut Tally, ProbeError> {
        let selected = &self.selected;
        self.tallies
            .iter_mut()
            .find(|tally| tally.point == *selected)
            .ok_or_else(|| ProbeError::Other("nothing is selected".to_owned()))
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.selected.size_bytes.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    fn resident(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let bytes = self.bytes();
        let region = match self.resident.take() {
            Some(region) if region.bytes() == bytes => region,
            _ => {
                let region = Region::anonymous(bytes, Pages::Base)?;
                region.touch();
                region
            }
        };
        let mut work = Resident { region: &region, fill: self.fill, calls: 0 };
        if self.selected.size_bytes > Some(super::SMALL) {
            block.set_windows(WINDOWS);
            block.set_window_ops(1);
        }
        block.rates(&mut work, bytes as u64);
        let (fill, calls) = (work.fill, work.calls);
        self.fill = fill;
        #[cfg(test)]
        if self.planted {
            // SAFETY: inside the region.
            unsafe { region.word(LOOK).write_volatile(0) };
        }
        let wrong = wrong_words(&region, fill);
        self.resident = Some(region);
        let tally = self.tally()?;
        tally.calls += calls;
        tally.wrong_words += wrong;
        Ok(())
    }

    fn fresh(&mut self, block: &mut Block, how: How) -> Result<(), ProbeError> {
        // Both would not fit.
        self.resident = None;
        let bytes = self.bytes();
        let pages = self.selected.pages.unwrap_or(Pages::Base);
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
        let used = &work.regions[..work.used];
        let wanted = used.len() * (bytes / page_bytes());
        let missing = wanted.abs_diff(there(used)) as u64;
        let wrong: u64 = used
            .iter()
            .map(|region| wrong_words(region, if how == How::Memset { work.fill } else { 0 }))
            .sum();
        let calls = used.len() as u64;
        if let Some(refused) = work.refused {
            return Err(ProbeError::Other(refused));
        }
        let tally = self.tally()?;
        tally.calls += calls;
        tally.there_before += before;
        tally.missing_after += missing;
        tally.wrong_words += wrong;
        Ok(())
    }
}

/// The checks of a block in which a page was touched too early, or not cleared.
#[cfg(test)]
pub(super) fn planted(env: &Env, point: &Point) -> Vec<Check> {
    use latlab_harness::{AnyProbe, Planned, Spec};

    struct Planting;
    impl AnyProbe for Planting {
        fn spec(&self) -> &'static Spec {
            super::Zero.spec()
        }
        fn supports(&self, env: &Env) -> Support {
            super::Zero.supports(env)
        }
        fn points(&self, env: &Env) -> Vec<Planned> {
            super::Zero.points(env)
        }
        fn memory_bytes(&self, env: &Env) -> u64 {
            super::Zero.memory_bytes(env)
        }
        fn open<'env>(
            &'env self,
            _: &'env Env,
            _: &[Planned],
        ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
            let mut clearing = Clearing::new();
            clearing.planted = true;
            Ok(Box::new(clearing))
        }
    }
    latlab_harness::measure_once(&Planting, env, &[Planned::new(point.clone())])
        .pop()
        .expect("one outcome")
        .1
        .checks
}

impl AnySession for Clearing {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.selected = point.clone();
        if !self.tallies.iter().any(|tally| tally.point == *point) {
            self.tallies.push(Tally {
                point: point.clone(),
                calls: 0,
                wrong_words: 0,
                there_before: 0,
                missing_after: 0,
            });
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        match (self.selected.operation.as_deref(), self.selected.pages) {
            (Some("memset"), _) => self.resident(block),
            (Some("memset-fresh"), _) => self.fresh(block, How::Memset),
            (Some("kernel"), Some(Pages::Huge)) => self.fresh(block, How::WriteToHugePages),
            (Some("kernel"), _) => self.fresh(block, How::Populate),
            _ => Err(ProbeError::Other(format!("there is no clearing {}", self.selected.label()))),
        }
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(tally) = self.tallies.iter().find(|tally| tally.point == *point) else {
            return Proof::default();
        };
        let mut checks = vec![Check {
            name: "contents".to_owned(),
            ok: tally.calls > 0 && tally.wrong_words == 0,
            detail: format!("after {} calls {} words hold something else", tally.calls, tally.wrong_words),
        }];
        let operation = point.operation.as_deref();
        if operation != Some("memset") {
            checks.push(Check {
                name: "memory was new".to_owned(),
                ok: tally.there_before == 0,
                detail: format!("{} pages had memory before", tally.there_before),
            });
            let huge = point.pages == Some(Pages::Huge);
            // memset touches every page itself: that all are there says nothing of their size.
            let name = if huge && operation == Some("kernel") {
                "huge pages obtained"
            } else {
                "all of it has memory now"
            };
            checks.push(Check {
                name: name.to_owned(),
                ok: tally.missing_after == 0,
                detail: format!("{} pages have none afterwards", tally.missing_after),
            });
        }
        Proof { checks, ..Proof::default() }
    }
}
