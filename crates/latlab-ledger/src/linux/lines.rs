//! Source lines of addresses, from the line tables that compilers write for debuggers (DWARF). Read when the program has ended.

use std::collections::HashMap;
use std::io::Read as _;
use std::rc::Rc;

use addr2line::Context;
use gimli::{EndianRcSlice, RunTimeEndian};
use object::{CompressionFormat, Object as _, ObjectSection as _, ReadRef};

use super::mapped;
use super::now_ns;
use super::segments::Segments;
use super::symbols::{debug_file, opened};
use crate::by_place::Lines;
use crate::stream::Mapped;

/// Debug information of one file that is read; the largest browsers have more.
const LARGEST: u64 = 512 << 20;
/// All tables together may take this long to read.
const LONGEST_NS: u64 = 5_000_000_000;
/// Of no use for lines, and often the largest.
const UNUSED: [&str; 4] = [".debug_loc", ".debug_loclists", ".debug_macinfo", ".debug_macro"];

type Slice = EndianRcSlice<RunTimeEndian>;

/// The tables of one file.
struct Table {
    segments: Segments,
    context: Context<Slice>,
}

/// See the module.
pub(crate) struct Dwarf {
    mapped: Mapped,
    files: HashMap<Rc<str>, Option<Table>>,
    until: u64,
    /// Files whose tables had no time or no room to be read.
    pub(crate) left_out: Vec<String>,
}

impl Dwarf {
    /// `mapped`: which files the paths stand for.
    pub(crate) fn begin(mapped: Mapped) -> Self {
        Self {
            mapped,
            files: HashMap::new(),
            until: now_ns() + LONGEST_NS,
            left_out: Vec::new(),
        }
    }

    /// Whether any file told lines.
    pub(crate) fn found(&self) -> bool {
        self.files.values().any(Option::is_some)
    }

    fn read(&mut self, path: &str) -> Option<Table> {
        let cache = opened(mapped::named(&self.mapped, path)?)?;
        let file = object::File::parse(&cache).ok()?;
        let context = if file.section_by_name(".debug_line").is_some() {
            self.context(path, &file)?
        } else {
            let apart = opened(mapped::own(&debug_file(file.build_id().ok()??)?)?)?;
            let apart = object::File::parse(&apart).ok()?;
            self.context(path, &apart)?
        };
        let segments = Segments::of(&file);
        Some(Table { segments, context })
    }

    fn context<'data, R: ReadRef<'data>>(
        &mut self,
        path: &str,
        file: &object::File<'data, R>,
    ) -> Option<Context<Slice>> {
        file.section_by_name(".debug_line")?;
        let debug = file.sections().filter(|section| {
            let name = section.name().unwrap_or("");
            name.starts_with(".debug_") && !UNUSED.contains(&name)
        });
        let bytes: u64 = debug.map(|section| section.size()).sum();
        if bytes > LARGEST || now_ns() > self.until {
            self.left_out.push(path.to_owned());
            return None;
        }
        let endian = if file.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let data = section(file, id.name()).unwrap_or_default();
            Ok(EndianRcSlice::new(Rc::from(data), endian))
        };
        Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
    }
}

fn section<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, name: &str) -> Option<Vec<u8>> {
    if UNUSED.contains(&name) {
        return None;
    }
    let data = file.section_by_name(name)?.compressed_data().ok()?;
    match data.format {
        CompressionFormat::None => Some(data.data.to_vec()),
        CompressionFormat::Zlib if data.uncompressed_size <= LARGEST => {
            let mut plain = Vec::new();
            let unpacked = flate2::read::ZlibDecoder::new(data.data);
            unpacked.take(LARGEST).read_to_end(&mut plain).ok()?;
            Some(plain)
        }
        _ => None,
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
        if now_ns() > self.until {
            if !self.left_out.iter().any(|known| known == path) {
                self.left_out.push(path.to_owned());
            }
            return None;
        }
        let table = self.files.get(path)?.as_ref()?;
        let address = table.segments.address(offset)?;
        let found = table.context.find_location(address).ok()??;
        // Line 0: code that the compiler made up.
        let line = found.line.filter(|line| *line > 0)?;
        Some((Rc::from(found.file?), line))
    }
}

#[cfg(test)]
mod tests {
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
        let mut lines = Dwarf::begin(mapped);
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
    fn what_is_no_program_has_no_lines_and_does_no_harm() {
        let mut lines = Dwarf::begin(Mapped::default());
        for path in [
            "/nowhere",
            "/dev/zero",
            "/proc/self/status",
            "//anon",
            "[vdso]",
            "",
        ] {
            assert_eq!(lines.line(path, 4096), None);
        }
        assert!(!lines.found() && lines.left_out.is_empty());
    }
}
