//! What the measuring process asks of the operating system about itself.

use pyo3::prelude::*;

/// Asks the kernel to kill this process when the one that started it ends, however it ends. Returns whether that was
/// arranged: elsewhere than on Linux it cannot be, and the broken pipe ends the worker.
#[pyfunction]
pub(crate) fn die_with_parent() -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: PR_SET_PDEATHSIG takes one integer, a signal, and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
