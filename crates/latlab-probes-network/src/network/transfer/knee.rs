//! How many at once: the smallest concurrency that reaches most of what there is to get.

use latlab_stats::quantile;
use latlab_stats::rng::Rng;

/// The knee is where this share of the plateau is reached.
pub(super) const SHARE: f64 = 0.8;
/// Resamplings: the ends of a 95 % interval then are 25 from either side.
const RESAMPLINGS: usize = 1000;
/// Rates that grow by more than this while the concurrency doubles have no plateau yet.
const STILL_GROWS: f64 = 1.15;

/// Fewer blocks than this give no 95 % interval, whatever is drawn from them.
const LEAST_BLOCKS: usize = 6;

/// Rates of the blocks at one concurrency.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) concurrency: u32,
    /// Bytes a second, one a block; one at least.
    pub(super) rates: Vec<f64>,
}

/// What a sweep shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Knee {
    pub(super) concurrency: u32,
    /// The largest concurrency before it that was measured, and brings less; none before the first.
    pub(super) below: Option<u32>,
    /// 95 %, by resampling the blocks; each end reaches down to what was measured before it, because the knee may lie anywhere between. None where
    /// what decides, from the step before the knee on, has too few blocks.
    pub(super) interval: Option<[u32; 2]>,
    pub(super) plateau: f64,
    /// The rates still rise at the end: the plateau was not reached.
    pub(super) rise: Option<Rise>,
}

/// How rates go on at the end of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rise {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The rate there over the rate here.
    pub(super) times: f64,
}

/// Whether the rates still rise at the end of medians in ascending order: from half of the last concurrency, or the next below, to the last.
pub(super) fn rise(medians: &[(u32, f64)]) -> Option<Rise> {
    let (to, last) = *medians.last()?;
    let (from, earlier) = *medians.iter().rev().find(|(many, _)| 2 * many <= to)?;
    let doublings = f64::from(to).log2() - f64::from(from).log2();
    let times = last / earlier;
    (times > STILL_GROWS.powf(doublings)).then_some(Rise { from, to, times })
}

/// Where a sweep bends; none with fewer than three steps.
pub(super) fn knee(steps: &[Step], seed: u64) -> Option<Knee> {
    if steps.len() < 3 {
        return None;
    }
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.concurrency);
    let medians: Vec<(u32, f64)> = sorted
        .iter()
        .map(|step| (step.concurrency, median(&step.rates)))
        .collect();
    let (concurrency, plateau) = bend(&medians);
    let below = |many: u32| {
        let earlier = medians.iter().rev().find(|(own, _)| *own < many);
        earlier.map(|(own, _)| *own)
    };
    let mut rng = Rng::new(seed);
    let mut found: Vec<u32> = (0..RESAMPLINGS)
        .map(|_| {
            let drawn: Vec<(u32, f64)> = sorted
                .iter()
                .map(|step| {
                    let drawn: Vec<f64> = step
                        .rates
                        .iter()
                        .map(|_| step.rates[rng.below(step.rates.len())])
                        .collect();
                    (step.concurrency, median(&drawn))
                })
                .collect();
            bend(&drawn).0
        })
        .collect();
    found.sort_unstable();
    let (low, high) = (found[RESAMPLINGS / 40], found[RESAMPLINGS - 1 - RESAMPLINGS / 40]);
    let from = below(concurrency).unwrap_or(concurrency);
    let mut deciding = sorted.iter().filter(|step| step.concurrency >= from);
    let known = deciding.all(|step| step.rates.len() >= LEAST_BLOCKS);
    Some(Knee {
        concurrency,
        below: below(concurrency),
        interval: known.then(|| [below(low).map_or(low, |many| many + 1), high]),
        plateau,
        rise: rise(&medians),
    })
}

/// What to measure next, to know where the share is crossed to a step of `grid`: beyond the end while the rates rise there, else in the middle of
/// what lies between the concurrency that reaches it and the one before. None when there is no step left.
pub(super) fn next(medians: &[(u32, f64)], grid: &[u32]) -> Option<u32> {
    let last = medians.last()?.0;
    if rise(medians).is_some()
        && let Some(next) = grid.iter().copied().find(|many| *many > last)
    {
        // Half as many again, where the grid has them: finer steps there say nothing as long as there is no plateau.
        let further = grid.iter().copied().rfind(|many| 2 * many <= 3 * last);
        return Some(further.map_or(next, |many| many.max(next)));
    }
    let (at, _) = bend(medians);
    let from = medians.iter().rev().find(|(many, _)| *many < at)?.0;
    let between: Vec<u32> = grid
        .iter()
        .copied()
        .filter(|many| from < *many && *many < at)
        .collect();
    between.get(between.len() / 2).copied()
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// The smallest concurrency at which the share is reached, and the plateau.
fn bend(medians: &[(u32, f64)]) -> (u32, f64) {
    let plateau = medians.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let first = medians.iter().find(|(_, rate)| *rate >= SHARE * plateau);
    (first.map_or(1, |(concurrency, _)| *concurrency), plateau)
}

/// The knee as one transfer and one throughput foretell it: as many as fill the throughput to the same share, each as fast as that
/// one was alone. `cpu_ns` is what the busier of the two sides computes for it: no number of transfers gets past that.
pub(super) fn foretold(file_bytes: f64, one_ns: f64, cpu_ns: f64, throughput: f64) -> f64 {
    let by_cpu = if cpu_ns > 0.0 {
        file_bytes * 1e9 / cpu_ns
    } else {
        f64::INFINITY
    };
    let alone = file_bytes * 1e9 / one_ns;
    (SHARE * throughput.min(by_cpu) / alone).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed system of one queue: each transfer alone 10 MB/s, together at most 65 MB/s.
    fn steps(noise: f64) -> Vec<Step> {
        [1, 2, 4, 6, 8, 16, 32]
            .into_iter()
            .map(|concurrency| {
                let rate = (f64::from(concurrency) * 10e6).min(65e6);
                Step {
                    concurrency,
                    rates: (0..7)
                        .map(|nth| rate * (1.0 + noise * (f64::from(nth) - 3.0) / 3.0))
                        .collect(),
                }
            })
            .collect()
    }

    #[test]
    fn a_planted_knee_is_found_whatever_the_order() {
        let mut planted = steps(0.02);
        planted.reverse();
        let found = knee(&planted, 7).expect("a knee");
        // 80 % of 65 are 52: six at once have 60.
        assert_eq!(found.concurrency, 6);
        // Five would be enough or not: nobody has looked.
        assert_eq!((found.below, found.interval), (Some(4), Some([5, 6])));
        assert!((found.plateau - 65e6).abs() < 1.0 && found.rise.is_none());
    }

    #[test]
    fn noise_widens_its_interval() {
        let found = knee(&steps(0.5), 7).expect("a knee");
        let [low, high] = found.interval.expect("seven blocks");
        assert!(low < high && low <= 6 && 6 <= high, "{found:?}");
    }

    #[test]
    fn a_step_of_a_block_or_two_has_no_interval_where_it_decides() {
        let thin = |concurrency: u32| {
            let mut steps = steps(0.02);
            let step = steps.iter_mut().find(|step| step.concurrency == concurrency);
            step.expect("a step").rates.truncate(2);
            knee(&steps, 7).expect("a knee").interval
        };
        assert_eq!((thin(1), thin(4), thin(16)), (Some([5, 6]), None, None));
    }

    #[test]
    fn a_sweep_that_only_rises_has_its_knee_beyond() {
        let found = knee(&steps(0.01)[..4], 7).expect("something");
        // From two at once to six.
        assert_eq!(found.rise.map(|rise| (rise.from, rise.to)), Some((2, 6)));
        assert_eq!(knee(&steps(0.01)[..2], 7), None);
    }

    #[test]
    fn a_knee_is_looked_for_beyond_the_end_and_then_step_by_step() {
        const GRID: [u32; 12] = [1, 2, 4, 8, 16, 20, 24, 28, 32, 64, 96, 128];
        // 80 % of 80 are 64: reached at 22.
        let rate = |many: u32| (f64::from(many) * 3.0).min(80.0);
        let mut measured = vec![1, 2, 4, 8, 16];
        let mut asked = Vec::new();
        while let Some(many) = next(
            &measured
                .iter()
                .map(|many| (*many, rate(*many)))
                .collect::<Vec<_>>(),
            &GRID,
        ) {
            asked.push(many);
            measured.push(many);
            measured.sort_unstable();
        }
        // Until 64 bring no more than 32; then into the middle.
        assert_eq!(asked, [24, 32, 64, 20]);
        let steps: Vec<Step> = measured
            .iter()
            .map(|many| Step {
                concurrency: *many,
                rates: vec![rate(*many); 6],
            })
            .collect();
        let found = knee(&steps, 7).expect("a knee");
        assert_eq!((found.below, found.concurrency, found.rise), (Some(20), 24, None));
        assert_eq!(found.interval, Some([21, 24]));
    }

    #[test]
    fn one_transfer_and_one_throughput_foretell_it() {
        assert!((foretold(1e6, 100e6, 0.0, 65e6) - 5.2).abs() < 1e-9);
        // 1 MB costs a side 50 ms: no more than 20 MB/s come, whatever the link lets through.
        assert!((foretold(1e6, 100e6, 50e6, 65e6) - 1.6).abs() < 1e-9);
        assert!((foretold(1e6, 1e6, 0.0, 65e6) - 1.0).abs() < f64::EPSILON);
    }
}
