//! A program's file as it is read: by `pread`, never mapped (a program may cut its file short while it is
//! watched, and a mapped one would end the watcher), and all of it counted in a [`Budget`].

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use object::read::ReadCache;
use object::{CompressionFormat, Object as _, ObjectSection as _, ReadRef};

use super::blocks::Blocks;
use super::budget::Budget;

/// A longer name is none.
const LONGEST_NAME: usize = 4096;
/// Files larger than this are not read.
const LARGEST: u64 = 4 << 30;
/// Sections, or segments, of a file; linked ones have some dozens.
const MOST_PARTS: usize = 4096;
/// What a piece that is kept takes beside its bytes.
const OF_PIECE: u64 = 128;
/// Where the names of symbols are. Read one by one, those of a large program take a fifth of a second.
const NAMES: [&str; 2] = [".strtab", ".dynstr"];

/// See the module. While it lives it holds what was read of it, but for sections that were taken out.
#[derive(Debug)]
pub(crate) struct Image {
    file: Rc<File>,
    bytes: u64,
    cache: ReadCache<Blocks>,
    budget: Rc<Budget>,
    /// Pieces that are kept: offsets and lengths, of texts no length.
    kept: RefCell<HashSet<(u64, u64)>>,
    /// Of these the sections that hold names.
    names: RefCell<Vec<(u64, u64)>>,
    taken: Cell<u64>,
}

/// What a program's file holds.
pub(crate) type Parsed<'a> = object::File<'a, &'a Image>;

impl Image {
    /// `None`: not a regular file, or too large.
    pub(crate) fn of(file: File, budget: &Rc<Budget>) -> Option<Self> {
        let about = file.metadata().ok()?;
        if !about.is_file() || about.len() > LARGEST {
            return None;
        }
        let file = Rc::new(file);
        Some(Self {
            bytes: about.len(),
            cache: ReadCache::new(Blocks::of(Rc::clone(&file))),
            file,
            budget: Rc::clone(budget),
            kept: RefCell::default(),
            names: RefCell::default(),
            taken: Cell::new(0),
        })
    }

    /// What it holds, if it is a program or a library of a usual kind.
    pub(crate) fn parsed(&self) -> Option<Parsed<'_>> {
        let file = object::File::parse(self).ok()?;
        let is_usual = file.sections().nth(MOST_PARTS).is_none() && file.segments().nth(MOST_PARTS).is_none();
        is_usual.then_some(file)
    }

    /// Reads the names of symbols at once, for whoever asks for all of them.
    pub(crate) fn read_names(&self, file: &Parsed<'_>) {
        let sections = NAMES.iter().filter_map(|name| file.section_by_name(name)?.file_range());
        for (offset, bytes) in sections {
            if self.read_bytes_at(offset, bytes).is_ok() {
                self.names.borrow_mut().push((offset, bytes));
            }
        }
    }

    /// The name that begins here, if it was read with all others. It ends with a zero.
    fn name(&self, start: u64) -> Option<&[u8]> {
        let holds = |names: &&(u64, u64)| (names.0..names.0 + names.1).contains(&start);
        let (offset, bytes) = *self.names.borrow().iter().find(holds)?;
        let all = (&self.cache).read_bytes_at(offset, bytes).ok()?;
        let rest = all.get(usize::try_from(start - offset).ok()?..)?;
        let name = CStr::from_bytes_until_nul(&rest[..rest.len().min(LONGEST_NAME)]).ok()?;
        Some(name.to_bytes())
    }

    fn take(&self, bytes: u64) -> Option<()> {
        self.budget.pass(bytes)?;
        let bytes = bytes.saturating_add(OF_PIECE);
        self.budget.take(bytes)?;
        self.taken.set(self.taken.get() + bytes);
        Some(())
    }

    /// A piece of the file, which the caller has taken from the budget.
    fn piece(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes {
            return None;
        }
        let mut piece = empty(bytes)?;
        piece.resize(usize::try_from(bytes).ok()?, 0);
        self.file.read_exact_at(&mut piece, offset).ok()?;
        Some(piece)
    }

    /// A section as it was before it was compressed, taken from the budget for good.
    pub(crate) fn section(&self, file: &Parsed<'_>, name: &str) -> Option<Vec<u8>> {
        let found = file.section_by_name(name)?.compressed_file_range().ok()?;
        let (packed, plain) = (found.compressed_size, found.uncompressed_size);
        let is_packed = match found.format {
            CompressionFormat::None => false,
            CompressionFormat::Zlib => true,
            _ => return None,
        };
        if packed > self.bytes {
            return None;
        }
        self.budget.pass(packed)?;
        self.budget.take(packed)?;
        if !is_packed {
            return self.piece(found.offset, packed);
        }
        let inflated = self.piece(found.offset, packed).and_then(|bytes| {
            // Inflating a byte takes as long as reading two.
            self.budget.pass(plain.saturating_mul(2))?;
            self.budget.take(plain)?;
            inflated(&bytes, plain)
        });
        self.budget.give(packed);
        inflated
    }

    /// The id that the linker gave the program, by which its debug information is found.
    pub(crate) fn build_id(&self, file: &Parsed<'_>) -> Option<Vec<u8>> {
        /// Of the note around it.
        const HEAD: usize = 16;
        const LONGEST: u64 = 1024;
        let (offset, bytes) = file.section_by_name(".note.gnu.build-id")?.file_range()?;
        let note = self.piece(offset, bytes.min(LONGEST))?;
        let word = |at: usize| Some(u32::from_ne_bytes(note.get(at..at + 4)?.try_into().ok()?));
        // A name of four bytes, "GNU", and type 3.
        let is_id = word(0)? == 4 && word(8)? == 3 && note.get(12..HEAD)? == b"GNU\0";
        let length = usize::try_from(word(4)?).ok()?;
        let id = note.get(HEAD..HEAD.checked_add(length)?)?;
        is_id.then(|| id.to_vec())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.budget.give(self.taken.get());
    }
}

/// With room for so many bytes.
fn empty(bytes: u64) -> Option<Vec<u8>> {
    let mut empty = Vec::new();
    empty.try_reserve_exact(usize::try_from(bytes).ok()?).ok()?;
    Some(empty)
}

/// At most as long as it says that it is.
fn inflated(packed: &[u8], bytes: u64) -> Option<Vec<u8>> {
    let mut plain = empty(bytes)?;
    let unpacked: io::Result<usize> =
        flate2::read::ZlibDecoder::new(packed).take(bytes).read_to_end(&mut plain);
    unpacked.ok()?;
    Some(plain)
}

impl<'data> ReadRef<'data> for &'data Image {
    fn len(self) -> Result<u64, ()> {
        Ok(self.bytes)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        let end = offset.checked_add(size).ok_or(())?;
        if end > self.bytes {
            return Err(());
        }
        let piece = (offset, size);
        if size > 0 && !self.kept.borrow().contains(&piece) {
            self.take(size).ok_or(())?;
            self.kept.borrow_mut().insert(piece);
        }
        (&self.cache).read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        let start = range.start;
        if let Some(name) = self.name(start).filter(|_| delimiter == 0) {
            self.budget.pass(name.len() as u64).ok_or(())?;
            return Ok(name);
        }
        // Texts end at 4 KiB: longer ones are none.
        let text = (&self.cache).read_bytes_at_until(range, delimiter);
        match text {
            Ok(text) if self.kept.borrow_mut().insert((start, 0)) => {
                self.take(text.len() as u64).ok_or(())?;
            }
            Ok(_) => {}
            Err(()) => self.budget.pass(LONGEST_NAME as u64).ok_or(())?,
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, COMPRESSED, NOTE, Section};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn image(bytes: &[u8], budget: &Rc<Budget>) -> Image {
        Image::of(sample::file(bytes), budget).unwrap()
    }

    /// A section of zlib's bytes, which claims to have been so long.
    fn packed(plain: &[u8], claims: u64) -> Section {
        use std::io::Write as _;
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(claims.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        let mut zlib = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::best());
        zlib.write_all(plain).unwrap();
        zlib.finish().unwrap();
        Section { flags: COMPRESSED, ..sample::debug(".debug_line", bytes) }
    }

    #[test]
    fn sections_are_read_whole_and_inflated() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).take(50_000).collect();
        let sections = [sample::debug(".debug_info", plain.clone()), packed(&plain, 50_000)];
        let image = image(&sample::elf(&sections), &budget);
        let file = image.parsed().unwrap();
        assert_eq!(image.section(&file, ".debug_info"), Some(plain.clone()));
        assert_eq!(image.section(&file, ".debug_line"), Some(plain));
        assert_eq!(image.section(&file, ".debug_str"), None);
        drop(image);
        assert_eq!(budget.bytes_left(), MIB - 100_000, "only what was taken out");
        assert!(!budget.is_spent());
    }

    #[test]
    fn names_are_the_same_read_at_once_or_one_by_one() {
        use object::ObjectSymbol as _;
        let budget = Rc::new(Budget::of(64 * MIB, 64 * MIB));
        let mut samples = vec![sample::elf(&sample::named("work"))];
        samples.extend(sample::compiled());
        for bytes in samples {
            let names = |at_once: bool| -> Vec<String> {
                let image = image(&bytes, &budget);
                let file = image.parsed().unwrap();
                if at_once {
                    image.read_names(&file);
                    assert!(!image.names.borrow().is_empty());
                }
                let symbols = file.symbols().chain(file.dynamic_symbols());
                symbols.map(|symbol| symbol.name().unwrap_or("?").to_owned()).collect()
            };
            let at_once = names(true);
            assert!(at_once.iter().any(|name| name.len() > 3));
            assert_eq!(at_once, names(false));
        }
    }

    #[test]
    fn a_section_that_inflates_a_thousandfold_is_left_out_before_it_is_inflated() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let zeros = vec![0; 8 << 20];
        let image = image(&sample::elf(&[packed(&zeros, zeros.len() as u64)]), &budget);
        let file = image.parsed().unwrap();
        assert_eq!(image.section(&file, ".debug_line"), None);
        assert!(budget.is_spent());
    }

    #[test]
    fn a_section_is_inflated_no_further_than_it_says() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let image = image(&sample::elf(&[packed(&vec![7; 200_000], 1000)]), &budget);
        let file = image.parsed().unwrap();
        assert_eq!(image.section(&file, ".debug_line"), Some(vec![7; 1000]));
    }

    #[test]
    fn sections_longer_than_the_file_are_none_and_take_nothing() {
        for claims in [1 << 20, 1 << 32, 1 << 63, u64::MAX] {
            let budget = Rc::new(Budget::of(MIB, MIB));
            let mut sections = sample::named("work");
            for section in &mut sections[1..] {
                section.claims = Some(claims);
            }
            sections.push(Section { claims: Some(claims), ..sample::debug(".debug_line", vec![1; 8]) });
            let image = image(&sample::elf(&sections), &budget);
            if let Some(file) = image.parsed() {
                assert_eq!(image.section(&file, ".debug_line"), None, "{claims:x}");
            }
            drop(image);
            assert_eq!(budget.bytes_left(), MIB);
        }
    }

    #[test]
    fn a_sparse_file_of_gigabytes_takes_no_more_than_the_budget() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let mut sections = sample::named("work");
        sections[1].claims = Some(3 << 30);
        let file = sample::file(&sample::elf(&sections));
        file.set_len(4 << 30).unwrap();
        let image = Image::of(file, &budget).unwrap();
        assert!(image.parsed().is_none());
        assert!(budget.is_spent());
        let larger = sample::file(&[]);
        larger.set_len((4 << 30) + 1).unwrap();
        assert!(Image::of(larger, &budget).is_none());
    }

    #[test]
    fn a_file_that_is_cut_short_while_it_is_read_ends_nothing() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let sections = [sample::debug(".debug_info", vec![1; 300_000])];
        let opened = sample::file(&sample::elf(&sections));
        let image = Image::of(opened.try_clone().unwrap(), &budget).unwrap();
        let file = image.parsed().unwrap();
        opened.set_len(5000).unwrap();
        assert_eq!(image.section(&file, ".debug_info"), None);
    }

    #[test]
    fn the_id_of_a_program_is_in_its_note() {
        let budget = Rc::new(Budget::of(MIB, MIB));
        let id = |length: u32| {
            let mut note = Vec::new();
            for word in [4, length, 3] {
                note.extend(word.to_le_bytes());
            }
            note.extend(b"GNU\0\x12\x34\x56");
            let section = Section { kind: NOTE, ..sample::debug(".note.gnu.build-id", note) };
            let image = image(&sample::elf(&[section]), &budget);
            let file = image.parsed().unwrap();
            image.build_id(&file)
        };
        assert_eq!(id(3), Some(vec![0x12, 0x34, 0x56]));
        assert_eq!((id(4), id(u32::MAX)), (None, None));
    }
}
