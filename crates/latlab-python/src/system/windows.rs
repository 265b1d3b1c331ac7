//! Windows: no signals; a worker is ended from outside or by the broken pipe.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::windows::io::FromRawHandle;

/// The file behind a descriptor of the C library, which stays open: it belongs to the interpreter.
pub(crate) fn open(fd: i32) -> io::Result<ManuallyDrop<File>> {
    // SAFETY: takes a number and returns a handle, or -1 when it is no open descriptor.
    let handle = unsafe { libc::get_osfhandle(fd) };
    if handle == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a valid handle of the C library; never closed here, because ManuallyDrop does not drop.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_handle(handle as *mut _) }))
}

/// Nothing is handed over here.
pub(crate) fn inherited(_fd: i32) -> Option<File> {
    None
}

pub(crate) struct Termination;

impl Termination {
    #[expect(clippy::unnecessary_wraps, reason = "the same signature on all systems")]
    pub(crate) fn watch() -> io::Result<Self> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "the same signature on all systems")]
    pub(crate) fn noted(&self) -> bool {
        false
    }
}

pub(crate) fn die_with_parent() -> bool {
    false
}

/// No scratch folders are made here.
pub(crate) fn sweep(_directory: &std::path::Path) -> usize {
    0
}
