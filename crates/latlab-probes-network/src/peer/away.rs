//! The server that the user names by its URL.

use std::time::Duration;

use latlab_harness::ProbeError;
use latlab_net::fetch::{FetchError, Phase};

/// The longest secret that is read, bytes; the command has checked its file.
const MOST_SECRET_BYTES: usize = 4096;

/// What a failure says in a record, where a request had so long. Whose name was looked up is the user's
/// affair and in the run's settings.
pub(crate) fn reported(error: &FetchError, patience: Duration) -> ProbeError {
    ProbeError::Other(match error {
        FetchError::NoName(why) => match why.split_once(": ") {
            Some((_, why)) => format!("the host of the URL has no address: {why}"),
            None => "the host of the URL has no address".to_owned(),
        },
        FetchError::TimedOut(phase) => format!(
            "the server did not answer within {} s: {}",
            patience.as_secs_f64(),
            match phase {
                Phase::Resolve => "its name was not resolved",
                Phase::Connect => "no connection was made",
                Phase::Tls => "the TLS handshake did not end",
                Phase::Request => "the request could not be sent",
                Phase::FirstByte => "nothing came",
                Phase::LastByte => "the answer did not end",
            }
        ),
        FetchError::Status(status @ 300..=399) => {
            format!("the server answered with status {status}, a redirection: name the URL that it leads to")
        }
        FetchError::Status(401) => {
            "the server answered with status 401: it requires a secret (--secret-file)".to_owned()
        }
        other => other.to_string(),
    })
}

/// What the file holds, without the space around it.
pub(crate) fn secret(file: Option<&str>) -> Result<Option<Vec<u8>>, ProbeError> {
    let Some(file) = file else { return Ok(None) };
    let bytes = std::fs::read(file)
        .map_err(|source| ProbeError::System { what: "reading the secret".to_owned(), source })?;
    if bytes.len() > MOST_SECRET_BYTES {
        return Err(ProbeError::Other(format!("the secret is longer than {MOST_SECRET_BYTES} bytes")));
    }
    Ok(Some(bytes.trim_ascii().to_vec()))
}
