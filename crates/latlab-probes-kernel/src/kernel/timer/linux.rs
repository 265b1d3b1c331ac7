//! Linux: `clock_nanosleep(2)`, poll(2), and timer slack by prctl(2).

use std::num::NonZeroU64;
use std::time::Duration;

use latlab_probes_shared::prelude::*;
use rustix::thread::{
    NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative, current_timer_slack,
    set_current_timer_slack,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::{Asked, MS, Taken, Timer, Way, sleeps};

pub(super) const HERE: bool = true;
/// Sleeps of one block that signals may end before the block is given up.
const INTERRUPTED: u64 = 1_000;

pub(super) fn open(env: &Env) -> Result<Session<'_>> {
    let stamps =
        Stamps::of(&env.clock).ok_or_else(|| ProbeError::Other("sleeping needs a real clock".to_owned()))?;
    Ok(Session { env, stamps, monotonic })
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

/// Sleeps from `now_ns` on, for so long; whether the sleep was not ended by a signal.
fn sleep(way: &Way, now_ns: u64, ns: u64) -> Result<bool> {
    match way {
        Way::Nanosleep | Way::NanosleepSlack1 => {
            match clock_nanosleep_relative(ClockId::Monotonic, &timespec(ns)) {
                NanosleepRelativeResult::Ok => Ok(true),
                NanosleepRelativeResult::Interrupted(_) => Ok(false),
                NanosleepRelativeResult::Err(error) => Err(refused("clock_nanosleep", error)),
            }
        }
        Way::NanosleepAbsolute => {
            match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(now_ns + ns)) {
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::INTR) => Ok(false),
                Err(error) => Err(refused("clock_nanosleep with a due time", error)),
            }
        }
        Way::ThreadSleep => {
            std::thread::sleep(Duration::from_nanos(ns));
            Ok(true)
        }
        Way::Poll => {
            let ms = libc::c_int::try_from(ns / MS).unwrap_or(libc::c_int::MAX);
            // SAFETY: no file descriptors are given.
            match unsafe { libc::poll(std::ptr::null_mut(), 0, ms) } {
                0 => Ok(true),
                _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Ok(false),
                _ => Err(ProbeError::last_os_error("poll without files")),
            }
        }
        Way::Other(operation) => Err(ProbeError::Other(format!("there is no sleep {operation}"))),
    }
}

/// The calling thread's timers are as exact as they can be until this is dropped.
#[derive(Debug)]
struct NoSlack {
    before: Option<NonZeroU64>,
}

impl NoSlack {
    fn set() -> Result<Self> {
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

/// What the blocks of a point have shown.
#[derive(Debug, Default)]
pub struct Evidence {
    slept: u64,
    early: u64,
    interrupted: u64,
    slack_ns: Option<u64>,
}

/// This thread, which sleeps.
pub struct Session<'env> {
    env: &'env Env,
    stamps: Stamps,
    /// The clock by which timers run, ns; another one in tests.
    monotonic: fn() -> u64,
}

impl latlab_harness::Session<Timer> for Session<'_> {
    fn block(&mut self, point: &Asked, evidence: &mut Evidence, block: &mut Block) -> Result<()> {
        block.set_waits();
        // A sleep that is a tick (4 ms at 250 Hz) late was kept waiting for its CPU.
        block.set_tail_threshold_ns(1e6);
        let count = sleeps(self.env.settings.profile, point.sleep_ns);
        let _no_slack = if point.operation == Way::NanosleepSlack1 { Some(NoSlack::set()?) } else { None };
        evidence.slack_ns = current_timer_slack().ok();
        let (stamps, monotonic) = (self.stamps, self.monotonic);
        let (mut done, mut interrupted) = (0, 0);
        while done < count {
            let before = monotonic();
            let whole = sleep(&point.operation, before, point.sleep_ns)?;
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
            let due = before + point.sleep_ns;
            if after < due {
                evidence.early += 1;
            }
            let late = self.env.clock.ticks(after.saturating_sub(due) as f64);
            block.span(end.saturating_sub(late), end);
        }
        evidence.slept += done;
        evidence.interrupted += interrupted;
        Ok(())
    }

    fn proof(&mut self, point: &Asked, evidence: &Evidence) -> Proof<Taken> {
        let check = Check {
            name: "no sleep ended before it was due".to_owned(),
            ok: evidence.slept > 0 && evidence.early == 0,
            detail: format!("{} of {} sleeps ended early", evidence.early, evidence.slept),
        };
        Proof::of(vec![check]).with(Taken {
            requested_ns: point.sleep_ns,
            timer_slack_ns: evidence.slack_ns,
            ended_by_signals: evidence.interrupted,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use latlab_harness::{AnyProbe as _, Erased, RemoteBlock, Session as _};
    use latlab_probes_testing as testing;

    use super::*;
    use crate::kernel::timer::US;

    /// Time as a broken kernel would keep it: every reading is 10 us after the one before.
    fn ten_us_a_reading() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(1 << 30);
        NOW.fetch_add(10 * US, Ordering::Relaxed)
    }

    #[test]
    fn every_way_of_sleeping_is_proved_on_one_cpu_with_little_memory() {
        let env = testing::env_of_one_cpu(64 << 20);
        let mut points = Erased(Timer).points(&env);
        // Where the slack cannot be set (an emulator, a sandbox), the point fails with the system's reason.
        let settable = NoSlack::set().is_ok();
        points.retain(|planned| settable || planned.point.operation.as_deref() != Some("nanosleep-slack-1"));
        assert!(points.len() >= 10);
        let proofs = testing::assert_proved(&Erased(Timer), &env, &points);
        for (planned, proof) in points.iter().zip(proofs) {
            let findings = proof.findings.expect("what was asked for");
            assert_eq!(findings["requested_ns"].as_u64(), planned.point.sleep_ns);
        }
    }

    #[test]
    fn a_sleep_that_ends_early_fails_the_proof() {
        let env = testing::env_of_one_cpu(64 << 20);
        let point = Asked { operation: Way::Nanosleep, sleep_ns: MS };
        let mut session = Session { monotonic: ten_us_a_reading, ..open(&env).expect("a real clock") };
        let mut evidence = Evidence::default();
        let measured =
            RemoteBlock::take(&env.clock, None, |block| session.block(&point, &mut evidence, block));
        let error = measured.expect_err("sleeps are no windows").to_string();
        assert!(error.contains("without a window"), "{error}");
        let check = &session.proof(&point, &evidence).checks[0];
        assert!(!check.ok && evidence.slept > 0, "{}", check.detail);
    }

    #[test]
    fn the_timer_slack_is_as_before_when_it_is_no_longer_needed() {
        let Ok(before) = current_timer_slack() else { return };
        let Ok(set) = NoSlack::set() else { return };
        assert_eq!(current_timer_slack().ok(), Some(1));
        drop(set);
        assert_eq!(current_timer_slack().ok(), Some(before));
    }
}
