//! Other systems: nothing can be explained yet.

use crate::{ExplainError, Explained, Progress, Request};

/// Not on this system.
///
/// # Errors
/// Always.
pub fn explain(_: &Request, _: impl FnMut(&Progress) -> bool) -> Result<Explained, ExplainError> {
    Err(ExplainError::Unsupported)
}
