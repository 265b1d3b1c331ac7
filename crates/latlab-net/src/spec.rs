//! What is asked for: a path between two sides, and what carries their messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// A Unix stream socket.
    Unix,
}

/// What a path is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSpec {
    /// The delay of a round trip, microseconds: half of it each way.
    pub rtt_us: u64,
    /// Bits a second in each direction; as fast as it goes when there is none.
    pub rate_bit_per_s: Option<u64>,
    /// Bytes that wait for a link with a rate before more are dropped; 100 ms of the rate when there is none.
    pub queue_bytes: Option<u64>,
}

impl PathSpec {
    /// A path by its name: `same-rack`, `same-city`, `london-california`.
    pub fn preset(name: &str) -> Option<Self> {
        let rtt_us = match name {
            // Through one switch.
            "same-rack" => 100,
            "same-city" => 2_000,
            // The usual figure; light in fibre along the great circle (8,600 km) takes 84 ms.
            "london-california" => 140_000,
            _ => return None,
        };
        Some(Self { rtt_us, rate_bit_per_s: None, queue_bytes: None })
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn one_way_ns(&self) -> u64 {
        self.rtt_us * 500
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn queue(&self) -> u64 {
        let tenth_second = self.rate_bit_per_s.map_or(u64::MAX, |rate| (rate / 80).max(64 << 10));
        self.queue_bytes.unwrap_or(tenth_second)
    }
}
