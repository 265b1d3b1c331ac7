//! How often a program made which system call, and on which file, how long they took and which errors they
//! returned: what `strace -c` counts.
//!
//! Pure: names of calls and errors are the caller's.

use std::collections::{BTreeMap, HashMap};

use crate::account::calls_on::{CallsOn, Meaning, Sum, Way};

/// Threads within a call at once.
const MOST_THREADS: usize = 65_536;
/// Descriptors of one call.
const MOST_ON: usize = 2;
/// What comes back from the handler of a signal has the registers of what it interrupted: no number, and no
/// result of its own.
const FROM_HANDLER: i64 = -1;

/// A call that has not come back.
#[derive(Clone, Debug, PartialEq)]
struct Within {
    number: i64,
    since: u64,
    process: u32,
    second: u64,
    /// The descriptors that it was made with.
    on: [Option<(u64, Way)>; MOST_ON],
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Of a thread within a call.
    within: HashMap<u32, Within>,
    /// By number.
    pub of: BTreeMap<i64, Sum>,
    /// By file.
    pub on: CallsOn,
    /// Records that there was no room for.
    pub lost: u64,
}

impl Calls {
    /// A thread of a process calls, with these of its arguments.
    pub(crate) fn begins(
        &mut self,
        time: u64,
        (process, thread): (u32, u32),
        (number, meaning): (i64, Meaning),
        arguments: [u64; 3],
    ) {
        let mut on = [None; MOST_ON];
        for (place, (argument, way)) in on.iter_mut().zip(meaning.on) {
            let id = arguments.get(*argument).and_then(|argument| self.on.begins(process, *argument));
            *place = id.map(|id| (id, *way));
        }
        self.on.changes(meaning.effect, process, arguments, time);
        if self.within.len() >= MOST_THREADS {
            self.gap(time);
        }
        let begun = Within { number, since: time, process, second: arguments[1], on };
        if let Some(lost) = self.within.insert(thread, begun) {
            self.forget(&lost);
        }
    }

    /// At this time records were lost, or none were made for a while: of calls that had not come back nothing
    /// is known, nor which descriptors are open.
    pub(crate) fn gap(&mut self, time: u64) {
        for lost in std::mem::take(&mut self.within).into_values() {
            self.forget(&lost);
        }
        self.on.lose(time);
    }

    fn forget(&mut self, lost: &Within) {
        lost.on.iter().flatten().for_each(|(id, _)| self.on.forget(*id));
    }

    /// A thread of a process comes back. Of a call whose beginning was not recorded nothing is known; a new
    /// thread comes back from a call that it never made.
    pub(crate) fn ends(
        &mut self,
        time: u64,
        (process, thread): (u32, u32),
        (number, meaning): (i64, Meaning),
        result: i64,
    ) {
        let begun = self.within.remove(&thread);
        let is_its = |begun: &Within| number == begun.number || number == FROM_HANDLER;
        let begun = match begun {
            Some(begun) if is_its(&begun) => begun,
            other => {
                if let Some(begun) = &other {
                    self.forget(begun);
                }
                if process == thread && result == 0 {
                    self.on.starts(process, time);
                }
                return;
            }
        };
        let took = time.saturating_sub(begun.since);
        let result = (number != FROM_HANDLER).then_some(result);
        self.of.entry(begun.number).or_default().add(took, result);
        for (id, way) in begun.on.into_iter().flatten() {
            self.on.ends(id, way, took, result);
        }
        let opened = result.and_then(|result| CallsOn::opened(meaning.effect, begun.second, result));
        if let Some(number) = opened {
            self.on.opens(begun.process, number, begun.since, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::calls_on::meaning;

    impl Calls {
        fn calls(&mut self, time: u64, thread: u32, number: i64) {
            self.begins(time, (9, thread), (number, meaning("read")), [3, 0, 0]);
        }

        fn returns(&mut self, time: u64, thread: u32, number: i64, result: i64) {
            self.ends(time, (9, thread), (number, meaning("read")), result);
        }
    }

    #[test]
    fn calls_of_threads_are_counted_and_timed_each_by_itself() {
        let mut calls = Calls::default();
        calls.calls(10, 1, 0);
        calls.calls(12, 2, 0);
        calls.returns(13, 2, 0, 4096);
        calls.returns(110, 1, 0, -11);
        calls.calls(120, 1, 7);
        let sum = Sum { times: 2, ns: 101, longest_ns: 100, errors: BTreeMap::from([(11, 1)]) };
        assert_eq!(calls.of, BTreeMap::from([(0, sum)]), "and one has not come back");
    }

    #[test]
    fn a_return_without_its_call_is_counted_nowhere() {
        let mut calls = Calls::default();
        // A new thread comes back from the call of the one that started it.
        calls.returns(5, 3, 56, 0);
        // The end of one call and the beginning of the next were lost.
        calls.calls(10, 1, 0);
        calls.returns(20, 1, 1, 0);
        calls.returns(30, 1, 0, 0);
        assert_eq!(calls.of, BTreeMap::new());
    }

    #[test]
    fn the_end_of_a_handler_has_no_result_of_its_own() {
        let mut calls = Calls::default();
        calls.calls(10, 1, 15);
        calls.returns(14, 1, -1, -4);
        assert_eq!(calls.of[&15], Sum { times: 1, ns: 4, longest_ns: 4, errors: BTreeMap::new() });
    }

    #[test]
    fn a_new_process_has_none_of_what_had_its_number() {
        let mut calls = Calls::default();
        let number = |calls: &mut Calls| {
            calls.calls(10, 9, 0);
            let opened = calls.on.not_asked();
            calls.returns(11, 9, 0, 5);
            opened.len()
        };
        assert_eq!((number(&mut calls), number(&mut calls)), (1, 0));
        // That one ends in the call that ends it; another one begins with the return from the call that its
        // parent made.
        calls.begins(20, (9, 9), (231, meaning("exit")), [0; 3]);
        calls.ends(30, (9, 9), (56, meaning("clone")), 0);
        assert_eq!(number(&mut calls), 1);
        calls.gap(40);
        assert_eq!((number(&mut calls), calls.within.len()), (1, 0));
    }

    #[test]
    fn addresses_are_no_errors() {
        let mut calls = Calls::default();
        for (at, result) in [(0, i64::MIN), (10, -4096), (20, -4095), (30, 0x7fff_0000_0000)] {
            calls.calls(at, 1, 9);
            calls.returns(at + 5, 1, 9, result);
        }
        assert_eq!(calls.of[&9].errors, BTreeMap::from([(4095, 1)]));
    }

    #[test]
    fn a_call_counts_for_its_kind_and_for_its_file() {
        let mut calls = Calls::default();
        calls.calls(10, 1, 0);
        calls.returns(13, 1, 0, 4096);
        calls.calls(20, 1, 0);
        // Its end was lost: of this one nothing is known.
        calls.calls(30, 1, 0);
        calls.returns(35, 1, 0, -5);
        calls.on.end();
        let on = &calls.on.of[&(9, None)];
        assert_eq!((on.read_bytes, &on.sum), (4096, &calls.of[&0]));
        assert_eq!((on.sum.times, on.sum.ns, &on.sum.errors), (2, 8, &BTreeMap::from([(5, 1)])));
    }
}
