use latlab_harness::{AnyProbe as _, Erased, PointFields as _, PointResult};
use latlab_probes_testing as testing;

use super::*;
use crate::planted::on_a_disk;

const MEMORY: u64 = 64 << 20;

fn planned(profile: Profile) -> Vec<Planned<Reads>> {
    let mut env = testing::env_of_one_cpu(MEMORY);
    env.settings.profile = profile;
    Rate.plan(&env).points
}

#[test]
fn rates_of_ten_and_below_are_left_to_the_thorough_profile() {
    let Some(_) = on_a_disk(&Erased(Rate), testing::env_of_one_cpu(MEMORY)) else { return };
    let rates =
        |profile| -> Vec<u64> { planned(profile).iter().map(|planned| planned.point.rate_per_s).collect() };
    assert_eq!(rates(Profile::Quick), [1_000, 100]);
    assert!(rates(Profile::Standard).iter().all(|rate| *rate >= 100));
    assert!(rates(Profile::Thorough).contains(&1));
}

#[test]
fn the_points_of_each_profile_fit_their_seconds_and_64_mib() {
    for (profile, seconds) in [(Profile::Quick, 0.6), (Profile::Standard, 2.5), (Profile::Thorough, 20.0)] {
        let least: f64 =
            planned(profile).iter().map(|planned| 6.0 * (planned.setup_s + planned.block_s)).sum();
        assert!(least < seconds, "{profile:?}: {least}");
        // A stall is not left out because something else on this machine was slow too.
        assert!(planned(profile).iter().all(|planned| planned.cache_scope == CacheScope::Disturbances));
    }
    assert!(Rate.plan(&testing::env(MEMORY)).memory_bytes <= MEMORY);
}

#[test]
fn the_curve_comes_in_the_order_of_its_rates() {
    let offered = Offered { held_back: Some(3.into()), ..Offered::default() };
    let figure = |rate_per_s: u64, p50: f64| {
        let point = Reads { rate_per_s, block_bytes: KIB_4, path: DIRECT, engine: Engine::IoUring };
        let details = Details { offered: offered.clone(), ..Details::default() };
        Figure { point, details: Some(details), result: PointResult::new(point.to_point(), p50) }
    };
    let header = testing::header(&testing::env(MEMORY));
    let findings = Rate.conclude(&header, &[figure(1_000, 104e3), figure(100, 200e3)]);
    let findings = serde_json::json!(findings);
    assert_eq!(findings["curve"][0]["rate_per_s"], 100);
    assert_eq!(findings["curve"][1]["held_back"], 3);
    assert_eq!(findings["sanity"][0]["holds"], true);
}

#[test]
fn reads_at_a_rate_are_counted_from_their_due_times_and_prove_themselves() {
    let Some(env) = on_a_disk(&Erased(Rate), testing::env(MEMORY)) else { return };
    let mut points = Erased(Rate).points(&env);
    points.retain(|planned| planned.point.rate_per_s == Some(1_000));
    let mut kept = testing::assert_proved(&Erased(Rate), &env, &points);
    let findings = kept.remove(0).findings.expect("findings");
    for name in ["offered_per_s", "achieved_per_s", "held_back", "service_p50_ns"] {
        assert!(findings[name].is_number(), "{name}");
    }
}
