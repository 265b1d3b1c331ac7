//! `network.connect`: a name gets an address, a connection is opened, TLS shakes hands.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Share, Spec,
    Support, Tier,
};
use latlab_record::{Header, Point, Record, Settings, Unit};
use serde_json::{Value, json};

use crate::peer::{
    EMULATED, LOOPBACK, NAMED, NAMED_ONE_S, is_named, named_by_tls, named_count, path_asked, paths, politely,
    support,
};

#[cfg_attr(target_os = "linux", path = "connect/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "connect/elsewhere.rs")]
mod work;

/// The probe.
pub struct Connect;

static SPEC: Spec = Spec {
    id: "network.connect",
    tier: Tier::Network,
    title: "opening a connection",
    question: "What is paid before the first byte of a request can go: for the name, the connection, and TLS?",
    method: "A client in a process of its own opens connections to a server in another one, one after the other, and closes them without a request. A value is one phase, timed alone; the phases before it are kept beside it as channels.

resolve asks the system's resolver for `localhost`, as programs do (getaddrinfo in a thread of its own, because it knows no time-out): no name server is asked, so that this is the least that a name costs. \
tcp is from the first packet of a connection until it is open: one round trip. tls is a whole handshake after that, by TLS 1.3 with a certificate made at the server's start (ECDSA P-256), no session resumed: one round trip and the arithmetic of both sides.

Over an emulated path (--delay, --distance) the same is measured beside the loopback, which is the software's part of it. No connection over the path may be open sooner than the path is long: that would be a way around it. \
The server counts connections as well as the client.

With --url the same is measured first to the server that it names, over whatever lies between: its name is resolved as any program would have it (the system may remember the answer, and does after the first), TLS is asked for where the URL says https and trusts whom this system trusts. \
No more than ten connections a second are opened, at most ten blocks of one (quick), two or four for each of the steps, and none of them carries a request.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one phase of opening one connection",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface, child processes, a second CPU", "private network namespaces for an emulated path", "with --url connections to the server that it names"],
    saturates: false,
    operations: Operations::Unwatched,
};

const RESOLVE: &str = "resolve";
const TCP: &str = "tcp";
const TLS: &str = "tls";

/// Beside the round trips, s.
fn own_s(operation: &str) -> f64 {
    match operation {
        TLS => 1.2e-3,
        RESOLVE => 250e-6,
        _ => 80e-6,
    }
}

/// Round trips of one that is opened.
fn round_trips(operation: &str) -> f64 {
    match operation {
        RESOLVE => 0.0,
        TCP => 1.0,
        _ => 2.0,
    }
}

/// What a path's establishing takes, s: round trips, and three processes.
pub(super) const ESTABLISHING_S: f64 = 0.5;
/// Without a path.
pub(super) const STARTING_S: f64 = 0.01;

/// Seconds in each profile where the user names a server.
const AWAY: Share = Share([5.0, 10.0, 20.0]);

/// Connections of a block and seconds for one.
fn block(env: &Env, point: &Point) -> (u32, f64) {
    let operation = point.operation.as_deref().unwrap_or_default();
    if is_named(point) {
        return (named_count(env), NAMED_ONE_S);
    }
    let rtt_s = if point.path.as_deref() == Some(EMULATED) {
        path_asked(&env.settings).ok().flatten().map_or(0.0, |spec| spec.rtt_us as f64 * 1e-6)
    } else {
        0.0
    };
    let one_s = own_s(operation) + round_trips(operation) * rtt_s;
    let wanted_s = env.settings.profile.of([6e-3, 20e-3, 100e-3]);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let count = (wanted_s / one_s).clamp(3.0, 200.0) as u32;
    (count, one_s)
}

impl AnyProbe for Connect {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn share(&self, settings: &Settings) -> Option<Share> {
        settings.url.is_some().then_some(AWAY)
    }

    fn supports(&self, env: &Env) -> Support {
        support(work::HERE, env)
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let mut all = Vec::new();
        for (nth, path) in paths(&env.settings).into_iter().enumerate() {
            for operation in [TCP, TLS, RESOLVE] {
                if operation == RESOLVE && path == EMULATED {
                    continue;
                }
                if operation == TLS && path == NAMED && named_by_tls(&env.settings) == Some(false) {
                    continue;
                }
                let point = Point {
                    operation: Some(operation.to_owned()),
                    path: Some(path.to_owned()),
                    ..Point::default()
                };
                let (count, one_s) = block(env, &point);
                let rank = match (path, operation) {
                    (LOOPBACK, TCP | TLS) => env.headline_but_quick(Rank::Detail),
                    (LOOPBACK, _) => Rank::Detail,
                    // An emulated path, or a server of somebody else's.
                    _ => Rank::Once,
                };
                all.push(politely(Planned {
                    rank,
                    priority: u8::from(nth > 0),
                    setup_s: 1e-4,
                    first_s: if path == EMULATED { ESTABLISHING_S } else { STARTING_S },
                    block_s: f64::from(count) * one_s,
                    reach: Reach::Private,
                    ..Planned::new(point)
                }));
            }
        }
        all
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        // The buffer of the server's bodies and those of a connection.
        2 << 20
    }

    fn cpus(&self, env: &Env) -> u32 {
        u32::try_from(env.cpus.len()).unwrap_or(u32::MAX).min(2)
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let rows: Vec<Value> =
            [NAMED, EMULATED, LOOPBACK].into_iter().filter_map(|path| concluded(results, path)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        vec![SPEC.derived(json!({ "paths": rows }))]
    }
}

/// What opening a connection over one path takes in all.
fn concluded(results: &[PointResult], path: &str) -> Option<Value> {
    let of = |operation: &str| {
        results.iter().find(|result| {
            result.point.path.as_deref() == Some(path) && result.point.operation.as_deref() == Some(operation)
        })
    };
    let tcp = of(TCP)?;
    let p50 = |operation: &str| of(operation).map(|result| result.p50);
    let found = |name: &str| tcp.findings.as_ref().map_or(Value::Null, |own| own[name].clone());
    let least = found("least_ns").as_f64();
    let asked = found("route")["rtt_ns"].as_f64().filter(|asked| *asked > 0.0);
    Some(json!({
        "path": path,
        "route": found("route"),
        "resolve_ns": p50(RESOLVE),
        "tcp_ns": p50(TCP),
        "tls_ns": p50(TLS),
        "secured_ns": p50(TCP).zip(p50(TLS)).map(|(tcp, tls)| tcp + tls),
        "least_tcp_ns": least,
        "least_over_asked": least.zip(asked).map(|(least, asked)| least / asked),
    }))
}

#[cfg(test)]
mod tests;
