//! The test file of this run, and what is asked of its file system.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use latlab_harness::{Env, ProbeError};
use latlab_storage::{Contents, CutShort, Direction, Residency, TestFile, open_existing, uring_allowed};
use rustix::fs::{Advice, fadvise};

use super::{Access, DIRECT, Engine, Way, file_bytes, system};

mod device;
mod evidence;
mod flow;
mod places;
mod timed;

pub(crate) use device::{Asked, Device, DeviceCount, DeviceTime};
pub(crate) use evidence::Evidence;
pub(crate) use flow::Flow;
pub(crate) use places::Places;
pub(crate) use timed::Timed;

/// What carries out more than one transfer at a time here.
pub(crate) fn deep_engine() -> Engine {
    let allowed = File::open("/dev/null").map(|file| uring_allowed(&Arc::new(OwnedFd::from(file))));
    if matches!(allowed, Ok(Ok(()))) { Engine::IoUring } else { Engine::Threads }
}

/// Bytes that a test file may take; any number where a file of the user's is read.
pub(crate) fn room(env: &Env) -> Result<u64, String> {
    if let Some(path) = &env.settings.file {
        return open_existing(Path::new(path)).map(|_| u64::MAX).map_err(|error| error.to_string());
    }
    env.disk
        .place()
        .and_then(|place| place.room())
        .map(|room| room.largest_file())
        .map_err(|error| error.to_string())
}

/// Size of the file that the user wants measured, bytes.
pub(crate) fn users_bytes(env: &Env) -> u64 {
    env.settings
        .file
        .as_ref()
        .and_then(|path| std::fs::symlink_metadata(path).ok())
        .map_or(0, |facts| facts.len())
}

pub(crate) fn laid_out(env: &Env) -> Option<u64> {
    env.disk.laid_out_bytes()
}

/// Lays the test file out, in this time; smaller on a slow disk. A disk that fails says so to each point that asks for the file.
pub fn lay_out(env: &Env, bytes: u64, within: Duration) {
    let _said_later = env.disk.lay_out(bytes, within);
}

pub(crate) fn cut_short(env: &Env) -> Option<CutShort> {
    env.disk.cut_short()
}

impl Way {
    /// As the storage layer says it.
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
    cpus: Vec<u32>,
    /// As where `io_uring` is forbidden.
    #[cfg(test)]
    pub(crate) without_uring: bool,
}

impl Target {
    /// A file, with the device under it.
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
    ///
    /// # Errors
    /// When there is no room, no budget, or the disk fails.
    pub(crate) fn open(env: &Env) -> Result<Self, ProbeError> {
        let test = match &env.settings.file {
            Some(path) => TestFile::existing(Path::new(path)).map(Arc::new),
            None => env.disk.test_file(file_bytes(env)),
        };
        let own = test.map(Self::of)?;
        Ok(Self { cpus: env.cpus.clone(), ..own })
    }

    /// The descriptor for a path, and what buffers and blocks must be multiples of.
    ///
    /// # Errors
    /// When the file system has no direct I/O, with the reason.
    pub(crate) fn file(&self, path: Access) -> Result<(Arc<OwnedFd>, u64), ProbeError> {
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
    ///
    /// # Errors
    /// When the file system has no direct I/O, or its direct transfers are no such blocks.
    pub(crate) fn file_for(&self, path: Access, block_bytes: u64) -> Result<Arc<OwnedFd>, ProbeError> {
        let (file, alignment) = self.file(path)?;
        if !block_bytes.is_multiple_of(alignment) {
            return Err(ProbeError::Other(format!(
                "direct transfers here are multiples of {alignment} bytes"
            )));
        }
        Ok(file)
    }

    /// Puts the whole file out of the page cache and looks. Before each cold block, outside of what is timed.
    ///
    /// # Errors
    /// When anything is left: there is no cold figure then.
    pub(crate) fn chill(&self) -> Result<Residency, ProbeError> {
        let residency = self.test.evict()?;
        residency.is_cold().map_err(ProbeError::Proof)?;
        Ok(residency)
    }

    /// Whether reads through the page cache are to bring along what lies behind them. The descriptor is shared by all probes: who reads through the
    /// page cache says it before.
    ///
    /// # Errors
    /// When the file system does not take advice.
    pub(crate) fn read_ahead(&self, wanted: bool) -> Result<(), ProbeError> {
        let advice = if wanted { Advice::Normal } else { Advice::Random };
        fadvise(&*self.test.file, 0, None, advice).map_err(system("advising how the file is read"))
    }

    /// How many whole blocks it has.
    pub(crate) fn blocks(&self, block_bytes: u64) -> u64 {
        self.test.bytes / block_bytes.max(1)
    }

    /// What a record of this file must say.
    pub(crate) fn flags(&self) -> Vec<String> {
        if self.test.contents.is_some() {
            return Vec::new();
        }
        vec!["a file of the user's: whether it can be compressed, and whether what was read is what is in it, is not known".to_owned()]
    }

    /// What is in it.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.test.contents
    }
}

/// That a call moved the whole block.
pub(crate) fn whole(
    moved: Result<usize, rustix::io::Errno>,
    length: usize,
    what: &str,
) -> Result<(), ProbeError> {
    match moved.map_err(system(what))? {
        moved if moved == length => Ok(()),
        moved => Err(ProbeError::Proof(format!("{what}: {moved} of {length} bytes were moved"))),
    }
}
