//! Takes marks out of a ring, in the order in which their slots were taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of one name's entry and of one slot.
const ENTRY: usize = 64;
const NAMES: usize = 256;
pub(crate) const SLOTS_AT: usize = ENTRY + NAMES * ENTRY;
/// The longest name.
const NAME_BYTES: usize = 56;

/// One mark as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number in the ring, from 1.
    pub number: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// Of an end: the number of its begin.
    pub of: Option<u64>,
    /// Of an end: what the stage has gone through, bytes; 0: not said.
    pub bytes: u64,
    /// Which process.
    pub process: u32,
    /// Which thread; 0: the process as a whole.
    pub thread: u32,
    /// The stage's name.
    pub name: Arc<str>,
}

/// Reads a ring while others write it.
pub(crate) struct Reader {
    slots: u64,
    next: u64,
    lost: u64,
    /// By number, once written: what is written over them later does not count.
    names: [Option<Arc<str>>; NAMES],
}

impl Reader {
    /// Of a ring of so many slots, from its first mark on.
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots: u64::from(slots), next: 0, lost: 0, names: [const { None }; NAMES] }
    }

    /// Marks that were overwritten before they were read, or whose writer died over them.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// What has come since the last time, into `marks`. With `last`, nobody writes any more: what is
    /// unfinished is lost.
    pub(crate) fn drain(&mut self, memory: &[AtomicU64], last: bool, marks: &mut Vec<Mark>) {
        let written = memory[2].load(Ordering::Acquire);
        // The cursor only grows, unless somebody has written over it.
        self.next = self.next.min(written);
        let overwritten = (written - self.next).saturating_sub(self.slots);
        self.lost = self.lost.saturating_add(overwritten);
        self.next += overwritten;
        while self.next < written {
            match self.slot(memory, self.next) {
                Taken::Mark(mark) => marks.push(mark),
                // A writer is between taking the slot and filling it: later, unless it has died there.
                Taken::Unfinished if !last && written - self.next < self.slots / 2 => return,
                Taken::Unfinished | Taken::Overwritten => self.lost = self.lost.saturating_add(1),
            }
            self.next += 1;
        }
    }

    fn slot(&mut self, memory: &[AtomicU64], index: u64) -> Taken {
        let at = SLOTS_AT / 8 + usize::try_from(index & (self.slots - 1)).unwrap_or(0) * (ENTRY / 8);
        let word = |place: usize| memory[at + place].load(Ordering::Relaxed);
        let number = memory[at].load(Ordering::Acquire);
        if number > index + 1 {
            return Taken::Overwritten;
        }
        if number != index + 1 {
            return Taken::Unfinished;
        }
        let (at_ns, bytes, of, who, what) = (word(1), word(2), word(3), word(4), word(5));
        fence(Ordering::Acquire);
        if memory[at].load(Ordering::Relaxed) != index + 1 {
            return Taken::Overwritten;
        }
        let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
        let name = self.name(memory, low(what));
        Taken::Mark(Mark {
            number,
            at_ns,
            of: (what >> 32 == 1).then_some(of),
            bytes,
            process: low(who),
            thread: low(who >> 32),
            name,
        })
    }

    /// A name by its number, cleaned: the memory is another program's, and a number without a written name
    /// has none.
    fn name(&mut self, memory: &[AtomicU64], number: u32) -> Arc<str> {
        let number = usize::try_from(number).unwrap_or(NAMES);
        let nameless = || Arc::from("(no name)");
        let Some(known) = self.names.get_mut(number) else { return nameless() };
        if let Some(name) = known {
            return Arc::clone(name);
        }
        let at = (ENTRY + number * ENTRY) / 8;
        let head = memory[at].load(Ordering::Acquire);
        if head & u64::from(u32::MAX) != 2 {
            return nameless();
        }
        let length = usize::try_from(head >> 32).unwrap_or(0).min(NAME_BYTES);
        let mut text = [0; NAME_BYTES];
        for (place, chunk) in text.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&memory[at + 1 + place].load(Ordering::Relaxed).to_le_bytes());
        }
        let name: String = String::from_utf8_lossy(&text[..length])
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        let name = if name.is_empty() { nameless() } else { Arc::from(name) };
        Arc::clone(known.insert(name))
    }
}

enum Taken {
    Mark(Mark),
    Overwritten,
    Unfinished,
}
