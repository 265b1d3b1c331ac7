//! Files of /proc. One that is read again and again stays open, as opening costs more than reading.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use crate::io::Io;

/// Bytes that are read: the kernel's list of its functions has some 20 million. A program can make that of its mappings longer.
const LONGEST: u64 = 64 << 20;

/// One that stays open.
#[derive(Debug)]
pub(crate) struct ProcFile(File);

impl ProcFile {
    pub(crate) fn open(path: &str) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Its text now, at most as long as `buffer`; `None` when what it describes is gone.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a str> {
        let length = self.0.read_at(buffer, 0).ok()?;
        let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
        (!text.is_empty()).then_some(text)
    }
}

/// The text of a small file, empty when it cannot be read, and never longer than [`LONGEST`].
pub(crate) fn text(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What a process has read and written so far; `None`: it is gone, or hides it.
pub(crate) fn io_of(pid: u32) -> Option<Io> {
    Io::parse(&text(&format!("/proc/{pid}/io")))
}

/// The fields of a line of `stat` from the state on: the name before it may hold anything.
pub(crate) fn after_name(stat: &str) -> Option<&str> {
    stat.get(stat.rfind(") ")? + 2..)
}

/// The letter of the state in a line of `stat`.
pub(crate) fn letter(stat: &str) -> Option<u8> {
    after_name(stat)?.bytes().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_end_is_cut() {
        assert_eq!(text("/dev/zero").len() as u64, LONGEST);
        assert_eq!(text("/nowhere"), "");
    }

    #[test]
    fn a_state_is_found_behind_a_name_with_brackets() {
        assert_eq!(letter("12 (a) R (b)) S 1 12"), Some(b'S'));
        assert_eq!(letter(""), None);
    }
}
