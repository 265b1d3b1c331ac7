//! Systems without madvise(2) of ours: the allocator's zeroed memory, touched page by page.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use latlab_harness::ProbeError;
use latlab_record::Pages;

use crate::{HUGE_BYTES, Result};

pub(super) struct Mapping {
    base: *mut u8,
    layout: Layout,
}

impl Mapping {
    pub(super) fn new(bytes: usize, pages: Pages, _helpers: &[u32]) -> Result<Self> {
        let refused = || ProbeError::Other(format!("memory for a walk ({} MiB) was refused", bytes >> 20));
        let align = if pages == Pages::Huge { HUGE_BYTES } else { 4096 };
        let layout = Layout::from_size_align(bytes, align).map_err(|_| refused())?;
        // SAFETY: the layout has a size above zero.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            return Err(refused());
        }
        for page in (0..bytes).step_by(4096) {
            // SAFETY: inside the allocation.
            unsafe { base.add(page).write_volatile(0) };
        }
        Ok(Self { base, layout })
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }

    pub(super) fn huge_bytes(&self) -> Option<u64> {
        None
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated by us with this layout.
        unsafe { dealloc(self.base, self.layout) };
    }
}
