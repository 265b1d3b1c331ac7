//! Systems for which this probe was not written.

use latlab_harness::{AnySession, Env, Planned, ProbeError};

/// Whether the probe can run on this system.
pub(super) const HERE: bool = false;

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(
    _env: &'env Env,
    _group: &[Planned],
) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
