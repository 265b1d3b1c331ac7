//! The other side of a network probe, and the way to it.
//!
//! ```text
//! probe ─┬─► a client, in a process of its own ──┐
//!        ├─► a path's keeper, where one is asked ├── Route: the loopback, a path of known length, or a server that waits
//!        └─► a server, in a process of its own ──┘
//! ```
//! Probes that measure over a path have their client in a child process too: this process has threads and cannot go elsewhere.

use latlab_harness::{Env, Plan, Planned, Support};
use latlab_net::PathSpec;
use latlab_record::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use latlab_probes_shared::{no_kernel, other_cpu};

#[cfg(target_os = "linux")]
mod away;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod pair;
#[cfg(target_os = "linux")]
mod python;
#[cfg(target_os = "linux")]
mod route;
#[cfg(target_os = "linux")]
mod side;
#[cfg(target_os = "linux")]
mod web;

#[cfg(target_os = "linux")]
pub(crate) use away::{secret, told};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use client::Fault;
#[cfg(target_os = "linux")]
pub(crate) use client::{Connects, Stamped, Transferred, WebClient, Work, fetch};
#[cfg(target_os = "linux")]
pub(crate) use pair::{Pair, Pairs};
#[cfg(target_os = "linux")]
pub(crate) use python::Interpreter;
#[cfg(target_os = "linux")]
pub(crate) use route::{Route, keep};
#[cfg(target_os = "linux")]
pub(crate) use side::{Place, Side, failed};
#[cfg(target_os = "linux")]
pub(crate) use web::{WebServer, serve};

/// What a point's `path` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum PathKind {
    /// Nothing between the two sides but this machine.
    Loopback,
    /// A path of the delay and rate that the settings ask for.
    Emulated,
    /// Whatever lies between this machine and the server that the user names (`--url`).
    Url,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Protocol {
    /// HTTP/1.1 without TLS.
    #[serde(rename = "http/1.1")]
    Plain,
    /// HTTP/1.1 by TLS.
    #[serde(rename = "https")]
    Tls,
    /// HTTP/2 without TLS: all transfers on one connection.
    #[serde(rename = "http/2")]
    Streams,
}

/// Whose program transfers files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Engine {
    /// Our own client.
    Latlab,
    /// A library of Python's.
    PythonRequests,
    /// Another one.
    PythonHttpx,
}

impl Engine {
    /// Those of Python's.
    pub(crate) const LIBRARIES: [Self; 2] = [Self::PythonRequests, Self::PythonHttpx];

    /// As points have it.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The package that it takes.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Latlab => "latlab",
            Self::PythonRequests => "requests",
            Self::PythonHttpx => "httpx",
        }
    }
}

/// The way between client and server, as a record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RouteDetails {
    /// A path that delays packets.
    Emulated {
        /// What delays: `netem`, `delay-line`.
        kind: String,
        /// The round trip that was asked for.
        rtt_ns: u64,
        /// The shortest round trip that was measured.
        least_rtt_ns: u64,
        rate_bit_per_s: Option<u64>,
        /// Why nothing better delays.
        why_not_better: Vec<String>,
    },
    /// A server that waits before it answers: `application`.
    Application {
        kind: String,
        /// How long it waits.
        rtt_ns: u64,
        /// Which part of a transfer takes the time that it would over such a path.
        valid_for: String,
        /// Why no path delays.
        why_not_better: Vec<String>,
    },
    /// What there is without being made: `loopback`, `url`.
    Real { kind: String },
}

impl RouteDetails {
    /// The round trip that was asked for, ns.
    pub(crate) fn asked_ns(&self) -> Option<u64> {
        match self {
            Self::Emulated { rtt_ns, .. } | Self::Application { rtt_ns, .. } => Some(*rtt_ns),
            Self::Real { .. } => None,
        }
    }

    /// Of a path that delays packets.
    pub(crate) fn rate_bit_per_s(&self) -> Option<u64> {
        match self {
            Self::Emulated { rate_bit_per_s, .. } => *rate_bit_per_s,
            Self::Application { .. } | Self::Real { .. } => None,
        }
    }

    /// The first reason why nothing better delays.
    pub(crate) fn why_not_better(&self) -> Option<&str> {
        match self {
            Self::Emulated { why_not_better, .. } | Self::Application { why_not_better, .. } => {
                why_not_better.first().map(String::as_str)
            }
            Self::Real { .. } => None,
        }
    }
}

/// Requests and connections to that server come no faster than one in this time, and are so many a point: nobody's server is loaded.
pub(crate) const NAMED_PAUSE_S: f64 = 0.1;
/// About what one of them takes, with the pause before it, s.
pub(crate) const NAMED_ONE_S: f64 = NAMED_PAUSE_S + 0.15;
pub(crate) const NAMED_MOST_BLOCKS: usize = 10;

/// How often a block asks it.
pub(crate) fn named_count(env: &Env) -> u32 {
    env.settings.profile.of([1, 2, 4])
}

/// The plan of a point, with no more blocks than that server may be asked where it is the one that is asked.
pub(crate) fn politely<P>(is_named: bool, planned: Planned<P>) -> Planned<P> {
    let most_blocks = if is_named { NAMED_MOST_BLOCKS } else { planned.most_blocks };
    Planned { most_blocks, ..planned }
}

/// Whether the user's server is asked by TLS; none where no server is named.
pub(crate) fn named_by_tls(settings: &Settings) -> Option<bool> {
    settings.url.as_ref().map(|url| url.starts_with("https://"))
}

/// The path that the settings ask for; none when they leave it at the loopback.
///
/// # Errors
/// When there is no such distance, in words for the user.
pub(crate) fn path_asked(settings: &Settings) -> Result<Option<PathSpec>, String> {
    let mut spec = match (&settings.distance, settings.delay_ms) {
        (Some(name), _) => {
            PathSpec::preset(name).ok_or_else(|| format!("there is no distance with the name {name:?}"))?
        }
        (None, Some(ms)) => PathSpec { rtt_us: whole(ms * 1e3), rate_bit_per_s: None, queue_bytes: None },
        (None, None) if settings.rate_mbit.is_none() => return Ok(None),
        (None, None) => PathSpec { rtt_us: 0, rate_bit_per_s: None, queue_bytes: None },
    };
    spec.rate_bit_per_s = settings.rate_mbit.map(|mbit| whole(mbit * 1e6));
    Ok(Some(spec))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "settings within what can be emulated; others saturate and are refused by the path"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The paths that this run has, what was asked for first.
pub(crate) fn paths(settings: &Settings) -> Vec<PathKind> {
    let named = settings.url.is_some().then_some(PathKind::Url);
    let emulated = matches!(path_asked(settings), Ok(Some(_))).then_some(PathKind::Emulated);
    named.into_iter().chain(emulated).chain([PathKind::Loopback]).collect()
}

/// Whether probes with a client and a server in processes of their own can run. `here` is whether they were written for this system.
pub(crate) fn support(here: bool, env: &Env) -> Support {
    if let Err(reason) = path_asked(&env.settings) {
        return Support::No(reason);
    }
    support_beside(here, env, "child processes", "client and server share it, and take turns")
}

/// Whether probes with these child processes can run, and what is lost on one CPU.
pub(crate) fn support_beside(here: bool, env: &Env, children: &str, on_one_cpu: &str) -> Support {
    if let Some(reason) = no_kernel(here, env) {
        return Support::No(reason);
    }
    if env.child.is_none() {
        return Support::No(format!("needs {children}, which cannot be started here"));
    }
    if other_cpu(env).is_none() {
        return Support::Degraded(format!("this process may use one CPU: {on_one_cpu}"));
    }
    Support::Yes
}

/// Who runs where: a client on the CPU that measures, its server on another one, a path on those that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) client: u32,
    pub(crate) server: u32,
    pub(crate) path: Vec<u32>,
}

impl Seats {
    pub(crate) fn of(env: &Env) -> Self {
        let server = other_cpu(env).unwrap_or(env.home_cpu);
        let mut path: Vec<u32> =
            env.cpus.iter().copied().filter(|cpu| *cpu != env.home_cpu && *cpu != server).collect();
        if path.is_empty() {
            path.push(server);
        }
        Self { client: env.home_cpu, server, path }
    }

    /// Whether client and server have a CPU each.
    pub(crate) fn apart(&self) -> bool {
        self.client != self.server
    }
}

#[cfg(test)]
mod tests;
