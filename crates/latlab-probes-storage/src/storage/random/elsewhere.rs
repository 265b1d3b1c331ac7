//! Systems for which random blocks were not written.

use latlab_harness::{Env, NoSession, ProbeError};

use super::Way;
use crate::disk::Engine;

pub(crate) type Gathered = ();
pub(crate) type Session<'env> = NoSession;

/// Never used: the probe says that it is not supported.
pub(crate) fn deep_engine() -> Engine {
    Engine::Threads
}

/// Never called: the probe says that it is not supported.
pub(crate) fn open(_env: &Env, _way: Way) -> Result<NoSession, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}
