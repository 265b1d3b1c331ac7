//! Latency over load, from the points.

use super::Loaded;
use latlab_probes_shared::prelude::*;

/// The knee is where latency crosses so many times the idle latency.
const KNEE: f64 = 1.5;
/// A knee says something only between points enough to see a curve.
const LEAST_POINTS: usize = 3;

/// Latency over the load of so many threads of one mix.
#[derive(Serialize, JsonSchema)]
pub(super) struct Curve {
    read_percent: u32,
    threads: u32,
    /// By their load.
    points: Vec<CurvePoint>,
    idle_ns: Option<f64>,
    /// Without delay.
    saturated_ns: Option<f64>,
    peak_bytes_per_s: Option<Estimate>,
    knee: Option<Knee>,
    /// Why there is no knee.
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CurvePoint {
    delay_steps: Option<u32>,
    load_bytes_per_s: Estimate,
    latency_ns: f64,
    p99_ns: Option<f64>,
    disturbed: bool,
}

#[derive(Serialize, JsonSchema)]
struct Knee {
    load_bytes_per_s: Estimate,
    latency_ns: Estimate,
}

/// Number of load threads, and share of their reading.
type Key = (u32, u32);

/// One curve for each mix and number of load threads.
pub(super) fn curves(figures: &[Figure<Loaded>]) -> Vec<Curve> {
    let mut keys: Vec<Key> = figures
        .iter()
        .filter_map(|figure| Some((figure.point.threads, figure.point.read_percent?)))
        .collect();
    // Most threads and most reading first.
    keys.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
    keys.dedup();
    let rounds = Rounds::of(figures);
    let [loads, latencies] = [|(load, _)| load, |(_, latency)| latency].map(|part: fn((f64, f64)) -> f64| {
        rounds.estimates(&keys, |key, figures| bend(figures, *key).map(part))
    });
    let knees = loads
        .into_iter()
        .zip(latencies)
        .map(|(load, latency)| Some(Knee { load_bytes_per_s: load?, latency_ns: latency? }));
    keys.iter().zip(knees).map(|(key, knee)| curve(figures, *key, knee)).collect()
}

fn curve(figures: &[Figure<Loaded>], (threads, read_percent): Key, knee: Option<Knee>) -> Curve {
    let idle_ns = idle(figures).map(|figure| figure.result.p50);
    let points = of(figures, (threads, read_percent));
    let saturated = points.iter().find(|point| point.delay_steps == Some(0));
    Curve {
        read_percent,
        threads,
        idle_ns,
        saturated_ns: saturated.map(|point| point.latency_ns),
        peak_bytes_per_s: points.last().map(|point| point.load_bytes_per_s),
        note: note(idle_ns, &pairs(&points), knee.is_some(), is_busy(figures, &points), threads),
        knee,
        points,
    }
}

fn idle(figures: &[Figure<Loaded>]) -> Option<&Figure<Loaded>> {
    figures.iter().find(|figure| figure.point.threads == 0)
}

/// The points of a curve by their load.
fn of(figures: &[Figure<Loaded>], (threads, percent): Key) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = figures
        .iter()
        .filter(|figure| (figure.point.threads, figure.point.read_percent) == (threads, Some(percent)))
        .filter_map(|figure| {
            let details = figure.details.as_ref()?;
            Some(CurvePoint {
                delay_steps: figure.point.delay_steps,
                load_bytes_per_s: details.load_bytes_per_s,
                latency_ns: figure.result.p50,
                p99_ns: details.p99_ns,
                disturbed: figure.result.disturbed,
            })
        })
        .collect();
    points.sort_by(|a, b| a.load_bytes_per_s.value.total_cmp(&b.load_bytes_per_s.value));
    points
}

/// Whether too few blocks were left in which everybody kept their CPU.
fn is_busy(figures: &[Figure<Loaded>], points: &[CurvePoint]) -> bool {
    idle(figures).is_some_and(|idle| idle.result.disturbed) || points.iter().any(|point| point.disturbed)
}

fn pairs(points: &[CurvePoint]) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.load_bytes_per_s.value, point.latency_ns)).collect()
}

fn bend(figures: &[Figure<Loaded>], key: Key) -> Option<(f64, f64)> {
    let points = of(figures, key);
    let idle = idle(figures).filter(|_| !is_busy(figures, &points))?;
    knee(idle.result.p50, &pairs(&points))
}

/// Load and latency at which the latency crosses the threshold for good: between the last point below it and
/// the next one. The idle point is the curve's beginning.
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
            "no knee is determined: other programs used the CPUs, and the points that they affected are \
                marked as disturbed"
                .to_owned(),
        ),
        Some(_) if points.len() < LEAST_POINTS => Some("too few loads for a knee".to_owned()),
        Some(idle_ns) => {
            let most = points.iter().map(|(_, ns)| *ns).fold(idle_ns, f64::max);
            Some(format!(
                "no knee: latency rose to {:.2} times idle at most and did not stay above {KNEE}; {own} of \
                    this machine do not saturate its memory",
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
