//! Linux: a child as something to poll, and what this process holds.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Whether the child, which is not reaped by this, has ended within that time. Costs about a microsecond, a
/// thousandth of the quickest program. Where the kernel refuses (before 5.3, or a filter of calls) the answer
/// is yes: who reaps it waits.
pub(super) fn ends_within(child: libc::pid_t, milliseconds: c_int) -> bool {
    // SAFETY: pidfd_open takes two integers and touches no memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    let Ok(descriptor) = c_int::try_from(descriptor) else { return true };
    if descriptor < 0 {
        return true;
    }
    // SAFETY: the kernel has just given it to us alone.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut waited = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: one structure, which outlives the call.
        match unsafe { libc::poll(&raw mut waited, 1, milliseconds) } {
            0 => return false,
            count if count > 0 => return true,
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return true,
        }
    }
}

/// Memory of this process that is in RAM, bytes.
pub(super) fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
