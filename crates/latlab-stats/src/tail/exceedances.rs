use crate::blocks::MIN_BLOCKS;
use crate::dependence::dependence;
use crate::refusal::Refusal;

/// Fewest samples beyond a threshold for which anything is said of them.
pub const LEAST_BEYOND: u64 = 20;

/// A single long series is cut into so many stretches: twenty give Student's t only 7 % more width than endless many.
const STRETCHES: usize = 20;
/// A stretch shorter than this tells nothing of how neighbours depend on each other.
const LEAST_STRETCH: usize = 50;

/// Part of the degrees of freedom that is left where a group's sum is one of few skewed values: 1 / (1 + kurtosis / 2), which is
/// 6/5 for five independent bursts a group.
const SKEWED: f64 = 0.65;

/// Thresholds are at least so far apart, as the logarithm of the samples beyond: closer ones are the same samples again.
const CLOSEST: f64 = 0.08;

/// Values with the group that each belongs to: what varies between groups decides how wide an interval is.
#[derive(Debug, Clone)]
pub struct Exceedances {
    /// `(value, count, group)`, descending by value.
    pub(super) largest: Vec<(f64, f64, u32)>,
    /// All samples, also those below the smallest value here.
    pub(super) total: f64,
    /// How many independent samples each is worth, at most 1.
    pub(super) worth: f64,
    /// The groups are stretches of one series.
    pub(super) series: bool,
    /// 0: the order of measuring is not known, so nothing here has an interval.
    pub(super) groups: usize,
}

impl Exceedances {
    /// Of samples in the order of measuring, in blocks that were taken apart in time. Fewer than six blocks are cut into
    /// stretches, which take the place of blocks.
    ///
    /// # Errors
    /// [`Refusal::NotFinite`].
    pub fn of_blocks(blocks: &[&[f64]]) -> Result<Self, Refusal> {
        let filled: Vec<&[f64]> = blocks.iter().copied().filter(|block| !block.is_empty()).collect();
        let series = filled.len() < MIN_BLOCKS;
        let pieces: Vec<&[f64]> = if series {
            let all: usize = filled.iter().map(|block| block.len()).sum();
            let length = all.div_ceil(STRETCHES).max(LEAST_STRETCH);
            filled.iter().flat_map(|block| block.chunks(length)).collect()
        } else {
            filled
        };
        let total: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let worth = dependence(blocks).effective_samples / total.max(1) as f64;
        Ok(Self { series, ..Self::of_groups(&pieces, total, worth)? })
    }

    /// Of the slow samples alone, by the block in which each was taken: `total` samples were measured, and all above the
    /// smallest of `groups` are here. Blocks without slow samples are empty groups. `worth`: how many independent samples each
    /// is worth, from 0 to 1.
    ///
    /// # Errors
    /// [`Refusal::NotFinite`].
    pub fn of_groups(groups: &[&[f64]], total: u64, worth: f64) -> Result<Self, Refusal> {
        let mut largest = Vec::with_capacity(groups.iter().map(|group| group.len()).sum());
        for (number, group) in (0_u32..).zip(groups) {
            largest.extend(group.iter().map(|value| (*value, 1.0, number)));
        }
        Self::sorted(largest, total as f64, groups.len(), worth.clamp(0.0, 1.0))
    }

    /// Of a histogram: values and counts, without their order of measuring.
    ///
    /// # Errors
    /// [`Refusal::NotFinite`].
    pub fn of_counts(buckets: &[(f64, u64)]) -> Result<Self, Refusal> {
        let largest: Vec<_> = buckets
            .iter()
            .filter(|bucket| bucket.1 > 0)
            .map(|(value, count)| (*value, *count as f64, 0))
            .collect();
        let total = largest.iter().map(|value| value.1).sum();
        Self::sorted(largest, total, 0, 1.0)
    }

    fn sorted(
        mut largest: Vec<(f64, f64, u32)>,
        total: f64,
        groups: usize,
        worth: f64,
    ) -> Result<Self, Refusal> {
        if largest.iter().any(|value| !value.0.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        largest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        Ok(Self {
            largest,
            total,
            worth,
            series: false,
            groups: if groups >= MIN_BLOCKS { groups } else { 0 },
        })
    }

    /// Places of thresholds: `(first value not above it, samples above it)`, from `fewest` samples to half of all, at most
    /// `most` of them, evenly on a logarithmic axis. Equal values are never parted.
    pub(super) fn thresholds(&self, fewest: f64, most: usize) -> Vec<(usize, f64)> {
        let mut borders = Vec::new();
        let mut above = 0.0;
        for (place, pair) in self.largest.windows(2).enumerate() {
            above += pair[0].1;
            if pair[1].0 < pair[0].0 && pair[1].0 > 0.0 && above >= fewest && above <= self.total / 2.0 {
                borders.push((place + 1, above));
            }
        }
        let (Some(&first), Some(&last)) = (borders.first(), borders.last()) else {
            return Vec::new();
        };
        let (low, step) = (first.1.ln(), ((last.1 / first.1).ln() / most.max(2) as f64).max(CLOSEST));
        let mut next = low;
        borders.retain(|border| {
            // The last one is half of all, or as far as the samples here go.
            let taken = border.1.ln() >= next - 1e-9 || border.0 == last.0;
            if taken {
                next = border.1.ln() + step;
            }
            taken
        });
        borders
    }

    /// Standard error of a mean over the samples above a threshold, from what each contributes to it (its influence, of
    /// mean zero), with the degrees of freedom: the groups are what is independent. `None` where fewer than six groups have a
    /// sample there.
    pub(super) fn error(
        &self,
        above: &[(f64, f64, u32)],
        influence: impl Fn(f64) -> f64,
    ) -> Option<(f64, f64)> {
        if self.groups == 0 {
            return None;
        }
        let mut by_group = vec![(0.0, 0.0); self.groups];
        for (value, count, place) in above {
            let own = &mut by_group[*place as usize];
            own.0 += count * influence(*value);
            own.1 += count;
        }
        let filled = by_group.iter().filter(|own| own.1 > 0.0).count();
        if filled < MIN_BLOCKS {
            return None;
        }
        let held: f64 = by_group.iter().map(|own| own.1).sum();
        let k = filled as f64;
        // The jackknife's: a group that holds much of what is there would have been missed by as much more.
        let left_out = |own: &(f64, f64)| own.0 / (1.0 - own.1 / held).max(1e-3);
        let squares: f64 = by_group.iter().map(|own| left_out(own).powi(2)).sum();
        Some(((squares * (k - 1.0) / k).sqrt() / held, SKEWED * (k - 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_never_parted_by_a_threshold() {
        let found = Exceedances::of_counts(&[(1.0, 100), (2.0, 30), (3.0, 10)]).unwrap();
        let thresholds = found.thresholds(5.0, 40);
        assert_eq!(thresholds, [(1, 10.0), (2, 40.0)]);
    }

    #[test]
    fn a_single_series_is_cut_into_stretches_and_a_histogram_has_none() {
        let series: Vec<f64> = (0..4000).map(f64::from).collect();
        assert_eq!(Exceedances::of_blocks(&[&series]).unwrap().groups, 20);
        assert_eq!(Exceedances::of_blocks(&[&series[..100]]).unwrap().groups, 0);
        assert_eq!(Exceedances::of_counts(&[(1.0, 9)]).unwrap().groups, 0);
        assert!(Exceedances::of_blocks(&[&[f64::NAN]]).is_err());
    }

    #[test]
    fn the_error_between_groups_is_the_jackknifes() {
        let groups: [&[f64]; 7] =
            [&[5.0, 3.0, 2.0], &[4.0, 2.5], &[6.0], &[3.5, 2.2], &[2.8], &[9.0, 2.1], &[]];
        let of = Exceedances::of_groups(&groups, 100, 1.0).unwrap();
        let mean = of.largest.iter().map(|value| value.0).sum::<f64>() / 11.0;
        // numpy's, over the definition: six groups have samples, which leaves 0.65 times 5 degrees of freedom.
        let (error, degrees) = of.error(&of.largest, |value| value - mean).unwrap();
        assert!((error - 0.501_869_011_832_522).abs() < 1e-12 && (degrees - 3.25).abs() < 1e-12);
        let five = Exceedances::of_groups(&groups[1..], 100, 1.0).unwrap();
        assert_eq!(five.error(&five.largest, |value| value), None);
    }

    #[test]
    fn blocks_are_groups_from_six_on_and_thresholds_lie_evenly_apart() {
        let block: Vec<f64> = (1..=1000).map(f64::from).collect();
        let six = Exceedances::of_blocks(&[block.as_slice(); 6]).unwrap();
        assert!(!six.series && six.groups == 6);
        let five = Exceedances::of_blocks(&[&block, &block, &[], &block, &block, &block]).unwrap();
        assert!(five.series && five.groups == 20, "{}", five.groups);
        let short = Exceedances::of_blocks(&[&block[..600]]).unwrap();
        assert_eq!(short.groups, 12, "stretches of fifty");
        // Values 1 to 1000: from 20 to 500 above, 25 times as many in 10 steps.
        let one = Exceedances::of_groups(&[&block], 1000, 2.0).unwrap();
        let above: Vec<f64> = one.thresholds(20.0, 10).iter().map(|border| border.1).collect();
        assert_eq!(above, [20.0, 28.0, 39.0, 54.0, 75.0, 104.0, 144.0, 199.0, 275.0, 380.0, 500.0]);
        assert!((one.worth - 1.0).abs() < 1e-15);
        // A rising series: neighbours are alike.
        let alike = dependence(&[&block]).effective_samples / 1000.0;
        let rising = Exceedances::of_blocks(&[&block]).unwrap();
        assert!(alike < 0.1 && (rising.worth - alike).abs() < 1e-15, "{alike}");
    }
}
