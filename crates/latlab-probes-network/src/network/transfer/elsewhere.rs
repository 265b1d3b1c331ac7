//! Systems for which this probe was not written.

use latlab_harness::{AnySession, Env, ProbeError};

/// Whether the probe can run on this system.
pub(super) const HERE: bool = false;

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}

/// Libraries of Python's that are measured beside.
pub(super) const LIBRARIES: [(&str, &str); 0] = [];

/// None is.
pub(super) fn has_library(_env: &Env, _package: &str) -> bool {
    false
}

/// None was asked for.
pub(super) fn why_no_library(_env: &Env, _package: &str) -> Option<String> {
    None
}
