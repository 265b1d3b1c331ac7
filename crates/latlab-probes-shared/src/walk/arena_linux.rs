//! Linux: mmap(2), madvise(2), `/proc/self/smaps`.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};

use latlab_harness::pin_this_thread;
use latlab_record::Pages;
use rustix::mm::{Advice, madvise};

use crate::linux::{Region, resident};
use crate::{Result, refused};

pub(super) struct Mapping(Region);

/// Bytes that one populating thread takes at a time.
const PART: usize = 32 << 20;

impl Mapping {
    pub(super) fn new(bytes: usize, pages: Pages, helpers: &[u32]) -> Result<Self> {
        let what = || format!("memory for a walk ({} MiB)", bytes >> 20);
        let region = Region::aligned(bytes, pages).map_err(|error| refused(what(), error))?;
        // A kernel without huge pages refuses the advice, which smaps shows.
        let _advised = region.advise_pages(pages);
        let mapping = Self(region);
        mapping.populate(helpers).map_err(|error| refused(what(), error))?;
        Ok(mapping)
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.0.base()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Gives every page its memory now. Page faults cost 0.5-2 us each; several threads share them, where
    /// threads may be started: a control group may allow no more processes.
    fn populate(&self, helpers: &[u32]) -> std::io::Result<()> {
        let parts = self.bytes().div_ceil(PART);
        let next = AtomicUsize::new(0);
        let work = || -> std::io::Result<()> {
            loop {
                let offset = next.fetch_add(1, Ordering::Relaxed) * PART;
                if offset >= self.bytes() {
                    return Ok(());
                }
                self.populate_part(offset, PART.min(self.bytes() - offset))?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = helpers
                .iter()
                .take(parts.saturating_sub(1))
                .filter_map(|cpu| {
                    let helper = || {
                        pin_this_thread(*cpu);
                        work()
                    };
                    std::thread::Builder::new().spawn_scoped(scope, helper).ok()
                })
                .collect();
            let own = work();
            threads
                .into_iter()
                .map(|thread| {
                    let lost = |_| Err(std::io::Error::other("a thread that populated memory was lost"));
                    thread.join().unwrap_or_else(lost)
                })
                .fold(own, std::io::Result::and)
        })
    }

    fn populate_part(&self, offset: usize, bytes: usize) -> std::io::Result<()> {
        let begin = self.base().wrapping_add(offset);
        // SAFETY: the range lies inside our mapping; populating changes no content.
        match unsafe { madvise(begin.cast(), bytes, Advice::LinuxPopulateWrite) } {
            Ok(()) if is_resident(begin.wrapping_add(bytes - 1)) => return Ok(()),
            // Before Linux 5.14 the advice is unknown; emulators accept it and do nothing: touch each page.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        for page in (0..bytes).step_by(4096) {
            // SAFETY: inside our mapping.
            unsafe { begin.add(page).write_volatile(0) };
        }
        Ok(())
    }

    /// Bytes of this mapping that the kernel backs with huge pages.
    pub(super) fn huge_bytes(&self) -> Option<u64> {
        let smaps = BufReader::new(std::fs::File::open("/proc/self/smaps").ok()?);
        huge_bytes_in(
            smaps.lines().map_while(Result::ok),
            self.base().addr(),
            self.base().addr() + self.bytes(),
        )
    }
}

/// Whether the page of this byte has memory; true where the kernel does not say.
fn is_resident(byte: *mut u8) -> bool {
    resident(byte.wrapping_sub(byte.addr() % 4096), 1) != Some(0)
}

/// `AnonHugePages` of every mapping that overlaps `begin..end`. The kernel may have merged neighbours, so a
/// mapping larger than ours counts at most our size.
fn huge_bytes_in(lines: impl Iterator<Item = String>, begin: usize, end: usize) -> Option<u64> {
    let mut inside = false;
    let mut total = None;
    for line in lines {
        let first = line.split_ascii_whitespace().next().unwrap_or("");
        if let Some((low, high)) = first.split_once('-')
            && let (Ok(low), Ok(high)) = (usize::from_str_radix(low, 16), usize::from_str_radix(high, 16))
        {
            inside = low < end && begin < high;
        } else if inside && first == "AnonHugePages:" {
            let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
            total = Some(total.unwrap_or(0) + kib * 1024);
        }
    }
    total.map(|bytes: u64| bytes.min((end - begin) as u64))
}

// SAFETY: a shared mapping hands out its bounds and asks the kernel for its pages; whoever writes through
// them has an unsafe block of his own to answer for it, and populating touches each part from one thread
// only.
unsafe impl Sync for Mapping {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_populated_whoever_does_it() {
        let bytes = 3 * PART + 8192;
        for helpers in [&[][..], &[0], &[0, 0, 0, 0, 0, 0]] {
            let mapping = Mapping::new(bytes, Pages::Base, helpers).expect("96 MiB are there");
            let mut present = vec![0_u8; bytes / 4096];
            // SAFETY: one byte for each page of the mapping.
            let answer = unsafe { libc::mincore(mapping.base().cast(), bytes, present.as_mut_ptr()) };
            assert_eq!(answer, 0, "the mapping is ours");
            let missing = present.iter().filter(|page| **page & 1 == 0).count();
            assert_eq!(missing, 0, "of {} pages", present.len());
        }
    }

    #[test]
    fn huge_bytes_are_summed_over_the_mappings_that_overlap() {
        let text = "1000-3000 rw-p 00000000 00:00 0\nAnonHugePages:         4 kB\n\
                    3000-4000 rw-p 00000000 00:00 0\nAnonHugePages:      2048 kB\n\
                    9000-a000 rw-p 00000000 00:00 0\nAnonHugePages:      4096 kB\n";
        let lines = || text.lines().map(str::to_owned);
        assert_eq!(huge_bytes_in(lines(), 0x1000, 0x3000), Some(4096));
        assert_eq!(huge_bytes_in(lines(), 0x9000, 0xa000), Some(0x1000), "never more than our own size");
        assert_eq!(huge_bytes_in(lines(), 0x5000, 0x6000), None);
    }
}
