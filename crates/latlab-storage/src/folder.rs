//! A private folder with a name, for what needs names: many small files, creating, renaming, removing.
//!
//! Whoever makes one holds a lock in it for as long as it is used. The kernel lets go of the lock however the process ends, so a folder whose
//! lock is free is nobody's, and the next one to come removes it: only its own user's, on the same device, never through a link.
//! While something is made that has a name and no lock yet, the directory that it is made in is locked, shared with others who make something.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{Place, StorageError};

const PREFIX: &str = ".latlab-";
const LOCK: &CStr = c"lock";
/// Between making a folder and locking it, it is nobody's; so long it is left alone where the directory around it cannot be locked.
const GRACE: Duration = Duration::from_mins(1);
/// Folders within folders that are followed when removing; ours are two deep.
const DEEPEST: u32 = 16;

/// How long who makes something waits for who sweeps.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// Locks a directory; `None` when it cannot be had in that time, as on a network's file system. Let go of with the result, or with its process.
pub(crate) fn claim(directory: BorrowedFd<'_>, how: FlockOperation, patience: Duration) -> Option<OwnedFd> {
    let begun = Instant::now();
    // A description of its own: the lock is not shared with who has the directory open.
    let own = open_folder(directory, c".").ok()?;
    loop {
        match flock(&own, how) {
            Ok(()) => return Some(own),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

/// A locked folder, removed with everything in it when this is dropped.
#[derive(Debug)]
pub struct Folder {
    parent: OwnedFd,
    name: CString,
    directory: OwnedFd,
    /// Holding it is what keeps others from sweeping.
    _lock: OwnedFd,
    device: u64,
    removals: Arc<Removals>,
}

/// What removing files took here, by all folders of a place.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    files: AtomicU64,
    ns: AtomicU64,
}

/// Fewer files are removed in less than what else happens meanwhile.
const TELLING: u64 = 20;

impl Removals {
    /// So many files were removed in this time.
    pub(crate) fn add(&self, files: u64, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if files >= TELLING {
            self.files.fetch_add(files, Ordering::Relaxed);
            self.ns.fetch_add(ns, Ordering::Relaxed);
        }
    }

    /// s.
    pub(crate) fn each_s(&self) -> Option<f64> {
        let files = self.files.load(Ordering::Relaxed);
        (files > 0).then(|| self.ns.load(Ordering::Relaxed) as f64 / 1e9 / files as f64)
    }
}

impl Folder {
    /// Makes and locks a new one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(place: &Place) -> Result<Self, StorageError> {
        let what = "making a scratch folder";
        let parent = place
            .directory()
            .try_clone_to_owned()
            .map_err(|source| StorageError::System {
                what: what.to_owned(),
                source,
            })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), now.as_nanos());
        let name = CString::new(name).map_err(|_| StorageError::Refused(what.to_owned()))?;
        let _making = claim(parent.as_fd(), FlockOperation::NonBlockingLockShared, PATIENCE);
        mkdirat(&parent, &name, Mode::RWXU).map_err(StorageError::asking(what))?;
        match Self::lock(&parent, &name) {
            Ok((folder, lock)) => Ok(Self {
                parent,
                name,
                directory: folder,
                _lock: lock,
                device: place.device(),
                removals: Arc::clone(place.removals()),
            }),
            Err(errno) => {
                let _removed = unlinkat(&parent, &name, AtFlags::REMOVEDIR);
                Err(StorageError::asking(what)(errno))
            }
        }
    }

    fn lock(parent: &OwnedFd, name: &CStr) -> Result<(OwnedFd, OwnedFd), Errno> {
        let folder = open_folder(parent.as_fd(), name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&folder, LOCK, flags, Mode::RUSR | Mode::WUSR)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok((folder, lock))
    }

    /// The folder, to make files in.
    #[must_use]
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let (begun, mut files) = (Instant::now(), 0);
        // What cannot be removed now is swept at the next start.
        let _ = remove(self.parent.as_fd(), &self.name, self.device, 0, &mut files);
        self.removals.add(files, begun.elapsed());
    }
}

/// Removes folders of this user's that nobody holds any more, and empty files that a process was killed before it took their names away;
/// returns how many.
///
/// # Errors
/// When the directory cannot be listed.
pub fn sweep(place: &Place) -> Result<usize, StorageError> {
    let mut swept = 0;
    // Held until all is done: nobody is between making something and locking it.
    let alone = claim(
        place.directory(),
        FlockOperation::NonBlockingLockExclusive,
        Duration::ZERO,
    );
    for name in
        names(place.directory()).map_err(StorageError::asking("looking for left-over scratch folders"))?
    {
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let removed = match abandoned(place, &name, alone.is_some()) {
            Some(FileType::Directory) => remove(place.directory(), &name, place.device(), 0, &mut 0),
            Some(_) => unlinkat(place.directory(), &name, AtFlags::empty()),
            None => continue,
        };
        swept += usize::from(removed.is_ok());
    }
    Ok(swept)
}

/// What it is, when it is nobody's.
fn abandoned(place: &Place, name: &CStr, alone: bool) -> Option<FileType> {
    let stat = statat(place.directory(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if stat.st_uid != geteuid().as_raw() || stat.st_dev != place.device() {
        return None;
    }
    let age = u64::try_from(stat.st_mtime).ok().and_then(|seconds| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH + Duration::from_secs(seconds))
            .ok()
    });
    let nobody_is_at_it = alone || age.is_some_and(|age| age > GRACE);
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_free = match kind {
        // Where no file can be made without a name; nothing is written before the name is gone.
        FileType::RegularFile => stat.st_size == 0 && nobody_is_at_it,
        FileType::Directory => {
            let folder = open_folder(place.directory(), name).ok()?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&folder, LOCK, flags, Mode::empty()) {
                Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
                // It died between making and locking, or is about to lock.
                Err(Errno::NOENT) => nobody_is_at_it,
                Err(_) => false,
            }
        }
        _ => false,
    };
    is_free.then_some(kind)
}

fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

fn names(folder: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes a folder and what is in it, counting the files: the lock last, so that a sweep that is cut short can be gone on with.
fn remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    device: u64,
    depth: u32,
    files: &mut u64,
) -> Result<(), Errno> {
    let folder = open_folder(parent, name)?;
    // Something was mounted there, or it goes down without end: not ours.
    if fstat(&folder)?.st_dev != device || depth > DEEPEST {
        return Err(Errno::XDEV);
    }
    let mut locked = false;
    for name in names(folder.as_fd())? {
        if name.as_c_str() == LOCK {
            locked = true;
            continue;
        }
        let stat = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            remove(folder.as_fd(), &name, device, depth + 1, files)?;
        } else {
            unlinkat(&folder, &name, AtFlags::empty())?;
            *files += 1;
        }
    }
    if locked {
        unlinkat(&folder, LOCK, AtFlags::empty())?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::Purpose;
    use crate::place::tests::Own;

    fn place(name: &str) -> (Own, Place) {
        let own = Own::new(name);
        let place = Place::open(&own.0, Purpose::Any).expect("our own directory");
        (own, place)
    }

    fn count(path: &Path) -> usize {
        fs::read_dir(path).expect("readable").count()
    }

    #[test]
    fn a_folder_is_gone_with_all_that_is_in_it() {
        let (own, place) = place("folder");
        let folder = Folder::create(&place).expect("made");
        mkdirat(folder.directory(), c"sub", Mode::RWXU).expect("made");
        let flags = OFlags::CREATE | OFlags::WRONLY;
        openat(folder.directory(), c"sub/file", flags, Mode::RWXU).expect("made");
        assert_eq!(count(&own.0), 1);
        drop(folder);
        assert_eq!(count(&own.0), 0);
    }

    #[test]
    fn what_a_removal_took_is_known_of_the_place_afterwards() {
        let (_own, place) = place("removals");
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let make_and_remove = |count: u64| {
            let folder = Folder::create(&place).expect("made");
            for number in 0..count {
                let name = CString::new(number.to_string()).expect("digits");
                openat(folder.directory(), &name, flags, Mode::RWXU).expect("made");
            }
        };
        make_and_remove(TELLING - 1);
        assert_eq!(place.removal_s(), None);
        make_and_remove(TELLING);
        assert!(place.removal_s().is_some_and(|each_s| each_s > 0.0));
        place.removed(1_000_000, Duration::from_secs(2_000_000));
        assert!(
            place
                .removal_s()
                .is_some_and(|each_s| (1.9..2.1).contains(&each_s))
        );
    }

    #[test]
    fn a_folder_that_is_in_use_is_not_swept_and_an_abandoned_one_is() {
        let (own, place) = place("sweep");
        let folder = Folder::create(&place).expect("made");
        assert_eq!(sweep(&place).expect("listed"), 0);
        assert_eq!(count(&own.0), 1);
        // As a killed process leaves it: the lock is let go, the folder stays.
        let left = own.0.join(format!("{PREFIX}1-dead"));
        fs::create_dir(&left).expect("made");
        fs::write(left.join("lock"), b"").expect("written");
        fs::write(left.join("data"), b"x").expect("written");
        assert_eq!(sweep(&place).expect("listed"), 1);
        assert!(!left.exists());
        drop(folder);
        assert_eq!(count(&own.0), 0);
    }

    #[test]
    fn a_sweep_follows_no_link_and_touches_nothing_else() {
        let (own, place) = place("links");
        let precious = own.0.join("precious");
        fs::create_dir(&precious).expect("made");
        fs::write(precious.join("file"), b"x").expect("written");
        std::os::unix::fs::symlink(&precious, own.0.join(format!("{PREFIX}2-link"))).expect("linked");
        let left = own.0.join(format!("{PREFIX}3-dead"));
        fs::create_dir(&left).expect("made");
        fs::write(left.join("lock"), b"").expect("written");
        std::os::unix::fs::symlink(&precious, left.join("inside")).expect("linked");
        assert_eq!(sweep(&place).expect("listed"), 1);
        assert!(precious.join("file").exists());
        assert_eq!(count(&own.0), 2, "the precious folder and the link");
    }

    #[test]
    fn what_is_just_being_made_is_left_alone_and_what_a_killed_process_had_begun_is_not() {
        let (own, place) = place("young");
        fs::create_dir(own.0.join(format!("{PREFIX}4-young"))).expect("made");
        fs::write(own.0.join(format!("{PREFIX}5-0")), b"").expect("made");
        fs::write(own.0.join(format!("{PREFIX}precious")), b"x").expect("made");
        let making = claim(place.directory(), FlockOperation::NonBlockingLockShared, PATIENCE);
        if making.is_none() {
            // A file system without locks: the age decides.
            return;
        }
        assert_eq!(sweep(&place).expect("listed"), 0);
        drop(making);
        assert_eq!(sweep(&place).expect("listed"), 2);
        assert_eq!(count(&own.0), 1, "what holds something was not ours");
        drop(Folder::create(&place).expect("a sweep that is over is in nobody's way"));
    }
}
