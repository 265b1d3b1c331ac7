//! Everything of a figure but its statistics: what its rounds did, proved, met and noted.

use std::collections::HashSet;

use super::points::{PointLines, is_not_reached};
use crate::{
    Absence, Check, Observed, Record, TailCause, TailCauses, TailPart, TailSample, Work, keep_slowest,
};

const DISTURBED: &str = "disturbed";
/// What the slow samples of a round may have been looked at with, least first. A round that saw less leaves
/// more unexplained.
const LEVELS: [&str; 6] =
    ["time stamps", "counters", "interrupt flag", "rseq", "perf records", "tracepoints"];

/// The figure of a point, with the statistics of its first round where it has any.
pub(super) fn figure(point: &PointLines) -> Record {
    let Some(first) = point.good.first() else { return absent(point) };
    let good = &point.good;
    let (tail, tail_threshold, tail_dropped) = tail(good);
    Record {
        round: None,
        cpu: None,
        samples: good.iter().map(|line| line.samples).fold(0, u64::saturating_add),
        values: first.values.is_some().then(|| {
            let values = good.iter().filter_map(|line| line.values.as_ref());
            values.flatten().copied().collect()
        }),
        tail,
        tail_threshold,
        tail_dropped,
        tail_causes: tail_causes(good),
        blocks: good.iter().flat_map(|line| line.blocks.iter().cloned()).collect(),
        work: work(good),
        checks: checks(good),
        observed: observed(good),
        flags: flags(point),
        stopped_by: good.last().unwrap_or(first).stopped_by,
        ..(*first).clone()
    }
}

/// The first reason why a round has no figure; that the time ran out only where there is no other.
fn absent(point: &PointLines) -> Record {
    let first = point.lines.iter().find(|line| !is_not_reached(line));
    let first = first.unwrap_or(&point.lines[0]);
    let error = first.error.clone().unwrap_or_else(|| Absence {
        kind: "failed".to_owned(),
        text: "its record has no statistics".to_owned(),
    });
    Record {
        round: None,
        cpu: None,
        summary: None,
        channels: Vec::new(),
        checks: checks(&point.lines),
        flags: united(&point.lines),
        error: Some(error),
        ..(*first).clone()
    }
}

/// The slow samples of all rounds above the highest of their thresholds: above it no round left any out for
/// being fast.
fn tail(good: &[&Record]) -> (Vec<TailSample>, Option<f64>, u64) {
    let threshold = good.iter().filter_map(|line| line.tail_threshold).max_by(f64::total_cmp);
    let least = threshold.unwrap_or(f64::NEG_INFINITY);
    let all = good.iter().flat_map(|line| &line.tail);
    let tail = all.filter(|sample| sample.value >= least).cloned().collect();
    let dropped = good.iter().map(|line| line.tail_dropped).fold(0, u64::saturating_add);
    let (tail, dropped) = keep_slowest(tail, dropped);
    (tail, threshold, dropped)
}

/// The causes of all rounds' slow samples, each round's above its own threshold: nothing faster than the
/// lowest of these is among them. The level is the least that a round had.
fn tail_causes(good: &[&Record]) -> Option<TailCauses> {
    let reported: Vec<&TailCauses> = good.iter().filter_map(|line| line.tail_causes.as_ref()).collect();
    let level = reported.iter().map(|reported| &reported.level).min_by_key(|level| {
        let known = LEVELS.iter().position(|known| known == level);
        known.unwrap_or(0)
    })?;
    let mut causes: Vec<TailCause> = Vec::new();
    let mut parts: Vec<TailPart> = Vec::new();
    for reported in &reported {
        for cause in &reported.causes {
            match causes.iter_mut().find(|sum| sum.cause == cause.cause) {
                Some(sum) => {
                    sum.count = sum.count.saturating_add(cause.count);
                    sum.ns += cause.ns;
                    sum.explained_ns += cause.explained_ns;
                }
                None => causes.push(cause.clone()),
            }
        }
        for part in &reported.parts {
            match parts.iter_mut().find(|sum| sum.cause == part.cause) {
                Some(sum) => {
                    sum.ns += part.ns;
                    if let Some(more) = part.at_most_more_ns {
                        *sum.at_most_more_ns.get_or_insert(0.0) += more;
                    }
                }
                None => parts.push(part.clone()),
            }
        }
    }
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    parts.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    Some(TailCauses {
        level: level.clone(),
        threshold_ns: reported.iter().map(|reported| reported.threshold_ns).fold(f64::INFINITY, f64::min),
        causes,
        parts,
    })
}

/// Bytes of the device are known where every round knows them.
fn work(good: &[&Record]) -> Work {
    let sum = |of: fn(&Work) -> u64| good.iter().map(|line| of(&line.work)).fold(0, u64::saturating_add);
    let device = good.iter().map(|line| line.work.device_bytes).reduce(|a, b| Some(a?.saturating_add(b?)));
    Work {
        ops: sum(|work| work.ops),
        bytes: sum(|work| work.bytes),
        device_bytes: device.flatten(),
        convention: good.iter().find_map(|line| line.work.convention.clone()),
    }
}

/// Each proof once: it holds where it held in all of these rounds, with the detail of the first in which it
/// did not, else of the last.
fn checks(lines: &[&Record]) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for check in lines.iter().flat_map(|line| &line.checks) {
        match checks.iter_mut().find(|merged| merged.name == check.name) {
            Some(merged) if merged.ok => *merged = check.clone(),
            Some(_) => {}
            None => checks.push(check.clone()),
        }
    }
    checks
}

/// A counter that one round could not read stays unknown.
fn observed(good: &[&Record]) -> Observed {
    let sum = good.iter().map(|line| line.observed.clone());
    sum.reduce(|a, b| a.combined(&b, u64::saturating_add)).unwrap_or_default()
}

/// Those of its rounds, `disturbed` where more than half of them are, and how many have no figure for another
/// reason than time.
fn flags(point: &PointLines) -> Vec<String> {
    let mut flags = united(&point.good);
    let is_disturbed = |line: &&&Record| line.flags.iter().any(|flag| flag == DISTURBED);
    if 2 * point.good.iter().filter(is_disturbed).count() <= point.good.len() {
        flags.retain(|flag| flag != DISTURBED);
    }
    let failed: Vec<&Record> = point
        .lines
        .iter()
        .copied()
        .filter(|line| !is_not_reached(line) && !point.good.iter().any(|good| std::ptr::eq(*good, *line)))
        .collect();
    if let Some(first) = failed.first() {
        let have = if failed.len() == 1 { "has" } else { "have" };
        let why = first.error.as_ref().map_or("of another kind", |error| error.text.as_str());
        flags.push(format!("{} of {} rounds {have} no figure: {why}", failed.len(), point.lines.len()));
    }
    flags
}

/// The flags of these rounds; of those that differ by their numbers only, the first.
fn united(lines: &[&Record]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut flags = Vec::new();
    for flag in lines.iter().flat_map(|line| &line.flags) {
        let words: String =
            flag.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
        if seen.insert(words) {
            flags.push(flag.clone());
        }
    }
    flags
}
