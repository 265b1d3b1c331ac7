//! Linux: a private folder for files with names, removed with everything in it when the session ends.

use std::ffi::{CString, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use latlab_harness::{Env, ProbeError};
use latlab_storage::{Entry, Folder, Place, Room, sweep};
use rustix::fs::{AtFlags, IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;

use crate::disk::system;

/// What the system answered to `what`, with what lifts it where the disk is full or a limit was met.
pub(super) fn refused<E: Into<std::io::Error>>(what: &str) -> impl FnOnce(E) -> ProbeError {
    move |error| {
        let source = error.into();
        let lifted_by = match Errno::from_io_error(&source) {
            Some(Errno::NOSPC) => "; name a directory on a file system with more room with --dir",
            Some(Errno::DQUOT) => "; the disk quota is used up: name another directory with --dir",
            Some(Errno::FBIG) => "; this process's limit on the size of a file (ulimit -f) was reached",
            Some(Errno::MFILE | Errno::NFILE) => "; too many files are open",
            _ => return system(what)(source),
        };
        ProbeError::Other(format!("{what}: {source}{lifted_by}"))
    }
}

/// Bytes that the kernel may count as fetched while everything was in memory: a directory's block, a page of
/// a program.
pub(super) const STRAY_BYTES: u64 = 64 << 10;
/// Flag of a record where the kernel does not say.
pub(super) const UNWATCHED: &str =
    "not checked against the kernel's count of bytes fetched: /proc/thread-self/io cannot be read";

/// `FS_TOPDIR_FL` of `linux/fs.h`, which `chattr +T` sets: ext4 puts each directory in this one into a group
/// of blocks of its own, by its name.
const TOP_DIRECTORY: IFlags = IFlags::from_bits_retain(0x0002_0000);

/// The folder. What dead processes left beside it is removed first.
///
/// No directory in it lies where files were removed a moment ago, on file systems that can be asked for that.
/// Without a journal, ext4 gives out no inode that was freed within five minutes, and looks at each of them
/// again for every new file of the group: after 7,000 removals a file of 10 kB took 770 us to make here, and
/// 27 in a group of its own.
pub(super) struct Scratch {
    pub(super) place: Arc<Place>,
    pub(super) path: PathBuf,
    pub(super) folder: Folder,
    directories: u64,
}

impl Scratch {
    /// Makes one where the run measures.
    pub(super) fn new(env: &Env) -> Result<Self, ProbeError> {
        let place = env.disk.place()?;
        // What cannot be listed cannot be swept; making the folder says why, if it matters.
        let _swept = sweep(&place);
        let folder = Folder::create(&place)?;
        // Where the file system knows no such flag, directories lie where it puts them.
        let _spread = ioctl_getflags(folder.directory())
            .and_then(|flags| ioctl_setflags(folder.directory(), flags | TOP_DIRECTORY));
        let link = format!("/proc/self/fd/{}", folder.directory().as_raw_fd());
        let path = rustix::fs::readlink(link, Vec::new())
            .map_err(refused("finding the scratch folder's path, which needs /proc"))?;
        let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
        // Names that no folder before had, and so groups of their own.
        let directories = RandomState::new().build_hasher().finish() >> 1;
        Ok(Self { place, path, folder, directories })
    }

    /// Whether `files` files of `file_bytes` may be made: room, limits; the budget is another matter.
    pub(super) fn admit(&self, files: u64, file_bytes: u64) -> Result<(), ProbeError> {
        let room = self.place.room()?;
        room.admit(file_bytes)?;
        let unlimited = Room { largest_file_bytes: None, ..room };
        // A file takes whole blocks of the file system, 4 KiB nearly everywhere, and an inode.
        Ok(unlimited.admit(files * (file_bytes.next_multiple_of(4096) + 4096))?)
    }

    /// A new empty directory in it, by its number.
    pub(super) fn directory(&mut self) -> Result<u64, ProbeError> {
        let number = self.directories;
        let name = Entry::Directory(number).name();
        rustix::fs::mkdirat(self.folder.directory().as_fd(), &name, Mode::RWXU)
            .map_err(refused("making a directory"))?;
        self.directories += 1;
        Ok(number)
    }

    /// Absolute path of a file in a directory of these.
    pub(super) fn file(&self, directory: u64, entry: Entry) -> Result<CString, ProbeError> {
        let path = self.path.join(Entry::Directory(directory).to_string()).join(entry.to_string());
        CString::new(path.into_os_string().into_vec())
            .map_err(|_| ProbeError::Other("the scratch folder's path has a zero byte".to_owned()))
    }
}

/// Opens for reading, never through a link.
pub(super) fn open_to_read(path: &CString) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens a new file for writing.
pub(super) fn open_to_write(path: &CString) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
}

/// Writes all of it, as one write wherever the system takes it as one.
pub(super) fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&file, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Reads until `bytes` is full or the file ends; how much there was.
pub(super) fn read_all(file: impl AsFd, bytes: &mut [u8]) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(&file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Whether there is something of this name.
pub(super) fn exists(path: &CString) -> bool {
    rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
