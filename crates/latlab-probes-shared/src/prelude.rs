//! What nearly every probe says itself with: `use latlab_probes_shared::prelude::*`.

pub use latlab_harness::{
    Batch, Block, CacheScope, Env, Figure, Nothing, Operations, Plan, Planned, PointFields, PointResult,
    Probe, ProbeError, Proof, Rank, Rounds, Sampled, Session, Spec, Stamps, Support, Tier, ratio, ratios,
};
pub use latlab_record::{Check, Estimate, Header, Pages, Profile, Unit, binary_size};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};

pub use crate::{Compared, Result, USUAL, kept, known, median, other_cpus, rank, refused, result_at};
