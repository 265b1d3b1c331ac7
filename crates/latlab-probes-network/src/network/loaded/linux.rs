//! Linux: round trips and streams to the same side, by the same way.

use std::time::Duration;

use latlab_harness::{AnySession, Block, Env, Planned, ProbeError, Proof, Stamps};
use latlab_net::echo::{Address, Counts, Transport, Waiting};
use latlab_record::{Check, Point, Work};
use serde_json::json;

use super::{LOAD_MESSAGE, MESSAGE, Pace};
use crate::network::linux::{Agreement, Ask, Echo, Ends, Load, Shape};
use crate::peer::{LOOPBACK, Route, Seats, path_asked};
use latlab_probes_shared::linux::Pinned;

pub(super) const HERE: bool = true;
/// What an answer may take beyond the path's own time.
const PATIENCE: Duration = Duration::from_secs(4);
/// Far above a wake-up on the loopback (some tens of microseconds).
const TAIL_NS: f64 = 500e3;
/// Trips before the first that counts: the first ones of a connection are no round trips like others.
const WARM: u64 = 3;

pub(super) fn open<'env>(
    env: &'env Env,
    group: &[Planned],
) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    let path = group.first().and_then(|planned| planned.point.path.as_deref()).unwrap_or(LOOPBACK);
    let route = Route::named(env, path)?;
    let spec = if path == LOOPBACK { None } else { path_asked(&env.settings).map_err(ProbeError::Other)? };
    if spec.is_some() && !route.delays_packets() {
        return Err(ProbeError::Other(format!(
            "a queue needs a path that delays packets, and none can be had here: {}",
            route.findings()["why_not_better"][0].as_str().unwrap_or("no reason is known")
        )));
    }
    let rtt = Duration::from_micros(spec.map_or(0, |spec| spec.rtt_us));
    let pace = Pace::of(env.settings.profile, spec.as_ref());
    Ok(Box::new(Trips::new(env, route, pace, PATIENCE + 20 * rtt)?))
}

/// The trips of one point, in all of its visits.
struct Found {
    point: Point,
    streams: usize,
    right: u64,
    trips_ns: f64,
    /// What arrived of the streams from before the first trip of a block to after its last, and how long that was.
    load_bytes: u64,
    load_ns: f64,
    sent: u64,
    served: Counts,
    /// Of the streams; one a visit.
    ends: Vec<Ends>,
    address: Option<Address>,
    failed: Option<String>,
}

struct Trips<'env> {
    env: &'env Env,
    pace: Pace,
    echo: Echo<'env>,
    load: Load<'env>,
    stamps: Stamps,
    _home: Pinned,
    /// Whether the streams have sent nothing yet.
    open: Option<(usize, bool)>,
    all: Vec<Found>,
    /// Last: the path ends when nobody uses it any more.
    route: Route,
}

impl<'env> Trips<'env> {
    fn new(env: &'env Env, route: Route, pace: Pace, patience: Duration) -> Result<Self, ProbeError> {
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
            all: Vec::new(),
            route,
        })
    }

    /// Ends what is open, and keeps what the other sides say.
    fn close(&mut self) {
        let Some((place, _)) = self.open.take() else {
            return;
        };
        let (echoed, ends) = (self.echo.close(), self.load.end());
        let found = &mut self.all[place];
        match echoed {
            Ok(Some((requests, counts))) => {
                found.sent += requests;
                found.served.messages += counts.messages;
                found.served.bytes += counts.bytes;
            }
            Ok(None) => {}
            Err(error) => found.failed = Some(error.to_string()),
        }
        match ends {
            Ok(ends) => found.ends.extend(ends),
            Err(error) => found.failed = Some(error.to_string()),
        }
    }

    fn trips(&mut self, block: &mut Block, place: usize) -> Result<(), ProbeError> {
        let streams = self.all[place].streams;
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
        let found = &mut self.all[place];
        found.right += made;
        found.trips_ns += sum_ns;
        found.load_bytes += ended.1 - begun.1;
        found.load_ns += clock.ns(ended.0.saturating_sub(begun.0));
        if streams > 0 && ended.1 == begun.1 {
            // There was no load: somebody else had its CPUs.
            block.mark_disturbed();
        }
        outcome
    }
}

impl AnySession for Trips<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        self.close();
        let seats = Seats::of(self.env);
        let streams = point.streams.unwrap_or(0) as usize;
        let address = self.echo.connect(Ask {
            transport: Transport::Tcp,
            waiting: Waiting::Blocking,
            bytes: usize::try_from(MESSAGE).unwrap_or(64),
            cpu: seats.server,
        })?;
        if streams > 0 {
            let shape = Shape {
                transport: Transport::Tcp,
                message: LOAD_MESSAGE,
                streams,
                from: vec![self.env.cpus.clone()],
                to: vec![self.env.cpus.clone()],
            };
            let seed = self.env.seed(0x6c6f_6164 ^ self.stamps.end());
            self.load.make(&shape, seed)?;
        }
        let place = if let Some(known) = self.all.iter().position(|found| found.point == *point) {
            known
        } else {
            self.all.push(Found {
                point: point.clone(),
                streams,
                right: 0,
                trips_ns: 0.0,
                load_bytes: 0,
                load_ns: 0.0,
                sent: 0,
                served: Counts::default(),
                ends: Vec::new(),
                address: None,
                failed: None,
            });
            self.all.len() - 1
        };
        self.all[place].address = Some(address);
        self.open = Some((place, true));
        let mut warm = WARM;
        self.echo.exchange(|_, _| {
            warm -= 1;
            warm > 0
        })
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some((place, fresh)) = self.open else {
            return Err(ProbeError::Other("no point is selected".to_owned()));
        };
        block.set_waits();
        block.set_tail_threshold_ns(TAIL_NS);
        if self.all[place].streams == 0 {
            return self.trips(block, place);
        }
        self.load.go()?;
        let settling_s = if fresh { self.pace.fresh_s } else { self.pace.again_s };
        std::thread::sleep(Duration::from_secs_f64(settling_s));
        self.open = Some((place, false));
        let outcome = self.trips(block, place);
        // Also when the trips went wrong: nobody goes on sending.
        let rested = self.load.rest();
        outcome.and(rested)
    }

    fn proof(&mut self, point: &Point) -> Proof {
        self.close();
        let Some(found) = self.all.iter().find(|found| found.point == *point) else {
            return Proof::default();
        };
        let mean_ns = found.trips_ns / found.right.max(1) as f64;
        let address = match &found.address {
            Some(Address::Ip(address)) => Some(address.ip().to_string()),
            _ => None,
        };
        Proof {
            checks: found.checks(),
            work: Work { bytes: found.right * 2 * MESSAGE, ..Work::default() },
            engine: Some("socket".to_owned()),
            flags: self.route.label().into_iter().collect(),
            findings: Some(json!({
                "address": address,
                "round_trips_per_minute": (found.right > 0).then(|| 60e9 / mean_ns),
                "load_bytes_per_s": found.load_bytes_per_s(),
                "route": self.route.findings(),
            })),
            ..Proof::default()
        }
    }
}

impl Found {
    /// What the streams carried: over all of the time in which it was counted, that between two trips included.
    fn load_bytes_per_s(&self) -> f64 {
        self.load_bytes as f64 * 1e9 / self.load_ns.max(1.0)
    }

    fn checks(&self) -> Vec<Check> {
        let mut checks = vec![Check {
            name: "every answer was that of its request, counted on both sides".to_owned(),
            ok: self.right > 0
                && self.served.messages == self.sent
                && self.served.bytes == self.sent * MESSAGE
                && self.failed.is_none(),
            detail: self.failed.clone().unwrap_or_else(|| {
                format!(
                    "{} answers compared, {} messages sent, {} answered",
                    self.right, self.sent, self.served.messages
                )
            }),
        }];
        if self.streams > 0 {
            let agreement = Agreement::of(&self.ends.iter().collect::<Vec<_>>(), self.streams);
            checks.push(Check {
                name: "both ends of every stream say the same".to_owned(),
                ok: agreement.is_full(),
                detail: format!("{} of {} streams", agreement.agreeing, agreement.streams),
            });
        }
        checks
    }
}

#[cfg(test)]
mod faults;
