//! Streams from this process to another one, as a load or as what is measured.

use std::io::{BufRead, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use latlab_harness::{Env, ProbeError, serve_child};
use latlab_net::NetError;
use latlab_net::sockets::{Address, Transport};
use latlab_net::stream::{
    Amount, Arrivals, Fault, Received, Receivers, Senders, Sent, Sink, Source, TcpFacts,
};
use serde::{Deserialize, Serialize};

use super::{ANSWERS, Reach, by_loopback, failed};
use crate::peer::{Place, Route, Side};

/// The name of the receivers' program.
const PROGRAM: &str = "network.throughput";
/// Between two looks at whether what was sent has arrived.
const LOOK: Duration = Duration::from_micros(200);

/// What the child is asked.
#[derive(Serialize, Deserialize)]
enum Request {
    /// Receive, in place of what there was.
    Receive {
        place: Place,
        sink: Sink,
        /// The number of the descriptor of the counters, handed down when the child was started.
        arrivals: RawFd,
        fault: Option<Fault>,
    },
    /// End it, and say what came.
    End,
}

#[derive(Serialize, Deserialize)]
enum Told {
    Listening(Address),
    Ended(Vec<Received>),
}

/// The child: receivers, until its input ends.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve_streams(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut own: Option<Receivers> = None;
    let mut there = false;
    serve_child(input, output, move |request| match request {
        Request::Receive { place, sink, arrivals, fault } => {
            own = None;
            if !there {
                place.take()?;
                there = true;
            }
            let arrivals = Arrivals::inherited(arrivals).map_err(failed)?;
            let started = Receivers::start(sink, arrivals, fault).map_err(failed)?;
            let address = started.address().clone();
            own = Some(started);
            Ok(Told::Listening(address))
        }
        Request::End => match own.take() {
            Some(receivers) => receivers.end().map(Told::Ended).map_err(failed),
            None => Ok(Told::Ended(Vec::new())),
        },
    })
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
    /// Of visits with so many streams each.
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
pub(crate) struct Load<'env> {
    env: &'env Env,
    /// Before the receivers: connections end before them.
    senders: Option<Senders>,
    receivers: Option<Side>,
    reach: Reach,
    place: Place,
    arrivals: Arrivals,
    patience: Duration,
    /// The address that answered first.
    ip: Option<IpAddr>,
    /// What the receivers do wrong.
    pub(crate) fault: Option<Fault>,
    going_since: Option<Instant>,
    so_far: Ends,
}

impl<'env> Load<'env> {
    /// Without streams yet; no wait will be longer than `patience`.
    ///
    /// # Errors
    /// When the system refuses shared memory, or a process at the near end of a path cannot be had.
    pub(crate) fn new(env: &'env Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        Ok(Self {
            env,
            senders: None,
            receivers: None,
            reach: Reach::over(env, route, patience)?,
            place: route.server(Vec::new()),
            arrivals: Arrivals::new().map_err(failed)?,
            patience,
            ip: route.bind().map(|address| address.ip()),
            fault: None,
            going_since: None,
            so_far: Ends::default(),
        })
    }

    /// Asks the receivers' process, which is started when there is none.
    fn ask(&mut self, request: &Request) -> Result<Told, ProbeError> {
        let mut side = if let Some(side) = self.receivers.take() {
            side
        } else {
            let env = self.env;
            let start = |_| Ok::<_, NetError>(Side::start(env, PROGRAM));
            self.arrivals.inherited_by(start).map_err(failed)??
        };
        let told = side.ask(request, self.patience.max(ANSWERS));
        // Those that could not do what they were asked can be asked for something else.
        self.receivers = (!side.is_gone()).then_some(side);
        told
    }

    /// Makes streams, at rest, in place of what there was, by whichever address there is. Returns where they go to.
    ///
    /// # Errors
    /// When nothing can be connected to, or a thread cannot be had.
    pub(crate) fn make(&mut self, shape: &Shape, seed: u64) -> Result<Address, ProbeError> {
        // A Unix socket has no such address.
        let any = (shape.transport == Transport::Unix).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if let Some(ip) = self.ip.or(any) {
            return self.make_at(shape, seed, ip);
        }
        let make = |load: &mut Self, ip| load.make_at(shape, seed, ip);
        let (ip, address) = by_loopback(self, make, |load| load.receivers.is_none())?;
        self.ip = Some(ip);
        Ok(address)
    }

    fn make_at(&mut self, shape: &Shape, seed: u64, ip: IpAddr) -> Result<Address, ProbeError> {
        self.senders = None;
        self.so_far = Ends::default();
        let request = Request::Receive {
            place: self.place.clone(),
            sink: Sink { transport: shape.transport, ip, streams: shape.streams, cpus: shape.to.clone() },
            arrivals: self.arrivals.as_fd().as_raw_fd(),
            fault: self.fault,
        };
        let Told::Listening(address) = self.ask(&request)? else {
            return Err(ProbeError::Other("the receivers' process does not listen".to_owned()));
        };
        // Nobody counts any more for the streams before, and nobody yet for these.
        self.arrivals.clear();
        let sockets = (0..shape.streams)
            .map(|_| self.reach.connect(&address, shape.transport))
            .collect::<Result<Vec<_>, ProbeError>>()?;
        let source = Source { message: shape.message, seed, cpus: shape.from.clone() };
        self.senders = Some(Senders::start(sockets, &source).map_err(failed)?);
        Ok(address)
    }

    /// All streams send from now on.
    ///
    /// # Errors
    /// When one has ended, or there are none.
    pub(crate) fn go(&mut self) -> Result<(), ProbeError> {
        let senders = self.senders.as_ref().ok_or_else(none)?;
        self.going_since = Some(Instant::now());
        senders.go().map_err(failed)
    }

    /// Bytes that have arrived so far.
    #[inline]
    pub(crate) fn arrived(&self, streams: usize) -> u64 {
        self.arrivals.sum(streams)
    }

    /// The same of each stream.
    pub(crate) fn arrived_each(&self, streams: usize) -> Vec<u64> {
        self.arrivals.each(streams)
    }

    /// What TCP says of each stream now.
    pub(crate) fn tcp(&self) -> Vec<TcpFacts> {
        let senders = self.senders.iter();
        senders.flat_map(Senders::tcp).flatten().collect()
    }

    /// All streams rest, and all that they sent has arrived when this returns.
    ///
    /// # Errors
    /// When one went wrong, or what was sent does not arrive in time.
    pub(crate) fn rest(&mut self) -> Result<(), ProbeError> {
        let senders = self.senders.as_mut().ok_or_else(none)?;
        let streams = senders.len();
        let rested = senders.rest(self.patience);
        if let Some(since) = self.going_since.take() {
            self.so_far.going += since.elapsed();
        }
        let sent = rested.map_err(|error| self.broken(error))?;
        let all: u64 = sent.iter().map(|sent| sent.amount.bytes).sum();
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
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends the streams. None when there were none.
    ///
    /// # Errors
    /// What went wrong at the receivers' end.
    pub(crate) fn end(&mut self) -> Result<Option<Ends>, ProbeError> {
        let Some(senders) = self.senders.take() else {
            return Ok(None);
        };
        drop(senders);
        let Told::Ended(received) = self.ask(&Request::End)? else {
            return Err(ProbeError::Other("the receivers had ended".to_owned()));
        };
        Ok(Some(Ends { received, ..std::mem::take(&mut self.so_far) }))
    }

    /// Nothing of these streams is used again, nor of receivers that do not do what they should.
    fn broken(&mut self, error: NetError) -> ProbeError {
        self.senders = None;
        self.receivers = None;
        match error {
            NetError::Silent { seconds } => {
                ProbeError::Other(format!("the receivers took nothing for {seconds} s"))
            }
            error => failed(error),
        }
    }
}

fn none() -> ProbeError {
    ProbeError::Other("there are no streams".to_owned())
}
