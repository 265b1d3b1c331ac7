//! Streams from this process to another one, as a load or as what is measured.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use latlab_net::sockets::Transport;
use latlab_net::stream::{Amount, Arrivals, Fault, Received, Senders, Sent, Sink, Source, TcpFacts};
use latlab_net::{NetError, Serving};
use latlab_probes_shared::prelude::*;

use super::{Far, Runs, failed};
use crate::peer::Route;

/// Between two checks whether what was sent has arrived.
const CHECK_EVERY: Duration = Duration::from_micros(200);

/// Receivers as their process is asked for them.
#[derive(Serialize, Deserialize)]
pub(crate) struct Receives {
    sink: Sink,
    /// The number of the descriptor of the counters, handed down when the process was started.
    arrivals: RawFd,
    fault: Option<Fault>,
}

impl Runs for Receives {
    type Reported = Vec<Received>;
    const PROGRAM: &'static str = "network.throughput";

    fn start(self, ip: IpAddr) -> Result<Serving<Vec<Received>>, NetError> {
        self.sink.start(ip, Arrivals::inherited(self.arrivals)?, self.fault)
    }
}

/// What streams are to be like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) transport: Transport,
    pub(crate) message: usize,
    pub(crate) streams: usize,
    /// The CPUs of senders and of receivers, streams in turn.
    pub(crate) from: Vec<Vec<u32>>,
    pub(crate) to: Vec<Vec<u32>>,
}

/// What both ends of some streams said at their end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) sent: Vec<Sent>,
    pub(crate) received: Vec<Received>,
    /// How long they were sending, all pauses left out.
    pub(crate) going: Duration,
}

impl Ends {
    /// Streams of which both ends say the same.
    fn agreeing(&self) -> usize {
        let mut left: Vec<Amount> = self.received.iter().map(|received| received.amount).collect();
        self.sent
            .iter()
            .filter(|sent| {
                let same = left.iter().position(|amount| *amount == sent.amount);
                same.map(|place| left.swap_remove(place)).is_some()
            })
            .count()
    }
}

/// Whether both ends of the streams of all visits say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    pub(crate) streams: usize,
    pub(crate) agreeing: usize,
    /// Whether each visit had as many as it was to have.
    whole: bool,
}

impl Agreement {
    pub(crate) fn of(visits: &[&Ends], streams: usize) -> Self {
        Self {
            streams: visits.iter().map(|ends| ends.sent.len()).sum(),
            agreeing: visits.iter().map(|ends| ends.agreeing()).sum(),
            whole: visits.iter().all(|ends| ends.sent.len() == streams && ends.received.len() == streams),
        }
    }

    /// Every stream of every visit, and there were some.
    pub(crate) fn is_full(self) -> bool {
        self.streams > 0 && self.whole && self.agreeing == self.streams
    }
}

/// Streams to a process of their own, which is ended when this is dropped.
pub(crate) struct Load<'env, P> {
    /// Before the receivers: connections end before them.
    senders: Option<Senders>,
    receivers: Far<'env, Receives>,
    arrivals: Arrivals,
    patience: Duration,
    /// What the receivers do wrong.
    pub(crate) fault: Option<Fault>,
    going_since: Option<Instant>,
    so_far: Ends,
    /// The point that has the streams.
    open: Option<P>,
    /// Of each visit to a point that has ended: what both ends said, or what went wrong at one.
    visits: Vec<(P, Result<Ends, String>)>,
}

impl<'env, P: Copy + PartialEq> Load<'env, P> {
    /// Without streams yet; no wait will be longer than `patience`.
    pub(crate) fn new(env: &'env Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        Ok(Self {
            senders: None,
            receivers: Far::over(env, route, patience)?,
            arrivals: Arrivals::new().map_err(failed)?,
            patience,
            fault: None,
            going_since: None,
            so_far: Ends::default(),
            open: None,
            visits: Vec::new(),
        })
    }

    /// Makes streams, at rest, for a visit to a point. Returns where they go to; none of a Unix socket, whose
    /// name is another one each time.
    pub(crate) fn make(&mut self, point: P, shape: &Shape, seed: u64) -> Result<Option<IpAddr>, ProbeError> {
        self.close();
        self.so_far = Ends::default();
        let counters = self.arrivals.as_fd();
        let (transport, streams) = (shape.transport, shape.streams);
        let asked = Receives {
            sink: Sink { transport, streams, cpus: shape.to.clone() },
            arrivals: counters.as_raw_fd(),
            fault: self.fault,
        };
        let (address, sockets) = self.receivers.open(transport, streams, Some(counters), &asked)?;
        // Nobody counts any more for the streams before, and nobody yet for these.
        self.arrivals.clear();
        let source = Source { message: shape.message, seed, cpus: shape.from.clone() };
        self.senders = Some(Senders::start(sockets, &source).map_err(failed)?);
        self.open = Some(point);
        Ok(address.ip())
    }

    /// All streams send from now on.
    pub(crate) fn go(&mut self) -> Result<(), ProbeError> {
        let senders = self.senders.as_ref().ok_or_else(none)?;
        self.going_since = Some(Instant::now());
        senders.go().map_err(failed).inspect_err(|_| self.going_since = None)
    }

    /// Bytes that have arrived so far.
    #[inline]
    pub(crate) fn arrived(&self, streams: usize) -> u64 {
        self.arrivals.sum(streams)
    }

    pub(crate) fn arrived_each(&self, streams: usize) -> Vec<u64> {
        self.arrivals.each(streams)
    }

    /// What TCP says of each stream now.
    pub(crate) fn tcp(&self) -> Vec<TcpFacts> {
        let senders = self.senders.iter();
        senders.flat_map(Senders::tcp).flatten().collect()
    }

    /// All streams rest, and all that they sent has arrived when this returns.
    pub(crate) fn rest(&mut self) -> Result<(), ProbeError> {
        let senders = self.senders.as_mut().ok_or_else(none)?;
        let rested = senders.rest(self.patience);
        if let Some(since) = self.going_since.take() {
            self.so_far.going += since.elapsed();
        }
        let sent = rested.map_err(|error| self.broken(error))?;
        let all: u64 = sent.iter().map(|sent| sent.amount.bytes).sum();
        let streams = sent.len();
        self.so_far.sent = sent;
        let until = Instant::now() + self.patience;
        while self.arrivals.sum(streams) < all {
            if let Some(Err(error)) = self.senders.as_ref().map(Senders::check) {
                return Err(self.broken(error));
            }
            if Instant::now() > until {
                let missing = all - self.arrivals.sum(streams);
                let _ = self.broken(NetError::Died);
                return Err(ProbeError::Other(format!(
                    "{missing} of {all} bytes have not arrived after {} s",
                    self.patience.as_secs_f64()
                )));
            }
            std::thread::sleep(CHECK_EVERY);
        }
        Ok(())
    }

    /// Ends the visit, if there is one.
    pub(crate) fn close(&mut self) {
        let Some(point) = self.open.take().filter(|_| self.senders.is_some()) else { return };
        let rested = if self.going_since.is_some() { self.rest() } else { Ok(()) };
        self.senders = None;
        let ended = rested.and_then(|()| self.receivers.end());
        let ends = ended.map(|received| Ends { received, ..std::mem::take(&mut self.so_far) });
        self.visits.push((point, ends.map_err(|error| error.to_string())));
    }

    /// What both ends said at a point, and what went wrong at one of them last.
    pub(crate) fn ended(&mut self, point: &P) -> (Vec<&Ends>, Option<String>) {
        self.close();
        let own = || self.visits.iter().filter(|(visited, _)| visited == point).map(|(_, visit)| visit);
        let failed = own().filter_map(|visit| visit.as_ref().err()).last();
        (own().flatten().collect(), failed.cloned())
    }

    /// Nothing of these streams is used again, nor of receivers that do not do what they should.
    fn broken(&mut self, error: NetError) -> ProbeError {
        self.senders = None;
        self.receivers.give_up();
        match error {
            NetError::Silent { seconds } => {
                ProbeError::Other(format!("the receivers read nothing for {seconds} s"))
            }
            error => failed(error),
        }
    }
}

fn none() -> ProbeError {
    ProbeError::Other("there are no streams".to_owned())
}
