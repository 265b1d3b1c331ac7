//! `network.transfer`: many files by one or by many at once, over connections that are new or kept.

use latlab_harness::Share;
use latlab_probes_shared::prelude::*;
use latlab_record::Settings;

use self::Connections::{Kept, New};
#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use crate::peer::{
    Engine, NAMED_ONE_S, PathKind, Protocol, named_by_tls, named_count, path_asked, paths, politely, support,
    whole_part,
};

mod conclusion;
mod details;
mod knee;
mod model;
#[cfg(target_os = "linux")]
#[path = "transfer/linux.rs"]
mod work;

pub use conclusion::Findings;
pub use details::Found;

/// The probe.
pub struct Transfer;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The size of the lesson's files, and of the first sweep.
const USUAL: u64 = 100 * KIB;
/// The file that shows the throughput, where the rate allows it.
const LARGE: u64 = 10 * MIB;
/// Transfers at once: first those that show where a plateau begins on a long path, from which the search goes
/// on; then what lies long before it.
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
/// What Python and a library of its own add to a transfer, s.
const PYTHON_S: f64 = 2e-3;

/// Files that are fetched, or one: from where, by whom and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fetch {
    operation: Operation,
    path: PathKind,
    /// Of each; none where the user's server decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<u64>,
    /// Of a set.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u32>,
    /// Workers.
    concurrency: u32,
    connections: Connections,
    protocol: Protocol,
    engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    /// One file after the other by each worker.
    Transfers,
    /// The lesson's experiment.
    TenFiles,
}

/// Whether each transfer opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Connections {
    New,
    Kept,
}

impl Fetch {
    /// Single files, by latlab over HTTP/1.1.
    fn of(path: PathKind, bytes: u64, concurrency: u32, connections: Connections) -> Self {
        Self {
            operation: Operation::Transfers,
            path,
            file_bytes: Some(bytes),
            files: None,
            concurrency,
            connections,
            protocol: Protocol::Plain,
            engine: Engine::Latlab,
        }
    }

    /// Sets of ten by the lesson's workers.
    fn ten(path: PathKind, bytes: u64, connections: Connections, engine: Engine) -> Self {
        Self {
            operation: Operation::TenFiles,
            files: Some(FILES),
            engine,
            ..Self::of(path, bytes, POOL, connections)
        }
    }

    fn by(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// From the user's server.
    fn is_named(self) -> bool {
        self.path == PathKind::Url
    }

    fn is_ten(self) -> bool {
        self.operation == Operation::TenFiles
    }

    /// By latlab's own client.
    fn is_own(self) -> bool {
        self.engine == Engine::Latlab
    }

    /// Of one file; 0 where the user's server decides.
    fn bytes(self) -> u64 {
        self.file_bytes.unwrap_or(0)
    }

    /// The path as the settings ask for it: round trip, s, and bytes a second.
    fn way(self, env: &Env) -> (f64, f64) {
        /// What the delay line, or a loopback, lets through.
        const UNLIMITED: [f64; 2] = [1e8, 2e9];
        let emulated = self.path == PathKind::Emulated;
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
    fn one_s(self, env: &Env) -> f64 {
        if self.is_named() {
            return NAMED_ONE_S;
        }
        let (rtt_s, rate) = self.way(env);
        let new = self.connections == New;
        let tls = self.protocol == Protocol::Tls;
        let path = model::Way { rtt_ns: rtt_s * 1e9, bytes_per_s: Some(rate) };
        let computing_s = 100e-6
            + f64::from(u8::from(new)) * 100e-6
            + f64::from(u8::from(tls && new)) * 1e-3
            + if self.is_own() { 0.0 } else { PYTHON_S };
        let predicted = model::predict(path, self.bytes() as f64, self.handshakes(), model::Growth::Doubling);
        predicted.ns(path.rtt_ns, 0.0) * 1e-9 + computing_s
    }

    /// Round trips before the request.
    fn handshakes(self) -> f64 {
        match (self.connections, self.protocol) {
            (New, Protocol::Tls) => 2.0,
            (New, _) => 1.0,
            (Kept, _) => 0.0,
        }
    }

    /// What `count` of them take by `workers`, about, s.
    fn many_s(self, env: &Env, count: u32, workers: u32) -> f64 {
        let turns = f64::from(count.div_ceil(workers.max(1)));
        let new = Self { connections: New, ..self };
        let opening_s = if self.is_ten() { new.one_s(env) - self.one_s(env) } else { 0.0 };
        let python_s = if self.is_own() { 0.0 } else { PYTHON_S };
        (opening_s + turns * self.one_s(env))
            .max(f64::from(count) * self.bytes() as f64 / self.way(env).1)
            // On one CPU each.
            .max(f64::from(count) * (60e-6 + python_s))
    }

    /// Transfers of a block of a sweep: each worker has some, and a block is not too short for its counters.
    fn count(self, env: &Env) -> u32 {
        if self.is_named() {
            return named_count(env);
        }
        let workers = self.concurrency;
        let least = if workers == 1 { 2 } else { 4 * workers };
        let wanted_s = env.settings.profile.of([4e-3, 10e-3, 40e-3]);
        whole_part(wanted_s / self.one_s(env) * f64::from(workers)).min(MOST).max(least)
    }

    /// How often a block repeats the experiment with ten files: sets of a millisecond are a matter of who has
    /// the CPU, and many of them are less so.
    fn sets(self, env: &Env) -> u32 {
        let lessons = self.concurrency == POOL && self.is_own();
        let control = self.path == PathKind::Loopback && matches!(path_asked(&env.settings), Ok(Some(_)));
        let wanted_s = match (lessons, control) {
            (true, true) => 0.25,
            (true, false) => env.settings.profile.of([0.01, 0.05, 0.25]),
            (false, _) => env.settings.profile.of([0.0, 0.02, 0.1]),
        };
        let mut one_s = self.many_s(env, FILES, self.concurrency);
        if lessons {
            one_s = 2.0 * (one_s + self.many_s(env, FILES, 1));
        }
        whole_part(wanted_s / one_s).clamp(1, MOST_SETS)
    }

    /// Which sets of ten files a block holds, in this order, when so many blocks were taken before: by the
    /// pool, or by one.
    fn order(self, blocks: usize) -> &'static [bool] {
        const A_B_B_A: [bool; 4] = [false, true, true, false];
        if self.concurrency != POOL {
            &A_B_B_A[1..2]
        } else if self.path == PathKind::Loopback {
            &A_B_B_A
        } else if blocks.is_multiple_of(2) {
            &A_B_B_A[..2]
        } else {
            &A_B_B_A[2..]
        }
    }

    /// One transfer at a time on a new and on a kept connection, and large ones; how many at once help is a
    /// curve.
    fn rank(self, env: &Env) -> Rank {
        if self.path != PathKind::Loopback {
            return Rank::Once;
        }
        let one = self.concurrency == 1 && self.protocol == Protocol::Plain && !self.is_ten();
        match (self.bytes(), self.connections) {
            (USUAL, _) | (LARGE, Kept) if one => env.headline_but_quick(Rank::Curve),
            _ if self.is_own() => Rank::Curve,
            _ => Rank::Detail,
        }
    }

    /// What workers take longer for when they and the server share the CPUs.
    fn contention(self) -> f64 {
        let far = self.path != PathKind::Loopback;
        match self.concurrency {
            _ if far || self.bytes() >= MIB => 1.0,
            2.. if self.protocol == Protocol::Streams => 4.0,
            POOL if self.is_ten() => 2.0,
            4.. if self.connections == New => 5.0,
            2.. => 2.0,
            _ => 1.0,
        }
    }

    fn planned(self, env: &Env, priority: u8) -> Planned<Self> {
        let workers = self.concurrency;
        // An interpreter, and the library.
        let loading_s = if self.is_own() { 0.0 } else { 0.5 };
        let (setup_s, block_s) = if self.is_ten() {
            let pool_s = self.many_s(env, FILES, workers);
            let alone_s = self.many_s(env, FILES, 1);
            // A turn by each worker, before each set.
            let python_s = if self.is_own() { 0.0 } else { 2.0 * self.one_s(env) };
            let each = self.order(0).iter();
            let one_s: f64 = each.map(|pooled| if *pooled { pool_s } else { alone_s }).sum();
            (1e-4 + python_s, f64::from(self.sets(env)) * one_s)
        } else {
            let warm_s = match self.connections {
                New => 0.0,
                Kept if self.is_named() => self.one_s(env),
                Kept => self.many_s(env, 2 * workers, workers) + f64::from(workers) * self.way(env).0,
            };
            (1e-4 + warm_s, self.many_s(env, self.count(env), workers))
        };
        let planned = Planned {
            rank: self.rank(env),
            priority,
            setup_s,
            first_s: loading_s + if self.path == PathKind::Emulated { 0.5 } else { 0.005 },
            block_s: self.contention() * block_s,
            cache_scope: CacheScope::Shared,
            ..Planned::new(self)
        };
        politely(self.is_named(), planned)
    }
}

/// The most transfers at once whose buffers this environment has room for.
fn most_workers(env: &Env) -> u32 {
    let room = env.memory_bytes.saturating_sub(BESIDE_BYTES) / TRANSFER_BYTES;
    u32::try_from(room).unwrap_or(u32::MAX).clamp(1, GRID[GRID.len() - 1])
}

/// What is wanted on one path, with priorities.
fn wanted(env: &Env, path: PathKind) -> Vec<(u8, Fetch)> {
    let point = |bytes, concurrency, connections| Fetch::of(path, bytes, concurrency, connections);
    if path == PathKind::Url {
        // One transfer at a time, on new connections and on one that is kept.
        let tls = named_by_tls(&env.settings) == Some(true);
        let protocol = if tls { Protocol::Tls } else { Protocol::Plain };
        let one = |connections| Fetch { file_bytes: None, protocol, ..point(0, 1, connections) };
        return vec![(0, one(New)), (0, one(Kept))];
    }
    let ten = |bytes, connections| Fetch::ten(path, bytes, connections, Engine::Latlab);
    let profile = env.settings.profile;
    // Over a path the experiment takes seconds, and so does the beginning of a sweep; where there is none
    // they take less than what else is asked here.
    let far = paths(&env.settings) != [PathKind::Loopback];
    let (experiment, swept_below) = if far { (2, 5) } else { (0, 3) };
    // Over a path Python's libraries come before what only refines other figures.
    let refining = 4 + u8::from(far);
    let mut all = vec![
        (0, point(USUAL, 1, New)),
        (0, point(USUAL, 1, Kept)),
        (0, point(KIB, 1, New)),
        (0, point(MIB, 1, New)),
        (0, point(LARGE, 1, Kept)),
    ];
    all.extend(COARSE[..3].iter().map(|many| (SWEPT, point(USUAL, *many, New))));
    all.extend([New, Kept].map(|connections| (experiment, ten(USUAL, connections))));
    all.extend(COARSE[3..].iter().map(|many| (swept_below, point(USUAL, *many, New))));
    all.extend([
        (3, point(KIB, 1, Kept)),
        (3, point(MIB, 1, Kept)),
        (3, point(USUAL, 1, New).by(Protocol::Tls)),
        (3, point(USUAL, FILES, Kept).by(Protocol::Streams)),
    ]);
    // Over a path few at once, lest each is begun and none has its six blocks.
    let of_libraries = match (far, path) {
        (false, _) => [3, 3],
        (true, PathKind::Loopback) => [7, 7],
        (true, _) => [3, 4],
    };
    for (priority, connections) in of_libraries.into_iter().zip([New, Kept]) {
        let installed = Engine::LIBRARIES.into_iter().filter(|engine| work::why_not(env, *engine).is_none());
        all.extend(installed.map(|engine| (priority, Fetch::ten(path, USUAL, connections, engine))));
    }
    for bytes in [KIB, MIB] {
        all.extend([New, Kept].map(|connections| (refining, ten(bytes, connections))));
    }
    all.extend(
        [2, 3, 4, 5, 7, 8, 9, 10]
            .map(|workers| (refining, Fetch { concurrency: workers, ..ten(USUAL, New) })),
    );
    if profile != Profile::Quick {
        all.extend(COARSE.map(|many| (refining + 1, point(USUAL, many, Kept))));
        all.extend(COARSE.map(|many| (refining + 1, point(MIB, many, New))));
        all.extend(COARSE.map(|many| (refining + 2, point(MIB, many, Kept))));
        all.extend([KIB, MIB].map(|bytes| (refining + 2, point(bytes, 1, New).by(Protocol::Tls))));
        all.extend([2, 4, 16, 64].map(|many| (refining + 2, point(USUAL, many, Kept).by(Protocol::Streams))));
    }
    if profile == Profile::Thorough {
        all.push((refining + 2, point(100 * MIB, 1, Kept)));
        all.push((refining + 3, point(100 * MIB, 1, New)));
    }
    all
}

impl Probe for Transfer {
    type Point = Fetch;
    type Evidence = work::Evidence;
    type Details = Found;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.transfer",
        tier: Tier::Network,
        title: "transfers, sequential and concurrent",
        question: "What does a file over the network cost, and how many transfers should run concurrently?",
        method: "A client in a process of its own fetches files by HTTP from a server in another one, which \
            hands out slices of one buffer and reads no disk; every body is compared byte by byte, and the \
            server's counts of connections and requests must be the client's. \
A value is one transfer: from before its connection is opened (new), or before its request (kept), to its \
last byte. Its phases are kept as channels: resolve, connect, tls, request, first-byte, last-byte.

transfers: a number of workers, each a thread that takes the next file when it is done with one; all on the \
client's CPU, the server on another. Rates are taken while all of them work, from the first completion of \
the last to begin until the last file is begun: neither the start nor the end counts. \
In that time Little's law must hold: transfers under way = rate x time of one. Kept connections have \
carried two files before, so that their windows are open.

ten-files: the lesson's experiment. Ten files by one worker, by six, by six, by one (A B B A, so that a \
drift cancels; over a path, where that takes seconds, A B in one block and B A in the next); a value is the \
time of all ten by six. New opens a connection for each file; kept one for each worker, and opening it \
counts. \
Ten files by w workers take ceil(10/w) batches: six workers are 5 times faster at most, and six are no \
better than five. Where a set takes a millisecond, as on the loopback, a block repeats A B B A up to 64 \
times, and its speed-up is that of the medians of its sets.

The knee is the smallest concurrency that reaches 80 % of the largest goodput. From 16, 32 and 64 it is \
searched step by step: beyond 64 (to 128) while the goodput still rises there by more than 15 % with twice \
as many, then halfway between the one that reaches it and the one before, until they are neighbours (16, \
20, 24, 28, 32, ...) or the time is up. Its range is that of the concurrency at which each round alone \
crosses that share, interpolated between steps; where one round measured the sweep, that by which it moves \
as each step's goodput goes to the ends of its own range. It reaches down to the step before: the values \
between are unknown. Where no plateau was reached, no knee is reported. It is predicted from one transfer \
alone, one throughput (a large file on a connection that has been going on) and the CPU time of the busier \
side, and then measured.

The model of a transfer: round trips of the handshakes and of the request, those in which a new connection \
waits for its window to grow (10 segments of 1448 bytes, doubling, until the link is full), bytes over the \
rate, and the software's part as the loopback shows it. \
Where the server's congestion control is BBR, windows after the first leave at a pace of 2.86 times the \
best rate seen so far, as Linux does it: the last window's bytes then add a share of a round trip (half of \
one at 1 MiB), and on a kept connection too: 0.54 of one, unless the link takes longer. Both laws come from \
the protocols, none of their numbers is fitted. \
A round trip is the median of those that connecting and asking took in this run; the time after the first \
byte is predicted from the file's size alone. A second line fits the round trip and the fixed part to all \
sizes.

With --url single transfers of that URL come first, on new connections and on a kept one, by their phases: \
one at a time, no more than ten a second, ten blocks of one (quick), two or four at most, and nothing \
longer than 16 MiB. The server decides the answer's length and contents; every answer must have status 200 \
and end. \
No model or knee is concluded for it: its rate and its server's window are not known, and looking for its \
knee would load it.

Over an emulated path (--delay, --rate, --distance) all of it is measured beside the loopback. Where no \
path can be emulated the server waits before it answers: valid for the time to the first byte only, and \
nothing else is concluded.

Python's rows: the same ten files by `requests` and `httpx` with a ThreadPoolExecutor, where they are \
installed beside the interpreter that latlab runs in, in a process of their own on the client's CPU. Over a \
path they come before what only refines the other figures.",
        method_version: 3,
        unit: Unit::Ns,
        convention: "one transfer, or one set of ten",
        needs: &["child processes"],
        touches: &[
            "sockets on the loopback interface, child processes, a second CPU",
            "private network namespaces for an emulated path",
            "with --url the server that it names",
        ],
        saturates: false,
        operations: Operations::Unwatched,
    };

    fn share(&self, settings: &Settings) -> Option<Share> {
        settings.url.is_some().then_some(AWAY)
    }

    /// Ten files by one after the other over 20 ms take a second, and six blocks of each of the libraries
    /// half a minute.
    fn takes_the_rest(&self, settings: &Settings) -> bool {
        settings.url.is_none() && paths(settings) != [PathKind::Loopback]
    }

    fn plan(&self, env: &Env) -> Plan<Fetch> {
        let most = most_workers(env);
        let longest_s = env.settings.profile.of(LONGEST_S);
        // What was asked for before the loopback, its control, which costs next to nothing beside it.
        let points = paths(&env.settings)
            .into_iter()
            .flat_map(|path| wanted(env, path))
            .filter(|(_, point)| point.concurrency <= most)
            .filter(|(_, point)| point.bytes() as f64 / point.way(env).1 <= longest_s)
            .map(|(priority, point)| point.planned(env, priority));
        Plan::of(points.collect())
            .memory(BESIDE_BYTES.min(env.memory_bytes) + u64::from(most - 1) * TRANSFER_BYTES)
            .cpus(u32::try_from(env.cpus.len()).unwrap_or(u32::MAX).min(2))
            .given(support(work::HERE, env))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Fetch]) -> Result<work::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    /// A step closer to each knee that the points so far show.
    fn refine(&self, env: &Env, figures: &[Figure<Self>]) -> Vec<Planned<Fetch>> {
        let closer = conclusion::closer(figures, most_workers(env)).into_iter();
        closer.map(|point| point.planned(env, SWEPT)).collect()
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        (!figures.is_empty()).then(|| conclusion::of(figures))
    }
}

#[cfg(test)]
mod tests;
