//! A process at the far end of a route, and sockets that are connected to it from whichever namespace the
//! route begins in.

use std::io::{BufRead, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use latlab_harness::{Env, ProbeError, serve_child};
use latlab_net::sockets::{Address, Hatch, Transport, connect, hand_over, handed_down};
use latlab_net::{NetError, Serving};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::failed;
use crate::peer::{Place, Route, Side};

/// A process of ours that has not answered for so long hangs, however short a socket is waited for.
const ANSWERS: Duration = Duration::from_secs(4);

/// What such a process runs, one at a time.
pub(crate) trait Runs: Serialize + DeserializeOwned {
    /// What it says at its end.
    type Reported: Serialize + DeserializeOwned + Send + 'static;
    /// The name of the process's program.
    const PROGRAM: &'static str;

    fn start(self, ip: IpAddr) -> Result<Serving<Self::Reported>, NetError>;
}

#[derive(Serialize, Deserialize)]
enum Request<A> {
    /// Run this, in place of what there was.
    Run { place: Place, ip: IpAddr, asked: A },
    /// End it, and say what it tells.
    End,
}

#[derive(Serialize, Deserialize)]
enum Answer<T> {
    Listening(Address),
    Ended(Option<T>),
}

/// The process, until its input ends.
pub(crate) fn run<A: Runs>(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut own: Option<Serving<A::Reported>> = None;
    let mut there = false;
    serve_child(input, output, move |request: Request<A>| match request {
        Request::Run { place, ip, asked } => {
            own = None;
            place.take_once(&mut there)?;
            let started = own.insert(asked.start(ip).map_err(failed)?);
            Ok(Answer::Listening(started.address().clone()))
        }
        Request::End => own.take().map(Serving::end).transpose().map(Answer::Ended).map_err(failed),
    })
}

/// The name of the program that connects.
const CONNECTS: &str = "network.sockets";

#[derive(Serialize, Deserialize)]
struct Connect {
    place: Place,
    hatch: RawFd,
    address: Address,
    transport: Transport,
    patience: Duration,
}

/// The process that connects at the near end of a path, until its input ends.
pub(crate) fn serve_sockets(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut there = false;
    serve_child(input, output, move |asked: Connect| {
        asked.place.take_once(&mut there)?;
        hand_over(asked.hatch, &asked.address, asked.transport, asked.patience).map_err(failed)
    })
}

/// The process, started when it is asked first and ended when this is dropped, and what connects to it.
pub(crate) struct Far<'env, A> {
    env: &'env Env,
    side: Option<Side>,
    place: Place,
    /// Connects at the near end of an emulated path; elsewhere this process does so itself.
    near: Option<(Side, Hatch, Place)>,
    patience: Duration,
    /// The address that answered first, or that of the path's far end.
    ip: Option<IpAddr>,
    runs: PhantomData<A>,
}

impl<'env, A: Runs> Far<'env, A> {
    /// No socket will be waited for any longer than `patience`.
    pub(crate) fn over(env: &'env Env, route: &Route, patience: Duration) -> Result<Self, ProbeError> {
        let near = if route.delays_packets() {
            let hatch = Hatch::new().map_err(failed)?;
            let side = handed_down(hatch.theirs(), || Side::start(env, CONNECTS)).map_err(failed)??;
            Some((side, hatch, route.client(Vec::new())))
        } else {
            None
        };
        Ok(Self {
            env,
            side: None,
            place: route.server(Vec::new()),
            near,
            patience,
            ip: route.bind().map(|address| address.ip()),
            runs: PhantomData,
        })
    }

    /// The process's id, while there is one.
    pub(crate) fn id(&self) -> Option<u32> {
        self.side.as_ref().map(Side::id)
    }

    /// Starts the process where there is none; it gets this descriptor too.
    pub(crate) fn start(&mut self, inherits: Option<BorrowedFd<'_>>) -> Result<(), ProbeError> {
        if self.side.is_none() {
            let start = || Side::start(self.env, A::PROGRAM);
            self.side = Some(match inherits {
                Some(descriptor) => handed_down(descriptor, start).map_err(failed)??,
                None => start()?,
            });
        }
        Ok(())
    }

    /// Has the process run what is asked, in place of what there was, and connects to it so often. Takes the
    /// loopback's address of IPv4, or else of IPv6, where the route has none of its own.
    pub(crate) fn open(
        &mut self,
        transport: Transport,
        count: usize,
        inherits: Option<BorrowedFd<'_>>,
        asked: &A,
    ) -> Result<(Address, Vec<OwnedFd>), ProbeError> {
        let v4 = Ipv4Addr::LOCALHOST.into();
        // A Unix socket has no such address.
        let any = (transport == Transport::Unix).then_some(v4);
        let at = |far: &mut Self, ip| {
            far.start(inherits)?;
            let request = Request::Run { place: far.place.clone(), ip, asked };
            let Answer::Listening(address) = far.ask(&request)? else {
                return Err(ProbeError::Other(format!("the process of {} does not listen", A::PROGRAM)));
            };
            let sockets: Result<_, _> = (0..count).map(|_| far.connect(&address, transport)).collect();
            Ok((address, sockets?))
        };
        if let Some(ip) = self.ip.or(any) {
            return at(self, ip);
        }
        let (ip, opened) = match at(self, v4) {
            Ok(opened) => (v4, opened),
            // No address is to blame for a process that has ended.
            Err(refused) if self.side.is_none() => return Err(refused),
            Err(refused) => {
                let v6 = Ipv6Addr::LOCALHOST.into();
                let opened = at(self, v6).map_err(|also| {
                    ProbeError::Other(format!("no loopback address answers: {refused}; {also}"))
                })?;
                (v6, opened)
            }
        };
        self.ip = Some(ip);
        Ok(opened)
    }

    fn connect(&mut self, address: &Address, transport: Transport) -> Result<OwnedFd, ProbeError> {
        let Some((side, hatch, place)) = &mut self.near else {
            return connect(address, transport, self.patience).map_err(failed);
        };
        let asked = Connect {
            place: place.clone(),
            hatch: hatch.number(),
            address: address.clone(),
            transport,
            patience: self.patience,
        };
        let () = side.ask(&asked, 2 * self.patience)?;
        hatch.take().map_err(failed)
    }

    /// Ends what runs; what it tells.
    pub(crate) fn end(&mut self) -> Result<A::Reported, ProbeError> {
        match self.ask(&Request::End)? {
            Answer::Ended(Some(reported)) => Ok(reported),
            _ => Err(gone::<A>()),
        }
    }

    /// Nothing of the process is used again.
    pub(crate) fn give_up(&mut self) {
        self.side = None;
    }

    fn ask(&mut self, request: &Request<&A>) -> Result<Answer<A::Reported>, ProbeError> {
        let mut side = self.side.take().ok_or_else(gone::<A>)?;
        let reported = side.ask(request, self.patience.max(ANSWERS));
        // One that could not do what it was asked can be asked for something else.
        self.side = (!side.is_gone()).then_some(side);
        reported
    }
}

fn gone<A: Runs>() -> ProbeError {
    ProbeError::Other(format!("the process of {} had ended", A::PROGRAM))
}
