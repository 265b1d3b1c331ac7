//! Files of /proc. One that is read again and again stays open, as opening costs more than reading.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::tally::Io;

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

/// The text of a small file, empty when it cannot be read.
pub(crate) fn text(path: &str) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
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
    fn a_state_is_found_behind_a_name_with_brackets() {
        assert_eq!(letter("12 (a) R (b)) S 1 12"), Some(b'S'));
        assert_eq!(letter(""), None);
    }
}
