//! The lines of a run by the point that each was measured at.

use std::collections::HashMap;

use crate::{Kind, Record};

/// Kind of the absence of what no time was left for.
pub(super) const NOT_REACHED: &str = "not_reached";

pub(super) struct PointLines<'a> {
    pub(super) lines: Vec<&'a Record>,
    /// Those with a figure, round after round.
    pub(super) good: Vec<&'a Record>,
}

pub(super) fn by_point(lines: &[Record]) -> Vec<PointLines<'_>> {
    let mut places = HashMap::new();
    let mut points: Vec<PointLines> = Vec::new();
    for line in lines {
        if line.kind == Kind::Derived || missed_points(line).is_some() {
            continue;
        }
        let place = *places.entry((line.probe.as_str(), &line.point)).or_insert(points.len());
        if place == points.len() {
            let (lines, good) = (Vec::new(), Vec::new());
            points.push(PointLines { lines, good });
        }
        points[place].lines.push(line);
    }
    for point in &mut points {
        point.good = point.lines.iter().copied().filter(|line| has_figure(line)).collect();
        if let Some(first) = point.good.first().copied() {
            // Two methods in one run are two points; only a damaged file has them.
            let like = |line: &&Record| {
                (line.method, line.unit, line.kind) == (first.method, first.unit, first.kind)
            };
            point.good.retain(like);
        }
        point.good.sort_by_key(|line| line.round);
    }
    points
}

fn has_figure(line: &Record) -> bool {
    matches!(line.kind, Kind::BatchMean | Kind::PerOp) && line.error.is_none() && line.summary.is_some()
}

pub(super) fn is_not_reached(line: &Record) -> bool {
    line.error.as_ref().is_some_and(|error| error.kind == NOT_REACHED)
}

/// The points of a line that stands for all that a round did not reach of a probe.
pub(super) fn missed_points(line: &Record) -> Option<&Vec<serde_json::Value>> {
    if !is_not_reached(line) {
        return None;
    }
    line.findings.as_ref()?.get("points")?.as_array()
}
