//! Closing descriptors where nobody waits for it.
//!
//! When the last event of a tracepoint is closed, the kernel waits for two grace periods, some 35 to 80 ms,
//! and the evidence of one thread is a dozen of them. A thread can wait for that beside others. It leaves the
//! process's table of descriptors first: a program that is started meanwhile would be given a copy of each
//! that is still open, and would wait when it closes them as it begins.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Closes events on a thread of its own, which ends when they are closed. Where there can be no thread they
/// are closed here.
pub fn close_beside(events: Vec<OwnedFd>) -> Option<JoinHandle<()>> {
    if events.is_empty() {
        return None;
    }
    let mut copies: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
    let (say, hear) = mpsc::channel();
    let (hand_over, take_over) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        // SAFETY: this thread uses no descriptor but the copies, and their owners close those of the process.
        let is_apart = unsafe { unshare_unsafe(UnshareFlags::FILES) }.is_ok();
        if is_apart {
            close_all_but(&mut copies);
        }
        let _ = say.send(is_apart);
        // Once the process has closed its own, or all of them where there is one table only.
        let whole: Option<Vec<OwnedFd>> = take_over.recv().ok();
        if is_apart {
            for copy in copies {
                // SAFETY: of this thread's own table, where nobody else uses it.
                unsafe { libc::close(copy) };
            }
        }
        drop(whole);
    });
    match (thread, hear.recv()) {
        (Ok(thread), Ok(false)) => {
            let _ = hand_over.send(events);
            Some(thread)
        }
        (thread, _) => {
            drop(events);
            thread.ok()
        }
    }
}

/// Closes all descriptors but these, which are put in order. Takes no lock and allocates nothing, so that a
/// forked process may call it. Where the call is missing (before Linux 5.9) they stay open.
pub fn close_all_but(keep: &mut [RawFd]) {
    keep.sort_unstable();
    let mut first = 0u32;
    for file in keep {
        let Ok(file) = u32::try_from(*file) else { continue };
        if file > first {
            // SAFETY: three numbers; the files that are closed are not used here any more.
            unsafe { libc::syscall(libc::SYS_close_range, first, file - 1, 0) };
        }
        first = file + 1;
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_closed_beside_is_closed_when_its_thread_has_ended() {
        let (mut read, write) = std::io::pipe().expect("two descriptors");
        close_beside(vec![write.into()]).expect("a thread").join().expect("it only closes");
        assert_eq!(read.read(&mut [0]).expect("an end"), 0, "nobody can write any more");
    }

    #[test]
    fn a_program_that_is_started_meanwhile_has_no_copy() {
        // SAFETY: a thread that uses no descriptor.
        let parts = || unsafe { unshare_unsafe(UnshareFlags::FILES) }.is_ok();
        if !std::thread::spawn(parts).join().expect("it only asks") {
            // A container may forbid it.
            return;
        }
        let (mut read, write) = std::io::pipe().expect("two descriptors");
        // Every program would inherit it, for as long as it lives.
        // SAFETY: a flag of a descriptor of ours.
        assert_eq!(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETFD, 0) }, 0);
        let closing = close_beside(vec![write.into()]).expect("a thread");
        let mut child = Command::new("sleep").arg("60").spawn().expect("a program of every system");
        closing.join().expect("it only closes");
        let mut ends = [libc::pollfd { fd: read.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        // SAFETY: one of one.
        let answers = unsafe { libc::poll(ends.as_mut_ptr(), 1, 10_000) };
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        assert_eq!((answers, ends[0].revents), (1, libc::POLLHUP), "no other writer is left");
        assert_eq!(read.read(&mut [0]).expect("an end"), 0);
    }
}
