//! Systems for which reads at a rate were not written.

use latlab_harness::{Env, NoSession, ProbeError};

pub(super) type Gathered = ();
pub(super) type Session<'env> = NoSession;

/// Never called: the probe says that it is not supported.
pub(super) fn open(_env: &Env) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
