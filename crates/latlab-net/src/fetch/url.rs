//! What is to be fetched.

use std::net::SocketAddr;

use hyper::Uri;
use hyper::http::uri::InvalidUri;

use super::error::FetchError;

/// What is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether by TLS.
    pub tls: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub target: String,
}

impl Url {
    /// At an address, without TLS.
    pub fn of(address: SocketAddr, target: &str) -> Self {
        Self { tls: false, host: address.ip().to_string(), port: address.port(), target: target.to_owned() }
    }

    /// Reads `http://host[:port][/target]` or `https://`.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        let wrong = |what: &str| FetchError::Url(format!("{text:?}: {what}"));
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(wrong("begins neither with http:// nor with https://")),
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has a character that a URL cannot have"));
        }
        if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) || rest.starts_with("[]") {
            return Err(wrong("has no host"));
        }
        let uri: Uri = text.parse().map_err(|error: InvalidUri| wrong(&error.to_string()))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(wrong("names a user; that is not supported"));
        }
        let host = uri.host().unwrap_or_default();
        // `Uri` gives no port where the text after the colon is no number.
        let port = match authority[host.len()..].strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| wrong("its port is invalid"))?,
            None => usual_port(tls),
        };
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        // A query may follow the host without a path.
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self { tls, host: host.trim_matches(['[', ']']).to_owned(), port, target })
    }

    /// Host and port as requests name them.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}
