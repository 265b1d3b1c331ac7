//! The client of HTTP in a process of its own: transfers by one or many at once, each with the stamps of its
//! phases.

use std::cell::Cell;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use latlab_harness::{Env, ProbeError, serve_child};
use latlab_net::fetch::{Answer, Connection, FetchError, Streams, Trust, Url, pass};
use latlab_net::serve::{Pass, is_body};
use serde::{Deserialize, Serialize};

use super::asked::{NAMED_PAUSE_S, Seats};
use super::away::{reported, secret};
use super::names::Protocol;
use super::python::Interpreter;
use super::route::Route;
use super::side::{Place, Side, failed};
use super::transfers::{Stamped, Transferred, Work};
use super::web::{Listening, WebServer};

/// How long a child may take for what needs no network.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest body that is taken from the user's server: ten of them leave a small machine's traffic what it
/// was.
const MOST_NAMED_BYTES: u64 = 16 << 20;
/// Beside the time that its transfers may take, the child needs some for its threads and for telling.
const TELLING: Duration = Duration::from_secs(5);

/// What is asked of the child.
#[derive(Serialize, Deserialize)]
enum Request {
    /// Go there, and measure against this server.
    Face {
        place: Place,
        address: SocketAddr,
        certificate: Vec<u8>,
    },
    /// The same against the user's server.
    Named {
        place: Place,
        url: String,
        secret: Option<Vec<u8>>,
        patience: Duration,
    },
    /// Have this interpreter ready for work by a library of Python's.
    Have(Interpreter),
    /// Open what is kept, and warm it up; untimed.
    Prepare(Work),
    Transfer(Work),
    Connect(Connects),
    #[cfg(test)]
    Plant(Fault),
}

/// Connections, one after the other, that carry nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Connects {
    /// The server's, unless a name is to be resolved.
    pub(crate) name: Option<String>,
    pub(crate) tls: bool,
    pub(crate) count: u32,
    /// For each.
    pub(crate) patience: Duration,
}

/// What a test breaks.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Asks for one byte less than it should.
    Short,
    /// Tells of one transfer less than it did.
    Forgets,
}

/// A client at the near end of a route.
#[derive(Debug)]
pub(crate) struct WebClient {
    pub(crate) side: Side,
}

impl WebClient {
    /// Starts it on the client's CPU, before a server; without one before the user's.
    pub(crate) fn start(env: &Env, route: &Route, server: Option<&WebServer>) -> Result<Self, ProbeError> {
        let mut side = Side::start(env, "network.client")?;
        let place = route.client(vec![Seats::of(env).client]);
        let request = match server {
            Some(WebServer { listening: Listening { address, certificate, .. }, .. }) => {
                Request::Face { place, address: *address, certificate: certificate.clone() }
            }
            None => Request::Named {
                place,
                url: env.settings.url.clone().unwrap_or_default(),
                secret: secret(env.settings.secret_file.as_deref())?,
                patience: PATIENCE,
            },
        };
        let _: Transferred = side.ask(&request, 2 * PATIENCE)?;
        Ok(Self { side })
    }

    /// Has an interpreter ready.
    pub(crate) fn have(&mut self, interpreter: &Interpreter) -> Result<(), ProbeError> {
        self.ask(&Request::Have(interpreter.clone()), TELLING + PATIENCE).map(drop)
    }

    /// Opens and warms up what this work keeps; closes what earlier work kept.
    pub(crate) fn prepare(&mut self, work: &Work) -> Result<Transferred, ProbeError> {
        let request = Request::Prepare(work.clone());
        self.ask(&request, 2 * work.patience + TELLING)
    }

    /// Does the work, whose connections were prepared when it keeps any. Every body was compared with what it
    /// must be.
    pub(crate) fn transfer(&mut self, work: &Work) -> Result<Transferred, ProbeError> {
        let request = Request::Transfer(work.clone());
        self.ask(&request, work.patience + TELLING)
    }

    /// Opens and closes connections.
    pub(crate) fn connect(&mut self, connects: &Connects) -> Result<Vec<Stamped>, ProbeError> {
        let request = Request::Connect(connects.clone());
        self.ask(&request, connects.count * connects.patience + TELLING).map(|reported| reported.stamped)
    }

    #[cfg(test)]
    pub(crate) fn plant(&mut self, fault: Fault) -> Result<(), ProbeError> {
        self.ask(&Request::Plant(fault), PATIENCE).map(drop)
    }

    /// What was done for it; of some requests nothing is reported.
    fn ask(&mut self, request: &Request, patience: Duration) -> Result<Transferred, ProbeError> {
        self.side.ask(request, patience)
    }
}

/// The client's process.
pub(crate) fn fetch(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut client = Client::default();
    serve_child(input, output, move |request| client.answer(request))
}

/// Connections that are kept from one piece of work to the next.
#[derive(Default)]
enum Kept {
    #[default]
    None,
    Each(Vec<Connection>),
    One(Box<Streams>),
}

/// Whom the client asks.
struct Server {
    /// Where it is; none of the user's, whose address is the URL's affair.
    own: Option<SocketAddr>,
    url: Url,
    trust: Trust,
    /// What signs requests, where the server wants that.
    pass: Option<Pass>,
}

impl Server {
    fn url(&self, tls: bool) -> Url {
        Url { tls: if self.is_named() { self.url.tls } else { tls }, ..self.url.clone() }
    }

    fn is_named(&self) -> bool {
        self.own.is_none()
    }

    /// What one request for this target carries.
    fn authorization(&self, target: &str) -> Option<String> {
        Some(self.pass.as_ref()?.next("GET", target))
    }

    /// Before each request or connection: nobody's server is asked as fast as ours.
    fn pause(&self) {
        if self.is_named() {
            std::thread::sleep(Duration::from_secs_f64(NAMED_PAUSE_S));
        }
    }

    /// What went wrong, in words for the user.
    fn failed(&self, error: &FetchError, patience: Duration) -> ProbeError {
        if self.is_named() { reported(error, patience) } else { failed(error) }
    }
}

#[derive(Default)]
struct Client {
    server: Option<Server>,
    kept: Kept,
    python: Option<super::python::Running>,
    #[cfg(test)]
    fault: Option<Fault>,
}

impl Client {
    fn answer(&mut self, request: Request) -> Result<Transferred, ProbeError> {
        match request {
            Request::Face { place, address, certificate } => {
                place.take()?;
                let trust = Trust::only(&certificate).map_err(|error| failed(&error))?;
                let url = Url::of(address, "/");
                self.server = Some(Server { own: Some(address), url, trust, pass: None });
                Ok(Transferred::default())
            }
            Request::Named { place, url, secret, patience } => {
                place.take()?;
                let wrong = |error: FetchError| reported(&error, patience);
                let (url, trust) = (Url::parse(&url).map_err(wrong)?, Trust::system().map_err(wrong)?);
                let pass = secret
                    .map(|secret| pass(&url, &trust, &secret, Instant::now() + patience))
                    .transpose()
                    .map_err(wrong)?;
                self.server = Some(Server { own: None, url, trust, pass });
                Ok(Transferred::default())
            }
            Request::Have(interpreter) => {
                // What it has loaded and started is there for the next point.
                if self.python.as_ref().is_none_or(|running| !running.is_of(&interpreter)) {
                    self.python = Some(interpreter.start()?);
                }
                Ok(Transferred::default())
            }
            Request::Prepare(work) => self.prepare(&work),
            Request::Transfer(work) => {
                #[cfg_attr(not(test), expect(unused_mut, reason = "a test forgets one"))]
                let mut transferred = self.transfer(&work)?;
                #[cfg(test)]
                if self.fault == Some(Fault::Forgets) {
                    transferred.stamped.pop();
                }
                Ok(transferred)
            }
            Request::Connect(connects) => {
                let stamped = self.connect(&connects)?;
                Ok(Transferred { connections: stamped.len() as u64, stamped })
            }
            #[cfg(test)]
            Request::Plant(fault) => {
                self.fault = Some(fault);
                Ok(Transferred::default())
            }
        }
    }

    fn server(&self) -> Result<&Server, ProbeError> {
        self.server.as_ref().ok_or_else(|| ProbeError::Other("the client knows no server yet".to_owned()))
    }

    fn prepare(&mut self, work: &Work) -> Result<Transferred, ProbeError> {
        self.kept = Kept::None;
        if let Some(library) = work.library {
            let only = || ProbeError::Other("a library asks latlab's own server only".to_owned());
            let address = self.server()?.own.ok_or_else(only)?;
            return self.python()?.prepare(library, address, work);
        }
        let server = self.server()?;
        let named = server.is_named();
        let wrong = |error: FetchError| server.failed(&error, work.patience);
        let deadline = Instant::now() + work.patience;
        let (url, trust) = (server.url(work.protocol == Protocol::Tls), &server.trust);
        let opened;
        if work.protocol == Protocol::Streams {
            let streams = Streams::open(&url, trust, deadline, &mut |_| {}).map_err(wrong)?;
            self.kept = Kept::One(Box::new(streams));
            opened = 1;
        } else if work.kept {
            opened = u64::from(work.workers);
            let open = |_| Connection::open(&url, trust, deadline, &mut |_| {});
            let open: Result<Vec<Connection>, FetchError> = (0..work.workers).map(open).collect();
            self.kept = Kept::Each(open.map_err(wrong)?);
        } else {
            return Ok(Transferred::default());
        }
        // Twice: after it the window of the connection is as wide as these files make it. The user's server
        // is asked once.
        let warm = Work { count: if named { 1 } else { 2 * work.workers }, ..work.clone() };
        let warmed = self.transfer(&warm)?;
        Ok(Transferred { connections: opened + warmed.connections, ..warmed })
    }

    fn python(&mut self) -> Result<&mut super::python::Running, ProbeError> {
        self.python.as_mut().ok_or_else(|| ProbeError::Other("the client has no interpreter".to_owned()))
    }

    fn transfer(&mut self, work: &Work) -> Result<Transferred, ProbeError> {
        if work.library.is_some() {
            return self.python()?.transfer(work);
        }
        let kept = std::mem::take(&mut self.kept);
        let server = self.server()?;
        let url = server.url(work.protocol == Protocol::Tls);
        let asked = work.bytes;
        #[cfg(test)]
        let asked = asked - u64::from(self.fault == Some(Fault::Short));
        let task = Task {
            target: if server.is_named() { url.target.clone() } else { format!("/bytes/{asked}") },
            server,
            url,
            work,
            epoch: epoch(),
            deadline: Instant::now() + work.patience,
        };
        let (stamped, kept) = match kept {
            Kept::One(mut streams) => (task.streams(&mut streams)?, Kept::One(streams)),
            Kept::Each(connections) => {
                let (stamped, connections) = task.workers(connections)?;
                (stamped, Kept::Each(connections))
            }
            Kept::None => (task.workers(Vec::new())?.0, Kept::None),
        };
        self.kept = kept;
        let connections = stamped.iter().filter(|own| own.connected > 0).count() as u64;
        Ok(Transferred { stamped, connections })
    }

    fn connect(&self, connects: &Connects) -> Result<Vec<Stamped>, ProbeError> {
        let server = self.server()?;
        let mut url = server.url(connects.tls);
        url.tls = connects.tls;
        if let Some(name) = connects.name.as_ref().filter(|_| !server.is_named()) {
            url.host.clone_from(name);
        }
        let epoch = epoch();
        (0..connects.count)
            .map(|_| {
                server.pause();
                let deadline = Instant::now() + connects.patience;
                let mut stamped = Stamped { begun: since(epoch), ..Stamped::default() };
                let open = Connection::open(&url, &server.trust, deadline, &mut |phase| {
                    stamped.set(phase, since(epoch));
                });
                open.map_err(|error| server.failed(&error, connects.patience))?;
                Ok(stamped)
            })
            .collect()
    }
}

/// A moment before all stamps, so that none is 0.
fn epoch() -> Instant {
    let now = Instant::now();
    now.checked_sub(Duration::from_micros(1)).unwrap_or(now)
}

fn since(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// One piece of work under way.
struct Task<'a> {
    server: &'a Server,
    url: Url,
    target: String,
    work: &'a Work,
    epoch: Instant,
    deadline: Instant,
}

/// The stamps of one worker and the connection that it kept; or why it gave up.
type Worked = Result<(Vec<Stamped>, Option<Connection>), FetchError>;

impl Task<'_> {
    /// A thread a worker; each takes the next transfer when it is done with one, until there are none.
    fn workers(&self, kept: Vec<Connection>) -> Result<(Vec<Stamped>, Vec<Connection>), ProbeError> {
        let next = AtomicU32::new(0);
        let start = Barrier::new(self.work.workers as usize);
        let mut kept: Vec<Option<Connection>> = kept.into_iter().map(Some).collect();
        kept.resize_with(self.work.workers as usize, || None);
        let outcomes: Vec<Worked> = std::thread::scope(|scope| {
            let started: Vec<_> = kept
                .into_iter()
                .map(|connection| scope.spawn(|| self.worker(connection, &next, &start)))
                .collect();
            started
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| {
                        Err(FetchError::System(std::io::Error::other("a worker panicked")))
                    })
                })
                .collect()
        });
        let mut stamped = Vec::with_capacity(self.work.count as usize);
        let mut connections = Vec::new();
        for outcome in outcomes {
            let (own, connection) =
                outcome.map_err(|error| self.server.failed(&error, self.work.patience))?;
            stamped.extend(own);
            connections.extend(connection);
        }
        stamped.sort_by_key(|stamped| stamped.begun);
        Ok((stamped, connections))
    }

    fn worker(&self, mut connection: Option<Connection>, next: &AtomicU32, start: &Barrier) -> Worked {
        let mut all = Vec::with_capacity(self.work.count as usize / self.work.workers as usize + 8);
        start.wait();
        while next.fetch_add(1, Ordering::Relaxed) < self.work.count {
            self.server.pause();
            let mut stamped = Stamped { begun: since(self.epoch), ..Stamped::default() };
            let (answer, open) = match self.one(connection.take(), &mut stamped) {
                Err((_, true)) => self.one(None, &mut stamped).map_err(|(error, _)| error)?,
                done => done.map_err(|(error, _)| error)?,
            };
            stamped.bytes = answer.body_bytes;
            all.push(stamped);
            if self.work.kept && answer.kept {
                connection = Some(open);
            }
        }
        Ok((all, connection))
    }

    /// One transfer, on the connection that was kept or on a new one. An error says besides whether the
    /// user's server had closed the one that was kept, as it may between two requests: then the request is
    /// sent again, and the new connection is part of its time.
    fn one(
        &self,
        kept: Option<Connection>,
        stamped: &mut Stamped,
    ) -> Result<(Answer, Connection), (FetchError, bool)> {
        let reused = kept.is_some() && self.server.is_named();
        let mut stamp = |phase| stamped.set(phase, since(self.epoch));
        let mut open = match kept {
            Some(open) => open,
            None => Connection::open(&self.url, &self.server.trust, self.deadline, &mut stamp)
                .map_err(|error| (error, false))?,
        };
        let authorization = self.server.authorization(&self.target);
        let authorization = authorization.as_deref();
        let too_long = Cell::new(false);
        let fits = |at: u64, part: &[u8]| {
            too_long.set(at + part.len() as u64 > MOST_NAMED_BYTES);
            !too_long.get()
        };
        let expected: &dyn Fn(u64, &[u8]) -> bool = if self.server.is_named() { &fits } else { &is_body };
        let answer =
            open.get(&self.target, authorization, self.deadline, &mut stamp, expected).map_err(|error| {
                if too_long.get() {
                    let most = MOST_NAMED_BYTES >> 20;
                    let why = format!("the answer is longer than {most} MiB: name a smaller one");
                    return (FetchError::Url(why), false);
                }
                let closed = matches!(error, FetchError::Reset | FetchError::Truncated { .. });
                (error, reused && closed && stamped.first_byte == 0)
            })?;
        self.whole(answer.body_bytes).map_err(|error| (error, false))?;
        Ok((answer, open))
    }

    /// As many streams at once as there would be workers, round after round.
    fn streams(&self, streams: &mut Streams) -> Result<Vec<Stamped>, ProbeError> {
        let mut all = Vec::with_capacity(self.work.count as usize);
        while all.len() < self.work.count as usize {
            let left = self.work.count as usize - all.len();
            let targets = vec![self.target.as_str(); left.min(self.work.workers as usize)];
            let begun = since(self.epoch);
            let mut stamped = vec![Stamped { begun, ..Stamped::default() }; targets.len()];
            let answers = streams.get_all(
                &targets,
                self.deadline,
                &mut |number, phase| stamped[number].set(phase, since(self.epoch)),
                &is_body,
            );
            for (own, answer) in stamped.iter_mut().zip(answers) {
                own.bytes = answer
                    .and_then(|answer| self.whole(answer.body_bytes).map(|()| answer.body_bytes))
                    .map_err(|error| self.server.failed(&error, self.work.patience))?;
            }
            all.extend(stamped);
        }
        Ok(all)
    }

    fn whole(&self, bytes: u64) -> Result<(), FetchError> {
        if bytes == self.work.bytes || self.server.is_named() {
            Ok(())
        } else {
            Err(FetchError::Truncated { got: bytes })
        }
    }
}
