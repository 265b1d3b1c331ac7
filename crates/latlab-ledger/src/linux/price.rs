//! What recording costs on this machine: one thread waits for another, without and with the events that a program would have.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd as _;
use std::sync::mpsc;

use super::recorder::{LEAST_PERIOD_NS, Recorder, this_thread};
use super::thread_cpu_ns;
use crate::governor::Price;

/// Waits timed at once; each is one switch of the thread that is timed.
const ROUNDS: u32 = 100;
const REPETITIONS: usize = 5;
/// Work timed under samples: some periods long.
const WORK: u64 = 6 * LEAST_PERIOD_NS;
/// Where it cannot be measured: as seen on virtual machines, where the timer behind the clock event costs an exit; bare metal is below.
const USUAL: Price = Price {
    switch_ns: 8000.0,
    sample_ns: 8000.0,
    fault_ns: 200.0,
};
/// What is measured less than this was lost in the noise.
const LEAST: Price = Price {
    switch_ns: 2000.0,
    sample_ns: 2000.0,
    fault_ns: 200.0,
};
const MOST_NS: f64 = 200_000.0;

/// Measures in some tens of milliseconds; the usual price where that fails.
pub(crate) fn measure(sees_kernel: bool) -> Price {
    let measured = std::thread::scope(|scope| {
        let timed = scope.spawn(move || (switch(sees_kernel), sample(sees_kernel)));
        timed.join().unwrap_or((None, None))
    });
    // Measured with everything in the caches: in a program that has other work the records find them cold. Twice as much was seen.
    let cold = |measured: Option<f64>| measured.map(|ns| 2.0 * ns);
    let measured = (cold(measured.0), cold(measured.1));
    Price {
        switch_ns: measured
            .0
            .unwrap_or(USUAL.switch_ns)
            .clamp(LEAST.switch_ns, MOST_NS),
        sample_ns: measured
            .1
            .unwrap_or(USUAL.sample_ns)
            .clamp(LEAST.sample_ns, MOST_NS),
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

/// Keeps the calling thread where it is: on one CPU each wait is a switch, on two it may not be.
fn stay() {
    // SAFETY: a zeroed set is empty; the calls fill and read memory of ours, and mean this thread alone, which ends soon.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if let Ok(cpu) = usize::try_from(libc::sched_getcpu()) {
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn threads(of: &[libc::pid_t]) -> Vec<u32> {
    of.iter().filter_map(|tid| u32::try_from(*tid).ok()).collect()
}

/// What recording adds to a wait: two threads hand a byte to each other on one CPU.
fn switch(sees_kernel: bool) -> Option<f64> {
    stay();
    let (mut here, mut there) = pipe()?;
    let (mut back, mut answer) = pipe()?;
    let (tell, told) = mpsc::channel();
    // Inherits the one CPU.
    let helper = std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || {
            let _ = tell.send(this_thread());
            let mut byte = [0_u8; 1];
            while here.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
        })
        .ok()?;
    let other = told.recv().ok()?;
    let mut round = || {
        let mut byte = [0_u8; 1];
        let before = thread_cpu_ns();
        for _ in 0..ROUNDS {
            there.write_all(&byte).ok()?;
            back.read_exact(&mut byte).ok()?;
        }
        Some((thread_cpu_ns() - before) as f64 / f64::from(ROUNDS))
    };
    let mut typical = || middle((0..REPETITIONS).filter_map(|_| round()).collect());
    let plain = typical();
    let mut recorder = Recorder::open(sees_kernel, LEAST_PERIOD_NS).ok();
    let watched = recorder.as_mut().and_then(|recorder| {
        recorder.start(&threads(&[this_thread(), other]), false).ok()?;
        typical()
    });
    drop(recorder);
    drop(there);
    let _ = helper.join();
    Some(watched? - plain?)
}

/// What a sample adds to work without waits.
fn sample(sees_kernel: bool) -> Option<f64> {
    let work = |steps: u64| {
        let before = thread_cpu_ns();
        let mut state = 1_u64;
        for _ in 0..steps {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        (thread_cpu_ns() - before) as f64
    };
    let mut steps = 100_000_u64;
    while work(steps) < WORK as f64 / 2.0 && steps < 1 << 32 {
        steps *= 2;
    }
    let typical = || middle((0..REPETITIONS).map(|_| work(steps)).collect());
    let plain = typical()?;
    let mut recorder = Recorder::open(sees_kernel, LEAST_PERIOD_NS).ok()?;
    recorder.start(&threads(&[this_thread()]), false).ok()?;
    let watched = typical()?;
    Some((watched - plain) / (plain / LEAST_PERIOD_NS as f64))
}
