use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocks::{Pooled, cut};
use crate::count::index;
use crate::moments::mean;
use crate::special::{chi2_sf, normal_cdf};

/// A p-value below this counts as dependence. A stricter one would let blocks that differ a little pass as independent
/// and lose coverage there; with this one the worst simulated coverage of a nominal 95 % median is about 94 %. The
/// price is the wider interval for about one in three independent sets, as five such tests are made.
const SUSPICION: f64 = 0.10;
/// A serial correlation that widens an interval by less than 3 % is not worth losing the exact method for.
const NEGLIGIBLE_LAG1: f64 = 0.03;

/// How far samples are from independent draws of one distribution. Everything is computed on ranks: no assumption on
/// the distribution, and a single outlier cannot hide or fake a drift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dependence {
    /// Rank correlation of each sample with the next of its block, -1 to 1, corrected for its bias of -1/n. None
    /// when no block has three samples or all samples are equal.
    pub lag1: Option<f64>,
    /// How many independent samples these are worth for their median; all of them when nothing was found.
    pub effective_samples: f64,
    /// Kruskal and Wallis's test (JASA 47, 1952): the chance of blocks that differ at least this much if they all
    /// came from one distribution. None with fewer than two blocks.
    pub between_block_p: Option<f64>,
    /// The same within blocks, between their successive stretches of about sqrt(n) samples: slow waves that the
    /// next neighbour does not show. None when the blocks are shorter than 16 samples.
    pub between_stretch_p: Option<f64>,
    /// Nothing above contradicts independence.
    pub independent: bool,
}

/// Tests whether the samples, in the order of measuring within each block, may be treated as independent. A non-finite
/// sample gives `independent: false` with nothing else known.
#[must_use]
pub fn dependence(blocks: &[&[f64]]) -> Dependence {
    Pooled::new(blocks).map_or(Dependence::untested(0.0, false), |pooled| of(&pooled.ranks(), &pooled.sizes))
}

impl Dependence {
    fn untested(effective_samples: f64, independent: bool) -> Self {
        let (lag1, between_block_p, between_stretch_p) = (None, None, None);
        Self { lag1, effective_samples, between_block_p, between_stretch_p, independent }
    }
}

/// The same about exceeding quantile `q`: the median may be steady while the outliers come in bursts.
pub(crate) fn of_exceedances(pooled: &Pooled, q: f64) -> Dependence {
    let boundary = index((pooled.len() as f64 * q).ceil());
    // A tie straddling the boundary counts by its share above it.
    let scores = pooled.scores(|from, to| {
        let above = to.saturating_sub(boundary.max(from));
        above as f64 / (to - from) as f64
    });
    let mut found = of(&scores, &pooled.sizes);
    let rare = scores.iter().sum::<f64>().min(scores.iter().map(|s| 1.0 - s).sum());
    if rare < RARE {
        found = with_exact_clustering(found, &scores, &pooled.sizes);
    }
    found
}

/// With fewer exceedances than this the chi-squared approximations are poor.
const RARE: f64 = 30.0;

/// For few exceedances: do they sit side by side more often than chance puts them there (Poisson)?
fn with_exact_clustering(mut found: Dependence, scores: &[f64], sizes: &[usize]) -> Dependence {
    let n = scores.len() as f64;
    let share = scores.iter().sum::<f64>() / n;
    let rare_is_above = share < 0.5;
    let rate = share.min(1.0 - share);
    let is_rare = |s: f64| (s > 0.5) == rare_is_above;
    let mut pairs = 0_u32;
    let mut chances = 0_usize;
    for block in cut(scores, sizes) {
        pairs += u32::try_from(block.windows(2).filter(|w| is_rare(w[0]) && is_rare(w[1])).count())
            .unwrap_or(u32::MAX);
        chances += block.len() - 1;
    }
    let expected = chances as f64 * rate * rate;
    // P(Poisson(expected) >= pairs) is the lower tail of a chi-squared with 2 * pairs degrees of freedom.
    let p = if pairs == 0 { 1.0 } else { 1.0 - chi2_sf(2.0 * expected, 2.0 * f64::from(pairs)) };
    let lag1_is_evidence = p < SUSPICION;
    let between = found.between_block_p.is_some_and(|p| p < SUSPICION);
    found.independent = !lag1_is_evidence && !between;
    if found.independent {
        found.effective_samples = n;
    }
    found
}

/// Sums of squares of scores, split at block and stretch boundaries.
#[derive(Default)]
struct Spread {
    total: f64,
    between_blocks: f64,
    between_stretches: f64,
    stretch_df: f64,
    stretch_total: f64,
    stretch_total_df: f64,
    neighbours: f64,
    within: f64,
    lag_blocks: f64,
    lag_n: f64,
}

pub(crate) fn of(scores: &[f64], sizes: &[usize]) -> Dependence {
    let n = scores.len() as f64;
    let k = sizes.len() as f64;
    let s = spread(scores, sizes);
    if s.total <= 0.0 {
        // All samples equal (or none): nothing varies, so nothing can vary together.
        return Dependence::untested(n, true);
    }
    // One sample a block leaves nothing to compare the blocks with.
    let comparable = k >= 2.0 && n >= 2.0 * k;
    let between_block_p = comparable.then(|| chi2_sf((n - 1.0) * s.between_blocks / s.total, k - 1.0));
    let between_stretch_p = (s.stretch_df >= 1.0 && s.stretch_total > 0.0)
        .then(|| chi2_sf(s.stretch_total_df * s.between_stretches / s.stretch_total, s.stretch_df));
    let lag1 = (s.lag_n > 0.0 && s.within > 0.0)
        .then(|| (s.neighbours / s.within + s.lag_blocks / s.lag_n).clamp(-1.0, 1.0));
    let lag1_p = lag1.map(|r| 1.0 - normal_cdf(r * (s.lag_n - s.lag_blocks).sqrt()));

    let follows = lag1.zip(lag1_p).is_some_and(|(r, p)| p < SUSPICION && r > NEGLIGIBLE_LAG1);
    let waves = between_stretch_p.is_some_and(|p| p < SUSPICION);
    let differs = between_block_p.is_some_and(|p| p < SUSPICION);
    // Each finding says by how much the variance of a mean rank is larger than if independent.
    let mut inflation = 1.0_f64;
    if let (true, Some(r)) = (follows, lag1) {
        let r = r.min(0.9999);
        inflation = inflation.max((1.0 + r) / (1.0 - r));
    }
    if waves {
        let inner = (s.stretch_total - s.between_stretches) / (s.stretch_total_df - s.stretch_df).max(1.0);
        inflation = inflation.max(s.between_stretches / s.stretch_df / inner.max(f64::MIN_POSITIVE));
    }
    if differs {
        let inner = (s.total - s.between_blocks) / (n - k).max(1.0);
        inflation = inflation.max(s.between_blocks / (k - 1.0) / inner.max(f64::MIN_POSITIVE));
    }
    Dependence {
        lag1,
        effective_samples: (n / inflation).max(1.0).min(n),
        between_block_p,
        between_stretch_p,
        independent: !(follows || waves || differs),
    }
}

fn spread(scores: &[f64], sizes: &[usize]) -> Spread {
    let grand = mean(scores);
    let mut s = Spread::default();
    for block in cut(scores, sizes) {
        let centre = mean(block);
        let m = block.len() as f64;
        s.between_blocks += m * (centre - grand).powi(2);
        let within: f64 = block.iter().map(|x| (x - centre).powi(2)).sum();
        s.total += within + m * (centre - grand).powi(2);
        if block.len() >= 3 {
            s.neighbours += block.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum::<f64>();
            s.within += within;
            s.lag_blocks += 1.0;
            s.lag_n += m;
        }
        if block.len() >= 16 {
            let stretches = index(m.sqrt());
            for i in 0..stretches {
                let stretch = &block[i * block.len() / stretches..(i + 1) * block.len() / stretches];
                s.between_stretches += stretch.len() as f64 * (mean(stretch) - centre).powi(2);
            }
            s.stretch_df += stretches as f64 - 1.0;
            s.stretch_total += within;
            s.stretch_total_df += m - 1.0;
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::{dependence, of_exceedances};
    use crate::blocks::Pooled;
    use crate::rng::Rng;

    fn blocks_of(k: usize, m: usize, mut draw: impl FnMut(usize) -> f64) -> Vec<Vec<f64>> {
        (0..k).map(|b| (0..m).map(|_| draw(b)).collect()).collect()
    }

    fn refs(blocks: &[Vec<f64>]) -> Vec<&[f64]> {
        blocks.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn independent_samples_mostly_pass() {
        let mut rng = Rng::new(1);
        let passed = (0..400)
            .filter(|_| dependence(&refs(&blocks_of(6, 200, |_| rng.normal().exp()))).independent)
            .count();
        // Three tests at 10 %, one of them one-sided and two of them overlapping.
        assert!(passed > 280, "{passed} of 400");
    }

    #[test]
    fn a_serial_correlation_is_measured_and_found() {
        let mut rng = Rng::new(2);
        let mut x = 0.0;
        let blocks = blocks_of(6, 1000, |_| {
            x = 0.5 * x + rng.normal();
            x
        });
        let d = dependence(&refs(&blocks));
        // The rank correlation of normals with r = 0.5 is 6/pi asin(r/2) = 0.483.
        assert!(!d.independent && (d.lag1.unwrap() - 0.483).abs() < 0.05, "{d:?}");
        assert!(d.effective_samples < 2600.0);
    }

    #[test]
    fn blocks_that_differ_are_found() {
        let mut rng = Rng::new(3);
        let blocks = blocks_of(6, 200, |b| rng.normal() + 0.5 * (b % 3) as f64);
        let d = dependence(&refs(&blocks));
        assert!(!d.independent && d.between_block_p.unwrap() < 1e-4 && d.effective_samples < 200.0);
    }

    #[test]
    fn a_slow_wave_under_the_noise_is_found() {
        let mut rng = Rng::new(4);
        let mut t = 0_u32;
        let blocks = blocks_of(6, 900, |_| {
            t += 1;
            rng.normal() + 0.4 * (f64::from(t) / 40.0).sin()
        });
        assert!(!dependence(&refs(&blocks)).independent);
    }

    #[test]
    fn equal_samples_and_odd_shapes_are_no_trouble() {
        assert!(dependence(&[&[2.0; 50], &[2.0; 50]]).independent);
        assert!(dependence(&[]).independent);
        assert!(dependence(&[&[1.0], &[2.0], &[], &[3.0]]).independent);
        assert!(!dependence(&[&[1.0, f64::NAN, 3.0]]).independent);
    }

    /// Blocks of unequal sizes, with ties; each is higher than the one before by `shift`.
    fn uneven(seed: u64, shift: f64) -> Vec<Vec<f64>> {
        let mut rng = Rng::new(seed);
        [20, 25, 30, 18, 40, 22]
            .iter()
            .enumerate()
            .map(|(b, m)| (0..*m).map(|_| rng.below(50) as f64 + shift * b as f64).collect())
            .collect()
    }

    #[test]
    fn each_part_agrees_with_scipy() {
        // scipy.stats.kruskal of blocks; the rest from its chi-squared and normal and numpy's sums over the same ranks.
        for (seed, shift, lag1, blocks_p, stretch_p, worth) in [
            (3, 0.0, 0.010_833_862_197_035, 0.930_612_595_923_15, 0.321_220_172_576_6, 155.0),
            (
                3,
                4.0,
                0.040_602_103_239_545,
                4.733_905_598_269_4e-5,
                0.244_363_744_539_91,
                24.015_949_845_119_98,
            ),
            (9, 1.0, 0.080_710_012_212_764, 0.175_162_767_694_9, 0.766_741_074_655_62, 155.0),
        ] {
            let found = dependence(&refs(&uneven(seed, shift)));
            assert!((found.lag1.unwrap() - lag1).abs() < 1e-12, "{found:?}");
            assert!((found.between_block_p.unwrap() / blocks_p - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.between_stretch_p.unwrap() / stretch_p - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.effective_samples / worth - 1.0).abs() < 1e-9, "{found:?}");
            assert_eq!(found.independent, shift < 2.0);
        }
    }

    #[test]
    fn the_strongest_of_the_findings_says_what_the_samples_are_worth() {
        let mut rng = Rng::new(1);
        let waves: Vec<Vec<f64>> =
            (0..6).map(|_| (0..64).map(|i| (i / 8 % 2 * 6 + rng.below(10)) as f64).collect()).collect();
        let found = dependence(&refs(&waves));
        assert!((found.lag1.unwrap() - 0.378_605_120_979_096).abs() < 1e-12, "{found:?}");
        assert!((found.effective_samples - 38.192_702_644_894).abs() < 1e-9, "{found:?}");
        assert!(found.between_stretch_p.unwrap() < 1e-12 && !found.independent);
    }

    #[test]
    fn few_exceedances_side_by_side_are_dependent_and_apart_they_are_not() {
        let with = |slow: &[usize]| {
            let block: Vec<f64> = (0..1000)
                .map(|i| if slow.contains(&i) { 100.0 } else { 1.0 } + (i * 7919 % 1000) as f64 * 1e-3)
                .collect();
            of_exceedances(&Pooled::new(&[&block]).unwrap(), 0.99)
        };
        let apart = with(&[5, 111, 204, 333, 416, 520, 602, 777, 850, 999]);
        assert!(apart.independent && (apart.effective_samples - 1000.0).abs() < 1e-9, "{apart:?}");
        // 999 pairs of neighbours times 0.01 squared: 0.1 pairs are expected, and one has a chance of 9.5 %.
        let one_pair = with(&[5, 111, 204, 333, 416, 520, 602, 777, 998, 999]);
        assert!(!one_pair.independent, "{one_pair:?}");
    }
}
