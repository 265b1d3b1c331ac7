//! What operations that come at a fixed rate show together.

use latlab_harness::Flight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// How operations came and were done at one rate. The numbers stay as they were written: a conclusion only
/// hands them on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offered {
    /// Operations that were due in a second.
    #[schemars(with = "Option<f64>")]
    pub offered_per_s: Option<Number>,
    /// Operations that ended in a second.
    #[schemars(with = "Option<f64>")]
    pub achieved_per_s: Option<Number>,
    /// Operations that found as many under way as there may be, and waited.
    #[schemars(with = "Option<u64>")]
    pub held_back: Option<Number>,
    /// Median from the submission to the end, ns.
    #[schemars(with = "Option<f64>")]
    pub service_p50_ns: Option<Number>,
}

impl Offered {
    /// What all blocks of a point came to.
    pub fn of(flight: &Flight) -> Self {
        Self {
            offered_per_s: Number::from_f64(flight.offered_per_s()),
            achieved_per_s: Number::from_f64(flight.rate_per_s()),
            held_back: Some(flight.held_back.into()),
            service_p50_ns: Number::from_f64(median_service(flight)),
        }
    }
}

/// The median time from submission to end, ns; 0 without any.
pub fn median_service(flight: &Flight) -> f64 {
    match flight.service.total() {
        0 => 0.0,
        _ => latlab_stats::weighted::quantile_counts(&flight.service.occupied(), 0.5),
    }
}

/// One rate of a curve.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AtRate {
    /// Operations a second.
    pub rate_per_s: u64,
    /// Median from when an operation was due to its end, ns.
    pub p50_ns: f64,
    /// What came of it.
    #[serde(flatten)]
    pub offered: Offered,
}
