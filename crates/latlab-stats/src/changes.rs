//! Where a series changes its level: "so long at A, then B".
//!
//! ```text
//! series ─► logarithms: what disturbs a disk takes a share of it
//!        ─► optimal partitioning (Jackson et al. 2005), cost of a stretch: sum |x - its median|
//!        ─► is one straight line as good as the steps? then it is a trend, and has no steps
//! ```
//! The median makes the cost deaf to single stalls, of which a disk has many: with squares, each would be a
//! level of its own (Fearnhead and Rigaill, JASA 114, 2019). Neighbours in time are alike on a shared
//! machine, which looks like steps; so the penalty is paid in units of the noise as far as independent values
//! would show it.

use crate::quantile::median;

/// A stretch of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Its first value.
    pub from: usize,
    /// The first value after it.
    pub to: usize,
    /// Its median.
    pub median: f64,
}

/// What a series does.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Stretches in order, which cover the series; one where nothing changes.
    pub levels: Vec<Level>,
    /// One straight line describes it better than one level, and at least as well as steps: it rises or falls
    /// all the while.
    pub trend: bool,
    /// Standard deviation of the noise that was reckoned with, as a share of the values.
    pub noise: f64,
}

/// A level of fewer values is none: three of them outvote two stalls.
const SHORTEST: usize = 4;
/// A change must lower the cost by this many deviations of the noise times ln(n). In 300 simulated series
/// without a change (tests), of 24 to 180 values, one is found in 0.3 % of independent noise of 30 %, in 0.7
/// % where one value in ten is a stall, and in 0.7 % and 7 % where neighbours correlate by 0.3 and 0.6.
const PENALTY: f64 = 2.0;
/// Levels that differ by a smaller share are reported as one: no disk's cliff is so low, and a governor or a
/// neighbour moves a disk as much.
const SMALLEST_STEP: f64 = 0.1;
/// Noise is taken for at least so large: a level held to a fraction of a percent, as a limiter does, is not
/// to make steps of what is beside it.
const LEAST_NOISE: f64 = 0.05;
/// Smaller values, as shares of the median, are stalls like any other: their logarithm would have no end.
const STALLED: f64 = 1e-3;
/// Longer series are thinned to medians of neighbours first: the search takes the square of their number.
const MOST: usize = 1_200;
/// Beyond this the neighbours are so alike that a longer memory cannot be told from steps.
const MOST_ALIKE: f64 = 0.8;

/// Where the level of rates changes; `None` for fewer than eight values, one that is negative or not finite,
/// or where most are 0.
///
/// Deterministic. A tenth of a second for a thousand values.
pub fn changes(values: &[f64]) -> Option<Changes> {
    if values.len() < 2 * SHORTEST || values.iter().any(|value| !value.is_finite() || *value < 0.0) {
        return None;
    }
    let floor = median(values) * STALLED;
    if floor <= 0.0 {
        return None;
    }
    let every = values.len().div_ceil(MOST);
    let thinned: Vec<f64> = values.chunks(every).map(|part| median(part).max(floor).ln()).collect();
    let costs = Costs::of(&thinned);
    let of_steps = noise_of_steps(&thinned);
    let mut noise = of_steps;
    let mut parts = partition(&thinned, &costs, noise);
    // What is left when the steps are taken out says how alike neighbours are; then the steps are looked for
    // again.
    for _ in 0..2 {
        let left = residuals(&thinned, &parts);
        noise = noise_beside_levels(&left, of_steps);
        parts = partition(&thinned, &costs, noise);
    }
    let stairs: f64 = parts.iter().map(|part| costs.of_stretch(*part)).sum();
    let penalty = penalty(noise, thinned.len());
    let whole = costs.of_stretch((0, thinned.len()));
    let line = cost_of_line(&thinned);
    let trend = parts.len() > 1
        && line + penalty < whole
        && line + penalty <= stairs + penalty * (parts.len() - 1) as f64;
    if trend {
        parts = vec![(0, thinned.len())];
    }
    let parts = merged(&thinned, parts);
    let levels = parts
        .iter()
        .map(|(from, to)| {
            let (from, to) = (from * every, (to * every).min(values.len()));
            Level { from, to, median: median(&values[from..to]) }
        })
        .collect();
    Some(Changes { levels, trend, noise })
}

/// How far a straight line through the values rises from the first to the last, in the unit of the values
/// (Theil 1950, Sen 1968: the median of the slopes of all pairs). 0 for fewer than two values.
pub fn rise(values: &[f64]) -> f64 {
    let every = values.len().div_ceil(MOST / 4).max(1);
    let thinned: Vec<f64> = values.chunks(every).map(median).collect();
    let mut slopes = Vec::with_capacity(thinned.len() * thinned.len() / 2);
    for (later, value) in thinned.iter().enumerate() {
        for (earlier, before) in thinned[..later].iter().enumerate() {
            slopes.push((value - before) / (later - earlier) as f64);
        }
    }
    if slopes.is_empty() {
        return 0.0;
    }
    median(&slopes) * (thinned.len() - 1) as f64
}

fn penalty(noise: f64, n: usize) -> f64 {
    PENALTY * noise * (n as f64).ln()
}

/// A median distance of normal values is this much of their deviation.
const MEDIAN_DISTANCE: f64 = 0.6745;

/// Deviation of the noise, from the differences of neighbours, which levels do not enter.
fn noise_of_steps(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (median(&steps) / MEDIAN_DISTANCE / std::f64::consts::SQRT_2).max(LEAST_NOISE)
}

/// Deviation of the noise, from what is left beside the levels, made larger where neighbours are alike: the
/// mean of such values varies as that of fewer ones. It is not below that of the steps.
fn noise_beside_levels(left: &[f64], of_steps: f64) -> f64 {
    let sizes: Vec<f64> = left.iter().map(|value| value.abs()).collect();
    let own = (median(&sizes) / MEDIAN_DISTANCE).max(of_steps);
    let alike = alike(left).clamp(0.0, MOST_ALIKE);
    own * ((1.0 + alike) / (1.0 - alike)).sqrt()
}

/// Correlation of neighbours, of values cut at three deviations: one stall is not to decide it.
fn alike(left: &[f64]) -> f64 {
    let sizes: Vec<f64> = left.iter().map(|value| value.abs()).collect();
    let cut = 3.0 * median(&sizes) / MEDIAN_DISTANCE;
    let own: Vec<f64> = left.iter().map(|value| value.clamp(-cut, cut)).collect();
    let mean = own.iter().sum::<f64>() / own.len().max(1) as f64;
    let all: f64 = own.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs: f64 = own.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if all > 0.0 { pairs / all } else { 0.0 }
}

type Part = (usize, usize);

fn residuals(values: &[f64], parts: &[Part]) -> Vec<f64> {
    parts
        .iter()
        .flat_map(|(from, to)| {
            let level = median(&values[*from..*to]);
            values[*from..*to].iter().map(move |value| value - level)
        })
        .collect()
}

/// The cost of every stretch, once: `sum |x - median|`.
struct Costs {
    n: usize,
    all: Vec<f64>,
}

impl Costs {
    fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mut all = vec![0.0; n * (n + 1)];
        for from in 0..n {
            // The two halves around the median, each with its sum: the cost is what the upper sum exceeds the
            // lower by.
            let mut sorted: Vec<f64> = Vec::with_capacity(n - from);
            for to in from + 1..=n {
                let value = values[to - 1];
                let place = sorted.partition_point(|other| *other < value);
                sorted.insert(place, value);
                all[from * (n + 1) + to] = 0.0;
                if to - from >= SHORTEST {
                    all[from * (n + 1) + to] = distance(&sorted);
                }
            }
        }
        Self { n, all }
    }

    fn of_stretch(&self, (from, to): Part) -> f64 {
        self.all[from * (self.n + 1) + to]
    }
}

fn distance(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    let low: f64 = sorted[..half].iter().sum();
    let high: f64 = sorted[sorted.len() - half..].iter().sum();
    high - low
}

/// The partition with the least cost and penalty together.
fn partition(values: &[f64], costs: &Costs, noise: f64) -> Vec<Part> {
    let n = values.len();
    let penalty = penalty(noise, n);
    let mut best = vec![f64::INFINITY; n + 1];
    let mut cut = vec![0; n + 1];
    best[0] = -penalty;
    for to in SHORTEST..=n {
        for from in 0..=to - SHORTEST {
            let cost = best[from] + costs.of_stretch((from, to)) + penalty;
            if cost < best[to] {
                best[to] = cost;
                cut[to] = from;
            }
        }
    }
    let mut parts = Vec::new();
    let mut to = n;
    while to > 0 {
        parts.push((cut[to], to));
        to = cut[to];
    }
    parts.reverse();
    parts
}

/// Neighbours that differ by less than the smallest step become one, the most alike first.
fn merged(values: &[f64], mut parts: Vec<Part>) -> Vec<Part> {
    loop {
        let step = |place: usize| {
            let (a, b) = (parts[place], parts[place + 1]);
            (median(&values[a.0..a.1]) - median(&values[b.0..b.1])).abs()
        };
        let smallest = (0..parts.len().saturating_sub(1)).min_by(|a, b| step(*a).total_cmp(&step(*b)));
        let Some(place) = smallest.filter(|place| step(*place) < -(1.0 - SMALLEST_STEP).ln()) else {
            return parts;
        };
        parts[place].1 = parts[place + 1].1;
        parts.remove(place + 1);
    }
}

/// `sum |x - line|` of the robust line.
fn cost_of_line(values: &[f64]) -> f64 {
    let slope = rise(values) / (values.len().max(2) - 1) as f64;
    let flat: Vec<f64> = values.iter().enumerate().map(|(nth, value)| value - slope * nth as f64).collect();
    let level = median(&flat);
    flat.iter().map(|value| (value - level).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Levels, each so many values, with noise of this share.
    fn series(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        levels
            .iter()
            .flat_map(|(level, count)| vec![*level; *count])
            .map(|level| level * (1.0 + noise * rng.normal()))
            .collect()
    }

    /// The share of `noise` in which any change, or a trend, is found.
    fn false_alarms(noise: impl Fn(&mut Rng, usize) -> Vec<f64>) -> f64 {
        let mut found = 0;
        let mut all = 0;
        for n in [24, 90, 180] {
            for seed in 0..100 {
                let mut values = noise(&mut Rng::new(1_000 * n as u64 + seed), n);
                for value in &mut values {
                    *value = value.max(0.0);
                }
                let seen = changes(&values).expect("long enough");
                found += u32::from(seen.levels.len() > 1 || seen.trend);
                all += 1;
            }
        }
        f64::from(found) / f64::from(all)
    }

    #[test]
    fn a_cliff_is_found_where_it_is_and_levels_are_what_they_are() {
        for (noise, slack) in [(0.0, 0), (0.05, 1), (0.2, 3)] {
            for seed in 0..30 {
                let values = series(&[(2.0e9, 40), (0.5e9, 50)], noise, seed);
                let found = changes(&values).expect("long enough");
                assert_eq!(found.levels.len(), 2, "{noise}, {seed}: {:?}", found.levels);
                assert!(found.levels[0].to.abs_diff(40) <= slack, "{noise}, {seed}");
                assert!((found.levels[0].median / 2.0e9 - 1.0).abs() < 0.15);
                assert!((found.levels[1].median / 0.5e9 - 1.0).abs() < 0.15);
                assert!(!found.trend);
            }
        }
    }

    #[test]
    fn several_cliffs_are_all_found() {
        for seed in 0..30 {
            let values = series(&[(3.0, 20), (1.0, 30), (2.0, 15), (0.4, 25)], 0.1, seed);
            let levels = changes(&values).expect("long enough").levels;
            assert_eq!(levels.len(), 4, "{seed}: {levels:?}");
            assert_eq!((levels[0].from, levels[3].to), (0, 90));
            assert!(levels.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }

    #[test]
    fn stalls_are_no_levels_and_hide_none() {
        let mut values = series(&[(1.0, 60), (0.6, 60)], 0.05, 7);
        for place in [5, 17, 18, 40, 77, 90, 91, 110] {
            values[place] *= 0.05;
        }
        let found = changes(&values).expect("long enough");
        assert_eq!(found.levels.len(), 2, "{:?}", found.levels);
        assert!(found.levels[0].to.abs_diff(60) <= 1);
    }

    #[test]
    fn pure_noise_seldom_has_a_change() {
        let normal = false_alarms(|rng, n| (0..n).map(|_| 1.0 + 0.3 * rng.normal()).collect());
        assert!(normal <= 0.02, "normal: {normal}");
        // One in ten is slower by any factor.
        let stalls = false_alarms(|rng, n| {
            (0..n)
                .map(|_| {
                    let stall = if rng.uniform() < 0.1 { rng.uniform() } else { 1.0 };
                    stall * (1.0 + 0.2 * rng.normal())
                })
                .collect()
        });
        assert!(stalls <= 0.02, "with stalls: {stalls}");
        let alike = |strength: f64| {
            move |rng: &mut Rng, n: usize| {
                let mut last = 0.0;
                (0..n)
                    .map(|_| {
                        last = strength * last + (1.0 - strength * strength).sqrt() * rng.normal();
                        1.0 + 0.3 * last
                    })
                    .collect::<Vec<f64>>()
            }
        };
        let (some, much) = (false_alarms(alike(0.3)), false_alarms(alike(0.6)));
        assert!(some <= 0.03, "neighbours alike by 0.3: {some}");
        assert!(much <= 0.10, "neighbours alike by 0.6: {much}");
    }

    #[test]
    fn a_trend_is_a_trend_and_no_stairs() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed);
            let values: Vec<f64> =
                (0..90).map(|nth| (2.0 - f64::from(nth) / 90.0) * (1.0 + 0.05 * rng.normal())).collect();
            let found = changes(&values).expect("long enough");
            assert!(found.trend && found.levels.len() == 1, "{seed}: {found:?}");
            assert!((rise(&values) + 1.0).abs() < 0.2, "{seed}: {}", rise(&values));
        }
    }

    /// Credits for so many bytes, then as many as come back: what a cloud's disk does, with the odd stall
    /// while it waits for credits.
    #[test]
    fn a_token_bucket_is_a_burst_and_what_is_refilled() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut credits, refill, demand) = (30.0, 0.25, 1.0);
            let values: Vec<f64> = (0..120)
                .map(|_| {
                    credits += refill;
                    let moved = (demand * (1.0 + 0.05 * rng.normal())).min(credits);
                    credits -= moved;
                    moved
                })
                .collect();
            let found = changes(&values).expect("long enough");
            assert_eq!(found.levels.len(), 2, "{seed}: {:?}", found.levels);
            // 30 credits at a net 0.75 a step.
            assert!(found.levels[0].to.abs_diff(40) <= 3, "{seed}: {:?}", found.levels);
            assert!((found.levels[1].median / refill - 1.0).abs() < 0.02);
        }
    }

    #[test]
    fn small_steps_long_series_and_too_short_ones() {
        assert_eq!(changes(&[1.0; 7]), None);
        assert_eq!(changes(&[1.0, 2.0, 1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0]), None);
        let flat = changes(&[5.0; 8]).expect("eight");
        assert_eq!(flat.levels.len(), 1);
        let steps = changes(&series(&[(1.0, 50), (0.95, 50)], 0.0, 1)).expect("long enough");
        assert_eq!(steps.levels.len(), 1, "5 % are no cliff");
        let long = changes(&series(&[(1.0, 3_000), (0.5, 2_000)], 0.1, 1)).expect("long enough");
        assert_eq!(long.levels.len(), 2);
        assert!(long.levels[0].to.abs_diff(3_000) <= 10 && long.levels[1].to == 5_000);
        assert!(rise(&[1.0]).abs() < 1e-12 && (rise(&[1.0, 2.0, 3.0]) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn costs_slopes_and_likeness_have_their_known_values() {
        // numpy's medians and sums over the definitions.
        let values = [1.0, 2.0, 4.0, 7.0, 1.5, 9.0, 3.0, 8.0];
        assert!((rise(&values) - 7.0).abs() < 1e-12);
        assert!((cost_of_line(&values) - 14.5).abs() < 1e-12);
        let costs = Costs::of(&values);
        // |1 - 3| + |2 - 3| + |4 - 3| + |7 - 3|; three values are no level.
        assert!((costs.of_stretch((0, 4)) - 8.0).abs() < 1e-12);
        assert!((costs.of_stretch((3, 8)) - 12.5).abs() < 1e-12);
        assert!(costs.of_stretch((0, 3)).abs() < 1e-12);
        let left = [0.3, 0.5, -0.2, -0.4, 5.0, 0.1, 0.2, -0.3];
        assert!((alike(&left) + 0.296_077_794_082_5).abs() < 1e-12);
        assert!(alike(&[0.0; 9]).abs() < 1e-12);
        assert_eq!(residuals(&values, &[(0, 3), (3, 8)]), [-1.0, 0.0, 2.0, 0.0, -5.5, 2.0, -4.0, 1.0]);
        assert!((penalty(0.3, 90) - 2.699_885_802_198_159).abs() < 1e-12);
    }

    #[test]
    fn noise_is_larger_where_neighbours_are_alike() {
        let waves = [1.0, 2.0, 3.0, 4.0, 5.0, 4.0, 3.0, 2.0, 1.0, 2.0, 3.0, 4.0].map(|x| x - 34.0 / 12.0);
        let of_steps = noise_of_steps(&waves);
        assert!((of_steps - 1.048_342_151_499_7).abs() < 1e-12);
        assert!((noise_beside_levels(&waves, of_steps) - 2.771_551_634_763_023).abs() < 1e-12);
        assert!((noise_of_steps(&[1.0; 5]) - LEAST_NOISE).abs() < 1e-15);
    }

    #[test]
    fn a_partition_is_the_cheapest_one_and_neighbours_that_hardly_differ_are_merged() {
        let values = [0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0];
        let costs = Costs::of(&values);
        // Two levels cost a penalty of 2 ln 9 noise, one costs 12.
        assert_eq!(partition(&values, &costs, 2.7), [(0, 5), (5, 9)]);
        assert_eq!(partition(&values, &costs, 2.8), [(0, 9)]);
        // A step of 10 % is 0.1054 on the logarithmic axis.
        let steps = |step: f64| [[0.0; 4], [step; 4], [3.0; 4]].concat();
        let parts = vec![(0, 4), (4, 8), (8, 12)];
        assert_eq!(merged(&steps(0.105), parts.clone()), [(0, 8), (8, 12)]);
        assert_eq!(merged(&steps(0.106), parts.clone()), parts);
        assert_eq!(merged(&steps(2.95), parts), [(0, 4), (4, 12)]);
    }
}
