//! Causes that a session has found itself.

use latlab_observe::{Cause, Level};
use latlab_record::TailCauses;

use super::sums::write_into;
use crate::samples::BlockData;

/// What a session found out itself about its slow operations.
#[derive(Clone, Debug)]
pub struct KnownCauses {
    /// What could be seen.
    pub level: Level,
    /// One a slow operation, in order of time.
    pub each: Vec<KnownCause>,
}

/// What kept one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownCause {
    /// When the operation began, ns since the clock was opened: exactly as in its block.
    pub at_ns: f64,
    /// What it was.
    pub cause: Cause,
    /// How much of it evidence covers, ns.
    pub explained_ns: f64,
}

/// The slow operations of a record.
pub(crate) struct Judged {
    /// From this length on all of them are known, ns.
    pub(crate) threshold_ns: f64,
    /// What they are made of; `None` where that was not looked for: of what was not timed in a row, and where
    /// there was no room.
    pub(crate) causes: Option<TailCauses>,
}

impl KnownCauses {
    /// The slow operations with these causes.
    pub(crate) fn judged(&self, blocks: &mut [BlockData], threshold_ns: f64) -> Judged {
        let causes = write_into(blocks, |at_ns| {
            let place = self.each.binary_search_by(|one| one.at_ns.total_cmp(&at_ns)).ok()?;
            Some((self.each[place].cause, self.each[place].explained_ns))
        });
        Judged {
            threshold_ns,
            causes: Some(TailCauses {
                level: self.level.name().to_owned(),
                threshold_ns,
                causes,
                parts: Vec::new(),
            }),
        }
    }
}
