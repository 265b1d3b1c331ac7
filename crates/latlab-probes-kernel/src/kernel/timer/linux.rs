//! Linux: `clock_nanosleep(2)`, poll(2), and timer slack by prctl(2).

use std::num::NonZeroU64;
use std::time::Duration;

use latlab_clock::Clock;
use latlab_harness::{AnySession, Block, Env, ProbeError, Proof, Stamps};
use latlab_record::{Check, Point};
use rustix::thread::{
    NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative, current_timer_slack,
    set_current_timer_slack,
};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::json;

use super::{ABSOLUTE, MS, NO_SLACK, POLL, RELATIVE, STANDARD, sleeps};
use latlab_probes_shared::linux::refused;

pub(super) const HERE: bool = true;
/// Sleeps of one block that signals may end before the block is given up.
const INTERRUPTED: u64 = 1_000;

pub(super) fn open<'env>(env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    let stamps =
        Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other("sleeping needs a real clock".to_owned()))?;
    Ok(Box::new(Sleeping { env, stamps, monotonic, all: Vec::new(), selected: 0 }))
}

/// The clock by which timers run, ns.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both are never negative on this clock.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        // Below 10^9, which every width of it holds.
        tv_nsec: (ns % 1_000_000_000).try_into().unwrap_or(0),
    }
}

/// How a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleeper {
    Relative,
    Absolute,
    Standard,
    Poll,
    /// Does not sleep: a planted fault.
    #[cfg(test)]
    Awake,
}

impl Sleeper {
    fn named(operation: &str) -> Option<Self> {
        Some(match operation {
            RELATIVE | NO_SLACK => Self::Relative,
            ABSOLUTE => Self::Absolute,
            STANDARD => Self::Standard,
            POLL => Self::Poll,
            _ => return None,
        })
    }

    /// Sleeps from `now_ns` on, for so long; whether the sleep was not ended by a signal.
    fn sleep(self, now_ns: u64, ns: u64) -> Result<bool, ProbeError> {
        match self {
            Self::Relative => match clock_nanosleep_relative(ClockId::Monotonic, &timespec(ns)) {
                NanosleepRelativeResult::Ok => Ok(true),
                NanosleepRelativeResult::Interrupted(_) => Ok(false),
                NanosleepRelativeResult::Err(error) => Err(refused("clock_nanosleep", error)),
            },
            Self::Absolute => match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(now_ns + ns)) {
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::INTR) => Ok(false),
                Err(error) => Err(refused("clock_nanosleep with a due time", error)),
            },
            Self::Standard => {
                std::thread::sleep(Duration::from_nanos(ns));
                Ok(true)
            }
            Self::Poll => {
                let ms = libc::c_int::try_from(ns / MS).unwrap_or(libc::c_int::MAX);
                // SAFETY: no file descriptors are given.
                match unsafe { libc::poll(std::ptr::null_mut(), 0, ms) } {
                    0 => Ok(true),
                    _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
                        Ok(false)
                    }
                    _ => Err(ProbeError::last_os_error("poll without files")),
                }
            }
            #[cfg(test)]
            Self::Awake => Ok(true),
        }
    }
}

/// The calling thread's timers are as exact as they can be until this is dropped.
#[derive(Debug)]
struct NoSlack {
    before: Option<NonZeroU64>,
}

impl NoSlack {
    fn set() -> Result<Self, ProbeError> {
        let failed = |error| refused("setting this thread's timer slack to 1 ns", error);
        let before = NonZeroU64::new(current_timer_slack().map_err(failed)?);
        set_current_timer_slack(Some(NonZeroU64::MIN)).map_err(failed)?;
        Ok(Self { before })
    }
}

impl Drop for NoSlack {
    fn drop(&mut self) {
        // What could be set can be set back.
        let _ = set_current_timer_slack(self.before);
    }
}

/// The sleeps of one point.
#[derive(Debug)]
struct Sleeps {
    point: Point,
    sleeper: Sleeper,
    no_slack: bool,
    ns: u64,
    slept: u64,
    early: u64,
    interrupted: u64,
    slack_ns: Option<u64>,
}

struct Sleeping<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// The clock by which timers run, ns; another one in tests.
    monotonic: fn() -> u64,
    all: Vec<Sleeps>,
    selected: usize,
}

impl Sleeps {
    fn block(
        &mut self,
        block: &mut Block,
        count: u64,
        clock: &Clock,
        stamps: Stamps,
        monotonic: fn() -> u64,
    ) -> Result<(), ProbeError> {
        let _no_slack = if self.no_slack { Some(NoSlack::set()?) } else { None };
        self.slack_ns = current_timer_slack().ok();
        let (mut done, mut interrupted) = (0, 0);
        while done < count {
            let before = monotonic();
            let whole = self.sleeper.sleep(before, self.ns)?;
            let after = monotonic();
            let end = stamps.end();
            if !whole {
                interrupted += 1;
                if interrupted > INTERRUPTED {
                    return Err(ProbeError::Other("signals ended one sleep after the other".to_owned()));
                }
                continue;
            }
            done += 1;
            let due = before + self.ns;
            if after < due {
                self.early += 1;
            }
            let late = clock.ticks(after.saturating_sub(due) as f64);
            block.span(end.saturating_sub(late), end);
        }
        self.slept += done;
        self.interrupted += interrupted;
        Ok(())
    }
}

impl AnySession for Sleeping<'_> {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        if let Some(known) = self.all.iter().position(|sleeps| sleeps.point == *point) {
            self.selected = known;
            return Ok(());
        }
        let operation = point.operation.as_deref().unwrap_or_default();
        let sleeper = Sleeper::named(operation)
            .ok_or_else(|| ProbeError::Other(format!("there is no sleep {operation}")))?;
        self.all.push(Sleeps {
            point: point.clone(),
            sleeper,
            no_slack: operation == NO_SLACK,
            ns: point.sleep_ns.unwrap_or(0),
            slept: 0,
            early: 0,
            interrupted: 0,
            slack_ns: None,
        });
        self.selected = self.all.len() - 1;
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let own = self
            .all
            .get_mut(self.selected)
            .ok_or_else(|| ProbeError::Other("no sleep is selected".to_owned()))?;
        block.set_waits();
        // A sleep that is a tick (4 ms at 250 Hz) late was kept waiting for its CPU.
        block.set_tail_threshold_ns(1e6);
        let count = sleeps(self.env.settings.profile, own.ns);
        own.block(block, count, &self.env.clock, self.stamps, self.monotonic)
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let Some(own) = self.all.iter().find(|sleeps| sleeps.point == *point) else {
            return Proof::default();
        };
        Proof {
            checks: vec![Check {
                name: "no sleep ended before it was due".to_owned(),
                ok: own.slept > 0 && own.early == 0,
                detail: format!("{} of {} sleeps ended early", own.early, own.slept),
            }],
            findings: Some(json!({
                "requested_ns": own.ns,
                "timer_slack_ns": own.slack_ns,
                "ended_by_signals": own.interrupted,
            })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use latlab_harness::{AnyProbe, Planned, measure_once};

    use super::*;
    use crate::kernel::timer::{Timer, US};
    use latlab_probes_testing as testing;

    /// Time as a broken kernel would keep it: every reading is 10 us after the one before.
    fn ten_us_a_reading() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(1 << 30);
        NOW.fetch_add(10 * US, Ordering::Relaxed)
    }

    fn point(operation: &str, sleep_ns: u64) -> Point {
        Point { operation: Some(operation.to_owned()), sleep_ns: Some(sleep_ns), ..Point::default() }
    }

    #[test]
    fn every_way_of_sleeping_is_proved_on_one_cpu_with_little_memory() {
        let env = testing::env_of_one_cpu(64 << 20);
        let mut points = Timer.points(&env);
        // Where the slack cannot be set (an emulator, a sandbox), the point fails with the system's reason.
        let settable = NoSlack::set().is_ok();
        points.retain(|planned| settable || planned.point.operation.as_deref() != Some(NO_SLACK));
        assert!(points.len() >= 10);
        let proofs = testing::assert_proved(&Timer, &env, &points);
        for (planned, proof) in points.iter().zip(proofs) {
            let findings = proof.findings.expect("what was asked for");
            assert_eq!(findings["requested_ns"].as_u64(), planned.point.sleep_ns);
        }
    }

    #[test]
    fn a_sleep_that_ends_early_fails_the_proof() {
        struct Broken;
        impl AnyProbe for Broken {
            fn spec(&self) -> &'static latlab_harness::Spec {
                Timer.spec()
            }
            fn supports(&self, env: &Env) -> latlab_harness::Support {
                Timer.supports(env)
            }
            fn points(&self, env: &Env) -> Vec<Planned> {
                Timer.points(env)
            }
            fn memory_bytes(&self, _: &Env) -> u64 {
                0
            }
            fn open<'env>(
                &'env self,
                env: &'env Env,
                _: &[Planned],
            ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
                let point = point(RELATIVE, MS);
                Ok(Box::new(Sleeping {
                    env,
                    stamps: Stamps::of(&env.clock).expect("a real clock"),
                    monotonic: ten_us_a_reading,
                    all: vec![Sleeps {
                        point,
                        sleeper: Sleeper::Awake,
                        no_slack: false,
                        ns: MS,
                        slept: 0,
                        early: 0,
                        interrupted: 0,
                        slack_ns: None,
                    }],
                    selected: 0,
                }))
            }
        }
        let env = testing::env_of_one_cpu(64 << 20);
        let planned = [Planned::new(point(RELATIVE, MS))];
        let (samples, proof) = &measure_once(&Broken, &env, &planned)[0];
        assert!(*samples > 0);
        assert!(!proof.checks[0].ok, "{}", proof.checks[0].detail);
    }

    #[test]
    fn the_timer_slack_is_as_before_when_it_is_no_longer_needed() {
        let Ok(before) = current_timer_slack() else {
            return;
        };
        let Ok(set) = NoSlack::set() else {
            return;
        };
        assert_eq!(current_timer_slack().ok(), Some(1));
        drop(set);
        assert_eq!(current_timer_slack().ok(), Some(before));
    }
}
