//! What a set of latency samples says, and what it does not say.
//!
//! ```text
//! single samples    ─► quantile, moments, order_statistic_interval
//! histogram buckets ─► weighted
//! rounds of a run   ─► fold_rounds (figure, interval, what rounds and CPUs differ by)
//! runs of two sides ─► contrast_groups (ratio, error)
//! groups of values  ─► anova (whether their means differ)
//! bandwidth in time ─► changes (levels, trend)
//! latency by size   ─► levels (plateaus, brackets, where to measure next, TLB reach)
//! histogram buckets ─► modes (groups of operations)
//! ```
//!
//! Pure functions: no I/O, no clock, no global state; what is random takes a seed. Where no interval can be
//! stood for there is none, but a [`Refusal`] with a printable reason.

mod affine;
mod anova;
mod changes;
pub mod count;
pub mod levels;
pub mod modes;
mod moments;
mod order;
mod quantile;
mod refusal;
pub mod rng;
mod rounds;
mod seek;
mod special;
pub mod weighted;

pub use affine::{Affine, affine};
pub use anova::anova;
pub use changes::{Changes, Level, changes, rise};
pub use moments::{Moments, mean, moments};
pub use order::{min_samples, order_statistic_interval};
pub use quantile::{median, median_of, quantile};
pub use refusal::Refusal;
pub use rounds::{Contrast, Folded, centre, contrast_groups, fold_rounds};
pub use seek::{Medium, Seeking, seeking};
pub use special::{digamma, t_quantile, t_tail, trigamma_inverse};
