//! What blocks of samples hold, and which of them count.

use latlab_observe::{Attribution, Interruption, Sample, Span};
use latlab_record::{Histogram, Observed, Summary, TailSample, significant};
use latlab_stats as stats;

/// The samples of one block.
#[derive(Clone, Default)]
pub struct BlockData {
    /// When it began, ns since the clock was opened.
    pub at_ns: f64,
    /// How long it took, ns.
    pub duration_ns: f64,
    /// Batch means (ns an operation) or rates (bytes a second).
    pub values: Vec<f64>,
    /// Single operations.
    pub histogram: Option<Histogram>,
    /// Slow single operations with their time stamps, in order of time.
    pub tail: Vec<TailSample>,
    /// When operations were timed one by one in a row.
    pub listened: Vec<Span>,
    /// What is known of each of them.
    pub(crate) marks: Vec<Mark>,
    /// All operations that took longer than this are among them, as far as there was room, ns.
    pub(crate) kept_over_ns: f64,
    /// Time that the thread was ready without a CPU and that no record of a switch has, ns.
    pub(crate) delay_at_most_ns: Option<f64>,
    /// What was recorded while it waited.
    pub(crate) records: Records,
    /// Times between two operations that something else took: they say when something periodic fell due, and
    /// are no samples.
    pub(crate) gaps: Vec<Sample>,
    /// Slow operations for which there was no room.
    pub tail_dropped: u64,
    /// Operations done inside timed regions.
    pub ops: u64,
    /// Bytes moved inside timed regions.
    pub bytes: u64,
    /// Frequency of the core right after the block, GHz.
    pub core_ghz: Option<f64>,
    /// What else happened on this thread.
    pub observed: Observed,
    /// Marked by the scheduler.
    pub disturbed: bool,
    /// Marked by the session: another thread that took part was kept from its CPU.
    pub partner_disturbed: bool,
    /// This thread waits as part of the work: that it was off its CPU says nothing.
    pub waits: bool,
    /// What happened on the other threads that took part, as far as the session observed them.
    pub observed_elsewhere: Option<Observed>,
    /// Median of each worker's own rates.
    pub members: Vec<f64>,
    /// Parts of each operation, in the order in which they were met first.
    pub channels: Vec<(&'static str, Histogram)>,
}

impl BlockData {
    /// Its median: of its values or of its single operations.
    pub(crate) fn p50(&self) -> f64 {
        if let Some(histogram) = &self.histogram {
            return quantile_of(histogram, &histogram.occupied(), 0.5);
        }
        stats::median(&self.values)
    }

    pub(crate) fn push_slow(&mut self, at_ns: f64, ns: f64, note: Note) {
        self.tail.push(TailSample { at_ns, value: ns, cause: None });
        self.marks.push(Mark { note, split: None });
    }
}

/// What was recorded while a block waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Records {
    /// Nothing, or not all.
    #[default]
    Incomplete,
    /// Every switch of its thread.
    Switches,
    /// And when devices were handed each request and had done it.
    Requests,
}

/// A single operation that may turn out to be one of the slowest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    /// Its begin, ticks.
    pub(crate) begin: u64,
    /// How long it took, ticks.
    pub(crate) ticks: u64,
    pub(crate) note: Note,
}

/// What was known right after an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Note {
    /// What the flags said.
    pub(crate) interruption: Interruption,
    /// Time that the thread was ready without a CPU, and since when that was counted, ns.
    pub(crate) delay: Option<Delay>,
    /// It was under way in the kernel all the time, together with others.
    pub(crate) under_way: bool,
}

/// See [`Note::delay`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delay {
    pub(crate) ns: f64,
    pub(crate) since_ns: f64,
    /// Of the thread, or of the last wait, that the operation ended with: it was its last part.
    pub(crate) at_end: bool,
    /// Time on its CPU since then, ns, where that is counted.
    pub(crate) running_ns: Option<f64>,
}

/// A slow operation and what is known of it; parallel to [`BlockData::tail`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) note: Note,
    /// What it was made of, where that needs no other block.
    pub(crate) split: Option<Attribution>,
}

/// The blocks that count, and whether all are disturbed: the undisturbed ones when there are any, else all.
pub(crate) fn counted(blocks: &[BlockData]) -> (Vec<&BlockData>, bool) {
    let mut used: Vec<&BlockData> = blocks.iter().collect();
    without(&mut used, &left_out(blocks));
    (used, blocks.iter().all(|block| block.disturbed))
}

/// The places of those that do not.
pub(crate) fn left_out(blocks: &[BlockData]) -> Vec<usize> {
    let all = blocks.iter().all(|block| block.disturbed);
    let places = blocks.iter().enumerate();
    places.filter(|(_, block)| block.disturbed && !all).map(|(place, _)| place).collect()
}

/// Leaves out what stands at these places of what was kept by block.
pub fn without<T>(kept: &mut Vec<T>, blocks: &[usize]) {
    let mut places = 0..;
    kept.retain(|_| places.next().is_none_or(|place| !blocks.contains(&place)));
}

/// A quantile of single operations. A bucket stands for its middle, which lies beyond the extremes when they
/// share the bucket; a quantile never does.
pub(crate) fn quantile_of(histogram: &Histogram, occupied: &[(f64, u64)], q: f64) -> f64 {
    let value = stats::weighted::quantile_counts(occupied, q);
    match (histogram.min_ns(), histogram.max_ns()) {
        (Some(min), Some(max)) => value.clamp(min, max),
        _ => value,
    }
}

/// What the samples of a point say that a probe may keep beside its own details.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Median, in the probe's unit.
    pub p50: Option<f64>,
    /// 99th percentile, where there are samples enough.
    pub p99: Option<f64>,
    /// Median rate in bytes a core cycle: each block's median over the frequency right after it.
    pub bytes_per_cycle: Option<f64>,
    /// Median rate of each worker alone, bytes a second; empty without workers.
    pub per_thread: Vec<f64>,
}

impl Sampled {
    /// Of the blocks that count, with their summary.
    pub(crate) fn of(blocks: &[&BlockData], summary: &Summary) -> Self {
        let members = blocks.iter().map(|block| block.members.len()).max().unwrap_or(0);
        let of_member = |member| blocks.iter().filter_map(move |block| block.members.get(member).copied());
        let per_cycle = blocks.iter().filter_map(|block| Some(block.p50() / (block.core_ghz? * 1e9)));
        Self {
            p50: summary.p50,
            p99: summary.p99,
            bytes_per_cycle: stats::median_of(per_cycle),
            per_thread: (0..members)
                .filter_map(|member| stats::median_of(of_member(member)))
                .map(round)
                .collect(),
        }
    }
}

/// As records keep numbers; a file cannot hold what is not finite.
pub(crate) fn round(value: f64) -> f64 {
    if value.is_finite() { significant(value) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(blocks: &[BlockData]) -> Sampled {
        let used: Vec<&BlockData> = blocks.iter().collect();
        Sampled::of(&used, &Summary::default())
    }

    #[test]
    fn a_rate_is_in_bytes_a_core_cycle_where_the_frequency_is_known() {
        let at = |core_ghz, rate| BlockData { core_ghz, values: vec![rate; 10], ..BlockData::default() };
        // A governor that changes its mind: the faster blocks move no more a cycle.
        let blocks = [at(Some(4.0), 200e9), at(Some(2.0), 100e9), at(Some(4.0), 200e9), at(None, 900e9)];
        assert_eq!(sampled(&blocks).bytes_per_cycle, Some(50.0));
        assert_eq!(sampled(&blocks[3..]).bytes_per_cycle, None);
    }

    #[test]
    fn each_worker_has_its_own_median() {
        let block = |members: &[f64]| BlockData { members: members.to_vec(), ..BlockData::default() };
        let blocks = [block(&[1.0, 9.0]), block(&[2.0, 7.0]), block(&[3.0, 8.0])];
        assert_eq!(sampled(&blocks).per_thread, [2.0, 8.0]);
        assert_eq!(sampled(&[block(&[])]).per_thread, [0.0; 0]);
    }
}
