//! The findings of a point's rounds become those of its figure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::points::PointLines;
use super::statistics::kinship;
use crate::{ByCpu, Estimate, Record};

/// Gives each figure the findings of its rounds. What findings hold as an [`Estimate`] gets its range; those
/// under one name are kin where their figures are.
pub(super) fn complete(figures: &mut [Record], points: &[PointLines]) {
    let mut kin = BTreeMap::new();
    for (place, (figure, point)) in figures.iter_mut().zip(points).enumerate() {
        let p50 = figure.summary.as_ref().and_then(|summary| summary.p50);
        let (Some(p50), Some(first)) = (p50, point.good.first()) else { continue };
        let mut estimates = Vec::new();
        figure.findings = of_rounds(&point.good, p50, &mut estimates);
        for (path, rounds) in estimates {
            // A place in a list is no part of the name.
            let named: String = path.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            let group: &mut Vec<_> = kin.entry((kinship(first, None), named)).or_default();
            group.push((place, path, rounds));
        }
    }
    for group in kin.into_values() {
        let rounds: Vec<ByCpu> = group.iter().map(|(_, _, rounds)| rounds.clone()).collect();
        for ((place, path, rounds), estimate) in group.iter().zip(Estimate::of_rounds(&rounds)) {
            // What only one round measured may know its range from its own blocks.
            if estimate.ends().is_none() && rounds.iter().flatten().count() == 1 {
                continue;
            }
            let findings = figures[*place].findings.as_mut();
            if let Some(slot) = findings.and_then(|findings| findings.pointer_mut(path)) {
                *slot = json!(estimate);
            }
        }
    }
}

/// Of rounds whose median is known, with the place and the rounds of each estimate in it.
fn of_rounds(good: &[&Record], p50: f64, estimates: &mut Vec<(String, ByCpu)>) -> Option<Value> {
    let with: Vec<(&Record, &Value, f64)> = good
        .iter()
        .filter_map(|line| {
            let own = line.summary.as_ref()?.p50.unwrap_or(f64::INFINITY);
            Some((*line, line.findings.as_ref()?, (own / p50).ln().abs()))
        })
        .collect();
    let distances = with.iter().map(|(_, _, distance)| distance).enumerate();
    let (nearest, _) = distances.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let rounds: Vec<&Value> = with.iter().map(|(_, findings, _)| *findings).collect();
    let cpus = with.iter().map(|(line, ..)| line.cpu).collect();
    let mut merge = Merge { nearest, cpus, estimates };
    Some(merge.merged(&rounds, ""))
}

struct Merge<'a> {
    nearest: usize,
    /// Of each round.
    cpus: Vec<Option<u32>>,
    estimates: &'a mut Vec<(String, ByCpu)>,
}

impl Merge<'_> {
    /// Findings of the same form have the median of each measured number. Whatever else differs (counts,
    /// CPUs, words, lengths) is that of the round whose figure is nearest to the folded one, so that what is
    /// reported together belongs together.
    fn merged(&mut self, rounds: &[&Value], path: &str) -> Value {
        let own = rounds[self.nearest];
        match own {
            Value::Object(fields) => {
                if let Some(reported) = reported(rounds) {
                    let mut by_cpu = BTreeMap::<_, Vec<f64>>::new();
                    for (cpu, value) in self.cpus.iter().zip(reported) {
                        by_cpu.entry(*cpu).or_default().push(value);
                    }
                    let by_cpu = by_cpu.into_values().collect();
                    self.estimates.push((path.to_owned(), by_cpu));
                    return own.clone();
                }
                let of_form = |other: &&Value| {
                    other.as_object().is_some_and(|other| {
                        other.len() == fields.len() && fields.keys().all(|key| other.contains_key(key))
                    })
                };
                if !rounds.iter().all(of_form) {
                    return own.clone();
                }
                fields
                    .keys()
                    .map(|key| {
                        let values: Vec<&Value> = rounds.iter().map(|round| &round[key]).collect();
                        let escaped = key.replace('~', "~0").replace('/', "~1");
                        (key.clone(), self.merged(&values, &format!("{path}/{escaped}")))
                    })
                    .collect()
            }
            Value::Array(items) => {
                let lists: Vec<&Vec<Value>> = rounds.iter().filter_map(|round| round.as_array()).collect();
                if lists.len() < rounds.len() || !lists.iter().all(|list| alike(list, items)) {
                    return own.clone();
                }
                (0..items.len())
                    .map(|place| {
                        let values: Vec<&Value> = lists.iter().map(|list| &list[place]).collect();
                        self.merged(&values, &format!("{path}/{place}"))
                    })
                    .collect()
            }
            Value::Number(_) => median(rounds).unwrap_or_else(|| own.clone()),
            _ => own.clone(),
        }
    }
}

/// The values where all rounds hold an estimate.
fn reported(rounds: &[&Value]) -> Option<Vec<f64>> {
    let estimates = rounds.iter().map(|round| match round {
        Value::Object(_) => Estimate::read(round),
        _ => None,
    });
    estimates.map(|own| Some(own?.value)).collect()
}

/// Whether two lists are about the same things: as long, and of the same labels (words and whole numbers)
/// throughout.
fn alike(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_label(one, other))
}

fn same_label(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => alike(one, other),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same_label(value, other)))
        }
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() && b.is_f64()),
        _ => one == other,
    }
}

/// Of measured numbers. A whole number may be a name: CPU 0 and CPU 1 have no CPU 0.5 between them.
fn median(rounds: &[&Value]) -> Option<Value> {
    let measured = rounds.iter().map(|round| match round {
        Value::Number(number) if number.is_f64() => number.as_f64(),
        _ => None,
    });
    let numbers: Vec<f64> = measured.collect::<Option<_>>()?;
    serde_json::Number::from_f64(latlab_stats::median(&numbers)).map(Value::Number)
}
