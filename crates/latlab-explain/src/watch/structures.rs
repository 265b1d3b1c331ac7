//! Where the fields of a structure lie, from the types that compilers write for debuggers (DWARF). Every loop
//! counts in a [`Budget`]: a file may be made to take for ever.

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfo, DebuggingInformationEntry,
    EndianSlice, EntriesCursor, RunTimeEndian, UnitHeader,
};

use super::budget::Budget;
use super::line_tables::{OF_UNREADABLE, Slice, abbreviations};

/// A field of a structure, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// A field as its structure has it.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    offset: usize,
    kind: AttributeValue<Slice<'a>>,
}

/// The types of a program's file.
#[derive(Debug)]
pub(super) struct Structures<'a> {
    entries: DebugInfo<Slice<'a>>,
    kinds: DebugAbbrev<Slice<'a>>,
    budget: &'a Budget,
}

impl<'a> Structures<'a> {
    /// By the sections `.debug_info` and `.debug_abbrev`.
    pub(super) fn of(entries: &'a [u8], kinds: &'a [u8], endian: RunTimeEndian, budget: &'a Budget) -> Self {
        Self {
            entries: EndianSlice::new(entries, endian).into(),
            kinds: EndianSlice::new(kinds, endian).into(),
            budget,
        }
    }

    /// The size of the structure of this name and these fields of it, all of which lie in it; its names stand
    /// where they are used, as Go writes them.
    pub(super) fn find<const N: usize>(&self, name: &str, fields: [&str; N]) -> Option<(usize, [Field; N])> {
        let mut units = self.entries.units();
        let mut last: Option<(usize, Abbreviations)> = None;
        while let Some(unit) = units.next().ok()?.filter(|_| !self.budget.is_spent()) {
            self.budget.step(1)?;
            let DebugAbbrevOffset(at) = unit.debug_abbrev_offset();
            if last.as_ref().is_none_or(|last| last.0 != at) {
                last = Some((at, abbreviations(self.budget, &self.kinds, at)?));
            }
            let (_, kinds) = last.as_ref()?;
            let mut entries = unit.entries(kinds);
            while let Some(entry) = self.next(&mut entries) {
                let is_it = entry.tag() == gimli::DW_TAG_structure_type && is_named(entry, name);
                if !is_it {
                    continue;
                }
                let Some(bytes) = size(entry) else { continue };
                let depth = entry.depth();
                let found = self.members(&mut entries, depth, fields);
                let mut placed = [Field { offset: 0, bytes: 0 }; N];
                for (field, found) in placed.iter_mut().zip(found) {
                    let Member { offset, kind } = found?;
                    *field = Field { offset, bytes: self.bytes_of(&unit, kinds, kind)? };
                    if offset.checked_add(field.bytes)? > bytes {
                        return None;
                    }
                }
                return Some((bytes, placed));
            }
        }
        None
    }

    /// The next entry; `None` too where the budget is spent.
    fn next<'e>(
        &self,
        entries: &'e mut EntriesCursor<'_, Slice<'a>>,
    ) -> Option<&'e DebuggingInformationEntry<Slice<'a>>> {
        let Ok(entry) = entries.next_dfs() else {
            self.budget.step(OF_UNREADABLE)?;
            return None;
        };
        self.budget.step(1 + entry.map_or(0, |entry| entry.attrs().len()) as u64)?;
        entry
    }

    /// The members of these names of a structure that has just been read.
    fn members<const N: usize>(
        &self,
        entries: &mut EntriesCursor<'_, Slice<'a>>,
        depth: isize,
        fields: [&str; N],
    ) -> [Option<Member<'a>>; N] {
        let mut found = [None; N];
        while let Some(entry) = self.next(entries).filter(|entry| entry.depth() > depth) {
            let is_member = entry.tag() == gimli::DW_TAG_member && entry.depth() == depth + 1;
            let field = fields.iter().position(|field| is_named(entry, field));
            if let Some(at) = field.filter(|_| is_member) {
                found[at] = member(entry);
            }
        }
        found
    }

    /// The size of a type, which the type itself tells.
    fn bytes_of(
        &self,
        unit: &UnitHeader<Slice<'a>>,
        kinds: &Abbreviations,
        kind: AttributeValue<Slice<'a>>,
    ) -> Option<usize> {
        let at = match kind {
            AttributeValue::UnitRef(at) => at,
            AttributeValue::DebugInfoRef(at) => match at.to_unit_offset(unit) {
                Some(at) => at,
                None => return self.bytes_elsewhere(at),
            },
            _ => return None,
        };
        let mut entries = unit.entries_at_offset(kinds, at).ok()?;
        size(self.next(&mut entries)?)
    }

    /// The same of a type of another unit.
    fn bytes_elsewhere(&self, at: gimli::DebugInfoOffset) -> Option<usize> {
        let mut units = self.entries.units();
        while let Ok(Some(unit)) = units.next() {
            self.budget.step(1)?;
            if let Some(at) = at.to_unit_offset(&unit) {
                let DebugAbbrevOffset(kinds) = unit.debug_abbrev_offset();
                let kinds = abbreviations(self.budget, &self.kinds, kinds)?;
                return self.bytes_of(&unit, &kinds, AttributeValue::UnitRef(at));
            }
        }
        None
    }
}

fn member<'a>(entry: &DebuggingInformationEntry<Slice<'a>>) -> Option<Member<'a>> {
    let offset = entry.attr_value(gimli::DW_AT_data_member_location)?.udata_value()?;
    Some(Member { offset: usize::try_from(offset).ok()?, kind: entry.attr_value(gimli::DW_AT_type)? })
}

fn is_named(entry: &DebuggingInformationEntry<Slice<'_>>, name: &str) -> bool {
    matches!(entry.attr_value(gimli::DW_AT_name), Some(AttributeValue::String(found)) if found.slice() == name.as_bytes())
}

fn size(entry: &DebuggingInformationEntry<Slice<'_>>) -> Option<usize> {
    usize::try_from(entry.attr_value(gimli::DW_AT_byte_size)?.udata_value()?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Section};
    use super::*;

    const FIELDS: [(&str, u8, u16); 3] = [("many", 0, 4), ("all", 8, 8), ("each", 16, 48)];

    fn find<const N: usize>(
        sections: &[Section],
        name: &str,
        fields: [&str; N],
        steps: u64,
    ) -> Option<(usize, [Field; N])> {
        let budget = Budget::of(0, steps);
        let bytes = |name| &sections.iter().find(|section| section.name == name).unwrap().bytes;
        let (entries, kinds) = (bytes(".debug_info"), bytes(".debug_abbrev"));
        Structures::of(entries, kinds, RunTimeEndian::Little, &budget).find(name, fields)
    }

    #[test]
    fn a_field_has_its_place_and_the_size_of_its_type_in_another_unit() {
        let sections = sample::structure("stats", 64, &FIELDS);
        let found = find(&sections, "stats", ["each", "many"], 10_000);
        let each = Field { offset: 16, bytes: 48 };
        assert_eq!(found, Some((64, [each, Field { offset: 0, bytes: 4 }])));
        assert_eq!(find(&sections, "stat", ["each"], 10_000), None);
        assert_eq!(find(&sections, "stats", ["each", "other"], 10_000), None);
    }

    #[test]
    fn a_field_that_reaches_beyond_its_structure_is_none() {
        let sections = sample::structure("stats", 63, &FIELDS);
        assert_eq!(find(&sections, "stats", ["each"], 10_000), None);
        assert!(find(&sections, "stats", ["all"], 10_000).is_some());
    }

    #[test]
    fn a_type_that_lies_nowhere_is_none() {
        for place in [0, 3, 1 << 20, u32::MAX] {
            let mut sections = sample::structure("stats", 64, &FIELDS);
            let units = &mut sections[1].bytes;
            // The place of the last type, before the ends of two lists.
            let at = units.len() - 6;
            units[at..at + 4].copy_from_slice(&place.to_le_bytes());
            assert_eq!(find(&sections, "stats", ["each"], 10_000), None, "{place}");
        }
    }

    #[test]
    fn types_are_read_within_their_steps() {
        let sections = sample::structure("stats", 64, &FIELDS);
        let needed = (0..10_000).find(|steps| find(&sections, "stats", ["each"], *steps).is_some()).unwrap();
        assert!(needed > 20, "{needed}");
        assert!((0..needed).all(|steps| find(&sections, "stats", ["each"], steps).is_none()));
    }

    #[test]
    fn fuzzed_types_are_read_within_their_budget() {
        let mut samples = vec![sample::structure("stats", 64, &FIELDS)];
        samples.push(sample::dwarf(&sample::ROWS));
        sample::fuzz(|random| {
            let mut sections = samples[random.below(samples.len())].clone();
            let at = random.below(sections.len());
            random.change(&mut sections[at].bytes);
            if let Some((bytes, [each, all])) = find(&sections, "stats", ["each", "all"], 1 << 20) {
                assert!(each.offset + each.bytes <= bytes && all.offset + all.bytes <= bytes);
            }
        });
    }
}
