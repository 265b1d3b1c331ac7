//! What code processes have mapped, as records tell of it.

use std::collections::HashMap;
use std::rc::Rc;

use super::records::{FileId, Record, What};

/// More than a program has; beyond, mappings are no longer followed: of one process, and of many together.
pub(crate) const MOST_MAPS: usize = 8192;
const MOST_MAPS_TOGETHER: usize = 1 << 18;
const MOST_PROCESSES: usize = 4096;
/// Paths of which it is known what is mapped from them.
const MOST_FILES: usize = 8192;
/// Different files with one path, one after the other or in different containers.
const MOST_OF_ONE: usize = 16;

/// A mapping of a file, as code addresses are looked up in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Of `start` in the file.
    pub offset: u64,
    /// The file.
    pub path: Rc<str>,
    /// Which one it is: other files may have had this path.
    pub file: FileId,
}

/// Which files mappings were of: by name, the process and the mapping that had it last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mapped(HashMap<Rc<str>, (u32, Map)>);

impl Mapped {
    /// The name for the file of a mapping: its path, with a number where another file had the same path.
    pub(crate) fn name(&mut self, pid: u32, map: &Map) -> Rc<str> {
        for number in 1..=MOST_OF_ONE {
            let name =
                if number == 1 { Rc::clone(&map.path) } else { Rc::from(format!("{} ({number})", map.path)) };
            let Some((known, _)) = self.0.get_key_value(&name) else {
                if self.0.len() < MOST_FILES {
                    self.0.insert(Rc::clone(&name), (pid, map.clone()));
                }
                return name;
            };
            // One text for all that have it.
            let known = Rc::clone(known);
            let of = self.0.get_mut(&known).filter(|of| of.1.file == map.file);
            if let Some(of) = of {
                let path = Rc::clone(&of.1.path);
                *of = (pid, Map { path, ..map.clone() });
                return known;
            }
        }
        Rc::from(format!("{} (another)", map.path))
    }

    /// The process and the mapping that had the file of this name last.
    pub(crate) fn of(&self, name: &str) -> Option<&(u32, Map)> {
        self.0.get(name)
    }

    /// Adds what another run had mapped.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, of) in &other.0 {
            if self.0.len() < MOST_FILES {
                self.0.entry(Rc::clone(name)).or_insert_with(|| of.clone());
            }
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings(HashMap<u32, Rc<Vec<Map>>>);

impl Mappings {
    /// Those of a process that ran before it was followed.
    pub(crate) fn has(&mut self, pid: u32, mut maps: Vec<Map>) {
        maps.sort_by_key(|map| map.start);
        self.0.insert(pid, Rc::new(maps));
    }

    /// What a record changes; times never decrease. `name`: the name for the file of a mapping.
    pub(crate) fn take(&mut self, record: &Record, name: impl FnOnce(&Map) -> Rc<str>) {
        let pid = record.pid;
        match &record.what {
            What::Name { exec: true, .. } => drop(self.0.insert(pid, Rc::default())),
            What::Start { parent, .. } if pid != *parent => {
                let inherited = self.0.get(parent).cloned();
                if let Some(maps) = inherited.filter(|_| self.0.len() < MOST_PROCESSES) {
                    self.0.insert(pid, maps);
                }
            }
            What::End if pid == record.tid => drop(self.0.remove(&pid)),
            What::Map { start, bytes, offset, path, file } => {
                let end = start.saturating_add(*bytes);
                let path = Rc::from(path.as_str());
                let mut map = Map { start: *start, end, offset: *offset, path, file: *file };
                if self.0.len() < MOST_PROCESSES || self.0.contains_key(&pid) {
                    map.path = name(&map);
                    self.add(pid, map);
                }
            }
            _ => {}
        }
    }

    /// What was mapped there before is there no more; around it, it still is.
    fn add(&mut self, pid: u32, new: Map) {
        let most = MOST_MAPS.min(MOST_MAPS_TOGETHER / (self.0.len() + 1));
        let maps = Rc::make_mut(self.0.entry(pid).or_default());
        let from = maps.partition_point(|map| map.end <= new.start);
        let to = maps.partition_point(|map| map.start < new.end).max(from);
        let before = maps[from..to].first().filter(|map| map.start < new.start);
        let before = before.map(|map| Map { end: new.start, ..map.clone() });
        let after = maps[from..to].last().filter(|map| map.end > new.end);
        let after = after.map(|map| Map {
            start: new.end,
            offset: map.offset.saturating_add(new.end - map.start),
            ..map.clone()
        });
        maps.splice(from..to, before.into_iter().chain([new]).chain(after));
        maps.truncate(most);
    }

    /// What a process has mapped at an address.
    pub(crate) fn at(&self, pid: u32, address: u64) -> Option<&Map> {
        let maps = self.0.get(&pid)?;
        let after = maps.partition_point(|map| map.start <= address);
        maps[..after].last().filter(|map| address < map.end)
    }

    /// How many a process has.
    #[cfg(test)]
    pub(crate) fn of(&self, pid: u32) -> usize {
        self.0.get(&pid).map_or(0, |maps| maps.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u32, what: What) -> Record {
        Record { time: 1, pid, tid: pid, what }
    }

    fn map(start: u64, bytes: u64, path: &str) -> Record {
        let file = FileId { major: 8, minor: 1, inode: 7 };
        record(1, What::Map { start, bytes, offset: 0x100, path: path.to_owned(), file })
    }

    fn taken(records: &[Record]) -> Mappings {
        let mut maps = Mappings::default();
        for record in records {
            maps.take(record, |map| Rc::clone(&map.path));
        }
        maps
    }

    /// The file at an address and the offset in it.
    fn at(maps: &Mappings, pid: u32, address: u64) -> Option<(&str, u64)> {
        maps.at(pid, address).map(|map| (&*map.path, address - map.start + map.offset))
    }

    #[test]
    fn what_is_mapped_over_a_part_of_another_mapping_leaves_the_rest_of_it() {
        let maps = taken(&[map(0x1000, 0x1000, "/a"), map(0x1400, 0x200, "/b")]);
        assert_eq!(maps.of(1), 3);
        assert_eq!(at(&maps, 1, 0xfff), None);
        assert_eq!(at(&maps, 1, 0x13ff), Some(("/a", 0x4ff)));
        assert_eq!(at(&maps, 1, 0x1400), Some(("/b", 0x100)));
        assert_eq!(at(&maps, 1, 0x1600), Some(("/a", 0x700)));
        assert_eq!(at(&maps, 1, 0x2000), None);
        let maps = taken(&[map(0x1000, 0x100, "/a"), map(0x2000, 0x100, "/b"), map(0, u64::MAX, "/c")]);
        assert_eq!((maps.of(1), at(&maps, 1, 0x2000)), (1, Some(("/c", 0x2100))));
    }

    #[test]
    fn mappings_are_inherited_until_another_program_is_loaded_or_the_process_ends() {
        let exec = What::Name { exec: true, name: "b".to_owned() };
        let mut maps = taken(&[map(0x1000, 0x1000, "/a"), record(2, What::Start { parent: 1, by: 1 })]);
        assert_eq!(at(&maps, 2, 0x1000), Some(("/a", 0x100)));
        maps.take(&record(2, exec), |_| unreachable!());
        assert_eq!((at(&maps, 2, 0x1000), maps.of(1)), (None, 1));
        maps.take(&record(1, What::End), |_| unreachable!());
        assert_eq!(at(&maps, 1, 0x1000), None);
    }

    #[test]
    fn mappings_of_any_size_and_place_are_in_order_and_apart() {
        let mut random = latlab_stats::rng::Rng::new(5);
        let mut maps = Mappings::default();
        for _ in 0..20_000 {
            let (start, bytes) = (random.next_u64() >> 50, random.next_u64() >> 53);
            let start = if random.below(40) == 0 { u64::MAX - start } else { start };
            maps.take(&map(start, bytes, "/a"), |map| Rc::clone(&map.path));
            let all = &maps.0[&1];
            assert!(all.is_sorted_by(|a, b| a.start <= a.end && a.end <= b.start), "{all:?}");
        }
        assert!(maps.of(1) > 10);
    }

    #[test]
    fn files_with_one_path_have_names_of_their_own() {
        let of = |inode| Map {
            start: 0,
            end: 1,
            offset: 0,
            path: Rc::from("/lib/a.so"),
            file: FileId { major: 8, minor: 1, inode },
        };
        let mut mapped = Mapped::default();
        assert_eq!(&*mapped.name(1, &of(5)), "/lib/a.so");
        assert_eq!(&*mapped.name(2, &of(6)), "/lib/a.so (2)");
        assert_eq!(&*mapped.name(3, &of(5)), "/lib/a.so");
        assert_eq!(mapped.of("/lib/a.so"), Some(&(3, of(5))), "who had it last");
        for inode in 0..100 {
            mapped.name(4, &of(inode));
        }
        assert_eq!(mapped.0.len(), MOST_OF_ONE);
        let name = mapped.name(4, &of(99));
        assert_eq!(mapped.of(&name), None);
    }
}
