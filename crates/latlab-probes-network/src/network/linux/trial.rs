//! Sessions that tests plant a fault in.

use std::time::Instant;

use latlab_harness::{Env, Probe, ProbeError, Proof, RemoteBlock, Session};
use latlab_probes_testing as testing;

/// Blocks until a fault has shown itself.
const BLOCKS: usize = 16;

/// The proof of a point after some blocks.
pub(crate) fn proof<P: Probe>(
    env: &Env,
    session: &mut impl Session<P>,
    point: &P::Point,
) -> Result<Proof<P::Details>, ProbeError> {
    let mut evidence = P::Evidence::default();
    session.select(point)?;
    for _ in 0..BLOCKS {
        let mut outcome = Ok(());
        // A block of single operations has no windows: what becomes of it here is no matter.
        let _ = RemoteBlock::take(&env.clock, None, |block| {
            outcome = session.block(point, &mut evidence, block);
            Ok(())
        });
        outcome?;
    }
    Ok(session.proof(point, &evidence))
}

/// Why a point has no figure: the error, or the checks that did not hold. Every wait is bounded, and no
/// process is left.
pub(crate) fn reason<P: Probe, S: Session<P>>(
    env: &Env,
    open: impl FnOnce() -> Result<S, ProbeError>,
    point: &P::Point,
) -> String {
    let (before, begun) = (children(), Instant::now());
    let outcome = open().and_then(|mut session| proof(env, &mut session, point));
    assert!(begun.elapsed() < 3 * testing::LONG, "every wait is bounded");
    assert_eq!(children(), before, "no process is left");
    match outcome {
        Err(error) => error.to_string(),
        Ok(proof) => testing::failed(&proof).join(", "),
    }
}

/// Of this thread.
fn children() -> usize {
    std::fs::read_to_string("/proc/thread-self/children").map_or(0, |text| text.split_whitespace().count())
}
