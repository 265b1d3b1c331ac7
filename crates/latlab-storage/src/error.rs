//! Why a file could not be had or used.

/// A refusal. Paths are left out: the text ends in run files that people share.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// We will not work there, it would leave too little space, or write more than was announced.
    #[error("{0}")]
    Refused(String),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
}

impl StorageError {
    /// Puts what was asked for before what the system answered.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no other system is asked"))]
    pub(crate) fn asking<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what: what.into(), source: error.into() }
    }
}
