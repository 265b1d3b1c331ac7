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

    /// The address at which a mapping begins that begins at this offset in the file. Segments that begin
    /// within a page are mapped from its beginning.
    pub(crate) fn begin(&self, offset: u64) -> Option<u64> {
        let page = rustix::param::page_size() as u64;
        let before = |segment: &Segment| segment.offset.checked_sub(offset).filter(|before| *before < page);
        let found = self.0.iter().rev().find_map(|segment| segment.address.checked_sub(before(segment)?));
        found.or_else(|| self.address(offset))
    }

    /// Where what has this address is in the file; `None`: it is no part of it.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let within = |segment: &Segment| address.checked_sub(segment.address);
        let holds = |segment: &&Segment| within(segment).is_some_and(|at| at < segment.bytes);
        let segment = self.0.iter().find(holds)?;
        within(segment)?.checked_add(segment.offset)
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
        assert_eq!(
            [0x40_1010, 0x60_0200, 0x60_0300].map(|at| segments.offset(at)),
            [Some(0x1010), Some(0x1200), None]
        );
        assert_eq!(segments.address(0x1300), None);
        assert_eq!(segments.address(0), None);
        let false_one = Segment { offset: 0x2000, bytes: u64::MAX, address: u64::MAX - 1 };
        let segments = Segments(vec![code, false_one]);
        assert_eq!(segments.address(0x2001), Some(u64::MAX));
        assert_eq!(segments.address(0x2002), None);
        assert_eq!(segments.offset(u64::MAX), Some(0x2001));
    }

    #[test]
    fn a_segment_that_begins_within_a_page_is_mapped_from_the_pages_beginning() {
        // As lld lays files out: constants end and code begins in one page of the file, with a page between
        // their addresses.
        let page = rustix::param::page_size() as u64;
        let constants = Segment { offset: 0, bytes: 17 * page + 0xbbc, address: 0 };
        let code = Segment { offset: 17 * page + 0xbc0, bytes: 9 * page, address: 18 * page + 0xbc0 };
        let data = Segment { offset: 40 * page, bytes: 3 * page, address: 50 * page };
        let segments = Segments(vec![constants, code, data]);
        // A part that has other rights than the rest is a mapping of its own.
        assert_eq!((segments.begin(42 * page), segments.begin(60 * page)), (Some(52 * page), None));
        assert_eq!(segments.begin(17 * page), Some(18 * page));
        assert_eq!(segments.begin(0), Some(0));
        assert_eq!(segments.address(17 * page), Some(17 * page), "which is of the constants");
    }
}
