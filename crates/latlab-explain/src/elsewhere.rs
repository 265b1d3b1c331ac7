//! Other systems: nothing can be explained yet.

use crate::{ExplainError, Explained, Request};

/// Not on this system.
pub fn explain(_: &Request, _: impl FnMut() -> bool) -> Result<Explained, ExplainError> {
    Err(ExplainError::Unsupported)
}
