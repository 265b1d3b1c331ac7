//! Files of /proc. One that is read again and again stays open, as opening costs more than reading.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::str::FromStr;

use rustix::fs::{AtFlags, FileType, StatxFlags, statat, statx};
use rustix::io::Errno;

use crate::account::io::Io;

/// Bytes that are read: the kernel's list of its functions has some 20 million. A program can make that of
/// its mappings longer.
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
fn after_name(stat: &str) -> Option<&str> {
    stat.get(stat.rfind(") ")? + 2..)
}

/// A field of a line of `stat`, counted from the state, 0.
pub(crate) fn field<T: FromStr>(stat: &str, at: usize) -> Option<T> {
    after_name(stat)?.split(' ').nth(at)?.parse().ok()
}

/// What a text says behind a name at the beginning of a line.
pub(crate) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether a place is of this kind. The file's server is not asked: it may not answer.
pub(crate) fn is_of_kind(folder: impl AsFd, path: &str, kind: FileType) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let mode = match statx(&folder, path, flags, StatxFlags::TYPE) {
        Ok(about) => Ok(about.stx_mode.into()),
        // A sandbox that does not know the call.
        Err(Errno::NOSYS) => statat(folder, path, AtFlags::EMPTY_PATH).map(|about| about.st_mode),
        Err(refused) => Err(refused),
    };
    mode.is_ok_and(|mode| FileType::from_raw_mode(mode) == kind)
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
