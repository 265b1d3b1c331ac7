//! Gaps with their causes as figures: by cause, by length. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::attribute::{Attributed, Attribution};
use crate::cause::{Cause, Proof, Sample};

/// What one cause took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseRow {
    /// The cause; `unexplained` is one of them.
    pub cause: Cause,
    /// Gaps.
    pub count: u64,
    /// Gaps a second.
    pub per_s: f64,
    /// Time of those gaps, ns.
    pub total_ns: f64,
    /// The same a second.
    pub ns_per_s: f64,
    /// Median gap, ns.
    pub median_ns: f64,
    /// Longest gap, ns.
    pub largest_ns: f64,
    /// Of all gaps, the share that are of this cause.
    pub share_count: f64,
    /// Of the time of all gaps, the share that is in them.
    pub share_time: f64,
    /// Of their time, what the evidence covers, ns; the rest is the price of entering and leaving, or
    /// unknown.
    pub explained_ns: f64,
    /// Mean confidence, 0 to 1; of the unexplained 0.
    pub confidence: f64,
    /// What shows them, with how many gaps each.
    pub evidence: BTreeMap<&'static str, u64>,
    /// Who or what, the most frequent first.
    pub who: Vec<(String, u64)>,
}

/// How much of the gaps from a length on has a cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explained {
    /// The length, ns.
    pub at_least_ns: f64,
    /// Gaps of that length or more.
    pub gaps: u64,
    /// Of those, how many have a cause.
    pub attributed: u64,
    /// Of those, how many have it from periodic interference.
    #[serde(rename = "by_comb")]
    pub by_period: u64,
    /// Of those by periodic interference, in how many there was an interrupt of this kernel by the interrupt
    /// flag.
    #[serde(rename = "by_comb_interrupted")]
    pub by_period_interrupted: u64,
    /// How many have it only from the interrupt flag: an interrupt, but not which.
    pub by_interrupt: u64,
    /// How many were interrupted outside this kernel, as the same flag says that it was not entered.
    pub outside: u64,
    /// Their time, ns.
    pub ns: f64,
    /// The time of those that have a cause, ns.
    pub attributed_ns: f64,
    /// The time of those that have it from periodic interference, ns.
    #[serde(rename = "by_comb_ns")]
    pub by_period_ns: f64,
    /// The time of those that have it only from the interrupt flag, ns.
    pub by_interrupt_ns: f64,
    /// The time of those outside, ns.
    pub outside_ns: f64,
}

/// One gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedGap {
    /// Its begin, ns since the first clock read.
    pub at_ns: f64,
    /// Its length, ns.
    pub ns: f64,
    /// Its cause.
    pub cause: Cause,
    /// What shows it.
    pub proof: Option<Proof>,
    /// What the evidence covers, ns.
    pub explained_ns: f64,
    /// How far the cause can be believed.
    pub confidence: f64,
    /// Who or what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

/// Lengths for [`explained`], ns.
const LENGTHS: [f64; 6] = [1e3, 2e3, 5e3, 1e4, 1e5, 1e6];
/// Names kept for each cause.
const MOST_WHO: usize = 5;

/// One row a cause, the one that took most time first.
pub fn by_cause(samples: &[Sample], attributed: &Attributed, seconds: f64) -> Vec<CauseRow> {
    let mut groups: BTreeMap<Cause, Vec<(&Sample, &Attribution)>> = BTreeMap::new();
    for pair in samples.iter().zip(&attributed.each) {
        groups.entry(pair.1.cause).or_default().push(pair);
    }
    let all_ns: f64 = samples.iter().map(|sample| sample.ns).sum();
    let mut rows: Vec<CauseRow> = groups
        .into_iter()
        .map(|(cause, gaps)| row(cause, &gaps, samples.len() as f64, all_ns, seconds))
        .collect();
    rows.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    rows
}

fn row(cause: Cause, gaps: &[(&Sample, &Attribution)], all: f64, all_ns: f64, seconds: f64) -> CauseRow {
    let mut lengths: Vec<f64> = gaps.iter().map(|(sample, _)| sample.ns).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let total_ns: f64 = lengths.iter().sum();
    let count = gaps.len() as f64;
    let (mut evidence, mut who) = (BTreeMap::new(), BTreeMap::new());
    for (_, one) in gaps {
        if let Some(proof) = one.proof {
            *evidence.entry(proof.name()).or_insert(0) += 1;
        }
        if let Some(name) = who_of(one) {
            *who.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    let mut who: Vec<(String, u64)> = who.into_iter().collect();
    who.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    who.truncate(MOST_WHO);
    CauseRow {
        cause,
        count: gaps.len() as u64,
        per_s: count / seconds,
        total_ns,
        ns_per_s: total_ns / seconds,
        median_ns: lengths[lengths.len() / 2],
        largest_ns: lengths[lengths.len() - 1],
        share_count: count / all,
        share_time: total_ns / all_ns,
        explained_ns: gaps.iter().map(|(_, one)| one.explained_ns).sum(),
        confidence: gaps.iter().map(|(_, one)| one.confidence).sum::<f64>() / count,
        evidence,
        who,
    }
}

fn who_of(one: &Attribution) -> Option<&str> {
    one.parts
        .first()
        .filter(|part| part.cause == one.cause || one.cause == Cause::Throttled)
        .and_then(|part| part.who.as_deref())
}

/// How much has a cause, from each length on.
pub fn explained(samples: &[Sample], attributed: &Attributed, threshold_ns: f64) -> Vec<Explained> {
    let mut lengths = vec![threshold_ns];
    lengths.extend(LENGTHS.into_iter().filter(|length| *length > threshold_ns));
    lengths
        .into_iter()
        .map(|at_least_ns| {
            let mut row = Explained { at_least_ns, ..Explained::default() };
            for (sample, one) in samples.iter().zip(&attributed.each) {
                if sample.ns < at_least_ns {
                    continue;
                }
                row.gaps += 1;
                row.ns += sample.ns;
                if one.cause != Cause::Unexplained {
                    row.attributed += 1;
                    row.attributed_ns += sample.ns;
                }
                match (one.proof, one.cause) {
                    (Some(Proof::Period), _) => {
                        row.by_period += 1;
                        row.by_period_interrupted += u64::from(sample.interruption.interrupted);
                        row.by_period_ns += sample.ns;
                    }
                    (Some(Proof::InterruptFlag), Cause::Outside) => {
                        row.outside += 1;
                        row.outside_ns += sample.ns;
                    }
                    (Some(Proof::InterruptFlag), _) => {
                        row.by_interrupt += 1;
                        row.by_interrupt_ns += sample.ns;
                    }
                    _ => {}
                }
            }
            row
        })
        .collect()
}

/// The longest gaps, the longest first.
pub fn longest(samples: &[Sample], attributed: &Attributed, from_ns: f64, most: usize) -> Vec<NamedGap> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|a, b| samples[*b].ns.total_cmp(&samples[*a].ns));
    order
        .into_iter()
        .take(most)
        .map(|index| {
            let (sample, one) = (&samples[index], &attributed.each[index]);
            NamedGap {
                at_ns: sample.at_ns - from_ns,
                ns: sample.ns,
                cause: one.cause,
                proof: one.proof,
                explained_ns: one.explained_ns,
                confidence: one.confidence,
                who: who_of(one).map(str::to_owned),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Event, attribute};

    fn scene() -> (Vec<Sample>, Attributed) {
        let lengths = [3_000.0, 20_000.0, 60_000.0, 1_500.0];
        let samples: Vec<Sample> = lengths
            .into_iter()
            .enumerate()
            .map(|(index, ns)| Sample {
                at_ns: 1e9 + index as f64 * 0.6e9,
                ns,
                interruption: crate::Interruption::default(),
            })
            .collect();
        let event = |index: usize, cause, who: Option<&str>| Event {
            cause,
            proof: Proof::Tracepoint,
            at_ns: samples[index].at_ns,
            end_ns: Some(samples[index].at_ns + samples[index].ns / 2.0),
            who: who.map(std::sync::Arc::from),
        };
        let events = [event(1, Cause::TimerTick, None), event(2, Cause::ContextSwitch, Some("rsync"))];
        let attributed = attribute(&samples, &events, &Context::default());
        (samples, attributed)
    }

    #[test]
    fn rows_add_up_to_all_gaps_and_the_unexplained_has_its_own() {
        let (samples, attributed) = scene();
        let rows = by_cause(&samples, &attributed, 2.0);
        let causes: Vec<Cause> = rows.iter().map(|row| row.cause).collect();
        assert_eq!(causes, [Cause::ContextSwitch, Cause::TimerTick, Cause::Unexplained]);
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 4);
        assert!((rows.iter().map(|row| row.share_time).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((rows[0].explained_ns - 30_000.0).abs() < 1e-6);
        assert_eq!(rows[0].who, [("rsync".to_owned(), 1)]);
        assert!((rows[2].per_s - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_share_with_a_cause_is_given_from_each_length_on() {
        let (samples, attributed) = scene();
        let rows = explained(&samples, &attributed, 1_000.0);
        let counts: Vec<(f64, u64, u64)> =
            rows.iter().map(|row| (row.at_least_ns, row.gaps, row.attributed)).collect();
        assert_eq!(counts, [(1e3, 4, 2), (2e3, 3, 2), (5e3, 2, 2), (1e4, 2, 2), (1e5, 0, 0), (1e6, 0, 0)]);
    }

    #[test]
    fn what_the_interrupt_flag_alone_names_is_counted_apart() {
        let (mut samples, _) = scene();
        samples[3].interruption.interrupted = true;
        let context = Context { outside_from_ns: Some(2_000.0), ..Context::default() };
        let attributed = attribute(&samples, &[], &context);
        let first = &explained(&samples, &attributed, 1_000.0)[0];
        assert_eq!((first.attributed, first.outside, first.by_interrupt, first.by_period), (4, 3, 1, 0));
        assert!((first.outside_ns - 83_000.0).abs() < 1e-6 && (first.by_interrupt_ns - 1_500.0).abs() < 1e-6);
    }

    #[test]
    fn the_longest_gap_comes_first_with_its_time_from_the_start() {
        let (samples, attributed) = scene();
        let gaps = longest(&samples, &attributed, 1e9, 2);
        assert_eq!(gaps.len(), 2);
        assert_eq!((gaps[0].cause, gaps[0].who.as_deref()), (Cause::ContextSwitch, Some("rsync")));
        assert!((gaps[0].at_ns - 1.2e9).abs() < 1e-3);
    }
}
