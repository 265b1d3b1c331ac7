//! Systems for which making writes durable was not written.

use latlab_harness::{Env, NoSession, ProbeError};

use super::{Operation, Way, Write};

pub(super) const OPERATIONS: &[Operation] = &[];
pub(super) const WAYS: &[Way] = &[];

pub(super) type Counted = ();
pub(super) type Session<'env> = NoSession;

/// Why there can be no files.
pub(super) fn room(env: &Env) -> Result<u64, String> {
    crate::disk::room(env)
}

/// Never called: the probe says that it is not supported.
pub(super) fn open(_env: &Env, _group: &[Write]) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
