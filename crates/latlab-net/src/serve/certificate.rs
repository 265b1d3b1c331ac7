//! A certificate of the server's own, made at each start and never written down.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::ServeError;

/// Makes a certificate for the loopback's names and this address (elsewhere a client compares its
/// fingerprint), with ECDSA on P-256 as most servers have it. Returns its DER and what serves it.
pub(super) fn make(address: Option<IpAddr>) -> Result<(Vec<u8>, Arc<ServerConfig>), ServeError> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    names.extend(
        address
            .filter(|address| !address.is_loopback() && !address.is_unspecified())
            .map(|address| address.to_string()),
    );
    let made = || {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        Ok((certificate.der().clone(), key.serialize_der()))
    };
    let (certificate, key) =
        made().map_err(|error: rcgen::Error| ServeError::Certificate(error.to_string()))?;
    let der = certificate.to_vec();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let configured = || {
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)))
    };
    let mut config =
        configured().map_err(|error: rustls::Error| ServeError::Certificate(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((der, Arc::new(config)))
}

/// SHA-256 in hexadecimal.
pub(super) fn fingerprint(certificate: &[u8]) -> String {
    HEXLOWER.encode(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref())
}
