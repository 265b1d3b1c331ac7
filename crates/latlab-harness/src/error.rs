//! Why measuring could not go on.

use latlab_record::Point;

/// What may fail while something is measured.
pub type Result<T, E = ProbeError> = std::result::Result<T, E>;

/// Why a probe could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The system refused a resource.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The work was not what it should have been.
    #[error("{0}")]
    Proof(String),
    /// A probe was asked for a point that it does not have: the one with this label.
    #[error("{0} is not a point of this probe")]
    NoPoint(String),
    /// The place of files on the disk, its budget or its file system refused.
    #[error(transparent)]
    Storage(#[from] latlab_storage::StorageError),
    /// Anything else, as a sentence for the user.
    #[error("{0}")]
    Other(String),
}

impl ProbeError {
    /// The system's answer to the last call, with what was asked for.
    pub fn last_os_error(what: impl Into<String>) -> Self {
        Self::System { what: what.into(), source: std::io::Error::last_os_error() }
    }

    /// A point that lacks a field or has a value that the probe does not know.
    pub fn no_point(point: &Point) -> Self {
        Self::NoPoint(point.label())
    }
}
