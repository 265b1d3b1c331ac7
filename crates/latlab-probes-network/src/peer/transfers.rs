//! Transfers as they are asked of a client, and what it says of them.

use std::time::Duration;

use latlab_net::fetch::Phase;
use serde::{Deserialize, Serialize};

use super::names::{Engine, Protocol};

/// Some transfers of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) bytes: u64,
    /// Transfers under way at once.
    pub(crate) workers: u32,
    pub(crate) count: u32,
    /// Whether each worker keeps its connection.
    pub(crate) kept: bool,
    pub(crate) protocol: Protocol,
    /// For all of them together.
    pub(crate) patience: Duration,
    /// Whose program; none is our own client.
    pub(crate) library: Option<Engine>,
}

/// The stamps of one transfer, nanoseconds since a moment before the first; 0 for a phase that there was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    pub(crate) begun: u64,
    pub(crate) resolved: u64,
    pub(crate) connected: u64,
    pub(crate) secured: u64,
    pub(crate) requested: u64,
    pub(crate) first_byte: u64,
    pub(crate) last_byte: u64,
    /// Of the body.
    #[serde(default)]
    pub(crate) bytes: u64,
}

impl Stamped {
    pub(super) fn set(&mut self, phase: Phase, at: u64) {
        *match phase {
            Phase::Resolve => &mut self.resolved,
            Phase::Connect => &mut self.connected,
            Phase::Tls => &mut self.secured,
            Phase::Request => &mut self.requested,
            Phase::FirstByte => &mut self.first_byte,
            Phase::LastByte => &mut self.last_byte,
        } = at;
    }

    /// Each phase that there was, with its two ends.
    pub(crate) fn phases(&self) -> Vec<(&'static str, u64, u64)> {
        let ends = [
            ("resolve", self.resolved),
            ("connect", self.connected),
            ("tls", self.secured),
            ("request", self.requested),
            ("first-byte", self.first_byte),
            ("last-byte", self.last_byte),
        ];
        let mut from = self.begun;
        let mut phases = Vec::with_capacity(ends.len());
        for (name, to) in ends {
            if to > 0 {
                phases.push((name, from, to));
                from = to;
            }
        }
        phases
    }

    pub(crate) fn ns(&self) -> u64 {
        self.last_byte.saturating_sub(self.begun)
    }
}

/// What was done, with the stamps of each transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transferred {
    pub(crate) stamped: Vec<Stamped>,
    /// Connections that were opened for it.
    pub(crate) connections: u64,
}
