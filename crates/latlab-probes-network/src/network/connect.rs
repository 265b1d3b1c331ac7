//! `network.connect`: a name gets an address, a connection is opened, TLS shakes hands.

use latlab_harness::Share;
use latlab_probes_shared::prelude::*;
use latlab_record::Settings;
use serde_json::Number;

#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use crate::peer::{
    NAMED_ONE_S, PathKind, RouteDetails, named_by_tls, named_count, path_asked, paths, politely, support,
    whole_part,
};

#[cfg(target_os = "linux")]
#[path = "connect/linux.rs"]
mod work;

/// The probe.
pub struct Connect;

/// What a path's establishing takes, s: round trips, and three processes.
pub(super) const ESTABLISHING_S: f64 = 0.5;
/// Without a path.
pub(super) const STARTING_S: f64 = 0.01;

/// Seconds in each profile where the user names a server.
const AWAY: Share = Share([5.0, 10.0, 20.0]);

/// One phase of opening a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    operation: Phase,
    path: PathKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    Tcp,
    Tls,
    Resolve,
}

impl Phase {
    /// Beside the round trips, s.
    fn own_s(self) -> f64 {
        match self {
            Self::Tls => 1.2e-3,
            Self::Resolve => 250e-6,
            Self::Tcp => 80e-6,
        }
    }

    /// Round trips of one that is opened.
    fn round_trips(self) -> f64 {
        match self {
            Self::Resolve => 0.0,
            Self::Tcp => 1.0,
            Self::Tls => 2.0,
        }
    }
}

impl Opening {
    /// Connections of a block and seconds for one.
    fn block(self, env: &Env) -> (u32, f64) {
        let rtt_s = match self.path {
            PathKind::Url => return (named_count(env), NAMED_ONE_S),
            PathKind::Emulated => {
                path_asked(&env.settings).ok().flatten().map_or(0.0, |spec| spec.rtt_us as f64 * 1e-6)
            }
            PathKind::Loopback => 0.0,
        };
        let one_s = self.operation.own_s() + self.operation.round_trips() * rtt_s;
        let wanted_s = env.settings.profile.of([6e-3, 20e-3, 100e-3]);
        (whole_part(wanted_s / one_s).clamp(3, 200), one_s)
    }

    /// Of the user's server TLS is asked for where the URL says so.
    fn is_asked(self, settings: &Settings) -> bool {
        match (self.operation, self.path) {
            (Phase::Resolve, PathKind::Emulated) => false,
            (Phase::Tls, PathKind::Url) => named_by_tls(settings) != Some(false),
            _ => true,
        }
    }

    fn planned(self, env: &Env, priority: u8) -> Planned<Self> {
        let (count, one_s) = self.block(env);
        let rank = match (self.path, self.operation) {
            (PathKind::Loopback, Phase::Tcp | Phase::Tls) => env.headline_but_quick(Rank::Detail),
            (PathKind::Loopback, Phase::Resolve) => Rank::Detail,
            // An emulated path, or a server of somebody else's.
            _ => Rank::Once,
        };
        let planned = Planned {
            rank,
            priority,
            setup_s: 1e-4,
            first_s: if self.path == PathKind::Emulated { ESTABLISHING_S } else { STARTING_S },
            block_s: f64::from(count) * one_s,
            cache_scope: CacheScope::Private,
            ..Planned::new(self)
        };
        politely(self.path == PathKind::Url, planned)
    }
}

/// Over which way connections went.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    route: RouteDetails,
    /// The soonest, a whole number.
    least_ns: Number,
}

/// What opening a connection takes.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    paths: Vec<OnPath>,
}

/// Over one path, in all.
#[derive(Serialize, JsonSchema)]
struct OnPath {
    path: PathKind,
    route: Option<RouteDetails>,
    resolve_ns: Option<f64>,
    tcp_ns: f64,
    tls_ns: Option<f64>,
    /// Connection and TLS.
    secured_ns: Option<f64>,
    /// The soonest connection.
    least_tcp_ns: Option<f64>,
    /// Over the round trip that was asked for.
    least_over_asked: Option<f64>,
}

impl Probe for Connect {
    type Point = Opening;
    type Evidence = work::Evidence;
    type Details = Opened;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.connect",
        tier: Tier::Network,
        title: "opening a connection",
        question: "What does connection set-up cost: the name, the connection, and TLS?",
        method: "A client in a process of its own opens connections to a server in another process, one \
            after the other, and closes them without a request. A value is one phase, timed alone; the \
            phases before it are kept beside it as channels.

resolve asks the system's resolver for `localhost`, as programs do (getaddrinfo in a thread of its own, \
because it knows no time-out): no name server is asked, so that this is the least that a name costs. \
tcp is from the first packet of a connection until it is open: one round trip. tls is a whole handshake \
after that, by TLS 1.3 with a certificate made at the server's start (ECDSA P-256), no session resumed: one \
round trip and the arithmetic of both sides.

Over an emulated path (--delay, --distance) the same is measured beside the loopback, which is the \
software's part of it. No connection over the path may open sooner than the path's delay: that would bypass \
the path. \
The server counts connections as well as the client.

With --url the same is measured first to the server that it names, over the network in between: its name is \
resolved as for any program (the system may remember the answer, and does after the first), TLS is used \
where the URL says https, with the certificates that this system trusts. \
No more than ten connections a second are opened, at most ten blocks of one (quick), two or four for each \
of the steps, and none of them carries a request.",
        method_version: 1,
        unit: Unit::Ns,
        convention: "one phase of opening one connection",
        needs: &["child processes"],
        touches: &[
            "sockets on the loopback interface, child processes, a second CPU",
            "private network namespaces for an emulated path",
            "with --url connections to the server that it names",
        ],
        saturates: false,
        operations: Operations::Unwatched,
    };

    fn share(&self, settings: &Settings) -> Option<Share> {
        settings.url.is_some().then_some(AWAY)
    }

    fn plan(&self, env: &Env) -> Plan<Opening> {
        let points = paths(&env.settings).into_iter().enumerate().flat_map(|(nth, path)| {
            [Phase::Tcp, Phase::Tls, Phase::Resolve]
                .map(|operation| Opening { operation, path })
                .into_iter()
                .filter(|point| point.is_asked(&env.settings))
                .map(move |point| point.planned(env, u8::from(nth > 0)))
        });
        Plan::of(points.collect())
            .given(support(work::HERE, env))
            // The buffer of the server's bodies and those of a connection.
            .memory(2 << 20)
            .cpus(u32::try_from(env.cpus.len()).unwrap_or(u32::MAX).min(2))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Opening]) -> Result<work::Session<'env>> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let paths: Vec<OnPath> = [PathKind::Url, PathKind::Emulated, PathKind::Loopback]
            .into_iter()
            .filter_map(|path| on_path(figures, path))
            .collect();
        (!paths.is_empty()).then_some(Findings { paths })
    }
}

fn on_path(figures: &[Figure<Connect>], path: PathKind) -> Option<OnPath> {
    let p50 = |operation| Some(result_at(figures, &Opening { operation, path })?.p50);
    let tcp = figures.iter().find(|figure| figure.point == Opening { operation: Phase::Tcp, path })?;
    let tcp_ns = tcp.result.p50;
    let route = tcp.details.as_ref().map(|details| details.route.clone());
    let least = tcp.details.as_ref().and_then(|details| details.least_ns.as_f64());
    let asked = route.as_ref().and_then(RouteDetails::asked_ns).filter(|asked| *asked > 0);
    Some(OnPath {
        path,
        route,
        resolve_ns: p50(Phase::Resolve),
        tcp_ns,
        tls_ns: p50(Phase::Tls),
        secured_ns: p50(Phase::Tls).map(|tls_ns| tcp_ns + tls_ns),
        least_tcp_ns: least,
        least_over_asked: least.zip(asked).map(|(least, asked)| least / asked as f64),
    })
}

#[cfg(test)]
mod tests;
