//! A small seeded generator, so that every resample can be repeated from the seed in the run file.

/// xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64. Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The same seed gives the same sequence on every machine.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let state = std::array::from_fn(|_| splitmix64(&mut mixer));
        Self { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in `0..n`; 0 for `n = 0`. Multiply-shift: its bias is below `n / 2^64`.
    pub fn below(&mut self, n: usize) -> usize {
        let wide = u128::from(self.next_u64()) * (n as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Puts them into a random order, each as likely as any other (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed(*state)
}

/// Splitmix64's finaliser (Steele, Lea, Flood 2014): each bit of what it returns depends on each bit of `z`,
/// so neighbours become strangers.
#[expect(clippy::inline_always, reason = "it stands in timed loops too, where a call would be measured")]
#[inline(always)]
pub fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Rng, splitmix64};

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        let mut state = 1_234_567;
        let got: Vec<u64> = (0..3).map(|_| splitmix64(&mut state)).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn the_same_seed_repeats_and_another_does_not() {
        let draw =
            |seed| (0..8).map(|_| seed).scan(Rng::new(seed), |r, _| Some(r.next_u64())).collect::<Vec<_>>();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let mut rng = Rng::new(3);
        let n = 20_000;
        let (mut u, mut z, mut zz) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            u += rng.uniform();
            let v = rng.normal();
            z += v;
            zz += v * v;
        }
        let n = f64::from(n);
        assert!((u / n - 0.5).abs() < 0.01);
        assert!((z / n).abs() < 0.03);
        assert!((zz / n - 1.0).abs() < 0.04);
        assert!((0..1000).all(|_| rng.below(6) < 6));
    }

    #[test]
    fn the_generator_gives_the_published_sequence() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..6).map(|_| rng.next_u64()).collect();
        assert_eq!(
            got,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205,
                9_973_669_472_204_895_162
            ]
        );
    }

    #[test]
    fn a_seed_gives_the_numbers_that_the_definitions_give() {
        // The definitions, once more in Python, with seed 5: two of each kind, one after the other.
        let mut rng = Rng::new(5);
        let uniform = [rng.uniform(), rng.uniform()];
        assert_eq!(uniform.map(f64::to_bits), [UNIFORM_0, UNIFORM_1].map(f64::to_bits));
        assert_eq!([rng.below(1000), rng.below(1000), rng.below(1000)], [97, 58, 527]);
        assert!((rng.normal() + 1.509_001_334_299_963_7).abs() < 1e-12);
        assert!((rng.normal() - 0.278_287_488_609_600_34).abs() < 1e-12);
        assert_eq!(rng.below(0), 0);
    }

    const UNIFORM_0: f64 = 0.292_022_871_540_467_47;
    const UNIFORM_1: f64 = 0.611_439_414_081_025_3;
}
