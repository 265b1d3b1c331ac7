//! Systems for which it was not written.

use latlab_harness::{Env, NoSession, ProbeError};

use super::Survey;

pub(super) type Session<'env> = NoSession;

pub(super) fn survey(_env: &Env) -> Result<Survey, String> {
    Err("measured on Linux only".to_owned())
}

/// Never called: the probe says that it is not supported.
pub(super) fn open(_env: &Env) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
