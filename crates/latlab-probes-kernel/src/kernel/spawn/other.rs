//! Systems without the POSIX calls.

use std::path::Path;

use latlab_probes_shared::prelude::*;

pub(super) const AVAILABLE: bool = false;

pub(super) struct Start;

fn refused() -> ProbeError {
    ProbeError::Other("this system has no POSIX calls".to_owned())
}

impl Start {
    pub(super) fn thread() -> Self {
        Self
    }

    pub(super) fn fork() -> Self {
        Self
    }

    pub(super) fn program(_path: &Path, _arguments: &[&str]) -> Result<Self> {
        Err(refused())
    }

    #[expect(clippy::unused_self, reason = "as on other systems")]
    pub(super) fn once(&self, _number: u64) -> Result<i32> {
        Err(refused())
    }

    #[expect(clippy::unused_self, reason = "as on other systems")]
    pub(super) fn expected(&self, _number: u64) -> i32 {
        0
    }
}

pub(super) fn resident_bytes() -> Option<u64> {
    None
}
