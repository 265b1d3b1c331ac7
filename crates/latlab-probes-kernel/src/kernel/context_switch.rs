//! `kernel.context_switch`: a token goes to another thread or process and comes back.

use latlab_probes_shared::prelude::*;
use latlab_probes_shared::{no_kernel, other_cpu};

use super::Placement::{self, AcrossBlocking, SameCpu};

#[cfg_attr(target_os = "linux", path = "context_switch/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/mod.rs")]
mod work;

/// The probe.
pub struct ContextSwitch;

/// Operation, placement, between, priority; in the order in which they are given up last.
const POINTS: [(Means, Placement, Between, u8); 12] = [
    (Means::Pipe, SameCpu, Between::Processes, 0),
    (Means::Pipe, SameCpu, Between::Threads, 0),
    (Means::Pipe, AcrossBlocking, Between::Threads, 0),
    (Means::Futex, SameCpu, Between::Threads, 0),
    (Means::Pipe, AcrossBlocking, Between::Processes, 1),
    (Means::Futex, AcrossBlocking, Between::Threads, 1),
    (Means::Eventfd, SameCpu, Between::Threads, 1),
    (Means::Futex, SameCpu, Between::Processes, 2),
    (Means::Eventfd, SameCpu, Between::Processes, 2),
    (Means::Eventfd, AcrossBlocking, Between::Threads, 2),
    (Means::Futex, AcrossBlocking, Between::Processes, 2),
    (Means::Eventfd, AcrossBlocking, Between::Processes, 2),
];

/// By what a number goes to the other side and back, and where and what that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchanged {
    operation: Means,
    placement: Placement,
    /// `None`: one thread alone.
    between: Option<Between>,
    threads: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Means {
    Pipe,
    Eventfd,
    Futex,
    PipeAlone,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Between {
    Threads,
    Processes,
}

impl Exchanged {
    /// The calls of a round trip by one thread to itself.
    const ALONE: Self =
        Self { operation: Means::PipeAlone, placement: SameCpu, between: None, threads: Some(1) };

    fn with_partner(operation: Means, placement: Placement, between: Between) -> Self {
        Self { operation, placement, between: Some(between), threads: None }
    }
}

/// How a point's round trips went.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Switches {
    /// Of the side that asks; nothing where they are not counted.
    switches_per_round_trip: Option<f64>,
    partner_cpu: Option<u32>,
}

/// What a switch costs.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// Half of the cheapest round trip on one CPU, with its calls.
    switch_ns: Estimate,
    switch_operation: Means,
    switch_between: Option<Between>,
    /// The calls of a round trip through pipes without a partner.
    pipe_calls_ns: Option<f64>,
    /// Half of what a round trip of processes through pipes costs beyond its calls.
    switch_only_ns: Option<Estimate>,
    /// The same of threads.
    switch_only_threads_ns: Option<Estimate>,
    /// Round trips of threads through pipes: across CPUs over within one.
    pipe_across_over_same_cpu: Option<Estimate>,
}

/// Round trips of a window, and windows of a block. On one CPU a trip takes 1 to 5 us, so a window is some
/// hundred microseconds; across CPUs it takes 5 to 60 us, because idle CPUs are woken.
fn window(placement: Placement) -> (u64, u32) {
    if placement == SameCpu { (50, 48) } else { (4, 32) }
}

/// What the plan reckons for a round trip on one CPU and across CPUs, s.
const TRIP_S: [f64; 2] = [5e-6, 55e-6];

impl Probe for ContextSwitch {
    type Point = Exchanged;
    type Evidence = work::Evidence;
    type Details = Switches;
    type Findings = Findings;
    type Session<'env> = work::Session<'env>;

    const SPEC: Spec = Spec {
        id: "kernel.context_switch",
        tier: Tier::Kernel,
        title: "switching between threads and processes",
        question: "What does it cost to hand work to another thread or process and to get the answer back?",
        method: "A number of 4 bytes goes to a partner, which adds one and sends it back; then the next \
            number goes. Both sides block while they wait and never poll. \
A value is the mean round trip in a window of some of them. Each answer is compared with the number sent: \
one that is missing, late or doubled fails the proof.

same-cpu: both are pinned to one CPU, so each round trip includes two switches, and nothing runs at the \
same time. That the CPU did switch is proved by the kernel's count of switches. \
across-blocking: the partner is on another CPU, so each round trip wakes an idle CPU twice; that usually \
costs more than two switches, and most of all on a virtual machine, where an idle CPU is given back to the \
host.

pipe: two pipes, the figure that `perf bench sched pipe` gives. eventfd: two counters in the kernel. futex: \
words in memory that both see, with a sleep when there is nothing yet; the least that a lock or a queue \
between threads can cost. \
threads share their memory; processes do not, so a switch also changes the address space. The other process \
is a fork that does nothing but answer, and ends with this one.

pipe-alone is the same four calls, two writes and two reads, by one thread to itself: no thread is woken \
and nothing is switched. Half of what a round trip costs beyond that is the switch with its wake-up \
(switch_only_ns): \
lmbench's lat_ctx subtracts its own overhead in the same way. switch_ns is half of the cheapest round trip \
on one CPU, with its calls.

A block in which other programs had the shared CPU for more than a fifth of the time is marked and \
repeated. A partner that does not answer for seconds, or was killed, ends the point with a reason.",
        method_version: 1,
        convention: "one round trip: two switches when both sides share a CPU",
        touches: &["threads, and processes that end with this one; a second CPU"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Exchanged> {
        if let Some(reason) = no_kernel(work::HERE, env) {
            return Plan::no(reason);
        }
        let two = other_cpu(env).is_some();
        let mut points = vec![planned(env, Exchanged::ALONE, 0)];
        points.extend(POINTS.into_iter().filter(|(_, placement, ..)| two || *placement == SameCpu).map(
            |(operation, placement, between, priority)| {
                planned(env, Exchanged::with_partner(operation, placement, between), priority)
            },
        ));
        let plan = Plan::of(points);
        if two {
            return plan.cpus(2);
        }
        plan.degraded("this process may use one CPU: exchanges between CPUs are not measured")
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Exchanged]) -> Result<work::Session<'env>> {
        work::open(env)
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let switched =
            |figure: &&Figure<Self>| figure.point.placement == SameCpu && figure.point.between.is_some();
        let best = figures.iter().filter(switched).min_by(|a, b| a.result.p50.total_cmp(&b.result.p50))?;
        let pipe = |placement, between| Exchanged::with_partner(Means::Pipe, placement, between);
        // A round trip without its calls, halved: one switch.
        let only = |between: &Between, figures: &[Figure<Self>]| {
            let trip = result_at(figures, &pipe(SameCpu, *between))?.p50;
            Some((trip - result_at(figures, &Exchanged::ALONE)?.p50) / 2.0)
        };
        let only = Rounds::of(figures).estimates(&[Between::Processes, Between::Threads], only);
        let [across, same] =
            [AcrossBlocking, SameCpu].map(|placement| result_at(figures, &pipe(placement, Between::Threads)));
        Some(Findings {
            switch_ns: best.result.median().map(|trip| trip / 2.0),
            switch_operation: best.point.operation,
            switch_between: best.point.between,
            pipe_calls_ns: result_at(figures, &Exchanged::ALONE).map(|result| result.p50),
            switch_only_ns: only[0],
            switch_only_threads_ns: only[1],
            pipe_across_over_same_cpu: across.zip(same).map(|(across, same)| ratio(across, same)),
        })
    }
}

fn planned(env: &Env, point: Exchanged, priority: u8) -> Planned<Exchanged> {
    let on_one = point.placement == SameCpu;
    let (ops, windows) = window(point.placement);
    Planned {
        rank: match (on_one, point.between.is_some(), priority) {
            (true, true, 0) => Rank::Headline,
            // The fastest of one CPU is the switch, whichever it is.
            (true, true, _) | (false, _, 0) => env.headline_but_quick(Rank::Detail),
            _ => Rank::Detail,
        },
        priority,
        setup_s: 1e-4,
        block_s: TRIP_S[usize::from(!on_one)] * ops as f64 * f64::from(windows + 1),
        // On one CPU the core never waits. Across CPUs it idles; neighbours' use of memory matters to
        // neither.
        cache_scope: if on_one { CacheScope::First } else { CacheScope::Private },
        ..Planned::new(point)
    }
}
