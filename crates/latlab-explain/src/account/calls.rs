//! How often a program made which system call, how long they took and which errors they returned: what `strace -c` counts.
//!
//! Pure: names of calls and errors are the caller's.

use std::collections::{BTreeMap, HashMap};

/// Threads within a call at once.
const MOST_THREADS: usize = 65_536;
/// What calls return from here on are errors.
const LEAST_ERROR: i64 = -4095;
/// What comes back from the handler of a signal has the registers of what it interrupted: no number, and no result of its own.
const FROM_HANDLER: i64 = -1;

/// All calls of one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub times: u64,
    /// From call to return.
    pub ns: u64,
    pub longest_ns: u64,
    /// How often it returned which error, by its positive number.
    pub errors: BTreeMap<i64, u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Of a thread within a call, its number, and since when.
    within: HashMap<u32, (i64, u64)>,
    /// By number.
    pub of: BTreeMap<i64, Sum>,
    /// Records that there was no room for.
    pub lost: u64,
}

impl Calls {
    /// A thread calls.
    pub(crate) fn begins(&mut self, time: u64, thread: u32, number: i64) {
        if self.within.len() < MOST_THREADS {
            self.within.insert(thread, (number, time));
        }
    }

    /// A thread comes back. Of a call whose beginning was not recorded nothing is known; a new thread comes back from a call that it never made.
    pub(crate) fn ends(&mut self, time: u64, thread: u32, number: i64, result: i64) {
        let is_error = number != FROM_HANDLER && (LEAST_ERROR..0).contains(&result);
        let begun = self.within.remove(&thread);
        let Some((number, since)) = begun.filter(|begun| number == begun.0 || number == FROM_HANDLER) else {
            return;
        };
        let took = time.saturating_sub(since);
        let sum = self.of.entry(number).or_default();
        sum.times += 1;
        sum.ns += took;
        sum.longest_ns = sum.longest_ns.max(took);
        if is_error {
            *sum.errors.entry(-result).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_threads_are_counted_and_timed_each_by_itself() {
        let mut calls = Calls::default();
        calls.begins(10, 1, 0);
        calls.begins(12, 2, 0);
        calls.ends(13, 2, 0, 4096);
        calls.ends(110, 1, 0, -11);
        calls.begins(120, 1, 7);
        let sum = Sum { times: 2, ns: 101, longest_ns: 100, errors: BTreeMap::from([(11, 1)]) };
        assert_eq!(calls.of, BTreeMap::from([(0, sum)]), "and one has not come back");
    }

    #[test]
    fn a_return_without_its_call_is_counted_nowhere() {
        let mut calls = Calls::default();
        // A new thread comes back from the call of the one that started it.
        calls.ends(5, 3, 56, 0);
        // The end of one call and the beginning of the next were lost.
        calls.begins(10, 1, 0);
        calls.ends(20, 1, 1, 0);
        calls.ends(30, 1, 0, 0);
        assert_eq!(calls.of, BTreeMap::new());
    }

    #[test]
    fn the_end_of_a_handler_has_no_result_of_its_own() {
        let mut calls = Calls::default();
        calls.begins(10, 1, 15);
        calls.ends(14, 1, -1, -4);
        assert_eq!(calls.of[&15], Sum { times: 1, ns: 4, longest_ns: 4, errors: BTreeMap::new() });
    }

    #[test]
    fn addresses_are_no_errors() {
        let mut calls = Calls::default();
        for (at, result) in [(0, i64::MIN), (10, -4096), (20, -4095), (30, 0x7fff_0000_0000)] {
            calls.begins(at, 1, 9);
            calls.ends(at + 5, 1, 9, result);
        }
        assert_eq!(calls.of[&9].errors, BTreeMap::from([(4095, 1)]));
    }
}
