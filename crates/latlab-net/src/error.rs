//! What may go wrong between two sockets, in words for the user.

use std::io;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// What the system answered.
        source: io::Error,
    },
    /// This process may have no namespaces.
    #[error("no private network namespace: {0}")]
    NoNamespaces(String),
    /// Nothing came back.
    #[error("no answer came within {seconds} s")]
    Silent {
        /// How long was waited, s.
        seconds: f64,
    },
    /// The other side ended.
    #[error("the other side closed the connection after {got} of {of} bytes of an answer")]
    Closed {
        /// Bytes of the answer that had come.
        got: usize,
        /// Bytes of a whole answer.
        of: usize,
    },
    /// The other side broke off.
    #[error("the other side reset the connection")]
    Reset,
    /// A datagram of another size.
    #[error("an answer of {got} bytes came to a message of {of}")]
    Length {
        /// Bytes that came.
        got: usize,
        /// Bytes that were sent.
        of: usize,
    },
    /// The contents do not belong to the request.
    #[error("answer {number} does not match its request: {detail}")]
    Wrong {
        /// Which answer, from 1.
        number: u64,
        /// Where it differs.
        detail: String,
    },
    /// The thread that serves died.
    #[error("the server died")]
    Died,
}

impl NetError {
    /// For `map_err`: the system's refusal of this.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }
}
