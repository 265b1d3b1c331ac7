//! What all points together say: the model beside the measurement, knees, the lesson's experiment, one file against many.

use latlab_harness::{PointResult, Rounds, product, ratio};
use latlab_record::{Estimate, Point};
use serde_json::{Value, json};

use super::knee::{Knee, Step, crossing, foretold, knee, medians, next};
use super::model::{Evidence, Growth, Predicted, Way, fit, predict, verdict};
use super::{FILES, GRID, HTTP, HTTPS, KEPT, KIB, LARGE, MIB, NEW, OWN, POOL, TEN_FILES, TRANSFERS, USUAL};
use crate::peer::{EMULATED, LOOPBACK, is_named};

/// Bytes of a file in a frame with 1500 bytes of packet, over the frame's with its head.
const DATA_OF_A_FRAME: f64 = 1448.0 / 1514.0;
/// A foretold knee is verified when it is within this factor of the one that was measured.
const FACTOR: f64 = 2.0;

/// One kind of transfer: everything but how many at once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind<'a> {
    path: &'a str,
    bytes: u64,
    connections: &'a str,
    protocol: &'a str,
}

impl<'a> Kind<'a> {
    fn of(point: &'a Point) -> Option<Self> {
        if point.operation.as_deref() != Some(TRANSFERS) || point.engine.as_deref() != Some(OWN) {
            return None;
        }
        Some(Self {
            path: point.path.as_deref()?,
            bytes: point.file_bytes?,
            connections: point.connections.as_deref()?,
            protocol: point.protocol.as_deref()?,
        })
    }
}

/// Results of sweeps, by kind, in the order of their first points.
fn kinds(results: &[PointResult]) -> Vec<Kind<'_>> {
    let mut all = Vec::new();
    for kind in results.iter().filter_map(|result| Kind::of(&result.point)) {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    all
}

fn at<'a>(results: &'a [PointResult], kind: Kind<'_>, concurrency: u32) -> Option<&'a PointResult> {
    results
        .iter()
        .find(|result| Kind::of(&result.point) == Some(kind) && result.point.concurrency == Some(concurrency))
}

/// Whether packets take the time of the path: else nothing but the time to the first byte says anything about it.
fn real(result: &PointResult) -> bool {
    result.findings.as_ref().is_some_and(|found| found["route"]["kind"] != json!("application"))
}

/// What is known of one path from single transfers.
struct Known<'a> {
    results: &'a [PointResult],
    path: &'a str,
    /// A round trip, as it was in this run.
    rtt_ns: Option<f64>,
    /// What one connection that has been going on gets through, bytes a second.
    throughput: Option<Estimate>,
    /// How a new connection of its server gets faster.
    growth: Growth,
}

impl<'a> Known<'a> {
    fn of(results: &'a [PointResult], path: &'a str) -> Self {
        let own = |result: &&PointResult| result.point.path.as_deref() == Some(path);
        let rtt_ns = round_trip_ns(results, path);
        let large = results
            .iter()
            .filter(own)
            .filter(|result| result.point.concurrency == Some(1) && real(result))
            .filter(|result| {
                Kind::of(&result.point).is_some_and(|kind| {
                    kind.connections == KEPT && kind.protocol == HTTP && kind.bytes >= MIB
                })
            })
            .max_by_key(|result| result.point.file_bytes);
        let throughput = large.and_then(|result| result.estimate("throughput_bytes_per_s"));
        let congestion = results
            .iter()
            .filter(own)
            .find_map(|result| result.findings.as_ref()?["congestion_control"].as_str());
        Self { results, path, rtt_ns, throughput, growth: Growth::of(congestion) }
    }

    fn way(&self) -> Option<Way> {
        Some(Way {
            rtt_ns: self.rtt_ns?,
            bytes_per_s: self.throughput.map(|own| own.value).or_else(|| self.asked()),
        })
    }

    /// What the rate that was asked for leaves to files, where no large one was measured, bytes a second.
    fn asked(&self) -> Option<f64> {
        let route = |result: &PointResult| result.findings.as_ref()?["route"]["rate_bit_per_s"].as_f64();
        self.results
            .iter()
            .filter(|result| result.point.path.as_deref() == Some(self.path))
            .find_map(route)
            .map(|bits| bits / 8.0 * DATA_OF_A_FRAME)
    }

    /// What the same takes on the loopback: the software's part.
    fn floor_ns(&self, kind: Kind<'_>) -> Option<f64> {
        let there = Kind { path: LOOPBACK, ..kind };
        at(self.results, there, 1).map(|result| result.p50)
    }
}

/// A median with its range: that of its findings under this name where the figure has none, as one of a single round; it reaches to the figure.
fn time(result: &PointResult, name: &str) -> Estimate {
    let own = result.median();
    match result.estimate(name).and_then(|found| found.ends()) {
        Some(ends) if own.ends().is_none() => own.reaching(ends),
        _ => own,
    }
}

/// The median of the round trips that were waited for one by one: of connecting, and from a request to the first byte of its answer. On a
/// machine that does other things they are longer than the path; slow start then waits for them as well.
fn round_trip_ns(results: &[PointResult], path: &str) -> Option<f64> {
    let mut trips: Vec<f64> = results
        .iter()
        .filter(|result| result.point.concurrency == Some(1) && real(result))
        .filter(|result| {
            Kind::of(&result.point)
                .is_some_and(|kind| (kind.path, kind.connections, kind.protocol) == (path, NEW, HTTP))
        })
        .filter_map(|result| result.findings.as_ref())
        .flat_map(|found| ["connect", "first-byte"].map(|phase| Estimate::read(&found["phases_ns"][phase])))
        .flatten()
        .map(|own| own.value)
        .collect();
    trips.sort_by(f64::total_cmp);
    (!trips.is_empty()).then(|| latlab_stats::quantile(&trips, 0.5))
}

fn handshakes(kind: Kind<'_>) -> f64 {
    match (kind.connections, kind.protocol) {
        (NEW, HTTPS) => 2.0,
        (NEW, _) => 1.0,
        _ => 0.0,
    }
}

/// Everything.
pub(super) fn of(results: &[PointResult]) -> Value {
    let mut paths: Vec<&str> = Vec::new();
    for path in results.iter().filter_map(|result| result.point.path.as_deref()) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let known: Vec<Known<'_>> = paths.iter().map(|path| Known::of(results, path)).collect();
    let about = |path: &str| known.iter().find(|known| known.path == path);
    // Paths that are a server that waits: no connection takes the time of a path there.
    let pretended: Vec<&str> = results
        .iter()
        .filter(|result| !real(result))
        .filter_map(|result| result.point.path.as_deref())
        .collect();
    let singles: Vec<Value> =
        kinds(results).into_iter().filter_map(|kind| single(about(kind.path)?, kind)).collect();
    let swept: Vec<Kind<'_>> =
        kinds(results).into_iter().filter(|kind| !pretended.contains(&kind.path)).collect();
    let rounds = Rounds::of(results);
    let crossings = rounds.estimates(&swept, |kind, results| crossing(&medians(&steps(results, *kind))));
    let knees: Vec<Value> = swept
        .into_iter()
        .zip(crossings)
        .filter_map(|(kind, by_rounds)| bend(about(kind.path)?, kind, by_rounds))
        .collect();
    json!({
        "paths": known.iter().map(path_row).collect::<Vec<_>>(),
        "singles": singles,
        "fits": known.iter().filter_map(|known| fitted(known, &rounds)).collect::<Vec<_>>(),
        "knees": knees,
        "ten_files": ten_files(results),
        "one_or_many": known.iter().flat_map(one_or_many).collect::<Vec<_>>(),
        "named": results.iter().filter(|result| is_named(&result.point)).map(named).collect::<Vec<_>>(),
    })
}

/// One transfer from the user's server, by its phases.
fn named(result: &PointResult) -> Value {
    let found = |name: &str| result.findings.as_ref().map_or(Value::Null, |found| found[name].clone());
    json!({
        "connections": result.point.connections,
        "protocol": result.point.protocol,
        "time_ns": time(result, "time_ns"),
        "transfers": found("transfers"),
        "bodies_bytes": found("bodies_bytes"),
        "reopened": found("reopened"),
        "phases_ns": found("phases_ns"),
    })
}

fn path_row(known: &Known<'_>) -> Value {
    let found = known
        .results
        .iter()
        .find(|result| result.point.path.as_deref() == Some(known.path))
        .and_then(|result| result.findings.as_ref());
    json!({
        "path": known.path,
        "route": found.map(|found| found["route"].clone()),
        "congestion_control": found.map(|found| found["congestion_control"].clone()),
        "throughput_bytes_per_s": known.throughput,
    })
}

/// One transfer alone: its phases, what limits it, and the model beside it.
fn single(known: &Known<'_>, kind: Kind<'_>) -> Option<Value> {
    let result = at(known.results, kind, 1)?;
    let found = result.findings.as_ref()?;
    let model = modelled(known, kind).filter(|_| real(result));
    let ns = model.map(|(predicted, way, floor_ns)| predicted.ns(way.rtt_ns, floor_ns));
    Some(json!({
        "path": kind.path,
        "file_bytes": kind.bytes,
        "connections": kind.connections,
        "protocol": kind.protocol,
        "time_ns": time(result, "time_ns"),
        "phases_ns": found["phases_ns"],
        "goodput_bytes_per_s": found["goodput_bytes_per_s"],
        "verdict": judged(known, result),
        "model": model.map(|(predicted, way, floor_ns)| json!({
            "round_trips": predicted.round_trips,
            "slow_start": predicted.slow_start,
            "rtt_ns": way.rtt_ns,
            "link_ns": predicted.link_ns,
            "floor_ns": floor_ns,
            "time_ns": ns,
            "over_measured": ns.map(|ns| time(result, "time_ns").map(|measured| ns / measured)),
        })),
    }))
}

/// The model of a transfer over an emulated path; the loopback has no round trip that could be told apart from its software.
fn modelled(known: &Known<'_>, kind: Kind<'_>) -> Option<(Predicted, Way, f64)> {
    if kind.path != EMULATED {
        return None;
    }
    let way = known.way()?;
    let floor_ns = known.floor_ns(kind).unwrap_or(0.0);
    let predicted = predict(way, kind.bytes as f64, handshakes(kind), known.growth);
    Some((predicted, way, floor_ns))
}

fn judged(known: &Known<'_>, result: &PointResult) -> Option<&'static str> {
    let found = result.findings.as_ref().filter(|_| real(result))?;
    Some(verdict(&Evidence {
        alone: result.point.concurrency == Some(1),
        client_cpu: found["client_cpu_share"].as_f64().unwrap_or(0.0),
        server_cpu: found["server_cpu_share"].as_f64().unwrap_or(0.0),
        goodput: result.number("goodput_bytes_per_s")?,
        throughput: known.throughput.map(|own| own.value),
        until_first_byte_ns: found["until_first_byte_ns"].as_f64()?,
        all_ns: result.p50,
    }))
}

/// Single transfers on new connections as the model has them, with the measured ns.
fn modelled_sizes(known: &Known<'_>) -> Vec<(u64, Predicted, f64)> {
    kinds(known.results)
        .into_iter()
        .filter(|kind| kind.path == known.path && kind.connections == NEW && kind.protocol == HTTP)
        .filter_map(|kind| {
            let result = at(known.results, kind, 1).filter(|result| real(result))?;
            let (predicted, ..) = modelled(known, kind)?;
            Some((kind.bytes, predicted, result.p50))
        })
        .collect()
}

/// Round trip and fixed part that fit the new connections best, and how far each size is off.
fn fitted(known: &Known<'_>, rounds: &Rounds<'_>) -> Option<Value> {
    let sizes = modelled_sizes(known);
    let of = |sizes: &[(u64, Predicted, f64)]| {
        let measured: Vec<(Predicted, f64)> =
            sizes.iter().map(|(_, predicted, ns)| (*predicted, *ns)).collect();
        fit(&measured)
    };
    let found = of(&sizes)?;
    let residuals: Vec<Value> = sizes
        .iter()
        .map(|(bytes, predicted, ns)| {
            json!({
                "file_bytes": bytes,
                "model_over_measured": predicted.ns(found.rtt_ns, found.floor_ns) / ns,
            })
        })
        .collect();
    // A round with fewer sizes fits another line.
    let again = |results: &[PointResult]| {
        let own = modelled_sizes(&Known::of(results, known.path));
        of(&own).filter(|_| own.len() == sizes.len())
    };
    Some(json!({
        "path": known.path,
        "rtt_ns": rounds.estimate(|results| Some(again(results)?.rtt_ns)),
        "floor_ns": rounds.estimate(|results| Some(again(results)?.floor_ns)),
        "residuals": residuals,
    }))
}

/// The sweep of one kind, by concurrency: of what has a rate.
fn steps(results: &[PointResult], kind: Kind<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = results
        .iter()
        .filter(|result| Kind::of(&result.point) == Some(kind))
        .filter_map(|result| Some((result.point.concurrency?, result.estimate("goodput_bytes_per_s")?)))
        .collect();
    steps.sort_by_key(|(concurrency, _)| *concurrency);
    steps
}

fn bend(known: &Known<'_>, kind: Kind<'_>, by_rounds: Option<Estimate>) -> Option<Value> {
    let one = at(known.results, kind, 1);
    let steps = steps(known.results, kind);
    let Knee { concurrency, below, plateau, rise } = knee(&steps, by_rounds)?;
    let foretold = one.filter(|one| real(one)).and_then(|one| before(known, one));
    let found = rise.is_none();
    let factor = foretold.filter(|_| found).map(|foretold| {
        let (value, measured) = (foretold.value, concurrency.value);
        (value / measured).max(measured / value)
    });
    let curve: Vec<Value> = steps
        .iter()
        .filter_map(|(concurrency, goodput)| {
            let result = at(known.results, kind, *concurrency)?;
            let found = result.findings.as_ref()?;
            Some(json!({
                "concurrency": concurrency,
                "goodput_bytes_per_s": goodput,
                "time_ns": result.median(),
                "p99_ns": found["p99_ns"],
                "little": found["little"],
                "verdict": judged(known, result),
            }))
        })
        .collect();
    Some(json!({
        "path": kind.path,
        "file_bytes": kind.bytes,
        "connections": kind.connections,
        "protocol": kind.protocol,
        "knee": found.then_some(concurrency),
        "below": below.filter(|_| found),
        "one_step": found.then(|| below.is_none_or(|below| one_step(below, concurrency.value))),
        "plateau_bytes_per_s": found.then_some(plateau),
        "at_least": (!found).then_some(concurrency.value),
        "not_found": rise.map(|rise| format!(
            "the goodput still rises, {:.2}-fold from {} at once to {}: there is no plateau yet",
            rise.times, rise.from, rise.to
        )),
        "foretold": foretold,
        "factor": factor,
        "verified": factor.map(|factor| factor <= FACTOR),
        "curve": curve,
    }))
}

/// Whether there is nothing of the grid between the two.
fn one_step(below: u32, at: f64) -> bool {
    !GRID.iter().any(|many| below < *many && f64::from(*many) < at)
}

/// The knee foretold from one transfer and one throughput, with the range that theirs give it.
fn before(known: &Known<'_>, one: &PointResult) -> Option<Estimate> {
    let throughput = known.throughput?;
    let bytes = one.point.file_bytes? as f64;
    let cpu = one.number("client_cpu_share")?.max(one.number("server_cpu_share")?);
    let value = foretold(bytes, one.p50, cpu * one.p50, throughput.value);
    Some(product(value, &[time(one, "time_ns"), throughput]))
}

/// Sets of ten files by six, against one worker.
fn ten_files(results: &[PointResult]) -> Vec<Value> {
    let sets = |result: &&PointResult| result.point.operation.as_deref() == Some(TEN_FILES) && real(result);
    results
        .iter()
        .filter(sets)
        .filter_map(|result| {
            let point = &result.point;
            let workers = point.concurrency?;
            // The sets by other numbers of workers are compared with the sequential ones of the experiment.
            let experiment = Point {
                concurrency: Some(POOL),
                ..point.clone()
            };
            let experiment = results.iter().find(|other| other.point == experiment);
            let alone = experiment.and_then(|other| other.estimate("sequential_ns"));
            let pool = time(result, "pool_ns");
            let speed_up = result
                .estimate("speed_up")
                .or(alone.map(|alone| product(alone.value / pool.value, &[alone, pool])));
            Some(json!({
                "path": point.path,
                "file_bytes": point.file_bytes,
                "connections": point.connections,
                "engine": point.engine,
                "workers": workers,
                "files": FILES,
                "sequential_ns": alone,
                "pool_ns": pool,
                "speed_up": speed_up,
                "ceiling": f64::from(FILES) / f64::from(FILES.div_ceil(workers)),
                "order": if workers == POOL { "A B B A" } else { "random, against the sequential sets of six workers" },
            }))
        })
        .collect()
}

/// One large file against ten small ones of the same total, one after the other and by a pool: 1 MiB and ten files of 100 KiB (2 % less).
fn one_or_many(known: &Known<'_>) -> Vec<Value> {
    [NEW, KEPT]
        .into_iter()
        .filter_map(|connections| {
            let kind = Kind { path: known.path, bytes: MIB, connections, protocol: HTTP };
            let one = at(known.results, kind, 1).filter(|one| real(one))?;
            let ten = known
                .results
                .iter()
                .find(|result| result.point == super::ten_files(known.path, USUAL, connections, OWN))?;
            let share = (USUAL * u64::from(FILES)) as f64 / MIB as f64;
            let alone = time(one, "time_ns").map(|ns| ns * share);
            let many = ten.estimate("sequential_ns")?;
            Some(json!({
                "path": known.path,
                "connections": connections,
                "total_bytes": USUAL * u64::from(FILES),
                "one_ns": alone,
                "many_ns": many,
                "pool_ns": time(ten, "pool_ns"),
                "many_over_one": product(many.value / alone.value, &[many, alone]),
                "pool_over_one": ratio(ten, one).map(|times| times / share),
            }))
        })
        .collect()
}

/// What to measure next to know each knee to a step of the grid.
pub(super) fn closer(results: &[PointResult], most: u32) -> Vec<Point> {
    let grid: Vec<u32> = GRID.into_iter().filter(|many| *many <= most).collect();
    kinds(results)
        .into_iter()
        .filter(|kind| kind.bytes > KIB && kind.bytes < LARGE)
        .filter_map(|kind| {
            let medians = medians(&steps(results, kind));
            if medians.len() < 3 {
                return None;
            }
            let model = at(results, kind, medians[0].0)?;
            Some(Point { concurrency: Some(next(&medians, &grid)?), ..model.point.clone() })
        })
        .collect()
}
