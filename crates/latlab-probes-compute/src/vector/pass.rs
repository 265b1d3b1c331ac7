//! One operation over a part of a field, slice after slice, round and round.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use latlab_probes_shared::prelude::*;

use super::shape::{FACTOR, WORD};
use super::{Kernels, LINE_BYTES, Operation, Shape, Streams};

/// Destination that is compared at the end: all of it, or as much as takes 20 ms.
const PROVED_BYTES: usize = 64 << 20;
/// Passes that bring a small set into the caches: after one, the second-level cache still misses.
const WARM_PASSES: u64 = 4;

/// What became of the passes; outlives the thread that made them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Line at which the next slice begins.
    at: AtomicUsize,
    /// Checksums compared, and those that were wrong.
    compared: AtomicU64,
    wrong: AtomicU64,
}

impl Tally {
    pub(crate) fn at(&self) -> usize {
        self.at.load(Ordering::Acquire)
    }

    /// Checksums compared, and those that were wrong.
    pub(crate) fn checksums(&self) -> (u64, u64) {
        (self.compared.load(Ordering::Acquire), self.wrong.load(Ordering::Acquire))
    }
}

/// An operation under way. One operation of the batch is a pass over a small set or over one slice of a large
/// one.
pub(crate) struct Pass {
    streams: Streams,
    kernels: &'static Kernels,
    /// Of each slice, for reads.
    expected: Vec<u64>,
    tally: Arc<Tally>,
}

impl Pass {
    pub(crate) fn new(streams: Streams, kernels: &'static Kernels, tally: Arc<Tally>) -> Result<Self> {
        let shape = streams.shape();
        if shape.operation == Operation::WriteNt && kernels.write_nt.is_none() {
            return Err(ProbeError::Other(format!("{} has no non-temporal stores", kernels.isa)));
        }
        let expected = if shape.operation == Operation::Read {
            (0..shape.stream_lines / shape.slice_lines)
                .map(|nth| streams.checksum(nth * shape.slice_lines, shape.slice_lines))
                .collect()
        } else {
            Vec::new()
        };
        Ok(Self { streams, kernels, expected, tally })
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.streams.shape()
    }

    /// Passes over what an endless run would have passed over last, `bytes` at most, ending where the next
    /// slice begins.
    pub(crate) fn warm(&mut self, bytes: u64) {
        let (stream_lines, slice_lines) = (self.shape().stream_lines, self.shape().slice_lines);
        if self.shape().is_whole() {
            self.run(WARM_PASSES);
            return;
        }
        let slices = stream_lines / slice_lines;
        let wanted =
            usize::try_from(bytes.div_ceil(self.shape().bytes_per_op())).unwrap_or(slices).clamp(1, slices);
        let place = self.tally.at() / slice_lines;
        let first = (place + slices - wanted) % slices * slice_lines;
        self.tally.at.store(first, Ordering::Release);
        self.run(wanted as u64);
    }

    /// Goes on over the slices that come next, all of them or [`PROVED_BYTES`], after spoiling them, and
    /// looks at every word that it left there: words compared and words that were wrong. For reads the
    /// checksums are the proof.
    pub(crate) fn prove_destination(&mut self, salt: u64) -> (u64, u64) {
        let streams = self.streams.clone();
        let (shape, lines) = (streams.shape(), streams.shape().slice_lines);
        let slices = (PROVED_BYTES / (lines * LINE_BYTES)).clamp(1, shape.stream_lines / lines);
        let begin = self.tally.at();
        let places: Vec<usize> = (0..slices).map(|nth| (begin + nth * lines) % shape.stream_lines).collect();
        for at in &places {
            streams.spoil(*at, lines, salt);
        }
        self.run(slices as u64);
        let wrong = places.iter().map(|at| streams.wrong_words(*at, lines)).sum();
        (shape.slice_words() * slices as u64, wrong)
    }

    /// One call of the kernel.
    fn call(&self, at: usize, passes: u64) -> u64 {
        let (streams, shape, kernels) = (&self.streams, self.shape(), self.kernels);
        let (lines, first) = (shape.slice_lines, streams.source(0, at));
        // SAFETY: the streams lie inside the field's arenas, which live as long as the field, and slices are
        // whole parts of them; the CPU has the kernels' instructions; source and destination are different
        // arenas.
        unsafe {
            match shape.operation {
                Operation::Read => return (kernels.read)(first, lines, passes),
                Operation::Write => (kernels.write)(streams.dest(at), lines, passes, WORD),
                Operation::WriteNt => {
                    let write = kernels.write_nt.unwrap_or(kernels.write);
                    write(streams.dest(at), lines, passes, WORD);
                }
                Operation::Copy => (kernels.copy)(streams.dest(at), first, lines, passes),
                Operation::Triad => {
                    let second = streams.source(1, at);
                    (kernels.triad)(streams.dest(at), first, second, lines, passes, FACTOR);
                }
            }
        }
        0
    }

    fn compare(&self, at: usize, folded: u64) {
        if let Some(expected) = self.expected.get(at / self.shape().slice_lines) {
            // One thread at a time passes, so no locked instruction is needed: it would wait for every access
            // under way.
            let compared = self.tally.compared.load(Ordering::Relaxed) + 1;
            self.tally.compared.store(compared, Ordering::Release);
            if folded != *expected {
                self.tally.wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Batch for Pass {
    fn run(&mut self, ops: u64) -> u64 {
        if self.shape().is_whole() {
            let folded = self.call(0, ops);
            if ops > 0 {
                self.compare(0, folded);
            }
            return folded;
        }
        let mut at = self.tally.at();
        let mut all = 0;
        for _ in 0..ops {
            let folded = self.call(at, 1);
            self.compare(at, folded);
            all ^= folded;
            at += self.shape().slice_lines;
            if at >= self.shape().stream_lines {
                at = 0;
            }
        }
        self.tally.at.store(at, Ordering::Release);
        all
    }
}
