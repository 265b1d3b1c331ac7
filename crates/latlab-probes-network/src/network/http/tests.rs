use super::*;
use latlab_probes_testing as testing;

const URL: &str = "http://192.0.2.1/";

fn settings(profile: Profile, url: Option<&str>) -> Settings {
    Settings { profile, url: url.map(str::to_owned), ..Settings::default() }
}

#[test]
fn the_quick_profile_asks_only_when_it_was_told_what_or_whom() {
    assert!(!Http.wanted(&settings(Profile::Quick, None)));
    assert!(Http.wanted(&settings(Profile::Quick, Some(URL))));
    let named = Settings { only: vec![SPEC.id.to_owned()], ..settings(Profile::Quick, None) };
    assert!(Http.wanted(&named));
    assert!(Http.wanted(&settings(Profile::Standard, None)));
}

#[test]
fn the_points_fit_their_seconds_and_a_users_server_is_asked_politely() {
    let mut env = testing::env(64 << 20);
    for (profile, own_s, away_s) in
        [(Profile::Quick, 0.8, 3.0), (Profile::Standard, 0.5, 5.0), (Profile::Thorough, 5.0, 20.0)]
    {
        for (url, seconds) in [(None, own_s), (Some(URL), away_s)] {
            env.settings = settings(profile, url);
            let points = Http.points(&env);
            // Every point that can be reached has its six blocks, and all their time is asked for.
            let all: f64 = points.iter().map(|planned| BLOCKS as f64 * planned.block_s).sum();
            assert!((all / seconds - 1.0).abs() < 0.3, "{profile:?} {url:?}: {all}");
            // A stall is not left out because something else on this machine was slow too.
            assert!(points.iter().all(|planned| planned.reach == Reach::Disturbances));
            let rates: Vec<u64> = points.iter().filter_map(|planned| planned.point.rate_per_s).collect();
            assert!(url.is_none() || rates.iter().all(|rate| *rate <= 50), "{rates:?}");
        }
    }
    assert!(Http.memory_bytes(&env) <= env.memory_bytes);
}

#[test]
fn a_rate_and_a_time_that_were_asked_for_are_kept() {
    let mut env = testing::env(64 << 20);
    env.settings = Settings {
        requests_per_s: Some(2_000),
        budget_s: Some(14.0),
        only: vec![SPEC.id.to_owned()],
        ..settings(Profile::Thorough, Some(URL))
    };
    let [planned] = &Http.points(&env)[..] else {
        panic!("one rate");
    };
    assert_eq!(planned.point.rate_per_s, Some(2_000));
    assert!((planned.block_s * BLOCKS as f64 - 10.0).abs() < 0.1, "{planned:?}");
}

#[test]
fn one_cpu_is_said_and_without_a_child_process_there_is_nobody_to_ask() {
    let mut env = testing::env_of_one_cpu(64 << 20);
    if cfg!(target_os = "linux") {
        assert!(matches!(Http.supports(&env), Support::Degraded(reason) if reason.contains("one CPU")));
    }
    env.settings.delay_ms = Some(20.0);
    if cfg!(target_os = "linux") {
        assert!(matches!(Http.supports(&env), Support::Degraded(reason) if reason.contains("--delay")));
    }
    env.child = None;
    assert!(matches!(Http.supports(&env), Support::No(_)));
}

#[test]
fn the_curve_comes_in_the_order_of_its_rates() {
    let result = |rate: u64, p50: f64| PointResult {
        findings: Some(json!({ "held_back": 3, "achieved_per_s": 990.0 })),
        ..PointResult::new(Point { rate_per_s: Some(rate), ..Point::default() }, p50)
    };
    let records =
        Http.conclude(&testing::header(&testing::env(64 << 20)), &[result(1_000, 104e3), result(100, 200e3)]);
    let findings = records[0].findings.clone().expect("findings");
    assert_eq!(findings["curve"][0]["rate_per_s"], 100);
    assert_eq!(findings["curve"][1]["held_back"], 3);
}
