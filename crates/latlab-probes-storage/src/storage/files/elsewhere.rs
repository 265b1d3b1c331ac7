//! Systems for which the files were not written.

use latlab_harness::{AnySession, Env, ProbeError};

/// Never called: the probe says that it is not supported.
pub(super) fn open(_env: &Env) -> Result<Box<dyn AnySession>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
