//! Wall time in which at least one thread ran, and in which none ran but one was ready, from samples of
//! `/proc` and exact counters.
//!
//! Exact are the CPU time C of all threads, their run-queue delay Q and the number P of CPUs. `/proc` shows
//! running and ready threads alike: the samples' runnable thread time is scaled to C + Q. Beside n of them a
//! sample met m runnable threads of other programs (`/proc/loadavg`), which have m CPUs at most: P - m of the
//! n surely run. Were any P of the n + m as likely to have the CPUs as the next, n P / (n + m) would run. The
//! odds of all samples are changed by one factor, such that the threads ran for C; where even those that
//! surely run had less, all waited at once for the rest, as under a limit on CPU time.
//!
//! If none surely runs, none does with the probability that the hypergeometric distribution gives: two
//! threads that lose one CPU in turn never both wait. That is a scheduler that balances CPUs. The interval
//! also allows for one that does not, where each CPU is lost independently; and, as m is of one moment, for
//! any m.
//!
//! Whatever the samples say, C / P ≤ running ≤ min(C, wall) and ready ≤ Q. Of a single thread both are exact
//! without a sample.

use std::collections::BTreeMap;

use crate::account::interval::{Range, Z};
use crate::account::sampled::Share;

/// What the kernel counted while threads were sampled, nanoseconds of thread time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exact {
    /// CPU time.
    pub cpu: f64,
    /// Run-queue delay.
    pub queue: f64,
    /// At most this much besides: delay that ended with its thread before it was read, and time that the host
    /// took.
    pub uncounted: f64,
    /// CPUs that the program may run on.
    pub cpus: u32,
}

/// What was sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// See [`crate::account::sweep::Sums::by_runnable`].
    pub by_runnable: &'a BTreeMap<(u32, u32), u64>,
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

/// Running and ready wall time, and the standard error of both.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    running: f64,
    ready: f64,
    error: f64,
    /// Where CPUs are lost independently of each other, as much more is `ready` and less is `running`.
    unbalanced: f64,
    uncounted: f64,
}

/// Divides the time in which threads were sampled.
pub(crate) fn busy(seen: &Seen<'_>, exact: &Exact) -> Busy {
    let cpus = f64::from(places(seen.most_threads, exact.cpus));
    let off = seen.error_of_threads();
    let estimate = estimate(seen, exact, seen.threads());
    let unknown = Seen { by_runnable: &beside_unknown(seen.by_runnable, exact.cpus), ..*seen };
    let all = [-off, 0.0, off]
        .map(|off| [seen, &unknown].map(|seen| self::estimate(seen, exact, seen.threads() + off)));
    let all = || all.iter().flatten().copied();
    let of = |ns: f64, low: f64, high: f64, allowed: Range| {
        let clamp = |ns: f64| ns.clamp(allowed.low, allowed.high.max(allowed.low));
        let error = Z * estimate.error;
        Share::within(clamp(ns), Range { low: clamp(low - error), high: clamp(high + error) })
    };
    let least = |of: &dyn Fn(Estimate) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: &dyn Fn(Estimate) -> f64| all().map(of).fold(0.0, f64::max);
    let allowed = Range { low: (exact.cpu / cpus).min(seen.wall), high: exact.cpu.min(seen.wall) };
    let low = least(&|each| each.running - each.unbalanced);
    let running = of(estimate.running, low, most(&|each| each.running), allowed);
    // One thread alone is ready for as long as was counted; of several, the others may run meanwhile.
    let least_ready = if seen.most_threads > 1 { 0.0 } else { exact.queue.min(seen.wall - running.of) };
    let delay = exact.queue + exact.uncounted;
    let allowed = Range { low: least_ready, high: delay.min(seen.wall - running.range_ns().low) };
    let high = most(&|each| each.ready + each.unbalanced);
    let ready = of(estimate.ready.min(seen.wall - running.of), least(&|each| each.ready), high, allowed);
    Busy { running, ready, uncounted: estimate.uncounted.min(ready.of) }
}

/// The same where it is not known how many threads of other programs were runnable: they may have had all
/// CPUs.
fn beside_unknown(by_runnable: &BTreeMap<(u32, u32), u64>, cpus: u32) -> BTreeMap<(u32, u32), u64> {
    let mut unknown = BTreeMap::new();
    for ((threads, _), ns) in by_runnable {
        *unknown.entry((*threads, cpus)).or_default() += ns;
    }
    unknown
}

/// CPUs that threads ran on at once, at most.
pub(crate) fn places(most_threads: u32, cpus: u32) -> u32 {
    if most_threads <= 1 { 1 } else { cpus.max(1) }
}

/// If runnable threads were there for so much thread time.
fn estimate(seen: &Seen<'_>, exact: &Exact, threads: f64) -> Estimate {
    let cpus = places(seen.most_threads, exact.cpus);
    let counted = exact.cpu + exact.queue;
    let total = threads.clamp(counted, counted + exact.uncounted);
    let of_seen = seen.threads();
    if of_seen <= 0.0 {
        // No sample met a runnable thread: there was one at a time.
        let running = exact.cpu.min(seen.wall);
        let ready = exact.queue.min(seen.wall - running);
        let error = running - running / f64::from(cpus);
        return Estimate { running, ready, error, unbalanced: 0.0, uncounted: 0.0 };
    }
    let scale = total / of_seen;
    let sum = |of: &dyn Fn(Met) -> f64| seen.met().map(|met| of(met) * met.ns).sum::<f64>();
    let room = sum(&|met| met.most(cpus));
    let given = Given::fitted(seen, cpus, exact.cpu / scale);
    let runs = |met: Met| 1.0 - met.none_runs(cpus, given);
    // Threads were there for less time than the counters know: more often, or more at once.
    let missed = (exact.cpu / (scale * room)).max(1.0);
    let running = scale * missed * sum(&runs);
    let ready = (scale * sum(&|_| 1.0) - running).max(0.0);
    let unbalanced =
        scale * missed * sum(&|met| met.lost_independently(cpus, given) - met.none_runs(cpus, given));
    // A ratio of what each sample says of wall time to what it says of thread time, which is known.
    let threads = |met: Met| met.run_at_once(cpus, given);
    let ratio = sum(&runs) / sum(&threads).max(f64::MIN_POSITIVE);
    let squared = |met: Met| (runs(met) - ratio * threads(met)).powi(2);
    let each = seen.wall / seen.samples.max(1.0);
    // As if one more sample had met one thread, and one more as many as there can be.
    let one_more = |threads| squared(Met { threads: f64::from(threads), others: f64::from(cpus), ns: each });
    let unseen = one_more(1) + one_more(seen.most_threads);
    let error = scale * missed * (each * sum(&squared) + each * each * unseen).sqrt();
    let excess = total - counted;
    let uncounted = if excess > 0.0 { ready * excess / (exact.queue + excess) } else { 0.0 };
    Estimate { running, ready, error, unbalanced, uncounted }
}

/// What the CPU time says of all samples.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// The part of its CPUs that a thread had where other programs could not have them.
    surely: f64,
    /// How other programs do where CPUs are contested: 0 they have none, 0.5 each thread is as likely to run
    /// as the next, 1 they have all.
    others: f64,
}

impl Given {
    /// Such that threads ran for `cpu`, as far as the samples allow.
    fn fitted(seen: &Seen<'_>, cpus: u32, cpu: f64) -> Self {
        let runs = |given: Self| seen.met().map(|met| met.run_at_once(cpus, given) * met.ns).sum::<f64>();
        let surely = runs(Self { surely: 1.0, others: 1.0 });
        if surely >= cpu {
            return Self { surely: cpu / surely.max(f64::MIN_POSITIVE), others: 1.0 };
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let others = f64::midpoint(low, high);
            if runs(Self { surely: 1.0, others }) > cpu { low = others } else { high = others }
        }
        Self { surely: 1.0, others: high }
    }
}

/// Some samples that met the same.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// Runnable threads.
    threads: f64,
    /// Those of other programs.
    others: f64,
    /// Wall time that they stand for.
    ns: f64,
}

impl Met {
    /// Threads that run at once where other programs want no CPU.
    fn most(self, cpus: u32) -> f64 {
        self.threads.min(f64::from(cpus))
    }

    /// Of those, the ones that run although other programs have as many CPUs as they can.
    fn surely(self, cpus: u32) -> f64 {
        self.threads.min((f64::from(cpus) - self.others).max(0.0))
    }

    /// Threads that run at once.
    fn run_at_once(self, cpus: u32, given: Given) -> f64 {
        let (surely, most) = (self.surely(cpus), self.most(cpus));
        if surely >= most {
            return given.surely * surely;
        }
        let alike = self.threads * f64::from(cpus) / (self.threads + self.others);
        let own = (alike - surely) / (most - surely);
        let [own, others] = [own * (1.0 - given.others), (1.0 - own) * given.others];
        given.surely * surely + (most - surely) * own / (own + others).max(f64::MIN_POSITIVE)
    }

    /// The probability that none runs.
    fn none_runs(self, cpus: u32, given: Given) -> f64 {
        if self.surely(cpus) > 0.0 {
            return 1.0 - given.surely;
        }
        let running = self.run_at_once(cpus, given);
        if running <= 0.0 {
            return 1.0;
        }
        // Beside so many others, of which each is as likely to run.
        let others = self.threads * (f64::from(cpus) / running - 1.0);
        let has_another = |taken: f64| ((others - taken) / (self.threads + others - taken)).max(0.0);
        (0..cpus).map(|taken| has_another(f64::from(taken))).product()
    }

    /// The same if each CPU is lost independently of the others.
    fn lost_independently(self, cpus: u32, given: Given) -> f64 {
        if self.surely(cpus) > 0.0 {
            return 1.0 - given.surely;
        }
        let most = self.most(cpus);
        (1.0 - self.run_at_once(cpus, given) / most).max(0.0).powf(most)
    }
}

impl Seen<'_> {
    /// What was sampled while threads were runnable.
    fn met(&self) -> impl Iterator<Item = Met> {
        let runnable = self.by_runnable.iter().filter(|((threads, _), _)| *threads > 0);
        runnable.map(|((threads, others), ns)| Met {
            threads: f64::from(*threads),
            others: f64::from(*others),
            ns: *ns as f64,
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

    /// A second on two CPUs of which `cpu_ms` and `queue_ms` were counted, with so many threads met beside so
    /// many of other programs for so long.
    fn reported(cpu_ms: u64, queue_ms: u64, met_ms: &[((u32, u32), u64)]) -> Busy {
        let met = met_ms.iter().map(|(met, ms)| (*met, ms * MS));
        let runnable = met_ms.iter().map(|(_, ms)| ms).sum::<u64>();
        let by_runnable = met.chain([((0, 0), (1000 - runnable) * MS)]).collect();
        let seen =
            Seen { by_runnable: &by_runnable, wall: (1000 * MS) as f64, samples: 200.0, most_threads: 2 };
        let [cpu, queue] = [cpu_ms, queue_ms].map(|ms| (ms * MS) as f64);
        busy(&seen, &Exact { cpu, queue, uncounted: 0.0, cpus: 2 })
    }

    fn assert_reported(busy: &Busy, running_ms: f64, ready_ms: f64) {
        let of_ms = |ns: f64| ns / MS as f64;
        let (running, ready) = (of_ms(busy.running.of), of_ms(busy.ready.of));
        assert!((running - running_ms).abs() < 0.1 && (ready - ready_ms).abs() < 0.1, "{running} {ready}");
    }

    #[test]
    fn one_thread_at_a_time_runs_for_its_cpu_time_whatever_others_were_met() {
        for others in 0..4 {
            assert_reported(&reported(700, 100, &[((1, others), 800)]), 700.0, 100.0);
        }
    }

    #[test]
    fn threads_that_others_leave_a_cpu_never_all_wait_however_little_cpu_time_is_left() {
        // One other thread: two of three run, and one of them is always this program's.
        assert_reported(&reported(800, 400, &[((2, 1), 600)]), 600.0, 0.0);
        // They sit on one CPU together, and the other program has the other one.
        assert_reported(&reported(610, 590, &[((2, 1), 600)]), 600.0, 0.0);
    }

    #[test]
    fn any_of_the_runnable_threads_have_the_cpus() {
        // Two others: of the six ways to choose two of four threads, one leaves both here without a CPU.
        let found = reported(600, 600, &[((2, 2), 600)]);
        assert_reported(&found, 500.0, 100.0);
        // Where CPUs are lost independently of each other, one of four.
        assert!(found.ready.range_ns().high >= 150.0 * MS as f64, "{found:?}");
        // Others that weigh more or less: it is the CPU time that says how much.
        assert_reported(&reported(600, 600, &[((2, 3), 600)]), 500.0, 100.0);
    }

    #[test]
    fn threads_that_no_other_program_keeps_from_a_cpu_all_wait_for_one_at_once() {
        // A limit on CPU time lets all run, or none.
        assert_reported(&reported(300, 300, &[((2, 0), 300)]), 150.0, 150.0);
    }
}
