//! The way between client and server.

use std::io::{BufRead, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use latlab_harness::{Env, ProbeError, answer_parent};
use latlab_net::PathSpec;
use latlab_net::delay::{Established, Kind, Path, SERVER};
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
    path: Path,
    /// To the server that the user names.
    named: bool,
    /// Its end is the path's.
    _keeper: Option<Side>,
}

impl Route {
    /// This machine's loopback.
    pub(crate) fn loopback() -> Self {
        Self { path: Path::Real, named: false, _keeper: None }
    }

    /// What a point's `path` names.
    ///
    /// # Errors
    /// When the settings ask for no path.
    pub(crate) fn of(env: &Env, path: PathKind) -> Result<Self, ProbeError> {
        match path {
            PathKind::Loopback => Ok(Self::loopback()),
            PathKind::Url => Ok(Self { named: true, ..Self::loopback() }),
            PathKind::Emulated => match path_asked(&env.settings).map_err(ProbeError::Other)? {
                Some(spec) => Ok(Self::emulated(env, &spec)),
                None => Err(ProbeError::Other("the settings ask for no path".to_owned())),
            },
        }
    }

    /// A path like this; where none can be had, a server that waits instead, and why.
    pub(crate) fn emulated(env: &Env, spec: &PathSpec) -> Self {
        let kept = Side::start(env, "network.path").and_then(|mut keeper| {
            let request = Keep { spec: *spec, cpus: Seats::of(env).path };
            let patience = PATIENCE + 10 * Duration::from_micros(spec.rtt_us);
            let established: Established = keeper.ask(&request, patience)?;
            Ok((keeper, established))
        });
        match kept {
            Ok((keeper, established)) => {
                Self { path: Path::Emulated(*spec, established), named: false, _keeper: Some(keeper) }
            }
            Err(error) => Self {
                path: Path::Application { rtt_us: spec.rtt_us, why_not_better: error.to_string() },
                named: false,
                _keeper: None,
            },
        }
    }

    /// What must stand beside every figure: the flag of a record.
    pub(crate) fn label(&self) -> Option<String> {
        self.path.label()
    }

    /// Whether packets take the time of the path: then round trips of the handshake and of slow start do too.
    pub(crate) fn delays_packets(&self) -> bool {
        matches!(self.path, Path::Emulated(..))
    }

    /// The shortest round trip that was measured over an emulated path, ns.
    pub(crate) fn least_rtt_ns(&self) -> Option<u64> {
        match &self.path {
            Path::Emulated(_, established) => Some(established.least_rtt_ns),
            Path::Real | Path::Application { .. } => None,
        }
    }

    /// Where the client goes.
    pub(crate) fn client(&self, cpus: Vec<u32>) -> Place {
        Place {
            end: match &self.path {
                Path::Emulated(_, established) => Some(established.client),
                Path::Real | Path::Application { .. } => None,
            },
            cpus,
        }
    }

    /// Where the server goes.
    pub(crate) fn server(&self, cpus: Vec<u32>) -> Place {
        Place {
            end: match &self.path {
                Path::Emulated(_, established) => Some(established.server),
                Path::Real | Path::Application { .. } => None,
            },
            cpus,
        }
    }

    /// Where a server listens; none leaves the choice between the loopback's addresses to the server.
    pub(crate) fn bind(&self) -> Option<SocketAddr> {
        match self.path {
            Path::Emulated(..) => Some(SocketAddr::new(IpAddr::V4(SERVER), 0)),
            Path::Real | Path::Application { .. } => None,
        }
    }

    /// How long a server waits before each answer, in place of a path.
    pub(crate) fn answers_after(&self) -> Duration {
        match self.path {
            Path::Application { rtt_us, .. } => Duration::from_micros(rtt_us),
            Path::Real | Path::Emulated(..) => Duration::ZERO,
        }
    }

    /// For a record's details, as `route`: kind, what was asked for, what was measured, why nothing better delays.
    pub(crate) fn details(&self) -> RouteDetails {
        match &self.path {
            Path::Real => {
                let kind = if self.named { PathKind::Url } else { PathKind::Loopback };
                RouteDetails::Real { kind: kind.to_string() }
            }
            Path::Emulated(spec, path) => RouteDetails::Emulated {
                kind: match path.kind {
                    Kind::Netem => "netem",
                    Kind::DelayLine => "delay-line",
                }
                .to_owned(),
                rtt_ns: spec.rtt_us * 1000,
                least_rtt_ns: path.least_rtt_ns,
                rate_bit_per_s: spec.rate_bit_per_s,
                why_not_better: path.why_not_better.clone(),
            },
            Path::Application { rtt_us, why_not_better } => RouteDetails::Application {
                kind: "application".to_owned(),
                rtt_ns: rtt_us * 1000,
                valid_for: "time to first byte only".to_owned(),
                why_not_better: vec![why_not_better.clone()],
            },
        }
    }
}

/// The keeper's process: a path, until its input ends.
///
/// # Errors
/// When a pipe fails: the parent is gone.
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
