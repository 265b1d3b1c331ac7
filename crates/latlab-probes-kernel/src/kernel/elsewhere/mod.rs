//! Systems for which the probes of the kernel were not written.

use latlab_harness::NoSession;
use latlab_probes_shared::prelude::*;

/// Whether the probe can run on this system.
pub(super) const HERE: bool = false;

/// There is none.
pub(super) type Session<'env> = NoSession;

/// There is none.
pub(super) type Evidence = ();

/// Never called: the probe says that it is not supported.
pub(super) fn open(_env: &Env) -> Result<Session<'_>> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
