//! Linux: windows of what arrives in a child process.

use std::io::{BufRead, Write};
use std::time::Duration;

use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_net::echo::{Address, Transport};
use latlab_net::stream::TcpFacts;
use latlab_record::{Check, Point};
use serde_json::{Value, json};

use super::{ACROSS, ANYWHERE, Pace, SAME, TCP, UNIX};
use crate::network::linux::{Ends, Load, Shape};
use crate::peer::Route;
use latlab_probes_shared::linux::Pinned;

pub(super) const HERE: bool = true;
/// Longest wait for the first bytes of a block, milliseconds.
const START_MS: u32 = 1_000;
/// The rest of a message, or an answer of the child on its pipe, takes milliseconds, on a crowded machine some time slices.
const PATIENCE: Duration = Duration::from_secs(4);
/// Reading the counters takes less, unless this thread was interrupted between the stamps, ns.
const AT_ONCE_NS: f64 = 20e3;
/// Then they are read again, so often at most.
const LOOKS: u32 = 10;

/// The child: receivers, until its input ends.
pub(super) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    crate::network::linux::serve(input, output)
}

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Streams::new(env, PATIENCE)?))
}

/// The streams of one point, in all of its visits.
struct Found {
    point: Point,
    shape: Shape,
    pace: Pace,
    address: Option<Address>,
    /// One a visit.
    ends: Vec<Ends>,
    /// What TCP said at the end of each block, of every stream.
    tcp: Vec<TcpFacts>,
    /// Bytes of each stream in windows, and how long those were.
    each: Vec<u64>,
    windows_ns: f64,
    /// What went wrong at an end of its streams.
    failed: Option<String>,
}

struct Streams<'env> {
    env: &'env Env,
    stamps: Stamps,
    load: Load<'env>,
    _home: Pinned,
    /// The streams that there are.
    open: Option<Open>,
    all: Vec<Found>,
}

/// The streams of this visit.
#[derive(Clone, Copy)]
struct Open {
    /// Whose they are, among all.
    place: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// They have sent nothing yet.
    Fresh,
    Going,
    Resting,
}

impl<'env> Streams<'env> {
    fn new(env: &'env Env, patience: Duration) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a rate needs a real clock".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            load: Load::new(env, &Route::loopback(), patience)?,
            _home: Pinned::to(env.home_cpu)?,
            open: None,
            all: Vec::new(),
        })
    }

    fn shape(&self, point: &Point) -> Option<Shape> {
        let streams = point.streams? as usize;
        let cpus = in_turn(self.env);
        let alone = |first: usize, step: usize| {
            (0..streams).map(|number| vec![cpus[(first + step * number) % cpus.len()]]).collect()
        };
        let (from, to) = match point.placement.as_deref()? {
            ANYWHERE => (vec![cpus.clone()], vec![cpus.clone()]),
            SAME => (alone(0, 1), alone(0, 1)),
            ACROSS => (alone(0, 2), alone(1, 2)),
            _ => return None,
        };
        Some(Shape {
            transport: match point.transport.as_deref()? {
                TCP => Transport::Tcp,
                UNIX => Transport::Unix,
                _ => return None,
            },
            message: usize::try_from(point.message_bytes?).ok()?,
            streams,
            from,
            to,
        })
    }

    /// Ends what is open, and keeps what both ends say.
    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let rested = if open.state == State::Going { self.load.rest() } else { Ok(()) };
        let found = &mut self.all[open.place];
        match rested.and_then(|()| self.load.end()) {
            Ok(ends) => found.ends.extend(ends),
            Err(error) => found.failed = Some(error.to_string()),
        }
    }

    /// The time, and what had arrived then.
    fn look(&self, streams: usize) -> (u64, u64) {
        let mut looks = 0;
        loop {
            let begin = self.stamps.begin();
            let arrived = self.load.arrived(streams);
            let end = self.stamps.end();
            looks += 1;
            if self.env.clock.ns(end.saturating_sub(begin)) < AT_ONCE_NS || looks == LOOKS {
                return (end, arrived);
            }
        }
    }

    fn windows(&mut self, block: &mut Block, place: usize) {
        let streams = self.all[place].shape.streams;
        let Pace { window_s, windows, .. } = self.all[place].pace;
        let window = Duration::from_secs_f64(window_s);
        let before = self.load.arrived_each(streams);
        let first = self.look(streams);
        let mut last = first;
        for _ in 0..windows {
            std::thread::sleep(window);
            let now = self.look(streams);
            block.rate(last.0, now.0, now.1 - last.1);
            last = now;
        }
        let after = self.load.arrived_each(streams);
        let tcp = self.load.tcp();
        let idle = before.iter().zip(&after).filter(|(before, after)| before == after).count();
        if last.1 == first.1 || (idle > 0 && streams <= self.env.cpus.len()) {
            // Somebody else had the CPU all the time; with more streams than CPUs it may have been one of ours.
            block.mark_disturbed();
        }
        let found = &mut self.all[place];
        found.tcp.extend(tcp);
        found.windows_ns += block.span_ns(first.0, last.0);
        for ((sum, before), after) in found.each.iter_mut().zip(before).zip(after) {
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

impl AnySession for Streams<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.close();
        let shape = self
            .shape(point)
            .ok_or_else(|| ProbeError::Other(format!("no such point: {}", point.label())))?;
        // Others each time: what an earlier connection left is none of these.
        let seed = self.env.seed(0x7374_7265_616d ^ self.stamps.end());
        let address = self.load.make(&shape, seed)?;
        let place = if let Some(known) = self.all.iter().position(|found| found.point == *point) {
            known
        } else {
            self.all.push(Found {
                point: point.clone(),
                each: vec![0; shape.streams],
                shape,
                pace: Pace::of(
                    self.env.settings.profile,
                    point.placement.as_deref().unwrap_or_default(),
                    point.streams.unwrap_or_default(),
                ),
                address: None,
                ends: Vec::new(),
                tcp: Vec::new(),
                windows_ns: 0.0,
                failed: None,
            });
            self.all.len() - 1
        };
        self.all[place].address = Some(address);
        let spreading_s = self.all[place].pace.spreading_s;
        self.open = Some(Open { place, state: State::Fresh });
        if spreading_s > 0.0 {
            self.load.go().inspect_err(|_| self.open = None)?;
            self.open = Some(Open { place, state: State::Going });
            std::thread::sleep(Duration::from_secs_f64(spreading_s));
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some(open) = self.open else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        block.set_waits();
        let Found { pace, shape, .. } = &self.all[open.place];
        let (pace, streams) = (*pace, shape.streams);
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
        // On a slow or busy machine nothing may have come by then: windows that begin before the stream does say nothing of it.
        for _ in 0..START_MS {
            if self.load.arrived(streams) != before {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.windows(block, open.place);
        self.open = Some(Open { state: State::Resting, ..open });
        self.load.rest().inspect_err(|_| self.open = None)
    }

    fn proof(&mut self, point: &Point) -> Proof {
        self.close();
        let Some(found) = self.all.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        Proof {
            checks: found.checks(),
            engine: Some("socket".to_owned()),
            findings: Some(found.findings()),
            ..Proof::default()
        }
    }
}

impl Found {
    fn checks(&self) -> Vec<Check> {
        let streams: usize = self.ends.iter().map(|ends| ends.sent.len()).sum();
        let agreeing: usize = self.ends.iter().map(Ends::agreeing).sum();
        let bytes: u64 = self.ends.iter().flat_map(|ends| &ends.sent).map(|sent| sent.amount.bytes).sum();
        let whole = self
            .ends
            .iter()
            .all(|ends| ends.sent.len() == self.shape.streams && ends.received.len() == self.shape.streams);
        let in_windows: u64 = self.each.iter().sum();
        let kept = self.ends.iter().all(|ends| {
            ends.sent.iter().all(|sent| sent.kept_to_its_cpus)
                && ends.received.iter().all(|received| received.kept_to_its_cpus)
        });
        vec![
            Check {
                name: "both ends of every stream say the same".to_owned(),
                ok: streams > 0 && whole && agreeing == streams && self.failed.is_none(),
                detail: self.failed.clone().unwrap_or_else(|| {
                    format!("{agreeing} of {streams} streams, {bytes} bytes with their contents")
                }),
            },
            Check {
                name: "no more was counted than was sent".to_owned(),
                ok: bytes > 0 && in_windows <= bytes,
                detail: format!("{in_windows} of {bytes} bytes arrived in the windows"),
            },
            Check {
                name: "threads kept to their CPUs".to_owned(),
                ok: streams > 0 && kept,
                detail: format!("from {:?} to {:?}", self.shape.from, self.shape.to),
            },
        ]
    }

    fn findings(&self) -> Value {
        let address = match &self.address {
            Some(Address::Ip(address)) => Some(address.ip().to_string()),
            _ => None,
        };
        let rates: Vec<f64> =
            self.each.iter().map(|bytes| *bytes as f64 * 1e9 / self.windows_ns.max(1.0)).collect();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        json!({
            "address": address,
            "from_cpus": self.shape.from,
            "to_cpus": self.shape.to,
            "stream_bytes_per_s": rates,
            "least_over_most": (rates.len() > 1 && most > 0.0).then(|| least / most),
            "sender_cpu_share": self.cpu_share(|ends| ends.sent.iter().map(|sent| sent.cpu_ns).sum()),
            "receiver_cpu_share": self.cpu_share(|ends| ends.received.iter().map(|own| own.cpu_ns).sum()),
            "tcp": tcp(&self.tcp),
        })
    }

    /// Of the time in which they were sending, for each thread of that end.
    fn cpu_share(&self, cpu_ns: impl Fn(&Ends) -> u64) -> Option<f64> {
        let going_ns: f64 =
            self.ends.iter().map(|ends| ends.going.as_secs_f64() * 1e9 * self.shape.streams as f64).sum();
        let had: u64 = self.ends.iter().map(cpu_ns).sum();
        (going_ns > 0.0).then(|| had as f64 / going_ns)
    }
}

/// Medians over streams and blocks; counts are those of the connection that had most.
fn tcp(all: &[TcpFacts]) -> Option<Value> {
    let median = |of: fn(&TcpFacts) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        latlab_stats::quantile(&values, 0.5)
    };
    let ends = |of: fn(&TcpFacts) -> f64| {
        let values = || all.iter().map(of);
        [values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max)]
    };
    let share = |of: fn(&TcpFacts) -> u64| {
        let busy: u64 = all.iter().map(|facts| facts.busy_us).sum();
        let own: u64 = all.iter().map(of).sum();
        (busy > 0).then(|| own as f64 / busy as f64)
    };
    (!all.is_empty()).then(|| {
        json!({
            "rtt_ns": median(|facts| f64::from(facts.rtt_us)) * 1e3,
            "rtt_ns_least_most": ends(|facts| f64::from(facts.rtt_us) * 1e3),
            "min_rtt_ns": all.iter().map(|facts| facts.min_rtt_us).min().map(|us| f64::from(us) * 1e3),
            "congestion_window_segments": median(|facts| f64::from(facts.congestion_window)),
            "congestion_window_least_most": ends(|facts| f64::from(facts.congestion_window)),
            "segment_bytes": median(|facts| f64::from(facts.segment_bytes)),
            "most_retransmits_of_a_connection": all.iter().map(|facts| facts.retransmits).max(),
            "delivery_bytes_per_s": median(|facts| facts.delivery_bytes_per_s as f64),
            "receiver_limited_share": share(|facts| facts.receiver_limited_us),
            "buffer_limited_share": share(|facts| facts.buffer_limited_us),
        })
    })
}

#[cfg(test)]
mod faults;
