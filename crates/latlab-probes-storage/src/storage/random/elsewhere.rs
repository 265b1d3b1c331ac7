//! Systems for which random blocks were not written.

use latlab_harness::{AnySession, Env, ProbeError};

use super::Way;

/// Never used: the probe says that it is not supported.
pub(crate) fn deep_engine() -> &'static str {
    "threads"
}

/// Never called: the probe says that it is not supported.
pub(crate) fn open<'env>(_env: &'env Env, _way: Way) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
