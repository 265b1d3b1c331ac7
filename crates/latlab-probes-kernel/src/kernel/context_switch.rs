//! `kernel.context_switch`: a token goes to another thread or process and comes back.

use latlab_harness::{
    AnyProbe, AnySession, Env, Operations, Planned, PointResult, ProbeError, Rank, Reach, Rounds, Spec,
    Support, Tier, ratio,
};
use latlab_record::{Header, Point, Record, Unit};
use serde_json::json;

use latlab_probes_shared::{no_kernel, other_cpu};

#[cfg_attr(target_os = "linux", path = "context_switch/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct ContextSwitch;

static SPEC: Spec = Spec {
    id: "kernel.context_switch",
    tier: Tier::Kernel,
    title: "switching between threads and processes",
    question: "What does it cost to hand work to another thread or process and to get the answer back?",
    method: "A number of 4 bytes goes to a partner, which adds one and sends it back; then the next number goes. Both sides block while they wait, never watch. \
A value is the mean round trip in a window of some of them. Each answer is compared with the number sent: one that is missing, late or doubled fails the proof.

same-cpu: both are kept on one CPU, so each round trip holds two switches, and nothing runs at the same time. That the CPU did switch is proved by the kernel's count of switches. \
across-blocking: the partner is on another CPU, so each round trip wakes an idle CPU twice; that is usually dearer than two switches, and most of all on a virtual machine, where an idle CPU is given back to the host.

pipe: two pipes, the figure that `perf bench sched pipe` gives. eventfd: two counters in the kernel. futex: words in memory that both see, with a sleep when there is nothing yet; the least that a lock or a queue between threads can cost. \
threads share their memory; processes do not, so a switch also changes the address space. The other process is a fork that does nothing but answer, and ends with this one.

pipe-alone is the same four calls, two writes and two reads, by one thread to itself: nobody is woken and nothing is switched. Half of what a round trip costs beyond that is the switch with its wake-up (switch_only_ns): \
so does lmbench's lat_ctx subtract its own overhead. switch_ns is half of the cheapest round trip on one CPU, with its calls.

A block in which others had the shared CPU for more than a fifth of the time is marked and repeated. A partner that does not answer for seconds, or was killed, ends the point with a reason.",
    method_version: 1,
    unit: Unit::Ns,
    convention: "one round trip: two switches when both sides share a CPU",
    needs: &[],
    touches: &["threads, and processes that end with this one; a second CPU"],
    saturates: false,
    operations: Operations::Unwatched,
};

const PIPE: &str = "pipe";
const EVENTFD: &str = "eventfd";
const FUTEX: &str = "futex";
const ALONE: &str = "pipe-alone";
const SAME: &str = "same-cpu";
const ACROSS: &str = "across-blocking";
const THREADS: &str = "threads";
const PROCESSES: &str = "processes";

/// Operation, placement, between, priority; in the order in which they are given up last.
const POINTS: [(&str, &str, &str, u8); 12] = [
    (PIPE, SAME, PROCESSES, 0),
    (PIPE, SAME, THREADS, 0),
    (PIPE, ACROSS, THREADS, 0),
    (FUTEX, SAME, THREADS, 0),
    (PIPE, ACROSS, PROCESSES, 1),
    (FUTEX, ACROSS, THREADS, 1),
    (EVENTFD, SAME, THREADS, 1),
    (FUTEX, SAME, PROCESSES, 2),
    (EVENTFD, SAME, PROCESSES, 2),
    (EVENTFD, ACROSS, THREADS, 2),
    (FUTEX, ACROSS, PROCESSES, 2),
    (EVENTFD, ACROSS, PROCESSES, 2),
];

/// Round trips of a window, and windows of a block. On one CPU a trip takes 1 to 5 us, so a window is some hundred
/// microseconds; across CPUs it takes 5 to 60 us, because idle CPUs are woken.
fn window(placement: &str) -> (u64, u32) {
    if placement == SAME { (50, 48) } else { (4, 32) }
}

/// What the plan reckons for a round trip on one CPU and across CPUs, s.
const TRIP_S: [f64; 2] = [5e-6, 55e-6];

impl AnyProbe for ContextSwitch {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn supports(&self, env: &Env) -> Support {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Support::No(reason);
        }
        if other_cpu(env).is_none() {
            return Support::Degraded(
                "this process may use one CPU: what an exchange between CPUs costs is not measured"
                    .to_owned(),
            );
        }
        Support::Yes
    }

    fn points(&self, env: &Env) -> Vec<Planned> {
        let planned = |point: Point, priority| {
            let placement = point.placement.as_deref().unwrap_or(SAME);
            let (ops, windows) = window(placement);
            let trip_s = TRIP_S[usize::from(placement != SAME)];
            Planned {
                rank: match (placement == SAME, point.between.is_some(), priority) {
                    (true, true, 0) => Rank::Headline,
                    // The fastest of one CPU is the switch, whichever it is.
                    (true, true, _) | (false, _, 0) => env.headline_but_quick(Rank::Detail),
                    _ => Rank::Detail,
                },
                priority,
                setup_s: 1e-4,
                block_s: trip_s * ops as f64 * f64::from(windows + 1),
                // On one CPU the core never waits. Across CPUs it idles; neighbours' use of memory matters to neither.
                reach: if placement == SAME { Reach::First } else { Reach::Private },
                ..Planned::new(point)
            }
        };
        let alone = Point {
            operation: Some(ALONE.to_owned()),
            placement: Some(SAME.to_owned()),
            threads: Some(1),
            ..Point::default()
        };
        let mut points = vec![planned(alone, 0)];
        let two = other_cpu(env).is_some();
        points.extend(POINTS.into_iter().filter(|(_, placement, ..)| two || *placement == SAME).map(
            |(operation, placement, between, priority)| {
                let point = Point {
                    operation: Some(operation.to_owned()),
                    placement: Some(placement.to_owned()),
                    between: Some(between.to_owned()),
                    ..Point::default()
                };
                planned(point, priority)
            },
        ));
        points
    }

    fn memory_bytes(&self, _env: &Env) -> u64 {
        0
    }

    fn cpus(&self, env: &Env) -> u32 {
        1 + u32::from(other_cpu(env).is_some())
    }

    fn open<'env>(
        &'env self,
        env: &'env Env,
        _group: &[Planned],
    ) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, results: &[PointResult]) -> Vec<Record> {
        let best = results
            .iter()
            .filter(|result| {
                result.point.placement.as_deref() == Some(SAME) && result.point.between.is_some()
            })
            .min_by(|a, b| a.p50.total_cmp(&b.p50));
        let Some(best) = best else {
            return Vec::new();
        };
        // A round trip without its calls, halved: one switch.
        let rounds = Rounds::of(results);
        let only = rounds.estimates(&[PROCESSES, THREADS], |between, results| {
            let trip = at(results, PIPE, SAME, Some(between))?.p50;
            Some((trip - at(results, ALONE, SAME, None)?.p50) / 2.0)
        });
        let across = at(results, PIPE, ACROSS, Some(THREADS)).zip(at(results, PIPE, SAME, Some(THREADS)));
        let findings = json!({
            "switch_ns": best.median().map(|trip| trip / 2.0),
            "switch_operation": best.point.operation,
            "switch_between": best.point.between,
            "pipe_calls_ns": at(results, ALONE, SAME, None).map(|result| result.p50),
            "switch_only_ns": only[0],
            "switch_only_threads_ns": only[1],
            "pipe_across_over_same_cpu": across.map(|(across, same)| ratio(across, same)),
        });
        vec![SPEC.derived(findings)]
    }
}

fn at<'a>(
    results: &'a [PointResult],
    operation: &str,
    placement: &str,
    between: Option<&str>,
) -> Option<&'a PointResult> {
    results.iter().find(|result| {
        let point = &result.point;
        point.operation.as_deref() == Some(operation)
            && point.placement.as_deref() == Some(placement)
            && point.between.as_deref() == between
    })
}
