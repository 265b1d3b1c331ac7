//! Threads that do not outlive their owner.

use std::io;
use std::thread::{Builder, JoinHandle};

/// A thread that is waited for when this is dropped. What tells it to end is dropped, or done, before.
#[derive(Debug)]
pub(crate) struct Joined<T = ()>(Option<JoinHandle<T>>);

impl<T: Send + 'static> Joined<T> {
    pub(crate) fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        Ok(Self(Some(Builder::new().name(name.to_owned()).spawn(work)?)))
    }
}

impl<T> Joined<T> {
    /// What it returns; none when it panicked, or was asked before.
    pub(crate) fn join(&mut self) -> Option<T> {
        self.0.take()?.join().ok()
    }
}

impl<T> Drop for Joined<T> {
    fn drop(&mut self) {
        // A panic has been printed; there is nothing left to end.
        self.join();
    }
}
