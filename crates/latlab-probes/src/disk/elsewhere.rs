//! Systems for which the probes of the disk were not written.

use latlab_harness::Env;

/// Why there is no room: nobody asks.
pub(crate) fn room(_env: &Env) -> Result<u64, String> {
    Err(format!(
        "measured on Linux only; this is {}",
        std::env::consts::OS
    ))
}

/// No file is ever laid out.
pub(crate) fn laid_out(_env: &Env) -> Option<u64> {
    None
}

/// No file of the user's is read.
pub(crate) fn users_bytes(_env: &Env) -> u64 {
    0
}
