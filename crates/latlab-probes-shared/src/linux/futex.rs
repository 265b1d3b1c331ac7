//! Waiting for a word in memory to change.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{Flags, wait, wake};

/// Who shares the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process: the kernel need not look up which memory it is.
    Threads,
    /// Processes that share the mapping.
    Processes,
}

impl Scope {
    fn flags(self) -> Flags {
        match self {
            Self::Threads => Flags::PRIVATE,
            Self::Processes => Flags::empty(),
        }
    }
}

/// Sleeps until the word is no longer
/// `value`; the new one. Never spins: the kernel compares before it lets the thread sleep. `None` when the
/// system refuses futexes.
#[inline]
pub fn wait_while(word: &AtomicU32, value: u32, scope: Scope) -> Option<u32> {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != value {
            return Some(now);
        }
        match wait(word, scope.flags(), value, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Wakes one thread that sleeps on the word; how many there were to wake, 0 or 1. `None` when the system
/// refuses.
#[inline]
pub fn wake_one(word: &AtomicU32, scope: Scope) -> Option<usize> {
    wake(word, scope.flags(), 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_woken_where_nobody_sleeps_and_a_changed_word_is_not_waited_for() {
        let word = AtomicU32::new(7);
        for scope in [Scope::Threads, Scope::Processes] {
            assert_eq!(wake_one(&word, scope), Some(0));
            assert_eq!(wait_while(&word, 6, scope), Some(7));
        }
    }
}
