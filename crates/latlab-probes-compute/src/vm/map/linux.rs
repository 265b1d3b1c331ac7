//! Linux: mmap(2), munmap(2), mprotect(2), madvise(2).

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::walk::to_usize;
use rustix::mm::Advice;

use super::{Call, Map, Operation, calls};
use crate::region::{self, Region, Trust};

pub(super) fn supports() -> Support {
    let trust = Trust::of_this_system();
    let lost = "MAP_POPULATE gives no memory here, so map-populate is left out";
    Trust::support(trust.residency && trust.discard, populates(), lost, "what a call did")
}

pub(super) fn populates() -> bool {
    region::map_populate_works()
}

pub(super) type Session<'env> = Calling;

pub(super) fn open(env: &Env) -> Result<Calling> {
    Ok(Calling { stamps: stamps(env)? })
}

fn stamps(env: &Env) -> Result<Stamps> {
    Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other("mapping memory takes real time".to_owned()))
}

/// How calls are timed.
pub struct Calling {
    stamps: Stamps,
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    calls: u64,
    /// Calls that left something else than they should.
    wrong: u64,
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

/// Times one call; its stamps, and whether what it left is not what it should be. With `left_out`, the call
/// is not made.
fn timed(stamps: Stamps, operation: Operation, bytes: usize, left_out: bool) -> Result<(u64, u64, bool)> {
    let pages = bytes / region::page_bytes();
    let failed = |error: rustix::io::Errno| refused(<&str>::from(operation), error);
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
            // Another thread of the process may have taken the place meanwhile, but hardly with touched
            // pages.
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
pub(super) fn one_call(env: &Env, operation: Operation, left_out: bool) -> Result<bool> {
    timed(stamps(env)?, operation, 1 << 18, left_out).map(|(_, _, wrong)| wrong)
}

impl latlab_harness::Session<Map> for Calling {
    fn block(&mut self, point: &Call, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let bytes = to_usize(point.size_bytes);
        let no_huge_pages = (point.operation == Operation::MapPopulate).then(NoHugePages::begin);
        for _ in 0..calls(point.size_bytes) {
            let (begin, end, wrong) = timed(self.stamps, point.operation, bytes, false)?;
            block.span(begin, end);
            evidence.calls += 1;
            evidence.wrong += u64::from(wrong);
        }
        drop(no_huge_pages);
        Ok(())
    }

    fn proof(&mut self, _point: &Call, Evidence { calls, wrong }: &Evidence) -> Proof<Nothing> {
        Proof::of(vec![Check {
            name: "each call did what it says".to_owned(),
            ok: *calls > 0 && *wrong == 0,
            detail: format!("{wrong} of {calls} left something else"),
        }])
    }
}
