//! What points and records say of the two sides and of the way between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What must stand beside every figure, as a flag of its record; nothing when nothing is emulated.
    pub(crate) fn label(&self) -> Option<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        match self {
            Self::Real { .. } => None,
            Self::Emulated { kind, rtt_ns, least_rtt_ns, rate_bit_per_s, .. } => {
                let by = if kind == "netem" { "netem in" } else { "latlab's delay line between" };
                let rate =
                    rate_bit_per_s.map_or_else(String::new, |rate| format!(", {} Mbit/s", rate as f64 / 1e6));
                Some(format!(
                    "emulated: {} ms round trip{rate} by {by} two namespaces (measured: {:.3} ms)",
                    ms(*rtt_ns),
                    ms(*least_rtt_ns)
                ))
            }
            Self::Application { rtt_ns, valid_for, .. } => Some(format!(
                "emulated: the server waits {} ms before it answers; valid for {valid_for}",
                ms(*rtt_ns)
            )),
        }
    }

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
