//! A quantity that is derived from measurements (a ratio, a knee, a fit), with the range that the rounds of
//! its run give it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::significant;

/// Of intervals of figures and of what follows from them.
pub(crate) const LEVEL: f64 = 0.95;

/// A quantity and its 95 % interval; without one where nothing tells how far rounds lie apart.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The quantity, in the unit that its name ends with.
    pub value: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What a quantity was in each round, by CPU.
pub type ByCpu = Vec<Vec<f64>>;

impl Estimate {
    /// Of one measurement.
    pub fn once(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// With the interval of a factor about 1: everything is on the logarithm, so a quantity and its inverse
    /// agree.
    pub fn within(value: f64, factors: Option<[f64; 2]>) -> Self {
        let ends = factors.filter(|[low, high]| value > 0.0 && 0.0 < *low && high.is_finite());
        Self {
            low: ends.map(|[low, _]| significant(value * low)),
            high: ends.map(|[_, high]| significant(value * high)),
            ..Self::once(value)
        }
    }

    /// Each quantity of a group of kin with what it was in each round. The interval is that of
    /// [`latlab_stats::fold_rounds`], moved to lie about the value: of a quantity that is not linear the
    /// rounds alone may have another centre.
    pub fn of_kin(kin: &[(f64, ByCpu)]) -> Vec<Self> {
        let rounds: Vec<ByCpu> = kin.iter().map(|(_, rounds)| rounds.clone()).collect();
        let folded = folded(&rounds).into_iter().zip(kin);
        folded.map(|((_, factors), (value, _))| Self::within(*value, factors)).collect()
    }

    /// Each quantity of a group of kin from what it was in each round alone; not a number where no round
    /// says.
    pub fn of_rounds(kin: &[ByCpu]) -> Vec<Self> {
        let folded = folded(kin).into_iter();
        folded.map(|(value, factors)| Self::within(significant(value), factors)).collect()
    }

    /// What findings hold under a name: an estimate, or a plain number.
    pub fn read(found: &Value) -> Option<Self> {
        match found {
            Value::Number(number) => number.as_f64().map(Self::once),
            Value::Object(fields) if fields.contains_key("value") => Self::deserialize(found).ok(),
            _ => None,
        }
    }

    /// Its range about another value.
    #[must_use]
    pub fn about(&self, value: f64) -> Self {
        Self::within(value, self.ends().map(|ends| ends.map(|end| end / self.value)))
    }

    /// What follows from it by a function that only rises or only falls.
    #[must_use]
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        let ends = self.ends().map(|[low, high]| [of(low), of(high)]);
        Self {
            low: ends.map(|[one, other]| significant(one.min(other))),
            high: ends.map(|[one, other]| significant(one.max(other))),
            ..Self::once(of(self.value))
        }
    }

    /// With a range that holds these as well: between them nothing was measured, or everything is seen.
    #[must_use]
    pub fn reaching(&self, [low, high]: [f64; 2]) -> Self {
        let [own_low, own_high] = self.ends().unwrap_or([self.value; 2]);
        Self { low: Some(own_low.min(low)), high: Some(own_high.max(high)), ..*self }
    }

    /// Of a count: its ends are whole numbers.
    #[must_use]
    pub fn rounded_outwards(&self) -> Self {
        Self { low: self.low.map(f64::floor), high: self.high.map(f64::ceil), ..*self }
    }

    /// Both ends.
    pub fn ends(&self) -> Option<[f64; 2]> {
        self.low.zip(self.high).map(<[f64; 2]>::from)
    }
}

/// The value of each of these kin, and its interval as factors of that.
fn folded(kin: &[ByCpu]) -> Vec<(f64, Option<[f64; 2]>)> {
    let folded = latlab_stats::fold_rounds(kin, LEVEL).into_iter();
    folded
        .map(|folded| {
            folded.map_or((f64::NAN, None), |folded| {
                let factors = folded.interval.map(|(low, high)| [low, high].map(|end| end / folded.value));
                (folded.value, factors)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_interval_of_rounds_lies_about_the_value() {
        let rounds = vec![vec![2.0, 2.1], vec![2.2, 2.0]];
        let alone = latlab_stats::fold_rounds(std::slice::from_ref(&rounds), LEVEL).remove(0);
        let alone = alone.expect("finite");
        let (low, high) = alone.interval.expect("two rounds a CPU");
        let own = Estimate::of_kin(&[(4.0, rounds)])[0];
        let ends = own.ends().expect("an interval");
        for (end, expected) in ends.into_iter().zip([low, high]) {
            assert!((end / 4.0 / (expected / alone.value) - 1.0).abs() < 1e-4, "{own:?}");
        }
    }

    #[test]
    fn what_was_seen_once_or_is_not_positive_has_no_interval() {
        let none = [(3.0, vec![vec![3.0]]), (-1.0, vec![vec![-1.0, -1.1]]), (2.0, vec![])];
        for own in Estimate::of_kin(&none) {
            assert_eq!(own.ends(), None, "{own:?}");
        }
        // Three kin tell of one that was seen once.
        let mut kin = vec![(1.0, vec![vec![1.0, 1.1]]); 3];
        kin.push((3.0, vec![vec![3.0]]));
        assert!(Estimate::of_kin(&kin)[3].ends().is_some());
    }

    #[test]
    fn a_falling_function_turns_the_ends_and_a_range_only_grows() {
        let share = Estimate::within(0.25, Some([0.8, 1.2])).map(|part| 1.0 - part);
        assert_eq!((share.value, share.ends()), (0.75, Some([0.7, 0.8])), "{share:?}");
        assert_eq!(share.reaching([0.72, 0.9]).ends(), Some([0.7, 0.9]));
        assert_eq!(Estimate::once(3.0).reaching([2.0, 3.0]).ends(), Some([2.0, 3.0]));
    }

    #[test]
    fn findings_hold_it_with_its_ends_without_them_or_as_a_number() {
        let own = Estimate::within(2.0, Some([0.9, 1.25]));
        let stored = json!(own);
        assert_eq!(stored, json!({"value": 2.0, "low": 1.8, "high": 2.5}));
        assert_eq!(Estimate::read(&stored), Some(own));
        assert_eq!(json!(Estimate::once(2.0)), json!({"value": 2.0}));
        assert_eq!(Estimate::read(&json!(2)), Some(Estimate::once(2.0)));
        for other in [json!(null), json!({"value": 1.0, "bytes": 2}), json!("2"), json!({})] {
            assert_eq!(Estimate::read(&other), None, "{other}");
        }
    }
}
