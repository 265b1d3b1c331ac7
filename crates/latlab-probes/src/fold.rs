//! The figures of a run with what each probe concludes from its own.

use latlab_harness::PointResult;
use latlab_record::{Header, Kind, Record};

use crate::REGISTRY;

/// The figures of a run ([`latlab_record::fold`]), each probe's followed by what it concludes from them.
///
/// A file of version 1 holds its conclusions; nothing is concluded from it anew.
#[must_use]
pub fn fold(header: &Header, lines: &[Record]) -> Vec<Record> {
    let mut figures = latlab_record::fold(header, lines);
    let is_old = lines.iter().all(|line| line.round.is_none());
    if is_old || lines.iter().any(|line| line.kind == Kind::Derived) {
        return figures;
    }
    for entry in REGISTRY {
        let id = entry.probe.spec().id;
        let own = || figures.iter().filter(|figure| figure.probe == id);
        let results: Vec<PointResult> = own().filter_map(PointResult::of).collect();
        let Some(last) = figures.iter().rposition(|figure| figure.probe == id) else {
            continue;
        };
        if !results.is_empty() {
            let concluded = entry.probe.conclude(header, &results);
            figures.splice(last + 1..=last, concluded);
        }
    }
    figures
}
