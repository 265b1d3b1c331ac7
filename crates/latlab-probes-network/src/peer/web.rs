//! The server of HTTP in a process of its own.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::time::Duration;

use latlab_harness::{Env, ProbeError, serve_child};
use latlab_net::serve::{Served, Server, Settings};
use serde::{Deserialize, Serialize};

use super::asked::Seats;
use super::route::Route;
use super::side::{Place, Side, failed};
use latlab_probes_shared::linux::Task;

/// Starting makes a certificate; an answer on the pipe takes less than a time slice or two.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
enum Request {
    Serve { place: Place, bind: Option<SocketAddr>, answers_after_us: u64 },
    Served,
}

#[derive(Serialize, Deserialize)]
enum Told {
    Listening { address: SocketAddr, certificate: Vec<u8>, congestion_control: Option<String> },
    Served(Served),
}

/// A server at the far end of a route, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct WebServer {
    side: Side,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its certificate (DER), which its client trusts.
    pub(crate) certificate: Vec<u8>,
    /// How its connections get faster: `cubic`, `bbr`; none where the system does not say.
    pub(crate) congestion_control: Option<String>,
}

impl WebServer {
    /// Starts it with one thread, on the server's CPU.
    ///
    /// # Errors
    /// When no child can be started, or it can listen nowhere.
    pub(crate) fn start(env: &Env, route: &Route) -> Result<Self, ProbeError> {
        let mut side = Side::start(env, "network.web")?;
        let request = Request::Serve {
            place: route.server(vec![Seats::of(env).server]),
            bind: route.bind(),
            answers_after_us: u64::try_from(route.answers_after().as_micros()).unwrap_or(u64::MAX),
        };
        match side.ask(&request, PATIENCE)? {
            Told::Listening { address, certificate, congestion_control } => {
                Ok(Self { side, address, certificate, congestion_control })
            }
            Told::Served(_) => Err(ProbeError::Other("the server does not listen".to_owned())),
        }
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn served(&mut self) -> Result<Served, ProbeError> {
        match self.side.ask(&Request::Served, PATIENCE)? {
            Told::Served(served) => Ok(served),
            Told::Listening { .. } => Err(ProbeError::Other("the server does not count".to_owned())),
        }
    }

    /// The time that its threads have had a CPU, ns.
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        Task::Process(i32::try_from(self.side.id()).ok()?).cpu_ns()
    }
}

/// The server's process.
///
/// # Errors
/// When a pipe fails: the parent is gone.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut server: Option<Server> = None;
    serve_child(input, output, move |request| match request {
        Request::Serve { place, bind, answers_after_us } => {
            place.take()?;
            let started = Server::start(&Settings {
                bind,
                secret: None,
                enclosed: place.end.is_some(),
                threads: 1,
                answers_after: Duration::from_micros(answers_after_us),
            })
            .map_err(|error| failed(&error))?;
            let listening = started.listening();
            let told = Told::Listening {
                address: listening.address,
                certificate: listening.certificate.clone(),
                congestion_control: listening.congestion_control.clone(),
            };
            server = Some(started);
            Ok(told)
        }
        Request::Served => match &server {
            Some(server) => Ok(Told::Served(server.served())),
            None => Err(ProbeError::Other("there is no server yet".to_owned())),
        },
    })
}
