//! What reading the files of a watched program may cost: memory, steps and, where somebody waits, time. A
//! file of a few kilobytes can claim sections of 2^63 bytes, or hold gigabytes in a thousandth of that.

use std::cell::Cell;

use super::clock::now_ns;
use super::proc_file::{text, value};

/// Bytes, where there is memory enough: the largest browsers with their debug information take less.
const MOST_BYTES: u64 = 1 << 30;
/// Of the memory that is left, the part that may be taken: the watched program needs the rest.
const PART: u64 = 4;
/// A step is a symbol, an address range, or a byte of a line program. A million symbols with their lines are
/// 20 million.
const MOST_STEPS: u64 = 1 << 27;
/// The clock is read about this often, steps.
const BETWEEN_CLOCK_READS: u64 = 1 << 12;
/// Bytes that are read, or searched, in the time of one step.
const BYTES_A_STEP: u64 = 16;

/// See the module. What is held for short is given back.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Cell<u64>,
    steps: Cell<u64>,
    until: Cell<u64>,
    is_spent: Cell<bool>,
}

impl Budget {
    pub(crate) fn of(bytes: u64, steps: u64) -> Self {
        Self {
            bytes: Cell::new(bytes),
            steps: Cell::new(steps),
            until: Cell::new(u64::MAX),
            is_spent: Cell::new(false),
        }
    }

    /// By what this process may have now.
    pub(crate) fn here() -> Self {
        let limits = [available(), limit_of_container(), limit_of_addresses()];
        let least = limits.into_iter().flatten().min().unwrap_or(MOST_BYTES);
        Self::of((least / PART).min(MOST_BYTES), MOST_STEPS)
    }

    /// Nothing more from this moment on.
    pub(crate) fn end_by(&self, at: u64) {
        self.until.set(at);
    }

    fn spend(&self, of: &Cell<u64>, amount: u64) -> Option<()> {
        let Some(left) = of.get().checked_sub(amount) else {
            self.is_spent.set(true);
            return None;
        };
        of.set(left);
        Some(())
    }

    /// Takes memory; `None`: there is not so much left.
    pub(crate) fn take(&self, bytes: u64) -> Option<()> {
        self.spend(&self.bytes, bytes)
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// What is taken for some work is given back after it.
    pub(crate) fn lent<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.bytes.get();
        let done = work();
        self.bytes.set(before);
        done
    }

    /// Counts steps; `None`: there are not so many left.
    pub(crate) fn step(&self, steps: u64) -> Option<()> {
        let before = self.steps.get();
        self.spend(&self.steps, steps)?;
        let is_time = before / BETWEEN_CLOCK_READS != self.steps.get() / BETWEEN_CLOCK_READS;
        if is_time && now_ns() > self.until.get() {
            self.steps.set(0);
            self.is_spent.set(true);
            return None;
        }
        Some(())
    }

    /// Counts the steps of reading or searching so many bytes.
    pub(crate) fn pass(&self, bytes: u64) -> Option<()> {
        self.step(bytes / BYTES_A_STEP)
    }

    /// Whether something was refused.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    /// Memory that may still be taken.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes.get()
    }
}

fn available() -> Option<u64> {
    let text = text("/proc/meminfo");
    let kib: u64 = value(&text, "MemAvailable:")?.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Inside a container its limit is here; outside there is no such file.
fn limit_of_container() -> Option<u64> {
    text("/sys/fs/cgroup/memory.max").trim().parse().ok()
}

/// By libc: a refusal, as by a sandbox, is no limit, and rustix takes it for an answer.
fn limit_of_addresses() -> Option<u64> {
    // SAFETY: fills a structure of ours.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) == 0).then_some(limit)
    }?;
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again_and_a_refusal_is_remembered() {
        let budget = Budget::of(100, 10);
        assert!(budget.take(60).is_some() && budget.take(40).is_some());
        assert!(!budget.is_spent());
        assert!(budget.take(1).is_none() && budget.is_spent());
        budget.give(50);
        assert!(budget.take(50).is_some());
        assert!(budget.take(u64::MAX).is_none());
        assert!(budget.pass(160).is_some() && budget.step(1).is_none());
    }

    #[test]
    fn steps_end_with_the_time_though_many_are_left() {
        let budget = Budget::of(100, u64::MAX);
        budget.end_by(now_ns());
        let taken = (0..3 * BETWEEN_CLOCK_READS).map_while(|_| budget.step(1)).count() as u64;
        assert!(taken <= BETWEEN_CLOCK_READS && budget.is_spent(), "{taken}");
        assert!(budget.step(1).is_none(), "nor later");
        let budget = Budget::of(100, u64::MAX);
        budget.end_by(u64::MAX);
        assert!((0..3 * BETWEEN_CLOCK_READS).all(|_| budget.step(1).is_some()));
    }

    #[test]
    fn the_budget_here_is_a_part_of_what_there_is() {
        let bytes = Budget::here().bytes_left();
        assert!(bytes > 0 && bytes <= MOST_BYTES, "{bytes}");
    }
}
