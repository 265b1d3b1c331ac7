//! What operations that come at a fixed rate show together.

use latlab_harness::PointResult;
use serde_json::{Value, json};

/// One row a rate, ascending: counted from when it was due and from when it was sent, and how many came and were done.
#[must_use]
pub fn curve(results: &[PointResult]) -> Vec<Value> {
    let mut ascending: Vec<&PointResult> = results.iter().collect();
    ascending.sort_by_key(|result| result.point.rate_per_s);
    ascending
        .into_iter()
        .map(|result| {
            let own = |name: &str| {
                let findings = result.findings.as_ref()?;
                findings.get(name).filter(|value| value.is_number()).cloned()
            };
            json!({
                "rate_per_s": result.point.rate_per_s,
                "p50_ns": result.p50,
                "service_p50_ns": own("service_p50_ns"),
                "offered_per_s": own("offered_per_s"),
                "achieved_per_s": own("achieved_per_s"),
                "held_back": own("held_back"),
            })
        })
        .collect()
}
