//! Where the calls and the state of pages are others.

use latlab_harness::{AnySession, Env, ProbeError, Support};

const REASON: &str =
    "memory is mapped and looked at as Linux does it; no other system's calls are written yet";

pub(super) fn supports() -> Support {
    Support::No(REASON.to_owned())
}

pub(super) fn populates() -> bool {
    false
}

pub(super) fn open(_: &Env) -> Result<Box<dyn AnySession + '_>, ProbeError> {
    Err(ProbeError::Other(REASON.to_owned()))
}
