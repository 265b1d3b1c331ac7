//! The memory that passes go over: known contents to read from, and a destination half as large; and the
//! streams of one operation in it, which are checked to lie inside once, when they are made.

use std::sync::Arc;

use latlab_probes_shared::prelude::*;

use super::shape::{FACTOR, JUNK, WORD};
use super::{Contents, LINE_BYTES, Operation, Shape};
use latlab_probes_shared::walk::Arena;

const LINE_WORDS: usize = LINE_BYTES / 8;
/// Words that are spoilt before a part of the destination is written.
const SPOILT_PARTS: usize = 64;

/// Source and destination, shared by the threads that work on disjoint parts of them.
pub(crate) struct Field {
    source: Arena,
    contents: Contents,
    dest: Arena,
    source_lines: usize,
    pages_checks: [Check; 2],
}

// SAFETY: the arenas are plain memory; they are only reached through the kernels and the word accesses of
// `Streams`, which work on raw pointers, and sessions give each thread parts of its own and read them between
// windows only.
unsafe impl Send for Field {}
// SAFETY: as above.
unsafe impl Sync for Field {}

impl Field {
    /// Maps, populates and fills `bytes` of source (whole lines) and half as much destination.
    pub(crate) fn new(bytes: u64, pages: Pages, helpers: &[u32], seed: u64) -> Result<Self> {
        let source = Arena::new(bytes, pages, helpers)?;
        let dest = Arena::new(bytes / 2, pages, helpers)?;
        let source_lines = usize::try_from(bytes)
            .map_err(|_| ProbeError::Other(format!("{bytes} bytes do not fit")))?
            / LINE_BYTES;
        // SAFETY: the arena has at least `bytes` and nobody else knows it yet.
        let contents = unsafe { Contents::fill(source.base(), source_lines, seed) };
        let pages_checks = [source.pages_check(), dest.pages_check()];
        Ok(Self { source, contents, dest, source_lines, pages_checks })
    }

    /// Bytes of source.
    pub(crate) fn bytes(&self) -> u64 {
        (self.source_lines * LINE_BYTES) as u64
    }

    /// Whether the streams of this shape lie inside.
    fn holds(&self, shape: &Shape) -> bool {
        let inside = |first: usize, streams: usize, lines: usize| {
            let length = streams.checked_mul(shape.stream_lines);
            length.and_then(|length| first.checked_add(length)).is_some_and(|end| end <= lines)
        };
        let writes = shape.operation.writes();
        inside(shape.source, shape.operation.sources(), self.source_lines)
            && (!writes || inside(shape.dest, 1, self.source_lines / 2))
    }
}

/// The streams of one operation, inside a field.
#[derive(Clone)]
pub(crate) struct Streams {
    field: Arc<Field>,
    shape: Shape,
}

impl Streams {
    /// Fails when the field is too small for them, or they are empty.
    pub(crate) fn new(field: &Arc<Field>, shape: Shape) -> Result<Self> {
        if shape.slice_lines == 0 || shape.slice_lines > shape.stream_lines || !field.holds(&shape) {
            return Err(ProbeError::Other(format!("{shape:?} does not fit the memory taken")));
        }
        Ok(Self { field: Arc::clone(field), shape })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Checks of the pages behind source and destination.
    pub(crate) fn pages_checks(&self) -> &[Check; 2] {
        &self.field.pages_checks
    }

    /// First byte of line `at` of the `nth` source stream.
    pub(crate) fn source(&self, nth: usize, at: usize) -> *const u8 {
        let line = self.shape.source + nth * self.shape.stream_lines + at;
        self.field.source.base().wrapping_add(line * LINE_BYTES)
    }

    /// First byte of line `at` of the destination.
    pub(crate) fn dest(&self, at: usize) -> *mut u8 {
        self.field.dest.base().wrapping_add((self.shape.dest + at) * LINE_BYTES)
    }

    /// Checksum of `lines` lines of the source from line `at` on, from the definition of the contents.
    pub(crate) fn checksum(&self, at: usize, lines: usize) -> u64 {
        self.field.contents.checksum(self.shape.source + at, lines)
    }

    /// The destination's words from line `at` on, `lines` lines of them.
    ///
    /// # Panics
    /// When they are not inside, or the operation writes nothing.
    fn words(&self, at: usize, lines: usize) -> *mut u64 {
        let end = at.checked_add(lines).expect("lines in memory");
        assert!(end <= self.shape.stream_lines && self.shape.operation.writes());
        self.dest(at).cast()
    }

    /// Overwrites words of a part of the destination with what no operation writes: one in each of 64 parts
    /// of it, somewhere else for each `salt`, the first and the last one. Lines stay in the cache of the
    /// thread that works on them.
    ///
    /// # Panics
    /// When the part is empty or not inside, or the operation writes nothing.
    pub(crate) fn spoil(&self, at: usize, lines: usize, salt: u64) {
        let base = self.words(at, lines);
        let words = lines * LINE_WORDS;
        let part = words.div_ceil(SPOILT_PARTS);
        let inside = (salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % part;
        for word in (0..SPOILT_PARTS).map(|nth| nth * part + inside).chain([0, words - 1]) {
            if word < words {
                // SAFETY: `words` has checked the part, and this one is below its end.
                unsafe { base.add(word).write(JUNK) };
            }
        }
    }

    /// Words of a part of the destination that are not what the operation should have left there.
    ///
    /// # Panics
    /// When the part is not inside, or the operation writes nothing.
    pub(crate) fn wrong_words(&self, at: usize, lines: usize) -> u64 {
        let words = self.words(at, lines);
        let (shape, contents) = (&self.shape, &self.field.contents);
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
            Operation::Copy => wrong(&|word| contents.word(first + word)),
            Operation::Triad => wrong(&|word| {
                let (b, c) = (contents.word(first + word), contents.word(second + word));
                // Exact for these contents, so neither order nor fusing of the two roundings can matter.
                (f64::from_bits(b) + FACTOR * f64::from_bits(c)).to_bits()
            }),
        }
    }
}
