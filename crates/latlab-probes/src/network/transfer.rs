//! `network.transfer`: many files by one or by many at once, over connections that are new or kept.

use latlab_harness::{Env, Planned, PointResult, Probe, ProbeError, Reach, Session, Spec, Support, Tier};
use latlab_record::{Point, Profile, Record, Unit};

use crate::peer::{EMULATED, path_asked, paths, support};

mod conclusion;
mod knee;
mod model;
#[cfg_attr(target_os = "linux", path = "transfer/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "transfer/elsewhere.rs")]
mod work;

/// The probe.
pub(crate) struct Transfer;

static SPEC: Spec = Spec {
    id: "network.transfer",
    tier: Tier::Network,
    title: "transfers, one by one and many at once",
    question: "What does a file cost that comes over the network, and how many should come at once?",
    method: "A client in a process of its own fetches files by HTTP from a server in another one, which hands out slices of one buffer and reads no disk; every body is compared byte by byte, and the server's counts of connections and requests must be the client's. \
A value is one transfer: from before its connection is opened (new), or before its request (kept), to its last byte. Its phases are kept as channels: resolve, connect, tls, request, first-byte, last-byte.

transfers: so many workers, each a thread that takes the next file when it is done with one; all on the client's CPU, the server on another. Rates are taken while all of them work, from the first completion of the last to begin until the last file is begun: neither the start nor the end counts. \
In that time Little's law must hold: transfers under way = rate x time of one. Kept connections have carried two files before, so that their windows are open.

ten-files: the lesson's experiment. Ten files by one worker, by six, by six, by one (A B B A, so that a drift cancels); a value is the time of all ten by six. New opens a connection for each file; kept one for each worker, and opening it counts. \
Ten files by w workers take ceil(10/w) turns: six workers are 5 times faster at most, and six are no better than five.

The knee is the smallest concurrency that reaches 80 % of the largest goodput; its interval comes from resampling the blocks. It is foretold from one transfer alone, one throughput (a large file on a connection that has been going on) and the CPU time of the busier side, and then measured.

The model of a transfer: round trips of the handshakes and of the request, those in which a new connection waits for its window to grow (10 segments of 1448 bytes, doubling, until the link is full), bytes over the rate, and the software's part as the loopback shows it. \
A round trip is the median of those that connecting and asking took in this run; the time after the first byte is foretold from nothing but the file's size. A second line fits the round trip and the fixed part to all sizes.

Over an emulated path (--delay, --rate, --distance) all of it is measured beside the loopback. Where no path can be had the server waits before it answers: valid for the time to the first byte only, and nothing else is concluded.

Python's rows: the same ten files by `requests` and `httpx` with a ThreadPoolExecutor, where they are installed beside the interpreter that latlab runs in, in a process of their own on the client's CPU.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one transfer, or one set of ten",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface, child processes, a second CPU", "private network namespaces for an emulated path"],
    saturates: false,
};

const TRANSFERS: &str = "transfers";
const TEN_FILES: &str = "ten-files";
const NEW: &str = "new";
const KEPT: &str = "kept";
const HTTP: &str = "http/1.1";
const HTTPS: &str = "https";
const HTTP2: &str = "http/2";
/// Whose program.
const OWN: &str = "latlab";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The size of the lesson's files, and of the first sweep.
const USUAL: u64 = 100 * KIB;
/// The file that shows the throughput, where the rate allows it.
const LARGE: u64 = 10 * MIB;
const COARSE: [u32; 6] = [2, 4, 8, 16, 32, 64];
const FINE: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Files of the lesson's experiment, and its workers.
const FILES: u32 = 10;
const POOL: u32 = 6;
/// What the buffers of one transfer hold, and what both processes do beside.
const TRANSFER_BYTES: u64 = 256 * KIB;
const BESIDE_BYTES: u64 = 24 * MIB;
/// A file that takes longer than this to come through the rate that was asked for is none of this profile's.
const LONGEST_S: [f64; 3] = [0.5, 2.0, 10.0];
/// Transfers of a block at most.
const MOST: u32 = 400;

/// The path of a point as the settings ask for it: round trip, s, and bytes a second.
fn way(env: &Env, point: &Point) -> (f64, f64) {
    /// What the delay line, or a loopback, lets through.
    const UNLIMITED: [f64; 2] = [1e8, 2e9];
    let emulated = point.path.as_deref() == Some(EMULATED);
    let spec = path_asked(&env.settings).ok().flatten().filter(|_| emulated);
    match spec {
        Some(spec) => (
            spec.rtt_us as f64 * 1e-6,
            spec.rate_bit_per_s
                .map_or(UNLIMITED[0], |rate| rate as f64 / 8.0)
                .min(UNLIMITED[0]),
        ),
        None => (0.0, UNLIMITED[1]),
    }
}

/// What one transfer takes alone, about, s.
fn one_s(env: &Env, point: &Point) -> f64 {
    let (rtt_s, rate) = way(env, point);
    let bytes = point.file_bytes.unwrap_or(0) as f64;
    let new = point.connections.as_deref() == Some(NEW);
    let tls = point.protocol.as_deref() == Some(HTTPS);
    let handshakes = f64::from(u8::from(new)) * (1.0 + f64::from(u8::from(tls)));
    let path = model::Way {
        rtt_ns: rtt_s * 1e9,
        bytes_per_s: Some(rate),
    };
    let computing_s = 100e-6
        + f64::from(u8::from(new)) * 100e-6
        + f64::from(u8::from(tls && new)) * 1e-3
        + if point.engine.as_deref() == Some(OWN) {
            0.0
        } else {
            2e-3
        };
    model::predict(path, bytes, handshakes).ns(path.rtt_ns, 0.0) * 1e-9 + computing_s
}

/// What `count` of them take by `workers`, about, s.
fn many_s(env: &Env, point: &Point, count: u32, workers: u32) -> f64 {
    let bytes = point.file_bytes.unwrap_or(0) as f64;
    let turns = f64::from(count.div_ceil(workers.max(1)));
    let python = if point.engine.as_deref() == Some(OWN) {
        0.0
    } else {
        2e-3
    };
    (turns * one_s(env, point))
        .max(f64::from(count) * bytes / way(env, point).1)
        // On one CPU each.
        .max(f64::from(count) * (60e-6 + python))
}

/// Transfers of a block of a sweep: each worker has some, and a block is not too short for its counters.
fn count(env: &Env, point: &Point) -> u32 {
    let workers = point.concurrency.unwrap_or(1);
    let least = if workers == 1 { 2 } else { 4 * workers };
    let wanted_s = env.settings.profile.of([4e-3, 10e-3, 40e-3]);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a small positive number"
    )]
    let fitting = (wanted_s / one_s(env, point) * f64::from(workers)).clamp(0.0, f64::from(MOST)) as u32;
    fitting.max(least)
}

/// The most transfers at once whose buffers this environment has room for.
fn most_workers(env: &Env) -> u32 {
    let room = env.memory_bytes.saturating_sub(BESIDE_BYTES) / TRANSFER_BYTES;
    u32::try_from(room).unwrap_or(u32::MAX).clamp(1, 64)
}

fn transfers(path: &str, bytes: u64, concurrency: u32, connections: &str) -> Point {
    Point {
        operation: Some(TRANSFERS.to_owned()),
        path: Some(path.to_owned()),
        file_bytes: Some(bytes),
        concurrency: Some(concurrency),
        connections: Some(connections.to_owned()),
        protocol: Some(HTTP.to_owned()),
        engine: Some(OWN.to_owned()),
        ..Point::default()
    }
}

fn ten_files(path: &str, bytes: u64, connections: &str, engine: &str) -> Point {
    Point {
        operation: Some(TEN_FILES.to_owned()),
        files: Some(u64::from(FILES)),
        engine: Some(engine.to_owned()),
        ..transfers(path, bytes, POOL, connections)
    }
}

/// What is wanted on one path, with priorities.
fn wanted(env: &Env, path: &str) -> Vec<(u8, Point)> {
    let profile = env.settings.profile;
    let point = |bytes, concurrency, connections| transfers(path, bytes, concurrency, connections);
    let protocol = |name: &str, point: Point| Point {
        protocol: Some(name.to_owned()),
        ..point
    };
    let mut all = vec![
        (0, point(USUAL, 1, NEW)),
        (0, point(USUAL, 1, KEPT)),
        (0, point(KIB, 1, NEW)),
        (0, point(MIB, 1, NEW)),
        (0, point(LARGE, 1, KEPT)),
        (1, ten_files(path, USUAL, NEW, OWN)),
        (1, ten_files(path, USUAL, KEPT, OWN)),
    ];
    all.extend(COARSE.map(|many| (1, point(USUAL, many, NEW))));
    all.extend([
        (2, point(KIB, 1, KEPT)),
        (2, point(MIB, 1, KEPT)),
        (2, protocol(HTTPS, point(USUAL, 1, NEW))),
        (2, protocol(HTTP2, point(USUAL, FILES, KEPT))),
    ]);
    for (engine, package) in work::LIBRARIES {
        if work::has_library(env, package) {
            all.push((2, ten_files(path, USUAL, NEW, engine)));
            all.push((2, ten_files(path, USUAL, KEPT, engine)));
        }
    }
    all.extend([
        (3, ten_files(path, KIB, NEW, OWN)),
        (3, ten_files(path, KIB, KEPT, OWN)),
        (3, ten_files(path, MIB, NEW, OWN)),
        (3, ten_files(path, MIB, KEPT, OWN)),
    ]);
    all.extend([2, 3, 4, 5, 7, 8, 9, 10].map(|workers| {
        let own = Point {
            concurrency: Some(workers),
            ..ten_files(path, USUAL, NEW, OWN)
        };
        (3, own)
    }));
    if profile != Profile::Quick {
        all.extend(COARSE.map(|many| (4, point(USUAL, many, KEPT))));
        all.extend(COARSE.map(|many| (4, point(MIB, many, NEW))));
        all.extend(COARSE.map(|many| (5, point(MIB, many, KEPT))));
        all.extend([KIB, MIB].map(|bytes| (5, protocol(HTTPS, point(bytes, 1, NEW)))));
        all.extend([2, 4, 16, 64].map(|many| (5, protocol(HTTP2, point(USUAL, many, KEPT)))));
    }
    if profile == Profile::Thorough {
        all.push((5, point(100 * MIB, 1, KEPT)));
        all.push((6, point(100 * MIB, 1, NEW)));
    }
    all
}

fn planned(env: &Env, priority: u8, point: Point) -> Planned {
    let emulated = point.path.as_deref() == Some(EMULATED);
    let workers = point.concurrency.unwrap_or(1);
    let (setup_s, block_s) = if point.operation.as_deref() == Some(TEN_FILES) {
        let pool_s = many_s(env, &point, FILES, workers);
        let alone_s = many_s(env, &point, FILES, 1);
        let python_s = if point.engine.as_deref() == Some(OWN) {
            0.0
        } else {
            0.5
        };
        let both_s = if workers == POOL {
            2.0 * (pool_s + alone_s)
        } else {
            pool_s
        };
        (1e-4 + python_s, both_s)
    } else {
        let kept = point.connections.as_deref() == Some(KEPT);
        let warm_s = if kept {
            many_s(env, &point, 2 * workers, workers) + f64::from(workers) * way(env, &point).0
        } else {
            0.0
        };
        (1e-4 + warm_s, many_s(env, &point, count(env, &point), workers))
    };
    Planned {
        priority,
        setup_s,
        first_s: if emulated { 0.5 } else { 0.1 },
        block_s,
        reach: Reach::Shared,
        ..Planned::new(point)
    }
}

impl Probe for Transfer {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        support(work::HERE, env)
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let most = most_workers(env);
        let longest_s = env.settings.profile.of(LONGEST_S);
        // What was asked for before the loopback, its control, which costs next to nothing beside it.
        paths(&env.settings)
            .into_iter()
            .flat_map(|path| wanted(env, path))
            .filter(|(_, point)| point.concurrency.is_none_or(|workers| workers <= most))
            .filter(|(_, point)| point.file_bytes.unwrap_or(0) as f64 / way(env, point).1 <= longest_s)
            .map(|(priority, point)| planned(env, priority, point))
            .collect()
    }

    fn memory_bytes(&self, env: &Env) -> u64 {
        BESIDE_BYTES.min(env.memory_bytes) + u64::from(most_workers(env) - 1) * TRANSFER_BYTES
    }

    fn cpus(&self, env: &Env) -> u32 {
        u32::try_from(env.cpus.len()).unwrap_or(u32::MAX).min(2)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn Session + 'env>, ProbeError> {
        work::open(env)
    }

    /// More steps around the knee that the first pass shows.
    fn refine(&self, env: &Env, results: &[PointResult]) -> Vec<Planned> {
        let most = most_workers(env);
        conclusion::between(results, &FINE)
            .into_iter()
            .filter(|point| point.concurrency.is_none_or(|workers| workers <= most))
            .map(|point| planned(env, 0, point))
            .collect()
    }

    fn conclude(&self, env: &Env, results: &[PointResult]) -> Vec<Record> {
        if results.is_empty() {
            return Vec::new();
        }
        let mut findings = conclusion::of(results, env.seed(0x6b6e_6565));
        findings["python"] = work::LIBRARIES
            .into_iter()
            .filter_map(|(engine, package)| {
                let reason = work::why_no_library(env, package)?;
                Some(serde_json::json!({ "engine": engine, "not_measured": reason }))
            })
            .collect();
        vec![SPEC.derived(findings)]
    }
}

#[cfg(test)]
mod tests;
