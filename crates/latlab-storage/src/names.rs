//! Names of what is ours on the user's disk: given and recognised here only.

use std::ffi::{CStr, CString};
use std::fmt::{self, Display};
use std::time::{SystemTime, UNIX_EPOCH};

const PREFIX: &str = ".latlab-";

/// A name for a scratch folder, or for a file that has a name for a moment: `.latlab-PID-TIME`, the time in
/// ns since 1970, hexadecimal.
pub(crate) fn scratch_name() -> CString {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = format!("{PREFIX}{}-{:x}", std::process::id(), now.as_nanos());
    CString::new(text).expect("letters and digits")
}

/// Whether [`scratch_name`] could have given this name.
pub(crate) fn is_scratch_name(name: &CStr) -> bool {
    let parts = name.to_str().ok().and_then(|text| text.strip_prefix(PREFIX)?.split_once('-'));
    parts.is_some_and(|(process, time)| {
        let process_id = process.parse::<u32>().unwrap_or_default();
        let time_ns = u128::from_str_radix(time, 16).unwrap_or_default();
        // No sign, no leading zero, no capital letter.
        process_id > 0 && process_id.to_string() == process && format!("{time_ns:x}") == time
    })
}

/// Everything that gets a name inside a scratch folder. Names are given and recognised here only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The lock, in the folder itself.
    Lock,
    /// A directory of files, in the folder itself.
    Directory(u64),
    /// A file, in the folder or in a directory of it.
    File(u64),
    /// A file under its second name.
    Renamed(u64),
}

impl Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => write!(out, "lock"),
            Self::Directory(number) => write!(out, "{number}"),
            Self::File(number) => write!(out, "f{number}"),
            Self::Renamed(number) => write!(out, "g{number}"),
        }
    }
}

impl Entry {
    /// Its name.
    pub fn name(self) -> CString {
        CString::new(self.to_string()).unwrap_or_default()
    }

    /// The entry of this name.
    pub(crate) fn named(name: &CStr) -> Option<Self> {
        let text = name.to_str().ok()?;
        let number = |digits: &str| digits.parse().ok();
        let found = match text.as_bytes().first()? {
            b'l' => Self::Lock,
            b'f' => Self::File(number(&text[1..])?),
            b'g' => Self::Renamed(number(&text[1..])?),
            _ => Self::Directory(number(text)?),
        };
        // No sign and no leading zero.
        (found.to_string() == text).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_to_the_letter() {
        assert!(is_scratch_name(&scratch_name()));
        for other in [
            c".latlab-notes",
            c".latlab-1",
            c".latlab-1-",
            c".latlab--1",
            c".latlab-0-1",
            c".latlab-01-1",
            c".latlab-+1-1",
            c".latlab-1-01",
            c".latlab-1-+1",
            c".latlab-1-A",
            c".latlab-1-g",
            c".latlab-1-1-",
            c".latlab-1-1.txt",
            c"latlab-1-1",
            c".latlab-1-1 ",
            c".latlab-4294967296-1",
            c".LATLAB-1-1",
            c".latlab-1-\xff",
        ] {
            assert!(!is_scratch_name(other), "{other:?}");
        }
        for entry in [Entry::Lock, Entry::Directory(0), Entry::File(9), Entry::Renamed(u64::MAX)] {
            assert_eq!(Entry::named(&entry.name()), Some(entry));
        }
        for other in [
            c"", c"f", c"f01", c"f+1", c"f-1", c"F1", c"h1", c"01", c"+1", c"lock1", c"loc", c"1f", c"f1 ",
            c"\xff",
        ] {
            assert_eq!(Entry::named(other), None, "{other:?}");
        }
    }
}
