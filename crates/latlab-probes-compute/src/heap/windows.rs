//! Windows of operations that a child times by the system's clock.

use std::time::Instant;

use latlab_harness::RemoteBlock;
use latlab_probes_shared::prelude::*;

use super::minor_faults;
use latlab_stats::count::{nearest, whole};

/// Windows of quick operations take about this long: a thousand times the clock's own cost (20-50 ns).
const WINDOW_NS: f64 = 50_000.0;
/// A block of windows takes about this long, unless one operation takes longer.
const BLOCK_NS: f64 = 3e6;
/// Windows in a block.
const WINDOWS: f64 = 40.0;

pub(crate) fn nanoseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e9
}

/// A block of windows, and its page faults. `run` does so many operations and says how long they took, ns.
/// Where operations are long, a block is one window, with nothing before it. `chosen` is how many operations
/// a window of this point has, once that is known.
pub(crate) fn block_of_windows(
    chosen: Option<u64>,
    are_long: bool,
    mut run: impl FnMut(u64) -> Result<f64>,
) -> Result<(RemoteBlock, u64)> {
    let ops = match chosen {
        Some(ops) => ops,
        None => window_ops(&mut run)?,
    };
    let windows = if are_long {
        1
    } else {
        // A window that does not count brings the caches back.
        let first = run(ops)?;
        whole((BLOCK_NS / first.max(1.0)).clamp(1.0, WINDOWS)).max(1)
    };
    let before = minor_faults();
    let block = RemoteBlock::gather(ops, |values| {
        for _ in 0..windows {
            values.push(run(ops)? / ops as f64);
        }
        Ok(())
    })?;
    Ok((block, minor_faults() - before))
}

/// As the harness chooses the length of its windows: doubled until a trial can be trusted, the shorter of
/// two, and scaled.
fn window_ops(run: &mut impl FnMut(u64) -> Result<f64>) -> Result<u64> {
    let mut ops = 1u64;
    loop {
        let mut took = run(ops)?;
        if took < WINDOW_NS {
            took = took.min(run(ops)?);
        }
        if took >= WINDOW_NS / 4.0 || ops >= 1 << 30 {
            return Ok(nearest(ops as f64 * WINDOW_NS / took.max(1.0)).max(1));
        }
        ops *= 2;
    }
}
