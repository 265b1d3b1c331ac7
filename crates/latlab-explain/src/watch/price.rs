//! What recording costs on this machine: threads that wait for each other, work and are followed, and
//! programs that are started, without and with the events that a program would have.

use std::io::{Read as _, Write as _, pipe};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use latlab_perf::this_thread;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::clock::{process_cpu_ns, thread_cpu_ns};
use super::recorder::{LEAST_PERIOD_NS, MOST_STACK, Recorder, Wakes};
use super::rounds::rounds;
use crate::governor::Price;

/// Waits timed at once; each is one switch of the thread that is timed.
const ROUNDS: u32 = 100;
const REPETITIONS: usize = 5;
/// Samples are priced where they come ten times as often as they ever do in a program: what they add to so
/// little work is then more than what differs from one time to the next, and is known in a tenth of the time.
const PERIOD_NS: u64 = LEAST_PERIOD_NS / 10;
/// Work timed under samples: some periods long.
const WORK_NS: f64 = 10.0 * PERIOD_NS as f64;
/// Work during which events are opened and closed again and again.
const OPEN_WORK_NS: f64 = 3e6;
/// Steps of work of which it is measured how long they take.
const TRIED: u64 = 50_000;
/// What work goes over, a line of a cache a step: it and what records need put each other out of the first
/// and most of the second cache, as in a program that has other work.
const MEMORY_BYTES: usize = 1 << 20;
const LINE_BYTES: usize = 64;
/// Steps between two waits: a quarter of it.
const BETWEEN: u64 = (MEMORY_BYTES / LINE_BYTES / 4) as u64;
/// Programs started one after the other.
const STARTS: u32 = 4;
/// A program that does nothing.
const PROGRAM: &str = "/bin/true";
/// Where it cannot be measured: as seen on virtual machines, where the timer behind the clock event costs an
/// exit; bare metal is below.
const USUAL: Price =
    Price { switch_ns: 8000.0, sample_ns: 8000.0, fault_ns: 200.0, open_ns: 150_000.0, start_ns: 300_000.0 };
/// What is measured less than this was lost in the noise.
const LEAST: Price =
    Price { switch_ns: 2000.0, sample_ns: 2000.0, fault_ns: 200.0, open_ns: 20_000.0, start_ns: 10_000.0 };
const MOST_NS: f64 = 200_000.0;
const MOST_OPEN_NS: f64 = 2_000_000.0;

/// Measures in a third of a second; the usual price where that fails.
pub(crate) fn measure(sees_kernel: bool) -> Price {
    // The kernel waits when the last event of a tracepoint is closed: at the end, not in each round.
    let _held = sees_kernel.then(Wakes::find).and_then(Result::ok).map(Wakes::held);
    Price::of_rounds(&rounds(|| once(sees_kernel)))
}

fn once(sees_kernel: bool) -> Price {
    let measured = std::thread::scope(|scope| {
        // Each in a thread of its own: the first stays on one CPU.
        let prices: [fn(bool) -> Option<f64>; 4] = [switch, sample, open, start];
        prices.map(|price| {
            let timed = scope.spawn(move || price(sees_kernel));
            timed.join().ok().flatten()
        })
    });
    let [switch, sample, open, start] = measured;
    Price {
        switch_ns: switch.unwrap_or(USUAL.switch_ns).clamp(LEAST.switch_ns, MOST_NS),
        sample_ns: sample.unwrap_or(USUAL.sample_ns).clamp(LEAST.sample_ns, MOST_NS),
        // Where the kernel is seen, faults are not recorded.
        fault_ns: if sees_kernel { 0.0 } else { USUAL.fault_ns },
        open_ns: open.unwrap_or(USUAL.open_ns).clamp(LEAST.open_ns, MOST_OPEN_NS),
        start_ns: start.unwrap_or(USUAL.start_ns).clamp(LEAST.start_ns, MOST_OPEN_NS),
    }
}

/// Keeps the calling thread where it is: on one CPU each wait is a switch, on two it may not be.
fn stay() {
    // SAFETY: takes nothing. By libc: a refusal is reported, and rustix takes it for an answer.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() });
    if let Ok(cpu) = cpu
        && cpu < CpuSet::MAX_CPU
    {
        let mut set = CpuSet::new();
        set.set(cpu);
        // Where it is refused, a wait may cost less than it would.
        let _ = sched_setaffinity(None, &set);
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// What recording adds to a wait: two threads hand a byte to each other on one CPU, and one of them works in
/// between.
fn switch(sees_kernel: bool) -> Option<f64> {
    stay();
    let (mut here, mut there) = pipe().ok()?;
    let (mut back, mut answer) = pipe().ok()?;
    let (tell, reported) = mpsc::channel();
    // Inherits the one CPU.
    let helper = std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || {
            let _ = tell.send(this_thread());
            let mut byte = [0_u8; 1];
            while here.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
        })
        .ok()?;
    let other = reported.recv().ok()?;
    let mut work = Work::new();
    let mut round = || {
        let mut byte = [0_u8; 1];
        let before = thread_cpu_ns();
        for _ in 0..ROUNDS {
            there.write_all(&byte).ok()?;
            back.read_exact(&mut byte).ok()?;
            work.go(BETWEEN);
        }
        Some((thread_cpu_ns() - before) as f64 / f64::from(ROUNDS))
    };
    let mut typical = || middle((0..REPETITIONS).filter_map(|_| round()).collect());
    let plain = typical();
    let mut recorder = Recorder::of(sees_kernel, LEAST_PERIOD_NS);
    let started = recorder.start(&[this_thread(), other], false);
    let watched = started.ok().and_then(|()| typical());
    drop(recorder);
    drop(there);
    let _ = helper.join();
    Some(watched? - plain?)
}

/// What a sample adds to work without waits, in a thread that has more on its stack than is copied.
fn sample(sees_kernel: bool) -> Option<f64> {
    let copied = std::hint::black_box([0_u8; MOST_STACK as usize]);
    let mut work = Work::new();
    let steps = work.steps(WORK_NS);
    let mut typical = || middle((0..REPETITIONS).map(|_| work.cpu_ns(steps)).collect());
    let plain = typical()?;
    let mut recorder = Recorder::of(sees_kernel, PERIOD_NS);
    recorder.start(&[this_thread()], false).ok()?;
    let watched = typical()?;
    std::hint::black_box(&copied);
    (plain > 0.0).then(|| (watched - plain) / (plain / PERIOD_NS as f64))
}

/// Work without waits, in steps.
struct Work {
    memory: Vec<u8>,
    at: usize,
}

impl Work {
    fn new() -> Self {
        // Ones: zeros would be one page of the kernel's.
        Self { memory: vec![1; MEMORY_BYTES], at: 0 }
    }

    fn go(&mut self, steps: u64) {
        let mut sum = 0_u64;
        for _ in 0..steps {
            self.at = (self.at + LINE_BYTES) % MEMORY_BYTES;
            sum = std::hint::black_box(sum + u64::from(self.memory[self.at]));
        }
    }

    /// The CPU time of so many steps.
    fn cpu_ns(&mut self, steps: u64) -> f64 {
        let before = thread_cpu_ns();
        self.go(steps);
        (thread_cpu_ns() - before) as f64
    }

    /// Steps that take about this long. On a virtual machine whose host is busy, the clock of a thread has
    /// been seen to stand still for a moment.
    fn steps(&mut self, ns: f64) -> u64 {
        let took = middle((0..REPETITIONS).map(|_| self.cpu_ns(TRIED)).collect());
        steps_for(ns, took.unwrap_or(0.0))
    }
}

/// Steps that take about `ns` where so many as were tried took so long.
fn steps_for(ns: f64, took_ns: f64) -> u64 {
    /// A step takes no less than a tenth of a nanosecond.
    const LEAST_NS: f64 = TRIED as f64 / 10.0;
    crate::time::whole_ns(TRIED as f64 * ns / took_ns.max(LEAST_NS))
}

/// What opening events takes from a thread that runs, and closing them: the kernel interrupts it on its CPU
/// for each.
fn open(sees_kernel: bool) -> Option<f64> {
    let steps = Work::new().steps(OPEN_WORK_NS);
    let mut recorder = Recorder::of(sees_kernel, LEAST_PERIOD_NS);
    let (tell, reported) = mpsc::channel();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut work = Work::new();
            let plain = middle((0..REPETITIONS).map(|_| work.cpu_ns(steps)).collect());
            let _ = tell.send(this_thread());
            let watched = work.cpu_ns(steps);
            done.store(true, Ordering::Release);
            Some(watched - plain?)
        });
        let other = reported.recv().ok()?;
        let mut times = 0_u32;
        while !done.load(Ordering::Acquire) {
            recorder.start(&[other], false).ok()?;
            recorder.stop();
            times += 1;
        }
        let added = worker.join().ok()??;
        (times > 0).then(|| added / f64::from(times))
    })
}

/// What inheriting events adds to starting a program, and to its end. A thread that is started takes less.
fn start(sees_kernel: bool) -> Option<f64> {
    let cpu_ns = || process_cpu_ns() + children_cpu_ns();
    let round = || {
        let before = cpu_ns();
        for _ in 0..STARTS {
            let mut program = Command::new(PROGRAM);
            program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        }
        Some((cpu_ns() - before) as f64 / f64::from(STARTS))
    };
    let typical = || middle((0..REPETITIONS).filter_map(|_| round()).collect());
    let plain = typical()?;
    let mut recorder = Recorder::of(sees_kernel, LEAST_PERIOD_NS);
    recorder.start(&[this_thread()], false).ok()?;
    let watched = typical()?;
    Some(watched - plain)
}

/// CPU time of all children that have ended and were waited for.
fn children_cpu_ns() -> u64 {
    // SAFETY: fills a structure of ours.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used);
        used
    };
    let ns = |time: libc::timeval| 1_000_000_000 * time.tv_sec + 1_000 * time.tv_usec;
    u64::try_from(ns(used.ru_utime) + ns(used.ru_stime)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_still_makes_no_work_without_end() {
        assert_eq!(steps_for(1e6, 100_000.0), 500_000);
        // Ten milliseconds of work at a nanosecond a step.
        assert!(steps_for(1e6, 0.0) <= 10_000_000);
    }
}
