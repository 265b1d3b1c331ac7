//! The long tail: how heavy it is, from where on, and which families of distributions it can be told from.
//!
//! ```text
//! groups of samples, or buckets ─► Exceedances ─► hill ─► tail_index (only where it holds over a decade)
//!                                              ─► shape (generalised Pareto), mean_excess
//! buckets ─► Bins (whole clock steps) ─► families (normal ... mixtures, compared)
//! ```
//!
//! An index that is fitted to a tail of several causes is a number without a meaning: it changes with the threshold.
//! So everything here is a curve over thresholds, and the one number is refused where the curve does not stand still.

mod exceedances;
mod families;
mod hill;
mod shape;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use exceedances::{Exceedances, LEAST_BEYOND};
pub use families::{Bins, Comparison, Family, Fit, families};
pub use hill::{HillPoint, IndexRefusal, TailIndex, hill, tail_index};
pub use shape::{ExcessPoint, ShapePoint, mean_excess, shape};

/// All that is said of a tail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// Hill's plot, furthest out first.
    pub hill: Vec<HillPoint>,
    /// Shape of the generalised Pareto distribution over thresholds.
    pub shape: Vec<ShapePoint>,
    /// Mean excess over thresholds.
    pub mean_excess: Vec<ExcessPoint>,
    /// The tail index, where it holds.
    pub index: Option<TailIndex>,
    /// Why there is none.
    pub why_no_index: Option<String>,
}

/// Everything above at once.
#[must_use]
pub fn tail(of: &Exceedances) -> Tail {
    let index = tail_index(of);
    Tail {
        hill: hill(of),
        shape: shape(of),
        mean_excess: mean_excess(of),
        why_no_index: index.as_ref().err().map(ToString::to_string),
        index: index.ok(),
    }
}
