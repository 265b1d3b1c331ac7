//! A file of /proc that is read again and again: it stays open, as opening costs more than reading.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// See the module.
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
