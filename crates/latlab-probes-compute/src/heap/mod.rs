//! What probes of allocation share: memory that is new to the process, the C library's heap, counted page
//! faults, and the child process in which a heap is measured.
//!
//! ```text
//! helper (a child with the allocator preloaded) ── Heap (who answers, give back, keep) + Region (new pages) + faults
//! ```

mod helper;
mod windows;

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod system;

#[cfg_attr(all(target_os = "linux", target_env = "gnu"), path = "glibc.rs")]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), path = "other_libc.rs")]
mod library;

use std::ffi::c_void;

use serde::{Deserialize, Serialize};

pub(crate) use helper::{Allocator, Name, absorb, found, refused, start};
pub(crate) use library::{
    as_in_a_new_process, break_address, can_keep, chunk_bytes, give_back, keep_what_is_freed, library_version,
};
pub(crate) use system::{Region, counts_faults, file_of, minor_faults, new_pages, page_bytes, symbol};
pub(crate) use windows::{block_of_windows, nanoseconds};

/// Who answers `malloc` in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answering {
    /// `glibc`, `mimalloc`, `jemalloc`, ...
    pub(crate) name: String,
    /// Its version, as it says itself.
    pub(crate) version: Option<String>,
    /// File name of the library that holds `malloc`.
    pub(crate) library: String,
}

impl Answering {
    /// For records: `glibc 2.36 (libc.so.6)`.
    pub(crate) fn engine(&self) -> String {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        format!("{}{version} ({})", self.name, self.library)
    }
}

/// A flag of points of new memory where [`counts_faults`] says no.
pub(crate) const NOT_PROVED_NEW: &str =
    "degraded: this system does not count page faults, so that new memory is not proved new";

/// Page faults of a point's operations.
#[derive(Default)]
pub(crate) struct FaultTally {
    pub(crate) faults: u64,
    pub(crate) ops: u64,
    /// Whether the kernel does not count them.
    pub(crate) uncounted: bool,
}

impl FaultTally {
    pub(crate) fn add(&mut self, faults: Option<u64>, ops: u64) {
        self.faults += faults.unwrap_or(0);
        self.ops += ops;
        self.uncounted |= faults.is_none();
    }

    /// Of one operation, where they are counted.
    pub(crate) fn per_op(&self) -> Option<f64> {
        (!self.uncounted).then(|| self.faults as f64 / self.ops.max(1) as f64)
    }
}

/// Looks at the symbol that calls of `malloc` are bound to.
pub(crate) fn answering() -> Answering {
    let library = file_of(c"malloc").unwrap_or_else(|| "unknown".to_owned());
    let own = |name: &std::ffi::CStr| file_of(name).is_some_and(|file| file == library);
    if own(c"mi_version") {
        return Answering { name: "mimalloc".to_owned(), version: mimalloc_version(), library };
    }
    if own(c"mallctl") {
        return Answering { name: "jemalloc".to_owned(), version: jemalloc_version(), library };
    }
    let (name, version) = library_version();
    Answering { name: name.to_owned(), version, library }
}

fn mimalloc_version() -> Option<String> {
    let function = symbol(c"mi_version")?;
    // SAFETY: mimalloc declares `int mi_version(void)`.
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(function) };
    let number = function();
    // 209 is 2.0.9 (MI_MALLOC_VERSION); larger numbers are reported as they are.
    Some(if (100..1000).contains(&number) {
        format!("{}.{}.{}", number / 100, number / 10 % 10, number % 10)
    } else {
        number.to_string()
    })
}

type Mallctl =
    unsafe extern "C" fn(*const std::ffi::c_char, *mut c_void, *mut usize, *mut c_void, usize) -> i32;

fn jemalloc_version() -> Option<String> {
    let function = symbol(c"mallctl")?;
    // SAFETY: the type is the one that jemalloc documents for mallctl(3).
    let mallctl = unsafe { std::mem::transmute::<*mut c_void, Mallctl>(function) };
    let mut text: *const std::ffi::c_char = std::ptr::null();
    let mut size = size_of_val(&text);
    // SAFETY: "version" writes a `const char *` of the size passed along.
    let status = unsafe {
        mallctl(c"version".as_ptr(), (&raw mut text).cast(), &raw mut size, std::ptr::null_mut(), 0)
    };
    if status != 0 || text.is_null() {
        return None;
    }
    // SAFETY: jemalloc's version is a string that lives as long as the library.
    let text = unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy();
    // 5.3.0-0-g54eaed1d8b56: the commit is of no use to a reader.
    text.split('-').next().map(str::to_owned)
}

/// Whether pages that the heap gives back come anew, counted: an emulator's heap may keep them whatever it is
/// told.
pub(crate) fn renews() -> bool {
    const BLOCKS: usize = 32;
    const BYTES: usize = 64 << 10;
    if !counts_faults() {
        return false;
    }
    let mut faults = 0;
    for _ in 0..2 {
        give_back();
        let before = minor_faults();
        let mut blocks = [std::ptr::null_mut::<c_void>(); BLOCKS];
        for block in &mut blocks {
            // SAFETY: any size may be asked for, and a block of malloc's is aligned to a word; null is not
            // touched.
            unsafe {
                *block = libc::malloc(BYTES);
                if !block.is_null() {
                    touch(block.cast(), BYTES, page_bytes(), 1);
                }
            }
        }
        faults = minor_faults() - before;
        for block in blocks {
            // SAFETY: a block of malloc's, or null, freed once.
            unsafe { libc::free(block) };
        }
    }
    give_back();
    faults as f64 >= 0.9 * (BLOCKS * BYTES / page_bytes()) as f64
}

/// Writes one word to each page of a block, the given one to its beginning: what a program that allocates
/// memory does to it at least.
///
/// # Safety
/// `block` is writable for `bytes`, which are at least 8, and aligned to a word.
#[inline]
pub(crate) unsafe fn touch(block: *mut u64, bytes: usize, page: usize, mark: u64) {
    // SAFETY: the caller's promise.
    unsafe { block.write_volatile(mark) };
    let mut offset = page;
    while offset + 8 <= bytes {
        // SAFETY: below `bytes`, and pages are multiples of a word.
        unsafe { block.byte_add(offset).write_volatile(mark) };
        offset += page;
    }
}

#[cfg(test)]
#[expect(clippy::cast_ptr_alignment, reason = "regions begin on a page")]
mod tests {
    use super::*;

    #[test]
    fn somebody_answers_malloc() {
        let answering = answering();
        assert!(!answering.name.is_empty());
        assert!(answering.engine().ends_with(&format!("({})", answering.library)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_region_is_new_and_writable_to_its_end() {
        let region = new_pages(1 << 20).expect("1 MiB is there");
        let word = region.base().wrapping_add((1 << 20) - 8).cast::<u64>();
        // SAFETY: the last word of the region; a mapping begins on a page.
        unsafe {
            assert_eq!(word.read(), 0);
            word.write(1);
        }
        assert!(new_pages(1 << 60).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_touch_reaches_every_page_and_nothing_beyond_the_end() {
        let page = page_bytes();
        let region = new_pages(4 * page).expect("four pages are there");
        // SAFETY: three pages and a word of four.
        unsafe { touch(region.base().cast(), 3 * page + 8, page, 7) };
        let at = |offset: usize| {
            // SAFETY: inside the region.
            unsafe { region.base().wrapping_add(offset).cast::<u64>().read() }
        };
        assert_eq!([0, page, 2 * page, 3 * page].map(at), [7; 4]);
        assert_eq!([8, 3 * page + 8].map(at), [0; 2]);
    }
}
