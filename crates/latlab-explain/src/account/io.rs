//! Bytes and calls of a process, and of all processes of a program together.
//!
//! The kernel adds a process's counters to its parent's when the parent waits for it. So those of the
//! processes that are there when the program ends are exact, and hold all that they have waited for. Missing
//! are processes that ended without that: of them, the last scan counts.

use std::collections::HashMap;

/// Parents of parents that are asked for a process.
const FARTHEST: usize = 64;

/// `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Io {
    /// Bytes returned by read calls of any kind of descriptor.
    pub read_chars: u64,
    /// Bytes handed to write calls.
    pub written_chars: u64,
    /// Read calls.
    pub read_calls: u64,
    /// Write calls.
    pub write_calls: u64,
    /// Bytes from a disk.
    pub read_bytes: u64,
    /// Bytes for a disk.
    pub written_bytes: u64,
}

impl Io {
    /// From the file's text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut io = Self::default();
        let mut lines = 0;
        for line in text.lines() {
            let (name, value) = line.split_once(": ")?;
            let value: u64 = value.trim().parse().ok()?;
            let field = match name {
                "rchar" => &mut io.read_chars,
                "wchar" => &mut io.written_chars,
                "syscr" => &mut io.read_calls,
                "syscw" => &mut io.write_calls,
                "read_bytes" => &mut io.read_bytes,
                "write_bytes" => &mut io.written_bytes,
                _ => continue,
            };
            *field = value;
            lines += 1;
        }
        (lines == 6).then_some(io)
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            read_chars: of(self.read_chars, other.read_chars),
            written_chars: of(self.written_chars, other.written_chars),
            read_calls: of(self.read_calls, other.read_calls),
            write_calls: of(self.write_calls, other.write_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
        }
    }

    /// Bytes read and written.
    pub(crate) fn chars(&self) -> u64 {
        self.read_chars + self.written_chars
    }

    /// What was added since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Whether none of its counters is smaller than the other's.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        other.since(self) == Self::default()
    }

    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Self) {
        *self = self.with(other, |one, other| one + other);
    }
}

/// One process's counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Account {
    /// Which process.
    pub process: u32,
    /// Its parent when it was first seen.
    pub parent: u32,
    /// What it had used before it was watched.
    pub began: Io,
    /// Its counters now, or when it was last looked at.
    pub last: Io,
    /// It is still there: `last` is now.
    pub is_there: bool,
    /// Its parent ended before it: nobody of the program can have waited for it.
    pub is_orphan: bool,
}

/// The sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Whole {
    /// Since watching began.
    pub io: Io,
    /// Processes of which only the last scan is known.
    pub by_scans: u32,
}

/// Adds up a program's processes.
pub(crate) fn whole(accounts: &[Account]) -> Whole {
    let by_process: HashMap<u32, &Account> =
        accounts.iter().map(|account| (account.process, account)).collect();
    let mut whole = Whole::default();
    let mut began = Io::default();
    for account in accounts {
        began.add(&account.began);
        if account.is_there {
            whole.io.add(&account.last);
        } else if account.is_orphan || !was_waited_for(account, &by_process) {
            whole.io.add(&account.last);
            whole.by_scans += 1;
        }
    }
    whole.io = whole.io.since(&began);
    whole
}

/// Whether one that it came from may have waited for it: its counters are then no smaller.
fn was_waited_for(account: &Account, by_process: &HashMap<u32, &Account>) -> bool {
    let parent = |account: &&Account| by_process.get(&account.parent).copied();
    std::iter::successors(parent(&account), parent)
        .take(FARTHEST)
        .any(|other| other.process != account.process && other.last.holds(&account.last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: u64) -> Io {
        Io { read_chars: bytes, read_calls: bytes / 100, ..Io::default() }
    }

    fn there(process: u32, parent: u32, bytes: u64) -> Account {
        Account { process, parent, began: Io::default(), last: read(bytes), is_there: true, is_orphan: false }
    }

    fn gone(process: u32, parent: u32, bytes: u64) -> Account {
        Account { is_there: false, ..there(process, parent, bytes) }
    }

    #[test]
    fn each_byte_is_in_the_counters_of_one_process() {
        let orphan = Account { is_orphan: true, ..gone(3, 2, 500) };
        let later = Account { began: read(2000), ..there(2, 1, 3000) };
        for (name, accounts, bytes, by_scans) in [
            (
                "what a parent has waited for",
                [there(1, 0, 5000), gone(2, 1, 3000), gone(3, 2, 1000)],
                5000,
                0,
            ),
            ("what is still there", [there(1, 0, 1000), there(2, 1, 3000), gone(3, 2, 2000)], 4000, 0),
            ("more than all before it", [there(1, 0, 1000), there(4, 0, 0), gone(2, 1, 3000)], 4000, 1),
            ("an orphan", [there(1, 0, 1000), gone(2, 1, 300), orphan], 1500, 1),
            ("what was read before", [there(1, 0, 1000), there(4, 0, 0), later], 2000, 0),
            ("parents of each other", [there(1, 0, 10), gone(2, 3, 3000), gone(3, 2, 4000)], 4010, 1),
        ] {
            let sum = whole(&accounts);
            assert_eq!((sum.io, sum.by_scans), (read(bytes), by_scans), "{name}");
        }
    }
}
