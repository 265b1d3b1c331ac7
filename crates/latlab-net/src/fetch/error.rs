//! What goes wrong between a client and a server, by kinds that a person can act on.

use std::io;

/// What has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The name has an address. An address that was given as one takes no time.
    Resolve,
    /// The connection is there: one round trip.
    Connect,
    /// The handshake is done; not told without TLS.
    Tls,
    /// The request was handed to the kernel.
    Request,
    /// The first bytes of the answer's head are here.
    FirstByte,
    /// The last byte of its body is here.
    LastByte,
}

/// Why nothing, or not everything, came.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It cannot be fetched as it was written.
    #[error("{0}")]
    Url(String),
    /// The resolver knows no such name.
    #[error("no address for {0}")]
    NoName(String),
    /// The network does not lead there.
    #[error("no route to the server")]
    NoRoute,
    /// Nobody listens there.
    #[error("the connection was refused")]
    Refused,
    /// The server, or something on the way, threw the connection away.
    #[error("the connection was reset")]
    Reset,
    /// The connection ended before the answer did.
    #[error("the connection ended after {got} bytes, before the answer did")]
    Truncated {
        /// Bytes of the head when it was that, else of the body.
        got: u64,
    },
    /// What came is not what was asked for.
    #[error("the response is invalid: {0}")]
    Garbage(String),
    /// Time was up.
    #[error("timed out in this phase: {0:?}")]
    TimedOut(Phase),
    /// The server is not who it should be.
    #[error("the certificate is not trusted: {0}")]
    BadCertificate(String),
    /// It answered, with something else.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// The system refused something else.
    #[error("{0}")]
    System(io::Error),
}

impl FetchError {
    /// What an error of a socket means in a phase.
    pub(super) fn of(error: io::Error, phase: Phase) -> Self {
        use io::ErrorKind as Kind;
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::of_tls(error);
        }
        match error.kind() {
            Kind::ConnectionRefused => Self::Refused,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => Self::Reset,
            // An address of a family that this machine has not is one that it has no way to.
            Kind::NetworkUnreachable | Kind::HostUnreachable | Kind::AddrNotAvailable | Kind::NetworkDown => {
                Self::NoRoute
            }
            // What a socket says when its time-out was reached differs between systems.
            Kind::TimedOut | Kind::WouldBlock => Self::TimedOut(phase),
            Kind::UnexpectedEof => Self::Truncated { got: 0 },
            _ => Self::System(error),
        }
    }

    /// The same, where so many bytes had come before.
    pub(super) fn after(self, got: u64) -> Self {
        match self {
            Self::Truncated { .. } => Self::Truncated { got },
            other => other,
        }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(reason) => Self::BadCertificate(format!("{reason:?}")),
            rustls::Error::NoCertificatesPresented => Self::BadCertificate("there is none".to_owned()),
            other => Self::Garbage(format!("TLS: {other}")),
        }
    }
}
