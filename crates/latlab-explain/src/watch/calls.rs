//! Names of system calls by number.

macro_rules! names {
    ($number:expr, $($constant:ident => $name:literal),+ $(,)?) => {
        $(if $number == libc::$constant { return Some($name); })+
    };
}

/// The name of the call of a line of `/proc/PID/task/TID/syscall`; `None`: it is of none, or of one that no rule speaks of.
pub(crate) fn of_line(line: &str) -> Option<&'static str> {
    name(line.split(' ').next()?.parse().ok()?)
}

/// An argument of the call of such a line.
pub(crate) fn argument(line: &str, at: usize) -> Option<u64> {
    let word = line.split(' ').nth(at + 1)?;
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// The name of a call; `None` for those that no rule speaks of.
pub(crate) fn name(number: i64) -> Option<&'static str> {
    let number = libc::c_long::try_from(number).ok()?;
    names!(number,
        SYS_read => "read", SYS_write => "write", SYS_pread64 => "pread64", SYS_pwrite64 => "pwrite64", SYS_readv => "readv",
        SYS_writev => "writev", SYS_preadv => "preadv", SYS_pwritev => "pwritev", SYS_preadv2 => "preadv2", SYS_pwritev2 => "pwritev2",
        SYS_futex => "futex", SYS_nanosleep => "nanosleep", SYS_clock_nanosleep => "clock_nanosleep", SYS_wait4 => "wait4",
        SYS_waitid => "waitid", SYS_ppoll => "ppoll", SYS_pselect6 => "pselect6", SYS_epoll_pwait => "epoll_pwait",
        SYS_epoll_pwait2 => "epoll_pwait2",
        SYS_recvfrom => "recvfrom", SYS_sendto => "sendto", SYS_recvmsg => "recvmsg", SYS_sendmsg => "sendmsg", SYS_recvmmsg => "recvmmsg",
        SYS_sendmmsg => "sendmmsg", SYS_connect => "connect", SYS_accept => "accept", SYS_accept4 => "accept4", SYS_shutdown => "shutdown",
        SYS_fsync => "fsync", SYS_fdatasync => "fdatasync", SYS_sync => "sync", SYS_syncfs => "syncfs", SYS_msync => "msync",
        SYS_openat => "openat", SYS_openat2 => "openat2", SYS_close => "close", SYS_fstat => "fstat", SYS_newfstatat => "newfstatat",
        SYS_statx => "statx", SYS_faccessat => "faccessat", SYS_unlinkat => "unlinkat", SYS_renameat2 => "renameat2", SYS_mkdirat => "mkdirat",
        SYS_linkat => "linkat", SYS_symlinkat => "symlinkat", SYS_readlinkat => "readlinkat", SYS_getdents64 => "getdents64",
        SYS_ftruncate => "ftruncate", SYS_truncate => "truncate", SYS_fallocate => "fallocate", SYS_sendfile => "sendfile",
        SYS_splice => "splice", SYS_tee => "tee", SYS_vmsplice => "vmsplice", SYS_copy_file_range => "copy_file_range",
        SYS_readahead => "readahead", SYS_fadvise64 => "fadvise64", SYS_sync_file_range => "sync_file_range",
        SYS_io_getevents => "io_getevents", SYS_io_submit => "io_submit", SYS_io_uring_enter => "io_uring_enter",
        SYS_mmap => "mmap", SYS_munmap => "munmap", SYS_mremap => "mremap", SYS_mprotect => "mprotect", SYS_brk => "brk",
        SYS_madvise => "madvise", SYS_clone => "clone", SYS_clone3 => "clone3", SYS_execve => "execve", SYS_execveat => "execveat",
        SYS_exit => "exit", SYS_exit_group => "exit_group", SYS_sched_yield => "sched_yield", SYS_flock => "flock", SYS_fcntl => "fcntl",
        SYS_semtimedop => "semtimedop", SYS_semop => "semop", SYS_msgrcv => "msgrcv", SYS_msgsnd => "msgsnd",
        SYS_mq_timedreceive => "mq_timedreceive", SYS_mq_timedsend => "mq_timedsend", SYS_rt_sigsuspend => "rt_sigsuspend",
        SYS_rt_sigtimedwait => "rt_sigtimedwait", SYS_restart_syscall => "restart_syscall", SYS_ioctl => "ioctl", SYS_ptrace => "ptrace",
        SYS_membarrier => "membarrier", SYS_getsockopt => "getsockopt", SYS_fchmod => "fchmod", SYS_utimensat => "utimensat",
        SYS_statfs => "statfs", SYS_fstatfs => "fstatfs", SYS_getxattr => "getxattr",
    );
    // The calls that newer architectures never had.
    #[cfg(target_arch = "x86_64")]
    names!(number,
        SYS_poll => "poll", SYS_select => "select", SYS_epoll_wait => "epoll_wait", SYS_open => "open", SYS_creat => "creat", SYS_stat => "stat",
        SYS_lstat => "lstat", SYS_access => "access", SYS_unlink => "unlink", SYS_rename => "rename", SYS_mkdir => "mkdir",
        SYS_rmdir => "rmdir", SYS_link => "link", SYS_symlink => "symlink", SYS_readlink => "readlink", SYS_getdents => "getdents",
        SYS_pause => "pause", SYS_fork => "fork", SYS_vfork => "vfork",
    );
    None
}

/// Which argument of a call says how many descriptors it waits for: none of them, and it is a sleep.
pub(crate) fn descriptors_argument(name: &str) -> Option<usize> {
    match name {
        "poll" | "ppoll" => Some(1),
        "select" | "pselect6" => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_names_on_this_architecture() {
        assert_eq!(name(libc::SYS_read), Some("read"));
        assert_eq!(name(libc::SYS_futex), Some("futex"));
        assert_eq!(name(libc::SYS_getpid), None);
        assert_eq!(name(-1), None);
    }
}
