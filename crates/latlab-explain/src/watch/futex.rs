//! What a thread waits at in `futex`, who has it, and what its address is called.

use std::collections::HashMap;
use std::rc::Rc;

use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::budget::Budget;
use super::clock::now_ns;
use super::demangle::Demangler;
use super::image::Image;
use super::segments::Segments;
use super::{mapped, maps, memory};
use crate::account::locks::Waiting;
use crate::account::mappings::Map;

/// Naming all locks may take this long.
const LONGEST_NS: u64 = 500_000_000;

/// From the arguments of a call of `futex`: address, operation, value. `is_thread`: whether a number is that
/// of a thread of the process.
pub(super) fn waiting(
    process: u32,
    thread: u32,
    arguments: [u64; 3],
    is_thread: impl Fn(u32) -> bool,
) -> Option<Waiting> {
    /// The operations that wait (`linux/futex.h`), without what they are combined with.
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI2: u64 = 13;
    const FLAGS: u64 = 128 | 256;
    /// What locks of the C library and of Rust's hold while somebody waits.
    const TAKEN: u32 = 2;
    let [address, operation, value] = arguments;
    let operation = operation & !FLAGS & 0xffff_ffff;
    let passes_on = matches!(operation, LOCK_PI | LOCK_PI2);
    let waits = matches!(operation, WAIT | WAIT_BITSET);
    #[expect(clippy::cast_possible_truncation, reason = "the kernel takes 32 bits of it")]
    let is_lock = passes_on || (waits && value as u32 == TAKEN);
    if !passes_on && !waits {
        return None;
    }
    let holder = is_lock.then(|| holder(process, address, passes_on)).flatten();
    let holder = holder.filter(|holder| *holder != thread && is_thread(*holder));
    Some(Waiting { process, thread, address, is_lock, holder })
}

/// Who has a lock: by the word itself where its priority is passed on, else by the C library's
/// `pthread_mutex_t`, whose third word is its owner.
fn holder(process: u32, address: u64, passes_on: bool) -> Option<u32> {
    const THREAD: u32 = 0x3fff_ffff;
    let mut words = [0_u8; 12];
    if memory::gather(process, &[(address, words.len())], &mut words).ok()? < words.len() {
        return None;
    }
    let word = |at: usize| Some(u32::from_ne_bytes(words.get(at..at + 4)?.try_into().ok()?));
    if passes_on { Some(word(0)? & THREAD) } else { word(8) }
}

/// Where an address of a process lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the data of a file: its first mapping, and how far behind its beginning.
    Data(Map, u64),
    /// What the kernel calls it: `[heap]`, `[stack]`.
    Called(Rc<str>),
    /// Memory without a name.
    Memory,
}

/// Finds it while the process is there.
pub(super) fn place(process: u32, address: u64) -> Place {
    let maps = maps::all(process);
    let Some(at) = maps.iter().position(|map| (map.start..map.end).contains(&address)) else {
        return Place::Memory;
    };
    if maps[at].path.starts_with('[') {
        return Place::Called(Rc::clone(&maps[at].path));
    }
    // Data that begins with zeros is no part of the file, and lies behind what is.
    let mut of = at;
    while &*maps[of].path == "//anon" && of > 0 && maps[of - 1].end == maps[of].start {
        of -= 1;
    }
    let path = &maps[of].path;
    if !path.starts_with('/') || path.starts_with("//anon") || at - of > 1 {
        return Place::Memory;
    }
    let first = maps[..=of].iter().rev().find(|map| map.path == *path && map.offset == 0);
    first.map_or(Place::Memory, |first| Place::Data(first.clone(), address - first.start))
}

/// A variable of a file.
struct Variable {
    /// How far it lies behind the file's first mapping.
    behind: u64,
    bytes: u64,
    name: Rc<str>,
}

/// Names of places, with the file that each is in.
pub(super) struct Naming {
    budget: Rc<Budget>,
    demangler: Demangler,
    files: HashMap<Rc<str>, Vec<Variable>>,
}

impl Naming {
    pub(super) fn begin() -> Self {
        let budget = Rc::new(Budget::here());
        budget.end_by(now_ns() + LONGEST_NS);
        Self { budget, demangler: Demangler::default(), files: HashMap::new() }
    }

    /// The name of what lies there, if it has one, and where that is.
    pub(super) fn name(&mut self, process: u32, place: &Place) -> (Option<Rc<str>>, Rc<str>) {
        let (map, behind) = match place {
            Place::Data(map, behind) => (map, *behind),
            Place::Called(name) => return (None, Rc::clone(name)),
            Place::Memory => return (None, Rc::from("memory")),
        };
        let (budget, demangler) = (&self.budget, &mut self.demangler);
        let file = self.files.entry(Rc::clone(&map.path));
        let symbols = file.or_insert_with(|| data(process, map, budget, demangler).unwrap_or_default());
        let holds = |of: &&Variable| behind.checked_sub(of.behind).is_some_and(|at| at < of.bytes);
        let found = symbols.iter().find(holds);
        let object = map.path.rsplit('/').next().unwrap_or(&map.path);
        (found.map(|found| Rc::clone(&found.name)), Rc::from(object))
    }
}

/// The variables of a file.
fn data(process: u32, map: &Map, budget: &Rc<Budget>, demangler: &mut Demangler) -> Option<Vec<Variable>> {
    let image = Image::of(mapped::open(process, map)?, budget)?;
    let file = image.parsed()?;
    let begin = Segments::of(&file).begin(map.offset)?;
    image.read_names(&file);
    let mut found = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        budget.step(1)?;
        let is_data = symbol.is_definition() && symbol.kind() == SymbolKind::Data && symbol.size() > 0;
        if let (true, Some(behind), Ok(name)) = (is_data, symbol.address().checked_sub(begin), symbol.name())
        {
            budget.take(64 + name.len() as u64)?;
            found.push(Variable { behind, bytes: symbol.size(), name: demangler.name(name) });
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        /// Of the C library, whose names are read in a moment on any machine.
        static environ: *const *const libc::c_char;
    }

    #[test]
    fn variables_have_the_names_of_their_file() {
        let own = std::process::id();
        let address = (&raw const environ).expose_provenance() as u64;
        let place = place(own, address);
        let (name, object) = Naming::begin().name(own, &place);
        let name = name.unwrap_or_else(|| panic!("{place:?}"));
        assert!(name.ends_with("environ") && object.starts_with("libc.so"), "{name} {object}");
        assert_eq!(super::place(own, 8), Place::Memory);
        let here = 0_u8;
        let on_the_stack = super::place(own, std::ptr::from_ref(&here).expose_provenance() as u64);
        assert!(!matches!(on_the_stack, Place::Data(..)), "{on_the_stack:?}");
    }

    #[test]
    fn the_owner_of_a_mutex_of_the_c_library_is_reported() {
        let (process, owner) = (std::process::id(), 4711_u32);
        let mutex: [u32; 4] = [2, 0, owner, 1];
        let address = mutex.as_ptr().expose_provenance() as u64;
        if memory::gather(process, &[(address, 1)], &mut [0]).is_err() {
            // The emulator of another CPU's programs does not read the memory of a process.
            assert_eq!(std::env::consts::ARCH, "aarch64", "Linux reads it");
            return;
        }
        let of = |operation: u64, value: u64, known: u32| {
            waiting(process, 12, [address, operation, value], |thread| thread == known)
        };
        // `FUTEX_WAIT_PRIVATE` at a mutex that others wait for.
        let met = of(128, 2, owner).unwrap();
        assert_eq!((met.is_lock, met.holder), (true, Some(owner)));
        assert_eq!(of(128, 2, 99).unwrap().holder, None, "it is no thread of this process");
        // A condition variable: `FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME`.
        let met = of(9 | 256, 77, owner).unwrap();
        assert_eq!((met.is_lock, met.holder), (false, None));
        // `FUTEX_LOCK_PI`: the word is the thread.
        assert_eq!(of(6 | 128, 0, 2).unwrap().holder, Some(2));
        assert_eq!(of(1, 2, owner), None, "it wakes others");
        let nowhere = waiting(process, 12, [8, 128, 2], |_| true).unwrap();
        assert_eq!(nowhere.holder, None);
    }
}
