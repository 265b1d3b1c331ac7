//! Systems for which the probes of the disk were not written.

use latlab_harness::{Env, NoSession, ProbeError};

pub(crate) type Evidence = ();
pub(crate) type Session<'env> = NoSession;

/// Never called: the probe says that it is not supported.
pub(crate) fn open<T>(_env: &Env, _of: T) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
