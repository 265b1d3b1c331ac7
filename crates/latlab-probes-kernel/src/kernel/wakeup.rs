//! `kernel.wakeup`: how long a thread that sleeps on another CPU needs to run again once it is woken.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Spec, Support,
    Tier, ratio,
};
use latlab_record::{Header, Point, Profile, Record, Unit};
use serde_json::json;

use latlab_probes_shared::{no_kernel, other_cpu};

#[cfg_attr(target_os = "linux", path = "wakeup/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct Wakeup;

static SPEC: Spec = Spec {
    id: "kernel.wakeup",
    tier: Tier::Kernel,
    title: "waking a thread on another CPU",
    question: "How long does a sleeping thread need to run again once it is woken, and does it matter how long it slept?",
    method: "A thread sleeps on a futex on a CPU of its own, as it would on a lock or a condition variable. This thread, on another CPU, lets it sleep for the time of the point and wakes it. \
A value is one wake-up: from the stamp before the wake call here to the first stamp that the woken thread takes there.

It holds the call, the interrupt to the other CPU, its way out of the idle state, the switch to the thread, and the way back to its code. A CPU that has nothing to do goes into a deeper idle state the longer it waits, and needs longer to come out of it: \
that is why the sleep is a parameter. On a virtual machine an idle CPU is given back to the host, and the way back is the host's.

This thread does not sleep meanwhile but watches the clock, so that its own CPU is awake when it wakes the other one. The sleep is counted from the moment at which the sleeper says that it is about to sleep, about a microsecond before it does.

A wake-up counts only when the kernel says that there was a sleeper to wake. The sleeper's CPU switched away from it as often as it slept, where the system counts that.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one wake-up, from the call to the woken thread running",
    needs: &["two CPUs"],
    touches: &["one thread on a second CPU"],
    saturates: false,
    operations: Operations::SystemCalls,
};

const ACROSS: &str = "across-blocking";
/// With their priorities.
const SLEEPS: [(u64, u8); 5] = [(1_000_000, 0), (10_000, 0), (100_000, 0), (10_000_000, 1), (100_000_000, 2)];
/// What the plan reckons for one wake-up, s.
const WAKE_S: f64 = 60e-6;

/// A thread that waits for the next event of a busy program: long enough for its CPU to rest.
const HEADLINE_NS: u64 = 1_000_000;

impl AnyProbe for Wakeup {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Support::No(reason);
        }
        if other_cpu(env).is_none() {
            return Support::No(
                "needs two CPUs, one to sleep on and one to wake from; this process may use one".to_owned(),
            );
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let profile = env.settings.profile;
        SLEEPS
            .into_iter()
            .filter(|(sleep_ns, _)| *sleep_ns < 100_000_000 || profile == Profile::Thorough)
            .map(|(sleep_ns, priority)| Planned {
                rank: if sleep_ns == HEADLINE_NS { env.headline_but_quick(Rank::Curve) } else { Rank::Curve },
                priority,
                setup_s: 1e-5,
                // Tens of microseconds: what neighbours do to memory is not seen in them.
                reach: Reach::Private,
                block_s: wakes(profile, sleep_ns) as f64 * (sleep_ns as f64 / 1e9 + WAKE_S),
                ..Planned::new(Point {
                    sleep_ns: Some(sleep_ns),
                    placement: Some(ACROSS.to_owned()),
                    ..Point::default()
                })
            })
            .collect()
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn cpus(&self, _env: &Env) -> u32 {
        2
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let mut sleeps: Vec<&PointResult> =
            results.iter().filter(|result| result.point.sleep_ns.is_some()).collect();
        sleeps.sort_by_key(|result| result.point.sleep_ns);
        let (Some(shortest), Some(longest)) = (sleeps.first(), sleeps.last()) else {
            return Vec::new();
        };
        let rows: Vec<serde_json::Value> = sleeps
            .iter()
            .map(|result| json!({ "sleep_ns": result.point.sleep_ns, "p50_ns": result.p50 }))
            .collect();
        let findings = json!({
            "sleeps": rows,
            "longest_over_shortest": (sleeps.len() > 1).then(|| ratio(longest, shortest)),
        });
        vec![SPEC.derived(findings)]
    }
}

/// Wake-ups of one block: some milliseconds' worth, and never so few that a block's median is one wake-up's.
fn wakes(profile: Profile, sleep_ns: u64) -> u64 {
    let block_s = match profile {
        Profile::Quick => 5e-3,
        Profile::Standard => 10e-3,
        Profile::Thorough => 40e-3,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let fitting = (block_s / (sleep_ns as f64 / 1e9 + WAKE_S)) as u64;
    fitting.max(3)
}
