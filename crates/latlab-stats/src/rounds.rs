//! The rounds of a run become a figure and its interval.
//!
//! What differs between two runs (page frames, the CPU, neighbours, the frequency) is constant within one
//! pass, so the variance that an interval must hold is taken between passes, not between samples (Kalibera
//! and Jones, Rigorous benchmarking in reasonable time, ISMM 2013). A run has few of them: their variance is
//! moderated by that of the point's kin, whose variances are taken as draws from one scaled inverse
//! chi-squared distribution, fitted by the moments of their logarithms (Smyth, Statistical Applications in
//! Genetics and Molecular Biology 3, 2004).
//!
//! Three things differ from Smyth, who has thousands of genes with equal degrees of freedom where a run has
//! some tens of points with differing ones. The logarithms are weighted by what they are worth (Paule and
//! Mandel, Journal of Research of the NBS 87, 1982). A point's prior is fitted to the *others*: with few kin
//! its own variance would count twice, and intervals of two or three kin held the truth in 90 %. And the
//! prior's degrees of freedom hold how well its centre is known: of two others with one degree each nothing
//! else could know more than two.

use crate::quantile::{median, median_of};
use crate::special::{beta_inc, digamma, t_quantile, trigamma, trigamma_inverse};

/// Kin that tell by themselves how far their rounds lie apart, without which a point that does not tell has
/// no interval: one alone says nothing of how unlike kin are, and in simulated unlike ones held the truth in
/// 86 %.
const LEAST_KIN: usize = 3;
/// A prior counts for no more than so many degrees of freedom: beyond it Student's t is the normal, and kin
/// are never quite alike.
const MOST_DEGREES: f64 = 100.0;
/// Least variance of logarithms: figures have five significant digits, so what differs by less is not seen
/// (0.003 %).
const LEAST_VARIANCE: f64 = 1e-9;
/// Variances of kin below this share of their median say that a clock's step hid them, not that a point is so
/// steady.
const LEAST_SHARE: f64 = 1e-5;
/// An interval that reaches beyond so many times its figure says nothing.
const WIDEST: f64 = 10.0;
/// Variance of the median of n = 1, 2, ... normals in units of one's, by integration of their order
/// statistics (David and Nagaraja, Order Statistics, section 3.2).
const MEDIAN_VARIANCE: [f64; 12] = [
    1.0,
    0.5,
    0.448_671_105,
    0.298_199_618,
    0.286_833_662,
    0.214_742_667,
    0.210_446_862,
    0.168_180_855,
    0.166_101_281,
    0.138_326_436,
    0.137_162_434,
    0.117_516_187,
];

/// The same of the centre of runs (see [`centre`]): simulated, three million draws each, as its difference
/// from their mean, which is independent of the mean.
const CENTRE_VARIANCE: [f64; 12] =
    [1.0, 0.5, 0.340_5, 0.273_7, 0.215_1, 0.179_3, 0.154_5, 0.134_1, 0.119_4, 0.107_4, 0.097_2, 0.089_0];

/// What a point's rounds say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The geometric mean of its CPUs' medians, equally weighted; the arithmetic one where a value is not
    /// positive.
    pub value: f64,
    /// Of that, for these CPUs; positive. Absent where nothing tells how far rounds lie apart, and where it
    /// would reach beyond [`WIDEST`] times the value.
    pub interval: Option<(f64, f64)>,
    /// The median over each CPU's rounds, in the order given: of an even number the geometric mean of the two
    /// in the middle, as everything is on the logarithm, so that a rate and its time agree. Absent of a CPU
    /// without any.
    pub by_cpu: Vec<Option<f64>>,
    /// Standard deviation of the logarithm between rounds on one CPU, kin included.
    pub rounds: Option<f64>,
    /// The same between CPUs beyond what their rounds differ by.
    pub cpus: Option<f64>,
    /// Whether the interval of the ratio of its largest CPU to its smallest one does not hold 1.
    pub differ: bool,
}

/// Folds each point of a group of kin: `points[i]` holds its values by CPU, round after round. `None` for a
/// point without a finite value.
///
/// Simulated (`tests/coverage.rs`): of nominal 95 % at least 92 and at most 98 % where rounds differ by 0 to
/// 10 %, CPUs by 0 to 40 %, and kin are alike or unlike.
pub fn fold_rounds(points: &[Vec<Vec<f64>>], level: f64) -> Vec<Option<Folded>> {
    let of: Vec<Option<Centre>> = points.iter().map(|cpus| Centre::of(cpus)).collect();
    let kin: Vec<Kin> = kin(&of);
    let all = Prior::fit(&kin, None, 0.0);
    of.iter()
        .enumerate()
        .map(|(index, centre)| {
            let centre = centre.as_ref()?;
            let own = kin.iter().position(|kin| kin.point == index);
            let prior = Prior::fit(&kin, own, all.apart);
            Some(centre.folded(own.map(|own| &kin[own]), &prior, level))
        })
        .collect()
}

/// How a point's second group of runs compares with its first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Logarithm of the ratio of the second group's centre to the first's (see [`centre`]).
    pub ratio: f64,
    /// Standard deviation of a run's logarithm between runs, kin included.
    pub between: f64,
    /// Degrees of freedom of that.
    pub degrees: f64,
    /// Standard error of `ratio`.
    pub error: f64,
}

/// Compares the first two groups of each point: `points[i]` holds values by group, run after run. What any
/// further group has says only how far runs lie apart. `None` for a point that lacks one of the two, has a
/// value that is not positive, or of which nothing says how far runs lie apart. The variance between runs is
/// moderated by that of kin, as [`fold_rounds`] does between rounds.
pub fn contrast_groups(points: &[Vec<Vec<f64>>]) -> Vec<Option<Contrast>> {
    let of: Vec<Option<Centre>> = points.iter().map(|groups| Centre::of(groups)).collect();
    let kin: Vec<Kin> = kin(&of);
    let all = Prior::fit(&kin, None, 0.0);
    of.iter()
        .enumerate()
        .map(|(index, centre)| {
            centre.as_ref().filter(|centre| centre.positive)?;
            let [first, second] =
                [0, 1].map(|group| points[index].get(group).and_then(|own| log_centre(own)));
            let own = kin.iter().position(|kin| kin.point == index);
            let prior = Prior::fit(&kin, own, all.apart);
            if own.is_none() && prior.kin < LEAST_KIN {
                return None;
            }
            let (variance, degrees) = own.map_or((0.0, 0.0), |own| (kin[own].variance, kin[own].degrees));
            let worth = prior.worth_beside(variance, degrees);
            let together = degrees + worth;
            let posterior = (worth * prior.variance + degrees * variance) / together;
            let of_centres =
                centre_variance(points[index][0].len()) + centre_variance(points[index][1].len());
            Some(Contrast {
                ratio: second? - first?,
                between: posterior.sqrt(),
                degrees: together,
                error: (posterior * of_centres).sqrt(),
            })
        })
        .collect()
}

/// The centre of positive values, of which a few may be far off: on the logarithm the median of the means of
/// all pairs, each with itself included (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963). Its
/// standard error is a fifth smaller than the median's. `None` where no value is finite and positive.
pub fn centre(values: &[f64]) -> Option<f64> {
    log_centre(values).map(f64::exp)
}

fn log_centre(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> =
        values.iter().filter(|value| **value > 0.0 && value.is_finite()).map(|v| v.ln()).collect();
    let pairs =
        logs.iter().enumerate().flat_map(|(i, a)| logs[i..].iter().map(move |b| f64::midpoint(*a, *b)));
    median_of(pairs)
}

/// A point without its interval.
struct Centre {
    /// Of each CPU the median, on the logarithm where all values are positive.
    by_cpu: Vec<Option<f64>>,
    positive: bool,
    /// Rounds of each CPU that has any.
    counts: Vec<usize>,
    /// Sum of squares of its rounds about their CPU's mean, and their degrees of freedom.
    squares: f64,
    degrees: f64,
}

impl Centre {
    fn of(cpus: &[Vec<f64>]) -> Option<Self> {
        let mut values: Vec<Vec<f64>> = cpus
            .iter()
            .map(|rounds| rounds.iter().copied().filter(|value| value.is_finite()).collect())
            .collect();
        let positive = values.iter().flatten().all(|value| *value > 0.0);
        if positive {
            values.iter_mut().flatten().for_each(|value| *value = value.ln());
        }
        let (mut squares, mut degrees) = (0.0, 0.0);
        for rounds in values.iter().filter(|rounds| !rounds.is_empty()) {
            let n = rounds.len() as f64;
            let mean = rounds.iter().map(|value| value / n).sum::<f64>();
            squares += rounds.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            degrees += n - 1.0;
        }
        let counts: Vec<usize> = values.iter().map(Vec::len).filter(|n| *n > 0).collect();
        (!counts.is_empty()).then(|| Self {
            by_cpu: values.iter().map(|own| (!own.is_empty()).then(|| median(own))).collect(),
            positive,
            counts,
            squares,
            degrees,
        })
    }

    fn folded(&self, own: Option<&Kin>, prior: &Prior, level: f64) -> Folded {
        let medians: Vec<f64> = self.by_cpu.iter().flatten().copied().collect();
        let cpus = medians.len() as f64;
        let centre = medians.iter().map(|median| median / cpus).sum::<f64>();
        let value = |centre: f64| if self.positive { centre.exp() } else { centre };
        let mut folded = Folded {
            value: value(centre),
            interval: None,
            by_cpu: self.by_cpu.iter().map(|median| median.map(value)).collect(),
            rounds: None,
            cpus: None,
            differ: false,
        };
        let (variance, degrees) = own.map_or((0.0, 0.0), |own| (own.variance, own.degrees));
        if !self.positive || (own.is_none() && prior.kin < LEAST_KIN) {
            return folded;
        }
        let together = degrees + prior.degrees;
        let posterior = (prior.degrees * prior.variance + degrees * variance) / together;
        let of_median: f64 = self.counts.iter().map(|n| median_variance(*n)).sum();
        let t = t_quantile(0.5 + level / 2.0, together);
        let half = t * (posterior * of_median).sqrt() / cpus;
        let (lo, hi) = ((centre - half).exp(), (centre + half).exp());
        folded.interval = (half <= WIDEST.ln() && lo > 0.0 && hi.is_finite()).then_some((lo, hi));
        folded.rounds = Some(posterior.sqrt());
        if cpus > 1.0 {
            let between = medians.iter().map(|median| (median - centre).powi(2) / (cpus - 1.0)).sum::<f64>();
            folded.cpus = Some((between - posterior * of_median / cpus).max(0.0).sqrt());
            let by_median = |a: &(f64, &usize), b: &(f64, &usize)| a.0.total_cmp(&b.0);
            let known = || medians.iter().copied().zip(&self.counts);
            if let (Some(least), Some(most)) = (known().min_by(by_median), known().max_by(by_median)) {
                let of_both = median_variance(*least.1) + median_variance(*most.1);
                folded.differ = most.0 - least.0 > t * (posterior * of_both).sqrt();
            }
        }
        folded
    }
}

/// Of so many rounds; beyond the table at most 6 % too much.
fn median_variance(n: usize) -> f64 {
    MEDIAN_VARIANCE
        .get(n.saturating_sub(1))
        .copied()
        .unwrap_or_else(|| std::f64::consts::FRAC_PI_2 / (n as f64 + 0.45))
}

/// Of so many runs; beyond the table that of many, which is 2 % off at most.
fn centre_variance(n: usize) -> f64 {
    CENTRE_VARIANCE
        .get(n.saturating_sub(1))
        .copied()
        .unwrap_or_else(|| std::f64::consts::FRAC_PI_3 / (n as f64 - 0.25))
}

/// A point whose rounds tell how far they lie apart.
struct Kin {
    point: usize,
    variance: f64,
    degrees: f64,
    /// Logarithm of its variance, unbiased, and the variance of that (Smyth 2004, section 6.2).
    log: f64,
    of_log: f64,
}

fn kin(of: &[Option<Centre>]) -> Vec<Kin> {
    let known: Vec<(usize, f64, f64)> = of
        .iter()
        .enumerate()
        .filter_map(|(point, centre)| {
            let of = centre.as_ref().filter(|of| of.positive && of.degrees > 0.0)?;
            Some((point, of.squares / of.degrees, of.degrees))
        })
        .collect();
    let variances: Vec<f64> = known.iter().map(|(_, variance, _)| *variance).collect();
    let least = (median(&variances) * LEAST_SHARE).max(LEAST_VARIANCE);
    known
        .into_iter()
        .map(|(point, variance, degrees)| {
            let variance = variance.max(least);
            let half = degrees / 2.0;
            Kin {
                point,
                variance,
                degrees,
                log: variance.ln() - digamma(half) + half.ln(),
                of_log: trigamma(half),
            }
        })
        .collect()
}

/// What kin say of a variance before a point's own rounds do.
#[derive(Default)]
struct Prior {
    degrees: f64,
    variance: f64,
    kin: usize,
    /// What kin differ by: the variance of the logarithm of their variances.
    apart: f64,
}

impl Prior {
    /// From all kin but one; the search for how far they are apart begins at `apart`.
    fn fit(kin: &[Kin], without: Option<usize>, apart: f64) -> Self {
        let others =
            || kin.iter().enumerate().filter(move |(index, _)| Some(*index) != without).map(|(_, kin)| kin);
        let n = others().count();
        if n == 0 {
            return Self::default();
        }
        let weigh = |apart: f64| -> Weighed {
            let (mut weight, mut mean) = (0.0, 0.0);
            for kin in others() {
                let own = 1.0 / (kin.of_log + apart);
                weight += own;
                mean += own * kin.log;
            }
            mean /= weight;
            let (mut excess, mut slope) = (1.0 - n as f64, 0.0);
            for kin in others() {
                let own = 1.0 / (kin.of_log + apart);
                let square = own * (kin.log - mean).powi(2);
                excess += square;
                slope += own * square;
            }
            Weighed { weight, mean, excess, slope }
        };
        // The excess falls with `apart` and is convex: Newton's steps from below its root never pass it.
        let mut apart = apart;
        let mut weighed = weigh(apart);
        for _ in 0..50 {
            let step = weighed.excess / weighed.slope.max(f64::MIN_POSITIVE);
            let next = (apart + step).max(0.0);
            let still = (next - apart).abs() <= 1e-9 * (1.0 + apart);
            if still || !next.is_finite() {
                break;
            }
            apart = next;
            weighed = weigh(apart);
        }
        let degrees = (2.0 * trigamma_inverse(apart + 1.0 / weighed.weight)).min(MOST_DEGREES);
        let variance = if apart > 0.0 {
            let half = degrees / 2.0;
            (weighed.mean + digamma(half) - half.ln()).exp()
        } else {
            // Alike: what all their rounds say together.
            let (sum, all) = others()
                .fold((0.0, 0.0), |(sum, all), kin| (sum + kin.degrees * kin.variance, all + kin.degrees));
            sum / all
        };
        Self { degrees, variance, kin: n, apart }
    }

    /// How many of its degrees of freedom count beside a variance of the point's own: all where that is not
    /// above what kin suggest, none where it is far above. A figure that varies far more than its kin is not
    /// made steady by them (Phipson et al., Annals of Applied Statistics 10, 2016).
    fn worth_beside(&self, variance: f64, degrees: f64) -> f64 {
        if degrees <= 0.0 || self.degrees <= 0.0 || self.variance <= 0.0 {
            return self.degrees;
        }
        let share = self.degrees / (self.degrees + degrees * variance / self.variance);
        let tail = beta_inc(self.degrees / 2.0, degrees / 2.0, share);
        self.degrees * (2.0 * tail).min(1.0)
    }
}

/// Logarithms of variances, weighted.
struct Weighed {
    weight: f64,
    mean: f64,
    /// Their weighted squares about the mean, beyond what their own variances explain.
    excess: f64,
    /// How fast that falls.
    slope: f64,
}

#[cfg(test)]
mod tests {
    use super::{Contrast, Folded, centre, centre_variance, contrast_groups, fold_rounds, median_variance};

    fn cpus(of: &[&[f64]]) -> Vec<Vec<f64>> {
        of.iter().map(|rounds| rounds.to_vec()).collect()
    }

    fn one(of: &[&[f64]]) -> Folded {
        fold_rounds(&[cpus(of)], 0.95).remove(0).expect("there are finite rounds")
    }

    #[test]
    fn two_groups_that_tell_how_far_runs_lie_apart_compare_as_a_t_test_with_a_moderated_variance() {
        let points = vec![
            cpus(&[&[100.0, 110.0, 105.0], &[210.0, 200.0, 205.0]]),
            cpus(&[&[10.0, 10.5, 9.8], &[10.1, 10.2, 10.4]]),
            cpus(&[&[3.0, 3.1, 3.3], &[3.0, 3.2, 3.1]]),
        ];
        let found = contrast_groups(&points);
        let Contrast { ratio, between, degrees, error } = found[0].expect("both groups are there");
        near(
            ratio,
            (centre(&points[0][1]).expect("it has runs") / centre(&points[0][0]).expect("it has runs")).ln(),
        );
        near(error, between * (2.0 * centre_variance(3)).sqrt());
        assert!(degrees > 4.0, "kin add to the four of its own: {degrees}");
        assert!((0.01..0.06).contains(&between), "{between}");
    }

    #[test]
    fn runs_of_a_further_group_tell_how_far_runs_lie_apart_and_change_no_ratio() {
        let alone = vec![cpus(&[&[100.0], &[110.0]]); 4];
        assert_eq!(contrast_groups(&alone), vec![None; 4], "one run a side says nothing of that");
        let stored = vec![cpus(&[&[100.0], &[110.0], &[95.0, 100.0, 108.0, 99.0]]); 4];
        let found = contrast_groups(&stored)[0].expect("the stored runs say it");
        near(found.ratio, 1.1_f64.ln());
        near(found.error, found.between * 2.0_f64.sqrt());
    }

    #[test]
    fn a_point_that_varies_far_more_than_its_kin_is_not_made_steady_by_them() {
        let steady = cpus(&[&[10.0, 10.1, 9.9, 10.2, 10.0], &[10.1, 10.0, 9.9, 10.0, 10.2]]);
        let wild = cpus(&[&[10.0, 20.0, 9.0, 22.0, 11.0], &[21.0, 10.0, 9.5, 18.0, 10.0]]);
        let mut points = vec![steady; 8];
        let calm = contrast_groups(&points)[0].expect("both groups are there");
        assert!(calm.degrees > 20.0, "kin add to the eight of its own: {}", calm.degrees);
        points.push(wild);
        let wild = contrast_groups(&points)[8].expect("both groups are there");
        assert!((8.0..8.1).contains(&wild.degrees), "{}", wild.degrees);
        assert!((0.35..0.45).contains(&wild.between), "{}", wild.between);
    }

    #[test]
    fn the_centre_is_the_median_of_the_means_of_pairs_and_one_value_does_not_move_it_far() {
        // Of logarithms 0, 1, 4 the means of pairs are 0, 0.5, 1, 2, 2.5, 4.
        near(centre(&[1.0, 1.0_f64.exp(), 4.0_f64.exp()]).expect("three values"), 1.5_f64.exp());
        near(centre(&[2.0, 8.0]).expect("two values"), 4.0);
        assert_eq!(centre(&[]), None);
        assert_eq!(centre(&[f64::NAN, 0.0, -1.0]), None);
        let wild = centre(&[10.0, 10.1, 9.9, 10.05, 1e6]).expect("five values");
        assert!((9.9..10.2).contains(&wild), "{wild}");
    }

    #[test]
    fn what_cannot_be_compared_is_none() {
        let kin = cpus(&[&[1.0, 1.1], &[1.0, 1.2]]);
        let points = vec![cpus(&[&[1.0, 2.0], &[]]), cpus(&[&[0.0, 1.0], &[1.0, 2.0]]), kin.clone(), kin];
        let found = contrast_groups(&points);
        assert_eq!(found[0], None);
        assert_eq!(found[1], None);
        assert!(found[2].is_some());
    }

    fn near(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-8, "{got} is not {want}");
    }

    fn mixed() -> Vec<Vec<Vec<f64>>> {
        vec![
            cpus(&[&[100.0, 104.0, 98.0], &[120.0, 118.0, 125.0]]),
            cpus(&[&[10.0, 10.4, 9.5], &[12.1, 11.8]]),
            cpus(&[&[55.0, 57.0]]),
            cpus(&[&[7.0, 7.7]]),
            cpus(&[&[3.1]]),
            cpus(&[&[80.0, 81.0, 83.0, 82.0, 79.5, 81.5]]),
            cpus(&[&[44.0], &[40.0]]),
        ]
    }

    #[test]
    fn figures_of_unbalanced_kin_agree_with_the_definition_computed_by_scipy() {
        let expected = [
            (109.544_511_501_033, 106.045_584_367_531, 113.158_884_187_111, 0.028_487_261_968),
            (10.931_174_932_422, 10.528_148_523_588, 11.349_629_532_247, 0.031_869_182_034),
            (55.991_070_716_678, 53.147_616_943_371, 58.986_652_277_192, 0.026_040_618_341),
            (7.341_661_937_191, 6.956_342_091_457, 7.748_325_095_483, 0.033_688_430_780),
            (3.1, 2.882_437_893_605, 3.333_983_369_189, 0.028_086_106_603),
            (81.249_615_383_705, 78.746_259_257_528, 83.832_553_599_921, 0.030_994_774_991),
            (41.952_353_926_806, 39.848_367_370_024, 44.167_430_591_497, 0.028_086_106_603),
        ];
        let found = fold_rounds(&mixed(), 0.95);
        for (folded, (value, low, high, rounds)) in found.iter().zip(expected) {
            let folded = folded.as_ref().expect("finite");
            let (lo, hi) = folded.interval.expect("there are kin");
            near(folded.value, value);
            near(lo, low);
            near(hi, high);
            near(folded.rounds.expect("with the interval"), rounds);
        }
        near(found[1].as_ref().and_then(|folded| folded.cpus).expect("two CPUs"), 0.123_984_849_401);
        assert_eq!(found[5].as_ref().and_then(|folded| folded.cpus), None, "one CPU");
        let narrower = fold_rounds(&mixed(), 0.8)[5].clone().expect("finite");
        near(narrower.interval.expect("kin").0, 79.682_210_110_88);
    }

    #[test]
    fn kin_that_differ_no_more_than_chance_are_taken_together() {
        let alike = [&[1.0, 1.1][..], &[2.0, 2.19], &[5.0, 5.6], &[9.0]].map(|rounds| vec![rounds.to_vec()]);
        let found = fold_rounds(&alike, 0.95);
        let expected = [(0.878_701_955_06, 1.251_846_537_57), (1.754_637_660_34, 2.496_241_873_18)];
        for (folded, (low, high)) in found.iter().zip(expected) {
            let (lo, hi) = folded.as_ref().and_then(|folded| folded.interval).expect("kin");
            near(lo, low);
            near(hi, high);
        }
        // What was measured once stands on its kin alone.
        let (lo, hi) = found[3].as_ref().and_then(|folded| folded.interval).expect("three kin");
        near(lo, 6.633_627_267_19);
        near(hi, 12.210_514_208_51);
    }

    #[test]
    fn a_point_without_kin_has_the_interval_of_its_own_rounds() {
        let alone = one(&[&[100.0, 104.0, 98.0], &[120.0, 118.0, 125.0]]);
        near(alone.value, 109.544_511_501_033);
        let (lo, hi) = alone.interval.expect("four degrees of freedom");
        near(lo, 105.317_088_170_048);
        near(hi, 113.941_623_420_356);
        near(alone.cpus.expect("two CPUs"), 0.127_352_780_778);
        near(alone.by_cpu[1].expect("of three"), 120.0);
    }

    #[test]
    fn cpus_differ_where_the_interval_of_their_ratio_does_not_hold_1() {
        // Of two CPUs with equally many rounds that interval is as wide, on the logarithm, as the figure's.
        for apart in 1..=40 {
            let by = 1.0 + 0.005 * f64::from(apart);
            let far: Vec<f64> = [100.0, 104.0, 98.0].map(|value| value * by).into();
            let folded = one(&[&[100.0, 104.0, 98.0], &far]);
            let (lo, hi) = folded.interval.expect("four degrees of freedom");
            assert_eq!(folded.differ, by > hi / lo, "{by} and {}", hi / lo);
        }
        assert!(!one(&[&[100.0, 104.0, 98.0]]).differ, "one CPU");
        // A third CPU between them changes neither.
        let three = one(&[&[100.0, 101.0], &[108.0, 109.0], &[118.0, 117.0]]);
        assert!(three.differ);
    }

    #[test]
    fn what_was_measured_once_has_an_interval_from_three_kin_on() {
        let detail = cpus(&[&[3.1]]);
        let headline = cpus(&[&[1.0, 1.01, 0.99], &[1.2, 1.18, 1.21]]);
        for kin in 0..5 {
            let mut points = vec![headline.clone(); kin];
            points.push(detail.clone());
            let last = fold_rounds(&points, 0.95).pop().flatten().expect("finite");
            assert_eq!(last.interval.is_some(), kin >= 3, "{kin} kin");
            near(last.value, 3.1);
            // Further points that were measured once say nothing of how far rounds lie apart.
            points.extend(vec![detail.clone(); 9]);
            let again = fold_rounds(&points, 0.95).swap_remove(kin).expect("finite");
            assert_eq!(again.interval, last.interval);
        }
    }

    #[test]
    fn a_cpu_counts_once_however_many_rounds_it_has() {
        let folded = one(&[&[10.0; 5], &[40.0]]);
        near(folded.value, 20.0);
        near(folded.by_cpu[0].expect("of five"), 10.0);
    }

    #[test]
    fn rounds_that_agree_to_the_last_digit_have_a_narrow_interval_and_not_none() {
        let (lo, hi) = one(&[&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0]]).interval.expect("rounds");
        assert!(lo < 5.0 && 5.0 < hi && hi / lo < 1.000_1, "{lo} to {hi}");
    }

    #[test]
    fn values_at_or_below_zero_have_an_arithmetic_mean_and_no_interval() {
        for low in [0.0, -3.0] {
            let folded = one(&[&[low, low, low], &[4.0, 4.0, 4.0]]);
            assert!((folded.value - f64::midpoint(low, 4.0)).abs() < 1e-12);
            assert_eq!((folded.interval, folded.rounds, folded.cpus), (None, None, None));
        }
        // And they are no kin of others.
        let rounds = cpus(&[&[10.0, 11.0, 10.5]]);
        let alone = fold_rounds(std::slice::from_ref(&rounds), 0.95);
        let beside = fold_rounds(&[rounds, cpus(&[&[0.0, 900.0, 1.0]])], 0.95);
        assert_eq!(alone[0], beside[0]);
    }

    #[test]
    fn rounds_that_are_no_numbers_are_left_out_and_none_comes_out() {
        let odd = f64::NAN;
        let points = vec![
            cpus(&[&[odd, 10.0, 11.0], &[odd]]),
            cpus(&[&[odd, f64::INFINITY]]),
            vec![],
            cpus(&[&[]]),
            cpus(&[&[f64::MAX, f64::MIN_POSITIVE], &[1e308, 5e-324]]),
            cpus(&[&[f64::MAX], &[f64::MAX]]),
            cpus(&[&[-f64::MAX, f64::MAX, 0.0]]),
        ];
        let found = fold_rounds(&points, 0.95);
        let first = found[0].as_ref().expect("two rounds");
        near(first.value, 110.0_f64.sqrt());
        assert_eq!((first.by_cpu.len(), first.by_cpu[1]), (2, None));
        assert!(found[1..4].iter().all(Option::is_none));
        for folded in found.iter().flatten() {
            let ends = folded.interval.map_or([1.0; 2], |(lo, hi)| [lo, hi]);
            let more = [folded.value, folded.rounds.unwrap_or(0.0), folded.cpus.unwrap_or(0.0)];
            assert!(ends.iter().chain(&more).all(|number| number.is_finite()), "{folded:?}");
            assert!(ends[0] > 0.0 && ends[0] <= ends[1], "{folded:?}");
        }
        assert_eq!(fold_rounds(&[], 0.95), []);
    }

    #[test]
    fn the_order_of_points_rounds_and_cpus_is_not_told_from_the_figures() {
        let found = fold_rounds(&mixed(), 0.95);
        let mut turned = mixed();
        turned.reverse();
        for cpus in &mut turned {
            cpus.reverse();
            for rounds in cpus {
                rounds.reverse();
            }
        }
        for (one, other) in found.iter().rev().zip(fold_rounds(&turned, 0.95)) {
            let (one, other) = (one.as_ref().expect("finite"), other.expect("finite"));
            near(other.value, one.value);
            near(other.interval.expect("kin").0, one.interval.expect("kin").0);
        }
    }

    #[test]
    fn the_variance_of_a_median_of_many_is_at_most_6_percent_too_much() {
        for (n, want) in [(13, 0.116_798_995), (16, 0.090_375_211), (20, 0.073_437_028)] {
            let share = median_variance(n) / want;
            assert!((0.999..1.06).contains(&share), "{n}: {share}");
        }
    }
}
