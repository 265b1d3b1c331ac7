//! Where neither the thread's page faults nor the state of pages can be asked for.

use latlab_harness::{Env, NoSession, ProbeError, Support};

pub(super) type Session<'env> = NoSession;
pub(super) type Evidence = ();

const REASON: &str = "page faults are counted and pages are looked at as Linux lets them; no other system's ways are written yet";

pub(super) fn page_bytes() -> u64 {
    4096
}

pub(super) fn supports() -> Support {
    Support::No(REASON.to_owned())
}

pub(super) fn open(_: &Env, _: super::Sizes) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other(REASON.to_owned()))
}
