//! What a program may have written to `/dev/null`: counted as written, copied by nobody.
//!
//! Neither the position of `/dev/null` nor any counter says what went there, and files in memory (`tmpfs`)
//! reach no disk either. What tells them apart is what was open while bytes were written: where `/dev/null`
//! was at both scans around them and no regular file to write to at either, they were thrown away; where such
//! a file was open too, nobody knows. That there was one between two scans all the same has a chance: of `n`
//! such pairs of scans none having met it, it was there for at most 3 / n of them (Hanley and Lippman-Hand
//! 1983).

use std::collections::HashMap;

use crate::account::files::{Descriptor, Kind};

const MOST_PROCESSES: usize = 1024;
/// Nobody writes much to it: messages go there, and programs that are told to be silent send none or few.
const STANDARD_ERROR: u32 = 2;

/// What was open for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open {
    null: bool,
    file: bool,
}

impl Open {
    fn of(descriptors: &[Descriptor]) -> Self {
        let writes = || descriptors.iter().filter(|descriptor| descriptor.access.write);
        Self {
            null: writes().any(|open| open.target == "/dev/null" && open.number != STANDARD_ERROR),
            file: writes().any(|open| open.kind == Kind::File),
        }
    }

    fn or(self, other: Self) -> Self {
        Self { null: self.null || other.null, file: self.file || other.file }
    }
}

/// Bytes written while `/dev/null` was open, as far as scans know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discards {
    /// With no regular file open for writing.
    pub alone: u64,
    /// With one.
    pub beside_files: u64,
    /// Pairs of scans between which bytes were written with none.
    pub times: u64,
    /// Whether `/dev/null` was open at all.
    pub seen: bool,
}

impl Discards {
    /// Adds another run's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.alone += other.alone;
        self.beside_files += other.beside_files;
        self.times += other.times;
        self.seen |= other.seen;
    }

    /// Part of the bytes that reached no disk and moved no position which was thrown away: at least, most
    /// likely, at most.
    pub(crate) fn part(&self) -> (f64, f64, f64) {
        if !self.seen {
            return (0.0, 0.0, 0.0);
        }
        let written = self.alone + self.beside_files;
        // Nothing was written between two scans: either may be.
        let alone = if written > 0 { self.alone as f64 / written as f64 } else { 0.5 };
        let unmet = 3.0 / self.times.max(1) as f64;
        ((alone - (1.0 - alone).max(unmet)).max(0.0), alone, 1.0)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Discarding {
    /// By process: bytes written, and what was open.
    last: HashMap<u32, (u64, Open)>,
    found: Discards,
}

impl Discarding {
    /// A scan of a process; `written`: bytes it has handed to write calls so far, where that can be read.
    pub(crate) fn scan(&mut self, process: u32, written: Option<u64>, descriptors: &[Descriptor]) {
        let open = Open::of(descriptors);
        self.found.seen |= open.null;
        let Some(written) = written else { return };
        if self.last.len() >= MOST_PROCESSES && !self.last.contains_key(&process) {
            return;
        }
        if let Some((before, was)) = self.last.insert(process, (written, open)) {
            let past = written.saturating_sub(before);
            match was.or(open) {
                Open { null: true, file: false } => {
                    self.found.alone += past;
                    self.found.times += u64::from(past > 0);
                }
                Open { null: true, file: true } => self.found.beside_files += past,
                Open { null: false, .. } => {}
            }
        }
    }

    pub(crate) fn found(&self) -> Discards {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::files::Access;

    fn writes(number: u32, target: &str) -> Descriptor {
        Descriptor {
            number,
            target: target.to_owned(),
            kind: Kind::of(target),
            position: None,
            place: None,
            is_shared: false,
            access: Access { read: false, write: true },
        }
    }

    fn scanned(scans: u64, of: impl Fn(u64) -> Vec<Descriptor>) -> Discards {
        let mut discarding = Discarding::default();
        for scan in 0..scans {
            discarding.scan(1, Some(1_000_000 * scan), &of(scan));
        }
        discarding.found()
    }

    #[test]
    fn bytes_written_with_nothing_else_open_were_thrown_away() {
        let found = scanned(101, |_| vec![writes(1, "/dev/null"), writes(3, "socket:[1]")]);
        let (least, likely, most) = found.part();
        assert!((least - 0.97).abs() < 1e-9 && (likely - 1.0).abs() < 1e-9 && (most - 1.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_written_beside_a_file_in_memory_may_be_its_own() {
        // Opened, written and closed again and again: some scans meet it, none sees a position move.
        let found = scanned(200, |scan| {
            let mut open = vec![writes(1, "/dev/null")];
            if scan % 3 > 0 {
                open.push(writes(4, &format!("/dev/shm/part-{scan}")));
            }
            open
        });
        let (least, likely, most) = found.part();
        assert!(least.abs() < 1e-9 && likely.abs() < 1e-9, "{least} {likely}");
        assert!((most - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_scans_are_no_proof_that_there_was_no_file() {
        let (least, likely, _) = scanned(3, |_| vec![writes(1, "/dev/null")]).part();
        assert!(least.abs() < 1e-9 && (likely - 1.0).abs() < 1e-9);
        let (least, likely, most) = scanned(1, |_| vec![writes(1, "/dev/null")]).part();
        assert!(least.abs() < 1e-9 && (likely - 0.5).abs() < 1e-9 && (most - 1.0).abs() < 1e-9);
    }

    #[test]
    fn standard_error_is_not_where_much_is_thrown_away() {
        let found = scanned(50, |_| vec![writes(1, "pipe:[7]"), writes(2, "/dev/null")]);
        assert_eq!(found.part(), (0.0, 0.0, 0.0));
    }

    #[test]
    fn runs_add_up() {
        let mut sum = scanned(11, |_| vec![writes(1, "/dev/null")]);
        sum.add(&scanned(11, |_| vec![writes(1, "/dev/null"), writes(3, "/tmp/x")]));
        assert_eq!((sum.alone, sum.beside_files, sum.times), (10_000_000, 10_000_000, 10));
    }
}
