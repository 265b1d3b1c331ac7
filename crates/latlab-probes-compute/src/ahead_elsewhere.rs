//! Architectures without a prefetch instruction that is known to be one.

/// What asks for a line to be read.
pub(crate) const READ: Option<&str> = None;

/// What asks for a line to be written.
pub(crate) fn write() -> Option<&'static str> {
    None
}

/// Nothing.
#[inline]
pub(crate) fn to_read(_at: *const u8) {}

/// Nothing.
#[inline]
pub(crate) fn to_write(_at: *const u8) {}
