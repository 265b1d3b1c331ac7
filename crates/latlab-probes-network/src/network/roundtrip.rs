//! `network.roundtrip`: a message goes to another process through a socket, and its answer comes back.

use std::io::{BufRead, Write};

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Spec, Support, Tier,
};
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::{Value, json};

use crate::peer::support_beside;
use latlab_probes_shared::other_cpu;

#[cfg_attr(target_os = "linux", path = "roundtrip/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "roundtrip/elsewhere.rs")]
mod work;

#[cfg(target_os = "linux")]
pub(crate) use work::{Request, Told};

/// The probe.
pub struct RoundTrip;

static SPEC: Spec = Spec {
    id: "network.roundtrip",
    tier: Tier::Network,
    title: "round trip through a socket",
    question: "How long does a message to another process and its answer take, and what of that is waking somebody up?",
    method: "A client sends one message and waits for its answer; then the next. A value is one round trip, there and back, never half of it: from before the send to after the last byte of the answer, each timed alone.

The server is a process of its own with one thread. Both sides are pinned, and where they are is part of the point, because it decides the figure: on loopback all three are called \"the\" latency. \
same-cpu: both share a CPU, which switches between them; nobody is woken elsewhere. across-blocking: the server is on another CPU and both sleep in their calls, so that each message wakes an idle CPU: twice in a round trip. \
across-polling: the same two CPUs, but both sides ask again and again instead of sleeping; what is left is the way through the kernel. The difference of the last two is the wake-ups (wake_up_ns); `kernel.wakeup` gives one of them by a futex.

TCP (without Nagle's algorithm) and UDP go through the loopback interface, 127.0.0.1 or where that is missing ::1; a Unix stream socket goes past the network's layers. UDP takes no message above 65,507 bytes. \
A connection is made anew for each visit to a point, and some round trips warm it up, untimed. \
Where both sides sleep on CPUs of their own, these go on for a tenth of a second: just after other work a CPU wakes up sooner than one that has been mostly idle (50 against 70 microseconds for a round trip, seen on an otherwise idle machine), and who only waits for messages lives with the later figure. \
The one just after work is kept beside it (just_after_work_ns).

Each request carries words that only it has, at its begin, each 4 KiB and its end; the server changes them, and the client compares every byte of the answer, untimed. An answer that was lost, doubled, given too early or to another request is no answer. \
Both sides count messages and bytes, and the kernel their switches: who blocks must have slept, who polls must not.

No timer is set in the timed calls: a watching thread breaks off what takes longer than seconds, and the point ends with that reason. The server ends with this process, however that ends.",
    method_version: 2,
    unit: Unit::Ns,
    convention: "one message there and its answer back",
    needs: &["child processes"],
    touches: &["sockets on the loopback interface, a child process, a second CPU"],
    saturates: false,
    operations: Operations::SystemCalls,
};

const TCP: &str = "tcp";
const UDP: &str = "udp";
const UNIX: &str = "unix";
const SAME: &str = "same-cpu";
const BLOCKING: &str = "across-blocking";
const POLLING: &str = "across-polling";
const PLACEMENTS: [&str; 3] = [SAME, BLOCKING, POLLING];
/// The message that is compared everywhere: small enough to cost nothing itself.
const SMALL: u64 = 64;
/// Transport, sizes, priority; in the order in which they are given up last.
const POINTS: [(&str, &[u64], u8); 5] = [
    (TCP, &[SMALL], 0),
    (UNIX, &[SMALL], 0),
    (UDP, &[SMALL], 0),
    (TCP, &[1 << 10, 16 << 10, 64 << 10, 4 << 10], 1),
    (UDP, &[16 << 10, 1 << 10, 4 << 10], 2),
];
const UNIX_SIZES: [u64; 4] = [64 << 10, 16 << 10, 1 << 10, 4 << 10];

/// What the plan reckons for a round trip, s.
fn trip_s(placement: &str, bytes: u64) -> f64 {
    let empty = match placement {
        SAME => 12e-6,
        BLOCKING => 60e-6,
        _ => 10e-6,
    };
    empty + bytes as f64 * 0.6e-9
}

/// Round trips of a block, and never so few that its median is one trip's.
fn trips(profile: Profile, placement: &str, bytes: u64) -> u64 {
    let block_s = profile.of([2.5e-3, 5e-3, 15e-3]);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let fitting = (block_s / trip_s(placement, bytes)) as u64;
    fitting.max(16)
}

/// Round trips before the first that counts.
const WARM: u64 = 16;
/// As long they go on where both sides sleep on CPUs of their own, s: after 50 to 100 ms of mostly waiting the figure stays.
const IDLING_S: f64 = 0.1;

/// What comes before the first block of a visit, s.
fn warming_s(placement: &str, bytes: u64) -> f64 {
    let trips_s = WARM as f64 * trip_s(placement, bytes);
    if placement == BLOCKING { trips_s + IDLING_S } else { trips_s }
}

impl AnyProbe for RoundTrip {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        support_beside(
            work::HERE,
            env,
            "a child process that answers",
            "round trips between CPUs, blocking or polling, are not measured",
        )
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let profile = env.settings.profile;
        let two = other_cpu(env).is_some();
        POINTS
            .into_iter()
            .chain([(UNIX, &UNIX_SIZES[..], 2)])
            .flat_map(|(transport, sizes, priority)| {
                sizes.iter().map(move |bytes| (transport, *bytes, priority))
            })
            .flat_map(|asked| PLACEMENTS.map(|placement| (asked, placement)))
            .filter(|(_, placement)| two || *placement == SAME)
            .map(|((transport, bytes, priority), placement)| {
                let trip_s = trip_s(placement, bytes);
                // The smallest message between two CPUs that sleep, by each transport; of TCP also the other ways.
                let rank = if bytes == SMALL
                    && (transport == TCP || placement == BLOCKING || !two)
                    && transport != UDP
                {
                    env.headline_but_quick(Rank::Curve)
                } else {
                    Rank::Curve
                };
                Planned {
                    rank,
                    priority,
                    setup_s: 1e-3 + warming_s(placement, bytes),
                    block_s: trips(profile, placement, bytes) as f64 * trip_s,
                    // On one CPU the core never waits; across CPUs neighbours' use of memory matters to neither.
                    reach: if placement == SAME { Reach::First } else { Reach::Private },
                    ..Planned::new(Point {
                        transport: Some(transport.to_owned()),
                        message_bytes: Some(bytes),
                        placement: Some(placement.to_owned()),
                        ..Point::default()
                    })
                }
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        // Two messages on each side.
        4 * (64 << 10)
    }

    fn cpus(&self, env: &Env) -> u32 {
        1 + u32::from(other_cpu(env).is_some())
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
            [TCP, UDP, UNIX].into_iter().filter_map(|transport| concluded(results, transport)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        vec![SPEC.derived(json!({ "transports": rows }))]
    }
}

/// What the placements of one transport say together, for small messages.
fn concluded(results: &[PointResult], transport: &str) -> Option<Value> {
    let p50 = |placement: &str| {
        results
            .iter()
            .find(|result| {
                let point = &result.point;
                point.transport.as_deref() == Some(transport)
                    && point.message_bytes == Some(SMALL)
                    && point.placement.as_deref() == Some(placement)
            })
            .map(|result| result.p50)
    };
    let all = PLACEMENTS.map(p50);
    let known = || all.iter().flatten().copied();
    let least = known().reduce(f64::min)?;
    let most = known().reduce(f64::max)?;
    let [same, blocking, polling] = all;
    let wake_up = blocking.zip(polling).map(|(blocking, polling)| blocking - polling);
    Some(json!({
        "transport": transport,
        "message_bytes": SMALL,
        "same_cpu_ns": same,
        "across_blocking_ns": blocking,
        "across_polling_ns": polling,
        "wake_up_ns": wake_up,
        "wake_up_share": wake_up.zip(blocking).map(|(wake_up, whole)| wake_up / whole),
        "most_over_least": (known().count() > 1).then(|| most / least),
    }))
}

/// The server's process.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    work::serve(input, output)
}

#[cfg(test)]
mod tests;
