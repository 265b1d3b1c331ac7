//! Measuring again and again: a moment says little of the next one, as other programs and a host come and go.

use super::clock::now_ns;

/// With one round the range of a cost held the middle of the next one in half of the cases, with eight in
/// nine of ten.
const MOST: usize = 8;
/// However busy the machine is.
const LEAST: usize = 3;
/// Together with another measurement that takes as long, half a second.
const LONGEST_NS: u64 = 200_000_000;

/// What each round measured.
pub(crate) fn rounds<T>(measure: impl Fn() -> T) -> Vec<T> {
    let until = now_ns() + LONGEST_NS;
    let mut found = Vec::new();
    while found.len() < LEAST || (found.len() < MOST && now_ns() < until) {
        found.push(measure());
    }
    found
}
