//! `network.http`: how long HTTP requests take that come at a fixed rate, counted from when they were due.

use latlab_harness::Share;
use latlab_probes_shared::prelude::*;
use latlab_record::Settings;

#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use crate::peer::{Transport, path_asked, support_beside};
use latlab_probes_shared::open_loop::{AtRate, Offered};
use latlab_probes_shared::{no_kernel, other_cpu};
use latlab_stats::count::nearest;

#[cfg(target_os = "linux")]
#[path = "http/linux.rs"]
mod work;

/// The probe.
pub struct Http;

/// Connections, and so requests under way at most.
const CONNECTIONS: u32 = 32;
/// Bytes of an answer of our own server.
const ANSWER_BYTES: u64 = 1 << 10;
/// Blocks that a point's time is cut into: enough for an interval between blocks, few enough that each has
/// several requests.
const BLOCKS: usize = 16;
/// Seconds in the quick, standard and thorough profile: with our own server, and with the user's.
pub const SHARE: Share = Share([0.8, 0.5, 5.0]);
const AWAY: Share = Share([3.0, 5.0, 20.0]);
/// Requests a second of each profile; the first is given up last.
/// Half a second of the first has enough requests for a p99.
const OWN_RATES: [&[u64]; 3] = [&[2_000], &[2_000], &[2_000, 100, 10_000]];
const AWAY_RATES: [&[u64]; 3] = [&[10], &[10], &[10, 50]];

/// Seconds that there are for the points.
fn seconds(settings: &Settings) -> f64 {
    let own = if settings.url.is_some() { AWAY } else { SHARE };
    match settings.budget_s {
        // Starting and ending take some of it.
        Some(budget_s) if settings.only.as_slice() == [Http::SPEC.id] => (budget_s - 4.0).max(budget_s / 2.0),
        _ => settings.profile.of(own.0),
    }
}

fn rates(settings: &Settings) -> Vec<u64> {
    if let Some(rate) = settings.requests_per_s {
        return vec![rate];
    }
    let rates = if settings.url.is_some() { AWAY_RATES } else { OWN_RATES };
    settings.profile.of(rates).to_vec()
}

/// Requests of one block.
fn requests(settings: &Settings, rate_per_s: u64) -> u64 {
    let block_s = seconds(settings) / (rates(settings).len() * BLOCKS) as f64;
    nearest(block_s * rate_per_s as f64).max(1)
}

/// Requests at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    transport: Transport,
    rate_per_s: u64,
    /// Of an answer of our own server.
    file_bytes: Option<u64>,
}

/// How requests were answered, and when they were sent.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// Whose it is.
    server: String,
    /// Whether it was reached by IPv6.
    #[serde(default)]
    ipv6: bool,
    connections: u32,
    /// As many were opened, those included that the server had closed between two requests.
    connections_opened: u64,
    least_body_bytes: Option<u64>,
    most_body_bytes: Option<u64>,
    #[serde(flatten)]
    offered: Offered,
    /// Requests that were sent late by this program's fault.
    late: u64,
}

/// What the rates show together.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// By rate, ascending.
    curve: Vec<AtRate>,
}

impl Probe for Http {
    type Point = Requests;
    type Evidence = work::Evidence;
    type Details = Answers;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.http",
        tier: Tier::Network,
        title: "HTTP requests at a fixed rate",
        question: "When requests come at their own rate, how long does each wait for its answer, counted \
            from when it was due?",
        method: "GET requests (HTTP/1.1, kept connections) are sent at a rate: the due times are drawn in \
            advance (a Poisson process, as of many independent users) and never change. A value is one \
            request from its due time until the last byte of its answer was read; \
the channel service holds the same requests from when they were sent. A client that waits for each answer \
before its next request reports only that: while the server stalls it sends nothing, and its quantiles hide \
the stall (coordinated omission). \
While a server stalled for 2 of 10 seconds, p99 was 1.9 s counted from the due times and below 10 ms \
counted from the sending: both are shown, and users experience the first.

Up to 32 requests are in flight, each on its own connection, all from one thread. A request that finds 32 \
in flight waits, and its wait counts (held_back). A block that ends while the server stalls continues until \
its requests are answered, and each request due by then counts as well: \
a stall is never cut off by a block's end. The last 120 µs before a due time are spun, because a sleeping \
thread is woken late; a request that was sent more than 50 µs late although there was room is late because \
of this program: it is counted (late) and is not a sample, and more than one in a hundred are flagged.

Without --url the server is latlab's own, in a process and on a CPU of its own, and answers 1 KiB from \
memory; every byte is compared, and both sides count. With --url requests leave this machine: 10 a second \
unless --requests says otherwise (50 as well in the thorough profile), to that URL alone, without following \
redirections. \
The certificate must be one that this system trusts; --secret-file holds the secret of another latlab's \
server (latlab serve).

Connections are opened, and some requests sent, before the first that counts. One that the server closes \
between two requests is opened again by the request that finds it so, and that is part of its time. \
The first request that fails (refused, reset, truncated, not HTTP, another status than 200, no answer \
within 5 s) ends the probe with that reason: a server that refuses is not asked again.",
        method_version: 1,
        unit: Unit::Ns,
        convention: "one request, from its due time to the last byte of its answer",
        needs: &["child processes"],
        touches: &["sockets on the loopback interface and a child process; with --url the server that it \
            names"],
        saturates: false,
        operations: Operations::SystemCalls,
    };

    fn wanted(&self, settings: &Settings) -> bool {
        let named = settings.only.iter().any(|glob| glob == Self::SPEC.id);
        settings.profile != Profile::Quick || settings.url.is_some() || named
    }

    fn share(&self, settings: &Settings) -> Option<Share> {
        settings.url.is_some().then_some(AWAY)
    }

    fn plan(&self, env: &Env) -> Plan<Requests> {
        let away = env.settings.url.is_some();
        let points = rates(&env.settings).into_iter().enumerate().map(|(place, rate_per_s)| Planned {
            rank: if away { Rank::Once } else { Rank::Detail },
            priority: u8::from(place > 0),
            // A second server's connections take some of its round trips.
            setup_s: 1e-3,
            first_s: if away { 0.5 } else { 0.02 },
            block_s: requests(&env.settings, rate_per_s) as f64 / rate_per_s as f64,
            // The tail is the question: a narrow median is no reason to end.
            least_blocks: BLOCKS,
            cache_scope: CacheScope::Disturbances,
            ..Planned::new(Requests {
                transport: Transport::Tcp,
                rate_per_s,
                file_bytes: (!away).then_some(ANSWER_BYTES),
            })
        });
        Plan::of(points.collect())
            .given(supported(env))
            // What is read at once, and the server's block of bytes.
            .memory(1 << 20)
            .cpus(1 + u32::from(!away && other_cpu(env).is_some()))
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Requests]) -> Result<work::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let mut curve: Vec<AtRate> = figures.iter().map(at_rate).collect();
        curve.sort_by_key(|own| own.rate_per_s);
        (!curve.is_empty()).then_some(Findings { curve })
    }
}

fn supported(env: &Env) -> Support {
    if env.settings.url.is_some() {
        return no_kernel(work::HERE, env).map_or(Support::Yes, Support::No);
    }
    let usual =
        support_beside(work::HERE, env, "a child process that answers", "the server and its client share it");
    if !matches!(usual, Support::No(_)) && matches!(path_asked(&env.settings), Ok(Some(_))) {
        return Support::Degraded(
            "--delay, --rate and --distance do not apply to this probe: its requests go over the loopback. \
The measuring process holds its connections; it has several threads and so cannot enter an emulated path"
                .to_owned(),
        );
    }
    usual
}

fn at_rate(figure: &Figure<Http>) -> AtRate {
    AtRate {
        rate_per_s: figure.point.rate_per_s,
        p50_ns: figure.result.p50,
        offered: figure.details.as_ref().map(|own| own.offered.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
