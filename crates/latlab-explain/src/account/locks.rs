//! Which locks threads wait at, for how long, and who holds them meanwhile, by scans of their calls of
//! `futex`.
//!
//! A scan stands for the time since the one before. What a thread waits at is the address that it passes;
//! mutexes of the C library, and those that pass their priority on, say which thread has them. Condition
//! variables, joins and queues use the same call, and have no holder.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Rows kept; of more, those that come later are left out.
const MOST: usize = 1024;
/// Holders kept of one.
const MOST_HOLDERS: usize = 64;
/// Threads counted of one.
const MOST_THREADS: usize = 4096;

/// A thread that waits in `futex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// What it waits at.
    pub address: u64,
    /// It waits until somebody gives it back.
    pub is_lock: bool,
    /// Who has it.
    pub holder: Option<u32>,
}

/// One address of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// Time that threads waited there, nanoseconds of all threads together.
    pub ns: u64,
    /// Of it, as at a lock.
    pub lock_ns: u64,
    /// Scans that met somebody there.
    pub scans: u64,
    threads: HashSet<u32>,
    held: BTreeMap<u32, u64>,
}

impl Row {
    /// Threads that waited there.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Who had it, the longest first: thread, share of the time waited.
    pub(crate) fn holders(&self) -> Vec<(u32, f64)> {
        let share = |ns: u64| ns as f64 / (self.ns as f64).max(1.0);
        let mut holders: Vec<(u32, f64)> =
            self.held.iter().map(|(thread, ns)| (*thread, share(*ns))).collect();
        holders.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        holders
    }

    /// Whether it is a lock, as most of its waits are.
    pub(crate) fn is_lock(&self) -> bool {
        2 * self.lock_ns > self.ns
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Locks(HashMap<(u32, u64), Row>);

impl Locks {
    /// All threads were scanned, so long after the time before: these wait.
    pub(crate) fn take(&mut self, past_ns: u64, waits: &[Waiting]) {
        let mut met = HashSet::new();
        for wait in waits {
            let key = (wait.process, wait.address);
            if self.0.len() >= MOST && !self.0.contains_key(&key) {
                continue;
            }
            let row = self.0.entry(key).or_default();
            row.ns += past_ns;
            row.lock_ns += if wait.is_lock { past_ns } else { 0 };
            row.scans += u64::from(met.insert(key));
            if row.threads.len() < MOST_THREADS {
                row.threads.insert(wait.thread);
            }
            if let Some(holder) = wait.holder
                && (row.held.len() < MOST_HOLDERS || row.held.contains_key(&holder))
            {
                *row.held.entry(holder).or_default() += past_ns;
            }
        }
    }

    /// Process, address and what was seen there, locks before others, those with the longest waits first; at
    /// most so many.
    pub(crate) fn rows(&self, most: usize) -> Vec<(u32, u64, &Row)> {
        let mut rows: Vec<(u32, u64, &Row)> =
            self.0.iter().map(|((pid, at), row)| (*pid, *at, row)).collect();
        let key = |row: &Row| (!row.is_lock(), std::cmp::Reverse(row.ns));
        rows.sort_by(|a, b| key(a.2).cmp(&key(b.2)).then(a.1.cmp(&b.1)));
        rows.truncate(most);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(thread: u32, address: u64, holder: Option<u32>) -> Waiting {
        Waiting { process: 1, thread, address, is_lock: holder.is_some(), holder }
    }

    #[test]
    fn a_lock_has_the_time_of_all_that_wait_at_it_and_who_had_it() {
        let mut locks = Locks::default();
        locks.take(10, &[wait(2, 0x10, Some(4)), wait(3, 0x10, Some(4)), wait(5, 0x90, None)]);
        locks.take(30, &[wait(2, 0x10, Some(3)), wait(5, 0x90, None)]);
        locks.take(50, &[wait(5, 0x90, None)]);
        let rows = locks.rows(16);
        let (_, address, lock) = rows[0];
        assert_eq!((address, lock.ns, lock.scans, lock.threads()), (0x10, 50, 2, 2));
        assert_eq!(lock.holders(), [(3, 0.6), (4, 0.4)]);
        // An idle thread waits longer, and at no lock.
        assert_eq!((rows[1].1, rows[1].2.ns, rows[1].2.is_lock()), (0x90, 90, false));
        assert_eq!(locks.rows(1).len(), 1);
    }

    #[test]
    fn there_is_a_limit_to_what_is_kept() {
        let mut locks = Locks::default();
        for at in 0..2_000_u32 {
            locks.take(1, &[wait(7, u64::from(at), Some(at)), wait(7, 0, Some(at))]);
        }
        assert_eq!(locks.rows(usize::MAX).len(), MOST);
        assert_eq!(locks.rows(usize::MAX)[0].2.held.len(), MOST_HOLDERS);
    }
}
