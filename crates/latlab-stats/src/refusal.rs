/// Why no interval is given. Printable as it stands: `p99.9: 1,200 samples, needs 3,688`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Even the smallest and largest sample do not enclose the quantile with this confidence.
    #[error("{}: {} samples, needs {}", percentile(*.q), thousands(*.have), thousands(*.need))]
    TooFew {
        /// The quantile asked for, 0 to 1.
        q: f64,
        /// Samples given.
        have: u64,
        /// Samples needed ([`crate::min_samples`]).
        need: u64,
    },
    /// A sample is NaN or infinite: something upstream is wrong.
    #[error("a sample is not a finite number")]
    NotFinite,
    /// The values were promised sorted ascending and are not.
    #[error("the values are not sorted")]
    NotSorted,
    /// Only quantiles strictly between 0 and 1 have an interval.
    #[error("quantile {q} is not between 0 and 1")]
    BadQuantile {
        /// What was asked for.
        q: f64,
    },
    /// Only levels strictly between 0 and 1 make sense.
    #[error("confidence level {level} is not between 0 and 1")]
    BadLevel {
        /// What was asked for.
        level: f64,
    },
}

pub(crate) fn check(q: f64, level: f64) -> Result<(), Refusal> {
    if !(q > 0.0 && q < 1.0) {
        return Err(Refusal::BadQuantile { q });
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(Refusal::BadLevel { level });
    }
    Ok(())
}

fn percentile(q: f64) -> String {
    // Rounded to nine places: 0.999 * 100 is 99.900000000000006.
    format!("p{}", (q * 1e11).round() / 1e9)
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_refusal_prints_what_is_missing() {
        let few = Refusal::TooFew { q: 0.999, have: 1200, need: 3688 };
        assert_eq!(few.to_string(), "p99.9: 1,200 samples, needs 3,688");
        let whole = Refusal::TooFew { q: 0.5, have: 0, need: 6 };
        assert_eq!(whole.to_string(), "p50: 0 samples, needs 6");
    }
}
