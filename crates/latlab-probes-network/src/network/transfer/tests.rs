use std::collections::BTreeMap;

use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;
use latlab_record::Estimate;
use serde_json::{Value, json};

use super::details::{Experiment, Server, Singles, Times};
use super::*;
use crate::peer::{NAMED_MOST_BLOCKS, RouteDetails};

const OWN: Engine = Engine::Latlab;

/// A median with 2 % of it on either side.
fn figure(point: Fetch, p50: f64, route: RouteDetails, times: Times) -> Figure<Transfer> {
    let result =
        PointResult { interval: Some([p50 * 0.98, p50 * 1.02]), ..PointResult::new(point.to_point(), p50) };
    let server = Server::Own { congestion_control: None };
    let details = Found { route, libraries: Vec::new(), least_ns: None, server, times };
    Figure { point, details: Some(details), result }
}

fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, low: Some(low), high: Some(high) }
}

/// A path of 20 ms.
fn route(rate_bit_per_s: Option<u64>) -> RouteDetails {
    RouteDetails::Emulated {
        kind: "delay-line".to_owned(),
        rtt_ns: 20_000_000,
        least_rtt_ns: 20_100_000,
        rate_bit_per_s,
        why_not_better: Vec::new(),
    }
}

/// 25 MB/s at most, 1 % of a CPU.
fn singles(goodput: f64) -> Singles {
    let phases = [("connect", 20.2e6), ("first-byte", 20.6e6)];
    Singles {
        goodput_bytes_per_s: Some(estimate(goodput, 0.99 * goodput, 1.01 * goodput)),
        throughput_bytes_per_s: Some(estimate(25e6, 24e6, 26e6)),
        until_first_byte_ns: Some(41e6),
        phases_ns: Some(BTreeMap::from(phases.map(|(name, ns)| (name.to_owned(), Estimate::once(ns))))),
        client_cpu_share: Some(0.01),
        server_cpu_share: Some(0.005),
        ..Singles::default()
    }
}

fn transferred(point: Fetch, p50: f64, goodput: f64) -> Figure<Transfer> {
    figure(point, p50, route(None), Times::Single(singles(goodput)))
}

fn set(point: Fetch) -> Figure<Transfer> {
    let sets = Experiment {
        sequential_ns: Some(Estimate::once(1.04e9)),
        pool_ns: Some(Estimate::once(0.21e9)),
        speed_up: Some(estimate(4.95, 4.9, 5.0)),
        sets: 4,
    };
    figure(point, 0.21e9, route(None), Times::Ten(sets))
}

/// As records have it.
fn concluded(figures: &[Figure<Transfer>]) -> Value {
    let header = testing::header(&testing::env(64 << 20));
    json!(Transfer.conclude(&header, figures).expect("there are figures"))
}

/// Twenty milliseconds.
fn far() -> Env {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    env
}

#[test]
fn the_model_the_knee_and_the_verdict_stand_beside_the_measurement() {
    let of = |bytes, many, connections| Fetch::of(PathKind::Emulated, bytes, many, connections);
    let one_ns = 0.104e9;
    let alone = USUAL as f64 * 1e9 / one_ns;
    let mut figures: Vec<Figure<Transfer>> = [1, 2, 4, 8, 16, 24, 32, 64]
        .into_iter()
        .map(|many| {
            let goodput = (f64::from(many) * alone).min(24e6);
            let p50 = one_ns.max(f64::from(many) * USUAL as f64 * 1e9 / 24e6);
            transferred(of(USUAL, many, New), p50, goodput)
        })
        .collect();
    figures.push(transferred(of(KIB, 1, New), 40.6e6, 25e3));
    figures.push(transferred(of(MIB, 1, New), 0.170e9, 6e6));
    figures.push(transferred(of(LARGE, 1, Kept), 0.44e9, 24e6));
    figures.push(set(Fetch::ten(PathKind::Emulated, USUAL, New, OWN)));
    let found = concluded(&figures);

    let knee = &found["knees"][0];
    // 80 % of 24 MB/s: 19.5 as fast as one alone.
    assert_eq!((&knee["knee"]["value"], &knee["below"]), (&json!(24.0), &json!(16)));
    // Twenty lie between.
    assert_eq!((&knee["one_step"], &knee["knee"]["low"]), (&json!(false), &json!(17.0)));
    assert_eq!(knee["verified"], json!(true), "{knee}");
    let predicted = Estimate::read(&knee["foretold"]).expect("foretold");
    let [low, high] = predicted.ends().expect("both have one");
    let predicted = predicted.value;
    assert!(low < predicted && predicted < high);
    assert!((predicted - 0.8 * 25e6 / alone).abs() < 0.5, "{predicted}");

    let single = |bytes: u64| {
        found["singles"]
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["file_bytes"] == json!(bytes) && row["connections"] == json!(New))
            .expect("a row")
    };
    for bytes in [KIB, USUAL, MIB] {
        let off = single(bytes)["model"]["over_measured"]["value"].as_f64().expect("a model");
        assert!((off - 1.0).abs() < 0.1, "{bytes}: {off}");
    }
    assert_eq!(single(KIB)["verdict"], json!("round-trip-bound"));
    assert_eq!(single(MIB)["verdict"], json!("slow-start-bound"));
    assert_eq!(found["ten_files"][0]["ceiling"], json!(5.0));
    assert!(found["fits"][0]["rtt_ns"]["value"].as_f64().is_some_and(|rtt| (rtt - 20e6).abs() < 2e6));
    let many = &found["one_or_many"][0]["many_over_one"];
    assert!(many["value"].as_f64().is_some_and(|many| many > 5.0), "{many}");
}

#[test]
fn where_no_large_file_was_measured_the_model_takes_the_rate_that_was_asked_for() {
    let link_ns = |rate| {
        let point = Fetch::of(PathKind::Emulated, MIB, 1, New);
        let found = concluded(&[figure(point, 0.2e9, route(rate), Times::Single(singles(5e6)))]);
        found["singles"][0]["model"]["link_ns"].as_f64().expect("a model")
    };
    assert!(link_ns(None).abs() < 1.0);
    // 100 Mbit/s are full after three windows: most of 1 MiB takes its time on the link.
    assert!(link_ns(Some(100_000_000)) > 10e6);
}

#[test]
fn a_server_that_waits_is_no_path_and_nothing_but_the_first_byte_is_concluded() {
    let waits = || RouteDetails::Application {
        kind: "application".to_owned(),
        rtt_ns: 20_000_000,
        valid_for: "time to first byte only".to_owned(),
        why_not_better: vec!["no path".to_owned()],
    };
    let figures = [1, 2, 4].map(|many| {
        let point = Fetch::of(PathKind::Emulated, USUAL, many, New);
        figure(point, 21e6, waits(), Times::Single(singles(5e6)))
    });
    let found = concluded(&figures);
    assert!(found["singles"][0]["model"].is_null());
    assert!(found["singles"][0]["verdict"].is_null());
    assert_eq!(found["knees"], json!([]));
}

/// Goodput by concurrency, on the loopback.
fn sweep(rates: &[(u32, f64)]) -> Vec<Figure<Transfer>> {
    let of = |many| Fetch::of(PathKind::Loopback, USUAL, many, New);
    rates.iter().map(|(many, goodput)| transferred(of(*many), 1.0, *goodput)).collect()
}

#[test]
fn steps_are_added_where_a_sweep_bends_and_beyond_an_end_that_rises() {
    let added = |figures: &[Figure<Transfer>]| {
        let planned = Transfer.refine(&testing::env(64 << 20), figures);
        planned.iter().map(|planned| planned.point.concurrency).collect::<Vec<_>>()
    };
    let bent = [(2, 2.0), (4, 4.0), (8, 8.0), (16, 8.4), (32, 8.5), (64, 8.4)];
    assert_eq!(added(&sweep(&bent)), [6]);
    let rising = [(2, 2.0), (4, 4.0), (8, 8.0), (16, 15.0), (32, 28.0), (64, 40.0)];
    assert_eq!(added(&sweep(&rising)), [96]);
    let knee = &concluded(&sweep(&rising))["knees"][0];
    assert!(knee["knee"].is_null() && knee["at_least"] == json!(64.0), "{knee}");
    assert!(
        knee["not_found"]
            .as_str()
            .is_some_and(|why| why.contains("1.43-fold from 32 concurrent transfers to 64"))
    );
}

#[test]
fn a_step_without_rates_leaves_the_others_their_knee() {
    let mut figures = sweep(&[(2, 2.0), (4, 4.0), (8, 8.0), (16, 8.4), (32, 8.5)]);
    let details = figures[0].details.as_mut().expect("details");
    details.times = Times::Single(Singles { goodput_bytes_per_s: None, ..singles(1.0) });
    let found = concluded(&figures);
    assert_eq!(found["knees"][0]["knee"], json!({ "value": 8.0, "low": 5.0, "high": 9.0 }));
}

#[test]
fn an_interval_reaches_to_the_figure_that_it_stands_beside() {
    // What came is rounded to a step of its histogram, the medians of the blocks are not.
    let time_ns = Some(estimate(1.015e8, 1.01e8, 1.02e8));
    let times = Times::Single(Singles { time_ns, ..singles(1e6) });
    let mut one = figure(Fetch::of(PathKind::Emulated, USUAL, 1, New), 1e8, route(None), times);
    one.result.interval = None;
    let found = concluded(&[one]);
    assert_eq!(found["singles"][0]["time_ns"], json!({ "value": 1e8, "low": 1e8, "high": 1.02e8 }));
}

#[test]
fn the_users_server_is_asked_one_by_one_and_nothing_is_concluded_but_its_phases() {
    let mut env = testing::env(64 << 20);
    env.settings.url = Some("https://example.org/file".to_owned());
    let points: Vec<Fetch> = wanted(&env, PathKind::Url).into_iter().map(|(_, point)| point).collect();
    assert_eq!(points.len(), 2);
    let most_blocks = |point: &Fetch| point.planned(&env, 0).most_blocks;
    assert!(points.iter().all(|point| point.concurrency == 1 && most_blocks(point) == NAMED_MOST_BLOCKS));
    assert_eq!(points[0].protocol, Protocol::Tls);
    let times = Times::Single(Singles { time_ns: Some(estimate(4.5e7, 4e7, 5e7)), ..singles(1e6) });
    let route = RouteDetails::Real { kind: "url".to_owned() };
    let mut own = figure(points[0], 4.4e7, route, times);
    own.result.interval = None;
    let server = Server::Named { reopened: 1, bodies_bytes: Some([5, 7]) };
    own.details.as_mut().expect("details").server = server;
    let found = concluded(&[own]);
    let named = &found["named"][0];
    assert_eq!(named["time_ns"], json!({ "value": 4.4e7, "low": 4e7, "high": 5e7 }));
    assert_eq!((&named["reopened"], &named["bodies_bytes"]), (&json!(1), &json!([5, 7])));
    assert_eq!((&found["singles"], &found["knees"]), (&json!([]), &json!([])));
}

#[test]
fn details_are_read_as_they_were_written() {
    let alone = transferred(Fetch::of(PathKind::Emulated, USUAL, 1, New), 1e8, 1e6);
    for figure in [alone, set(Fetch::ten(PathKind::Emulated, USUAL, New, OWN))] {
        let written = json!(figure.details);
        let read: Found = serde_json::from_value(written.clone()).expect("details");
        assert_eq!(json!(read), written);
        assert_eq!(read.sets().is_some(), figure.point.is_ten());
    }
}

#[test]
fn sets_of_a_millisecond_are_repeated_and_long_ones_are_not() {
    let env = far();
    let of = |path| Fetch::ten(path, USUAL, New, OWN).sets(&env);
    assert!(of(PathKind::Loopback) > 10);
    assert_eq!(of(PathKind::Emulated), 1);
}

#[test]
fn over_a_path_two_blocks_are_one_of_the_experiment() {
    let over_a_path = Fetch::ten(PathKind::Emulated, USUAL, New, OWN);
    assert_eq!(
        [0, 1, 2].map(|blocks| over_a_path.order(blocks)),
        [&[false, true][..], &[true, false], &[false, true]]
    );
    let control = Fetch::ten(PathKind::Loopback, USUAL, New, OWN);
    assert_eq!(control.order(1), [false, true, true, false]);
    // One after the other and by six, 100 ms each.
    let block_s = over_a_path.planned(&far(), 2).block_s;
    assert!((1.2..1.3).contains(&block_s), "{block_s}");
}

#[test]
fn ten_files_on_kept_connections_cost_what_opening_them_costs_too() {
    let env = far();
    let all_s = |connections, workers| {
        Fetch::ten(PathKind::Emulated, USUAL, connections, OWN).many_s(&env, FILES, workers)
    };
    // A connection's first file starts slowly, on a round trip of 20 ms 100 ms in all; each of the nine
    // others takes one.
    assert!((0.25..0.35).contains(&all_s(Kept, 1)), "{}", all_s(Kept, 1));
    assert!((0.1..0.15).contains(&all_s(Kept, POOL)), "{}", all_s(Kept, POOL));
    assert!((1.0..1.1).contains(&all_s(New, 1)), "{}", all_s(New, 1));
}

#[test]
fn points_fit_small_machines_and_quick_ones_are_cheap() {
    let env = testing::env_of_one_cpu(64 << 20);
    let Plan { points, memory_bytes, .. } = Transfer.plan(&env);
    assert!(memory_bytes <= env.memory_bytes);
    assert!(points.iter().all(|planned| planned.point.bytes() <= LARGE));
    let of_first = || points.iter().filter(|planned| planned.priority == 0);
    let first_s: f64 = of_first().map(|planned| 6.0 * (planned.block_s + planned.setup_s)).sum();
    assert!(first_s < 1.0, "{first_s}");
    let lessons = of_first().filter(|planned| planned.point.is_ten()).count();
    assert_eq!(lessons, if work::HERE { 2 } else { 0 });
    let small = testing::env_of_one_cpu(BESIDE_BYTES + 4 * TRANSFER_BYTES);
    assert!(Transfer.plan(&small).points.iter().all(|planned| planned.point.concurrency <= POOL));
}

/// An interpreter that is only looked for.
struct Somewhere;

impl latlab_harness::Interpreter for Somewhere {
    fn name(&self) -> String {
        "CPython".to_owned()
    }

    fn executable(&self) -> Option<std::path::PathBuf> {
        Some("python".into())
    }

    fn compile(&self, _program: &str) -> Result<Box<dyn latlab_harness::Batch>, String> {
        Err("it compiles nothing".to_owned())
    }
}

/// A folder in which both libraries seem to be installed, removed with its end.
struct Packages(std::path::PathBuf);

impl Packages {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("latlab-packages-{name}-{}", std::process::id()));
        for package in ["requests", "httpx"] {
            std::fs::create_dir_all(folder.join(package)).expect("a folder for the test");
            std::fs::write(folder.join(package).join("__init__.py"), "").expect("a file");
        }
        Self(folder)
    }
}

impl Drop for Packages {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Twenty milliseconds, with both libraries installed beside the interpreter.
fn far_with(packages: &Packages) -> Env {
    let mut env = far();
    env.settings.profile = Profile::Standard;
    env.interpreter = Some(Box::new(Somewhere));
    env.packages = Some(packages.0.clone());
    env
}

#[test]
#[cfg(target_os = "linux")]
fn over_a_path_pythons_libraries_come_before_what_only_refines() {
    let packages = Packages::new("order");
    let points = Transfer.plan(&far_with(&packages)).points;
    let ten = |connections, engine| {
        let wanted = Fetch::ten(PathKind::Emulated, USUAL, connections, engine);
        let found = points.iter().find(|planned| planned.point == wanted);
        found.expect("planned").priority
    };
    for engine in Engine::LIBRARIES {
        assert!(ten(New, OWN) < ten(New, engine) && ten(New, engine) < ten(Kept, engine));
        let last = ten(Kept, engine);
        let refining = points.iter().find(|planned| {
            let point = planned.point;
            let few = !point.is_ten() && (2..16).contains(&point.concurrency);
            planned.priority <= last && few && point.protocol == Protocol::Plain
        });
        assert_eq!(refining.map(|planned| planned.point), None);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_had_no_turn_is_named_with_the_budget_that_reaches_it() {
    let packages = Packages::new("turns");
    let installed = work::libraries(&far_with(&packages));
    let of = |connections, engine| {
        let mut figure = set(Fetch::ten(PathKind::Emulated, USUAL, connections, engine));
        figure.details.as_mut().expect("details").libraries.clone_from(&installed);
        figure
    };
    let [requests, httpx] = Engine::LIBRARIES;
    let mut figures = vec![of(New, OWN), of(New, requests), of(Kept, requests)];
    let missing = concluded(&figures)["python"].clone();
    let [only] = missing.as_array().expect("a list").as_slice() else {
        panic!("{missing}");
    };
    assert_eq!(only["engine"], "python-httpx");
    let reason = only["not_measured"].as_str().expect("a reason");
    let (_, budget) = reason.split_once("--budget ").expect("a budget");
    let seconds: f64 = budget.split('s').next().expect("seconds").parse().expect("a number");
    assert!((60.0..250.0).contains(&seconds), "{reason}");
    figures.extend([of(New, httpx), of(Kept, httpx)]);
    assert_eq!(concluded(&figures)["python"], json!([]));
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_was_not_there_is_named_on_whatever_machine_the_run_is_read() {
    let mut one = transferred(Fetch::of(PathKind::Loopback, USUAL, 1, New), 1e6, 1e6);
    let libraries = work::libraries(&testing::env(64 << 20));
    one.details.as_mut().expect("details").libraries = libraries;
    let named = &concluded(&[one])["python"];
    assert_eq!(named.as_array().map(Vec::len), Some(2), "{named}");
    assert_eq!(
        (&named[0]["engine"], &named[0]["not_measured"]),
        (&json!("python-requests"), &json!("no interpreter can run it"))
    );
}

#[test]
fn a_path_is_measured_before_its_control_and_large_files_want_a_rate_that_carries_them() {
    let mut env = far();
    env.settings.rate_mbit = Some(8.0);
    let points = Transfer.plan(&env).points;
    let first = |path| points.iter().position(|planned| planned.point.path == path);
    if work::HERE {
        assert!(first(PathKind::Emulated) < first(PathKind::Loopback) && first(PathKind::Emulated).is_some());
    }
    let over_the_path = || points.iter().filter(|planned| planned.point.path == PathKind::Emulated);
    assert!(over_the_path().all(|planned| planned.point.bytes() < MIB));
}

#[cfg(target_os = "linux")]
mod on_linux {
    use latlab_harness::{AnyProbe as _, Erased, Session as _};

    use super::work::{Evidence, steady};
    use super::*;
    use crate::peer::{Fault, Pairs, Stamped, Work};

    fn one_of_each(env: &Env) -> Vec<latlab_harness::Planned> {
        let mut kinds = Vec::new();
        let mut all = Erased(Transfer).points(env);
        all.retain(|planned| {
            let point = &planned.point;
            let kind = (point.operation.clone(), point.connections.clone(), point.protocol.clone());
            let new = !kinds.contains(&kind);
            kinds.push(kind);
            new || (point.concurrency == Some(64) && point.file_bytes == Some(USUAL))
        });
        all
    }

    #[test]
    fn every_kind_is_proved_on_one_block() {
        let env = testing::env(64 << 20);
        let points = one_of_each(&env);
        assert!(points.len() >= 6, "{}", points.len());
        testing::assert_proved(&Erased(Transfer), &env, &points);
    }

    fn work() -> Work {
        Work {
            bytes: 1000,
            workers: 2,
            count: 4,
            kept: false,
            protocol: Protocol::Plain,
            patience: std::time::Duration::from_secs(10),
            library: None,
        }
    }

    #[test]
    fn a_body_that_is_too_short_is_no_transfer() {
        let env = testing::env(64 << 20);
        let mut pairs = Pairs::new(&env);
        let pair = pairs.on(PathKind::Loopback).expect("a client and a server");
        assert_eq!(pair.client.transfer(&work()).expect("transfers").stamped.len(), 4);
        pair.client.plant(Fault::Short).expect("planted");
        let error = pair.client.transfer(&work()).expect_err("999 bytes");
        assert!(error.to_string().contains("999"), "{error}");
    }

    #[test]
    fn a_transfer_that_is_not_reported_fails_the_proof() {
        let env = testing::env(64 << 20);
        let mut session = Transfer.open(&env, &[]).expect("a session");
        let point = Fetch::of(PathKind::Loopback, KIB, 1, New);
        session.select(&point).expect("selected");
        let proof = session.proof(&point, &Evidence::default());
        assert_eq!(testing::failed(&proof), ["every body compared"], "no block was taken");
    }

    #[test]
    fn the_server_counts_a_request_that_the_client_forgets() {
        let env = testing::env(64 << 20);
        let mut pairs = Pairs::new(&env);
        let pair = pairs.on(PathKind::Loopback).expect("a client and a server");
        pair.client.plant(Fault::Forgets).expect("planted");
        let reported = pair.client.transfer(&work()).expect("transfers");
        pair.connections += reported.connections;
        pair.requests += reported.stamped.len() as u64;
        let check = pair.counted().expect("a server of our own");
        assert!(!check.ok && check.detail.contains("3 answers"), "{}", check.detail);
    }

    #[test]
    fn rates_are_those_of_the_middle_and_littles_law_holds_there() {
        // Four workers, 100 ns a transfer, five rounds; starting up took 1000 ns for the first round.
        let stamped: Vec<Stamped> = (0..20)
            .map(|nth: u64| {
                let (round, begun) = (nth / 4, 1000 + (nth / 4) * 100);
                Stamped {
                    begun: if round == 0 { 1 } else { begun },
                    last_byte: begun + 100,
                    bytes: 50,
                    ..Stamped::default()
                }
            })
            .collect();
        let (rate, [under_way, per_s, mean_ns]) = steady(&stamped, 4).expect("a middle");
        assert!((per_s - 4.0 / 100e-9).abs() < 1.0, "{per_s}");
        assert!((rate - 50.0 * per_s).abs() < 1.0);
        assert!((under_way - 4.0).abs() < 1e-9 && (per_s * mean_ns * 1e-9 - under_way).abs() < 1e-6);
        assert!(steady(&[], 4).is_none());
    }
}
