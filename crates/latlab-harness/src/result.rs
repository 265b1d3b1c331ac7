//! What was found at a point.

use std::collections::HashMap;

use latlab_record::{BlockSummary, Estimate, Point, Record};

/// What was found at a point so far, for [`AnyProbe::refine`] and [`AnyProbe::conclude`].
#[derive(Clone, Debug)]
pub struct PointResult {
    /// Where.
    pub point: Point,
    /// Median of all undisturbed samples, in the probe's unit.
    pub p50: f64,
    /// 95 % interval of the median, when there are blocks enough.
    pub interval: Option<[f64; 2]>,
    /// Core cycles of the median, from each block's own frequency; latencies only.
    pub cycles: Option<f64>,
    /// Whether too few undisturbed blocks were left.
    pub disturbed: bool,
    /// What its record holds as findings.
    pub findings: Option<serde_json::Value>,
    /// What each round says alone; empty where the rounds were not folded.
    pub rounds: Vec<RoundResult>,
}

/// What one round says of a point, alone.
#[derive(Clone, Debug)]
pub struct RoundResult {
    /// The round, from 0.
    pub round: u32,
    /// Where its measuring thread ran.
    pub cpu: u32,
    /// Of this round; it has no rounds itself.
    pub result: PointResult,
}

impl PointResult {
    /// Nothing but a median.
    pub fn new(point: Point, p50: f64) -> Self {
        Self {
            point,
            p50,
            interval: None,
            cycles: None,
            disturbed: false,
            findings: None,
            rounds: Vec::new(),
        }
    }

    /// What a figure or a line of one round says of its point, without its rounds. `None` of what has no
    /// figure, and of what is derived.
    pub fn of(record: &Record) -> Option<Self> {
        let summary = record.summary.as_ref()?;
        Some(Self {
            point: record.point.clone(),
            p50: summary.p50?,
            interval: summary.intervals.get("p50").copied(),
            cycles: cycles(&record.blocks),
            disturbed: record.flags.iter().any(|flag| flag == "disturbed"),
            findings: record.findings.clone(),
            rounds: Vec::new(),
        })
    }

    /// The figures of a probe with what each of their rounds says alone.
    pub fn of_run<'a>(
        figures: impl Iterator<Item = &'a Record>,
        lines: impl Iterator<Item = &'a Record>,
    ) -> Vec<Self> {
        let (mut results, mut places) = (Vec::new(), HashMap::new());
        for figure in figures {
            if let Some(result) = Self::of(figure) {
                places.insert(&figure.point, (figure, results.len()));
                results.push(result);
            }
        }
        for line in lines {
            let Some((figure, place)) = places.get(&line.point) else { continue };
            if let (Some(round), Some(cpu), Some(result)) = (line.round, line.cpu, Self::of(line))
                && figure.rounds.iter().any(|own| own.round == round)
            {
                results[*place].rounds.push(RoundResult { round, cpu, result });
            }
        }
        results
    }

    /// A number of its findings, whether it has a range or not.
    pub fn number(&self, name: &str) -> Option<f64> {
        Some(self.estimate(name)?.value)
    }

    /// The same with its range.
    pub fn estimate(&self, name: &str) -> Option<Estimate> {
        Estimate::read(self.findings.as_ref()?.get(name)?)
    }

    /// Its median with its range.
    pub fn median(&self) -> Estimate {
        let factors = self.interval.map(|ends| ends.map(|end| end / self.p50));
        Estimate::within(self.p50, factors)
    }
}

/// Core cycles of the median operation, from each block's own frequency: of the undisturbed blocks where
/// there are any.
fn cycles(blocks: &[BlockSummary]) -> Option<f64> {
    let all = blocks.iter().all(|block| block.disturbed);
    let cycles = blocks
        .iter()
        .filter(|block| all || !block.disturbed)
        .filter_map(|block| Some(block.p50 * block.core_ghz?));
    latlab_stats::median_of(cycles)
}

#[cfg(test)]
mod tests {
    use latlab_record::{Absence, StoppedBy, Summary, Unit};

    use super::*;

    fn figure() -> Record {
        let block = |p50, core_ghz, disturbed| BlockSummary {
            at_ns: 0.0,
            duration_ns: 1e6,
            samples: 10,
            p50,
            core_ghz,
            disturbed,
        };
        let mut summary = Summary { p50: Some(4.0), ..Summary::default() };
        summary.intervals.insert("p50".to_owned(), [3.9, 4.1]);
        summary.intervals.insert("p90".to_owned(), [5.0, 6.0]);
        let absence = Absence { kind: String::new(), text: String::new() };
        let point = Point { threads: Some(2), ..Point::default() };
        let mut blocks = vec![block(4.0, Some(3.0), false)];
        blocks.push(block(9.0, Some(3.0), true));
        blocks.push(block(4.0, None, false));
        Record {
            summary: Some(summary),
            blocks,
            findings: Some(serde_json::json!({ "pages": "huge" })),
            error: None,
            ..Record::absent("test.of", 1, point, Unit::Ns, StoppedBy::Planned, absence)
        }
    }

    #[test]
    fn what_is_concluded_from_is_in_the_figure() {
        let mut record = figure();
        let result = PointResult::of(&record).expect("a figure");
        assert_eq!(result.point.threads, Some(2));
        assert_eq!((result.p50, result.interval, result.cycles), (4.0, Some([3.9, 4.1]), Some(12.0)));
        assert!(!result.disturbed);
        assert_eq!(result.findings.expect("findings")["pages"], "huge");
        record.flags.push("disturbed".to_owned());
        assert!(PointResult::of(&record).expect("a figure").disturbed);
    }

    #[test]
    fn disturbed_blocks_have_cycles_where_no_others_do() {
        let mut record = figure();
        for block in &mut record.blocks {
            *block = BlockSummary { p50: 5.0, disturbed: true, ..block.clone() };
        }
        assert_eq!(PointResult::of(&record).expect("a figure").cycles, Some(15.0));
        record.blocks.clear();
        assert_eq!(PointResult::of(&record).expect("a figure").cycles, None);
    }

    #[test]
    fn nothing_is_concluded_from_what_has_no_figure() {
        let unproved = Record { summary: None, ..figure() };
        assert!(PointResult::of(&unproved).is_none());
        let derived = Record::derived("test.of", 1, Unit::Ns, serde_json::json!({}));
        assert!(PointResult::of(&derived).is_none());
    }
}
