//! The disk that a run measures: one directory, one budget, one test file for all probes.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::{Budget, CutShort};
#[cfg(target_os = "linux")]
use {
    crate::TestFile,
    std::os::fd::IntoRawFd,
    std::time::{Duration, Instant},
};
#[cfg(unix)]
use {
    crate::{Place, Purpose, StorageError},
    std::sync::Arc,
};

/// Opened when the first probe asks, and shared by all: laying a file out for each of them would write it
/// over and over.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux lays a test file out"))]
pub struct Disk {
    directory: PathBuf,
    budget: Budget,
    seed: u64,
    opened: RefCell<Opened>,
}

#[derive(Debug, Default)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux lays a test file out"))]
struct Opened {
    #[cfg(unix)]
    place: Option<Arc<Place>>,
    #[cfg(target_os = "linux")]
    file: Option<Arc<TestFile>>,
    /// Why there is none: a disk that failed is not written over and over.
    failed: Option<String>,
    /// Set when time was up before all of it was written.
    cut_short: Option<CutShort>,
}

impl Disk {
    /// Nothing is opened or written yet. At most `budget_bytes` will be.
    pub fn new(directory: &Path, budget_bytes: u64, seed: u64) -> Self {
        let (directory, budget) = (directory.to_owned(), Budget::new(budget_bytes));
        Self { directory, budget, seed, opened: RefCell::default() }
    }

    /// What may still be written.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The directory, looked at, on a real disk.
    #[cfg(unix)]
    pub fn place(&self) -> Result<Arc<Place>, StorageError> {
        let mut opened = self.opened.borrow_mut();
        if let Some(place) = &opened.place {
            return Ok(Arc::clone(place));
        }
        let place = Arc::new(Place::open(&self.directory, Purpose::Disk)?);
        opened.place = Some(Arc::clone(&place));
        Ok(place)
    }
}

#[cfg(target_os = "linux")]
impl Disk {
    /// The run's one test file. It is laid out once, by who comes first, of `bytes`: a run lays it out as
    /// large as the most demanding of its probes needs it ([`Self::lay_out`]) before any of them asks;
    /// whoever asks later takes it as it is and looks at its size. Its blocks may be overwritten with what
    /// they held ([`Contents`](crate::Contents)), never with anything else: others read it after. Errors: as
    /// [`TestFile::lay_out`], also for who asks after that.
    pub fn test_file(&self, bytes: u64) -> Result<Arc<TestFile>, StorageError> {
        self.file(bytes, None)
    }

    /// [`Self::test_file`] in this time: on a slow disk it is smaller ([`Self::cut_short`]).
    pub fn lay_out(&self, bytes: u64, within: Duration) -> Result<Arc<TestFile>, StorageError> {
        self.file(bytes, Some(within))
    }

    fn file(&self, bytes: u64, within: Option<Duration>) -> Result<Arc<TestFile>, StorageError> {
        let until = within.map(|within| Instant::now() + within);
        let place = self.place()?;
        let mut opened = self.opened.borrow_mut();
        if let Some(file) = &opened.file {
            return Ok(Arc::clone(file));
        }
        if let Some(reason) = &opened.failed {
            return Err(StorageError::Refused(reason.clone()));
        }
        let file = TestFile::lay_out_until(&place, &self.budget, bytes, self.seed, until)
            .inspect_err(|error| opened.failed = Some(error.to_string()))?;
        if let Some(within) = within.filter(|_| file.bytes < bytes) {
            opened.cut_short = Some(CutShort { wanted_bytes: bytes, within });
        }
        let file = Arc::new(file);
        opened.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Takes the test file that another process of this run laid out, open; whether it is such a file. What
    /// does not hold what the seed says is left alone, and one is laid out anew.
    pub fn adopt(&self, file: File) -> bool {
        let adopted = TestFile::adopt(file.into(), self.seed).ok().map(Arc::new);
        let mut opened = self.opened.borrow_mut();
        opened.file = opened.file.take().or(adopted);
        opened.file.is_some()
    }

    /// A descriptor of the test file that stays open until this process ends, for another process to open it
    /// by.
    pub fn test_file_descriptor(&self) -> Option<i32> {
        Some(self.opened.borrow().file.as_ref()?.file.try_clone().ok()?.into_raw_fd())
    }

    /// What the test file was to be, where time was up before all of it was written.
    pub fn cut_short(&self) -> Option<CutShort> {
        self.opened.borrow().cut_short
    }

    /// Size of the test file that is there already, bytes.
    pub fn laid_out_bytes(&self) -> Option<u64> {
        self.opened.borrow().file.as_ref().map(|file| file.bytes)
    }
}

/// Where no test file is laid out.
#[cfg(not(target_os = "linux"))]
#[expect(missing_docs, clippy::must_use_candidate, reason = "see those of Linux")]
impl Disk {
    pub fn adopt(&self, _file: File) -> bool {
        false
    }

    pub fn test_file_descriptor(&self) -> Option<i32> {
        None
    }

    pub fn cut_short(&self) -> Option<CutShort> {
        None
    }

    pub fn laid_out_bytes(&self) -> Option<u64> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::place::tests::Own;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_file_is_laid_out_once_for_all() {
        let own = Own::new("disk");
        let disk = Disk::new(&own.0, 10 * MIB, 5);
        let Ok(first) = disk.test_file(2 * MIB) else {
            // The build folder is in memory.
            assert!(disk.place().is_err());
            return;
        };
        assert_eq!(disk.laid_out_bytes(), Some(2 * MIB));
        let second = disk.test_file(MIB).expect("a smaller one");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(disk.budget().spent_bytes(), 2 * MIB);
        let third = disk.test_file(4 * MIB).expect("as it is");
        assert!(Arc::ptr_eq(&first, &third), "never a second time");
        assert_eq!(disk.budget().spent_bytes(), 2 * MIB);
        assert_eq!(disk.cut_short(), None);
    }

    #[test]
    fn a_layout_that_failed_is_not_tried_again() {
        let own = Own::new("disk-full");
        let disk = Disk::new(&own.0, 10 * MIB, 5);
        let Ok(error) = disk.place().map(|_| disk.test_file(11 * MIB).expect_err("10 at most")) else {
            // The build folder is in memory.
            return;
        };
        assert!(error.to_string().contains("--max-bytes"), "{error}");
        let again = disk.test_file(MIB).expect_err("its reason stays");
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(disk.budget().spent_bytes(), 0);
    }

    #[test]
    fn a_disk_that_is_slower_than_planned_gets_a_smaller_file_and_says_so() {
        let own = Own::new("disk-slow");
        let disk = Disk::new(&own.0, 100 * MIB, 5);
        let Ok(file) = disk.lay_out(80 * MIB, Duration::ZERO) else {
            // The build folder is in memory.
            assert!(disk.place().is_err());
            return;
        };
        assert!(file.bytes < 80 * MIB);
        let cut_short = disk.cut_short().expect("said");
        assert_eq!(cut_short.wanted_bytes, 80 * MIB);
        assert_eq!(disk.budget().spent_bytes(), file.bytes);
        let later = disk.test_file(80 * MIB).expect("as it is");
        assert!(Arc::ptr_eq(&file, &later));
    }
}
