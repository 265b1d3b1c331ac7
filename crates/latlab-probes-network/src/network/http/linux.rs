//! Linux: many connections of one thread, to a server in a child process or to the user's.

use std::time::{Duration, Instant};

use latlab_harness::{Arrivals, Block, Env, Flight, Limits, ProbeError, Proof, Queue, Wait};
use latlab_net::fetch::{Answer, Expected, FetchError, Pool, Trust, Url};
use latlab_net::serve::is_body;
use latlab_record::{Check, Work};

use super::{ANSWER_BYTES, Answers, CONNECTIONS, Http, Requests, requests};
use crate::peer::{Route, WebServer, check, reported, secret};
use latlab_probes_shared::linux::Pinned;
use latlab_probes_shared::open_loop::Offered;
use latlab_probes_shared::{Result, other_cpu};

pub(super) const HERE: bool = true;
/// A request gets so long, and so do all connections together: longer than any stall that a server survives
/// unnoticed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Salt of the due times.
const DUE: u64 = 0x6874_7470;
/// Requests before the first that counts: of a server of ours on each connection, of the user's on one.
const WARM_AWAY: u32 = 3;
/// Slow is what takes so many times what those took; and never less than this, ns.
const SLOW_TIMES: f64 = 5.0;
const SLOW_NS: f64 = 1e6;
/// More late requests than this share are named.
const LATE_SHARE: f64 = 0.01;

pub(super) fn open<'env>(env: &'env Env, _group: &[Requests]) -> Result<Session<'env>> {
    Session::new(env, PATIENCE)
}

/// Requests under way, as the harness drives them.
struct Asker {
    pool: Pool,
    patience: Duration,
    /// Client and server share a CPU: who spins keeps the other from it.
    shared: bool,
    asked: u64,
    answered: u64,
    body_bytes: u64,
    /// Shortest and longest body.
    bodies: Option<(u64, u64)>,
}

impl Asker {
    fn add(&mut self, answer: Answer) {
        let bytes = answer.body_bytes;
        self.answered += 1;
        self.body_bytes += bytes;
        self.bodies = Some(match self.bodies {
            None => (bytes, bytes),
            Some((least, most)) => (least.min(bytes), most.max(bytes)),
        });
    }

    /// One request alone.
    fn warm(&mut self, place: usize) -> Result<(), FetchError> {
        let mut answer = None;
        self.asked += 1;
        self.pool.ask(place)?;
        self.pool.wait(None, &mut |_, own| answer = Some(own))?;
        if let Some(answer) = answer {
            self.add(answer);
        }
        Ok(())
    }
}

impl Queue for Asker {
    fn submit(&mut self, token: u32) -> Result<()> {
        self.asked += 1;
        self.pool.ask(token as usize).map_err(|error| reported(&error, self.patience))
    }

    fn reap(&mut self, wait: Wait, done: &mut dyn FnMut(u32)) -> Result<()> {
        let at_most = match wait {
            Wait::No => {
                if self.shared {
                    std::thread::yield_now();
                }
                Some(Duration::ZERO)
            }
            Wait::ForOne => None,
            Wait::AtMostNs(ns) => Some(Duration::from_secs_f64(ns.max(0.0) / 1e9)),
        };
        let mut answers = Vec::new();
        let outcome = self.pool.wait(at_most, &mut |place, answer| {
            done(u32::try_from(place).unwrap_or(u32::MAX));
            answers.push(answer);
        });
        for answer in answers {
            self.add(answer);
        }
        outcome.map_err(|error| reported(&error, self.patience))
    }
}

/// What came of a point.
#[derive(Default)]
pub struct Evidence {
    flight: Flight,
    body_bytes: u64,
}

/// Many connections of one thread.
pub struct Session<'env> {
    env: &'env Env,
    /// Before the server: connections end first.
    asker: Asker,
    own: Option<WebServer>,
    /// Why nothing more is asked.
    failed: Option<String>,
    slow_ns: f64,
    blocks: u64,
    _home: Pinned,
}

impl<'env> Session<'env> {
    fn new(env: &'env Env, patience: Duration) -> Result<Self> {
        let home = Pinned::to(env.home_cpu)?;
        let failed = |error: FetchError| reported(&error, patience);
        let mut own = None;
        let (url, trust, secret) = if let Some(url) = &env.settings.url {
            (
                Url::parse(url).map_err(failed)?,
                Trust::system().map_err(failed)?,
                secret(env.settings.secret_file.as_deref())?,
            )
        } else {
            let server = WebServer::start(env, &Route::loopback())?;
            let url = Url::of(server.listening.address, &format!("/bytes/{ANSWER_BYTES}"));
            own = Some(server);
            (url, Trust::nobody().map_err(failed)?, None)
        };
        let expected: Expected = if own.is_some() { &is_body } else { &anything };
        let pool = Pool::open(&url, &trust, secret.as_deref(), CONNECTIONS as usize, patience, expected)
            .map_err(failed)?;
        let mut asker = Asker {
            pool,
            patience,
            shared: own.is_some() && other_cpu(env).is_none(),
            asked: 0,
            answered: 0,
            body_bytes: 0,
            bodies: None,
        };
        let warm = if own.is_some() { CONNECTIONS } else { WARM_AWAY };
        let mut took = Vec::new();
        for place in 0..warm {
            let begun = Instant::now();
            let place = if own.is_some() { place as usize } else { 0 };
            asker.warm(place).map_err(failed)?;
            took.push(begun.elapsed().as_secs_f64() * 1e9);
        }
        took.sort_by(f64::total_cmp);
        Ok(Self {
            env,
            asker,
            own,
            failed: None,
            slow_ns: (SLOW_TIMES * took[took.len() / 2]).max(SLOW_NS),
            blocks: 0,
            _home: home,
        })
    }

    fn checks(&mut self, evidence: &Evidence) -> Vec<Check> {
        let (asked, answered) = (self.asker.asked, self.asker.answered);
        let samples = evidence.flight.operations;
        let mut checks = vec![check(
            "every request was answered",
            samples > 0 && asked == answered,
            format!("{answered} of {asked} requests, with status 200 and their last byte"),
        )];
        let Some(own) = &mut self.own else { return checks };
        let bodies = self.asker.bodies;
        checks.push(check(
            "every answer was the one expected",
            bodies == Some((ANSWER_BYTES, ANSWER_BYTES)),
            format!("{ANSWER_BYTES} bytes each, every byte compared"),
        ));
        checks.push(match own.served() {
            Ok(served) => counted(asked, served.requests),
            Err(error) => check(COUNTED, false, error.to_string()),
        });
        checks
    }
}

const COUNTED: &str = "counted on both sides";

fn counted(asked: u64, served: u64) -> Check {
    check(COUNTED, asked == served, format!("{asked} requests sent, {served} answered by the server"))
}

/// Whatever the user's server says is its affair.
fn anything(_: u64, _: &[u8]) -> bool {
    true
}

impl latlab_harness::Session<Http> for Session<'_> {
    fn select(&mut self, _point: &Requests) -> Result<()> {
        match &self.failed {
            Some(why) => Err(ProbeError::Other(why.clone())),
            None => Ok(()),
        }
    }

    fn block(&mut self, point: &Requests, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        block.set_tail_threshold_ns(self.slow_ns);
        self.blocks += 1;
        let arrivals = Arrivals::Poisson {
            per_s: point.rate_per_s as f64,
            seed: self.env.seed(DUE.wrapping_add(self.blocks)),
        };
        let limits = Limits {
            operations: requests(&self.env.settings, point.rate_per_s),
            // Each request has its own time-out.
            begin_within_ns: 1e18,
        };
        let before = self.asker.body_bytes;
        match block.in_flight(&mut self.asker, CONNECTIONS, arrivals, limits) {
            Ok(flight) => {
                evidence.flight.add(&flight);
                evidence.body_bytes += self.asker.body_bytes - before;
                Ok(())
            }
            Err(error) => {
                // What was under way is lost, and nobody knows how this server goes on.
                self.failed = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn proof(&mut self, _point: &Requests, evidence: &Evidence) -> Proof<Answers> {
        let checks = self.checks(evidence);
        let flight = &evidence.flight;
        let mut flags = Vec::new();
        if flight.late as f64 > LATE_SHARE * flight.operations as f64 {
            flags.push(format!(
                "{} of {} requests were sent more than 50 µs late by this thread, not by the server, and \
                    are left out",
                flight.late, flight.operations
            ));
        }
        if self.asker.shared {
            flags.push("client and server share a CPU".to_owned());
        }
        let bodies = self.asker.bodies;
        let offered = Offered::of(flight);
        let answers = Answers {
            server: if self.own.is_some() { "latlab's own" } else { "the URL's" }.to_owned(),
            ipv6: self.asker.pool.address().is_ipv6(),
            connections: CONNECTIONS,
            connections_opened: self.asker.pool.opened(),
            least_body_bytes: bodies.map(|(least, _)| least),
            most_body_bytes: bodies.map(|(_, most)| most),
            offered: Offered {
                service_p50_ns: offered.service_p50_ns.filter(|_| flight.service.total() > 0),
                ..offered
            },
            late: flight.late,
        };
        Proof {
            work: Work { bytes: evidence.body_bytes, ..Work::default() },
            flags,
            ..Proof::of(checks).with(answers).by("http/1.1")
        }
    }
}

#[cfg(test)]
mod faults;
