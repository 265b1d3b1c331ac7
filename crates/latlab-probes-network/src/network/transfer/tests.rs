use serde_json::{Value, json};

use latlab_record::Estimate;

use super::*;
use crate::peer::{LOOPBACK, NAMED_MOST_BLOCKS};
use latlab_probes_testing as testing;

fn result(point: Point, p50: f64, findings: Value) -> PointResult {
    PointResult {
        interval: Some([p50 * 0.98, p50 * 1.02]),
        findings: Some(findings),
        ..PointResult::new(point, p50)
    }
}

/// 20 ms, 25 MB/s at most, 1 % of a CPU.
fn transferred(point: Point, p50: f64, goodput: f64) -> PointResult {
    let findings = json!({
        "goodput_bytes_per_s": { "value": goodput, "low": 0.99 * goodput, "high": 1.01 * goodput },
        "throughput_bytes_per_s": { "value": 25e6, "low": 24e6, "high": 26e6 },
        "until_first_byte_ns": 41e6,
        "phases_ns": { "connect": 20.2e6, "first-byte": 20.6e6 },
        "client_cpu_share": 0.01,
        "server_cpu_share": 0.005,
        "route": { "kind": "delay-line", "rtt_ns": 20_000_000, "least_rtt_ns": 20_100_000 },
    });
    result(point, p50, findings)
}

#[test]
fn the_model_the_knee_and_the_verdict_stand_beside_the_measurement() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    env.settings.rate_mbit = Some(200.0);
    let one_ns = 0.104e9;
    let alone = USUAL as f64 * 1e9 / one_ns;
    let mut results: Vec<PointResult> = [1, 2, 4, 8, 16, 24, 32, 64]
        .into_iter()
        .map(|many| {
            let goodput = (f64::from(many) * alone).min(24e6);
            let p50 = one_ns.max(f64::from(many) * USUAL as f64 * 1e9 / 24e6);
            transferred(transfers(EMULATED, USUAL, many, NEW), p50, goodput)
        })
        .collect();
    results.push(transferred(transfers(EMULATED, KIB, 1, NEW), 40.6e6, 25e3));
    results.push(transferred(transfers(EMULATED, MIB, 1, NEW), 0.170e9, 6e6));
    results.push(transferred(transfers(EMULATED, LARGE, 1, KEPT), 0.44e9, 24e6));
    let set = json!({ "sequential_ns": 1.04e9, "pool_ns": 0.21e9, "speed_up": { "value": 4.95, "low": 4.9, "high": 5.0 } });
    results.push(result(ten_files(EMULATED, USUAL, NEW, OWN), 0.21e9, set));
    let found = Transfer.conclude(&testing::header(&env), &results);
    let found = found[0].findings.as_ref().expect("findings");

    let knee = &found["knees"][0];
    // 80 % of 24 MB/s: 19.5 as fast as one alone.
    assert_eq!((&knee["knee"]["value"], &knee["below"]), (&json!(24.0), &json!(16)));
    // Twenty lie between.
    assert_eq!((&knee["one_step"], &knee["knee"]["low"]), (&json!(false), &json!(17.0)));
    assert_eq!(knee["verified"], json!(true), "{knee}");
    let foretold = Estimate::read(&knee["foretold"]).expect("foretold");
    let [low, high] = foretold.ends().expect("both have one");
    let foretold = foretold.value;
    assert!(low < foretold && foretold < high);
    assert!((foretold - 0.8 * 25e6 / alone).abs() < 0.5, "{foretold}");

    let single = |bytes: u64| {
        found["singles"]
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["file_bytes"] == json!(bytes) && row["connections"] == json!(NEW))
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
    let env = testing::env(64 << 20);
    let link_ns = |rate: Value| {
        let mut one = transferred(transfers(EMULATED, MIB, 1, NEW), 0.2e9, 5e6);
        one.findings.as_mut().expect("findings")["route"]["rate_bit_per_s"] = rate;
        let found = Transfer.conclude(&testing::header(&env), &[one]);
        let found = found[0].findings.as_ref().expect("findings");
        found["singles"][0]["model"]["link_ns"].as_f64().expect("a model")
    };
    assert!(link_ns(Value::Null).abs() < 1.0);
    // 100 Mbit/s are full after three windows: most of 1 MiB takes its time on the link.
    assert!(link_ns(json!(1e8)) > 10e6);
}

#[test]
fn a_server_that_waits_is_no_path_and_nothing_but_the_first_byte_is_concluded() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    let waiting = |mut own: PointResult| {
        own.findings.as_mut().expect("findings")["route"] =
            json!({ "kind": "application", "rtt_ns": 20_000_000 });
        own
    };
    let results: Vec<PointResult> =
        [1, 2, 4].map(|many| waiting(transferred(transfers(EMULATED, USUAL, many, NEW), 21e6, 5e6))).into();
    let found = Transfer.conclude(&testing::header(&env), &results);
    let found = found[0].findings.as_ref().expect("findings");
    assert!(found["singles"][0]["model"].is_null());
    assert!(found["singles"][0]["verdict"].is_null());
    assert_eq!(found["knees"], json!([]));
}

#[test]
fn steps_are_added_where_a_sweep_bends_and_beyond_an_end_that_rises() {
    let sweep = |rates: [(u32, f64); 6]| -> Vec<PointResult> {
        rates.map(|(many, goodput)| transferred(transfers(LOOPBACK, USUAL, many, NEW), 1.0, goodput)).into()
    };
    let added = |results: &[PointResult]| {
        let planned = Transfer.refine(&testing::env(64 << 20), results);
        planned.iter().filter_map(|planned| planned.point.concurrency).collect::<Vec<_>>()
    };
    let bent = [(2, 2.0), (4, 4.0), (8, 8.0), (16, 8.4), (32, 8.5), (64, 8.4)];
    assert_eq!(added(&sweep(bent)), [6]);
    let rising = [(2, 2.0), (4, 4.0), (8, 8.0), (16, 15.0), (32, 28.0), (64, 40.0)];
    assert_eq!(added(&sweep(rising)), [96]);
    let knee = Transfer.conclude(&testing::header(&testing::env(64 << 20)), &sweep(rising));
    let knee = &knee[0].findings.as_ref().expect("findings")["knees"][0];
    assert!(knee["knee"].is_null() && knee["at_least"] == json!(64.0), "{knee}");
    assert!(knee["not_found"].as_str().is_some_and(|why| why.contains("1.43-fold from 32 at once to 64")));
}

#[test]
fn a_step_without_rates_leaves_the_others_their_knee() {
    let mut results: Vec<PointResult> = [(2, 2.0), (4, 4.0), (8, 8.0), (16, 8.4), (32, 8.5)]
        .map(|(many, goodput)| transferred(transfers(LOOPBACK, USUAL, many, NEW), 1.0, goodput))
        .into();
    let found = results[0].findings.as_mut().expect("findings");
    found["goodput_bytes_per_s"] = Value::Null;
    let concluded = Transfer.conclude(&testing::header(&testing::env(64 << 20)), &results);
    let found = concluded[0].findings.as_ref().expect("findings");
    assert_eq!(found["knees"][0]["knee"], json!({ "value": 8.0, "low": 5.0, "high": 9.0 }));
}

#[test]
fn an_interval_reaches_to_the_figure_that_it_stands_beside() {
    // What came is rounded to a step of its histogram, the medians of the blocks are not.
    let mut one = transferred(transfers(EMULATED, USUAL, 1, NEW), 1e8, 1e6);
    one.interval = None;
    one.findings.as_mut().expect("findings")["time_ns"] =
        json!({ "value": 1.015e8, "low": 1.01e8, "high": 1.02e8 });
    let concluded = Transfer.conclude(&testing::header(&testing::env(64 << 20)), &[one]);
    let found = concluded[0].findings.as_ref().expect("findings");
    assert_eq!(found["singles"][0]["time_ns"], json!({ "value": 1e8, "low": 1e8, "high": 1.02e8 }));
}

#[test]
fn the_users_server_is_asked_one_by_one_and_nothing_is_concluded_but_its_phases() {
    let mut env = testing::env(64 << 20);
    env.settings.url = Some("https://example.org/file".to_owned());
    let points = Transfer.points(&env);
    let named: Vec<_> = points.iter().filter(|planned| is_named(&planned.point)).collect();
    assert_eq!(named.len(), 2);
    assert!(
        named
            .iter()
            .all(|planned| planned.point.concurrency == Some(1) && planned.most_blocks == NAMED_MOST_BLOCKS)
    );
    assert_eq!(named[0].point.protocol.as_deref(), Some(HTTPS));
    let found = json!({ "phases_ns": { "connect": 9e6 }, "time_ns": { "value": 4.5e7, "low": 4e7, "high": 5e7 }, "bodies_bytes": [5, 7] });
    let mut own = result(named[0].point.clone(), 4.4e7, found);
    own.interval = None;
    let concluded = Transfer.conclude(&testing::header(&env), &[own]);
    let found = concluded[0].findings.as_ref().expect("findings");
    assert_eq!(found["named"][0]["time_ns"], json!({ "value": 4.4e7, "low": 4e7, "high": 5e7 }));
    assert_eq!((&found["singles"], &found["knees"]), (&json!([]), &json!([])));
}

#[test]
fn sets_of_a_millisecond_are_repeated_and_long_ones_are_not() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    let of = |path, engine| sets(&env, &ten_files(path, USUAL, NEW, engine));
    assert!(of(LOOPBACK, OWN) > 10);
    assert_eq!(of(EMULATED, OWN), 1);
}

#[test]
fn over_a_path_two_blocks_are_one_of_the_experiment() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    let far = ten_files(EMULATED, USUAL, NEW, OWN);
    assert_eq!(
        [0, 1, 2].map(|blocks| order(&far, blocks)),
        [&[false, true][..], &[true, false], &[false, true]]
    );
    assert_eq!(order(&ten_files(LOOPBACK, USUAL, NEW, OWN), 1), [false, true, true, false]);
    // One after the other and by six, 100 ms each.
    let block_s = planned(&env, 2, far).block_s;
    assert!((1.2..1.3).contains(&block_s), "{block_s}");
}

#[test]
fn ten_files_on_kept_connections_cost_what_opening_them_costs_too() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    let all_s =
        |connections, workers| many_s(&env, &ten_files(EMULATED, USUAL, connections, OWN), FILES, workers);
    // A connection's first file starts slowly, on a round trip of 20 ms 100 ms in all; each of the nine others takes one.
    assert!((0.25..0.35).contains(&all_s(KEPT, 1)), "{}", all_s(KEPT, 1));
    assert!((0.1..0.15).contains(&all_s(KEPT, POOL)), "{}", all_s(KEPT, POOL));
    assert!((1.0..1.1).contains(&all_s(NEW, 1)), "{}", all_s(NEW, 1));
}

#[test]
fn points_fit_small_machines_and_quick_ones_are_cheap() {
    let env = testing::env_of_one_cpu(64 << 20);
    let points = Transfer.points(&env);
    assert!(Transfer.plan(&env).memory_bytes <= env.memory_bytes);
    assert!(points.iter().all(|planned| planned.point.file_bytes <= Some(LARGE)));
    let first: f64 = points
        .iter()
        .filter(|planned| planned.priority == 0)
        .map(|planned| 6.0 * (planned.block_s + planned.setup_s))
        .sum();
    assert!(first < 1.0, "{first}");
    let lessons = |planned: &&Planned| planned.point.operation.as_deref() == Some(TEN_FILES);
    assert_eq!(points.iter().filter(lessons).filter(|planned| planned.priority == 0).count(), 2);
    let small = testing::env_of_one_cpu(BESIDE_BYTES + 4 * TRANSFER_BYTES);
    assert!(Transfer.points(&small).iter().all(|planned| planned.point.concurrency <= Some(POOL)));
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
    let mut env = testing::env(64 << 20);
    env.settings.profile = Profile::Standard;
    env.settings.delay_ms = Some(20.0);
    env.interpreter = Some(Box::new(Somewhere));
    env.packages = Some(packages.0.clone());
    env
}

#[test]
#[cfg(target_os = "linux")]
fn over_a_path_pythons_libraries_come_before_what_only_refines() {
    let packages = Packages::new("order");
    let env = far_with(&packages);
    let points = Transfer.points(&env);
    let ten = |connections, engine| {
        let wanted = ten_files(EMULATED, USUAL, connections, engine);
        let found = points.iter().find(|planned| planned.point == wanted);
        found.expect("planned").priority
    };
    for (engine, _) in work::LIBRARIES {
        assert!(ten(NEW, OWN) < ten(NEW, engine) && ten(NEW, engine) < ten(KEPT, engine));
        let last = ten(KEPT, engine);
        let refining = |planned: &&Planned| {
            let point = &planned.point;
            let few = point.operation.as_deref() == Some(TRANSFERS) && point.concurrency < Some(16);
            planned.priority <= last
                && few
                && point.concurrency > Some(1)
                && point.protocol.as_deref() == Some(HTTP)
        };
        assert_eq!(points.iter().find(refining).map(|planned| &planned.point), None);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_had_no_turn_is_named_with_the_budget_that_reaches_it() {
    let packages = Packages::new("turns");
    let env = far_with(&packages);
    let installed = json!(libraries(&env));
    let set =
        || json!({ "sequential_ns": 1.04e9, "pool_ns": 0.21e9, "speed_up": 4.95, "libraries": installed });
    let python = |results: &[PointResult]| {
        let found = Transfer.conclude(&testing::header(&env), results);
        found[0].findings.as_ref().expect("findings")["python"].clone()
    };
    let of =
        |connections, engine: &str| result(ten_files(EMULATED, USUAL, connections, engine), 0.21e9, set());
    let requests = work::LIBRARIES[0].0;
    let mut results = vec![of(NEW, OWN), of(NEW, requests), of(KEPT, requests)];
    let missing = python(&results);
    let [only] = missing.as_array().expect("a list").as_slice() else {
        panic!("{missing}");
    };
    assert_eq!(only["engine"], "python-httpx");
    let reason = only["not_measured"].as_str().expect("a reason");
    let (_, budget) = reason.split_once("--budget ").expect("a budget");
    let seconds: f64 = budget.split('s').next().expect("seconds").parse().expect("a number");
    assert!((60.0..250.0).contains(&seconds), "{reason}");
    results.extend([of(NEW, "python-httpx"), of(KEPT, "python-httpx")]);
    assert_eq!(python(&results), json!([]));
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_was_not_there_is_named_on_whatever_machine_the_run_is_read() {
    let bare = testing::env(64 << 20);
    let findings = json!({ "libraries": libraries(&bare) });
    let packages = Packages::new("elsewhere");
    let results = [result(transfers(LOOPBACK, USUAL, 1, NEW), 1e6, findings)];
    let concluded = Transfer.conclude(&testing::header(&far_with(&packages)), &results);
    let named = &concluded[0].findings.as_ref().expect("findings")["python"];
    assert_eq!(named.as_array().map(Vec::len), Some(2), "{named}");
    assert_eq!(
        (&named[0]["engine"], &named[0]["not_measured"]),
        (&json!("python-requests"), &json!("there is no interpreter that could run it"))
    );
}

#[test]
fn a_path_is_measured_before_its_control_and_large_files_want_a_rate_that_carries_them() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    env.settings.rate_mbit = Some(8.0);
    let points = Transfer.points(&env);
    assert!(points.iter().any(|planned| planned.point.path.as_deref() == Some(LOOPBACK)));
    let first = |path: &str| points.iter().position(|planned| planned.point.path.as_deref() == Some(path));
    assert!(first(EMULATED) < first(LOOPBACK));
    assert!(
        points
            .iter()
            .filter(|planned| planned.point.path.as_deref() == Some(EMULATED))
            .all(|planned| planned.point.file_bytes < Some(MIB))
    );
}

#[cfg(target_os = "linux")]
mod on_linux {
    use super::work::steady;
    use super::*;
    use crate::peer::{Fault, Pairs, Protocol, Stamped, Work};

    fn one_of_each() -> Vec<Planned> {
        let env = testing::env(64 << 20);
        let points = Transfer.points(&env);
        let mut kinds: Vec<(Option<String>, Option<String>, Option<String>)> = Vec::new();
        points
            .into_iter()
            .filter(|planned| {
                let point = &planned.point;
                let kind = (point.operation.clone(), point.connections.clone(), point.protocol.clone());
                let new = !kinds.contains(&kind);
                kinds.push(kind);
                new || (point.concurrency == Some(64) && point.file_bytes == Some(USUAL))
            })
            .collect()
    }

    #[test]
    fn every_kind_is_proved_on_one_block() {
        let env = testing::env(64 << 20);
        let points = one_of_each();
        assert!(points.len() >= 6, "{}", points.len());
        testing::assert_proved(&Transfer, &env, &points);
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
        let pair = pairs.on(LOOPBACK).expect("a client and a server");
        assert_eq!(pair.client.transfer(&work()).expect("transfers").stamped.len(), 4);
        pair.client.plant(Fault::Short).expect("planted");
        let error = pair.client.transfer(&work()).expect_err("999 bytes");
        assert!(error.to_string().contains("999"), "{error}");
    }

    #[test]
    fn a_transfer_that_is_not_told_of_fails_the_proof() {
        let env = testing::env(64 << 20);
        let points = Transfer.points(&env);
        let mut session = Transfer.open(&env, &points[..1]).expect("a session");
        session.select(&points[0].point).expect("selected");
        // Through the session's own pair: nothing but its proof is to notice.
        let proof = session.proof(&points[0].point, &latlab_harness::Sampled::default());
        assert_eq!(testing::failed(&proof), ["every body compared"], "no block was taken");
    }

    #[test]
    fn the_server_counts_a_request_that_the_client_forgets() {
        let env = testing::env(64 << 20);
        let mut pairs = Pairs::new(&env);
        let pair = pairs.on(LOOPBACK).expect("a client and a server");
        pair.client.plant(Fault::Forgets).expect("planted");
        let told = pair.client.transfer(&work()).expect("transfers");
        pair.connections += told.connections;
        pair.requests += told.stamped.len() as u64;
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
