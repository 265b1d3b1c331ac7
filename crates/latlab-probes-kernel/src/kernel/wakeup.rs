//! `kernel.wakeup`: how long a thread that sleeps on another CPU needs to run again once it is woken.

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::{no_kernel, other_cpu};

use super::{Placement, sleeps_of_a_block};

#[cfg_attr(target_os = "linux", path = "wakeup/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Wakeup;

/// With their priorities.
const SLEEPS: [(u64, u8); 5] = [(1_000_000, 0), (10_000, 0), (100_000, 0), (10_000_000, 1), (100_000_000, 2)];
/// What the plan reckons for one wake-up, s.
const WAKE_S: f64 = 60e-6;

/// A thread that waits for the next event of a busy program: long enough for its CPU to rest.
const HEADLINE_NS: u64 = 1_000_000;

/// How long the thread slept before it was woken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slept {
    sleep_ns: u64,
    placement: Placement,
}

/// The CPU that wakes and the one that is woken.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Cpus {
    from_cpu: u32,
    to_cpu: u32,
}

/// How waking depends on the sleep before it.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// The shortest first.
    sleeps: Vec<Sleep>,
    /// The wake-up after the longest sleep over the one after the shortest.
    longest_over_shortest: Option<Estimate>,
}

/// A sleep and the wake-up after it, ns.
#[derive(Serialize, JsonSchema)]
struct Sleep {
    sleep_ns: u64,
    p50_ns: f64,
}

impl Probe for Wakeup {
    type Point = Slept;
    type Evidence = work::Evidence;
    type Details = Cpus;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.wakeup",
        tier: Tier::Kernel,
        title: "waking a thread on another CPU",
        question: "How long does a sleeping thread need to run again once it is woken, and does it matter \
            how long it slept?",
        method: "A thread sleeps on a futex on a CPU of its own, as it would on a lock or a condition \
            variable. This thread, on another CPU, lets it sleep for the time of the point and wakes it. \
A value is one wake-up: from the stamp before the wake call here to the first stamp that the woken thread \
takes there.

It includes the call, the interrupt to the other CPU, its exit from the idle state, the switch to the \
thread, and the return to its code. A CPU that has nothing to do goes into a deeper idle state the longer \
it waits, and needs longer to come out of it: \
that is why the sleep is a parameter. On a virtual machine an idle CPU is given back to the host, and the \
host resumes it.

This thread does not sleep meanwhile but watches the clock, so that its own CPU is awake when it wakes the \
other one. The sleep is counted from the moment at which the sleeper says that it is about to sleep, about \
a microsecond before it does.

A wake-up counts only when the kernel says that there was a sleeper to wake. The sleeper's CPU switched \
away from it as often as it slept, where the system counts that.",
        method_version: 1,
        convention: "one wake-up, from the call to the woken thread running",
        needs: &["two CPUs"],
        touches: &["one thread on a second CPU"],
        operations: Operations::SystemCalls,
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Slept> {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Plan::no(reason);
        }
        if other_cpu(env).is_none() {
            return Plan::no(
                "needs two CPUs, one to sleep on and one to wake from; this process may use one",
            );
        }
        let profile = env.settings.profile;
        let points = SLEEPS
            .into_iter()
            .filter(|(sleep_ns, _)| *sleep_ns < 100_000_000 || profile == Profile::Thorough)
            .map(|(sleep_ns, priority)| Planned {
                rank: rank(env, sleep_ns == HEADLINE_NS, Rank::Curve),
                priority,
                setup_s: 1e-5,
                // Tens of microseconds: what neighbours do to memory is not seen in them.
                cache_scope: CacheScope::Private,
                block_s: wakes(profile, sleep_ns) as f64 * (sleep_ns as f64 / 1e9 + WAKE_S),
                ..Planned::new(Slept { sleep_ns, placement: Placement::AcrossBlocking })
            });
        Plan::of(points.collect()).cpus(2)
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Slept]) -> Result<work::Session<'env>> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let mut sleeps: Vec<&Figure<Self>> = figures.iter().collect();
        sleeps.sort_by_key(|figure| figure.point.sleep_ns);
        let (shortest, longest) = (sleeps.first()?, sleeps.last()?);
        let row =
            |figure: &&Figure<Self>| Sleep { sleep_ns: figure.point.sleep_ns, p50_ns: figure.result.p50 };
        Some(Findings {
            sleeps: sleeps.iter().map(row).collect(),
            longest_over_shortest: (sleeps.len() > 1).then(|| ratio(&longest.result, &shortest.result)),
        })
    }
}

/// Wake-ups of one block.
fn wakes(profile: Profile, sleep_ns: u64) -> u64 {
    let block_s = match profile {
        Profile::Quick => 5e-3,
        Profile::Standard => 10e-3,
        Profile::Thorough => 40e-3,
    };
    sleeps_of_a_block(block_s, sleep_ns as f64 / 1e9 + WAKE_S)
}
