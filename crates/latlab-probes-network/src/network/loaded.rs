//! `network.loaded`: what a round trip takes while other connections carry all that they can.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Spec, Support, Tier,
};
use latlab_net::PathSpec;
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::{Value, json};

use crate::peer::{EMULATED, LOOPBACK, path_asked, support_beside};
use latlab_probes_shared::other_cpu;

#[cfg_attr(target_os = "linux", path = "loaded/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "loaded/elsewhere.rs")]
mod work;

/// The probe.
pub struct Loaded;

static SPEC: Spec = Spec {
    id: "network.loaded",
    tier: Tier::Network,
    title: "round trip while throughput runs",
    question: "How much longer does a message and its answer take while other connections carry all that they can?",
    method: "A client sends one message of 64 bytes by TCP and waits for its answer; then the next, as in network.roundtrip with the two sides on two CPUs (where there are two) and asleep while they wait. Meanwhile one or several streams, as in network.throughput, send to the same side as fast as they can. \
A value is one round trip, there and back. The idle point is taken between the loaded ones like any other.

Over an emulated path (--delay, --rate, --distance) the streams fill the queue before its slowest link, and a round trip waits in that queue too: what is called bufferbloat. It is at most the queue's length over the rate, unless TCP keeps the queue shorter. \
Messages and streams share the path in both directions; what carries the path has CPUs of its own where there are any. On the loopback there is no such queue: what is added there is other threads on the CPUs and in the kernel, the software's own share of it, and stands beside every emulated figure.

Round trips a minute is how many such trips one after the other fit in a minute, from the mean (what is called responsiveness, in round trips of an open connection; the published measures add handshakes and servers). \
Each trip counts once, so that times in which they are short have more of them: the share of time, not of trips, that is slow is larger than the curve says.

The streams send for some milliseconds, over a path for ten round trips of it, before the first trip that counts. What they carried in the very time of the trips is the load. Proof: that of network.roundtrip for every answer, and that of network.throughput for every stream. \
Where no path can be emulated, an emulated point fails with the reason: a server that waits before it answers has no queue.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one message there and its answer back, while streams run",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface or a private one, child processes, all allowed CPUs"],
    saturates: true,
    operations: Operations::Unwatched,
};

const TCP: &str = "tcp";
const BLOCKING: &str = "across-blocking";
const SAME: &str = "same-cpu";
const MESSAGE: u64 = 64;
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
        let Some(path) = path else {
            return loopback;
        };
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

impl AnyProbe for Loaded {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Err(reason) = path_asked(&env.settings) {
            return Support::No(reason);
        }
        support_beside(
            work::HERE,
            env,
            "child processes that answer and receive",
            "a round trip beside streams waits for the CPU first of all",
        )
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let asked = path_asked(&env.settings).ok().flatten();
        let profile = env.settings.profile;
        let placement = if other_cpu(env).is_some() { BLOCKING } else { SAME };
        // What was asked for first.
        let paths = asked.iter().map(|spec| (EMULATED, Some(spec))).chain([(LOOPBACK, None)]);
        paths
            .enumerate()
            .flat_map(|(group, (name, path))| STREAMS.map(|streams| (group, name, path, streams)))
            .map(|(group, name, path, (streams, priority))| {
                let pace = Pace::of(profile, path);
                let rank = match (path, streams) {
                    (Some(_), _) => Rank::Once,
                    _ if priority == 0 => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                };
                Planned {
                    rank,
                    priority,
                    setup_s: 2e-3 + 3.0 * trip_s(path, 0),
                    block_s: pace.block_s(trip_s(path, streams), streams > 0),
                    group: u16::try_from(group).unwrap_or(u16::MAX),
                    ..Planned::new(Point {
                        path: Some(name.to_owned()),
                        transport: Some(TCP.to_owned()),
                        message_bytes: Some(MESSAGE),
                        streams: Some(streams),
                        placement: Some(placement.to_owned()),
                        ..Point::default()
                    })
                }
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        // What each stream's threads send from and receive into.
        4 * 2 * LOAD_MESSAGE as u64 + (1 << 20)
    }

    fn cpus(&self, env: &Env) -> u32 {
        u32::try_from(env.cpus.len()).unwrap_or(u32::MAX)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let paths: Vec<Value> =
            [LOOPBACK, EMULATED].into_iter().filter_map(|path| concluded(results, path)).collect();
        if paths.is_empty() {
            return Vec::new();
        }
        vec![SPEC.derived(json!({ "paths": paths }))]
    }
}

/// Loaded against idle on one path; nothing where one of them is missing.
fn concluded(results: &[PointResult], path: &str) -> Option<Value> {
    let of = |streams: u32| {
        results.iter().find(|result| {
            result.point.path.as_deref() == Some(path) && result.point.streams == Some(streams)
        })
    };
    let found = |result: &PointResult, name: &str| {
        result.findings.as_ref().map_or(Value::Null, |findings| findings[name].clone())
    };
    let idle = of(0)?;
    let loaded: Vec<Value> = [1, 4]
        .into_iter()
        .filter_map(|streams| Some((streams, of(streams)?)))
        .map(|(streams, result)| {
            json!({
                "streams": streams,
                "p50_ns": result.p50,
                "over_idle": result.p50 / idle.p50,
                "added_ns": result.p50 - idle.p50,
                "load_bytes_per_s": found(result, "load_bytes_per_s"),
                "round_trips_per_minute": found(result, "round_trips_per_minute"),
            })
        })
        .collect();
    (!loaded.is_empty()).then(|| {
        json!({
            "path": path,
            "idle_p50_ns": idle.p50,
            "idle_round_trips_per_minute": found(idle, "round_trips_per_minute"),
            "loaded": loaded,
        })
    })
}

#[cfg(test)]
mod tests;
