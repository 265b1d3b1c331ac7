//! Which addresses the parts of a program's file have, as its linker laid them out.

use object::{Object, ObjectSegment as _};

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    pub(crate) fn of<'data>(file: &impl Object<'data>) -> Self {
        let segments = file.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            Segment { offset, bytes, address: segment.address() }
        });
        Self(segments.collect())
    }

    /// The address of what is at an offset in the file; `None`: it is not loaded.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        // Of a file that was made to do harm, no sum need fit.
        let within = |segment: &Segment| offset.checked_sub(segment.offset);
        let holds = |segment: &&Segment| within(segment).is_some_and(|at| at < segment.bytes);
        let segment = self.0.iter().find(holds)?;
        within(segment)?.checked_add(segment.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_the_address_that_its_segment_gives_it() {
        let code = Segment { offset: 0x1000, bytes: 0x200, address: 0x40_1000 };
        let data = Segment { offset: 0x1200, bytes: 0x100, address: 0x60_0200 };
        let segments = Segments(vec![code, data]);
        assert_eq!(segments.address(0x1010), Some(0x40_1010));
        assert_eq!(segments.address(0x1200), Some(0x60_0200));
        assert_eq!(segments.address(0x1300), None);
        assert_eq!(segments.address(0), None);
        let false_one = Segment { offset: 0x2000, bytes: u64::MAX, address: u64::MAX - 1 };
        let segments = Segments(vec![code, false_one]);
        assert_eq!(segments.address(0x2001), Some(u64::MAX));
        assert_eq!(segments.address(0x2002), None);
    }
}
