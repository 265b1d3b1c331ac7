//! Linux: mmap(2), munmap(2), mprotect(2), madvise(2).

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps, Support};
use latlab_record::{Check, Pages, Point};
use rustix::mm::Advice;

use super::{Operation, calls};
use crate::region::{self, Region, Trust};

pub(super) fn page_bytes() -> u64 {
    region::page_bytes() as u64
}

pub(super) fn supports() -> Support {
    let trust = Trust::of_this_system();
    if trust.residency && trust.discard && populates() {
        Support::Yes
    } else if trust.residency && trust.discard {
        Support::Degraded("MAP_POPULATE gives no memory here, so map-populate is left out".to_owned())
    } else {
        Support::No(
            "mincore does not say here which pages have memory, so nothing shows what a call did".to_owned(),
        )
    }
}

pub(super) fn populates() -> bool {
    region::map_populate_works()
}

pub(super) fn open(env: &Env) -> Result<Box<dyn AnySession + '_>, ProbeError> {
    Ok(Box::new(Mapping { stamps: stamps(env)?, selected: Point::default(), tallies: Vec::new() }))
}

fn stamps(env: &Env) -> Result<Stamps, ProbeError> {
    Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other("mapping memory takes real time".to_owned()))
}

struct Tally {
    point: Point,
    calls: u64,
    wrong: u64,
}

struct Mapping {
    stamps: Stamps,
    selected: Point,
    tallies: Vec<Tally>,
}

/// No huge pages in this process as long as this lives; what held before holds again afterwards.
struct NoHugePages {
    before: Option<libc::c_int>,
}

impl NoHugePages {
    fn begin() -> Self {
        // SAFETY: the calls take numbers only.
        let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
        // SAFETY: as above.
        let set = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
        Self { before: (before >= 0 && set == 0).then_some(before) }
    }
}

impl Drop for NoHugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: as above.
            let _restored = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, before, 0, 0, 0) };
        }
    }
}

/// Times one call; its stamps, and whether what it left is not what it should be. With `left_out`, the call is not made.
fn timed(
    stamps: Stamps,
    operation: Operation,
    bytes: usize,
    left_out: bool,
) -> Result<(u64, u64, bool), ProbeError> {
    let pages = bytes / region::page_bytes();
    let failed = |error: rustix::io::Errno| ProbeError::System {
        what: operation.name().to_owned(),
        source: error.into(),
    };
    if matches!(operation, Operation::Map | Operation::MapPopulate) {
        let populate = operation == Operation::MapPopulate;
        let begin = stamps.begin();
        let region = Region::plain(bytes, populate != left_out).map_err(failed)?;
        let end = stamps.end();
        let wanted = if populate { pages } else { 0 };
        return Ok((begin, end, region.resident() != Some(wanted)));
    }
    let region = Region::anonymous(bytes, Pages::Base)?;
    region.touch();
    let touched = region.resident() == Some(pages);
    let (base, begin, end, as_it_should);
    match operation {
        Operation::Unmap => {
            base = region.base();
            if left_out {
                return Ok((0, 0, region.resident().is_some()));
            }
            begin = stamps.begin();
            let unmapped = region.unmap();
            end = stamps.end();
            unmapped.map_err(failed)?;
            // Another thread of the process may have taken the place meanwhile, but hardly with touched pages.
            as_it_should = region::resident(base, bytes).is_none_or(|found| found < pages);
        }
        Operation::Protect => {
            begin = stamps.begin();
            let protected = if left_out { Ok(()) } else { region.protect() };
            end = stamps.end();
            protected.map_err(failed)?;
            as_it_should = !kernel_may_write(region.base());
        }
        _ => {
            begin = stamps.begin();
            let given = if left_out { Ok(()) } else { region.advise(Advice::LinuxDontNeed) };
            end = stamps.end();
            given.map_err(failed)?;
            as_it_should = region.resident() == Some(0);
        }
    }
    Ok((begin, end, !(touched && as_it_should)))
}

/// Whether the kernel writes a time to this address for us, or refuses (EFAULT).
fn kernel_may_write(to: *mut u8) -> bool {
    // SAFETY: a page of ours, of which nothing is kept; the kernel checks it itself.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, to) == 0 }
}

/// One call, perhaps left out: whether that was seen.
#[cfg(test)]
pub(super) fn one_call(env: &Env, operation: Operation, left_out: bool) -> Result<bool, ProbeError> {
    timed(stamps(env)?, operation, 1 << 18, left_out).map(|(_, _, wrong)| wrong)
}

impl AnySession for Mapping {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        if Operation::of(point).is_none() || point.size_bytes.is_none() {
            return Err(ProbeError::Other(format!("there is no call {}", point.label())));
        }
        self.selected = point.clone();
        if !self.tallies.iter().any(|tally| tally.point == *point) {
            self.tallies.push(Tally { point: point.clone(), calls: 0, wrong: 0 });
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let (Some(operation), Some(size)) = (Operation::of(&self.selected), self.selected.size_bytes) else {
            return Err(ProbeError::Other("no call is selected".to_owned()));
        };
        let bytes = usize::try_from(size).map_err(|_| ProbeError::Other("too large".to_owned()))?;
        let no_huge_pages = (operation == Operation::MapPopulate).then(NoHugePages::begin);
        for _ in 0..calls(size) {
            let (begin, end, wrong) = timed(self.stamps, operation, bytes, false)?;
            block.span(begin, end);
            if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.point == self.selected) {
                tally.calls += 1;
                tally.wrong += u64::from(wrong);
            }
        }
        drop(no_huge_pages);
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(tally) = self.tallies.iter().find(|tally| tally.point == *point) else {
            return Proof::default();
        };
        Proof {
            checks: vec![Check {
                name: "each call did what it says".to_owned(),
                ok: tally.calls > 0 && tally.wrong == 0,
                detail: format!("{} of {} left something else", tally.wrong, tally.calls),
            }],
            ..Proof::default()
        }
    }
}
