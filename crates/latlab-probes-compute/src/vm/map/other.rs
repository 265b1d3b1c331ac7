//! Where the calls and the state of pages are others.

use latlab_harness::{Env, ProbeError, Support};

pub(super) use latlab_harness::NoSession as Session;

pub(super) type Evidence = ();

const REASON: &str =
    "memory is mapped and looked at as Linux does it; no other system's calls are written yet";

pub(super) fn page_bytes() -> u64 {
    4096
}

pub(super) fn supports() -> Support {
    Support::No(REASON.to_owned())
}

pub(super) fn populates() -> bool {
    false
}

pub(super) fn open(_: &Env) -> Result<Session, ProbeError> {
    Err(ProbeError::Other(REASON.to_owned()))
}
