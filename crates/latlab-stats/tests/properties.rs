//! What must hold for any samples.

use latlab_stats::levels::{CurvePoint, PairedPoint, find_levels, refine_sizes, tlb_reach};
use latlab_stats::weighted::quantile_counts;
use latlab_stats::{min_samples, moments, order_statistic_interval, quantile};
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
        if let Ok((lo, hi)) = narrow {
            prop_assert!(lo <= quantile(&x, q) && quantile(&x, q) <= hi);
            if let Ok((least, most)) = wide {
                prop_assert!(least <= lo && hi <= most);
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
        prop_assert!(m.min <= m.mean + 1e-9 && m.mean <= m.max + 1e-9);
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
        let levels = find_levels(&points, 0, &[]);
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
