//! Two threads that answer each other through a cache line, and how one sees that the other did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_probes_shared::rig::{Page, Place};

/// Offset of the second word of an exchange by loads and stores from the first: another line, and far enough
/// for the prefetcher that fetches lines in pairs.
const ANSWER_OFFSET: usize = 2048;

/// A line through which two threads talk.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) page: Arc<Page>,
    /// Of its first byte in the page; below [`ANSWER_OFFSET`].
    pub(super) offset: usize,
}

impl Line {
    fn question(&self) -> &AtomicU64 {
        self.page.word(self.offset)
    }

    fn answer(&self) -> &AtomicU64 {
        self.page.word(self.offset + ANSWER_OFFSET)
    }

    /// Its words, looked up once: a round trip has no room for it.
    pub(super) fn words(&self) -> Words<'_> {
        Words { question: self.question(), answer: self.answer() }
    }

    /// Before a round, when no thread talks through it.
    pub(super) fn reset(&self) {
        self.question().store(0, Ordering::Relaxed);
        self.answer().store(0, Ordering::Relaxed);
    }

    /// So many of a partner's answers at once, whether it was asked or not.
    #[cfg(test)]
    pub(super) fn force_answers<W: Way>(&self, count: u64) {
        W::forced(self).fetch_add(count * W::FORCED, Ordering::AcqRel);
    }
}

/// The words of a line.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    question: &'a AtomicU64,
    answer: &'a AtomicU64,
}

/// A way to talk. Each exchange carries its number, so that an answer that came without its question, or a
/// question that was passed over, is seen.
pub(super) trait Way: Send + 'static {
    /// Turns of waiting, about 0.1 ms of them, after which the partner is taken to be off its CPU: an answer
    /// takes well below a microsecond between any two cores of one machine.
    const SPINS: u32;
    /// Asks for the `n`th time (from 1) and returns what came back. `None` when no answer came.
    fn ask(words: Words, n: u64, wait: &mut Wait) -> Option<u64>;
    /// Waits for the `n`th question, answers it, and returns what was asked.
    fn answer(words: Words, n: u64, wait: &mut Wait) -> Option<u64>;
    /// After `n` exchanges: waits for the answer that `ask` did not wait for. What is then in the line.
    fn close(words: Words, n: u64, wait: &mut Wait) -> Option<u64>;
    /// The sums of what `ask` and `answer` must have returned in `n` exchanges.
    fn sums(n: u64) -> (u64, u64);
    /// What `close` must have returned.
    fn last(n: u64) -> u64;
    /// What an answer adds to which word.
    #[cfg(test)]
    const FORCED: u64;
    #[cfg(test)]
    fn forced(line: &Line) -> &AtomicU64;
}

/// Compare-and-swap of one word on one line: each side waits for the other's number and replaces it by its
/// own.
pub(super) struct CompareAndSwap;

/// Plain loads and stores: each side writes a word of its own, on a line of its own, and waits for the
/// other's to change.
pub(super) struct LoadStore;

/// A side's waiting.
pub(super) struct Wait<'a> {
    place: &'a Place,
    /// How often the partner was later than it can be when it runs.
    pub(super) stalls: u64,
    /// The number that was waited for was passed over.
    passed_over: bool,
}

impl<'a> Wait<'a> {
    pub(super) fn new(place: &'a Place) -> Self {
        Self { place, stalls: 0, passed_over: false }
    }

    /// Whether to go on waiting.
    #[cold]
    fn goes_on(&mut self) -> bool {
        self.stalls += 1;
        self.place.give_way()
    }
}

impl CompareAndSwap {
    /// Replaces `from` by its successor, once it is there. No load before: the figure is that of a lock that
    /// is taken by compare-and-swap alone, as other tools have it.
    ///
    /// Sixteen tries to a count: a failed try takes the line away from the partner, so counting each one made
    /// the exchange itself 13 % slower than a loop that counts nothing; this is within 3 % of it.
    #[inline]
    fn swap(word: &AtomicU64, from: u64, wait: &mut Wait) -> Option<u64> {
        macro_rules! tries {
            ($($_:literal)*) => {
                $(if let Ok(was) = word.compare_exchange(from, from + $_, Ordering::AcqRel, Ordering::Relaxed) {
                    return Some(was);
                })*
            };
        }
        loop {
            for _ in 0..Self::SPINS / 16 {
                tries!(1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1);
            }
            // Numbers only grow: what was passed over will not come.
            wait.passed_over = word.load(Ordering::Relaxed) > from;
            if wait.passed_over || !wait.goes_on() {
                return None;
            }
        }
    }
}

impl Way for CompareAndSwap {
    /// Each a locked operation: 20 to 100 ns.
    const SPINS: u32 = 1 << 11;

    #[inline]
    fn ask(words: Words, n: u64, wait: &mut Wait) -> Option<u64> {
        Self::swap(words.question, 2 * (n - 1), wait)
    }

    #[inline]
    fn answer(words: Words, n: u64, wait: &mut Wait) -> Option<u64> {
        Self::swap(words.question, 2 * n - 1, wait)
    }

    fn close(words: Words, n: u64, wait: &mut Wait) -> Option<u64> {
        changed(words.question, 2 * n - 1, LoadStore::SPINS, wait)
    }

    fn sums(n: u64) -> (u64, u64) {
        (n * n.saturating_sub(1), n * n)
    }

    fn last(n: u64) -> u64 {
        2 * n
    }

    #[cfg(test)]
    const FORCED: u64 = 2;
    #[cfg(test)]
    fn forced(line: &Line) -> &AtomicU64 {
        line.question()
    }
}

/// What is in the word once it is no longer `was`.
#[inline]
fn changed(word: &AtomicU64, was: u64, spins: u32, wait: &mut Wait) -> Option<u64> {
    loop {
        for _ in 0..spins {
            let now = word.load(Ordering::Acquire);
            if now != was {
                return Some(now);
            }
        }
        if !wait.goes_on() {
            return None;
        }
    }
}

impl Way for LoadStore {
    /// Each a load that finds its line: a nanosecond.
    const SPINS: u32 = 1 << 17;

    #[inline]
    fn ask(words: Words, n: u64, wait: &mut Wait) -> Option<u64> {
        words.question.store(n, Ordering::Release);
        changed(words.answer, n - 1, Self::SPINS, wait)
    }

    #[inline]
    fn answer(words: Words, n: u64, wait: &mut Wait) -> Option<u64> {
        let asked = changed(words.question, n - 1, Self::SPINS, wait)?;
        words.answer.store(n, Ordering::Release);
        Some(asked)
    }

    fn close(words: Words, _n: u64, _wait: &mut Wait) -> Option<u64> {
        Some(words.answer.load(Ordering::Acquire))
    }

    fn sums(n: u64) -> (u64, u64) {
        let sum = n * (n + 1) / 2;
        (sum, sum)
    }

    fn last(n: u64) -> u64 {
        n
    }

    #[cfg(test)]
    const FORCED: u64 = 1;
    #[cfg(test)]
    fn forced(line: &Line) -> &AtomicU64 {
        line.answer()
    }
}

/// What a round asks for.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) lines: Vec<Line>,
    /// Exchanges through a line before its first window.
    pub(super) warm: u64,
    /// Windows of each line.
    pub(super) windows: u64,
    /// Exchanges of each window.
    pub(super) ops: u64,
    /// Both sides keep busy for so long before the first exchange, ticks.
    pub(super) heat: u64,
}

impl Asked {
    fn of_a_line(&self) -> u64 {
        self.warm + self.windows * self.ops
    }

    pub(super) fn exchanges(&self) -> u64 {
        self.of_a_line() * self.lines.len() as u64
    }
}

/// What one side has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Exchanges that it saw through.
    pub(super) exchanges: u64,
    /// Lines on which the sum of what it was told, or the last of it, is not what the partner had to say.
    pub(super) wrong_lines: u64,
    /// How often it waited longer than for a partner that runs.
    pub(super) stalls: u64,
    /// Windows (the asking side's): line, begin and end.
    pub(super) windows: Vec<(usize, u64, u64)>,
    /// Whether it ended the round before all was done.
    pub(super) cut_short: bool,
}

/// `count` exchanges after the first `before`, as far as they succeed: how many did, and the sum of what came
/// back. Both stay in registers: a compare-and-swap waits for all stores before it, and would be slower for
/// them.
#[inline]
fn exchanges(before: u64, count: u64, mut one: impl FnMut(u64) -> Option<u64>) -> (u64, u64) {
    let mut sum = 0u64;
    for made in 0..count {
        match one(before + made + 1) {
            Some(reported) => sum = sum.wrapping_add(reported),
            None => return (made, sum),
        }
    }
    (count, sum)
}

/// The side that asks, and is timed.
pub(super) fn ask<W: Way>(place: &mut Place, asked: &Asked) -> Seen {
    let mut seen = Seen::default();
    seen.windows.reserve_exact(asked.lines.len() * usize::try_from(asked.windows).unwrap_or(0));
    if !place.start() {
        seen.cut_short = true;
        return seen;
    }
    place.heat(asked.heat);
    let mut wait = Wait::new(place);
    for (index, line) in asked.lines.iter().enumerate() {
        let (mut n, mut sum) = (0u64, 0u64);
        let words = line.words();
        let mut several = |count: u64| {
            let (made, reported) = exchanges(n, count, |n| W::ask(words, n, &mut wait));
            n += made;
            sum = sum.wrapping_add(reported);
            made == count
        };
        let mut whole = several(asked.warm);
        for _ in 0..asked.windows {
            let begin = place.stamps.begin();
            whole = whole && several(asked.ops);
            let end = place.stamps.end();
            if !whole {
                break;
            }
            seen.windows.push((index, begin, end));
        }
        seen.exchanges += n;
        let closed = !whole || W::close(words, n, &mut wait) == Some(W::last(n));
        seen.wrong_lines += u64::from(!closed || wait.passed_over || sum != W::sums(n).0);
        // Late lines are left out: a line begun is a line finished, so that both sides agree on what was
        // done.
        if !whole || (place.is_enough() && index + 1 < asked.lines.len()) {
            seen.cut_short = true;
            place.end();
            break;
        }
    }
    seen.stalls = wait.stalls;
    seen
}

/// The side that answers.
pub(super) fn answer<W: Way>(place: &mut Place, asked: &Asked) -> Seen {
    let mut seen = Seen::default();
    if !place.start() {
        seen.cut_short = true;
        return seen;
    }
    place.heat(asked.heat);
    let mut wait = Wait::new(place);
    for line in &asked.lines {
        let words = line.words();
        let (n, sum) = exchanges(0, asked.of_a_line(), |n| W::answer(words, n, &mut wait));
        seen.exchanges += n;
        seen.wrong_lines += u64::from(wait.passed_over || sum != W::sums(n).1);
        if n < asked.of_a_line() {
            seen.cut_short = true;
            break;
        }
    }
    seen.stalls = wait.stalls;
    seen
}
