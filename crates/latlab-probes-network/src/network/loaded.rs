//! `network.loaded`: what a round trip takes while other connections carry all that they can.

use std::net::IpAddr;

use latlab_net::PathSpec;
use latlab_probes_shared::prelude::*;

#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use super::roundtrip::Placement;
use crate::peer::{PathKind, RouteDetails, Transport, path_asked, support_beside};
use latlab_probes_shared::other_cpu;

#[cfg(target_os = "linux")]
#[path = "loaded/linux.rs"]
mod work;

/// The probe.
pub struct Loaded;

const MESSAGE: usize = 64;
/// What most tools send at once.
const LOAD_MESSAGE: usize = 128 << 10;
const STREAMS: [(u32, u8); 3] = [(0, 0), (4, 0), (1, 1)];

/// How a block is spent.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// From the first byte of new streams to the first trip, s.
    fresh_s: f64,
    /// The same of streams that have rested.
    again_s: f64,
    /// Trips are begun for so long, s.
    trips_s: f64,
    least_trips: u64,
}

impl Pace {
    fn of(profile: Profile, path: Option<&PathSpec>) -> Self {
        let loopback = Self {
            fresh_s: profile.of([4e-3, 10e-3, 20e-3]),
            again_s: 2e-3,
            trips_s: profile.of([6e-3, 15e-3, 50e-3]),
            least_trips: 8,
        };
        let Some(path) = path else { return loopback };
        let rtt_s = path.rtt_us as f64 * 1e-6;
        Self {
            // Slow start doubles once a round trip until the path and its queue are full.
            fresh_s: 0.1 + 10.0 * rtt_s,
            again_s: 0.05 + 5.0 * rtt_s,
            trips_s: profile.of([0.05, 0.1, 0.3]) + 2.0 * rtt_s,
            least_trips: 4,
        }
    }

    /// Seconds of a block whose trips take so long.
    fn block_s(self, trip_s: f64, loaded: bool) -> f64 {
        let settling = if loaded { self.fresh_s } else { 0.0 };
        settling + self.trips_s.max(self.least_trips as f64 * trip_s)
    }
}

/// What the plan reckons for a round trip, s.
fn trip_s(path: Option<&PathSpec>, streams: u32) -> f64 {
    let wakes = 60e-6;
    let queued = path.map_or(0.0, |path| {
        let queue = if streams > 0 && path.rate_bit_per_s.is_some() { 0.1 } else { 0.0 };
        path.rtt_us as f64 * 1e-6 + queue
    });
    wakes + queued
}

/// Round trips, and the streams that run beside them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    path: PathKind,
    transport: Transport,
    message_bytes: usize,
    streams: u32,
    placement: Placement,
}

/// What a point's trips and its streams came to.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Of the side that answers.
    address: Option<IpAddr>,
    /// How many trips one after the other fit in a minute, from the mean.
    round_trips_per_minute: Option<f64>,
    /// What the streams carried together in the time of the trips.
    load_bytes_per_s: f64,
    route: RouteDetails,
}

/// Loaded against idle on each path.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    paths: Vec<OnPath>,
}

/// On one path.
#[derive(Serialize, JsonSchema)]
struct OnPath {
    path: PathKind,
    idle_p50_ns: f64,
    idle_round_trips_per_minute: Option<f64>,
    loaded: Vec<Slowed>,
}

/// A round trip beside so many streams.
#[derive(Serialize, JsonSchema)]
struct Slowed {
    streams: u32,
    p50_ns: f64,
    over_idle: f64,
    added_ns: f64,
    load_bytes_per_s: Option<f64>,
    round_trips_per_minute: Option<f64>,
}

impl Probe for Loaded {
    type Point = Beside;
    type Evidence = work::Evidence;
    type Details = Details;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.loaded",
        tier: Tier::Network,
        title: "round trip while throughput runs",
        question: "How much longer does a message and its answer take while other connections carry all \
            that they can?",
        method: "A client sends one message of 64 bytes by TCP and waits for its answer; then the next, as \
            in network.roundtrip with the two sides on two CPUs (where there are two) and asleep while they \
            wait. Meanwhile one or several streams, as in network.throughput, send to the same side as fast \
            as they can. \
A value is one round trip, there and back. The idle point is taken between the loaded ones like any other.

Over an emulated path (--delay, --rate, --distance) the streams fill the queue before its slowest link, and \
a round trip waits in that queue too (bufferbloat). It is at most the queue's length over the rate, unless \
TCP keeps the queue shorter. \
Messages and streams share the path in both directions; what carries the path has CPUs of its own where \
there are any. On the loopback there is no such queue: what is added there is other threads on the CPUs and \
in the kernel, the software's own share of it, and is shown beside every emulated figure.

Round trips a minute is how many such trips one after the other fit in a minute, from the mean (what is \
called responsiveness, in round trips of an open connection; the published measures add handshakes and \
servers). \
Each trip counts once, so that times in which they are short have more of them: the share of time, not of \
trips, that is slow is larger than the curve says.

The streams send for some milliseconds, over a path for ten round trips of it, before the first trip that \
counts. The load is what they carried during these trips. Proof: that of network.roundtrip for every \
answer, and that of network.throughput for every stream. \
Where no path can be emulated, an emulated point fails with the reason: a server that waits before it \
answers has no queue.",
        method_version: 1,
        unit: Unit::Ns,
        convention: "one message there and its answer back, while streams run",
        needs: &["child processes"],
        touches: &["sockets on the loopback interface or a private one, child processes, all allowed CPUs"],
        saturates: true,
        operations: Operations::Unwatched,
    };

    fn plan(&self, env: &Env) -> Plan<Beside> {
        let asked = match path_asked(&env.settings) {
            Ok(asked) => asked,
            Err(reason) => return Plan::no(reason),
        };
        let support = support_beside(
            work::HERE,
            env,
            "child processes that answer and receive",
            "a round trip beside streams waits for the CPU first of all",
        );
        // What was asked for first.
        let paths =
            asked.iter().map(|spec| (PathKind::Emulated, Some(spec))).chain([(PathKind::Loopback, None)]);
        let points = paths.zip(0..).flat_map(|((path, spec), group)| {
            STREAMS.map(|(streams, priority)| planned(env, (path, spec), streams, priority, group))
        });
        Plan::of(points.collect())
            .given(support)
            // What each stream's threads send from and receive into.
            .memory(4 * 2 * LOAD_MESSAGE as u64 + (1 << 20))
            .cpus(u32::try_from(env.cpus.len()).unwrap_or(u32::MAX))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Beside]) -> Result<work::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let paths: Vec<OnPath> = [PathKind::Loopback, PathKind::Emulated]
            .into_iter()
            .filter_map(|path| on_path(figures, path))
            .collect();
        (!paths.is_empty()).then_some(Findings { paths })
    }
}

fn planned(
    env: &Env,
    (path, spec): (PathKind, Option<&PathSpec>),
    streams: u32,
    priority: u8,
    group: u16,
) -> Planned<Beside> {
    let pace = Pace::of(env.settings.profile, spec);
    let rank = match path {
        PathKind::Emulated | PathKind::Url => Rank::Once,
        PathKind::Loopback if priority == 0 => env.headline_but_quick(Rank::Detail),
        PathKind::Loopback => Rank::Detail,
    };
    let two = other_cpu(env).is_some();
    Planned {
        rank,
        priority,
        setup_s: 2e-3 + 3.0 * trip_s(spec, 0),
        block_s: pace.block_s(trip_s(spec, streams), streams > 0),
        group,
        ..Planned::new(Beside {
            path,
            transport: Transport::Tcp,
            message_bytes: MESSAGE,
            streams,
            placement: if two { Placement::AcrossBlocking } else { Placement::SameCpu },
        })
    }
}

/// Loaded against idle on one path; nothing where one of them is missing.
fn on_path(figures: &[Figure<Loaded>], path: PathKind) -> Option<OnPath> {
    let of =
        |streams| figures.iter().find(|figure| figure.point.path == path && figure.point.streams == streams);
    let per_minute = |figure: &Figure<Loaded>| figure.details.as_ref()?.round_trips_per_minute;
    let idle = of(0)?;
    let idle_p50_ns = idle.result.p50;
    let loaded = [1, 4].into_iter().filter_map(|streams| {
        let figure = of(streams)?;
        let p50_ns = figure.result.p50;
        Some(Slowed {
            streams,
            p50_ns,
            over_idle: p50_ns / idle_p50_ns,
            added_ns: p50_ns - idle_p50_ns,
            load_bytes_per_s: figure.details.as_ref().map(|details| details.load_bytes_per_s),
            round_trips_per_minute: per_minute(figure),
        })
    });
    let loaded: Vec<Slowed> = loaded.collect();
    let idle_round_trips_per_minute = per_minute(idle);
    (!loaded.is_empty()).then_some(OnPath { path, idle_p50_ns, idle_round_trips_per_minute, loaded })
}

#[cfg(test)]
mod tests;
