//! `kernel.timer`: how much later than asked a sleep ends.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Rounds, Spec,
    Support, Tier,
};
use latlab_probes_shared::no_kernel;
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::json;

#[cfg_attr(target_os = "linux", path = "timer/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Timer;

static SPEC: Spec = Spec {
    id: "kernel.timer",
    tier: Tier::Kernel,
    title: "lateness of sleeps and timeouts",
    question: "When a program asks to sleep for a while, how much later does it go on?",
    method: "A sleep is asked for, and the clock is read before and after it. A value is what it took beyond what was asked: the lateness of one sleep, never its length. \
It holds what the timer waits beyond the due time, the interrupt, the way out of the idle state, and the switch back to the sleeper.

The clock is the monotonic one, by which the kernel's timers run: another clock's rate, off by a few millionths, would be microseconds in a long sleep. The reading before the call begins the sleep, so the call itself is part of the lateness. \
A sleep that ended early would be a broken promise; it fails the proof. One that a signal ended is not counted.

An ordinary thread's timers may fire up to its timer slack late (50 us unless it was changed), so that several can share one interrupt; the slack found is with each figure. nanosleep-slack-1 sets the slack of this thread to 1 ns, its least, and \
sets it back: what is left is the machine's. Threads of a real-time class have no slack.

nanosleep is clock_nanosleep with a duration, nanosleep-absolute with a due time, thread-sleep the standard library's sleep, poll a timeout in which nothing happens, in whole milliseconds.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "lateness of one sleep: real minus requested",
    needs: &[],
    touches: &["timer slack of the measuring thread, set back after each block"],
    saturates: false,
    operations: Operations::SystemCalls,
};

const RELATIVE: &str = "nanosleep";
const ABSOLUTE: &str = "nanosleep-absolute";
const NO_SLACK: &str = "nanosleep-slack-1";
const STANDARD: &str = "thread-sleep";
const POLL: &str = "poll";

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Lateness that the plan reckons with, s: the usual slack and a slow wake-up.
const LATE_S: f64 = 80e-6;

/// Operation, sleep, priority; in the order in which they are given up last.
const POINTS: [(&str, u64, u8); 13] = [
    (RELATIVE, 50 * US, 0),
    (NO_SLACK, 50 * US, 0),
    (RELATIVE, MS, 0),
    (RELATIVE, US, 1),
    (POLL, MS, 1),
    (ABSOLUTE, 50 * US, 1),
    (STANDARD, 50 * US, 1),
    (RELATIVE, 10 * MS, 2),
    (NO_SLACK, US, 2),
    (NO_SLACK, MS, 2),
    (ABSOLUTE, MS, 3),
    (STANDARD, MS, 3),
    (POLL, 10 * MS, 3),
];

impl AnyProbe for Timer {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        no_kernel(work::HERE, env).map_or(Support::Yes, Support::No)
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        POINTS
            .into_iter()
            .map(|(operation, sleep_ns, priority)| Planned {
                // With and without the slack, and where it is no more than a twentieth.
                rank: if priority == 0 { env.headline_but_quick(Rank::Detail) } else { Rank::Detail },
                priority,
                setup_s: 1e-5,
                // Tens of microseconds: what neighbours do to memory is not seen in them.
                reach: Reach::Private,
                block_s: sleeps(env.settings.profile, sleep_ns) as f64 * (sleep_ns as f64 / 1e9 + LATE_S),
                ..Planned::new(Point {
                    operation: Some(operation.to_owned()),
                    sleep_ns: Some(sleep_ns),
                    ..Point::default()
                })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let sleeps: Vec<serde_json::Value> = results
            .iter()
            .map(|result| {
                json!({
                    "operation": result.point.operation,
                    "sleep_ns": result.point.sleep_ns,
                    "late_ns": result.p50,
                })
            })
            .collect();
        if sleeps.is_empty() {
            return Vec::new();
        }
        let p50 = |results: &[PointResult], operation| {
            let of = |result: &&PointResult| {
                result.point.operation.as_deref() == Some(operation) && result.point.sleep_ns == Some(50 * US)
            };
            results.iter().find(of).map(|result| result.p50)
        };
        let slack =
            Rounds::of(results).estimate(|results| Some(p50(results, RELATIVE)? - p50(results, NO_SLACK)?));
        let findings = json!({ "sleeps": sleeps, "slack_ns": slack });
        vec![SPEC.derived(findings)]
    }
}

/// Sleeps of one block: some milliseconds' worth, and never so few that a block's median is one sleep's.
fn sleeps(profile: Profile, sleep_ns: u64) -> u64 {
    let block_s = match profile {
        Profile::Quick => 4e-3,
        Profile::Standard => 6e-3,
        Profile::Thorough => 20e-3,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let fitting = (block_s / (sleep_ns as f64 / 1e9 + LATE_S)) as u64;
    fitting.max(3)
}
