//! How many at once: the smallest concurrency that reaches most of what there is to get.

use latlab_stats::quantile;
use latlab_stats::rng::Rng;

/// The knee is where this share of the plateau is reached.
pub(super) const SHARE: f64 = 0.8;
/// Resamplings: the ends of a 95 % interval then are 25 from either side.
const RESAMPLINGS: usize = 1000;
/// Rates that still grow by more than this from the last concurrency but one to the last have no plateau yet.
const STILL_GROWS: f64 = 1.15;

/// Rates of the blocks at one concurrency.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) concurrency: u32,
    /// Bytes a second, one a block.
    pub(super) rates: Vec<f64>,
}

/// What a sweep shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Knee {
    pub(super) concurrency: u32,
    /// 95 %, by resampling the blocks.
    pub(super) interval: [u32; 2],
    pub(super) plateau: f64,
    /// The largest concurrency is no more than the beginning of the plateau.
    pub(super) beyond: bool,
}

/// Where a sweep bends; none with fewer than three steps.
pub(super) fn knee(steps: &[Step], seed: u64) -> Option<Knee> {
    if steps.len() < 3 || steps.iter().any(|step| step.rates.is_empty()) {
        return None;
    }
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.concurrency);
    let medians: Vec<(u32, f64)> = sorted
        .iter()
        .map(|step| (step.concurrency, median(&step.rates)))
        .collect();
    let (concurrency, plateau) = bend(&medians);
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
    let [.., last_but_one, last] = medians.as_slice() else {
        return None;
    };
    Some(Knee {
        concurrency,
        interval: [found[RESAMPLINGS / 40], found[RESAMPLINGS - 1 - RESAMPLINGS / 40]],
        plateau,
        beyond: last.1 > STILL_GROWS * last_but_one.1,
    })
}

fn median(values: &[f64]) -> f64 {
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
        assert_eq!(found.interval, [6, 6]);
        assert!((found.plateau - 65e6).abs() < 1.0 && !found.beyond);
    }

    #[test]
    fn noise_widens_its_interval() {
        let found = knee(&steps(0.5), 7).expect("a knee");
        assert!(found.interval[0] < found.interval[1], "{found:?}");
        assert!(found.interval[0] <= 6 && 6 <= found.interval[1], "{found:?}");
    }

    #[test]
    fn a_sweep_that_only_rises_has_its_knee_beyond() {
        let found = knee(&steps(0.01)[..4], 7).expect("something");
        assert!(found.beyond);
        assert_eq!(knee(&steps(0.01)[..2], 7), None);
    }

    #[test]
    fn one_transfer_and_one_throughput_foretell_it() {
        assert!((foretold(1e6, 100e6, 0.0, 65e6) - 5.2).abs() < 1e-9);
        // 1 MB costs a side 50 ms: no more than 20 MB/s come, whatever the link lets through.
        assert!((foretold(1e6, 100e6, 50e6, 65e6) - 1.6).abs() < 1e-9);
        assert!((foretold(1e6, 1e6, 0.0, 65e6) - 1.0).abs() < f64::EPSILON);
    }
}
