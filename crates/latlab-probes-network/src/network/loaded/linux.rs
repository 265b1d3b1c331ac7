//! Linux: round trips and streams to the same side, by the same way.

use std::net::IpAddr;
use std::time::Duration;

use latlab_net::echo::{Service, Waiting};
use latlab_net::sockets::Transport;
use latlab_probes_shared::prelude::*;
use latlab_record::Work;

use super::{Beside, Details, LOAD_MESSAGE, Loaded, MESSAGE, Pace};
use crate::network::linux::{Agreement, Echo, Ends, Load, Served, Shape};
use crate::peer::{PathKind, Route, Seats, check, path_asked};
use latlab_probes_shared::linux::Pinned;

pub(super) const HERE: bool = true;
/// What an answer may take beyond the path's own time.
const PATIENCE: Duration = Duration::from_secs(4);
/// Far above a wake-up on the loopback (some tens of microseconds).
const TAIL_NS: f64 = 500e3;
/// Trips before the first that counts: the first ones of a connection are no round trips like others.
const WARM: u64 = 3;

pub(super) fn open<'env>(env: &'env Env, group: &[Beside]) -> Result<Session<'env>> {
    let path = group.first().map_or(PathKind::Loopback, |point| point.path);
    let route = Route::of(env, path)?;
    let asked = || path_asked(&env.settings).map_err(ProbeError::Other);
    let spec = if path == PathKind::Loopback { None } else { asked()? };
    if spec.is_some() && !route.delays_packets() {
        return Err(ProbeError::Other(format!(
            "a queue needs a path that delays packets, and none can be emulated here: {}",
            route.details.why_not_better().unwrap_or("no reason is known")
        )));
    }
    let rtt = Duration::from_micros(spec.map_or(0, |spec| spec.rtt_us));
    let pace = Pace::of(env.settings.profile, spec.as_ref());
    Session::new(env, route, pace, PATIENCE + 20 * rtt)
}

/// What the blocks of a point have shown.
#[derive(Default)]
pub struct Evidence {
    right: u64,
    trips_ns: f64,
    /// What arrived of the streams from before the first trip of a block to after its last, and how long that
    /// was.
    load_bytes: u64,
    load_ns: f64,
    address: Option<IpAddr>,
}

/// A client, and the process that it asks and sends to.
pub struct Session<'env> {
    env: &'env Env,
    pace: Pace,
    echo: Echo<'env, Beside>,
    load: Load<'env, Beside>,
    stamps: Stamps,
    _home: Pinned,
    open: Option<Open>,
    /// Last: the path ends when nobody uses it any more.
    route: Route,
}

/// This visit.
#[derive(Clone, Copy)]
struct Open {
    address: Option<IpAddr>,
    /// The streams have sent nothing yet.
    fresh: bool,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, route: Route, pace: Pace, patience: Duration) -> Result<Self> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a round trip needs a real clock".to_owned()))?;
        Ok(Self {
            env,
            pace,
            echo: Echo::new(env, &route, patience)?,
            load: Load::new(env, &route, patience)?,
            stamps,
            _home: Pinned::to(env.home_cpu)?,
            open: None,
            route,
        })
    }

    fn trips(&mut self, streams: usize, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let begun = (self.stamps.begin(), self.load.arrived(streams));
        let (clock, tempo) = (&self.env.clock, self.pace);
        let (mut made, mut sum_ns) = (0, 0.0);
        let outcome = self.echo.exchange(|begin, end| {
            made += 1;
            sum_ns += block.span_ns(begin, end);
            block.span(begin, end);
            made < tempo.least_trips || clock.ns(end.saturating_sub(begun.0)) < tempo.trips_s * 1e9
        });
        let ended = (self.stamps.end(), self.load.arrived(streams));
        evidence.right += made;
        evidence.trips_ns += sum_ns;
        evidence.load_bytes += ended.1 - begun.1;
        evidence.load_ns += clock.ns(ended.0.saturating_sub(begun.0));
        if streams > 0 && ended.1 == begun.1 {
            // There was no load: somebody else had its CPUs.
            block.mark_disturbed();
        }
        outcome
    }
}

impl latlab_harness::Session<Loaded> for Session<'_> {
    fn select(&mut self, point: &Beside) -> Result<()> {
        self.open = None;
        self.load.close();
        let service = Service {
            transport: point.transport,
            waiting: Waiting::Blocking,
            bytes: point.message_bytes,
            cpu: Some(Seats::of(self.env).server),
        };
        let address = self.echo.connect(*point, service)?;
        if point.streams > 0 {
            let shape = Shape {
                transport: Transport::Tcp,
                message: LOAD_MESSAGE,
                streams: point.streams as usize,
                from: vec![self.env.cpus.clone()],
                to: vec![self.env.cpus.clone()],
            };
            let seed = self.env.seed(0x6c6f_6164 ^ self.stamps.end());
            self.load.make(*point, &shape, seed)?;
        }
        self.open = Some(Open { address, fresh: true });
        let mut warm = WARM;
        self.echo.exchange(|_, _| {
            warm -= 1;
            warm > 0
        })
    }

    fn block(&mut self, point: &Beside, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        let Some(open) = self.open else {
            return Err(ProbeError::Other("there is no connection".to_owned()));
        };
        evidence.address = open.address;
        block.set_waits();
        block.set_tail_threshold_ns(TAIL_NS);
        let streams = point.streams as usize;
        if streams == 0 {
            return self.trips(streams, evidence, block);
        }
        self.load.go()?;
        let settling_s = if open.fresh { self.pace.fresh_s } else { self.pace.again_s };
        std::thread::sleep(Duration::from_secs_f64(settling_s));
        self.open = Some(Open { fresh: false, ..open });
        let outcome = self.trips(streams, evidence, block);
        // Also when the trips went wrong: nobody goes on sending.
        let rested = self.load.rest();
        outcome.and(rested)
    }

    fn proof(&mut self, point: &Beside, evidence: &Evidence) -> Proof<Details> {
        let (served, failed) = self.echo.served(point);
        let (ends, also) = self.load.ended(point);
        let mean_ns = evidence.trips_ns / evidence.right.max(1) as f64;
        let details = Details {
            address: evidence.address,
            round_trips_per_minute: (evidence.right > 0).then(|| 60e9 / mean_ns),
            load_bytes_per_s: evidence.load_bytes_per_s(),
            route: self.route.details.clone(),
        };
        Proof {
            work: Work { bytes: evidence.right * 2 * MESSAGE as u64, ..Work::default() },
            flags: self.route.details.label().into_iter().collect(),
            ..Proof::of(evidence.checks(point, &served, &ends, also.or(failed))).with(details).by("socket")
        }
    }
}

impl Evidence {
    /// What the streams carried: over all of the time in which it was counted, that between two trips
    /// included.
    fn load_bytes_per_s(&self) -> f64 {
        self.load_bytes as f64 * 1e9 / self.load_ns.max(1.0)
    }

    fn checks(&self, point: &Beside, served: &Served, ends: &[&Ends], failed: Option<String>) -> Vec<Check> {
        let &Served { sent, messages, bytes, .. } = served;
        let mut checks = vec![check(
            "every answer was that of its request, counted on both sides",
            self.right > 0 && messages == sent && bytes == sent * MESSAGE as u64 && failed.is_none(),
            failed.unwrap_or_else(|| {
                format!("{} answers compared, {sent} messages sent, {messages} answered", self.right)
            }),
        )];
        if point.streams > 0 {
            let agreement = Agreement::of(ends, point.streams as usize);
            checks.push(check(
                "both ends of every stream say the same",
                agreement.is_full(),
                format!("{} of {} streams", agreement.agreeing, agreement.streams),
            ));
        }
        checks
    }
}

#[cfg(test)]
mod faults;
