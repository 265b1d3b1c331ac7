//! What all points together say: the model beside the measurement, knees, the lesson's experiment, one file against many.

use latlab_harness::PointResult;
use latlab_record::Point;
use serde_json::{Value, json};

use super::knee::{Knee, Step, foretold, knee};
use super::model::{Evidence, Predicted, Way, fit, predict, verdict};
use super::{FILES, HTTP, HTTPS, KEPT, KIB, LARGE, MIB, NEW, OWN, POOL, TEN_FILES, TRANSFERS, USUAL};
use crate::peer::{EMULATED, LOOPBACK};

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
    /// What one connection that has been going on gets through, bytes a second, with its interval.
    throughput: Option<(f64, [f64; 2])>,
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
            let ends = &found["throughput_interval"];
            let value = found["throughput_bytes_per_s"].as_f64()?;
            Some((
                value,
                [
                    ends[0].as_f64().unwrap_or(value),
                    ends[1].as_f64().unwrap_or(value),
                ],
            ))
        });
        Self {
            results,
            path,
            rtt_ns,
            throughput,
        }
    }

    fn way(&self) -> Option<Way> {
        Some(Way {
            rtt_ns: self.rtt_ns?,
            bytes_per_s: self.throughput.map(|(rate, _)| rate),
        })
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
        "throughput_interval": known.throughput.map(|(_, ends)| ends),
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
        "interval": result.interval,
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
    Some((predict(way, kind.bytes as f64, handshakes(kind)), way, floor_ns))
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

/// The sweep of one kind, by concurrency.
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
        .collect();
    steps.sort_by_key(|step| step.concurrency);
    steps
}

fn bend(known: &Known<'_>, kind: Kind<'_>, seed: u64) -> Option<Value> {
    let one = at(known.results, kind, 1);
    let steps = steps(known.results, kind);
    let Knee {
        concurrency,
        interval,
        plateau,
        beyond,
    } = knee(&steps, seed)?;
    let foretold = one.filter(|one| real(one)).and_then(|one| before(known, one));
    let factor = foretold.map(|(value, _)| {
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
        "knee": concurrency,
        "interval": interval,
        "plateau_bytes_per_s": plateau,
        "beyond": beyond,
        "foretold": foretold.map(|(value, _)| value),
        "foretold_interval": foretold.map(|(_, ends)| ends),
        "factor": factor,
        "verified": factor.map(|factor| factor <= FACTOR),
        "curve": curve,
    }))
}

/// The knee foretold from one transfer and one throughput, and what their intervals make of it.
fn before(known: &Known<'_>, one: &PointResult) -> Option<(f64, [f64; 2])> {
    let (throughput, [least, most]) = known.throughput?;
    let bytes = one.point.file_bytes? as f64;
    let cpu = number(one, "client_cpu_share")?.max(number(one, "server_cpu_share")?);
    let [soonest, latest] = one.interval.unwrap_or([one.p50; 2]);
    let of = |one_ns: f64, throughput: f64| foretold(bytes, one_ns, cpu * one.p50, throughput);
    Some((of(one.p50, throughput), [of(soonest, least), of(latest, most)]))
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
            let alone_ns = if workers == POOL {
                found["sequential_ns"].as_f64()
            } else {
                let experiment = Point {
                    concurrency: Some(POOL),
                    ..point.clone()
                };
                results
                    .iter()
                    .find(|other| other.point == experiment)
                    .and_then(|other| number(other, "sequential_ns"))
            };
            let speed_up = found["speed_up"].as_f64().or(alone_ns.map(|alone| alone / result.p50));
            Some(json!({
                "path": point.path,
                "file_bytes": point.file_bytes,
                "connections": point.connections,
                "engine": point.engine,
                "workers": workers,
                "files": FILES,
                "sequential_ns": alone_ns,
                "pool_ns": result.p50,
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
                "many_ns": many_ns,
                "pool_ns": ten.p50,
                "many_over_one": many_ns / one_ns,
                "pool_over_one": ten.p50 / one_ns,
            }))
        })
        .collect()
}

/// Points between the steps around each knee, from the medians of the first pass.
pub(super) fn between(results: &[PointResult], all: &[u32]) -> Vec<Point> {
    let mut wanted = Vec::new();
    for kind in kinds(results)
        .into_iter()
        .filter(|kind| kind.bytes > KIB && kind.bytes < LARGE)
    {
        let mut curve: Vec<(u32, f64)> = results
            .iter()
            .filter(|result| Kind::of(&result.point) == Some(kind))
            .filter_map(|result| {
                let many = result.point.concurrency?;
                Some((many, f64::from(many) / result.p50))
            })
            .collect();
        if curve.len() < 3 {
            continue;
        }
        curve.sort_by_key(|(many, _)| *many);
        let plateau = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let Some(place) = curve
            .iter()
            .position(|(_, rate)| *rate >= super::knee::SHARE * plateau)
        else {
            continue;
        };
        let from = curve[place.saturating_sub(1)].0;
        let to = curve.get(place + 1).map_or(curve[place].0, |(many, _)| *many);
        let known = |many: u32| curve.iter().any(|(own, _)| *own == many);
        let Some(model) = results
            .iter()
            .find(|result| Kind::of(&result.point) == Some(kind))
        else {
            continue;
        };
        wanted.extend(
            all.iter()
                .copied()
                .filter(|many| *many > from && *many < to && !known(*many))
                .map(|many| Point {
                    concurrency: Some(many),
                    ..model.point.clone()
                }),
        );
    }
    wanted
}
