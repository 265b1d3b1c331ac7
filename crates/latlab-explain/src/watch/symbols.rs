//! Names of addresses: the kernel's from /proc/kallsyms, those of programs and libraries from their symbol
//! tables.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::rc::Rc;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use super::beside::{Beside, is_file};
use super::budget::Budget;
use super::demangle::Demangler;
use super::image::{Image, Parsed};
use super::mapped;
use super::perf_map::PerfMap;
use super::segments::Segments;
use crate::account::mappings::{Map, Mapped};
use crate::account::mix::WITHOUT_NAME;
use crate::account::stream::{Names, Place};

/// Symbols of one file; the largest browsers have a million.
const MOST_SYMBOLS: usize = 2_000_000;
/// What a symbol takes beside its name.
const OF_SYMBOL: u64 = 128;
/// What malloc.c exports. It is one translation unit: its static functions lie between the export before its
/// first and the end of its last.
const MALLOC: [&str; 20] = [
    "malloc",
    "free",
    "realloc",
    "calloc",
    "memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_trim",
    "malloc_usable_size",
    "mallopt",
    "posix_memalign",
    "malloc_info",
    "mallinfo",
    "mallinfo2",
    "malloc_stats",
    "cfree",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
];
/// The name that functions of malloc.c have here when the library was stripped of them.
const IN_MALLOC: &str = "_int_malloc or another static function of malloc.c";

/// The name of code that only jumps to a function of another file.
const STUB: &str = "[call into a library]";

#[derive(Clone, Debug)]
struct Symbol {
    address: u64,
    bytes: u64,
    name: Box<str>,
    /// The name is as in the source, if it can be.
    is_plain: bool,
}

impl Symbol {
    fn of(address: u64, bytes: u64, name: &str) -> Self {
        Self { address, bytes, name: Box::from(name), is_plain: false }
    }
}

/// The symbols of a file, by address.
#[derive(Debug, Default)]
struct Table {
    symbols: Vec<Symbol>,
    segments: Segments,
    malloc: Option<(u64, u64)>,
    /// Addresses of stubs through which functions of other files are called.
    stubs: Vec<(u64, u64)>,
}

impl Table {
    fn read(path: &str, file: Option<File>, budget: &Rc<Budget>) -> Self {
        let mut table = file.map_or_else(Self::default, |file| Self::of(file, budget));
        if is_libc(path) {
            table.malloc = table.range_of_malloc();
        }
        table
    }

    fn of(file: File, budget: &Rc<Budget>) -> Self {
        let mut table = Self::default();
        let Some(image) = Image::of(file, budget) else { return table };
        let Some(file) = image.parsed() else { return table };
        table.segments = Segments::of(&file);
        let stubs = file.sections().filter(|section| {
            let name = section.name().unwrap_or("");
            name == ".plt" || name.starts_with(".plt.")
        });
        table.stubs = stubs
            .map(|section| {
                let start = section.address();
                (start, start.saturating_add(section.size()))
            })
            .collect();
        // What does not fit in the budget has no name.
        let _ = table.add(&image, &file, budget);
        let id = image.build_id(&file);
        let debug = id.as_deref().and_then(debug_file).and_then(|path| mapped::own(&path));
        let debug = debug.and_then(|file| Image::of(file, budget));
        if let Some((image, file)) = debug.as_ref().and_then(|image| Some((image, image.parsed()?))) {
            let _ = table.add(image, &file, budget);
        }
        table.symbols.sort_by(|a, b| a.address.cmp(&b.address).then(b.bytes.cmp(&a.bytes)));
        table.symbols.dedup_by_key(|symbol| symbol.address);
        table
    }

    /// Takes the symbols of a file; `None`: the budget is spent.
    fn add(&mut self, image: &Image, file: &Parsed<'_>, budget: &Budget) -> Option<()> {
        image.read_names(file);
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            budget.step(1)?;
            let code = symbol.is_definition() && symbol.address() != 0 && symbol.kind() == SymbolKind::Text;
            if !code || self.symbols.len() >= MOST_SYMBOLS {
                continue;
            }
            if let Ok(name) = symbol.name() {
                budget.take(OF_SYMBOL + name.len() as u64)?;
                self.symbols.push(Symbol::of(symbol.address(), symbol.size(), name));
            }
        }
        Some(())
    }

    fn range_of_malloc(&self) -> Option<(u64, u64)> {
        let own = |symbol: &Symbol| MALLOC.contains(&&*symbol.name);
        let first = self.symbols.iter().position(|symbol| &*symbol.name == "malloc")?;
        let from = self.symbols[..first].iter().rev().find(|symbol| !own(symbol))?;
        let end = self.symbols[first..].iter().take_while(|symbol| own(symbol)).last()?;
        let end_of = |symbol: &Symbol| symbol.address.saturating_add(symbol.bytes);
        Some((end_of(from), end_of(end)))
    }

    /// The function at an offset in the file.
    fn function(&mut self, offset: u64, demangler: &mut Demangler) -> Option<Rc<str>> {
        let address = self.segments.address(offset).unwrap_or(offset);
        // Symbols without a length would reach into them.
        if self.stubs.iter().any(|stub| (stub.0..stub.1).contains(&address)) {
            return Some(Rc::from(STUB));
        }
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = after.checked_sub(1).map(|at| &mut self.symbols[at]);
        let holds = |symbol: &&mut Symbol| symbol.bytes == 0 || address - symbol.address < symbol.bytes;
        if let Some(symbol) = symbol.filter(holds) {
            if !symbol.is_plain {
                symbol.name = Box::from(&*demangler.name(&symbol.name));
                symbol.is_plain = true;
            }
            return Some(Rc::from(&*symbol.name));
        }
        let (from, to) = self.malloc?;
        (from..to).contains(&address).then(|| Rc::from(IN_MALLOC))
    }
}

fn is_libc(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libc.so") || name.starts_with("libc-2")
}

/// Where distributions put symbols that they have taken out.
pub(crate) fn debug_file(id: &[u8]) -> Option<String> {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in id {
        write!(hex, "{byte:02x}").ok()?;
    }
    Some(format!("/usr/lib/debug/.build-id/{}/{}.debug", hex.get(..2)?, hex.get(2..)?))
}

/// Code that a process makes while it runs.
#[derive(Debug, Default)]
struct RunTime {
    /// How often a name was missing.
    missed: u32,
    map: Option<PerfMap>,
    table: Table,
}

impl RunTime {
    /// Reads names, if there are more than before.
    fn learn(&mut self, pid: u32, budget: &Budget) {
        self.missed = self.missed.saturating_add(1);
        // Its compiler may open a list later; nobody asks for it each time.
        if self.map.is_none() && self.missed.is_power_of_two() {
            self.map = PerfMap::open(pid);
        }
        if let Some(listed) = self.map.as_mut().and_then(|map| map.grown(budget)) {
            let symbols = listed.into_iter();
            self.table.symbols = symbols.map(|of| Symbol::of(of.address, of.bytes, &of.name)).collect();
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Symbols {
    kernel: Option<Rc<Vec<Symbol>>>,
    /// Which files the paths stand for.
    pub(crate) mapped: Mapped,
    files: Beside<Table>,
    places: HashMap<(Rc<str>, u64), Place>,
    run_time: HashMap<u32, RunTime>,
    demangler: Demangler,
    /// Who asks for a name waits until its file is read.
    pub(crate) waits: bool,
}

impl Default for Symbols {
    fn default() -> Self {
        Self {
            kernel: None,
            mapped: Mapped::default(),
            files: Beside::of(Table::read),
            places: HashMap::new(),
            run_time: HashMap::new(),
            demangler: Demangler::default(),
            waits: false,
        }
    }
}

thread_local! {
    static KERNEL: std::cell::OnceCell<Rc<Vec<Symbol>>> = const { std::cell::OnceCell::new() };
}

/// The kernel's functions, read once: a hundred thousand lines, which are better read before the program runs
/// than beside it.
fn kernel() -> Rc<Vec<Symbol>> {
    KERNEL.with(|kernel| Rc::clone(kernel.get_or_init(|| Rc::new(kallsyms()))))
}

fn kallsyms() -> Vec<Symbol> {
    let text = super::proc_file::text("/proc/kallsyms");
    let mut symbols: Vec<Symbol> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            let code = matches!(words.next()?, "t" | "T" | "w" | "W");
            let name = words.next()?;
            code.then(|| Symbol::of(address, 0, name))
        })
        .collect();
    symbols.sort_by_key(|symbol| symbol.address);
    symbols
}

/// Whether the kernel shows where its functions are: where it does not, all are at 0.
pub(crate) fn shows_the_kernel() -> bool {
    let lines = File::open("/proc/kallsyms").map(|file| BufReader::new(file).lines());
    let mut lines = lines.into_iter().flatten().map_while(Result::ok);
    lines.any(|line| line.bytes().take_while(|digit| *digit != b' ').any(|digit| digit != b'0'))
}

impl Symbols {
    /// Reads where the kernel's functions are; once for all that ask later.
    pub(crate) fn know_the_kernel(&mut self) {
        self.kernel.get_or_insert_with(kernel);
    }

    /// The program has ended: what is not known by then stays without a name.
    pub(crate) fn has_ended(&mut self) {
        self.files.has_ended();
    }

    /// Whether names are missing as they would have taken too much memory or time to read.
    pub(crate) fn are_left_out(&self) -> bool {
        self.files.is_left_out()
    }

    fn at_run_time(&mut self, pid: u32, address: u64) -> Option<Rc<str>> {
        const MOST_PROCESSES: usize = 64;
        if self.run_time.len() >= MOST_PROCESSES && !self.run_time.contains_key(&pid) {
            return None;
        }
        let known = self.run_time.entry(pid).or_default();
        if let Some(name) = known.table.function(address, &mut self.demangler) {
            return Some(name);
        }
        known.learn(pid, &self.files.budget());
        known.table.function(address, &mut self.demangler)
    }
}

impl Names for Symbols {
    fn mapped(&mut self, pid: u32, map: &Map) -> Rc<str> {
        self.mapped.name(pid, map)
    }

    fn kernel(&mut self, address: u64) -> Rc<str> {
        let symbols = self.kernel.get_or_insert_with(kernel);
        let after = symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = after.checked_sub(1).map(|at| &symbols[at]);
        Rc::from(symbol.map_or(WITHOUT_NAME, |symbol| &symbol.name))
    }

    fn user(&mut self, file: Option<(&Rc<str>, u64)>, pid: u32, address: u64) -> Option<Place> {
        const MOST_PLACES: usize = 200_000;
        let nowhere = |object: &str, function| Some(Place { function, object: Rc::from(object) });
        let Some((path, offset)) = file else {
            let function = self.at_run_time(pid, address);
            return nowhere("made at run time", function);
        };
        if path.starts_with('[') {
            // The kernel's own page of code has functions for clocks only.
            return nowhere(path, Some(Rc::clone(path)));
        }
        if !is_file(path) {
            let function = self.at_run_time(pid, address);
            return nowhere("made at run time", function);
        }
        if let Some(place) = self.places.get(&(Rc::clone(path), offset)) {
            return Some(place.clone());
        }
        if !self.files.knows(path, &self.mapped, self.waits) {
            return None;
        }
        let table = self.files.get(path);
        let function = table.and_then(|table| table.function(offset, &mut self.demangler));
        let place = Place { function, object: Rc::from(path.rsplit('/').next().unwrap_or(path)) };
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        self.places.insert((Rc::clone(path), offset), place.clone());
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_function_of_this_very_program_has_its_name() {
        let path = std::env::current_exe().unwrap();
        let own = a_function_of_this_very_program_has_its_name as fn() as usize as u64;
        let map = super::super::maps::of(std::process::id())
            .into_iter()
            .find(|map| (map.start..map.end).contains(&own))
            .unwrap();
        let budget = Rc::new(Budget::here());
        let mut table = Table::read(path.to_str().unwrap(), File::open(&path).ok(), &budget);
        let offset = own - map.start + map.offset + 4;
        let found = table.function(offset, &mut Demangler::default()).unwrap();
        assert!(found.ends_with("a_function_of_this_very_program_has_its_name"), "{found}");
    }

    #[test]
    fn a_name_is_known_once_its_file_is_read() {
        let path = std::env::current_exe().unwrap();
        let maps = super::super::maps::of(std::process::id());
        let own = maps.iter().find(|map| *map.path == *path.to_str().unwrap()).unwrap();
        let mut symbols = Symbols::default();
        let name = symbols.mapped(std::process::id(), own);
        assert_eq!(symbols.user(Some((&name, 0)), 1, 0), None, "who does not wait comes again");
        symbols.waits = true;
        assert!(symbols.user(Some((&name, 0)), 1, 0).is_some());
        assert!(!symbols.files.get(&name).unwrap().symbols.is_empty());
        symbols.waits = false;
        let anonymous = Rc::from("//anon");
        assert!(symbols.user(Some((&anonymous, 0)), 1, 0).is_some(), "there is nothing to know");
    }

    #[test]
    fn static_functions_of_malloc_are_found_between_its_exports() {
        let table = Table {
            symbols: vec![
                Symbol::of(0x100, 0x20, "fgetc"),
                Symbol::of(0x400, 0x40, "malloc"),
                Symbol::of(0x460, 0x40, "free"),
                Symbol::of(0x600, 0x10, "memcpy"),
            ],
            segments: Segments::default(),
            malloc: None,
            stubs: vec![(0x800, 0x840)],
        };
        let malloc = table.range_of_malloc();
        assert_eq!(malloc, Some((0x120, 0x4a0)));
        let mut table = Table { malloc, ..table };
        let mut function = |offset| table.function(offset, &mut Demangler::default());
        assert_eq!(function(0x200).as_deref(), Some(IN_MALLOC));
        assert_eq!(function(0x410).as_deref(), Some("malloc"));
        assert_eq!(function(0x700), None);
        assert_eq!(function(0x810).as_deref(), Some(STUB));
    }

    #[test]
    fn what_is_no_program_has_no_names_and_does_no_harm() {
        let budget = Rc::new(Budget::here());
        for path in ["/dev/zero", "/proc/self/status", "/nowhere"] {
            let table = Table::read(path, File::open(path).ok(), &budget);
            assert!(table.symbols.is_empty());
        }
    }

    #[test]
    fn a_name_that_cannot_be_read_within_the_budget_is_left_out() {
        let budget = Rc::new(Budget::of(1 << 20, 1 << 20));
        let name = "_ZN4core3fmt5write17h0123456789abcdefE";
        let mut table = Table::of(sample::file(&sample::elf(&sample::named(name))), &budget);
        let function = table.function(0x1004, &mut Demangler::default());
        assert_eq!(function.as_deref(), Some("core::fmt::write"));
        assert!(!budget.is_spent());
        let budget = Rc::new(Budget::of(300, 1 << 20));
        assert!(Table::of(sample::file(&sample::elf(&sample::named(name))), &budget).symbols.is_empty());
        assert!(budget.is_spent());
    }

    #[test]
    fn millions_of_symbols_are_a_bounded_number_of_steps() {
        let mut sections = sample::named("work");
        let symbol = sections[1].bytes[24..].to_vec();
        sections[1].bytes = symbol.repeat(100_000);
        let budget = Rc::new(Budget::of(64 << 20, 200_000));
        let mut table = Table::of(sample::file(&sample::elf(&sections)), &budget);
        assert!(budget.is_spent());
        // What was read until then is reported.
        let function = table.function(0x1004, &mut Demangler::default());
        assert_eq!(function.as_deref(), Some("work"));
    }

    #[test]
    fn fuzzed_programs_are_read_within_their_budget() {
        let mut sections = sample::named("_ZN4core3fmt5write17h0123456789abcdefE");
        sections.extend(sample::dwarf(&sample::ROWS));
        let mut samples = vec![sample::elf(&sections)];
        samples.extend(sample::compiled());
        sample::fuzz(|random| {
            let mut bytes = samples[random.below(samples.len())].clone();
            random.change(&mut bytes);
            let budget = Rc::new(Budget::of(8 << 20, 1 << 18));
            let mut table = Table::of(sample::file(&bytes), &budget);
            let kept: usize = table.symbols.iter().map(|symbol| symbol.name.len() + 40).sum();
            assert!(kept as u64 <= (8 << 20) - budget.bytes_left());
            for symbol in 0..table.symbols.len().min(8) {
                let address = table.symbols[symbol].address;
                table.function(address, &mut Demangler::default());
            }
            table.function(u64::MAX, &mut Demangler::default());
        });
    }
}
