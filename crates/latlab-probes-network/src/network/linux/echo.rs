//! Round trips to a process at the far end of a route.

use std::io::{BufRead, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use latlab_harness::{Env, ProbeError, Stamps, serve_child};
use latlab_net::NetError;
use latlab_net::echo::{Client, Counts, Reply, Server, Service, Waiting, Watch, answer};
use latlab_net::sockets::{Address, Transport};
use serde::{Deserialize, Serialize};

use super::{ANSWERS, Reach, by_loopback, failed};
use crate::peer::{Place, Route, Side};

/// The name of the server's program.
const PROGRAM: &str = "network.roundtrip";

/// The watch is told so often that all is well, ns.
const ARM_EVERY_NS: f64 = 500e6;

/// What the child is asked.
#[derive(Serialize, Deserialize)]
enum Request {
    /// Listen, in place of what there was.
    Serve {
        place: Place,
        service: Service,
        /// Done with the third message and those after it.
        #[cfg(test)]
        planted: Option<Reply>,
    },
    /// End it, and say what was counted.
    End,
}

#[derive(Serialize, Deserialize)]
enum Told {
    Listening(Address),
    Ended(Option<Counts>),
}

/// The child: a server at a time, until its input ends.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve_echoes(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut server: Option<Server> = None;
    let mut there = false;
    serve_child(input, output, move |request| match request {
        Request::Serve {
            place,
            service,
            #[cfg(test)]
            planted,
        } => {
            server = None;
            if !there {
                place.take()?;
                there = true;
            }
            let started = Server::start(service, move |number, message| {
                answer(message);
                #[cfg(test)]
                if let Some(fault) = planted
                    && number >= 3
                {
                    return fault;
                }
                let _ = number;
                Reply::Whole
            })
            .map_err(failed)?;
            let address = started.address().clone();
            server = Some(started);
            Ok(Told::Listening(address))
        }
        Request::End => match server.take() {
            Some(server) => server.end().map(|counts| Told::Ended(Some(counts))).map_err(failed),
            None => Ok(Told::Ended(None)),
        },
    })
}

/// What round trips are to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) transport: Transport,
    pub(crate) waiting: Waiting,
    pub(crate) bytes: usize,
    /// The server's CPU.
    pub(crate) cpu: u32,
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

/// A connection, and its server, which is ended when this is dropped.
pub(crate) struct Echo<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// Before its server.
    client: Option<Client>,
    server: Option<Side>,
    reach: Reach,
    place: Place,
    /// The address that answered first, or that of the path's far end.
    ip: Option<IpAddr>,
    watch: Watch,
    patience: Duration,
    /// What servers do wrong from their third message on.
    #[cfg(test)]
    pub(crate) planted: Option<Reply>,
    /// How often the watch was told that all is well.
    #[cfg(test)]
    pub(crate) armed: u64,
}

impl<'env> Echo<'env> {
    /// Without a connection yet; no wait will be longer than `patience`.
    ///
    /// # Errors
    /// When the system refuses a thread, or a process at the near end of a path cannot be had.
    pub(crate) fn new(env: &'env Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        let stamps = Stamps::of(&env.clock)
            .ok_or_else(|| ProbeError::Other("a round trip needs a real clock".to_owned()))?;
        Ok(Self {
            env,
            stamps,
            client: None,
            server: None,
            reach: Reach::over(env, route, patience)?,
            place: route.server(Vec::new()),
            ip: route.bind().map(|address| address.ip()),
            watch: Watch::start().map_err(failed)?,
            patience,
            #[cfg(test)]
            planted: None,
            #[cfg(test)]
            armed: 0,
        })
    }

    /// The server's process, while there is one.
    pub(crate) fn server_id(&self) -> Option<u32> {
        self.server.as_ref().map(Side::id)
    }

    /// Starts the server's process, which listens nowhere yet.
    #[cfg(test)]
    pub(crate) fn start_server(&mut self) -> Result<(), ProbeError> {
        self.ask(&Request::End).map(|_| ())
    }

    fn ask(&mut self, request: &Request) -> Result<Told, ProbeError> {
        let mut side = match self.server.take() {
            Some(side) => side,
            None => Side::start(self.env, PROGRAM)?,
        };
        let told = side.ask(request, self.patience.max(ANSWERS));
        // One that could not do what it was asked can be asked for something else.
        self.server = (!side.is_gone()).then_some(side);
        told
    }

    /// Connects anew, by whichever address there is. Returns to where.
    ///
    /// # Errors
    /// When nothing can be connected to.
    pub(crate) fn connect(&mut self, ask: Ask) -> Result<Address, ProbeError> {
        self.client = None;
        // A Unix socket has no such address.
        let any = (ask.transport == Transport::Unix).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if let Some(ip) = self.ip.or(any) {
            return self.connect_to(ask, ip);
        }
        let connect = |echo: &mut Self, ip| echo.connect_to(ask, ip);
        let (ip, address) = by_loopback(self, connect, |echo| echo.server.is_none())?;
        self.ip = Some(ip);
        Ok(address)
    }

    fn connect_to(&mut self, ask: Ask, ip: IpAddr) -> Result<Address, ProbeError> {
        let request = Request::Serve {
            place: self.place.clone(),
            service: Service {
                transport: ask.transport,
                ip,
                bytes: ask.bytes,
                waiting: ask.waiting,
                cpu: Some(ask.cpu),
            },
            #[cfg(test)]
            planted: self.planted,
        };
        let Told::Listening(address) = self.ask(&request)? else {
            return Err(ProbeError::Other("the server's process does not listen".to_owned()));
        };
        let socket = self.reach.connect(&address, ask.transport)?;
        // Another one each time: an answer from an earlier connection is none.
        let seed = self.env.seed(0x6563_686f ^ self.stamps.end());
        self.client = Some(Client::over(socket, ask.transport, ask.waiting, ask.bytes, seed, self.patience));
        Ok(address)
    }

    /// Round trips until `each`, which is given begin and end of every one, has enough of them.
    ///
    /// # Errors
    /// When an answer is wrong, or does not come in time; then there is no connection any more.
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
            self.server = None;
            failed(error)
        })
    }

    /// Ends the connection; messages sent, and what the server counted. None when there was none.
    ///
    /// # Errors
    /// What the server says went wrong.
    pub(crate) fn close(&mut self) -> Result<Option<(u64, Counts)>, ProbeError> {
        let Some(client) = self.client.take() else {
            return Ok(None);
        };
        let requests = client.requests();
        drop(client);
        match self.ask(&Request::End)? {
            Told::Ended(Some(counts)) => Ok(Some((requests, counts))),
            _ => Err(ProbeError::Other("the server had ended".to_owned())),
        }
    }
}
