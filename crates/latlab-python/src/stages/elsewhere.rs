//! Elsewhere than Linux nobody listens.

use std::io;

/// There is none.
pub(crate) enum Ring {}

impl Ring {
    pub(crate) fn name(&self, _name: &str) -> u32 {
        match *self {}
    }

    pub(crate) fn begin(&self, _name: u32) -> u64 {
        match *self {}
    }

    pub(crate) fn end(&self, _name: u32, _begun: u64, _bytes: u64) {
        match *self {}
    }
}

pub(crate) fn ring() -> Option<&'static Ring> {
    None
}

pub(crate) fn start() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "stages are recorded on Linux only"))
}

pub(crate) fn heard() -> Option<()> {
    None
}

pub(crate) fn environment() -> Vec<(&'static str, String)> {
    Vec::new()
}
