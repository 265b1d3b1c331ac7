//! What is in a stream, and what is verified.
//!
//! The first word of each 4 KiB is its own; the rest repeats. Looking at every byte would be a second reading
//! of all of them, work of the memory in a figure about the way. So each end takes the first word of each 4
//! KiB into its digest, and of each MiB one page whole.

use latlab_stats::rng::{Rng, mixed};
use serde::{Deserialize, Serialize};

const WORD: usize = 8;
const PAGE: usize = 4096;
/// Of so many pages one is verified whole.
const WHOLE_OF: u64 = 256;

/// What one end of one stream has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Of their contents.
    pub digest: u64,
}

/// A number that depends on every word that was verified, and on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// The number.
    pub fn value(self) -> u64 {
        self.0
    }

    fn add(&mut self, word: &[u8]) {
        let mut own = [0; WORD];
        own.copy_from_slice(word);
        self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(own)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Takes in what lies at this place of the stream. Both the place and the length are multiples of a word.
    pub(super) fn take(&mut self, place: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let place = place + at as u64;
            let (page, inside) = (place / PAGE as u64, within(place, PAGE));
            let end = bytes.len().min(at + PAGE - inside);
            if is_whole(page) {
                for word in bytes[at..end].chunks_exact(WORD) {
                    self.add(word);
                }
            } else if inside == 0 {
                self.add(&bytes[at..at + WORD]);
            }
            at = end;
        }
    }
}

/// Where a place lies in something of this length that repeats.
#[expect(clippy::cast_possible_truncation, reason = "less than the length")]
pub(super) fn within(place: u64, length: usize) -> usize {
    (place % length as u64) as usize
}

/// Another page of each MiB.
fn is_whole(page: u64) -> bool {
    page % WHOLE_OF == mixed(page / WHOLE_OF) % WHOLE_OF
}

/// What a sender sends from: any bytes, never zeros alone.
#[derive(Debug)]
pub(super) struct Contents {
    seed: u64,
    ring: Vec<u8>,
}

impl Contents {
    /// A ring of so many bytes, a power of two and a page at least.
    pub(super) fn new(seed: u64, length: usize) -> Self {
        let mut random = Rng::new(seed);
        let mut ring = vec![0; length.next_power_of_two().max(PAGE)];
        for word in ring.chunks_exact_mut(WORD) {
            word.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        Self { seed, ring }
    }

    /// The message at this place of the stream; its length is a power of two, and the place a multiple of it.
    pub(super) fn message(&mut self, place: u64, length: usize) -> &[u8] {
        let at = within(place, self.ring.len());
        let message = &mut self.ring[at..at + length];
        let first = (PAGE - within(place, PAGE)) % PAGE;
        for page in (first..length).step_by(PAGE) {
            let own = mixed(self.seed ^ (place + page as u64));
            message[page..page + WORD].copy_from_slice(&own.to_le_bytes());
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(stream: &[u8], pieces: usize) -> u64 {
        let mut digest = Digest::default();
        for (number, piece) in stream.chunks(pieces).enumerate() {
            digest.take((number * pieces) as u64, piece);
        }
        digest.value()
    }

    fn stream(message: usize, total: usize) -> Vec<u8> {
        let mut contents = Contents::new(7, message);
        let mut all = Vec::new();
        while all.len() < total {
            let place = all.len() as u64;
            all.extend_from_slice(contents.message(place, message));
        }
        all
    }

    #[test]
    fn the_digest_does_not_depend_on_where_the_stream_was_cut() {
        let all = stream(1 << 16, 2 << 20);
        let whole = digest_of(&all, all.len());
        for pieces in [8, 24, 4096, 5000 / 8 * 8, 1 << 17] {
            assert_eq!(digest_of(&all, pieces), whole, "{pieces}");
        }
    }

    #[test]
    fn a_page_that_was_lost_doubled_or_moved_changes_it() {
        let all = stream(64, 2 << 20);
        let whole = digest_of(&all, all.len());
        let mut moved = all.clone();
        moved.copy_within(PAGE..2 * PAGE, 5 * PAGE);
        let mut lost = all.clone();
        lost.drain(PAGE..2 * PAGE);
        for wrong in [moved, lost] {
            assert_ne!(digest_of(&wrong, wrong.len()), whole);
        }
    }

    #[test]
    fn one_wrong_byte_in_a_page_that_is_verified_whole_changes_it() {
        let mut all = stream(4096, 1 << 20);
        let whole = digest_of(&all, all.len());
        let page = (0..WHOLE_OF).find(|page| is_whole(*page)).expect("one of each MiB");
        all[usize::try_from(page).expect("a small number") * PAGE + 1234] ^= 1;
        assert_ne!(digest_of(&all, all.len()), whole);
    }
}
