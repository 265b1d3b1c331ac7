//! A connection with TLS, or without.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::error::{FetchError, Phase};
use super::timed::Timed;

/// Where systems keep whom they trust, as OpenSSL's builds there find it.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom a client believes. Keeps no tickets: each handshake is a whole one.
#[derive(Debug, Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Only the server that has this certificate (DER), or one signed by it. Fails when it is no certificate.
    pub fn only(certificate: &[u8]) -> Result<Self, FetchError> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(certificate.to_vec()))
            .map_err(|error| FetchError::BadCertificate(error.to_string()))?;
        Self::roots(roots)
    }

    /// Whom this system trusts; nobody where it does not say. Fails when TLS cannot be set up.
    pub fn system() -> Result<Self, FetchError> {
        let mut roots = RootCertStore::empty();
        let bundle = BUNDLES.iter().find_map(|path| CertificateDer::pem_file_iter(path).ok());
        if let Some(certificates) = bundle {
            roots.add_parsable_certificates(certificates.flatten());
        }
        Self::roots(roots)
    }

    /// Nobody: for plain text. Fails when TLS cannot be set up.
    pub fn nobody() -> Result<Self, FetchError> {
        Self::roots(RootCertStore::empty())
    }

    /// The same, for another protocol.
    pub(crate) fn speaking(&self, protocol: &[u8]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    fn roots(roots: RootCertStore) -> Result<Self, FetchError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| FetchError::System(io::Error::other(error)))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }
}

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
    pub(super) fn socket(&mut self) -> &mut Timed {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.sock,
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn socket_ref(&self) -> &std::net::TcpStream {
        match self {
            Self::Plain(socket) => socket.socket(),
            Self::Tls(stream) => stream.sock.socket(),
        }
    }

    /// Goes on shaking hands, as far as the socket lets it.
    pub(super) fn shake(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
        }
        Ok(())
    }

    /// Whether something of TLS is still to be sent.
    #[cfg(target_os = "linux")]
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.wants_write(),
        }
    }
}

/// What the certificate is compared with.
pub(super) fn name_of(host: &str) -> Result<ServerName<'static>, FetchError> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| FetchError::Url(format!("{host:?} is not a name that a certificate can have")))
}

/// A connection on which nobody has shaken hands yet.
pub(super) fn begin(socket: Timed, host: &str, trust: &Trust) -> Result<Stream, FetchError> {
    let name = name_of(host)?;
    let connection = ClientConnection::new(Arc::clone(&trust.0), name)
        .map_err(|error| FetchError::System(io::Error::other(error)))?;
    Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
}

/// Shakes hands as far as the first request needs.
pub(super) fn shake_hands(socket: Timed, host: &str, trust: &Trust) -> Result<Stream, FetchError> {
    let mut stream = begin(socket, host, trust)?;
    stream.shake().map_err(|error| FetchError::of(error, Phase::Tls))?;
    Ok(stream)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
