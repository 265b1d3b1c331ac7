//! How often a nominal 95 % interval contains the true value. Seeded: the same on every run and machine.
//!
//! Where an interval is printed in nine of ten repetitions, at least 93 % of them must hold the truth. Where most
//! repetitions are refused, the few that are not are those whose blocks agreed by chance, and these cover less; there
//! the share of *all* repetitions that print a wrong interval is bounded.

use latlab_stats::rng::Rng;
use latlab_stats::{Estimate, IntervalMethod, Refusal, fold_rounds, mean_interval, quantile_interval};

const REPETITIONS: u32 = 2000;
/// Three standard deviations above 5 % in 2,000 repetitions, and then some for the choice between two methods.
const WRONG_AT_MOST: f64 = 0.07;

/// Fills one block; blocks differ by what it draws from the generator first.
type Draw<'a> = &'a dyn Fn(&mut Rng, &mut [f64]);

#[derive(Debug, Default)]
struct Tally {
    printed: u32,
    covered: u32,
    exact: u32,
}

impl Tally {
    fn hold(&self, case: &str) {
        let coverage = f64::from(self.covered) / f64::from(self.printed.max(1));
        let printed = f64::from(self.printed) / f64::from(REPETITIONS);
        let wrong = printed * (1.0 - coverage);
        println!("{case}: printed {printed:.3}, of these {coverage:.3} cover; {} exact", self.exact);
        assert!(wrong <= WRONG_AT_MOST, "{case}: {wrong} of all repetitions print a wrong interval");
        assert!(printed < 0.9 || coverage >= 0.93, "{case}: coverage {coverage}");
    }
}

/// An interval, and whether it is one by order statistics.
type Answer = ([f64; 2], bool);

fn answer(estimate: Result<Estimate, Refusal>) -> Option<Answer> {
    let interval = estimate.ok()?.interval;
    Some(([interval.lo, interval.hi], interval.method == IntervalMethod::OrderStatistics))
}

/// Of so many seeds; `shape`: blocks, and samples in each.
fn tally(
    repetitions: u32,
    shape: (usize, usize),
    truth: f64,
    draw: Draw,
    ask: impl Fn(&[&[f64]], u64) -> Option<Answer>,
) -> Tally {
    let mut t = Tally::default();
    for repetition in 1..=u64::from(repetitions) {
        let mut rng = Rng::new(repetition);
        let blocks: Vec<Vec<f64>> = (0..shape.0).map(|_| block(&mut rng, shape.1, draw)).collect();
        let views: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
        if let Some(([lo, hi], exact)) = ask(&views, repetition) {
            t.printed += 1;
            t.covered += u32::from(lo <= truth && truth <= hi);
            t.exact += u32::from(exact);
        }
    }
    t
}

fn block(rng: &mut Rng, n: usize, draw: Draw) -> Vec<f64> {
    let mut b = vec![0.0; n];
    draw(rng, &mut b);
    b
}

fn quantile_holds(name: &str, shape: (usize, usize), q: f64, truth: f64, draw: Draw) -> Tally {
    let ask = |blocks: &[&[f64]], seed| answer(quantile_interval(blocks, q, 0.95, seed));
    let t = tally(REPETITIONS, shape, truth, draw, ask);
    t.hold(&format!("{name}, {} x {}, q = {q}", shape.0, shape.1));
    t
}

/// Standard normal quantiles.
const NORMAL: [(f64, f64); 3] = [(0.5, 0.0), (0.9, 1.281_551_565_544_600_4), (0.99, 2.326_347_874_040_840_8)];

#[test]
fn independent_normal_and_lognormal_samples_are_covered() {
    for (q, z) in NORMAL {
        let t = quantile_holds("normal", (6, 100), q, z, &|rng, b| b.fill_with(|| rng.normal()));
        // 600 samples are barely enough for p99: the sets that look dependent by chance are refused.
        let least = if q > 0.95 { 70 } else { 99 };
        assert!(t.printed > REPETITIONS * least / 100 && t.exact > REPETITIONS / 2, "{t:?}");
        quantile_holds("lognormal", (8, 60), q, z.exp(), &|rng, b| {
            b.fill_with(|| rng.normal().exp());
        });
    }
}

#[test]
fn independent_heavy_tails_and_spikes_are_covered() {
    for q in [0.5, 0.9, 0.99] {
        let pareto = (1.0_f64 - q).powf(-1.0 / 1.5);
        quantile_holds("Pareto 1.5", (6, 100), q, pareto, &|rng, b| {
            b.fill_with(|| (1.0 - rng.uniform()).powf(-1.0 / 1.5));
        });
    }
    // Body uniform in 10..11, and 3 % spikes uniform in 100..1100.
    for (q, truth) in [(0.5, 10.0 + 0.5 / 0.97), (0.9, 10.0 + 0.9 / 0.97), (0.99, 100.0 + 1000.0 * 2.0 / 3.0)]
    {
        quantile_holds("spikes", (6, 100), q, truth, &|rng, b| {
            b.fill_with(|| {
                let (spike, u) = (rng.uniform() < 0.03, rng.uniform());
                if spike { 100.0 + 1000.0 * u } else { 10.0 + u }
            });
        });
    }
}

#[test]
fn samples_on_a_coarse_clock_are_covered() {
    // Rounded up to 10 ns: the quantile of the rounded values is the rounded quantile.
    quantile_holds("10 ns clock", (6, 100), 0.9, 120.0, &|rng, b| {
        b.fill_with(|| ((100.0 + 12.0 * rng.normal()) / 10.0).ceil() * 10.0);
    });
}

#[test]
fn samples_that_follow_each_other_are_covered() {
    for phi in [0.1_f64, 0.5, 0.9] {
        for (q, z) in NORMAL {
            quantile_holds(&format!("AR(1) {phi}"), (8, 200), q, z, &|rng, b| {
                let mut x = rng.normal();
                b.fill_with(|| {
                    x = phi * x + (1.0 - phi * phi).sqrt() * rng.normal();
                    x
                });
            });
        }
    }
}

#[test]
fn blocks_that_differ_are_covered_or_refused() {
    for shift in [0.1_f64, 0.3, 1.0] {
        for shape in [(6, 150), (20, 50)] {
            for (q, z) in NORMAL {
                let truth = z * shift.hypot(1.0);
                quantile_holds(&format!("blocks shifted by {shift}"), shape, q, truth, &|rng, b| {
                    let centre = shift * rng.normal();
                    b.fill_with(|| centre + rng.normal());
                });
            }
        }
    }
}

#[test]
fn blocks_in_two_regimes_are_covered() {
    // A neighbour is there in every third block: 10 ns or 14 ns. p90 of the mixture: 0.7 of the slow third.
    quantile_holds("regimes", (30, 40), 0.9, 14.0 + 0.7, &|rng, b| {
        let slow = rng.uniform() < 1.0 / 3.0;
        b.fill_with(|| rng.uniform() + if slow { 14.0 } else { 10.0 });
    });
}

#[test]
fn means_are_covered_or_refused() {
    let mean = |shape, truth, draw: Draw| {
        tally(REPETITIONS, shape, truth, draw, |blocks, _| answer(mean_interval(blocks, 0.95)))
    };
    let normal = mean((6, 100), 0.0, &|rng, b| b.fill_with(|| rng.normal()));
    normal.hold("mean of normals");
    assert!(normal.printed > REPETITIONS * 99 / 100);
    mean((8, 200), (0.125_f64).exp(), &|rng, b| b.fill_with(|| (0.5 * rng.normal()).exp()))
        .hold("mean of lognormals");
    let shifted: Draw = &|rng, b| {
        let centre = rng.normal();
        b.fill_with(|| centre + rng.normal());
    };
    mean((6, 100), 0.0, shifted).hold("mean of shifted blocks");
    let pareto: Draw = &|rng, b| b.fill_with(|| (1.0 - rng.uniform()).powf(-1.0 / 1.5));
    let refused = mean((8, 200), 3.0, pareto);
    assert!(refused.printed < REPETITIONS / 10, "{refused:?}");
}

/// Rounds by CPU of a headline, a curve's point and a detail.
type Shape = &'static [usize];
const CURVE: Shape = &[2];
const DETAIL: Shape = &[1];

/// Share of points whose interval holds the truth, and the median of half its width on the logarithm. The truth is the mean over the
/// point's CPUs; rounds differ by `between`, of unlike kin by a factor of exp(N(0, 0.7)) each, and blocks of 3 % lie on top.
fn rounds_tally(groups: &[(usize, Shape)], between: f64, cpus: f64, unlike: bool) -> (f64, f64) {
    const BLOCK: f64 = 0.03;
    const POINTS: usize = 2000;
    let kin: usize = groups.iter().map(|(many, _)| many).sum();
    let mut rng = Rng::new(1);
    let (mut held, mut halves, mut without) = (0.0, Vec::new(), 0);
    for _ in 0..POINTS / kin {
        let mut points = Vec::new();
        let mut truths = Vec::new();
        for shape in groups.iter().flat_map(|(many, shape)| std::iter::repeat_n(shape, *many)) {
            let own = if unlike { (0.7 * rng.normal()).exp() } else { 1.0 };
            let centres: Vec<f64> = shape.iter().map(|_| cpus * rng.normal()).collect();
            let rounds = centres.iter().zip(*shape).map(|(centre, rounds)| {
                (0..*rounds)
                    .map(|_| (centre + own * between * rng.normal() + BLOCK * rng.normal()).exp())
                    .collect()
            });
            points.push(rounds.collect::<Vec<Vec<f64>>>());
            truths.push(centres.iter().sum::<f64>() / centres.len() as f64);
        }
        for (folded, truth) in fold_rounds(&points, 0.95).into_iter().zip(truths) {
            let Some((lo, hi)) = folded.and_then(|folded| folded.interval) else {
                without += 1;
                continue;
            };
            held += f64::from(lo.ln() <= truth && truth <= hi.ln());
            halves.push((hi / lo).ln() / 2.0);
        }
    }
    assert!(without <= POINTS / 20, "{without} would reach beyond ten times the figure");
    halves.sort_by(f64::total_cmp);
    (held / halves.len() as f64, halves[halves.len() / 2])
}

#[test]
fn figures_of_rounds_are_covered_whatever_rounds_cpus_and_kin_differ_by() {
    let hold = |name: &str, groups: &[(usize, Shape)]| {
        let mut shown = Vec::new();
        // What CPUs differ by falls out of the sums: each size of it once beside what rounds differ by.
        for (between, cpus) in [(0.0, 0.4), (0.03, 0.1), (0.1, 0.0), (0.1, 0.4)] {
            for unlike in [false, true] {
                let (share, half) = rounds_tally(groups, between, cpus, unlike);
                shown.push(format!("{:.1} % ±{:.1}", 100.0 * share, 100.0 * half));
                assert!(
                    (0.92..=0.98).contains(&share),
                    "{name}, rounds by {between}, CPUs by {cpus}, unlike {unlike}: {share}"
                );
            }
        }
        println!("{name}: {}", shown.join(", "));
    };
    for (name, shape) in [
        ("6 rounds on 2 CPUs", &[3, 3][..]),
        ("4 rounds on 2 CPUs", &[2, 2]),
        ("12 rounds on 2 CPUs", &[6, 6]),
        ("6 rounds on 1 CPU", &[6]),
    ] {
        for kin in [1, 2, 5, 30] {
            hold(&format!("{name}, kin {kin}"), &[(kin, shape)]);
        }
        let mixed = [(3, shape), (8, CURVE), (4, DETAIL)];
        hold(&format!("{name}, kin 3, 8 of a curve, 4 details"), &mixed);
    }
    hold("10 of a curve, 5 details", &[(10, CURVE), (5, DETAIL)]);
}

#[test]
fn figures_of_rounds_that_go_on_until_they_agree_are_covered() {
    const RUNS: usize = 1000;
    const PASS: usize = 3;
    const MOST_PASSES: usize = 20;
    for between in [0.01, 0.03, 0.06] {
        for kin in [1, 5] {
            let mut rng = Rng::new(1);
            let (mut held, mut passes) = (0, 0);
            for _ in 0..RUNS {
                let mut points = vec![vec![Vec::new(); 2]; kin];
                let folded = (1..=MOST_PASSES)
                    .find_map(|pass| {
                        for cpu in points.iter_mut().flatten() {
                            cpu.extend((0..PASS).map(|_| (between * rng.normal()).exp()));
                        }
                        let folded: Vec<(f64, f64)> = fold_rounds(&points, 0.95)
                            .into_iter()
                            .map(|folded| folded.and_then(|folded| folded.interval).expect("rounds"))
                            .collect();
                        passes += 1;
                        let agree = folded.iter().all(|(lo, hi)| (hi / lo).sqrt() <= 1.02);
                        (agree || pass == MOST_PASSES).then_some(folded)
                    })
                    .expect("the last pass ends it");
                held += folded.iter().filter(|(lo, hi)| *lo <= 1.0 && 1.0 <= *hi).count();
            }
            let share = held as f64 / (RUNS * kin) as f64;
            let mean = f64::from(passes) / RUNS as f64;
            println!(
                "until 2 %, rounds by {between}, kin {kin}: {:.1} % after {mean:.1} passes",
                100.0 * share
            );
            assert!((0.92..=0.98).contains(&share), "rounds by {between}, kin {kin}: {share}");
        }
    }
}
