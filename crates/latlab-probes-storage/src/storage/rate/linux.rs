//! Random reads at a rate, on Linux.

use std::time::{Duration, Instant};

use latlab_harness::{self as harness, Arrivals, Block, Env, Flight, Limits, ProbeError, Proof};
use latlab_probes_shared::Result;
use latlab_probes_shared::open_loop::{Offered, median_service};
use latlab_record::Work;
use latlab_storage::Direction;

use super::{DEPTH, Details, KIB_4, Rate, Reads, reads};
use crate::disk::{self, Asked, DIRECT, Flow, Places, Target, answered_by_a_device};
use crate::storage::random::work::warm_up;

/// Salts of the order of blocks, of the trial's, and of the due times.
const ORDER: u64 = 0x7261_7465;
const TRIAL: u64 = 0x7472_6961;
const DUE: u64 = 0x6475_6500;
/// The trial: so many reads one at a time, or so long.
const TRIAL_READS: usize = 64;
/// Of fewer there is no fastest quarter: a single read of 50 ms on a busy machine made a disk of 15,000 a
/// second one of 20.
const FEWEST_TRIAL_READS: usize = 12;
const TRIAL_TIME: Duration = Duration::from_millis(20);
/// More late reads than this share are named.
const LATE_SHARE: f64 = 0.01;
/// A block that was to take a time takes so many times it at most.
const PATIENCE: f64 = 12.0;

/// What was gathered at one rate.
#[derive(Default)]
pub struct Evidence {
    flight: Flight,
    disk: disk::Evidence,
}

/// Reads at a rate, all through one engine.
pub struct Session<'env> {
    env: &'env Env,
    target: Target,
    flow: Flow,
    /// Reads a second one at a time.
    one_at_a_time_per_s: f64,
    /// Blocks so far: each has due times of its own.
    blocks: u64,
}

pub(super) fn open<'env>(env: &'env Env, _group: &[Reads]) -> Result<Session<'env>> {
    let target = Target::open(env)?;
    let blocks = target.blocks(KIB_4);
    let places = Places::random(KIB_4, blocks, env.seed(TRIAL));
    let mut one = Flow::open(&target, DIRECT, Direction::Read, [1; 2], KIB_4, places)?;
    let begun = Instant::now();
    let read = || {
        let submitted = Instant::now();
        warm_up(&mut one, 1)?;
        Ok(submitted.elapsed().as_secs_f64())
    };
    let one_at_a_time_per_s = trial(read, || begun.elapsed() < TRIAL_TIME)?;
    let places = Places::random(KIB_4, blocks, env.seed(ORDER));
    let mut flow = Flow::open(&target, DIRECT, Direction::Read, [DEPTH; 2], KIB_4, places)?;
    warm_up(&mut flow, DEPTH)?;
    // What was verified in warming up belongs to no point.
    flow.evidence = disk::Evidence::default();
    Ok(Session { env, target, flow, one_at_a_time_per_s, blocks: 0 })
}

/// Reads a second when one waits for the other, by the seconds of each while there is time: from the fastest
/// quarter, because a disturbance only slows.
fn trial(mut read: impl FnMut() -> Result<f64>, has_time: impl Fn() -> bool) -> Result<f64> {
    let mut seconds = Vec::with_capacity(TRIAL_READS);
    while seconds.len() < FEWEST_TRIAL_READS || (seconds.len() < TRIAL_READS && has_time()) {
        seconds.push(read()?);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(1.0 / seconds[seconds.len() / 4].max(1e-9))
}

impl harness::Session<Rate> for Session<'_> {
    fn select(&mut self, point: &Reads) -> Result<()> {
        if point.rate_per_s as f64 > self.one_at_a_time_per_s {
            return Err(ProbeError::Other(format!(
                "not asked for: one at a time this disk reads {:.0} blocks a second",
                self.one_at_a_time_per_s
            )));
        }
        Ok(())
    }

    fn block(&mut self, point: &Reads, seen: &mut Evidence, block: &mut Block) -> Result<()> {
        let operations = reads(self.env.settings.profile, point.rate_per_s);
        let per_s = point.rate_per_s as f64;
        block.set_tail_threshold_ns(1e6);
        self.blocks += 1;
        let arrivals = Arrivals::Poisson { per_s, seed: self.env.seed(DUE.wrapping_add(self.blocks)) };
        let limits = Limits { operations, begin_within_ns: PATIENCE * 1e9 * operations as f64 / per_s };
        let target = &self.target;
        let flight = self.flow.seen_by(&mut seen.disk, |flow| {
            flow.evidence.begin(target, DIRECT);
            let flight = block.in_flight(flow, DEPTH, arrivals, limits)?;
            flow.evidence.end(target, Direction::Read, flight.operations * KIB_4);
            Ok::<_, ProbeError>(flight)
        })?;
        seen.flight.add(&flight);
        Ok(())
    }

    fn proof(&mut self, _point: &Reads, seen: &Evidence) -> Proof<Details> {
        let Evidence { flight, disk } = seen;
        let mut checks = disk.checks(&self.target, DIRECT, Direction::Read);
        checks.push(answered_by_a_device(median_service(flight)));
        let mut flags = self.target.flags();
        flags.extend(self.flow.flag.clone());
        if flight.late as f64 > LATE_SHARE * flight.operations as f64 {
            flags.push(format!(
                "{} of {} reads were handed over more than 50 µs late by this thread, not by the disk, and \
                    are left out",
                flight.late, flight.operations
            ));
        }
        let asked = Asked::One(Direction::Read);
        let details = Details {
            offered: Offered::of(flight),
            late: Some(flight.late),
            device_time: Some(disk.device.time(asked, flight.operations, flight.under_way_ns)),
            one_at_a_time_per_s: Some(self.one_at_a_time_per_s),
        };
        let bytes = flight.operations * KIB_4;
        let work = Work { bytes, device_bytes: disk.counted, ..Work::default() };
        Proof { work, flags, ..Proof::of(checks).with(details).by(self.flow.engine()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_read_of_a_busy_machine_makes_no_slow_disk() {
        let mut nth = 0;
        let slow_first = || {
            nth += 1;
            Ok(if nth <= 3 { 50e-3 } else { 66e-6 })
        };
        let per_s = trial(slow_first, || false).expect("read");
        assert!((per_s - 1.0 / 66e-6).abs() < 1.0, "{per_s}");
        assert_eq!(nth, FEWEST_TRIAL_READS);
        let mut reads = 0;
        let fast = || {
            reads += 1;
            Ok(66e-6)
        };
        trial(fast, || true).expect("read");
        assert_eq!(reads, TRIAL_READS);
    }
}
