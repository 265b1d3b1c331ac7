//! How much may be written: free space that stays, limits, and what was announced.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::StorageError;

/// Free space that is left to everybody else: at least this share of the file system, in percent ...
const KEPT_PERCENT: u64 = 5;
/// ... and at least so many bytes.
const KEPT_BYTES: u64 = 1 << 30;

/// What a file system and this process's limits leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that an ordinary user may still write (`f_bavail`, which is less than what is free).
    pub available_bytes: u64,
    /// Size of the file system, bytes.
    pub total_bytes: u64,
    /// `RLIMIT_FSIZE`, bytes; `None` when unlimited.
    pub largest_file_bytes: Option<u64>,
}

impl Room {
    /// Bytes that may be taken at all.
    pub fn spendable_bytes(&self) -> u64 {
        let kept = (self.total_bytes / 100 * KEPT_PERCENT).max(KEPT_BYTES);
        self.available_bytes.saturating_sub(kept)
    }

    /// The largest single file that may be made, bytes.
    pub fn largest_file(&self) -> u64 {
        self.spendable_bytes().min(self.largest_file_bytes.unwrap_or(u64::MAX))
    }

    /// Whether a file of `bytes` may be made. Errors: [`StorageError::Refused`] with what is there, what
    /// stays, and what would be needed.
    pub fn admit(&self, bytes: u64) -> Result<(), StorageError> {
        if let Some(limit) = self.largest_file_bytes
            && bytes > limit
        {
            return Err(StorageError::Refused(format!(
                "a file of {} is above this process's limit of {} (ulimit -f)",
                size(bytes),
                size(limit)
            )));
        }
        if bytes > self.spendable_bytes() {
            return Err(StorageError::Refused(format!(
                "a file of {} would leave less than {KEPT_PERCENT} % or {} free: {} are available of {}",
                size(bytes),
                size(KEPT_BYTES),
                size(self.available_bytes),
                size(self.total_bytes)
            )));
        }
        Ok(())
    }
}

/// Bytes that may be written in all, announced before and counted as they are written: flash wears.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// What was announced, when that is less than the limit.
    announced: AtomicU64,
    spent: AtomicU64,
}

impl Budget {
    /// Nothing spent yet.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit: limit_bytes, announced: AtomicU64::new(u64::MAX), spent: AtomicU64::new(0) }
    }

    /// From now on, not more than was announced is taken, even where the limit would allow it.
    pub fn announce(&self, bytes: u64) {
        self.announced.store(bytes, Ordering::Release);
    }

    /// Counts what others wrote before, of the same run.
    pub fn count(&self, bytes: u64) {
        self.spent.fetch_add(bytes, Ordering::AcqRel);
    }

    fn most(&self) -> u64 {
        self.limit.min(self.announced.load(Ordering::Acquire))
    }

    /// Takes `bytes` before they are written. Errors: [`StorageError::Refused`] when that is more than is
    /// left; nothing is taken then.
    pub fn spend(&self, bytes: u64) -> Result<(), StorageError> {
        let most = self.most();
        let taken = self.spent.fetch_update(Ordering::AcqRel, Ordering::Acquire, |spent| {
            spent.checked_add(bytes).filter(|sum| *sum <= most)
        });
        taken.map(|_| ()).map_err(|spent| {
            let (what, remedy) = if most < self.limit {
                ("has announced to write", "")
            } else {
                ("may write", "; --max-bytes raises it")
            };
            StorageError::Refused(format!(
                "{} more would be above the {} that this run {what} ({} written){remedy}",
                size(bytes),
                size(most),
                size(spent)
            ))
        })
    }

    /// Returns what was taken and not written.
    pub fn give_back(&self, bytes: u64) {
        let returned = self
            .spent
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |spent| Some(spent.saturating_sub(bytes)));
        debug_assert!(returned.is_ok(), "every sum has a successor");
    }

    /// Bytes that may be written in all.
    pub fn limit_bytes(&self) -> u64 {
        self.limit
    }

    /// Bytes that may still be written.
    pub fn left_bytes(&self) -> u64 {
        self.most().saturating_sub(self.spent_bytes())
    }

    /// Bytes written so far.
    pub fn spent_bytes(&self) -> u64 {
        self.spent.load(Ordering::Acquire)
    }
}

/// A test file that could not be written in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutShort {
    /// Its size was to be this, bytes.
    pub wanted_bytes: u64,
    /// In so much time.
    pub within: Duration,
}

/// `1.5 GiB`, for sentences.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let digits = usize::from(value < 100.0 && unit != "B" && value.fract() >= 0.05);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn room(available: u64, total: u64) -> Room {
        Room { available_bytes: available, total_bytes: total, largest_file_bytes: None }
    }

    #[test]
    fn five_percent_or_a_gibibyte_stays_free() {
        assert_eq!(room(30 * GIB, 200 * GIB).spendable_bytes(), 20 * GIB);
        assert_eq!(room(3 * GIB, 4 * GIB).spendable_bytes(), 2 * GIB);
        assert_eq!(room(GIB / 2, 4 * GIB).spendable_bytes(), 0);
    }

    #[test]
    fn a_file_that_leaves_too_little_is_refused_with_the_figures() {
        let small = room(3 * GIB, 4 * GIB);
        assert!(small.admit(2 * GIB).is_ok());
        let error = small.admit(2 * GIB + 1).expect_err("a byte too many");
        assert!(error.to_string().contains("3 GiB are available of 4 GiB"), "{error}");
    }

    #[test]
    fn the_limit_on_file_sizes_is_kept_and_named() {
        let limited = Room { largest_file_bytes: Some(1 << 20), ..room(30 * GIB, 200 * GIB) };
        assert_eq!(limited.largest_file(), 1 << 20);
        let error = limited.admit(2 << 20).expect_err("above the limit");
        assert!(error.to_string().contains("ulimit -f"), "{error}");
    }

    #[test]
    fn never_more_is_written_than_was_announced() {
        let budget = Budget::new(100);
        budget.spend(60).expect("60 of 100");
        let error = budget.spend(41).expect_err("101 of 100");
        assert!(error.to_string().contains("--max-bytes"), "{error}");
        assert_eq!((budget.spent_bytes(), budget.left_bytes()), (60, 40));
        budget.spend(40).expect("exactly all");
        assert!(budget.spend(1).is_err() && budget.spend(u64::MAX).is_err());
        budget.give_back(30);
        assert_eq!((budget.spent_bytes(), budget.left_bytes()), (70, 30));

        let budget = Budget::new(100);
        budget.announce(50);
        let error = budget.spend(51).expect_err("51 of 50").to_string();
        assert!(error.contains("announced") && !error.contains("--max-bytes"), "{error}");
        assert_eq!((budget.limit_bytes(), budget.left_bytes()), (100, 50));
        budget.announce(200);
        assert_eq!(budget.left_bytes(), 100, "the limit stays");
    }

    #[test]
    fn sizes_are_written_as_people_write_them() {
        for (bytes, text) in [(5, "5 B"), (1536, "1.5 KiB"), (4 << 20, "4 MiB"), (3 << 40, "3.0 TiB")] {
            assert_eq!(size(bytes), text);
        }
    }
}
