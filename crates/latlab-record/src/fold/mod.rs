//! The lines of a run become its figures: one pure function, so that a run cut short folds as well as a whole
//! one, and an old file gains by a better fold.
//!
//! ```text
//! lines ──► by point ──► merged (shape, proofs, flags) ──► statistics by CPU ──► kin's intervals ──► CPUs that differ ──► figures
//!      └──► what no round reached ──────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! What a figure is and where its interval comes from: [`latlab_stats::fold_rounds`].

mod cpus;
mod findings;
mod merged;
mod points;
mod statistics;

use std::borrow::Cow;
use std::collections::HashSet;

use points::{NOT_REACHED, PointLines, by_point, is_not_reached, missed_points};

use crate::{Absence, Header, Kind, Point, Record, StoppedBy};

/// Changes with figures and with what a footer keeps of them: a file of another version is folded again.
pub const FOLD_VERSION: u32 = 3;

/// The figures of a run: one a point, in the order of the plan's probes and then of their first lines, and
/// one record a probe for the points that no round reached. What is derived from figures is only in it where
/// the lines hold it.
///
/// A line without a round stands in a file of version 1, which has one: its figures keep what they say,
/// without intervals.
pub fn fold(header: &Header, lines: &[Record]) -> Vec<Record> {
    let lines = &proved(lines);
    if lines.iter().all(|line| line.round.is_none()) {
        return lines.iter().map(of_version_1).collect();
    }
    let points = by_point(lines);
    let mut figures: Vec<Record> = points.iter().map(merged::figure).collect();
    statistics::complete(&mut figures, &points);
    findings::complete(&mut figures, &points);
    cpus::tell(header, &mut figures);
    figures.extend(not_reached(header, lines, &points));
    say_how_often_a_whole_probe_failed(&mut figures, lines);
    let place = |figure: &Record| {
        let planned = header.plan.iter().position(|probe| probe.id == figure.probe);
        planned.unwrap_or(header.plan.len())
    };
    figures.sort_by_cached_key(place);
    // Only a file that somebody joined from two has derived records between lines of rounds.
    figures.extend(lines.iter().filter(|line| line.kind == Kind::Derived).cloned());
    figures
}

/// The lines, those without figures whose proof failed: the harness writes them so, another program may not
/// have.
fn proved(lines: &[Record]) -> Cow<'_, [Record]> {
    let failed = |line: &Record| line.error.is_none() && line.checks.iter().any(|check| !check.ok);
    if !lines.iter().any(failed) {
        return Cow::Borrowed(lines);
    }
    let mut lines = lines.to_vec();
    for line in lines.iter_mut().filter(|line| failed(line)) {
        line.error = Absence::of_failed(&line.checks);
        line.summary = None;
    }
    Cow::Owned(lines)
}

fn of_version_1(line: &Record) -> Record {
    let mut figure = line.clone();
    let channels = figure.channels.iter_mut().map(|channel| &mut channel.summary);
    for summary in channels.chain(&mut figure.summary) {
        summary.intervals.clear();
    }
    figure
}

/// One record a probe for the points that some round did not reach and no other did either.
fn not_reached(header: &Header, lines: &[Record], points: &[PointLines]) -> Vec<Record> {
    let known: HashSet<(&str, &Point)> =
        points.iter().map(|point| (point.lines[0].probe.as_str(), &point.lines[0].point)).collect();
    let mut probes: Vec<(&Record, Vec<Point>)> = Vec::new();
    for line in lines {
        let Some(missed) = missed_points(line) else { continue };
        let place = probes.iter().position(|(first, _)| first.probe == line.probe);
        let place = place.unwrap_or_else(|| {
            probes.push((line, Vec::new()));
            probes.len() - 1
        });
        let left = &mut probes[place].1;
        let mut already: HashSet<Point> = left.iter().cloned().collect();
        for value in missed {
            // A point of a newer version has fields that this one does not know, and counts as it stands.
            let Ok(point) = serde_json::from_value::<Point>(value.clone()) else { continue };
            if !known.contains(&(line.probe.as_str(), &point)) && already.insert(point.clone()) {
                left.push(point);
            }
        }
    }
    let of_probe = |id: &str| points.iter().filter(|point| point.lines[0].probe == id).count();
    probes
        .into_iter()
        .filter_map(|(first, left)| {
            let planned = header.plan.iter().find(|probe| probe.id == first.probe);
            let planned = planned.and_then(|probe| usize::try_from(probe.points).ok());
            let seen = of_probe(&first.probe) + left.len();
            let left: Vec<&Point> = left.iter().collect();
            Record::not_reached(first, &left, planned.unwrap_or(0).max(seen))
        })
        .collect()
}

impl Record {
    /// One record for all of a probe's points that were never visited, by the probe, method and reason of
    /// another one: a short run of a long list would be little else. `None` where there are none.
    pub fn not_reached(like: &Self, missed: &[&Point], planned: usize) -> Option<Self> {
        let why = match like.stopped_by {
            StoppedBy::Interrupted => "the run was stopped",
            _ => "skipped (time); use a longer --profile or --budget",
        };
        let more = if missed.len() > 1 { ", ..." } else { "" };
        let text = format!("{} of {planned} points ({}{more}): {why}", missed.len(), missed.first()?.label());
        let absence = Absence { kind: NOT_REACHED.to_owned(), text };
        Some(Self {
            findings: Some(serde_json::json!({ "points": missed })),
            ..Self::absent(&like.probe, like.method, Point::default(), like.unit, like.stopped_by, absence)
        })
    }
}

/// What has no point of its own, such as a worker that died while it opened a probe, says in how many of the
/// probe's rounds that was so.
fn say_how_often_a_whole_probe_failed(figures: &mut [Record], lines: &[Record]) {
    let rounds = |probe: &str, of_point: Option<&Point>| {
        let own = lines.iter().filter(|line| line.probe == probe);
        let own = own.filter(|line| {
            of_point.is_none_or(|point| line.point == *point && missed_points(line).is_none())
        });
        own.map(|line| line.round).collect::<HashSet<_>>().len()
    };
    for figure in figures {
        if figure.kind == Kind::Absent && figure.point == Point::default() && !is_not_reached(figure) {
            let (failed, all) = (rounds(&figure.probe, Some(&figure.point)), rounds(&figure.probe, None));
            if failed < all {
                figure.flags.push(format!("in {failed} of {all} rounds"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
