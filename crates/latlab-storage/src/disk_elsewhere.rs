//! The disk of systems whose file systems cannot be asked yet: nothing is opened, nothing written.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::Budget;

/// Holds the directory and the budget.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    budget: Budget,
}

impl Disk {
    /// Nothing is opened or written.
    #[must_use]
    pub fn new(directory: &Path, budget_bytes: u64, _seed: u64) -> Self {
        Self { directory: directory.to_owned(), budget: Budget::new(budget_bytes) }
    }

    /// What was named, not looked at.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// No test file is laid out here.
    #[must_use]
    pub fn adopt(&self, _file: File) -> bool {
        false
    }

    /// There is none.
    #[must_use]
    pub fn test_file_descriptor(&self) -> Option<i32> {
        None
    }

    /// What may still be written.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}
