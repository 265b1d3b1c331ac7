//! Systems for which making writes durable was not written.

use latlab_harness::{AnySession, Env, Planned, ProbeError};

use super::{Operation, Way};

pub(super) const OPERATIONS: &[Operation] = &[];
pub(super) const WAYS: &[Way] = &[];

/// Why there can be no files.
pub(super) fn room(env: &Env) -> Result<u64, String> {
    crate::disk::room(env)
}

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(
    _env: &'env Env,
    _group: &[Planned],
) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
