//! Many requests under way at once, each on a connection of its own, by one thread that waits for all of them
//! together: for loops that ask at their own rate, whatever the answers do.
//!
//! ```text
//! closed ─► connecting ─► shaking hands ─► open ⇄ asked
//!    ▲                                       │
//!    └──────── the server closed it ─────────┘   opened again by the request that finds it so: that is part of its time, as for any client
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::challenge::pass;
use super::error::{FetchError, Phase};
use super::exchange::{Answer, Incoming, READ_BYTES, request};
use super::reach::reach;
use super::timed::Timed;
use super::tls::{self, Trust};
use super::url::Url;
use crate::serve::Pass;

/// Compares a part of a body, with where it begins.
pub type Expected = &'static (dyn Fn(u64, &[u8]) -> bool + Sync);

/// Connections to one server, each for one request at a time.
pub struct Pool {
    url: Url,
    trust: Trust,
    address: SocketAddr,
    authority: String,
    /// Signs each request.
    pass: Option<Pass>,
    patience: Duration,
    expected: Expected,
    members: Vec<Member>,
    buffer: Vec<u8>,
    opened: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Shaking,
    Open,
}

/// A connection, and the request that is under way on it.
#[derive(Default)]
struct Member {
    link: Option<(tls::Stream, Stage)>,
    /// An answer came on it: the server may have closed it since then.
    used: bool,
    asked: Option<Asked>,
}

struct Asked {
    request: String,
    sent: usize,
    answer: Incoming<'static>,
    deadline: Instant,
}

impl Pool {
    /// Resolves, and opens so many connections, by `patience`; each request gets as long later. `secret` is
    /// that of another latlab's server; `expected` compares every part of every body.
    pub fn open(
        url: &Url,
        trust: &Trust,
        secret: Option<&[u8]>,
        connections: usize,
        patience: Duration,
        expected: Expected,
    ) -> Result<Self, FetchError> {
        let deadline = Instant::now() + patience;
        let pass = secret.map(|secret| pass(url, trust, secret, deadline)).transpose()?;
        // The first one finds the address that answers.
        let first = reach(url, deadline, &mut |_| {})?;
        let address = first.peer_addr().map_err(FetchError::System)?;
        first.set_nonblocking(true).map_err(FetchError::System)?;
        let mut pool = Self {
            authority: url.authority(),
            url: url.clone(),
            trust: trust.clone(),
            address,
            pass,
            patience,
            expected,
            members: std::iter::repeat_with(Member::default).take(connections.max(1)).collect(),
            buffer: vec![0; READ_BYTES],
            opened: 0,
        };
        pool.adopt(0, first, Stage::Shaking)?;
        for place in 1..pool.members.len() {
            pool.connect(place)?;
        }
        pool.ready_all(deadline)?;
        Ok(pool)
    }

    /// Where it is connected to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that were opened so far: more than there are places when the server closes them.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Sends a request on one of the connections, which has none under way. Fails when it cannot be connected
    /// or sent.
    pub fn ask(&mut self, place: usize) -> Result<(), FetchError> {
        let target = &self.url.target;
        let authorization = self.pass.as_ref().map(|pass| pass.next("GET", target));
        let request = request(&self.authority, target, authorization.as_deref());
        self.members[place].asked = Some(Asked {
            request,
            sent: 0,
            answer: Incoming::new(self.expected),
            deadline: Instant::now() + self.patience,
        });
        if self.members[place].link.is_none() || self.members[place].was_closed_unused() {
            self.connect(place)?;
        }
        self.advance(place, false).map(|_| ())
    }

    /// Waits until one request has its answer, or for so long at most; then calls `done` for each that has.
    /// Returns at once when none is under way. Errors: of the first request that fails: reset, truncated,
    /// garbage, too late, or another status. A connection that the server closed while it was idle is no
    /// failure: it is opened again.
    pub fn wait(
        &mut self,
        at_most: Option<Duration>,
        done: &mut dyn FnMut(usize, Answer),
    ) -> Result<(), FetchError> {
        let until = at_most.map(|at_most| Instant::now() + at_most);
        loop {
            let now = Instant::now();
            let Some(first) = self.first_deadline() else { return Ok(()) };
            if let Some(late) = self.late(now) {
                return Err(FetchError::TimedOut(late));
            }
            let limit = until.map_or(first, |until| until.min(first));
            let mut answered = false;
            for place in self.ready(limit.saturating_duration_since(now))? {
                if let Some(answer) = self.advance(place, true)? {
                    answered = true;
                    done(place, answer);
                }
            }
            if answered || until.is_some_and(|until| until <= Instant::now()) {
                return Ok(());
            }
        }
    }

    fn first_deadline(&self) -> Option<Instant> {
        let asked = self.members.iter().filter_map(|member| member.asked.as_ref());
        asked.map(|asked| asked.deadline).min()
    }

    /// What a request that is too late was waiting for.
    fn late(&self, now: Instant) -> Option<Phase> {
        let member = self
            .members
            .iter()
            .find(|member| member.asked.as_ref().is_some_and(|asked| asked.deadline <= now))?;
        Some(member.phase())
    }

    /// The places at which something can go on, within a time.
    fn ready(&self, within: Duration) -> Result<Vec<usize>, FetchError> {
        let mut places = Vec::with_capacity(self.members.len());
        let mut waiting = Vec::with_capacity(self.members.len());
        for (place, member) in self.members.iter().enumerate() {
            let Some((stream, stage)) = &member.link else { continue };
            let flags = member.waits_for(stream, *stage);
            if !flags.is_empty() {
                places.push(place);
                waiting.push(PollFd::new(stream.socket_ref(), flags));
            }
        }
        let within = Timespec::try_from(within).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        match poll(&mut waiting, Some(&within)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(FetchError::System(error.into())),
        }
        Ok(places
            .into_iter()
            .zip(&waiting)
            .filter(|(_, waiting)| !waiting.revents().is_empty())
            .map(|(place, _)| place)
            .collect())
    }

    /// Goes on with one connection; once more on a new one where the server had closed it before it could
    /// know of the request.
    fn advance(&mut self, place: usize, readable: bool) -> Result<Option<Answer>, FetchError> {
        let error = match self.step(place, readable) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let member = &mut self.members[place];
        let closed = matches!(error, FetchError::Reset | FetchError::Truncated { got: 0 });
        let unheard = member.asked.as_ref().is_some_and(|asked| asked.answer.is_unheard());
        if !(closed && unheard && member.used) {
            return Err(error);
        }
        if let Some(asked) = &mut member.asked {
            asked.sent = 0;
        }
        self.connect(place)?;
        self.step(place, false)
    }

    /// As far as the socket lets it. What is `readable` is read; a request that was just sent has no answer
    /// yet.
    fn step(&mut self, place: usize, readable: bool) -> Result<Option<Answer>, FetchError> {
        let member = &mut self.members[place];
        let Some((stream, stage)) = &mut member.link else { return Ok(None) };
        if *stage == Stage::Connecting {
            if !readable {
                return Ok(None);
            }
            let failed = stream.socket_ref().take_error().map_err(FetchError::System)?;
            if let Some(error) = failed {
                return Err(FetchError::of(error, Phase::Connect));
            }
            *stage = Stage::Shaking;
        }
        if *stage == Stage::Shaking {
            if !gone_on(stream.shake(), Phase::Tls)? {
                return Ok(None);
            }
            *stage = Stage::Open;
        }
        let Some(asked) = &mut member.asked else { return Ok(None) };
        if !asked.send(stream)? || !readable {
            return Ok(None);
        }
        let Some(answer) = asked.receive(stream, &mut self.buffer)? else { return Ok(None) };
        member.asked = None;
        member.used = true;
        if !answer.kept {
            member.link = None;
        }
        Ok(Some(answer))
    }

    /// A new connection at a place.
    fn connect(&mut self, place: usize) -> Result<(), FetchError> {
        let family = match self.address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let refused = |error: rustix::io::Errno| FetchError::of(error.into(), Phase::Connect);
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(refused)?;
        let stage = match rustix::net::connect(&socket, &self.address) {
            Ok(()) => Stage::Shaking,
            Err(rustix::io::Errno::INPROGRESS) => Stage::Connecting,
            Err(error) => return Err(refused(error)),
        };
        self.adopt(place, socket.into(), stage)
    }

    fn adopt(&mut self, place: usize, socket: TcpStream, stage: Stage) -> Result<(), FetchError> {
        socket.set_nodelay(true).map_err(FetchError::System)?;
        let socket = Timed::unblocking(socket);
        let stream = if self.url.tls {
            tls::begin(socket, &self.url.host, &self.trust)?
        } else {
            tls::Stream::Plain(socket)
        };
        self.opened += 1;
        let member = &mut self.members[place];
        member.link = Some((stream, stage));
        member.used = false;
        Ok(())
    }

    /// Waits until every connection is open.
    fn ready_all(&mut self, deadline: Instant) -> Result<(), FetchError> {
        for place in 0..self.members.len() {
            self.advance(place, false)?;
        }
        loop {
            let waiting = self.members.iter().find(|member| !member.is_open());
            let Some(waiting) = waiting else { return Ok(()) };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(FetchError::TimedOut(waiting.phase()));
            }
            for place in self.ready(left)? {
                self.advance(place, true)?;
            }
        }
    }
}

impl Member {
    fn is_open(&self) -> bool {
        matches!(self.link, Some((_, Stage::Open)))
    }

    /// Whether the server closed it before anything was asked, as servers do that wait for a first request
    /// for some seconds only. One that was used needs no such check: it is opened again once its request
    /// finds it closed.
    fn was_closed_unused(&self) -> bool {
        let Some((stream, Stage::Open)) = &self.link else { return false };
        let mut polled = [PollFd::new(stream.socket_ref(), PollFlags::RDHUP)];
        !self.used && poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
    }

    /// What ends next.
    fn phase(&self) -> Phase {
        match (&self.link, &self.asked) {
            (None | Some((_, Stage::Connecting)), _) => Phase::Connect,
            (Some((_, Stage::Shaking)), _) => Phase::Tls,
            (_, Some(asked)) if asked.sent < asked.request.len() => Phase::Request,
            (_, Some(asked)) => asked.answer.phase(),
            _ => Phase::FirstByte,
        }
    }

    fn waits_for(&self, stream: &tls::Stream, stage: Stage) -> PollFlags {
        match (stage, &self.asked) {
            (Stage::Connecting, _) => PollFlags::OUT,
            (Stage::Open, None) => PollFlags::empty(),
            (_, asked) => {
                let unsent = stage == Stage::Open
                    && asked.as_ref().is_some_and(|asked| asked.sent < asked.request.len());
                if unsent || stream.has_unsent() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
            }
        }
    }
}

impl Asked {
    /// Returns whether all of it is sent.
    fn send(&mut self, stream: &mut tls::Stream) -> Result<bool, FetchError> {
        while self.sent < self.request.len() {
            match stream.write(&self.request.as_bytes()[self.sent..]) {
                Ok(0) => return Err(FetchError::Reset),
                Ok(written) => self.sent += written,
                Err(error) => return gone_on(Err(error), Phase::Request),
            }
            gone_on(stream.flush(), Phase::Request)?;
        }
        Ok(true)
    }

    /// Returns the answer once all of it is here.
    fn receive(&mut self, stream: &mut tls::Stream, buffer: &mut [u8]) -> Result<Option<Answer>, FetchError> {
        loop {
            let read = match stream.read(buffer) {
                Ok(read) => read,
                Err(error) => {
                    let went_on = gone_on(Err(error), self.answer.phase());
                    return went_on.map(|_| None).map_err(|error| error.after(self.answer.came()));
                }
            };
            if let Some(answer) = self.answer.take(&buffer[..read])? {
                return Ok(Some(answer));
            }
        }
    }
}

/// Whether it went on; false when the socket would have waited.
fn gone_on(outcome: io::Result<()>, phase: Phase) -> Result<bool, FetchError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(false)
        }
        Err(error) => Err(FetchError::of(error, phase)),
    }
}

#[cfg(test)]
mod tests;
