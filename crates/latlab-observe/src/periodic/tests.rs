use latlab_stats::rng::Rng;

use super::*;

/// A recording that begins some time after the clock was opened, as real ones do.
const FROM_NS: f64 = 7.3e8;

struct Recording {
    rng: Rng,
    samples: Vec<Sample>,
    seconds: f64,
}

impl Recording {
    fn of(seconds: f64, seed: u64) -> Self {
        Self { rng: Rng::new(seed), samples: Vec::new(), seconds }
    }

    fn push(&mut self, at_ns: f64, ns: f64) {
        if at_ns < FROM_NS + self.seconds * 1e9 {
            self.samples.push(Sample { at_ns, ns, interruption: crate::Interruption::default() });
        }
    }

    fn noise(mut self, per_s: f64) -> Self {
        let mut at = FROM_NS;
        while at < FROM_NS + self.seconds * 1e9 {
            at -= (1.0 - self.rng.uniform()).ln() / per_s * 1e9;
            let ns = 5_000.0 + 20_000.0 * self.rng.uniform();
            self.push(at, ns);
        }
        self
    }

    /// Ticks with jitter, of which some are missing; the period grows by `drift_ppm_per_s`.
    fn ticks_every(mut self, period_ns: f64, phase_ns: f64, missing: f64, drift_ppm_per_s: f64) -> Self {
        let (mut at, mut period) = (FROM_NS + phase_ns, period_ns);
        while at < FROM_NS + self.seconds * 1e9 {
            let jitter = 4_000.0 * self.rng.normal();
            let ns = 20_000.0 + 3_000.0 * self.rng.normal();
            if self.rng.uniform() >= missing {
                self.push(at + jitter, ns);
            }
            at += period;
            period *= 1.0 + drift_ppm_per_s * 1e-6 * period / 1e9;
        }
        self
    }

    fn sorted(mut self) -> Vec<Sample> {
        self.samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        // A thread has one gap at a time.
        self.samples.dedup_by(|later, earlier| later.at_ns < earlier.end_ns());
        self.samples
    }

    fn found(self) -> Vec<Interference> {
        let listened = [Span { from_ns: FROM_NS, to_ns: FROM_NS + self.seconds * 1e9 }];
        let samples = self.sorted();
        find_interference(&samples, &vec![true; samples.len()], &listened)
    }
}

fn assert_period(interference: &Interference, period_ns: f64) {
    let off_ppm = (interference.period_ns / period_ns - 1.0) * 1e6;
    assert!(off_ppm.abs() < 100.0, "{off_ppm} ppm off: {interference:?}");
}

#[test]
fn white_noise_has_no_interference() {
    let found: usize =
        (0..30).map(|seed| Recording::of(2.5, seed).noise(60.0 + 30.0 * seed as f64).found().len()).sum();
    assert_eq!(found, 0);
}

/// For docs/method/noise.md: `cargo test --release -p latlab-observe -- --ignored --nocapture`.
#[test]
#[ignore = "some minutes; the figure stands in docs/method/noise.md"]
fn the_rate_of_false_positives_in_five_hundred_recordings_of_white_noise() {
    let found = (0..500)
        .filter(|seed| {
            let per_s = 20.0 * 1.012_f64.powi(*seed);
            !Recording::of(10.0, 1_000 + u64::try_from(*seed).unwrap()).noise(per_s).found().is_empty()
        })
        .count();
    println!(
        "{found} of 500 recordings of 10 s of white noise, 20 to 8000 gaps a second, had periodic \
            interference"
    );
    assert_eq!(found, 0);
}

#[test]
fn bursts_are_no_interference() {
    let mut recording = Recording::of(6.0, 5);
    for _ in 0..60 {
        let start = FROM_NS + recording.rng.uniform() * 6e9;
        for step in 0..40 {
            recording.push(start + f64::from(step) * 60_000.0, 8_000.0);
        }
    }
    assert_eq!(recording.found(), []);
}

#[test]
fn a_tick_and_the_hosts_tick_are_both_found_in_noise() {
    let periodic = Recording::of(5.0, 1)
        .noise(100.0)
        .ticks_every(4e6, 1.1e6, 0.0, 0.0)
        .ticks_every(9.9998e6, 2.9e6, 0.04, 0.0)
        .found();
    assert_eq!(periodic.len(), 2, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert_period(&periodic[1], 9.9998e6);
    assert!((periodic[0].ticks as f64) > 1_200.0 && periodic[0].hit as f64 > 0.98 * periodic[0].ticks as f64);
    assert!(periodic[1].hit as f64 > 0.9 * periodic[1].ticks as f64);
    let off = (periodic[0].phase_ns - FROM_NS - 1.1e6).rem_euclid(4e6);
    assert!(!(10_000.0..=3.99e6).contains(&off), "phase {off}");
}

#[test]
fn two_periods_that_share_every_other_tick_keep_their_own_periods() {
    let periodic = Recording::of(5.0, 2)
        .noise(50.0)
        .ticks_every(4e6, 1e6, 0.0, 0.0)
        .ticks_every(1e7, 1e6, 0.0, 0.0)
        .found();
    assert_eq!(periodic.len(), 2, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert_period(&periodic[1], 1e7);
}

#[test]
fn missing_ticks_do_not_halve_the_rate() {
    let periodic = Recording::of(5.0, 3).noise(100.0).ticks_every(4e6, 5e5, 0.3, 0.0).found();
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert!((periodic[0].hit as f64 / periodic[0].ticks as f64 - 0.7).abs() < 0.05);
}

#[test]
fn a_slow_drift_is_followed() {
    // Over 10 s the ticks move by 100 us against a constant period: twice the window.
    let periodic = Recording::of(10.0, 4).noise(100.0).ticks_every(4e6, 5e5, 0.02, 2.0).found();
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert!(periodic[0].hit as f64 > 0.96 * periodic[0].ticks as f64, "{periodic:?}");
}

#[test]
fn a_period_that_nobody_foresaw_is_found() {
    let periodic = Recording::of(4.0, 6).noise(150.0).ticks_every(7.137e6, 5e5, 0.05, 0.0).found();
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 7.137e6);
}

#[test]
fn a_slow_period_needs_twenty_ticks() {
    let once_a_second =
        |seconds| Recording::of(seconds, 7).ticks_every(1e9, 5e5, 0.0, 0.0).noise(2.0).found();
    assert_eq!(once_a_second(10.0), []);
    let periodic = once_a_second(25.0);
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 1e9);
}

#[test]
fn an_expected_tick_during_which_the_thread_was_away_is_not_missing() {
    let mut recording = Recording::of(5.0, 8).ticks_every(4e6, 1e6, 0.0, 0.0);
    // The CPU is somebody else's for half of the time, without a period.
    let away: Vec<f64> =
        (0..100).map(|turn| FROM_NS + f64::from(turn) * 50e6 + 20e6 * recording.rng.uniform()).collect();
    recording.samples.retain(|sample| !away.iter().any(|at| sample.at_ns > *at && sample.at_ns < at + 25e6));
    for at in away {
        recording.push(at, 25e6);
    }
    let periodic = recording.found();
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert!(periodic[0].hit as f64 > 0.97 * periodic[0].ticks as f64, "{periodic:?}");
    assert!(periodic[0].ticks < 700);
}

#[test]
fn an_expected_tick_at_which_nobody_listened_is_not_missing() {
    let samples = Recording::of(8.0, 9).ticks_every(4e6, 1e6, 0.0, 0.0).sorted();
    let listened: Vec<Span> = (0..40)
        .map(|turn| FROM_NS + f64::from(turn) * 0.2e9)
        .map(|from_ns| Span { from_ns, to_ns: from_ns + 0.05e9 })
        .collect();
    let heard: Vec<Sample> = samples
        .into_iter()
        .filter(|sample| {
            listened.iter().any(|span| sample.at_ns >= span.from_ns && sample.end_ns() <= span.to_ns)
        })
        .collect();
    let periodic = find_interference(&heard, &vec![true; heard.len()], &listened);
    assert_eq!(periodic.len(), 1, "{periodic:?}");
    assert_period(&periodic[0], 4e6);
    assert!(periodic[0].hit as f64 > 0.98 * periodic[0].ticks as f64);
}

#[test]
fn an_expected_tick_claims_the_longest_gap_at_its_time_and_no_other() {
    let recording = Recording::of(4.0, 10).ticks_every(4e6, 1e6, 0.0, 0.0);
    let mut samples = recording.sorted();
    let ticks = samples.len();
    // Each tick is followed by a short exit of the hypervisor.
    let exits: Vec<Sample> = samples
        .iter()
        .map(|tick| Sample {
            at_ns: tick.end_ns() + 3_000.0,
            ns: 1_500.0,
            interruption: crate::Interruption::default(),
        })
        .collect();
    samples.extend(exits);
    samples.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    let listened = [Span { from_ns: FROM_NS, to_ns: FROM_NS + 4e9 }];
    let periodic = find_interference(&samples, &vec![true; samples.len()], &listened);
    assert_eq!(periodic[0].members.len(), ticks);
    assert!(periodic[0].members.iter().all(|&index| samples[index].ns > 5_000.0));
}

#[test]
fn a_gap_of_another_tick_that_lasts_across_an_expected_one_holds_it() {
    let mut samples = Recording::of(4.0, 11).ticks_every(4e6, 1e6, 0.0, 0.0).sorted();
    // Every tenth tick comes while something else is under way since 25 us.
    for tick in samples.iter_mut().step_by(10) {
        tick.at_ns -= 25_000.0;
        tick.ns += 20_000.0;
    }
    let listened = [Span { from_ns: FROM_NS, to_ns: FROM_NS + 4e9 }];
    let periodic = find_interference(&samples, &vec![true; samples.len()], &listened);
    assert_eq!(periodic[0].members.len(), samples.len());
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!(find_interference(&[], &[], &[]), []);
    let listened = [Span { from_ns: 0.0, to_ns: 1e9 }];
    assert_eq!(find_interference(&[], &[], &listened), []);
}
