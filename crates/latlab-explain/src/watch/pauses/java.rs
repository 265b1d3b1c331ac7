//! Pauses of Java programs, by the virtual machine's own counters: it shares them in a file
//! (`hsperfdata`), which `jstat` reads too.
//!
//! Their numbers and sums are exact, also at the end: what is open stays when the file is removed. The
//! longest one is the longest of those of which a scan found the beginning and the end.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use super::Counters;
use crate::model::Pauses;
use crate::watch::budget::Budget;
use crate::watch::{mapped, maps};

/// No such file is larger, bytes; they have 32 KiB.
const MOST_BYTES: u64 = 1 << 20;
/// Of one file, and bytes of a name or a text: there are some 200, of which the longest has 100.
const MOST_ENTRIES: usize = 2_000;
const MOST_TEXT: usize = 256;
/// What the path of the file's mapping has: `/tmp/hsperfdata_USER/PID`.
const FOLDER: &str = "/hsperfdata_";
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// In the file's byte for it.
const OWN_ORDER: u8 = cfg!(target_endian = "little") as u8;
/// Types of values: a number of 64 bits, and a text.
const LONG: u8 = b'J';
const TEXT: u8 = b'B';
const ALL_STOPS: &str = "all stops of its threads (safepoints)";

/// The numbers and texts of such a file by their names.
#[derive(Debug, Default)]
struct Numbers {
    numbers: HashMap<String, u64>,
    texts: HashMap<String, String>,
}

impl Numbers {
    /// `None`: this is no such file, or the virtual machine has not filled it yet.
    fn of(file: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*file.get(at..)?.first_chunk()?));
        let size = |at: usize| usize::try_from(word(at)?).ok();
        let is_known = file.get(..4)? == MAGIC && file.get(4..8)? == [OWN_ORDER, 2, 0, 1];
        if !is_known {
            return None;
        }
        let (mut at, entries) = (size(24)?, size(28)?);
        let mut found = Self::default();
        for _ in 0..entries.min(MOST_ENTRIES) {
            let length = size(at)?;
            let name = terminated(file.get(at.checked_add(size(at + 4)?)?..)?);
            let data = at.checked_add(size(at + 16)?)?;
            match *file.get(at + 12)? {
                LONG => {
                    let number = u64::from_ne_bytes(*file.get(data..)?.first_chunk()?);
                    found.numbers.insert(name, number);
                }
                TEXT => drop(found.texts.insert(name, terminated(file.get(data..)?))),
                _ => {}
            }
            at = at.checked_add(length.max(1))?;
        }
        Some(found)
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// Of each kind of pause: its name, how many there were, how long they took, and, if it is over, how long
    /// the last one did. Ticks.
    fn pauses(&self) -> Vec<(String, u64, u64, Option<u64>)> {
        let collectors = (0..).map(|at| format!("sun.gc.collector.{at}"));
        let collectors = collectors.map_while(|of| Some((self.texts.get(&format!("{of}.name"))?, of)));
        let collector = |(name, of): (&String, String)| {
            let number = |what: &str| self.number(&format!("{of}.{what}"));
            let last = number("lastExitTime").checked_sub(number("lastEntryTime"));
            (name.clone(), number("invocations"), number("time"), last)
        };
        let mut all: Vec<_> = collectors.map(collector).collect();
        all.push((
            ALL_STOPS.to_owned(),
            self.number("sun.rt.safepoints"),
            self.number("sun.rt.safepointTime"),
            None,
        ));
        all
    }
}

fn terminated(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MOST_TEXT)];
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// One virtual machine.
#[derive(Debug)]
pub(super) struct Machine {
    file: File,
    /// How many pauses of each kind there were before it was watched, and how long they took.
    before: HashMap<String, (u64, u64)>,
    /// Of those that a scan found to be over.
    longest: HashMap<String, u64>,
}

impl Machine {
    /// Its file, if it has one.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let map = maps::all(pid).into_iter().find(|map| map.path.contains(FOLDER))?;
        let file = mapped::open(pid, &map)
            .filter(|file| file.metadata().is_ok_and(|about| about.len() <= MOST_BYTES))?;
        Some(Self { file, before: HashMap::new(), longest: HashMap::new() })
    }

    fn counters(&self) -> Option<Numbers> {
        let bytes = usize::try_from(self.file.metadata().ok()?.len().min(MOST_BYTES)).ok()?;
        let mut file = vec![0; bytes];
        self.file.read_exact_at(&mut file, 0).ok()?;
        Numbers::of(&file)
    }

    /// Its counters now, of which the longest pauses are kept.
    fn read(&mut self) -> Option<Numbers> {
        let counters = self.counters()?;
        for (name, times, _, last) in counters.pauses() {
            let before = self.before.get(&name).map_or(0, |before| before.0);
            if let Some(last) = last.filter(|_| times > before) {
                let longest = self.longest.entry(name).or_default();
                *longest = last.max(*longest);
            }
        }
        Some(counters)
    }
}

impl Counters for Machine {
    /// What is open stays when the virtual machine has ended.
    fn scan(&mut self) -> bool {
        let _ = self.read();
        true
    }

    fn has_run(&mut self) {
        let pauses = self.counters().map(|counters| counters.pauses()).unwrap_or_default();
        self.before = pauses.into_iter().map(|(name, times, ticks, _)| (name, (times, ticks))).collect();
    }

    fn reported(&mut self, process: u32, _: &Rc<Budget>) -> Vec<Pauses> {
        let Some(counters) = self.read() else { return Vec::new() };
        let per_s = counters.number("sun.os.hrt.frequency").max(1) as f64;
        let reported = |(name, times, ticks, _): (String, u64, u64, Option<u64>)| {
            let before = self.before.get(&name).copied().unwrap_or_default();
            Pauses {
                process,
                runtime: "Java",
                times: times.saturating_sub(before.0),
                seconds: ticks.saturating_sub(before.1) as f64 / per_s,
                longest_s: self.longest.get(&name).map(|ticks| *ticks as f64 / per_s),
                is_least: false,
                kind: name,
            }
        };
        counters.pauses().into_iter().map(reported).filter(|pauses| pauses.times > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as the virtual machine writes it.
    fn file(numbers: &[(&str, u64)], texts: &[(&str, &str)]) -> Vec<u8> {
        let mut file = [&MAGIC[..], &[OWN_ORDER, 2, 0, 1], &[0; 16]].concat();
        file.extend(32_u32.to_ne_bytes());
        file.extend(u32::try_from(numbers.len() + texts.len()).unwrap().to_ne_bytes());
        let mut add = |name: &str, kind: u8, data: &[u8]| {
            let at = 20 + name.len() + 1;
            let length = (at + data.len()).next_multiple_of(8);
            let words = [length, 20, 0].map(|word| u32::try_from(word).unwrap().to_ne_bytes());
            file.extend(words.concat());
            file.extend([kind, 0, 0, 0]);
            file.extend(u32::try_from(at).unwrap().to_ne_bytes());
            file.extend([name.as_bytes(), &[0], data].concat());
            file.resize(file.len().next_multiple_of(8), 0);
        };
        for (name, text) in texts {
            add(name, TEXT, &[text.as_bytes(), &[0]].concat());
        }
        for (name, number) in numbers {
            add(name, LONG, &number.to_ne_bytes());
        }
        file
    }

    fn collected() -> Vec<u8> {
        file(
            &[
                ("sun.gc.collector.0.invocations", 7),
                ("sun.gc.collector.0.time", 90),
                ("sun.gc.collector.0.lastEntryTime", 1_000),
                ("sun.gc.collector.0.lastExitTime", 1_012),
                ("sun.gc.collector.1.lastEntryTime", 900),
                ("sun.rt.safepoints", 9),
                ("sun.rt.safepointTime", 95),
            ],
            &[("sun.gc.collector.0.name", "young"), ("sun.gc.collector.1.name", "full")],
        )
    }

    #[test]
    fn each_collector_has_its_pauses_and_one_that_goes_on_no_length() {
        let counters = Numbers::of(&collected()).expect("it is one");
        let row = |name: &str, times, ticks, last| (name.to_owned(), times, ticks, last);
        let reported = [row("young", 7, 90, Some(12)), row("full", 0, 0, None), row(ALL_STOPS, 9, 95, None)];
        assert_eq!(counters.pauses(), reported);
    }

    #[test]
    fn a_file_that_is_cut_or_another_ones_tells_nothing() {
        let whole = collected();
        for cut in 0..whole.len() - 8 {
            let _read = Numbers::of(&whole[..cut]);
        }
        assert!(Numbers::of(&whole[..40]).is_none());
        assert!(Numbers::of(b"").is_none() && Numbers::of(&[0; 64]).is_none());
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _read = Numbers::of(&damaged);
            }
        }
        let mut unfilled = whole;
        unfilled[7] = 0;
        assert!(Numbers::of(&unfilled).is_none());
    }

    #[test]
    fn what_came_before_is_left_out() {
        let path = std::env::temp_dir().join(format!("latlab-java-{}", std::process::id()));
        let budget = Rc::new(Budget::of(0, 0));
        std::fs::write(&path, collected()).expect("written");
        let file = File::open(&path).expect("there");
        std::fs::remove_file(&path).expect("removed");
        let mut machine = Machine { file, before: HashMap::new(), longest: HashMap::new() };
        machine.scan();
        let kinds: Vec<(u64, Option<f64>)> =
            machine.reported(5, &budget).iter().map(|pauses| (pauses.times, pauses.longest_s)).collect();
        assert_eq!(kinds, [(7, Some(12.0)), (9, None)], "full has none, and a tick is a second here");
        machine.has_run();
        assert_eq!(machine.reported(5, &budget), Vec::new());
    }
}
