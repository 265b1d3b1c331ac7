//! Transfers, each with its time, become a bandwidth in each slice of time.

/// A quarter of a second: a slow disk moves a few blocks in it, and a second has enough of them for a level
/// of its own.
pub(super) const SLICE_S: f64 = 0.25;
const SLICE_NS: f64 = SLICE_S * 1e9;
/// Slices in a second.
const SECOND: usize = 4;

/// Bandwidth in slices of time under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Full slices, bytes a second.
    pub(super) slices: Vec<f64>,
    /// The slice that is not full yet.
    open_ns: f64,
    open_bytes: f64,
}

impl Series {
    /// One transfer. Where a slice ends in the midst of it, its bytes are split as its time is.
    pub(super) fn add(&mut self, ns: f64, bytes: u64) {
        let rate = bytes as f64 / ns.max(1.0);
        let mut left_ns = ns.max(1.0);
        while self.open_ns + left_ns >= SLICE_NS {
            let part = SLICE_NS - self.open_ns;
            self.slices.push((self.open_bytes + rate * part) * 1e9 / SLICE_NS);
            (self.open_ns, self.open_bytes) = (0.0, 0.0);
            left_ns -= part;
        }
        self.open_ns += left_ns;
        self.open_bytes += rate * left_ns;
    }

    /// Full seconds, bytes a second.
    pub(super) fn seconds(&self) -> Vec<f64> {
        self.slices.chunks_exact(SECOND).map(mean).collect()
    }
}

/// Bytes over time of slices that are equally long.
pub(super) fn mean(slices: &[f64]) -> f64 {
    // An empty sum of floats is -0.
    slices.iter().fold(0.0, |sum, slice| sum + slice) / slices.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_split_where_a_slice_ends() {
        let mut series = Series::default();
        // 1000 bytes a second for a second and a half, in transfers of 0.1 s, then none for a second and a
        // half.
        for _ in 0..15 {
            series.add(1e8, 100);
        }
        series.add(1.5e9, 100);
        assert_eq!(series.slices.len(), 12);
        assert!(series.slices[..6].iter().all(|rate| (rate - 1000.0).abs() < 1e-6), "{series:?}");
        assert!(series.slices[6..].iter().all(|rate| (rate - 100.0 / 1.5).abs() < 1e-6));
        let seconds = series.seconds();
        assert_eq!(seconds.len(), 3);
        assert!((seconds[1] - f64::midpoint(1000.0, 100.0 / 1.5)).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_whole_slice_is_none() {
        let mut series = Series::default();
        series.add(2e8, 100);
        assert!(series.slices.is_empty() && series.seconds().is_empty());
    }
}
