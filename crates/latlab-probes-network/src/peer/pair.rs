//! A client and its server at the two ends of a route.

use std::time::Duration;

use super::client::WebClient;
use super::names::PathKind;
use super::route::Route;
use super::side::check;
use super::web::WebServer;
use latlab_probes_shared::prelude::*;

/// The server's thread is told of a connection by the kernel, and may have to wait for its CPU.
const CATCHES_UP: Duration = Duration::from_millis(20);
const TRIES: u32 = 50;

/// Both, and the way between them.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Before the server and the route: it is ended first.
    pub(crate) client: WebClient,
    /// None where it is the user's.
    pub(crate) server: Option<WebServer>,
    pub(crate) route: Route,
    /// Connections that the client had.
    pub(crate) connections: u64,
    /// Requests that it had answered.
    pub(crate) requests: u64,
}

impl Pair {
    fn start(env: &Env, path: PathKind) -> Result<Self, ProbeError> {
        let route = Route::of(env, path)?;
        let server = if path == PathKind::Url { None } else { Some(WebServer::start(env, &route)?) };
        let client = WebClient::start(env, &route, server.as_ref())?;
        Ok(Self { client, server, route, connections: 0, requests: 0 })
    }

    /// Nothing may come sooner than packets take over an emulated path: that would be a way around it.
    pub(crate) fn as_long_as_the_path(&self, least_ns: u64) -> Option<Check> {
        let asked_ns = self.route.details.asked_ns().filter(|_| self.route.delays_packets())?;
        Some(check(
            "as long as the path",
            least_ns >= asked_ns,
            format!("the soonest took {least_ns} ns, the path {asked_ns} ns"),
        ))
    }

    /// The server counted what the client did: no connection and no answer came from elsewhere, and none is
    /// missing. The user's server counts for itself.
    pub(crate) fn counted(&mut self) -> Option<Check> {
        let counting = self.server.as_mut()?;
        let own = (self.connections, self.requests);
        let mut tries = 0;
        let (ok, detail) = loop {
            tries += 1;
            match counting.served() {
                Ok(served) if (served.connections, served.requests) == own => {
                    break (true, format!("{} connections, {} requests on both sides", own.0, own.1));
                }
                Ok(served) if tries == TRIES => {
                    let detail = format!(
                        "the client had {} connections and {} answers, the server {} and {}",
                        own.0, own.1, served.connections, served.requests
                    );
                    break (false, detail);
                }
                Ok(_) => std::thread::sleep(CATCHES_UP),
                Err(error) => break (false, error.to_string()),
            }
        };
        Some(check("counted by the server", ok, detail))
    }
}

/// The pairs of a session, each started when it is asked for first.
pub(crate) struct Pairs<'env> {
    env: &'env Env,
    started: Vec<(PathKind, Pair)>,
}

impl<'env> Pairs<'env> {
    pub(crate) fn new(env: &'env Env) -> Self {
        Self { env, started: Vec::new() }
    }

    pub(crate) fn on(&mut self, path: PathKind) -> Result<&mut Pair, ProbeError> {
        kept(&mut self.started, path, || Pair::start(self.env, path))
    }

    /// After an error nothing of it is used again: what it holds may be half done.
    pub(crate) fn give_up(&mut self, path: PathKind) {
        self.started.retain(|(own, _)| *own != path);
    }
}
