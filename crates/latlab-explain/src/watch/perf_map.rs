//! What a run-time compiler lists of its functions in `/tmp/perf-PID.map`: an address, a length and a name a
//! line, in hexadecimal.
//!
//! Anybody may write to that folder. So a list is opened once, in the process's own root and without links,
//! and only that of the process's owner is believed. Where either is not known, as when the process has
//! ended, there is none.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::budget::Budget;
use super::demangle::cut;
use super::mapped;
use super::proc_file::{text, value};

/// Bytes of a list that is read.
const LARGEST: u64 = 64 << 20;
/// Functions of a list.
const MOST: usize = 500_000;
/// What a function takes beside its name.
const OF_FUNCTION: u64 = 128;

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) name: String,
}

/// See the module. It stays open: its path may lead to another file later.
#[derive(Debug)]
pub(crate) struct PerfMap {
    file: File,
    /// Its length when it was read last.
    read: u64,
    /// From the budget for what was read.
    taken: u64,
}

impl PerfMap {
    pub(crate) fn open(pid: u32) -> Option<Self> {
        let (owner, own_pid) = who(&text(&format!("/proc/{pid}/status")))?;
        let file = mapped::below(pid, &format!("/tmp/perf-{own_pid}.map"))?;
        Self::of(file, owner)
    }

    fn of(file: File, owner: u32) -> Option<Self> {
        let about = file.metadata().ok()?;
        (about.is_file() && about.uid() == owner).then_some(Self { file, read: 0, taken: 0 })
    }

    /// All that is listed now, if that is an eighth more than when it was read last: reading takes
    /// milliseconds. Of an address the last entry counts, as code is replaced.
    pub(crate) fn grown(&mut self, budget: &Budget) -> Option<Vec<Listed>> {
        let length = self.file.metadata().ok()?.len();
        if length <= self.read + self.read / 8 || length > LARGEST {
            return None;
        }
        self.read = length;
        budget.give(std::mem::take(&mut self.taken));
        budget.pass(length)?;
        budget.take(length)?;
        let before = budget.bytes_left();
        let listed = self.whole(length).map(|whole| parsed(&whole, budget));
        self.taken = before - budget.bytes_left();
        budget.give(length);
        listed
    }

    fn whole(&self, length: u64) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        let length = usize::try_from(length).ok()?;
        whole.try_reserve_exact(length).ok()?;
        whole.resize(length, 0);
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut whole[filled..], filled as u64).ok()? {
                // It became shorter.
                0 => break,
                got => filled += got,
            }
        }
        whole.truncate(filled);
        Some(whole)
    }
}

/// The owner of a process, and its number where it lives, from `/proc/PID/status`.
fn who(status: &str) -> Option<(u32, u32)> {
    let words = |name| value(status, name).map(str::split_ascii_whitespace);
    let owner = words("Uid:")?.next()?.parse().ok()?;
    let own_pid = words("NSpid:")?.next_back()?.parse().ok()?;
    Some((owner, own_pid))
}

/// By address.
fn parsed(whole: &[u8], budget: &Budget) -> Vec<Listed> {
    let mut listed = Vec::new();
    for line in whole.split(|byte| *byte == b'\n') {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let mut number = || {
            let word = str::from_utf8(words.next()?).ok()?;
            u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
        };
        let (Some(address), Some(bytes)) = (number(), number()) else { continue };
        let Some(name) = words.next().filter(|name| !name.is_empty()) else { continue };
        // Three bytes take the place of each that is no text.
        let name = &name[..name.len().min(super::demangle::LONGEST)];
        let name = cut(&String::from_utf8_lossy(name)).to_owned();
        let room = budget.step(1).and_then(|()| budget.take(OF_FUNCTION + name.len() as u64));
        if listed.len() >= MOST || room.is_none() {
            break;
        }
        listed.push(Listed { address, bytes, name });
    }
    listed.reverse();
    listed.sort_by_key(|function| function.address);
    listed.dedup_by_key(|function| function.address);
    listed
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn budget() -> Budget {
        Budget::of(1 << 20, 1 << 20)
    }

    fn names(listed: &[Listed]) -> Vec<(u64, &str)> {
        let of = |function: &'_ Listed| function.address;
        listed.iter().map(|function| (of(function), function.name.as_str())).collect()
    }

    /// Of this very process: it must not be there already.
    struct Own(std::path::PathBuf);

    impl Drop for Own {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn functions_are_listed_by_address_and_the_last_of_an_address_counts() {
        let text =
            b"7f10 20 first\n0x7f00 10 a name with blanks\n7f10 30 second\nnonsense\n\n7f20 zz x\n7f30 1 \n";
        let listed = parsed(text, &budget());
        assert_eq!(names(&listed), [(0x7f00, "a name with blanks"), (0x7f10, "second")]);
        assert_eq!(listed[1].bytes, 0x30);
    }

    #[test]
    fn long_names_are_cut_and_many_functions_stop_at_the_budget() {
        let text = format!("10 10 {}\n", "ä".repeat(10_000));
        let listed = parsed(text.as_bytes(), &budget());
        assert!(listed[0].name.len() <= super::super::demangle::LONGEST);
        let many = "10 10 name\n".repeat(100_000);
        let budget = budget();
        assert_eq!(parsed(many.as_bytes(), &budget).len(), 1);
        assert!(budget.is_spent());
    }

    #[test]
    fn the_owner_and_the_number_in_its_own_namespace_are_reported_by_status() {
        let status = "Name:\tnode\nUid:\t1000\t0\t0\t0\nNSpid:\t4321\t77\t7\n";
        assert_eq!(who(status), Some((1000, 7)));
        assert_eq!(who("Uid:\t1000\t0\t0\t0\n"), None);
        assert_eq!(who(""), None, "the process has ended");
    }

    #[test]
    fn only_a_list_of_the_owner_is_believed() {
        let file = || sample::file(b"10 10 name\n");
        let owner = file().metadata().unwrap().uid();
        assert!(PerfMap::of(file(), owner + 1).is_none());
        let mut map = PerfMap::of(file(), owner).unwrap();
        let budget = budget();
        let listed = map.grown(&budget).unwrap();
        assert_eq!(names(&listed), [(16, "name")]);
        assert_eq!(map.grown(&budget), None, "as long as before");
        map.file.write_all_at(b"20 10 other\n", 11).unwrap();
        assert_eq!(map.grown(&budget).unwrap().len(), 2);
        assert_eq!(budget.bytes_left(), (1 << 20) - 2 * OF_FUNCTION - 9);
        map.file.set_len(LARGEST + 1).unwrap();
        let large = Budget::of(1 << 30, 1 << 30);
        assert_eq!(map.grown(&large), None, "it is too long");
    }

    #[test]
    fn a_list_is_opened_in_place_and_never_through_a_link_or_a_fifo() {
        let pid = std::process::id();
        let own = who(&text("/proc/self/status")).unwrap().1;
        let path = Own(format!("/tmp/perf-{own}.map").into());
        assert!(PerfMap::open(pid).is_none());
        let real = format!("/tmp/latlab-perf-map-{pid}");
        std::fs::write(&real, "10 10 name\n").unwrap();
        std::os::unix::fs::symlink(&real, &path.0).unwrap();
        assert!(PerfMap::open(pid).is_none(), "a link");
        std::fs::remove_file(&path.0).unwrap();
        std::fs::rename(&real, &path.0).unwrap();
        let mut map = PerfMap::open(pid).unwrap();
        // What comes to its path later is another file.
        std::fs::remove_file(&path.0).unwrap();
        std::fs::write(&path.0, "10 10 false\n20 20 false\n").unwrap();
        assert_eq!(names(&map.grown(&budget()).unwrap()), [(16, "name")]);
        std::fs::remove_file(&path.0).unwrap();
        let text = std::ffi::CString::new(path.0.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
        assert!(PerfMap::open(pid).is_none(), "a pipe, which nobody opens");
        assert!(PerfMap::open(u32::MAX).is_none(), "no process");
    }

    #[test]
    fn fuzzed_lists_are_read_within_their_budget() {
        let text = b"7f3a10 20 LazyCompile:*work /src/a.js:10\n0x7f3a40 100 Builtin:Add\n7f3a10 40 ~work\n"
            .repeat(4);
        sample::fuzz(|random| {
            let mut bytes = text.clone();
            random.change(&mut bytes);
            let budget = Budget::of(1000, 1 << 10);
            let listed = parsed(&bytes, &budget);
            assert!(listed.is_sorted_by(|a, b| a.address < b.address));
            assert!(listed.iter().map(|of| of.name.len()).sum::<usize>() < 1000);
        });
    }
}
