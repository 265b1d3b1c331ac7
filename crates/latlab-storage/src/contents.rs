//! What is written: bytes that nobody can compress or guess, which tell their own place.
//!
//! A disk, a file system or a host that compresses, or that finds zeros, reads and writes such data faster
//! than the user's: zeros came back at 2.4 GB/s where random bytes gave 1.0. So every block of 4 KiB is a
//! stream of its own, seeded by the file's seed and the block's number; both stand in its first bytes. A
//! block that is another one's, or an older one's, is found by that.

use latlab_stats::rng::mixed;

/// One block that verifies itself.
pub const BLOCK_BYTES: usize = 4096;
/// Seed and number at a block's begin.
const HEADER_BYTES: usize = 16;

/// The contents of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    seed: u64,
}

impl Contents {
    /// Of a file with this seed; another seed for each file, so that no two blocks of ours are alike.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Fills `buffer` with what belongs at `offset`, which must be a multiple of [`BLOCK_BYTES`]; a last part
    /// of a block is filled as far as it goes.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let first = offset / BLOCK_BYTES as u64;
        for (number, block) in (first..).zip(buffer.chunks_mut(BLOCK_BYTES)) {
            let mut state = mixed(self.seed ^ mixed(number.wrapping_add(1)));
            for word in block.chunks_mut(8) {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                word.copy_from_slice(&mixed(state).to_le_bytes()[..word.len()]);
            }
            let mut header = [0u8; HEADER_BYTES];
            header[..8].copy_from_slice(&self.seed.to_le_bytes());
            header[8..].copy_from_slice(&number.to_le_bytes());
            let length = block.len().min(HEADER_BYTES);
            block[..length].copy_from_slice(&header[..length]);
        }
    }

    /// Whether this is what belongs at `offset`: the number of the first block that is not, and what it is
    /// instead. Errors: one sentence on the first wrong block.
    pub fn verify(&self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        let mut expected = [0u8; BLOCK_BYTES];
        for (number, block) in (offset / BLOCK_BYTES as u64..).zip(bytes.chunks(BLOCK_BYTES)) {
            let expected = &mut expected[..block.len()];
            self.fill(number * BLOCK_BYTES as u64, expected);
            if block != expected {
                return Err(Self::name_of_wrong(number, block, self.seed));
            }
        }
        Ok(())
    }

    /// Looks at the first bytes of each block only: seed and number. For timed reads that must not pay for a
    /// whole comparison. Errors: one sentence on the first wrong block.
    pub fn verify_headers(&self, offset: u64, bytes: &[u8]) -> Result<(), String> {
        for (number, block) in (offset / BLOCK_BYTES as u64..).zip(bytes.chunks_exact(BLOCK_BYTES)) {
            if read_word(block, 0) != self.seed || read_word(block, 8) != number {
                return Err(Self::name_of_wrong(number, block, self.seed));
            }
        }
        Ok(())
    }

    fn name_of_wrong(number: u64, block: &[u8], seed: u64) -> String {
        if block.iter().all(|byte| *byte == 0) {
            return format!("block {number} is all zeros: it was never written, or lost");
        }
        if block.len() < HEADER_BYTES {
            return format!("block {number} holds other bytes than were written");
        }
        let (own_seed, own_number) = (read_word(block, 0), read_word(block, 8));
        if own_seed != seed {
            format!("block {number} is not of this file")
        } else if own_number != number {
            format!("block {number} holds block {own_number}")
        } else {
            format!("block {number} holds other bytes than were written")
        }
    }
}

fn read_word(block: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(seed: u64, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Contents::new(seed).fill(offset, &mut bytes);
        bytes
    }

    #[test]
    fn contents_verify_themselves_in_any_cut() {
        let whole = filled(5, 0, 20 * BLOCK_BYTES + 100);
        let contents = Contents::new(5);
        assert_eq!(contents.verify(0, &whole), Ok(()));
        assert_eq!(contents.verify(8192, &whole[8192..16_384]), Ok(()));
        assert_eq!(contents.verify_headers(4096, &whole[4096..40_960]), Ok(()));
        assert_eq!(filled(5, 4096, 4096), whole[4096..8192]);
    }

    #[test]
    fn what_is_wrong_with_a_block_is_named() {
        let contents = Contents::new(5);
        let mut whole = filled(5, 0, 4 * BLOCK_BYTES);
        whole[3 * BLOCK_BYTES - 1] ^= 1;
        let error = contents.verify(0, &whole).expect_err("one bit was turned");
        assert!(error.contains("block 2") && error.contains("other bytes"), "{error}");
        let swapped = filled(5, 4096, 4096);
        let error = contents.verify_headers(0, &swapped).expect_err("another place");
        assert_eq!(error, "block 0 holds block 1");
        let error = contents.verify(0, &filled(6, 0, 4096)).expect_err("another file");
        assert!(error.contains("not of this file"), "{error}");
        let error = contents.verify_headers(0, &[0; 4096]).expect_err("nothing");
        assert!(error.contains("all zeros"), "{error}");
    }

    #[test]
    fn bytes_look_random_and_no_two_blocks_are_alike() {
        let whole = filled(0x5EED_0000_0001, 0, 256 * BLOCK_BYTES);
        let mut counts = [0u32; 256];
        for block in whole.chunks(BLOCK_BYTES) {
            for byte in &block[HEADER_BYTES..] {
                counts[usize::from(*byte)] += 1;
            }
        }
        let mean = 256.0 * (BLOCK_BYTES - HEADER_BYTES) as f64 / 256.0;
        // Chi-square of 255 degrees of freedom: 400 is beyond one in 10^8.
        let chi: f64 = counts.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
        assert!(chi < 400.0, "{chi}");
        let mut words: Vec<u64> = whole.chunks(8).map(|word| read_word(word, 0)).collect();
        words.sort_unstable();
        words.dedup();
        // Seeds repeat in each header, nothing else does.
        assert!(words.len() >= whole.len() / 8 - 255, "{}", words.len());
    }
}
