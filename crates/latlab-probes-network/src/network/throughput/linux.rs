//! Linux: windows of what arrives in a child process.

use std::net::IpAddr;
use std::time::Duration;

use latlab_net::stream::TcpFacts;
use latlab_probes_shared::prelude::*;

use super::{Carried, Connections, Pace, Placement, Tcp, Throughput};
use crate::network::linux::{Agreement, Ends, Load, Shape};
use crate::peer::{Route, check};
use latlab_probes_shared::linux::Pinned;

pub(super) const HERE: bool = true;
/// Longest wait for the first bytes of a block, milliseconds.
const START_MS: u32 = 1_000;
/// The rest of a message, or an answer of the child on its pipe, takes milliseconds, on a crowded machine
/// some time slices.
const PATIENCE: Duration = Duration::from_secs(4);
/// Reading the counters takes less, unless this thread was interrupted between the stamps, ns.
const AT_ONCE_NS: f64 = 20e3;
/// Then they are read again, so often at most.
const TRIES: u32 = 10;

pub(super) fn open<'env>(env: &'env Env, _group: &[Connections]) -> Result<Session<'env>> {
    Session::new(env, PATIENCE)
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    address: Option<IpAddr>,
    /// What TCP said at the end of each block, of every stream.
    tcp: Vec<TcpFacts>,
    /// Bytes of each stream in windows, and how long those were.
    each: Vec<u64>,
    windows_ns: f64,
}

/// Streams to a child process.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    load: Load<'env, Connections>,
    _home: Pinned,
    /// The streams that there are.
    open: Option<Open>,
}

/// The streams of this visit.
#[derive(Clone, Copy)]
struct Open {
    pace: Pace,
    address: Option<IpAddr>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// They have sent nothing yet.
    Fresh,
    Going,
    Resting,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, patience: Duration) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a rate needs a real clock".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            load: Load::new(env, &Route::loopback(), patience)?,
            _home: Pinned::to(env.home_cpu)?,
            open: None,
        })
    }

    fn shape(&self, point: &Connections) -> Shape {
        let streams = point.streams as usize;
        let cpus = in_turn(self.env);
        let alone = |first: usize, step: usize| {
            (0..streams).map(|number| vec![cpus[(first + step * number) % cpus.len()]]).collect()
        };
        let (from, to) = match point.placement {
            Placement::Anywhere => (vec![cpus.clone()], vec![cpus.clone()]),
            Placement::SameCpu => (alone(0, 1), alone(0, 1)),
            Placement::AcrossBlocking => (alone(0, 2), alone(1, 2)),
        };
        Shape { transport: point.transport, message: point.message_bytes, streams, from, to }
    }

    /// The time, and what had arrived then.
    fn arrived(&self, streams: usize) -> (u64, u64) {
        let mut tries = 0;
        loop {
            let begin = self.stamps.begin();
            let arrived = self.load.arrived(streams);
            let end = self.stamps.end();
            tries += 1;
            if self.env.clock.ns(end.saturating_sub(begin)) < AT_ONCE_NS || tries == TRIES {
                return (end, arrived);
            }
        }
    }

    fn windows(&self, streams: usize, open: Open, evidence: &mut Evidence, block: &mut Block) {
        let Pace { window_s, windows, .. } = open.pace;
        let window = Duration::from_secs_f64(window_s);
        let before = self.load.arrived_each(streams);
        let first = self.arrived(streams);
        let mut last = first;
        for _ in 0..windows {
            std::thread::sleep(window);
            let now = self.arrived(streams);
            block.rate(last.0, now.0, now.1 - last.1);
            last = now;
        }
        let after = self.load.arrived_each(streams);
        let tcp = self.load.tcp();
        let idle = before.iter().zip(&after).filter(|(before, after)| before == after).count();
        if last.1 == first.1 || (idle > 0 && streams <= self.env.cpus.len()) {
            // Somebody else had the CPU all the time; with more streams than CPUs it may have been one of
            // ours.
            block.mark_disturbed();
        }
        evidence.address = open.address;
        evidence.tcp.extend(tcp);
        evidence.windows_ns += block.span_ns(first.0, last.0);
        evidence.each.resize(streams, 0);
        for ((sum, before), after) in evidence.each.iter_mut().zip(before).zip(after) {
            *sum += after - before;
        }
    }
}

/// The CPUs that may be used, the one that measures first.
fn in_turn(env: &Env) -> Vec<u32> {
    let home = env.cpus.iter().position(|cpu| *cpu == env.home_cpu).unwrap_or(0);
    let mut cpus = env.cpus.clone();
    cpus.rotate_left(home);
    cpus
}

impl latlab_harness::Session<Throughput> for Session<'_> {
    fn select(&mut self, point: &Connections) -> Result<()> {
        self.open = None;
        // Others each time: what an earlier connection left is none of these.
        let seed = self.env.seed(0x7374_7265_616d ^ self.stamps.end());
        let address = self.load.make(*point, &self.shape(point), seed)?;
        let pace = Pace::of(self.env.settings.profile, *point);
        let open = Open { pace, address, state: State::Fresh };
        self.open = Some(open);
        if pace.spreading_s > 0.0 {
            self.load.go().inspect_err(|_| self.open = None)?;
            self.open = Some(Open { state: State::Going, ..open });
            std::thread::sleep(Duration::from_secs_f64(pace.spreading_s));
        }
        Ok(())
    }

    fn block(&mut self, point: &Connections, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let Some(open) = self.open else { return Err(ProbeError::Other("there are no streams".to_owned())) };
        block.set_waits();
        let (pace, streams) = (open.pace, point.streams as usize);
        let before = self.load.arrived(streams);
        let settling_s = match open.state {
            State::Fresh => Some(pace.fresh_s),
            State::Resting => Some(pace.again_s),
            State::Going => None,
        };
        if let Some(settling_s) = settling_s {
            self.load.go()?;
            std::thread::sleep(Duration::from_secs_f64(settling_s));
        }
        // On a slow or busy machine nothing may have come by then: windows that begin before the stream does
        // say nothing of it.
        for _ in 0..START_MS {
            if self.load.arrived(streams) != before {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.windows(streams, open, evidence, block);
        self.open = Some(Open { state: State::Resting, ..open });
        self.load.rest().inspect_err(|_| self.open = None)
    }

    fn proof(&mut self, point: &Connections, evidence: &Evidence) -> Proof<Carried> {
        let shape = self.shape(point);
        let (ends, failed) = self.load.ended(point);
        Proof::of(evidence.checks(&shape, &ends, failed)).with(evidence.carried(shape, &ends)).by("socket")
    }
}

impl Evidence {
    /// `failed` is what went wrong at an end of the streams.
    fn checks(&self, shape: &Shape, visits: &[&Ends], failed: Option<String>) -> Vec<Check> {
        let agreement = Agreement::of(visits, shape.streams);
        let Agreement { streams, agreeing, .. } = agreement;
        let bytes: u64 = visits.iter().flat_map(|ends| &ends.sent).map(|sent| sent.amount.bytes).sum();
        let in_windows: u64 = self.each.iter().sum();
        let kept = visits.iter().all(|ends| {
            ends.sent.iter().all(|sent| sent.kept_to_its_cpus)
                && ends.received.iter().all(|received| received.kept_to_its_cpus)
        });
        vec![
            check(
                "both ends of every stream say the same",
                agreement.is_full() && failed.is_none(),
                failed.unwrap_or_else(|| {
                    format!("{agreeing} of {streams} streams, {bytes} bytes with their contents")
                }),
            ),
            check(
                "no more was counted than was sent",
                bytes > 0 && in_windows <= bytes,
                format!("{in_windows} of {bytes} bytes arrived in the windows"),
            ),
            check(
                "threads kept to their CPUs",
                streams > 0 && kept,
                format!("from {:?} to {:?}", shape.from, shape.to),
            ),
        ]
    }

    fn carried(&self, shape: Shape, visits: &[&Ends]) -> Carried {
        let rates: Vec<f64> =
            self.each.iter().map(|bytes| *bytes as f64 * 1e9 / self.windows_ns.max(1.0)).collect();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        // Of the time in which they were sending, for each thread of an end.
        let going_ns: f64 =
            visits.iter().map(|ends| ends.going.as_secs_f64() * 1e9 * shape.streams as f64).sum();
        let busy = |cpu_ns: u64| (going_ns > 0.0).then(|| cpu_ns as f64 / going_ns);
        let sent = visits.iter().flat_map(|ends| &ends.sent).map(|sent| sent.cpu_ns);
        let received = visits.iter().flat_map(|ends| &ends.received).map(|received| received.cpu_ns);
        Carried {
            address: self.address,
            from_cpus: shape.from,
            to_cpus: shape.to,
            least_over_most: (rates.len() > 1 && most > 0.0).then(|| least / most),
            stream_bytes_per_s: rates,
            sender_cpu_share: busy(sent.sum()),
            receiver_cpu_share: busy(received.sum()),
            tcp: tcp(&self.tcp),
        }
    }
}

/// Medians over streams and blocks; counts are those of the connection that had most.
fn tcp(all: &[TcpFacts]) -> Option<Tcp> {
    let median = |of: fn(&TcpFacts) -> f64| median(all.iter().map(of));
    let ends = |of: fn(&TcpFacts) -> f64| {
        let values = || all.iter().map(of);
        [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)]
    };
    let share = |of: fn(&TcpFacts) -> u64| {
        let busy: u64 = all.iter().map(|facts| facts.busy_us).sum();
        let own: u64 = all.iter().map(of).sum();
        (busy > 0).then(|| own as f64 / busy as f64)
    };
    Some(Tcp {
        rtt_ns: median(|facts| f64::from(facts.rtt_us))? * 1e3,
        rtt_ns_least_most: ends(|facts| f64::from(facts.rtt_us) * 1e3),
        min_rtt_ns: all.iter().map(|facts| facts.min_rtt_us).min().map(|us| f64::from(us) * 1e3),
        congestion_window_segments: median(|facts| f64::from(facts.congestion_window))?,
        congestion_window_least_most: ends(|facts| f64::from(facts.congestion_window)),
        segment_bytes: median(|facts| f64::from(facts.segment_bytes))?,
        most_retransmits_of_a_connection: all.iter().map(|facts| facts.retransmits).max(),
        delivery_bytes_per_s: median(|facts| facts.delivery_bytes_per_s as f64)?,
        receiver_limited_share: share(|facts| facts.receiver_limited_us),
        buffer_limited_share: share(|facts| facts.buffer_limited_us),
    })
}

#[cfg(test)]
mod faults;
