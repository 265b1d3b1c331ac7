//! What a measurement leaves behind, and the file that it is kept in.
//!
//! ```text
//! samples ── Histogram (per operation) or raw values (batch means) ──► Record ──► Line ──► run file ──► fold ──► figures
//! ```
//!
//! This crate owns the schema: `schema/run.v2.json` is generated from the types here
//! ([`schema()`], and of findings what their probes say), and every other language reads runs through it.

mod estimate;
mod fold;
mod histogram;
mod kept;
mod line;
mod point;
mod record;

pub use estimate::{ByCpu, Estimate};
pub use fold::{FOLD_VERSION, fold};
pub use histogram::{EncodedHistogram, Histogram, HistogramError};
pub use kept::{keep_slowest, keep_values, significant, to_json};
pub use line::{
    Finding, Footer, Header, Line, Meanwhile, PlannedProbe, Profile, RunFile, SCHEMA_NAME, SCHEMA_VERSION,
    Settings, Severity, Tool, Totals, schema,
};
pub use point::{Order, Pages, Point, Timing, binary_size};
pub use record::{
    Absence, BlockSummary, CacheScope, Channel, Check, CpuFigure, Difference, Kind, Observed, Overhead, Rank,
    Record, RoundFigure, Spread, StoppedBy, Summary, TailCause, TailCauses, TailPart, TailSample, Unit, Work,
};
