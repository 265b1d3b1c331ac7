//! A profile is a deadline: who gets how many seconds of it.

use latlab_record::{Profile, Settings};
use latlab_stats::count::whole;

/// Seconds set aside for a probe in the quick, standard and thorough profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub [f64; 3]);

impl Share {
    fn of(self, profile: Profile) -> f64 {
        profile.of(self.0)
    }
}

/// Seconds of a run that are not measuring: starting the worker, describing the machine, calibrating the
/// clock, choosing the CPU, rendering the report.
const AROUND_S: [f64; 3] = [2.0, 2.5, 4.0];

/// Wall seconds of a run of all probes.
const WHOLE_S: [f64; 3] = [30.0, 90.0, 600.0];

/// Gives the probe at `place` what these shares leave over of the profile's time; nothing where they fill it.
pub fn give_the_rest(shares: &mut [Share], place: usize, profile: Profile) {
    let measuring: f64 = shares.iter().map(|share| share.of(profile)).sum();
    let left_s = Share(WHOLE_S).of(profile) - around_s(profile) - measuring;
    if let Some(share) = shares.get_mut(place) {
        *share = Share([share.of(profile) + left_s.max(0.0); 3]);
    }
}

/// Wall seconds that one pass of a run with these shares takes, all included.
pub fn pass_seconds(shares: &[Share], profile: Profile) -> f64 {
    let measuring: f64 = shares.iter().map(|share| share.of(profile)).sum();
    measuring + around_s(profile)
}

/// Wall seconds that a run takes at most, all included, however few its probes.
pub fn seconds(settings: &Settings) -> f64 {
    settings.budget_s.unwrap_or(Share(WHOLE_S).of(settings.profile))
}

/// Passes that a run with these shares has time for, as they are planned.
pub fn passes(shares: &[Share], settings: &Settings) -> u64 {
    let pass_s: f64 = shares.iter().map(|share| share.of(settings.profile)).sum();
    whole(seconds(settings) / pass_s.max(f64::MIN_POSITIVE)).max(1)
}

/// Seconds for each selected probe. A budget is split in the profile's proportions; what one probe leaves
/// over goes to those after it, because the scheduler works with the running sum as deadlines.
pub fn plan_shares(shares: &[Share], settings: &Settings) -> Vec<f64> {
    let own: Vec<f64> = shares.iter().map(|share| share.of(settings.profile)).collect();
    match settings.budget_s {
        None => own,
        Some(budget) => {
            // With a budget of a second, half of it is still for measuring.
            let measuring = (budget - around_s(settings.profile)).max(budget / 2.0);
            let sum: f64 = own.iter().sum();
            own.iter().map(|seconds| seconds / sum.max(f64::MIN_POSITIVE) * measuring).collect()
        }
    }
}

/// Seconds that are still needed when the last probe has ended: reading the run back, the table, the report.
const AFTER_S: [f64; 3] = [1.2, 2.0, 3.0];
/// Seconds until the measuring process looks at its clock for the first time: the command's own start and
/// that process's.
const BEFORE_S: f64 = 0.4;

/// Seconds of a run that are left for measuring, when the measuring process has spent `spent_s` on getting
/// ready: what the start did not need is measured with.
pub fn left_to_measure(settings: &Settings, spent_s: f64) -> f64 {
    let whole_s = seconds(settings);
    (whole_s - BEFORE_S - spent_s - Share(AFTER_S).of(settings.profile)).max(whole_s / 2.0)
}

fn around_s(profile: Profile) -> f64 {
    Share(AROUND_S).of(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: [Share; 2] = [Share([1.0, 2.0, 6.0]), Share([3.0, 9.0, 60.0])];

    #[test]
    fn a_profile_gives_each_probe_its_own_seconds() {
        let settings = Settings { profile: Profile::Quick, ..Settings::default() };
        assert_eq!(plan_shares(&SHARES, &settings), [1.0, 3.0]);
        assert!((pass_seconds(&SHARES, settings.profile) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn few_probes_have_the_profiles_time_and_all_probes_one_pass() {
        let standard = Settings::default();
        assert!((seconds(&standard) - 90.0).abs() < 1e-9);
        assert_eq!(passes(&SHARES, &standard), 8, "each takes 11 s of 90");
        let many = [SHARES[0], Share([25.0, 50.0, 500.0])];
        assert_eq!(passes(&many, &standard), 1, "52 s of 90");
        for (budget_s, expected) in [(3.0, 1), (30.0, 2)] {
            let with_budget = Settings { budget_s: Some(budget_s), ..Settings::default() };
            assert!((seconds(&with_budget) - budget_s).abs() < 1e-9);
            assert_eq!(passes(&SHARES, &with_budget), expected);
        }
    }

    #[test]
    fn a_budget_is_split_in_the_profiles_proportions_and_kept() {
        let settings = Settings { budget_s: Some(22.5), ..Settings::default() };
        let seconds = plan_shares(&SHARES, &settings);
        assert!((seconds.iter().sum::<f64>() - 20.0).abs() < 1e-9);
        assert!((seconds[1] / seconds[0] - 4.5).abs() < 1e-9);
    }

    #[test]
    fn the_rest_fills_a_profile_and_no_more() {
        let settings = Settings::default();
        let mut few = SHARES;
        give_the_rest(&mut few, 1, settings.profile);
        assert_eq!(few[0], SHARES[0]);
        assert!((pass_seconds(&few, settings.profile) - 90.0).abs() < 1e-9);
        let mut many = [Share([30.0, 90.0, 600.0]), SHARES[1]];
        give_the_rest(&mut many, 1, settings.profile);
        assert!((many[1].of(settings.profile) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn what_the_start_did_not_need_is_measured_with() {
        let settings = Settings { budget_s: Some(5.0), profile: Profile::Quick, ..Settings::default() };
        let left_s = |spent_s| left_to_measure(&settings, spent_s);
        assert!((left_s(0.4) - 3.0).abs() < 1e-9, "{}", left_s(0.4));
        assert!((left_s(10.0) - 2.5).abs() < 1e-9, "half is for measuring");
    }

    #[test]
    fn even_a_tiny_budget_leaves_time_to_measure() {
        let settings = Settings { budget_s: Some(1.0), ..Settings::default() };
        assert!(plan_shares(&SHARES, &settings).iter().sum::<f64>() >= 0.5);
    }
}
