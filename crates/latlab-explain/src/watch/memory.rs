//! The memory of other processes, while they go on.

use std::io;

/// Reads several places of another process at once, one after the other into `into`; how many bytes came.
pub(crate) fn gather(pid: u32, places: &[(u64, usize)], into: &mut [u8]) -> io::Result<usize> {
    let mut left = into.len();
    let mut remote = Vec::with_capacity(places.len());
    for (address, bytes) in places {
        let bytes = (*bytes).min(left);
        left -= bytes;
        remote.push(libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(usize::try_from(*address).unwrap_or(0)),
            iov_len: bytes,
        });
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() - left };
    let pid = libc::pid_t::try_from(pid).unwrap_or(0);
    // SAFETY: the kernel writes at most `iov_len` bytes, which lie in `into`; the remote addresses are the
    // other process's, and are checked there.
    let got = unsafe {
        libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            remote.as_ptr(),
            libc::c_ulong::try_from(remote.len()).unwrap_or(0),
            0,
        )
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}
