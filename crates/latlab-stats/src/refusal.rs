use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why no interval is given. Printable as it stands: `p99.9: 1,200 samples, needs 3,688`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// Even the smallest and largest sample do not enclose the quantile with this confidence.
    #[error("{}: {} samples, {}", percentile(*.q), thousands(*.have), needs(*.need))]
    TooFew {
        /// The quantile asked for, 0 to 1.
        q: f64,
        /// Samples given.
        have: u64,
        /// Samples needed ([`crate::min_samples`]); `u64::MAX` when no number is enough.
        need: u64,
    },
    /// The samples depend on each other so much that they say no more than `effective` independent ones.
    #[error(
        "{}: {} dependent samples say no more than {} independent ones, {}",
        percentile(*.q), thousands(*.have), thousands(*.effective), needs(*.need)
    )]
    TooFewEffective {
        /// The quantile asked for, 0 to 1.
        q: f64,
        /// Samples given.
        have: u64,
        /// Independent samples that they are worth at this quantile.
        effective: u64,
        /// Samples needed ([`crate::min_samples`]).
        need: u64,
    },
    /// The samples are not independent, and there are too few separate blocks to learn how much they vary.
    #[error("{have} blocks of samples, needs {need}: blocks differ or samples follow each other")]
    TooFewBlocks {
        /// Blocks with samples.
        have: u64,
        /// Blocks needed.
        need: u64,
    },
    /// The few largest samples weigh so much in a mean that Student's interval covers less than it says; quantiles have one.
    #[error(
        "mean: the samples are too skewed for their number ({skewness:.1} over the root of {effective:.0}): give quantiles"
    )]
    TooSkewed {
        /// Third moment over the cube of the deviation.
        skewness: f64,
        /// Independent samples that these are worth.
        effective: f64,
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

fn needs(need: u64) -> String {
    if need == u64::MAX { "no number is enough".to_owned() } else { format!("needs {}", thousands(need)) }
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
        let tied = Refusal::TooFewEffective { q: 0.99, have: 1_200_000, effective: 41, need: 368 };
        assert_eq!(
            tied.to_string(),
            "p99: 1,200,000 dependent samples say no more than 41 independent ones, needs 368"
        );
    }
}
