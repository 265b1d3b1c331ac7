//! Threads that work in the same window, each pinned to a CPU of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use latlab_clock::Clock;

use crate::{Batch, Joined, Stamps, pin_this_thread};

/// When one member began and ended its part of a window, in ticks of the run's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// A member could not be started or died.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// The system refused a thread.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A member could not make its share of the work.
    #[error("{0}")]
    Member(String),
    /// Simulated time does not pass on several threads.
    #[error("worker threads need a real clock")]
    Simulated,
    /// A member ended before its time.
    #[error("a measuring thread ended unexpectedly")]
    Gone,
}

/// Dropped in this order: without orders the thread ends.
struct Member {
    orders: Sender<u64>,
    spans: Receiver<Result<Span, String>>,
    _thread: Joined<u64>,
}

/// Pinned threads, waiting for windows.
pub struct Workers {
    members: Vec<Member>,
    line: Arc<StartLine>,
}

/// A start line without the kernel: all members are running when the last one arrives.
struct StartLine {
    size: usize,
    arrived: AtomicUsize,
    round: AtomicU64,
    /// A member is gone, or all are dismissed: there will be no start.
    closed: AtomicBool,
}

impl StartLine {
    /// Whether there was a start.
    fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.size {
            self.arrived.store(0, Ordering::Release);
            self.round.fetch_add(1, Ordering::AcqRel);
            return true;
        }
        let mut spins = 0u32;
        while self.round.load(Ordering::Acquire) == round {
            if self.closed.load(Ordering::Relaxed) {
                return false;
            }
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1 << 14) {
                // More members than CPUs that are really ours: let the late one run.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }
}

impl Workers {
    /// Starts one member on each of `cpus`. `make` runs on the member's thread after it was pinned, so that
    /// memory that it touches first is near its CPU. Fails when a thread cannot be started or a member's
    /// `make` fails.
    pub fn start<K, M>(clock: &Clock, cpus: &[u32], make: M) -> Result<Self, WorkersError>
    where
        K: Batch + 'static,
        M: Fn(usize) -> Result<K, String> + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let line = Arc::new(StartLine {
            size: cpus.len(),
            arrived: AtomicUsize::new(0),
            round: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        });
        let stamp = Stamps::of(clock).ok_or(WorkersError::Simulated)?;
        let mut workers = Self { members: Vec::with_capacity(cpus.len()), line: Arc::clone(&line) };
        for (index, cpu) in cpus.iter().copied().enumerate() {
            let (orders, inbox) = channel::<u64>();
            let (report, spans) = channel();
            let make = Arc::clone(&make);
            let line = Arc::clone(&line);
            let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                pin_this_thread(cpu);
                let mut batch = match make(index) {
                    Ok(batch) => batch,
                    Err(reason) => {
                        let _ = report.send(Err(reason));
                        return 0;
                    }
                };
                if report.send(Ok(Span { begin: 0, end: 0 })).is_err() {
                    return 0;
                }
                let mut sum = 0u64;
                while let Ok(ops) = inbox.recv() {
                    if !line.wait() {
                        break;
                    }
                    let begin = stamp.begin();
                    sum = sum.wrapping_add(batch.run(ops));
                    let end = stamp.end();
                    if report.send(Ok(Span { begin, end })).is_err() {
                        break;
                    }
                }
                sum
            })?;
            workers.members.push(Member { orders, spans, _thread: thread.into() });
        }
        workers.collect()?;
        Ok(workers)
    }

    /// Number of worker threads.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// One window: every member does `ops` operations, starting together.
    pub(crate) fn window(&mut self, ops: u64) -> Result<Vec<Span>, WorkersError> {
        if self.line.closed.load(Ordering::Relaxed) {
            return Err(WorkersError::Gone);
        }
        let spans = self
            .members
            .iter()
            .try_for_each(|member| member.orders.send(ops).map_err(|_| WorkersError::Gone))
            .and_then(|()| self.collect());
        if spans.is_err() {
            // Who still waits for the one that is gone would wait for ever.
            self.line.closed.store(true, Ordering::Relaxed);
        }
        spans
    }

    fn collect(&self) -> Result<Vec<Span>, WorkersError> {
        self.members
            .iter()
            .map(|member| member.spans.recv().map_err(|_| WorkersError::Gone)?.map_err(WorkersError::Member))
            .collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.line.closed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);

    impl Batch for Counter {
        fn run(&mut self, ops: u64) -> u64 {
            for step in 0..ops {
                self.0 = std::hint::black_box(self.0 + step);
            }
            self.0
        }
    }

    #[test]
    fn every_member_works_in_every_window_and_windows_overlap() {
        let clock = Clock::open();
        let mut workers = Workers::start(&clock, &[0, 0], |_| Ok(Counter(0))).expect("two threads start");
        for _ in 0..3 {
            let spans = workers.window(10_000).expect("both members live");
            assert_eq!(spans.len(), 2);
            assert!(spans.iter().all(|span| span.end > span.begin));
        }
    }

    /// Works once, then is lost.
    struct Mortal(bool, u32);

    impl Batch for Mortal {
        fn run(&mut self, ops: u64) -> u64 {
            self.1 += 1;
            assert!(!(self.0 && self.1 > 1), "planted");
            ops
        }
    }

    #[test]
    fn a_member_that_dies_ends_all_workers_and_nobody_waits_for_it() {
        let clock = Clock::open();
        let mut workers =
            Workers::start(&clock, &[0, 0, 0], |index| Ok(Mortal(index == 2, 0))).expect("threads start");
        assert!(workers.window(1).is_ok());
        for _ in 0..3 {
            assert!(matches!(workers.window(1), Err(WorkersError::Gone)));
        }
        drop(workers);
    }

    #[test]
    fn a_member_that_cannot_start_gives_its_reason() {
        let clock = Clock::open();
        let failed = Workers::start::<Counter, _>(&clock, &[0, 0], |index| {
            if index == 1 { Err("no memory for thread 1".to_owned()) } else { Ok(Counter(0)) }
        });
        let error = failed.err().expect("a member failed");
        assert_eq!(error.to_string(), "no memory for thread 1");
    }
}
