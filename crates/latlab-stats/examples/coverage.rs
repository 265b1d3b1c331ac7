//! How often every interval that latlab prints, nominally 95 %, holds the truth: the table of METHODOLOGY.md.
//!
//! ```text
//! cargo run --release -p latlab-stats --example coverage [REPETITIONS]
//! ```
//!
//! Seeded: the same table on every machine. Samples are uniform numbers, independent or following each other (a Gaussian
//! first-order process within each block), turned into each distribution, whose truth is known from formulas.

use latlab_stats::rng::Rng;
use latlab_stats::{between_blocks_interval, mean_interval, order_statistic_interval, quantile_interval};

/// Quantile function.
type Inverse = fn(f64) -> f64;
/// What an estimator answers: nothing, or its interval and the truth that it should hold.
type Answer = Option<([f64; 2], f64)>;
/// All estimators of a table, of blocks and a seed.
type Estimators<'a> = &'a (dyn Fn(&[&[f64]], u64) -> Vec<Answer> + Sync);

/// Standard normal quantile: Acklam's rational approximation would do; bisection of the series is exact enough and short.
fn normal(u: f64) -> f64 {
    // Abramowitz and Stegun 26.2.23, then two steps of Newton's method.
    let p = u.min(1.0 - u).max(1e-300);
    let t = (-2.0 * p.ln()).sqrt();
    let mut z = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..2 {
        z += (upper(z) - p) / ((-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt());
    }
    if u < 0.5 { -z } else { z }
}

/// Upper tail of the standard normal distribution for z > 0.
fn upper(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if z < 3.0 {
        let (mut term, mut sum, mut n) = (z, z, 1.0);
        while term > 1e-17 {
            n += 2.0;
            term *= z * z / n;
            sum += term;
        }
        0.5 - density * sum
    } else {
        density / (1..=80).rev().fold(z, |rest, n| z + f64::from(n) / rest)
    }
}

struct Distribution {
    name: &'static str,
    inverse: Inverse,
    mean: f64,
}

const PARETO: f64 = 1.5;
/// Of the spikes: 97 % within 10 to 11, the rest 100 to 1,100.
const BODY: f64 = 0.97;

const DISTRIBUTIONS: [Distribution; 5] = [
    Distribution {
        name: "normal",
        // A mean of ten deviations: latencies are positive.
        inverse: |u| 10.0 + normal(u),
        mean: 10.0,
    },
    Distribution {
        name: "lognormal, 0.5",
        inverse: |u| (0.5 * normal(u)).exp(),
        mean: 1.133_148_453_066_826_3,
    },
    Distribution { name: "lognormal, 2", inverse: |u| (2.0 * normal(u)).exp(), mean: 7.389_056_098_930_65 },
    Distribution { name: "Pareto, 1.5", inverse: |u| (1.0 - u).powf(-1.0 / PARETO), mean: 3.0 },
    Distribution {
        name: "spikes",
        inverse: |u| {
            if u < BODY { 10.0 + u / BODY } else { 100.0 + 1000.0 * (u - BODY) / (1.0 - BODY) }
        },
        mean: BODY * 10.5 + (1.0 - BODY) * 600.0,
    },
];

/// Shape of a set of samples: blocks, samples in each, and the correlation of neighbours.
#[derive(Clone, Copy)]
struct Plan {
    blocks: usize,
    each: usize,
    following: f64,
}

impl Plan {
    fn draw(self, rng: &mut Rng, inverse: Inverse) -> Vec<Vec<f64>> {
        let fresh = (1.0 - self.following * self.following).sqrt();
        (0..self.blocks)
            .map(|_| {
                let mut z = rng.normal();
                (0..self.each)
                    .map(|_| {
                        let u = if self.following > 0.0 {
                            z = self.following * z + fresh * rng.normal();
                            let tail = upper(z.abs());
                            if z < 0.0 { tail } else { 1.0 - tail }
                        } else {
                            rng.uniform()
                        };
                        inverse(u.clamp(1e-15, 1.0 - 1e-15))
                    })
                    .collect()
            })
            .collect()
    }

    fn name(self) -> String {
        let order = if self.following > 0.0 {
            format!("following, {}", self.following)
        } else {
            "independent".to_owned()
        };
        format!("{} x {}, {order}", self.blocks, thousands(self.each))
    }
}

fn thousands(n: usize) -> String {
    if n >= 1000 { format!("{},{:03}", n / 1000, n % 1000) } else { n.to_string() }
}

/// Of some seeds, for each estimator: how many printed an interval, and how many of those held the truth.
fn tally(plan: Plan, inverse: Inverse, seeds: impl Iterator<Item = u64>, ask: Estimators) -> Vec<(u64, u64)> {
    let mut tallies: Vec<(u64, u64)> = Vec::new();
    for seed in seeds {
        let blocks = plan.draw(&mut Rng::new(seed), inverse);
        let views: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).collect();
        let answers = ask(&views, seed);
        tallies.resize(answers.len(), (0, 0));
        for (tally, answer) in tallies.iter_mut().zip(answers) {
            if let Some(([lo, hi], truth)) = answer {
                tally.0 += 1;
                tally.1 += u64::from(lo <= truth && truth <= hi);
            }
        }
    }
    tallies
}

/// A cell for each of the estimators: how many repetitions printed an interval, and how many of those held the truth.
fn counted(plan: Plan, inverse: Inverse, repetitions: u64, ask: Estimators) -> Vec<String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = std::thread::scope(|scope| {
        let each = |worker: usize| {
            scope.spawn(move || tally(plan, inverse, (1 + worker as u64..=repetitions).step_by(workers), ask))
        };
        let started: Vec<_> = (0..workers).map(each).collect();
        started.into_iter().map(|own| own.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut tallies = vec![(0, 0); counts[0].len()];
    for own in counts {
        for (sum, part) in tallies.iter_mut().zip(own) {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
    }
    tallies.into_iter().map(|(printed, held)| cell(printed, held, repetitions)).collect()
}

/// `95.1` where nearly all were printed, `94 (of 31)` where few were, `-` where none.
fn cell(printed: u64, held: u64, repetitions: u64) -> String {
    let share = 100.0 * held as f64 / printed.max(1) as f64;
    let of = 100.0 * printed as f64 / repetitions as f64;
    if of < 0.5 {
        "-".to_owned()
    } else if of > 99.5 {
        format!("{share:.1}")
    } else {
        format!("{share:.1} (of {of:.0})")
    }
}

fn row(title: &str, cells: &[String]) {
    println!("| {title} | {} |", cells.join(" | "));
}

fn table(columns: &[&str]) {
    println!("| | {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len() + 1));
}

fn main() {
    let repetitions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2000);
    let plans = [0.0, 0.5, 0.9].map(|following| Plan { blocks: 8, each: 200, following });
    table(&["p50", "p90", "p99", "mean", "p50 between blocks", "p90 by order statistics"]);
    for d in &DISTRIBUTIONS {
        for plan in plans {
            let cells = counted(plan, d.inverse, repetitions, &|blocks, seed| {
                let quantile = |q: f64| {
                    let interval = quantile_interval(blocks, q, 0.95, seed).ok()?.interval;
                    Some(([interval.lo, interval.hi], (d.inverse)(q)))
                };
                let mean = mean_interval(blocks, 0.95).ok().map(|e| ([e.interval.lo, e.interval.hi], d.mean));
                let between = between_blocks_interval(blocks, 0.5, 0.95).ok();
                let mut all = blocks.concat();
                all.sort_unstable_by(f64::total_cmp);
                // For samples that are known to be independent: of others it is not asked.
                let ordered =
                    order_statistic_interval(&all, 0.9, 0.95).ok().filter(|_| plan.following == 0.0);
                vec![
                    quantile(0.5),
                    quantile(0.9),
                    quantile(0.99),
                    mean,
                    between.map(|i| ([i.lo, i.hi], (d.inverse)(0.5))),
                    ordered.map(|i| ([i.lo, i.hi], (d.inverse)(0.9))),
                ]
            });
            row(&format!("{}, {}", d.name, plan.name()), &cells);
        }
    }
}
