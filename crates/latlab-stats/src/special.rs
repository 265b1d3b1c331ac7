//! The distribution functions that the exact intervals and tests need.
//!
//! Formulas: Abramowitz and Stegun chapters 6 and 26; continued fractions evaluated by Lentz's method as
//! modified by Thompson and Barnett (1986). Relative error is about 1e-12 for the arguments used here.

const TINY: f64 = 1e-300;
const PRECISION: f64 = 1e-15;

/// ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2: small for large x, so that no large terms cancel.
fn stirling_rest(x: f64) -> f64 {
    if x < 10.0 {
        // Gamma(x) = Gamma(x + m) / (x (x + 1) ...), to reach where the series is exact to double precision.
        let (mut y, mut product) = (x, 1.0);
        while y < 10.0 {
            product *= y;
            y += 1.0;
        }
        let main = |v: f64| (v - 0.5) * v.ln() - v;
        return main(y) + stirling_rest(y) - product.ln() - main(x);
    }
    let r = 1.0 / (x * x);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x
}

fn ln_gamma(x: f64) -> f64 {
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + stirling_rest(x)
}

/// Regularised incomplete beta function `I_x(a, b)`, for `a, b > 0`.
pub(crate) fn beta_inc(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; above it the mirror image does.
    if x > (a + 1.0) / (a + b + 2.0) { 1.0 - beta_head(b, a, 1.0 - x) } else { beta_head(a, b, x) }
}

fn beta_head(a: f64, b: f64, x: f64) -> f64 {
    let sum = a + b;
    // x^a (1-x)^b / B(a, b), written with the ratios to the mean so that counts of 1e9 lose no digits.
    let ln_front = a * (x * sum / a).ln()
        + b * ((1.0 - x) * sum / b).ln()
        + 0.5 * (a * b / sum / std::f64::consts::TAU).ln()
        + stirling_rest(sum)
        - stirling_rest(a)
        - stirling_rest(b);
    let mut fraction = Lentz::new(1.0 - sum * x / (a + 1.0));
    // About sqrt(max(a, b)) steps; the bound only stops a broken argument.
    for step in 1..1_000_000_u32 {
        let m = f64::from(step);
        fraction.step(m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)));
        let change = fraction.step(-(a + m) * (sum + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)));
        if (change - 1.0).abs() < PRECISION * 4.0 {
            break;
        }
    }
    (ln_front.exp() * fraction.value / a).min(1.0)
}

/// A continued fraction `1 / (first + c1 / (1 + c2 / (1 + ...)))`, evaluated from the front.
struct Lentz {
    numerators: f64,
    denominators: f64,
    value: f64,
}

impl Lentz {
    fn new(first: f64) -> Self {
        let denominators = 1.0 / nonzero(first);
        Self { numerators: 1.0, denominators, value: denominators }
    }

    /// The next term, by its coefficient; returns the factor by which the value changed.
    fn step(&mut self, coefficient: f64) -> f64 {
        self.denominators = 1.0 / nonzero(1.0 + coefficient * self.denominators);
        self.numerators = nonzero(1.0 + coefficient / self.numerators);
        let change = self.denominators * self.numerators;
        self.value *= change;
        change
    }
}

fn nonzero(v: f64) -> f64 {
    if v.abs() < TINY { TINY } else { v }
}

/// P(X <= k) for X binomial with `n` trials of probability `p`.
pub(crate) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { beta_inc((n - k) as f64, k as f64 + 1.0, 1.0 - p) }
}

/// P(X >= k).
pub(crate) fn binomial_sf(k: u64, n: u64, p: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k => beta_inc(k as f64, (n - k) as f64 + 1.0, p),
    }
}

/// The `p` quantile of Student's t with `df` degrees of freedom, to about 1e-11 of its value.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail >= 0.5 {
        return 0.0;
    }
    // Newton's steps on the logarithm of the tail over that of t, which is concave: after the first, each is
    // nearer from the same side.
    let half = f64::midpoint(df, 1.0);
    let ln_front = ln_gamma(half) - ln_gamma(df / 2.0) - 0.5 * (df * std::f64::consts::PI).ln();
    let mut t = 2.0_f64;
    for _ in 0..200 {
        // df / (df + T^2) is beta(df/2, 1/2).
        let beyond = (0.5 * beta_inc(df / 2.0, 0.5, df / (df + t * t))).max(TINY);
        let density = (ln_front - half * (t * t / df).ln_1p()).exp();
        let step = (beyond / tail).ln() * beyond / (t * density).max(TINY);
        t *= step.clamp(-50.0, 50.0).exp();
        if step.abs() < 1e-12 {
            break;
        }
    }
    if p < 0.5 { -t } else { t }
}

/// How often Student's t with `df` degrees of freedom lies beyond `t`, on either side.
pub fn t_tail(t: f64, df: f64) -> f64 {
    beta_inc(df / 2.0, 0.5, df / (df + t * t))
}

/// Derivatives of ln Gamma are carried up by their recurrence to where their series is exact: the argument
/// there, and the sum of what each step adds on the way.
fn carried_up(x: f64, step: impl Fn(f64) -> f64) -> (f64, f64) {
    const SERIES_FROM: f64 = 10.0;
    let (mut y, mut below) = (x, 0.0);
    while y < SERIES_FROM {
        below += step(y);
        y += 1.0;
    }
    (y, below)
}

/// First derivative of ln Gamma, for x > 0 (Abramowitz and Stegun 6.3.5, 6.3.18).
pub fn digamma(x: f64) -> f64 {
    let (y, below) = carried_up(x, |y| -1.0 / y);
    let r = 1.0 / (y * y);
    let rest = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))));
    below + y.ln() - 0.5 / y - rest
}

/// Second derivative of ln Gamma, for x > 0 (Abramowitz and Stegun 6.4.6, 6.4.12).
pub(crate) fn trigamma(x: f64) -> f64 {
    let (y, below) = carried_up(x, |y| 1.0 / (y * y));
    let r = 1.0 / (y * y);
    let rest = r * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * 5.0 / 66.0))));
    below + (1.0 + 0.5 / y + rest) / y
}

/// Third derivative of ln Gamma, for x > 0 (Abramowitz and Stegun 6.4.13).
fn tetragamma(x: f64) -> f64 {
    let (y, below) = carried_up(x, |y| -2.0 / (y * y * y));
    let r = 1.0 / (y * y);
    let rest = r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 6.0 - r * (0.3 - r * 5.0 / 6.0))));
    below - r * (1.0 + 1.0 / y + rest)
}

/// The x > 0 with trigamma(x) = v, for v > 0: Newton's steps on 1 / trigamma, which is convex (Smyth 2004,
/// appendix).
pub fn trigamma_inverse(v: f64) -> f64 {
    let mut x = 0.5 + 1.0 / v;
    for _ in 0..50 {
        let t = trigamma(x);
        let step = t * (1.0 - t / v) / tetragamma(x);
        x += step;
        if -step < 1e-13 * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::{
        beta_inc, binomial_cdf, binomial_sf, digamma, ln_gamma, t_quantile, t_tail, tetragamma, trigamma,
        trigamma_inverse,
    };

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs().max(1e-300), "{got} is not {want}");
    }

    #[test]
    fn gamma_and_beta_have_their_known_values() {
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-12);
        near(ln_gamma(11.0), 3_628_800_f64.ln(), 1e-13);
        near(beta_inc(2.0, 3.0, 0.4), 0.5248, 1e-12);
        near(beta_inc(0.5, 0.5, 0.25), 1.0 / 3.0, 1e-12);
    }

    #[test]
    fn binomial_tails_match_exact_fractions() {
        near(binomial_cdf(0, 6, 0.5), 1.0 / 64.0, 1e-13);
        near(binomial_cdf(1, 10, 0.5), 11.0 / 1024.0, 1e-13);
        near(binomial_cdf(5, 20, 0.5), 21_700.0 / 1_048_576.0, 1e-12);
        near(binomial_sf(15, 20, 0.5), 21_700.0 / 1_048_576.0, 1e-12);
        near(binomial_sf(3688, 3688, 0.999), 0.999_f64.powi(3688), 1e-10);
    }

    #[test]
    fn quantiles_of_t_match_the_tables() {
        near(t_quantile(0.975, 5.0), 2.570_581_835_636_314, 1e-9);
        near(t_tail(2.570_581_835_636_314, 5.0), 0.05, 1e-9);
        near(t_tail(-2.570_581_835_636_314, 5.0), 0.05, 1e-9);
        near(t_quantile(0.025, 1.0), -12.706_204_736_432_095, 1e-9);
    }

    #[test]
    fn distributions_agree_with_scipy() {
        for (a, b, x, want) in [
            (2.5, 7.5, 0.1, 0.115_087_267_090_507_43),
            (7.5, 2.5, 0.9, 0.884_912_732_909_492_6),
            (30.0, 0.5, 0.99, 0.439_334_368_905_250_74),
            (1e6, 2e6, 0.3334, 0.596_801_544_890_088_7),
            (5.0, 5.0, 0.5, 0.5),
            (5.0, 5.0, 0.0, 0.0),
            (5.0, 5.0, 1.0, 1.0),
        ] {
            near(beta_inc(a, b, x), want, 1e-10);
        }
        near(t_quantile(0.9, 3.0), 1.637_744_353_696_209, 1e-10);
        near(t_quantile(0.3, 12.0), -0.538_617_668_201_916_4, 1e-10);
        near(t_quantile(0.995, 40.5), 2.702_799_142_256_861_6, 1e-10);
        near(binomial_cdf(3, 12, 0.3), 0.492_515_773_435_000_3, 1e-12);
        near(binomial_sf(5, 12, 0.3), 0.276_344_530_469_999_8, 1e-12);
        near(ln_gamma(3.7), 1.428_072_326_665_388, 1e-12);
        near(ln_gamma(123.4), 469.336_097_442_190_6, 1e-13);
    }

    #[test]
    fn quantiles_of_t_agree_with_scipy_for_any_degrees_of_freedom() {
        for (p, df, want) in [
            (0.975, 0.7, 36.611_415_031_588_66),
            (0.975, 1.7, 5.118_838_988_253_056_5),
            (0.975, 104.0, 1.983_037_526_483_725_9),
            (0.9, 0.3, 64.786_545_636_970_92),
            (0.51, 3.0, 0.027_211_467_049_118),
            (0.0001, 2.0, -70.700_071_074_964_28),
        ] {
            near(t_quantile(p, df), want, 1e-9);
        }
        near(t_quantile(0.975, 1e6), 1.959_966_356_821_92, 1e-9);
        assert_eq!(t_quantile(0.5, 3.0).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn derivatives_of_ln_gamma_agree_with_scipy_and_invert() {
        for (x, first, second, third) in [
            (0.05, -20.497_844_991_299_87, 401.532_357_342_115_06, -16_002.108_158_021_943),
            (0.5, -1.963_510_026_021_423_5, 4.934_802_200_544_68, -16.828_796_644_234_316),
            (1.0, -0.577_215_664_901_532_9, 1.644_934_066_848_226_6, -2.404_113_806_319_188),
            (9.99, 2.250_700_372_831_201, 0.105_276_950_148_241_76, -0.011_073_070_531_461_05),
            (40.0, 3.676_327_374_034_842_8, 0.025_315_103_841_291_032, -0.000_640_820_271_835_299_5),
        ] {
            near(digamma(x), first, 1e-12);
            near(trigamma(x), second, 1e-12);
            near(tetragamma(x), third, 1e-11);
            near(trigamma_inverse(second), x, 1e-11);
        }
        for (v, want) in
            [(1e-3, 1_000.499_916_666_681_9), (60.0, 0.130_608_377_916_346), (1e9, 1e9_f64.powf(-0.5))]
        {
            near(trigamma_inverse(v), want, 1e-8);
        }
    }

    #[test]
    fn certain_events_have_the_chances_one_and_zero() {
        let chances = [
            binomial_cdf(7, 7, 0.5),
            binomial_cdf(9, 7, 0.5),
            binomial_sf(0, 7, 0.5),
            1.0 - binomial_sf(8, 7, 0.5),
        ];
        assert_eq!(chances.map(f64::to_bits), [1.0_f64.to_bits(); 4]);
    }
}
