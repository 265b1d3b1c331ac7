//! A small file without a name, in the folder that is measured: it is gone with its last descriptor, whatever
//! ends the process.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use latlab_probes_shared::prelude::*;
use latlab_stats::rng::mixed;
use latlab_storage::{Place, StorageError, evict, open_again};
use rustix::fs::{Advice, MemfdFlags, OFlags};
use rustix::io::Errno;

use super::{Region, page_bytes};

/// A file with real data, on its device and in the page cache.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: File,
    bytes: usize,
    seed: u64,
}

impl Scratch {
    /// Writes and syncs it.
    /// Fails, with the reason, when the folder is no disk or is nearly full.
    pub(crate) fn create(env: &Env, bytes: usize) -> Result<Self> {
        let place = env.disk.place().map_err(in_the_folder)?;
        let file = place.file(bytes as u64).map(File::from).map_err(in_the_folder)?;
        is_on_a_device(env, &place, &file)?;
        env.disk.budget().spend(bytes as u64).map_err(|error| ProbeError::Other(error.to_string()))?;
        Self::filled(env, file, bytes)
    }

    /// The same in memory, for what needs a page cache and no device.
    pub(crate) fn in_memory(env: &Env, bytes: usize) -> Result<Self> {
        let file = rustix::fs::memfd_create("latlab", MemfdFlags::CLOEXEC)
            .map_err(|error| refused("a file in memory (memfd_create)", error))?;
        Self::filled(env, File::from(file), bytes)
    }

    fn filled(env: &Env, file: File, bytes: usize) -> Result<Self> {
        let seed = env.seed(0x5C4A);
        let scratch = Self { file, bytes, seed };
        let what = || format!("writing {} to a file", binary_size(bytes as u64));
        scratch.fill().map_err(|error| refused(what(), error))?;
        Ok(scratch)
    }

    /// Incompressible: a device that stores zeros or repetitions elsewhere would answer for another one.
    fn fill(&self) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;

        // Page by page, so that the page cache holds single pages: of a file that it holds in large pieces
        // one fault maps as much as a piece has, from 64 KiB to some hundred, and nothing says how much.
        let mut piece = vec![0u8; page_bytes()];
        for offset in (0..self.bytes).step_by(piece.len()) {
            let length = piece.len().min(self.bytes - offset);
            for (nth, word) in piece.chunks_exact_mut(8).enumerate() {
                word.copy_from_slice(&self.word(offset + nth * 8).to_ne_bytes());
            }
            self.file.write_all_at(&piece[..length], offset as u64)?;
        }
        self.file.sync_all()
    }

    /// What the file holds at an offset, a multiple of eight.
    pub(crate) fn word(&self, offset: usize) -> u64 {
        mixed(self.seed.wrapping_add((offset as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the whole file, so that it is in the page cache: page by page and without reading ahead, for the
    /// reason above.
    pub(crate) fn warm(&self) -> Result<()> {
        use std::os::unix::fs::FileExt;

        let _ahead = rustix::fs::fadvise(&self.file, 0, None, Advice::Random);
        let mut page = vec![0u8; page_bytes()];
        for offset in (0..self.bytes).step_by(page.len()) {
            self.file
                .read_exact_at(&mut page, offset as u64)
                .map_err(|error| refused("reading a file", error))?;
        }
        Ok(())
    }

    /// Takes the whole file out of the page cache. Nothing may have it mapped.
    /// Fails when pages stay: then nothing that is read is read from the device.
    pub(crate) fn evict(&self) -> Result<()> {
        let left = evict(&self.file).map_err(in_the_folder)?;
        left.is_cold().map(drop).map_err(|reason| {
            ProbeError::Other(format!("{reason}, so what is read of the file comes from memory"))
        })
    }

    /// Whether a touch of an evicted page reads that page and no more. Fails when it reads others ahead: then
    /// most touches of a file that was evicted meet pages that are there.
    pub(crate) fn reads_single_pages(&self) -> Result<()> {
        self.evict()?;
        let region = Region::shared_file(&self.file, self.bytes)?;
        let advised = region.advise(rustix::mm::Advice::Random);
        // SAFETY: inside the mapping.
        std::hint::black_box(unsafe {
            region.word(self.bytes / 2 / page_bytes() * page_bytes()).read_volatile()
        });
        match (advised, self.cached()?) {
            (Ok(()), 1) => Ok(()),
            (_, pages) => Err(ProbeError::Other(format!(
                "a touch of one page of an evicted file left {pages} of its pages in the page cache: \
                    read-ahead cannot be turned off here (MADV_RANDOM), so not every touch would be a fault"
            ))),
        }
    }

    /// Pages in the page cache, by mincore on a mapping that ends here: a mapped page would stay.
    pub(crate) fn cached(&self) -> Result<usize> {
        Region::shared_file(&self.file, self.bytes)?
            .resident()
            .ok_or_else(|| ProbeError::last_os_error("asking which pages of a file are in the page cache"))
    }
}

/// A refusal of the storage layer, with what the file was for.
fn in_the_folder(error: StorageError) -> ProbeError {
    let what = "a file in the folder that is measured";
    match error {
        StorageError::System { what: asked, source } => {
            ProbeError::System { what: format!("{what}: {asked}"), source }
        }
        StorageError::Refused(why) => ProbeError::Other(format!("{what}: {why}")),
    }
}

/// That what is read of the file comes from a device of this machine; the place itself refuses file systems
/// that are known to live in memory.
fn is_on_a_device(env: &Env, place: &Place, file: &File) -> Result<()> {
    let known = path_of(place).and_then(|path| env.machine.file_system_of(&path));
    let reason = if known.is_some_and(|system| system.in_memory) {
        "is in memory: nothing there is read from a device"
    } else if known.is_some_and(|system| system.network) {
        "is on another machine: the network would be measured"
    } else if known.is_some_and(|system| system.user_space) {
        "is served by a program: that program would be measured"
    } else if let Err(Errno::INVAL | Errno::OPNOTSUPP) = open_again(file, OFlags::RDONLY | OFlags::DIRECT) {
        "does not let files be read past the page cache (O_DIRECT): there may be no device below it"
    } else {
        return Ok(());
    };
    Err(ProbeError::Other(format!("the file system of the folder {reason}; --dir names another one")))
}

/// Where the place lies, without symbolic links; not known without /proc.
fn path_of(place: &Place) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", place.directory().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use latlab_storage::Disk;

    use super::*;
    use latlab_probes_testing as testing;

    fn env_of(folder: &str) -> Env {
        let mut env = testing::env(64 << 20);
        env.disk = Disk::new(Path::new(folder), 64 << 20, 3);
        env
    }

    #[test]
    fn a_file_in_memory_is_refused_and_leaves_nothing() {
        // Where there is no such folder, the folder itself is the reason.
        let env = env_of("/dev/shm");
        let error = Scratch::create(&env, 1 << 16).expect_err("no device");
        assert!(error.to_string().contains("folder"), "{error}");
        assert_eq!(env.disk.budget().spent_bytes(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_said() {
        let env = env_of("/nonexistent/folder");
        let error = Scratch::create(&env, 1 << 16).expect_err("no folder");
        assert!(error.to_string().contains("folder"), "{error}");
    }

    #[test]
    fn a_file_holds_what_it_says_after_it_was_evicted_or_says_why_it_cannot_be() {
        let env = env_of(env!("CARGO_MANIFEST_DIR"));
        let Ok(scratch) = Scratch::create(&env, 1 << 16) else { return };
        assert_eq!(env.disk.budget().spent_bytes(), 1 << 16);
        if scratch.evict().is_ok() {
            assert_eq!(scratch.cached().ok(), Some(0));
        }
        scratch.warm().expect("readable");
        let region = Region::shared_file(scratch.file(), scratch.bytes()).expect("mapped");
        for offset in (0..scratch.bytes()).step_by(8) {
            // SAFETY: inside the mapping.
            let word = unsafe { region.word(offset).read_volatile() };
            assert_eq!(word, scratch.word(offset));
        }
    }
}
