//! Transfers that follow one another.

use latlab_record::Work;

use super::device::Asked;
use super::evidence::Evidence;
use crate::disk::curve::Bandwidth;
use crate::disk::words::quantile;

/// Times and bytes of a point whose session times its operations one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed {
    /// ns, as many as a median needs.
    times: Vec<f64>,
    pub(crate) total_ns: f64,
    operations: u64,
    extra_ns: f64,
    pub(crate) bytes: u64,
    /// Bytes and time up to the end of the last block of samples.
    ended: (u64, f64),
    /// Slowest and fastest block, bytes a second.
    between_blocks: Option<[f64; 2]>,
    /// How many blocks of samples had a beginning that is not counted, and by how much those were longer, ns.
    starts: (u64, f64),
}

/// Times that are kept for a median.
const TIMES: usize = 4_096;

impl Timed {
    pub(crate) fn add(&mut self, ns: f64, bytes: u64) {
        if self.times.len() < TIMES {
            self.times.push(ns);
        }
        self.total_ns += ns;
        self.operations += 1;
        self.bytes += bytes;
    }

    /// How fast they were; `asked` says which requests of the device they were, where it had any.
    pub(crate) fn bandwidth(&self, evidence: &Evidence, asked: Option<Asked>) -> Bandwidth {
        Bandwidth {
            bytes_per_s: self.bytes_per_s(),
            bytes_per_s_between_blocks: self.between_blocks,
            start_ns: (self.starts.0 > 0).then(|| self.starts.1 / self.starts.0 as f64),
            device_time: asked.map(|asked| evidence.device.time(asked, self.operations, self.total_ns)),
        }
    }

    /// Time that belongs to all operations, such as a flush at their end.
    pub(crate) fn extra(&mut self, ns: f64) {
        self.extra_ns += ns;
        self.total_ns += ns;
    }

    /// All of [`Self::extra`], ns; `None` when there was none.
    pub(crate) fn extra_ns(&self) -> Option<f64> {
        (self.extra_ns > 0.0).then_some(self.extra_ns)
    }

    /// Before the end of a block of samples: as many operations, which came before and do not count, took so
    /// long.
    pub(crate) fn started(&mut self, ns: f64) {
        self.starts = (self.starts.0 + 1, self.starts.1 + ns - (self.total_ns - self.ended.1));
    }

    /// Ends a block of samples: its own rate is one repeat.
    pub(crate) fn end_block(&mut self) {
        let (bytes, ns) = (self.bytes - self.ended.0, self.total_ns - self.ended.1);
        self.ended = (self.bytes, self.total_ns);
        let rate = bytes as f64 * 1e9 / ns.max(1.0);
        let [slowest, fastest] = self.between_blocks.unwrap_or([rate, rate]);
        self.between_blocks = Some([slowest.min(rate), fastest.max(rate)]);
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.total_ns.max(1.0)
    }

    pub(crate) fn median_ns(&self) -> Option<f64> {
        quantile(&self.times, 0.5)
    }

    pub(crate) fn work(&self, evidence: &Evidence) -> Work {
        Work { bytes: self.bytes, device_bytes: evidence.counted, ..Work::default() }
    }

    /// What counts as slow for an operation of so many bytes, ns: about ten times what it needs, so that the
    /// tail is kept and the body is not.
    pub(crate) fn tail_ns(memory: bool, bytes: u64) -> f64 {
        if memory { 20_000.0 + bytes as f64 } else { 1e6 + bytes as f64 * 10.0 }
    }
}
