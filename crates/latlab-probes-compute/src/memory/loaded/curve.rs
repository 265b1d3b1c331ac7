//! Latency over load, from the points.

use latlab_harness::{PointResult, Rounds};
use serde_json::{Value, json};

/// The knee is where latency crosses so many times the idle latency.
const KNEE: f64 = 1.5;
/// A knee says something only between points enough to see a curve.
const LEAST_POINTS: usize = 3;

#[derive(Clone, Copy, Debug)]
struct At<'a> {
    result: &'a PointResult,
    load: f64,
    latency_ns: f64,
}

/// Number of load threads, and share of their reading.
type Key = (u32, u32);

/// One curve for each mix and number of load threads.
pub(super) fn curves(results: &[PointResult]) -> Vec<Value> {
    let idle_ns = idle(results).map(|result| result.p50);
    let mut keys: Vec<Key> = results
        .iter()
        .filter_map(|result| Some((result.point.threads?, result.point.read_percent?)))
        .collect();
    // Most threads and most reading first.
    keys.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
    keys.dedup();
    let rounds = Rounds::of(results);
    let [loads, latencies] = [|(load, _)| load, |(_, latency)| latency].map(|part: fn((f64, f64)) -> f64| {
        rounds.estimates(&keys, |key, results| bend(results, *key).map(part))
    });
    keys.iter()
        .zip(loads.into_iter().zip(latencies))
        .map(|(key, (load, latency))| {
            let points = of(results, *key);
            let saturated = points.iter().find(|at| at.result.point.delay_steps == Some(0));
            let knee = load.zip(latency);
            let (threads, percent) = *key;
            json!({
                "read_percent": percent,
                "threads": threads,
                "points": points.iter().map(|at| json!({
                    "delay_steps": at.result.point.delay_steps,
                    "load_bytes_per_s": at.result.estimate("load_bytes_per_s"),
                    "latency_ns": at.latency_ns,
                    "p99_ns": at.result.number("p99_ns"),
                    "disturbed": at.result.disturbed,
                })).collect::<Vec<_>>(),
                "idle_ns": idle_ns,
                "saturated_ns": saturated.map(|at| at.latency_ns),
                "peak_bytes_per_s": points.last().and_then(|at| at.result.estimate("load_bytes_per_s")),
                "knee": knee.map(|(load, latency)| json!({
                    "load_bytes_per_s": load,
                    "latency_ns": latency,
                })),
                "note": note(idle_ns, &pairs(&points), knee.is_some(), is_busy(results, &points), threads),
            })
        })
        .collect()
}

fn idle(results: &[PointResult]) -> Option<&PointResult> {
    results.iter().find(|result| result.point.threads == Some(0))
}

/// The points of a curve by their load.
fn of(results: &[PointResult], (threads, percent): Key) -> Vec<At<'_>> {
    let mut points: Vec<At> = results
        .iter()
        .filter(|result| (result.point.threads, result.point.read_percent) == (Some(threads), Some(percent)))
        .filter_map(|result| {
            Some(At { result, load: result.number("load_bytes_per_s")?, latency_ns: result.p50 })
        })
        .collect();
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    points
}

/// Whether too few blocks were left in which everybody kept their CPU.
fn is_busy(results: &[PointResult], points: &[At]) -> bool {
    idle(results).is_some_and(|idle| idle.disturbed) || points.iter().any(|at| at.result.disturbed)
}

fn pairs(points: &[At]) -> Vec<(f64, f64)> {
    points.iter().map(|at| (at.load, at.latency_ns)).collect()
}

fn bend(results: &[PointResult], key: Key) -> Option<(f64, f64)> {
    let points = of(results, key);
    let idle = idle(results).filter(|_| !is_busy(results, &points))?;
    knee(idle.p50, &pairs(&points))
}

/// Load and latency at which the latency crosses the threshold for good: between the last point below it and the next one. The idle point
/// is the curve's beginning.
fn knee(idle_ns: f64, points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let threshold = KNEE * idle_ns;
    let above = points.iter().rev().take_while(|(_, ns)| *ns >= threshold).count();
    let next = points.get(points.len() - above)?;
    let before = (points.len() - above).checked_sub(1);
    let (load, latency_ns) = before.map_or((0.0, idle_ns), |last| points[last]);
    let share = (threshold - latency_ns) / (next.1 - latency_ns);
    Some((load + share * (next.0 - load), threshold))
}

fn note(
    idle_ns: Option<f64>,
    points: &[(f64, f64)],
    has_knee: bool,
    busy: bool,
    threads: u32,
) -> Option<String> {
    let own = if threads == 1 { "1 load thread".to_owned() } else { format!("{threads} load threads") };
    match idle_ns {
        None => Some("the idle point is missing, so there is no knee".to_owned()),
        Some(_) if has_knee => None,
        Some(_) if busy => Some(
            "no knee is looked for: others used the CPUs, and points that lost theirs are marked as disturbed".to_owned(),
        ),
        Some(_) if points.len() < LEAST_POINTS => Some("too few loads for a knee".to_owned()),
        Some(idle_ns) => {
            let most = points.iter().map(|(_, ns)| *ns).fold(idle_ns, f64::max);
            Some(format!(
                "no knee: latency rose to {:.2} times idle at most and did not stay above {KNEE}; {own} of this machine do not saturate its memory",
                most / idle_ns
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_lies_where_latency_crosses_half_as_much_again() {
        let points = [(10.0, 100.0), (20.0, 110.0), (30.0, 190.0), (32.0, 400.0)];
        let (load, latency) = knee(100.0, &points).expect("it crosses 150");
        assert!((load - 25.0).abs() < 1e-9 && (latency - 150.0).abs() < 1e-9, "{load}");
    }

    #[test]
    fn a_flat_curve_has_no_knee_and_says_why() {
        let points = [(10.0, 100.0), (20.0, 104.0), (30.0, 112.0)];
        assert!(knee(100.0, &points).is_none());
        let note = note(Some(100.0), &points, false, false, 3).expect("a reason");
        assert!(note.contains("1.12") && note.contains("3 load threads"), "{note}");
    }

    #[test]
    fn disturbed_points_are_shown_and_make_no_knee() {
        let result = |threads, delay_steps, p50: f64, load: f64, disturbed| PointResult {
            disturbed,
            findings: Some(json!({ "load_bytes_per_s": load })),
            ..PointResult::new(
                latlab_record::Point {
                    threads: Some(threads),
                    read_percent: (threads > 0).then_some(100),
                    delay_steps,
                    ..latlab_record::Point::default()
                },
                p50,
            )
        };
        let found = |disturbed| {
            curves(&[
                result(0, None, 100.0, 0.0, false),
                result(3, Some(800), 110.0, 10.0, false),
                result(3, Some(200), 140.0, 20.0, disturbed),
                result(3, Some(0), 300.0, 30.0, false),
            ])
        };
        assert!(found(false)[0]["knee"].is_object());
        let busy = &found(true)[0];
        assert!(busy["knee"].is_null() && busy["points"][1]["disturbed"] == true);
        assert!(busy["note"].as_str().expect("a reason").contains("others used the CPUs"));
    }

    #[test]
    fn one_slow_point_in_the_middle_is_no_knee() {
        let points = [(10.0, 100.0), (20.0, 160.0), (30.0, 112.0)];
        assert!(knee(100.0, &points).is_none());
    }

    #[test]
    fn a_curve_that_is_above_from_its_first_point_crosses_between_idle_and_that() {
        let points = [(10.0, 200.0), (20.0, 210.0), (30.0, 300.0)];
        let (load, _) = knee(100.0, &points).expect("it crosses");
        assert!((load - 5.0).abs() < 1e-9, "{load}");
    }
}
