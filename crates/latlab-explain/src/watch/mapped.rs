//! Opens a file that a watched process has mapped: the very file that the kernel names, or none.
//!
//! The path of a mapping is what the program makes of it: a FIFO or a device may lie there now, and in a
//! container it leads to another file than here. So nothing is opened before it is known to be a regular
//! file, and it counts only if the kernel gives it the device and the inode of the mapping. Files that a
//! program serves (FUSE) are left alone: it may never answer.

use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, open as open_file, openat, openat2};
use rustix::io::Errno;

use super::maps;
use super::proc_file::is_of_kind;
use crate::account::mappings::{Map, Mapped};
use crate::account::records::FileId;

/// A longer list of mounts is not searched, bytes.
const MOST_MOUNTS: usize = 1 << 20;

pub(crate) fn named(mapped: &Mapped, name: &str) -> Option<File> {
    let (pid, map) = mapped.of(name)?;
    open(*pid, map)
}

pub(crate) fn open(pid: u32, map: &Map) -> Option<File> {
    if map.file.inode == 0 || !map.path.starts_with('/') {
        return None;
    }
    let own = std::process::id();
    // Root may ask for what is mapped, whatever has become of its path.
    let mapping = format!("/proc/{pid}/map_files/{:x}-{:x}", map.start, map.end);
    let mapping = || is_local(pid, "", map.file).then(|| at(None, &mapping, OFlags::empty()))?;
    let root = || {
        let root = at(None, &format!("/proc/{pid}/root"), OFlags::DIRECTORY)?;
        is_local(pid, &map.path, map.file).then(|| at(Some(&root), &map.path, OFlags::NOFOLLOW))?
    };
    // When the process has ended, it has no root any more.
    let here = || {
        let root = at(None, "/", OFlags::DIRECTORY)?;
        is_local(own, &map.path, map.file).then(|| at(Some(&root), &map.path, OFlags::NOFOLLOW))?
    };
    let the_same = |place: OwnedFd| regular(&place).filter(|file| is(file, map.file));
    mapping().and_then(the_same).or_else(|| root().and_then(the_same)).or_else(|| here().and_then(the_same))
}

/// A regular file of this system, where its own links may be followed.
pub(crate) fn own(path: &str) -> Option<File> {
    regular(&at(None, path, OFlags::empty())?)
}

/// A regular file below the root of a process, by a path without links.
pub(crate) fn below(pid: u32, path: &str) -> Option<File> {
    let root = at(None, &format!("/proc/{pid}/root"), OFlags::DIRECTORY)?;
    let place = is_local(pid, path, FileId::default()).then(|| at(Some(&root), path, OFlags::NOFOLLOW))?;
    regular(&place?)
}

/// A place in the file system, of which nothing is opened yet. Below a root, no symbolic link is followed.
fn at(root: Option<&OwnedFd>, path: &str, flags: OFlags) -> Option<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let Some(root) = root else { return open_file(path, flags, Mode::empty()).ok() };
    let path = path.trim_start_matches('/');
    match openat2(root, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Before Linux 5.6, and in some sandboxes.
        Err(Errno::NOSYS) => openat(root, path, flags, Mode::empty()).ok(),
        place => place.ok(),
    }
}

/// Opens what lies at a place if it is a regular file: opening a FIFO may wait, and opening a device may do
/// anything.
fn regular(place: &OwnedFd) -> Option<File> {
    if !is_of_kind(place, "", FileType::RegularFile) {
        return None;
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open_file(path, flags, Mode::empty()).ok().map(File::from)
}

/// Whether the kernel gives this file that device and inode.
fn is(file: &File, wanted: FileId) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(about) = file.metadata() else { return false };
    let reported =
        FileId { major: libc::major(about.dev()), minor: libc::minor(about.dev()), inode: about.ino() };
    reported == wanted || as_mapped(file) == Some(wanted)
}

/// The device and the inode that the kernel lists for this file when it is mapped. On btrfs and overlayfs
/// `stat` tells others, so the only number that can be compared with that of a mapping is that of another
/// mapping.
fn as_mapped(file: &File) -> Option<FileId> {
    let bytes = rustix::param::page_size();
    // SAFETY: a new mapping of an open file, which nothing reads or writes.
    let at = unsafe {
        let (access, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE);
        libc::mmap(std::ptr::null_mut(), bytes, access, kind, file.as_raw_fd(), 0)
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    let start = at.addr() as u64;
    let found = maps::all(std::process::id()).into_iter().find(|map| map.start == start);
    // SAFETY: exactly what was mapped.
    unsafe { libc::munmap(at, bytes) };
    found.map(|map| map.file)
}

/// Whether no program serves this file, as far as the mounts say that this process sees.
fn is_local(pid: u32, path: &str, file: FileId) -> bool {
    use std::io::Read as _;
    let mut mounts = String::new();
    let list = File::open(format!("/proc/{pid}/mountinfo"));
    let read = list.and_then(|list| list.take(MOST_MOUNTS as u64).read_to_string(&mut mounts));
    read.is_ok_and(|bytes| bytes < MOST_MOUNTS) && !is_served(&mounts, path, file)
}

fn is_served(mounts: &str, path: &str, file: FileId) -> bool {
    let device = format!("{}:{}", file.major, file.minor);
    // As the list of mounts writes it.
    let path = path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011");
    mounts.lines().any(|line| {
        let Some((mount, kind)) = line.split_once(" - ") else { return false };
        let mut words = mount.split(' ').skip(2);
        let (of, below) = (words.next().unwrap_or(""), words.nth(1).unwrap_or("/"));
        let below = path.strip_prefix(below.trim_end_matches('/'));
        let is_below = below.is_some_and(|rest| rest.starts_with('/'));
        kind.starts_with("fuse") && (of == device || is_below)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::fs::MetadataExt as _;
    use std::rc::Rc;

    use super::*;

    /// A folder of this test's own.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("latlab-mapped-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    /// A mapping as the kernel would list it, of no process.
    fn mapping(path: &std::path::Path, file: FileId) -> Map {
        Map { start: 0x1000, end: 0x2000, offset: 0, path: Rc::from(path.to_str().unwrap()), file }
    }

    fn listed(path: &std::path::Path) -> FileId {
        as_mapped(&File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn the_file_of_a_mapping_is_opened_though_its_process_has_ended() {
        let folder = folder("same");
        let path = folder.join("a program");
        std::fs::write(&path, "code").unwrap();
        let file = open(u32::MAX, &mapping(&path, listed(&path))).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        assert_eq!(file.metadata().unwrap().ino(), inode);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_file_at_the_path_of_a_mapping_is_not_opened() {
        let folder = folder("other");
        let (path, kept) = (folder.join("program"), folder.join("kept"));
        std::fs::write(&path, "code").unwrap();
        let file = listed(&path);
        std::fs::rename(&path, &kept).unwrap();
        assert!(open(u32::MAX, &mapping(&path, file)).is_none(), "nothing is there");
        std::fs::write(&path, "other").unwrap();
        assert!(open(u32::MAX, &mapping(&path, file)).is_none(), "another file");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&kept, &path).unwrap();
        assert!(open(u32::MAX, &mapping(&path, file)).is_none(), "a link");
        assert!(open(u32::MAX, &mapping(&kept, file)).is_some());
        let unknown = FileId::default();
        assert!(open(u32::MAX, &mapping(&kept, unknown)).is_none(), "not known which");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_fifo_or_a_device_at_the_path_of_a_mapping_is_not_opened() {
        let folder = folder("fifo");
        let path = folder.join("program (deleted)");
        let text = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
        for path in [path.as_path(), "/dev/zero".as_ref(), "/proc/self".as_ref()] {
            let about = std::fs::metadata(path).unwrap();
            let file = FileId {
                major: libc::major(about.dev()),
                minor: libc::minor(about.dev()),
                inode: about.ino(),
            };
            assert!(open(u32::MAX, &mapping(path, file)).is_none());
            assert!(own(path.to_str().unwrap()).is_none());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_this_process_runs_is_opened_by_its_mappings() {
        let path = std::env::current_exe().unwrap();
        let maps = maps::of(std::process::id());
        let own = maps.iter().find(|map| *map.path == *path.to_str().unwrap()).unwrap();
        let opened = open(std::process::id(), own).unwrap();
        assert_eq!(opened.metadata().unwrap().ino(), std::fs::metadata(path).unwrap().ino());
        assert!(is(&opened, own.file));
    }

    #[test]
    fn what_a_program_serves_is_known_by_its_mount() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      40 22 0:51 / /home/a\\040b/far rw,nosuid - fuse.sshfs far: rw,user_id=1000\n";
        let file = |major, minor| FileId { major, minor, inode: 7 };
        assert!(is_served(mounts, "/home/a b/far/program", file(254, 0)));
        assert!(is_served(mounts, "", file(0, 51)));
        assert!(!is_served(mounts, "/home/a b/farther", file(254, 0)));
        assert!(!is_served(mounts, "/usr/bin/true", file(254, 0)));
        let root = "22 1 0:60 / / rw - fuse.any any rw\n";
        assert!(is_served(root, "/usr/bin/true", file(254, 0)));
    }
}
