//! What was measured of this machine to explain programs by: what recording takes, and what the kernel's work
//! takes.

use serde::{Deserialize, Serialize};

use crate::costs::Costs;
use crate::governor::Price;

/// Measuring it takes some hundred milliseconds. Whoever asks may keep it until the machine starts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Whether threads could be recorded, and if so, whether in the kernel: each has prices of its own.
    pub recording: Option<bool>,
    /// When it was measured: seconds since 1970.
    pub measured_s: u64,
    pub(crate) price: Price,
    pub(crate) costs: Costs,
}

impl Calibration {
    /// The one of these that holds for what can be recorded now. One that cannot have been measured is left
    /// out.
    pub(crate) fn kept(kept: &[Self], recording: Option<bool>) -> Option<Self> {
        let holds = |each: &&Self| {
            each.recording == recording && each.price.is_possible() && each.costs.are_possible()
        };
        kept.iter().find(holds).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Cost;

    fn measured(recording: Option<bool>) -> Calibration {
        Calibration { recording, measured_s: 7, ..Calibration::default() }
    }

    #[test]
    fn only_what_was_measured_with_the_same_permission_is_used_again() {
        let kept = [measured(None), measured(Some(false))];
        assert_eq!(Calibration::kept(&kept, Some(false)), Some(kept[1]));
        assert_eq!(Calibration::kept(&kept, Some(true)), None);
    }

    #[test]
    fn what_cannot_have_been_measured_is_measured_again() {
        let mut reversed = measured(None);
        reversed.costs.call = Cost { low: 300.0, mid: 200.0, high: 400.0 };
        let mut negative = measured(None);
        negative.price.switch_ns = -1.0;
        let mut endless = measured(None);
        endless.costs.byte.high = f64::INFINITY;
        assert_eq!(Calibration::kept(&[reversed, negative, endless], None), None);
    }

    #[test]
    fn what_was_kept_as_text_is_what_was_measured() {
        let whole = Calibration {
            costs: Costs { fault_in_user: Cost::default(), ..Costs::default() },
            ..measured(Some(true))
        };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), whole);
    }
}
