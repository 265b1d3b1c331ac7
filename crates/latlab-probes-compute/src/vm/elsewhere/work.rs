//! Where neither mappings nor the state of their pages are those of Linux.

use latlab_harness::NoSession;
use latlab_probes_shared::prelude::*;

use super::ELSEWHERE;

pub(super) type Session<'env> = NoSession;

pub(super) type Evidence = ();

pub(super) fn supports() -> Support {
    Support::No(ELSEWHERE.to_owned())
}

pub(super) fn open(_env: &Env) -> Result<NoSession> {
    Err(ProbeError::Other(ELSEWHERE.to_owned()))
}
