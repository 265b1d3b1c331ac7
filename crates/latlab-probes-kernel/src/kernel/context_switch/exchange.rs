//! How a number gets to the other side and back.

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use latlab_probes_shared::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::pipe::{PipeFlags, pipe_with};

use latlab_probes_shared::linux::{Scope, wait_while, wake_one};

/// From here on a number is no question and no answer: the receiver ends.
pub(super) const STOP: u32 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pipe,
    Eventfd,
    Futex,
}

/// The words that both sides see, each on lines of its own.
#[repr(C, align(128))]
struct Words {
    there: AtomicU32,
    _apart: [u32; 31],
    back: AtomicU32,
}

/// A page that a forked process shares; unmapped with the last side.
struct SharedPage(*mut Words);

// SAFETY: the page holds nothing but atomics, and stays mapped until the last owner drops it.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    fn new() -> Result<Self> {
        // SAFETY: a fresh shared mapping at an address of the kernel's choice touches nothing of ours.
        let page = unsafe {
            mmap_anonymous(
                null_mut(),
                size_of::<Words>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }
        .map_err(|error| refused("a page to share with another process", error))?;
        Ok(Self(page.cast()))
    }

    fn words(&self) -> &Words {
        // SAFETY: the mapping is aligned to a page, as long as the words, lives as long as this, and zeros
        // are valid.
        unsafe { &*self.0 }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody borrows it any more.
        let _ = unsafe { munmap(self.0.cast(), size_of::<Words>()) };
    }
}

/// Both directions of an exchange.
pub(super) struct Exchange {
    kind: Kind,
    scope: Scope,
    /// Reading and writing ends of the way there, then of the way back; an eventfd is both ends.
    there: Option<(OwnedFd, OwnedFd)>,
    back: Option<(OwnedFd, OwnedFd)>,
    page: SharedPage,
}

impl Exchange {
    pub(super) fn new(kind: Kind, processes: bool) -> Result<Self> {
        let way = || {
            Ok::<_, ProbeError>(match kind {
                Kind::Pipe => Some(pipe_with(PipeFlags::CLOEXEC).map_err(|error| refused("a pipe", error))?),
                Kind::Eventfd => {
                    let counter =
                        eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| refused("an eventfd", error))?;
                    let again =
                        counter.try_clone().map_err(|error| refused("a second file descriptor", error))?;
                    Some((counter, again))
                }
                Kind::Futex => None,
            })
        };
        Ok(Self {
            kind,
            scope: if processes { Scope::Processes } else { Scope::Threads },
            there: way()?,
            back: way()?,
            page: SharedPage::new()?,
        })
    }

    /// The side that asks.
    pub(super) fn home(&self) -> Side<'_> {
        self.side(true)
    }

    /// The side that answers.
    pub(super) fn partner(&self) -> Side<'_> {
        self.side(false)
    }

    /// What it sends it receives itself: the way there only.
    pub(super) fn itself(&self) -> Side<'_> {
        Side { read: self.there.as_ref().map_or(-1, |way| way.0.as_raw_fd()), ..self.side(true) }
    }

    fn side(&self, home: bool) -> Side<'_> {
        let words = self.page.words();
        let [out, inward] = if home { [&self.there, &self.back] } else { [&self.back, &self.there] };
        let [mine, theirs] = if home { [&words.there, &words.back] } else { [&words.back, &words.there] };
        Side {
            kind: self.kind,
            scope: self.scope,
            write: out.as_ref().map_or(-1, |way| way.1.as_raw_fd()),
            read: inward.as_ref().map_or(-1, |way| way.0.as_raw_fd()),
            mine,
            theirs,
            // A partner may begin after the first number was sent; no number is 0.
            seen: Cell::new(if home { theirs.load(Ordering::Acquire) } else { 0 }),
        }
    }

    /// The file descriptors of the side that answers, -1 where it needs none.
    pub(super) fn partners_files(&self) -> [RawFd; 2] {
        let side = self.partner();
        [side.read, side.write]
    }

    /// Wakes whoever of this process waits for an answer, with a number that is none.
    pub(super) fn give_up(&self) {
        self.partner().send(STOP);
    }

    /// Tells the partner to end.
    pub(super) fn stop(&self) {
        self.home().send(STOP);
    }
}

/// One side. Whatever it does is allowed after a fork: it takes no lock, allocates nothing and cannot panic.
pub(super) struct Side<'a> {
    kind: Kind,
    scope: Scope,
    read: RawFd,
    write: RawFd,
    mine: &'a AtomicU32,
    theirs: &'a AtomicU32,
    /// The last number seen in the other side's word.
    seen: Cell<u32>,
}

impl Side<'_> {
    /// Sends a number; whether that was possible.
    #[inline]
    pub(super) fn send(&self, token: u32) -> bool {
        match self.kind {
            Kind::Pipe => put(self.write, &token.to_ne_bytes()),
            Kind::Eventfd => put(self.write, &u64::from(token).to_ne_bytes()),
            Kind::Futex => {
                self.mine.store(token, Ordering::Release);
                wake_one(self.mine, self.scope).is_some()
            }
        }
    }

    /// Sleeps until a number comes. `None` when none can come any more.
    #[inline]
    pub(super) fn receive(&self) -> Option<u32> {
        match self.kind {
            Kind::Pipe => {
                let mut token = [0; 4];
                get(self.read, &mut token).then_some(u32::from_ne_bytes(token))
            }
            Kind::Eventfd => {
                let mut sum = [0; 8];
                // Two numbers that were sent before one was received are added up: no number that was
                // expected.
                get(self.read, &mut sum).then_some(u32::try_from(u64::from_ne_bytes(sum)).unwrap_or(STOP))
            }
            Kind::Futex => {
                let token = wait_while(self.theirs, self.seen.get(), self.scope)?;
                self.seen.set(token);
                Some(token)
            }
        }
    }
}

/// Writes all bytes at once; none is written in parts, because a pipe keeps so few together.
#[inline]
fn put(file: RawFd, bytes: &[u8]) -> bool {
    loop {
        // SAFETY: the bytes are ours, and as many as said.
        let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        if written == bytes.len().cast_signed() {
            return true;
        }
        if written >= 0 || !interrupted() {
            return false;
        }
    }
}

#[inline]
fn get(file: RawFd, bytes: &mut [u8]) -> bool {
    loop {
        // SAFETY: the bytes are ours, and as many as said.
        let read = unsafe { libc::read(file, bytes.as_mut_ptr().cast(), bytes.len()) };
        if read == bytes.len().cast_signed() {
            return true;
        }
        if read >= 0 || !interrupted() {
            return false;
        }
    }
}

#[cold]
fn interrupted() -> bool {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() == libc::EINTR }
}
