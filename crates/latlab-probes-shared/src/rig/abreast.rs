//! The same work on several threads at once, of which the first is timed.

use super::{Done, Place, Rig, Work, observe, window_ops};
use latlab_clock::Clock;
use latlab_harness::{Block, ProbeError};

use crate::Result;

/// Work that a thread does beside others.
pub trait Toil: Send + 'static {
    /// Operations between two checks whether the first thread has finished.
    const CHUNK: u64;
    /// Does `ops` operations.
    fn run(&mut self, ops: u64);
}

/// What the threads did in a block.
pub struct Abreast<W> {
    /// Each with the number of operations that it was asked for.
    pub threads: Vec<Done<Beside<W>>>,
    /// Windows of the first thread that began or ended while another one was not at work; they are no
    /// samples.
    pub alone: u64,
}

/// One of the threads.
pub struct Beside<W> {
    /// What it does.
    pub work: W,
    /// All that it was asked for, warm-up included.
    pub ops: u64,
    /// The part of it while the first thread was timed.
    pub timed_ops: u64,
    begin: u64,
    end: u64,
    spans: Vec<(u64, u64)>,
}

impl<W> Beside<W> {
    /// Before it has begun, with room for so many windows.
    pub(super) fn new(work: W, windows: usize) -> Self {
        Self { work, ops: 0, timed_ops: 0, begin: 0, end: 0, spans: Vec::with_capacity(windows) }
    }
}

/// Both cores at work before the first window, ns: they come from sleep, and see that the line is shared.
const WARM_NS: f64 = 300_000.0;

/// One block: all works at once, each on its CPU; windows of about `window_ns` on the first. `prepare` is
/// called before each round. Fails when a thread died, or they never got to run at the same time.
pub fn abreast<W: Toil + Clone>(
    rig: &mut Rig,
    clock: &Clock,
    block: &mut Block,
    window_ns: f64,
    windows: u32,
    works: &[(u32, W)],
    mut prepare: impl FnMut(),
) -> Result<Abreast<W>> {
    block.set_waits();
    let warm = clock.ticks(WARM_NS);
    let trial = |ops| Ok(round(rig, works, 0, 1, ops)?[0].result.spans.first().copied());
    let ops = window_ops(clock, block, window_ns, trial)?;
    for _ in 0..rig.rounds {
        prepare();
        let threads = round(rig, works, warm, windows, ops)?;
        let others = &threads[1..];
        let begin = others.iter().map(|other| other.result.begin).max().unwrap_or(0);
        let end = others.iter().map(|other| other.result.end).min().unwrap_or(u64::MAX);
        let (together, alone): (Vec<_>, Vec<_>) =
            threads[0].result.spans.iter().copied().partition(|span| span.0 >= begin && span.1 <= end);
        if together.is_empty() {
            continue;
        }
        for (begin, end) in together {
            block.window(begin, end, ops);
        }
        observe(block, threads.iter().map(|thread| &thread.observed));
        return Ok(Abreast { threads, alone: alone.len() as u64 });
    }
    Err(ProbeError::Other(format!(
        "{} threads never ran at the same time here; is something else keeping the CPUs busy?",
        works.len()
    )))
}

fn round<W: Toil + Clone>(
    rig: &mut Rig,
    works: &[(u32, W)],
    warm: u64,
    windows: u32,
    ops: u64,
) -> Result<Vec<Done<Beside<W>>>> {
    let works = works
        .iter()
        .enumerate()
        .map(|(index, (cpu, work))| {
            let mut beside = Beside::new(work.clone(), if index == 0 { windows as usize } else { 0 });
            let work: Work<Beside<W>> = Box::new(move |place| {
                if place.start() {
                    beside.warm(place, warm);
                }
                if place.start() {
                    if index == 0 {
                        beside.lead(place, windows, ops);
                    } else {
                        beside.accompany(place);
                    }
                }
                beside
            });
            (*cpu, work)
        })
        .collect();
    rig.run(works)
}

impl<W: Toil> Beside<W> {
    /// Operations a tick while the first thread was timed.
    pub fn rate(&self) -> f64 {
        self.timed_ops as f64 / self.end.saturating_sub(self.begin).max(1) as f64
    }

    fn warm(&mut self, place: &Place, warm: u64) {
        let end = place.stamps.begin().saturating_add(warm);
        while place.stamps.end() < end && !place.is_over() {
            self.work.run(W::CHUNK);
            self.ops += W::CHUNK;
        }
    }

    fn lead(&mut self, place: &Place, windows: u32, ops: u64) {
        // One window that does not count: the others are leaving the start line.
        self.work.run(ops);
        self.ops += ops;
        self.begin = place.stamps.begin();
        for _ in 0..windows {
            let begin = place.stamps.begin();
            self.work.run(ops);
            let end = place.stamps.end();
            self.ops += ops;
            self.timed_ops += ops;
            self.spans.push((begin, end));
            if place.is_enough() {
                break;
            }
        }
        self.end = place.stamps.end();
        place.end();
    }

    fn accompany(&mut self, place: &Place) {
        self.begin = place.stamps.begin();
        while !place.is_over() {
            self.work.run(W::CHUNK);
            self.timed_ops += W::CHUNK;
        }
        self.end = place.stamps.end();
        self.ops += self.timed_ops;
    }
}
