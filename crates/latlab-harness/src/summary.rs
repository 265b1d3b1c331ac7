//! Blocks of samples become a record.

use latlab_clock::ClockFacts;
use latlab_record::{
    Absence, BlockSummary, Channel, Histogram, Kind, Observed, Overhead, Point, Record, StoppedBy, Summary,
    TailCauses, TailSample, Unit, Work, keep_slowest,
};
use latlab_stats as stats;

use crate::samples::{BlockData, counted, quantile_of, round};
use crate::{Proof, Spec};

/// How sure it must be that a quantile lies between the smallest and the largest sample.
const LEVEL: f64 = 0.95;
/// Name in the summary, quantile.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];
/// Quantiles on either side of the median that say whether it lies between two kinds of operations, and how
/// far these are apart then. A cold file that is read in order is such a case where about half of its blocks
/// had been read ahead.
const BESIDE_MEDIAN: [f64; 2] = [0.4, 0.6];
const KINDS_APART: f64 = 3.0;
const BETWEEN_MODES: &str = "between_modes: two of five operations took less than a third of what two \
    others took, so the median may be of either kind";

/// Everything known about a point when its record is made.
pub(crate) struct Measured<'a> {
    pub(crate) spec: &'static Spec,
    pub(crate) point: Point,
    pub(crate) blocks: &'a [BlockData],
    pub(crate) summary: Summary,
    pub(crate) proof: Proof,
    pub(crate) ops_per_window: Option<u64>,
    pub(crate) tail_threshold_ns: f64,
    pub(crate) tail_causes: Option<TailCauses>,
    pub(crate) stopped_by: StoppedBy,
    pub(crate) facts: &'a ClockFacts,
}

fn is_per_operation(blocks: &[BlockData]) -> bool {
    blocks.iter().any(|block| block.histogram.is_some())
}

/// Statistics of the blocks that count.
pub(crate) fn of(blocks: &[BlockData]) -> Summary {
    let (used, _) = counted(blocks);
    if is_per_operation(blocks) { of_histogram(&operations(&used)) } else { of_values(&used) }
}

/// The record of a measured point.
pub(crate) fn record(measured: Measured) -> Record {
    let Measured { spec, point, blocks, mut summary, proof, ops_per_window, facts, .. } = measured;
    let (used, disturbed) = counted(blocks);
    let per_op = is_per_operation(blocks);
    let medians: Vec<f64> = used.iter().map(|block| block.p50()).collect();
    summary.between_blocks = (medians.len() > 1).then(|| {
        [medians.iter().copied().fold(f64::INFINITY, f64::min), medians.iter().copied().fold(0.0, f64::max)]
            .map(round)
    });

    let mut flags = proof.flags;
    if disturbed {
        flags.push("disturbed".to_owned());
    }
    let error = Absence::of_failed(&proof.checks);
    let ops_per_sample = if per_op { 1 } else { ops_per_window.unwrap_or(1) };
    let histogram = operations(&used);
    if per_op && is_between_modes(&histogram) {
        flags.push(BETWEEN_MODES.to_owned());
    }
    let work = work_of(proof.work, blocks, spec);
    let (tail, tail_dropped) = slowest(&used);
    Record {
        probe: spec.id.to_owned(),
        method: spec.method_version,
        point,
        unit: spec.unit,
        kind: if per_op { Kind::PerOp } else { Kind::BatchMean },
        ops_per_sample,
        samples: if per_op {
            histogram.total()
        } else {
            used.iter().map(|block| block.values.len() as u64).sum()
        },
        resolution_ns: (spec.unit == Unit::Ns).then(|| round(facts.quantum_ns / ops_per_sample as f64)),
        engine: proof.engine,
        overhead: overhead(&summary, spec.unit, ops_per_sample, facts),
        summary: error.is_none().then_some(summary),
        histogram: per_op.then(|| histogram.encode()),
        values: (!per_op)
            .then(|| used.iter().flat_map(|block| &block.values).map(|value| round(*value)).collect()),
        tail,
        tail_threshold: per_op.then_some(measured.tail_threshold_ns),
        tail_dropped,
        tail_causes: measured.tail_causes,
        channels: channels(&used),
        blocks: blocks.iter().map(block_summary).collect(),
        work,
        checks: proof.checks,
        observed: blocks
            .iter()
            .map(|block| block.observed.clone())
            .reduce(|a, b| latlab_observe::sum(&a, &b))
            .unwrap_or_else(Observed::default),
        flags,
        stopped_by: measured.stopped_by,
        findings: proof.findings,
        error,
        ..Record::default()
    }
}

/// Whether the median lies between two kinds of operations: then a small shift of their shares makes it
/// another figure.
fn is_between_modes(histogram: &Histogram) -> bool {
    let occupied = histogram.occupied();
    let [below, above] = BESIDE_MEDIAN.map(|q| quantile_of(histogram, &occupied, q));
    histogram.total() >= 30 && above > KINDS_APART * below
}

/// All work that was done, in disturbed blocks too.
fn work_of(own: Work, blocks: &[BlockData], spec: &Spec) -> Work {
    let mut work = own;
    work.ops = blocks.iter().map(|block| block.ops).sum();
    work.bytes += blocks.iter().map(|block| block.bytes).sum::<u64>();
    if work.convention.is_none() && !spec.convention.is_empty() {
        work.convention = Some(spec.convention.to_owned());
    }
    work
}

fn block_summary(block: &BlockData) -> BlockSummary {
    let single = block.histogram.as_ref().map(Histogram::total);
    BlockSummary {
        at_ns: block.at_ns.round(),
        duration_ns: block.duration_ns.round(),
        samples: single.unwrap_or(block.values.len() as u64),
        p50: round(block.p50()),
        core_ghz: block.core_ghz.map(round),
        disturbed: block.disturbed,
    }
}

fn overhead(summary: &Summary, unit: Unit, ops: u64, facts: &ClockFacts) -> Option<Overhead> {
    let p50 = summary.p50.filter(|p50| unit == Unit::Ns && *p50 > 0.0)?;
    let region_ns = facts.overhead_ns.mean;
    Some(Overhead { region_ns: round(region_ns), share: round(region_ns / (p50 * ops as f64)) })
}

/// Statistics of window means or rates.
fn of_values(blocks: &[&BlockData]) -> Summary {
    let mut sorted: Vec<f64> = blocks.iter().flat_map(|block| &block.values).copied().collect();
    sorted.sort_by(f64::total_cmp);
    let Some(moments) = stats::moments(&sorted) else { return Summary::default() };
    let summary = Summary {
        min: Some(round(moments.min)),
        max: Some(round(moments.max)),
        mean: Some(round(moments.mean)),
        std: moments.std.map(round),
        ..Summary::default()
    };
    with_quantiles(summary, sorted.len() as u64, |q| stats::quantile(&sorted, q))
}

/// Each quantile for which there are samples enough. The median of few samples is still the best single
/// figure.
fn with_quantiles(mut summary: Summary, samples: u64, of: impl Fn(f64) -> f64) -> Summary {
    for (name, q) in QUANTILES {
        let enough = samples >= stats::min_samples(q, LEVEL) || name == QUANTILES[0].0;
        if let Some(place) = summary.place(name).filter(|_| enough && samples > 0) {
            *place = Some(round(of(q)));
        }
    }
    summary
}

/// Each channel's own distribution, in the order in which the first block met them.
fn channels(blocks: &[&BlockData]) -> Vec<Channel> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in blocks.iter().flat_map(|block| &block.channels) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let own = blocks.iter().flat_map(|block| &block.channels).filter(|(other, _)| *other == name);
            let all = together(own.map(|(_, histogram)| histogram));
            Channel {
                name: name.to_owned(),
                samples: all.total(),
                summary: of_histogram(&all),
                histogram: Some(all.encode()),
            }
        })
        .collect()
}

fn together<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut all = Histogram::new();
    histograms.for_each(|own| all.merge(own));
    all
}

/// All single operations of these blocks.
fn operations(blocks: &[&BlockData]) -> Histogram {
    together(blocks.iter().filter_map(|block| block.histogram.as_ref()))
}

/// Statistics of single operations.
fn of_histogram(all: &Histogram) -> Summary {
    let occupied = all.occupied();
    let summary = Summary {
        min: all.min_ns().map(round),
        max: all.max_ns().map(round),
        mean: all.mean_ns().map(round),
        std: all.std_ns().map(round),
        ..Summary::default()
    };
    with_quantiles(summary, all.total(), |q| quantile_of(all, &occupied, q))
}

/// The slow samples of all blocks, and how many were left out.
fn slowest(blocks: &[&BlockData]) -> (Vec<TailSample>, u64) {
    let all = blocks.iter().flat_map(|block| block.tail.iter().cloned());
    let dropped = blocks.iter().map(|block| block.tail_dropped).sum();
    let (mut tail, dropped) = keep_slowest(all.collect(), dropped);
    for sample in &mut tail {
        sample.at_ns = sample.at_ns.round();
        sample.value = round(sample.value);
    }
    (tail, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampled;

    fn block(values: &[f64]) -> BlockData {
        BlockData { values: values.to_vec(), ..BlockData::default() }
    }

    #[test]
    fn a_quantile_without_enough_samples_is_absent() {
        let blocks: Vec<BlockData> = (0..6).map(|_| block(&[1.0, 1.1, 1.2, 1.3])).collect();
        let used: Vec<&BlockData> = blocks.iter().collect();
        let summary = of_values(&used);
        assert!(summary.p50.is_some(), "of few samples the median is still the best single figure");
        assert_eq!([summary.p90, summary.p99, summary.p999, summary.p9999], [None; 4]);
    }

    #[test]
    fn details_are_given_the_median_and_a_tail_of_samples_enough() {
        for (samples, known) in [(10, false), (100, true)] {
            let blocks: Vec<BlockData> = (0..6).map(|_| block(&vec![2.0; samples])).collect();
            let sampled = Sampled::of(&counted(&blocks).0, &of(&blocks));
            assert_eq!((sampled.p50, sampled.p99.is_some()), (Some(2.0), known), "{samples} a block");
        }
    }

    #[test]
    fn quiet_blocks_alone_count_when_there_are_any() {
        let mut blocks: Vec<BlockData> = (0..8).map(|_| block(&[1.0; 10])).collect();
        for disturbed in &mut blocks[..2] {
            disturbed.values = vec![50.0; 10];
            disturbed.disturbed = true;
        }
        let (used, disturbed) = counted(&blocks);
        assert_eq!((used.len(), disturbed), (6, false));
        let p50 = of_values(&used).p50.expect("there are samples");
        assert!((p50 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_drift_never_blanks_a_figure() {
        let mut blocks: Vec<BlockData> = (0..2).map(|_| block(&[1.0; 10])).collect();
        for disturbed in &mut blocks {
            disturbed.disturbed = true;
        }
        let (used, disturbed) = counted(&blocks);
        assert_eq!((used.len(), disturbed), (2, true));
    }

    fn single(values_ps: &[u64]) -> BlockData {
        let mut histogram = Histogram::new();
        for ps in values_ps {
            histogram.record(*ps);
        }
        BlockData { histogram: Some(histogram), ..BlockData::default() }
    }

    #[test]
    fn quantiles_of_single_operations_lie_between_the_extremes() {
        // Both ends of the bucket from 20,480 to 20,608 ps, whose middle is neither.
        for ps in [20_480, 20_607] {
            let blocks: Vec<BlockData> = (0..6).map(|_| single(&[ps; 100])).collect();
            let used: Vec<&BlockData> = blocks.iter().collect();
            let summary = of_histogram(&operations(&used));
            assert_eq!(summary.p50, summary.min);
            assert_eq!(summary.p90, summary.max);
        }
    }

    static SPEC: Spec = Spec::planted("test.summary");

    fn recorded(blocks: &[BlockData], proof: Proof) -> Record {
        let clock = latlab_clock::Clock::simulated(latlab_clock::SimulatedClock::ideal());
        record(Measured {
            spec: &SPEC,
            point: Point::default(),
            blocks,
            summary: of(blocks),
            proof,
            ops_per_window: None,
            tail_threshold_ns: 1_000.0,
            tail_causes: None,
            stopped_by: StoppedBy::Planned,
            facts: &clock.facts,
        })
    }

    #[test]
    fn a_median_between_two_kinds_of_operations_says_so() {
        for (fast, said) in [(52, true), (45, true), (80, false), (20, false)] {
            let mut operations = vec![3_300_u64; fast];
            operations.resize(100, 58_000);
            let blocks: Vec<BlockData> = (0..6).map(|_| single(&operations)).collect();
            let flags = recorded(&blocks, Proof::default()).flags;
            assert_eq!(
                flags.iter().any(|flag| flag.starts_with("between_modes")),
                said,
                "{fast} of 100 are fast: {flags:?}"
            );
        }
    }

    #[test]
    fn the_tail_holds_nothing_that_the_histogram_of_the_record_does_not() {
        let mut blocks: Vec<BlockData> = (0..7).map(|_| single(&[20_000; 100])).collect();
        blocks[3] = single(&[20_000, 5_000_000]);
        blocks[3].disturbed = true;
        blocks[3].tail.push(TailSample { at_ns: 1.0, value: 5_000.0, cause: None });
        let record = recorded(&blocks, Proof::default());
        assert_eq!(record.samples, 600);
        assert_eq!(record.tail, []);
        assert_eq!(record.blocks.len(), 7, "the disturbed block is still shown");
    }
}
