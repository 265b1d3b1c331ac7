//! What could not be learnt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::root::Why;

/// One thing that is not known, and the reason.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The field of [`crate::Machine`], dotted: `cpu.governor`.
    pub what: String,
    /// Why it is not known.
    pub why: String,
}

/// The notes made while reading.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Unknown>);

impl Notes {
    pub(crate) fn say(&mut self, what: &str, why: impl std::fmt::Display) {
        self.0.push(Unknown { what: what.to_owned(), why: why.to_string() });
    }

    /// The value, or a note of the reason there is none.
    pub(crate) fn or<T>(&mut self, what: &str, read: Result<T, Why>) -> Option<T> {
        read.map_err(|why| self.say(what, why)).ok()
    }

    /// The value, or the note `why`.
    pub(crate) fn must<T>(&mut self, what: &str, value: Option<T>, why: impl std::fmt::Display) -> Option<T> {
        if value.is_none() {
            self.say(what, why);
        }
        value
    }

    /// The note `why` for each of these that is missing.
    pub(crate) fn missing<const N: usize>(&mut self, which: [(&str, bool); N], why: &str) {
        for (what, _) in which.into_iter().filter(|(_, missing)| *missing) {
            self.say(what, why);
        }
    }

    pub(crate) fn into_unknown(self) -> Vec<Unknown> {
        self.0
    }
}
