//! Names of system calls by number.

use syscalls::Sysno;

/// The name of the call of a line of `/proc/PID/task/TID/syscall`; `None`: it is of none.
pub(crate) fn of_line(line: &str) -> Option<&'static str> {
    name(line.split(' ').next()?.parse().ok()?)
}

/// An argument of the call of such a line.
pub(crate) fn argument(line: &str, at: usize) -> Option<u64> {
    let word = line.split(' ').nth(at + 1)?;
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// The name of a call; `None`: no call has this number.
pub(crate) fn name(number: i64) -> Option<&'static str> {
    Sysno::new(usize::try_from(number).ok()?).map(|call| call.name())
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
        assert_eq!(name(libc::SYS_getpid), Some("getpid"));
        assert_eq!(name(1_000_000), None);
        assert_eq!(name(-1), None);
    }
}
