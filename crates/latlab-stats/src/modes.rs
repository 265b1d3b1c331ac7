//! Whether single operations fall into several groups by how long they took: the modes of a histogram.
//!
//! ```text
//! buckets ─► counts on a logarithmic axis, smoothed ─► peaks, split at the valleys between them ─► neighbours joined that are not
//!            clearly two: shallow valley, too few samples, hardly apart
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::count::index;
use crate::weighted::quantile_counts;

/// A group of operations that took about as long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mode {
    /// Median of the group, ns.
    pub p50_ns: f64,
    /// Its 5 % quantile, ns.
    pub low_ns: f64,
    /// Its 95 % quantile, ns.
    pub high_ns: f64,
    /// Part of all operations.
    pub share: f64,
}

/// Bins of the logarithmic axis are at least this wide (natural logarithm): six of the histogram's own
/// buckets.
const BIN: f64 = 0.06;
/// The clock's step is at most half a bin: steps would look like peaks.
const STEPS_A_BIN: f64 = 2.0;
/// Weights of the smoothing, a binomial: counts of neighbouring bins are told apart by their noise otherwise.
const SMOOTHING: [f64; 5] = [1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];
/// A valley lies at or below this part of the lower one of its peaks.
const VALLEY: f64 = 0.5;
/// ... and below it by so many standard deviations of a count (Poisson), so that an empty bin by chance is no
/// valley.
const DEVIATIONS: f64 = 4.0;
/// A group holds at least this part of all operations, and this many.
const SHARE: f64 = 0.005;
const LEAST: f64 = 20.0;
/// Medians of neighbours are at least so far apart: a core's frequency and where a page lies in the caches
/// make less (30 % seen).
const APART: f64 = 1.4;

/// A stretch of bins that is one group.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// First bin.
    from: usize,
    /// First bin after it.
    to: usize,
}

/// The modes of `(value in ns, count)`, ascending; `step_ns` is the clock's step. One mode at least where
/// there is a sample.
pub fn modes(buckets: &[(f64, u64)], step_ns: f64) -> Vec<Mode> {
    let all: f64 = buckets.iter().map(|(_, count)| *count as f64).sum();
    let Some(lowest) = buckets.iter().map(|(ns, _)| *ns).find(|ns| *ns > 0.0) else { return Vec::new() };
    let median = quantile_counts(buckets, 0.5).max(lowest);
    let width = BIN.max(STEPS_A_BIN * step_ns / median);
    let bin_of = |ns: f64| index((ns.max(lowest) / lowest).ln() / width);
    let bins = buckets.last().map_or(0, |(ns, _)| bin_of(*ns)) + 1;
    let mut counts = vec![0.0; bins];
    for (ns, count) in buckets {
        counts[bin_of(*ns)] += *count as f64;
    }
    let smooth = smoothed(&counts);
    let mut stretches = between_valleys(&smooth);
    // The least convincing border goes first, until all convince.
    while let Some(index) = weakest(&stretches, &counts, &smooth, all, width) {
        stretches[index].to = stretches[index + 1].to;
        stretches.remove(index + 1);
    }
    stretches
        .iter()
        .filter_map(|stretch| {
            let own: Vec<(f64, u64)> = buckets
                .iter()
                .copied()
                .filter(|(ns, _)| (stretch.from..stretch.to).contains(&bin_of(*ns)))
                .collect();
            let held: f64 = own.iter().map(|(_, count)| *count as f64).sum();
            (held > 0.0).then(|| Mode {
                p50_ns: quantile_counts(&own, 0.5),
                low_ns: quantile_counts(&own, 0.05),
                high_ns: quantile_counts(&own, 0.95),
                share: held / all,
            })
        })
        .collect()
}

fn smoothed(counts: &[f64]) -> Vec<f64> {
    let half = SMOOTHING.len() / 2;
    (0..counts.len())
        .map(|bin| {
            SMOOTHING
                .iter()
                .enumerate()
                .filter_map(|(nth, weight)| {
                    let place = (bin + nth).checked_sub(half)?;
                    Some(weight * counts.get(place)?)
                })
                .sum()
        })
        .collect()
}

/// One stretch a peak, cut where the curve is lowest between two of them.
fn between_valleys(smooth: &[f64]) -> Vec<Stretch> {
    let mut cuts = Vec::new();
    let mut rising = true;
    let mut lowest = 0;
    for bin in 1..smooth.len() {
        let step = smooth[bin] - smooth[bin - 1];
        if step > 0.0 {
            if !rising {
                cuts.push(lowest);
            }
            rising = true;
        } else if step < 0.0 {
            rising = false;
            lowest = bin;
        }
    }
    let mut from = 0;
    let mut stretches: Vec<Stretch> =
        cuts.into_iter().map(|to| Stretch { from: std::mem::replace(&mut from, to), to }).collect();
    stretches.push(Stretch { from, to: smooth.len() });
    stretches
}

/// The stretch whose border to the next one convinces least, if one does not convince.
fn weakest(stretches: &[Stretch], counts: &[f64], smooth: &[f64], all: f64, width: f64) -> Option<usize> {
    let held = |stretch: &Stretch| counts[stretch.from..stretch.to].iter().sum::<f64>();
    let peak = |stretch: &Stretch| {
        (stretch.from..stretch.to).fold((stretch.from, 0.0), |best, bin| {
            if smooth[bin] > best.1 { (bin, smooth[bin]) } else { best }
        })
    };
    stretches
        .windows(2)
        .enumerate()
        .filter_map(|(index, pair)| {
            let (left, right) = (peak(&pair[0]), peak(&pair[1]));
            let lower = left.1.min(right.1);
            let valley = smooth[left.0..=right.0].iter().copied().fold(lower, f64::min);
            let least = held(&pair[0]).min(held(&pair[1]));
            let convinces = valley <= VALLEY * lower
                && lower - valley >= DEVIATIONS * lower.sqrt().min(least.sqrt() / 2.0)
                && least >= LEAST.max(SHARE * all)
                && (right.0 - left.0) as f64 * width >= APART.ln();
            // Few samples first: noise far out in the tail is joined before it is compared with anything
            // large.
            (!convinces).then_some((index, least))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::count::whole;
    use crate::rng::Rng;

    /// Buckets of 0.8 % of a power of two, as a run file has them.
    #[derive(Default)]
    struct Histogram(BTreeMap<u64, u64>);

    impl Histogram {
        fn record(&mut self, ps: u64) {
            let shift = (64 - ps.leading_zeros()).saturating_sub(8);
            *self.0.entry(ps >> shift << shift).or_default() += 1;
        }

        fn occupied(&self) -> Vec<(f64, u64)> {
            self.0.iter().map(|(ps, count)| (*ps as f64 / 1e3, *count)).collect()
        }
    }

    /// Samples around `ns` that spread by `sigma` on the logarithmic axis (twelve uniform numbers make a
    /// normal one).
    fn group(rng: &mut Rng, count: usize, ns: f64, sigma: f64, step_ns: f64, into: &mut Histogram) {
        for _ in 0..count {
            let normal: f64 = (0..12).map(|_| rng.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
            let value = ns * (sigma * normal).exp();
            let stepped = if step_ns > 0.0 { (value / step_ns).round() * step_ns } else { value };
            into.record(whole(stepped * 1e3));
        }
    }

    fn found(groups: &[(usize, f64, f64)], step_ns: f64, seed: u64) -> Vec<Mode> {
        let (mut rng, mut histogram) = (Rng::new(seed), Histogram::default());
        for (count, ns, sigma) in groups {
            group(&mut rng, *count, *ns, *sigma, step_ns, &mut histogram);
        }
        modes(&histogram.occupied(), step_ns)
    }

    #[test]
    fn one_group_stays_one_however_wide_large_or_coarsely_stepped() {
        for seed in 0..20 {
            for count in [60, 700, 12_000] {
                for sigma in [0.01, 0.05, 0.2, 0.5] {
                    for (ns, step) in [(800.0, 0.4), (800.0, 10.0), (800.0, 41.7), (90_000.0, 10.0)] {
                        let modes = found(&[(count, ns, sigma)], step, seed);
                        assert_eq!(modes.len(), 1, "{count} {sigma} {step} {seed}: {modes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_group_with_a_long_thin_tail_stays_one() {
        for seed in 0..20 {
            let groups =
                [(12_000, 800.0, 0.08), (25, 4_000.0, 0.8), (12, 20_000.0, 1.0), (3, 400_000.0, 1.0)];
            let modes = found(&groups, 0.4, seed);
            assert_eq!(modes.len(), 1, "{modes:?}");
        }
    }

    #[test]
    fn two_planted_groups_are_found_with_their_medians_and_shares() {
        for seed in 0..20 {
            for (slow, sigma) in [(300, 0.1), (1_800, 0.15), (3_000, 0.2), (5_400, 0.15)] {
                let planted = [(6_000 - slow, 1_500.0, sigma), (slow, 5_400.0, sigma)];
                let modes = found(&planted, 10.0, seed);
                assert_eq!(modes.len(), 2, "{slow} {sigma}: {modes:?}");
                assert!((modes[0].p50_ns / 1_500.0 - 1.0).abs() < 0.03, "{modes:?}");
                assert!((modes[1].p50_ns / 5_400.0 - 1.0).abs() < 0.05, "{modes:?}");
                assert!((modes[1].share - slow as f64 / 6_000.0).abs() < 0.02, "{modes:?}");
                assert!(modes[0].low_ns < modes[0].p50_ns && modes[0].p50_ns < modes[0].high_ns);
            }
        }
    }

    #[test]
    fn three_groups_are_three_and_shares_add_up_to_all() {
        let modes = found(&[(5_000, 800.0, 0.06), (600, 2_100.0, 0.08), (300, 9_000.0, 0.1)], 10.0, 1);
        assert_eq!(modes.len(), 3, "{modes:?}");
        let all: f64 = modes.iter().map(|mode| mode.share).sum();
        assert!((all - 1.0).abs() < 1e-9);
    }

    #[test]
    fn groups_that_are_hardly_apart_are_one() {
        for seed in 0..10 {
            let modes = found(&[(3_000, 800.0, 0.03), (3_000, 1_000.0, 0.03)], 10.0, seed);
            assert_eq!(modes.len(), 1, "{modes:?}");
        }
    }

    #[test]
    fn no_samples_have_no_mode_and_one_sample_has_one() {
        assert!(modes(&[], 1.0).is_empty());
        let one = modes(&[(500.0, 1)], 1.0);
        assert_eq!(one.len(), 1);
        assert!((one[0].share - 1.0).abs() < f64::EPSILON);
        assert_eq!(modes(&[(0.0, 5)], 1.0), Vec::new(), "a clock that stood still");
    }

    #[test]
    fn smoothing_keeps_the_samples_and_stretches_are_cut_at_the_lowest_bin() {
        let smooth = smoothed(&[0.0, 0.0, 16.0, 0.0, 0.0, 0.0, 32.0]);
        assert_eq!(smooth, [1.0, 4.0, 6.0, 4.0, 3.0, 8.0, 12.0]);
        let cuts: Vec<(usize, usize)> =
            between_valleys(&smooth).iter().map(|each| (each.from, each.to)).collect();
        assert_eq!(cuts, [(0, 4), (4, 7)]);
        assert_eq!(between_valleys(&[5.0, 4.0, 4.0, 2.0]).len(), 1, "falling all the way");
    }

    #[test]
    fn a_border_convinces_only_with_depth_samples_and_distance() {
        // Two peaks, ten bins of 0.06 apart: a factor of 1.8.
        let found = |left: f64, valley: f64, right: f64, width: f64| {
            let mut counts = vec![0.0; 13];
            counts[1] = left;
            counts[6] = valley;
            counts[11] = right;
            let stretches = [Stretch { from: 0, to: 6 }, Stretch { from: 6, to: 13 }];
            let mut smooth = vec![valley; 13];
            (smooth[1], smooth[11]) = (left, right);
            weakest(&stretches, &counts, &smooth, 1e4, width)
        };
        assert_eq!(found(1000.0, 500.0, 1000.0, 0.06), None);
        assert_eq!(found(1000.0, 501.0, 1000.0, 0.06), Some(0), "a shallow valley");
        assert_eq!(found(1000.0, 0.0, 49.0, 0.06), Some(0), "less than 0.5 % of all");
        assert_eq!(found(1000.0, 0.0, 50.0, 0.06), None);
        assert_eq!(found(1000.0, 0.0, 1000.0, 0.033), Some(0), "hardly apart");
        assert_eq!(found(1000.0, 0.0, 1000.0, 0.034), None);
    }
}
