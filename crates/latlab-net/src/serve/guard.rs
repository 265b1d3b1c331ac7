//! Who may be served beyond the loopback: whoever shares a secret, proven without ever sending it.
//!
//! A client asks for a challenge once (`GET /challenge`) and then signs every request with HMAC-SHA256 over
//! the challenge, a number that it never uses twice, the method and the target:
//! `Authorization: latlab CHALLENGE NUMBER SIGNATURE`. Nothing on the wire can be used again by somebody who
//! listens, and no request takes a round trip more than it would without.
//!
//! A challenge is not kept: it holds the second in which it was made and its own number, and an HMAC over
//! both and the client's address, by a key that the server makes at each start. So whoever asks for
//! challenges only costs no memory and takes nobody's place.
//!
//! A signed request is good once, because the numbers used with a challenge are kept from its first right
//! signature on. Only who knows the secret can fill that table. It forgets no challenge that could still be
//! answered for the first time, since its requests could then be sent again: when all of them are so young,
//! the next client is refused until one is a minute old.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::time::Instant;

/// The shortest secret, bytes: 128 bits, when they are random.
pub const LEAST_SECRET_BYTES: usize = 16;
/// A challenge can be answered for so long.
const PATIENCE: Duration = Duration::from_mins(1);
/// Clients that have answered; the one that was silent longest makes room. Each takes little more than 1 KiB.
const MOST_ANSWERED: usize = 1024;
/// Numbers may arrive out of order, as far as this many connections at a time make them.
const WINDOW: usize = 8192;
const WORD_BITS: usize = 64;
/// Of a challenge: the second of the server's life in which it was made, and its number.
const MADE_BYTES: usize = 8 + 8;
/// Of the HMAC as many bytes are in a challenge: 128 bits.
const SEAL_BYTES: usize = 16;

/// A client's side: signs requests.
#[derive(Debug)]
pub struct Pass {
    key: hmac::Key,
    challenge: String,
    /// The next request's number.
    next: AtomicU64,
}

impl Pass {
    /// For a challenge that the server gave.
    pub fn new(secret: &[u8], challenge: &str) -> Self {
        Self { key: key(secret), challenge: challenge.to_owned(), next: AtomicU64::new(0) }
    }

    /// The value of `Authorization` for the next request.
    pub fn next(&self, method: &str, target: &str) -> String {
        self.sign(self.next.fetch_add(1, Ordering::Relaxed), method, target)
    }

    /// The same for the request of this number, which is used once.
    pub(super) fn sign(&self, number: u64, method: &str, target: &str) -> String {
        let signed = hmac::sign(&self.key, &message(&self.challenge, number, method, target));
        format!("latlab {} {number} {}", self.challenge, HEX.encode(signed.as_ref()))
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
    /// What the client and the server share.
    key: hmac::Key,
    /// What challenges of this server are told by.
    own: hmac::Key,
    started: Instant,
    given: AtomicU64,
    answered: Mutex<HashMap<String, Client>>,
}

#[derive(Debug)]
struct Client {
    used: Used,
    last: Instant,
    /// When its challenge could last be answered for the first time.
    until: Instant,
}

impl Guard {
    /// Fails when the system has no random numbers.
    pub(super) fn new(secret: &[u8]) -> io::Result<Self> {
        let own = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(Self {
            key: key(secret),
            own: own.map_err(|_| io::Error::other("the system has no random numbers"))?,
            started: Instant::now(),
            given: AtomicU64::new(0),
            answered: Mutex::default(),
        })
    }

    /// A new challenge for a client at this address.
    pub(super) fn challenge(&self, address: IpAddr) -> String {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let mut made = [0; MADE_BYTES];
        made[..8].copy_from_slice(&self.started.elapsed().as_secs().to_be_bytes());
        made[8..].copy_from_slice(&number.to_be_bytes());
        HEX.encode(&made) + &HEX.encode(&self.seal(&made, address))
    }

    fn seal(&self, made: &[u8], address: IpAddr) -> [u8; SEAL_BYTES] {
        let text = format!("latlab challenge 1\n{}\n{address}", HEX.encode(made));
        let mut seal = [0; SEAL_BYTES];
        seal.copy_from_slice(&hmac::sign(&self.own, text.as_bytes()).as_ref()[..SEAL_BYTES]);
        seal
    }

    /// When a challenge could last be answered; none when it was not given to this address by this server.
    fn until(&self, challenge: &str, address: IpAddr) -> Option<Instant> {
        let bytes = HEX.decode(challenge.as_bytes()).ok()?;
        let (made, seal) = bytes.split_first_chunk::<MADE_BYTES>()?;
        // The signature over it, which only who knows the secret can make, was right: the time that this
        // takes tells nobody anything.
        if seal != self.seal(made, address) {
            return None;
        }
        let (second, _) = made.split_first_chunk::<8>()?;
        Some(self.started + Duration::from_secs(u64::from_be_bytes(*second)) + PATIENCE)
    }

    /// Whether a request's `Authorization` is right, and is used for the first time. `address` is the
    /// client's.
    pub(super) fn admits(&self, authorization: &str, method: &str, target: &str, address: IpAddr) -> bool {
        self.admits_at(authorization, method, target, address, Instant::now()).unwrap_or(false)
    }

    fn admits_at(
        &self,
        authorization: &str,
        method: &str,
        target: &str,
        address: IpAddr,
        now: Instant,
    ) -> Option<bool> {
        let mut words = authorization.split(' ');
        let (scheme, challenge, number, signature) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let number: u64 = number.parse().ok()?;
        let signature = HEX.decode(signature.as_bytes()).ok()?;
        let message = message(challenge, number, method, target);
        if scheme != "latlab" || hmac::verify(&self.key, &message, &signature).is_err() {
            return Some(false);
        }
        let mut answered = self.answered();
        if let Some(client) = answered.get_mut(challenge) {
            client.last = now;
            return Some(client.used.first_use_of(number));
        }
        let until = self.until(challenge, address)?;
        if now > until {
            return Some(false);
        }
        if answered.len() >= MOST_ANSWERED {
            let silent = answered
                .iter()
                .filter(|(_, client)| client.until < now)
                .min_by_key(|(_, client)| client.last)
                .map(|(challenge, _)| challenge.clone())?;
            answered.remove(&silent);
        }
        let mut used = Used::default();
        let first = used.first_use_of(number);
        let client = Client { used, last: now, until };
        answered.insert(challenge.to_owned(), client);
        Some(first)
    }

    fn answered(&self) -> MutexGuard<'_, HashMap<String, Client>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
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
        Self { next: 0, seen: vec![0; WINDOW / WORD_BITS] }
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"sixteen bytes or more";
    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn guard() -> Guard {
        Guard::new(SECRET).expect("random numbers")
    }

    fn admitted(guard: &Guard, authorization: &str) -> bool {
        guard.admits(authorization, "GET", "/bytes/1", CLIENT)
    }

    fn admitted_after(guard: &Guard, authorization: &str, seconds: u64) -> bool {
        let now = guard.started + Duration::from_secs(seconds);
        guard.admits_at(authorization, "GET", "/bytes/1", CLIENT, now).unwrap_or(false)
    }

    fn pass(guard: &Guard) -> Pass {
        Pass::new(SECRET, &guard.challenge(CLIENT))
    }

    #[test]
    fn whoever_knows_the_secret_is_admitted_in_any_order_of_numbers() {
        let guard = guard();
        let pass = pass(&guard);
        for number in [3, 0, 1, 2, 20_000, 19_000, 20_001] {
            assert!(admitted(&guard, &pass.sign(number, "GET", "/bytes/1")), "{number}");
        }
    }

    #[test]
    fn what_was_heard_on_the_wire_is_of_no_use() {
        let guard = guard();
        let pass = pass(&guard);
        let heard = pass.sign(5, "GET", "/bytes/1");
        assert!(admitted(&guard, &heard));
        assert!(!admitted(&guard, &heard), "again");
        assert!(!guard.admits(&pass.sign(6, "GET", "/bytes/1"), "GET", "/bytes/999", CLIENT));
        assert!(!guard.admits(&pass.sign(7, "GET", "/bytes/1"), "POST", "/bytes/1", CLIENT));
        let other = super::tests::guard();
        assert!(!admitted(&other, &pass.sign(8, "GET", "/bytes/1")), "another server's challenge");
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
        let guard = guard();
        let challenge = guard.challenge(CLIENT);
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
    fn a_challenge_can_be_answered_for_a_minute_and_its_client_goes_on() {
        let guard = guard();
        let (early, late) = (pass(&guard), pass(&guard));
        let sign = |pass: &Pass, number| pass.sign(number, "GET", "/bytes/1");
        assert!(admitted_after(&guard, &sign(&early, 0), 60));
        assert!(!admitted_after(&guard, &sign(&late, 0), 61));
        assert!(admitted_after(&guard, &sign(&early, 1), 100_000));
        assert!(!admitted_after(&guard, &sign(&early, 1), 100_000), "again");
    }

    #[test]
    fn a_challenge_is_good_for_the_address_that_asked_and_as_it_was_given() {
        let guard = guard();
        let elsewhere = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
        let challenge = guard.challenge(elsewhere);
        let signed = |challenge: &str| Pass::new(SECRET, challenge).sign(0, "GET", "/bytes/1");
        assert!(!admitted(&guard, &signed(&challenge)));
        for at in 0..challenge.len() {
            let mut other = challenge.clone();
            let digit = if &challenge[at..=at] == "0" { "1" } else { "0" };
            other.replace_range(at..=at, digit);
            assert!(!guard.admits(&signed(&other), "GET", "/bytes/1", elsewhere), "{at}");
        }
        for part in ["", &challenge[2..], &challenge[..62]] {
            assert!(!guard.admits(&signed(part), "GET", "/bytes/1", elsewhere), "{part}");
        }
        assert!(guard.admits(&signed(&challenge), "GET", "/bytes/1", elsewhere));
    }

    #[test]
    fn whoever_asks_for_challenges_only_fills_no_memory_and_locks_nobody_out() {
        let guard = guard();
        let first = pass(&guard);
        let given: std::collections::HashSet<String> =
            (0..100_000).map(|_| guard.challenge(CLIENT)).collect();
        assert_eq!(given.len(), 100_000, "no two are the same");
        assert!(guard.answered().is_empty());
        assert!(admitted(&guard, &first.sign(0, "GET", "/bytes/1")));
    }

    #[test]
    fn a_client_is_forgotten_only_when_nothing_of_its_can_be_sent_again() {
        let guard = guard();
        let heard: Vec<String> =
            (0..MOST_ANSWERED).map(|_| pass(&guard).sign(0, "GET", "/bytes/1")).collect();
        assert!(heard.iter().all(|heard| admitted(&guard, heard)));
        let next = pass(&guard).sign(0, "GET", "/bytes/1");
        assert!(!admitted(&guard, &next), "all others could still be sent again");
        assert!(!heard.iter().any(|heard| admitted(&guard, heard)));
        // Made in the first second as the others were, so its time is up as well: one of a later second.
        let later = guard.started + Duration::from_secs(62);
        let made = {
            let mut made = [0; MADE_BYTES];
            made[7] = 62;
            HEX.encode(&made) + &HEX.encode(&guard.seal(&made, CLIENT))
        };
        let signed = Pass::new(SECRET, &made).sign(0, "GET", "/bytes/1");
        assert_eq!(guard.admits_at(&signed, "GET", "/bytes/1", CLIENT, later), Some(true));
        assert_eq!(guard.answered().len(), MOST_ANSWERED);
        assert!(!heard.iter().any(|heard| admitted_after(&guard, heard, 62)));
    }
}
