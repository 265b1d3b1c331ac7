//! glibc, which tells its version at run time.

use std::ffi::CStr;

use crate::os::Libc;

pub(super) fn libc() -> Libc {
    // SAFETY: takes nothing and returns a pointer to a constant string of the library (gnu_get_libc_version(3)).
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    Libc { name: "glibc".to_owned(), version: Some(version.to_string_lossy().into_owned()) }
}
