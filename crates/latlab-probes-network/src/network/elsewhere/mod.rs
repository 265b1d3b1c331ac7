//! Systems for which these probes were not written.

use latlab_harness::{Env, NoSession, ProbeError};

use crate::peer::Engine;

/// Whether the probes can run on this system.
pub(super) const HERE: bool = false;

/// There is no block that could show anything.
pub type Evidence = ();
/// There is none.
pub type Session<'env> = NoSession;

/// Never called: the probes say that they are not supported.
pub(super) fn open<P>(_env: &Env, _group: &[P]) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}

/// No library of Python's is looked for.
pub(super) fn why_not(_env: &Env, _engine: Engine) -> Option<String> {
    None
}
