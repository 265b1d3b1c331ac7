//! Keeps every wait bounded without a timeout in the exchange, which would set a timer in each round trip.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use latlab_probes_shared::prelude::*;

use super::exchange::Exchange;
use super::partner::{Partner, state};
use latlab_probes_shared::linux::Task;
use latlab_probes_shared::{Joined, start_thread};

/// How often it checks: rarely enough to be one window in hundreds, often enough that nobody waits long for
/// the dead.
const EVERY: Duration = Duration::from_millis(50);

/// What is being waited for.
struct Waiting {
    until: Instant,
    exchange: Arc<Exchange>,
    partner: Option<Task>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Option<Waiting>>,
    fired: AtomicBool,
    ended: AtomicBool,
}

/// A thread that sends an answer that is none when a partner is dead or silent for too long.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Joined,
    patience: Duration,
}

impl Watch {
    pub(super) fn start(patience: Duration) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = start_thread("watch", "starting a thread that watches the exchange", move || {
            while !theirs.ended.load(Ordering::Acquire) {
                std::thread::park_timeout(EVERY);
                theirs.check();
            }
        })?;
        Ok(Self { shared, thread: thread.into(), patience })
    }

    /// A block begins.
    pub(super) fn begin(&self, exchange: &Arc<Exchange>, partner: Option<&Partner>) {
        self.shared.fired.store(false, Ordering::Release);
        self.shared.set(Some(Waiting {
            until: Instant::now() + self.patience,
            exchange: Arc::clone(exchange),
            partner: partner.map(|partner| partner.task),
        }));
    }

    /// A block is over; whether it was given up.
    pub(super) fn end(&self) -> bool {
        self.shared.set(None);
        self.shared.fired.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.thread.0.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Shared {
    fn set(&self, waiting: Option<Waiting>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }

    fn check(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = &*waiting else { return };
        let dead = own.partner.is_some_and(|partner| state(partner).is_some());
        if dead || Instant::now() >= own.until {
            self.fired.store(true, Ordering::Release);
            own.exchange.give_up();
            *waiting = None;
        }
    }
}
