//! The file whose blocks are measured, and what is asked of its file system.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use latlab_probes_shared::prelude::*;
use latlab_storage::{Direction, Residency, TestFile};
use rustix::fs::{Advice, fadvise};

use super::device::Device;
use crate::disk::size::file_bytes;
use crate::disk::words::{Access, DIRECT, Way, system};

impl Way {
    pub(crate) fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::Read,
            Self::Write => Direction::Write,
        }
    }
}

/// The file whose blocks are measured.
#[derive(Clone)]
pub(crate) struct Target {
    /// The test file, or the user's.
    pub(crate) test: Arc<TestFile>,
    /// What it lies on.
    pub(crate) device: Device,
    /// Where threads may run that read and write it.
    pub(super) cpus: Vec<u32>,
    /// As where `io_uring` is forbidden.
    #[cfg(test)]
    pub(crate) without_uring: bool,
}

impl Target {
    pub(crate) fn of(test: Arc<TestFile>) -> Self {
        Self {
            device: Device::under(&*test.file),
            test,
            cpus: Vec::new(),
            #[cfg(test)]
            without_uring: false,
        }
    }

    /// The shared test file, laid out by who comes first, or the user's (`--file`).
    pub(crate) fn open(env: &Env) -> Result<Self> {
        let test = match &env.settings.file {
            Some(path) => Arc::new(TestFile::existing(Path::new(path))?),
            None => env.disk.test_file(file_bytes(env))?,
        };
        Ok(Self { cpus: env.cpus.clone(), ..Self::of(test) })
    }

    /// The descriptor for a path, and what buffers and blocks must be multiples of.
    pub(crate) fn file(&self, path: Access) -> Result<(Arc<OwnedFd>, u64)> {
        if path != DIRECT {
            return Ok((Arc::clone(&self.test.file), 1));
        }
        let direct = self
            .test
            .direct
            .as_ref()
            .map_err(|reason| ProbeError::Other(format!("no direct I/O: {reason}")))?;
        let alignment = direct.alignment;
        Ok((Arc::clone(&direct.file), alignment.memory_bytes.max(alignment.offset_bytes)))
    }

    /// The descriptor for blocks of a size.
    pub(crate) fn file_for(&self, path: Access, block_bytes: u64) -> Result<Arc<OwnedFd>> {
        let (file, alignment) = self.file(path)?;
        if !block_bytes.is_multiple_of(alignment) {
            return Err(ProbeError::Other(format!(
                "direct transfers here are multiples of {alignment} bytes"
            )));
        }
        Ok(file)
    }

    /// Puts the whole file out of the page cache and looks. Before each cold block, outside of what is timed.
    pub(crate) fn chill(&self) -> Result<Residency> {
        let residency = self.test.evict()?;
        residency.is_cold().map_err(ProbeError::Proof)?;
        Ok(residency)
    }

    /// Whether reads through the page cache are to bring along what lies behind them. The descriptor is
    /// shared by all probes: who reads through the page cache says it before.
    pub(crate) fn read_ahead(&self, wanted: bool) -> Result<()> {
        let advice = if wanted { Advice::Normal } else { Advice::Random };
        fadvise(&*self.test.file, 0, None, advice).map_err(system("advising how the file is read"))
    }

    pub(crate) fn blocks(&self, block_bytes: u64) -> u64 {
        self.test.bytes / block_bytes.max(1)
    }

    /// What a record of this file must say.
    pub(crate) fn flags(&self) -> Vec<String> {
        let unknown =
            "a user's file: it is unknown whether its contents compress, and whether the reads returned them";
        self.test.contents.is_none().then(|| unknown.to_owned()).into_iter().collect()
    }
}

/// That a call moved the whole block.
pub(crate) fn whole(moved: Result<usize, rustix::io::Errno>, length: usize, what: &str) -> Result<()> {
    match moved.map_err(system(what))? {
        moved if moved == length => Ok(()),
        moved => Err(ProbeError::Proof(format!("{what}: {moved} of {length} bytes were moved"))),
    }
}
