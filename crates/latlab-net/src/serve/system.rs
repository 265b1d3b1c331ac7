//! What a server asks of the system.

/// By what TCP decides how much may be under way on the connections of this listener; none where no system
/// call says it.
#[cfg(target_os = "linux")]
pub(super) fn congestion_control(listener: &impl std::os::fd::AsFd) -> Option<String> {
    rustix::net::sockopt::tcp_congestion(listener).ok()
}

/// By what TCP decides how much may be under way on the connections of this listener; none where no system
/// call says it.
#[cfg(not(target_os = "linux"))]
pub(super) fn congestion_control<L>(_listener: &L) -> Option<String> {
    None
}

/// Raises the limit of open files to the most that is allowed; the usual 1,024 is less than the connections
/// of a sweep.
pub(super) fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Where it is refused there are fewer connections, and the others wait.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}

/// Whether something failed because this process, or the system, can open no more files.
#[cfg(unix)]
pub(super) fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// No error says so.
#[cfg(not(unix))]
pub(super) fn is_out_of_descriptors(_: &std::io::Error) -> bool {
    false
}
