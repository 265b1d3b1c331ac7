//! What must hold for any samples.

use latlab_stats::levels::{CurvePoint, LevelOptions, PairedPoint, find_levels, refine_sizes, tlb_reach};
use latlab_stats::weighted::quantile_counts;
use latlab_stats::{
    Interval, IntervalMethod, block_bootstrap_interval, dependence, mean_interval, min_samples, moments,
    order_statistic_interval, quantile, quantile_interval,
};
use proptest::prelude::*;

fn sorted(mut x: Vec<f64>) -> Vec<f64> {
    x.sort_by(f64::total_cmp);
    x
}

fn values(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    // Ties on purpose: clocks are coarse.
    prop_oneof![
        prop::collection::vec(-1e6..1e6, n.clone()),
        prop::collection::vec((0_i32..20).prop_map(f64::from), n),
    ]
}

fn blocks() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(values(0..60), 6..12)
}

fn refs(blocks: &[Vec<f64>]) -> Vec<&[f64]> {
    blocks.iter().map(Vec::as_slice).collect()
}

/// Powers of two, so that equality is exact.
fn scaled(blocks: &[Vec<f64>]) -> Vec<Vec<f64>> {
    blocks.iter().map(|b| b.iter().map(|x| x * 4.0).collect()).collect()
}

fn same_scaled(a: Interval, b: Interval) -> bool {
    let near = |x: f64, y: f64| (4.0 * x - y).abs() <= 1e-9 * y.abs().max(1.0);
    near(a.lo, b.lo) && near(a.hi, b.hi) && a.method == b.method
}

proptest! {
    #[test]
    fn a_quantile_lies_between_the_extremes_and_grows_with_q(x in values(1..80), a in 0.0..1.0, b in 0.0..1.0) {
        let x = sorted(x);
        let (lo, hi) = (quantile(&x, f64::min(a, b)), quantile(&x, f64::max(a, b)));
        prop_assert!(x[0] <= lo && lo <= hi && hi <= x[x.len() - 1]);
    }

    #[test]
    fn an_interval_contains_the_quantile_and_widens_with_the_level(
        x in values(6..400), q in 0.02..0.98, a in 0.01..0.999, b in 0.01..0.999,
    ) {
        let x = sorted(x);
        let narrow = order_statistic_interval(&x, q, f64::min(a, b));
        let wide = order_statistic_interval(&x, q, f64::max(a, b));
        if let Ok(i) = narrow {
            prop_assert!(i.lo <= quantile(&x, q) && quantile(&x, q) <= i.hi);
            if let Ok(w) = wide {
                prop_assert!(w.lo <= i.lo && i.hi <= w.hi);
            }
        } else {
            prop_assert!(wide.is_err());
        }
    }

    #[test]
    fn refused_exactly_below_the_least_count(n in 1_usize..500, q in 0.01..0.99, level in 0.5..0.99) {
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        prop_assert_eq!(order_statistic_interval(&x, q, level).is_ok(), n as u64 >= min_samples(q, level));
    }

    #[test]
    fn intervals_follow_a_change_of_unit_and_of_origin(b in blocks(), q in 0.2..0.8) {
        let fourfold = scaled(&b);
        if let Ok(e) = quantile_interval(&refs(&b), q, 0.95, 7) {
            let f = quantile_interval(&refs(&fourfold), q, 0.95, 7).unwrap();
            prop_assert!(same_scaled(e.interval, f.interval));
        }
        if let Ok(e) = mean_interval(&refs(&b), 0.95) {
            prop_assert!(same_scaled(e.interval, mean_interval(&refs(&fourfold), 0.95).unwrap().interval));
        }
        if let Ok(i) = block_bootstrap_interval(&refs(&b), q, 0.95, 100, 7) {
            let moved: Vec<Vec<f64>> = b.iter().map(|b| b.iter().map(|x| x + 1024.0).collect()).collect();
            // A shift may round away a difference, never reorder; the ends move with it.
            let j = block_bootstrap_interval(&refs(&moved), q, 0.95, 100, 7).unwrap();
            prop_assert!((i.lo + 1024.0 - j.lo).abs() < 1e-6 && (i.hi + 1024.0 - j.hi).abs() < 1e-6);
        }
    }

    #[test]
    fn the_order_of_independent_samples_does_not_matter(
        (x, shuffled) in values(40..200).prop_flat_map(|x| (Just(x.clone()), Just(x).prop_shuffle())),
    ) {
        let (a, b) = (quantile_interval(&[&x], 0.5, 0.95, 1), quantile_interval(&[&shuffled], 0.5, 0.95, 1));
        if let (Ok(a), Ok(b)) = (a, b) {
            prop_assert_eq!(a.interval, b.interval);
            prop_assert_eq!(a.interval.method, IntervalMethod::OrderStatistics);
        }
    }

    #[test]
    fn a_bootstrap_interval_contains_the_quantile_and_repeats_with_its_seed(b in blocks(), q in 0.1..0.9, seed: u64) {
        let i = block_bootstrap_interval(&refs(&b), q, 0.95, 200, seed);
        if let Ok(i) = &i {
            let all = sorted(b.concat());
            prop_assert!(i.lo <= quantile(&all, q) && quantile(&all, q) <= i.hi);
        }
        prop_assert_eq!(i, block_bootstrap_interval(&refs(&b), q, 0.95, 200, seed));
    }

    #[test]
    fn dependence_is_never_out_of_its_ranges(b in blocks()) {
        let d = dependence(&refs(&b));
        let n: usize = b.iter().map(Vec::len).sum();
        prop_assert!(d.effective_samples <= n as f64 && d.effective_samples >= f64::from(u8::from(n > 0)));
        prop_assert!(d.lag1.is_none_or(|r| (-1.0..=1.0).contains(&r)));
        prop_assert!(d.between_block_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
        prop_assert!(d.between_stretch_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
    }

    #[test]
    fn buckets_and_their_samples_agree(counts in prop::collection::vec(0_u64..9, 1..60), q in 0.0..1.0) {
        let buckets: Vec<(f64, u64)> = counts.iter().zip(0_u32..).map(|(&n, x)| (f64::from(x), n)).collect();
        let samples: Vec<f64> =
            buckets.iter().flat_map(|&(x, n)| std::iter::repeat_n(x, usize::try_from(n).unwrap())).collect();
        let (a, b) = (quantile_counts(&buckets, q), quantile(&samples, q));
        prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
    }

    #[test]
    fn a_mean_lies_between_the_extremes(x in values(1..80)) {
        let m = moments(&x).unwrap();
        prop_assert!(m.min <= m.mean + 1e-9 && m.mean <= m.max + 1e-9 && m.n == x.len() as u64);
    }

    #[test]
    fn any_curve_gives_levels_in_order(
        raw in prop::collection::vec((1.0..1e9, 0.5..500.0, any::<bool>()), 0..60),
    ) {
        let points: Vec<CurvePoint> = raw
            .iter()
            .map(|&(size_bytes, p50_ns, disturbed)| CurvePoint {
                size_bytes, p50_ns, lo_ns: 0.9 * p50_ns, hi_ns: 1.1 * p50_ns, disturbed,
            })
            .collect();
        let opts = LevelOptions { resamples: 5, ..LevelOptions::default() };
        let levels = find_levels(&points, &opts);
        for l in &levels {
            prop_assert!(l.from_bytes <= l.to_bytes && l.range_ns.0 <= l.range_ns.1);
            if let Some((lo, hi)) = l.bracket {
                prop_assert!(l.to_bytes <= lo && lo < hi && l.upper_end_bytes.is_none_or(|end| hi <= end));
            }
            prop_assert_eq!(l.bracket.is_some(), l.confidence.is_some());
        }
        prop_assert!(levels.windows(2).all(|w| w[0].to_bytes < w[1].from_bytes));
        let sizes = refine_sizes(&points, 8);
        prop_assert!(sizes.is_sorted() && sizes.iter().all(|s| !raw.iter().any(|r| r.0.to_bits() == s.to_bits())));
    }

    #[test]
    fn any_paired_sweep_gives_boundaries_in_order(raw in prop::collection::vec((1.0..1e6, -1.0..50.0), 0..40)) {
        let points: Vec<PairedPoint> = raw
            .iter()
            .map(|&(pages, d)| PairedPoint { pages, packed_ns: 2.0, spread_ns: 2.0 + d, lo: d - 0.1, hi: d + 0.1 })
            .collect();
        let found = tlb_reach(&points);
        prop_assert!(found.iter().all(|b| b.begins_pages <= b.pages_lo && b.pages_lo <= b.pages_hi));
        prop_assert!(found.windows(2).all(|w| w[0].pages_lo <= w[1].begins_pages));
    }
}
