//! The figures of a run with what each probe concludes from its own.

use latlab_harness::PointResult;
use latlab_record::{Header, Kind, Record};

use crate::REGISTRY;

/// The figures of a run ([`latlab_record::fold`]), each probe's followed by what it concludes from them.
///
/// A file of version 1 holds its conclusions; nothing is concluded from it anew.
pub fn fold(header: &Header, lines: &[Record]) -> Vec<Record> {
    let mut figures = latlab_record::fold(header, lines);
    let is_old = lines.iter().all(|line| line.round.is_none());
    if is_old || lines.iter().any(|line| line.kind == Kind::Derived) {
        return figures;
    }
    for entry in REGISTRY {
        let id = entry.probe.spec().id;
        let own = |record: &&Record| record.probe == id;
        let results = PointResult::of_run(figures.iter().filter(own), lines.iter().filter(own));
        let Some(last) = figures.iter().rposition(|figure| figure.probe == id) else { continue };
        if !results.is_empty() {
            let concluded = entry.probe.conclude(header, &results);
            figures.splice(last + 1..=last, concluded);
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use latlab_probes_testing as testing;
    use latlab_record::{Absence, Point, StoppedBy, Summary, Unit};
    use serde_json::json;

    use super::*;

    /// A call of `kernel.syscall` in one round.
    fn call(operation: &str, round: Option<u32>, p50: f64) -> Record {
        let point = Point { operation: Some(operation.to_owned()), ..Point::default() };
        let absence = Absence { kind: String::new(), text: String::new() };
        let summary = Summary { p50: Some(p50), ..Summary::default() };
        Record {
            kind: Kind::BatchMean,
            round,
            cpu: round.map(|round| round % 2),
            summary: Some(summary),
            error: None,
            ..Record::absent("kernel.syscall", 1, point, Unit::Ns, StoppedBy::Planned, absence)
        }
    }

    fn rounds(numbers: &[Option<u32>]) -> Vec<Record> {
        let both = |round: &Option<u32>| {
            [call("clock_gettime-vdso", *round, 20.0), call("clock_gettime-syscall", *round, 100.0)]
        };
        numbers.iter().flat_map(both).collect()
    }

    fn folded(lines: &[Record]) -> Vec<Record> {
        fold(&testing::header(&testing::env(64 << 20)), lines)
    }

    #[test]
    fn what_follows_from_the_figures_stands_behind_those_of_its_probe() {
        let mut lines = rounds(&[Some(0), Some(1), Some(2)]);
        lines.push(Record { probe: "kernel.mutex".to_owned(), ..call("lock", Some(0), 5.0) });
        let figures = folded(&lines);
        let kinds: Vec<(&str, Kind)> =
            figures.iter().map(|figure| (figure.probe.as_str(), figure.kind)).collect();
        assert_eq!(kinds[2], ("kernel.syscall", Kind::Derived), "{kinds:?}");
        assert_eq!(kinds[3].0, "kernel.mutex");
        let findings = figures[2].findings.as_ref().expect("derived");
        let ratio = &findings["clock_syscall_over_vdso"];
        assert_eq!(ratio["value"], 5.0);
        assert!(ratio["low"].as_f64() < Some(5.0) && ratio["high"].as_f64() > Some(5.0), "{ratio}");
    }

    /// A made-up run with figures of every probe, of which Python's tests read what follows from them.
    #[test]
    fn every_probe_concludes_from_a_known_run_what_it_always_did() {
        let run = include_str!("../../../tests/data/run-small.latlab.jsonl");
        let mut lines = run.lines();
        let header: Header = serde_json::from_str(lines.next().expect("a header")).expect("of this version");
        let footer: serde_json::Value = serde_json::from_str(lines.next().expect("a footer")).expect("JSON");
        let figures: Vec<Record> = serde_json::from_value(footer["figures"].clone()).expect("figures");
        let concluded: Vec<String> = REGISTRY
            .iter()
            .flat_map(|entry| {
                let id = entry.probe.spec().id;
                let own = figures.iter().filter(|figure| figure.probe == id && figure.kind != Kind::Derived);
                entry.probe.conclude(&header, &PointResult::of_run(own, std::iter::empty()))
            })
            .map(|record| testing::as_line(&record))
            .collect();
        testing::assert_golden("crates/latlab-probes/src/golden/conclusions.jsonl", &concluded);
    }

    #[test]
    fn nothing_is_concluded_anew_from_a_file_of_version_1() {
        let mut lines = rounds(&[None]);
        assert_eq!(folded(&lines).len(), 2);
        let kept = Record::derived("kernel.syscall", 1, Unit::Ns, json!({"old": true}));
        lines.push(kept.clone());
        assert_eq!(folded(&lines)[2], kept);
    }
}
