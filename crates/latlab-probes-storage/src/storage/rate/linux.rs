//! Random reads at a rate, on Linux.

use std::time::{Duration, Instant};

use latlab_harness::{AnySession, Arrivals, Block, Env, Limits, ProbeError, Proof};
use latlab_record::{Point, Work};
use latlab_storage::Direction;
use serde_json::json;

use super::{DEPTH, KIB_4, reads};
use crate::disk::{Asked, DIRECT, Flow, Places, Target, answered_by_a_device};
use crate::storage::random::work::{Ledger, median_service, warm_up};

/// Salts of the order of blocks, of the trial's, and of the due times.
const ORDER: u64 = 0x7261_7465;
const TRIAL: u64 = 0x7472_6961;
const DUE: u64 = 0x6475_6500;
/// The trial: so many reads one at a time, or so long.
const TRIAL_READS: usize = 64;
/// Of fewer there is no fastest quarter: a single read of 50 ms on a busy machine made a disk of 15,000 a second one of 20.
const FEWEST_TRIAL_READS: usize = 12;
const TRIAL_TIME: Duration = Duration::from_millis(20);
/// More late reads than this share are named.
const LATE_SHARE: f64 = 0.01;
/// A block that was to take a time takes so many times it at most.
const PATIENCE: f64 = 12.0;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(AtRate::on(env, Target::open(env)?)?))
}

/// Reads at a rate, all through one engine.
pub(super) struct AtRate<'env> {
    env: &'env Env,
    target: Target,
    flow: Flow,
    /// Reads a second one at a time.
    one_at_a_time_per_s: f64,
    selected: Option<Point>,
    ledger: Ledger,
    /// Blocks so far: each has due times of its own.
    blocks: u64,
}

impl<'env> AtRate<'env> {
    pub(super) fn on(env: &'env Env, target: Target) -> Result<Self, ProbeError> {
        let blocks = target.blocks(KIB_4);
        let places = Places::random(KIB_4, blocks, env.seed(TRIAL));
        let mut one = Flow::reading(&target, DIRECT, 1, KIB_4, places)?;
        let one_at_a_time_per_s = trial(&mut one)?;
        let places = Places::random(KIB_4, blocks, env.seed(ORDER));
        let mut flow = Flow::reading(&target, DIRECT, DEPTH, KIB_4, places)?;
        warm_up(&mut flow, DEPTH)?;
        // What was looked at in warming up belongs to no point.
        flow.evidence = crate::disk::Evidence::default();
        Ok(Self {
            env,
            target,
            flow,
            one_at_a_time_per_s,
            selected: None,
            ledger: Ledger::default(),
            blocks: 0,
        })
    }

    /// Gives the point that was selected what was seen of its blocks.
    fn put_away(&mut self) {
        if let Some(point) = self.selected.take() {
            self.ledger.of(&point).evidence = std::mem::take(&mut self.flow.evidence);
        }
    }
}

/// Reads a second when one waits for the other: from the fastest quarter, because a disturbance only slows.
fn trial(one: &mut Flow) -> Result<f64, ProbeError> {
    let begun = Instant::now();
    trial_of(
        || {
            let submitted = Instant::now();
            warm_up(one, 1)?;
            Ok(submitted.elapsed().as_secs_f64())
        },
        || begun.elapsed() < TRIAL_TIME,
    )
}

/// The same of reads whose seconds are told, while there is time.
fn trial_of(
    mut read: impl FnMut() -> Result<f64, ProbeError>,
    has_time: impl Fn() -> bool,
) -> Result<f64, ProbeError> {
    let mut seconds = Vec::with_capacity(TRIAL_READS);
    while seconds.len() < FEWEST_TRIAL_READS || (seconds.len() < TRIAL_READS && has_time()) {
        seconds.push(read()?);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(1.0 / seconds[seconds.len() / 4].max(1e-9))
}

impl AnySession for AtRate<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        if self.selected.as_ref() == Some(point) {
            return Ok(());
        }
        let rate = point.rate_per_s.unwrap_or(1) as f64;
        if rate > self.one_at_a_time_per_s {
            return Err(ProbeError::Other(format!(
                "not asked for: one at a time this disk reads {:.0} blocks a second",
                self.one_at_a_time_per_s
            )));
        }
        self.put_away();
        let gathered = self.ledger.of(point);
        gathered.engine = self.flow.engine();
        gathered.flag.clone_from(&self.flow.flag);
        self.flow.evidence = std::mem::take(&mut gathered.evidence);
        self.selected = Some(point.clone());
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let Some(point) = &self.selected else {
            return Err(ProbeError::Other("no point was selected".to_owned()));
        };
        let rate_per_s = point.rate_per_s.unwrap_or(1);
        let operations = reads(self.env.settings.profile, rate_per_s);
        block.set_tail_threshold_ns(1e6);
        self.blocks += 1;
        let arrivals = Arrivals::Poisson {
            per_s: rate_per_s as f64,
            seed: self.env.seed(DUE.wrapping_add(self.blocks)),
        };
        let limits =
            Limits { operations, begin_within_ns: PATIENCE * 1e9 * operations as f64 / rate_per_s as f64 };
        self.flow.evidence.begin(&self.target, DIRECT);
        let flight = block.in_flight(&mut self.flow, DEPTH, arrivals, limits)?;
        self.flow.evidence.end(&self.target, Direction::Read, flight.operations * KIB_4);
        self.ledger.of(point).flight.add(&flight);
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        if self.selected.as_ref() == Some(point) {
            self.put_away();
        }
        let gathered = self.ledger.of(point);
        let flight = &gathered.flight;
        let service_ns = median_service(flight);
        let mut checks = gathered.evidence.checks(&self.target, DIRECT, Direction::Read);
        checks.push(answered_by_a_device(service_ns));
        let mut flags = self.target.flags();
        flags.extend(gathered.flag.clone());
        if flight.late as f64 > LATE_SHARE * flight.operations as f64 {
            flags.push(format!(
                "{} of {} reads were handed over more than 50 us late by this thread, not by the disk, and are left out",
                flight.late, flight.operations
            ));
        }
        Proof {
            checks,
            work: Work {
                bytes: flight.operations * KIB_4,
                device_bytes: gathered.evidence.device_bytes(),
                ..Work::default()
            },
            engine: Some(gathered.engine.to_owned()),
            flags,
            findings: Some(json!({
                "offered_per_s": flight.offered_per_s(),
                "achieved_per_s": flight.rate_per_s(),
                "held_back": flight.held_back,
                "late": flight.late,
                "service_p50_ns": service_ns,
                "device_time": gathered.evidence.device_time(
                    Asked::One(Direction::Read),
                    flight.operations,
                    flight.under_way_ns,
                ),
                "one_at_a_time_per_s": self.one_at_a_time_per_s,
            })),
            ..Proof::default()
        }
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
        let per_s = trial_of(slow_first, || false).expect("read");
        assert!((per_s - 1.0 / 66e-6).abs() < 1.0, "{per_s}");
        assert_eq!(nth, FEWEST_TRIAL_READS);
        let mut reads = 0;
        let fast = || {
            reads += 1;
            Ok(66e-6)
        };
        trial_of(fast, || true).expect("read");
        assert_eq!(reads, TRIAL_READS);
    }
}
