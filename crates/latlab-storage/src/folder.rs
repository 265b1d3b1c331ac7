//! A private folder with a name, for what needs names: many small files, creating, renaming, removing.
//!
//! Whoever makes one holds a lock in it for as long as it is used. The kernel lets go of the lock however the
//! process ends, so a folder whose lock is free is nobody's, and the next run removes it. It counts as
//! latlab's only if all of this holds: its name is one that [`scratch_name`] gives, it is this user's and on
//! this device, and its lock is a regular file with the text [`MAGIC`]. Inside, only an [`Entry`] is removed.
//! Anything else stays where it is, and so do the folder and its lock then.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, linkat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::{Errno, pread, write};
use rustix::process::geteuid;

use crate::names::{is_scratch_name, scratch_name};
use crate::place::{Removals, named, nameless};
use crate::{Entry, Place, StorageError};

/// What a lock file holds, to the byte.
const MAGIC: &[u8] = b"latlab scratch folder: latlab removes it when no process holds a lock on this file\n";
/// A folder may be swept before it has a lock. It is empty then, and another one is made, at most so many
/// times.
const ATTEMPTS: u32 = 10;

/// A locked folder, removed with every [`Entry`] in it when this is dropped.
#[derive(Debug)]
pub struct Folder {
    parent: OwnedFd,
    name: CString,
    directory: OwnedFd,
    /// Holding it is what keeps others from sweeping.
    _lock: OwnedFd,
    removals: Arc<Removals>,
}

/// Locks a file, or says why not.
type Locking = fn(BorrowedFd<'_>) -> Result<(), Errno>;
/// Makes the lock file of a new folder. When that fails there is none.
type Making = fn(BorrowedFd<'_>, Locking) -> Result<OwnedFd, Errno>;

impl Folder {
    /// Makes and locks a new one. Fails when the system refuses, also a lock; nothing is left behind then.
    pub fn create(place: &Place) -> Result<Self, StorageError> {
        Self::made_by(place, make_lock, lock)
    }

    fn made_by(place: &Place, making: Making, locking: Locking) -> Result<Self, StorageError> {
        let what = "making a scratch folder";
        let parent = place.directory().try_clone_to_owned().map_err(StorageError::asking(what))?;
        let mut attempts = 1..=ATTEMPTS;
        loop {
            let name = scratch_name();
            mkdirat(&parent, &name, Mode::RWXU).map_err(StorageError::asking(what))?;
            let made = open_folder(parent.as_fd(), &name)
                .and_then(|folder| Ok((making(folder.as_fd(), locking)?, folder)));
            match made {
                Ok((lock, directory)) => {
                    return Ok(Self {
                        parent,
                        name,
                        directory,
                        _lock: lock,
                        removals: Arc::clone(&place.removals),
                    });
                }
                // Another run swept it while it was empty.
                Err(Errno::NOENT) if attempts.next().is_some() => {}
                Err(errno) => {
                    let _removed = unlinkat(&parent, &name, AtFlags::REMOVEDIR);
                    return Err(StorageError::asking(what)(errno));
                }
            }
        }
    }

    /// The folder, to make an [`Entry`] in.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn lock(file: BorrowedFd<'_>) -> Result<(), Errno> {
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Makes it without a name where the file system can: whoever sees it then sees it locked and with its text.
fn make_lock(folder: BorrowedFd<'_>, locking: Locking) -> Result<OwnedFd, Errno> {
    let Ok(lock) = nameless(folder) else { return make_named_lock(folder, locking) };
    fill_lock(&lock, locking)?;
    let link = format!("/proc/self/fd/{}", lock.as_raw_fd());
    match linkat(CWD, link, folder, Entry::Lock.name(), AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(lock),
        // Without /proc, for one.
        Err(_) => make_named_lock(folder, locking),
    }
}

fn make_named_lock(folder: BorrowedFd<'_>, locking: Locking) -> Result<OwnedFd, Errno> {
    let name = Entry::Lock.name();
    let lock = named(folder, &name)?;
    fill_lock(&lock, locking).inspect_err(|_| {
        let _removed = unlinkat(folder, &name, AtFlags::empty());
    })?;
    Ok(lock)
}

fn fill_lock(lock: &OwnedFd, locking: Locking) -> Result<(), Errno> {
    locking(lock.as_fd())?;
    if write(lock, MAGIC)? == MAGIC.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let (begun, mut files) = (Instant::now(), 0);
        // What cannot be removed now is swept at the next start.
        let _ = remove(self.parent.as_fd(), &self.name, self.directory.as_fd(), &mut files);
        self.removals.add(files, begun.elapsed());
    }
}

/// Removes what killed runs of this user left in a directory: folders that nobody holds, empty ones without a
/// lock, and empty files. Their names are those of scratch folders to the letter. Returns how many. Fails
/// when the directory cannot be listed.
pub fn sweep(place: &Place) -> Result<usize, StorageError> {
    let names =
        names(place.directory()).map_err(StorageError::asking("looking for left-over scratch folders"))?;
    let swept = names.iter().filter(|name| is_scratch_name(name) && sweep_one(place, name).is_ok());
    Ok(swept.count())
}

fn sweep_one(place: &Place, name: &CStr) -> Result<(), Errno> {
    let parent = place.directory();
    let is_ours = |stat: &Stat| stat.st_uid == geteuid().as_raw() && stat.st_dev == place.device();
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        // Where no file can be made without a name; nothing is written before the name is gone.
        FileType::RegularFile if is_ours(&stat) && stat.st_size == 0 => {
            unlinkat(parent, name, AtFlags::empty())
        }
        FileType::Directory => {
            let folder = open_folder(parent, name)?;
            if !is_ours(&fstat(&folder)?) {
                return Err(Errno::PERM);
            }
            match free_lock(folder.as_fd()) {
                Ok(_held) => remove(parent, name, folder.as_fd(), &mut 0),
                // Its maker died before it made the lock. The kernel removes no folder that holds anything.
                Err(Errno::NOENT) => unlinkat(parent, name, AtFlags::REMOVEDIR),
                Err(errno) => Err(errno),
            }
        }
        _ => Err(Errno::PERM),
    }
}

/// The lock of a folder that nobody holds, now held; [`Errno::NOENT`] when there is no file of that name.
fn free_lock(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // Without O_NONBLOCK a pipe of this name would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(folder, Entry::Lock.name(), flags, Mode::empty())?;
    let mut text = [0; MAGIC.len() + 1];
    let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    let length = if is_file { pread(&file, &mut text, 0)? } else { 0 };
    if &text[..length] != MAGIC {
        return Err(Errno::PERM);
    }
    lock(file.as_fd())?;
    Ok(file)
}

/// Opens a folder in another one to look into it, never through a link.
pub fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
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

/// Removes the entries of a folder, counting the files, then its lock and the folder. Both stay if anything
/// else is in it, or if this is cut short: the next sweep goes on with it.
fn remove(parent: BorrowedFd<'_>, name: &CStr, folder: BorrowedFd<'_>, files: &mut u64) -> Result<(), Errno> {
    if !remove_entries(folder, &fstat(folder)?, true, files)? {
        return Err(Errno::NOTEMPTY);
    }
    unlinkat(folder, Entry::Lock.name(), AtFlags::empty())?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes the files and directories of ours; whether nothing else was there. `top` is the scratch folder.
fn remove_entries(folder: BorrowedFd<'_>, top: &Stat, is_top: bool, files: &mut u64) -> Result<bool, Errno> {
    let mut is_empty = true;
    for name in names(folder)? {
        let entry = Entry::named(&name);
        if is_top && entry == Some(Entry::Lock) {
            continue;
        }
        let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_removed = match (entry, FileType::from_raw_mode(stat.st_mode)) {
            // On another device: something was mounted there.
            (Some(Entry::Directory(_)), FileType::Directory) if is_top && stat.st_dev == top.st_dev => {
                let directory = open_folder(folder, &name)?;
                let is_emptied = remove_entries(directory.as_fd(), top, false, files)?;
                if is_emptied {
                    unlinkat(folder, &name, AtFlags::REMOVEDIR)?;
                }
                is_emptied
            }
            (Some(Entry::File(_) | Entry::Renamed(_)), FileType::RegularFile)
                if stat.st_uid == top.st_uid && stat.st_nlink == 1 =>
            {
                unlinkat(folder, &name, AtFlags::empty())?;
                *files += 1;
                true
            }
            _ => false,
        };
        is_empty &= is_removed;
    }
    Ok(is_empty)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::place::TELLING;
    use crate::place::tests::place;

    fn count(path: &Path) -> usize {
        fs::read_dir(path).expect("readable").count()
    }

    #[test]
    fn a_folder_is_gone_with_all_that_is_in_it() {
        let (own, place) = place("folder");
        let folder = Folder::create(&place).expect("made");
        mkdirat(folder.directory(), Entry::Directory(0).name(), Mode::RWXU).expect("made");
        let flags = OFlags::CREATE | OFlags::WRONLY;
        for name in [c"0/f3", c"0/g4", c"f12"] {
            openat(folder.directory(), name, flags, Mode::RWXU).expect("made");
        }
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
                let name = Entry::File(number).name();
                openat(folder.directory(), &name, flags, Mode::RWXU).expect("made");
            }
        };
        make_and_remove(TELLING - 1);
        assert_eq!(place.removal_s(), None);
        make_and_remove(TELLING);
        assert!(place.removal_s().is_some_and(|each_s| each_s > 0.0));
        place.removed(1_000_000, Duration::from_secs(2_000_000));
        assert!(place.removal_s().is_some_and(|each_s| (1.9..2.1).contains(&each_s)));
    }

    #[test]
    fn a_refused_lock_leaves_no_folder_behind() {
        let (own, place) = place("refused");
        for making in [make_lock as Making, make_named_lock] {
            let error = Folder::made_by(&place, making, |_| Err(Errno::NOLCK)).expect_err("refused");
            assert!(matches!(error, StorageError::System { .. }), "{error}");
            assert_eq!(count(&own.0), 0);
        }
    }

    #[test]
    fn a_lock_that_is_made_step_by_step_holds_the_same() {
        let (own, place) = place("named");
        let folder = Folder::made_by(&place, make_named_lock, lock).expect("made");
        let path = own.0.join(folder.name.to_str().expect("ASCII")).join("lock");
        assert_eq!(fs::read(path).expect("readable"), MAGIC);
        assert_eq!(sweep(&place).expect("listed"), 0);
        drop(folder);
        assert_eq!(count(&own.0), 0);
    }

    std::thread_local! {
        /// How many more folders another run sweeps before they have a lock.
        static SWEPT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    fn made_beside_a_sweep(folder: BorrowedFd<'_>, locking: Locking) -> Result<OwnedFd, Errno> {
        if let Some(left) = SWEPT.get().checked_sub(1) {
            SWEPT.set(left);
            let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).expect("a path");
            fs::remove_dir(path).expect("it is empty");
        }
        make_lock(folder, locking)
    }

    #[test]
    fn a_folder_that_is_swept_before_it_has_a_lock_is_made_again() {
        let (own, place) = place("again");
        SWEPT.set(ATTEMPTS);
        let folder = Folder::made_by(&place, made_beside_a_sweep, lock).expect("made at the last attempt");
        assert_eq!((SWEPT.get(), count(&own.0)), (0, 1));
        assert!(statat(folder.directory(), Entry::Lock.name(), AtFlags::empty()).is_ok());
        drop(folder);
        SWEPT.set(ATTEMPTS + 1);
        assert!(Folder::made_by(&place, made_beside_a_sweep, lock).is_err());
        assert_eq!((SWEPT.get(), count(&own.0)), (0, 0));
    }
}
