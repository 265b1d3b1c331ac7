//! What is read of the files that programs have mapped, beside whoever needs it: for a large program this
//! takes many milliseconds, in which nobody would govern what recording costs.

use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;
use std::thread::JoinHandle;

use super::budget::Budget;
use super::clock::now_ns;
use super::mapped;
use crate::account::mappings::Mapped;

/// Files that are kept; of a program with more, some stay unread.
const MOST_FILES: usize = 512;
/// One file, and all that are read after the program's end, may take this long.
const LONGEST_NS: u64 = 2_000_000_000;

/// What a file holds, of its path.
type Read<T> = fn(&str, Option<File>, &Rc<Budget>) -> T;

/// Gives what a file holds, and what is left of the budget.
type Reading<T> = JoinHandle<(T, Option<Budget>)>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Beside<T> {
    read: Read<T>,
    files: HashMap<Rc<str>, T>,
    /// The file that is being read.
    reading: Option<(Rc<str>, Reading<T>)>,
    budget: Option<Rc<Budget>>,
    until: Option<u64>,
}

impl<T: Default + Send + 'static> Beside<T> {
    /// Nothing is read yet.
    pub(crate) fn of(read: Read<T>) -> Self {
        Self { read, files: HashMap::new(), reading: None, budget: None, until: None }
    }

    /// Has a file read, if it is not known. Whether it is known. `waits`: it is then.
    pub(crate) fn knows(&mut self, path: &Rc<str>, mapped: &Mapped, waits: bool) -> bool {
        if waits {
            self.know(path, mapped);
            return true;
        }
        self.learn(path, mapped)
    }

    fn learn(&mut self, path: &Rc<str>, mapped: &Mapped) -> bool {
        if !self.is_missing(path) {
            return true;
        }
        if self.reading.as_ref().is_some_and(|(_, reading)| !reading.is_finished()) {
            return false;
        }
        self.finish_reading();
        if !self.is_missing(path) {
            return true;
        }
        let Some(budget) = self.budget.take().map_or_else(|| Some(Budget::here()), Rc::into_inner) else {
            return true;
        };
        budget.end_by(now_ns() + LONGEST_NS);
        let (name, file, read) = (path.to_string(), mapped::named(mapped, path), self.read);
        let read = move || {
            let budget = Rc::new(budget);
            let of = read(&name, file, &budget);
            (of, Rc::into_inner(budget))
        };
        let reading = std::thread::Builder::new().spawn(read).ok();
        self.reading = reading.map(|reading| (Rc::clone(path), reading));
        // Without a thread it is read when somebody waits for it.
        self.reading.is_none()
    }

    fn know(&mut self, path: &Rc<str>, mapped: &Mapped) {
        self.finish_reading();
        if self.is_missing(path) {
            let until = self.until.unwrap_or(u64::MAX).min(now_ns() + LONGEST_NS);
            let budget = self.budget();
            // The program may end meanwhile, and then its user waits.
            budget.end_by(until);
            let of = (self.read)(path, mapped::named(mapped, path), &budget);
            self.files.insert(Rc::clone(path), of);
        }
    }

    fn finish_reading(&mut self) {
        if let Some((path, reading)) = self.reading.take() {
            let (of, budget) = reading.join().unwrap_or_default();
            self.files.insert(path, of);
            self.budget = budget.map(Rc::new);
        }
    }

    fn is_missing(&self, path: &Rc<str>) -> bool {
        !self.files.contains_key(path) && self.files.len() < MOST_FILES
    }

    /// What is known of a file.
    pub(crate) fn get(&mut self, path: &str) -> Option<&mut T> {
        self.files.get_mut(path)
    }

    /// The program has ended: what is not known by then stays unread.
    pub(crate) fn has_ended(&mut self) {
        self.finish_reading();
        self.until = Some(now_ns() + LONGEST_NS);
    }

    /// Of a file that nobody reads.
    #[cfg(test)]
    pub(crate) fn put(&mut self, path: &str, of: T) {
        self.files.insert(Rc::from(path), of);
    }

    /// What may still be read. While a file is being read beside, another one.
    pub(crate) fn budget(&mut self) -> Rc<Budget> {
        Rc::clone(self.budget.get_or_insert_with(|| Rc::new(Budget::here())))
    }

    /// Whether something was left out as it would have taken too much memory or time.
    pub(crate) fn is_left_out(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_spent())
    }
}

/// Whether this is the path of a file that may be read.
pub(crate) fn is_file(path: &str) -> bool {
    let is_none = path.starts_with("//anon") || path.starts_with("/memfd:") || path.starts_with("/dev/zero");
    path.starts_with('/') && !is_none
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::maps;

    /// How long the file is, and 1.
    fn length(_: &str, file: Option<File>, budget: &Rc<Budget>) -> u64 {
        budget.step(1);
        file.and_then(|file| file.metadata().ok()).map_or(0, |about| about.len() + 1)
    }

    fn own() -> (Rc<str>, Mapped) {
        let path = std::env::current_exe().unwrap();
        let maps = maps::of(std::process::id());
        let own = maps.iter().find(|map| *map.path == *path.to_str().unwrap()).unwrap();
        let mut mapped = Mapped::default();
        (mapped.name(std::process::id(), own), mapped)
    }

    #[test]
    fn what_is_read_beside_is_known_in_the_end() {
        let (name, mapped) = own();
        let mut beside = Beside::of(length);
        assert!(!beside.knows(&name, &mapped, false), "it has just begun");
        while !beside.knows(&name, &mapped, false) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(beside.get(&name).is_some_and(|length| *length > 1));
        assert!(beside.budget.is_some(), "it is lent only");
    }

    #[test]
    fn what_is_being_read_when_the_program_ends_is_waited_for() {
        let (name, mapped) = own();
        let mut beside = Beside::of(length);
        beside.knows(&name, &mapped, false);
        beside.has_ended();
        assert!(beside.reading.is_none() && beside.get(&name).is_some_and(|length| *length > 1));
    }

    #[test]
    fn only_paths_of_files_are_read() {
        let files = ["/usr/bin/true", "/memory", "[vdso]", "//anon", "/memfd:x", "/dev/zero (deleted)", ""];
        assert_eq!(files.map(is_file), [true, true, false, false, false, false, false]);
    }
}
