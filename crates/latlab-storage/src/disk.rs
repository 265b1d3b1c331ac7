//! The disk that a run measures: one directory, one budget, one test file for all probes.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Budget, Place, Purpose, StorageError, TestFile};

/// Opened when the first probe asks, and shared by all: laying a file out for each of them would write it over and over.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    budget: Budget,
    seed: u64,
    opened: RefCell<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    place: Option<Arc<Place>>,
    file: Option<Arc<TestFile>>,
}

impl Disk {
    /// Nothing is opened or written yet. At most `budget_bytes` will be.
    #[must_use]
    pub fn new(directory: &Path, budget_bytes: u64, seed: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            budget: Budget::new(budget_bytes),
            seed,
            opened: RefCell::default(),
        }
    }

    /// The directory, looked at, on a real disk.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn place(&self) -> Result<Arc<Place>, StorageError> {
        let mut opened = self.opened.borrow_mut();
        if let Some(place) = &opened.place {
            return Ok(Arc::clone(place));
        }
        let place = Arc::new(Place::open(&self.directory, Purpose::Disk)?);
        opened.place = Some(Arc::clone(&place));
        Ok(place)
    }

    /// A file of at least `bytes`, laid out when there is none yet or only a smaller one. Its blocks may be overwritten with what
    /// they held ([`Contents`](crate::Contents)), never with anything else: others read it after.
    ///
    /// # Errors
    /// As [`TestFile::lay_out`].
    pub fn test_file(&self, bytes: u64) -> Result<Arc<TestFile>, StorageError> {
        let place = self.place()?;
        let mut opened = self.opened.borrow_mut();
        if let Some(file) = opened.file.as_ref().filter(|file| file.bytes >= bytes) {
            return Ok(Arc::clone(file));
        }
        // Its room is needed for the larger one.
        opened.file = None;
        let file = Arc::new(TestFile::lay_out(&place, &self.budget, bytes, self.seed)?);
        opened.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Size of the test file that is there already, bytes.
    #[must_use]
    pub fn laid_out_bytes(&self) -> Option<u64> {
        self.opened.borrow().file.as_ref().map(|file| file.bytes)
    }

    /// What may still be written.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tests::Own;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_file_serves_all_who_need_no_larger_one() {
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
        let larger = disk.test_file(4 * MIB).expect("a larger one");
        assert_eq!(larger.bytes, 4 * MIB);
        assert!(
            disk.test_file(5 * MIB)
                .expect_err("6 of 10 are spent")
                .is_out_of_space()
        );
    }
}
