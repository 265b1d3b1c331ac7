//! Wall time in which at least one thread ran, and in which none ran but one was ready, from samples of `/proc` and exact counters.
//!
//! Exact are the CPU time C of all threads, their run-queue delay Q and the number P of CPUs. `/proc` shows running and ready threads alike: of n
//! runnable threads at most min(n, P) run. The samples' runnable thread time is scaled to C + Q. Each of the min(n, P) places then had a thread
//! for the same part of the time, independently of the others, such that all places together had one for C. Where other programs cannot have had
//! all CPUs, one place surely had one, unless that alone were more than C.
//!
//! Whatever the samples say, C / P ≤ running ≤ min(C, wall) and ready ≤ Q. Of a single thread both are exact without a sample.

use crate::account::interval::{Range, Z};
use crate::account::sampled::Share;

/// What the kernel counted while threads were sampled, nanoseconds of thread time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exact {
    /// CPU time.
    pub cpu: f64,
    /// Run-queue delay.
    pub queue: f64,
    /// At most this much besides: delay that ended with its thread before it was read, and time that the host took.
    pub uncounted: f64,
    /// CPUs that the program may run on.
    pub cpus: u32,
}

/// What was sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// See [`crate::account::sweep::Sums::by_runnable`].
    pub by_runnable: &'a [Vec<u64>; 2],
    /// All of it, nanoseconds.
    pub wall: f64,
    /// Samples that it is known from.
    pub samples: f64,
    /// Most threads that were there at once.
    pub most_threads: u32,
}

/// See the module. Nanoseconds of wall time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Busy {
    /// At least one thread ran.
    pub running: Share,
    /// None ran, at least one was ready.
    pub ready: Share,
    /// Of `ready`, what no counter knows of.
    pub uncounted: f64,
}

/// Running and ready wall time, and their standard errors.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    running: f64,
    ready: f64,
    error: f64,
    uncounted: f64,
}

/// Divides the time in which threads were sampled.
pub(crate) fn busy(seen: &Seen<'_>, exact: &Exact) -> Busy {
    let cpus = f64::from(places(seen.most_threads, exact.cpus));
    let running = Range { low: (exact.cpu / cpus).min(seen.wall), high: exact.cpu.min(seen.wall) };
    let estimate = estimate(seen, exact, seen.threads());
    let off = seen.error_of_threads();
    let [fewer, more] = [-off, off].map(|off| self::estimate(seen, exact, seen.threads() + off));
    let error = Z * estimate.error;
    let clamp = |ns: f64, range: Range| ns.clamp(range.low, range.high.max(range.low));
    let of = |ns: f64, fewer: f64, more: f64, range: Range| {
        let least = clamp(fewer.min(more).min(ns) - error, range);
        let most = clamp(fewer.max(more).max(ns) + error, range);
        Share::within(clamp(ns, range), Range { low: least, high: most })
    };
    let running = of(estimate.running, fewer.running, more.running, running);
    let left = seen.wall - running.of;
    // One thread alone is ready for as long as was counted; of several, the others may run meanwhile.
    let least = if seen.most_threads > 1 { 0.0 } else { exact.queue.min(left) };
    let ready = Range { low: least, high: (exact.queue + exact.uncounted).min(left) };
    let ready = of(estimate.ready, fewer.ready, more.ready, ready);
    Busy { running, ready, uncounted: estimate.uncounted.min(ready.of) }
}

/// CPUs that threads ran on at once, at most.
pub(crate) fn places(most_threads: u32, cpus: u32) -> u32 {
    if most_threads <= 1 { 1 } else { cpus.max(1) }
}

/// If runnable threads were there for so much thread time.
fn estimate(seen: &Seen<'_>, exact: &Exact, threads: f64) -> Estimate {
    let counted = exact.cpu + exact.queue;
    let total = threads.clamp(counted, counted + exact.uncounted);
    let of_seen = seen.threads();
    if of_seen <= 0.0 {
        // No sample met a runnable thread: there was one at a time.
        let running = exact.cpu.min(seen.wall);
        let ready = exact.queue.min(seen.wall - running);
        let error = running - running / f64::from(places(seen.most_threads, exact.cpus));
        return Estimate { running, ready, error, uncounted: 0.0 };
    }
    let scale = total / of_seen;
    let cpus = places(seen.most_threads, exact.cpus);
    let sum = |of: &dyn Fn(Met) -> f64| seen.met().map(|met| of(met) * met.ns).sum::<f64>();
    let places = |met: Met| met.places(cpus);
    let room = scale * sum(&places);
    let certain = scale * sum(&|met| f64::from(u8::from(met.has_a_cpu)));
    // Where even that is more than the CPU time, a CPU that others could not have was not given at once.
    let is_certain = certain <= exact.cpu;
    let surely = |met: Met| if is_certain && met.has_a_cpu { 1.0 } else { 0.0 };
    let of_certain = if is_certain { certain } else { 0.0 };
    let free = (1.0 - (exact.cpu - of_certain) / (room - of_certain).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    let runs = |met: Met| {
        let surely = surely(met);
        surely + (1.0 - surely) * (1.0 - free.powf(met.places(cpus)))
    };
    // Threads were there for less time than the counters know: more often, or more at once.
    let missed = (exact.cpu / room).max(1.0);
    let running = scale * missed * sum(&runs);
    let busy = scale * sum(&|_| 1.0);
    let ready = (busy - running).max(0.0);
    // A ratio of what each sample says of wall time to what it says of thread time, which is known.
    let ratio = sum(&runs) / sum(&places);
    let squared = |met: Met| (runs(met) - ratio * places(met)).powi(2);
    let each = seen.wall / seen.samples.max(1.0);
    // As if one more sample had met one thread, and one more as many as there can be.
    let one_more = |threads| squared(Met { threads: f64::from(threads), has_a_cpu: false, ns: each });
    let unseen = one_more(1) + one_more(seen.most_threads);
    let error = scale * missed * (each * sum(&squared) + each * each * unseen).sqrt();
    let excess = total - counted;
    let uncounted = if excess > 0.0 { ready * excess / (exact.queue + excess) } else { 0.0 };
    Estimate { running, ready, error, uncounted }
}

/// Some samples that met the same.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// Runnable threads.
    threads: f64,
    /// Other programs could not have all CPUs.
    has_a_cpu: bool,
    /// Wall time that they stand for.
    ns: f64,
}

impl Met {
    /// CPUs that the threads may have at once.
    fn places(self, cpus: u32) -> f64 {
        self.threads.min(f64::from(cpus))
    }
}

impl Seen<'_> {
    /// What was sampled while threads were runnable.
    fn met(&self) -> impl Iterator<Item = Met> {
        self.by_runnable.iter().zip([false, true]).flat_map(|(sums, has_a_cpu)| {
            let met = (0_u32..).zip(sums).skip(1);
            met.map(move |(threads, ns)| Met { threads: f64::from(threads), has_a_cpu, ns: *ns as f64 })
        })
    }

    /// Runnable threads, thread time.
    fn threads(&self) -> f64 {
        self.met().map(|met| met.threads * met.ns).sum()
    }

    /// By how much a sum over so few samples may be off.
    fn error_of_threads(&self) -> f64 {
        let mean = self.threads() / self.wall.max(1.0);
        let idle = self.wall - self.met().map(|met| met.ns).sum::<f64>();
        let squares = self.met().map(|met| met.ns * (met.threads - mean).powi(2)).sum::<f64>();
        let each = self.wall / self.samples.max(1.0);
        Z * (each * (squares + idle.max(0.0) * mean * mean)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A second of which `cpu_ms` and `queue_ms` were counted, with one and two threads met for so long, on CPUs that others could not all have.
    fn told(cpu_ms: u64, queue_ms: u64, met_ms: [u64; 2]) -> (f64, f64) {
        let [one, two] = met_ms.map(|ms| ms * MS);
        let by_runnable = [Vec::new(), vec![1000 * MS - one - two, one, two]];
        let seen =
            Seen { by_runnable: &by_runnable, wall: (1000 * MS) as f64, samples: 200.0, most_threads: 2 };
        let [cpu, queue] = [cpu_ms, queue_ms].map(|ms| (ms * MS) as f64);
        let busy = busy(&seen, &Exact { cpu, queue, uncounted: 0.0, cpus: 2 });
        (busy.running.of / MS as f64, busy.ready.of / MS as f64)
    }

    #[test]
    fn threads_that_others_leave_a_cpu_run_as_far_as_they_had_it() {
        // One at a time: whatever is thought of the others, it ran for as long as was counted, and stood in line for the rest.
        let (running, ready) = told(700, 100, [800, 0]);
        assert!((running - 700.0).abs() < 1e-6 && (ready - 100.0).abs() < 1e-6, "{running} {ready}");
        // Two at a time, of which one has the CPU: none is ever without a runner.
        let (running, ready) = told(800, 800, [0, 800]);
        assert!((running - 800.0).abs() < 1e-6 && ready.abs() < 1e-6, "{running} {ready}");
        // Less was counted than even that: each place had a thread a quarter of the time.
        let (running, ready) = told(400, 1200, [0, 800]);
        assert!((running - 350.0).abs() < 1e-6 && (ready - 450.0).abs() < 1e-6, "{running} {ready}");
    }
}
