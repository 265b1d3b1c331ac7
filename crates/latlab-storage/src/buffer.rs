//! Memory that direct I/O accepts: aligned, and already there.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Bytes at an aligned address.
#[derive(Debug)]
pub struct Buffer {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone.
unsafe impl Send for Buffer {}

impl Buffer {
    /// At least one byte, at a multiple of `alignment` (a power of two, 4096 where nothing more is asked).
    /// Every page was written once, so that a timed read causes no page fault.
    ///
    /// # Panics
    /// When `alignment` is no power of two, or the size is beyond the address space.
    pub fn new(bytes: usize, alignment: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), alignment.max(4096))
            .expect("a power of two, and a size that exists");
        // SAFETY: the layout's size is at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        let mut buffer = Self { base, layout };
        for byte in buffer.bytes_mut().iter_mut().step_by(4096) {
            // A zeroed page may be the one page of zeros that all share until it is written.
            // SAFETY: the byte is ours.
            unsafe { std::ptr::from_mut(byte).write_volatile(0) };
        }
        buffer
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: base is the begin of layout.size() initialised bytes that live as long as self.
        unsafe { std::slice::from_raw_parts(self.base, self.layout.size()) }
    }

    /// What it holds, to change it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base, self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_as_asked_and_holds_what_is_put_in() {
        for alignment in [512, 4096, 65_536] {
            let mut buffer = Buffer::new(10_000, alignment);
            assert_eq!(buffer.base.addr() % alignment, 0);
            buffer.bytes_mut()[9_999] = 7;
            assert_eq!(buffer.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>(), 7);
        }
        assert_eq!(Buffer::new(0, 512).bytes().len(), 1);
    }
}
