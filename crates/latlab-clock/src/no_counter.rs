//! Architectures whose cycle counter is not known here: the operating system's clock is used.

use std::sync::atomic::{Ordering, fence};

use crate::{ClockKind, TimeSource, Unusable};

/// There is none on this architecture.
#[derive(Clone, Copy, Debug)]
pub enum HardwareClock {}

impl TimeSource for HardwareClock {
    #[inline(always)]
    fn begin(&self) -> u64 {
        match *self {}
    }
}

/// Never reported, since [`open`] fails.
pub(crate) const KIND: ClockKind = ClockKind::Os;

pub(crate) fn invariant() -> Option<bool> {
    None
}

pub(crate) fn open() -> Result<HardwareClock, Unusable> {
    Err(Unusable::Architecture(std::env::consts::ARCH))
}

pub(crate) fn fences(clock: HardwareClock) -> String {
    match clock {}
}

/// Orders loads for other cores; whether it also stops early execution depends on the architecture.
#[inline(always)]
pub(crate) fn fence_loads() {
    fence(Ordering::SeqCst);
}

/// No assembly loop is written for this architecture, and a compiler may shorten any other.
pub(crate) const DEPENDENT_ADDS: Option<fn(u64) -> u64> = None;
