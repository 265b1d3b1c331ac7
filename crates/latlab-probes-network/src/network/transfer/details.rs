//! What is kept with a point: times of its transfers, who served them, and which libraries there were.

use std::collections::BTreeMap;

use latlab_harness::Probe as _;
use latlab_probes_shared::prelude::*;

use super::{Fetch, Transfer};
use crate::peer::{Engine, RouteDetails};

/// What was found at a point.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    pub(super) route: RouteDetails,
    /// Python's libraries, the same at every point of a run.
    #[serde(default)]
    pub(super) libraries: Vec<Library>,
    /// The soonest transfer, or set of ten by several workers.
    pub(super) least_ns: Option<u64>,
    #[serde(flatten)]
    pub(super) server: Server,
    #[serde(flatten)]
    pub(super) times: Times,
}

/// What is told of the server.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Server {
    /// Of the user's.
    Named {
        /// Transfers for which a kept connection was opened again.
        reopened: u64,
        /// Shortest and longest body.
        bodies_bytes: Option<[u64; 2]>,
    },
    /// Of our own.
    Own {
        /// How its connections get faster: `cubic`, `bbr`; none where the system does not say.
        congestion_control: Option<String>,
    },
}

/// What is told of the transfers.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Times {
    /// Of the experiment.
    Ten(Experiment),
    /// Of a sweep.
    Single(Singles),
}

/// Ten files by one worker and by several. `sequential_ns` is none where only the sets by several workers
/// were measured.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Experiment {
    pub(super) sequential_ns: Option<Estimate>,
    pub(super) pool_ns: Option<Estimate>,
    /// Sequential over pool, by block.
    pub(super) speed_up: Option<Estimate>,
    pub(super) sets: usize,
}

/// Single transfers.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Singles {
    /// Of all together, while all workers had work.
    pub(super) goodput_bytes_per_s: Option<Estimate>,
    /// Of one, from its first byte to its last.
    pub(super) throughput_bytes_per_s: Option<Estimate>,
    #[serde(default)]
    pub(super) transfers: u64,
    pub(super) p99_ns: Option<f64>,
    /// Medians, by phase: `resolve`, `connect`, `tls`, `request`, `first-byte`, `last-byte`.
    pub(super) phases_ns: Option<BTreeMap<String, Estimate>>,
    /// Median over blocks of the median transfer.
    pub(super) time_ns: Option<Estimate>,
    pub(super) until_first_byte_ns: Option<f64>,
    /// CPU time of the process over the time of the transfers.
    pub(super) client_cpu_share: Option<f64>,
    pub(super) server_cpu_share: Option<f64>,
    pub(super) little: Option<Little>,
}

/// Little's law: transfers under way = rate x time of one.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Little {
    /// How far the two are apart, of what was under way.
    pub(super) off: f64,
    pub(super) detail: String,
}

/// A library of Python's, as a run found it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Library {
    pub(super) engine: Engine,
    /// The reason.
    pub(super) not_measured: Option<String>,
    /// Its points over the path, each with the budget that reaches it, s.
    pub(super) far: Vec<(Fetch, f64)>,
}

impl Found {
    /// Whether packets take the time of the path: else nothing but the time to the first byte says anything
    /// about it.
    pub(super) fn is_real(&self) -> bool {
        !matches!(self.route, RouteDetails::Application { .. })
    }

    pub(super) fn singles(&self) -> Option<&Singles> {
        match &self.times {
            Times::Single(singles) => Some(singles),
            Times::Ten(_) => None,
        }
    }

    pub(super) fn sets(&self) -> Option<&Experiment> {
        match &self.times {
            Times::Ten(sets) => Some(sets),
            Times::Single(_) => None,
        }
    }

    pub(super) fn congestion_control(&self) -> Option<&str> {
        match &self.server {
            Server::Own { congestion_control } => congestion_control.as_deref(),
            Server::Named { .. } => None,
        }
    }
}

impl Library {
    /// Why its row over the path is missing where there could be one, with the budget that would do.
    pub(super) fn why_missing(&self, figures: &[Figure<Transfer>]) -> Option<String> {
        let missing =
            self.far.iter().filter(|(point, _)| figures.iter().all(|figure| figure.point != *point));
        let out_of_time = missing.map(|(_, budget_s)| *budget_s).reduce(f64::max).map(|budget_s| {
            format!(
                "skipped (time): some of its ten files over the path; use {} alone with --budget \
                    {budget_s:.0}s",
                Transfer::SPEC.id
            )
        });
        self.not_measured.clone().or(out_of_time)
    }
}
