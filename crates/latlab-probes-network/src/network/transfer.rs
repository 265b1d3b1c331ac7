//! `network.transfer`: many files by one or by many at once, over connections that are new or kept.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Plan, Planned, PointResult, ProbeError, Rank, Reach, Share, Spec,
    Support, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Settings, Unit};
use serde::{Deserialize, Serialize};

use crate::peer::{
    EMULATED, LOOPBACK, NAMED, NAMED_ONE_S, PathKind, is_named, named_by_tls, named_count, path_asked, paths,
    politely, support,
};

mod conclusion;
mod knee;
mod model;
#[cfg_attr(target_os = "linux", path = "transfer/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "transfer/elsewhere.rs")]
mod work;

/// The probe.
pub struct Transfer;

static SPEC: Spec = Spec {
    id: "network.transfer",
    tier: Tier::Network,
    title: "transfers, one by one and many at once",
    question: "What does a file cost that comes over the network, and how many should come at once?",
    method: "A client in a process of its own fetches files by HTTP from a server in another one, which hands out slices of one buffer and reads no disk; every body is compared byte by byte, and the server's counts of connections and requests must be the client's. \
A value is one transfer: from before its connection is opened (new), or before its request (kept), to its last byte. Its phases are kept as channels: resolve, connect, tls, request, first-byte, last-byte.

transfers: so many workers, each a thread that takes the next file when it is done with one; all on the client's CPU, the server on another. Rates are taken while all of them work, from the first completion of the last to begin until the last file is begun: neither the start nor the end counts. \
In that time Little's law must hold: transfers under way = rate x time of one. Kept connections have carried two files before, so that their windows are open.

ten-files: the lesson's experiment. Ten files by one worker, by six, by six, by one (A B B A, so that a drift cancels; over a path, where that takes seconds, A B in one block and B A in the next); a value is the time of all ten by six. New opens a connection for each file; kept one for each worker, and opening it counts. \
Ten files by w workers take ceil(10/w) turns: six workers are 5 times faster at most, and six are no better than five. Where a set takes a millisecond, as on the loopback, a block repeats A B B A up to 64 times, and its speed-up is that of the medians of its sets.

The knee is the smallest concurrency that reaches 80 % of the largest goodput. From 16, 32 and 64 it is looked for step by step: beyond 64 (to 128) while the goodput still rises there by more than 15 % with twice as many, then halfway between the one that reaches it and the one before, until they are neighbours (16, 20, 24, 28, 32, ...) or the time is up. Its range is that of the concurrency at which each round alone crosses that share, interpolated between steps; where one round measured the sweep, that by which it moves as each step's goodput goes to the ends of its own range. It reaches down to the step before: nobody knows what lies between. Where no plateau was reached, no knee is told. It is foretold from one transfer alone, one throughput (a large file on a connection that has been going on) and the CPU time of the busier side, and then measured.

The model of a transfer: round trips of the handshakes and of the request, those in which a new connection waits for its window to grow (10 segments of 1448 bytes, doubling, until the link is full), bytes over the rate, and the software's part as the loopback shows it. \
Where the server's congestion control is BBR, windows after the first leave at a pace of 2.86 times the best rate seen so far, as Linux does it: the last window's bytes then add a share of a round trip (half of one at 1 MiB), and on a kept connection too: 0.54 of one, unless the link takes longer. Both laws come from the protocols, none of their numbers is fitted. \
A round trip is the median of those that connecting and asking took in this run; the time after the first byte is foretold from nothing but the file's size. A second line fits the round trip and the fixed part to all sizes.

With --url single transfers of that URL come first, on new connections and on a kept one, by their phases: one at a time, no more than ten a second, ten blocks of one (quick), two or four at most, and nothing longer than 16 MiB. How long the answer is and what it says is the server's affair: every one must have status 200 and end. \
No model or knee is concluded for it: its rate and its server's window are not known, and looking for its knee would load it.

Over an emulated path (--delay, --rate, --distance) all of it is measured beside the loopback. Where no path can be had the server waits before it answers: valid for the time to the first byte only, and nothing else is concluded.

Python's rows: the same ten files by `requests` and `httpx` with a ThreadPoolExecutor, where they are installed beside the interpreter that latlab runs in, in a process of their own on the client's CPU. Over a path they come before what only refines the other figures.",
    method_version: 3,
    unit: Unit::Ns,
    convention: "one transfer, or one set of ten",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface, child processes, a second CPU", "private network namespaces for an emulated path", "with --url the server that it names"],
    saturates: false,
    operations: Operations::Unwatched,
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
/// Transfers at once: first those that show where a plateau begins on a long path, from which the search goes on; then what lies long before it.
const COARSE: [u32; 6] = [64, 32, 16, 8, 4, 2];
/// To which step a knee is looked for; beyond 64 only where the goodput still rises there.
const GRID: [u32; 20] = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];
/// Priority of the last point that shows a knee.
const SWEPT: u8 = 1;
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
/// Sets of ten files by each number of workers of a block at most.
const MOST_SETS: u32 = 64;
/// Seconds in each profile where the user names a server, whose transfers come one at a time and with pauses.
const AWAY: Share = Share([6.0, 10.0, 30.0]);

/// The path of a point as the settings ask for it: round trip, s, and bytes a second.
fn way(env: &Env, point: &Point) -> (f64, f64) {
    /// What the delay line, or a loopback, lets through.
    const UNLIMITED: [f64; 2] = [1e8, 2e9];
    let emulated = point.path.as_deref() == Some(EMULATED);
    let spec = path_asked(&env.settings).ok().flatten().filter(|_| emulated);
    match spec {
        Some(spec) => (
            spec.rtt_us as f64 * 1e-6,
            spec.rate_bit_per_s.map_or(UNLIMITED[0], |rate| rate as f64 / 8.0).min(UNLIMITED[0]),
        ),
        None => (0.0, UNLIMITED[1]),
    }
}

/// What one transfer takes alone, about, s.
fn one_s(env: &Env, point: &Point) -> f64 {
    if is_named(point) {
        return NAMED_ONE_S;
    }
    let (rtt_s, rate) = way(env, point);
    let bytes = point.file_bytes.unwrap_or(0) as f64;
    let new = point.connections.as_deref() == Some(NEW);
    let tls = point.protocol.as_deref() == Some(HTTPS);
    let handshakes = f64::from(u8::from(new)) * (1.0 + f64::from(u8::from(tls)));
    let path = model::Way { rtt_ns: rtt_s * 1e9, bytes_per_s: Some(rate) };
    let computing_s = 100e-6
        + f64::from(u8::from(new)) * 100e-6
        + f64::from(u8::from(tls && new)) * 1e-3
        + if point.engine.as_deref() == Some(OWN) { 0.0 } else { 2e-3 };
    model::predict(path, bytes, handshakes, model::Growth::Doubling).ns(path.rtt_ns, 0.0) * 1e-9 + computing_s
}

/// What `count` of them take by `workers`, about, s.
fn many_s(env: &Env, point: &Point, count: u32, workers: u32) -> f64 {
    let bytes = point.file_bytes.unwrap_or(0) as f64;
    let turns = f64::from(count.div_ceil(workers.max(1)));
    let new = Point { connections: Some(NEW.to_owned()), ..point.clone() };
    let opens = point.operation.as_deref() == Some(TEN_FILES) && *point != new;
    let opening_s = if opens { one_s(env, &new) - one_s(env, point) } else { 0.0 };
    let python = if point.engine.as_deref() == Some(OWN) { 0.0 } else { 2e-3 };
    (opening_s + turns * one_s(env, point))
        .max(f64::from(count) * bytes / way(env, point).1)
        // On one CPU each.
        .max(f64::from(count) * (60e-6 + python))
}

/// Transfers of a block of a sweep: each worker has some, and a block is not too short for its counters.
fn count(env: &Env, point: &Point) -> u32 {
    if is_named(point) {
        return named_count(env);
    }
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

/// How often a block repeats the experiment with ten files: sets of a millisecond are a matter of who has the CPU, and many of them are less so.
fn sets(env: &Env, point: &Point) -> u32 {
    let lessons = point.concurrency == Some(POOL) && point.engine.as_deref() == Some(OWN);
    let control = point.path.as_deref() == Some(LOOPBACK) && matches!(path_asked(&env.settings), Ok(Some(_)));
    let wanted_s = match (lessons, control) {
        (true, true) => 0.25,
        (true, false) => env.settings.profile.of([0.01, 0.05, 0.25]),
        (false, _) => env.settings.profile.of([0.0, 0.02, 0.1]),
    };
    let mut one_s = many_s(env, point, FILES, point.concurrency.unwrap_or(POOL));
    if lessons {
        one_s = 2.0 * (one_s + many_s(env, point, FILES, 1));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a small positive number"
    )]
    let sets = (wanted_s / one_s).clamp(1.0, f64::from(MOST_SETS)) as u32;
    sets
}

/// Which sets of ten files a block holds, in this order, when so many blocks were taken before: by the pool, or by one.
fn order(point: &Point, blocks: usize) -> &'static [bool] {
    const A_B_B_A: [bool; 4] = [false, true, true, false];
    if point.concurrency != Some(POOL) {
        &A_B_B_A[1..2]
    } else if point.path.as_deref() == Some(LOOPBACK) {
        &A_B_B_A
    } else if blocks.is_multiple_of(2) {
        &A_B_B_A[..2]
    } else {
        &A_B_B_A[2..]
    }
}

/// The most transfers at once whose buffers this environment has room for.
fn most_workers(env: &Env) -> u32 {
    let room = env.memory_bytes.saturating_sub(BESIDE_BYTES) / TRANSFER_BYTES;
    u32::try_from(room).unwrap_or(u32::MAX).clamp(1, GRID[GRID.len() - 1])
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

/// What is wanted of the user's server: one transfer at a time, on new connections and on one that is kept.
fn wanted_of_named(env: &Env) -> Vec<(u8, Point)> {
    let tls = named_by_tls(&env.settings) == Some(true);
    [NEW, KEPT]
        .map(|connections| {
            let point = Point {
                file_bytes: None,
                protocol: Some(if tls { HTTPS } else { HTTP }.to_owned()),
                ..transfers(NAMED, 0, 1, connections)
            };
            (0, point)
        })
        .into()
}

/// What is wanted on one path, with priorities.
fn wanted(env: &Env, path: &str) -> Vec<(u8, Point)> {
    if path == NAMED {
        return wanted_of_named(env);
    }
    let profile = env.settings.profile;
    let point = |bytes, concurrency, connections| transfers(path, bytes, concurrency, connections);
    // Over a path the experiment takes seconds, and so does the beginning of a sweep; where there is none they take less than what else is asked
    // here.
    let far = paths(&env.settings) != [PathKind::Loopback];
    let (experiment, swept_below) = if far { (2, 5) } else { (0, 3) };
    // Over a path Python's libraries come before what only refines other figures.
    let refining = 4 + u8::from(far);
    let protocol = |name: &str, point: Point| Point { protocol: Some(name.to_owned()), ..point };
    let mut all = vec![
        (0, point(USUAL, 1, NEW)),
        (0, point(USUAL, 1, KEPT)),
        (0, point(KIB, 1, NEW)),
        (0, point(MIB, 1, NEW)),
        (0, point(LARGE, 1, KEPT)),
    ];
    all.extend(COARSE[..3].iter().map(|many| (SWEPT, point(USUAL, *many, NEW))));
    all.extend([
        (experiment, ten_files(path, USUAL, NEW, OWN)),
        (experiment, ten_files(path, USUAL, KEPT, OWN)),
    ]);
    all.extend(COARSE[3..].iter().map(|many| (swept_below, point(USUAL, *many, NEW))));
    all.extend([
        (3, point(KIB, 1, KEPT)),
        (3, point(MIB, 1, KEPT)),
        (3, protocol(HTTPS, point(USUAL, 1, NEW))),
        (3, protocol(HTTP2, point(USUAL, FILES, KEPT))),
    ]);
    // Over a path few at once, lest each is begun and none has its six blocks.
    let of_libraries = match (far, path) {
        (false, _) => [3, 3],
        (true, LOOPBACK) => [7, 7],
        (true, _) => [3, 4],
    };
    for (priority, connections) in of_libraries.into_iter().zip([NEW, KEPT]) {
        let installed = work::LIBRARIES.iter().filter(|(_, package)| work::has_library(env, package));
        all.extend(installed.map(|(engine, _)| (priority, ten_files(path, USUAL, connections, engine))));
    }
    all.extend([
        (refining, ten_files(path, KIB, NEW, OWN)),
        (refining, ten_files(path, KIB, KEPT, OWN)),
        (refining, ten_files(path, MIB, NEW, OWN)),
        (refining, ten_files(path, MIB, KEPT, OWN)),
    ]);
    all.extend([2, 3, 4, 5, 7, 8, 9, 10].map(|workers| {
        let own = Point { concurrency: Some(workers), ..ten_files(path, USUAL, NEW, OWN) };
        (refining, own)
    }));
    if profile != Profile::Quick {
        all.extend(COARSE.map(|many| (refining + 1, point(USUAL, many, KEPT))));
        all.extend(COARSE.map(|many| (refining + 1, point(MIB, many, NEW))));
        all.extend(COARSE.map(|many| (refining + 2, point(MIB, many, KEPT))));
        all.extend([KIB, MIB].map(|bytes| (refining + 2, protocol(HTTPS, point(bytes, 1, NEW)))));
        all.extend([2, 4, 16, 64].map(|many| (refining + 2, protocol(HTTP2, point(USUAL, many, KEPT)))));
    }
    if profile == Profile::Thorough {
        all.push((refining + 2, point(100 * MIB, 1, KEPT)));
        all.push((refining + 3, point(100 * MIB, 1, NEW)));
    }
    all
}

/// One transfer at a time on a new and on a kept connection, and large ones; how many at once help is a curve.
fn rank(env: &Env, point: &Point) -> Rank {
    if point.path.as_deref() != Some(LOOPBACK) {
        return Rank::Once;
    }
    let one = point.concurrency == Some(1) && point.protocol.as_deref() == Some(HTTP);
    match (point.file_bytes, point.connections.as_deref()) {
        (Some(USUAL), Some(NEW | KEPT)) | (Some(LARGE), Some(KEPT))
            if one && point.operation.as_deref() != Some(TEN_FILES) =>
        {
            env.headline_but_quick(Rank::Curve)
        }
        _ if point.engine.as_deref() == Some(OWN) => Rank::Curve,
        _ => Rank::Detail,
    }
}

/// What workers take longer for when they and the server share the CPUs.
fn contention(point: &Point) -> f64 {
    let far = point.path.as_deref() != Some(LOOPBACK);
    match point.concurrency.unwrap_or(1) {
        _ if far || point.file_bytes.unwrap_or(0) >= MIB => 1.0,
        2.. if point.protocol.as_deref() == Some(HTTP2) => 4.0,
        POOL if point.operation.as_deref() == Some(TEN_FILES) => 2.0,
        4.. if point.connections.as_deref() == Some(NEW) => 5.0,
        2.. => 2.0,
        _ => 1.0,
    }
}

fn planned(env: &Env, priority: u8, point: Point) -> Planned {
    let emulated = point.path.as_deref() == Some(EMULATED);
    let workers = point.concurrency.unwrap_or(1);
    // An interpreter, and the library.
    let loading_s = if point.engine.as_deref() == Some(OWN) { 0.0 } else { 0.5 };
    let (setup_s, block_s) = if point.operation.as_deref() == Some(TEN_FILES) {
        let pool_s = many_s(env, &point, FILES, workers);
        let alone_s = many_s(env, &point, FILES, 1);
        // A turn by each worker, before each set.
        let python_s = if point.engine.as_deref() == Some(OWN) { 0.0 } else { 2.0 * one_s(env, &point) };
        let each = order(&point, 0).iter();
        let one_s: f64 = each.map(|pooled| if *pooled { pool_s } else { alone_s }).sum();
        (1e-4 + python_s, f64::from(sets(env, &point)) * one_s)
    } else {
        let kept = point.connections.as_deref() == Some(KEPT);
        let warm_s = if kept && is_named(&point) {
            one_s(env, &point)
        } else if kept {
            many_s(env, &point, 2 * workers, workers) + f64::from(workers) * way(env, &point).0
        } else {
            0.0
        };
        (1e-4 + warm_s, many_s(env, &point, count(env, &point), workers))
    };
    politely(
        is_named(&point),
        Planned {
            rank: rank(env, &point),
            priority,
            setup_s,
            first_s: loading_s + if emulated { 0.5 } else { 0.005 },
            block_s: contention(&point) * block_s,
            reach: Reach::Shared,
            ..Planned::new(point)
        },
    )
}

/// What a run takes beside the blocks of its points: beginning and ending, s.
const AROUND_S: f64 = 5.0;
/// How much longer than planned it may take until a library had its turn: looking for the knee adds points, and on a busy machine all take longer.
const LONGER: f64 = 1.5;

/// Python's libraries, for the findings of each point: why one is not measured here, and the budget that reaches each of its points over the path.
fn libraries(env: &Env) -> Vec<Library> {
    let points = Transfer.points(env);
    let budget_s = |last: u8| {
        let needed = points.iter().filter(|planned| planned.priority <= last);
        let planned_s: f64 =
            needed.map(|planned| planned.first_s + 6.0 * (planned.setup_s + planned.block_s)).sum();
        ((AROUND_S + LONGER * planned_s) / 10.0).ceil() * 10.0
    };
    work::LIBRARIES
        .into_iter()
        .map(|(engine, package)| Library {
            engine: engine.to_owned(),
            not_measured: work::why_no_library(env, package),
            far: points
                .iter()
                .filter(|planned| {
                    let point = &planned.point;
                    point.path.as_deref() == Some(EMULATED) && point.engine.as_deref() == Some(engine)
                })
                .map(|planned| (planned.point.clone(), budget_s(planned.priority)))
                .collect(),
        })
        .collect()
}

#[derive(Serialize, Deserialize)]
struct Library {
    engine: String,
    /// The reason.
    not_measured: Option<String>,
    /// Its points over the path, each with the budget that reaches it, s.
    far: Vec<(Point, f64)>,
}

impl Library {
    /// Why its row over the path is missing where there could be one, with the budget that would do.
    fn why_missing(&self, results: &[PointResult]) -> Option<String> {
        let missing =
            self.far.iter().filter(|(point, _)| results.iter().all(|result| result.point != *point));
        let out_of_time = missing.map(|(_, budget_s)| *budget_s).reduce(f64::max).map(|budget_s| {
            format!(
                "time ran out before all of its ten files over the path; {} alone with --budget {budget_s:.0}s has them",
                SPEC.id
            )
        });
        self.not_measured.clone().or(out_of_time)
    }
}

impl AnyProbe for Transfer {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn share(&self, settings: &Settings) -> Option<Share> {
        settings.url.is_some().then_some(AWAY)
    }

    /// Ten files by one after the other over 20 ms take a second, and six blocks of each of the libraries half a minute.
    fn takes_the_rest(&self, settings: &Settings) -> bool {
        settings.url.is_none() && paths(settings) != [PathKind::Loopback]
    }

    fn plan(&self, env: &Env) -> Plan<Point> {
        let support = support(work::HERE, env);
        if let Support::No(reason) = support {
            return Plan::no(reason);
        }
        let most = most_workers(env);
        let longest_s = env.settings.profile.of(LONGEST_S);
        // What was asked for before the loopback, its control, which costs next to nothing beside it.
        let points = paths(&env.settings)
            .into_iter()
            .flat_map(|path| wanted(env, path.name()))
            .filter(|(_, point)| point.concurrency.is_none_or(|workers| workers <= most))
            .filter(|(_, point)| point.file_bytes.unwrap_or(0) as f64 / way(env, point).1 <= longest_s)
            .map(|(priority, point)| planned(env, priority, point))
            .collect();
        let memory_bytes = BESIDE_BYTES.min(env.memory_bytes) + u64::from(most - 1) * TRANSFER_BYTES;
        let cpus = u32::try_from(env.cpus.len()).unwrap_or(u32::MAX).min(2);
        Plan { support, ..Plan::of(points).memory(memory_bytes).cpus(cpus) }
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    /// A step closer to each knee that the points so far show.
    fn refine(&self, env: &Env, results: &[PointResult]) -> Vec<Planned> {
        conclusion::closer(results, most_workers(env))
            .into_iter()
            .map(|point| planned(env, SWEPT, point))
            .collect()
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        if results.is_empty() {
            return Vec::new();
        }
        let mut findings = conclusion::of(results);
        let libraries: Vec<Library> = results
            .iter()
            .find_map(|result| Vec::deserialize(result.findings.as_ref()?.get("libraries")?).ok())
            .unwrap_or_default();
        findings["python"] = libraries
            .iter()
            .filter_map(|library| {
                let reason = library.why_missing(results)?;
                Some(serde_json::json!({ "engine": library.engine, "not_measured": reason }))
            })
            .collect();
        vec![SPEC.derived(findings)]
    }
}

#[cfg(test)]
mod tests;
