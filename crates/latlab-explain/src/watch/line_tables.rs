//! The line tables that compilers write for debuggers (DWARF): which source line an address has. Only what a
//! question needs is read, and every loop counts in a [`Budget`]: tables may be made to take for ever, or all
//! memory.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugInfoOffset, DebugLineOffset,
    DwarfSections, EndianSlice, Reader as _, RunTimeEndian, Section as _, SectionId, Unit, UnitHeader,
    UnitType,
};

use super::budget::Budget;

/// Longest table of abbreviations; those of whole browsers have some hundred kilobytes.
const LONGEST_ABBREVIATIONS: usize = 1 << 20;
/// Steps of an entry that cannot be read: it may have had as many attributes as there is room for in the
/// table.
pub(super) const OF_UNREADABLE: u64 = LONGEST_ABBREVIATIONS as u64 / 4;
/// What the header of a line program becomes in memory while it is read, and what a program that adds files
/// to it may become: times its bytes.
const OF_HEADER: u64 = 128;
const OF_FILES: u64 = 16;
/// Longest path of a source file.
const LONGEST_PATH: usize = 4096;

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;

/// Addresses of a unit.
#[derive(Debug)]
struct Range {
    begin: u64,
    end: u64,
    /// The least beginning from here on: they are in the order of their ends.
    least_begin: u64,
    unit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    file: u64,
    line: u32,
}

/// Rows with ascending addresses.
#[derive(Debug)]
struct Sequence {
    begin: u64,
    end: u64,
    rows: Vec<Row>,
}

/// What the first entry of a unit says.
struct Root<'a> {
    unit: Unit<Slice<'a>>,
    lines: Option<DebugLineOffset>,
    folder: Option<AttributeValue<Slice<'a>>>,
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
}

/// The table of abbreviations read last: units often share one.
type Last = Option<(usize, Arc<Abbreviations>)>;

/// See the module.
#[derive(Debug)]
pub(crate) struct LineTables {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
    ranges: Vec<Range>,
    /// By the place of the unit.
    units: HashMap<usize, Vec<Sequence>>,
    paths: HashMap<(usize, u64), Option<Rc<str>>>,
    budget: Rc<Budget>,
}

impl LineTables {
    /// Reads which addresses there are lines for. `section`: the bytes of one, empty where there is none.
    pub(crate) fn of(
        endian: RunTimeEndian,
        budget: &Rc<Budget>,
        mut section: impl FnMut(&str) -> Vec<u8>,
    ) -> Self {
        let load = |id: SectionId| -> Result<Vec<u8>, ()> {
            let of_use = matches!(
                id,
                SectionId::DebugAbbrev
                    | SectionId::DebugAddr
                    | SectionId::DebugInfo
                    | SectionId::DebugLine
                    | SectionId::DebugLineStr
                    | SectionId::DebugStr
                    | SectionId::DebugStrOffsets
                    | SectionId::DebugRanges
                    | SectionId::DebugRngLists
            );
            Ok(if of_use { section(id.name()) } else { Vec::new() })
        };
        let mut tables = Self {
            sections: DwarfSections::load(load).unwrap_or_default(),
            endian,
            ranges: Vec::new(),
            units: HashMap::new(),
            paths: HashMap::new(),
            budget: Rc::clone(budget),
        };
        let mut ranges = Vec::new();
        let _ = tables.index(&mut ranges);
        ranges.sort_unstable_by_key(|range| (range.end, range.unit));
        let mut least = u64::MAX;
        for range in ranges.iter_mut().rev() {
            least = least.min(range.begin);
            range.least_begin = least;
        }
        tables.ranges = ranges;
        tables
    }

    fn dwarf(&self) -> Dwarf<'_> {
        self.sections.borrow(|section| EndianSlice::new(section, self.endian))
    }

    /// Until the end, or until the budget is spent.
    fn index(&self, into: &mut Vec<Range>) -> Option<()> {
        let dwarf = self.dwarf();
        let mut units = dwarf.units();
        let mut last = None;
        while let Ok(Some(header)) = units.next() {
            self.budget.step(1)?;
            let is_type = matches!(
                header.type_(),
                UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial
            );
            let Some(DebugInfoOffset(unit)) = header.debug_info_offset().filter(|_| !is_type) else {
                continue;
            };
            let mut add = |begin: u64, end: u64| {
                if begin < end {
                    self.budget.take(2 * size_of::<Range>() as u64)?;
                    into.push(Range { begin, end, least_begin: begin, unit });
                }
                Some(())
            };
            let Some(root) = self.root(&dwarf, header, &mut last) else { continue };
            if self.ranges_of(&dwarf, &root, &mut add)? {
                continue;
            }
            // It tells no addresses itself: its lines do.
            let ends: Vec<_> = self.budget.lent(|| {
                let sequences = self.sequences(&dwarf, &root).unwrap_or_default();
                sequences.iter().map(|of| (of.begin, of.end)).collect()
            });
            for (begin, end) in ends {
                add(begin, end)?;
            }
        }
        Some(())
    }

    /// The first entry of a unit.
    fn root<'a>(
        &self,
        dwarf: &Dwarf<'a>,
        header: UnitHeader<Slice<'a>>,
        last: &mut Last,
    ) -> Option<Root<'a>> {
        let DebugAbbrevOffset(at) = header.debug_abbrev_offset();
        let known = last.as_ref().filter(|last| last.0 == at);
        let abbreviations = if let Some((_, known)) = known {
            Arc::clone(known)
        } else {
            let read = Arc::new(abbreviations(&self.budget, &dwarf.debug_abbrev, at)?);
            *last = Some((at, Arc::clone(&read)));
            read
        };
        let encoding = header.encoding();
        let mut root = Root {
            unit: Unit {
                abbreviations,
                name: None,
                comp_dir: None,
                low_pc: 0,
                str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(
                    encoding,
                    dwarf.file_type,
                ),
                addr_base: gimli::DebugAddrBase(0),
                loclists_base: gimli::DebugLocListsBase(0),
                rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(
                    encoding,
                    dwarf.file_type,
                ),
                line_program: None,
                dwo_id: None,
                header,
            },
            lines: None,
            folder: None,
            low: None,
            high: None,
            ranges: None,
        };
        let header = root.unit.header;
        let abbreviations = Arc::clone(&root.unit.abbreviations);
        let mut entries = header.entries(&abbreviations);
        let Ok(Some(entry)) = entries.next_dfs() else {
            self.budget.step(OF_UNREADABLE)?;
            return None;
        };
        self.budget.step(entry.attrs().len() as u64)?;
        for attribute in entry.attrs() {
            let value = attribute.value();
            match (attribute.name(), value) {
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => root.lines = Some(offset),
                (gimli::DW_AT_comp_dir, _) => root.folder = Some(value),
                (gimli::DW_AT_low_pc, _) => root.low = Some(value),
                (gimli::DW_AT_high_pc, _) => root.high = Some(value),
                (gimli::DW_AT_ranges, _) => root.ranges = Some(value),
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    root.unit.str_offsets_base = base;
                }
                (
                    gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base,
                    AttributeValue::DebugAddrBase(base),
                ) => {
                    root.unit.addr_base = base;
                }
                (
                    gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => root.unit.rnglists_base = base,
                _ => {}
            }
        }
        let low = root.low.and_then(|low| dwarf.attr_address(&root.unit, low).ok().flatten());
        root.unit.low_pc = low.unwrap_or(0);
        Some(root)
    }

    /// Whether the unit tells any addresses; `None`: the budget is spent.
    fn ranges_of<'a>(
        &self,
        dwarf: &Dwarf<'a>,
        root: &Root<'a>,
        mut add: impl FnMut(u64, u64) -> Option<()>,
    ) -> Option<bool> {
        let unit = &root.unit;
        let offset = root.ranges.and_then(|value| dwarf.attr_ranges_offset(unit, value).ok().flatten());
        let mut any = false;
        if let Some(mut list) = offset.and_then(|offset| dwarf.ranges(unit, offset).ok()) {
            while let Ok(Some(entry)) = list.next_raw() {
                self.budget.step(1)?;
                if let Ok(Some(range)) = list.convert_raw(entry) {
                    any |= range.begin < range.end;
                    add(range.begin, range.end)?;
                }
            }
            return Some(any);
        }
        let address = |value| dwarf.attr_address(unit, value).ok().flatten();
        let Some(begin) = root.low.and_then(address) else { return Some(false) };
        let end = match root.high {
            Some(AttributeValue::Udata(bytes)) => Some(begin.wrapping_add(bytes)),
            high => high.and_then(address),
        };
        if let Some(end) = end {
            add(begin, end)?;
        }
        Some(end.is_some_and(|end| begin < end))
    }

    /// The line program of a unit, once what reading it takes is taken; with that.
    fn program<'a>(
        &self,
        dwarf: &Dwarf<'a>,
        root: &Root<'a>,
    ) -> Option<(gimli::IncompleteLineProgram<Slice<'a>>, u64)> {
        let at = root.lines?;
        let mut rest = *dwarf.debug_line.reader();
        rest.skip(at.0).ok()?;
        let (length, format) = rest.read_initial_length().ok()?;
        rest.truncate(length).ok()?;
        let version = rest.read_u16().ok()?;
        if version >= 5 {
            rest.read_u16().ok()?;
        }
        let header = rest.read_length(format).ok()?;
        let files = if version >= 5 { 0 } else { length as u64 };
        let memory = OF_HEADER.saturating_mul(header.min(length) as u64);
        let memory = memory.saturating_add(OF_FILES.saturating_mul(files));
        self.budget.take(memory)?;
        self.budget.step(header.min(length) as u64)?;
        let size = root.unit.header.address_size();
        let program = dwarf.debug_line.program(at, size, None, None).ok()?;
        Some((program, memory))
    }

    /// All rows of a unit, taken from the budget.
    fn sequences<'a>(&self, dwarf: &Dwarf<'a>, root: &Root<'a>) -> Option<Vec<Sequence>> {
        let before = self.budget.bytes_left();
        let (found, for_program) = self
            .program(dwarf, root)
            .and_then(|(program, memory)| Some((self.run(program)?, memory)))
            .unzip();
        let failed = || before - self.budget.bytes_left();
        self.budget.give(for_program.unwrap_or_else(failed));
        found
    }

    fn run(&self, program: gimli::IncompleteLineProgram<Slice<'_>>) -> Option<Vec<Sequence>> {
        // A byte makes one row at most.
        self.budget.step(program.header().raw_program_buf().len() as u64)?;
        let mut found = Vec::new();
        let mut rows = program.rows();
        let mut sequence = Vec::new();
        while let Some((_, row)) = rows.next_row().ok()? {
            if row.end_sequence() {
                let whole = std::mem::take(&mut sequence);
                let begin = whole.first().map_or(u64::MAX, |row: &Row| row.address);
                if begin < row.address() {
                    self.room(&mut found)?;
                    found.push(Sequence { begin, end: row.address(), rows: whole });
                }
                continue;
            }
            let row = Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
            };
            match sequence.last_mut() {
                Some(last) if last.address == row.address => *last = row,
                _ => {
                    self.room(&mut sequence)?;
                    sequence.push(row);
                }
            }
        }
        found.sort_unstable_by_key(|sequence| sequence.begin);
        Some(found)
    }

    /// Makes room for one more, if it is not there; twice over, as what is moved is there twice.
    fn room<T>(&self, of: &mut Vec<T>) -> Option<()> {
        if of.len() == of.capacity() {
            let more = of.len().max(4);
            self.budget.take(2 * (more * size_of::<T>()) as u64)?;
            of.try_reserve_exact(more).ok()?;
        }
        Some(())
    }

    /// The innermost line at an address; `None`: not known.
    pub(crate) fn find(&mut self, address: u64) -> Option<(Rc<str>, u32)> {
        let first = self.ranges.partition_point(|range| range.end <= address);
        for at in first..self.ranges.len() {
            self.budget.step(1)?;
            let range = &self.ranges[at];
            if address < range.least_begin {
                break;
            }
            if range.begin <= address {
                let unit = range.unit;
                if let Some((file, line)) = self.in_unit(unit, address) {
                    // Line 0: code that the compiler made up.
                    return (line > 0).then_some((self.path(unit, file)?, line));
                }
            }
        }
        None
    }

    fn in_unit(&mut self, unit: usize, address: u64) -> Option<(u64, u32)> {
        if !self.units.contains_key(&unit) {
            let dwarf = self.dwarf();
            let sequences = dwarf
                .debug_info
                .header_from_offset(DebugInfoOffset(unit))
                .ok()
                .and_then(|header| self.root(&dwarf, header, &mut None))
                .and_then(|root| self.sequences(&dwarf, &root));
            self.units.insert(unit, sequences.unwrap_or_default());
        }
        let sequences = self.units.get(&unit)?;
        // As a search by halves: a linker leaves tables of functions that it dropped, which overlap.
        let found = sequences.binary_search_by(|sequence| {
            if address < sequence.begin {
                std::cmp::Ordering::Greater
            } else if address >= sequence.end {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Equal
            }
        });
        let rows = &sequences.get(found.ok()?)?.rows;
        let row = match rows.binary_search_by_key(&address, |row| row.address) {
            Ok(at) => at,
            Err(at) => at.checked_sub(1)?,
        };
        rows.get(row).map(|row| (row.file, row.line))
    }

    /// The path of a unit's file.
    fn path(&mut self, unit: usize, file: u64) -> Option<Rc<str>> {
        if let Some(known) = self.paths.get(&(unit, file)) {
            return known.clone();
        }
        let path = self.rendered(unit, file).map(Rc::from);
        self.budget.take((LONGEST_PATH / 16 + path.as_deref().map_or(0, str::len)) as u64)?;
        self.paths.insert((unit, file), path.clone());
        path
    }

    fn rendered(&self, unit: usize, file: u64) -> Option<String> {
        let dwarf = self.dwarf();
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(unit)).ok()?;
        let root = self.root(&dwarf, header, &mut None)?;
        self.budget.lent(|| {
            let (program, _) = self.program(&dwarf, &root)?;
            let header = program.header();
            let file = header.file(file)?;
            let mut path = match root.folder {
                Some(folder) => self.text(&dwarf, &root, folder).unwrap_or_default(),
                None => String::new(),
            };
            // The first is the unit's own folder.
            if file.directory_index() != 0
                && let Some(folder) = file.directory(header)
            {
                join(&mut path, &self.text(&dwarf, &root, folder)?);
            }
            join(&mut path, &self.text(&dwarf, &root, file.path_name())?);
            Some(path)
        })
    }

    fn text<'a>(
        &self,
        dwarf: &Dwarf<'a>,
        root: &Root<'a>,
        value: AttributeValue<Slice<'a>>,
    ) -> Option<String> {
        let Ok(text) = dwarf.attr_string(&root.unit, value) else {
            // It was looked for to the end.
            let searched = dwarf.debug_str.reader().len().max(dwarf.debug_line_str.reader().len());
            self.budget.pass(searched as u64)?;
            return None;
        };
        self.budget.pass(text.len() as u64)?;
        (text.len() <= LONGEST_PATH).then(|| text.to_string_lossy().into_owned())
    }
}

/// A table of abbreviations, after its end was found.
pub(super) fn abbreviations(
    budget: &Budget,
    tables: &DebugAbbrev<Slice<'_>>,
    at: usize,
) -> Option<Abbreviations> {
    let mut all = *tables.reader();
    all.skip(at).ok()?;
    all.truncate(all.len().min(LONGEST_ABBREVIATIONS)).ok()?;
    let mut rest = all;
    let whole = pass_abbreviations(&mut rest);
    let length = all.len() - rest.len();
    budget.step(length as u64)?;
    whole?;
    all.truncate(length).ok()?;
    DebugAbbrev::from(all).abbreviations(DebugAbbrevOffset(0)).ok()
}

/// Goes to the end of a table of abbreviations.
fn pass_abbreviations(rest: &mut Slice<'_>) -> Option<()> {
    while rest.read_uleb128().ok()? != 0 {
        rest.read_uleb128().ok()?;
        rest.read_u8().ok()?;
        loop {
            let (name, form) = (rest.read_uleb128().ok()?, rest.read_uleb128().ok()?);
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                rest.read_sleb128().ok()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Some(())
}

/// A path from a folder, as compilers on any system write them.
fn join(path: &mut String, more: &str) {
    let is_whole = |path: &str, slash: char| {
        path.starts_with(slash) || path.get(1..3).is_some_and(|start| start == format!(":{slash}"))
    };
    if is_whole(more, '/') || is_whole(more, '\\') {
        path.clear();
    } else {
        let slash = if is_whole(path, '\\') { '\\' } else { '/' };
        if !path.is_empty() && !path.ends_with(slash) {
            path.push(slash);
        }
    }
    path.push_str(more);
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSection as _};

    use super::super::sample::{self, CODE_AT, ROWS};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn tables(sections: &[sample::Section], budget: &Rc<Budget>) -> LineTables {
        LineTables::of(RunTimeEndian::Little, budget, |name| {
            let found = sections.iter().find(|section| section.name == name);
            found.map_or_else(Vec::new, |section| section.bytes.clone())
        })
    }

    fn found(tables: &mut LineTables, at: u64) -> Option<(String, u32)> {
        let (path, line) = tables.find(CODE_AT + at)?;
        Some((path.to_string(), line))
    }

    #[test]
    fn an_address_has_the_line_of_the_row_before_it() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let mut tables = tables(&sample::dwarf(&ROWS), &budget);
        let main = Some(("/src/main.c".to_owned(), 10));
        let list = Some(("/src/parts/list.h".to_owned(), 12));
        assert_eq!(found(&mut tables, 0), main);
        assert_eq!(found(&mut tables, 15), main);
        assert_eq!(found(&mut tables, 16), list);
        assert_eq!(found(&mut tables, 63), list);
        assert_eq!(found(&mut tables, 64), None);
        assert_eq!(tables.find(CODE_AT - 1), None);
        assert!(!budget.is_spent());
    }

    #[test]
    fn lines_of_a_unit_that_tells_no_addresses_are_found_by_its_rows() {
        let mut sections = sample::dwarf(&ROWS);
        // Its first address has another name.
        let kinds = &mut sections[0].bytes;
        let low = kinds.windows(2).position(|pair| pair == [0x11, 0x01]).unwrap();
        kinds[low] = 0x2c;
        let budget = Rc::new(Budget::of(MIB, MIB));
        let mut tables = tables(&sections, &budget);
        assert_eq!(found(&mut tables, 16).unwrap().1, 12);
    }

    #[test]
    fn a_program_of_millions_of_rows_is_left_out() {
        // Each byte is a row: an address and a line further.
        let mut rows = ROWS[..3].to_vec();
        rows.resize(1 << 20, 13 + 14 + 6);
        rows.extend([0, 1, 1]);
        let sections = sample::dwarf(&rows);
        // Until rows have been kept there is memory enough, and until they have run, steps.
        for (bytes, steps, is_found) in [(512, 2, true), (24, 2, false), (512, 1, false)] {
            let budget = Rc::new(Budget::of(bytes * MIB, steps * MIB));
            let mut tables = tables(&sections, &budget);
            assert_eq!(found(&mut tables, 8).is_some(), is_found, "{bytes} {steps}");
            assert_eq!(budget.is_spent(), !is_found);
        }
    }

    #[test]
    fn a_thousand_units_with_a_table_of_abbreviations_each_are_left_out() {
        let mut sections = sample::dwarf(&ROWS);
        // A unit without attributes for each place in one table, from which on it is read to its end.
        let (mut kinds, mut units) = (Vec::new(), Vec::new());
        let codes = (0..8).flat_map(|high| (0..125).map(move |low| [low | 0x80, high | 0x40]));
        for code in codes {
            let mut unit = vec![10, 0, 0, 0, 4, 0];
            unit.extend(u32::try_from(kinds.len()).unwrap().to_le_bytes());
            unit.extend([8, code[0], code[1], 0]);
            units.extend(&unit[..14]);
            kinds.extend([code[0], code[1], 0x11, 0, 0, 0]);
        }
        kinds.push(0);
        sections[0].bytes = kinds;
        sections[1].bytes = units;
        for (steps, is_spent) in [(64, false), (1, true)] {
            let budget = Rc::new(Budget::of(16 * MIB, steps * MIB));
            assert_eq!(found(&mut tables(&sections, &budget), 8), None);
            assert_eq!(budget.is_spent(), is_spent, "{steps}");
        }
    }

    #[test]
    fn paths_are_joined_as_compilers_write_them() {
        let joined = |from: &str, more| {
            let mut path = from.to_owned();
            join(&mut path, more);
            path
        };
        assert_eq!(joined("/src", "a.c"), "/src/a.c");
        assert_eq!(joined("/src/", "a.c"), "/src/a.c");
        assert_eq!(joined("/src", "/usr/a.h"), "/usr/a.h");
        assert_eq!(joined("", "a.c"), "a.c");
        assert_eq!(joined("C:\\src", "a.c"), "C:\\src\\a.c");
        assert_eq!(joined("/src", "C:\\a.c"), "C:\\a.c");
    }

    /// The sections of a real program, as a compiler wrote them.
    fn compiled() -> Option<Vec<sample::Section>> {
        const NAMES: [&str; 6] = [
            ".debug_abbrev",
            ".debug_info",
            ".debug_line",
            ".debug_line_str",
            ".debug_str",
            ".debug_rnglists",
        ];
        let bytes = sample::compiled()?;
        let file = object::File::parse(&*bytes).ok()?;
        let data = |name| file.section_by_name(name)?.uncompressed_data().ok();
        let sections =
            NAMES.into_iter().filter_map(|name| Some(sample::debug(name, data(name)?.into_owned())));
        Some(sections.collect())
    }

    #[test]
    fn fuzzed_tables_are_read_within_their_budget() {
        let mut samples = vec![sample::dwarf(&ROWS)];
        samples.extend(compiled());
        sample::fuzz(|random| {
            let mut sections = samples[random.below(samples.len())].clone();
            let at = random.below(sections.len());
            random.change(&mut sections[at].bytes);
            let budget = Rc::new(Budget::of(4 * MIB, MIB / 4));
            let mut tables = tables(&sections, &budget);
            let ranges = tables.ranges.iter().take(4).map(|range| range.begin).collect::<Vec<_>>();
            for address in ranges.into_iter().chain([0, CODE_AT + 20, u64::MAX]) {
                if let Some((path, line)) = tables.find(address) {
                    assert!(line > 0 && path.len() <= 3 * LONGEST_PATH + 2);
                }
            }
            assert!(budget.bytes_left() <= 4 * MIB);
        });
    }
}
