//! On which file, pipe or peer calls were made, with their bytes, times and errors.
//!
//! A descriptor is followed from the call that opened it to the one that closed it. Its name is asked of the
//! kernel while it is open, and holds for these calls if it was not closed before the answer. What was closed
//! sooner has no name; its calls are counted for its process.
//!
//! Pure: who asks for names is the caller.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

/// Descriptors that are followed at once.
const MOST_OPEN: usize = 65_536;
/// Names of all processes together; what is more is counted without one.
const MOST_NAMES: usize = 4_096;
/// `fcntl` makes a copy of a descriptor by these: `F_DUPFD`, `F_DUPFD_CLOEXEC`. These and those below are
/// Linux's, wherever this is compiled.
const COPIES: [u64; 2] = [0, 1030];
/// `close_range`: numbers are closed when the program is replaced, not now (`CLOSE_RANGE_CLOEXEC`).
const AT_EXEC: u64 = 4;
/// The thread has numbers of its own before (`CLOSE_RANGE_UNSHARE`).
const APART: u64 = 2;
/// `unshare`: the thread has numbers of its own from now on (`CLONE_FILES`).
const FILES: u64 = 0x400;
/// What calls return from here on are errors.
const LEAST_ERROR: i64 = -4095;

/// Where what a call returns went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is no number of bytes.
    Nowhere,
    /// Bytes were read.
    Read,
    /// Bytes were written.
    Written,
}

/// What a call does with descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Which arguments are descriptors.
    pub on: &'static [(usize, Way)],
    pub effect: Effect,
}

impl Meaning {
    /// A call that has to do with none.
    pub(crate) const NOTHING: Self = Self { on: &[], effect: Effect::Nothing };
}

/// Which numbers stand for another file afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// That which it returns.
    Opens,
    /// The same, if its second argument asks for a copy.
    MayCopy,
    /// Its first argument.
    Closes,
    /// From its first to its second argument.
    ClosesRange,
    /// All; of a program that is replaced by another one, those that that is not given.
    ClosesAll,
    /// If its first argument asks for it, the thread has numbers of its own.
    Parts,
}

/// By a call's name.
pub(crate) fn meaning(name: &str) -> Meaning {
    use Effect::{Closes, ClosesAll, ClosesRange, MayCopy, Nothing, Opens, Parts};
    use Way::{Nowhere, Read, Written};
    let of = |on, effect| Meaning { on, effect };
    match name {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" => {
            of(&[(0, Read)], Nothing)
        }
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" => {
            of(&[(0, Written)], Nothing)
        }
        "sendfile" => of(&[(0, Written), (1, Read)], Nothing),
        "copy_file_range" | "splice" => of(&[(0, Read), (2, Written)], Nothing),
        "tee" => of(&[(0, Read), (1, Written)], Nothing),
        "accept" | "accept4" | "dup" | "dup2" | "dup3" => of(&[(0, Nowhere)], Opens),
        "fcntl" => of(&[(0, Nowhere)], MayCopy),
        "close" => of(&[(0, Nowhere)], Closes),
        "bind" | "connect" | "epoll_ctl" | "epoll_pwait" | "epoll_pwait2" | "epoll_wait" | "fadvise64"
        | "fallocate" | "fchmod" | "fchown" | "fdatasync" | "fgetxattr" | "flock" | "fsetxattr" | "fstat"
        | "fstatfs" | "fsync" | "ftruncate" | "getdents" | "getdents64" | "getpeername" | "getsockname"
        | "getsockopt" | "inotify_add_watch" | "io_uring_enter" | "ioctl" | "listen" | "lseek"
        | "readahead" | "recvmmsg" | "sendmmsg" | "setsockopt" | "shutdown" | "sync_file_range"
        | "syncfs" | "timerfd_gettime" | "timerfd_settime" => of(&[(0, Nowhere)], Nothing),
        "creat" | "epoll_create" | "epoll_create1" | "eventfd" | "eventfd2" | "fanotify_init"
        | "inotify_init" | "inotify_init1" | "io_uring_setup" | "memfd_create" | "mq_open" | "open"
        | "openat" | "openat2" | "perf_event_open" | "pidfd_getfd" | "pidfd_open" | "signalfd"
        | "signalfd4" | "socket" | "timerfd_create" | "userfaultfd" => of(&[], Opens),
        "close_range" => of(&[], ClosesRange),
        "execve" | "execveat" | "exit_group" => of(&[], ClosesAll),
        "unshare" => of(&[], Parts),
        _ => Meaning::NOTHING,
    }
}

/// Calls of one kind, or of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub times: u64,
    /// From call to return.
    pub ns: u64,
    pub longest_ns: u64,
    /// How often it returned which error, by its positive number.
    pub errors: BTreeMap<i64, u64>,
}

impl Sum {
    /// One call more. `result`: what it returned, where it has one of its own.
    pub(crate) fn add(&mut self, took_ns: u64, result: Option<i64>) {
        self.times += 1;
        self.ns += took_ns;
        self.longest_ns = self.longest_ns.max(took_ns);
        if let Some(error) = result.filter(|result| (LEAST_ERROR..0).contains(result)) {
            *self.errors.entry(-error).or_default() += 1;
        }
    }

    /// The calls of both.
    pub(crate) fn merge(&mut self, other: Self) {
        self.times += other.times;
        self.ns += other.ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for (error, times) in other.errors {
            *self.errors.entry(error).or_default() += times;
        }
    }
}

/// A descriptor has 32 bits, whatever else the register holds.
fn number(argument: u64) -> u32 {
    u32::try_from(argument & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// What calls did with one file of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct On {
    pub sum: Sum,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl On {
    fn merge(&mut self, other: Self) {
        self.sum.merge(other.sum);
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }
}

/// A descriptor from one opening to its closing.
#[derive(Debug)]
struct Opened {
    process: u32,
    number: u32,
    /// What it is of, and when that was so.
    name: Option<(String, u64)>,
    is_closed: bool,
    /// Calls that have not come back.
    within: u32,
    on: On,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CallsOn {
    /// By process and number.
    open: BTreeMap<(u32, u32), u64>,
    opened: HashMap<u64, Opened>,
    count: u64,
    /// Those whose name nobody has asked for.
    new: Vec<u64>,
    /// Processes of which one thread has descriptors of its own: what a number is of depends on who is asked.
    apart: HashSet<u32>,
    /// Calls of descriptors that there was no room for.
    pub crowded: u64,
    /// What numbers were of, and from when to when that was asked, of openings that are not counted yet.
    early: HashMap<(u32, u32), (String, [u64; 2])>,
    /// By process and name; of those without one none is known.
    pub of: BTreeMap<(u32, Option<String>), On>,
}

impl CallsOn {
    /// A call with a descriptor begins: what tells it apart until it ends. `None`: more are open than are
    /// followed.
    pub(crate) fn begins(&mut self, process: u32, argument: u64) -> Option<u64> {
        // A negative one is none.
        let number = Some(number(argument)).filter(|number| i32::try_from(*number).is_ok())?;
        let id = match self.open.get(&(process, number)) {
            Some(id) => *id,
            None => self.add(process, number)?,
        };
        self.opened.get_mut(&id)?.within += 1;
        Some(id)
    }

    fn add(&mut self, process: u32, number: u32) -> Option<u64> {
        if self.opened.len() >= MOST_OPEN {
            self.crowded += 1;
            return None;
        }
        self.count += 1;
        self.new.push(self.count);
        let opened = Opened { process, number, name: None, is_closed: false, within: 0, on: On::default() };
        self.opened.insert(self.count, opened);
        self.open.insert((process, number), self.count);
        Some(self.count)
    }

    /// It ends. `result`: what it returned.
    pub(crate) fn ends(&mut self, id: u64, way: Way, took_ns: u64, result: Option<i64>) {
        let Some(opened) = self.opened.get_mut(&id) else { return };
        opened.within = opened.within.saturating_sub(1);
        opened.on.sum.add(took_ns, result);
        let bytes = result.and_then(|result| u64::try_from(result).ok()).unwrap_or(0);
        match way {
            Way::Read => opened.on.read_bytes += bytes,
            Way::Written => opened.on.written_bytes += bytes,
            Way::Nowhere => {}
        }
        self.give(id);
    }

    /// A call was begun whose end was not recorded.
    pub(crate) fn forget(&mut self, id: u64) {
        if let Some(opened) = self.opened.get_mut(&id) {
            opened.within = opened.within.saturating_sub(1);
        }
        self.give(id);
    }

    /// What a call does to numbers when it begins.
    pub(crate) fn changes(&mut self, effect: Effect, process: u32, arguments: [u64; 3], time: u64) {
        let [first, second, third] = arguments;
        match effect {
            Effect::Closes => self.close(process, number(first), time),
            Effect::ClosesRange if third & APART != 0 => self.part(process, time),
            Effect::ClosesRange if third & AT_EXEC == 0 => {
                self.close_range(process, number(first)..=number(second), time);
            }
            Effect::ClosesAll => self.close_range(process, 0..=u32::MAX, time),
            Effect::Parts if first & FILES != 0 => self.part(process, time),
            _ => {}
        }
    }

    /// From now on no name is reported for a process.
    fn part(&mut self, process: u32, time: u64) {
        self.close_range(process, 0..=u32::MAX, time);
        if self.apart.len() < MOST_OPEN {
            self.apart.insert(process);
        }
    }

    /// A process has begun: what had its number before is gone.
    pub(crate) fn starts(&mut self, process: u32, time: u64) {
        self.apart.remove(&process);
        self.close_range(process, 0..=u32::MAX, time);
    }

    /// Records from this time on were lost: what was closed or opened since then is not known.
    pub(crate) fn lose(&mut self, time: u64) {
        self.early.clear();
        for (process, number) in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(process, number, time);
        }
    }

    fn close_range(&mut self, process: u32, numbers: RangeInclusive<u32>, time: u64) {
        let (first, last) = numbers.into_inner();
        if first > last {
            return;
        }
        let mine = self.open.range((process, first)..=(process, last));
        for (process, number) in mine.map(|(of, _)| *of).collect::<Vec<_>>() {
            self.close(process, number, time);
        }
    }

    /// Which descriptor a call returns, if it opens one. `second`: its second argument.
    pub(crate) fn opened(effect: Effect, second: u64, result: i64) -> Option<u32> {
        let copies = effect == Effect::MayCopy && COPIES.contains(&second);
        u32::try_from(result).ok().filter(|_| effect == Effect::Opens || copies)
    }

    /// A call that began at `since` has returned this descriptor. What had its number is gone.
    pub(crate) fn opens(&mut self, process: u32, number: u32, since: u64, time: u64) {
        self.close(process, number, since);
        let early = self.early.remove(&(process, number)).filter(|(_, asked)| asked[0] >= time);
        if let Some(id) = self.add(process, number)
            && let Some((name, asked)) = &early
        {
            self.found(id, name.clone(), asked[1]);
        }
        // If it was closed before that, the next one of this number is what was found.
        self.early.extend(early.map(|early| ((process, number), early)));
    }

    /// Within this time, later than the last record that has come, this number was of this file.
    pub(crate) fn found_early(&mut self, process: u32, number: u32, name: String, asked: [u64; 2]) {
        if self.early.len() >= MOST_OPEN {
            self.early.clear();
        }
        self.early.insert((process, number), (name, asked));
    }

    fn close(&mut self, process: u32, number: u32, time: u64) {
        let Some(id) = self.open.remove(&(process, number)) else { return };
        if let Some(opened) = self.opened.get_mut(&id) {
            opened.is_closed = true;
            // Whoever had the number later may be what was found.
            opened.name.take_if(|(_, at)| *at >= time);
        }
        self.give(id);
    }

    /// Hands over what is closed and comes back no more.
    fn give(&mut self, id: u64) {
        if self.opened.get(&id).is_some_and(|opened| opened.is_closed && opened.within == 0)
            && let Some(opened) = self.opened.remove(&id)
            && opened.on.sum.times > 0
        {
            let name = opened.name.map(|(name, _)| name);
            let key = (opened.process, name);
            let key =
                if self.of.len() < MOST_NAMES || self.of.contains_key(&key) { key } else { (key.0, None) };
            self.of.entry(key).or_default().merge(opened.on);
        }
    }

    /// Descriptors whose name nobody has asked for, as id, process and number; they count as asked now.
    pub(crate) fn not_asked(&mut self) -> Vec<(u64, u32, u32)> {
        let (opened, apart) = (&self.opened, &self.apart);
        let asks = |id: u64| {
            let one = opened.get(&id).filter(|one| one.name.is_none() && !one.is_closed)?;
            (!apart.contains(&one.process)).then_some((id, one.process, one.number))
        };
        self.new.drain(..).filter_map(asks).collect()
    }

    /// At this time the number of this one was of this file.
    pub(crate) fn found(&mut self, id: u64, name: String, at: u64) {
        if let Some(opened) = self.opened.get_mut(&id)
            && !self.apart.contains(&opened.process)
        {
            opened.name = Some((name, at));
        }
    }

    /// Nothing comes any more.
    pub(crate) fn end(&mut self) {
        for id in self.opened.keys().copied().collect::<Vec<_>>() {
            if let Some(opened) = self.opened.get_mut(&id) {
                opened.is_closed = true;
                opened.within = 0;
            }
            self.give(id);
        }
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of a nanosecond that returns this.
    fn call(on: &mut CallsOn, number: u64, way: Way, result: i64) {
        let id = on.begins(1, number).expect("room");
        on.ends(id, way, 1, Some(result));
    }

    fn named(on: &CallsOn) -> Vec<(Option<&str>, u64, u64, u64)> {
        let rows = on.of.iter();
        rows.map(|((_, name), on)| (name.as_deref(), on.sum.times, on.read_bytes, on.written_bytes)).collect()
    }

    fn answer(on: &mut CallsOn, name: &str, at: u64) {
        for (id, ..) in on.not_asked() {
            on.found(id, name.to_owned(), at);
        }
    }

    #[test]
    fn calls_are_those_of_the_file_that_their_descriptor_was_of() {
        let mut on = CallsOn::default();
        on.opens(1, 3, 4, 5);
        call(&mut on, 3, Way::Read, 100);
        answer(&mut on, "/a", 10);
        call(&mut on, 3, Way::Read, 20);
        on.changes(Effect::Closes, 1, [3, 0, 0], 20);
        on.opens(1, 3, 21, 22);
        call(&mut on, 3, Way::Written, 7);
        answer(&mut on, "/b", 30);
        on.end();
        assert_eq!(named(&on), [(Some("/a"), 2, 120, 0), (Some("/b"), 1, 0, 7)]);
    }

    #[test]
    fn what_was_found_after_the_closing_is_no_name() {
        let mut on = CallsOn::default();
        call(&mut on, 3, Way::Read, 100);
        // The answer is from time 10; the record that it was closed at 9 comes later.
        answer(&mut on, "/b", 10);
        on.changes(Effect::Closes, 1, [3, 0, 0], 9);
        on.end();
        assert_eq!(named(&on), [(None, 1, 100, 0)]);
    }

    #[test]
    fn a_number_that_a_copy_takes_over_is_of_another_file() {
        let mut on = CallsOn::default();
        call(&mut on, 1, Way::Written, 3);
        answer(&mut on, "/terminal", 10);
        on.opens(1, 1, 11, 12);
        call(&mut on, 1, Way::Written, 4);
        answer(&mut on, "/file", 20);
        on.end();
        assert_eq!(named(&on), [(Some("/file"), 1, 0, 4), (Some("/terminal"), 1, 0, 3)]);
    }

    #[test]
    fn a_copy_is_opened_where_one_is_asked_for_and_an_error_opens_nothing() {
        let opened = CallsOn::opened;
        assert_eq!(opened(Effect::Opens, 0, 3), Some(3));
        assert_eq!(opened(Effect::Opens, 0, -2), None);
        assert_eq!(opened(Effect::MayCopy, COPIES[1], 4), Some(4));
        assert_eq!(opened(Effect::MayCopy, 3, 4), None);
        assert_eq!(opened(Effect::Closes, 0, 0), None);
    }

    #[test]
    fn what_was_found_early_is_of_the_last_opening_before() {
        let mut on = CallsOn::default();
        // Opened at 5, closed at 7, opened again at 9; asked at 10, before any of it was counted.
        on.found_early(1, 3, "/b".to_owned(), [10, 10]);
        on.opens(1, 3, 4, 5);
        call(&mut on, 3, Way::Read, 100);
        on.changes(Effect::Closes, 1, [3, 0, 0], 7);
        on.opens(1, 3, 8, 9);
        call(&mut on, 3, Way::Read, 20);
        on.changes(Effect::Closes, 1, [3, 0, 0], 11);
        // Later than the answer: it says nothing of this one.
        on.opens(1, 3, 12, 13);
        call(&mut on, 3, Way::Read, 1);
        on.end();
        assert_eq!(named(&on), [(None, 2, 101, 0), (Some("/b"), 1, 20, 0)]);
        let mut on = CallsOn::default();
        // It was opened while that was asked: the answer may be of the one before.
        on.found_early(1, 3, "/a".to_owned(), [10, 20]);
        on.opens(1, 3, 14, 15);
        call(&mut on, 3, Way::Read, 1);
        on.end();
        assert_eq!(named(&on), [(None, 1, 1, 0)]);
    }

    #[test]
    fn a_call_that_ends_after_the_closing_counts_for_what_it_began_with() {
        let mut on = CallsOn::default();
        let waits = on.begins(1, 3).expect("room");
        answer(&mut on, "pipe:[1]", 5);
        on.changes(Effect::Closes, 1, [3, 0, 0], 6);
        on.ends(waits, Way::Read, 100, Some(-4));
        assert_eq!(named(&on), [(Some("pipe:[1]"), 1, 0, 0)]);
        assert_eq!(on.of[&(1, Some("pipe:[1]".to_owned()))].sum.errors, BTreeMap::from([(4, 1)]));
    }

    #[test]
    fn a_new_program_and_a_range_close_all_and_others_keep_theirs() {
        for (effect, arguments, left) in [
            (Effect::ClosesAll, [0; 3], 1),
            (Effect::ClosesRange, [9, 3, 0], 3),
            (Effect::ClosesRange, [4, u64::from(u32::MAX), 0], 2),
            (Effect::ClosesRange, [0, u64::from(u32::MAX), AT_EXEC], 3),
        ] {
            let mut on = CallsOn::default();
            for (process, number) in [(1, 3), (1, 9), (2, 3)] {
                let id = on.begins(process, number).expect("room");
                on.ends(id, Way::Nowhere, 1, Some(0));
            }
            on.changes(effect, 1, arguments, 10);
            assert_eq!(on.open.len(), left, "{effect:?}");
        }
    }

    #[test]
    fn a_process_that_begins_and_records_that_are_lost_leave_no_name_behind() {
        let gone: [fn(&mut CallsOn); 2] = [|on| on.starts(1, 20), |on| on.lose(20)];
        for gone in gone {
            let mut on = CallsOn::default();
            call(&mut on, 3, Way::Read, 100);
            answer(&mut on, "/a", 10);
            gone(&mut on);
            call(&mut on, 3, Way::Read, 20);
            answer(&mut on, "/b", 30);
            // What was found in the time that is not known may be of either.
            on.lose(25);
            on.end();
            assert_eq!(named(&on), [(None, 1, 20, 0), (Some("/a"), 1, 100, 0)]);
        }
    }

    #[test]
    fn no_name_is_reported_of_a_process_whose_threads_have_different_descriptors() {
        for (effect, arguments) in [(Effect::Parts, [FILES, 0, 0]), (Effect::ClosesRange, [9, 9, APART])] {
            let mut on = CallsOn::default();
            on.changes(effect, 1, arguments, 5);
            on.found_early(1, 3, "/a".to_owned(), [20, 20]);
            on.opens(1, 3, 9, 10);
            call(&mut on, 3, Way::Read, 7);
            assert_eq!(on.not_asked(), []);
            on.end();
            assert_eq!(named(&on), [(None, 1, 7, 0)]);
        }
        let mut on = CallsOn::default();
        on.changes(Effect::Parts, 1, [0x200, 0, 0], 5);
        assert!(on.apart.is_empty());
    }

    #[test]
    fn what_is_no_descriptor_is_none_and_the_upper_half_of_a_register_says_nothing() {
        let mut on = CallsOn::default();
        assert_eq!(on.begins(1, u64::MAX), None);
        assert_eq!(on.begins(1, 0xffff_ff9c), None, "the current folder");
        let three = on.begins(1, 3).expect("room");
        assert_eq!(on.begins(1, 0x7f00_0000_0003), Some(three));
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let mut on = CallsOn::default();
        assert!((0..MOST_OPEN as u64).all(|number| on.begins(1, number).is_some()));
        assert_eq!((on.begins(2, 0), on.crowded), (None, 1));
        on.end();
        assert!(on.opened.is_empty() && on.of.is_empty(), "no call has come back");
        for nth in 0..MOST_NAMES + 3 {
            call(&mut on, 3, Way::Nowhere, 0);
            answer(&mut on, &nth.to_string(), 1);
            on.changes(Effect::Closes, 1, [3, 0, 0], 2);
        }
        assert_eq!(on.of.len(), MOST_NAMES + 1);
        assert_eq!(on.of[&(1, None)].sum.times, 3);
    }

    #[test]
    fn what_a_call_does_with_descriptors_is_known_by_its_name() {
        assert_eq!(meaning("sendfile").on, [(0, Way::Written), (1, Way::Read)]);
        assert_eq!(meaning("openat").effect, Effect::Opens);
        assert_eq!(meaning("futex"), Meaning::NOTHING);
    }
}
