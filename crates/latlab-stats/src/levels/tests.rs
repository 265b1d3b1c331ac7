use super::{CurvePoint, Level, PairedPoint, TlbStep, find, find_levels, refine_sizes, tlb_reach};
use crate::rng::Rng;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// A Zen 5 virtual machine (48 KiB L1d, 1 MiB L2, 32 MiB L3 shared with neighbours), multichase, ns: quiet
/// page-local, quiet random, quiet huge pages; then the same with busy neighbours.
const ZEN5: [(f64, [f64; 6]); 25] = [
    (4.0, [1.085, 1.063, 1.024, 1.106, 1.049, 1.044]),
    (8.0, [1.064, 1.078, 1.033, 1.113, 1.038, 1.034]),
    (16.0, [1.057, 1.079, 1.047, 1.111, 1.029, 1.040]),
    (32.0, [1.058, 1.115, 1.061, 1.231, 1.027, 1.096]),
    (48.0, [1.144, 1.672, 1.188, 2.488, 1.129, 1.307]),
    (64.0, [3.775, 3.719, 3.697, 3.854, 3.688, 3.615]),
    (128.0, [3.794, 3.644, 3.864, 4.048, 3.669, 3.685]),
    (256.0, [3.793, 3.641, 3.795, 4.021, 3.774, 3.708]),
    (512.0, [3.842, 4.103, 4.249, 3.949, 4.331, 4.237]),
    (768.0, [4.720, 5.784, 5.792, 5.639, 7.177, 6.086]),
    (1024.0, [6.427, 7.055, 9.574, 7.213, 9.083, 6.762]),
    (1536.0, [9.177, 10.318, 10.699, 12.657, 10.842, 10.037]),
    (2048.0, [11.247, 11.852, 11.322, 12.916, 12.105, 11.345]),
    (4096.0, [10.565, 13.203, 13.135, 146.3, 14.176, 12.887]),
    (8192.0, [15.096, 17.275, 14.532, 148.2, 142.7, 14.186]),
    (16384.0, [28.825, 18.515, 31.667, 140.5, 161.3, 110.6]),
    (24576.0, [107.7, 87.047, 60.254, 134.9, 212.7, 137.8]),
    (32768.0, [108.1, 135.3, 147.4, 133.8, 194.0, 130.0]),
    (49152.0, [110.7, 162.2, 141.3, 145.7, 233.7, 146.9]),
    (65536.0, [113.0, 171.0, 150.3, 146.0, 203.2, 147.9]),
    (131_072.0, [115.6, 169.6, 155.4, 147.5, 218.4, 154.3]),
    (262_144.0, [116.8, 184.4, 163.7, 141.9, 224.2, 164.0]),
    (524_288.0, [113.1, 183.0, 183.9, 144.8, 275.8, 165.3]),
    (1_048_576.0, [117.5, 182.6, 182.7, 144.4, 258.4, 165.8]),
    (2_097_152.0, [f64::NAN; 6]),
];

fn zen5(column: usize) -> Vec<CurvePoint> {
    let point = |&(kib, ns): &(f64, [f64; 6])| {
        let p50_ns = ns[column];
        CurvePoint {
            size_bytes: kib * KIB,
            p50_ns,
            lo_ns: 0.98 * p50_ns,
            hi_ns: 1.02 * p50_ns,
            disturbed: false,
        }
    };
    ZEN5.iter().map(point).collect()
}

/// Without an interval.
fn exact(size_bytes: f64, p50_ns: f64, disturbed: bool) -> CurvePoint {
    CurvePoint { size_bytes, p50_ns, lo_ns: p50_ns, hi_ns: p50_ns, disturbed }
}

fn levels(points: &[CurvePoint]) -> Vec<Level> {
    find_levels(points, 0, &[])
}

fn within(x: f64, lo: f64, hi: f64) {
    assert!((lo..=hi).contains(&x), "{x} is not within {lo}..{hi}");
}

#[test]
fn the_quiet_machine_shows_its_four_levels_in_every_page_mode() {
    for column in 0..3 {
        let found = levels(&zen5(column));
        assert_eq!(found.len(), 4, "column {column}: {found:#?}");
        let [l1, l2, l3, ram] = &found[..] else { unreachable!() };
        within(l1.latency_ns, 1.02, 1.15);
        assert_eq!(l1.bracket, Some((48.0 * KIB, 64.0 * KIB)), "column {column}");
        within(l2.latency_ns, 3.6, 3.9);
        let (begin, end) = l2.bracket.unwrap();
        within(begin, 256.0 * KIB, 768.0 * KIB);
        within(end, MIB, 1.5 * MIB);
        within(l2.upper_end_bytes.unwrap(), MIB, 2.0 * MIB);
        within(l3.latency_ns, 10.0, 15.5);
        let (begin, end) = l3.bracket.unwrap();
        within(begin, 16.0 * MIB, 16.0 * MIB);
        within(end, 24.0 * MIB, 32.0 * MIB);
        assert!(ram.bracket.is_none() && ram.upper_end_bytes.is_none() && ram.confidence.is_none());
        for level in &found[..3] {
            assert!(level.confidence.unwrap() > 0.7, "column {column}: {level:?}");
        }
    }
}

#[test]
fn page_local_ram_is_108_to_117_ns() {
    let ram = levels(&zen5(0)).pop().unwrap();
    within(ram.latency_ns, 108.0, 117.0);
    within(ram.range_ns.0, 107.0, 109.0);
    within(ram.range_ns.1, 117.0, 118.0);
    within(ram.from_bytes, 24.0 * MIB, 24.0 * MIB);
}

#[test]
fn busy_neighbours_shrink_the_l3_and_that_is_what_is_found() {
    for (column, l3_end) in [(3, 4.0 * MIB), (4, 8.0 * MIB), (5, 16.0 * MIB)] {
        let found = levels(&zen5(column));
        assert_eq!(found.len(), 4, "column {column}: {found:#?}");
        let (lo, hi) = found[0].bracket.unwrap();
        assert!(lo >= 32.0 * KIB && hi <= 64.0 * KIB, "column {column}: {found:#?}");
        within(found[2].bracket.unwrap().1, l3_end, l3_end);
        assert!(found[1].upper_end_bytes.unwrap() >= MIB);
    }
}

/// Latency of a hierarchy whose misses rise smoothly (in log size) from `capacity / 2^width` to
/// `capacity * 2^(width/4)`.
fn planted(levels: &[(f64, f64, f64)], size: f64) -> f64 {
    let mut ns = levels[0].0;
    for pair in levels.windows(2) {
        let (_, capacity, width) = pair[0];
        let (from, to) = (capacity / width.exp2(), capacity * (width / 4.0).exp2());
        let t = ((size / from).ln() / (to / from).ln()).clamp(0.0, 1.0);
        ns += (pair[1].0 - pair[0].0) * t * t * (3.0 - 2.0 * t);
    }
    ns
}

fn sweep(levels: &[(f64, f64, f64)], rng: &mut Rng, per_octave: f64, last: f64) -> Vec<CurvePoint> {
    let mut points = Vec::new();
    let mut size = KIB;
    while size <= last * 1.001 {
        let mut p50_ns = planted(levels, size) * (0.025 * rng.normal()).exp();
        let spike = rng.uniform() < 0.04;
        if spike {
            p50_ns *= 1.5 + 6.0 * rng.uniform();
        }
        // The reference chase sees half of the disturbances.
        let disturbed = spike && rng.uniform() < 0.5;
        points.push(CurvePoint {
            size_bytes: size,
            p50_ns,
            lo_ns: p50_ns * 0.97,
            hi_ns: p50_ns * 1.03,
            disturbed,
        });
        size *= 2_f64.powf(1.0 / per_octave);
    }
    points
}

/// Over many seeds: how often the planted levels come out, each within 12 % and with its capacity bracketed.
fn recovered(planted: &[(f64, f64, f64)], per_octave: f64, last: f64) -> f64 {
    let seeds = 200;
    let step = 2_f64.powf(1.01 / per_octave);
    let good = (0..seeds).filter(|&seed| {
        let found = find(&sweep(planted, &mut Rng::new(seed), per_octave, last), 0, 0, &[]);
        found.len() == planted.len()
            && found.iter().zip(planted).enumerate().all(|(i, (f, p))| {
                // One step of grace: a spike beside the knee cannot be told from the knee.
                let bracketed =
                    f.bracket.is_none_or(|(lo, hi)| lo <= p.1 * step && hi * step >= p.1 / p.2.exp2());
                let complete = f.upper_end_bytes.is_none_or(|end| end * 1.35 >= p.1);
                let bounded = f.bracket.is_some() || i + 1 == planted.len();
                (f.latency_ns / p.0).ln().abs() < 0.12 && bracketed && complete && bounded
            })
    });
    good.count() as f64 / seeds as f64
}

#[test]
fn planted_hierarchies_come_out_as_planted() {
    let ram = f64::INFINITY;
    let sharp = [(1.1, 32.0 * KIB, 0.1), (3.8, MIB, 0.1), (12.0, 16.0 * MIB, 0.1), (95.0, ram, 0.0)];
    let soft = [(1.0, 48.0 * KIB, 0.3), (3.7, 1.2 * MIB, 1.7), (13.0, 24.0 * MIB, 1.8), (110.0, ram, 0.0)];
    let three = [(1.3, 64.0 * KIB, 0.2), (5.5, 4.0 * MIB, 1.0), (120.0, ram, 0.0)];
    let two = [(1.0, 32.0 * KIB, 0.2), (4.0, ram, 0.0)];
    for (name, plan, last) in [
        ("sharp", &sharp[..], 1024.0 * MIB),
        ("soft", &soft[..], 1024.0 * MIB),
        ("three", &three[..], 256.0 * MIB),
        ("two", &two[..], 0.5 * MIB),
    ] {
        for per_octave in [3.0, 8.0] {
            let good = recovered(plan, per_octave, last);
            assert!(good >= 0.95, "{name} at {per_octave} sizes an octave: {good}");
        }
    }
}

#[test]
fn a_sweep_that_ends_on_the_way_up_has_an_open_end() {
    let points: Vec<CurvePoint> = zen5(0).into_iter().filter(|p| p.size_bytes <= MIB).collect();
    let found = levels(&points);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[1].upper_end_bytes, None);
    assert_eq!(found[1].bracket, Some((768.0 * KIB, MIB)));
}

#[test]
fn few_odd_or_no_points_are_no_trouble() {
    assert!(levels(&[]).is_empty());
    let one = CurvePoint { size_bytes: 1.0, p50_ns: 1.0, lo_ns: f64::NAN, hi_ns: f64::NAN, disturbed: true };
    assert!(levels(&[one]).is_empty());
    assert!(levels(&[CurvePoint { p50_ns: -1.0, ..one }; 3]).is_empty());
    let flat = [one, CurvePoint { size_bytes: 2.0, ..one }, CurvePoint { size_bytes: 4.0, ..one }];
    let found = levels(&flat);
    assert_eq!((found.len(), found[0].bracket, found[0].disturbed), (1, None, 3));
}

#[test]
fn the_range_of_a_level_holds_its_latency_also_where_few_points_are_undisturbed() {
    let measured = [(3.54, false), (3.70, true), (3.71, true), (3.72, true)];
    let sizes = (10..).map(|doubling| 2.0_f64.powi(doubling));
    let points = sizes.zip(measured).map(|(size, (ns, disturbed))| exact(size, ns, disturbed));
    let found = levels(&points.collect::<Vec<_>>());
    let (lo, hi) = found[0].range_ns;
    within(found[0].latency_ns, lo, hi);
    assert!(lo <= 3.54 && hi < 3.72, "the disturbed ones are no part of it: {lo} to {hi}");
}

#[test]
fn several_page_draws_of_one_size_count_as_one_point() {
    let mut points = zen5(0);
    let same = points[10];
    points.extend([CurvePoint { p50_ns: 6.0, ..same }, CurvePoint { p50_ns: 60.0, disturbed: true, ..same }]);
    points.reverse();
    assert_eq!(levels(&points).len(), 4);
}

#[test]
fn a_step_that_a_tlb_explains_is_marked() {
    let tlb = [
        TlbStep { reach_bytes: 64.0 * KIB, step_ns: 2.0 },
        TlbStep { reach_bytes: 16.0 * MIB, step_ns: 5.0 },
    ];
    let found = find_levels(&zen5(0), 0, &tlb);
    assert_eq!(found.iter().map(|l| l.tlb_suspect).collect::<Vec<_>>(), [true, false, false, false]);
}

#[test]
fn refinement_goes_to_the_knees_and_comes_to_an_end() {
    let plan = [(1.0, 48.0 * KIB, 0.3), (3.7, 1.2 * MIB, 1.0), (100.0, f64::INFINITY, 0.0)];
    let at = |size: f64| exact(size, planted(&plan, size), false);
    let mut points: Vec<CurvePoint> = (0..18).map(|i| at(KIB * f64::from(i).exp2())).collect();
    let mut rounds = 0;
    loop {
        let more = refine_sizes(&points, 8);
        if more.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 4);
        points.extend(more.into_iter().map(|s| at((s / 64.0).round() * 64.0)));
        points.sort_by(|a, b| a.size_bytes.total_cmp(&b.size_bytes));
        assert!(points.windows(2).all(|w| w[0].size_bytes < w[1].size_bytes));
    }
    assert!(points.len() < 80, "{}", points.len());
    let found = levels(&points);
    let (lo, hi) = found[0].bracket.unwrap();
    assert!(hi / lo < 1.5 && lo <= 48.0 * KIB * 1.1 && hi >= 36.0 * KIB);
}

fn paired(rows: &[(f64, f64, f64)]) -> Vec<PairedPoint> {
    let point = |&(pages, packed_ns, spread_ns): &(f64, f64, f64)| {
        let d = spread_ns - packed_ns;
        PairedPoint { pages, packed_ns, spread_ns, lo: d - 0.1, hi: d + 0.1 }
    };
    rows.iter().map(point).collect()
}

#[test]
fn tlb_knees_of_the_zen5_machine_are_at_96_and_4096_pages() {
    let packed = [1.11, 1.07, 1.11, 3.70, 3.74, 3.80, 7.40, 14.9];
    let pages = [64.0, 96.0, 112.0, 1024.0, 4096.0, 5120.0, 16384.0, 65536.0];
    for spread in
        [[1.08, 1.08, 2.78, 5.01, 8.66, 13.2, 29.4, 171.6], [1.09, 1.09, 2.79, 5.21, 7.91, 11.5, 23.9, 145.9]]
    {
        let rows: Vec<_> = (0..8).map(|i| (pages[i], packed[i], spread[i])).collect();
        let found = tlb_reach(&paired(&rows));
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!((found[0].pages_lo, found[0].pages_hi, found[0].detected), (96.0, 112.0, true));
        assert_eq!((found[1].pages_lo, found[1].pages_hi, found[1].detected), (4096.0, 5120.0, true));
        within(found[1].begins_pages, 1024.0, 1024.0);
        within(found[0].step_ns, 1.5, 1.8);
    }
}

#[test]
fn a_dense_noisy_tlb_sweep_shows_the_planted_reach() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let rows: Vec<_> = (0..48)
            .map(|i| {
                let pages = 16.0 * (f64::from(i) / 4.0).exp2();
                let beyond = (pages / 1536.0_f64).log2().max(0.0);
                let cost = if pages > 64.0 { 1.8 } else { 0.0 }
                    + if beyond > 0.0 { 6.0 + 3.0 * beyond } else { 0.0 };
                (pages, 4.0, 4.0 + cost + 0.08 * rng.normal())
            })
            .collect();
        let found: Vec<_> = tlb_reach(&paired(&rows)).into_iter().filter(|b| b.detected).collect();
        assert_eq!(found.len(), 2, "seed {seed}: {found:#?}");
        assert!(found[0].pages_lo <= 64.0 && 64.0 < found[0].pages_hi, "seed {seed}: {found:#?}");
        assert!(found[1].pages_lo <= 1536.0 && 1536.0 <= found[1].pages_hi, "seed {seed}: {found:#?}");
    }
}

#[test]
fn one_raised_point_is_no_boundary_and_the_last_one_only_a_candidate() {
    let flat: Vec<_> = (0..12).map(|i| (f64::from(i).exp2(), 2.0, if i == 5 { 9.0 } else { 2.0 })).collect();
    assert!(tlb_reach(&paired(&flat)).is_empty());
    let end: Vec<_> = (0..12).map(|i| (f64::from(i).exp2(), 2.0, if i == 11 { 9.0 } else { 2.0 })).collect();
    let found = tlb_reach(&paired(&end));
    assert!(found.len() == 1 && !found[0].detected);
    assert!(tlb_reach(&[]).is_empty());
}
