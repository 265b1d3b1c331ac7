//! C libraries whose heap has no knobs: musl and others decide themselves what they keep.

pub(crate) fn as_in_a_new_process() {}

pub(crate) fn keep_what_is_freed() {}

/// Whether freed pages can be kept on purpose.
pub(crate) const fn can_keep() -> bool {
    false
}

/// Bytes of the heap that a small block takes: musl notes four bytes with it, in steps of 16.
pub(crate) fn chunk_bytes(block: usize) -> usize {
    (block + 4).next_multiple_of(16)
}

pub(crate) fn give_back() {}

pub(crate) fn break_address() -> Option<usize> {
    None
}

/// Name of the C library.
pub(crate) fn library_version() -> (&'static str, Option<String>) {
    let name = if cfg!(target_env = "musl") { "musl" } else { "the C library" };
    (name, None)
}
