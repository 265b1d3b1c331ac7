//! `network.roundtrip`: a message goes to another process through a socket, and its answer comes back.

use std::net::IpAddr;

#[cfg(not(target_os = "linux"))]
use super::elsewhere as work;
use crate::peer::{Transport, support_beside, whole_part};
use latlab_probes_shared::other_cpu;
use latlab_probes_shared::prelude::*;

#[cfg(target_os = "linux")]
#[path = "roundtrip/linux.rs"]
mod work;

/// The probe.
pub struct RoundTrip;

/// The message that is compared everywhere: small enough to cost nothing itself.
const SMALL: usize = 64;
/// Transport, sizes, priority; in the order in which they are given up last.
const POINTS: [(Transport, &[usize], u8); 6] = [
    (Transport::Tcp, &[SMALL], 0),
    (Transport::Unix, &[SMALL], 0),
    (Transport::Udp, &[SMALL], 0),
    (Transport::Tcp, &[1 << 10, 16 << 10, 64 << 10, 4 << 10], 1),
    (Transport::Udp, &[16 << 10, 1 << 10, 4 << 10], 2),
    (Transport::Unix, &[64 << 10, 16 << 10, 1 << 10, 4 << 10], 2),
];

/// Round trips before the first that counts.
const WARM: u64 = 16;
/// As long they go on where both sides sleep on CPUs of their own, s: after 50 to 100 ms of mostly waiting
/// the figure stays.
const IDLING_S: f64 = 0.1;

/// A message there and its answer back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trip {
    transport: Transport,
    message_bytes: usize,
    placement: Placement,
}

/// Where client and server run, and how they wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On one CPU.
    SameCpu,
    /// On two CPUs, asleep while they wait.
    AcrossBlocking,
    /// On two CPUs, asking again and again.
    AcrossPolling,
}

const PLACEMENTS: [Placement; 3] = [Placement::SameCpu, Placement::AcrossBlocking, Placement::AcrossPolling];

impl Trip {
    /// What the plan reckons for it, s.
    fn takes_s(self) -> f64 {
        let empty = match self.placement {
            Placement::SameCpu => 12e-6,
            Placement::AcrossBlocking => 60e-6,
            Placement::AcrossPolling => 10e-6,
        };
        empty + self.message_bytes as f64 * 0.6e-9
    }

    /// How many a block has, and never so few that its median is one trip's.
    fn of_a_block(self, profile: Profile) -> u64 {
        let block_s = profile.of([2.5e-3, 5e-3, 15e-3]);
        whole_part(block_s / self.takes_s()).max(16).into()
    }

    /// Whether both sides sleep on CPUs of their own, and go on for a while before the first block of a
    /// visit.
    fn idles(self) -> bool {
        self.placement == Placement::AcrossBlocking
    }

    fn planned(self, env: &Env, priority: u8) -> Planned<Self> {
        // The smallest message between two CPUs that sleep, by each transport; of TCP also the other ways.
        let is_headline = self.message_bytes == SMALL
            && (self.transport == Transport::Tcp || self.idles() || other_cpu(env).is_none())
            && self.transport != Transport::Udp;
        let trips_s = WARM as f64 * self.takes_s();
        let warming_s = if self.idles() { trips_s + IDLING_S } else { trips_s };
        Planned {
            rank: if is_headline { env.headline_but_quick(Rank::Curve) } else { Rank::Curve },
            priority,
            setup_s: 1e-3 + warming_s,
            block_s: self.of_a_block(env.settings.profile) as f64 * self.takes_s(),
            // On one CPU the core never waits; across CPUs neighbours' use of memory matters to neither.
            cache_scope: if self.placement == Placement::SameCpu {
                CacheScope::First
            } else {
                CacheScope::Private
            },
            ..Planned::new(self)
        }
    }
}

/// Who made the round trips of a point, and how they waited.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sides {
    /// The server's; none of a Unix socket.
    address: Option<IpAddr>,
    /// The client's CPU.
    from_cpu: u32,
    /// The server's CPU.
    to_cpu: u32,
    /// Switches of the client; of one that polls, only those that it asked for.
    switches_per_round_trip: Option<f64>,
    server_switches_per_round_trip: Option<f64>,
    /// A round trip of sides that sleep on CPUs of their own, just after other work.
    just_after_work_ns: Option<f64>,
}

/// What the placements say together.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    transports: Vec<Placements>,
}

/// Round trips of one transport, for small messages.
#[derive(Serialize, JsonSchema)]
struct Placements {
    transport: Transport,
    message_bytes: usize,
    same_cpu_ns: Option<f64>,
    across_blocking_ns: Option<f64>,
    across_polling_ns: Option<f64>,
    /// What blocking takes more than polling: two wake-ups.
    wake_up_ns: Option<f64>,
    /// Of the round trip that blocks.
    wake_up_share: Option<f64>,
    most_over_least: Option<f64>,
}

impl Probe for RoundTrip {
    type Point = Trip;
    type Evidence = work::Evidence;
    type Details = Sides;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "network.roundtrip",
        tier: Tier::Network,
        title: "round trip through a socket",
        question: "How long does a message to another process and its answer take, and how much of that is \
            waking a process up?",
        method: "A client sends one message and waits for its answer; then the next. A value is one round \
            trip, there and back, never half of it: from before the send to after the last byte of the \
            answer, each timed alone.

The server is a process of its own with one thread. Both sides are pinned, and where they are is part of \
the point, because it decides the figure: on loopback all three are called \"the\" latency. \
same-cpu: both share a CPU, which switches between them; no other CPU is woken. across-blocking: the server \
is on another CPU and both sleep in their calls, so that each message wakes an idle CPU: twice in a round \
trip. \
across-polling: the same two CPUs, but both sides poll instead of sleeping; what remains is the time in the \
kernel. The difference of the last two is the wake-ups (wake_up_ns); `kernel.wakeup` gives one of them by a \
futex.

TCP (without Nagle's algorithm) and UDP go through the loopback interface, 127.0.0.1 or where that is \
missing ::1; a Unix stream socket goes past the network's layers. UDP carries no message above 65,507 bytes. \
A new connection is opened for each visit to a point, and some round trips warm it up, untimed. \
Where both sides sleep on CPUs of their own, these continue for a tenth of a second: just after other work \
a CPU wakes up sooner than one that has been mostly idle (50 against 70 microseconds for a round trip, seen \
on an otherwise idle machine), and a program that only waits for messages gets the later figure. \
The one just after work is kept beside it (just_after_work_ns).

Each request carries words that only it has, at its begin, each 4 KiB and its end; the server changes them, \
and the client compares every byte of the answer, untimed. An answer that was lost, doubled, given too \
early or to another request does not count. \
Both sides count messages and bytes, and the kernel their switches: a side that blocks must have slept, one \
that polls must not.

No timer is set in the timed calls: a watching thread stops what takes longer than some seconds, and the \
point ends with that reason. The server ends with this process, however that ends.",
        method_version: 2,
        unit: Unit::Ns,
        convention: "one message there and its answer back",
        needs: &["child processes"],
        touches: &["sockets on the loopback interface, a child process, a second CPU"],
        saturates: false,
        operations: Operations::SystemCalls,
    };

    fn plan(&self, env: &Env) -> Plan<Trip> {
        let support = support_beside(
            work::HERE,
            env,
            "a child process that answers",
            "round trips between CPUs, blocking or polling, are not measured",
        );
        let two = other_cpu(env).is_some();
        let asked = POINTS.into_iter().flat_map(|(transport, sizes, priority)| {
            sizes.iter().map(move |message_bytes| (transport, *message_bytes, priority))
        });
        let points = asked.flat_map(|(transport, message_bytes, priority)| {
            PLACEMENTS
                .into_iter()
                .filter(|placement| two || *placement == Placement::SameCpu)
                .map(move |placement| Trip { transport, message_bytes, placement }.planned(env, priority))
        });
        // Two messages on each side.
        Plan::of(points.collect()).memory(4 * (64 << 10)).cpus(1 + u32::from(two)).given(support)
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Trip]) -> Result<work::Session<'env>, ProbeError> {
        work::open(env, group)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let transports: Vec<Placements> = [Transport::Tcp, Transport::Udp, Transport::Unix]
            .into_iter()
            .filter_map(|transport| placements(figures, transport))
            .collect();
        (!transports.is_empty()).then_some(Findings { transports })
    }
}

fn placements(figures: &[Figure<RoundTrip>], transport: Transport) -> Option<Placements> {
    let all = PLACEMENTS.map(|placement| {
        let point = Trip { transport, message_bytes: SMALL, placement };
        Some(result_at(figures, &point)?.p50)
    });
    let known = || all.iter().flatten().copied();
    let least = known().reduce(f64::min)?;
    let most = known().reduce(f64::max)?;
    let [same, blocking, polling] = all;
    let wake_up = blocking.zip(polling).map(|(blocking, polling)| blocking - polling);
    Some(Placements {
        transport,
        message_bytes: SMALL,
        same_cpu_ns: same,
        across_blocking_ns: blocking,
        across_polling_ns: polling,
        wake_up_ns: wake_up,
        wake_up_share: wake_up.zip(blocking).map(|(wake_up, whole)| wake_up / whole),
        most_over_least: (known().count() > 1).then(|| most / least),
    })
}

#[cfg(test)]
mod tests;
