//! Whether the means of several groups differ.

use crate::moments::mean;
use crate::special::beta_inc;

/// Groups that agree to the last digit differ by no less than this (squares; of logarithms 0.003 %).
const LEAST_VARIANCE: f64 = 1e-9;

/// How often the means of groups that are alike would lie at least so far apart: one-way analysis of variance
/// (Fisher's F). `None` unless two groups have values, one of them several.
pub fn anova(groups: &[Vec<f64>]) -> Option<f64> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let all: Vec<f64> = groups.iter().copied().flatten().copied().collect();
    let (between, within) = ((groups.len() as f64) - 1.0, (all.len() - groups.len()) as f64);
    if between < 1.0 || within < 1.0 || all.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let centre = mean(&all);
    let (mut apart, mut squares) = (0.0, 0.0);
    for group in groups {
        let own = mean(group);
        apart += group.len() as f64 * (own - centre).powi(2);
        squares += group.iter().map(|value| (value - own).powi(2)).sum::<f64>();
    }
    let variance = (squares / within).max(LEAST_VARIANCE);
    let ratio = apart / between / variance;
    Some(beta_inc(within / 2.0, between / 2.0, within / (within + between * ratio)))
}

#[cfg(test)]
mod tests {
    use super::anova;

    #[test]
    fn the_chance_agrees_with_scipy() {
        // scipy.stats.f_oneway
        let three = [vec![6.9, 5.4, 5.8, 4.6, 4.0], vec![8.3, 6.8, 7.8, 9.2], vec![8.0, 10.5, 8.1]];
        let two = [vec![0.1, 0.2, 0.05], vec![0.3, 0.35]];
        for (groups, want) in [(&three[..], 0.004_311_007_831_424_099), (&two[..], 0.040_112_054_463_393_34)]
        {
            let got = anova(groups).expect("groups with values");
            assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
        }
    }

    #[test]
    fn values_that_agree_to_the_last_digit_differ_by_what_their_groups_do() {
        let near = |value: Option<f64>, want: f64| value.is_some_and(|value| (value - want).abs() < 1e-3);
        assert!(near(anova(&[vec![1.0; 3], vec![1.0; 3]]), 1.0));
        assert!(near(anova(&[vec![1.0; 3], vec![2.0; 3]]), 0.0));
    }

    #[test]
    fn nothing_is_said_of_one_group_or_of_single_values() {
        for groups in [
            vec![],
            vec![vec![1.0, 2.0]],
            vec![vec![1.0, 2.0], vec![]],
            vec![vec![1.0], vec![2.0]],
            vec![vec![1.0, f64::NAN], vec![2.0]],
        ] {
            assert_eq!(anova(&groups), None, "{groups:?}");
        }
    }
}
