//! C libraries whose heap has no knobs: musl and others decide themselves what they keep.

pub(crate) fn as_in_a_new_process() {}

pub(crate) fn keep_what_is_freed() {}

/// Whether freed pages can be kept on purpose.
pub(crate) const fn can_keep() -> bool {
    false
}

pub(crate) fn give_back() {}

pub(crate) fn break_address() -> Option<usize> {
    None
}

/// Name of the C library.
pub(crate) fn library_version() -> (&'static str, Option<String>) {
    let name = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "the C library"
    };
    (name, None)
}
