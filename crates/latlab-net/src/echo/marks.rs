//! What makes a message that of one request, and an answer that of one message.
//!
//! A mark is a word at the begin of each 4 KiB and at the end. Changing every byte would be work of the
//! memory in a figure that is about the way; the bytes between the marks are compared too, outside the timed
//! part.

use latlab_stats::rng::mixed;

const WORD: usize = 8;
const EVERY: usize = 4096;

/// Where the marks of a message of so many bytes lie.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let last = length - WORD;
    (0..last.saturating_sub(WORD - 1)).step_by(EVERY).chain([last])
}

fn word_at(message: &[u8], place: usize) -> u64 {
    let mut word = [0; WORD];
    word.copy_from_slice(&message[place..place + WORD]);
    u64::from_le_bytes(word)
}

/// Writes the marks of this request.
pub(super) fn stamp(message: &mut [u8], seed: u64, number: u64) {
    let own = mixed(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for place in places(message.len()) {
        message[place..place + WORD].copy_from_slice(&(own ^ mixed(place as u64)).to_le_bytes());
    }
}

/// Makes the request its answer: every mark is changed.
pub fn answer(message: &mut [u8]) {
    for place in places(message.len()) {
        let changed = !word_at(message, place).rotate_left(17);
        message[place..place + WORD].copy_from_slice(&changed.to_le_bytes());
    }
}

/// Where the answer is not that of this request; makes the request its own answer on the way.
pub(super) fn difference(request: &mut [u8], received: &[u8]) -> Option<usize> {
    answer(request);
    if request == received {
        return None;
    }
    request.iter().zip(received).position(|(own, other)| own != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_one_request_only() {
        for length in [16, 64, 4096, 4100, 65_536] {
            let (mut request, mut received) = (vec![7; length], vec![7; length]);
            stamp(&mut request, 1, 1);
            stamp(&mut received, 1, 1);
            answer(&mut received);
            assert_eq!(difference(&mut request, &received), None, "{length}");
            stamp(&mut request, 1, 2);
            assert_eq!(difference(&mut request, &received), Some(0), "the one before");
        }
    }

    #[test]
    fn what_was_only_sent_back_is_no_answer_and_a_changed_byte_is_seen() {
        let mut request = vec![7; 64];
        stamp(&mut request, 1, 1);
        let echoed = request.clone();
        assert!(difference(&mut request, &echoed).is_some());
        let mut received = echoed.clone();
        answer(&mut received);
        received[30] ^= 1;
        let mut request = echoed;
        assert_eq!(difference(&mut request, &received), Some(30));
    }
}
