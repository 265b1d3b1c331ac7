//! `kernel.timer`: how much later than asked a sleep ends.

use latlab_probes_shared::no_kernel;
use latlab_probes_shared::prelude::*;

use super::sleeps_of_a_block;

#[cfg_attr(target_os = "linux", path = "timer/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Timer;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Lateness that the plan reckons with, s: the usual slack and a slow wake-up.
const LATE_S: f64 = 80e-6;

/// Operation, sleep, priority; in the order in which they are given up last.
const POINTS: [(Way, u64, u8); 13] = [
    (Way::Nanosleep, 50 * US, 0),
    (Way::NanosleepSlack1, 50 * US, 0),
    (Way::Nanosleep, MS, 0),
    (Way::Nanosleep, US, 1),
    (Way::Poll, MS, 1),
    (Way::NanosleepAbsolute, 50 * US, 1),
    (Way::ThreadSleep, 50 * US, 1),
    (Way::Nanosleep, 10 * MS, 2),
    (Way::NanosleepSlack1, US, 2),
    (Way::NanosleepSlack1, MS, 2),
    (Way::NanosleepAbsolute, MS, 3),
    (Way::ThreadSleep, MS, 3),
    (Way::Poll, 10 * MS, 3),
];

/// A sleep that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    operation: Way,
    sleep_ns: u64,
}

/// How a thread sleeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Nanosleep,
    NanosleepAbsolute,
    #[serde(rename = "nanosleep-slack-1")]
    NanosleepSlack1,
    ThreadSleep,
    Poll,
    /// One that only another version of this probe knows: its lateness is told too.
    #[serde(untagged)]
    Other(String),
}

/// With what a point's sleeps were taken.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Length of each sleep as it was asked for.
    requested_ns: u64,
    /// How late the kernel may fire this thread's timers, where it tells.
    timer_slack_ns: Option<u64>,
    /// Sleeps that a signal ended, which are not counted.
    ended_by_signals: u64,
}

/// How late sleeps are.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    sleeps: Vec<Lateness>,
    /// What the timer slack adds to a sleep of 50 us.
    slack_ns: Option<Estimate>,
}

/// A sleep and its lateness, ns.
#[derive(Serialize, JsonSchema)]
struct Lateness {
    operation: Way,
    sleep_ns: u64,
    late_ns: f64,
}

impl Probe for Timer {
    type Point = Asked;
    type Evidence = work::Evidence;
    type Details = Taken;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.timer",
        tier: Tier::Kernel,
        title: "lateness of sleeps and timeouts",
        question: "When a program asks to sleep for a while, how much later does it go on?",
        method: "A sleep is asked for, and the clock is read before and after it. A value is the time \
            beyond the requested one: the lateness of one sleep, never its length. \
It includes the timer's delay beyond the due time, the interrupt, the exit from the idle state, and the \
switch back to the sleeping thread.

The clock is the monotonic one, by which the kernel's timers run: another clock's rate, off by a few \
millionths, would be microseconds in a long sleep. The reading before the call begins the sleep, so the \
call itself is part of the lateness. \
A sleep that ends early fails the proof. One that a signal ended is not counted.

An ordinary thread's timers may fire up to its timer slack late (50 µs unless it was changed), so that \
several can share one interrupt; each figure comes with the slack that was found. nanosleep-slack-1 sets \
the slack of this thread to 1 ns, its least, and \
sets it back: the rest is the machine's lateness. Threads of a real-time class have no slack.

nanosleep is clock_nanosleep with a duration, nanosleep-absolute with a due time, thread-sleep the standard \
library's sleep, poll a timeout in which nothing happens, in whole milliseconds.",
        method_version: 1,
        convention: "lateness of one sleep: real minus requested",
        touches: &["timer slack of the measuring thread, set back after each block"],
        operations: Operations::SystemCalls,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Asked> {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Plan::no(reason);
        }
        let points = POINTS.into_iter().map(|(operation, sleep_ns, priority)| Planned {
            // With and without the slack, and where it is no more than a twentieth.
            rank: rank(env, priority == 0, Rank::Detail),
            priority,
            setup_s: 1e-5,
            // Tens of microseconds: what neighbours do to memory is not seen in them.
            cache_scope: CacheScope::Private,
            block_s: sleeps(env.settings.profile, sleep_ns) as f64 * (sleep_ns as f64 / 1e9 + LATE_S),
            ..Planned::new(Asked { operation, sleep_ns })
        });
        Plan::of(points.collect())
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Asked]) -> Result<work::Session<'env>> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let row = |figure: &Figure<Self>| {
            let Asked { operation, sleep_ns } = figure.point.clone();
            Lateness { operation, sleep_ns, late_ns: figure.result.p50 }
        };
        let p50 = |figures: &[Figure<Self>], operation| {
            Some(result_at(figures, &Asked { operation, sleep_ns: 50 * US })?.p50)
        };
        let slack = |figures: &[Figure<Self>]| {
            Some(p50(figures, Way::Nanosleep)? - p50(figures, Way::NanosleepSlack1)?)
        };
        (!figures.is_empty()).then(|| Findings {
            sleeps: figures.iter().map(row).collect(),
            slack_ns: Rounds::of(figures).estimate(slack),
        })
    }
}

/// Sleeps of one block.
fn sleeps(profile: Profile, sleep_ns: u64) -> u64 {
    let block_s = match profile {
        Profile::Quick => 4e-3,
        Profile::Standard => 6e-3,
        Profile::Thorough => 20e-3,
    };
    sleeps_of_a_block(block_s, sleep_ns as f64 / 1e9 + LATE_S)
}
