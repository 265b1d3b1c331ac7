//! Architectures whose prefetch instruction is not known here.

/// Does nothing.
#[inline]
pub(super) fn for_write(_address: *const u8) {}
