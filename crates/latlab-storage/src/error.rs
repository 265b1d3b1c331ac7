//! Why a file could not be had or used.

/// A refusal. Paths are left out: the text ends in run files that people share.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// We will not work there.
    #[error("{0}")]
    Refused(String),
    /// It would leave too little space, or write more than was announced.
    #[error("{0}")]
    NoRoom(String),
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
    pub(crate) fn asking(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let what = what.into();
        move |errno| Self::System {
            what,
            source: errno.into(),
        }
    }

    /// Whether the disk, the quota or a limit on file sizes is what was in the way.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::NoRoom(_) => true,
            Self::System { source, .. } => matches!(
                source.raw_os_error(),
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
            ),
            Self::Refused(_) => false,
        }
    }
}
