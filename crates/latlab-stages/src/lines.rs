//! Lines that a program appends to a file: for languages without a writer of their own.

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The stage.
    pub name: String,
    /// Begin, or end.
    pub ends: bool,
    /// Of an end, when said.
    pub bytes: u64,
    /// `CLOCK_MONOTONIC` in ns, when said.
    pub at_ns: Option<u64>,
}

/// Why a line is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stage line {line:?} is not understood: wanted `begin NAME` or `end NAME`, then bytes=N or at=NS")]
pub struct LineError {
    /// The line, cut.
    pub line: String,
}

/// The longest line that is read; one that is longer is not understood.
const MOST_BYTES: usize = 512;

/// Cuts a stream of bytes into lines.
#[derive(Default)]
pub struct Lines {
    rest: Vec<u8>,
    long: bool,
}

impl Lines {
    /// The lines that end in these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Result<Line, LineError>> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let end = piece.strip_suffix(b"\n");
            let part = end.unwrap_or(piece);
            let room = MOST_BYTES - self.rest.len();
            self.long |= part.len() > room;
            self.rest.extend_from_slice(&part[..part.len().min(room)]);
            if end.is_none() {
                continue;
            }
            let text = String::from_utf8_lossy(&self.rest).into_owned();
            if self.long || !text.trim().is_empty() {
                lines.push(if self.long { Err(refused(&text)) } else { parsed(&text) });
            }
            self.rest.clear();
            self.long = false;
        }
        lines
    }
}

fn refused(text: &str) -> LineError {
    LineError { line: text.chars().filter(|c| !c.is_control()).take(80).collect() }
}

fn parsed(text: &str) -> Result<Line, LineError> {
    let mut words = text.split_ascii_whitespace();
    let ends = match words.next() {
        Some("begin") => false,
        Some("end") => true,
        _ => return Err(refused(text)),
    };
    let name = words.next().ok_or_else(|| refused(text))?;
    let mut line = Line {
        name: name.chars().map(|c| if c.is_control() { '?' } else { c }).take(56).collect(),
        ends,
        bytes: 0,
        at_ns: None,
    };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| refused(text))?;
        let value: u64 = value.parse().map_err(|_| refused(text))?;
        match key {
            "bytes" => line.bytes = value,
            "at" => line.at_ns = Some(value),
            _ => return Err(refused(text)),
        }
    }
    Ok(line)
}
