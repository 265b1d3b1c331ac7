//! What all points together say: the model beside the measurement, knees, the lesson's experiment, one file
//! against many.

use std::collections::BTreeMap;

use latlab_harness::product;
use latlab_probes_shared::prelude::*;

use super::details::{Experiment, Found, Little, Server, Singles};
use super::knee::{Knee, Step, crossing, knee, medians, next, predicted};
use super::model::{Evidence, Growth, Predicted, Verdict, Way, fit, predict, verdict};
use super::{Connections, FILES, Fetch, GRID, KIB, Kept, LARGE, MIB, New, POOL, Transfer, USUAL};
use crate::peer::{Engine, PathKind, Protocol, RouteDetails};

/// Bytes of a file in a frame with 1500 bytes of packet, over the frame's with its head.
const DATA_OF_A_FRAME: f64 = 1448.0 / 1514.0;
/// A predicted knee is verified when it is within this factor of the one that was measured.
const FACTOR: f64 = 2.0;

/// What follows from all points.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    paths: Vec<OnPath>,
    /// One transfer alone, by size, connection and protocol.
    singles: Vec<Single>,
    /// The model's law fitted to new connections.
    fits: Vec<Fitted>,
    knees: Vec<Bend>,
    ten_files: Vec<TenFiles>,
    /// One large file against ten small ones of the same total.
    one_or_many: Vec<OneOrMany>,
    /// Transfers from the user's server.
    named: Vec<Named>,
    /// Libraries of Python's without a row.
    python: Vec<NotMeasured>,
}

#[derive(Serialize, JsonSchema)]
struct OnPath {
    path: PathKind,
    route: Option<RouteDetails>,
    /// Of the server's connections.
    congestion_control: Option<String>,
    /// Of one connection that has been going on.
    throughput_bytes_per_s: Option<Estimate>,
}

#[derive(Serialize, JsonSchema)]
struct Single {
    path: PathKind,
    file_bytes: u64,
    connections: Connections,
    protocol: Protocol,
    time_ns: Estimate,
    phases_ns: Option<BTreeMap<String, Estimate>>,
    goodput_bytes_per_s: Option<Estimate>,
    /// What limits it; none where no packet takes the time of the path.
    verdict: Option<Verdict>,
    /// Over an emulated path.
    model: Option<Modelled>,
}

/// One transfer as the model has it.
#[derive(Serialize, JsonSchema)]
struct Modelled {
    round_trips: f64,
    /// Of these, those that a connection spends on starting slowly.
    slow_start: f64,
    rtt_ns: f64,
    /// Beside the round trips.
    link_ns: f64,
    /// The software's part, as the loopback shows it.
    floor_ns: f64,
    time_ns: f64,
    over_measured: Estimate,
}

#[derive(Serialize, JsonSchema)]
struct Fitted {
    path: PathKind,
    rtt_ns: Option<Estimate>,
    floor_ns: Option<Estimate>,
    residuals: Vec<Residual>,
}

#[derive(Serialize, JsonSchema)]
struct Residual {
    file_bytes: u64,
    model_over_measured: f64,
}

/// How many at once.
#[derive(Serialize, JsonSchema)]
struct Bend {
    path: PathKind,
    file_bytes: u64,
    connections: Connections,
    protocol: Protocol,
    /// The smallest concurrency that reaches most of the plateau; none where there is no plateau.
    knee: Option<Estimate>,
    /// The largest concurrency that was measured before it.
    below: Option<u32>,
    /// Whether nothing of the grid lies between the two.
    one_step: Option<bool>,
    plateau_bytes_per_s: Option<Estimate>,
    /// Where there is no plateau.
    at_least: Option<f64>,
    not_found: Option<String>,
    #[serde(rename = "foretold")]
    predicted: Option<Estimate>,
    /// Foretold over measured, or the inverse: at least 1.
    factor: Option<f64>,
    verified: Option<bool>,
    curve: Vec<AtOnce>,
}

#[derive(Serialize, JsonSchema)]
struct AtOnce {
    concurrency: u32,
    goodput_bytes_per_s: Estimate,
    time_ns: Estimate,
    p99_ns: Option<f64>,
    little: Option<Little>,
    verdict: Option<Verdict>,
}

/// Sets of ten files by several workers, against one.
#[derive(Serialize, JsonSchema)]
struct TenFiles {
    path: PathKind,
    file_bytes: Option<u64>,
    connections: Connections,
    engine: Engine,
    workers: u32,
    files: u32,
    sequential_ns: Option<Estimate>,
    pool_ns: Estimate,
    speed_up: Option<Estimate>,
    /// The most that so many workers can bring.
    ceiling: f64,
    order: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct OneOrMany {
    path: PathKind,
    connections: Connections,
    total_bytes: u64,
    one_ns: Estimate,
    many_ns: Estimate,
    pool_ns: Estimate,
    many_over_one: Estimate,
    pool_over_one: Estimate,
}

#[derive(Serialize, JsonSchema)]
struct Named {
    connections: Connections,
    protocol: Protocol,
    time_ns: Estimate,
    transfers: Option<u64>,
    /// Shortest and longest body.
    bodies_bytes: Option<[u64; 2]>,
    /// Transfers for which a kept connection was opened again.
    reopened: Option<u64>,
    phases_ns: Option<BTreeMap<String, Estimate>>,
}

#[derive(Serialize, JsonSchema)]
struct NotMeasured {
    engine: Engine,
    not_measured: String,
}

/// One transfer alone of each kind that was swept, in the order of their first points: a kind is everything
/// but how many at once.
fn kinds(figures: &[Figure<Transfer>]) -> Vec<Fetch> {
    let mut all = Vec::new();
    for kind in figures.iter().filter_map(|figure| kind(figure.point)) {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    all
}

/// `None` where the point is not a sweep.
fn kind(point: Fetch) -> Option<Fetch> {
    let swept = !point.is_ten() && point.is_own() && point.file_bytes.is_some();
    swept.then_some(Fetch { concurrency: 1, ..point })
}

fn at(figures: &[Figure<Transfer>], point: Fetch) -> Option<&Figure<Transfer>> {
    figures.iter().find(|figure| figure.point == point)
}

fn is_real(figure: &Figure<Transfer>) -> bool {
    figure.details.as_ref().is_some_and(Found::is_real)
}

fn singles(figure: &Figure<Transfer>) -> Option<&Singles> {
    figure.details.as_ref()?.singles()
}

fn sets(figure: &Figure<Transfer>) -> Option<&Experiment> {
    figure.details.as_ref()?.sets()
}

/// What is known of one path from single transfers.
struct Known<'a> {
    figures: &'a [Figure<Transfer>],
    path: PathKind,
    /// A round trip, as it was in this run.
    rtt_ns: Option<f64>,
    /// What one connection that has been going on gets through, bytes a second.
    throughput: Option<Estimate>,
    /// How a new connection of its server gets faster.
    growth: Growth,
}

impl<'a> Known<'a> {
    fn of(figures: &'a [Figure<Transfer>], path: PathKind) -> Self {
        let large = figures
            .iter()
            .filter(|figure| is_real(figure) && figure.point.bytes() >= MIB)
            .filter(|figure| figure.point == Fetch::of(path, figure.point.bytes(), 1, Kept))
            .max_by_key(|figure| figure.point.bytes());
        let throughput = large.and_then(|figure| singles(figure)?.throughput_bytes_per_s);
        let congestion =
            of_path(figures, path).find_map(|figure| figure.details.as_ref()?.congestion_control());
        let growth = Growth::of(congestion);
        Self { figures, path, rtt_ns: round_trip_ns(figures, path), throughput, growth }
    }

    fn way(&self) -> Option<Way> {
        Some(Way {
            rtt_ns: self.rtt_ns?,
            bytes_per_s: self.throughput.map(|own| own.value).or_else(|| self.asked()),
        })
    }

    /// What the rate that was asked for leaves to files, where no large one was measured, bytes a second.
    fn asked(&self) -> Option<f64> {
        of_path(self.figures, self.path)
            .find_map(|figure| figure.details.as_ref()?.route.rate_bit_per_s())
            .map(|bits| bits as f64 / 8.0 * DATA_OF_A_FRAME)
    }

    /// What the same takes on the loopback: the software's part.
    fn floor_ns(&self, kind: Fetch) -> Option<f64> {
        at(self.figures, Fetch { path: PathKind::Loopback, ..kind }).map(|figure| figure.result.p50)
    }
}

fn of_path(figures: &[Figure<Transfer>], path: PathKind) -> impl Iterator<Item = &Figure<Transfer>> {
    figures.iter().filter(move |figure| figure.point.path == path)
}

/// A median with its range: that of its details where the figure has none, as one of a single round; it
/// reaches to the figure.
fn time(figure: &Figure<Transfer>, found: Option<Estimate>) -> Estimate {
    let own = figure.result.median();
    match found.and_then(|found| found.ends()) {
        Some(ends) if own.ends().is_none() => own.reaching(ends),
        _ => own,
    }
}

fn time_of_one(figure: &Figure<Transfer>) -> Estimate {
    time(figure, singles(figure).and_then(|singles| singles.time_ns))
}

/// The median of the round trips that were waited for one by one: of connecting, and from a request to the
/// first byte of its answer. On a machine that does other things they are longer than the path; slow start
/// then waits for them as well.
fn round_trip_ns(figures: &[Figure<Transfer>], path: PathKind) -> Option<f64> {
    let trips = figures
        .iter()
        .filter(|figure| is_real(figure) && figure.point == Fetch::of(path, figure.point.bytes(), 1, New))
        .filter_map(|figure| singles(figure)?.phases_ns.as_ref())
        .flat_map(|phases| ["connect", "first-byte"].map(|phase| phases.get(phase)))
        .flatten();
    median(trips.map(|own| own.value))
}

/// Everything.
pub(super) fn of(figures: &[Figure<Transfer>]) -> Findings {
    let mut paths: Vec<PathKind> = Vec::new();
    for figure in figures {
        if !paths.contains(&figure.point.path) {
            paths.push(figure.point.path);
        }
    }
    let known: Vec<Known<'_>> = paths.into_iter().map(|path| Known::of(figures, path)).collect();
    let about = |path: PathKind| known.iter().find(|known| known.path == path);
    // Paths that are a server that waits: no connection takes the time of a path there.
    let is_pretended = |path| of_path(figures, path).any(|figure| !is_real(figure));
    let kinds = kinds(figures);
    let swept: Vec<Fetch> = kinds.iter().copied().filter(|kind| !is_pretended(kind.path)).collect();
    let rounds = Rounds::of(figures);
    let crossings = rounds.estimates(&swept, |kind, figures| crossing(&medians(&steps(figures, *kind))));
    let bends = swept.into_iter().zip(crossings);
    let libraries = figures.iter().filter_map(|figure| Some(&figure.details.as_ref()?.libraries));
    let libraries = libraries.into_iter().find(|libraries| !libraries.is_empty());
    Findings {
        paths: known.iter().map(on_path).collect(),
        singles: kinds.into_iter().filter_map(|kind| single(about(kind.path)?, kind)).collect(),
        fits: known.iter().filter_map(|known| fitted(known, &rounds)).collect(),
        knees: bends.filter_map(|(kind, by_rounds)| bend(about(kind.path)?, kind, by_rounds)).collect(),
        ten_files: ten_files(figures),
        one_or_many: known.iter().flat_map(one_or_many).collect(),
        named: figures.iter().filter(|figure| figure.point.is_named()).map(named).collect(),
        python: libraries
            .into_iter()
            .flatten()
            .filter_map(|library| {
                Some(NotMeasured { engine: library.engine, not_measured: library.why_missing(figures)? })
            })
            .collect(),
    }
}

/// One transfer from the user's server, by its phases.
fn named(figure: &Figure<Transfer>) -> Named {
    let singles = singles(figure);
    let (reopened, bodies_bytes) = match figure.details.as_ref().map(|found| &found.server) {
        Some(Server::Named { reopened, bodies_bytes }) => (Some(*reopened), *bodies_bytes),
        _ => (None, None),
    };
    Named {
        connections: figure.point.connections,
        protocol: figure.point.protocol,
        time_ns: time_of_one(figure),
        transfers: singles.map(|own| own.transfers),
        bodies_bytes,
        reopened,
        phases_ns: singles.and_then(|own| own.phases_ns.clone()),
    }
}

fn on_path(known: &Known<'_>) -> OnPath {
    let found = of_path(known.figures, known.path).next().and_then(|figure| figure.details.as_ref());
    OnPath {
        path: known.path,
        route: found.map(|found| found.route.clone()),
        congestion_control: found.and_then(|found| found.congestion_control().map(str::to_owned)),
        throughput_bytes_per_s: known.throughput,
    }
}

/// One transfer alone: its phases, what limits it, and the model beside it.
fn single(known: &Known<'_>, kind: Fetch) -> Option<Single> {
    let figure = at(known.figures, kind)?;
    let found = singles(figure)?;
    let model = modelled(known, kind).filter(|_| is_real(figure)).map(|(predicted, way, floor_ns)| {
        let time_ns = predicted.ns(way.rtt_ns, floor_ns);
        Modelled {
            round_trips: predicted.round_trips,
            slow_start: predicted.slow_start,
            rtt_ns: way.rtt_ns,
            link_ns: predicted.link_ns,
            floor_ns,
            time_ns,
            over_measured: time_of_one(figure).map(|measured| time_ns / measured),
        }
    });
    Some(Single {
        path: kind.path,
        file_bytes: kind.bytes(),
        connections: kind.connections,
        protocol: kind.protocol,
        time_ns: time_of_one(figure),
        phases_ns: found.phases_ns.clone(),
        goodput_bytes_per_s: found.goodput_bytes_per_s,
        verdict: judged(known, figure),
        model,
    })
}

/// The model of a transfer over an emulated path; the loopback has no round trip that could be told apart
/// from its software.
fn modelled(known: &Known<'_>, kind: Fetch) -> Option<(Predicted, Way, f64)> {
    if kind.path != PathKind::Emulated {
        return None;
    }
    let way = known.way()?;
    let floor_ns = known.floor_ns(kind).unwrap_or(0.0);
    let predicted = predict(way, kind.bytes() as f64, kind.handshakes(), known.growth);
    Some((predicted, way, floor_ns))
}

fn judged(known: &Known<'_>, figure: &Figure<Transfer>) -> Option<Verdict> {
    let found = singles(figure).filter(|_| is_real(figure))?;
    Some(verdict(&Evidence {
        alone: figure.point.concurrency == 1,
        client_cpu: found.client_cpu_share.unwrap_or(0.0),
        server_cpu: found.server_cpu_share.unwrap_or(0.0),
        goodput: found.goodput_bytes_per_s?.value,
        throughput: known.throughput.map(|own| own.value),
        until_first_byte_ns: found.until_first_byte_ns?,
        all_ns: figure.result.p50,
    }))
}

/// Single transfers on new connections as the model has them, with the measured ns.
fn modelled_sizes(known: &Known<'_>) -> Vec<(u64, Predicted, f64)> {
    kinds(known.figures)
        .into_iter()
        .filter(|kind| *kind == Fetch::of(known.path, kind.bytes(), 1, New))
        .filter_map(|kind| {
            let figure = at(known.figures, kind).filter(|figure| is_real(figure))?;
            let (predicted, ..) = modelled(known, kind)?;
            Some((kind.bytes(), predicted, figure.result.p50))
        })
        .collect()
}

/// Round trip and fixed part that fit the new connections best, and how far each size is off.
fn fitted(known: &Known<'_>, rounds: &Rounds<'_, Figure<Transfer>>) -> Option<Fitted> {
    let sizes = modelled_sizes(known);
    let of = |sizes: &[(u64, Predicted, f64)]| {
        let measured: Vec<(Predicted, f64)> =
            sizes.iter().map(|(_, predicted, ns)| (*predicted, *ns)).collect();
        fit(&measured)
    };
    let found = of(&sizes)?;
    let residuals = sizes.iter().map(|(file_bytes, predicted, ns)| Residual {
        file_bytes: *file_bytes,
        model_over_measured: predicted.ns(found.rtt_ns, found.floor_ns) / ns,
    });
    // A round with fewer sizes fits another line.
    let again = |figures: &[Figure<Transfer>]| {
        let own = modelled_sizes(&Known::of(figures, known.path));
        of(&own).filter(|_| own.len() == sizes.len())
    };
    Some(Fitted {
        path: known.path,
        rtt_ns: rounds.estimate(|figures| Some(again(figures)?.rtt_ns)),
        floor_ns: rounds.estimate(|figures| Some(again(figures)?.floor_ns)),
        residuals: residuals.collect(),
    })
}

/// The sweep of one kind, by concurrency: of what has a rate.
fn steps(figures: &[Figure<Transfer>], of: Fetch) -> Vec<Step> {
    let mut steps: Vec<Step> = figures
        .iter()
        .filter(|figure| kind(figure.point) == Some(of))
        .filter_map(|figure| Some((figure.point.concurrency, singles(figure)?.goodput_bytes_per_s?)))
        .collect();
    steps.sort_by_key(|(concurrency, _)| *concurrency);
    steps
}

fn bend(known: &Known<'_>, kind: Fetch, by_rounds: Option<Estimate>) -> Option<Bend> {
    let one = at(known.figures, kind);
    let steps = steps(known.figures, kind);
    let Knee { concurrency, below, plateau, rise } = knee(&steps, by_rounds)?;
    let predicted = one.filter(|one| is_real(one)).and_then(|one| before(known, one));
    let found = rise.is_none();
    let factor = predicted.filter(|_| found).map(|predicted| {
        let (value, measured) = (predicted.value, concurrency.value);
        (value / measured).max(measured / value)
    });
    let curve = steps.iter().filter_map(|(concurrency, goodput)| {
        let figure = at(known.figures, Fetch { concurrency: *concurrency, ..kind })?;
        let found = singles(figure)?;
        Some(AtOnce {
            concurrency: *concurrency,
            goodput_bytes_per_s: *goodput,
            time_ns: figure.result.median(),
            p99_ns: found.p99_ns,
            little: found.little.clone(),
            verdict: judged(known, figure),
        })
    });
    Some(Bend {
        path: kind.path,
        file_bytes: kind.bytes(),
        connections: kind.connections,
        protocol: kind.protocol,
        knee: found.then_some(concurrency),
        below: below.filter(|_| found),
        one_step: found.then(|| below.is_none_or(|below| one_step(below, concurrency.value))),
        plateau_bytes_per_s: found.then_some(plateau),
        at_least: (!found).then_some(concurrency.value),
        not_found: rise.map(|rise| {
            format!(
                "the goodput still rises, {:.2}-fold from {} concurrent transfers to {}: there is no \
                    plateau yet",
                rise.times, rise.from, rise.to
            )
        }),
        predicted,
        factor,
        verified: factor.map(|factor| factor <= FACTOR),
        curve: curve.collect(),
    })
}

/// Whether there is nothing of the grid between the two.
fn one_step(below: u32, at: f64) -> bool {
    !GRID.iter().any(|many| below < *many && f64::from(*many) < at)
}

/// The knee predicted from one transfer and one throughput, with the range that theirs give it.
fn before(known: &Known<'_>, one: &Figure<Transfer>) -> Option<Estimate> {
    let throughput = known.throughput?;
    let singles = singles(one)?;
    let cpu = singles.client_cpu_share?.max(singles.server_cpu_share?);
    let p50 = one.result.p50;
    let value = predicted(one.point.bytes() as f64, p50, cpu * p50, throughput.value);
    Some(product(value, &[time_of_one(one), throughput]))
}

/// Sets of ten files by six, against one worker.
fn ten_files(figures: &[Figure<Transfer>]) -> Vec<TenFiles> {
    figures
        .iter()
        .filter(|figure| figure.point.is_ten() && is_real(figure))
        .map(|figure| {
            let point = figure.point;
            let workers = point.concurrency;
            // The sets by other numbers of workers are compared with the sequential ones of the experiment.
            let experiment = at(figures, Fetch { concurrency: POOL, ..point });
            let alone = experiment.and_then(|other| sets(other)?.sequential_ns);
            let pool = time(figure, sets(figure).and_then(|own| own.pool_ns));
            let compared = || alone.map(|alone| product(alone.value / pool.value, &[alone, pool]));
            let of_six = workers == POOL;
            TenFiles {
                path: point.path,
                file_bytes: point.file_bytes,
                connections: point.connections,
                engine: point.engine,
                workers,
                files: FILES,
                sequential_ns: alone,
                pool_ns: pool,
                speed_up: sets(figure).and_then(|own| own.speed_up).or_else(compared),
                ceiling: f64::from(FILES) / f64::from(FILES.div_ceil(workers)),
                order: if of_six { "A B B A" } else { "random, against the sequential sets of six workers" },
            }
        })
        .collect()
}

/// One large file against ten small ones of the same total, one after the other and by a pool: 1 MiB and ten
/// files of 100 KiB (2 % less).
fn one_or_many(known: &Known<'_>) -> Vec<OneOrMany> {
    [New, Kept]
        .into_iter()
        .filter_map(|connections| {
            let one = at(known.figures, Fetch::of(known.path, MIB, 1, connections));
            let one = one.filter(|one| is_real(one))?;
            let ten = at(known.figures, Fetch::ten(known.path, USUAL, connections, Engine::Latlab))?;
            let total_bytes = USUAL * u64::from(FILES);
            let share = total_bytes as f64 / MIB as f64;
            let one_ns = time_of_one(one).map(|ns| ns * share);
            let Experiment { sequential_ns, pool_ns, .. } = sets(ten)?;
            let many_ns = (*sequential_ns)?;
            Some(OneOrMany {
                path: known.path,
                connections,
                total_bytes,
                one_ns,
                many_ns,
                pool_ns: time(ten, *pool_ns),
                many_over_one: product(many_ns.value / one_ns.value, &[many_ns, one_ns]),
                pool_over_one: ratio(&ten.result, &one.result).map(|times| times / share),
            })
        })
        .collect()
}

/// What to measure next to know each knee to a step of the grid.
pub(super) fn closer(figures: &[Figure<Transfer>], most: u32) -> Vec<Fetch> {
    let grid: Vec<u32> = GRID.into_iter().filter(|many| *many <= most).collect();
    kinds(figures)
        .into_iter()
        .filter(|kind| kind.bytes() > KIB && kind.bytes() < LARGE)
        .filter_map(|kind| {
            let medians = medians(&steps(figures, kind));
            if medians.len() < 3 {
                return None;
            }
            Some(Fetch { concurrency: next(&medians, &grid)?, ..kind })
        })
        .collect()
}
