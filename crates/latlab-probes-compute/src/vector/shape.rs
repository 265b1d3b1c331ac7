//! What an operation does with the bytes, and where.

use serde::{Deserialize, Serialize};

use super::LINE_BYTES;

/// What is done with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    Read,
    Write,
    WriteNt,
    Copy,
    Triad,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] = [Self::Read, Self::Write, Self::WriteNt, Self::Copy, Self::Triad];

    /// What one byte of its rate is.
    pub(crate) fn convention(self) -> &'static str {
        match self {
            Self::Read => "each byte read counts once",
            Self::Write => {
                "each byte written counts once; RAM also reads every line before it is written \
                    (write-allocate), so \
                 the traffic is twice that"
            }
            Self::WriteNt => "each byte written counts once, no write-allocate",
            Self::Copy => {
                "bytes read plus bytes written (STREAM's convention); write-allocate adds half as much \
                    traffic again"
            }
            Self::Triad => {
                "two read streams plus one written, 24 bytes an element (STREAM's convention); \
                    write-allocate not \
                 counted"
            }
        }
    }

    /// Streams whose bytes are counted.
    pub(crate) fn streams(self) -> usize {
        self.sources() + usize::from(self.writes())
    }

    /// Streams that are read.
    pub(crate) fn sources(self) -> usize {
        match self {
            Self::Write | Self::WriteNt => 0,
            Self::Read | Self::Copy => 1,
            Self::Triad => 2,
        }
    }

    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// What the writes leave: a double's bits, not zero (some memory treats zeros apart).
pub(super) const WORD: u64 = 0x3FF8_0F1E_2D3C_4B5A;
/// What no operation leaves.
pub(super) const JUNK: u64 = 0xBAD0_BAD0_BAD0_BAD0;
/// The triad's factor.
pub(super) const FACTOR: f64 = 3.0;

/// Working sets above this are passed over in slices of about this size: a window of a pass over 1 GiB would
/// be 70 ms, and a stall inside could not be told from the rest. What a slice's beginning costs (one time
/// stamp waits for the loads in flight, about 0.1 us) is a thousandth of the 100 us that a slice of RAM
/// takes.
const SLICE_BYTES: usize = 2 << 20;
/// Slices are whole steps of the stored checksums, so that checking one costs two look-ups.
const SLICE_STEP_LINES: usize = 64;

/// Where an operation works, in lines.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) operation: Operation,
    pub(crate) stream_lines: usize,
    /// Lines of each stream that one call of the kernel passes over.
    pub(crate) slice_lines: usize,
    /// First line of its source streams, which follow each other.
    pub(crate) source: usize,
    /// First line of its destination.
    pub(crate) dest: usize,
}

impl Shape {
    /// `bytes` over all streams together.
    pub(crate) fn new(operation: Operation, bytes: u64, source: usize, dest: usize) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let lines = bytes / operation.streams() / LINE_BYTES;
        let slices = bytes.div_ceil(SLICE_BYTES);
        let (stream_lines, slice_lines) = if slices <= 1 {
            (lines, lines)
        } else {
            let slice = (lines / slices / SLICE_STEP_LINES).max(1) * SLICE_STEP_LINES;
            (lines / slice * slice, slice)
        };
        Self { operation, stream_lines, slice_lines, source, dest }
    }

    /// Bytes that one operation (one call for a slice, one pass of a small set) counts.
    pub(crate) fn bytes_per_op(&self) -> u64 {
        (self.slice_lines * self.operation.streams() * LINE_BYTES) as u64
    }

    /// Words of the destination in one slice.
    pub(crate) fn slice_words(&self) -> u64 {
        (self.slice_lines * LINE_BYTES / 8) as u64
    }

    pub(super) fn is_whole(&self) -> bool {
        self.slice_lines == self.stream_lines
    }
}
