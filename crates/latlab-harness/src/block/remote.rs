//! Blocks that child processes take.

use latlab_clock::Clock;
use latlab_observe::Observer;
use latlab_record::Observed;
use serde::{Deserialize, Serialize};

use super::{Block, WINDOWS};
use crate::{ProbeError, Result};

/// A block of window means that was taken in a child process, as it crosses the pipe.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RemoteBlock {
    /// Window means, ns an operation.
    pub values: Vec<f64>,
    /// Operations done inside timed regions.
    pub ops: u64,
    /// Operations a window, for the record's next blocks.
    pub ops_per_window: Option<u64>,
    /// What happened on the thread that measured.
    pub observed: Observed,
}

impl RemoteBlock {
    /// Takes a block here, for another process. `ops_per_window` is what earlier blocks of the record had.
    /// Fails when the work fails, or gives no window means.
    pub fn take(
        clock: &Clock,
        ops_per_window: Option<u64>,
        work: impl FnOnce(&mut Block) -> Result<()>,
    ) -> Result<Self> {
        let (mut ops, mut threshold) = (ops_per_window, 0.0);
        let (data, observed) = observed(|| {
            let mut block = Block::new(clock, &mut ops, &mut threshold);
            work(&mut block)?;
            Ok(block.into_data())
        })?;
        Self { values: data.values, ops: data.ops, ops_per_window: ops, observed }.with_windows()
    }

    /// A block whose windows, all of `ops_per_window` operations, the work itself timed by the system's
    /// clock: calibrating another one (60 ms) would take longer than many a child's work. `work` pushes each
    /// window's mean, ns an operation. Fails when the work fails, or gives no window means.
    pub fn gather(ops_per_window: u64, work: impl FnOnce(&mut Vec<f64>) -> Result<()>) -> Result<Self> {
        let (values, observed) = observed(|| {
            let mut values = Vec::with_capacity(WINDOWS as usize);
            work(&mut values)?;
            Ok(values)
        })?;
        let ops = ops_per_window * values.len() as u64;
        Self { ops, values, ops_per_window: Some(ops_per_window), observed }.with_windows()
    }

    fn with_windows(self) -> Result<Self> {
        if self.values.is_empty() {
            return Err(ProbeError::Proof("a block came back without a window".to_owned()));
        }
        Ok(self)
    }

    /// Time inside its timed regions, ns.
    pub fn timed_ns(&self) -> f64 {
        self.values.iter().sum::<f64>() * self.ops_per_window.unwrap_or(1) as f64
    }
}

/// What some work gives, and what happened on this thread meanwhile.
fn observed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Observed)> {
    let counters = Observer::of_this_thread(None);
    let before = counters.read();
    let done = work()?;
    Ok((done, counters.read().since(&before)))
}

impl Block<'_> {
    /// Adds a block of window means that a child process took. Its counters come along; its time stamps stay
    /// behind, because they are on another clock.
    pub fn absorb(&mut self, remote: &RemoteBlock) {
        self.data.values.extend(&remote.values);
        self.data.ops += remote.ops;
        self.data.waits = true;
        if let Some(ops) = remote.ops_per_window {
            self.ops_per_window.get_or_insert(ops);
        }
        self.observe_elsewhere(&remote.observed);
    }

    /// Operations a window that this record's earlier blocks had, for [`RemoteBlock::take`] in a child
    /// process.
    pub fn chosen_window_ops(&self) -> Option<u64> {
        *self.ops_per_window
    }
}
