use latlab_harness::{PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;

const URL: &str = "http://192.0.2.1/";

fn settings(profile: Profile, url: Option<&str>) -> Settings {
    Settings { profile, url: url.map(str::to_owned), ..Settings::default() }
}

#[test]
fn the_quick_profile_asks_only_when_it_was_told_what_or_whom() {
    assert!(!Http.wanted(&settings(Profile::Quick, None)));
    assert!(Http.wanted(&settings(Profile::Quick, Some(URL))));
    let named = Settings { only: vec![Http::SPEC.id.to_owned()], ..settings(Profile::Quick, None) };
    assert!(Http.wanted(&named));
    assert!(Http.wanted(&settings(Profile::Standard, None)));
}

#[test]
#[cfg(target_os = "linux")]
fn the_points_fit_their_seconds_and_a_users_server_is_asked_politely() {
    let mut env = testing::env(64 << 20);
    for (profile, own_s, away_s) in
        [(Profile::Quick, 0.8, 3.0), (Profile::Standard, 0.5, 5.0), (Profile::Thorough, 5.0, 20.0)]
    {
        for (url, seconds) in [(None, own_s), (Some(URL), away_s)] {
            env.settings = settings(profile, url);
            let Plan { points, memory_bytes, .. } = Http.plan(&env);
            assert!(memory_bytes <= env.memory_bytes);
            // Every point that can be reached has its six blocks, and all their time is asked for.
            let all: f64 = points.iter().map(|planned| BLOCKS as f64 * planned.block_s).sum();
            assert!((all / seconds - 1.0).abs() < 0.3, "{profile:?} {url:?}: {all}");
            // A stall is not left out because something else on this machine was slow too.
            assert!(points.iter().all(|planned| planned.cache_scope == CacheScope::Disturbances));
            let rates: Vec<u64> = points.iter().map(|planned| planned.point.rate_per_s).collect();
            assert!(url.is_none() || rates.iter().all(|rate| *rate <= 50), "{rates:?}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_rate_and_a_time_that_were_asked_for_are_kept() {
    let mut env = testing::env(64 << 20);
    env.settings = Settings {
        requests_per_s: Some(2_000),
        budget_s: Some(14.0),
        only: vec![Http::SPEC.id.to_owned()],
        ..settings(Profile::Thorough, Some(URL))
    };
    let [planned] = &Http.plan(&env).points[..] else {
        panic!("one rate");
    };
    assert_eq!(planned.point.rate_per_s, 2_000);
    assert!((planned.block_s * BLOCKS as f64 - 10.0).abs() < 0.1, "{planned:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_asked_for_is_not_put_under_it_and_it_says_so() {
    let mut env = testing::env(64 << 20);
    env.settings.delay_ms = Some(20.0);
    assert!(matches!(Http.plan(&env).support, Support::Degraded(reason) if reason.contains("--delay")));
}

#[test]
fn the_curve_comes_in_the_order_of_its_rates() {
    let figure = |rate_per_s: u64, p50: f64| {
        let point = Requests { transport: Transport::Tcp, rate_per_s, file_bytes: None };
        let details = Answers {
            server: "the URL's".to_owned(),
            ipv6: false,
            connections: CONNECTIONS,
            connections_opened: 32,
            least_body_bytes: None,
            most_body_bytes: None,
            offered: Offered { held_back: Some(3.into()), ..Offered::default() },
            late: 0,
        };
        Figure { point, details: Some(details), result: PointResult::new(point.to_point(), p50) }
    };
    let header = testing::header(&testing::env(64 << 20));
    let figures = [figure(1_000, 104e3), figure(100, 200e3)];
    let curve = Http.conclude(&header, &figures).expect("findings").curve;
    assert_eq!((curve[0].rate_per_s, curve[1].rate_per_s), (100, 1_000));
    assert_eq!(curve[1].offered.held_back, Some(3.into()));
}
