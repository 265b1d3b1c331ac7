//! Systems for which this probe was not written.

use std::io::{BufRead, Write};

use latlab_harness::{AnySession, Env, ProbeError};

/// Whether the probe can run on this system.
pub(super) const HERE: bool = false;

/// Never called: the probe says that it is not supported.
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Err(ProbeError::Other("measured on Linux only".to_owned()))
}

/// Never started.
pub(super) fn serve(_input: &mut dyn BufRead, _output: &mut dyn Write) -> std::io::Result<()> {
    Ok(())
}
