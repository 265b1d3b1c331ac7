//! What recording costs on this machine: one thread waits for another, without and with the events that a program would have.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;

use super::recorder::Recorder;
use super::thread_cpu_ns;
use crate::governor::Price;

/// Waits timed; each is two switches.
const ROUNDS: u32 = 150;
/// Seen on virtual machines, where the timer behind the clock event costs an exit at each switch; bare metal is below.
const USUAL: Price = Price {
    switch_ns: 8000.0,
    sample_ns: 4000.0,
    fault_ns: 200.0,
};
const LEAST_SWITCH_NS: f64 = 500.0;
const MOST_SWITCH_NS: f64 = 30_000.0;

/// Measures in some milliseconds; the usual price where that fails.
pub(crate) fn measure(sees_kernel: bool) -> Price {
    let switch_ns = switch(sees_kernel).unwrap_or(USUAL.switch_ns);
    Price {
        switch_ns: switch_ns.clamp(LEAST_SWITCH_NS, MOST_SWITCH_NS),
        ..USUAL
    }
}

fn pipe() -> Option<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: fills two descriptors of ours.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: the kernel has just given us both.
    Some(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

fn this_thread() -> u32 {
    // SAFETY: asks for a number.
    u32::try_from(unsafe { libc::gettid() }).unwrap_or(0)
}

/// CPU time of this thread for each wait, with the events and without: the smaller of some repetitions each.
fn switch(sees_kernel: bool) -> Option<f64> {
    let (mut here, mut there) = pipe()?;
    let (mut back, mut answer) = pipe()?;
    let helper = std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || {
            let mut byte = [0_u8; 1];
            while here.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
        })
        .ok()?;
    let mut round = || {
        let mut byte = [0_u8; 1];
        let before = thread_cpu_ns();
        for _ in 0..ROUNDS {
            there.write_all(&byte).ok()?;
            back.read_exact(&mut byte).ok()?;
        }
        Some((thread_cpu_ns() - before) as f64 / f64::from(ROUNDS))
    };
    let mut least =
        |repetitions: usize| (0..repetitions).try_fold(f64::INFINITY, |least, _| Some(round()?.min(least)));
    let plain = least(3);
    let events = Recorder::open(&[this_thread()], sees_kernel, false);
    let watched = events.ok().and_then(|events| {
        events.follow();
        events.switch(true);
        let watched = least(3);
        events.switch(false);
        watched
    });
    drop(there);
    let _ = helper.join();
    Some(watched? - plain?)
}
