//! Systems for which it was not written.

use latlab_harness::{AnySession, Env, ProbeError};

use super::Survey;

pub(super) fn survey(_env: &Env) -> Result<Survey, String> {
    Err("measured on Linux only".to_owned())
}

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
