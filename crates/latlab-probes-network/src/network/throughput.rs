//! `network.throughput`: as many bytes as will go, one way, by one stream or several at once.

use std::io::{BufRead, Write};

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Spec, Support, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::json;

use crate::peer::support_beside;
use latlab_probes_shared::other_cpu;

#[cfg_attr(target_os = "linux", path = "throughput/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "throughput/elsewhere.rs")]
mod work;

/// The probe.
pub struct Throughput;

static SPEC: Spec = Spec {
    id: "network.throughput",
    tier: Tier::Network,
    title: "throughput by streams",
    question: "How many bytes a second go to another process through sockets, and do several connections carry more than one?",
    method: "Each stream is a connection with a thread at either end: one here that sends messages of one size, one in a process of its own that takes what comes, 128 KiB at once at most. A value is the rate of all streams together in one window of some milliseconds. \
Counted are bytes that the receiving program has taken out of its sockets, in memory that both processes see, so that nothing is counted that lies in a buffer, and nothing waits to be acknowledged; the time stamps are taken here, beside the counters. \
A connection is made anew for each visit to a point and sends for some milliseconds before the first window: windows and buffers of TCP grow in that time. \
Several streams that may go anywhere send for 0.3 seconds first, in which the system spreads them over the CPUs, and go on into the block without a rest: after one they carry less for some hundredths of a second.

Where the two ends run decides the figure and is part of the point. anywhere: the system moves the threads as it likes, as it does with other programs; each stream begins on a CPU of its own, in turn, because the system takes tenths of a second to spread threads that start on one, and four streams carry half as much until then. same-cpu: both ends of a stream share a CPU, streams on one CPU after the other. \
across-blocking: the sender is on one CPU and the receiver on another. On loopback the sender's call does the work of both sides up to the receiver's buffer, and waking a receiver on an idle CPU costs the sender too.

TCP goes through the loopback interface, 127.0.0.1 or where that is missing ::1, without Nagle's algorithm; a Unix stream socket goes past the network's layers. Message is what one call hands over, not a packet.

Proof: the contents come from a seed that the receiver never learns. Both ends take the first word of each 4 KiB of the stream, and of each MiB one page whole, into a number that depends on every word and on their order; the numbers and the counts of bytes must be the same at both ends of every stream. \
Comparing every byte would be a second reading of all of them (as in network.roundtrip, where it is not timed). What TCP says of its connections (TCP_INFO) is kept as evidence: round trip, congestion window, segments sent again, and for what share of the time the receiver's or the sender's buffer was the limit. \
A receiver that takes nothing is not waited for longer than seconds. The receiving process ends with this one, however that ends.",
    method_version: 2,
    unit: Unit::BytesPerS,
    convention: "bytes taken out of the sockets by the receiving program, without any header",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface, a child process, all allowed CPUs"],
    saturates: true,
    operations: Operations::Unwatched,
};

const TCP: &str = "tcp";
const UNIX: &str = "unix";
const ANYWHERE: &str = "anywhere";
const SAME: &str = "same-cpu";
const ACROSS: &str = "across-blocking";
/// What most tools send at once.
const USUAL: u64 = 128 << 10;
/// Transport, message, streams, placement, priority; in the order in which they are given up last.
const POINTS: [(&str, u64, u32, &str, u8); 14] = [
    (TCP, USUAL, 1, ANYWHERE, 0),
    (TCP, USUAL, 4, ANYWHERE, 0),
    (TCP, USUAL, 1, SAME, 1),
    (TCP, USUAL, 1, ACROSS, 1),
    (TCP, USUAL, 4, SAME, 1),
    (UNIX, USUAL, 1, ANYWHERE, 1),
    (TCP, USUAL, 2, ANYWHERE, 2),
    (TCP, 1 << 10, 1, ANYWHERE, 2),
    (TCP, 16 << 10, 1, ANYWHERE, 2),
    (TCP, USUAL, 8, ANYWHERE, 3),
    (TCP, 64, 1, ANYWHERE, 3),
    (TCP, 1 << 20, 1, ANYWHERE, 3),
    (UNIX, USUAL, 4, ANYWHERE, 3),
    (TCP, USUAL, 16, ANYWHERE, 4),
];
/// More streams than this for each CPU tell nothing new.
const STREAMS_PER_CPU: usize = 4;

/// As long several streams that may go anywhere run before the first block of a visit, s: so long the system takes to spread them over the CPUs.
const SPREADING_S: f64 = 0.3;

/// How a block is spent.
#[derive(Clone, Copy)]
struct Pace {
    /// From a connection's first byte to its first block, s, without a rest between them; 0 where it begins with the block.
    spreading_s: f64,
    /// From a connection's first byte to its first window, s.
    fresh_s: f64,
    /// From going on to the next window, s.
    again_s: f64,
    window_s: f64,
    windows: u32,
}

impl Pace {
    fn of(profile: Profile, placement: &str, streams: u32) -> Self {
        // The system has to spread them, anew after each rest.
        let spread = placement == ANYWHERE && streams > 1;
        Self {
            spreading_s: if spread { SPREADING_S } else { 0.0 },
            fresh_s: profile.of([4e-3, 10e-3, 20e-3]),
            again_s: 1e-3,
            // The system moves such streams all the time: short blocks differ from each other, by whom they met together.
            window_s: profile.of([2e-3, if spread { 10e-3 } else { 4e-3 }, 10e-3]),
            windows: profile.of([4, 6, 10]),
        }
    }

    fn windows_s(self) -> f64 {
        self.window_s * f64::from(self.windows)
    }
}

impl AnyProbe for Throughput {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        support_beside(work::HERE, env, "a child process that receives", "both ends of every stream share it")
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let two = other_cpu(env).is_some();
        POINTS
            .into_iter()
            // On one CPU they can be nowhere else.
            .filter(|(_, _, _, placement, _)| two || *placement == ANYWHERE)
            .filter(|(_, _, streams, ..)| *streams as usize <= STREAMS_PER_CPU * env.cpus.len())
            .map(|(transport, bytes, streams, placement, priority)| {
                let pace = Pace::of(env.settings.profile, placement, streams);
                Planned {
                    rank: match (transport, bytes, streams, placement) {
                        (TCP, USUAL, 1, ANYWHERE) => env.headline_but_quick(Rank::Curve),
                        (TCP, _, _, ANYWHERE) => Rank::Curve,
                        _ => Rank::Detail,
                    },
                    priority,
                    setup_s: 1e-3 + 0.3e-3 * f64::from(streams) + pace.spreading_s,
                    block_s: pace.fresh_s + pace.windows_s() + 1e-3,
                    ..Planned::new(Point {
                        transport: Some(transport.to_owned()),
                        message_bytes: Some(bytes),
                        streams: Some(streams),
                        placement: Some(placement.to_owned()),
                        ..Point::default()
                    })
                }
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        // What each thread sends from or receives into; a message of 1 MiB goes by one stream.
        let most = POINTS.iter().map(|(_, _, streams, ..)| *streams).max().unwrap_or(1);
        (2 << 20) + u64::from(most) * 2 * USUAL
    }

    fn cpus(&self, env: &Env) -> u32 {
        u32::try_from(env.cpus.len()).unwrap_or(u32::MAX)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let usual = |transport: &str, placement: &str, streams: u32| {
            results
                .iter()
                .find(|result| {
                    let point = &result.point;
                    point.transport.as_deref() == Some(transport)
                        && point.message_bytes == Some(USUAL)
                        && point.placement.as_deref() == Some(placement)
                        && point.streams == Some(streams)
                })
                .map(|result| result.p50)
        };
        let Some(one) = usual(TCP, ANYWHERE, 1) else {
            return Vec::new();
        };
        let streams: Vec<_> = [1, 2, 4, 8, 16]
            .into_iter()
            .filter_map(|streams| Some((streams, usual(TCP, ANYWHERE, streams)?)))
            .map(|(streams, rate)| json!({ "streams": streams, "bytes_per_s": rate, "over_one": rate / one }))
            .collect();
        vec![SPEC.derived(json!({
            "message_bytes": USUAL,
            "streams": streams,
            "same_cpu_bytes_per_s": usual(TCP, SAME, 1),
            "across_bytes_per_s": usual(TCP, ACROSS, 1),
            "unix_bytes_per_s": usual(UNIX, ANYWHERE, 1),
        }))]
    }
}

/// The receivers' process.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    work::serve(input, output)
}

#[cfg(test)]
mod tests;
