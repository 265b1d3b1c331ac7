//! How often a nominal 95 % interval of a run's figure contains the true value. Seeded: the same on every run
//! and machine.

use latlab_stats::fold_rounds;
use latlab_stats::rng::Rng;

/// Rounds by CPU of a headline, a curve's point and a detail.
type Shape = &'static [usize];
const CURVE: Shape = &[2];
const DETAIL: Shape = &[1];

/// Share of points whose interval holds the truth, and the median of half its width on the logarithm. The
/// truth is the mean over the point's CPUs; rounds differ by `between`, of unlike kin by a factor of exp(N(0,
/// 0.7)) each, and blocks of 3 % lie on top.
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
