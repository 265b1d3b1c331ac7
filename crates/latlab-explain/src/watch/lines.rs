//! Source lines of addresses, from the line tables that compilers write for debuggers (DWARF). Read when the
//! program has ended.

use std::collections::HashMap;
use std::rc::Rc;

use gimli::RunTimeEndian;
use object::Object as _;

use super::budget::Budget;
use super::clock::now_ns;
use super::image::{Image, Parsed};
use super::line_tables::LineTables;
use super::mapped;
use super::segments::Segments;
use super::symbols::debug_file;
use crate::account::by_place::Lines;
use crate::account::mappings::Mapped;

/// All tables together may take this long to read: the program has ended, and its user waits.
const LONGEST_NS: u64 = 4_000_000_000;

/// The tables of one file.
struct Table {
    segments: Segments,
    lines: LineTables,
}

/// See the module.
pub(crate) struct Dwarf {
    mapped: Mapped,
    files: HashMap<Rc<str>, Option<Table>>,
    until: u64,
    budget: Rc<Budget>,
    /// Files whose tables had no time or no room to be read.
    pub(crate) left_out: Vec<String>,
}

impl Dwarf {
    /// `mapped`: which files the paths stand for.
    pub(crate) fn begin(mapped: Mapped) -> Self {
        Self::until(mapped, now_ns() + LONGEST_NS)
    }

    fn until(mapped: Mapped, until: u64) -> Self {
        let budget = Budget::here();
        budget.end_by(until);
        Self { mapped, files: HashMap::new(), until, budget: Rc::new(budget), left_out: Vec::new() }
    }

    /// Whether any file has lines.
    pub(crate) fn found(&self) -> bool {
        self.files.values().any(Option::is_some)
    }

    fn read(&mut self, path: &str) -> Option<Table> {
        let image = Image::of(mapped::named(&self.mapped, path)?, &self.budget)?;
        let file = image.parsed()?;
        let lines = if file.section_by_name(".debug_line").is_some() {
            self.tables(&image, &file)?
        } else {
            let apart = mapped::own(&debug_file(&image.build_id(&file)?)?)?;
            let apart = Image::of(apart, &self.budget)?;
            self.tables(&apart, &apart.parsed()?)?
        };
        let segments = Segments::of(&file);
        Some(Table { segments, lines })
    }

    fn tables(&self, image: &Image, file: &Parsed<'_>) -> Option<LineTables> {
        file.section_by_name(".debug_line")?;
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let is_late = now_ns() > self.until;
        (!is_late).then(|| {
            LineTables::of(endian, &self.budget, |name| image.section(file, name).unwrap_or_default())
        })
    }
}

impl Lines for Dwarf {
    fn line(&mut self, path: &str, offset: u64) -> Option<(Rc<str>, u32)> {
        // What is mapped from no file, and the kernel's own page.
        if !path.starts_with('/') || path.starts_with("//") {
            return None;
        }
        if !self.files.contains_key(path) {
            let table = self.read(path);
            self.files.insert(Rc::from(path), table);
        }
        let is_late = now_ns() > self.until;
        let table = self.files.get_mut(path)?.as_mut().filter(|_| !is_late);
        let found = table.and_then(|table| table.lines.find(table.segments.address(offset)?));
        let is_left_out = found.is_none() && (is_late || self.budget.is_spent());
        if is_left_out && !self.left_out.iter().any(|known| known == path) {
            self.left_out.push(path.to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use object::ObjectSection as _;

    use super::*;

    #[test]
    fn a_line_of_this_very_program_is_found() {
        let path = std::env::current_exe().unwrap();
        let path = path.to_str().unwrap();
        let own = a_line_of_this_very_program_is_found as fn() as usize as u64;
        let map = super::super::maps::of(std::process::id())
            .into_iter()
            .find(|map| (map.start..map.end).contains(&own))
            .unwrap();
        let mut mapped = Mapped::default();
        mapped.name(std::process::id(), &map);
        let mut lines = Dwarf::until(mapped, u64::MAX);
        let found = lines.line(path, own - map.start + map.offset);
        // A build without line tables has none, and says so.
        if let Some((file, line)) = found {
            assert!(file.ends_with("lines.rs"), "{file}");
            assert!(line > 100, "{line}");
            assert!(lines.found());
        } else {
            assert!(!lines.found());
        }
    }

    #[test]
    fn lines_of_this_very_program_are_those_that_another_reader_finds() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        if file.section_by_name(".debug_line").is_none() {
            eprintln!("skipped: this was compiled without line tables");
            return;
        }
        let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            Ok(gimli::EndianRcSlice::new(Rc::from(data.unwrap_or_default()), RunTimeEndian::Little))
        };
        let other = addr2line::Context::from_dwarf(gimli::Dwarf::load(section).unwrap()).unwrap();
        let path = path.to_str().unwrap();
        let mut mapped = Mapped::default();
        let maps = super::super::maps::of(std::process::id());
        let own = maps.iter().find(|map| map.path.as_ref() == path).unwrap();
        mapped.name(std::process::id(), own);
        let mut lines = Dwarf::until(mapped, u64::MAX);
        let mut table = lines.read(path).unwrap();
        let code = file.section_by_name(".text").unwrap();
        let (mut compared, mut known) = (0, 0);
        for address in (code.address()..code.address() + code.size()).step_by(4099) {
            let expected = other.find_location(address).unwrap().and_then(|found| {
                let line = found.line.filter(|line| *line > 0)?;
                Some((found.file?.to_owned(), line))
            });
            let found = table.lines.find(address).map(|(path, line)| (path.to_string(), line));
            assert_eq!(found, expected, "{address:x}");
            compared += 1;
            known += u32::from(found.is_some());
        }
        assert!(compared > 100, "{compared}");
        assert!(known > compared / 2, "{known} of {compared}");
    }

    #[test]
    fn what_is_no_program_has_no_lines_and_does_no_harm() {
        let mut lines = Dwarf::begin(Mapped::default());
        for path in ["/nowhere", "/dev/zero", "/proc/self/status", "//anon", "[vdso]", ""] {
            assert_eq!(lines.line(path, 4096), None);
        }
        assert!(!lines.found() && lines.left_out.is_empty());
    }
}
