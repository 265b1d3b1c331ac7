//! Intervals of shares.

/// From at least to at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Range {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Range {
    /// Both ends times this.
    pub(crate) fn times(self, by: f64) -> Self {
        Self { low: self.low * by, high: self.high * by }
    }
}

/// 95 % of a normal distribution lie within this many standard deviations.
pub(crate) const Z: f64 = 1.959_964;

/// The 95 % interval of a share that was found in `samples` (Wilson's, which holds near 0 and 1 too).
pub(crate) fn of_share(share: f64, samples: f64) -> Range {
    let share = share.clamp(0.0, 1.0);
    if samples <= 0.0 {
        return Range { low: 0.0, high: 1.0 };
    }
    let z2 = Z * Z / samples;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / samples + z2 / (4.0 * samples)).sqrt();
    Range { low: (middle - half).max(0.0).min(share), high: (middle + half).min(1.0).max(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        // Newcombe 1998, table I: 15 of 148 gives 0.0624 to 0.1605; 0 of 20 gives 0 to 0.1611.
        let range = of_share(15.0 / 148.0, 148.0);
        assert!((range.low - 0.0624).abs() < 1e-4 && (range.high - 0.1605).abs() < 1e-4, "{range:?}");
        let none = of_share(0.0, 20.0);
        assert!(none.low.abs() < 1e-12 && (none.high - 0.1611).abs() < 1e-4, "{none:?}");
        assert_eq!(of_share(0.3, 0.0), Range { low: 0.0, high: 1.0 });
    }
}
