//! `network.throughput`: as many bytes as will go, one way, by one stream or several at once.

use std::net::IpAddr;

#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use crate::peer::{Transport, support_beside};
use latlab_probes_shared::other_cpu;
use latlab_probes_shared::prelude::*;

#[cfg(target_os = "linux")]
#[path = "throughput/linux.rs"]
mod work;

/// The probe.
pub struct Throughput;

/// What most tools send at once.
const USUAL: usize = 128 << 10;
/// Transport, message, streams, placement, priority; in the order in which they are given up last.
const POINTS: [(Transport, usize, u32, Placement, u8); 14] = [
    (Transport::Tcp, USUAL, 1, Placement::Anywhere, 0),
    (Transport::Tcp, USUAL, 4, Placement::Anywhere, 0),
    (Transport::Tcp, USUAL, 1, Placement::SameCpu, 1),
    (Transport::Tcp, USUAL, 1, Placement::AcrossBlocking, 1),
    (Transport::Tcp, USUAL, 4, Placement::SameCpu, 1),
    (Transport::Unix, USUAL, 1, Placement::Anywhere, 1),
    (Transport::Tcp, USUAL, 2, Placement::Anywhere, 2),
    (Transport::Tcp, 1 << 10, 1, Placement::Anywhere, 2),
    (Transport::Tcp, 16 << 10, 1, Placement::Anywhere, 2),
    (Transport::Tcp, USUAL, 8, Placement::Anywhere, 3),
    (Transport::Tcp, 64, 1, Placement::Anywhere, 3),
    (Transport::Tcp, 1 << 20, 1, Placement::Anywhere, 3),
    (Transport::Unix, USUAL, 4, Placement::Anywhere, 3),
    (Transport::Tcp, USUAL, 16, Placement::Anywhere, 4),
];
/// More streams than this for each CPU tell nothing new.
const STREAMS_PER_CPU: usize = 4;

/// As long several streams that may go anywhere run before the first block of a visit, s: so long the system
/// takes to spread them over the CPUs.
const SPREADING_S: f64 = 0.3;

/// How a block is spent.
#[derive(Clone, Copy)]
struct Pace {
    /// From a connection's first byte to its first block, s, without a rest between them; 0 where it begins
    /// with the block.
    spreading_s: f64,
    /// From a connection's first byte to its first window, s.
    fresh_s: f64,
    /// From going on to the next window, s.
    again_s: f64,
    window_s: f64,
    windows: u32,
}

impl Pace {
    fn of(profile: Profile, point: Connections) -> Self {
        // The system has to spread them, anew after each rest.
        let spread = point.placement == Placement::Anywhere && point.streams > 1;
        Self {
            spreading_s: if spread { SPREADING_S } else { 0.0 },
            fresh_s: profile.of([4e-3, 10e-3, 20e-3]),
            again_s: 1e-3,
            // The system moves such streams all the time: short blocks differ from each other, by whom they
            // met together.
            window_s: profile.of([2e-3, if spread { 10e-3 } else { 4e-3 }, 10e-3]),
            windows: profile.of([4, 6, 10]),
        }
    }

    fn windows_s(self) -> f64 {
        self.window_s * f64::from(self.windows)
    }
}

/// Several connections, or one, that carry bytes at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    transport: Transport,
    /// What one call hands over.
    message_bytes: usize,
    streams: u32,
    placement: Placement,
}

/// Where the two ends of a stream run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Placement {
    Anywhere,
    SameCpu,
    AcrossBlocking,
}

/// What was carried at a point, by whom.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// Where the streams went; none of a Unix socket.
    address: Option<IpAddr>,
    /// The CPUs that senders could use, streams in turn.
    from_cpus: Vec<Vec<u32>>,
    /// The same of receivers.
    to_cpus: Vec<Vec<u32>>,
    /// Rate of each stream in all windows.
    stream_bytes_per_s: Vec<f64>,
    /// The slowest stream's rate over the fastest one's, where there are several.
    least_over_most: Option<f64>,
    /// CPU time of a sending thread over the time in which it was sending.
    sender_cpu_share: Option<f64>,
    /// The same of a receiving thread.
    receiver_cpu_share: Option<f64>,
    /// None where a socket is no TCP socket, or the system does not tell.
    tcp: Option<Tcp>,
}

/// What TCP says of its connections: medians over streams and blocks.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Tcp {
    /// Smoothed round trip.
    rtt_ns: f64,
    rtt_ns_least_most: [f64; 2],
    /// Shortest round trip.
    min_rtt_ns: Option<f64>,
    /// Segments that may be under way.
    congestion_window_segments: f64,
    congestion_window_least_most: [f64; 2],
    segment_bytes: f64,
    /// Segments sent again, of the connection that had most.
    most_retransmits_of_a_connection: Option<u32>,
    /// What TCP reckons to deliver.
    delivery_bytes_per_s: f64,
    /// For what share of the time in which there was something to send the receiver's buffer was the limit.
    receiver_limited_share: Option<f64>,
    /// The same of the sender's buffer.
    buffer_limited_share: Option<f64>,
}

/// Rates of the usual message by TCP, unless said otherwise.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    message_bytes: usize,
    /// Of streams that may go anywhere.
    streams: Vec<Together>,
    /// One stream with both ends on one CPU.
    same_cpu_bytes_per_s: Option<f64>,
    /// One stream between two CPUs.
    across_bytes_per_s: Option<f64>,
    /// One stream through a Unix socket.
    unix_bytes_per_s: Option<f64>,
}

/// Several streams against one.
#[derive(Serialize, JsonSchema)]
struct Together {
    streams: u32,
    /// Of all together.
    bytes_per_s: f64,
    over_one: f64,
}

impl Probe for Throughput {
    type Point = Connections;
    type Evidence = work::Evidence;
    type Details = Carried;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.throughput",
        tier: Tier::Network,
        title: "throughput by streams",
        question: "How many bytes a second go to another process through sockets, and do several \
            connections carry more than one?",
        method: "Each stream is a connection with a thread at either end: one here that sends messages of \
            one size, one in a process of its own that reads what arrives, at most 128 KiB at a time. A \
            value is the rate of all streams together in one window of some milliseconds. \
Counted are bytes that the receiving program has taken out of its sockets, in memory that both processes \
see, so that nothing is counted that is still in a buffer, and nothing waits to be acknowledged; the time \
stamps are taken here, beside the counters. \
A new connection is opened for each visit to a point and sends for some milliseconds before the first \
window: windows and buffers of TCP grow in that time. \
Several streams that may go anywhere send for 0.3 seconds first, in which the system spreads them over the \
CPUs, and continue into the block without a pause: after one they carry less for some hundredths of a second.

Where the two ends run decides the figure and is part of the point. anywhere: the system places the \
threads, as it does with other programs; each stream begins on a CPU of its own, in turn, because the \
system takes tenths of a second to spread threads that start on one, and four streams carry half as much \
until then. same-cpu: both ends of a stream share a CPU, streams on one CPU after the other. \
across-blocking: the sender is on one CPU and the receiver on another. On loopback the sender's call does \
the work of both sides up to the receiver's buffer, and waking a receiver on an idle CPU costs the sender too.

TCP goes through the loopback interface, 127.0.0.1 or where that is missing ::1, without Nagle's algorithm; \
a Unix stream socket goes past the network's layers. Message is what one call hands over, not a packet.

Proof: the contents come from a seed that the receiver never learns. Both ends take the first word of each \
4 KiB of the stream, and of each MiB one page whole, into a number that depends on every word and on their \
order; the numbers and the counts of bytes must be the same at both ends of every stream. \
Comparing every byte would be a second reading of all of them (as in network.roundtrip, where it is not \
timed). What TCP reports of its connections (TCP_INFO) is kept as evidence: round trip, congestion window, \
segments sent again, and for what share of the time the receiver's or the sender's buffer was the limit. \
A receiver that reads nothing ends the point after some seconds. The receiving process ends with this one, \
however that ends.",
        method_version: 2,
        unit: Unit::BytesPerS,
        convention: "bytes taken out of the sockets by the receiving program, without any header",
        needs: &["child processes"],
        touches: &["sockets on the loopback interface, a child process, all allowed CPUs"],
        saturates: true,
        operations: Operations::Unwatched,
    };

    fn plan(&self, env: &Env) -> Plan<Connections> {
        let support = support_beside(
            work::HERE,
            env,
            "a child process that receives",
            "both ends of every stream share it",
        );
        let two = other_cpu(env).is_some();
        let points = POINTS
            .into_iter()
            // On one CPU they can be nowhere else.
            .filter(|(_, _, _, placement, _)| two || *placement == Placement::Anywhere)
            .filter(|(_, _, streams, ..)| *streams as usize <= STREAMS_PER_CPU * env.cpus.len())
            .map(|(transport, message_bytes, streams, placement, priority)| {
                planned(env, Connections { transport, message_bytes, streams, placement }, priority)
            });
        // What each thread sends from or receives into; a message of 1 MiB goes by one stream.
        let most = POINTS.iter().map(|(_, _, streams, ..)| u64::from(*streams)).max().unwrap_or(1);
        Plan::of(points.collect())
            .given(support)
            .memory((2 << 20) + most * 2 * USUAL as u64)
            .cpus(u32::try_from(env.cpus.len()).unwrap_or(u32::MAX))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Connections]) -> Result<work::Session<'env>> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let usual = |transport, placement, streams| {
            let point = Connections { transport, message_bytes: USUAL, streams, placement };
            Some(result_at(figures, &point)?.p50)
        };
        let anywhere = |streams| usual(Transport::Tcp, Placement::Anywhere, streams);
        let one = anywhere(1)?;
        let together = [1, 2, 4, 8, 16].into_iter().filter_map(|streams| {
            let bytes_per_s = anywhere(streams)?;
            Some(Together { streams, bytes_per_s, over_one: bytes_per_s / one })
        });
        Some(Findings {
            message_bytes: USUAL,
            streams: together.collect(),
            same_cpu_bytes_per_s: usual(Transport::Tcp, Placement::SameCpu, 1),
            across_bytes_per_s: usual(Transport::Tcp, Placement::AcrossBlocking, 1),
            unix_bytes_per_s: usual(Transport::Unix, Placement::Anywhere, 1),
        })
    }
}

fn planned(env: &Env, point: Connections, priority: u8) -> Planned<Connections> {
    let pace = Pace::of(env.settings.profile, point);
    let rank = match (point.transport, point.message_bytes, point.streams, point.placement) {
        (Transport::Tcp, USUAL, 1, Placement::Anywhere) => env.headline_but_quick(Rank::Curve),
        (Transport::Tcp, _, _, Placement::Anywhere) => Rank::Curve,
        _ => Rank::Detail,
    };
    Planned {
        rank,
        priority,
        setup_s: 1e-3 + 0.3e-3 * f64::from(point.streams) + pace.spreading_s,
        block_s: pace.fresh_s + pace.windows_s() + 1e-3,
        ..Planned::new(point)
    }
}

#[cfg(test)]
mod tests;
