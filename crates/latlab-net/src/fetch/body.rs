//! An answer's body, counted and compared while it comes in.

use super::error::FetchError;

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunked,
    UntilClosed,
}

/// Where a chunked body stands (RFC 9112, 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// Digits of a size; whether there was one.
    Size {
        size: u64,
        any: bool,
    },
    /// What follows the digits, until the line's end.
    Extension {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The end of a line behind data.
    AfterData,
    /// Lines behind the last chunk; whether the line has something in it.
    Trailer {
        any: bool,
    },
}

pub(super) struct Reader<'a> {
    length: Length,
    chunk: Chunk,
    bytes: u64,
    expected: &'a dyn Fn(u64, &[u8]) -> bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(length: Length, expected: &'a dyn Fn(u64, &[u8]) -> bool) -> Self {
        Self { length, chunk: Chunk::Size { size: 0, any: false }, bytes: 0, expected }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes in what came; returns whether that was the end.
    pub(super) fn take(&mut self, mut came: &[u8]) -> Result<bool, FetchError> {
        match self.length {
            Length::UntilClosed => self.data(came).map(|()| false),
            Length::Bytes(all) => {
                let left = all - self.bytes;
                if came.len() as u64 > left {
                    return Err(garbage("more bytes than were announced"));
                }
                self.data(came)?;
                Ok(self.bytes == all)
            }
            Length::Chunked => {
                while !came.is_empty() {
                    if let Chunk::Data { left } = self.chunk {
                        let now = usize::try_from(left).unwrap_or(usize::MAX).min(came.len());
                        self.data(&came[..now])?;
                        came = &came[now..];
                        let left = left - now as u64;
                        self.chunk = if left == 0 { Chunk::AfterData } else { Chunk::Data { left } };
                        continue;
                    }
                    let end = self.framing(came[0])?;
                    came = &came[1..];
                    if end {
                        return if came.is_empty() {
                            Ok(true)
                        } else {
                            Err(garbage("more bytes than were announced"))
                        };
                    }
                }
                Ok(false)
            }
        }
    }

    /// The connection has ended.
    pub(super) fn ended(&self) -> Result<(), FetchError> {
        match self.length {
            Length::UntilClosed => Ok(()),
            Length::Bytes(_) | Length::Chunked => Err(FetchError::Truncated { got: self.bytes }),
        }
    }

    fn data(&mut self, came: &[u8]) -> Result<(), FetchError> {
        if !(self.expected)(self.bytes, came) {
            return Err(garbage("the body differs from the expected one"));
        }
        self.bytes += came.len() as u64;
        Ok(())
    }

    /// One byte between the data. Returns whether it was the last of all.
    fn framing(&mut self, byte: u8) -> Result<bool, FetchError> {
        self.chunk = match (self.chunk, byte) {
            (Chunk::Size { size, .. }, digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).unwrap_or_default();
                let size = size.checked_mul(16).ok_or_else(|| garbage("a chunk is too long"))?;
                Chunk::Size { size: size + u64::from(digit), any: true }
            }
            (Chunk::Extension { size: 0 } | Chunk::Trailer { any: true }, b'\n') => {
                Chunk::Trailer { any: false }
            }
            (Chunk::Extension { size }, b'\n') => Chunk::Data { left: size },
            (Chunk::Size { size, any: true }, b'\r' | b';' | b' ' | b'\t')
            | (Chunk::Extension { size }, _) => Chunk::Extension { size },
            (Chunk::AfterData, b'\r') => Chunk::AfterData,
            (Chunk::AfterData, b'\n') => Chunk::Size { size: 0, any: false },
            (Chunk::Trailer { any: false }, b'\n') => return Ok(true),
            (Chunk::Trailer { any }, b'\r') => Chunk::Trailer { any },
            (Chunk::Trailer { .. }, _) => Chunk::Trailer { any: true },
            _ => return Err(garbage("a chunk is invalid")),
        };
        Ok(false)
    }
}

fn garbage(what: &str) -> FetchError {
    FetchError::Garbage(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(length: Length, parts: &[&[u8]]) -> Result<u64, FetchError> {
        let mut reader = Reader::new(length, &|_, _| true);
        for part in parts {
            if reader.take(part)? {
                return Ok(reader.bytes());
            }
        }
        reader.ended().map(|()| reader.bytes())
    }

    #[test]
    fn chunks_are_read_however_they_are_cut() {
        let whole = b"5\r\nhello\r\n1A;name=x\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: x\r\n\r\n";
        assert_eq!(read(Length::Chunked, &[whole]).expect("chunks"), 31);
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(read(Length::Chunked, &bytes).expect("chunks"), 31);
    }

    #[test]
    fn chunks_that_are_none_are_garbage() {
        for text in [&b"x\r\n"[..], b"\r\n", b"5\r\nhello!", b"fffffffffffffffff\r\n", b"0\r\n\r\nmore"] {
            assert!(matches!(read(Length::Chunked, &[text]), Err(FetchError::Garbage(_))), "{text:?}");
        }
        assert!(matches!(read(Length::Chunked, &[b"5\r\nhel"]), Err(FetchError::Truncated { got: 3 })));
    }

    #[test]
    fn a_body_of_another_length_is_noticed() {
        assert_eq!(read(Length::Bytes(5), &[b"he", b"llo"]).expect("a body"), 5);
        assert_eq!(read(Length::Bytes(0), &[b""]).expect("a body"), 0);
        assert!(matches!(read(Length::Bytes(5), &[b"he"]), Err(FetchError::Truncated { got: 2 })));
        assert!(matches!(read(Length::Bytes(2), &[b"hello"]), Err(FetchError::Garbage(_))));
        assert_eq!(read(Length::UntilClosed, &[b"he", b"llo"]).expect("a body"), 5);
    }
}
