//! Samples of several blocks, sorted together once: what every estimate here starts from.

use crate::refusal::Refusal;

/// The least number of blocks for a distribution-free 95 % interval between them: all six on one side of their median
/// has the chance 2/64.
pub const MIN_BLOCKS: usize = 6;

pub(crate) struct Pooled {
    /// All samples, ascending.
    pub(crate) sorted: Vec<f64>,
    /// For each of `sorted`, its place in the blocks laid end to end.
    origin: Vec<u32>,
    /// For each of `sorted`, its block.
    pub(crate) block: Vec<u32>,
    /// Samples of each block that has any.
    pub(crate) sizes: Vec<usize>,
}

impl Pooled {
    pub(crate) fn new(blocks: &[&[f64]]) -> Result<Self, Refusal> {
        let filled: Vec<&[f64]> = blocks.iter().copied().filter(|b| !b.is_empty()).collect();
        let sizes: Vec<usize> = filled.iter().map(|b| b.len()).collect();
        let mut tagged: Vec<(f64, u32, u32)> = Vec::with_capacity(sizes.iter().sum());
        let mut place = 0_u32;
        for (b, block) in (0_u32..).zip(&filled) {
            for &x in *block {
                if !x.is_finite() {
                    return Err(Refusal::NotFinite);
                }
                // + 0.0 turns -0.0 into 0.0, so that the total order agrees with `<`.
                tagged.push((x + 0.0, place, b));
                place += 1;
            }
        }
        tagged.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self {
            sorted: tagged.iter().map(|t| t.0).collect(),
            origin: tagged.iter().map(|t| t.1).collect(),
            block: tagged.iter().map(|t| t.2).collect(),
            sizes,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// A score for each sample, in the order of measuring: `score(from, to)` is that of the tied places `from..to`.
    pub(crate) fn scores(&self, score: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.len()];
        let mut from = 0;
        while from < self.len() {
            let mut to = from + 1;
            while to < self.len() && self.sorted[to] <= self.sorted[from] {
                to += 1;
            }
            let s = score(from, to);
            for place in &self.origin[from..to] {
                out[*place as usize] = s;
            }
            from = to;
        }
        out
    }

    /// Ranks from 1, ties sharing their mean.
    pub(crate) fn ranks(&self) -> Vec<f64> {
        self.scores(|from, to| (from + to + 1) as f64 / 2.0)
    }

    /// Samples of each block among the `below` smallest.
    pub(crate) fn counts_below(&self, below: usize) -> Vec<usize> {
        let mut counts = vec![0; self.sizes.len()];
        for b in &self.block[..below.min(self.len())] {
            counts[*b as usize] += 1;
        }
        counts
    }
}

/// Cuts values that lie block after block back into their blocks.
pub(crate) fn cut<'a>(flat: &'a [f64], sizes: &'a [usize]) -> impl Iterator<Item = &'a [f64]> {
    sizes.iter().scan(flat, |rest, &n| {
        let (head, tail) = rest.split_at(n);
        *rest = tail;
        Some(head)
    })
}

#[cfg(test)]
mod tests {
    use super::{Pooled, cut};
    use crate::Refusal;

    #[test]
    fn pooled_blocks_know_ranks_ties_and_where_each_sample_came_from() {
        let pooled = Pooled::new(&[&[3.0, 1.0, 2.0], &[], &[2.0, 0.0, -0.0, 2.0]]).unwrap();
        assert_eq!(pooled.sorted, [0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 3.0]);
        assert_eq!((pooled.sizes.as_slice(), pooled.len()), (&[3, 4][..], 7));
        assert_eq!(pooled.ranks(), [7.0, 3.0, 5.0, 5.0, 1.5, 1.5, 5.0]);
        assert_eq!(pooled.counts_below(3), [1, 2]);
        assert_eq!(pooled.counts_below(100), [3, 4]);
        let parts: Vec<&[f64]> = cut(&pooled.sorted, &pooled.sizes).collect();
        assert_eq!(parts, [&[0.0, 0.0, 1.0][..], &[2.0, 2.0, 2.0, 3.0]]);
        assert!(matches!(Pooled::new(&[&[f64::INFINITY]]), Err(Refusal::NotFinite)));
    }
}
