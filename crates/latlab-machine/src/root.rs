//! Files below a root: `/` in life, a captured tree in tests and bug reports.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;

use crate::text;

/// A directory under which `/proc`, `/sys`, `/etc`, ... are looked for.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

/// Why a file gave no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    #[error("{0} does not exist")]
    Absent(String),
    #[error("no permission to read {0}")]
    Forbidden(String),
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, io::Error),
    #[error("{0} holds no such value: \"{1}\"")]
    Meaningless(String, String),
}

/// The most that is read from one file: `/proc/cpuinfo` of a 1024-CPU machine is about 1.5 MB.
const MOST_BYTES: u64 = 8 << 20;

impl Root {
    /// The running system.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// A captured tree.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Self(prefix.into())
    }

    fn real(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.real(path).exists()
    }

    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, Why> {
        let mut bytes = Vec::new();
        File::open(self.real(path)).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(
            |error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Why::Absent(path.to_owned()),
                io::ErrorKind::PermissionDenied => Why::Forbidden(path.to_owned()),
                _ => Why::Unreadable(path.to_owned(), error),
            },
        )?;
        Ok(bytes)
    }

    /// The whole file; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn text(&self, path: &str) -> Result<String, Why> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file that holds one word or line, cleaned. An empty file is an error.
    pub(crate) fn line(&self, path: &str) -> Result<String, Why> {
        let text = self.text(path)?;
        text::said(&text).ok_or_else(|| Why::Meaningless(path.to_owned(), String::new()))
    }

    /// A file that holds one number.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Result<T, Why> {
        self.read_as(path, |line| line.parse().ok())
    }

    /// A file whose line means something to `parse`.
    pub(crate) fn read_as<T>(&self, path: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Why> {
        let text = self.text(path)?;
        parse(text.trim())
            .ok_or_else(|| Why::Meaningless(path.to_owned(), text::clean(&text).chars().take(80).collect()))
    }

    /// The names in a directory, in natural order (`cpu2` before `cpu10`); none if it cannot be listed.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.real(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| {
            let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            let stem = name[..name.len() - digits.len()].to_owned();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            (stem, digits[..end].parse::<u64>().unwrap_or(0), name.clone())
        });
        names
    }

    /// Where a link leads in the end, for the names on the way; `None` for what is not there.
    pub(crate) fn target(&self, path: &str) -> Option<String> {
        let real = std::fs::canonicalize(self.real(path)).ok()?;
        Some(real.to_string_lossy().into_owned())
    }

    /// The numbers `N` of entries called `<stem>N`.
    pub(crate) fn numbered(&self, path: &str, stem: &str) -> Vec<u32> {
        self.names(path).iter().filter_map(|name| name.strip_prefix(stem)?.parse().ok()).collect()
    }
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A tree below the test's binary, gone with it.
    pub(crate) struct Tree(PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str) -> Self {
            let binary = std::env::current_exe().expect("the test binary has a path");
            Self(binary.with_file_name(format!("{name}-{}", std::process::id())))
        }

        pub(crate) fn root(&self) -> Root {
            Root::at(&self.0)
        }

        fn place(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().expect("below the tree")).expect("writable");
            path
        }

        pub(crate) fn file(&self, path: &str, text: &str) {
            std::fs::write(self.place(path), text).expect("writable");
        }

        pub(crate) fn link(&self, path: &str, to: &str) {
            symlink(self.0.join(to), self.place(path)).expect("writable");
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }
}
