//! Systems for which the probes of the disk were not written.

use latlab_harness::{Env, ProbeError, Session};

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn Session + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
