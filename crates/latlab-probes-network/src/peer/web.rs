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

/// Starting makes a certificate; an answer on the pipe takes less than a time slice or two.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
enum Request {
    Serve { place: Place, bind: Option<SocketAddr>, answers_after: Duration },
    Served,
}

/// Where it listens, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    /// Its certificate (DER), which its client trusts.
    pub(crate) certificate: Vec<u8>,
    /// How its connections get faster: `cubic`, `bbr`; none where the system does not say.
    pub(crate) congestion_control: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Reported {
    Listening(Listening),
    Served(Served),
}

/// A server at the far end of a route, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct WebServer {
    pub(crate) side: Side,
    pub(crate) listening: Listening,
}

impl WebServer {
    /// Starts it with one thread, on the server's CPU.
    pub(crate) fn start(env: &Env, route: &Route) -> Result<Self, ProbeError> {
        let mut side = Side::start(env, "network.web")?;
        let request = Request::Serve {
            place: route.server(vec![Seats::of(env).server]),
            bind: route.bind(),
            answers_after: route.answers_after(),
        };
        Ok(Self { listening: side.ask(&request, PATIENCE)?, side })
    }

    /// What it has done so far.
    pub(crate) fn served(&mut self) -> Result<Served, ProbeError> {
        self.side.ask(&Request::Served, PATIENCE)
    }
}

/// The server's process.
pub(crate) fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut server: Option<Server> = None;
    serve_child(input, output, move |request| match request {
        Request::Serve { place, bind, answers_after } => {
            place.take()?;
            let started = Server::start(&Settings {
                bind,
                secret: None,
                enclosed: place.end.is_some(),
                threads: 1,
                answers_after,
            })
            .map_err(|error| failed(&error))?;
            let listening = started.listening();
            let reported = Reported::Listening(Listening {
                address: listening.address,
                certificate: listening.certificate.clone(),
                congestion_control: listening.congestion_control.clone(),
            });
            server = Some(started);
            Ok(reported)
        }
        Request::Served => match &server {
            Some(server) => Ok(Reported::Served(server.served())),
            None => Err(ProbeError::Other("there is no server yet".to_owned())),
        },
    })
}
