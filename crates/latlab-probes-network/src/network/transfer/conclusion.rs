//! What all points together say: the model beside the measurement, knees, the lesson's experiment, one file against many.

use latlab_harness::PointResult;
use latlab_record::Point;
use serde_json::{Value, json};

use super::knee::{Knee, Step, foretold, knee, median, next};
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

fn number(result: &PointResult, name: &str) -> Option<f64> {
    result.findings.as_ref()?[name].as_f64()
}

/// Whether packets take the time of the path: else nothing but the time to the first byte says anything about it.
fn real(result: &PointResult) -> bool {
    result
        .findings
        .as_ref()
        .is_some_and(|found| found["route"]["kind"] != json!("application"))
}

/// What is known of one path from single transfers.
struct Known<'a> {
    results: &'a [PointResult],
    path: &'a str,
    /// A round trip, as it was in this run.
    rtt_ns: Option<f64>,
    /// What one connection that has been going on gets through, bytes a second, with its interval where there are blocks enough.
    throughput: Option<(f64, Option<[f64; 2]>)>,
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
        let throughput = large.and_then(|result| {
            let found = result.findings.as_ref()?;
            Some((
                found["throughput_bytes_per_s"].as_f64()?,
                ends(found, "throughput_interval"),
            ))
        });
        let congestion = results
            .iter()
            .filter(own)
            .find_map(|result| result.findings.as_ref()?["congestion_control"].as_str());
        Self {
            results,
            path,
            rtt_ns,
            throughput,
            growth: Growth::of(congestion),
        }
    }

    fn way(&self) -> Option<Way> {
        Some(Way {
            rtt_ns: self.rtt_ns?,
            bytes_per_s: self.throughput.map(|(rate, _)| rate).or_else(|| self.asked()),
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
        let there = Kind {
            path: LOOPBACK,
            ..kind
        };
        at(self.results, there, 1).map(|result| result.p50)
    }
}

/// The interval of a transfer's time: with a few transfers a block, the blocks' medians say more than all transfers together.
fn spread(result: &PointResult) -> Option<[f64; 2]> {
    interval_or(result, "time_interval")
}

/// The interval of the result, else this one of its findings. That is exact where the result is rounded to a step of its histogram: it reaches to
/// the figure that it stands beside.
fn interval_or(result: &PointResult, name: &str) -> Option<[f64; 2]> {
    result.interval.or_else(|| {
        let [low, high] = ends(result.findings.as_ref()?, name)?;
        Some([low.min(result.p50), high.max(result.p50)])
    })
}

/// The two ends of an interval.
fn ends(found: &Value, name: &str) -> Option<[f64; 2]> {
    found[name][0]
        .as_f64()
        .zip(found[name][1].as_f64())
        .map(<[f64; 2]>::from)
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
        .flat_map(|found| ["connect", "first-byte"].map(|phase| found["phases_ns"][phase].as_f64()))
        .flatten()
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
pub(super) fn of(results: &[PointResult], seed: u64) -> Value {
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
    let singles: Vec<Value> = kinds(results)
        .into_iter()
        .filter_map(|kind| single(about(kind.path)?, kind))
        .collect();
    let knees: Vec<Value> = kinds(results)
        .into_iter()
        .filter(|kind| !pretended.contains(&kind.path))
        .filter_map(|kind| bend(about(kind.path)?, kind, seed))
        .collect();
    json!({
        "paths": known.iter().map(path_row).collect::<Vec<_>>(),
        "singles": singles,
        "fits": known.iter().filter_map(fitted).collect::<Vec<_>>(),
        "knees": knees,
        "ten_files": ten_files(results),
        "one_or_many": known.iter().flat_map(one_or_many).collect::<Vec<_>>(),
        "named": results.iter().filter(|result| is_named(&result.point)).map(named).collect::<Vec<_>>(),
    })
}

/// One transfer from the user's server, by its phases.
fn named(result: &PointResult) -> Value {
    let found = |name: &str| {
        result
            .findings
            .as_ref()
            .map_or(Value::Null, |found| found[name].clone())
    };
    json!({
        "connections": result.point.connections,
        "protocol": result.point.protocol,
        "time_ns": result.p50,
        "interval": spread(result),
        "transfers": found("transfers"),
        "bodies_bytes": found("bodies_bytes"),
        "reopened": found("reopened"),
        "phases_ns": found("phases_ns"),
        "phases_interval": found("phases_interval"),
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
        "throughput_bytes_per_s": known.throughput.map(|(rate, _)| rate),
        "throughput_interval": known.throughput.and_then(|(_, ends)| ends),
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
        "time_ns": result.p50,
        "interval": spread(result),
        "phases_ns": found["phases_ns"],
        "phases_interval": found["phases_interval"],
        "goodput_bytes_per_s": found["goodput_bytes_per_s"],
        "verdict": judged(known, result),
        "model": model.map(|(predicted, way, floor_ns)| json!({
            "round_trips": predicted.round_trips,
            "slow_start": predicted.slow_start,
            "rtt_ns": way.rtt_ns,
            "link_ns": predicted.link_ns,
            "floor_ns": floor_ns,
            "time_ns": ns,
            "over_measured": ns.map(|ns| ns / result.p50),
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
        goodput: found["goodput_bytes_per_s"].as_f64()?,
        throughput: known.throughput.map(|(rate, _)| rate),
        until_first_byte_ns: found["until_first_byte_ns"].as_f64()?,
        all_ns: result.p50,
    }))
}

/// Round trip and fixed part that fit the new connections best, and how far each size is off.
fn fitted(known: &Known<'_>) -> Option<Value> {
    let sizes: Vec<(u64, Predicted, f64)> = kinds(known.results)
        .into_iter()
        .filter(|kind| kind.path == known.path && kind.connections == NEW && kind.protocol == HTTP)
        .filter_map(|kind| {
            let result = at(known.results, kind, 1).filter(|result| real(result))?;
            let (predicted, ..) = modelled(known, kind)?;
            Some((kind.bytes, predicted, result.p50))
        })
        .collect();
    let measured: Vec<(Predicted, f64)> = sizes.iter().map(|(_, predicted, ns)| (*predicted, *ns)).collect();
    let found = fit(&measured)?;
    let residuals: Vec<Value> = sizes
        .iter()
        .map(|(bytes, predicted, ns)| {
            json!({
                "file_bytes": bytes,
                "model_over_measured": predicted.ns(found.rtt_ns, found.floor_ns) / ns,
            })
        })
        .collect();
    Some(json!({
        "path": known.path,
        "rtt_ns": found.rtt_ns,
        "floor_ns": found.floor_ns,
        "residuals": residuals,
    }))
}

/// The sweep of one kind, by concurrency: of what has a rate.
fn steps(results: &[PointResult], kind: Kind<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = results
        .iter()
        .filter(|result| Kind::of(&result.point) == Some(kind))
        .filter_map(|result| {
            let rates = result.findings.as_ref()?["rates_bytes_per_s"].as_array()?;
            Some(Step {
                concurrency: result.point.concurrency?,
                rates: rates.iter().filter_map(Value::as_f64).collect(),
            })
        })
        .filter(|step| !step.rates.is_empty())
        .collect();
    steps.sort_by_key(|step| step.concurrency);
    steps
}

fn bend(known: &Known<'_>, kind: Kind<'_>, seed: u64) -> Option<Value> {
    let one = at(known.results, kind, 1);
    let steps = steps(known.results, kind);
    let Knee {
        concurrency,
        below,
        interval,
        plateau,
        rise,
    } = knee(&steps, seed)?;
    let foretold = one.filter(|one| real(one)).and_then(|one| before(known, one));
    let found = rise.is_none();
    let factor = foretold.filter(|_| found).map(|(value, _)| {
        let measured = f64::from(concurrency);
        (value / measured).max(measured / value)
    });
    let curve: Vec<Value> = steps
        .iter()
        .filter_map(|step| {
            let result = at(known.results, kind, step.concurrency)?;
            let found = result.findings.as_ref()?;
            Some(json!({
                "concurrency": step.concurrency,
                "goodput_bytes_per_s": found["goodput_bytes_per_s"],
                "goodput_interval": found["goodput_interval"],
                "time_ns": result.p50,
                "interval": result.interval,
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
        "one_step": found.then(|| below.is_none_or(|below| one_step(below, concurrency))),
        "interval": interval.filter(|_| found),
        "plateau_bytes_per_s": found.then_some(plateau),
        "at_least": (!found).then_some(concurrency),
        "not_found": rise.map(|rise| format!(
            "the goodput still rises, {:.2}-fold from {} at once to {}: there is no plateau yet",
            rise.times, rise.from, rise.to
        )),
        "foretold": foretold.map(|(value, _)| value),
        "foretold_interval": foretold.and_then(|(_, ends)| ends),
        "factor": factor,
        "verified": factor.map(|factor| factor <= FACTOR),
        "curve": curve,
    }))
}

/// Whether there is nothing of the grid between the two.
fn one_step(below: u32, at: u32) -> bool {
    !GRID.iter().any(|many| below < *many && *many < at)
}

/// The knee foretold from one transfer and one throughput, and what their intervals make of it: none where one of them has none.
fn before(known: &Known<'_>, one: &PointResult) -> Option<(f64, Option<[f64; 2]>)> {
    let (throughput, throughputs) = known.throughput?;
    let bytes = one.point.file_bytes? as f64;
    let cpu = number(one, "client_cpu_share")?.max(number(one, "server_cpu_share")?);
    let of = |one_ns: f64, throughput: f64| foretold(bytes, one_ns, cpu * one.p50, throughput);
    let interval = self::spread(one)
        .zip(throughputs)
        .map(|([soonest, latest], [least, most])| [of(soonest, least), of(latest, most)]);
    Some((of(one.p50, throughput), interval))
}

/// Sets of ten files by six, against one worker.
fn ten_files(results: &[PointResult]) -> Vec<Value> {
    let sets = |result: &&PointResult| result.point.operation.as_deref() == Some(TEN_FILES) && real(result);
    results
        .iter()
        .filter(sets)
        .filter_map(|result| {
            let point = &result.point;
            let found = result.findings.as_ref()?;
            let workers = point.concurrency?;
            // The sets by other numbers of workers are compared with the sequential ones of the experiment.
            let experiment = Point {
                concurrency: Some(POOL),
                ..point.clone()
            };
            let experiment = results.iter().find(|other| other.point == experiment);
            let experiment = experiment.and_then(|other| other.findings.as_ref());
            let alone_ns = experiment.and_then(|found| found["sequential_ns"].as_f64());
            let speed_up = found["speed_up"].as_f64().or(alone_ns.map(|alone| alone / result.p50));
            Some(json!({
                "path": point.path,
                "file_bytes": point.file_bytes,
                "connections": point.connections,
                "engine": point.engine,
                "workers": workers,
                "files": FILES,
                "sequential_ns": alone_ns,
                "sequential_interval": experiment.and_then(|found| ends(found, "sequential_interval")),
                "pool_ns": result.p50,
                "pool_interval": interval_or(result, "pool_interval"),
                "speed_up": speed_up,
                "interval": found["speed_up_interval"],
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
            let kind = Kind {
                path: known.path,
                bytes: MIB,
                connections,
                protocol: HTTP,
            };
            let one = at(known.results, kind, 1).filter(|one| real(one))?;
            let ten = known
                .results
                .iter()
                .find(|result| result.point == super::ten_files(known.path, USUAL, connections, OWN))?;
            let share = (USUAL * u64::from(FILES)) as f64 / MIB as f64;
            let one_ns = one.p50 * share;
            let many_ns = number(ten, "sequential_ns")?;
            Some(json!({
                "path": known.path,
                "connections": connections,
                "total_bytes": USUAL * u64::from(FILES),
                "one_ns": one_ns,
                "one_interval": spread(one).map(|ends| ends.map(|end| end * share)),
                "many_ns": many_ns,
                "many_interval": ends(ten.findings.as_ref()?, "sequential_interval"),
                "pool_ns": ten.p50,
                "pool_interval": interval_or(ten, "pool_interval"),
                "many_over_one": many_ns / one_ns,
                "pool_over_one": ten.p50 / one_ns,
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
            let medians: Vec<(u32, f64)> = steps(results, kind)
                .into_iter()
                .map(|step| (step.concurrency, median(&step.rates)))
                .collect();
            if medians.len() < 3 {
                return None;
            }
            let model = at(results, kind, medians[0].0)?;
            Some(Point {
                concurrency: Some(next(&medians, &grid)?),
                ..model.point.clone()
            })
        })
        .collect()
}
