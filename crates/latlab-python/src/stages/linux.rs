//! Linux: the ring of the environment, or one of this process's own.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use latlab_stages::writer::{self, Ring};
use latlab_stages::{Heard, Listener};

/// Slots of the ring of a program that listens to itself: 4 MiB.
const SLOTS: u32 = 1 << 16;
/// How often it is read; a ring this large is not overwritten in the meantime.
const EVERY: Duration = Duration::from_millis(5);

/// Of this process, when it listens to itself.
static OWN: OnceLock<Ring> = OnceLock::new();
static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);
/// The process that listens: in a child by fork nobody does, and the lock may be held for ever.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Where marks go; `None`: nobody listens.
pub(crate) fn ring() -> Option<&'static Ring> {
    OWN.get().or_else(writer::ring)
}

/// Listens to this process and to what it forks, until it ends.
pub(crate) fn start() -> io::Result<()> {
    let process = PROCESS.load(Ordering::Relaxed);
    if process != 0 && process != std::process::id() {
        return Err(io::Error::other("the parent of this process records its stages"));
    }
    let mut listening = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    if listening.is_some() {
        return Ok(());
    }
    let listener = Listener::new(SLOTS)?;
    // SAFETY: the listener stays in `LISTENER` until the process ends.
    if let Some(ring) = unsafe { listener.ring().writer() } {
        let _ = OWN.set(ring);
    }
    *listening = Some(listener);
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    std::thread::Builder::new().name("latlab-stages".to_owned()).spawn(|| {
        loop {
            std::thread::sleep(EVERY);
            with_listener(|listener| listener.drain(|_| ()));
        }
    })?;
    Ok(())
}

/// What was heard so far.
pub(crate) fn heard() -> Option<Heard> {
    with_listener(|listener| {
        listener.drain(|_| ());
        listener.heard()
    })
}

/// What the environment of children must hold; empty when nobody listens.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    with_listener(|listener| listener.environment().to_vec()).unwrap_or_default()
}

fn with_listener<T>(what: impl FnOnce(&mut Listener) -> T) -> Option<T> {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return None;
    }
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(what)
}
