//! What all Unix systems have: descriptors and SIGTERM.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file behind a descriptor, which stays open: it belongs to the interpreter.
pub(crate) fn open(fd: i32) -> io::Result<ManuallyDrop<File>> {
    // SAFETY: F_GETFD only asks whether the number is an open descriptor.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: open, as was just asked; never closed here, because ManuallyDrop does not drop.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }))
}

/// The file behind a descriptor that this process was handed when it was started, for itself only: its
/// children get none.
pub(crate) fn inherited(fd: i32) -> Option<File> {
    // SAFETY: F_SETFD changes a flag of a descriptor, or says that there is none.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return None;
    }
    // SAFETY: open, as the call before has said, and nobody else's: it was handed over for this.
    Some(unsafe { File::from_raw_fd(fd) })
}

static TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    TERMINATED.store(true, Ordering::Relaxed);
}

/// While this lives, SIGTERM ends nothing: it is noted, and the measuring loop asks between blocks.
pub(crate) struct Termination {
    before: libc::sigaction,
}

impl Termination {
    pub(crate) fn watch() -> io::Result<Self> {
        TERMINATED.store(false, Ordering::Relaxed);
        // SAFETY: all-zero is a valid sigaction (no flags, empty mask); the handler only stores to an atomic,
        // which is async-signal-safe; both structures live through the call.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
            // Nothing under way should fail because somebody asked to stop soon.
            ours.sa_flags = libc::SA_RESTART;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGTERM, &raw const ours, &raw mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { before })
        }
    }

    #[expect(clippy::unused_self, reason = "without a watch there is nothing to ask")]
    pub(crate) fn noted(&self) -> bool {
        TERMINATED.load(Ordering::Relaxed)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        // SAFETY: gives back what `watch` was handed; the old action is not asked for.
        unsafe { libc::sigaction(libc::SIGTERM, &raw const self.before, std::ptr::null_mut()) };
    }
}
