//! Systems for which the probes of the disk were not written.

use std::time::Duration;

use latlab_harness::Env;
use latlab_storage::CutShort;

use super::words::Engine;

/// Why there is no room: nobody asks.
pub(crate) fn room(_env: &Env) -> Result<u64, String> {
    Err(format!("measured on Linux only; this is {}", std::env::consts::OS))
}

/// No file is ever laid out.
pub(crate) fn laid_out(_env: &Env) -> Option<u64> {
    None
}

/// Nothing is written.
pub fn lay_out(_env: &Env, _bytes: u64, _within: Duration) {}

/// Nothing was to be written.
pub(crate) fn cut_short(_env: &Env) -> Option<CutShort> {
    None
}

/// Nothing is carried out.
pub(crate) fn deep_engine() -> Engine {
    Engine::Threads
}

/// No file of the user's is read.
pub(crate) fn users_bytes(_env: &Env) -> u64 {
    0
}
