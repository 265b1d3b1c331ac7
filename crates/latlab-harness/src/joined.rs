//! Threads that do not outlive their owner.

use std::thread::JoinHandle;

/// A thread that is waited for when this is dropped. What tells it to end is dropped, or done, before.
#[derive(Debug)]
pub struct Joined<T = ()>(pub Option<JoinHandle<T>>);

impl<T> From<JoinHandle<T>> for Joined<T> {
    fn from(thread: JoinHandle<T>) -> Self {
        Self(Some(thread))
    }
}

impl<T> Drop for Joined<T> {
    fn drop(&mut self) {
        // One that panicked has already failed what it was for.
        let _ = self.0.take().map(JoinHandle::join);
    }
}
