//! Bodies: slices of one buffer that is made once and never copied by us.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::places::UnderWay;

/// Large enough that handing out a slice costs nothing beside sending it, small enough to stay in a core's
/// cache.
const BLOCK_BYTES: usize = 256 << 10;

/// What every body consists of, over and over: bytes that do not compress on the way, and the same in every
/// server.
static BLOCK: LazyLock<Bytes> = LazyLock::new(|| {
    // Marsaglia's xorshift64; the seed is any number but 0.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    Bytes::from(words.take(BLOCK_BYTES / 8).flatten().collect::<Vec<u8>>())
});

/// Whether this is what a body consists of, from this byte on.
pub fn is_body(mut from: u64, mut part: &[u8]) -> bool {
    while !part.is_empty() {
        let start = usize::try_from(from % BLOCK_BYTES as u64).unwrap_or_default();
        let length = part.len().min(BLOCK_BYTES - start);
        if part[..length] != BLOCK[start..start + length] {
            return false;
        }
        part = &part[length..];
        from += length as u64;
    }
    true
}

/// What is left of an answer's body.
#[derive(Debug)]
pub(super) struct Body {
    left: Left,
    /// The request that this answers.
    _under_way: Option<UnderWay>,
}

#[derive(Debug)]
enum Left {
    /// Bytes of the block, from its beginning.
    Block {
        /// Handed out so far.
        from: u64,
        to: u64,
    },
    /// A short text; empty once it was handed out.
    Text(Bytes),
}

impl Body {
    pub(super) fn bytes(count: u64) -> Self {
        Self { left: Left::Block { from: 0, to: count }, _under_way: None }
    }

    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self { left: Left::Text(text.into()), _under_way: None }
    }

    /// The same as the answer to a request, which is under way as long as this lives.
    pub(super) fn keeping(self, under_way: UnderWay) -> Self {
        Self { _under_way: Some(under_way), ..self }
    }

    fn left(&self) -> u64 {
        match &self.left {
            Left::Block { from, to } => to - from,
            Left::Text(text) => text.len() as u64,
        }
    }

    fn take(&mut self) -> Bytes {
        match &mut self.left {
            Left::Block { from, to } => {
                let start = usize::try_from(*from % BLOCK_BYTES as u64).unwrap_or_default();
                let rest = usize::try_from(*to - *from).unwrap_or(BLOCK_BYTES);
                let length = rest.min(BLOCK_BYTES - start);
                *from += length as u64;
                BLOCK.slice(start..start + length)
            }
            Left::Text(text) => std::mem::take(text),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = (self.left() > 0).then(|| Ok(Frame::data(self.take())));
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_was_asked_and_continues_across_blocks() {
        for count in [0, 1, 1000, BLOCK_BYTES as u64, BLOCK_BYTES as u64 * 2 + 17] {
            let mut body = Body::bytes(count);
            let mut all = Vec::new();
            while body.left() > 0 {
                all.extend_from_slice(&body.take());
            }
            assert_eq!(all.len() as u64, count);
            assert!(all.iter().enumerate().all(|(at, byte)| *byte == BLOCK[at % BLOCK_BYTES]));
        }
    }

    #[test]
    fn a_body_is_never_a_copy_of_the_buffer() {
        let first = Body::bytes(100).take();
        let second = Body::bytes(200).take();
        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}
