//! Names of C++ and Rust functions as in their source. The work is bounded: a mangled name of 190 bytes can
//! stand for 9 MB of text, and each nine bytes more for twice as much.

use std::fmt::{self, Write as _};
use std::rc::Rc;

use super::clock::thread_cpu_ns;

/// Bytes of a name that are shown. Of 141,000 names in node one has more. Where the source's name is longer,
/// the mangled one stands for it.
pub(crate) const LONGEST: usize = 4096;
/// CPU time for all names together: some 40,000 names of node's. The parser of C++ names goes back and tries
/// again, which takes seconds for a few names made for that.
const LONGEST_NS: u64 = 1_000_000_000;

/// How deep the parts of a C++ name may lie in each other: of 141,000 names in node they do 64 levels at
/// most. With more levels a name of 53 bytes takes seconds, so names are tried with few levels first, and
/// with some more only if that was quick.
const DEPTHS: [u32; 7] = [32, 40, 48, 56, 64, 72, 80];
/// What is quick: real names take a tenth.
const QUICK_NS: u64 = 1_000_000;
/// Expressions with `new` in a C++ name, each of which doubles the time at any depth; and where their letters
/// are others'. Node's have 6 at most.
const MOST_NEW: usize = 8;
/// Bytes of all names together.
const MOST_TEXT: usize = 64 << 20;

/// Text that ends at [`LONGEST`].
#[derive(Debug, Default)]
struct Bounded {
    text: String,
    /// Bytes that were to be written, refused ones with them.
    asked: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.asked = self.asked.saturating_add(part.len());
        if self.asked > LONGEST {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

fn of_rust(name: &str, text: &mut Bounded) -> Option<fmt::Result> {
    let name = rustc_demangle::try_demangle(name).ok()?;
    Some(write!(text, "{name:#}"))
}

fn parsed(name: &str, quick_ns: u64) -> Option<cpp_demangle::Symbol<&str>> {
    for depth in DEPTHS {
        let began = thread_cpu_ns();
        let options = cpp_demangle::ParseOptions::default().recursion_limit(depth);
        match cpp_demangle::Symbol::new_with_options(name, &options) {
            Ok(symbol) => return Some(symbol),
            Err(cpp_demangle::error::Error::TooMuchRecursion) => {}
            Err(_) => return None,
        }
        if thread_cpu_ns().saturating_sub(began) > quick_ns {
            break;
        }
    }
    None
}

fn of_cpp(name: &str, quick_ns: u64, text: &mut Bounded) -> Option<fmt::Result> {
    let new = name.matches("nw").count() + name.matches("na").count();
    let is_usual = name.starts_with("_Z") && new <= MOST_NEW;
    let name = is_usual.then(|| parsed(name, quick_ns))??;
    Some(name.structured_demangle(text, &cpp_demangle::DemangleOptions::default()))
}

/// The beginning of a name, as much as is shown.
pub(crate) fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST)]
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Demangler {
    left_ns: u64,
    left_bytes: usize,
    quick_ns: u64,
}

impl Default for Demangler {
    fn default() -> Self {
        Self { left_ns: LONGEST_NS, left_bytes: MOST_TEXT, quick_ns: QUICK_NS }
    }
}

impl Demangler {
    /// The name in the source; the one given where it is not mangled, or where this takes too long.
    pub(crate) fn name(&mut self, mangled: &str) -> Rc<str> {
        let is_mangled = ["_", "R"].iter().any(|start| mangled.starts_with(start));
        if !is_mangled || self.left_ns == 0 {
            return Rc::from(cut(mangled));
        }
        let began = thread_cpu_ns();
        let mut text = Bounded::default();
        let done = of_rust(mangled, &mut text).or_else(|| of_cpp(mangled, self.quick_ns, &mut text));
        let took = thread_cpu_ns().saturating_sub(began);
        self.left_ns = self.left_ns.saturating_sub(took);
        let left = self.left_bytes.checked_sub(text.text.len());
        match (done, left) {
            (Some(Ok(())), Some(left)) => {
                self.left_bytes = left;
                Rc::from(text.text)
            }
            _ => Rc::from(cut(mangled)),
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSymbol as _};

    use super::*;

    /// Gives real names all the time that they take in an emulator.
    fn patient() -> Demangler {
        Demangler { left_ns: u64::MAX, quick_ns: u64::MAX, ..Demangler::default() }
    }

    /// `f(a<int, int>, a<a<int, int>, a<int, int>>, …)`: each level nine bytes, and twice the text.
    fn bomb(levels: u32) -> String {
        let mut name = "_Z1f1aIiiE".to_owned();
        for level in 0..levels {
            let digit = char::from_digit(level % 36, 36).unwrap().to_ascii_uppercase();
            let before = match level / 36 {
                0 => format!("S{digit}_"),
                more => format!("S{more}{digit}_"),
            };
            write!(name, "S_I{before}{before}E").unwrap();
        }
        name
    }

    #[test]
    fn names_are_as_in_the_source() {
        let mut demangler = Demangler::default();
        let mut of = |name| demangler.name(name).to_string();
        assert_eq!(of("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(of("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(of("_Znwm"), "operator new(unsigned long)");
        assert_eq!(of("malloc"), "malloc");
        assert_eq!(of(""), "");
        assert_eq!(of(&bomb(1)), "f(a<int, int>, a<a<int, int>, a<int, int> >)");
    }

    #[test]
    fn a_name_that_doubles_with_each_level_costs_no_more_than_is_shown() {
        for levels in [12, 18, 30] {
            let name = bomb(levels);
            let mut text = Bounded::default();
            assert_eq!(of_cpp(&name, QUICK_NS, &mut text), Some(Err(fmt::Error)));
            // Nothing is written after the first refusal.
            assert!(text.asked < LONGEST + 64, "{}", text.asked);
            assert_eq!(Demangler::default().name(&name).as_ref(), name);
        }
    }

    /// `a::f::<(u32, u32), ((u32, u32), (u32, u32)), …>` in Rust's mangling.
    fn rust_bomb(levels: u32) -> String {
        const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let mut name = "_RINvC1a1fTmmE".to_owned();
        let mut before = name.len() - "TmmE".len() - 2;
        for _ in 0..levels {
            let (high, low) = ((before - 1) / 62, (before - 1) % 62);
            let high = (high > 0).then(|| char::from(DIGITS[high]));
            let back = format!("B{}{}_", high.map_or(String::new(), String::from), char::from(DIGITS[low]));
            before = name.len() - 2;
            write!(name, "T{back}{back}E").unwrap();
        }
        name + "E"
    }

    #[test]
    fn a_rust_name_that_refers_back_costs_no_more_than_is_shown() {
        let small = Demangler::default().name(&rust_bomb(1));
        assert_eq!(small.as_ref(), "a::f::<(u32, u32), ((u32, u32), (u32, u32))>");
        let name = rust_bomb(40);
        let mut text = Bounded::default();
        assert_eq!(of_rust(&name, &mut text), Some(Err(fmt::Error)));
        assert!(text.asked < LONGEST + 64, "{}", text.asked);
        assert_eq!(Demangler::default().name(&name).as_ref(), name);
    }

    #[test]
    fn every_name_of_a_real_library_is_as_without_bounds() {
        let places = ["/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
        let paths = places.map(|place| format!("{place}/libstdc++.so.6"));
        let Some(bytes) = paths.iter().find_map(|path| std::fs::read(path).ok()) else {
            eprintln!("skipped: there is no libstdc++ here");
            return;
        };
        let file = object::File::parse(&*bytes).unwrap();
        let mut demangler = patient();
        let mut compared = 0;
        for name in file.dynamic_symbols().filter_map(|symbol| symbol.name().ok()) {
            let unbounded = cpp_demangle::Symbol::new(name).ok().and_then(|cpp| cpp.demangle().ok());
            let is_cpp = unbounded.is_some();
            assert_eq!(demangler.name(name).as_ref(), unbounded.as_deref().unwrap_or(name));
            compared += u32::from(is_cpp);
        }
        assert!(compared > 1000, "{compared}");
    }

    #[test]
    fn without_time_or_room_left_names_stay_mangled_and_long_ones_are_cut() {
        let mut late = Demangler { left_ns: 0, ..Demangler::default() };
        assert_eq!(late.name("_Znwm").as_ref(), "_Znwm");
        let mut full = Demangler { left_bytes: 40, ..Demangler::default() };
        assert_eq!(full.name("_Znwm").as_ref(), "operator new(unsigned long)");
        assert_eq!(full.name("_Znam").as_ref(), "_Znam");
        let long = "ä".repeat(LONGEST);
        assert_eq!(Demangler::default().name(&long).len(), LONGEST);
        assert_eq!(cut(&format!("a{long}")).len(), LONGEST - 1);
        let mut demangler = Demangler::default();
        demangler.name(&bomb(30));
        assert!(demangler.left_ns < LONGEST_NS, "its time is counted");
    }

    #[test]
    fn a_name_whose_parts_lie_deep_in_each_other_stays_mangled() {
        let nested = |depth| format!("_Z1f{}i{}", "1aI".repeat(depth), "E".repeat(depth));
        let deep = nested(12);
        assert!(patient().name(&deep).starts_with("f(a<a<"), "{deep}");
        // Without a bound this takes years.
        let new = format!("_Z1fIX{}", "nw".repeat(60));
        assert_eq!(Demangler::default().name(&new).as_ref(), new);
        let deeper = nested(14);
        assert!(cpp_demangle::Symbol::new(&deeper).is_ok());
        assert_eq!(Demangler::default().name(&deeper).as_ref(), deeper);
    }

    #[test]
    fn fuzzed_names_are_shown_within_their_bounds() {
        let names = [
            "_ZNSt6vectorISt4pairIKiSsESaIS2_EE9push_backEOS2_".to_owned(),
            "_ZZN1a1bIiEEvT_DpT0_ENKUlvE_clEv".to_owned(),
            "_RNvMs_NtCs1a_4core3fmtINtB4_3VecTmlEE4push".to_owned(),
            "_ZN4core3fmt5write17h0123456789abcdefE".to_owned(),
            bomb(3),
            rust_bomb(3),
        ];
        super::super::sample::fuzz(|random| {
            let mut bytes = names[random.below(names.len())].clone().into_bytes();
            random.change(&mut bytes);
            let name = String::from_utf8_lossy(&bytes);
            assert!(Demangler::default().name(&name).len() <= LONGEST);
        });
    }
}
