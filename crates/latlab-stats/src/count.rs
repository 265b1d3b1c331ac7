//! Whole numbers out of floats.

/// Cut to whole: 0 for negative ones and NaN, `u64::MAX` for what is larger than that.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, as documented above"
)]
pub fn whole(value: f64) -> u64 {
    value as u64
}

/// The nearest whole number, with the same bounds.
#[inline]
pub fn nearest(value: f64) -> u64 {
    whole(value.round())
}

/// [`whole`] for indices and lengths.
#[inline]
pub fn index(value: f64) -> usize {
    usize::try_from(whole(value)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_and_nan_become_0_and_large_ones_the_maximum() {
        assert_eq!([2.9, 0.0, -3.0, f64::NAN, f64::INFINITY].map(whole), [2, 0, 0, 0, u64::MAX]);
        assert_eq!([2.5, 2.4, -0.6, f64::NAN].map(nearest), [3, 2, 0, 0]);
        assert_eq!(index(7.9), 7);
    }
}
