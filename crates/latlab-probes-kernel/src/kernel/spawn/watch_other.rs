//! Systems where a child's end cannot be waited for with a limit.

use std::ffi::c_int;

/// That nobody can tell: who reaps it waits.
pub(super) fn ends_within(_child: libc::pid_t, _milliseconds: c_int) -> bool {
    true
}

pub(super) fn resident_bytes() -> Option<u64> {
    None
}
