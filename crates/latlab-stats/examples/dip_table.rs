//! Prints the table of `src/dip.rs`: how large a dip uniform samples have by chance. Seeded; takes a minute.

use latlab_stats::dip;
use latlab_stats::rng::Rng;

const SHARES: [f64; 9] = [0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001];

fn main() {
    for (n, turns) in [
        (10_u32, 100_000_u64),
        (30, 100_000),
        (100, 100_000),
        (300, 100_000),
        (1000, 50_000),
        (10_000, 10_000),
    ] {
        let mut rng = Rng::new(u64::from(n));
        let mut dips: Vec<f64> = (0..turns)
            .map(|_| {
                let mut values: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
                values.sort_unstable_by(f64::total_cmp);
                dip(&values).map_or(0.0, |found| found.dip) * f64::from(n).sqrt()
            })
            .collect();
        dips.sort_unstable_by(f64::total_cmp);
        let row: Vec<String> =
            SHARES.iter().map(|share| format!("{:.4}", latlab_stats::quantile(&dips, 1.0 - share))).collect();
        println!("    ({n}.0, [{}]),", row.join(", "));
    }
}
