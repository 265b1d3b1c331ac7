//! The slow single operations of a block: which are kept with their times, and what was noted right after
//! each.

use latlab_clock::Clock;
use latlab_stats::count::index;

use crate::samples::{BlockData, Candidate};

/// Operations of a block that waits for which there is room until its slowest are known; of more, only those
/// over the threshold are kept.
pub(crate) const CANDIDATES: usize = 8_192;
/// Of a block, so many of the slowest keep their times in any case, ...
const LEAST_KEPT: usize = 64;
/// ... and this share.
const KEPT_SHARE: f64 = 0.02;
/// Of a record, so much is its tail where no threshold says more, ...
const TAIL_SHARE: f64 = 0.01;
/// ... and at least so many operations, ...
const LEAST_TAIL: f64 = 10.0;
/// ... but never more than this share.
const MOST_TAIL_SHARE: f64 = 0.1;
/// When more than one operation in so many is over the threshold, that is no tail.
pub(crate) const USUAL: u64 = 20;

/// After a wait of this length it is asked how much of it this thread was ready without a CPU: 0.7 us in
/// which nothing is handed over.
pub(crate) const LONG_WAIT_NS: f64 = 100_000.0;

/// Keeps the slowest of the candidates: those over the threshold, and in any case some dozens.
pub(crate) fn keep_slowest(
    data: &mut BlockData,
    candidates: &mut Vec<Candidate>,
    clock: &Clock,
    threshold_ns: f64,
) {
    let full = candidates.len() >= CANDIDATES;
    candidates.sort_unstable_by_key(|one| std::cmp::Reverse(one.ticks));
    let over = candidates.partition_point(|one| clock.ns(one.ticks) >= threshold_ns);
    // Of those that found no room nothing is known below the threshold.
    let kept = if full { over } else { over.max(most_kept(data.ops)).min(candidates.len()) };
    data.kept_over_ns = match candidates.get(kept) {
        _ if full => threshold_ns.next_down(),
        Some(next) => clock.ns(next.ticks),
        None => 0.0,
    };
    candidates.truncate(kept);
    candidates.sort_unstable_by_key(|one| one.begin);
    for one in candidates.iter() {
        data.push_slow(clock.at_ns(one.begin), clock.ns(one.ticks), one.note);
    }
}

fn most_kept(ops: u64) -> usize {
    index(ops as f64 * KEPT_SHARE).max(LEAST_KEPT)
}

/// Leaves out what is usual: a block of twenty or more in which more than one in twenty is over the threshold
/// keeps its slowest only.
pub(crate) fn leave_out_the_usual(data: &mut BlockData) {
    let most = most_kept(data.ops).min(usize::try_from(data.ops / USUAL).unwrap_or(usize::MAX));
    if most == 0
        || data.tail_dropped > 0
        || data.tail.len() as u64 * USUAL <= data.ops
        || data.tail.len() <= most
    {
        return;
    }
    let mut times: Vec<f64> = data.tail.iter().map(|sample| sample.value).collect();
    times.sort_unstable_by(|a, b| b.total_cmp(a));
    // The one that is not kept: ties of it are left out with it.
    let cut = times[most];
    data.kept_over_ns = cut;
    prune(data, |ns| ns > cut);
}

/// Keeps the slow operations of a length that is wanted.
fn prune(data: &mut BlockData, wanted: impl Fn(f64) -> bool) {
    let keep: Vec<bool> = data.tail.iter().map(|sample| wanted(sample.value)).collect();
    let (mut tail, mut marks) = (keep.iter(), keep.iter());
    data.tail.retain(|_| tail.next().copied().unwrap_or(false));
    data.marks.retain(|_| marks.next().copied().unwrap_or(false));
}

/// The threshold of a record whose blocks kept their slowest operations, each down to another length; leaves
/// out what is faster.
pub(crate) fn settle(blocks: &mut [BlockData], threshold_ns: f64) -> f64 {
    let complete_ns = blocks.iter().map(|block| block.kept_over_ns).fold(0.0, f64::max);
    let mut times: Vec<f64> = blocks
        .iter()
        .flat_map(|block| block.tail.iter().map(|sample| sample.value))
        .filter(|ns| *ns > complete_ns)
        .collect();
    times.sort_unstable_by(|a, b| b.total_cmp(a));
    let ops: f64 = blocks.iter().map(|block| block.ops as f64).sum();
    let wanted = if blocks.iter().any(|block| block.waits) {
        index((ops * TAIL_SHARE).max(LEAST_TAIL).min(ops * MOST_TAIL_SHARE).ceil())
    } else {
        usize::MAX
    };
    let over = times.partition_point(|ns| *ns >= threshold_ns);
    let usual = (over as u64 * USUAL) as f64 > ops;
    let longest_wanted = times.get(wanted.min(times.len()).saturating_sub(1)).copied();
    let settled_ns = match longest_wanted {
        // More than one in twenty over the threshold are usual; these are the slowest.
        Some(ns) if wanted < usize::MAX && usual => ns,
        Some(ns) if wanted < usize::MAX && threshold_ns > complete_ns => ns.min(threshold_ns),
        _ if threshold_ns > complete_ns => threshold_ns,
        Some(ns) => ns,
        None => complete_ns,
    };
    for block in blocks {
        prune(block, |ns| ns >= settled_ns);
    }
    settled_ns
}

#[cfg(test)]
mod tests {
    use latlab_clock::SimulatedClock;

    use super::*;
    use crate::samples::Note;

    fn waiting(times_ns: &[f64], threshold_ns: f64) -> BlockData {
        let clock = Clock::simulated(SimulatedClock::ideal());
        let mut candidates: Vec<Candidate> = times_ns
            .iter()
            .enumerate()
            .map(|(index, ns)| Candidate {
                begin: clock.ticks(1e6 * index as f64),
                ticks: clock.ticks(*ns),
                note: Note::default(),
            })
            .collect();
        let mut block = BlockData { ops: times_ns.len() as u64, waits: true, ..BlockData::default() };
        keep_slowest(&mut block, &mut candidates, &clock, threshold_ns);
        block
    }

    fn steps(count: u32, step_ns: f64) -> Vec<f64> {
        (1..=count).map(|step| f64::from(step) * step_ns).collect()
    }

    #[test]
    fn the_slowest_hundredth_is_the_tail_of_what_waits_even_below_its_threshold() {
        let mut blocks: Vec<BlockData> = (0..6).map(|_| waiting(&steps(1_000, 100.0), 1e6)).collect();
        let settled = settle(&mut blocks, 1e6);
        let kept: usize = blocks.iter().map(|block| block.tail.len()).sum();
        assert_eq!(kept, 60, "of 6,000, from {settled} ns on");
        assert!(blocks.iter().all(|block| block.marks.len() == block.tail.len()));
    }

    #[test]
    fn a_threshold_that_is_reached_often_counts_and_one_that_is_usual_does_not() {
        let count = |threshold_ns| {
            let mut blocks: Vec<BlockData> =
                (0..6).map(|_| waiting(&steps(1_000, 100.0), threshold_ns)).collect();
            let settled_ns = settle(&mut blocks, threshold_ns);
            let kept: usize = blocks.iter().map(|block| block.tail.len()).sum();
            (kept, settled_ns)
        };
        let (kept, settled_ns) = count(97_050.0);
        assert_eq!((kept, settled_ns.round()), (6 * 30, 97_050.0));
        assert_eq!(count(1_000.0).0, 60);
    }

    #[test]
    fn nothing_is_kept_below_what_one_block_could_not_keep() {
        let mut blocks: Vec<BlockData> = (0..5).map(|_| waiting(&steps(1_000, 100.0), 1e6)).collect();
        // More operations than there is room for: only what is over the threshold is known.
        let mut full = waiting(&vec![50.0; CANDIDATES], 90_000.0);
        full.push_slow(1.0, 95_000.0, Note::default());
        blocks.push(full);
        let settled_ns = settle(&mut blocks, 90_000.0);
        assert!(settled_ns >= 90_000.0, "{settled_ns}");
    }

    #[test]
    fn what_is_usual_in_a_block_is_no_tail() {
        let mut block = BlockData { ops: 1_000, ..BlockData::default() };
        for (index, ns) in steps(500, 10.0).iter().enumerate() {
            block.push_slow(index as f64 * 1e6, *ns, Note::default());
        }
        leave_out_the_usual(&mut block);
        assert_eq!((block.tail.len(), block.marks.len()), (50, 50), "one in twenty");
        assert!(block.tail.iter().all(|sample| sample.value > block.kept_over_ns));
        let mut blocks = [block];
        let settled_ns = settle(&mut blocks, 10.0);
        assert!((settled_ns - 4_510.0).abs() < 1.0, "{settled_ns}");
    }
}
