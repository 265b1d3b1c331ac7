//! Who may be served beyond the loopback: whoever shares a secret, proven without ever sending it.
//!
//! A client asks for a challenge once (`GET /challenge`) and then signs every request with HMAC-SHA256 over the challenge, a number that it
//! never uses twice, the method and the target: `Authorization: latlab CHALLENGE NUMBER SIGNATURE`. Nothing on the wire can be used
//! again by somebody who listens, and no request takes a round trip more than it would without.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use super::certificate::hex;

/// The shortest secret, bytes: 128 bits, when they are random.
pub const LEAST_SECRET_BYTES: usize = 16;
/// A challenge that nobody answers is forgotten after this.
const PATIENCE: Duration = Duration::from_mins(1);
/// Challenges without an answer yet; an older one makes room.
const MOST_OPEN: usize = 1024;
/// Clients that have answered; the one that was silent longest makes room.
const MOST_ANSWERED: usize = 64;
/// Numbers may arrive out of order, as far as this many connections at a time make them.
const WINDOW: usize = 8192;
const WORD_BITS: usize = 64;

/// A client's side: signs requests.
#[derive(Debug)]
pub struct Pass {
    key: hmac::Key,
    challenge: String,
}

impl Pass {
    /// For a challenge that the server gave.
    #[must_use]
    pub fn new(secret: &[u8], challenge: &str) -> Self {
        Self {
            key: key(secret),
            challenge: challenge.to_owned(),
        }
    }

    /// The value of `Authorization` for one request; `number` counts from 0 and is used once.
    #[must_use]
    pub fn sign(&self, number: u64, method: &str, target: &str) -> String {
        let signed = hmac::sign(&self.key, &message(&self.challenge, number, method, target));
        format!("latlab {} {number} {}", self.challenge, hex(signed.as_ref()))
    }
}

fn key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

/// What is signed. No part can hold a line feed.
fn message(challenge: &str, number: u64, method: &str, target: &str) -> Vec<u8> {
    format!("latlab serve 1\n{challenge}\n{number}\n{method}\n{target}").into_bytes()
}

/// The server's side.
#[derive(Debug)]
pub(super) struct Guard {
    key: hmac::Key,
    random: SystemRandom,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    open: VecDeque<(String, Instant)>,
    answered: VecDeque<Client>,
}

#[derive(Debug)]
struct Client {
    challenge: String,
    used: Used,
    last: Instant,
}

impl Guard {
    pub(super) fn new(secret: &[u8]) -> Self {
        Self {
            key: key(secret),
            random: SystemRandom::new(),
            known: Mutex::default(),
        }
    }

    /// A new challenge; `None` when the system has no random numbers.
    pub(super) fn challenge(&self) -> Option<String> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes).ok()?;
        let challenge = hex(&bytes);
        let mut known = self.known();
        if known.open.len() == MOST_OPEN {
            known.open.pop_front();
        }
        known.open.push_back((challenge.clone(), Instant::now()));
        Some(challenge)
    }

    /// Whether a request's `Authorization` is right, and is used for the first time.
    pub(super) fn admits(&self, authorization: &str, method: &str, target: &str) -> bool {
        self.admits_at(authorization, method, target, Instant::now())
            .unwrap_or(false)
    }

    fn admits_at(&self, authorization: &str, method: &str, target: &str, now: Instant) -> Option<bool> {
        let mut words = authorization.split(' ');
        let (scheme, challenge, number, signature) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let number: u64 = number.parse().ok()?;
        let signature = unhex(signature)?;
        let message = message(challenge, number, method, target);
        if scheme != "latlab" || hmac::verify(&self.key, &message, &signature).is_err() {
            return Some(false);
        }
        let mut known = self.known();
        if let Some(client) = known
            .answered
            .iter_mut()
            .find(|client| client.challenge == challenge)
        {
            client.last = now;
            return Some(client.used.first_use_of(number));
        }
        let at = known.open.iter().position(|(open, _)| open == challenge)?;
        let (challenge, given) = known.open.remove(at)?;
        if now.saturating_duration_since(given) > PATIENCE {
            return Some(false);
        }
        if known.answered.len() == MOST_ANSWERED {
            let silent = (0..MOST_ANSWERED).min_by_key(|at| known.answered[*at].last)?;
            known.answered.remove(silent);
        }
        let mut used = Used::default();
        let first = used.first_use_of(number);
        known.answered.push_back(Client {
            challenge,
            used,
            last: now,
        });
        Some(first)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of the last numbers have been used (the window of RFC 6479).
#[derive(Debug)]
struct Used {
    /// One above the highest so far.
    next: u64,
    seen: Vec<u64>,
}

impl Default for Used {
    fn default() -> Self {
        Self {
            next: 0,
            seen: vec![0; WINDOW / WORD_BITS],
        }
    }
}

impl Used {
    fn first_use_of(&mut self, number: u64) -> bool {
        let window = WINDOW as u64;
        if number == u64::MAX || number.saturating_add(window) < self.next {
            return false;
        }
        // Places that the window moves over belonged to numbers that it leaves behind.
        for moved in self.next.max(number.saturating_sub(window - 1))..=number {
            let (word, bit) = place(moved);
            self.seen[word] &= !bit;
        }
        self.next = self.next.max(number + 1);
        let (word, bit) = place(number);
        let first = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        first
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = usize::try_from(number % WINDOW as u64).unwrap_or_default();
    (at / WORD_BITS, 1 << (at % WORD_BITS))
}

/// The bytes that hexadecimal digits stand for.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sixteen bytes or more";

    fn admitted(guard: &Guard, authorization: &str) -> bool {
        guard.admits(authorization, "GET", "/bytes/1")
    }

    fn pass(guard: &Guard) -> Pass {
        Pass::new(SECRET, &guard.challenge().expect("random numbers"))
    }

    #[test]
    fn whoever_knows_the_secret_is_admitted_in_any_order_of_numbers() {
        let guard = Guard::new(SECRET);
        let pass = pass(&guard);
        for number in [3, 0, 1, 2, 20_000, 19_000, 20_001] {
            assert!(
                admitted(&guard, &pass.sign(number, "GET", "/bytes/1")),
                "{number}"
            );
        }
    }

    #[test]
    fn what_was_heard_on_the_wire_is_of_no_use() {
        let guard = Guard::new(SECRET);
        let pass = pass(&guard);
        let heard = pass.sign(5, "GET", "/bytes/1");
        assert!(admitted(&guard, &heard));
        assert!(!admitted(&guard, &heard), "again");
        assert!(!guard.admits(&pass.sign(6, "GET", "/bytes/1"), "GET", "/bytes/999"));
        assert!(!guard.admits(&pass.sign(7, "GET", "/bytes/1"), "POST", "/bytes/1"));
        let other = Guard::new(SECRET);
        assert!(
            !admitted(&other, &pass.sign(8, "GET", "/bytes/1")),
            "another server's challenge"
        );
        assert!(admitted(&guard, &pass.sign(100_000, "GET", "/bytes/1")));
        assert!(!admitted(&guard, &pass.sign(9, "GET", "/bytes/1")), "left behind");
    }

    #[test]
    fn a_number_is_used_once_whatever_came_between() {
        let mut used = Used::default();
        let numbers = [0, 63, 64, 1, 8191, 8192, 5, 16_000, 15_999, 9_000];
        assert!(numbers.iter().all(|number| used.first_use_of(*number)));
        assert!(!numbers.iter().any(|number| used.first_use_of(*number)));
        assert!(!used.first_use_of(u64::MAX));
    }

    #[test]
    fn nothing_else_is_admitted() {
        let guard = Guard::new(SECRET);
        let challenge = guard.challenge().expect("random numbers");
        let wrong = Pass::new(b"another secret, as long", &challenge);
        let right = Pass::new(SECRET, &challenge).sign(0, "GET", "/bytes/1");
        let shorter = &right[..right.len() - 2];
        for authorization in [
            "",
            "latlab",
            "Bearer abc",
            "latlab a b c",
            "latlab a 1 zz",
            "latlab a 1 abc",
            &wrong.sign(0, "GET", "/bytes/1"),
            &right.replace("latlab", "digest"),
            shorter,
        ] {
            assert!(!admitted(&guard, authorization), "{authorization}");
        }
        assert!(admitted(&guard, &right), "what failed has used nothing up");
    }

    #[test]
    fn a_challenge_that_was_not_answered_in_time_is_forgotten() {
        let guard = Guard::new(SECRET);
        let signed = pass(&guard).sign(0, "GET", "/");
        let late = Instant::now() + PATIENCE * 2;
        assert_eq!(guard.admits_at(&signed, "GET", "/", late), Some(false));
    }

    #[test]
    fn whoever_asks_for_challenges_only_fills_no_memory() {
        let guard = Guard::new(SECRET);
        let first = pass(&guard);
        assert!(admitted(&guard, &first.sign(0, "GET", "/bytes/1")));
        for _ in 0..MOST_OPEN * 2 {
            guard.challenge().expect("random numbers");
        }
        assert_eq!(guard.known().open.len(), MOST_OPEN);
        assert!(
            admitted(&guard, &first.sign(1, "GET", "/bytes/1")),
            "and drives nobody out"
        );
        for _ in 0..MOST_ANSWERED {
            let pass = pass(&guard);
            assert!(admitted(&guard, &pass.sign(0, "GET", "/bytes/1")));
        }
        assert_eq!(guard.known().answered.len(), MOST_ANSWERED);
    }
}
