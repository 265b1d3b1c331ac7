//! The way between client and server.

use std::io::{BufRead, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use latlab_harness::{Env, ProbeError, answer_parent};
use latlab_net::PathSpec;
use latlab_net::delay::{Entry, Established, SERVER};
use serde::{Deserialize, Serialize};

use super::asked::{Seats, path_asked};
use super::names::{PathKind, RouteDetails};
use super::side::{Place, Side, failed};
use latlab_probes_shared::linux::run_on;

/// A path that is tried twice, by netem and by the line, is looked at for a fifth of a second each.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the keeper is asked.
#[derive(Serialize, Deserialize)]
struct Keep {
    spec: PathSpec,
    cpus: Vec<u32>,
}

/// The way from a client to its server, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Route {
    /// For a record's details, as `route`.
    pub(crate) details: RouteDetails,
    /// The client's and the server's end of a path that delays packets.
    ends: Option<[Entry; 2]>,
    /// Its end is the path's.
    _keeper: Option<Side>,
}

impl Route {
    /// This machine's loopback.
    pub(crate) fn loopback() -> Self {
        Self::real(PathKind::Loopback)
    }

    fn real(path: PathKind) -> Self {
        Self { details: RouteDetails::Real { kind: path.to_string() }, ends: None, _keeper: None }
    }

    /// What a point's `path` names.
    pub(crate) fn of(env: &Env, path: PathKind) -> Result<Self, ProbeError> {
        if path != PathKind::Emulated {
            return Ok(Self::real(path));
        }
        let asked = path_asked(&env.settings).map_err(ProbeError::Other)?;
        let spec = asked.ok_or_else(|| ProbeError::Other("the settings ask for no path".to_owned()))?;
        Ok(Self::emulated(env, &spec))
    }

    /// A path like this; where none can be had, a server that waits instead, and why.
    pub(crate) fn emulated(env: &Env, spec: &PathSpec) -> Self {
        let kept = Side::start(env, "network.path").and_then(|mut keeper| {
            let request = Keep { spec: *spec, cpus: Seats::of(env).path };
            let patience = PATIENCE + 10 * Duration::from_micros(spec.rtt_us);
            let established: Established = keeper.ask(&request, patience)?;
            Ok((keeper, established))
        });
        let rtt_ns = spec.rtt_us * 1000;
        match kept {
            Ok((keeper, path)) => Self {
                details: RouteDetails::Emulated {
                    kind: path.kind.name().to_owned(),
                    rtt_ns,
                    least_rtt_ns: path.least_rtt_ns,
                    rate_bit_per_s: spec.rate_bit_per_s,
                    why_not_better: path.why_not_better,
                },
                ends: Some([path.client, path.server]),
                _keeper: Some(keeper),
            },
            Err(error) => Self {
                details: RouteDetails::Application {
                    kind: "application".to_owned(),
                    rtt_ns,
                    valid_for: "time to first byte only".to_owned(),
                    why_not_better: vec![error.to_string()],
                },
                ends: None,
                _keeper: None,
            },
        }
    }

    /// Whether packets take the time of the path: then round trips of the handshake and of slow start do too.
    pub(crate) fn delays_packets(&self) -> bool {
        self.ends.is_some()
    }

    /// Where the client goes.
    pub(crate) fn client(&self, cpus: Vec<u32>) -> Place {
        Place { end: self.ends.map(|[client, _]| client), cpus }
    }

    /// Where the server goes.
    pub(crate) fn server(&self, cpus: Vec<u32>) -> Place {
        Place { end: self.ends.map(|[_, server]| server), cpus }
    }

    /// Where a server listens; none leaves the choice between the loopback's addresses to the server.
    pub(crate) fn bind(&self) -> Option<SocketAddr> {
        self.ends.map(|_| SocketAddr::new(IpAddr::V4(SERVER), 0))
    }

    /// How long a server waits before each answer, in place of a path.
    pub(crate) fn answers_after(&self) -> Duration {
        match self.details {
            RouteDetails::Application { rtt_ns, .. } => Duration::from_nanos(rtt_ns),
            RouteDetails::Real { .. } | RouteDetails::Emulated { .. } => Duration::ZERO,
        }
    }
}

/// The keeper's process: a path, until its input ends.
pub(crate) fn keep(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let asked = match serde_json::from_str::<Keep>(&line) {
        Ok(asked) => asked,
        Err(error) => return answer_parent::<()>(output, Err(failed(&error))),
    };
    // Beside a client or a server it delays more than it should, and says so by what it measures.
    let _ = run_on(&asked.cpus);
    let stop = std::io::stdin();
    let kept =
        latlab_net::delay::keep(&asked.spec, stop.as_fd(), &mut |path| answer_parent(output, Ok(path)));
    match kept {
        Ok(()) => Ok(()),
        Err(error) => answer_parent::<()>(output, Err(failed(&error))),
    }
}
