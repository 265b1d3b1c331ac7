//! The directory in which files of ours are made.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, Dev, FileType, Mode, OFlags, accessat, fstat, fstatvfs, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

use crate::names::scratch_name;
use crate::{Room, StorageError};

/// What the files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Figures of a disk: a file system that lives in memory is refused.
    Disk,
    /// Anything else.
    Any,
}

/// Whether a directory's file system lives in memory.
#[cfg(target_os = "linux")]
fn is_in_memory(directory: &OwnedFd) -> Result<bool, Errno> {
    /// From linux/magic.h.
    const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
    const RAMFS_MAGIC: rustix::fs::FsWord = 0x8584_58f6;
    Ok(matches!(rustix::fs::fstatfs(directory)?.f_type, TMPFS_MAGIC | RAMFS_MAGIC))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_directory: &OwnedFd) -> Result<bool, Errno> {
    Ok(false)
}

/// A new file without a name in a directory, to be read and written.
#[cfg(target_os = "linux")]
pub(crate) fn nameless(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
    openat(directory, c".", flags, Mode::RUSR | Mode::WUSR)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless(_directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    Err(Errno::OPNOTSUPP)
}

/// A new file, to be read and written.
pub(crate) fn named(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Files that were removed by all folders of a place, and the time that it took.
#[derive(Debug, Default)]
pub(crate) struct Removals(Mutex<(u64, Duration)>);

/// Fewer files are removed in less than what else happens meanwhile.
pub(crate) const TELLING: u64 = 20;

impl Removals {
    /// So many files were removed in this time.
    pub(crate) fn add(&self, files: u64, took: Duration) {
        if let Ok(mut all) = self.0.lock()
            && files >= TELLING
        {
            *all = (all.0 + files, all.1 + took);
        }
    }
}

/// A directory that was looked at and may be used.
#[derive(Debug)]
pub struct Place {
    directory: OwnedFd,
    device: Dev,
    pub(crate) removals: Arc<Removals>,
}

impl Place {
    /// Opens a directory of the user's. Errors: [`StorageError::Refused`] when it is no directory (a symbolic
    /// link at the end of its path is none), somebody else's, or for [`Purpose::Disk`] in memory;
    /// [`StorageError::System`] when it cannot be opened.
    pub fn open(path: &Path, purpose: Purpose) -> Result<Self, StorageError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => StorageError::Refused(
                "scratch files need a directory, not a symbolic link: name the directory itself with --dir"
                    .to_owned(),
            ),
            other => StorageError::asking("opening the directory for scratch files")(other),
        })?;
        let stat =
            fstat(&directory).map_err(StorageError::asking("looking at the directory for scratch files"))?;
        let ours = stat.st_uid == geteuid().as_raw();
        // Such as /tmp, where everybody may make files and only their owner may remove them.
        let is_shared = Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX);
        if !ours && !is_shared {
            return Err(StorageError::Refused(format!(
                "the directory for scratch files belongs to another user (uid {}): name one of yours with \
                    --dir",
                stat.st_uid
            )));
        }
        let is_in_memory =
            is_in_memory(&directory).map_err(StorageError::asking("asking for the file system"))?;
        if purpose == Purpose::Disk && is_in_memory {
            return Err(StorageError::Refused(
                "this directory is a file system in memory (tmpfs): no disk can be measured there; name a \
                    directory on a disk with --dir"
                    .to_owned(),
            ));
        }
        Ok(Self { directory, device: stat.st_dev, removals: Arc::default() })
    }

    /// What may be written here now. Errors:
    /// [`StorageError::Refused`] when nothing may be written; [`StorageError::System`] when the file system
    /// does not say.
    pub fn room(&self) -> Result<Room, StorageError> {
        let refused =
            match accessat(&self.directory, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()) {
                Err(Errno::ROFS) => Some("this file system is mounted read-only"),
                Err(Errno::ACCESS | Errno::PERM) => Some("you may not make files in this directory"),
                // Whatever else is the matter, making a file says so.
                Ok(()) | Err(_) => None,
            };
        if let Some(reason) = refused {
            return Err(StorageError::Refused(format!("{reason}: name one where you may write with --dir")));
        }
        let space = fstatvfs(&self.directory).map_err(StorageError::asking("asking for free space"))?;
        Ok(Room {
            available_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
            largest_file_bytes: getrlimit(Resource::Fsize).current,
        })
    }

    /// A file without a name, to be read and written, that is gone when its descriptor is: nothing is left
    /// however this process ends. The room is looked at; nothing is written. Fails when there is no room for
    /// `bytes`, or the system refuses.
    pub fn file(&self, bytes: u64) -> Result<OwnedFd, StorageError> {
        self.room()?.admit(bytes)?;
        let what = "making a scratch file";
        match nameless(self.directory()) {
            Ok(file) => Ok(file),
            // Some file systems cannot make a file without a name: then it has one for a moment.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                let name = scratch_name();
                let file = named(self.directory(), &name).map_err(StorageError::asking(what))?;
                match unlinkat(&self.directory, &name, AtFlags::empty()) {
                    // Another run swept the name.
                    Ok(()) | Err(Errno::NOENT) => Ok(file),
                    Err(errno) => Err(StorageError::asking("removing a scratch file's name")(errno)),
                }
            }
            Err(errno) => Err(StorageError::asking(what)(errno)),
        }
    }

    /// The directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Mean time that removing a small file took here in this run, s; `None` before the first removal of more
    /// than a few.
    pub fn removal_s(&self) -> Option<f64> {
        let (files, took) = *self.removals.0.lock().ok()?;
        (files > 0).then(|| took.as_secs_f64() / files as f64)
    }

    /// So many files of ours were removed in this time, by other hands than a [`Folder`](crate::Folder)'s.
    pub fn removed(&self, files: u64, took: Duration) {
        self.removals.add(files, took);
    }

    /// Number of the device that it lies on.
    pub fn device(&self) -> Dev {
        self.device
    }
}

/// Opens a file that exists and belongs to nobody in particular, to be read only.
/// Errors: [`StorageError::Refused`] for anything but a regular file: a device, a pipe, a symbolic link.
pub fn open_existing(path: &Path) -> Result<OwnedFd, StorageError> {
    // Without O_NONBLOCK a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::LOOP => StorageError::Refused("that is a symbolic link: name the file itself".to_owned()),
        other => StorageError::asking("opening the file to measure")(other),
    })?;
    let stat = fstat(&file).map_err(StorageError::asking("looking at the file to measure"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(file),
        other => Err(StorageError::Refused(format!(
            "only regular files can be measured, and this is {}",
            match other {
                FileType::Directory => "a directory",
                FileType::BlockDevice | FileType::CharacterDevice => "a device",
                FileType::Fifo | FileType::Socket => "a pipe or a socket",
                _ => "something else",
            }
        ))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// An own empty directory under the build folder, which is on a disk; removed at the end.
    pub(crate) struct Own(pub(crate) PathBuf);

    impl Own {
        pub(crate) fn new(name: &str) -> Self {
            let binary = std::env::current_exe().expect("the test binary has a path");
            let path = binary.with_file_name(format!("scratch-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("the build folder can be written");
            Self(path)
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Such a directory, opened.
    pub(crate) fn place(name: &str) -> (Own, Place) {
        let own = Own::new(name);
        let place = Place::open(&own.0, Purpose::Any).expect("our own directory");
        (own, place)
    }

    /// A file in one, with room for so many bytes.
    pub(crate) fn file(name: &str, bytes: u64) -> (Own, OwnedFd) {
        let (own, place) = place(name);
        let file = place.file(bytes).expect("room");
        (own, file)
    }

    #[test]
    fn a_scratch_file_has_no_name_and_can_be_written_and_read() {
        let (own, place) = place("file");
        let file = place.file(4096).expect("4 KiB are there");
        rustix::io::pwrite(&file, b"latlab", 0).expect("written");
        let mut back = [0u8; 6];
        rustix::io::pread(&file, &mut back, 0).expect("read");
        assert_eq!(&back, b"latlab");
        assert_eq!(fs::read_dir(&own.0).expect("readable").count(), 0);
    }

    #[test]
    fn links_files_and_what_is_not_there_are_refused_in_one_sentence() {
        let own = Own::new("refuse");
        let file = own.0.join("file");
        fs::write(&file, b"x").expect("written");
        let link = own.0.join("link");
        std::os::unix::fs::symlink(&own.0, &link).expect("linked");
        for path in [&file, &link] {
            let error = Place::open(path, Purpose::Any).expect_err("no directory");
            assert!(matches!(error, StorageError::Refused(_)), "{error}");
            assert!(!error.to_string().contains("scratch-refuse"), "no path: {error}");
        }
        let error = Place::open(&own.0.join("nothing"), Purpose::Any).expect_err("nothing there");
        assert!(matches!(error, StorageError::System { .. }), "{error}");
    }

    #[test]
    fn memory_is_no_disk() {
        let shared = Path::new("/dev/shm");
        if !shared.is_dir() {
            return;
        }
        let error = Place::open(shared, Purpose::Disk).expect_err("tmpfs");
        assert!(error.to_string().contains("tmpfs"), "{error}");
    }

    #[test]
    fn a_file_that_would_fill_the_disk_is_refused_before_a_byte_is_written() {
        let (_own, place) = place("full");
        let error = place.file(1 << 60).expect_err("nobody has an exbibyte");
        assert!(error.to_string().contains("would leave less than"), "{error}");
    }

    #[test]
    fn only_regular_files_are_opened_for_reading() {
        let own = Own::new("existing");
        let file = own.0.join("file");
        fs::write(&file, b"x").expect("written");
        let link = own.0.join("link");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        assert!(open_existing(&file).is_ok());
        for refused in [link.as_path(), own.0.as_path(), Path::new("/dev/null")] {
            let error = open_existing(refused).expect_err("no regular file");
            assert!(matches!(error, StorageError::Refused(_)), "{error}");
        }
    }
}
