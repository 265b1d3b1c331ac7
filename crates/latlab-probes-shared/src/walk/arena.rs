//! Memory whose pages are asked for, populated before anything is timed, and looked at afterwards.

use latlab_harness::ProbeError;
use latlab_record::{Check, Pages};

use crate::{HUGE_BYTES, Result};

#[cfg_attr(target_os = "linux", path = "arena_linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "arena_other.rs")]
mod system;

/// A populated, private mapping.
pub struct Arena {
    mapping: system::Mapping,
    pages: Pages,
}

impl Arena {
    /// Maps and populates at least `bytes` (rounded up to whole pages), with `helpers` more threads where
    /// that is known to keep the memory near this CPU. Fails when the bytes do not fit an address, or the
    /// system gives no such memory.
    pub fn new(bytes: u64, pages: Pages, helpers: &[u32]) -> Result<Self> {
        let bytes =
            usize::try_from(bytes).map_err(|_| ProbeError::Other(format!("{bytes} bytes do not fit")))?;
        let unit = if pages == Pages::Huge { HUGE_BYTES } else { 4096 };
        let mapping = system::Mapping::new(bytes.max(1).next_multiple_of(unit), pages, helpers)?;
        Ok(Self { mapping, pages })
    }

    /// First byte; aligned to a page of the size asked for.
    pub fn base(&self) -> *mut u8 {
        self.mapping.base()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.mapping.bytes() as u64
    }

    /// What the kernel says of the pages: obtained, which is not yet effective.
    pub fn pages_check(&self) -> Check {
        let name = match self.pages {
            Pages::Base => "base pages obtained",
            Pages::Huge => "huge pages obtained",
        };
        let (ok, detail) = match self.mapping.huge_bytes() {
            None => (true, "this system does not say which page sizes were used".to_owned()),
            Some(huge) => {
                let share = huge as f64 / self.bytes() as f64;
                let text =
                    format!("{:.1} % of {} MiB are huge pages (smaps)", share * 100.0, self.bytes() >> 20);
                match self.pages {
                    Pages::Base => (huge == 0, text),
                    Pages::Huge => (share >= 0.95, text),
                }
            }
        };
        Check { name: name.to_owned(), ok, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_populated_aligned_and_writable_to_its_last_byte() {
        for pages in [Pages::Base, Pages::Huge] {
            let arena = Arena::new(5_000_000, pages, &[]).expect("5 MB are there");
            assert!(arena.bytes() >= 5_000_000);
            let unit = if pages == Pages::Huge { HUGE_BYTES } else { 4096 };
            assert_eq!(arena.base().addr() % unit, 0);
            // SAFETY: the last byte lies inside the mapping, which is ours.
            unsafe {
                arena.base().add(usize::try_from(arena.bytes()).expect("fits") - 1).write_volatile(7);
            }
        }
    }

    #[test]
    fn base_pages_are_verified_as_such() {
        let arena = Arena::new(4 << 20, Pages::Base, &[]).expect("4 MiB are there");
        let check = arena.pages_check();
        assert!(check.ok, "{}", check.detail);
    }

    #[test]
    fn memory_that_is_not_there_is_refused_with_its_size() {
        let error = Arena::new(1 << 60, Pages::Base, &[]).err().expect("nobody has an exbibyte");
        assert!(error.to_string().contains("MiB"), "{error}");
    }
}
