//! What may be in the way of a path.

use std::io;

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// This process may have no namespaces.
    #[error("no private network namespace: {0}")]
    NoNamespaces(String),
    /// A step was refused.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

impl PathError {
    pub(super) fn asking<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }
}
