//! How many at once: the smallest concurrency that reaches most of what there is to get.

use latlab_harness::product;
use latlab_record::Estimate;

/// The knee is where this share of the plateau is reached.
pub(super) const SHARE: f64 = 0.8;
/// Rates that grow by more than this while the concurrency doubles have no plateau yet.
const STILL_GROWS: f64 = 1.15;

/// Goodput at one concurrency, bytes a second.
pub(super) type Step = (u32, Estimate);

/// What a sweep shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Knee {
    /// By the steps' own ranges, each moved to its ends alone; it reaches down to what was measured before
    /// it, because the knee may lie anywhere between. Without a range where a step has none.
    pub(super) concurrency: Estimate,
    /// The largest concurrency before it that was measured, and brings less; none before the first.
    pub(super) below: Option<u32>,
    pub(super) plateau: Estimate,
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

/// Whether the rates still rise at the end of medians in ascending order: from half of the last concurrency,
/// or the next below, to the last.
pub(super) fn rise(medians: &[(u32, f64)]) -> Option<Rise> {
    let (to, last) = *medians.last()?;
    let (from, earlier) = *medians.iter().rev().find(|(many, _)| 2 * many <= to)?;
    let doublings = f64::from(to).log2() - f64::from(from).log2();
    let times = last / earlier;
    (times > STILL_GROWS.powf(doublings)).then_some(Rise { from, to, times })
}

/// Where a sweep, ascending, bends; none with fewer than three steps. Rounds that each make the whole sweep
/// tell its range, else the steps' do.
pub(super) fn knee(steps: &[Step], by_rounds: Option<Estimate>) -> Option<Knee> {
    let medians = medians(steps);
    let crossed = crossing(&medians)?;
    let (at, top) = bend(&medians);
    let below = medians.iter().rev().find(|(own, _)| *own < at).map(|(own, _)| *own);
    let plateau = steps.iter().find(|(own, _)| *own == top)?.1;
    let reported = by_rounds.filter(|own| own.ends().is_some()).unwrap_or_else(|| moved(steps, crossed));
    let knee = f64::from(at);
    let concurrency = reported.about(knee);
    let from = f64::from(below.map_or(at, |below| below + 1));
    Some(Knee {
        concurrency: match concurrency.ends() {
            Some(_) => concurrency.reaching([from, knee]).rounded_outwards(),
            None => Estimate::once(knee),
        },
        below,
        plateau,
        rise: rise(&medians),
    })
}

pub(super) fn medians(steps: &[Step]) -> Vec<(u32, f64)> {
    steps.iter().map(|(many, rate)| (*many, rate.value)).collect()
}

/// Where the share of the plateau is reached, between the steps around it on the logarithm of both; none with
/// fewer than three steps.
pub(super) fn crossing(medians: &[(u32, f64)]) -> Option<f64> {
    if medians.len() < 3 {
        return None;
    }
    let (at, _) = bend(medians);
    let place = medians.iter().position(|(many, _)| *many == at)?;
    let plateau = medians.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (many, rate) = medians[place];
    let Some((before, less)) = place.checked_sub(1).map(|before| medians[before]) else {
        return Some(f64::from(many));
    };
    let share = (SHARE * plateau / less).ln() / (rate / less).ln();
    Some(f64::from(before) * (f64::from(many) / f64::from(before)).powf(share.clamp(0.0, 1.0)))
}

/// The crossing with the range that the steps' own give it: what it moves by as each goes to its ends, the
/// others staying, squares added (JCGM 100:2008, the GUM, 5.1.3 note 2).
fn moved(steps: &[Step], crossed: f64) -> Estimate {
    let mut medians = medians(steps);
    let each: Option<Vec<Estimate>> = steps
        .iter()
        .enumerate()
        .map(|(place, (_, rate))| {
            let at = rate.ends()?.map(|end| {
                medians[place].1 = end;
                crossing(&medians)
            });
            medians[place].1 = rate.value;
            let [one, other] = [at[0]?, at[1]?];
            Some(Estimate::within(crossed, Some([one.min(other) / crossed, one.max(other) / crossed])))
        })
        .collect();
    each.map_or(Estimate::once(crossed), |each| product(crossed, &each))
}

/// What to measure next, to know where the share is crossed to a step of `grid`: beyond the end while the
/// rates rise there, else in the middle of what lies between the concurrency that reaches it and the one
/// before. None when there is no step left.
pub(super) fn next(medians: &[(u32, f64)], grid: &[u32]) -> Option<u32> {
    let last = medians.last()?.0;
    if rise(medians).is_some()
        && let Some(next) = grid.iter().copied().find(|many| *many > last)
    {
        // Half as many again, where the grid has them: finer steps there say nothing as long as there is no
        // plateau.
        let further = grid.iter().copied().rfind(|many| 2 * many <= 3 * last);
        return Some(further.map_or(next, |many| many.max(next)));
    }
    let (at, _) = bend(medians);
    let from = medians.iter().rev().find(|(many, _)| *many < at)?.0;
    let between: Vec<u32> = grid.iter().copied().filter(|many| from < *many && *many < at).collect();
    between.get(between.len() / 2).copied()
}

/// The smallest concurrency at which the share is reached, and the one of the plateau.
fn bend(medians: &[(u32, f64)]) -> (u32, u32) {
    let top = medians.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (top, plateau) = top.map_or((1, 0.0), |(many, rate)| (*many, *rate));
    let first = medians.iter().find(|(_, rate)| *rate >= SHARE * plateau);
    (first.map_or(1, |(concurrency, _)| *concurrency), top)
}

/// The knee as one transfer and one throughput predict it: as many as fill the throughput to the same share,
/// each as fast as that one was alone. `cpu_ns` is what the busier of the two sides computes for it: no
/// number of transfers gets past that.
pub(super) fn predicted(file_bytes: f64, one_ns: f64, cpu_ns: f64, throughput: f64) -> f64 {
    let by_cpu = if cpu_ns > 0.0 { file_bytes * 1e9 / cpu_ns } else { f64::INFINITY };
    let alone = file_bytes * 1e9 / one_ns;
    (SHARE * throughput.min(by_cpu) / alone).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed system of one queue: each transfer alone 10 MB/s, together at most 65 MB/s; each known to
    /// this share.
    fn steps(noise: f64) -> Vec<Step> {
        [1, 2, 4, 6, 8, 16, 32]
            .into_iter()
            .map(|concurrency| {
                let rate = (f64::from(concurrency) * 10e6).min(65e6);
                (concurrency, Estimate::within(rate, Some([1.0 - noise, 1.0 + noise])))
            })
            .collect()
    }

    #[test]
    fn a_planted_knee_is_found() {
        let found = knee(&steps(0.02), None).expect("a knee");
        // 80 % of 65 are 52: six at once have 60. Five would be enough or not: nobody has looked.
        let expected = Estimate { value: 6.0, low: Some(5.0), high: Some(7.0) };
        assert_eq!((found.below, found.concurrency), (Some(4), expected));
        assert!((found.plateau.value - 65e6).abs() < 1.0 && found.rise.is_none());
        let crossed = crossing(&medians(&steps(0.02))).expect("three steps");
        assert!((crossed - 5.2).abs() < 1e-9, "the rate is in proportion here: {crossed}");
    }

    #[test]
    fn steps_that_are_less_sure_widen_its_range() {
        let width = |noise| {
            let own = knee(&steps(noise), None).expect("a knee").concurrency;
            own.high.expect("an end") / own.low.expect("an end")
        };
        assert!(width(0.3) > 1.5 * width(0.02), "{}", width(0.3));
    }

    #[test]
    fn rounds_that_make_the_sweep_tell_its_range_before_the_steps_do() {
        let reported = Estimate::within(5.2, Some([0.5, 2.0]));
        let own = knee(&steps(0.02), Some(reported)).expect("a knee").concurrency;
        assert_eq!(own.ends(), Some([3.0, 12.0]));
        let own = knee(&steps(0.02), Some(Estimate::once(5.2))).expect("a knee").concurrency;
        assert_eq!(own.ends(), Some([5.0, 7.0]));
    }

    #[test]
    fn without_a_range_of_each_step_it_has_none() {
        let mut steps = steps(0.02);
        steps[4].1 = Estimate::once(65e6);
        assert_eq!(knee(&steps, None).expect("a knee").concurrency, Estimate::once(6.0));
    }

    #[test]
    fn a_sweep_that_only_rises_has_its_knee_beyond() {
        let found = knee(&steps(0.01)[..4], None).expect("something");
        // From two at once to six.
        assert_eq!(found.rise.map(|rise| (rise.from, rise.to)), Some((2, 6)));
        assert_eq!(knee(&steps(0.01)[..2], None), None);
    }

    #[test]
    fn a_knee_is_looked_for_beyond_the_end_and_then_step_by_step() {
        const GRID: [u32; 12] = [1, 2, 4, 8, 16, 20, 24, 28, 32, 64, 96, 128];
        // 80 % of 80 are 64: reached at 22.
        let rate = |many: u32| (f64::from(many) * 3.0).min(80.0);
        let mut measured = vec![1, 2, 4, 8, 16];
        let mut asked = Vec::new();
        while let Some(many) =
            next(&measured.iter().map(|many| (*many, rate(*many))).collect::<Vec<_>>(), &GRID)
        {
            asked.push(many);
            measured.push(many);
            measured.sort_unstable();
        }
        // Until 64 bring no more than 32; then into the middle.
        assert_eq!(asked, [24, 32, 64, 20]);
        let steps: Vec<Step> =
            measured.iter().map(|many| (*many, Estimate::within(rate(*many), Some([0.99, 1.01])))).collect();
        let found = knee(&steps, None).expect("a knee");
        assert_eq!((found.below, found.rise), (Some(20), None));
        assert_eq!(found.concurrency.ends(), Some([21.0, 25.0]));
    }

    #[test]
    fn one_transfer_and_one_throughput_predict_it() {
        assert!((predicted(1e6, 100e6, 0.0, 65e6) - 5.2).abs() < 1e-9);
        // 1 MB costs a side 50 ms: no more than 20 MB/s come, whatever the link lets through.
        assert!((predicted(1e6, 100e6, 50e6, 65e6) - 1.6).abs() < 1e-9);
        assert!((predicted(1e6, 1e6, 0.0, 65e6) - 1.0).abs() < f64::EPSILON);
    }
}
