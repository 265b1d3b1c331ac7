//! What another latlab's server asks before it serves.

use std::cell::RefCell;
use std::time::Instant;

use super::connection::Connection;
use super::error::FetchError;
use super::tls::Trust;
use super::url::Url;
use crate::serve::Pass;

/// What signs requests to a guarded server: its challenge is asked for by a connection of its own.
pub fn pass(url: &Url, trust: &Trust, secret: &[u8], deadline: Instant) -> Result<Pass, FetchError> {
    /// 16 bytes in hexadecimal, with room for longer ones.
    const LONGEST: usize = 256;
    let text = RefCell::new(Vec::new());
    let keep = |_: u64, part: &[u8]| {
        let mut text = text.borrow_mut();
        text.extend_from_slice(part);
        text.len() <= LONGEST
    };
    let mut connection = Connection::open(url, trust, deadline, &mut |_| {})?;
    connection.get("/challenge", None, deadline, &mut |_| {}, &keep)?;
    let text = String::from_utf8(text.into_inner()).map(|text| text.trim().to_owned()).unwrap_or_default();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(FetchError::Garbage("a challenge is invalid".to_owned()));
    }
    Ok(Pass::new(secret, &text))
}
