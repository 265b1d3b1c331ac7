//! Systems for which the probes of the disk were not written.

use latlab_harness::{AnySession, Env, ProbeError};

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
