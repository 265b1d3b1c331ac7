//! Hartigan and Hartigan's dip test (Annals of Statistics 13, 1985): is there more than one mode?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The dip of a sample, and how often a uniform one dips as much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dip {
    /// Largest distance of the distribution function from the nearest one with a single mode.
    pub dip: f64,
    /// Chance of so large a dip if there were one mode; the least favourable one, a uniform, is assumed. Between 0.001 and 1.
    pub p: f64,
}

/// One place of a distribution function.
#[derive(Debug, Clone, Copy)]
struct Place {
    x: f64,
    /// Share below.
    below: f64,
    /// Share below or there.
    upto: f64,
}

/// Of samples sorted ascending; `None` for fewer than ten.
#[must_use]
pub fn dip(sorted: &[f64]) -> Option<Dip> {
    let n = sorted.len() as f64;
    let mut places: Vec<Place> = Vec::with_capacity(sorted.len());
    for (number, &x) in sorted.iter().enumerate() {
        let upto = (number + 1) as f64 / n;
        match places.last_mut() {
            Some(last) if last.x >= x => last.upto = upto,
            _ => places.push(Place { x, below: number as f64 / n, upto }),
        }
    }
    tested(&places, n)
}

/// Of bins that touch each other, as `(border, samples below it)` ascending: within a bin samples are taken as evenly spread, so
/// that the steps of a clock, if the borders lie between them, are no modes. `effective`: how many independent samples these are
/// worth. `None` for fewer than ten.
#[must_use]
pub fn dip_of_counts(borders: &[(f64, f64)], effective: f64) -> Option<Dip> {
    let total = borders.last()?.1;
    let places: Vec<Place> =
        borders.iter().map(|(x, count)| Place { x: *x, below: count / total, upto: count / total }).collect();
    tested(&places, effective.min(total))
}

fn tested(places: &[Place], n: f64) -> Option<Dip> {
    const LEAST: f64 = 10.0;
    if n.is_nan() || n < LEAST || places.iter().any(|place| !place.x.is_finite()) {
        return None;
    }
    let dip = dip_of(places);
    Some(Dip { dip, p: chance(dip, n) })
}

/// Places where the greatest convex function below the lower borders touches them.
fn convex(places: &[Place], from: usize, to: usize) -> Vec<usize> {
    hull(places, from, to, |place| place.below, |before, after| before < after)
}

/// ... and where the least concave one above the upper borders does.
fn concave(places: &[Place], from: usize, to: usize) -> Vec<usize> {
    hull(places, from, to, |place| place.upto, |before, after| before > after)
}

fn hull(
    places: &[Place],
    from: usize,
    to: usize,
    height: impl Fn(&Place) -> f64,
    turns: impl Fn(f64, f64) -> bool,
) -> Vec<usize> {
    let slope = |i: usize, j: usize| (height(&places[j]) - height(&places[i])) / (places[j].x - places[i].x);
    let mut kept: Vec<usize> = Vec::new();
    for place in from..=to {
        while let [.., a, b] = kept[..] {
            if turns(slope(a, b), slope(b, place)) {
                break;
            }
            kept.pop();
        }
        kept.push(place);
    }
    kept
}

/// The line through two places at a third one.
fn line(places: &[Place], pair: (usize, usize), at: f64, height: impl Fn(&Place) -> f64) -> f64 {
    let (a, b) = (&places[pair.0], &places[pair.1]);
    if b.x <= a.x {
        return height(a);
    }
    height(a) + (height(b) - height(a)) * (at - a.x) / (b.x - a.x)
}

fn dip_of(places: &[Place]) -> f64 {
    // Of a single step: half its height.
    let mut dip = places.iter().map(|place| place.upto - place.below).fold(0.0, f64::max);
    let (mut from, mut to) = (0, places.len() - 1);
    while from < to {
        let (lower, upper) = (convex(places, from, to), concave(places, from, to));
        // Where the two are furthest apart, and the modal interval that this leaves.
        let mut apart = (0.0, from, to);
        let mut right = 0;
        for &place in &lower {
            while right + 1 < upper.len() && upper[right + 1] <= place {
                right += 1;
            }
            let next = (right + 1).min(upper.len() - 1);
            let gap =
                line(places, (upper[right], upper[next]), places[place].x, |p| p.upto) - places[place].below;
            if gap > apart.0 {
                let end = if upper[right] == place { place } else { upper[next] };
                apart = (gap, place, end);
            }
        }
        let mut left = 0;
        for &place in &upper {
            while left + 1 < lower.len() && lower[left + 1] <= place {
                left += 1;
            }
            let next = (left + 1).min(lower.len() - 1);
            let gap =
                places[place].upto - line(places, (lower[left], lower[next]), places[place].x, |p| p.below);
            if gap > apart.0 {
                apart = (gap, lower[left], place);
            }
        }
        let (gap, begin, end) = apart;
        if gap <= dip {
            break;
        }
        // How far the distribution is from convex before the modal interval, and from concave after it.
        for pair in lower.windows(2).filter(|pair| pair[1] <= begin) {
            for place in &places[pair[0]..=pair[1]] {
                dip = dip.max(place.upto - line(places, (pair[0], pair[1]), place.x, |p| p.below));
            }
        }
        for pair in upper.windows(2).filter(|pair| pair[0] >= end) {
            for place in &places[pair[0]..=pair[1]] {
                dip = dip.max(line(places, (pair[0], pair[1]), place.x, |p| p.upto) - place.below);
            }
        }
        if (begin, end) == (from, to) || begin >= end {
            break;
        }
        (from, to) = (begin, end);
    }
    dip / 2.0
}

/// Upper shares of the columns of [`TABLE`].
const SHARES: [f64; 9] = [0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001];
/// Dip times sqrt(n) of uniform samples that is reached in these shares of 10,000 to 100,000 simulations, by n (seeded:
/// `cargo run --release -p latlab-stats --example dip_table`). The last row stands for all that are larger.
const TABLE: [(f64, [f64; 9]); 6] = [
    (10.0, [0.3093, 0.3479, 0.3760, 0.4131, 0.4422, 0.4771, 0.5051, 0.5302, 0.5729]),
    (30.0, [0.3365, 0.3776, 0.4054, 0.4469, 0.4829, 0.5264, 0.5553, 0.5844, 0.6455]),
    (100.0, [0.3553, 0.3982, 0.4272, 0.4715, 0.5109, 0.5583, 0.5901, 0.6209, 0.6877]),
    (300.0, [0.3647, 0.4095, 0.4397, 0.4852, 0.5255, 0.5749, 0.6100, 0.6402, 0.7029]),
    (1000.0, [0.3721, 0.4165, 0.4477, 0.4943, 0.5345, 0.5831, 0.6183, 0.6525, 0.7186]),
    (10_000.0, [0.3777, 0.4236, 0.4555, 0.5023, 0.5428, 0.5902, 0.6271, 0.6519, 0.7222]),
];

fn chance(dip: f64, n: f64) -> f64 {
    let scaled = dip * n.sqrt();
    let row = TABLE.partition_point(|row| row.0 <= n).clamp(1, TABLE.len()) - 1;
    let next = (row + 1).min(TABLE.len() - 1);
    let between = if next == row {
        0.0
    } else {
        ((n / TABLE[row].0).ln() / (TABLE[next].0 / TABLE[row].0).ln()).clamp(0.0, 1.0)
    };
    let at: Vec<f64> =
        (0..SHARES.len()).map(|i| TABLE[row].1[i] + between * (TABLE[next].1[i] - TABLE[row].1[i])).collect();
    if scaled <= at[0] {
        // The lower half says nothing; from one half it is drawn to one where there is no dip at all.
        return 1.0 - 0.5 * (scaled / at[0]).clamp(0.0, 1.0);
    }
    let above = at.partition_point(|value| *value < scaled);
    if above >= at.len() {
        return SHARES[SHARES.len() - 1];
    }
    let part = (scaled - at[above - 1]) / (at[above] - at[above - 1]);
    (SHARES[above - 1].ln() * (1.0 - part) + SHARES[above].ln() * part).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn drawn(seed: u64, n: usize, draw: impl Fn(&mut Rng) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    #[test]
    fn the_dip_of_known_samples_is_known() {
        // One half of a step for equally spaced samples; two points of mass a half: 1/4.
        let even: Vec<f64> = (0..50).map(f64::from).collect();
        assert!((dip(&even).unwrap().dip - 0.01).abs() < 1e-12);
        let mut two: Vec<f64> = (0..500).map(|i| f64::from(i) * 1e-9).collect();
        two.extend((0..500).map(|i| 1.0 + f64::from(i) * 1e-9));
        assert!((dip(&two).unwrap().dip - 0.25).abs() < 0.002);
        assert_eq!(dip(&[1.0; 9]), None);
    }

    #[test]
    fn the_dip_is_that_of_another_implementation() {
        // The Python package diptest 0.12, of the same seeded samples: dip and, from its own table, p.
        for (n, theirs, p) in [
            (10, 0.151_920_984_268_575_5, 0.0189),
            (30, 0.069_288_762_439_376_53, 0.2926),
            (100, 0.054_650_428_379_727_71, 0.0274),
            (1000, 0.013_851_230_106_341_789, 0.2296),
        ] {
            let found = dip(&drawn(n, usize::try_from(n).unwrap(), Rng::uniform)).unwrap();
            assert!((found.dip - theirs).abs() < 1e-12, "{n}: {found:?}");
            assert!((found.p / p - 1.0).abs() < 0.1, "{n}: {found:?}");
        }
        // One whose dip shows only in the modal interval of the first round.
        let sorted = [0, 2, 10, 18, 18, 19, 26, 26, 33, 35, 35, 36, 38].map(f64::from);
        assert!((dip(&sorted).unwrap().dip - 4.0 / 39.0).abs() < 1e-12);
    }

    #[test]
    fn two_modes_are_found_and_one_is_not() {
        let two = drawn(1, 400, |rng| rng.normal() + if rng.uniform() < 0.4 { 6.0 } else { 0.0 });
        assert!(dip(&two).unwrap().p <= 0.001);
        let mut refused = 0;
        for seed in 0..200 {
            refused += u32::from(dip(&drawn(seed, 300, Rng::normal)).unwrap().p < 0.05);
        }
        // The uniform is the worst case: of normals even fewer are called double.
        assert!(refused <= 4, "{refused} of 200");
    }

    #[test]
    fn a_uniform_is_called_double_as_often_as_the_p_value_says() {
        let below = (0..1000).filter(|seed| dip(&drawn(*seed, 150, Rng::uniform)).unwrap().p < 0.05).count();
        assert!((30..=70).contains(&below), "{below} of 1000");
    }

    #[test]
    fn the_steps_of_a_clock_are_no_modes_when_bins_hold_them() {
        let values = drawn(2, 20_000, |rng| (20.0 + 3.0 * rng.normal()).round());
        let borders: Vec<(f64, f64)> = (0..42)
            .map(|step| {
                let border = f64::from(step) - 0.5;
                (border, values.partition_point(|value| *value < border) as f64)
            })
            .collect();
        let found = dip_of_counts(&borders, 20_000.0).unwrap();
        assert!(found.p > 0.5, "{found:?}");
    }

    #[test]
    fn chances_are_interpolated_between_sizes_and_shares() {
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
        let of = |scaled: f64, n: f64| chance(scaled / n.sqrt(), n);
        near(of(0.4422, 10.0), 0.05);
        near(of(0.6183, 1000.0), 0.01);
        near(of(0.5423, 1e6), 0.05 * (0.1_f64 / 0.05).powf(0.0005 / 0.0405));
        // Both ways at once: 17 lies at ln 1.7 of ln 3 between 10 and 30.
        near(of(0.36, 17.0), 0.308_768_552_604_369_4);
        near(of(0.2, 17.0), 0.689_862_437_266_135);
        near(of(9.0, 100.0), 0.001);
        near(of(0.0, 100.0), 1.0);
    }

    #[test]
    fn hulls_touch_the_distribution_where_it_turns() {
        let share = |x: f64, below: f64, upto: f64| Place { x, below, upto };
        let places = [
            share(0.0, 0.0, 0.2),
            share(1.0, 0.2, 0.3),
            share(2.0, 0.3, 0.4),
            share(4.0, 0.4, 0.9),
            share(5.0, 0.9, 1.0),
        ];
        assert_eq!(convex(&places, 0, 4), [0, 3, 4]);
        assert_eq!(concave(&places, 0, 4), [0, 3, 4]);
        assert_eq!(concave(&places, 1, 3), [1, 3]);
        let at = |x: f64| line(&places, (1, 3), x, |place| place.upto);
        assert!(
            (at(1.0) - 0.3).abs() < 1e-12 && (at(2.0) - 0.5).abs() < 1e-12 && (at(4.0) - 0.9).abs() < 1e-12
        );
        assert!((line(&places, (2, 2), 9.0, |place| place.upto) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn a_single_value_dips_by_half_its_share_and_ten_samples_are_enough() {
        // One value of ten is passed by no distribution without a step of its own: half of it is missed.
        assert!((dip(&[3.0; 10]).unwrap().dip - 0.5).abs() < 1e-12);
        assert_eq!(dip_of_counts(&[(0.0, 0.0), (1.0, 10.0)], 9.9), None);
        let even = dip_of_counts(&[(0.0, 0.0), (1.0, 5.0), (2.0, 10.0)], 1e9).unwrap();
        assert!(even.dip.abs() < 1e-12 && (even.p - 1.0).abs() < 1e-12);
    }
}
