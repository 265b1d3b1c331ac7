//! The memory that passes go over: known contents to read from, and a destination half as large.

#![expect(
    clippy::cast_ptr_alignment,
    reason = "buffers begin on a line of 64 bytes, and offsets are whole words"
)]

use latlab_harness::ProbeError;
use latlab_record::{Check, Pages};

use super::pass::{FACTOR, JUNK, Operation, Shape, WORD};
use super::{Contents, LINE_BYTES};
use crate::walk::Arena;

const LINE_WORDS: usize = LINE_BYTES / 8;
/// Words that are spoilt before a part of the destination is written.
const SPOILT_PARTS: usize = 64;

/// Source and destination, shared by the threads that work on disjoint parts of them.
pub(crate) struct Field {
    source: Arena,
    contents: Contents,
    dest: Arena,
    source_lines: usize,
    pub(crate) pages_checks: [Check; 2],
}

// SAFETY: the arenas are plain memory; they are only reached through the kernels and the word accesses below, which
// work on raw pointers, and sessions give each thread parts of its own and look at them between windows only.
unsafe impl Send for Field {}
// SAFETY: as above.
unsafe impl Sync for Field {}

impl Field {
    /// Maps, populates and fills `bytes` of source (whole lines) and half as much destination.
    pub(crate) fn new(bytes: u64, pages: Pages, helpers: &[u32], seed: u64) -> Result<Self, ProbeError> {
        let source = Arena::new(bytes, pages, helpers)?;
        let dest = Arena::new(bytes / 2, pages, helpers)?;
        let source_lines = usize::try_from(bytes)
            .map_err(|_| ProbeError::Other(format!("{bytes} bytes do not fit")))?
            / LINE_BYTES;
        // SAFETY: the arena has at least `bytes` and nobody else knows it yet.
        let contents = unsafe { Contents::fill(source.base(), source_lines, seed) };
        let pages_checks = [source.pages_check(), dest.pages_check()];
        Ok(Self {
            source,
            contents,
            dest,
            source_lines,
            pages_checks,
        })
    }

    /// Bytes of source.
    pub(crate) fn bytes(&self) -> u64 {
        (self.source_lines * LINE_BYTES) as u64
    }

    /// Whether the streams of this shape lie inside.
    pub(crate) fn holds(&self, shape: &Shape) -> bool {
        shape.source + shape.operation.sources() * shape.stream_lines <= self.source_lines
            && (!shape.operation.writes() || shape.dest + shape.stream_lines <= self.source_lines / 2)
    }

    /// First byte of line `at` of the shape's `nth` source stream.
    pub(crate) fn source(&self, shape: &Shape, nth: usize, at: usize) -> *const u8 {
        self.source
            .base()
            .wrapping_add((shape.source + nth * shape.stream_lines + at) * LINE_BYTES)
    }

    /// First byte of line `at` of the shape's destination.
    pub(crate) fn dest(&self, shape: &Shape, at: usize) -> *mut u8 {
        self.dest.base().wrapping_add((shape.dest + at) * LINE_BYTES)
    }

    /// Checksum of `lines` lines of the shape's source from line `at` on, from the definition of the contents.
    pub(crate) fn checksum(&self, shape: &Shape, at: usize, lines: usize) -> u64 {
        self.contents.checksum(shape.source + at, lines)
    }

    /// Overwrites words of a part of the destination with what no operation writes: one in each of 64 parts of it, somewhere
    /// else for each `salt`, the first and the last one. Lines stay in the cache of the thread that works on them.
    pub(crate) fn spoil(&self, shape: &Shape, at: usize, lines: usize, salt: u64) {
        let words = lines * LINE_WORDS;
        let part = words.div_ceil(SPOILT_PARTS);
        let inside = (salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % part;
        let base = self.dest(shape, at).cast::<u64>();
        for word in (0..SPOILT_PARTS)
            .map(|nth| nth * part + inside)
            .chain([0, words - 1])
        {
            if word < words {
                // SAFETY: the shape was checked against the arenas when its pass was made.
                unsafe { base.add(word).write(JUNK) };
            }
        }
    }

    /// Words of a part of the destination that are not what the operation should have left there.
    pub(crate) fn wrong_words(&self, shape: &Shape, at: usize, lines: usize) -> u64 {
        let words = self.dest(shape, at).cast::<u64>();
        let first = (shape.source + at) * LINE_WORDS;
        let second = first + shape.stream_lines * LINE_WORDS;
        let wrong = |expected: &dyn Fn(usize) -> u64| {
            (0..lines * LINE_WORDS)
                // SAFETY: as in `spoil`.
                .filter(|word| unsafe { words.add(*word).read() } != expected(*word))
                .count() as u64
        };
        match shape.operation {
            Operation::Read => 0,
            Operation::Write | Operation::WriteNt => wrong(&|_| WORD),
            Operation::Copy => wrong(&|word| self.contents.word(first + word)),
            Operation::Triad => wrong(&|word| {
                let (b, c) = (
                    self.contents.word(first + word),
                    self.contents.word(second + word),
                );
                // Exact for these contents, so neither order nor fusing of the two roundings can matter.
                (f64::from_bits(b) + FACTOR * f64::from_bits(c)).to_bits()
            }),
        }
    }
}
