//! What the kernel's records are taken as, and where the raw data of a tracepoint says more.

use std::sync::Arc;

use latlab_perf::Detail;

use crate::cause::{Cause, Proof};

/// What a record of an event is to be taken as.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Switches of the observed thread, as `PERF_RECORD_SWITCH`.
    Switches,
    /// Something that happened at a moment.
    Moment(Cause, Proof),
    /// A handler was entered; with the field of the record that says which.
    Enter(Cause, Which),
    /// It was left.
    Leave(Cause),
    /// It was left, and says at this offset of the raw data how long it took, ns.
    Lasted(Cause, usize),
    /// A timer of the kernel ran out: the address of its handler stands at this offset, and one of these
    /// handlers is the tick.
    Timer {
        /// Offset of `function` in the raw data.
        function_offset: usize,
        /// Addresses of the tick's handlers.
        ticks: Vec<u64>,
    },
    /// A block device was handed a request.
    HandedOver(RequestFields),
    /// It had done it.
    Ended(RequestFields),
    /// The scheduler chose another thread: whose name stands at this offset.
    NextThread {
        /// Offset of `next_comm` in the raw data.
        name_offset: usize,
    },
}

/// How a handler is named by its tracepoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Which {
    /// By the tracepoint itself.
    Fixed(Arc<str>),
    /// By a number at this offset in the raw data, of these names.
    Numbered(usize, &'static [&'static str]),
    /// By a text whose place is said by the 32 bits at this offset.
    Text(usize),
}

impl Role {
    /// What samples of the event must say: its own fields, where the role reads them.
    pub(crate) fn detail(&self) -> Detail {
        let reads_fields = matches!(
            self,
            Self::NextThread { .. }
                | Self::Timer { .. }
                | Self::Lasted(..)
                | Self::HandedOver(_)
                | Self::Ended(_)
                | Self::Enter(_, Which::Numbered(..) | Which::Text(_))
        );
        if reads_fields { Detail::Raw } else { Detail::None }
    }
}

impl Which {
    /// The name, as far as the raw data have it.
    pub(crate) fn name(&self, raw: &[u8]) -> Option<Arc<str>> {
        match self {
            Self::Fixed(name) => Some(Arc::clone(name)),
            Self::Numbered(offset, names) => {
                names.get(u32_at(raw, *offset)? as usize).map(|name| Arc::from(*name))
            }
            Self::Text(offset) => {
                let place = u32_at(raw, *offset)?;
                text(raw, (place & 0xffff) as usize, (place >> 16) as usize)
            }
        }
    }
}

/// Offsets of the fields that say which request a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestFields {
    pub(crate) device: usize,
    pub(crate) sector: usize,
}

impl RequestFields {
    /// Its device, and its first sector.
    pub(crate) fn of(self, raw: &[u8]) -> Option<(u32, u64)> {
        let sector = u64_at(raw, self.sector)?;
        // A flush is about no sector: 0 where it is handed over, the largest number where it has ended.
        let sector = if sector == u64::MAX { 0 } else { sector };
        Some((u32_at(raw, self.device)?, sector))
    }
}

fn at<const N: usize>(raw: &[u8], offset: usize) -> Option<[u8; N]> {
    raw.get(offset..)?.first_chunk().copied()
}

fn u32_at(raw: &[u8], offset: usize) -> Option<u32> {
    at(raw, offset).map(u32::from_ne_bytes)
}

pub(crate) fn u64_at(raw: &[u8], offset: usize) -> Option<u64> {
    at(raw, offset).map(u64::from_ne_bytes)
}

/// A text of at most `length` bytes that ends at its first zero.
pub(crate) fn text(raw: &[u8], offset: usize, length: usize) -> Option<Arc<str>> {
    let bytes = raw.get(offset..offset + length)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (end > 0).then(|| Arc::from(String::from_utf8_lossy(&bytes[..end]).as_ref()))
}
