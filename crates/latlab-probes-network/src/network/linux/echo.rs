//! Round trips to a process at the far end of a route.

use std::net::IpAddr;
use std::time::Duration;

use latlab_net::echo::{Client, Counts, Reply, Service, Watch, answer};
use latlab_net::{NetError, Serving};
use latlab_probes_shared::prelude::*;

use super::{Far, Runs, failed};
use crate::peer::Route;

/// The watch is told so often that all is well, ns.
const ARM_EVERY_NS: f64 = 500e6;

/// A server as its process is asked for it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Answers {
    service: Service,
    /// Done with the third message and those after it.
    #[cfg(test)]
    planted: Option<Reply>,
}

impl Runs for Answers {
    type Reported = Counts;
    const PROGRAM: &'static str = "network.roundtrip";

    fn start(self, ip: IpAddr) -> Result<Serving<Counts>, NetError> {
        self.service.start(ip, move |number, message| {
            answer(message);
            #[cfg(test)]
            if let Some(fault) = self.planted
                && number >= 3
            {
                return fault;
            }
            let _ = number;
            Reply::Whole
        })
    }
}

/// A sum of which each part may be unknown, and then the sum is.
#[derive(Clone, Copy)]
pub(crate) struct Sum(pub(crate) Option<u64>);

impl Default for Sum {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl Sum {
    pub(crate) fn add(&mut self, part: Option<u64>) {
        self.0 = self.0.zip(part).map(|(earlier, own)| earlier + own);
    }
}

/// What both sides counted in all visits.
#[derive(Default)]
pub(crate) struct Served {
    /// Messages sent, warming up included.
    pub(crate) sent: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// The server's thread could go elsewhere once.
    pub(crate) strayed: bool,
    pub(crate) switches: Sum,
}

impl Served {
    pub(crate) fn of<'a>(visits: impl Iterator<Item = &'a (u64, Counts)>) -> Self {
        let mut all = Self::default();
        for (requests, counts) in visits {
            all.sent += requests;
            all.messages += counts.messages;
            all.bytes += counts.bytes;
            all.strayed |= !counts.kept_to_its_cpu;
            all.switches.add(counts.switches);
        }
        all
    }

    /// Of the server's thread in a round trip.
    pub(crate) fn switches_each(&self) -> Option<f64> {
        Some(self.switches.0? as f64 / self.messages.max(1) as f64)
    }
}

/// A visit to a point: messages sent and what the server counted, or what went wrong with it.
type Visit = Result<(u64, Counts), String>;

/// A connection, and its server, which is ended when this is dropped.
pub(crate) struct Echo<'env, P> {
    env: &'env Env,
    stamps: Stamps,
    /// Before its server.
    client: Option<Client>,
    pub(crate) server: Far<'env, Answers>,
    /// The point that has the connection.
    open: Option<P>,
    /// Those that have ended.
    visits: Vec<(P, Visit)>,
    watch: Watch,
    patience: Duration,
    /// What servers do wrong from their third message on.
    #[cfg(test)]
    pub(crate) planted: Option<Reply>,
    /// How often the watch was told that all is well.
    #[cfg(test)]
    pub(crate) armed: u64,
}

impl<'env, P: Copy + PartialEq> Echo<'env, P> {
    /// Without a connection yet; no wait will be longer than `patience`.
    pub(crate) fn new(env: &'env Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a round trip needs a real clock".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            client: None,
            server: Far::over(env, route, patience)?,
            open: None,
            visits: Vec::new(),
            watch: Watch::start().map_err(failed)?,
            patience,
            #[cfg(test)]
            planted: None,
            #[cfg(test)]
            armed: 0,
        })
    }

    /// Connects anew, for a visit to a point. Returns to where; none of a Unix socket, whose name is another
    /// one each time.
    pub(crate) fn connect(&mut self, point: P, service: Service) -> Result<Option<IpAddr>, ProbeError> {
        self.close();
        let asked = Answers {
            service,
            #[cfg(test)]
            planted: self.planted,
        };
        let Service { transport, waiting, bytes, .. } = service;
        let (address, sockets) = self.server.open(transport, 1, None, &asked)?;
        // Another one each time: an answer from an earlier connection is none.
        let seed = self.env.seed(0x6563_686f ^ self.stamps.end());
        let client = |socket| Client::over(socket, transport, waiting, bytes, seed, self.patience);
        self.client = sockets.into_iter().next().map(client);
        self.open = Some(point);
        Ok(address.ip())
    }

    /// Round trips until `each`, which is given begin and end of every one, has enough of them. After a wrong
    /// or late answer there is no connection any more.
    pub(crate) fn exchange(&mut self, mut each: impl FnMut(u64, u64) -> bool) -> Result<(), ProbeError> {
        let client =
            self.client.as_mut().ok_or_else(|| ProbeError::Other("there is no connection".to_owned()))?;
        let mut armed = None;
        let outcome = loop {
            client.prepare();
            let now = self.stamps.begin();
            // Not for each: it wakes a thread.
            if armed.is_none_or(|since| self.env.clock.ns(now.saturating_sub(since)) > ARM_EVERY_NS) {
                self.watch.arm(client, self.patience).map_err(failed)?;
                armed = Some(now);
                #[cfg(test)]
                {
                    self.armed += 1;
                }
            }
            let begin = self.stamps.begin();
            let exchanged = client.exchange();
            let end = self.stamps.end();
            if let Err(error) = exchanged.and_then(|()| client.check()) {
                break Err(error);
            }
            if !each(begin, end) {
                break Ok(());
            }
        };
        let outcome = if self.watch.disarm() {
            Err(NetError::Silent { seconds: self.patience.as_secs_f64() })
        } else {
            outcome
        };
        outcome.map_err(|error| {
            // Nothing of this connection is used again, nor of a server that does not do what it should.
            self.client = None;
            self.server.give_up();
            failed(error)
        })
    }

    /// Ends the visit, if there is one.
    pub(crate) fn close(&mut self) {
        if let (Some(client), Some(point)) = (self.client.take(), self.open) {
            let requests = client.requests();
            drop(client);
            let counted = self.server.end().map(|counts| (requests, counts));
            self.visits.push((point, counted.map_err(|error| error.to_string())));
        }
    }

    /// What both sides counted at a point, and what went wrong with its server last.
    pub(crate) fn served(&mut self, point: &P) -> (Served, Option<String>) {
        self.close();
        let own = || self.visits.iter().filter(|(visited, _)| visited == point).map(|(_, visit)| visit);
        let failed = own().filter_map(|visit| visit.as_ref().err()).last();
        (Served::of(own().flatten()), failed.cloned())
    }
}
