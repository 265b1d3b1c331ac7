//! A page whose words several threads use.

use std::sync::atomic::AtomicU64;

use latlab_record::Pages;

use crate::walk::Arena;

use crate::Result;

/// Zeroed memory in whole pages of 4 KiB, touched first by the thread that makes it: that decides the NUMA
/// node it is on.
pub struct Page(Arena);

// SAFETY: a private mapping belongs to no thread; its bytes are reached only as atomics.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Of at least so many bytes. Fails when the system gives no memory.
    pub fn new(bytes: u64) -> Result<Self> {
        Arena::new(bytes, Pages::Base, &[]).map(Self)
    }

    /// The word that begins at this offset.
    ///
    /// # Panics
    /// When the offset is not that of a whole word inside the memory.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && (offset as u64) < self.0.bytes(), "no word at {offset}");
        // SAFETY: inside the mapping, aligned, initialised to zero by the kernel, used as an atomic by
        // everybody, and borrowed from the mapping.
        unsafe { AtomicU64::from_ptr(self.0.base().wrapping_add(offset).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_zero_at_first_and_do_not_overlap() {
        let page = Page::new(8192).expect("two pages");
        page.word(8).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(page.word(0).load(Ordering::Relaxed), 0);
        assert_eq!(page.word(16).load(Ordering::Relaxed), 0);
        assert_eq!(page.word(8184).load(Ordering::Relaxed), 0);
    }

    #[test]
    #[should_panic(expected = "no word at 8192")]
    fn there_is_no_word_beyond_the_end() {
        let page = Page::new(8192).expect("two pages");
        let _word = page.word(8192);
    }
}
