use super::*;
use latlab_probes_testing as testing;

const MEMORY: u64 = 64 << 20;

fn planned(profile: Profile) -> Vec<Planned> {
    let mut env = testing::env_of_one_cpu(MEMORY);
    env.settings.profile = profile;
    Rate.points(&env)
}

#[test]
fn rates_of_ten_and_below_are_left_to_the_thorough_profile() {
    let rates = |profile| -> Vec<Option<u64>> {
        planned(profile).iter().map(|planned| planned.point.rate_per_s).collect()
    };
    assert_eq!(rates(Profile::Quick), [Some(1_000), Some(100)]);
    assert!(rates(Profile::Standard).iter().all(|rate| *rate >= Some(100)));
    assert!(rates(Profile::Thorough).contains(&Some(1)));
}

#[test]
fn the_points_of_each_profile_fit_their_seconds_and_64_mib() {
    for (profile, seconds) in [(Profile::Quick, 0.6), (Profile::Standard, 2.5), (Profile::Thorough, 20.0)] {
        let least: f64 =
            planned(profile).iter().map(|planned| 6.0 * (planned.setup_s + planned.block_s)).sum();
        assert!(least < seconds, "{profile:?}: {least}");
        // A stall is not left out because something else on this machine was slow too.
        assert!(planned(profile).iter().all(|planned| planned.reach == Reach::Disturbances));
    }
    assert!(Rate.memory_bytes(&testing::env(MEMORY)) <= MEMORY);
}

#[test]
fn the_curve_comes_in_the_order_of_its_rates() {
    let result = |rate: u64, p50: f64| PointResult {
        findings: Some(json!({ "held_back": 3, "achieved_per_s": 990.0 })),
        ..PointResult::new(Point { rate_per_s: Some(rate), ..Point::default() }, p50)
    };
    let records =
        Rate.conclude(&testing::header(&testing::env(MEMORY)), &[result(1_000, 104e3), result(100, 200e3)]);
    let findings = records[0].findings.clone().expect("findings");
    assert_eq!(findings["curve"][0]["rate_per_s"], 100);
    assert_eq!(findings["curve"][1]["held_back"], 3.0);
    assert_eq!(findings["sanity"][0]["holds"], true);
}

#[test]
fn reads_at_a_rate_are_counted_from_their_due_times_and_prove_themselves() {
    let env = testing::env(MEMORY);
    if matches!(Rate.supports(&env), Support::No(_)) {
        return;
    }
    let mut points = Rate.points(&env);
    points.retain(|planned| planned.point.rate_per_s == Some(1_000));
    let mut kept = testing::assert_proved(&Rate, &env, &points);
    let findings = kept.remove(0).findings.expect("findings");
    for name in ["offered_per_s", "achieved_per_s", "held_back", "service_p50_ns"] {
        assert!(findings[name].is_number(), "{name}");
    }
}
